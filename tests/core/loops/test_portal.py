"""The synchronous facade and other async libraries: hooks run on a background loop, and nothing is lost or left."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import sys
import textwrap
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.lowlevel

from llxprt_hooks import Hooks, StopRequested, ToolResult, context, deny, execute_tool_with_hooks, rewrite
from llxprt_hooks.core import loops
from tests.support.processes import at_most_until_the_deadline, handled, lives, run_python, until
from tests.support.replies import DENY, done

if TYPE_CHECKING:
    from tests.support.engine_project import EngineProject


def program(text: str, *, timeout: float = 60) -> str:
    """What a program printed that ended well."""
    finished = run_python("-W", "error::ResourceWarning", "-c", textwrap.dedent(text), seconds=timeout)
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
    return finished.stdout


def test_a_tool_runs_with_its_hooks_in_a_program_without_a_loop(project: EngineProject) -> None:
    hooks = Hooks(
        project.config(
            {
                "BeforeTool": project.hook("before", {"hookSpecificOutput": {"tool_input": {"b": 2}}}),
                "AfterTool": project.hook("after", {"hookSpecificOutput": {"additionalContext": "more"}}),
            }
        )
    )
    result = hooks.sync.run_tool("any", {"a": 1}, lambda args: f"got {args}")
    assert result.llm_content == "got {'a': 1, 'b': 2}\n\nmore"
    assert project.payload("after")["tool_input"] == {"a": 1, "b": 2}


async def test_it_works_inside_a_running_loop(project: EngineProject) -> None:
    hooks = Hooks(project.config({"BeforeTool": project.hook(says=DENY)}))
    assert hooks.sync.run_tool("any", {}, done).llm_content == "not today"
    assert (await hooks.run_tool("any", {}, done)).llm_content == "not today"


async def test_a_loop_that_the_tool_itself_runs_is_used_as_usual(project: EngineProject) -> None:
    """Inside of a synchronous call a tool may start a loop in another thread, or call a coroutine function."""
    hooks = Hooks(project.config({"BeforeTool": project.hook()}))
    loops: list[Any] = []

    async def inner(args: dict[str, Any]) -> str:
        loops.append(asyncio.get_running_loop())
        return str((await hooks.run_tool("inner", {}, done)).llm_content)

    assert hooks.sync.run_tool("outer", {}, inner).llm_content == "done"
    assert loops[0] is not asyncio.get_running_loop()
    assert project.runs() == 2


def test_a_tool_that_starts_a_loop_of_its_own_in_the_same_thread(project: EngineProject) -> None:
    hooks = Hooks(project.config({"BeforeTool": project.hook()}))
    outer = hooks.sync.run_tool("outer", {}, lambda args: asyncio.run(hooks.run_tool("inner", {}, done)))
    assert outer.llm_content == "done"
    assert project.runs() == 2


def test_the_tool_runs_in_the_callers_thread_and_context() -> None:
    variable = contextvars.ContextVar("variable", default="")
    seen: list[Any] = []
    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: seen.append(("hook", variable.get(), threading.current_thread().name)))

    def tool(args: dict[str, Any]) -> str:
        seen.append(("tool", variable.get(), threading.current_thread().name))
        variable.set("set by the tool")
        return "done"

    def main() -> None:
        variable.set("caller's")
        hooks.sync.run_tool("any", {}, tool)
        assert variable.get() == "set by the tool"

    contextvars.copy_context().run(main)
    here = threading.current_thread().name
    assert seen == [("hook", "caller's", "llxprt-hooks"), ("tool", "caller's", here)]


def test_an_error_of_the_tool_passes_through() -> None:
    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: None)

    def fails(args: dict[str, Any]) -> str:
        raise LookupError("its own")

    with pytest.raises(LookupError, match="its own"):
        hooks.sync.run_tool("any", {}, fails)


@pytest.mark.slow
def test_many_threads_at_once(project: EngineProject) -> None:
    hooks = Hooks(project.config({"BeforeTool": project.hook()}))
    hooks.on("BeforeTool", lambda payload: rewrite(seen=payload["tool_input"]["number"]))
    with ThreadPoolExecutor(20) as pool:
        results = list(pool.map(lambda number: hooks.sync.run_tool("t", {"number": number}, str), range(60)))
    assert [result.llm_content for result in results] == [str({"number": n, "seen": n}) for n in range(60)]
    assert project.runs() == 60


def test_one_thread_serves_them_all() -> None:
    hooks = Hooks()
    seen: set[Any] = set()
    hooks.on("BeforeTool", lambda payload: seen.add(threading.current_thread()))
    threads = [threading.Thread(target=hooks.sync.run_tool, args=("t", {}, done)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 1


def test_a_hook_may_call_synchronously_itself(project: EngineProject) -> None:
    """The loop waits for the hook, so the inner call gets a loop of its own; and so does one inside of that."""
    hooks = Hooks(project.config({"BeforeTool": [{"matcher": "innermost", "hooks": [command(project, says=DENY)]}]}))

    @hooks.on("BeforeTool", matcher="^(outer|inner)$")
    def nested(payload: dict[str, Any]) -> Any:
        name = "inner" if payload["tool_name"] == "outer" else "innermost"
        return deny(f"{name}: {hooks.sync.run_tool(name, {}, done).llm_content}")

    assert hooks.sync.run_tool("outer", {}, done).llm_content == "inner: innermost: not today"


def test_hooks_that_call_each_other_endlessly_fail() -> None:
    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: deny(hooks.sync.run_tool("t", {}, done).llm_content), fail_closed=True)
    assert "8 levels deep" in hooks.sync.run_tool("t", {}, done).llm_content


def command(project: EngineProject, name: str = "hook", **options: Any) -> dict[str, Any]:
    return {"type": "command", "command": project.hook(name, **options)}


def test_something_of_another_loop_cannot_be_waited_for() -> None:
    async def waits() -> None:
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="use the async method"):
        loops.drive(waits())


def test_ctrl_c_ends_the_hook_before_it_is_raised(project: EngineProject) -> None:
    hooks = Hooks(project.config({"BeforeTool": project.endless_hook("endless")}))
    pids: list[int] = []

    def interrupt() -> None:
        pids.extend(project.pids("endless"))
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        hooks.sync.run_tool("any", {}, done)
    assert pids
    assert not any(map(lives, pids))
    assert hooks.sync.run_tool is not None


def test_a_signal_whose_handler_raises_nothing_does_not_end_the_call() -> None:
    """Timers, profilers and programs that reap their children have such handlers."""
    handled = threading.Event()

    async def guard(payload: dict[str, Any]) -> Any:
        while not handled.is_set():  # the handler runs where the main thread waits for this hook
            os.kill(os.getpid(), signal.SIGUSR1)
            await asyncio.sleep(0.01)
        return deny("not today")

    hooks = Hooks()
    hooks.on("BeforeTool", guard)
    previous = signal.signal(signal.SIGUSR1, lambda *_: handled.set())
    try:
        assert hooks.sync.run_tool("any", {}, done).llm_content == "not today"
    finally:
        signal.signal(signal.SIGUSR1, previous)


@pytest.mark.slow
def test_ctrl_c_before_the_call_has_begun() -> None:
    """The loop is busy, so the call is still waiting to be started."""
    busy, interrupted = threading.Event(), threading.Event()
    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: deny("never"))

    def block() -> None:
        busy.set()
        interrupted.wait(60)

    loops.call_soon(block)
    assert busy.wait(60)

    def interrupt() -> None:
        until(main_thread_is_in_a_call)
        os.kill(os.getpid(), signal.SIGINT)
        interrupted.set()

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        hooks.sync.run_tool("any", {}, done)
    assert hooks.sync.run_tool("any", {}, done).llm_content == "never"


def main_thread_is_in_a_call() -> bool:
    frame = sys._current_frames()[threading.main_thread().ident or 0]
    return any(each.f_code.co_filename == loops.__file__ for each, _ in traceback.walk_stack(frame))


@pytest.mark.slow
def test_a_guard_holds_when_no_descriptor_is_left() -> None:
    printed = program("""
        import os, resource
        from llxprt_hooks import Hooks, deny

        hooks = Hooks()
        hooks.on("BeforeTool", lambda payload: deny("not today"))
        run = lambda: hooks.sync.run_tool("t", {}, lambda args: "RAN").llm_content
        print(run())
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        taken = []
        try:
            while True:
                taken.append(os.dup(0))
        except OSError:
            print(run())
    """)
    assert printed == "not today\nnot today\n"


@pytest.mark.slow
def test_a_hook_that_forks_does_not_end_the_call_of_its_parent() -> None:
    """The copy of the loop in the child runs the hook's end, too."""
    printed = program("""
        import asyncio, os, signal, sys
        from llxprt_hooks import Hooks, deny

        hooks = Hooks()
        ended, end = os.pipe()
        children = []

        @hooks.on("BeforeTool")
        def forks(payload):
            loop = asyncio.get_running_loop()
            children.append(os.fork())
            if children[0]:
                assert os.read(ended, 1) == b"."
                return deny("not today")
            loop.call_later(0.1, os.write, end, b".")
            sys.exit()

        print(hooks.sync.run_tool("t", {}, lambda args: "RAN").llm_content)
        os.kill(children[0], signal.SIGKILL)
        os.waitpid(children[0], 0)
    """)
    assert printed == "not today\n"


