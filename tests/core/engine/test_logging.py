"""What is logged, where it goes, and how ``DEBUG`` switches it on."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from llxprt_hooks import (
    AfterModelHookResult,
    AggregatedHookResult,
    BeforeModelHookResult,
    BeforeToolSelectionHookResult,
    Config,
    GenerateContentParameters,
    HookEventName,
    HookExecutionResult,
    Hooks,
    HookSystem,
    ToolResult,
    execute_tool_with_hooks,
    fire_after_model_hook,
    fire_after_tool_hook,
    fire_before_model_hook,
    fire_before_tool_hook,
    fire_before_tool_selection_hook,
)
from llxprt_hooks._support.logger import debug_logger, selects, without_warnings
from llxprt_hooks.commands.fire import LoadedHooks
from llxprt_hooks.core.engine.aggregator import HookAggregator
from tests.support.processes import DEADLINE
from tests.support.project import hooks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from google.genai.types import GenerateContentResponse

    from llxprt_hooks.commands.fire import Trial
    from tests.support.engine_project import EngineProject, Ready, Texts
    from tests.support.project import Project

HANDLER = "llxprt:core:hooks:handler"


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Any:
    """The data of all records of a kind: ``hook_execution``, ``hook_batch`` or ``hook_failure``."""
    caplog.set_level(logging.DEBUG, HANDLER)
    return lambda kind: [getattr(record, kind) for record in caplog.records if hasattr(record, kind)]


# Records.


@pytest.mark.requirement("DELTA-HTEL-001")
async def test_each_hook_is_logged_with_its_identity_outcome_and_artifacts(
    project: EngineProject, ready: Ready, logged: Callable[..., Any]
) -> None:
    quiet, named = project.hook("quiet", {"decision": "allow"}, stderr="a remark"), project.hook("named", "text")
    group = {"hooks": [{"type": "command", "command": named, "name": "guard"}]}
    handler = await ready(project.config({"BeforeTool": [quiet, group]}))
    await handler.fire_before_tool_event("glob", {})
    first, second = logged("hook_execution")
    assert (first["event_name"], first["hook"], first["type"]) == ("BeforeTool", quiet, "command")
    assert (first["success"], first["exit_code"], first["error"]) == (True, 0, None)
    assert (first["stdout"], first["stderr"]) == ('{"decision": "allow"}', "a remark")
    assert first["duration_ms"] > 0
    assert (second["hook"], second["stdout"]) == ("guard", "text")


@pytest.mark.requirement("HOOK-146", "DELTA-HTEL-002")
async def test_the_batch_is_logged_with_counts_durations_and_success(
    project: EngineProject, ready: Ready, logged: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    handler = await ready(
        project.config({"BeforeTool": [project.hook("a"), project.hook("b"), project.hook("c", exit_code=1)]})
    )
    result = await handler.fire_before_tool_event("glob", {})
    (batch,) = logged("hook_batch")
    assert (batch["event_name"], batch["hook_count"]) == ("BeforeTool", 3)
    assert (batch["success_count"], batch["failure_count"], batch["success"]) == (2, 1, False)
    assert batch["total_duration"] == result.total_duration > 0
    assert batch["wall_time"] > 0
    (record,) = [record for record in caplog.records if hasattr(record, "hook_batch")]
    assert record.levelno == logging.DEBUG
    assert record.name == HANDLER


@pytest.mark.requirement("HOOK-146", "DELTA-HTEL-002")
async def test_an_event_that_is_fired_without_hooks_is_logged_as_an_empty_batch(
    project: EngineProject, ready: Ready, logged: Callable[..., Any]
) -> None:
    handler = await ready(project.config({}))
    await handler.fire_before_tool_event("glob", {})
    (batch,) = logged("hook_batch")
    assert (batch["event_name"], batch["hook_count"], batch["total_duration"]) == ("BeforeTool", 0, 0)
    assert (batch["success_count"], batch["failure_count"], batch["success"]) == (0, 0, True)


@pytest.mark.requirement("HOOK-146")
async def test_an_event_in_which_the_engine_failed_is_logged_as_no_success(
    project: EngineProject, logged: Callable[..., Any]
) -> None:
    class Broken(HookAggregator):
        def aggregate_results(
            self, results: Sequence[HookExecutionResult], event_name: HookEventName
        ) -> AggregatedHookResult:
            raise ValueError("broken")

    handler = project.handler(project.config({"BeforeTool": project.hook()}), aggregator=Broken)
    await handler.fire_before_tool_event("glob", {})
    (batch,) = logged("hook_batch")
    assert (batch["event_name"], batch["success"]) == ("BeforeTool", False)


@pytest.mark.requirement("HOOK-146", "DELTA-HTEL-002")
@pytest.mark.parametrize("exit_code", [0, 2])
async def test_a_block_is_logged_as_one_and_exit_code_2_as_no_success(
    project: EngineProject, ready: Ready, logged: Callable[..., Any], exit_code: int
) -> None:
    says = {"decision": "deny"} if exit_code == 0 else None
    handler = await ready(project.config({"BeforeTool": project.hook(says=says, exit_code=exit_code)}))
    await handler.fire_before_tool_event("glob", {})
    (batch,) = logged("hook_batch")
    assert (batch["blocked"], batch["success_count"]) == (True, 1 if exit_code == 0 else 0)
    assert batch["success_count"] + batch["failure_count"] == batch["hook_count"]
    assert [record["exit_code"] for record in logged("hook_failure")] == ([] if exit_code == 0 else [2])


@pytest.mark.requirement("DELTA-HTEL-003")
async def test_each_failure_is_logged_separately_and_the_result_is_still_returned(
    project: EngineProject, ready: Ready, logged: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    hooks = [
        project.hook("a", exit_code=3, stderr="first"),
        project.hook("b", {"reason": "fine"}),
        project.hook("c", exit_code=4),
    ]
    handler = await ready(project.config({"BeforeTool": hooks}))
    result = await handler.fire_before_tool_event("glob", {})
    failures = logged("hook_failure")
    assert [(failure["hook"], failure["exit_code"]) for failure in failures] == [(hooks[0], 3), (hooks[2], 4)]
    assert failures[0]["stderr"] == "first"
    assert {record.levelno for record in caplog.records if hasattr(record, "hook_failure")} == {logging.WARNING}
    assert result.final_output is not None
    assert (result.success, len(result.errors), result.final_output.reason) == (False, 2, "fine")


WARNED: dict[str, tuple[str, dict[str, Any], str]] = {
    "a guard": ("exit 3", {}, 'code 3. The call goes ahead; to block it instead, set "failClosed": true'),
    "with stderr": ("echo oh no >&2; exit 3", {}, 'set "failClosed": true. Its stderr: oh no'),
    "that blocks then": ("exit 3", {"failClosed": True}, "code 3. The call is blocked, because failClosed is set"),
    "that is not executable": ("exit 126", {}, "Hint: 126 means that a file cannot be executed: try `chmod +x`, and"),
    "that is not found": ("no-such-program-anywhere", {}, "127 means that a program was not found: check its path, as"),
    "that observes": ("exit 3", {"mode": "observe"}, "Ignored: the hook is in observe mode"),
}


@pytest.mark.parametrize(("command", "fields", "words"), WARNED.values(), ids=WARNED)
async def test_the_warning_says_what_a_failure_means_for_the_call(
    project: EngineProject,
    ready: Ready,
    warnings_of_engine: Texts,
    command: str,
    fields: dict[str, Any],
    words: str,
) -> None:
    hook = {"type": "command", "command": command, "name": "guard", **fields}
    handler = await ready(project.config({"BeforeTool": {"hooks": [hook]}}))

    await handler.fire_before_tool_event("glob", {})

    [warning] = warnings_of_engine()
    assert warning.startswith("BeforeTool: hook `guard` exited with code ")
    assert words in warning


@pytest.mark.parametrize("says", [{"decision": "deny"}, {"continue": False}])
async def test_a_failure_next_to_a_block_lets_nothing_go_ahead(
    project: EngineProject, ready: Ready, warnings_of_engine: Texts, says: dict[str, Any]
) -> None:
    handler = await ready(project.config({"BeforeTool": [project.hook("a", exit_code=3), project.hook("b", says)]}))

    await handler.fire_before_tool_event("glob", {})

    [warning] = warnings_of_engine()
    assert warning.endswith("exited with code 3. It counts as not run")


async def test_the_warning_about_a_function_names_fail_closed(
    project: EngineProject, warnings_of_engine: Texts
) -> None:
    hooks = Hooks(project.config({}))

    @hooks.on("BeforeTool")
    def guard(payload: dict[str, Any]) -> None:
        raise ValueError("broken")

    await hooks.run_tool("glob", {}, lambda arguments: "done")

    [warning] = warnings_of_engine()
    assert warning.endswith("The call goes ahead; to block it instead, set fail_closed=True")


async def test_the_block_of_a_function_names_the_argument_of_python_in_one_line(
    project: EngineProject, warnings_of_engine: Texts
) -> None:
    hooks = Hooks(project.config({}))

    @hooks.on("BeforeTool", name="guard", fail_closed=True)
    def guard(payload: dict[str, Any]) -> None:
        raise ValueError("broken\nin two")

    result = await hooks.run_tool("glob", {}, lambda arguments: "done")

    raised = "hook `guard` raised ValueError: broken in two (test_logging.py:"
    assert result.llm_content.startswith(f"blocked because fail_closed is set: {raised}")
    [warning] = warnings_of_engine()
    assert warning.startswith(f"BeforeTool: {raised}")
    assert warning.endswith("The call is blocked, because fail_closed is set")


@pytest.mark.requirement("DELTA-HSYS-001")
async def test_an_event_handler_logs_through_the_logger_that_it_was_given(
    project: EngineProject, caplog: pytest.LogCaptureFixture
) -> None:
    mine = logging.getLogger("mine")
    caplog.set_level(logging.DEBUG, "mine")
    handler = project.handler(project.config({"BeforeTool": project.hook()}), logger=mine)
    await handler.fire_before_tool_event("glob", {})
    assert {record.name for record in caplog.records if hasattr(record, "hook_batch")} == {"mine"}


async def test_endless_output_of_a_hook_is_logged_in_part(
    project: EngineProject, ready: Ready, logged: Callable[..., Any]
) -> None:
    handler = await ready(project.config({"BeforeTool": project.hook(first="head -c 100000 /dev/zero | tr '\\0' x")}))
    await handler.fire_before_tool_event("glob", {})
    (record,) = logged("hook_execution")
    assert len(record["stdout"]) < 10_000


@pytest.mark.requirement("DELTA-HTEL-001", "DELTA-HTEL-002")
async def test_event_ids_distinguish_records_of_concurrent_events(
    project: EngineProject, ready: Ready, logged: Callable[..., Any]
) -> None:
    handler = await ready(project.config({"BeforeTool": [project.hook("a"), project.hook("b")]}))
    await asyncio.gather(*(handler.fire_before_tool_event(name, {}) for name in ("glob", "read_file")))
    for batch in logged("hook_batch"):
        executions = [each for each in logged("hook_execution") if each["event_id"] == batch["event_id"]]
        assert len({each["execution_id"] for each in executions}) == 2
        assert len({json.loads(each["input"])["tool_name"] for each in executions}) == 1
        [plan] = [each for each in logged("hook_plan") if each["event_id"] == batch["event_id"]]
        assert plan["hooks"] == [each["hook"] for each in executions]
    assert len(logged("hook_batch")) == 2


# Failures of each event, at warn level, and fail-open.


FAILURES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "exit 1": ({"exit_code": 1, "stderr": "out of cheese"}, ["1", "out of cheese"]),
    "exit 127": ({"exit_code": 127, "stderr": "no such thing"}, ["127", "no such thing"]),
    "block JSON, exit 1": ({"says": {"decision": "block"}, "exit_code": 1, "stderr": "late"}, ["1", "late"]),
    "crash": ({"first": "printf dying >&2; kill -9 $$"}, ["SIGKILL", "dying"]),
    "timeout": ({"first": "sleep 60"}, ["100 ms"]),
}


class Failing(NamedTuple):
    config: Callable[[str], Config]
    words: list[str]


@pytest.fixture(params=FAILURES)
def failing(request: pytest.FixtureRequest, project: EngineProject) -> Failing:
    """A configuration in which the one hook of an event fails, and the words its warning has to have."""
    options, words = FAILURES[request.param]

    def config(event: str) -> Config:
        return project.config(
            {event: {"command": project.hook(**options), "timeout": 100 if "sleep" in str(options) else 60000}}
        )

    return Failing(config, words)


def names(warnings: list[str], words: list[str]) -> bool:
    return any(all(word in warning for word in words) for warning in warnings)


@pytest.mark.parametrize(
    "event",
    [
        pytest.param("BeforeTool", marks=pytest.mark.requirement("HOOK-023")),
        pytest.param("AfterTool", marks=pytest.mark.requirement("HOOK-031")),
        pytest.param("BeforeModel", marks=pytest.mark.requirement("HOOK-042")),
        pytest.param("AfterModel", marks=pytest.mark.requirement("HOOK-052")),
        pytest.param("BeforeToolSelection", marks=pytest.mark.requirement("HOOK-060")),
    ],
)
async def test_a_hook_that_fails_changes_nothing_and_is_warned_of(
    failing: Failing,
    event: str,
    warnings_of_engine: Texts,
    llm_request: GenerateContentParameters,
    llm_response: GenerateContentResponse,
) -> None:
    config = failing.config(event)
    tool = await execute_tool_with_hooks(config, "glob", {"a": 1}, lambda given: f"ran with {given}")
    assert tool == ToolResult("ran with {'a': 1}", "ran with {'a': 1}")
    assert await fire_before_model_hook(config, llm_request) == BeforeModelHookResult()
    assert await fire_after_model_hook(config, llm_request, llm_response) == AfterModelHookResult(response=llm_response)
    assert await fire_before_tool_selection_hook(config, llm_request) == BeforeToolSelectionHookResult()
    assert names(warnings_of_engine(), failing.words)


@pytest.mark.requirement("HOOK-178", "HOOK-180", "HOOK-181")
@pytest.mark.parametrize("event", ["AfterTool", "AfterModel", "BeforeToolSelection"])
async def test_a_block_where_nothing_can_be_blocked_is_logged(
    project: EngineProject,
    event: str,
    warnings_of_engine: Texts,
    llm_request: GenerateContentParameters,
    llm_response: GenerateContentResponse,
) -> None:
    config = project.config({event: project.hook(says={"decision": "block", "reason": "too late"})})
    await fire_after_tool_hook(config, "glob", {}, {"llmContent": "x"})
    await fire_after_model_hook(config, llm_request, llm_response)
    await fire_before_tool_selection_hook(config, llm_request)
    (warning,) = warnings_of_engine()
    assert event in warning
    assert "too late" in warning


# DEBUG.


@pytest.mark.parametrize(
    ("patterns", "namespace", "selected"),
    [
        ("", HANDLER, False),
        ("*", HANDLER, True),
        ("llxprt:core:hooks:*", HANDLER, True),
        ("llxprt:*", HANDLER, True),
        ("llxprt:core:hooks:handler", HANDLER, True),
        ("llxprt:core:hooks:runner", HANDLER, False),
        ("llxprt:core:hooks", HANDLER, False),
        ("other:*", HANDLER, False),
        ("other:*,llxprt:core:*", HANDLER, True),
        ("other:*  llxprt:core:*", HANDLER, True),
        ("llxprt:core:hooks:*,-llxprt:core:hooks:bus", HANDLER, True),
        ("llxprt:core:hooks:*,-llxprt:core:hooks:bus", "llxprt:core:hooks:bus", False),
        ("-llxprt:core:hooks:bus,llxprt:core:hooks:*", "llxprt:core:hooks:bus", False),
        ("*,-llxprt:*", HANDLER, False),
        ("-llxprt:core:hooks:bus", HANDLER, False),
        ("llxprt:core:hooks:tr*:model", "llxprt:core:hooks:triggers:model", True),
    ],
)
def test_debug_patterns_are_globs_with_exclusions(patterns: str, namespace: str, selected: bool) -> None:
    assert selects(patterns, namespace) is selected


async def test_the_debug_variable_shows_what_hooks_do_on_stderr(
    project: EngineProject, ready: Ready, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DEBUG", "llxprt:core:hooks:*")
    handler = await ready(project.config({"BeforeTool": project.hook(says={"reason": "a remark"})}))
    await handler.fire_before_tool_event("glob", {})
    shown = capsys.readouterr()
    assert HANDLER in shown.err
    assert "a remark" in shown.err
    assert "llxprt:core:hooks:planner" in shown.err
    assert shown.out == ""


async def test_the_debug_variable_logs_plans_and_payloads(
    project: EngineProject, ready: Ready, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DEBUG", "llxprt:core:hooks:*")
    rewrite = project.hook("first", {"hookSpecificOutput": {"tool_input": {"path": "rewritten"}}})
    names = {"one": rewrite, "two": project.hook("second")}
    hooks = [{"type": "command", "name": name, "command": command} for name, command in names.items()]
    handler = await ready(project.config({"BeforeTool": [{"sequential": True, "hooks": hooks}]}))
    for path in ("seen at first", "seen again"):
        await handler.fire_before_tool_event("glob", {"path": path})
        shown = capsys.readouterr().err
        assert "'hooks': ['one', 'two']" in shown
        assert shown.count(path) == 1  # by the first hook of the chain
        assert shown.count('"path":"rewritten"') == 1  # by the second


async def test_what_a_hook_was_sent_is_logged_in_part_if_it_is_long(
    project: EngineProject, ready: Ready, logged: Callable[..., Any]
) -> None:
    handler = await ready(project.config({"BeforeTool": project.hook()}))
    await handler.fire_before_tool_event("glob", {"text": "é" * 100_000})
    (record,) = logged("hook_execution")
    assert 4000 < len(record["input"]) <= 4096
    assert record["input"].endswith("éé")


async def test_what_a_hook_was_sent_is_not_in_the_warning_of_its_failure(
    project: EngineProject, ready: Ready, logged: Callable[..., Any]
) -> None:
    handler = await ready(project.config({"BeforeTool": project.hook(exit_code=1)}))
    await handler.fire_before_tool_event("glob", {"text": "the payload"})
    (failure,) = logged("hook_failure")
    assert "the payload" not in str(failure)


async def test_what_the_debug_variable_leaves_out_is_not_shown(
    project: EngineProject, ready: Ready, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DEBUG", "llxprt:core:hooks:*,-llxprt:core:hooks:planner")
    handler = await ready(project.config({"BeforeTool": project.hook()}))
    await handler.fire_before_tool_event("glob", {})
    shown = capsys.readouterr().err
    assert HANDLER in shown
    assert "llxprt:core:hooks:planner" not in shown


@pytest.mark.parametrize("variables", [{}, {"DEBUG": "llxprt:core:hooks:*"}], ids=["default", "DEBUG"])
def test_the_words_of_a_hook_reach_no_terminal_raw(variables: dict[str, str]) -> None:
    script = """
