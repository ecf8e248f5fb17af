"""What the drivers of MCP servers share: they have tools and no model, so a scenario's calls are made one by one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, ClassVar

from mcp_types import ContentBlock, TextContent

from llxprt_hooks.events import HookEventName
from tests.integrations.contract import EFFECTS, WROTE_NOTE, Call, Check, Driver, Outcome, Scenario, ran_normally

CallTool = Callable[[str, dict[str, Any]], Awaitable[Sequence[ContentBlock]]]
"""Call a tool; return its content."""


# What no server of tools can do, and what it does instead.


def later_calls_are_refused(scenario: Scenario, outcome: Outcome) -> None:
    """A server cannot stop its client; it refuses the client's later calls."""
    reason = "budget used up" if not outcome.runs else "enough"
    assert outcome.runs in ([], WROTE_NOTE)
    assert all(reason in result for result in outcome.results)
    assert len(outcome.results) == 2


def result_is_for_the_model(scenario: Scenario, outcome: Outcome) -> None:
    assert outcome.results == ["wrote a.txt"]
    assert outcome.suppressed


def id_of_the_server(scenario: Scenario, outcome: Outcome) -> None:
    """Payloads have the id of the configuration: a connection is not a session."""
    ids = {payload["session_id"] for payload in scenario.project.payloads()}
    assert len(ids) == 1


def context_follows_text(scenario: Scenario, outcome: Outcome) -> None:
    """The data is sent as text, without structured content, which would hide the context."""
    assert '"found"' in outcome.results[0]
    assert outcome.results[0].endswith("run the tests")


def tool_is_hidden(scenario: Scenario, outcome: Outcome) -> None:
    """A client that has not listed the tools cannot call the hidden ones either."""
    assert outcome.runs == []
    assert "write_file may not be called now" in outcome.results[0]
    assert scenario.project.payloads("tool") == []


def no_request_to_change(scenario: Scenario, outcome: Outcome) -> None:
    """Hooks choose from a list of tools here, and not for a request: the tests of each integration show how."""
    assert outcome.error is None
    assert "will not run" not in outcome.said


# Hooks that act: a server sees no later request of a model, and has no question of its own.


def is_full(scenario: Scenario) -> bool:
    settings = json.loads(scenario.project.project_file.read_text())
    return bool(settings["hooksConfig"].get("profile") == "full")


def replaced_by(text: str) -> Check:
    def check(scenario: Scenario, outcome: Outcome) -> None:
        assert (text in outcome.results[0]) is is_full(scenario)
        assert len(outcome.runs) == 1
        assert not is_full(scenario) or not any(own in outcome.results[0] for own in ("wrote", "secret", "no such key"))

    return check


def duration_without_an_id(scenario: Scenario, outcome: Outcome) -> None:
    """MCP has no id that a call's model or agent would know."""
    ran_normally(outcome)
    [before], [after] = scenario.project.payloads("before"), scenario.project.payloads("after")
    assert ("tool_use_id" in before, "duration_ms" in after) == (False, is_full(scenario))


PARTIAL: dict[str, Check] = {
    "acting_permission": lambda scenario, outcome: ran_normally(outcome),
    "acting_result_blocked": replaced_by("not for you"),
    "acting_result_object": replaced_by("something"),
    "acting_failure_replaced": replaced_by("nothing found"),
    "acting_tool_payloads": duration_without_an_id,
    "before_tool_stops": later_calls_are_refused,
    "after_tool_stops": later_calls_are_refused,
    "after_tool_suppresses": result_is_for_the_model,
    "after_tool_context_beside_data": context_follows_text,
    "session_ids": id_of_the_server,
    "selection_holds_for_none": tool_is_hidden,
    **dict.fromkeys(
        ("selection_none", "selection_names", "selection_any", "selection_holds_for_names", "selection_stops"),
        no_request_to_change,
    ),
}

PREFIXES = {
    "before_model_": HookEventName.BEFORE_MODEL,
    "model_payloads": HookEventName.BEFORE_MODEL,
    "stream_flows": HookEventName.BEFORE_MODEL,
    "after_model_": HookEventName.AFTER_MODEL,
    "before_agent": HookEventName.BEFORE_AGENT,
    "after_agent": HookEventName.AFTER_AGENT,
    "session_start": HookEventName.SESSION_START,
    "session_end": HookEventName.SESSION_END,
    "pre_compress": HookEventName.PRE_COMPRESS,
    "notification": HookEventName.NOTIFICATION,
    "acting_prompt": HookEventName.BEFORE_AGENT,
    "acting_session": HookEventName.SESSION_START,
    "acting_continuation": HookEventName.AFTER_AGENT,
    "acting_answer_stops": HookEventName.AFTER_AGENT,
    "acting_context_cleared": HookEventName.AFTER_AGENT,
    "acting_compression": HookEventName.PRE_COMPRESS,
    "acting_model_answer_blocked": HookEventName.AFTER_MODEL,
    "acting_model_answered": HookEventName.BEFORE_MODEL,
    "acting_model_secret": HookEventName.BEFORE_MODEL,
}
IMPOSSIBLE = {
    effect.name: event for effect in EFFECTS for prefix, event in PREFIXES.items() if effect.name.startswith(prefix)
}


class McpDriver(Driver):
    """Runs the calls of a scenario through a server of tools."""

    acts = True
    partial: ClassVar[dict[str, Check]] = PARTIAL
    impossible: ClassVar[dict[str, HookEventName]] = IMPOSSIBLE

    async def run_calls(self, scenario: Scenario, call: CallTool) -> Outcome:
        outcome = Outcome(runs=scenario.tools.runs)
        for turn in scenario.turns:
            calls: Sequence[Call] = [] if isinstance(turn, str) else [turn] if isinstance(turn, Call) else turn
            results = await asyncio.gather(*(call(each.name, each.args) for each in calls))
            outcome.results += map(text_of, results)
            blocks = [block for result in results for block in result]
            outcome.suppressed |= bool(blocks) and all(_is_for_model(block) for block in blocks)
        return outcome


POSSIBLE = [effect for effect in EFFECTS if effect.name not in IMPOSSIBLE]


def text_of(content: Iterable[ContentBlock]) -> str:
    return "\n\n".join(block.text for block in content if isinstance(block, TextContent))


def _is_for_model(block: ContentBlock) -> bool:
    return block.annotations is not None and block.annotations.audience == ["assistant"]