@pytest.mark.slow
def test_green_threads_wait_for_each_other_with_their_own_locks() -> None:
    """gevent replaces the lock of ``threading``: a call of the system would stop all of its threads."""
    printed = program("""
        import _thread, threading
        from llxprt_hooks import Hooks, deny

        class Lock:
            def __init__(self):
                lock = _thread.allocate_lock()
                self.acquire, self.release = lock.acquire, lock.release

            def __enter__(self):
                self.acquire()

            def __exit__(self, *error):
                self.release()

        threading.Lock = Lock
        hooks = Hooks()
        hooks.on("BeforeTool", lambda payload: deny("not today"))
        print(hooks.sync.run_tool("t", {}, lambda args: "RAN").llm_content)
    """)
    assert printed == "not today\n"


def test_a_call_that_was_interrupted_before_it_was_handed_over_ends_too() -> None:
    ended = threading.Event()

    async def never() -> None:
        raise AssertionError

    call = loops._Call(loops._portal().loop, never(), ended.set, 1)
    call.cancel()
    assert ended.wait(60)
    assert call.ended


def test_after_its_end_the_background_loop_is_started_again() -> None:
    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: deny(threading.current_thread().name))
    hooks.on("SessionStart", lambda payload: context("slow"))
    hooks.observe("SessionStart")
    loops._close_shared()
    assert not loops.is_running()
    loops._close_shared()
    assert hooks.sync.run_tool("any", {}, done).llm_content == "llxprt-hooks"


