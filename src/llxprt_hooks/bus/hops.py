"""How many workers an event has passed. Workers whose hooks ask each other must not do so forever."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

HEADER: Final = "llxprt-hops"
"""The header of a NATS message or HTTP request with the number, where an event has passed a worker already."""

MOST_HOPS: Final = 4

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
    return {HEADER: str(hops)} if hops else {}
