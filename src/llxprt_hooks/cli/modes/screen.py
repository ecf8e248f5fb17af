"""The interactive screen: streamed Markdown, tool calls, and who is being waited for.

What is done is printed once and stays, in the terminal's own scrollback. Only what is under way, never more than fits
the window, is drawn again and again below it. Text of the model, of tools and of hooks has its control characters
written out before the terminal gets it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from prompt_toolkit.application import run_in_terminal
from rich.live import Live
from rich.markdown import ListElement, Markdown
from rich.segment import Segment, SegmentLines
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from llxprt_hooks.agent.notes import AnswerEnd, AnswerText, ModelBlocked, Note, Stopped, ToolState, Warned
from llxprt_hooks.agent.scheduler import CallState, CallStatus, ToolCall
from llxprt_hooks.events import HookEventName
from llxprt_hooks.wire import decode_text, write_json

if TYPE_CHECKING:
    from markdown_it.token import Token
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from llxprt_hooks.definitions import HookConfig
    from llxprt_hooks.results import HookExecutionResult, ProcessedHookResult

PATIENCE = 0.5
"""Seconds after which the user is told which hook is being waited for."""

FRAME = 0.08
"""Seconds between two drawings of what is under way."""

AWAITED = frozenset(
    {
        HookEventName.BEFORE_TOOL,
        HookEventName.AFTER_TOOL,
        HookEventName.BEFORE_MODEL,
        HookEventName.AFTER_MODEL,
        HookEventName.BEFORE_TOOL_SELECTION,
    }
)

_MOST_CALLS = 5
_MOST_LINES = 10
_LONGEST_LINE = 500
_LONGEST_ARGUMENTS = 200

_ENDINGS: Mapping[CallStatus, tuple[str, str, str]] = {
    CallStatus.SUCCESS: ("✓", "green", ""),
    CallStatus.ERROR: ("✗", "red", "failed: "),
    CallStatus.BLOCKED: ("⊘", "red", "blocked by a hook: "),
    CallStatus.RESTRICTED: ("⊘", "red", ""),
    CallStatus.CANCELLED: ("✗", "yellow", ""),
}
"""How the end of a call is shown: the mark, its colour, and what precedes the outcome."""

_COMMANDING: Mapping[int, str | None] = {
    **{code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n\r"},
    **{code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000))},
    ord("\r"): None,
}


def visible(text: str) -> str:
    r"""The text with all that could command the terminal, or change the order of what it shows, written out.

    >>> visible("\x1b]0;title\x07")
    '\\x1b]0;title\\x07'
    """
    return text.translate(_COMMANDING)


def excerpt(text: str, most_lines: int | None) -> str:
    """The text, made visible and cut to so many lines of bearable length; None is all of it."""
    whole = visible(text).rstrip()
    if most_lines is None:
        return whole
    lines = [line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…" for line in whole.split("\n")]
    more = len(lines) - most_lines
    return "\n".join(lines if more <= 0 else [*lines[:most_lines], f"… {more} more line{'s' if more > 1 else ''}"])


class Screen:
    """Shows a session on a terminal, and observes its hooks to say which one takes its time."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._answer = _Answer(console)
        self._under_way = _UnderWay()
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
        self._under_way.begin()
        self._draw()
        try:
            yield
        finally:
            self._halt()
            self._under_way.end()
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
        self._under_way.interrupted = True

    def leaving(self) -> None:
        """The session has ended; events that nobody awaited are waited for after all."""
        asyncio.get_running_loop().call_later(PATIENCE, self._tell_of_last_hooks)

    def say(self, text: str, style: str = "dim") -> None:
        """A word to the user."""
        self.show(Text(visible(text), style))

    def show(self, renderable: RenderableType) -> None:
        """Something the user asked to see."""
        self._print("notice", renderable)

    # What the agent tells.

    def tell(self, note: Note) -> None:
        if isinstance(note, AnswerText):
            self._answer.add(note.text)
        elif isinstance(note, AnswerEnd):
            self._put_answer(final=True)
        elif isinstance(note, ToolState):
            self._tell_call(note.call)
        elif isinstance(note, ModelBlocked):
            self.show(_marked("⊘", "red", f"the model call was blocked by a hook: {note.reason}"))
        elif isinstance(note, Stopped):
            self.show(_marked("■", "yellow", f"stopped by a hook: {note.reason}"))
        elif isinstance(note, Warned):
            self.show(_marked("!", "yellow", excerpt(note.message, _MOST_LINES)))

    def _tell_call(self, call: ToolCall) -> None:
        if call.state is CallState.EXECUTING:
            self._under_way.call_started(call)
        elif call.state is CallState.IDLE and call.status is not None:
            self._under_way.call_ended(call)
            self._print("call", _finished_call(call, call.status))

    # What hooks do.

    def hook_started(self, event_name: HookEventName, hook_config: HookConfig) -> None:
        wait = self._under_way.hook_started(event_name, hook_config)
        if event_name in AWAITED and not self.console.is_interactive:
            asyncio.get_running_loop().call_later(PATIENCE, self._tell_of_wait, wait)

    def hook_ended(self, result: HookExecutionResult) -> None:
        self._under_way.hook_ended(result.event_name, result.hook_config)

    def event_ended(self, event_name: HookEventName, processed: ProcessedHookResult, wall_time: float) -> None:
        """Each hook has told for itself."""

    def _tell_of_wait(self, wait: _Wait) -> None:
        """Where nothing can be drawn and erased again, a line has to do."""
        if wait in self._under_way.hooks:
            self.say(wait.what)

    def _tell_of_last_hooks(self) -> None:
        for wait in self._under_way.hooks:
            self.say(wait.what)

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
        if not self._under_way.working:
            return
        started = time.monotonic()
        self._put_answer(room=max(1, self.console.height - self._under_way.height - 4))
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
        yield from self._under_way.lines("answering" if self._growing else "thinking")

    def _halt(self) -> None:
        """Draw no more, and erase what was drawn."""
        if self._next_frame is not None:
            self._next_frame.cancel()
            self._next_frame = None
        if self._live is not None:
            self._live.stop()
            self._live = None


