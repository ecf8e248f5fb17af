"""Python functions as hooks: they merge, chain, log, observe, fail and time out like any other hook."""

from __future__ import annotations

import asyncio
import contextvars
import json
import re
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import (
    Config,
    HookExecutionResult,
    HookObserver,
    Hooks,
    ToolResult,
    UnknownEventError,
    allow,
    ask,
    context,
    deny,
    execute_tool_with_hooks,
    rewrite,
    stop,
)
from llxprt_hooks.core.executors import EXECUTORS
from llxprt_hooks.settings.schema import settings_executors
from tests.support.processes import until

if TYPE_CHECKING:
    from tests.support.engine_project import EngineProject, Texts


async def ran(hooks: Hooks, name: str = "write_file", **args: Any) -> tuple[ToolResult, dict[str, Any] | None]:
    """The result of a tool call, and the arguments that the tool got; None if it did not run."""
    given: list[dict[str, Any]] = []

    def tool(final: dict[str, Any]) -> str:
        given.append(final)
        return "done"

    result = await execute_tool_with_hooks(hooks.config, name, args, tool)
    return result, given[0] if given else None


@pytest.mark.parametrize(
    ("reply", "fields"),
    [
        (allow(), {"decision": "allow"}),
        (deny("no"), {"decision": "deny", "reason": "no"}),
        (ask("sure?"), {"decision": "ask", "reason": "sure?"}),
        (stop("enough"), {"continue": False, "stopReason": "enough"}),
        (rewrite(path="b", mode=1), {"hookSpecificOutput": {"tool_input": {"path": "b", "mode": 1}}}),
        (context("more"), {"hookSpecificOutput": {"additionalContext": "more"}}),
    ],
)
def test_the_answers_are_in_the_format_that_scripts_print(reply: Any, fields: dict[str, Any]) -> None:
    assert reply == fields


async def test_a_function_blocks_rewrites_and_adds_context() -> None:
    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: deny("never"), matcher="^delete_")
    hooks.on("BeforeTool", lambda payload: rewrite(path=payload["tool_input"]["path"] + ".bak"), matcher="^write_")
    hooks.on("AfterTool", lambda payload: context(f"{payload['tool_response']['llmContent']}, really"))

    assert (await ran(hooks, "delete_file", path="a"))[0].llm_content == "never"
    result, given = await ran(hooks, "write_file", path="a", text="t")
    assert given == {"path": "a.bak", "text": "t"}
    assert result.llm_content == "done\n\ndone, really"


async def test_it_is_a_decorator_that_leaves_the_function_alone() -> None:
    hooks = Hooks()

    @hooks.on("BeforeTool", matcher="write_file", name="guard")
    async def guard(payload: dict[str, Any]) -> Any:
        await asyncio.sleep(0)
        return deny("asynchronous")

    assert (await guard({}))["reason"] == "asynchronous"
    assert (await ran(hooks))[0].llm_content == "asynchronous"
    system = hooks.config.get_hook_system()
    assert system is not None
    [entry] = system.get_all_hooks()
    assert (entry.name, entry.matcher, entry.config.type) == ("guard", "write_file", "function")
    assert entry.config.command.endswith("guard")


async def test_functions_run_after_the_hooks_of_settings_and_extensions_and_merge_with_them(
    project: EngineProject,
) -> None:
    first = project.hook("first", {"hookSpecificOutput": {"tool_input": {"a": "script", "b": "script"}}})
    hooks = Hooks(project.config({"BeforeTool": first}))
    hooks.on("BeforeTool", lambda payload: rewrite(b="function"))

    assert (await ran(hooks, a="", b=""))[1] == {"a": "script", "b": "function"}
    hooks.on("BeforeTool", lambda payload: deny("no"))  # while the engine is in use
    assert (await ran(hooks))[0].llm_content == "no"


