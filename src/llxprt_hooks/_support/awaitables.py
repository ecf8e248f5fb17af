"""Values that may have to be awaited first: what functions of users return, which may be asynchronous or not."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def resolve(value: Awaitable[T] | T) -> T:
    """Return a value, awaited if it is awaitable."""
    return await value if inspect.isawaitable(value) else value
