"""A deny is final: no other hook, no order and no mode undoes it (D-26)."""

from __future__ import annotations

import json
import shlex
import signal
from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from llxprt_hooks import Config, HookEventName, HookExecutionResult, ToolResult, execute_tool_with_hooks
from llxprt_hooks.core.engine.aggregator import HookAggregator
from llxprt_hooks.core.engine.results import is_blocked
from llxprt_hooks.core.engine.runner import _apply_fail_closed
from llxprt_hooks.core.protocol.outputs import BLOCKING
from llxprt_hooks.process import Completed
from llxprt_hooks.settings.definitions import HookScope
from tests.support.endings import A_HOOK, any_json, failed, hook_fields, printed, refused, result_of, said

if TYPE_CHECKING:
    from pathlib import Path

    from llxprt_hooks import DefaultHookOutput

BEFORE_TOOL, BEFORE_MODEL, AFTER_MODEL = (
    HookEventName.BEFORE_TOOL,
    HookEventName.BEFORE_MODEL,
    HookEventName.AFTER_MODEL,
)
CLOSED = structs.replace(A_HOOK, fail_closed=True)
MODES = ("parallel", "chain")


def result(ending: Completed, event: HookEventName, *, closed: bool = False) -> HookExecutionResult:
    """What the runner makes of a hook that ended so."""
    made = result_of(ending, event)
    return _apply_fail_closed(replace(made, hook_config=CLOSED)) if closed else made


def merged(
    event: HookEventName, results: list[HookExecutionResult], mode: str = "parallel"
) -> DefaultHookOutput | None:
    """The final output of these hooks; in a chain those after the first top-level block do not run (HOOK-107)."""
    if mode == "chain":
        blocks = [each.output is not None and each.output.decision in BLOCKING for each in results]
        results = results[: blocks.index(True) + 1] if any(blocks) else results
    return HookAggregator().aggregate_results(results, event).final_output


def permission(word: str, reason: str | None = None) -> Completed:
    return printed({"hookSpecificOutput": {"permissionDecision": word, "permissionDecisionReason": reason}})


@pytest.mark.requirement("HOOK-169", "HOOK-199")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("word", ["deny", "block"])
@pytest.mark.parametrize("others", [["allow"], ["ask"], ["allow", "ask", "approve"]])
def test_a_permission_denial_is_not_undone_by_another_hook(others: list[str], word: str, mode: str) -> None:
    for order in permutations([permission(word, "no"), *map(permission, others), printed({"decision": "allow"})]):
        output = merged(BEFORE_TOOL, [result(ending, BEFORE_TOOL) for ending in order], mode)

        assert output is not None
        assert output.get_blocking_error() == (True, "no")


@pytest.mark.requirement("HOOK-169")
@pytest.mark.parametrize("closed", [False, True])
def test_a_permission_denial_counts_although_the_exit_status_was_lost(closed: bool) -> None:
    lost = structs.replace(permission("deny", "no"), exit_code=None)

    output = merged(BEFORE_TOOL, [result(lost, BEFORE_TOOL, closed=closed), result(permission("allow"), BEFORE_TOOL)])

    assert output is not None
    assert output.is_blocking_decision()


async def test_a_permission_denial_counts_where_sigchld_is_ignored(tmp_path: Path) -> None:
    answer = json.dumps({"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no"}})
    hooks = [{"type": "command", "command": f"printf %s {shlex.quote(answer)}"}, {"type": "command", "command": "true"}]
    config = Config(enable_hooks=True, working_dir=tmp_path, hooks={"BeforeTool": [{"hooks": hooks}]})

    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        outcome = await execute_tool_with_hooks(config, "rm", {}, lambda _: ToolResult("RAN"))
    finally:
        signal.signal(signal.SIGCHLD, before)

    assert outcome.llm_content == "no"


