"""Which hook blocked a call or stopped the agent: triggers return what was decided, observers see who decided it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from llxprt_hooks.engine.observer import HookObserver
from llxprt_hooks.engine.results import is_blocked
from llxprt_hooks.model.outputs import create_specific_hook_output
from llxprt_hooks.text import one_line, shorten

if TYPE_CHECKING:
    from llxprt_hooks.engine.observer import EventEnded

_LONGEST_NAME = 60


@dataclass(slots=True)
class Deciders:
    """The hooks that blocked a call, and those that stopped the agent."""

    blocked: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)

    @property
    def blocked_by(self) -> str | None:
        """The hooks as text; None if none blocked."""
        return ", ".join(self.blocked) or None

    @property
    def stopped_by(self) -> str | None:
        """The hooks as text; None if none stopped the agent."""
        return ", ".join(self.stopped) or None


_current: ContextVar[Deciders | None] = ContextVar("deciders", default=None)


@contextmanager
def deciders() -> Iterator[Deciders]:
    """Collect the hooks that decide the events fired inside, also if other calls run at the same time."""
    found = Deciders()
    token = _current.set(found)
    try:
        yield found
    finally:
        _current.reset(token)


class DecidersObserver(HookObserver):
    """Notes the hooks of an event that was blocked or stopped the agent."""

    def event_ended(self, event: EventEnded) -> None:
        found = _current.get()
        if found is None:
            return
        for result in event.processed.aggregated.results:
            if result.output is None:
                continue
            output = create_specific_hook_output(event.event_name, result.output.to_dict())
            name = shorten(one_line(result.hook_config.identity), _LONGEST_NAME)
            if event.blocked and is_blocked(event.event_name, output):
                found.blocked.append(name)
            if event.processed.should_stop and output.should_stop_execution():
                found.stopped.append(name)
