"""Show what the agent is doing and waiting for, in lines with a spinner."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.spinner import Spinner
from rich.text import Text

from llxprt_hooks._support.json_codec import decode_text, write_json
from llxprt_hooks._support.text import PROSE, escape_for_terminal, one_line, shorten

if TYPE_CHECKING:
    from llxprt_hooks.agent.scheduler import RequestedCall
    from llxprt_hooks.core.engine.observer import HookStarted
    from llxprt_hooks.core.engine.results import HookExecutionResult
    from llxprt_hooks.events import HookEventName

NOTICE_DELAY = 0.5
"""Seconds before the screen shows that a hook is running."""

_MAX_CALLS = 5


@dataclass(eq=False, slots=True)
class Wait:
    """A running tool call or hook."""

    what: str
    event_name: HookEventName | None = None
    since: float = field(default_factory=time.monotonic)

    @property
    def is_awaited(self) -> bool:
        return self.event_name is not None and self.event_name.spec.awaited

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.since


class Progress:
    """The tool calls and hooks that are running now."""

    def __init__(self) -> None:
        self.working = False
        self.interrupted = False
        self.hooks: dict[str, Wait] = {}
        """By execution id."""
        self._calls: dict[int, Wait] = {}
        self._spinner = Spinner("dots")

    def begin(self) -> None:
        self.working, self.interrupted = True, False

    def end(self) -> None:
        """Stop working. Awaited hooks are removed: hooks of a cancelled event do not report their end."""
        self.working = False
        self._calls.clear()
        self.hooks = {key: wait for key, wait in self.hooks.items() if not wait.is_awaited}

    def call_started(self, call: RequestedCall) -> None:
        self._calls[id(call)] = Wait(call_words(call))

    def call_ended(self, call: RequestedCall) -> None:
        self._calls.pop(id(call), None)

    def hook_started(self, hook: HookStarted) -> None:
        name = escape_for_terminal(one_line(hook.hook_config.identity))
        self.hooks[hook.execution_id] = Wait(f"waiting for hook {name} ({hook.event_name})", hook.event_name)

    def hook_ended(self, result: HookExecutionResult) -> None:
        self.hooks.pop(result.execution_id, None)

    @property
    def height(self) -> int:
        return len(list(self.lines("")))

    def lines(self, otherwise: str) -> Iterator[Text]:
        """Yield a line for each running call and one for awaited hooks, or ``otherwise`` if there are none."""
        calls = list(self._calls.values())
        hooks = [wait for wait in self.hooks.values() if wait.is_awaited and wait.seconds > NOTICE_DELAY]
        for wait in calls[:_MAX_CALLS]:
            yield self._line(wait.what, wait.seconds)
        if len(calls) > _MAX_CALLS:
            yield self._line(f"and {len(calls) - _MAX_CALLS} more")
        if hooks:
            more = f" and {len(hooks) - 1} more" if len(hooks) > 1 else ""
            yield self._line(hooks[0].what + more, hooks[0].seconds)
        if self.interrupted:
            yield self._line("interrupting")
        elif not (calls or hooks):
            yield self._line(otherwise)

    def _line(self, text: str, seconds: float = 0.0) -> Text:
        frame = self._spinner.render(time.monotonic())
        line = Text.assemble(*([frame] if isinstance(frame, Text) else []), no_wrap=True, overflow="ellipsis")
        line.append(f" {seconds:.0f} s" if seconds >= 1 else "", "dim")
        return line.append(f" {text}")


_MAX_LINE_LENGTH = 500
_MAX_ARGUMENTS_LENGTH = 200
_MAX_NAME_LENGTH = 100


def excerpt(text: str, most_lines: int) -> str:
    """Escape a text and cut it to ``most_lines`` lines of limited length."""
    lines = [shorten(line, _MAX_LINE_LENGTH) for line in escape_for_terminal(text, keep=PROSE).rstrip().split("\n")]
    more = len(lines) - most_lines
    return "\n".join(lines if more <= 0 else [*lines[:most_lines], f"… {more} more line{'s' if more > 1 else ''}"])


def call_words(call: RequestedCall) -> str:
    """Describe a call in one line: the tool's name and its arguments."""
    arguments = " ".join(f"{name}={decode_text(write_json(value))}" for name, value in call.args.items())
    return escape_for_terminal(f"{shorten(call.name, _MAX_NAME_LENGTH)} {shorten(arguments, _MAX_ARGUMENTS_LENGTH)}")