# Calls.


def call_words(call: ToolCall) -> str:
    """A call in a line: the tool's name and its arguments."""
    arguments = " ".join(f"{name}={decode_text(write_json(value))}" for name, value in call.args.items())
    cut = arguments if len(arguments) <= _LONGEST_ARGUMENTS else arguments[: _LONGEST_ARGUMENTS - 1] + "…"
    return visible(f"{call.name} {cut}")


def _finished_call(call: ToolCall, status: CallStatus) -> RenderableType:
    """What was called, and what came of it. What the model was told besides is none of the screen's business."""
    mark, style, words = _ENDINGS[status]
    shown = _marked(mark, style, call_words(call))
    if call.result.suppress_display:
        shown.add_row("", Text("the outcome was hidden by a hook", "dim"))
    elif call.result.return_display:
        outcome = excerpt(f"{words}{call.result.return_display}", _MOST_LINES)
        shown.add_row("", Text(outcome, "dim" if status is CallStatus.SUCCESS else style))
    return shown


def _marked(mark: str, style: str, text: str) -> Table:
    """A mark, and text that is indented by it."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(mark, style), Text(visible(text)))
    return grid


# Answers.

_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable("image")
"""Without HTML, so that nothing is left out of ``Vec<T>``; an image, which cannot be shown, is a link."""


class _NumberedList(ListElement):
    """Items are indented alike whatever comes after them, so that what has been printed of a list stays right."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for number, item in enumerate(self.items, start=self.list_start or 0):
            yield from item.render_number(console, options, number, last_number=99)


class _Markdown(Markdown):
    """Parsed Markdown. The address of a link is shown, not hidden behind its text."""

    elements = {**Markdown.elements, "ordered_list_open": _NumberedList}  # noqa: RUF012  # a ClassVar in the base

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__("", hyperlinks=False)
        self.parsed = tokens


