"""The environment of this process, decoded only when it has changed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Final

SEARCH_PATHS: Final = frozenset(
    {
        "PATH",
        "PYTHONPATH",
        "NODE_PATH",
        "PERL5LIB",
        "PERLLIB",
        "RUBYLIB",
        "CLASSPATH",
        "LD_LIBRARY_PATH",
        "DYLD_LIBRARY_PATH",
        "DYLD_FALLBACK_LIBRARY_PATH",
    }
)
"""Lists of folders in which programs, modules and libraries are looked up."""

_FILES: Final[Mapping[str, str]] = {
    "BASH_ENV": ":",
    "ENV": ":",
    "LD_PRELOAD": ":",
    "LUA_PATH": ";",
    "LUA_CPATH": ";",
    "PYTHONPYCACHEPREFIX": ":",
}
"""Other variables that name files or folders with code, and what separates the names in them."""

_OPTIONS: Final = frozenset({"NODE_OPTIONS", "PERL5OPT", "RUBYOPT"})
_LOADS_RELATIVE: Final = re.compile(r"(?:^|\s)(?:-[rIMm]|--(?:require|import|(?:experimental-)?loader))[=\s]*[^/=\s]")
"""Options of interpreters that load code which another folder may have, such as ``-r ./x.js`` and ``-r x``."""

_SHELL_OPTIONS: Final = frozenset({"SHELLOPTS", "BASHOPTS"})
"""Options that every bash obeys, such as ``noexec``, with which a hook does nothing."""


class Environment(dict[str, str]):
    """The variables of a program, which nobody changes any more, so that many starts encode them once."""

    @cached_property
    def entries(self) -> list[bytes]:
        """The variables as the system gets them."""
        return encoded_entries(self)

    @cached_property
    def of_python(self) -> Mapping[str, str]:
        """Those that a Python interpreter may read when it starts."""
        return {name: value for name, value in self.items() if name == "HOME" or name.startswith("PYTHON")}


def encoded_entries(variables: Mapping[str, str]) -> list[bytes]:
    """Encode variables as the system gets them. Raises ValueError for a name with an equals sign."""
    if any("=" in name for name in variables):
        raise ValueError("illegal environment variable name")
    return [os.fsencode(f"{name}={value}") for name, value in variables.items()]


_last: tuple[Mapping[bytes, bytes], Mapping[str, str]] = {}, {}


def process_environment() -> Mapping[str, str]:
    """Return the environment; the same dict object while it is unchanged, so callers can cache by identity.

    ``os.environ`` decodes every variable on each access, which is a large part of the time until a hook's process
    starts. Comparing the encoded variables that it keeps internally takes a hundredth of that.
    """
    global _last
    kept = getattr(os.environ, "_data", None)
    if kept is None:  # a program has replaced it
        return dict(os.environ)
    before, variables = _last
    if kept != before:
        before = dict(kept)  # atomic under the GIL; free-threaded builds lock the dict
        variables = {os.fsdecode(name): os.fsdecode(value) for name, value in before.items()}
        _last = before, variables
    return variables


def without_relative_path(environment: dict[str, str]) -> dict[str, str]:
    """Drop relative entries from search paths: what they find depends on the folder, so a project could bring it.

    This applies to programs, and to what interpreters, the linker and shells load into them. An empty entry, which is
    left by ``PYTHONPATH=$PYTHONPATH:/lib``, is the current folder. A search path without absolute entries is dropped,
    and so are options that switch a shell off.

    >>> without_relative_path({"PATH": "node_modules/.bin::/bin", "PYTHONPATH": ":/lib", "RUBYLIB": "lib"})
    {'PATH': '/bin', 'PYTHONPATH': '/lib'}
    """
    cleaned = {name: value for name, value in environment.items() if name not in _SHELL_OPTIONS}
    for name in _OPTIONS & environment.keys():
        if _LOADS_RELATIVE.search(environment[name]):
            del cleaned[name]
    for name in (SEARCH_PATHS | _FILES.keys()) & environment.keys():
        separator = _FILES.get(name, os.pathsep)
        absolute = [entry for entry in environment[name].split(separator) if _is_absolute(name, entry)]
        if name == "PATH":
            absolute = absolute or [os.defpath]  # an empty PATH would mean the current folder
        cleaned[name] = separator.join(absolute)
        if not absolute:
            del cleaned[name]
    return cleaned


def _is_absolute(name: str, entry: str) -> bool:
    """Whether the meaning of an entry does not depend on the folder: the linker looks up a bare name elsewhere."""
    is_bare = name == "LD_PRELOAD" and "/" not in entry and entry != ""
    return entry.startswith("/") or is_bare or (name in ("BASH_ENV", "ENV") and entry.startswith(("$", "~")))
