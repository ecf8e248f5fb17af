"""Settings files: JSON with comments, three levels, extensions, and edits that preserve everything else.

Every value keeps its position in the file, so every problem has a line and a column. Reading never raises because of
a file's content. ``load`` decides which levels apply.
"""

from llxprt_hooks.settings.atomic import append_privately, exclusive_lock, make_private_folder, write_atomically
from llxprt_hooks.settings.document import Document, read_document
from llxprt_hooks.settings.extensions import Extension
from llxprt_hooks.settings.jsonc import Kind, Member, Node, parse
from llxprt_hooks.settings.levels import Level, settings_file, user_folder
from llxprt_hooks.settings.problem import Problem

__all__ = [
    "Document",
    "Extension",
    "Kind",
    "Level",
    "Member",
    "Node",
    "Problem",
    "append_privately",
    "exclusive_lock",
    "make_private_folder",
    "parse",
    "read_document",
    "settings_file",
    "user_folder",
    "write_atomically",
]
