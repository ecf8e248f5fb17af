"""What a hook said, field by field, and what each output class makes of it."""

from __future__ import annotations

import json
import logging
import os
from typing import Any

import pytest
from google.genai import types
from hypothesis import given

from llxprt_hooks import (
    AfterModelHookOutput,
    BeforeModelHookOutput,
    BeforeToolHookOutput,
    BeforeToolSelectionHookOutput,
    DefaultHookOutput,
    GenerateContentParameters,
    HookEventName,
    create_hook_output,
    fire_before_model_hook,
    fire_before_tool_hook,
)
from llxprt_hooks.core.protocol.exit_codes import read_outcome
from llxprt_hooks.core.protocol.model_outputs import OUTPUTS, make_output
from llxprt_hooks.process import Completed
from tests.support.endings import hook_fields, merged, printed

# The common fields

Fields = dict[str, Any]


@pytest.mark.requirement("HOOK-157")
def test_an_output_has_the_common_fields_under_their_names_on_the_wire() -> None:
    fields = {
        "decision": "deny",
        "reason": "why",
        "continue": False,
        "stopReason": "enough",
        "suppressOutput": True,
        "systemMessage": "to the model",
        "hookSpecificOutput": {"additionalContext": "more"},
    }

    output = DefaultHookOutput(fields)

    assert output.decision == "deny"
    assert output.reason == "why"
    assert output.continue_ is False
    assert output.stop_reason == "enough"
    assert output.suppress_output is True
    assert output.system_message == "to the model"
    assert output.hook_specific_output == {"additionalContext": "more"}
    assert output.to_dict() == fields


@pytest.mark.requirement("HOOK-157")
def test_an_empty_output_has_no_fields() -> None:
    output = DefaultHookOutput({})

    assert output.to_dict() == {}
    assert not output.is_blocking_decision()
    assert not output.should_stop_execution()
    assert output.get_additional_context() is None
    assert output.get_blocking_error() == (False, "")


@pytest.mark.requirement("HOOK-158", "HOOK-182", "HOOK-018", "HOOK-016b")
@pytest.mark.parametrize(
    ("fields", "blocks"),
    [
        ({"decision": "block"}, True),
        ({"decision": "deny"}, True),
        ({"decision": "allow"}, False),
        ({"decision": "approve"}, False),
        ({"decision": "ask"}, False),
        ({"decision": None}, False),
        ({}, False),
    ],
)
@pytest.mark.parametrize("event", [HookEventName.BEFORE_TOOL, HookEventName.BEFORE_MODEL, HookEventName.BEFORE_AGENT])
def test_only_block_and_deny_block(event: HookEventName, fields: dict[str, Any], blocks: bool) -> None:
    output = merged(event, printed(fields))

    assert output.is_blocking_decision() is blocks
    assert output.get_blocking_error().blocked is blocks


# Malformed fields (D-04)

WRONG_TYPES: dict[str, list[Any]] = {
    "decision": ["DENY", "Block", "no", "", 1, True, ["deny"], {"deny": True}],
    "reason": [7, True, ["x"], {"a": 1}],
    "continue": ["false", 0, 1, [], {}],
    "stopReason": [7, False, [], {}],
    "suppressOutput": ["true", 1, 0, []],
    "systemMessage": [7, True, ["x"], {}],
    "hookSpecificOutput": ["x", 7, True, [{"tool_input": {}}]],
}
WRONG_FIELDS = [(name, value) for name, values in WRONG_TYPES.items() for value in values]

WRONG_SPECIFIC_TYPES: dict[str, list[Any]] = {
    "additionalContext": [7, ["x"], {}],
    "permissionDecision": ["DENY", 1, ["deny"]],
    "permissionDecisionReason": [7, ["x"], {}],
    "tool_input": ["x", 7, [1]],
    "llm_request": ["x", 7, [1]],
    "llm_response": ["x", 7, [1]],
    "toolConfig": ["x", 7, ["read_file"]],
}
WRONG_SPECIFIC_FIELDS = [(name, value) for name, values in WRONG_SPECIFIC_TYPES.items() for value in values]


@pytest.mark.requirement("HOOK-157", "HOOK-110")
@pytest.mark.parametrize(("name", "value"), WRONG_FIELDS)
def test_a_field_of_the_wrong_type_is_ignored_alone_and_listed(name: str, value: Any) -> None:
    well_formed = {
        "decision": "deny",
        "reason": "why",
        "continue": False,
        "stopReason": "enough",
        "suppressOutput": True,
        "systemMessage": "message",
        "hookSpecificOutput": {"additionalContext": "more"},
    }

    output = read_outcome(printed({**well_formed, name: value})).output

    assert output is not None
    assert output.to_dict() == {key: field for key, field in well_formed.items() if key != name}
    assert [name in problem for problem in output.problems] == [True]


