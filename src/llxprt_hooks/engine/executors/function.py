"""Hooks of type ``function``: a Python function of the program. Settings files cannot contain them."""

from __future__ import annotations

import asyncio
import contextvars
import errno
import inspect
import threading
import traceback
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from llxprt_hooks.engine.executors.base import Executor
from llxprt_hooks.engine.results import error_text
from llxprt_hooks.protocol.exit_codes import HookVerdict, read_answer, timed_out
from llxprt_hooks.protocol.json_codec import read_json
from llxprt_hooks.protocol.replies import Reply
from llxprt_hooks.text import one_line

if TYPE_CHECKING:
    from llxprt_hooks.engine.executors.base import EventRun

HookFunction: TypeAlias = Callable[[dict[str, Any]], Reply | Awaitable[Reply | None] | None]
"""Takes the payload of an event, and returns an output in the format of scripts, or None for no opinion."""


class FunctionSpec(NamedTuple):
    """A function, and whether it is called in a thread of its own."""

    function: HookFunction
    threaded: bool = False


class FunctionExecutor(Executor[FunctionSpec]):
    """Calls the function on the event loop, or in a thread if it says so; awaits what it returns."""

    fields = None
    in_process = True

    def read(self, fields: Mapping[str, Any]) -> FunctionSpec:
        raise TypeError("a hook of type `function` is registered with `hooks.on`")

    def describe(self, spec: FunctionSpec) -> str:
        function = spec.function
        return f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}"

    def key(self, spec: FunctionSpec) -> str:
        return f"{self.describe(spec)}#{id(spec.function)}"

    async def run(self, spec: FunctionSpec, event_run: EventRun, *, timeout_ms: float) -> HookVerdict:
        # What scripts get, and a copy: no function can change what the tool or another hook receives.
        payload: Any = read_json(event_run.payload())
        called = _in_thread(spec.function, payload) if spec.threaded else spec.function(payload)
        if inspect.isawaitable(called):
            called = await _within(called, timeout_ms / 1000)
        return _verdict(called, timeout_ms)

    def failure(self, spec: FunctionSpec, error: Exception) -> str:
        place = _place(error, spec.function)
        if place is None:
            return super().failure(spec, error)
        kind, text = type(error).__name__, one_line(error_text(error))
        return f"raised {kind} ({place})" if text == kind else f"raised {kind}: {text} ({place})"


def _place(error: Exception, function: HookFunction) -> str | None:
    """The file and line of the function where it raised an error; None if the error is not from the function."""
    of_others = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not str(frame.f_globals.get("__name__")).startswith("llxprt_hooks.")
    ]
    if not of_others:
        return None
    code = getattr(function, "__code__", None)
    in_its_file = [place for place in of_others if code is not None and place[0] == code.co_filename]
    file, line = (in_its_file or of_others)[-1]
    return f"{Path(file).name}:{line}"


_EXPIRED: Final = object()
_ENDINGS: Final = (SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError)


async def _within(awaitable: Awaitable[Any], seconds: float) -> Any:
    """Await a result for some time; return ``_EXPIRED`` after that. A function's own timeouts are errors."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await awaitable
    except TimeoutError:
        if not limit.expired():
            raise
        return _EXPIRED


def _verdict(answer: Any, timeout_ms: float) -> HookVerdict:
    if answer is _EXPIRED:
        return timed_out(timeout_ms)
    if answer is not None and not isinstance(answer, Mapping):
        return HookVerdict(False, error=f"returned {type(answer).__name__}; expected a mapping or None")
    return HookVerdict(True, output=read_answer(answer))


def _in_thread(function: HookFunction, payload: dict[str, Any]) -> Awaitable[Any]:
    """Call a function in a thread of its own, which a hung function cannot take from others as in a pool."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def deliver(value: Any, error: Exception | None) -> None:
        if not result.done():
            if error is None:
                result.set_result(value)
            else:
                result.set_exception(error)

    def work() -> None:
        value: Any = None
        error: Exception | None = None
        try:
            value = context.run(function, payload)
        except (StopIteration, *_ENDINGS) as ending:  # a future refuses it, or it would end more than the hook
            error = RuntimeError(f"the function raised {ending!r}")
        except Exception as raised:
            error = raised
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(deliver, value, error)

    try:
        threading.Thread(target=work, name="llxprt-hooks-function", daemon=True).start()
    except RuntimeError as failure:  # Python's word for EAGAIN
        raise OSError(errno.EAGAIN, str(failure)) from failure
    return _then_awaited(result)


async def _then_awaited(result: asyncio.Future[Any]) -> Any:
    value = await result
    return await value if inspect.isawaitable(value) else value
