"""The environment of this process, read anew only when it has changed."""

from __future__ import annotations

import os
from collections.abc import Mapping

_last: tuple[Mapping[bytes, bytes], Mapping[str, str]] = {}, {}


def process_environment() -> Mapping[str, str]:
    """All variables: the same object again as long as none has changed, for whoever works something out from it.

    ``os.environ`` decodes each variable each time, which for a hook is a good part of the time before its process is
    started. What it keeps underneath can be compared in a hundredth of that; where it is not there, nothing is lost.
    """
    global _last
    kept = getattr(os.environ, "_data", None)
    if kept is None:
        return _read()
    before, variables = _last
    if kept != before:
        before = dict(kept)  # one step, which no other thread comes between; what is decoded is this copy
        variables = {os.fsdecode(name): os.fsdecode(value) for name, value in before.items()}
        _last = before, variables
    return variables


def _read() -> Mapping[str, str]:
    while True:
        try:
            return dict(os.environ)
        except (KeyError, RuntimeError):  # another thread has changed it meanwhile
            continue
