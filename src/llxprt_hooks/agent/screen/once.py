"""Run the agent on one prompt, non-interactively: ``-p``, piped input and ``--headless``.

The output is plain text, one JSON object, or one JSON object per line.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

import click

from llxprt_hooks._support.json_codec import decode_text, write_json
from llxprt_hooks._support.terminal import print_json
from llxprt_hooks._support.text import PROSE, escape_for_terminal, shorten
from llxprt_hooks.agent.build import AgentOptions, build_agent
from llxprt_hooks.agent.chat import Answer
from llxprt_hooks.agent.environment import marked_as_agent
from llxprt_hooks.agent.provider import AgentError
from llxprt_hooks.agent.scheduler import CallState, CallStatus, RequestedCall
from llxprt_hooks.agent.ui import AgentEvent, AnswerText, HookDecision, Stopped, ToolState, UserInterface, WarningEvent
from llxprt_hooks.commands.exit_status import ExitStatus
from llxprt_hooks.commands.stats import EventTally
from llxprt_hooks.events import SessionEndReason

_SHOWN = (HookDecision, WarningEvent)
"""What is on stderr too if stdout has JSON."""
_MAX_NAME = 100
_MAX_ARGUMENTS = 120


async def run_once(options: AgentOptions, prompt: str, output_format: str) -> ExitStatus:
    """Work on one prompt and print the outcome."""
    with marked_as_agent():
        return await _run(options, prompt, output_format)


async def _run(options: AgentOptions, prompt: str, output_format: str) -> ExitStatus:
    output = OUTPUTS[output_format]()
    tally = EventTally()
    try:
        session = build_agent(options, output, observer=tally)
    except AgentError as error:
        raise click.ClickException(str(error)) from error
    if (task := asyncio.current_task()) is not None:  # SIGTERM cancels running hooks and tools, like Ctrl-C
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    session.start()
    answer = Answer()
    try:
        answer = await session.respond(prompt)
        status = _status(answer)
    except AgentError as error:
        output.handle(WarningEvent(str(error)))
        status = ExitStatus.FAILED
    except asyncio.CancelledError:
        status = ExitStatus.INTERRUPTED
    session.end(SessionEndReason.EXIT)

    def finish() -> None:
        summary = {
            "session_id": session.config.session_id,
            "response": session.response,
            "stop_reason": answer.stop_reason,
            "tool_calls": [call.to_dict() for call in session.tool_calls],
            "usage": session.usage,
            "hooks": tally.to_dict(),
            **({"refused": answer.blocked} if answer.refused else {}),
            **({"continuations": session.continuations} if session.continuations else {}),
        }
        output.finish(summary)

    await session.leave(status, finish)
    return status


def _status(answer: Answer) -> ExitStatus:
    if answer.stop_reason is not None:
        return ExitStatus.STOPPED
    return ExitStatus.OK if answer.blocked is None else ExitStatus.BLOCKED


class RunOutput(UserInterface, Protocol):
    """A user interface that also prints the summary of a run."""

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Print the end of the run."""


class TextOutput:
    """Prints answers to stdout as they arrive, and other events to stderr.

    Answers are escaped for a terminal even if stdout is a file: files and pipes are often shown on one later.
    """

    def __init__(self) -> None:
        self._within_line = False
        self._latest = ""

    def handle(self, event: AgentEvent) -> None:
        if isinstance(event, AnswerText):
            self._latest = event.text
            print(escape_for_terminal(event.text.replace("\r\n", "\n"), keep=PROSE), end="", flush=True)
            self._within_line = not event.text.endswith("\n")
        else:
            self._end_line()
            if isinstance(event, Stopped) and event.reason == self._latest:  # a stop after the model
                event = replace(event, reason="")
            _print_event(event)

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
        if is_blocked_call or isinstance(event, _SHOWN):
            _print_event(event)

    def finish(self, summary: Mapping[str, Any]) -> None:
        print_json(summary)


class StreamJsonOutput:
    """Prints one object per event, and the summary at the end."""

    def handle(self, event: AgentEvent) -> None:
        print_json(event.to_dict())
        if isinstance(event, _SHOWN):
            _print_event(event)

    def finish(self, summary: Mapping[str, Any]) -> None:
        print_json({"type": "result", **summary})


OUTPUTS: Mapping[str, Callable[[], RunOutput]] = {
    "text": TextOutput,
    "json": JsonOutput,
    "stream-json": StreamJsonOutput,
}


def _call_line(call: RequestedCall) -> str | None:
    """Describe a tool call in one line, or return None for states that are not shown."""
    name = shorten(escape_for_terminal(call.name), _MAX_NAME)
    if call.state is CallState.EXECUTING:
        return f"{name} {shorten(decode_text(write_json(call.args)), _MAX_ARGUMENTS)}"
    if call.state is not CallState.IDLE:
        return None
    if call.result.suppress_display:
        return f"{name}: {call.status}"
    shown = str(call.result.return_display).strip().splitlines()
    first = f": {shown[0]:.200}" if shown else ""
    by = f" by {call.blocked_by}" if call.blocked_by else ""
    return f"{name} {call.status}{by}{first}" if call.status is not CallStatus.SUCCESS else f"{name}{first}"


def _print_event(event: AgentEvent) -> None:
    line = _line(event)
    if line:
        # Further lines are indented, so that they do not look like other messages.
        print(escape_for_terminal(line, keep=PROSE).replace("\n", "\n    "), file=sys.stderr, flush=True)


def _line(event: AgentEvent) -> str | None:
    if isinstance(event, ToolState):
        line = _call_line(event.call)
        return f"  {line}" if line else None
    if isinstance(event, HookDecision):
        return f"llxprt-hooks: {event.sentence}"
    return f"llxprt-hooks: {event.message}" if isinstance(event, WarningEvent) else None
