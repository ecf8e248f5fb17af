"""Shows a session and, where a hook had a hand in it, which one and what it did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape

from llxprt_hooks.agent.notes import AnswerText, Note, Stopped, ToolState
from llxprt_hooks.agent.scheduler import CallState, CallStatus
from llxprt_hooks.cli.effects import effects
from llxprt_hooks.cli.modes.printing import arguments_line

if TYPE_CHECKING:
    from rich.console import Console

    from llxprt_hooks.definitions import HookConfig
    from llxprt_hooks.events import HookEventName
    from llxprt_hooks.results import HookExecutionResult, ProcessedHookResult


class Narrator:
    """An audience of the agent and an observer of its hooks."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def prompt(self, text: str) -> None:
        self._say(f"\n[bold]> {escape(text)}[/]")

    def tell(self, note: Note) -> None:
        if isinstance(note, AnswerText):
            self._say(f"  {escape(note.text)}")
        elif isinstance(note, Stopped):
            self._say("  [yellow]the agent has stopped[/]")
        elif isinstance(note, ToolState):
            self._tell_call(note)

    def hook_started(self, event_name: HookEventName, hook_config: HookConfig) -> None:
        """Told when it has ended."""

    def hook_ended(self, result: HookExecutionResult) -> None:
        name = result.hook_config.identity
        for effect in effects(result.event_name, result.output) if result.output else ():
            self._say(f"  [magenta]⚓ {escape(name)}[/] [dim]({result.event_name})[/] {escape(effect)}")

    def event_ended(self, event_name: HookEventName, processed: ProcessedHookResult, wall_time: float) -> None:
        """Each hook has told for itself."""

    def _tell_call(self, note: ToolState) -> None:
        call = note.call
        if call.state is CallState.EXECUTING:
            self._say(f"  [cyan]{call.name}[/] {escape(arguments_line(call.args))}")
        elif call.state is CallState.IDLE:
            colour = "green" if call.status is CallStatus.SUCCESS else "red"
            lines = [line for line in str(call.result.llm_content).splitlines() if line.strip()]
            self._say(f"    [{colour}]{call.status}[/] " + "\n    ".join(map(escape, lines)))

    def _say(self, markup: str) -> None:
        self._console.print(markup, highlight=False, soft_wrap=True)
