"""What holds whatever hooks print and however they end: nothing raises, and nothing blocks that did not say so."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from llxprt_hooks import HookEventName
from llxprt_hooks.core.engine.aggregator import HookAggregator
from llxprt_hooks.core.protocol.exit_codes import read_outcome
from llxprt_hooks.process import Completed
from tests.support.endings import (
    MODEL_EVENTS,
    OR_EVENTS,
    aggregated,
    any_json,
    hook_fields,
    merged,
    printed,
    result_of,
)

BLOCKING = ("block", "deny")
DECISIONS = (*BLOCKING, "allow", "approve", "ask")
WHITESPACE = " \t\n\r\v\f\u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200B)))

# How a hook may end


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


outputs = (
    hook_fields.map(encoded)
    | hook_fields.map(lambda fields: encoded(json.dumps(fields)))
    | hook_fields.map(lambda fields: b"\xef\xbb\xbf" + encoded(fields) + b"\xc2\xa0\n")
    | any_json.map(encoded)
    | st.tuples(hook_fields.map(encoded), st.binary(max_size=3)).map(b"".join)
    | st.binary(max_size=60)
    | st.text(max_size=30).map(str.encode)
)
endings = st.builds(
    Completed,
    exit_code=st.sampled_from([0, 0, 0, 0, 1, 2, 2, 3, 127, 255, None]) | st.integers(-300, 70_000),
    signal=st.sampled_from([None, None, None, None, None, "SIGKILL", "SIGTERM"]),
    stdout=outputs,
    stderr=outputs | st.just(b""),
    stdout_cut=st.sampled_from([False, False, False, False, True]),
    timed_out_after=st.sampled_from([None, None, None, None, None, 0.0, 100.0]),
)
events = st.sampled_from(HookEventName)


# What they said, read here by other means than the engine's


def exited(ending: Completed) -> int | None:
    """The exit status, if the hook ended by itself and in time."""
    return None if ending.signal or ending.timed_out_after is not None else ending.exit_code


def is_unknown(ending: Completed) -> bool:
    """Whether the exit status is unknown: then only a refusal counts, and it blocks."""
    return ending.signal is None and ending.timed_out_after is None and ending.exit_code is None


def refuses(fields: dict[str, Any]) -> bool:
    own = fields.get("hookSpecificOutput")
    permission = own.get("permissionDecision") if isinstance(own, dict) else None
    return fields.get("decision") in BLOCKING or permission in BLOCKING or fields.get("continue") is False


def spoken(ending: Completed) -> dict[str, Any]:
    """The JSON object that counts: a successful hook's, or a refusal of one whose status is unknown; else empty."""
    unknown = is_unknown(ending)
    if not unknown and (exited(ending) != 0 or ending.stdout_cut):
        return {}

    def refuse(name: str) -> object:
        raise ValueError(name)

    try:
        value = json.loads(ending.stdout.decode("utf-8", "replace").strip(WHITESPACE), parse_constant=refuse)
        if isinstance(value, str):
            value = json.loads(value.strip(WHITESPACE), parse_constant=refuse)
    except ValueError:
        return {}
    counts = isinstance(value, dict) and (not unknown or refuses(value))
    return value if counts else {}


def explicit_decision(ending: Completed) -> str | None:
    if exited(ending) == 2 or (is_unknown(ending) and spoken(ending)):
        return "deny"
    decision = spoken(ending).get("decision")
    return decision if isinstance(decision, str) and decision in DECISIONS else None


def permission_decision(ending: Completed) -> object:
    own = spoken(ending).get("hookSpecificOutput")
    return own.get("permissionDecision") if isinstance(own, dict) else None


@pytest.mark.slow
@pytest.mark.requirement("HOOK-110", "HOOK-092", "HOOK-098")
@settings(max_examples=120, deadline=None)
@given(events, st.lists(endings, min_size=1, max_size=4))
@example(HookEventName.BEFORE_MODEL, [Completed(exit_code=None, stdout=b'{"continue": false}')])
def test_whatever_hooks_print_nothing_raises_and_only_an_explicit_block_blocks(
    event: HookEventName, hooks: list[Completed]
) -> None:
    result = aggregated(event, hooks)

    output = result.final_output
    blocked = output is not None and output.is_blocking_decision()
    decisions = [decision for hook in hooks if (decision := explicit_decision(hook)) is not None]
    denied = any(decision in BLOCKING for decision in decisions)
    permissions = [permission_decision(hook) for hook in hooks]
    if event is HookEventName.BEFORE_TOOL_SELECTION:
        assert not blocked
    elif event in MODEL_EVENTS:
        assert blocked == (bool(decisions) and decisions[-1] in BLOCKING)
    elif event is not HookEventName.BEFORE_TOOL:
        assert blocked == denied
    elif denied:
        assert blocked
    elif len(hooks) == 1:
        assert blocked == (permissions[0] in BLOCKING)
    elif blocked:
        assert any(permission in BLOCKING for permission in permissions)
    if output is not None:
        assert isinstance(output.get_effective_reason(), str)
        assert output.get_blocking_error().blocked == blocked
        json.dumps(result.to_dict())