async def test_the_payload_is_what_scripts_get_and_each_function_has_its_own() -> None:
    hooks = Hooks(Config(session_id="s1", working_dir="/"))
    seen: list[dict[str, Any]] = []

    def spoil(payload: dict[str, Any]) -> None:
        seen.append({**payload, "tool_input": {**payload["tool_input"]}})
        payload["tool_input"]["path"] = "spoiled"
        payload["tool_input"]["list"].append("spoiled")

    hooks.on("BeforeTool", spoil)
    hooks.on("BeforeTool", lambda payload: spoil(payload))
    _, given = await ran(hooks, path="a", list=["x"], bytes=b"\x00")

    assert given == {"path": "a", "list": ["x"], "bytes": b"\x00"}
    assert [payload["tool_input"]["path"] for payload in seen] == ["a", "a"]
    assert seen[0]["tool_input"]["bytes"] == "AA=="
    assert (seen[0]["session_id"], seen[0]["cwd"], seen[0]["hook_event_name"]) == ("s1", "/", "BeforeTool")


def raising(payload: dict[str, Any]) -> None:
    raise LookupError("lost")


async def own_timeout(payload: dict[str, Any]) -> None:
    raise TimeoutError("its own")


class Broken:
    def __call__(self, payload: dict[str, Any]) -> None:
        raise LookupError("lost")


def silent(payload: dict[str, Any]) -> None:
    raise ValueError


def deep(payload: dict[str, Any]) -> None:
    json.loads("no")


def endless(payload: dict[str, Any]) -> None:
    endless(payload)


def stopping(payload: dict[str, Any]) -> None:
    raise StopIteration


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize(
    ("function", "why"),
    [
        (raising, "raised LookupError: lost (test_function.py:"),
        (own_timeout, "raised TimeoutError: its own (test_function.py:"),
        (silent, "raised ValueError (test_function.py:"),
        (deep, "raised JSONDecodeError: Expecting value: line 1 column 1 (char 0) (test_function.py:"),
        (Broken(), "raised LookupError: lost (test_function.py:"),
        (endless, "raised RecursionError: maximum recursion depth exceeded"),
        ({}.__getitem__, "could not be run: "),
        (lambda payload: False, "returned bool; expected a mapping or None"),
        (stopping, "could not be run: "),
    ],
)
async def test_a_function_that_fails_is_a_failed_hook(
    function: Any, why: str, threaded: bool, warnings_of_engine: Texts
) -> None:
    hooks = Hooks()
    if function is stopping and not threaded:
        pytest.skip("Python itself turns it into a RuntimeError")
    hooks.on("BeforeTool", function, name="it", threaded=threaded)
    assert (await ran(hooks))[1] == {}
    assert [text for text in warnings_of_engine() if f"hook `it` {why}" in text and "exit code" not in text]

    closed = Hooks()
    closed.on("BeforeTool", function, fail_closed=True, threaded=threaded)
    result, given = await ran(closed)
    assert given is None
    assert "fail_closed" in result.llm_content


@pytest.mark.parametrize("ending", [SystemExit(2), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError()])
async def test_a_function_that_ends_its_thread_is_a_failed_hook_at_once(
    ending: BaseException, warnings_of_engine: Texts
) -> None:
    def end(payload: dict[str, Any]) -> None:
        raise ending

    hooks = Hooks()
    hooks.on("BeforeTool", end, name="it", threaded=True, fail_closed=True)
    assert (await ran(hooks))[1] is None
    assert [text for text in warnings_of_engine() if f"the function raised {ending!r}" in text]


def yielding(payload: dict[str, Any]) -> Any:
    yield deny("no")


async def yielding_later(payload: dict[str, Any]) -> Any:
    yield deny("no")


@pytest.mark.parametrize("function", [yielding, yielding_later])
def test_a_function_that_yields_its_answer_is_refused(function: Any) -> None:
    with pytest.raises(TypeError, match=r"yielding.*: a hook must return its answer"):
        Hooks().on("BeforeTool", function)


@pytest.mark.parametrize(
    ("matcher", "error"),
    [
        (re.compile("write"), "matcher must be a string, found Pattern"),
        (["write_file"], "matcher must be a string, found list"),
        ("(write", r"matcher is not a valid ECMAScript regular expression: '\(write'"),
        ("(?i)WRITE", "matcher is not a valid ECMAScript regular expression"),
    ],
)
async def test_a_matcher_that_could_not_match_is_refused(matcher: Any, error: str) -> None:
    """It would fail when an event is planned, and take the other guards with it, or never match."""
    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: deny("guarded"))
    with pytest.raises((TypeError, ValueError), match=error):
        hooks.on("BeforeTool", lambda payload: deny("no"), matcher=matcher)
    assert (await ran(hooks))[0].llm_content == "guarded"


