"""The environment of this process, decoded only when it has changed."""

from __future__ import annotations

import os
from collections.abc import Mapping

_last: tuple[Mapping[bytes, bytes], Mapping[str, str]] = {}, {}


def process_environment() -> Mapping[str, str]:
    """Return the environment; the same dict object while it is unchanged, so callers can cache by identity.

    ``os.environ`` decodes every variable on each access, which is a large part of the time until a hook's process
    starts. Comparing the encoded variables that it keeps internally takes a hundredth of that. If a Python
    implementation does not have them, ``os.environ`` itself is copied.
    """
    global _last
    kept = getattr(os.environ, "_data", None)
    if kept is None:
        return _read()
    before, variables = _last
    if kept != before:
        before = dict(kept)  # atomic under the GIL; free-threaded builds lock the dict
        variables = {os.fsdecode(name): os.fsdecode(value) for name, value in before.items()}
        _last = before, variables
    return variables


def without_relative_path(environment: dict[str, str]) -> dict[str, str]:
    """Drop relative entries from PATH: the program that they find depends on the folder, so a project could bring it.

    >>> without_relative_path({"PATH": "node_modules/.bin::/bin"})
    {'PATH': '/bin'}
    """
    path = environment.get("PATH")
    if path is None:
        return environment
    # An empty PATH would mean the current folder.
    absolute = [folder for folder in path.split(os.pathsep) if folder.startswith("/")] or [os.defpath]
    return {**environment, "PATH": os.pathsep.join(absolute)}


def _read() -> Mapping[str, str]:
    while True:
        try:
            return dict(os.environ)
        except (KeyError, RuntimeError):  # another thread changed it in the meantime
            continue
