"""What this folder's tests share: endings of hooks, read and merged by the engine's own parts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from llxprt_hooks.core.engine.aggregator import HookAggregator
from llxprt_hooks.core.executors import EventRun, HookRun, Runtime
from llxprt_hooks.core.executors.command import CommandSpec
from llxprt_hooks.events import HookEventName
from llxprt_hooks.process import Completed
from llxprt_hooks.settings.definitions import HookConfig

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.results import AggregatedHookResult, HookExecutionResult
    from llxprt_hooks.core.protocol.outputs import DefaultHookOutput

OR_EVENTS = (
    HookEventName.BEFORE_TOOL,
    HookEventName.AFTER_TOOL,
    HookEventName.BEFORE_AGENT,
    HookEventName.AFTER_AGENT,
    HookEventName.SESSION_START,
)
MODEL_EVENTS = (HookEventName.BEFORE_MODEL, HookEventName.AFTER_MODEL)

A_HOOK = HookConfig("command", CommandSpec("a-hook"))


def printed(fields: object) -> Completed:
    """A hook that printed a JSON value and exited with 0."""
    return Completed(exit_code=0, stdout=json.dumps(fields).encode())


def said(text: str) -> Completed:
    """A hook that printed plain text and exited with 0."""
    return Completed(exit_code=0, stdout=text.encode())


def refused(reason: str = "") -> Completed:
    """A hook that exited with 2."""
    return Completed(exit_code=2, stderr=reason.encode())


def failed(warning: str = "") -> Completed:
    """A hook that exited with 1."""
    return Completed(exit_code=1, stderr=warning.encode())


def result_of(ending: Completed, event: HookEventName, duration: float = 1.0) -> HookExecutionResult:
    """The record of a hook whose process ended so."""
    run = HookRun(A_HOOK, EventRun(event, {}, Runtime(lambda scope: {}, lambda: "/")))
    return replace(run.ended(ending), duration=duration)


def aggregated(event: HookEventName, endings: Iterable[Completed]) -> AggregatedHookResult:
    """The result of an event whose hooks ended so, in plan order."""
    return HookAggregator().aggregate_results([result_of(ending, event) for ending in endings], event)


def merged(event: HookEventName, *endings: Completed) -> DefaultHookOutput:
    """The final output of an event whose hooks ended so; there must be one."""
    output = aggregated(event, endings).final_output
    assert output is not None
    return output


def specific(event: HookEventName, *fields: Mapping[str, Any]) -> dict[str, Any]:
    """The merged ``hookSpecificOutput`` of hooks that printed these."""
    output = merged(event, *(printed({"hookSpecificOutput": each}) for each in fields))
    assert output.hook_specific_output is not None
    return output.hook_specific_output


# Any JSON value; texts include lone surrogates, which Python can hold and JSON can write.
any_text = st.text(st.characters(), max_size=12)
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=5,
)

decisions = st.sampled_from(["block", "deny", "allow", "approve", "ask", "DENY", "blocked", "", None]) | any_json
modes = st.sampled_from(["AUTO", "ANY", "NONE", "none"]) | any_json
tool_configs = st.fixed_dictionaries(
    {}, optional={"mode": modes, "allowedFunctionNames": st.lists(st.sampled_from("abcd") | any_json) | any_json}
)
specifics = st.fixed_dictionaries(
    {},
    optional={
        "permissionDecision": decisions,
        "permissionDecisionReason": any_text | any_json,
        "additionalContext": any_text | any_json,
        "tool_input": st.dictionaries(st.sampled_from("abc"), any_json) | any_json,
        "llm_request": st.fixed_dictionaries({}, optional={"model": any_json, "toolConfig": tool_configs}) | any_json,
        "llm_response": any_json,
        "toolConfig": tool_configs | any_json,
        "somethingElse": any_json,
    },
)
hook_fields = st.fixed_dictionaries(
    {},
    optional={
        "decision": decisions,
        "reason": any_text | any_json,
        "continue": st.booleans() | any_json,
        "stopReason": any_text | any_json,
        "suppressOutput": st.booleans() | any_json,
        "systemMessage": any_text | any_json,
        "hookSpecificOutput": specifics | any_json,
        "somethingElse": any_json,
    },
)
"""What a hook may print as its output: every field right, wrong or left out."""
