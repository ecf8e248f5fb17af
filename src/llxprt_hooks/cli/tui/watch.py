"""The screen of ``watch``: a list of events that grows, and the details of one of them."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.live import Live
from rich.text import Text

from llxprt_hooks.cli.terminal import Part, line
from llxprt_hooks.inspection.log import POLL, recorded_time
from llxprt_hooks.inspection.timeline import RecordedDecision, TimelineEvent, decision_of, would_decide
from llxprt_hooks.text import indented_json, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rich.console import Console

    from llxprt_hooks.audit.record import Record
    from llxprt_hooks.inspection.timeline import View

STYLES: Mapping[RecordedDecision, str] = {
    RecordedDecision.BLOCKED: "red",
    RecordedDecision.STOPPED: "magenta",
    RecordedDecision.FAILED: "yellow",
    RecordedDecision.CHANGED: "blue",
    RecordedDecision.ALLOWED: "green",
}

_KEYS = {
    b"\x1b[A": "k",
    b"\x1b[B": "j",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
    b"\r": "enter",
    b"\n": "enter",
    b"\x1b": "escape",
    b" ": "page down",
}
_STEPS = {"j": 1, "k": -1, "g": -(10**9), "G": 10**9}


def event_line(event: TimelineEvent) -> Text:
    """One line about an event."""
    when = recorded_time(event.record)
    running = event.ended is None and len(event.executions) < len(event.hooks)
    taken = "running" if running else f"{event.duration:.1f} ms"
    reason = one_line(event.reason)
    return line(
        (f"{when:%H:%M:%S}" if when else event.timestamp[:8], "dim"),
        f"  {event.event_name:<19}  ",
        (f"{event.subject:<18}  ", "bold"),
        (f"{event.decision:<7}", STYLES[event.decision]),
        f"  {taken:>10}  ",
        ", ".join(map(one_line, event.hooks)),
        (f"  {reason}" if reason else "", "dim"),
    )


def event_details(event: TimelineEvent) -> list[Text]:
    """Everything that is known about an event."""
    shown: list[Text] = [
        line((event.event_name, "bold"), f"  {event.subject}  ", (event.decision, STYLES[event.decision])),
        *_fields({"reason": event.reason, "took": f"{event.duration:.1f} ms", "time": event.timestamp}),
        *_fields({"session": event.session_id, "project": event.project, "event id": event.id}),
    ]
    for execution in event.executions:
        shown += [line(), *_hook(execution)]
    if event.ended and event.ended.get("output"):
        shown += [line(), line(("merged", "dim")), *_block(indented_json(event.ended["output"]))]
    payload = event.payload
    shown += [line(), line(("payload", "dim"))]
    missing = "not recorded; `llxprt-hooks inspect --record` and `run --log-payloads` record it"
    return [*shown, *(_block(indented_json(payload)) if payload is not None else [line(f"  {missing}")])]


def _hook(execution: Record) -> list[Text]:
    decision = decision_of(execution)
    ending = execution.get("signal") or f"exit code {execution.get('exit_code')}"
    duration = execution.get("duration")
    taken = f", {duration:.1f} ms" if isinstance(duration, int | float) else ""
    name = one_line(execution.get("hook"))
    observed = f"  {would_decide(execution)}, only observes" if would_decide(execution) else ""
    shown = [line((name, "bold"), "  ", (decision, STYLES[decision]), f"  {ending}{taken}{observed}")]
    shown += _fields({"command": execution.get("command"), "error": execution.get("error")})
    for stream in ("stdout", "stderr"):
        text = str(execution.get(stream) or "").strip("\n")
        if text:
            shown += [line((f"  {stream}", "dim")), *_block(text)]
    return shown


def _fields(fields: Mapping[str, Any]) -> list[Text]:
    return [line((f"  {name:<9} ", "dim"), one_line(value)) for name, value in fields.items() if value]


def _block(text: str) -> list[Text]:
    return [line(f"    {each}") for each in text.splitlines()]


class WatchScreen:
    """What is on the screen, and how keys change it."""

    def __init__(self, console: Console, view: Callable[[], View]) -> None:
        self._console = console
        self._view = view
        self._chosen: TimelineEvent | None = None
        """None follows the newest event."""
        self._opened: TimelineEvent | None = None
        self._top = 0

    def run(self, read: Callable[[], object]) -> None:
        """Show events until the user ends it; ``read`` reads what was added to the log."""
        with _keys() as next_key, Live(console=self._console, screen=True, auto_refresh=False) as live:
            key = ""
            while key != "q" or self._opened is not None:
                if key:
                    self._press(key)
                read()
                live.update(self._frame(), refresh=True)
                key = next_key(POLL)

    def _press(self, key: str) -> None:
        if self._opened is not None:
            page = self._rows()
            steps = {**_STEPS, "page down": page, "page up": -page}
            if key in steps:
                self._top = max(0, self._top + steps[key])
            elif key in ("escape", "enter", "q"):
                self._opened = None
            return
        events = self._events()
        at = events.index(self._chosen) if self._chosen in events else len(events) - 1
        steps = {**_STEPS, "page down": self._rows(), "page up": -self._rows()}
        if key in steps and events:
            at = min(max(at + steps[key], 0), len(events) - 1)
            self._chosen = None if at == len(events) - 1 else events[at]
        elif key == "enter" and events:
            self._opened, self._top = events[at], 0
            self._chosen = events[at]
        elif key == "escape":
            self._chosen = None

    def _events(self) -> list[TimelineEvent]:
        return self._view().page(before=None, limit=len(self._view()))[::-1]

    def _rows(self) -> int:
        return max(1, self._console.height - 2)

    def _frame(self) -> Text:
        title, lines, keys = self._details() if self._opened is not None else self._list()
        blank = [line()] * (self._rows() - len(lines))
        shown = [line((title, "bold")), *lines, *blank, line((keys, "dim"))]
        for each in shown:
            each.truncate(self._console.width, overflow="ellipsis")
        return Text("\n").join(shown)

    def _list(self) -> tuple[str, list[Text], str]:
        events, rows = self._events(), self._rows()
        if not events:
            words = "waiting for events: run an agent in another terminal, for example with `llxprt-hooks run`"
            return "hook events", [line(), line(f"  {words}")], "q quit"
        at = events.index(self._chosen) if self._chosen in events else len(events) - 1
        first = min(max(0, at - rows // 2), max(0, len(events) - rows)) if self._chosen else max(0, len(events) - rows)
        lines = []
        for number, event in enumerate(events[first : first + rows], start=first):
            mark: Part = ("> ", "bold") if number == at else "  "
            lines.append(line(mark).append_text(event_line(event)))
        following = "" if self._chosen else ", following"
        return f"hook events: {len(events)}{following}", lines, "j/k move  Enter details  G newest  q quit"

    def _details(self) -> tuple[str, list[Text], str]:
        if self._opened is None:
            raise AssertionError("an event is open")
        lines = event_details(self._opened)
        self._top = min(self._top, max(0, len(lines) - self._rows()))
        shown = lines[self._top : self._top + self._rows()]
        return "event", shown, f"j/k scroll  Enter or Esc back   {self._top + len(shown)} of {len(lines)} lines"


@contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """Yield a function that waits for a key, at most for some seconds; an empty name if there was none."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    pending: list[str] = []

    def next_key(seconds: float) -> str:
        if not pending:
            ready, _, _ = select.select([descriptor], [], [], seconds)
            if ready:
                pending.extend(_names(os.read(descriptor, 1024)))
        return pending.pop(0) if pending else ""

    try:
        tty.setcbreak(descriptor)
        yield next_key
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _names(data: bytes) -> Iterator[str]:
    """Split what was typed into keys. An empty read is the end of the terminal."""
    if not data:
        yield "q"
    while data:
        sequence = next((each for each in sorted(_KEYS, key=len, reverse=True) if data.startswith(each)), data[:1])
        data = data[len(sequence) :]
        yield _KEYS.get(sequence) or sequence.decode("latin-1")
