"""What an output does, in words: true to what callers make of it."""

from __future__ import annotations

from typing import Any

import pytest

from llxprt_hooks import HookEventName
from llxprt_hooks.commands.fire import effects
from llxprt_hooks.core.protocol.model_outputs import OUTPUTS
from tests.support.replies import DENY, STOP

E = HookEventName


def specific(**fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": fields}


CASES: dict[str, tuple[HookEventName, dict[str, Any], list[str]]] = {
    "nothing": (E.BEFORE_TOOL, {}, []),
    "allow": (E.BEFORE_TOOL, {"decision": "allow", "reason": "why not"}, []),
    "ask": (E.BEFORE_TOOL, {"decision": "ask"}, []),
    "block a tool": (E.BEFORE_TOOL, DENY, ["blocks it: not today"]),
    "block a model call": (E.BEFORE_MODEL, {"decision": "block"}, ["blocks it: No reason provided"]),
    "block by permission": (
        E.BEFORE_TOOL,
        specific(permissionDecision="deny", permissionDecisionReason="not yours"),
        ["blocks it: not yours"],
    ),
    "permission is for tools": (E.BEFORE_MODEL, specific(permissionDecision="deny"), []),
    "a tool that has run cannot be blocked": (E.AFTER_TOOL, DENY, []),
    "an answer cannot be blocked": (E.AFTER_MODEL, DENY, []),
    "a selection cannot be blocked": (E.BEFORE_TOOL_SELECTION, DENY, []),
    "stop": (E.AFTER_TOOL, STOP, ["stops the agent: enough"]),
    "block and stop": (E.BEFORE_TOOL, {**DENY, **STOP}, ["blocks it: not today", "stops the agent: enough"]),
    "rewrite": (E.BEFORE_TOOL, specific(tool_input={"a": 1}), ['rewrites the arguments: {"a":1}']),
    "no rewrite of what is blocked": (
        E.BEFORE_TOOL,
        {**DENY, **specific(tool_input={"a": 1})},
        ["blocks it: not today"],
    ),
    "no rewrite of what has run": (E.AFTER_TOOL, specific(tool_input={"a": 1}), []),
    "inject": (E.AFTER_TOOL, specific(additionalContext="mind\nthe gap"), ["adds for the model: mind the gap"]),
    "inject before": (E.BEFORE_TOOL, specific(additionalContext="mind the gap"), []),
    "change a request": (
        E.BEFORE_MODEL,
        specific(llm_request={"model": "x", "config": {"temperature": 0}}),
        ["changes the request: model, config"],
    ),
    "no change of a blocked request": (
        E.BEFORE_MODEL,
        {**DENY, **specific(llm_request={"model": "x"})},
        ["blocks it: not today"],
    ),
    "answer": (
        E.BEFORE_MODEL,
        {**DENY, **specific(llm_response={"text": "Paris"})},
        ["blocks it: not today", "answers instead of the model"],
    ),
    "answer and stop": (
        E.BEFORE_MODEL,
        {**STOP, **specific(llm_response={"text": "Paris"})},
        ["stops the agent: enough", "answers instead of the model"],
    ),
    "no answer without a block": (E.BEFORE_MODEL, specific(llm_response={"text": "Paris"}), []),
    "redact": (E.AFTER_MODEL, specific(llm_response={"text": "x"}), ["replaces the response"]),
    "restrict": (
        E.BEFORE_TOOL_SELECTION,
        specific(toolConfig={"mode": "AUTO", "allowedFunctionNames": ["a", "b"]}),
        ["allows only: a, b"],
    ),
    "no tool by mode": (E.BEFORE_TOOL_SELECTION, specific(toolConfig={"mode": "NONE"}), ["allows no tool"]),
    "no tool by list": (
        E.BEFORE_TOOL_SELECTION,
        specific(toolConfig={"allowedFunctionNames": []}),
        ["allows no tool"],
    ),
    "mode": (E.BEFORE_TOOL_SELECTION, specific(toolConfig={"mode": "ANY"}), ["sets the tool mode to ANY"]),
    "message": (E.BEFORE_MODEL, {"systemMessage": "be kind"}, ["tells the model: be kind"]),
    "message that nobody waits for": (E.SESSION_START, {"systemMessage": "be kind"}, []),
    "hide": (E.AFTER_TOOL, {"suppressOutput": True}, ["hides it from the screen"]),
    "hide an answer": (E.AFTER_MODEL, {"suppressOutput": True}, ["hides it from the screen"]),
    "nothing to hide yet": (E.BEFORE_TOOL, {"suppressOutput": True}, []),
    "fields of the wrong type": (E.BEFORE_TOOL_SELECTION, specific(toolConfig=["a"], additionalContext=7), []),
    "a long text is cut": (E.BEFORE_TOOL, {"systemMessage": "x" * 500}, ["tells the model: " + "x" * 99 + "…"]),
}


@pytest.mark.parametrize(("event", "output", "expected"), CASES.values(), ids=CASES)
def test_effects_are_those_that_callers_honor(
    event: HookEventName, output: dict[str, Any], expected: list[str]
) -> None:
    assert effects(event, OUTPUTS[event.spec.output](output)) == expected