import asyncio
from llxprt_hooks import Config, fire_before_tool_hook
hook = {"type": "command", "command": r"printf '\\033[31mRED\\033]0;title\\007' >&2; exit 1"}
config = Config(enable_hooks=True, hooks={"BeforeTool": [{"hooks": [hook]}]})
asyncio.run(fire_before_tool_hook(config, "glob", {}))
"""
    environment = {**os.environ, **variables}
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, env=environment, check=True)

    assert rb"\x1b[31mRED" in ended.stderr
    assert b"\x1b" not in ended.stderr
    assert b"\x07" not in ended.stderr


async def test_nothing_is_shown_of_hooks_that_work_without_the_debug_variable(
    project: EngineProject, ready: Ready, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = await ready(project.config({"BeforeTool": project.hook(says={"reason": "a remark"})}))
    await handler.fire_before_tool_event("glob", {})
    assert capsys.readouterr() == ("", "")


def test_switching_debug_on_twice_shows_each_record_once_and_off_again_shows_none(
    project: EngineProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = debug_logger("handler")
    monkeypatch.setenv("DEBUG", "llxprt:*")
    HookSystem(project.config({}))
    HookSystem(project.config({}))
    log.debug("once")
    assert capsys.readouterr().err.count("once") == 1
    monkeypatch.delenv("DEBUG")
    HookSystem(project.config({}))
    log.debug("never")
    assert "never" not in capsys.readouterr().err


@pytest.mark.slow
def test_every_logger_of_the_engine_is_in_the_namespace() -> None:
    code = (
        "import logging, llxprt_hooks\n"
        "for name in llxprt_hooks.__all__: getattr(llxprt_hooks, name)\n"
        "llxprt_hooks.Config(enable_hooks=True).get_hook_system()\n"
        "print(*[name for name in logging.Logger.manager.loggerDict if 'hook' in name or 'llxprt' in name])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=DEADLINE, check=True)
    assert done.stdout.split()
    assert [name for name in done.stdout.split() if not name.startswith("llxprt:core:hooks:")] == ["llxprt_hooks"]


# One parent.


@pytest.fixture
def parent() -> Any:
    """The parent of all loggers of the engine, as a program gets it; afterwards it is as it was."""
    logger = logging.getLogger("llxprt_hooks")
    yield logger
    logger.setLevel(logging.NOTSET)
    logger.propagate, logger.disabled, logger.handlers = True, False, []


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.names.append(record.name)


SILENCED = {
    "level": lambda logger: logger.setLevel(logging.ERROR),
    "propagate": lambda logger: setattr(logger, "propagate", False),
    "disabled": lambda logger: setattr(logger, "disabled", True),
}


@pytest.mark.parametrize("silence", SILENCED.values(), ids=SILENCED)
async def test_the_parent_logger_silences_the_whole_engine(
    project: EngineProject, ready: Ready, parent: Any, caplog: pytest.LogCaptureFixture, silence: Callable[..., Any]
) -> None:
    broken = {"BeforeTool": project.hook(exit_code=1), "NoSuchEvent": []}
    await (await ready(project.config(broken))).fire_before_tool_event("glob", {})
    assert {HANDLER, "llxprt:core:hooks:registry"} <= {record.name for record in caplog.records}
    caplog.clear()

    silence(parent)
    await (await ready(project.config(broken))).fire_before_tool_event("glob", {})

    assert caplog.records == []


async def test_a_handler_and_level_of_the_parent_logger_get_the_records_of_all_parts(
    project: EngineProject, ready: Ready, parent: Any
) -> None:
    kept = Kept()
    parent.addHandler(kept)
    parent.setLevel(logging.DEBUG)

    await (await ready(project.config({"BeforeTool": project.hook()}))).fire_before_tool_event("glob", {})

    assert {HANDLER, "llxprt:core:hooks:planner"} <= set(kept.names)


async def test_concurrent_trials_keep_the_log_level(sandbox: Project, warnings_of_engine: Texts) -> None:
    """The inspector fires events at once. Its caller shows their warnings, so they are not logged."""
    waiting = "case $payload in *second*) until [ -e first-is-done ]; do sleep 0.01; done;; esac"
    sandbox.configure(level="user", BeforeTool=sandbox.hook(first=waiting, exit_code=1))
    tried, program = LoadedHooks.load(sandbox.root), logging.getLogger("a.program")
    before = program.getEffectiveLevel()

    async def attempt(tool: str) -> Trial:
        return await tried.fire(HookEventName.BEFORE_TOOL, {"tool_name": tool, "tool_input": {}})

    first, second = (asyncio.create_task(attempt(tool)) for tool in ("first", "second"))
    await first
    assert program.isEnabledFor(logging.WARNING)
    assert warnings_of_engine() == []
    await fire_before_tool_hook(Config.load(sandbox.root), "other", {})
    assert len(warnings_of_engine()) == 1, "that of the event which was not tried"

    sandbox.write("first-is-done")
    await second

    assert program.getEffectiveLevel() == before
    assert len(warnings_of_engine()) == 1


@pytest.mark.parametrize("chosen", ["llxprt_hooks", HANDLER])
async def test_a_level_that_was_set_for_the_engine_applies_where_only_errors_are_logged(
    project: EngineProject, ready: Ready, caplog: pytest.LogCaptureFixture, chosen: str
) -> None:
    handler = await ready(project.config({"BeforeTool": project.hook(exit_code=1)}))
    with without_warnings():
        await handler.fire_before_tool_event("glob", {})
        assert caplog.records == []
        with caplog.at_level(logging.WARNING, chosen):
            await handler.fire_before_tool_event("glob", {})
    assert [record.name for record in caplog.records] == [HANDLER]


def test_a_logger_that_a_program_configured_before_the_import_keeps_its_settings(project: EngineProject) -> None:
    code = (
        "import logging\n"
        "logging.getLogger('llxprt:core:hooks:settings').setLevel(logging.ERROR)\n"
        "logging.getLogger('llxprt_hooks').addHandler(logging.StreamHandler())\n"
        "from llxprt_hooks._support.logger import debug_logger\n"
        "debug_logger('settings').warning('hidden')\n"
        "debug_logger('runner').warning('shown')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=DEADLINE, check=True)
    assert done.stderr == "shown\n"


@pytest.mark.parametrize(
    ("configure", "shown"),
    [
        ("", "llxprt-hooks: 50% done, see x\n"),
        ("logging.basicConfig(format='%(message)s')", "50% done, see x\n"),
        ("logging.getLogger('llxprt_hooks').addHandler(logging.StreamHandler())", "50% done, see x\n"),
        ("logging.lastResort = None", ""),
        ("logging.getLogger('llxprt_hooks').disabled = True", ""),
    ],
)
def test_where_logging_is_not_configured_a_message_names_its_source(configure: str, shown: str) -> None:
    code = (
        f"import logging\n{configure}\nlogging.raiseExceptions = False\n"
        "from llxprt_hooks._support.logger import debug_logger\n"
        "debug_logger('runner').warning('50%% done, see %s', 'x')\n"
        "debug_logger('runner').info('hidden')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=DEADLINE, check=True)
    assert done.stderr == shown


LOCAL = """
import asyncio, sys
from llxprt_hooks import *

connections = []
sys.addaudithook(lambda event, arguments: connections.append(event) if event.startswith("socket.") else None)
config = Config(enable_hooks=True, hooks=%(hooks)r)
loop = asyncio.new_event_loop()
connections.clear()
result = loop.run_until_complete(execute_tool_with_hooks(config, "glob", {}, lambda _: "done"))
loop.close()
assert result.llm_content == "done"
assert not connections, connections
"""


@pytest.mark.slow
def test_no_record_of_an_event_leaves_the_machine(project: EngineProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBUG", "llxprt:*")
    code = LOCAL % {"hooks": hooks_of({"BeforeTool": project.hook("a"), "AfterTool": project.hook("b", exit_code=1)})}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert done.returncode == 0, done.stderr
    assert project.runs("a") == project.runs("b") == 1
