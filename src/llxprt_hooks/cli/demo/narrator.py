"""Shows a session and, where a hook had a hand in it, which one and what it did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llxprt_hooks.agent.notes import AnswerText, Note, Stopped, ToolState
from llxprt_hooks.agent.scheduler import CallState, CallStatus
from llxprt_hooks.cli.terminal import say
from llxprt_hooks.cli.tui.printing import arguments_line
from llxprt_hooks.engine.observer import HookObserver
from llxprt_hooks.inspection.effects import effects

if TYPE_CHECKING:
    from rich.console import Console

    from llxprt_hooks.agent.scheduler import ToolCall
    from llxprt_hooks.cli.terminal import Part
    from llxprt_hooks.engine.results import HookExecutionResult


class Narrator(HookObserver):
    """An audience of the agent and an observer of its hooks."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def prompt(self, text: str) -> None:
        self._say()
        self._say((f"> {text}", "bold"))

    def tell(self, note: Note) -> None:
        if isinstance(note, AnswerText):
            self._say(f"  {note.text}")
        elif isinstance(note, Stopped):
            self._say(("  the agent has stopped", "yellow"))
        elif isinstance(note, ToolState):
            self._tell_call(note.call)

    def hook_ended(self, result: HookExecutionResult) -> None:
        name, event = result.hook_config.identity, result.event_name
        for effect in effects(event, result.output) if result.output else ():
            self._say((f"  ⚓ {name}", "magenta"), (f" ({event}) ", "dim"), effect)

    def _tell_call(self, call: ToolCall) -> None:
        if call.state is CallState.EXECUTING or call.status is CallStatus.RESTRICTED:
            self._say((f"  {call.name}", "cyan"), f" {arguments_line(call.args)}")
        if call.state is CallState.IDLE:
            colour = "green" if call.status is CallStatus.SUCCESS else "red"
            first, *others = [line for line in str(call.result.llm_content).splitlines() if line.strip()] or [""]
            self._say((f"    {call.status}", colour), f" {first}")
            for line in others:
                self._say(f"    {line}")

    def _say(self, *parts: Part) -> None:
        say(self._console, *parts)
