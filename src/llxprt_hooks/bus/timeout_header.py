"""How long the sender of an event waits for the answer, so that no worker computes one that arrives too late."""

from __future__ import annotations

from typing import Final

HEADER: Final = "llxprt-timeout-ms"
"""The header of a NATS message or HTTP request with the milliseconds, counted from when it is sent."""


def timeout_headers(seconds: float) -> dict[str, str]:
    """Return the header for a request."""
    return {HEADER: str(max(1, int(seconds * 1000)))}


def read_timeout(header: str | None) -> float | None:
    """Return the seconds of a header; None if there is none that can be read.

    >>> read_timeout("1500"), read_timeout("soon"), read_timeout(None)
    (1.5, None, None)
    """
    return int(header) / 1000 if header and header.isdecimal() and len(header) < 10 else None
