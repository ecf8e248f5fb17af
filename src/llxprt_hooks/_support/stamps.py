"""Times and ids for payloads and records."""

from __future__ import annotations

import os
from datetime import UTC, datetime


def timestamp() -> str:
    """Return the current time in ISO 8601 with milliseconds, as JavaScript writes it: ``2026-11-16T04:23:53.305Z``."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_id() -> str:
    """Return a fresh id for an event or an execution, unique across processes and machines."""
    return os.urandom(8).hex()
