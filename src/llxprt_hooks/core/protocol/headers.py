"""The headers that go with an event to a worker, in a NATS message as in an HTTP request.

One counts the workers that an event has passed: workers whose hooks ask each other must not do so forever. The other
tells how long the sender waits, so that no worker computes an answer that arrives too late.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

HOPS_HEADER: Final = "llxprt-hops"
"""The number of workers; absent if an event has passed none."""

TIMEOUT_HEADER: Final = "llxprt-timeout-ms"
"""The milliseconds that the sender waits, counted from when it sends."""

MAX_HOPS: Final = 4

_hops: ContextVar[int] = ContextVar("llxprt_hooks_hops", default=0)


@contextmanager
def hop(header: str | None) -> Iterator[int]:
    """Count one more worker for the hooks that run inside, and return the number."""
    hops = 1 + (int(header) if header and header.isdecimal() and len(header) < 4 else 0)
    token = _hops.set(hops)
    try:
        yield hops
    finally:
        _hops.reset(token)


def hop_headers() -> dict[str, str]:
    """Return the header for a request that a worker sends; none for that of an agent."""
    hops = _hops.get()
    return {HOPS_HEADER: str(hops)} if hops else {}


def timeout_headers(seconds: float) -> dict[str, str]:
    """Return the header for a request."""
    return {TIMEOUT_HEADER: str(max(1, int(seconds * 1000)))}


def read_timeout(header: str | None) -> float | None:
    """Return the seconds of a header; None if there is none that can be read.

    >>> read_timeout("1500"), read_timeout("soon"), read_timeout(None)
    (1.5, None, None)
    """
    return int(header) / 1000 if header and header.isdecimal() and len(header) < 10 else None