@pytest.mark.requirement("HOOK-098")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "guard",
    [printed({"decision": "deny", "reason": "no"}), refused("no"), failed("broken"), said("no"), Completed(1)],
    ids=["JSON", "exit code 2", "failure", "text", "silent failure"],
)
def test_no_other_hook_undoes_the_block_of_a_hook_that_fails_closed(guard: Completed, mode: str) -> None:
    others = [printed({"decision": "allow", "reason": "fine", "continue": True}), said("checked")]
    for order in permutations([guard, *others]):
        results = [result(ending, BEFORE_MODEL, closed=ending is guard) for ending in order]
        output = merged(BEFORE_MODEL, results, mode)

        assert output is not None
        assert output.is_blocking_decision()
        assert "fine" not in output.get_effective_reason()
        assert output.get_effective_reason() == "no" or "failClosed" in output.get_effective_reason()


@pytest.mark.requirement("HOOK-098")
def test_a_final_block_and_a_later_one_have_both_reasons() -> None:
    results = [
        result(printed({"decision": "deny", "reason": "first"}), BEFORE_MODEL, closed=True),
        result(printed({"decision": "block", "reason": "second"}), BEFORE_MODEL),
    ]
    output = merged(BEFORE_MODEL, results)

    assert output is not None
    assert (output.decision, output.reason) == ("block", "first\nsecond")


@pytest.mark.requirement("HOOK-098")
def test_a_decision_in_json_is_replaced_by_a_later_one() -> None:
    results = [result(printed({"decision": word}), BEFORE_MODEL) for word in ("deny", "allow")]
    output = merged(BEFORE_MODEL, results)

    assert output is not None
    assert not output.is_blocking_decision()


@pytest.mark.requirement("HOOK-098", "HOOK-184")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("event", [BEFORE_MODEL, AFTER_MODEL])
@pytest.mark.parametrize("closed", [False, True])
def test_no_other_hook_undoes_a_stop(event: HookEventName, mode: str, closed: bool) -> None:
    guard = printed({"continue": False, "stopReason": "the budget is spent"})
    later = printed({"continue": True, "decision": "allow", "reason": "fine"})
    for order in ([guard, later], [later, guard]):
        output = merged(event, [result(ending, event, closed=closed and ending is guard) for ending in order], mode)

        assert output is not None
        assert output.get_stop_reason() == "the budget is spent"


@pytest.mark.requirement("HOOK-066", "HOOK-098")
@pytest.mark.parametrize("event", [BEFORE_TOOL, BEFORE_MODEL])
@pytest.mark.parametrize("mode", MODES)
def test_no_other_hook_undoes_exit_code_2(event: HookEventName, mode: str) -> None:
    for order in permutations([refused("no"), printed({"decision": "allow", "reason": "fine"}), said("checked")]):
        output = merged(event, [result(ending, event) for ending in order], mode)

        assert output is not None
        assert output.is_blocking_decision()
        assert "no" in output.get_effective_reason()


@pytest.mark.requirement("HOOK-098")
def test_only_a_managed_hook_undoes_the_block_of_a_managed_hook() -> None:
    deny, allow = printed({"decision": "deny", "reason": "policy"}), printed({"decision": "allow"})
    managed = structs.replace(A_HOOK, scope=HookScope.MANAGED)

    def blocks(*hooks: tuple[Completed, bool]) -> bool:
        results = [result(ending, BEFORE_MODEL) for ending, _ in hooks]
        configs = [managed if is_managed else A_HOOK for _, is_managed in hooks]
        output = merged(
            BEFORE_MODEL, [replace(each, hook_config=config) for each, config in zip(results, configs, strict=True)]
        )
        return is_blocked(BEFORE_MODEL.spec, output)

    assert blocks((deny, True), (allow, False))
    assert not blocks((deny, True), (allow, True))
    assert not blocks((deny, True), (allow, True), (allow, False))
    assert blocks((deny, True), (allow, True), (deny, True), (allow, False))
    assert not blocks((deny, False), (allow, True))