class _Answer:
    """An answer on its way: text in, rendered lines out, each of them once, when no more text can change it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._begin()

    def _begin(self) -> None:
        self._text = ""
        self._references: dict[str, Any] = {}
        self._out = 0  # lines of the text's first block that are out already
        self._width = 0  # at which they were rendered
        self._space_before = False

    def add(self, text: str) -> None:
        self._text += text.replace("\r", "")

    def rendered(self, *, room: int, final: bool) -> tuple[list[list[Segment]], list[list[Segment]]]:
        """The lines that have become finished, and those that have not, as many as there is room for."""
        tokens = _parsed(self._text, self._references)
        line, index = (0, len(tokens)) if final else _last_block(tokens, self._text)
        finished = self._lines(tokens[:index])[self._out :]
        if final:
            self._begin()
            return finished, []
        if index:
            self._out = 0
            self._text = "\n".join(self._text.split("\n")[line:])
            self._space_before = True
        growing = self._lines(tokens[index:])
        if len(growing) - self._out > room:
            settled = max(self._out, self._settled(tokens[index:], growing, room))
            finished += growing[self._out : settled]
            self._out = settled
        return finished, growing[self._out :][-room:]

    def _lines(self, tokens: list[Token]) -> list[list[Segment]]:
        if not tokens:
            return []
        if not self._out:
            self._width = self._console.width
        options = self._console.options.update(width=self._width)
        lines = [_trimmed(line) for line in self._console.render_lines(_Markdown(tokens), options, pad=False)]
        while lines and not lines[0]:
            del lines[0]
        while lines and not lines[-1]:
            del lines[-1]
        return [[], *lines] if self._space_before else lines

    def _settled(self, tokens: list[Token], lines: list[list[Segment]], room: int) -> int:
        """How many lines of a block that is taller than the room for it cannot change any more."""
        if tokens[0].type == "fence":
            complete = "\n".join(tokens[0].content.split("\n")[:-2])
            return min(len(lines) - room, len(self._lines([tokens[0].copy(content=complete)])) - 1) if complete else 0
        if tokens[0].type in ("bullet_list_open", "ordered_list_open"):
            end = next(index for index, token in enumerate(tokens) if token.level == 0 and token.nesting < 0)
            items = [index for index in range(end) if tokens[index].level == 1 and tokens[index].nesting > 0]
            return len(self._lines([*tokens[: items[-2]], tokens[end]])) if len(items) > 2 else 0
        return 0


def _trimmed(line: list[Segment]) -> list[Segment]:
    """A line without the blanks at its end, other than those of a coloured background."""
    while line and not (line[-1].style and line[-1].style.bgcolor):
        last = line.pop()
        if last.text.rstrip():
            return [*line, Segment(last.text.rstrip(), last.style)]
    return line


def _parsed(text: str, references: dict[str, Any]) -> list[Token]:
    tokens = _PARSER.parse(text, references)
    for token in tokens:
        for part in (token, *(token.children or ())):
            part.content = visible(part.content)  # not sooner: in links control characters may stand encoded
    return tokens


def _last_block(tokens: Sequence[Token], text: str) -> tuple[int, int]:
    """The line and the token with which the last block begins: more text may change it.

    A block that begins in a line whose end has not come may yet turn out to be part of the one before.
    """
    complete = text.count("\n")
    starts = [
        (token.map[0], index)
        for index, token in enumerate(tokens)
        if token.level == 0 and token.nesting >= 0 and token.map and token.map[0] < complete
    ]
    return starts[-1] if starts else (0, 0)


# Work.


@dataclass(eq=False, slots=True)
class _Wait:
    """Something that takes its time."""

    what: str
    event_name: HookEventName | None = None
    since: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.since


class _UnderWay:
    """What the agent is doing right now."""

    def __init__(self) -> None:
        self.working = False
        self.interrupted = False
        self.hooks: list[_Wait] = []
        self._calls: dict[int, _Wait] = {}
        self._spinner = Spinner("dots")

    def begin(self) -> None:
        self.working, self.interrupted = True, False

    def end(self) -> None:
        """Nothing is awaited any more; hooks whose event was cancelled have not told their end."""
        self.working = False
        self._calls.clear()
        self.hooks = [wait for wait in self.hooks if wait.event_name not in AWAITED]

    def call_started(self, call: ToolCall) -> None:
        self._calls[id(call)] = _Wait(call_words(call))

    def call_ended(self, call: ToolCall) -> None:
        self._calls.pop(id(call), None)

    def hook_started(self, event_name: HookEventName, hook_config: HookConfig) -> _Wait:
        wait = _Wait(_waiting_for(event_name, hook_config), event_name)
        self.hooks.append(wait)
        return wait

    def hook_ended(self, event_name: HookEventName, hook_config: HookConfig) -> None:
        what = _waiting_for(event_name, hook_config)
        ended = next((wait for wait in self.hooks if wait.what == what), None)
        if ended is not None:
            self.hooks.remove(ended)

    @property
    def height(self) -> int:
        return len(list(self.lines("")))

    def lines(self, otherwise: str) -> Iterator[Text]:
        """A line for each call that runs, and one for the hooks that are waited for; otherwise, this one."""
        calls = list(self._calls.values())
        hooks = [wait for wait in self.hooks if wait.event_name in AWAITED and wait.seconds > PATIENCE]
        for wait in calls[:_MOST_CALLS]:
            yield self._line(wait.what, wait.seconds)
        if len(calls) > _MOST_CALLS:
            yield self._line(f"and {len(calls) - _MOST_CALLS} more")
        if hooks:
            more = f" and {len(hooks) - 1} more" if len(hooks) > 1 else ""
            yield self._line(hooks[0].what + more, hooks[0].seconds)
        if self.interrupted:
            yield self._line("interrupting")
        elif not (calls or hooks):
            yield self._line(otherwise)

    def _line(self, words: str, seconds: float = 0.0) -> Text:
        frame = self._spinner.render(time.monotonic())
        line = Text.assemble(*([frame] if isinstance(frame, Text) else []), no_wrap=True, overflow="ellipsis")
        line.append(f" {seconds:.0f} s" if seconds >= 1 else "", "dim")
        return line.append(f" {words}")


def _waiting_for(event_name: HookEventName, hook_config: HookConfig) -> str:
    return f"waiting for hook {visible(' '.join(hook_config.identity.split()))} ({event_name})"