@pytest.mark.slow
@pytest.mark.requirement("HOOK-110", "HOOK-016b", "HOOK-064", "HOOK-157")
@settings(max_examples=120, deadline=None)
@given(events, any_json | hook_fields)
@example(HookEventName.BEFORE_TOOL, {"decision": {"deny": "deny"}})
@example(HookEventName.BEFORE_TOOL, {"decision": ["deny"]})
@example(HookEventName.BEFORE_TOOL, {"decision": "deny", "hookSpecificOutput": [[]], "continue": {}, "reason": []})
@example(HookEventName.BEFORE_TOOL_SELECTION, {"hookSpecificOutput": {"toolConfig": {"allowedFunctionNames": [[]]}}})
@example(HookEventName.BEFORE_MODEL, {"decision": "deny", "hookSpecificOutput": {"llm_request": {"toolConfig": 7}}})
@example(HookEventName.BEFORE_TOOL, '{"decision":"deny"}')
@example(HookEventName.BEFORE_TOOL, '"{\\"decision\\":\\"deny\\"}"')
def test_whatever_json_a_hook_prints_nothing_raises_and_only_an_explicit_block_blocks(
    event: HookEventName, value: object
) -> None:
    ending = printed(value)

    result = aggregated(event, [ending])

    output = result.final_output
    assert result.success
    assert output is not None
    expected = explicit_decision(ending) in BLOCKING and event is not HookEventName.BEFORE_TOOL_SELECTION
    if event is HookEventName.BEFORE_TOOL:
        expected = expected or permission_decision(ending) in BLOCKING
    assert output.is_blocking_decision() == expected
    assert output.should_stop_execution() == (spoken(ending).get("continue") is False)


@pytest.mark.slow
@pytest.mark.requirement("HOOK-070", "HOOK-066", "HOOK-068", "HOOK-198")
@settings(max_examples=80, deadline=None)
@given(endings)
@example(Completed(stdout=b'{"decision": "block"}'))
def test_the_exit_status_alone_settles_how_the_streams_are_read(ending: Completed) -> None:
    reading = read_outcome(ending)

    assert reading.success == (exited(ending) == 0 and not ending.stdout_cut)
    if exited(ending) == 2:
        assert reading.output is not None
        assert reading.output.to_dict().keys() == {"decision", "reason"}
        assert reading.output.is_blocking_decision()
        assert reading.output.reason
    elif not reading.success:
        assert reading.error is not None
        if reading.output is not None and reading.output.is_blocking_decision():
            assert (ending.exit_code, ending.signal, ending.timed_out_after) == (None, None, None)  # any status
        elif reading.output is not None:
            assert (reading.output.system_message or "").startswith("Warning: ")


# Plan order, not completion order


@pytest.mark.requirement("HOOK-190")
@settings(max_examples=50, deadline=None)
@given(events, st.lists(endings, min_size=2, max_size=4), st.data())
def test_a_merge_depends_on_plan_order_and_not_on_how_long_each_hook_took(
    event: HookEventName, hooks: list[Completed], data: st.DataObject
) -> None:
    durations = data.draw(st.lists(st.floats(0, 1e6), min_size=len(hooks), max_size=len(hooks)))
    aggregator = HookAggregator()
    evenly = [result_of(hook, event) for hook in hooks]
    unevenly = [result_of(hook, event, duration) for hook, duration in zip(hooks, durations, strict=True)]

    first = aggregator.aggregate_results(evenly, event)
    second = aggregator.aggregate_results(unevenly, event)
    again = aggregator.aggregate_results(evenly, event)

    assert first.final_output == second.final_output == again.final_output
    assert first.all_outputs == second.all_outputs == again.all_outputs
    assert [result.output for result in evenly] == [result_of(hook, event).output for hook in hooks]