def test_at_its_end_it_waits_for_what_still_runs() -> None:
    ended: list[bool] = []

    async def slow(payload: dict[str, Any]) -> None:
        await asyncio.sleep(0.05)
        ended.append(True)

    hooks = Hooks()
    hooks.on("SessionStart", slow)
    hooks.observe("SessionStart")
    loops._close_shared()
    assert ended == [True]


def test_what_a_fork_left_behind_is_not_used() -> None:
    """The forked process itself is tested below."""
    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: deny(str(threading.get_ident())))
    before = hooks.sync.run_tool("any", {}, done).llm_content
    loops._forget_after_fork()
    assert hooks.sync.run_tool("any", {}, done).llm_content != before
    left = loops._inherited.pop()
    assert left is not None
    left.close(0)


FORKING = """
    import os
    from llxprt_hooks import Config, Hooks

    hook = {"type": "command", "command": "echo no >&2; exit 2"}
    hooks = Hooks(Config(enable_hooks=True, hooks={"BeforeTool": [{"hooks": [hook]}]}))
    run = lambda: hooks.sync.run_tool("t", {}, lambda args: "ran").llm_content
    print(run(), flush=True)
    child = os.fork()
    os.write(1, f"{'child' if child == 0 else 'parent'} {run()}\\n".encode())  # in one piece: the other writes too
    if child:
        assert os.waitpid(child, 0)[1] == 0
        print(run())
"""


