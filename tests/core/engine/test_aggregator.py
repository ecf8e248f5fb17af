"""Several hooks' outputs into one, by the strategy of the event."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

import pytest
from google.genai import types

from llxprt_hooks import (
    BeforeModelHookOutput,
    BeforeToolHookOutput,
    BeforeToolSelectionHookOutput,
    GenerateContentParameters,
    HookEventName,
    execute_tool_with_hooks,
    fire_after_tool_hook,
    fire_before_tool_selection_hook,
)
from llxprt_hooks.core.engine.aggregator import HookAggregator
from llxprt_hooks.process import Completed
from tests.support.endings import (
    MODEL_EVENTS,
    OR_EVENTS,
    aggregated,
    failed,
    merged,
    printed,
    refused,
    result_of,
    said,
    specific,
)

BEFORE_TOOL = HookEventName.BEFORE_TOOL
AFTER_TOOL = HookEventName.AFTER_TOOL
BEFORE_MODEL = HookEventName.BEFORE_MODEL
SELECTION = HookEventName.BEFORE_TOOL_SELECTION

or_events = pytest.mark.parametrize("event", OR_EVENTS)
model_events = pytest.mark.parametrize("event", MODEL_EVENTS)

ALLOW = printed({"decision": "allow", "reason": "fine"})
DENY = printed({"decision": "deny", "reason": "policy"})


# Tool and agent events: OR


@pytest.mark.requirement("HOOK-092", "HOOK-190")
@or_events
@pytest.mark.parametrize("block", [DENY, printed({"decision": "block"}), refused("policy"), refused()])
def test_a_single_block_blocks_at_any_position(event: HookEventName, block: Completed) -> None:
    others = [ALLOW, printed({}), said("text"), failed("warning"), printed({"decision": "ask"})]

    for place in range(len(others) + 1):
        assert merged(event, *others[:place], block, *others[place:]).is_blocking_decision()


@pytest.mark.requirement("HOOK-093", "HOOK-190")
@or_events
def test_the_reasons_of_all_hooks_are_joined_by_newlines_in_plan_order(event: HookEventName) -> None:
    output = merged(
        event, printed({"reason": "one"}), printed({"decision": "deny", "reason": "two"}), said("x"), refused("three")
    )

    assert output.reason == "one\ntwo\nthree"
    assert output.get_effective_reason() == "one\ntwo\nthree"


@pytest.mark.requirement("HOOK-094", "HOOK-190")
@or_events
def test_the_system_messages_of_all_hooks_are_joined_by_newlines_in_plan_order(event: HookEventName) -> None:
    output = merged(event, printed({"systemMessage": "one"}), said("two"), printed({}), printed({"systemMessage": "3"}))

    assert output.system_message == "one\ntwo\n3"


@pytest.mark.requirement("HOOK-095")
@or_events
def test_the_additional_contexts_of_all_hooks_are_joined_by_newlines_in_plan_order(event: HookEventName) -> None:
    output = merged(
        event,
        printed({"hookSpecificOutput": {"additionalContext": "one"}}),
        printed({"hookSpecificOutput": {"other": 1}}),
        printed({"hookSpecificOutput": {"additionalContext": "two"}}),
    )

    assert output.get_additional_context() == "one\ntwo"


@pytest.mark.requirement("HOOK-096")
@or_events
@pytest.mark.parametrize(
    ("values", "suppressed"),
    [((True, False), True), ((False, True), True), ((None, True, None), True), ((False, False), False)],
)
def test_any_hook_suppresses_the_output(event: HookEventName, values: tuple[Any, ...], suppressed: bool) -> None:
    output = merged(event, *(printed({"suppressOutput": value}) for value in values))

    assert bool(output.suppress_output) is suppressed


@pytest.mark.requirement("HOOK-097")
@or_events
@pytest.mark.parametrize(
    ("values", "stops"),
    [((False, True), True), ((True, False), True), ((None, False, None), True), ((True, None), False)],
)
def test_any_hook_stops_the_agent(event: HookEventName, values: tuple[Any, ...], stops: bool) -> None:
    output = merged(event, *(printed({"continue": value}) for value in values))

    assert output.should_stop_execution() is stops


@pytest.mark.requirement("HOOK-097")
def test_the_reason_for_a_stop_is_that_of_the_hook_that_stops() -> None:
    output = merged(
        BEFORE_TOOL,
        printed({"continue": True, "stopReason": "not mine"}),
        printed({"continue": False, "stopReason": "enough"}),
        printed({"systemMessage": "m"}),
    )

    assert output.stop_reason == "enough"
    assert output.get_effective_reason() == "enough"


ONLY_BLOCKS = {"decision": "deny", "stopReason": "only blocked"}


@pytest.mark.requirement("HOOK-097")
@pytest.mark.parametrize("event", list(HookEventName))
@pytest.mark.parametrize("stop_first", [False, True])
@pytest.mark.parametrize("key", ["stopReason", "reason"])
@pytest.mark.parametrize(
    ("stop", "reason"),
    [({}, "No reason provided"), ({"reason": "enough"}, "enough"), ({"stopReason": "enough"}, "enough")],
)
def test_a_hook_that_only_blocks_gives_no_reason_for_another_hooks_stop(
    event: HookEventName, stop_first: bool, key: str, stop: dict[str, Any], reason: str
) -> None:
    outputs = [printed({"decision": "deny", key: "only blocked"}), printed({"continue": False, **stop})]

    output = merged(event, *(outputs[::-1] if stop_first else outputs))

    assert output.get_stop_reason() == reason


@pytest.mark.parametrize("event", list(HookEventName))
def test_a_stop_keeps_the_form_that_its_hook_gave_it_where_no_other_hook_has_a_reason(event: HookEventName) -> None:
    output = merged(event, printed({"continue": False, "reason": "enough"}), printed({"systemMessage": "m"}))

    assert output.stop_reason is None
    assert output.get_stop_reason() == "enough"


@pytest.mark.requirement("HOOK-097")
async def test_a_tool_that_is_blocked_and_stopped_gets_each_reason_from_its_own_hook(
    config_with: Any, printing: Any
) -> None:
    hooks = [printing(json.dumps(each)) for each in (ONLY_BLOCKS, {"continue": False, "stopReason": "enough"})]

    result = await execute_tool_with_hooks(config_with(BEFORE_TOOL, *hooks), "write_file", {}, lambda _: "ran")

    assert result.llm_content == "only blocked"
    assert result.stop_reason == "enough"


@pytest.mark.requirement("HOOK-016b")
@pytest.mark.parametrize("event", [BEFORE_TOOL, BEFORE_MODEL])
@pytest.mark.parametrize("others", [[], [printed({"systemMessage": "m"})]], ids=["alone", "among others"])
def test_the_stop_reason_of_a_hook_that_only_blocks_is_the_reason_of_its_block(
    event: HookEventName, others: list[Completed]
) -> None:
    output = merged(event, *others, printed(ONLY_BLOCKS))

    assert output.get_blocking_error() == (True, "only blocked")
    assert output.get_stop_reason() is None


@pytest.mark.requirement("HOOK-092", "HOOK-182", "HOOK-190")
@or_events
@pytest.mark.parametrize(
    ("outputs", "decision"),
    [
        ([{"systemMessage": "m"}], "allow"),
        ([{"decision": "approve"}], "allow"),
        ([{"decision": "ask"}], "ask"),
        ([{"decision": "block"}], "block"),
        ([{"decision": "block"}, {"decision": "deny"}, {"decision": "ask"}], "deny"),
        ([{"continue": False}], None),
        ([{"continue": False, "decision": "allow"}], None),
        ([{"continue": False, "decision": "ask"}], "ask"),
        ([{"continue": False, "decision": "deny"}], "deny"),
    ],
)
def test_the_decision_does_not_depend_on_the_number_of_hooks(
    event: HookEventName, outputs: list[dict[str, Any]], decision: str | None
) -> None:
    indifferent = [printed({}), printed({"decision": "allow"}), said("text")]

    for others in ([], indifferent[:1], indifferent):
        assert merged(event, *map(printed, outputs), *others).decision == decision
        assert merged(event, *others, *map(printed, outputs)).decision == decision


@pytest.mark.requirement("HOOK-208", "HOOK-094", "HOOK-095", "HOOK-096")
def test_context_message_and_suppression_of_several_hooks_all_take_effect() -> None:
    output = merged(
        AFTER_TOOL,
        printed({"systemMessage": "m1", "hookSpecificOutput": {"additionalContext": "c1"}}),
        printed({"systemMessage": "m2", "suppressOutput": True, "hookSpecificOutput": {"additionalContext": "c2"}}),
        printed({"systemMessage": "m3", "suppressOutput": False}),
    )

    assert output.get_additional_context() == "c1\nc2"
    assert output.system_message == "m1\nm2\nm3"
    assert output.suppress_output is True
    assert not output.is_blocking_decision()
    assert not output.should_stop_execution()


def test_event_fields_are_merged_in_plan_order_one_level_deep() -> None:
    fields = specific(
        AFTER_TOOL,
        {"a": {"x": 1}, "b": 1, "hookEventName": "AfterTool"},
        {"a": {"y": 2}, "c": 3},
    )

    assert fields == {"a": {"y": 2}, "b": 1, "c": 3, "hookEventName": "AfterTool"}


def test_tool_inputs_are_merged_by_top_level_key_and_no_deeper() -> None:
    fields = specific(
        BEFORE_TOOL,
        {"tool_input": {"path": "/a", "options": {"x": 1}, "mode": "w"}},
        {"other": 1},
        {"tool_input": {"path": "/b", "options": {"y": 2}}},
    )

    assert fields["tool_input"] == {"path": "/b", "options": {"y": 2}, "mode": "w"}


async def test_a_tool_gets_its_original_input_with_the_changes_of_all_parallel_hooks_over_it(
    config_with: Any, printing: Any
) -> None:
    received: list[Any] = []
    changes = [{"path": "/b", "options": {"x": 1}}, {"options": {"y": 2}}, {"new": True}]
    hooks = [printing(json.dumps({"hookSpecificOutput": {"tool_input": change}})) for change in changes]
    original = {"path": "/a", "content": "c", "options": {"z": 0}}

    await execute_tool_with_hooks(config_with(BEFORE_TOOL, *hooks), "write_file", original, received.append)

    assert received == [{"path": "/b", "content": "c", "options": {"y": 2}, "new": True}]
    assert original == {"path": "/a", "content": "c", "options": {"z": 0}}


# Model events: field replacement


@pytest.mark.requirement("HOOK-098", "HOOK-190")
@model_events
def test_later_event_fields_replace_earlier_ones_and_the_rest_stays(event: HookEventName) -> None:
    fields = specific(
        event,
        {"llm_response": {"text": "one"}, "a": {"x": 1}, "b": 1},
        {"llm_response": {"text": "two"}, "a": {"y": 2}},
        {"c": 3},
    )

    assert fields == {"llm_response": {"text": "two"}, "a": {"y": 2}, "b": 1, "c": 3}


@pytest.mark.requirement("HOOK-190")
@model_events
def test_later_common_fields_replace_earlier_ones_instead_of_being_joined(event: HookEventName) -> None:
    output = merged(
        event,
        printed({"reason": "one", "systemMessage": "m1", "suppressOutput": True}),
        printed({"reason": "two", "systemMessage": "m2"}),
    )

    assert output.to_dict() == {"reason": "two", "systemMessage": "m2", "suppressOutput": True}


def test_model_requests_are_merged_by_top_level_key_and_no_deeper() -> None:
    fields = specific(
        BEFORE_MODEL,
        {"llm_request": {"model": "a", "config": {"temperature": 0, "topK": 1}}},
        {"llm_request": {"config": {"temperature": 1}}},
        {"llm_request": {"messages": []}},
    )

    assert fields["llm_request"] == {"model": "a", "config": {"temperature": 1}, "messages": []}


@pytest.mark.requirement("HOOK-098")
@model_events
@pytest.mark.parametrize(
    ("endings", "blocks"),
    [
        ([DENY, ALLOW], False),
        ([ALLOW, DENY], True),
        ([refused("no"), ALLOW], True),
        ([ALLOW, refused("no")], True),
        ([DENY, printed({"decision": "ask"})], False),
        ([DENY, printed({"decision": None})], True),
        ([DENY, printed({"systemMessage": "m"})], True),
        ([DENY, printed({"decision": "unknown"})], True),
    ],
)
def test_an_explicit_decision_is_kept_until_a_later_hook_decides_explicitly(
    event: HookEventName, endings: list[Completed], blocks: bool
) -> None:
    assert merged(event, *endings).is_blocking_decision() is blocks


@pytest.mark.requirement("HOOK-098", "HOOK-064", "HOOK-209")
@model_events
@pytest.mark.parametrize("block", [DENY, refused("policy")])
@pytest.mark.parametrize(
    "implied",
    [
        said("all is well"),
        said("42"),
        said("{broken"),
        failed("warning"),
        failed(),
        Completed(signal="SIGKILL", stderr=b"dying"),
        Completed(timed_out_after=1.0),
    ],
)
def test_an_implied_allow_never_undoes_an_explicit_block(
    event: HookEventName, block: Completed, implied: Completed
) -> None:
    for endings in ([block, implied], [implied, block], [implied, block, implied]):
        output = merged(event, *endings)
        assert output.get_blocking_error() == (True, "policy")


# Tool selection: union


def tool_config(*tool_configs: dict[str, Any]) -> Any:
    return specific(SELECTION, *({"toolConfig": each} for each in tool_configs)).get("toolConfig")


@pytest.mark.parametrize("configs", [[[]], [[], []], [[7], []], [[{"name": "read_file"}]]])
def test_disjoint_explicit_lists_allow_no_tool(configs: list[list[Any]]) -> None:
    assert tool_config(*({"mode": "ANY", "allowedFunctionNames": names} for names in configs)) == {
        "mode": "ANY",
        "allowedFunctionNames": [],
    }


async def test_disjoint_explicit_lists_are_sent_as_no_tool(config_with: Any, printing: Any) -> None:
    hooks = [printing(json.dumps({"hookSpecificOutput": {"toolConfig": {"allowedFunctionNames": []}}}))]
    request = GenerateContentParameters(model="m", contents="hello", config=types.GenerateContentConfig())

    result = await fire_before_tool_selection_hook(config_with(SELECTION, *hooks), request)

    assert result.tool_config is not None
    calling = result.tool_config.function_calling_config
    assert (calling.mode.value, calling.allowed_function_names) == ("NONE", [])


@pytest.mark.requirement("HOOK-190")
def test_tool_selection_carries_stop_message_and_suppression_by_the_or_rules() -> None:
    output = merged(
        SELECTION,
        printed({"continue": False, "stopReason": "enough", "systemMessage": "m1"}),
        printed({"continue": True, "suppressOutput": True, "systemMessage": "m2"}),
        printed({"suppressOutput": False, "hookSpecificOutput": {"toolConfig": {"mode": "ANY"}}}),
    )

    assert output.should_stop_execution()
    assert output.get_effective_reason() == "enough"
    assert output.system_message == "m1\nm2"
    assert output.suppress_output is True
    assert output.hook_specific_output == {"toolConfig": {"mode": "ANY"}}


# The class of the merged output


@pytest.mark.requirement("HOOK-190", "HOOK-200")
@pytest.mark.parametrize("endings", [[printed({})], [printed({}), printed({})]])
@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (BEFORE_TOOL, BeforeToolHookOutput),
        (BEFORE_MODEL, BeforeModelHookOutput),
        (SELECTION, BeforeToolSelectionHookOutput),
    ],
)
def test_the_merged_output_is_of_the_class_of_its_event(
    event: HookEventName, kind: type, endings: list[Completed]
) -> None:
    assert type(merged(event, *endings)) is kind


# Health and policy, and hooks that failed


@pytest.mark.requirement("HOOK-160", "HOOK-213", "HOOK-214")
@pytest.mark.parametrize(
    ("endings", "success", "blocks"),
    [
        ([printed({"decision": "allow"})], True, False),
        ([DENY], True, True),
        ([refused("no")], False, True),
        ([failed("oops")], False, False),
        ([DENY, failed("oops")], False, True),
        ([ALLOW, refused("no")], False, True),
        ([ALLOW, Completed(signal="SIGKILL")], False, False),
        ([ALLOW, Completed(timed_out_after=1.0)], False, False),
        ([Completed(exit_code=0)], True, False),
    ],
)
def test_success_is_about_the_hooks_health_and_the_final_output_about_their_policy(
    endings: list[Completed], success: bool, blocks: bool
) -> None:
    result = aggregated(BEFORE_TOOL, endings)

    assert result.success is success
    assert (result.final_output is not None and result.final_output.is_blocking_decision()) is blocks


@pytest.mark.requirement("HOOK-112", "HOOK-110", "HOOK-214")
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("end", ["exit 1", "kill -KILL $$; sleep 30", "exit 77"])
async def test_only_successful_hooks_are_merged(run_hooks: Any, printing: Any, place: int, end: str) -> None:
    hooks = [printing('{"systemMessage":"one","reason":"r1"}'), printing('{"systemMessage":"two"}')]
    hooks.insert(place, printing('{"decision":"deny","reason":"not read"}', "broken", end))

    result = HookAggregator().aggregate_results(await run_hooks(*hooks), BEFORE_TOOL)

    assert result.final_output is not None
    assert result.final_output.system_message == "one\ntwo"
    assert result.final_output.reason == "r1"
    assert not result.final_output.is_blocking_decision()
    assert not result.success
    assert len(result.errors) == 1
    assert len(result.all_outputs) == 3


@pytest.mark.requirement("HOOK-214", "HOOK-209")
@pytest.mark.parametrize("event", list(HookEventName))
@pytest.mark.parametrize("failure", [failed("oops"), Completed(signal="SIGTERM", stderr=b"oops")])
def test_the_warning_of_a_failed_hook_is_kept_next_to_the_final_output_and_not_in_it(
    event: HookEventName, failure: Completed
) -> None:
    alone = aggregated(event, [failure])
    among = aggregated(event, [printed({"systemMessage": "m"}), failure])

    assert alone.final_output is None
    assert among.final_output is not None
    assert among.final_output.system_message == "m"
    for result in (alone, among):
        assert result.all_outputs[-1].to_dict() == {"decision": "allow", "systemMessage": "Warning: oops"}


@pytest.mark.parametrize("event", list(HookEventName))
def test_hooks_that_all_kept_silent_have_no_final_output(event: HookEventName) -> None:
    result = aggregated(event, [Completed(exit_code=0), Completed(exit_code=0)])

    assert result.success
    assert result.final_output is None
    assert result.all_outputs == []


def test_the_total_duration_is_the_sum_of_the_durations() -> None:
    results = [result_of(printed({}), BEFORE_TOOL, duration) for duration in (1.5, 20.0, 0.25)]

    assert HookAggregator().aggregate_results(results, BEFORE_TOOL).total_duration == pytest.approx(21.75)


async def test_the_batch_record_has_the_wall_time_next_to_the_sum(
    config_with: Any, shell_script: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    config = config_with(AFTER_TOOL, *(shell_script(f"sleep 0.3; echo {number}") for number in range(4)))

    started = time.monotonic()
    await fire_after_tool_hook(config, "read_file", {}, {"llmContent": "x"})
    elapsed = (time.monotonic() - started) * 1000

    (batch,) = [record.__dict__["hook_batch"] for record in caplog.records if "hook_batch" in record.__dict__]
    assert batch["total_duration"] >= 4 * 300
    assert 300 <= batch["wall_time"] <= elapsed


# Events that cannot be blocked (D-11)