@pytest.mark.parametrize(("name", "value"), WRONG_SPECIFIC_FIELDS)
def test_an_event_field_of_the_wrong_type_is_ignored_alone_and_listed(name: str, value: Any) -> None:
    well_formed = {
        "additionalContext": "more",
        "permissionDecision": "deny",
        "permissionDecisionReason": "why",
        "tool_input": {"a": 1},
        "llm_request": {"model": "m"},
        "llm_response": {"text": "t"},
        "toolConfig": {"mode": "ANY"},
    }

    output = DefaultHookOutput({"decision": "deny", "hookSpecificOutput": {**well_formed, name: value}})

    assert output.decision == "deny"
    assert output.hook_specific_output == {key: field for key, field in well_formed.items() if key != name}
    assert [name in problem for problem in output.problems] == [True]


@pytest.mark.parametrize(
    ("tool_config", "kept"),
    [
        ({"mode": "none", "allowedFunctionNames": ["a"]}, {"allowedFunctionNames": ["a"]}),
        ({"mode": 7, "allowedFunctionNames": ["a"]}, {"allowedFunctionNames": ["a"]}),
        ({"mode": "ANY", "allowedFunctionNames": "a"}, {"mode": "ANY"}),
        ({"mode": "ANY", "allowedFunctionNames": ["a", 7, None]}, {"mode": "ANY", "allowedFunctionNames": ["a"]}),
        ({"allowedFunctionNames": [{"name": "a"}]}, {"allowedFunctionNames": []}),
    ],
)
def test_what_is_malformed_in_a_tool_configuration_is_ignored_alone_and_listed(
    tool_config: dict[str, Any], kept: dict[str, Any]
) -> None:
    output = DefaultHookOutput({"hookSpecificOutput": {"toolConfig": tool_config}})

    assert output.hook_specific_output == {"toolConfig": kept}
    assert len(output.problems) == 1


@pytest.mark.parametrize(
    "specific",
    [
        {"llm_request": "secret"},
        {"llm_request": {"model": ["secret"], "messages": "secret", "config": "secret"}},
        {"llm_request": {"toolConfig": {"mode": "secret", "allowedFunctionNames": "secret"}}},
        {"llm_response": "secret"},
        {"tool_input": "secret"},
        {"additionalContext": ["secret"]},
    ],
)
def test_a_warning_does_not_quote_what_a_hook_may_have_been_written_to_hide(
    specific: dict[str, Any],
) -> None:
    problems = " ".join(DefaultHookOutput({"hookSpecificOutput": specific}).problems)

    assert "is ignored: expected" in problems
    assert "secret" not in problems


def test_a_warning_about_an_unknown_decision_quotes_it() -> None:
    [problem] = DefaultHookOutput({"decision": "reject"}).problems

    assert "found 'reject'" in problem


async def test_what_is_malformed_in_a_model_request_is_reported_once(
    config_with: Any, printing: Any, caplog: pytest.LogCaptureFixture
) -> None:
    changes = {"model": "", "messages": 7, "toolConfig": {"mode": "SOME", "allowedFunctionNames": ["a", 7]}}
    hook = printing(json.dumps({"hookSpecificOutput": {"llm_request": changes}}))

    result = await fire_before_model_hook(
        config_with(HookEventName.BEFORE_MODEL, hook), GenerateContentParameters(model="m", contents="hello")
    )

    assert result.modified_request is not None
    assert result.modified_request.model == "m"
    for field in ("llm_request.model`", "llm_request.messages`", "toolConfig.mode`", "allowedFunctionNames`"):
        assert caplog.text.count(field) == 1, field


def test_null_counts_as_absent_without_a_warning() -> None:
    specific_nulls = dict.fromkeys(WRONG_SPECIFIC_TYPES)

    output = DefaultHookOutput({**dict.fromkeys(WRONG_TYPES), "hookSpecificOutput": specific_nulls})

    assert output.to_dict() == {"hookSpecificOutput": {}}
    assert (output.problems, output.unclear) == ([], None)


def test_unknown_fields_are_kept_in_the_event_specific_output_and_ignored_elsewhere() -> None:
    own = {"hookEventName": "BeforeTool", "vendor": {"x": [1, None]}, "updatedInput": "y"}

    output = DefaultHookOutput({"decision": "deny", "vendor": 1, "blocked": False, "hookSpecificOutput": own})

    assert output.to_dict() == {"decision": "deny", "hookSpecificOutput": own}
    assert (output.problems, output.unclear, output.unknown) == (
        [],
        None,
        ("vendor", "blocked", "hookSpecificOutput.vendor", "hookSpecificOutput.updatedInput"),
    )


