"""How a program watches its hooks: which event started, which hook runs, what it returned, how long it took.

Observers only receive. Nothing they do, including raising, changes what hooks decide. The ids tie what they receive
together: all hooks of one event share its ``event_id``, and a hook's start and end share an ``execution_id``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from llxprt_hooks._support.logger import debug_logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from llxprt_hooks.core.calls.approval import ApprovalRequest, Verdict
    from llxprt_hooks.core.engine.plan import ExecutionPlan
    from llxprt_hooks.core.engine.results import HookExecutionResult, ProcessedHookResult
    from llxprt_hooks.events import HookEventName
    from llxprt_hooks.settings.definitions import HookConfig

log = debug_logger("observer")


@dataclass(frozen=True, slots=True)
class EventStarted:
    """An event has hooks to run: the plan, and the payload for its first hook."""

    event_id: str
    event_name: HookEventName
    plan: ExecutionPlan
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HookStarted:
    """A hook is about to run."""

    event_id: str
    execution_id: str
    event_name: HookEventName
    hook_config: HookConfig


@dataclass(frozen=True, slots=True)
class EventEnded:
    """All hooks of an event have run; ``wall_time`` is in milliseconds."""

    event_id: str
    event_name: HookEventName
    processed: ProcessedHookResult
    wall_time: float
    plan: ExecutionPlan | None = None
    subject: str | None = None
    """What matchers were compared with, such as the tool's name; None if the event ignores matchers."""

    @property
    def blocked(self) -> bool:
        return self.processed.aggregated.is_blocked(self.event_name)


@dataclass(frozen=True, slots=True)
class QuestionEnded:
    """A hook asked about a call, and the question was answered, or nobody could be asked."""

    asked_by: HookExecutionResult
    request: ApprovalRequest
    verdict: Verdict
    duration: float
    """Milliseconds until the answer."""


class HookObserver:
    """Override the methods you need. They are called on the thread of the event loop and must not block.

    An exception in a method is logged and ignored. All hooks of one event have its ``event_id``, and the start and the
    end of one hook have the same ``execution_id``, so the ids match these calls if several events run at once.
    """

    def event_started(self, event: EventStarted) -> None:
        """An event is about to run its hooks. Not called for an event without hooks."""

    def hook_started(self, hook: HookStarted) -> None:
        """A hook is about to run."""

    def hook_ended(self, result: HookExecutionResult) -> None:
        """A hook has ended. Not called if the caller of the event was cancelled."""

    def event_ended(self, event: EventEnded) -> None:
        """All hooks of an event have ended. Not called if its caller was cancelled."""

    def question_ended(self, question: QuestionEnded) -> None:
        """A hook asked a person about a call, after ``event_ended``. Not called if the call was cancelled meanwhile."""


class Observers(HookObserver):
    """Several observers as one. If one of them raises, the others are still called."""

    def __init__(self, *observers: HookObserver) -> None:
        nested = (each.observers if isinstance(each, Observers) else (each,) for each in observers)
        self.observers: tuple[HookObserver, ...] = tuple(chain.from_iterable(nested))

    def event_started(self, event: EventStarted) -> None:
        for each in self.observers:
            notify(each, "event_started", event)

    def hook_started(self, hook: HookStarted) -> None:
        for each in self.observers:
            notify(each, "hook_started", hook)

    def hook_ended(self, result: HookExecutionResult) -> None:
        for each in self.observers:
            notify(each, "hook_ended", result)

    def event_ended(self, event: EventEnded) -> None:
        for each in self.observers:
            notify(each, "event_ended", event)

    def question_ended(self, question: QuestionEnded) -> None:
        for each in self.observers:
            notify(each, "question_ended", question)


_Method = Literal["event_started", "hook_started", "hook_ended", "event_ended", "question_ended"]


def notify(observer: HookObserver | None, method: _Method, news: object) -> None:
    """Call a method of an observer, if it has that method, and ignore what it raises."""
    if observer is None:
        return
    try:
        call = getattr(observer, method, None)
        if call is not None:
            call(news)
    except Exception:
        log.warning("the hook observer %s raised in %s; ignored", type(observer).__name__, method, exc_info=True)
