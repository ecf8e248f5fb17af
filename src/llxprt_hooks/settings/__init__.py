"""Settings: from files on disk to merged, trusted hook settings.

>>> settings = load_settings(".")                                       # doctest: +SKIP
>>> settings.enabled, merge_hooks(source.hooks for source in settings.sources)  # doctest: +SKIP
"""

from llxprt_hooks.settings.atomic import exclusive_lock, write_atomically
from llxprt_hooks.settings.document import Document, read_document
from llxprt_hooks.settings.environment import EnvironmentRule, HookEnvironment
from llxprt_hooks.settings.extensions import Extension
from llxprt_hooks.settings.fingerprint import HookCommand, hook_fingerprint
from llxprt_hooks.settings.jsonc import JsoncError, Kind, Member, Node, line_and_column, parse
from llxprt_hooks.settings.levels import Level, settings_file, user_folder
from llxprt_hooks.settings.load import UNHEARD, Settings, load_settings
from llxprt_hooks.settings.merge import HookSource, merge_hooks
from llxprt_hooks.settings.printable import printable
from llxprt_hooks.settings.private import append_privately, make_private_folder
from llxprt_hooks.settings.problem import Problem
from llxprt_hooks.settings.trust import (
    TrustError,
    TrustState,
    TrustStatus,
    grant_trust,
    revoke_trust,
    trust_status,
)
from llxprt_hooks.settings.trust_store import TrustStore

__all__ = [
    "UNHEARD",
    "Document",
    "EnvironmentRule",
    "Extension",
    "HookCommand",
    "HookEnvironment",
    "HookSource",
    "JsoncError",
    "Kind",
    "Level",
    "Member",
    "Node",
    "Problem",
    "Settings",
    "TrustError",
    "TrustState",
    "TrustStatus",
    "TrustStore",
    "append_privately",
    "exclusive_lock",
    "grant_trust",
    "hook_fingerprint",
    "line_and_column",
    "load_settings",
    "make_private_folder",
    "merge_hooks",
    "parse",
    "printable",
    "read_document",
    "revoke_trust",
    "settings_file",
    "trust_status",
    "user_folder",
    "write_atomically",
]
