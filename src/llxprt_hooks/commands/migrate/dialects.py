"""Hook settings of other agents: event names, matcher values, units, and differences in behavior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from llxprt_hooks.dialects.claude import Claude
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.other_agents import CLAUDE_EVENTS

NO_SUCH_EVENT: Final = "There is no such event here."

_NOTHING_REACHES_THE_MODEL: Final = "what it prints does not reach the model. To add context, use BeforeModel"
_TEXT_REACHES_THE_MODEL: Final = (
    "plain text on stdout goes to the model, with the tool's result. Send other output, such as a formatter's, "
    "to `>&2` or `>/dev/null`"
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """The format of one agent's hook settings."""

    title: str
    file: str
    """Its settings file in a project."""
    local_file: str
    """The user's own settings file in a project; empty if the agent has none."""
    events: Mapping[str, HookEventName]
    advice: Mapping[str, str]
    """What to do about events without a counterpart."""
    milliseconds: int
    """Milliseconds in its unit of timeouts."""
    values: Mapping[HookEventName, Mapping[str, tuple[str, ...]]]
    """For events that match a fixed set of values: its values, and their counterparts here."""
    differences: Mapping[HookEventName, tuple[str, ...]]
    """How the same hook behaves differently here."""
    general: tuple[str, ...]
    """The same, for all hooks."""


_CLAUDE_ADVICE: Final[Mapping[str, str]] = {
    "PostToolUseFailure": "AfterTool fires for failed tools too; `tool_response` then has `error`.",
    "PostToolBatch": "AfterTool fires after each tool.",
    "PermissionRequest": (
        "Notification reports the question but cannot answer it; to decide about a tool, use BeforeTool."
    ),
    "PermissionDenied": "A tool that is not approved fires no event here.",
    "SubagentStart": "There are no subagents here.",
    "SubagentStop": "There are no subagents here; AfterAgent fires when the agent is done with a prompt.",
    "StopFailure": "AfterAgent fires when the agent is done with a prompt.",
    "PostCompact": "SessionStart with the source `compress` fires afterwards.",
    "Setup": "SessionStart fires when a session begins.",
}


def _claude_values(event: HookEventName) -> dict[str, tuple[str, ...]]:
    """The values of Claude Code that an event may match, each with ours."""
    values: dict[str, tuple[str, ...]] = {}
    for ours in event.spec.matched_values:
        theirs = Claude.words.get(event, {}).get(ours, ours)
        values[theirs] = (*values.get(theirs, ()), ours)
    return values


_SAME_NAME: Final = (HookEventName.SESSION_START, HookEventName.SESSION_END, HookEventName.NOTIFICATION)

CLAUDE: Final = Dialect(
    title="Claude Code",
    file=".claude/settings.json",
    local_file=".claude/settings.local.json",
    events={
        **{name: event for name, event in CLAUDE_EVENTS.items() if event and name not in _CLAUDE_ADVICE},
        **{event.value: event for event in _SAME_NAME},
    },
    advice=_CLAUDE_ADVICE,
    milliseconds=1000,
    values={
        **{event: _claude_values(event) for event in (*_SAME_NAME, HookEventName.PRE_COMPRESS)},
        HookEventName.NOTIFICATION: {
            **_claude_values(HookEventName.NOTIFICATION),
            **dict.fromkeys(("idle_prompt", "auth_success", "elicitation_dialog"), ()),
        },
    },
    differences={
        HookEventName.BEFORE_TOOL: (
            'BeforeTool: with `permissionDecision: "ask"` the call goes ahead here; "deny" and exit code 2 block.',
            'BeforeTool: "allow" does not skip the question that the agent itself asks the user.',
            "BeforeTool: changed arguments are `hookSpecificOutput.tool_input` here, not `updatedInput`.",
            f"BeforeTool: {_TEXT_REACHES_THE_MODEL}.",
        ),
        HookEventName.AFTER_TOOL: (
            "AfterTool: exit code 2 has no effect once a tool has run, and its stderr does not reach the model.",
            "AfterTool: to tell the model something, exit with 0 and print it.",
            f"AfterTool: {_TEXT_REACHES_THE_MODEL}.",
            "AfterTool: it fires for tools that failed, too; `tool_response` then has `error`.",
        ),
        HookEventName.BEFORE_AGENT: (
            f"BeforeAgent: it cannot block a prompt, and {_NOTHING_REACHES_THE_MODEL}; that event can block, too.",
        ),
        HookEventName.AFTER_AGENT: (
            "AfterAgent: exit code 2 does not make the agent go on; the event is for watching.",
        ),
        HookEventName.SESSION_START: (f"SessionStart: {_NOTHING_REACHES_THE_MODEL}.",),
        HookEventName.NOTIFICATION: ("Notification: it fires when a tool needs approval, and for nothing else.",),
    },
    general=(
        "Scripts get tools by the names and with the arguments that they have here: `write_file`, not `Write`.",
        "A hook without `timeout` has 60 seconds here.",
    ),
)

GEMINI: Final = Dialect(
    title="Gemini CLI",
    file=".gemini/settings.json",
    local_file="",
    events={event.value: event for event in HookEventName},
    advice={},
    milliseconds=1,
    values={},
    differences={
        HookEventName.AFTER_TOOL: (
            "AfterTool: a block does not hide the tool's result, and `tool_output` does not replace it.",
            "AfterTool: text can only be added, by `additionalContext`.",
        ),
        HookEventName.AFTER_MODEL: (
            "AfterModel: it fires once, for the whole answer, not for every piece of it; and it cannot block.",
        ),
        HookEventName.BEFORE_AGENT: (
            f"BeforeAgent: it cannot block a prompt, and {_NOTHING_REACHES_THE_MODEL}; that event can block, too.",
        ),
        HookEventName.AFTER_AGENT: (
            "AfterAgent: a block does not make the agent try again; the event is for watching.",
        ),
        HookEventName.SESSION_START: (f"SessionStart: {_NOTHING_REACHES_THE_MODEL}.",),
    },
    general=("`systemMessage` goes to the model here, as plain text does, and is not shown to the user.",),
)

DIALECTS: Final[Mapping[str, Dialect]] = {"claude": CLAUDE, "gemini": GEMINI}
