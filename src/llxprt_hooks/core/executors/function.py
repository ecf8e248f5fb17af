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
from typing import Any, Final, NamedTuple, TypeAlias

from llxprt_hooks._support.awaitables import resolve
from llxprt_hooks._support.json_codec import read_json, require_stack
from llxprt_hooks._support.text import one_line
from llxprt_hooks.core.engine.results import HookExecutionResult, error_text
from llxprt_hooks.core.engine.session import HookedSession, hooked_session
from llxprt_hooks.core.executors.base import Executor, HookRun
from llxprt_hooks.core.protocol.replies import Reply

HookFunction: TypeAlias = Callable[[Any], Reply | Awaitable[Reply | None] | None]
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

    async def run(self, spec: FunctionSpec, run: HookRun) -> HookExecutionResult:
        # What scripts get, and a copy: no function can change what the tool or another hook receives.
        payload: Any = read_json(run.payload())
        session = hooked_session.set(HookedSession(str(payload.get("session_id", ""))))
        try:
            answer = in_thread(spec.function, payload) if spec.threaded else spec.function(payload)
            if inspect.isawaitable(answer):
                answer = await _within(answer, run.timeout_ms / 1000)
        except RecursionError as error:
            require_stack()  # so that it is the function that recurses too deeply, and not its caller (D-60)
            return run.failed(self.failure(spec, error), error)
        finally:
            hooked_session.reset(session)
        return _record(run, answer)

    def failure(self, spec: FunctionSpec, error: Exception) -> str:
        place = _place(error, spec.function)
        if place is None:
            return super().failure(spec, error)
        kind, text = type(error).__name__, one_line(error_text(error))
        return f"raised {kind} ({place})" if text == kind else f"raised {kind}: {text} ({place})"


def _record(run: HookRun, answer: Any) -> HookExecutionResult:
    if answer is _EXPIRED:
        return run.timed_out()
    if answer is not None and not isinstance(answer, Mapping):
        return run.failed(f"returned {type(answer).__name__}; expected a mapping or None")
    return run.answered(answer)


def _place(error: Exception, function: HookFunction) -> str | None:
    """The file and line of the function where it raised an error; None if the error is not from the function."""
    other_frames = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not str(frame.f_globals.get("__name__")).startswith("llxprt_hooks.")
    ]
    if not other_frames:
        return None
    code = getattr(function, "__code__", None)
    in_its_file = [place for place in other_frames if code is not None and place[0] == code.co_filename]
    file, line = (in_its_file or other_frames)[-1]
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


async def in_thread(function: Callable[[Any], Any], argument: Any) -> Any:
    """Call a function in a thread of its own, which a hung function cannot take from others as in a pool."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def deliver(set_outcome: Callable[[Any], None], outcome: Any) -> None:
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(lambda: None if result.done() else set_outcome(outcome))

    def work() -> None:
        try:
            deliver(result.set_result, context.run(function, argument))
        except (StopIteration, *_ENDINGS) as ending:  # a future refuses it, or it would end more than the hook
            deliver(result.set_exception, RuntimeError(f"the function raised {ending!r}"))
        except Exception as error:
            deliver(result.set_exception, error)

    try:
        threading.Thread(target=work, name="llxprt-hooks-function", daemon=True).start()
    except RuntimeError as failure:  # Python's word for EAGAIN
        raise OSError(errno.EAGAIN, str(failure)) from failure
    return await resolve(await result)