@pytest.mark.requirement("HOOK-016b")
@pytest.mark.parametrize("depth", [*range(900, 1000, 4), 5000])
@pytest.mark.parametrize("name", ["reason", "hookSpecificOutput"])
def test_a_malformed_field_however_deep_costs_no_decision(depth: int, name: str) -> None:
    # Any depth at which a value can still be read but no longer be shown must not matter.
    stdout = f'{{"{name}":{"[" * depth}{"]" * depth},"decision":"deny"}}'.encode()

    for frames in range(4):
        assert _read_below(frames, stdout).is_blocking_decision()


def _read_below(frames: int, stdout: bytes) -> Any:
    """Read with some more of the stack in use, so that every distance from its end has its turn."""
    return _read_below(frames - 1, stdout) if frames else read_outcome(Completed(exit_code=0, stdout=stdout)).output


@pytest.mark.requirement("HOOK-016b")
async def test_what_is_logged_of_an_output_however_deep_costs_no_decision(config_with: Any, printing: Any) -> None:
    lost = []
    with open(os.devnull, "w") as nowhere:
        shown = logging.StreamHandler(nowhere)
        logger = logging.getLogger("llxprt:core:hooks:handler")
        logger.addHandler(shown)
        logger.setLevel(logging.DEBUG)
        try:
            for depth in range(920, 980):
                deep = "[" * depth + "]" * depth
                stdout = f'{{"hookSpecificOutput":{{"x":{deep}}},"decision":"deny"}}'
                config = config_with(HookEventName.BEFORE_TOOL, printing(stdout))
                output = await fire_before_tool_hook(config, "write_file", {})
                if output is None or not output.is_blocking_decision():
                    lost.append(depth)
        finally:
            logger.removeHandler(shown)
            logger.setLevel(logging.NOTSET)
    assert lost == []


@given(hook_fields)
def test_any_fields_make_an_output_whose_own_fields_are_well_formed(fields: dict[str, Any]) -> None:
    output = DefaultHookOutput(fields)

    assert output.decision in (None, "ask", "block", "deny", "approve", "allow")
    for text in (output.reason, output.stop_reason, output.system_message, output.get_additional_context()):
        assert text is None or isinstance(text, str)
    for switch in (output.continue_, output.suppress_output):
        assert switch is None or isinstance(switch, bool)
    assert isinstance(output.get_effective_reason(), str)
    assert DefaultHookOutput(output.to_dict()) == output


def test_outputs_are_equal_if_their_class_and_their_fields_are() -> None:
    fields = {"decision": "deny", "reason": "no"}

    assert DefaultHookOutput(fields) == DefaultHookOutput({**fields, "unknown": 1})
    assert DefaultHookOutput(fields) != DefaultHookOutput({"decision": "deny"})
    assert DefaultHookOutput(fields) != BeforeToolHookOutput(fields)
    assert DefaultHookOutput(fields) != fields


# The effective reason (D-10)


@pytest.mark.requirement("HOOK-016b")
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"decision": "deny", "reason": "r", "stopReason": "s"}, "r"),
        ({"decision": "block", "reason": "r", "stopReason": "s", "continue": False}, "r"),
        ({"decision": "deny", "stopReason": "s"}, "s"),
        ({"decision": "deny", "reason": "", "stopReason": "s"}, "s"),
        ({"decision": "deny"}, "No reason provided"),
        ({"continue": False, "reason": "r", "stopReason": "s"}, "s"),
        ({"continue": False, "reason": "r"}, "r"),
        ({"continue": False, "reason": "r", "stopReason": ""}, "r"),
        ({"continue": False}, "No reason provided"),
        ({"decision": "allow", "reason": "r", "stopReason": "s"}, "s"),
        ({"decision": "allow", "reason": "r"}, "r"),
        ({}, "No reason provided"),
    ],
)
@pytest.mark.parametrize("kind", [DefaultHookOutput, BeforeToolHookOutput, BeforeModelHookOutput, AfterModelHookOutput])
def test_effective_reason_prefers_reason_for_blocks_and_stop_reason_otherwise(
    kind: type[DefaultHookOutput], fields: dict[str, Any], reason: str
) -> None:
    assert kind(fields).get_effective_reason() == reason


# BeforeTool and its compatibility fields


