"""Print a session, and which hooks affected it and how."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llxprt_hooks.agent.audience import AgentEvent, AnswerText, Stopped, ToolState
from llxprt_hooks.agent.scheduler import CallState, CallStatus
from llxprt_hooks.cli.terminal import print_line
from llxprt_hooks.cli.tui.printing import arguments_line
from llxprt_hooks.engine.observer import HookObserver
from llxprt_hooks.inspection.effects import effects

if TYPE_CHECKING:
    from rich.console import Console

    from llxprt_hooks.agent.scheduler import ToolCall
    from llxprt_hooks.cli.terminal import Part
    from llxprt_hooks.engine.results import HookExecutionResult


class Narrator(HookObserver):
    """The audience of the agent and the observer of its hooks."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def prompt(self, text: str) -> None:
        self._print()
        self._print((f"> {text}", "bold"))

    def handle(self, event: AgentEvent) -> None:
        if isinstance(event, AnswerText):
            self._print(f"  {event.text}")
        elif isinstance(event, Stopped):
            self._print(("  the agent stopped", "yellow"))
        elif isinstance(event, ToolState):
            self._show_call(event.call)

    def hook_ended(self, result: HookExecutionResult) -> None:
        name, event = result.hook_config.identity, result.event_name
        for effect in effects(event, result.output) if result.output else ():
            self._print((f"  ⚓ {name}", "magenta"), (f" ({event}) ", "dim"), effect)

    def _show_call(self, call: ToolCall) -> None:
        if call.state is CallState.EXECUTING or call.status is CallStatus.RESTRICTED:
            self._print((f"  {call.name}", "cyan"), f" {arguments_line(call.args)}")
        if call.state is CallState.IDLE:
            color = "green" if call.status is CallStatus.SUCCESS else "red"
            first, *others = [line for line in str(call.result.llm_content).splitlines() if line.strip()] or [""]
            self._print((f"    {call.status}", color), f" {first}")
            for line in others:
                self._print(f"    {line}")

    def _print(self, *parts: Part) -> None:
        print_line(self._console, *parts)