class NoSystem(Config):
    def get_hook_system(self) -> Any:
        raise ImportError("there is no hook system")


@pytest.mark.parametrize("fail_closed", [False, True])
async def test_where_the_engine_itself_fails_a_function_that_must_not_fail_blocks(fail_closed: bool) -> None:
    config = NoSystem(enable_hooks=True)
    hooks = Hooks(config)
    hooks.on("BeforeTool", lambda payload: None, fail_closed=fail_closed)
    assert ((await ran(hooks))[1] is None) is fail_closed


async def never(payload: dict[str, Any]) -> None:
    await asyncio.Event().wait()


def test_a_hung_thread_neither_holds_the_event_nor_the_exit() -> None:
    """A pool would join it."""
    released = threading.Event()

    def hang(payload: dict[str, Any]) -> None:
        released.wait()

    async def main() -> ToolResult:
        hooks = Hooks()
        hooks.on("BeforeTool", hang, timeout_ms=20, fail_closed=True, threaded=True)
        return (await ran(hooks))[0]

    assert "timed out after 20 ms" in asyncio.run(main()).llm_content
    released.set()


async def test_a_function_that_takes_too_long_is_cancelled() -> None:
    hooks = Hooks()
    hooks.on("BeforeTool", never, timeout_ms=20, fail_closed=True)
    assert "timed out after 20 ms" in (await ran(hooks))[0].llm_content


async def test_a_function_in_a_thread_does_not_block_the_loop_and_sees_context_variables() -> None:
    variable = contextvars.ContextVar("variable", default="")
    variable.set("caller's")
    seen: list[Any] = []
    ticked = threading.Event()

    def slow(payload: dict[str, Any]) -> Any:
        seen.append((threading.current_thread() is threading.main_thread(), variable.get()))
        assert ticked.wait(60)
        return deny("thread")

    hooks = Hooks()
    hooks.on("BeforeTool", slow, threaded=True)
    task = asyncio.ensure_future(ran(hooks))
    await asyncio.sleep(0.01)
    ticked.set()
    assert (await task)[0].llm_content == "thread"
    assert seen == [(False, "caller's")]


async def test_a_coroutine_function_in_a_thread_is_awaited_on_the_loop() -> None:
    async def guard(payload: dict[str, Any]) -> Any:
        return deny("awaited")

    hooks = Hooks()
    hooks.on("BeforeTool", guard, threaded=True)
    assert (await ran(hooks))[0].llm_content == "awaited"


def test_a_thread_that_ends_after_its_loop_is_not_an_error() -> None:
    released = threading.Event()
    threads: list[threading.Thread] = []

    def late(payload: dict[str, Any]) -> None:
        threads.append(threading.current_thread())
        assert released.wait(60)

    async def main() -> None:
        hooks = Hooks()
        hooks.on("BeforeTool", late, timeout_ms=10, threaded=True)
        await ran(hooks)

    asyncio.run(main())
    until(lambda: bool(threads))
    released.set()
    threads[0].join(60)
    assert not threads[0].is_alive()


async def test_functions_are_observed_and_can_be_switched_off_by_name() -> None:
    ended: list[HookExecutionResult] = []

    class Watch(HookObserver):
        def hook_ended(self, result: HookExecutionResult) -> None:
            ended.append(result)

    hooks = Hooks(Config(observer=Watch(), disabled_hooks=["off"]))
    hooks.on("BeforeTool", lambda payload: deny("never"), name="off")
    hooks.on("BeforeTool", lambda payload: deny("on"), name="on")
    assert (await ran(hooks))[0].llm_content == "on"
    [result] = ended
    assert (result.hook_config.identity, result.to_dict()["type"], result.exit_code) == ("on", "function", None)

    system = hooks.config.get_hook_system()
    assert system is not None
    system.set_hook_enabled("on", False)
    assert (await ran(hooks))[1] == {}