@pytest.mark.requirement("HOOK-169", "HOOK-199")
@pytest.mark.parametrize(
    ("permission", "decision", "blocks"),
    [
        ("block", None, True),
        ("deny", None, True),
        ("deny", "allow", True),
        ("allow", None, False),
        ("ask", None, False),
        ("allow", "deny", True),
        ("DENY", None, False),
        (None, None, False),
    ],
)
def test_a_permission_decision_blocks_a_tool_as_a_decision_does(
    permission: str | None, decision: str | None, blocks: bool
) -> None:
    fields = {"decision": decision, "hookSpecificOutput": {"permissionDecision": permission}}

    assert BeforeToolHookOutput(fields).is_blocking_decision() is blocks
    assert merged(HookEventName.BEFORE_TOOL, printed(fields)).is_blocking_decision() is blocks


@pytest.mark.requirement("HOOK-170", "HOOK-199")
@pytest.mark.parametrize("decision", ["deny", "allow"])
def test_the_permission_reason_of_a_tool_comes_first(decision: str) -> None:
    fields = {
        "decision": decision,
        "reason": "r",
        "stopReason": "s",
        "hookSpecificOutput": {"permissionDecision": decision, "permissionDecisionReason": "p"},
    }

    assert BeforeToolHookOutput(fields).get_effective_reason() == "p"
    assert merged(HookEventName.BEFORE_TOOL, printed(fields)).get_effective_reason() == "p"


@pytest.mark.requirement("HOOK-170", "HOOK-199")
@pytest.mark.parametrize("reason", [7, ["p"], None])
def test_a_permission_reason_that_is_not_text_leaves_the_reason_in_force(reason: Any) -> None:
    output = BeforeToolHookOutput(
        {"reason": "r", "hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": reason}}
    )

    assert output.get_blocking_error() == (True, "r")


@pytest.mark.requirement("HOOK-169", "HOOK-170")
@pytest.mark.parametrize("event", [event for event in HookEventName if event is not HookEventName.BEFORE_TOOL])
def test_the_permission_fields_mean_nothing_for_any_other_event(event: HookEventName) -> None:
    fields = {"reason": "r", "hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "p"}}

    output = merged(event, printed(fields))

    assert not output.is_blocking_decision()
    assert output.get_effective_reason() == "r"


def permission(decision: str, reason: str) -> Fields:
    return {"hookSpecificOutput": {"permissionDecision": decision, "permissionDecisionReason": reason}}


@pytest.mark.requirement("HOOK-171")
@pytest.mark.parametrize(
    "denying",
    [{"decision": "deny", "reason": "no"}, permission("deny", "no"), permission("block", "no")],
    ids=["decision", "deny", "block"],
)
@pytest.mark.parametrize("other", [permission("allow", "fine"), permission("ask", "really?"), {"decision": "allow"}])
def test_a_deny_is_final_wherever_it_is_among_other_hooks(denying: Fields, other: Fields) -> None:
    for outputs in ([denying], [denying, other], [other, denying], [other, denying, other]):
        output = merged(HookEventName.BEFORE_TOOL, *map(printed, outputs))

        assert output.decision in ("deny", "block")
        assert output.is_blocking_decision()
        assert output.get_effective_reason() == "no"


def test_ask_beats_allow_among_permission_decisions() -> None:
    output = merged(HookEventName.BEFORE_TOOL, *map(printed, [permission("ask", "really?"), permission("allow", "")]))

    assert (output.decision, output.permission_decision) == ("ask", "ask")


def test_the_stop_reason_of_a_permission_denial_is_its_reason() -> None:
    output = merged(HookEventName.BEFORE_TOOL, printed({"stopReason": "no prod", **permission("deny", "")}))

    assert output.get_effective_reason() == "no prod"


@pytest.mark.requirement("HOOK-200")
def test_the_factory_makes_no_before_tool_output_but_the_aggregator_does() -> None:
    fields = {"hookSpecificOutput": {"permissionDecision": "block"}}

    by_factory = create_hook_output("BeforeTool", fields)
    by_aggregator = make_output(HookEventName.BEFORE_TOOL, fields)

    assert type(by_factory) is DefaultHookOutput
    assert by_factory.is_blocking_decision() is False
    assert type(by_aggregator) is BeforeToolHookOutput
    assert by_aggregator.is_blocking_decision() is True
    assert BeforeToolHookOutput(fields).is_blocking_decision() is True
    assert type(merged(HookEventName.BEFORE_TOOL, printed(fields))) is BeforeToolHookOutput


@pytest.mark.requirement("HOOK-200")
@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ("BeforeModel", BeforeModelHookOutput),
        ("AfterModel", AfterModelHookOutput),
        ("BeforeToolSelection", BeforeToolSelectionHookOutput),
        ("AfterTool", DefaultHookOutput),
        ("SessionStart", DefaultHookOutput),
        ("AnEventOfTomorrow", DefaultHookOutput),
    ],
)
def test_the_factory_and_the_aggregator_agree_on_every_other_event(event: str, kind: type) -> None:
    assert type(create_hook_output(event, {})) is kind
    if event in list(HookEventName):
        assert OUTPUTS[HookEventName(event).spec.output] is kind


