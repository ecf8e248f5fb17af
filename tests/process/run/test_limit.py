"""A limit on the processes that run at once."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import threading
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks.process import ProcessSlots, SpawnError
from tests.process.run.runs import run
from tests.support.processes import DEADLINE

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


class Runs:
    """Runs that end when the test says so, and how many of them have started."""

    def __init__(self) -> None:
        self.started = 0
        self.at_once = 0
        self.most_at_once = 0
        self.end = asyncio.Event()

    async def __call__(self) -> None:
        self.started += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.end.wait()
        finally:
            self.at_once -= 1


def exhausted() -> SpawnError:
    error = SpawnError("no descriptors")
    error.__cause__ = OSError(errno.EMFILE, "too many")
    return error


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_limit_holds_and_the_rest_waits() -> None:
    slots, runs = ProcessSlots(3), Runs()
    tasks = [asyncio.create_task(slots.run(runs)) for _ in range(10)]
    await settled()

    assert runs.started == 3
    runs.end.set()
    await asyncio.gather(*tasks)
    assert (runs.started, runs.most_at_once) == (10, 3)


async def test_limit_is_lower_where_few_descriptors_may_be_opened() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (80, hard))
    try:
        slots, runs = ProcessSlots(64), Runs()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    tasks = [asyncio.create_task(slots.run(runs)) for _ in range(20)]
    await settled()

    assert runs.started == 10
    runs.end.set()
    await asyncio.gather(*tasks)


async def test_limit_does_not_count_a_run_that_is_cancelled_while_it_waits_or_runs() -> None:
    slots, runs = ProcessSlots(1), Runs()
    running, waiting, last = (asyncio.create_task(slots.run(runs)) for _ in range(3))
    await settled()

    waiting.cancel()
    running.cancel()
    await settled()

    assert (waiting.cancelled(), running.cancelled(), runs.started) == (True, True, 2)
    runs.end.set()
    await last


async def test_limit_passes_on_a_slot_whose_new_owner_was_cancelled_before_it_could_start() -> None:
    slots, runs = ProcessSlots(1), Runs()
    running, waiting, last = (asyncio.create_task(slots.run(runs)) for _ in range(3))
    await settled()

    runs.end.set()
    await running  # has handed its slot to `waiting`, which has not noticed yet
    waiting.cancel()

    await last
    assert (waiting.cancelled(), runs.started) == (True, 2)


def test_limit_holds_over_several_loops_in_several_threads(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    slots, lock, now, most = ProcessSlots(4), threading.Lock(), 0, 0

    async def one() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        try:
            await run("sleep", "0.01")
        finally:
            with lock:
                now -= 1

    async def several() -> None:
        await asyncio.gather(*(slots.run(one) for _ in range(15)))

    def in_thread() -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(several())

    threads = [threading.Thread(target=in_thread) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (now, most) == (0, 4)


def test_limit_passes_over_a_run_whose_loop_is_closed() -> None:
    slots = ProcessSlots(1)
    other = asyncio.new_event_loop()
    dropped: list[Runs] = []

    async def on_the_other() -> None:
        dropped.append(Runs())
        await slots.run(dropped[0])

    async def main() -> None:
        runs = Runs()
        running = asyncio.create_task(slots.run(runs))
        await settled()
        abandoned = await asyncio.to_thread(_begin, other, on_the_other())
        last = asyncio.create_task(slots.run(runs))
        await settled()
        assert (runs.started, dropped[0].started) == (1, 0)
        runs.end.set()
        done, _ = await asyncio.wait([running, last], timeout=DEADLINE)
        assert done == {running, last}
        assert (runs.started, runs.most_at_once, dropped[0].started) == (2, 1, 0)
        abandoned.close()

    asyncio.run(main())


def _begin(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, None]) -> Coroutine[Any, Any, None]:
    """Let a coroutine wait on a loop, and close the loop while it waits."""

    async def main() -> None:
        coroutine.send(None)

    loop.run_until_complete(main())
    loop.close()
    return coroutine


async def test_limit_lets_a_start_without_resources_wait_for_any_other_to_end() -> None:
    slots, runs, tries = ProcessSlots(10), Runs(), 0

    async def scarce() -> str:
        nonlocal tries
        tries += 1
        if runs.at_once:
            raise exhausted()
        return "started"

    running = asyncio.create_task(slots.run(runs))
    await settled()
    waiting = [asyncio.create_task(slots.run(scarce)) for _ in range(5)]
    await settled()
    assert tries == 1  # the others wait behind the first, and do not try in vain

    runs.end.set()
    assert await asyncio.gather(*waiting) == ["started"] * 5
    await running


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENOENT])
async def test_limit_lets_a_start_fail_where_no_other_runs(code: int) -> None:
    slots = ProcessSlots(10)

    async def failing() -> None:
        error = SpawnError("cannot be started")
        error.__cause__ = OSError(code, "")
        raise error

    results = await asyncio.gather(*(slots.run(failing) for _ in range(30)), return_exceptions=True)

    assert [type(result) for result in results] == [SpawnError] * 30


async def test_limit_starts_again_in_a_forked_process() -> None:
    slots, runs = ProcessSlots(1), Runs()
    running = asyncio.create_task(slots.run(runs))
    await settled()

    pid = os.fork()
    if pid == 0:
        done = Runs()
        done.end.set()
        try:
            asyncio.run(slots.run(done))  # would wait forever for the parent's run
        finally:
            os._exit(0 if done.started == 1 else 1)
    status = await asyncio.to_thread(os.waitpid, pid, 0)

    assert status == (pid, 0)
    runs.end.set()
    await running
