"""The interactive screen: streamed Markdown, tool calls, and running hooks.

Finished output is printed once and stays in the terminal's scrollback. Only output in progress, never more than fits
the window, is redrawn below it. Text from the model, from tools and from hooks is escaped for the terminal.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prompt_toolkit.application import run_in_terminal
from rich.live import Live
from rich.segment import Segment, SegmentLines
from rich.table import Table
from rich.text import Text

from llxprt_hooks._support.text import PROSE, escape_for_terminal
from llxprt_hooks.agent.scheduler import CallState, CallStatus, RequestedCall
from llxprt_hooks.agent.screen.progress import NOTICE_DELAY, Progress, call_words, excerpt
from llxprt_hooks.agent.screen.streamed_answer import StreamedAnswer
from llxprt_hooks.agent.ui import (
    AgentEvent,
    AnswerEnd,
    AnswerText,
    Continued,
    HookDecision,
    Stopped,
    ToolState,
    WarningEvent,
)
from llxprt_hooks.core.engine.observer import HookObserver, HookStarted

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from llxprt_hooks.core.engine.results import HookExecutionResult

FRAME = 0.08
"""Seconds between two redraws."""

_MAX_LINES = 10

_ENDINGS: Mapping[CallStatus, tuple[str, str, str]] = {
    CallStatus.SUCCESS: ("✓", "green", ""),
    CallStatus.ERROR: ("✗", "red", "failed: "),
    CallStatus.BLOCKED: ("⊘", "red", "blocked by {hook}: "),
    CallStatus.RESTRICTED: ("⊘", "red", ""),
    CallStatus.CANCELLED: ("✗", "yellow", ""),
}
"""How the end of a call is shown: the mark, its color, and the text before the outcome."""


_DECISIONS: Mapping[type[HookDecision], tuple[str, str]] = {Continued: ("↻", "cyan"), Stopped: ("■", "yellow")}
"""The mark of what a hook decided, and its color; all others are refusals."""


class Screen(HookObserver):
    """Shows a session on a terminal, including slow hooks."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._answer = StreamedAnswer(console)
        self._progress = Progress()
        self._growing: list[list[Segment]] = []
        self._live: Live | None = None
        self._next_frame: asyncio.TimerHandle | None = None
        self._put: Callable[[RenderableType], object] = console.print
        self._last_kind = ""

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows of the terminal. LINES and COLUMNS can be wrong, so the smaller figures count."""
        given = self.console.size
        try:
            columns, rows = os.get_terminal_size(self.console.file.fileno())
        except (OSError, ValueError):
            return given.width, given.height
        return min(columns or given.width, given.width), min(rows or given.height, given.height)

    # Phases of the session.

    @contextmanager
    def prompting(self) -> Iterator[None]:
        """While a prompt is on the screen, print above it."""
        self._space("prompt")
        before, self._put = self._put, lambda shown: run_in_terminal(lambda: self.console.print(shown))
        try:
            yield
        finally:
            self._put = before

    @contextmanager
    def working(self) -> Iterator[None]:
        """While the agent works, draw its progress."""
        self._progress.begin()
        self._draw()
        try:
            yield
        finally:
            self._halt()
            self._progress.end()
            self._put_answer(final=True)

    @contextmanager
    def asking(self, question: RenderableType) -> Iterator[None]:
        """While a question is on the screen, hold back other output and print it afterwards."""
        self._halt()
        self._print("question", question)
        held: list[RenderableType] = []
        before, self._put = self._put, held.append
        try:
            yield
        finally:
            self._put = before
            for renderable in held:
                self._put(renderable)
            self._draw()

    def interrupting(self) -> None:
        """Show that the work is being interrupted."""
        self._progress.interrupted = True

    def leaving(self) -> None:
        """Show the hooks that the program still waits for at the end of the session."""

        def show() -> None:
            for wait in self._progress.hooks.values():
                self.notice(wait.what)

        asyncio.get_running_loop().call_later(NOTICE_DELAY, show)

    def notice(self, text: str) -> None:
        """Show a message of the program itself."""
        self.show(Text(escape_for_terminal(text, keep=PROSE), "dim"))

    def show(self, renderable: RenderableType) -> None:
        """Show something that the user requested."""
        self._print("notice", renderable)

    # Events of the agent.

    def handle(self, event: AgentEvent) -> None:
        if isinstance(event, AnswerText):
            self._answer.add(event.text)
        elif isinstance(event, AnswerEnd):
            self._put_answer(final=True)
        elif isinstance(event, ToolState):
            self._show_call(event.call)
        elif isinstance(event, HookDecision):
            self.show(_marked(*_DECISIONS.get(type(event), ("⊘", "red")), event.sentence))
        elif isinstance(event, WarningEvent):
            self.show(_marked("!", "yellow", excerpt(event.message, _MAX_LINES)))

    def _show_call(self, call: RequestedCall) -> None:
        if call.state is CallState.EXECUTING:
            self._progress.call_started(call)
        elif call.state is CallState.IDLE and call.status is not None:
            self._progress.call_ended(call)
            self._print("call", _finished_call(call, call.status))

    # Events of hooks.

    def hook_started(self, hook: HookStarted) -> None:
        self._progress.hook_started(hook)
        if hook.event_name.spec.awaited and not self.console.is_interactive:
            asyncio.get_running_loop().call_later(NOTICE_DELAY, self._show_wait, hook.execution_id)

    def hook_ended(self, result: HookExecutionResult) -> None:
        self._progress.hook_ended(result)

    def _show_wait(self, execution_id: str) -> None:
        """Print a running hook as a line, for terminals that cannot redraw."""
        if wait := self._progress.hooks.get(execution_id):
            self.notice(wait.what)

    # Printing and drawing.

    def _print(self, kind: str, renderable: RenderableType) -> None:
        self._space(kind)
        self._put(renderable)

    def _space(self, kind: str) -> None:
        """Print an empty line between output of different kinds."""
        if self._last_kind not in ("", kind):
            self._put("")
        self._last_kind = kind

    def _put_answer(self, *, room: int = 0, final: bool = False) -> None:
        """Print the finished part of the answer, and keep as much of the rest as fits for drawing."""
        finished, self._growing = self._answer.rendered(room=room, final=final)
        if finished:
            self._print("answer", SegmentLines(finished, new_lines=True))

    def _draw(self) -> None:
        """Draw the progress, and schedule the next redraw."""
        if not self._progress.working:
            return
        started = time.monotonic()
        self._put_answer(room=max(1, self.console.height - self._progress.height - 4))
        if self.console.is_interactive:
            if self._live is None:
                self._live = Live(self, console=self.console, transient=True, auto_refresh=False)
                self._live.start()
            self._live.refresh()
        pause = max(FRAME, 4 * (time.monotonic() - started))  # limits redrawing of a huge block to a fifth of the time
        self._next_frame = asyncio.get_running_loop().call_later(pause, self._draw)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the growing part of the answer and the progress."""
        if not (self._growing and self._last_kind == "answer"):
            yield Text()
        if self._growing:
            yield SegmentLines(self._growing, new_lines=True)
            yield Text()
        yield from self._progress.lines("answering" if self._growing else "thinking")

    def _halt(self) -> None:
        """Stop drawing, and erase what was drawn."""
        if self._next_frame is not None:
            self._next_frame.cancel()
            self._next_frame = None
        if self._live is not None:
            self._live.stop()
            self._live = None


def _finished_call(call: RequestedCall, status: CallStatus) -> RenderableType:
    """Render a finished call and its outcome, without the content that only the model gets."""
    mark, style, words = _ENDINGS[status]
    shown = _marked(mark, style, call_words(call))
    if call.result.suppress_display:
        shown.add_row("", Text("the outcome was hidden by a hook", "dim"))
    elif call.result.return_display:
        display = str(call.result.return_display).replace("\r\n", "\n")
        outcome = excerpt(f"{words.format(hook=call.blocked_by or 'a hook')}{display}", _MAX_LINES)
        shown.add_row("", Text(outcome, "dim" if status is CallStatus.SUCCESS else style))
    return shown


def _marked(mark: str, style: str, text: str) -> Table:
    """Render a mark and a text with a hanging indent."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(mark, style), Text(escape_for_terminal(text, keep=PROSE)))
    return grid