@pytest.mark.requirement("HOOK-092", "HOOK-096", "HOOK-097")
@settings(max_examples=40, deadline=None)
@given(st.sampled_from(OR_EVENTS[1:]), st.lists(endings, min_size=2, max_size=3))
def test_merged_decision_is_order_independent(event: HookEventName, hooks: list[Completed]) -> None:
    def effects(order: tuple[Completed, ...]) -> tuple[bool, bool, bool]:
        output = aggregated(event, order).final_output
        if output is None:
            return False, False, False
        return output.is_blocking_decision(), output.should_stop_execution(), bool(output.suppress_output)

    assert len({effects(order) for order in permutations(hooks)}) == 1


@pytest.mark.requirement("HOOK-099", "HOOK-100", "HOOK-101", "HOOK-102", "HOOK-210")
@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "mode": st.sampled_from(["AUTO", "ANY", "NONE"]),
                "allowedFunctionNames": st.lists(st.sampled_from(["a", "b", "B", "é", "\U0001f600"])),
            },
        ),
        min_size=1,
        max_size=4,
    )
)
def test_tool_restrictions_are_the_sorted_union_and_the_strictest_mode_in_any_order(
    tool_configs: list[dict[str, Any]],
) -> None:
    hooks = [printed({"hookSpecificOutput": {"toolConfig": each}}) for each in tool_configs]
    modes = {each.get("mode") for each in tool_configs}
    listed = [each["allowedFunctionNames"] for each in tool_configs if "allowedFunctionNames" in each]
    mode = next((mode for mode in ("NONE", "ANY", "AUTO") if mode in modes), None)
    names = sorted({name for names in listed for name in names})

    for order in permutations(hooks):
        own = merged(HookEventName.BEFORE_TOOL_SELECTION, *order).hook_specific_output or {}
        tool_config = own.get("toolConfig") or {}
        assert tool_config.get("mode") == mode
        assert tool_config.get("allowedFunctionNames") == ([] if mode == "NONE" else names if listed else None)


FIELDS = [
    {
        "decision": "deny",
        "reason": "r1",
        "systemMessage": "m1",
        "hookSpecificOutput": {
            "x": 1,
            "additionalContext": "c1",
            "tool_input": {"a": 1},
            "llm_request": {"model": "1"},
        },
    },
    {
        "decision": "allow",
        "reason": "r2",
        "systemMessage": "m2",
        "hookSpecificOutput": {
            "x": 2,
            "additionalContext": "c2",
            "tool_input": {"a": 2},
            "llm_request": {"model": "2"},
        },
    },
    {"reason": "r3", "hookSpecificOutput": {"x": 3, "tool_input": {"a": 3}, "toolConfig": {"mode": "ANY"}}},
]


@pytest.mark.requirement("HOOK-098", "HOOK-092", "HOOK-093", "HOOK-190")
@pytest.mark.parametrize("event", [HookEventName.BEFORE_TOOL, HookEventName.BEFORE_MODEL])
@pytest.mark.parametrize("order", list(permutations(range(3))))
async def test_hooks_that_finish_in_another_order_are_merged_in_plan_order(
    run_hooks: Any, printing: Any, tmp_path: Path, event: HookEventName, order: tuple[int, ...]
) -> None:
    finished = tmp_path / "finished"
    finished.touch()

    def hook(number: int) -> str:
        # Each waits until as many others are done as are before it in the order, and a moment for their end.
        turn = order.index(number)
        wait = (
            f"until [ $(wc -l < {finished}) -eq {turn} ]; do sleep 0.01; done; sleep 0.03; echo {number} >> {finished}"
        )
        return str(printing(json.dumps(FIELDS[number]), str(number), wait))

    results = await run_hooks(*map(hook, range(3)), event=event)

    assert finished.read_text().split() == [str(number) for number in order]
    assert [result.stderr for result in results] == ["0", "1", "2"]
    output = HookAggregator().aggregate_results(results, event).final_output
    assert output == merged(event, *map(printed, FIELDS))
    assert output is not None
    assert output.is_blocking_decision() is (event is HookEventName.BEFORE_TOOL)
    assert output.hook_specific_output is not None
    assert output.hook_specific_output["x"] == 3
    assert output.reason == ("r1\nr2\nr3" if event is HookEventName.BEFORE_TOOL else "r3")
