"""``"mode": "observe"``: a hook runs, is recorded with what it would have decided, and changes nothing (D-80)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks import (
    AggregatedHookResult,
    Config,
    HookEventName,
    HookExecutionResult,
    HookObserver,
    fire_before_model_hook,
)
from llxprt_hooks.core.calls.lookup import plan_for
from llxprt_hooks.core.engine.aggregator import HookAggregator
from llxprt_hooks.core.engine.planner import HookPlanner
from llxprt_hooks.core.engine.registry import HookRegistry
from llxprt_hooks.core.engine.runner import HookRunner
from llxprt_hooks.model.openai_chat import OpenAIChatTranslator
from llxprt_hooks.settings.definitions import ConfigSource, HookScope, HookSet, read_definitions
from llxprt_hooks.settings.jsonc import parse
from llxprt_hooks.settings.trust.fingerprint import hook_commands, hook_fingerprint
from tests.support.hooks import Sets, seen
from tests.support.replies import DENY, fired, printing

E = HookEventName


def hook(says: object, **fields: Any) -> dict[str, Any]:
    text = says if isinstance(says, str) else printing(says)
    return {"type": "command", "command": text, "mode": "observe", **fields}


def configured(folder: Path, *hooks: dict[str, Any], event: str = "BeforeTool", **fields: Any) -> Config:
    group = {"hooks": list(hooks), **fields}
    return Config(enable_hooks=True, working_dir=folder, hooks={event: [group]})


ANSWERS = {
    "deny": hook(DENY),
    "exit code 2": hook("echo no >&2; exit 2"),
    "permission": hook({"hookSpecificOutput": {"permissionDecision": "deny"}}),
    "stop": hook({"continue": False, "stopReason": "enough"}),
    "message": hook({"systemMessage": "remember", "suppressOutput": True}),
    "plain text": hook("echo remember"),
    "arguments": hook({"hookSpecificOutput": {"tool_input": {"path": "other"}, "additionalContext": "x"}}),
    "failure": hook("exit 1"),
    "failClosed failure": hook("exit 1", failClosed=True),
    "failClosed unclear": hook("echo maybe", failClosed=True),
    "failClosed timeout": hook("sleep 30", failClosed=True, timeout=50),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
async def test_whatever_it_answers_the_event_is_as_without_it(tmp_path: Path, answer: dict[str, Any]) -> None:
    result = await fired(configured(tmp_path, answer))

    assert (result.success, result.final_output, result.all_outputs, result.errors) == (True, None, [], [])
    [run] = result.results
    assert run.output is None


async def test_what_it_would_have_decided_is_in_its_result(tmp_path: Path) -> None:
    result = await fired(configured(tmp_path, ANSWERS["deny"], ANSWERS["failClosed failure"]))

    observed = [run.observed for run in result.results]
    assert [output.is_blocking_decision() for output in observed if output] == [True, True]
    assert [run.to_dict()["output"] for run in result.results] == [None, None]
    assert result.results[0].to_dict()["observed"] == DENY


async def test_together_with_other_hooks_only_the_others_count(tmp_path: Path) -> None:
    enforced = hook({"systemMessage": "hello"}, mode="enforce")

    result = await fired(configured(tmp_path, ANSWERS["deny"], enforced, ANSWERS["failure"]))

    assert result.success
    assert result.final_output is not None
    assert result.final_output.to_dict() == {"decision": "allow", "systemMessage": "hello"}


async def test_a_chain_neither_ends_nor_changes_at_it(tmp_path: Path) -> None:
    rewrite = ANSWERS["arguments"]
    last = hook("cat > last", mode="enforce")

    await fired(configured(tmp_path, ANSWERS["deny"], rewrite, last, sequential=True), path="own")

    assert seen(tmp_path, "last")["tool_input"] == {"path": "own"}


async def test_a_model_call_is_neither_blocked_nor_answered_nor_changed(tmp_path: Path) -> None:
    specific = {"llm_request": {"model": "other"}, "llm_response": {"text": "mine"}}
    answer = hook({**DENY, "hookSpecificOutput": specific}, failClosed=True)

    request = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    config = configured(tmp_path, answer, event="BeforeModel")
    result: Any = await fire_before_model_hook(config, request, translator="openai-chat")

    assert (result.blocked, result.synthetic_response, result.modified_request) == (False, None, None)


async def test_a_change_by_another_hook_that_cannot_be_applied_is_not_its_failure(tmp_path: Path) -> None:
    """With a hook that must not fail in the plan, such a change blocks; one that only observes does not count."""

    class Unwritable(OpenAIChatTranslator):
        def from_hook_llm_request(self, hook_request: Any, base_request: Any) -> Any:
            if "model" in hook_request:
                raise ZeroDivisionError("no such model")
            return super().from_hook_llm_request(hook_request, base_request)

    change = hook(
        {"hookSpecificOutput": {"llm_request": {"model": "other", "config": {"temperature": 1}}}}, mode="enforce"
    )
    request = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}

    for mode in ("observe", "enforce"):
        config = configured(tmp_path, change, hook("true", failClosed=True, mode=mode), event="BeforeModel")
        result: Any = await fire_before_model_hook(config, request, translator=Unwritable())
        assert result.blocked is (mode == "enforce")
        assert (result.modified_request is None) is result.blocked  # the change that can be applied is applied


async def test_a_failure_of_the_engine_does_not_block_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = configured(tmp_path, hook("true", failClosed=True), event="BeforeModel")
    system = config.get_hook_system()
    assert system is not None
    await system.initialize()
    handler = system.get_event_handler()

    result = await handler.fire_before_model_event("not a request")

    assert not result.success
    assert result.final_output is None
    assert (await handler.fire_event("BeforeModel", {})).final_output is None  # the input is not complete
    closed = configured(tmp_path, hook("true", failClosed=True, mode="enforce"), event="BeforeModel")
    for each, blocks in ((config, False), (closed, True)):
        plan = plan_for(each, E.BEFORE_MODEL)
        assert plan is not None
        assert (plan.failed(OSError()).final_output is not None) is blocks
        monkeypatch.setattr(each, "get_hook_system", lambda: 1 / 0)
        assert (await fire_before_model_hook(each, "not a request")).blocked is blocks


async def test_where_the_engine_runs_out_of_stack_nothing_is_blocked_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*arguments: object) -> None:
        raise RecursionError

    monkeypatch.setattr(HookAggregator, "aggregate_results", failing)

    assert (await fired(configured(tmp_path, ANSWERS["deny"]))).final_output is None


async def test_arguments_that_hooks_cannot_be_shown_are_blocked_only_for_hooks_that_count(tmp_path: Path) -> None:
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"deeper": deep}

    alone = await fired(configured(tmp_path, ANSWERS["deny"]), **deep)
    assert alone.final_output is None
    assert [result.error for result in alone.results] == [None]
    both = await fired(configured(tmp_path, ANSWERS["deny"], hook("true", mode="enforce")), **deep)
    assert both.final_output is not None
    assert both.final_output.is_blocking_decision()


def test_without_an_event_loop_nothing_is_blocked_for_it(tmp_path: Path) -> None:
    def step(config: Config) -> AggregatedHookResult:
        system = config.get_hook_system()
        assert system is not None
        asyncio.run(system.initialize())
        fire = system.get_event_handler().fire_before_tool_event("write_file", {})
        with pytest.raises(StopIteration) as ended:
            fire.send(None)
        result = ended.value.value
        assert isinstance(result, AggregatedHookResult)
        return result

    assert step(configured(tmp_path, ANSWERS["deny"])).final_output is None
    assert step(configured(tmp_path, hook(DENY, mode="enforce"))).final_output is not None


async def test_a_script_that_must_not_be_started_does_not_block_either(tmp_path: Path) -> None:
    fields = {"BeforeTool": [{"hooks": [hook("touch ran")]}]}
    [definition], _ = read_definitions(HookSet(fields, before_start=lambda: "was changed"))
    payload = {"cwd": str(tmp_path), "tool_name": "x", "tool_input": {}}
    [result] = await HookRunner(working_dir=lambda: str(tmp_path)).execute_hooks_parallel(
        [definition.config], E.BEFORE_TOOL, payload
    )

    assert result.output is None
    assert result.observed is not None
    assert result.observed.is_blocking_decision()
    assert not (tmp_path / "ran").exists()


def planned_modes(*hook_sets: HookSet) -> list[tuple[str | None, str, bool]]:
    registry = HookRegistry(Sets(hook_sets))
    registry.initialize()
    plan = HookPlanner(registry).create_execution_plan(E.BEFORE_TOOL, "write_file")
    assert plan is not None
    return [(config.name, config.mode, config.fail_closed) for config in plan.hook_configs]


def one(name: str, source: ConfigSource, scope: HookScope = HookScope.PROJECT, **fields: Any) -> HookSet:
    return HookSet({"BeforeTool": [{"hooks": [hook("guard", name=name, **fields)]}]}, source, scope=scope)


@pytest.mark.parametrize("scope", [HookScope.PROJECT, HookScope.MANAGED])
def test_a_copy_that_only_observes_does_not_disable_a_guard(scope: HookScope) -> None:
    observing = one("watch", ConfigSource.PROJECT, scope, failClosed=True)
    guard = one("guard", ConfigSource.USER, mode="enforce")

    assert planned_modes(observing, guard) == [("guard", "enforce", False)]
    assert planned_modes(observing) == [("watch", "observe", True)]
    assert planned_modes(observing, one("two", ConfigSource.USER)) == [("watch", "observe", True)]


def test_an_invalid_matcher_matches_everything_only_with_fail_closed() -> None:
    def matches_all(mode: str) -> list[bool]:
        guard = hook("true", failClosed=True, mode=mode, timeout=None)
        group = {"matcher": "write_(", "hooks": [guard, hook("false")]}
        return [each.matches_all for each in read_definitions(HookSet({"BeforeTool": [group]}))[0]]

    assert matches_all("observe") == [False, False]
    assert matches_all("enforce") == [True, True]


@pytest.mark.parametrize("mode", ["Observe", "off", "", 1, True, []], ids=repr)
async def test_any_other_mode_is_reported_and_enforces(tmp_path: Path, mode: object) -> None:
    given = hook(DENY, mode=mode)
    _, problems = read_definitions(HookSet({"BeforeTool": [{"hooks": [given]}]}))

    result = await fired(configured(tmp_path, given))

    assert result.final_output is not None
    assert result.final_output.is_blocking_decision()
    [problem] = problems
    assert '`mode` is ignored: expected "enforce" or "observe", found' in str(problem)


@pytest.mark.parametrize("given", [{"mode": None}, {"mode": "enforce"}, {}], ids=repr)
async def test_without_a_mode_a_hook_enforces(tmp_path: Path, given: dict[str, Any]) -> None:
    result = await fired(configured(tmp_path, {"type": "command", "command": "exit 2", **given}))

    assert result.final_output is not None


def test_an_approval_covers_the_mode_and_shows_it() -> None:
    text = '{"enableHooks": true, "hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": "guard"%s}]}]}}'
    settings = [parse(text % mode).to_value() for mode in ("", ', "mode": "observe"', ', "mode": "enforce"')]

    assert len({hook_fingerprint(each) for each in settings}) == 3
    assert hook_commands(settings[1])[0].details == {"mode": '"observe"'}


async def test_observers_get_its_answer(tmp_path: Path) -> None:
    ended: list[HookExecutionResult] = []

    class Seen(HookObserver):
        def hook_ended(self, result: HookExecutionResult) -> None:
            ended.append(result)

    hooks = {"BeforeTool": [{"hooks": [ANSWERS["deny"]]}]}
    await fired(Config(enable_hooks=True, working_dir=tmp_path, hooks=hooks, observer=Seen()))

    [result] = ended
    assert result.answer is not None
    assert result.answer.to_dict() == DENY
