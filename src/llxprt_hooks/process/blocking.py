"""Short blocking calls, where the event loop forbids them.

Starting a program reads the file system and waits for ``exec``. That takes microseconds, so it is done on the event
loop: a thread would cost more. Tools such as blockbuster, which ``langgraph dev`` uses, replace functions of the
standard library by ones that raise on an event loop. There, these calls are made in a thread.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import TypeVar

T = TypeVar("T")


def blocking_is_forbidden() -> bool:
    """Whether something intercepts blocking calls: the functions that it replaces are not built in any more."""
    builtin = BuiltinFunctionType
    stat, access, read, sleep = type(os.stat), type(os.access), type(os.read), type(time.sleep)
    return not (stat is builtin and access is builtin and read is builtin and sleep is builtin)


async def call_blocking(function: Callable[[], T], *, discard: Callable[[T], None] | None = None) -> T:
    """Call a function: directly, or in a thread if blocking is forbidden.

    A thread cannot be interrupted. If the caller is cancelled meanwhile, ``discard`` gets the result.
    """
    if not blocking_is_forbidden():
        return function()
    called = asyncio.get_running_loop().run_in_executor(None, function)
    try:
        return await asyncio.shield(called)
    except asyncio.CancelledError:
        called.add_done_callback(lambda done: _discard(done, discard))
        raise


def _discard(done: asyncio.Future[T], discard: Callable[[T], None] | None) -> None:
    if not done.cancelled() and done.exception() is None and discard is not None:
        discard(done.result())
