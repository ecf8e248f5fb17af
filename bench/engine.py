"""The lines about what hooks cost that start no process: disabled, unmatched, new tool names, functions, sync calls."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from statistics import median
from typing import Any

from figures import MICROSECONDS, MILLISECONDS, Line, undisturbed

from llxprt_hooks import Config, Hooks, ToolResult, deny, execute_tool_with_hooks, fire_before_tool_hook
from llxprt_hooks.core import loops

Tool = Callable[[dict[str, Any]], Any]
Wrapper = Callable[[str, dict[str, Any], Tool], Awaitable[ToolResult]]

RESULT = ToolResult(llm_content="done", return_display="done")
TOOL_INPUT = {"file_path": "src/app.py"}
BATCHES = 20
CONFIGURED = (10, 100, 1_000)
_fresh = count()


def sync_tool(_: dict[str, Any]) -> ToolResult:
    return RESULT


async def async_tool(_: dict[str, Any]) -> ToolResult:
    return RESULT


def config_with(hooks: int) -> Config:
    """That many hooks, half before and half after a tool, each with a regular expression of its own."""
    groups = [
        {"matcher": f"^(server|client)_{number}_.*$", "hooks": [{"type": "command", "command": f"check {number}"}]}
        for number in range(hooks // 2)
    ]
    return Config(enable_hooks=True, hooks={"BeforeTool": groups, "AfterTool": groups})


def engine_lines(*, rounds: int, calls: int) -> list[Line]:
    """All of them, ours and the bare function in turns."""
    disabled = Config(enable_hooks=False, hooks=config_with(10).hooks)
    large = config_with(10_000)
    cases: list[tuple[Line, Wrapper]] = [
        (Line("hooks disabled: the wrapper over calling the tool", MICROSECONDS, 0.5e-6), wrapper(disabled)),
        (Line("hooks disabled: hooks.run_tool over calling the tool", MICROSECONDS, 0.5e-6), Hooks(disabled).run_tool),
        (Line("enabled, nothing matches, 10 hooks: the wrapper", MICROSECONDS, 3e-6), wrapper(config_with(10))),
        (Line("enabled, nothing matches, 10,000 hooks: the wrapper", MICROSECONDS, 3e-6), wrapper(large)),
        (Line("enabled, nothing matches, 10,000 hooks: hooks.run_tool", MICROSECONDS, 3e-6), Hooks(large).run_tool),
    ]
    function = Line("a Python function as hook that blocks, whole event", MICROSECONDS, 40e-6)
    hop = Line("hooks.sync: a hop to the background loop and back", MICROSECONDS, 60e-6)
    bare_hops: list[float] = []
    with asyncio.Runner() as runner, background_loop() as loop, without_collector():
        for _ in range(rounds + 1):
            for line, wrapped in cases:
                line.rounds.append(runner.run(overhead(wrapped, calls)))
            function.rounds.append(runner.run(function_event(calls // 20)))
            ours, bare = sync_hops(loop, calls // 20)
            hop.rounds.append(ours)
            bare_hops.append(bare)
        hop.beside = f"`asyncio.run_coroutine_threadsafe` {MICROSECONDS.write(median(bare_hops[1:]))}"
        first = Line("a tool name seen for the first time, 1,000 distinct matchers", MILLISECONDS, 3e-3)
        many = config_with(2_000)  # half of them before tools
        first.rounds = [runner.run(first_seen(many)) for _ in range(rounds + 1)]
        initial = [Line(f"the first event with {hooks:,} hooks, per hook", MICROSECONDS, 40e-6) for hooks in CONFIGURED]
        for hooks, line in zip(CONFIGURED, initial, strict=True):
            line.rounds = [runner.run(first_event(config_with(hooks))) / hooks for _ in range(rounds + 1)]
    lines = [*(line for line, _ in cases), first, *initial, function, hop]
    for line in lines:
        del line.rounds[0]
    return lines


def wrapper(config: Config) -> Wrapper:
    return partial(execute_tool_with_hooks, config)


async def overhead(wrapper: Wrapper, calls: int) -> float:
    """Seconds that the wrapper adds to a call, for the kind of tool to which it adds more; nothing here ever waits.

    The calls come in small batches, bare and wrapped in turns, so that a neighbour's noise falls on few of them.
    """
    batch = max(1, calls // BATCHES)
    taken = [
        (
            await _sync_calls(batch),
            await _wrapped_calls(wrapper, sync_tool, batch),
            await _async_calls(batch),
            await _wrapped_calls(wrapper, async_tool, batch),
        )
        for _ in range(min(calls, BATCHES))
    ]
    plain, wrapped, awaited, wrapped_awaited = map(undisturbed, zip(*taken, strict=True))
    return max(wrapped - plain, wrapped_awaited - awaited)


async def first_seen(config: Config) -> float:
    """Seconds of one call of a tool that was never called before."""
    name = f"tool_{next(_fresh)}"
    started = time.process_time()
    await execute_tool_with_hooks(config, name, TOOL_INPUT, sync_tool)
    return time.process_time() - started


async def first_event(config: Config) -> float:
    """Seconds of the first event of a configuration: all hooks are read, and those of the event are matched."""
    started = time.process_time()
    await fire_before_tool_hook(config, "unmatched", TOOL_INPUT)
    return time.process_time() - started


async def function_event(calls: int) -> float:
    """Seconds of a BeforeTool event whose only hook is a function. A block costs more than no opinion."""
    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: deny("not here"))
    started = time.process_time()
    for _ in range(calls):
        await fire_before_tool_hook(hooks.config, "read_file", TOOL_INPUT)
    return (time.process_time() - started) / calls


def sync_hops(loop: asyncio.AbstractEventLoop, calls: int) -> tuple[float, float]:
    """Seconds that a synchronous caller waits for a background loop to do nothing: ours, and asyncio's own way."""

    async def nothing() -> None: ...

    def batch(hop: Callable[[], object]) -> float:
        started = time.perf_counter()
        for _ in range(max(1, calls // BATCHES)):
            hop()
        return (time.perf_counter() - started) / max(1, calls // BATCHES)

    taken = [
        (
            batch(lambda: loops.run(nothing())),
            batch(lambda: asyncio.run_coroutine_threadsafe(nothing(), loop).result()),
        )
        for _ in range(BATCHES)
    ]
    ours, bare = map(undisturbed, zip(*taken, strict=True))
    return ours, bare


@contextmanager
def background_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A bare event loop in a thread."""
    loop = asyncio.SelectorEventLoop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _sync_calls(calls: int) -> float:
    started = time.process_time()
    for _ in range(calls):
        sync_tool(TOOL_INPUT)
    return (time.process_time() - started) / calls


async def _async_calls(calls: int) -> float:
    started = time.process_time()
    for _ in range(calls):
        await async_tool(TOOL_INPUT)
    return (time.process_time() - started) / calls


async def _wrapped_calls(wrapper: Wrapper, tool: Tool, calls: int) -> float:
    started = time.process_time()
    for _ in range(calls):
        await wrapper("read_file", TOOL_INPUT, tool)
    return (time.process_time() - started) / calls


@contextmanager
def without_collector() -> Iterator[None]:
    """As ``timeit`` does it: what the garbage collector does belongs to the program around."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