async def test_registering_a_function_does_not_switch_on_hooks_that_are_off(project: EngineProject) -> None:
    hooks = Hooks(project.config({"BeforeTool": project.hook("script")}, enable_hooks=False))
    hooks.on("BeforeTool", lambda payload: rewrite(seen=True))
    hooks.on("BeforeTool", lambda payload: None)
    assert (await ran(hooks))[1] == {"seen": True}
    assert project.runs("script") == 0


async def test_the_same_function_registered_twice_runs_once_and_two_that_look_alike_both_run() -> None:
    calls: list[str] = []

    def make(name: str) -> Callable[[dict[str, Any]], None]:
        return lambda payload: calls.append(name)

    one, two = make("one"), make("two")
    hooks = Hooks()
    for function in (one, one, two):
        hooks.on("BeforeTool", function)
    await ran(hooks)
    assert calls == ["one", "two"]


async def test_a_function_is_listed_once_however_often_it_is_registered() -> None:
    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: None)
    system = hooks.config.get_hook_system()
    assert system is not None
    system.ready_event_handler()
    [definition] = hooks.config.function_hooks
    system.add(definition)
    assert len(system.get_all_hooks()) == 1


async def test_many_functions_may_be_registered_while_events_run() -> None:
    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: None)
    await ran(hooks)

    def register() -> None:
        for _ in range(50):
            hooks.on("AfterTool", lambda payload: None)

    threads = [threading.Thread(target=register) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        await ran(hooks)
    system = hooks.config.get_hook_system()
    assert system is not None
    assert len(system.get_all_hooks()) == 201


def test_settings_cannot_contain_a_function(project: EngineProject) -> None:
    assert "function" in EXECUTORS
    assert "function" not in settings_executors()
    registry = project.system({"BeforeTool": {"type": "function", "function": "os.system"}})
    registry.ready_event_handler()
    assert registry.get_all_hooks() == []
    with pytest.raises(TypeError, match=r"hooks\.on"):
        EXECUTORS["function"].read({})


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("BeforeTools",), r"unknown hook event 'BeforeTools'\. Did you mean `BeforeTool`\?"),
        (("PreToolUse",), "Did you mean `BeforeTool`"),
        (("Nothing",), "The events are `BeforeTool`, "),
        ((print,), r'`@hooks\.on` needs an event: `@hooks\.on\("BeforeTool"\)`'),
        (("BeforeTool", "text"), "must be a function, found str"),
    ],
)
def test_mistakes_in_the_program_raise(arguments: Any, error: str) -> None:
    with pytest.raises(TypeError, match=error):
        Hooks().on(*arguments)


def test_an_unknown_event_is_a_wrong_value_too() -> None:
    with pytest.raises(ValueError, match="unknown hook event"):
        Hooks().has_hooks_for("Nothing")
    assert issubclass(UnknownEventError, TypeError)


def test_a_timeout_must_be_positive() -> None:
    with pytest.raises(ValueError, match="positive"):
        Hooks().on("BeforeTool", never, timeout_ms=0)


async def test_cancelling_the_call_cancels_the_function() -> None:
    cancelled: list[bool] = []
    begun = asyncio.Event()

    async def waits(payload: dict[str, Any]) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    hooks = Hooks()
    hooks.on("BeforeTool", waits)
    task = asyncio.ensure_future(ran(hooks))
    deadline = time.monotonic() + 60
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cancelled == [True]
    assert time.monotonic() < deadline


def test_its_place_is_the_call_that_registered_it() -> None:
    hooks = Hooks(Config())
    hooks.on("BeforeTool", lambda payload: None)

    assert [definition.where for definition in hooks.config.function_hooks] == ["hooks.on('BeforeTool')"]


async def test_a_function_that_fails_closed_and_gets_no_thread_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: None, name="it", threaded=True, fail_closed=True)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", failing)
        result, given = await ran(hooks)
    assert given is None
    assert "hook `it` could not be run" in result.llm_content
    assert "can't start new thread" in result.llm_content
