"""A program's view of its hooks at work: what runs, what came of it, how long it took.

An observer is told, never asked: nothing it does, not even raising, changes what hooks decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from llxprt_hooks.logger import debug_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from llxprt_hooks.engine.definitions import HookConfig
    from llxprt_hooks.engine.results import HookExecutionResult, ProcessedHookResult
    from llxprt_hooks.events import HookEventName

log = debug_logger("observer")


class HookObserver(Protocol):
    """What an observer is told, on the event loop's own thread, so it had better be quick."""

    def hook_started(self, event_name: HookEventName, hook_config: HookConfig) -> None:
        """A hook is about to run."""

    def hook_ended(self, result: HookExecutionResult) -> None:
        """A hook has run; not told of one whose caller was cancelled."""

    def event_ended(self, event_name: HookEventName, processed: ProcessedHookResult, wall_time: float) -> None:
        """All hooks of an event have run, in so many milliseconds."""


class Observers:
    """Several observers as one; one that raises keeps nothing from the others."""

    def __init__(self, *observers: HookObserver) -> None:
        self._observers = observers

    def hook_started(self, event_name: HookEventName, hook_config: HookConfig) -> None:
        for each in self._observers:
            tell(each, lambda observer: observer.hook_started(event_name, hook_config))

    def hook_ended(self, result: HookExecutionResult) -> None:
        for each in self._observers:
            tell(each, lambda observer: observer.hook_ended(result))

    def event_ended(self, event_name: HookEventName, processed: ProcessedHookResult, wall_time: float) -> None:
        for each in self._observers:
            tell(each, lambda observer: observer.event_ended(event_name, processed, wall_time))


def tell(observer: HookObserver | None, news: Callable[[HookObserver], None]) -> None:
    """Tell an observer, if there is one, and survive it."""
    if observer is None:
        return
    try:
        news(observer)
    except Exception:
        log.warning("the observer of hooks failed, which changes nothing for them", exc_info=True)
