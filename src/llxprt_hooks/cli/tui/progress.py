"""What the agent is doing and what it is waiting for, in lines with a spinner."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.spinner import Spinner
from rich.text import Text

from llxprt_hooks.cli.tui.shown_text import call_words
from llxprt_hooks.events import HookEventName
from llxprt_hooks.text import escape_for_terminal

if TYPE_CHECKING:
    from llxprt_hooks.agent.scheduler import ToolCall
    from llxprt_hooks.engine.definitions import HookConfig

NOTICE_DELAY = 0.5
"""Seconds after which the screen says which hook is being waited for."""

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


@dataclass(eq=False, slots=True)
class Wait:
    """Something that takes its time."""

    what: str
    event_name: HookEventName | None = None
    since: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.since


class Progress:
    """What the agent is doing right now."""

    def __init__(self) -> None:
        self.working = False
        self.interrupted = False
        self.hooks: list[Wait] = []
        self._calls: dict[int, Wait] = {}
        self._spinner = Spinner("dots")

    def begin(self) -> None:
        self.working, self.interrupted = True, False

    def end(self) -> None:
        """Nothing is awaited any more; hooks of a cancelled event never reported their end."""
        self.working = False
        self._calls.clear()
        self.hooks = [wait for wait in self.hooks if wait.event_name not in AWAITED]

    def call_started(self, call: ToolCall) -> None:
        self._calls[id(call)] = Wait(call_words(call))

    def call_ended(self, call: ToolCall) -> None:
        self._calls.pop(id(call), None)

    def hook_started(self, event_name: HookEventName, hook_config: HookConfig) -> Wait:
        wait = Wait(_waiting_for(event_name, hook_config), event_name)
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
        hooks = [wait for wait in self.hooks if wait.event_name in AWAITED and wait.seconds > NOTICE_DELAY]
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
    return f"waiting for hook {escape_for_terminal(' '.join(hook_config.identity.split()))} ({event_name})"
