"""The environment of this process, decoded only when it has changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
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

    This applies to programs, and to what interpreters and the linker load into them. An empty entry, which is left by
    ``PYTHONPATH=$PYTHONPATH:/lib``, is the current folder. A search path without absolute entries is dropped.

    >>> without_relative_path({"PATH": "node_modules/.bin::/bin", "PYTHONPATH": ":/lib", "RUBYLIB": "lib"})
    {'PATH': '/bin', 'PYTHONPATH': '/lib'}
    """
    cleaned = dict(environment)
    for name in SEARCH_PATHS & environment.keys():
        absolute = [folder for folder in environment[name].split(os.pathsep) if folder.startswith("/")]
        if name == "PATH":
            absolute = absolute or [os.defpath]  # an empty PATH would mean the current folder
        cleaned[name] = os.pathsep.join(absolute)
        if not absolute:
            del cleaned[name]
    return cleaned
