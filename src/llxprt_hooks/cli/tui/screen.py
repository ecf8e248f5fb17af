"""The interactive screen: streamed Markdown, tool calls, and who is being waited for.

What is done is printed once and stays, in the terminal's own scrollback. Only what is under way, never more than fits
the window, is drawn again and again below it. Text of the model, of tools and of hooks has its control characters
written out before the terminal gets it.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prompt_toolkit.application import run_in_terminal
from rich.live import Live
from rich.segment import Segment, SegmentLines
from rich.table import Table
from rich.text import Text

from llxprt_hooks.agent.audience import (
    AgentEvent,
    AnswerEnd,
    AnswerText,
    ModelBlocked,
    Stopped,
    ToolState,
    WarningEvent,
)
from llxprt_hooks.agent.scheduler import CallState, CallStatus, ToolCall
from llxprt_hooks.cli.tui.progress import NOTICE_DELAY, Progress
from llxprt_hooks.cli.tui.shown_text import call_words, excerpt
from llxprt_hooks.cli.tui.streamed_answer import StreamedAnswer
from llxprt_hooks.engine.observer import HookObserver
from llxprt_hooks.text import PROSE, escape_for_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from llxprt_hooks.engine.observer import HookStarted
    from llxprt_hooks.engine.results import HookExecutionResult

FRAME = 0.08
"""Seconds between two drawings of what is under way."""

_MOST_LINES = 10

_ENDINGS: Mapping[CallStatus, tuple[str, str, str]] = {
    CallStatus.SUCCESS: ("✓", "green", ""),
    CallStatus.ERROR: ("✗", "red", "failed: "),
    CallStatus.BLOCKED: ("⊘", "red", "blocked by a hook: "),
    CallStatus.RESTRICTED: ("⊘", "red", ""),
    CallStatus.CANCELLED: ("✗", "yellow", ""),
}
"""How the end of a call is shown: the mark, its colour, and what precedes the outcome."""


class Screen(HookObserver):
    """Shows a session on a terminal, and observes its hooks to say which one takes its time."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._answer = StreamedAnswer(console)
        self._progress = Progress()
        self._growing: list[list[Segment]] = []
        self._live: Live | None = None
        self._next_frame: asyncio.TimerHandle | None = None
        self._put: Callable[[RenderableType], None] = console.print
        self._last_kind = ""

    # What the session does.

    @contextmanager
    def prompting(self) -> Iterator[None]:
        """While a prompt is on the screen, what is printed appears above it."""
        self._space("prompt")
        before, self._put = self._put, self._put_above_prompt
        try:
            yield
        finally:
            self._put = before

    @contextmanager
    def working(self) -> Iterator[None]:
        """While the agent works, what is under way is drawn."""
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
        """While a question is on the screen, nothing else is; what happens meanwhile is printed after it."""
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
        """The user wants the work to end."""
        self._progress.interrupted = True

    def leaving(self) -> None:
        """The session has ended; events that nobody awaited are waited for after all."""
        asyncio.get_running_loop().call_later(NOTICE_DELAY, self._show_last_hooks)

    def notice(self, text: str, style: str = "dim") -> None:
        """Show a remark of the program itself."""
        self.show(Text(escape_for_terminal(text, keep=PROSE), style))

    def show(self, renderable: RenderableType) -> None:
        """Something the user asked to see."""
        self._print("notice", renderable)

    # Events of the agent.

    def handle(self, event: AgentEvent) -> None:
        if isinstance(event, AnswerText):
            self._answer.add(event.text)
        elif isinstance(event, AnswerEnd):
            self._put_answer(final=True)
        elif isinstance(event, ToolState):
            self._show_call(event.call)
        elif isinstance(event, ModelBlocked):
            self.show(_marked("⊘", "red", f"the model call was blocked by a hook: {event.reason}"))
        elif isinstance(event, Stopped):
            self.show(_marked("■", "yellow", f"stopped by a hook: {event.reason}"))
        elif isinstance(event, WarningEvent):
            self.show(_marked("!", "yellow", excerpt(event.message, _MOST_LINES)))

    def _show_call(self, call: ToolCall) -> None:
        if call.state is CallState.EXECUTING:
            self._progress.call_started(call)
        elif call.state is CallState.IDLE and call.status is not None:
            self._progress.call_ended(call)
            self._print("call", _finished_call(call, call.status))

    # What hooks do.

    def hook_started(self, hook: HookStarted) -> None:
        self._progress.hook_started(hook)
        if hook.event_name.spec.awaited and not self.console.is_interactive:
            asyncio.get_running_loop().call_later(NOTICE_DELAY, self._show_wait, hook.execution_id)

    def hook_ended(self, result: HookExecutionResult) -> None:
        self._progress.hook_ended(result)

    def _show_wait(self, execution_id: str) -> None:
        """Print a line where nothing can be drawn and erased again."""
        if wait := self._progress.hooks.get(execution_id):
            self.notice(wait.what)

    def _show_last_hooks(self) -> None:
        for wait in self._progress.hooks.values():
            self.notice(wait.what)

    # How it gets there.

    def _print(self, kind: str, renderable: RenderableType) -> None:
        self._space(kind)
        self._put(renderable)

    def _space(self, kind: str) -> None:
        """Things of one kind stand together, with an empty line between them and others."""
        if self._last_kind not in ("", kind):
            self._put("")
        self._last_kind = kind

    def _put_above_prompt(self, renderable: RenderableType) -> None:
        run_in_terminal(lambda: self.console.print(renderable))

    def _put_answer(self, *, room: int = 0, final: bool = False) -> None:
        """Print what is finished of the answer, and keep what is not, as much as there is room for, to be drawn."""
        finished, self._growing = self._answer.rendered(room=room, final=final)
        if finished:
            self._print("answer", SegmentLines(finished, new_lines=True))

    def _draw(self) -> None:
        """Draw what is under way, and go on doing so."""
        if not self._progress.working:
            return
        started = time.monotonic()
        self._put_answer(room=max(1, self.console.height - self._progress.height - 4))
        if self.console.is_interactive:
            if self._live is None:
                self._live = Live(self, console=self.console, transient=True, auto_refresh=False)
                self._live.start()
            self._live.refresh()
        pause = max(FRAME, 4 * (time.monotonic() - started))  # a huge block may take its time, but not all the time
        self._next_frame = asyncio.get_running_loop().call_later(pause, self._draw)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """What is under way."""
        if not (self._growing and self._last_kind == "answer"):
            yield Text()
        if self._growing:
            yield SegmentLines(self._growing, new_lines=True)
            yield Text()
        yield from self._progress.lines("answering" if self._growing else "thinking")

    def _halt(self) -> None:
        """Draw no more, and erase what was drawn."""
        if self._next_frame is not None:
            self._next_frame.cancel()
            self._next_frame = None
        if self._live is not None:
            self._live.stop()
            self._live = None


def _finished_call(call: ToolCall, status: CallStatus) -> RenderableType:
    """What was called, and what came of it. What the model was told besides is none of the screen's business."""
    mark, style, words = _ENDINGS[status]
    shown = _marked(mark, style, call_words(call))
    if call.result.suppress_display:
        shown.add_row("", Text("the outcome was hidden by a hook", "dim"))
    elif call.result.return_display:
        display = str(call.result.return_display).replace("\r\n", "\n")
        outcome = excerpt(f"{words}{display}", _MOST_LINES)
        shown.add_row("", Text(outcome, "dim" if status is CallStatus.SUCCESS else style))
    return shown


def _marked(mark: str, style: str, text: str) -> Table:
    """A mark, and text that is indented by it."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(mark, style), Text(escape_for_terminal(text, keep=PROSE)))
    return grid