def test_a_tool_input_of_a_hook_is_the_one_it_gave() -> None:
    changed = BeforeToolHookOutput({"hookSpecificOutput": {"tool_input": {"a": {"b": 1}}}})

    assert changed.get_modified_tool_input() == {"a": {"b": 1}}
    assert BeforeToolHookOutput({}).get_modified_tool_input() is None


# The model events

ANSWER = {"candidates": [{"content": {"role": "model", "parts": ["instead"]}, "finishReason": "STOP"}]}


def text_of(response: Any) -> str:
    assert isinstance(response, types.GenerateContentResponse)
    return response.text or ""


@pytest.mark.requirement("HOOK-194")
@pytest.mark.parametrize("fields", [{"decision": "deny"}, {"continue": False, "stopReason": "enough"}, {}])
def test_a_synthetic_response_is_there_only_if_the_hook_gave_one(fields: dict[str, Any]) -> None:
    with_answer = BeforeModelHookOutput({**fields, "hookSpecificOutput": {"llm_response": ANSWER}})
    without = BeforeModelHookOutput({**fields, "hookSpecificOutput": {"llm_request": {"model": "m"}}})

    assert text_of(with_answer.get_synthetic_response()) == "instead"
    assert without.get_synthetic_response() is None
    assert BeforeModelHookOutput(fields).get_synthetic_response() is None


@pytest.mark.requirement("HOOK-194")
def test_a_stop_after_the_model_makes_a_response_of_its_reason() -> None:
    stopped = AfterModelHookOutput({"continue": False, "stopReason": "enough"})
    answered = AfterModelHookOutput({"continue": False, "hookSpecificOutput": {"llm_response": ANSWER}})

    assert "enough" in text_of(stopped.get_modified_response())
    assert text_of(answered.get_modified_response()) == "instead"
    assert AfterModelHookOutput({"decision": "deny", "reason": "r"}).get_modified_response() is None
    assert AfterModelHookOutput({}).get_modified_response() is None


# BeforeToolSelection


@pytest.mark.requirement("HOOK-167", "HOOK-168")
@pytest.mark.parametrize(
    ("tool_config", "mode", "names"),
    [
        ({"mode": "ANY", "allowedFunctionNames": ["read_file"]}, "ANY", ["read_file"]),
        ({"mode": "NONE"}, "NONE", []),
        ({"allowedFunctionNames": ["read_file"]}, "AUTO", ["read_file"]),
    ],
)
def test_tools_are_restricted_by_the_tool_configuration_and_never_removed(
    tool_config: dict[str, Any], mode: str, names: list[str]
) -> None:
    declared = types.Tool(
        function_declarations=[
            types.FunctionDeclaration(name="read_file"),
            types.FunctionDeclaration(name="write_file"),
        ]
    )
    tools = [declared]
    output = BeforeToolSelectionHookOutput({"hookSpecificOutput": {"toolConfig": tool_config}})

    changed, same_tools = output.apply_tool_config_modifications(None, tools)

    assert changed.function_calling_config.mode.value == mode
    assert changed.function_calling_config.allowed_function_names == names
    assert same_tools is tools
    assert tools == [declared]
    assert [each.name for each in declared.function_declarations or []] == ["read_file", "write_file"]


@pytest.mark.requirement("HOOK-167")
@pytest.mark.parametrize("fields", [{}, {"hookSpecificOutput": {}}, {"hookSpecificOutput": {"toolConfig": {}}}])
def test_an_output_without_tools_keeps_the_tool_configuration(fields: dict[str, Any]) -> None:
    given_config, tools = types.ToolConfig(), [types.Tool()]

    assert BeforeToolSelectionHookOutput(fields).apply_tool_config_modifications(given_config, tools) == (
        given_config,
        tools,
    )


def test_an_output_is_for_the_sdk_that_it_was_made_for_unless_another_is_named() -> None:
    output = BeforeModelHookOutput({}, translator="openai-chat")

    assert output.using(None).translator is output.translator
    assert output.using("anthropic-messages").translator is not output.translator