FORKING_DURING_THE_FIRST_EVENT = """
    import os, signal, threading, time, warnings
    from llxprt_hooks import Config, Hooks
    from llxprt_hooks.core.engine.registry import HookRegistry

    warnings.simplefilter("ignore", DeprecationWarning)  # of fork in a process with threads
    initialize, first = HookRegistry.initialize, threading.Event()

    def initialize_slowly(registry):
        first.set()
        time.sleep(0.5)
        initialize(registry)

    hook = {"type": "command", "command": "echo no >&2; exit 2"}
    hooks = Hooks(Config(enable_hooks=True, hooks={"BeforeTool": [{"hooks": [hook]}]}))
    run = lambda: hooks.sync.run_tool("t", {}, lambda args: "ran").llm_content
    HookRegistry.initialize = initialize_slowly
    thread = threading.Thread(target=run)
    thread.start()
    first.wait()
    child = os.fork()
    HookRegistry.initialize = initialize
    if child == 0:
        signal.alarm(60)  # ends it if it hangs
        os._exit(0 if run() == "no" else 1)
    thread.join()
    print(os.waitpid(child, 0)[1])
"""


FORKING_DURING_AN_IMPORT = """
    import os, signal, sys, threading, time, warnings
    from {module} import {function}

    class Slow:
        def find_spec(self, name, path, target=None):
            if name == "{imported}":
                begun.set()
                time.sleep(0.5)

    warnings.simplefilter("ignore", DeprecationWarning)  # of fork in a process with threads
    begun = threading.Event()
    sys.meta_path.insert(0, Slow())
    thread = threading.Thread(target={function})
    thread.start()
    begun.wait()
    if (child := os.fork()) == 0:
        signal.alarm(60)  # ends it if it hangs
        {function}()
        os._exit(0)
    thread.join()
    print(os.waitpid(child, 0)[1])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "function", "imported"),
    [
        ("llxprt_hooks.core.executors.http", "_make_transport", "httpx"),
        ("llxprt_hooks.fleet.nats_connection", "_imported_client", "nats.aio.client"),
    ],
)
def test_a_process_that_is_forked_during_an_import_can_import(module: str, function: str, imported: str) -> None:
    text = FORKING_DURING_AN_IMPORT.format(module=module, function=function, imported=imported)
    assert program(text) == "0\n"


@pytest.mark.slow
def test_a_process_that_is_forked_during_the_first_event_is_guarded() -> None:
    assert program(FORKING_DURING_THE_FIRST_EVENT) == "0\n"


@pytest.mark.slow
def test_a_signal_handler_may_call_hooks_while_the_loop_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    original, calls = loops._Portal, []

    class Interrupted(original):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            super().__init__()
            monkeypatch.setattr(loops, "_Portal", original)
            signal.raise_signal(signal.SIGUSR1)

    async def call(who: str) -> None:
        calls.append(who)

    monkeypatch.setattr(loops, "_shared", None)
    monkeypatch.setattr(loops, "_Portal", Interrupted)
    with handled(signal.SIGUSR1, lambda: loops.run(call("handler"))), at_most_until_the_deadline():
        loops.run(call("program"))
    loops._close_shared()

    assert calls == ["handler", "program"]


@pytest.mark.slow
def test_a_forked_process_has_a_loop_of_its_own() -> None:
    assert sorted(program(FORKING).split("\n")) == sorted(["no", "child no", "parent no", "no", ""])


@pytest.mark.slow
def test_events_that_nobody_waits_for_are_finished_at_exit(project: EngineProject) -> None:
    ended = project.root / "ended"
    output = program(f"""
        import asyncio
        from llxprt_hooks import Config, Hooks

        hook = {{"type": "command", "command": "sleep 0.3; touch {ended}"}}
        hooks = Hooks(Config(enable_hooks=True, hooks={{"SessionEnd": [{{"hooks": [hook]}}]}}))

        async def main():
            async with hooks.session("s1"):
                pass

        asyncio.run(main())
        print("over")
    """)
    assert output == "over\n"
    assert ended.exists()


@pytest.mark.slow
def test_a_program_that_uses_no_hooks_starts_no_thread() -> None:
    assert (
        program("""
        import threading
        from llxprt_hooks import Hooks

        hooks = Hooks()
        assert hooks.sync.run_tool("t", {}, lambda args: "ran").llm_content == "ran"
        hooks.on("BeforeTool", lambda payload: None, matcher="other")
        assert hooks.sync.run_tool("t", {}, lambda args: "ran").llm_content == "ran"
        with hooks.session("s1"):
            pass
        print(threading.active_count())
    """)
        == "1\n"
    )


# Another async library.


def test_a_guard_holds_under_trio(project: EngineProject) -> None:
    hooks = Hooks(
        project.config(
            {"BeforeTool": project.hook(says=DENY), "AfterTool": project.hook("after", {"systemMessage": "m"})}
        )
    )

    async def main() -> tuple[ToolResult, ToolResult]:
        first = await execute_tool_with_hooks(hooks.config, "any", {}, done)
        hooks.config.get_hook_system().set_hook_enabled(project.hook(says=DENY), False)  # type: ignore[union-attr]

        async def tool(args: dict[str, Any]) -> str:
            await trio.lowlevel.checkpoint()
            return "done"

        return first, await hooks.run_tool("any", {}, tool)

    blocked, allowed = trio.run(main)
    assert blocked.llm_content == "not today"
    assert allowed.llm_content == "done\n\n[System] m"


def test_other_trio_tasks_run_while_a_hook_does() -> None:
    ticked = threading.Event()
    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: deny(str(ticked.wait(60))), threaded=True)

    async def tick() -> None:
        await trio.sleep(0.05)
        ticked.set()

    async def main() -> str:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tick)
            result = await hooks.run_tool("any", {}, done)
        return str(result.llm_content)

    assert trio.run(main) == "True"


def test_cancelling_a_trio_task_ends_its_hook(project: EngineProject) -> None:
    hooks = Hooks(project.config({"BeforeTool": project.endless_hook("endless")}))
    pids: list[int] = []

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(hooks.run_tool, "any", {}, done)
            pids.extend(await trio.to_thread.run_sync(project.pids, "endless"))
            nursery.cancel_scope.cancel()

    trio.run(main)
    assert pids
    assert not any(map(lives, pids))


def test_sync_calls_sessions_and_watching_events_under_trio(project: EngineProject) -> None:
    hooks = Hooks(project.config({"SessionStart": project.hook("start"), "BeforeTool": project.hook("tool", DENY)}))

    async def main() -> int:
        async with hooks.session("trio"):
            assert hooks.sync.run_tool("any", {}, done).llm_content == "not today"
            return await hooks.settle()

    assert trio.run(main) == 0
    assert project.payload("start")["session_id"] == project.payload("tool")["session_id"] == "trio"


def test_trio_inside_of_a_hook_on_the_background_loop(project: EngineProject) -> None:
    hooks = Hooks(project.config({"BeforeTool": [{"matcher": "inner", "hooks": [command(project, says=DENY)]}]}))

    @hooks.on("BeforeTool", matcher="outer")
    def nested(payload: dict[str, Any]) -> Any:
        async def main() -> Any:
            return (await hooks.run_tool("inner", {}, done)).llm_content

        return deny(trio.run(main))

    assert hooks.sync.run_tool("outer", {}, done).llm_content == "not today"


def test_trio_as_a_guest_of_asyncio(project: EngineProject) -> None:
    hooks = Hooks(project.config({"BeforeTool": project.hook(says=DENY)}))
    ended: list[Any] = []

    async def in_trio() -> str:
        return str((await hooks.run_tool("any", {}, done)).llm_content)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        over = asyncio.Event()

        def end(outcome: Any) -> None:
            ended.append(outcome.unwrap())
            over.set()

        trio.lowlevel.start_guest_run(
            in_trio,
            run_sync_soon_threadsafe=loop.call_soon_threadsafe,
            done_callback=end,
        )
        await over.wait()

    asyncio.run(main())
    assert ended == ["not today"]


def test_a_coroutine_that_no_loop_runs_is_guarded_too(project: EngineProject) -> None:
    hooks = Hooks(project.config({"BeforeTool": project.hook(says=DENY)}))
    with pytest.raises(StopIteration) as end:
        hooks.run_tool("any", {}, done).send(None)
    assert end.value.value.llm_content == "not today"


def test_the_two_halves_for_synchronous_callers() -> None:
    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: rewrite(b=2), matcher="^write")
    hooks.on("BeforeTool", lambda payload: deny("no"), matcher="^delete")
    hooks.on("AfterTool", lambda payload: context("more"))
    call = hooks.sync.tool_call("write", {"a": 1})
    assert call.before() is None
    assert call.input == {"a": 1, "b": 2}
    assert call.after({"kept": True}).additions == ["more"]
    refused = hooks.sync.tool_call("delete", {}).before()
    assert refused is not None
    assert refused.error == {"message": "no", "type": "hook_blocked"}


def test_sync_offers_the_other_methods_of_hooks(project: EngineProject) -> None:
    hooks = Hooks(project.config({"Notification": project.hook()}))
    assert hooks.sync.config is hooks.config
    hooks.sync.observe("Notification", notification_type="ToolPermission", message="m")
    assert hooks.sync.settle() == 0
    assert project.payload()["message"] == "m"
    assert hooks.sync.has_hooks_for("Notification")
    hooks.sync.on("BeforeTool", lambda payload: {"continue": False, "stopReason": "enough"})
    with pytest.raises(StopRequested, match="enough"):
        hooks.sync.run_tool("any", {}, done)
    with hooks.sync.session("s1") as session:
        hooks.sync.run_tool("any", {}, done)
    assert session.stop_reason == "enough"
    hooks.sync.reload()
    until(lambda: hooks.sync.settle() == 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "ending",
    [
        "raise SystemExit(1)",
        "raise KeyboardInterrupt",
        "asyncio.get_running_loop().stop()",
        "[task.cancel() for task in asyncio.all_tasks()]",
    ],
)
def test_no_tool_and_no_hook_ends_the_loop_that_guards_the_next_calls(ending: str) -> None:
    printed = program(
        f"""
        import asyncio
        from llxprt_hooks import Hooks, deny

        async def end(_):
            {ending}

        hooks = Hooks()
        hooks.on("BeforeTool", lambda payload: deny("not today"), matcher="^guarded")
        hooks.on("BeforeTool", end, matcher="^hook")
        hooks.on("BeforeTool", lambda payload: None, matcher="^hook")
        hooks.on("AfterTool", lambda payload: None)
        for name in ("tool", "hook"):
            try:
                hooks.sync.run_tool(name, {{}}, end if name == "tool" else lambda _: "done")
            except BaseException:
                pass
            print(hooks.sync.run_tool("guarded", {{}}, lambda _: "RAN").llm_content)
        """
    )
    assert printed == "not today\nnot today\n"


def test_hooks_that_call_each_other_too_deeply_block() -> None:
    hooks = Hooks()
    answers: list[Any] = []

    def nested(payload: dict[str, Any]) -> Any:
        level = payload["tool_input"]["level"]
        if level == 0:
            return deny("not today")
        answers.append(hooks.sync.run_tool("any", {"level": level - 1}, lambda _: "RAN").llm_content)
        return None

    hooks.on("BeforeTool", nested)
    hooks.sync.run_tool("any", {"level": 20}, done)
    assert "levels deep" in answers[0]
    assert answers[1:] == ["RAN"] * (len(answers) - 1)
