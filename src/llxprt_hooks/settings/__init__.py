"""Settings files: JSON with comments, three levels, extensions, and edits that keep what they do not change.

Every value remembers where it is in its file, so that every problem has a line and a column. Nothing in a file makes
reading it raise. Which levels count is decided one floor up, in ``trust.load``.
"""

from llxprt_hooks.settings.atomic import exclusive_lock, write_atomically
from llxprt_hooks.settings.document import Document, read_document
from llxprt_hooks.settings.environment import EnvironmentRule, HookEnvironment
from llxprt_hooks.settings.extensions import Extension
from llxprt_hooks.settings.jsonc import JsoncError, Kind, Member, Node, line_and_column, parse
from llxprt_hooks.settings.levels import Level, settings_file, user_folder
from llxprt_hooks.settings.merge import HookSource, merge_hooks
from llxprt_hooks.settings.private import append_privately, make_private_folder
from llxprt_hooks.settings.problem import Problem

__all__ = [
    "Document",
    "EnvironmentRule",
    "Extension",
    "HookEnvironment",
    "HookSource",
    "JsoncError",
    "Kind",
    "Level",
    "Member",
    "Node",
    "Problem",
    "append_privately",
    "exclusive_lock",
    "line_and_column",
    "make_private_folder",
    "merge_hooks",
    "parse",
    "read_document",
    "settings_file",
    "user_folder",
    "write_atomically",
]
