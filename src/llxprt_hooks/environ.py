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
        return dict(os.environ)
    before, variables = _last
    if kept != before:
        before = dict(kept)  # first: what changes from here on is noticed the next time
        variables = dict(os.environ)
        _last = before, variables
    return variables
