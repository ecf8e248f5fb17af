"""Many processes, several event loops, several threads; and the list of guarantees itself."""

from __future__ import annotations

import asyncio
import gc
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from llxprt_hooks import process
from llxprt_hooks.process.child import Child
from tests.process.run.runs import bash, run

if TYPE_CHECKING:
    from collections.abc import Callable


async def test_loops_run_a_hundred_processes_at_once(way: None) -> None:
    runs = [bash(f"read x; echo $x; exit {i}", stdin=f"{i}\n".encode()) for i in range(100)]

    done = await asyncio.gather(*runs)

    assert [(c.exit_code, c.stdout) for c in done] == [(i, f"{i}\n".encode()) for i in range(100)]


def test_loops_in_several_threads_do_not_disturb_each_other(
    new_loop: Callable[[], asyncio.AbstractEventLoop], way: None
) -> None:
    results: dict[int, list[bytes]] = {}

    async def several(thread: int) -> list[bytes]:
        done = [await run("cat", stdin=f"{thread}-{i}".encode()) for i in range(5)]
        done += await asyncio.gather(*(run("cat", stdin=f"{thread}-{i}".encode()) for i in range(5, 10)))
        await bash("sleep 1000", timeout=0.1)
        return [completed.stdout for completed in done]

    def in_thread(thread: int) -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            results[thread] = runner.run(several(thread))

    threads = [threading.Thread(target=in_thread, args=(i,)) for i in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert results == {thread: [f"{thread}-{i}".encode() for i in range(10)] for thread in range(5)}


async def test_clean_after_a_mix_of_everything(way: None) -> None:
    """``clean`` is checked after every test here (conftest.py); this one does all at once."""

    async def cancelled() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await bash("trap '' TERM; sleep 1000", grace=0.1)

    async def not_started() -> None:
        with pytest.raises(process.SpawnError):
            await run("no-such-program", stdin=bytes(200_000))

    scenes = [
        lambda: bash("echo out; exit 1", stdin=bytes(200_000)),
        lambda: bash("kill -9 $$"),
        lambda: bash("sleep 1000 | cat", timeout=0.1),
        lambda: bash("head -c 1M /dev/zero", output_limit=10),
        cancelled,
        not_started,
    ]

    await asyncio.gather(*(scene() for scene in scenes * 10))


async def test_clean_without_the_garbage_collector() -> None:
    """A run holds its output; nothing but the caller may hold it on."""
    gc.collect()
    gc.disable()
    of_others = {id(thing) for thing in gc.get_objects() if type(thing) is Child}
    try:
        await run("cat", stdin=bytes(200_000))
        await bash("sleep 1000", timeout=0.1)
        held = [thing for thing in gc.get_objects() if type(thing) is Child and id(thing) not in of_others]
        assert held == []
    finally:
        gc.enable()


def test_every_guarantee_has_a_test() -> None:
    guarantees = re.findall(r"^``(\w+)``$", process.__doc__ or "", re.MULTILINE)
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))

    assert len(guarantees) == 14
    assert [name for name in guarantees if f"def test_{name}_" not in tests] == []