@pytest.mark.requirement("HOOK-093", "HOOK-199")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("endings", "reason"),
    [
        ([permission("deny", "A"), printed({"decision": "block", "reason": "B"})], "A\nB"),
        ([permission("deny", "A"), refused("B")], "A\nB"),
        ([permission("deny", "A"), permission("deny", "B")], "A\nB"),
        ([permission("deny", ""), refused("B")], "B"),
        ([permission("allow", "A"), refused("B")], "B"),
        ([printed({"hookSpecificOutput": {"permissionDecisionReason": "hm"}}), refused("B")], "B"),
        ([printed({"reason": "hm"}), permission("deny", "B")], "B"),
    ],
)
def test_the_reason_of_a_block_is_that_of_all_hooks_that_block(
    endings: list[Completed], reason: str, mode: str
) -> None:
    output = merged(BEFORE_TOOL, [result(ending, BEFORE_TOOL) for ending in endings], mode)

    assert output is not None
    assert output.get_effective_reason() == reason


@pytest.mark.requirement("HOOK-097", "HOOK-098")
@pytest.mark.parametrize("event", [BEFORE_TOOL, BEFORE_MODEL, AFTER_MODEL])
@pytest.mark.parametrize("others", [[], [printed({"reason": "r"})], [printed({"reason": ""})], [refused("r")]])
def test_the_reason_of_a_stop_depends_on_no_other_hook(event: HookEventName, others: list[Completed]) -> None:
    stops = [printed({"continue": False, "reason": "x"}), printed({"continue": False, "reason": "y"})]
    for order in ([*stops, *others], [*others, *stops]):
        output = merged(event, [result(ending, event) for ending in order])

        assert output is not None
        assert output.get_stop_reason() == "x\ny"


@pytest.mark.requirement("HOOK-098")
def test_an_empty_reason_of_another_hook_displaces_no_reason_of_a_block() -> None:
    endings = [printed({"decision": "deny", "reason": "no"}), printed({"reason": ""})]
    output = merged(BEFORE_MODEL, [result(ending, BEFORE_MODEL) for ending in endings])

    assert output is not None
    assert output.get_blocking_error() == (True, "no")


# Any set of hooks

other_answers = hook_fields.map(printed) | any_json.map(printed) | st.sampled_from([said("ok"), failed(), printed({})])
denials = st.sampled_from([{"decision": "deny"}, {"decision": "block"}]).flatmap(
    lambda word: hook_fields.map(lambda fields: printed({**fields, **word}))
) | st.just(refused("no"))
permission_denials = st.sampled_from(["deny", "block"]).map(permission)
failures = st.sampled_from(
    [
        failed("broken"),
        said("text"),
        Completed(exit_code=0, signal="SIGKILL"),
        Completed(timed_out_after=5.0),
        Completed(exit_code=0, stdout=b"{}", stdout_cut=True),
        Completed(exit_code=0, stdout=b'{"decision": "deny"'),
        printed({"decision": "Deny"}),
        printed({"continue": "false"}),
        printed(["deny"]),
    ]
)


@pytest.mark.slow
@pytest.mark.requirement("HOOK-092", "HOOK-098", "HOOK-110")
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_whatever_the_others_say_one_deny_or_one_failure_of_a_guard_blocks(data: st.DataObject) -> None:
    event = data.draw(st.sampled_from([event for event in HookEventName if event.spec.can_block]))
    guard, closed = data.draw(guards(event))
    others = data.draw(st.lists(st.tuples(other_answers, st.booleans()), max_size=3))
    results = [result(ending, event, closed=is_closed) for ending, is_closed in others]
    results.insert(data.draw(st.integers(0, len(others))), result(guard, event, closed=closed))

    for mode in MODES:
        assert is_blocked(event.spec, merged(event, results, mode)), mode


def guards(event: HookEventName) -> st.SearchStrategy[tuple[Completed, bool]]:
    """A hook that must block, and whether it has to have ``failClosed`` for that."""
    denied, broken = st.tuples(denials, st.booleans()), st.tuples(failures, st.just(True))
    if event is BEFORE_TOOL:
        return denied | broken | st.tuples(permission_denials, st.booleans())
    final = st.tuples(denials, st.just(True)) | st.tuples(st.just(refused("no")), st.booleans())
    return final | broken  # a later hook may override any other block (HOOK-098)
