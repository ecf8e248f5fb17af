"""Output of a non-interactive run: plain text, one JSON object, or one JSON object per line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from llxprt_hooks.agent.audience import AgentEvent, AnswerText, Audience, ModelBlocked, Stopped, ToolState, WarningEvent
from llxprt_hooks.agent.scheduler import CallState, CallStatus, ToolCall
from llxprt_hooks.cli.terminal import print_json
from llxprt_hooks.protocol.json_codec import decode_text, write_json
from llxprt_hooks.text import PROSE, escape_for_terminal, shorten

if TYPE_CHECKING:
    from llxprt_hooks.agent.session import Outcome, Session
    from llxprt_hooks.agent.tally import HookTally


_LONGEST_NAME = 100


class RunOutput(Audience, Protocol):
    """An audience that also prints the summary of a run."""

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Print the end of the run."""


class TextOutput:
    """Prints answers to stdout as they arrive, and other events to stderr.

    Answers are escaped for a terminal even if stdout is a file: files and pipes are often shown on one later.
    """

    def __init__(self) -> None:
        self._within_line = False

    def handle(self, event: AgentEvent) -> None:
        if isinstance(event, AnswerText):
            print(escape_for_terminal(event.text.replace("\r\n", "\n"), keep=PROSE), end="", flush=True)
            self._within_line = not event.text.endswith("\n")
        else:
            self._end_line()
            print_event(event)

    def finish(self, summary: Mapping[str, Any]) -> None:
        """End the line of an interrupted answer."""
        self._end_line()

    def _end_line(self) -> None:
        if self._within_line:
            print(flush=True)
            self._within_line = False


class JsonOutput:
    """Prints one object at the end."""

    def handle(self, event: AgentEvent) -> None:
        # The object has the reason of a blocked call, but not the hook.
        is_blocked_call = isinstance(event, ToolState) and event.call.status is CallStatus.BLOCKED
        if is_blocked_call or isinstance(event, (ModelBlocked, Stopped, WarningEvent)):
            print_event(event)

    def finish(self, summary: Mapping[str, Any]) -> None:
        print_json(summary)


class StreamJsonOutput:
    """Prints one object per event, and the summary at the end."""

    def handle(self, event: AgentEvent) -> None:
        print_json(event.to_dict())
        if isinstance(event, (ModelBlocked, Stopped, WarningEvent)):
            print_event(event)

    def finish(self, summary: Mapping[str, Any]) -> None:
        print_json({"type": "result", **summary})


OUTPUTS: Mapping[str, Callable[[], RunOutput]] = {
    "text": TextOutput,
    "json": JsonOutput,
    "stream-json": StreamJsonOutput,
}


def run_summary(session: Session, outcome: Outcome, tally: HookTally) -> dict[str, Any]:
    """Return the object that ``-o json`` prints."""
    return {
        "session_id": session.config.session_id,
        "response": session.response,
        "stop_reason": outcome.stop_reason,
        "tool_calls": [call.to_dict() for call in session.tool_calls],
        "usage": session.usage.to_dict(),
        "hooks": tally.to_dict(),
    }


def _call_line(call: ToolCall) -> str | None:
    """Describe a tool call in one line, or return None for states that are not shown."""
    name = shorten(escape_for_terminal(call.name), _LONGEST_NAME)
    if call.state is CallState.EXECUTING:
        return f"{name} {arguments_line(call.args)}"
    if call.state is not CallState.IDLE:
        return None
    if call.result.suppress_display:
        return f"{name}: {call.status}"
    shown = str(call.result.return_display).strip().splitlines()
    first = f": {shown[0]:.200}" if shown else ""
    by = f" by {call.blocked_by}" if call.blocked_by else ""
    return f"{name} {call.status}{by}{first}" if call.status is not CallStatus.SUCCESS else f"{name}{first}"


def print_event(event: AgentEvent) -> None:
    line = _line(event)
    if line:
        # Further lines are indented, so that they do not look like other messages.
        print(escape_for_terminal(line, keep=PROSE).replace("\n", "\n    "), file=sys.stderr, flush=True)


def _line(event: AgentEvent) -> str | None:
    if isinstance(event, ToolState):
        line = _call_line(event.call)
        return f"  {line}" if line else None
    if isinstance(event, ModelBlocked):
        return f"llxprt-hooks: the model call was blocked by {event.hook or 'a hook'}: {event.reason}"
    if isinstance(event, Stopped):
        return f"llxprt-hooks: stopped by {event.hook or 'a hook'}: {event.reason}"
    return f"llxprt-hooks: {event.message}" if isinstance(event, WarningEvent) else None


def arguments_line(arguments: Mapping[str, Any]) -> str:
    """Format arguments as JSON, shortened to fit a line."""
    return shorten(decode_text(write_json(dict(arguments))), 120)
