"""Times and ids for payloads and records."""

from __future__ import annotations

import os
import time
from functools import lru_cache


def timestamp() -> str:
    """Return the current time in ISO 8601 with milliseconds, as JavaScript writes it: ``2026-11-16T04:23:53.305Z``."""
    seconds, milliseconds = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_second(seconds)}.{milliseconds:03}Z"


@lru_cache(maxsize=2)
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def new_id() -> str:
    """Return a fresh id for an event or an execution, unique across processes and machines."""
    return os.urandom(8).hex()
