"""Back-testing: recorded events, fired at hooks again, and which decisions would change (D-86).

The log records what each hook decided and, if the user asked for it, what the hook received. ``recorded_events`` groups
the records by event; ``replay`` fires the events again, several at a time.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks._support.logger import without_warnings
from llxprt_hooks.commands.inspect.timeline import RecordedDecision, Timeline, TimelineEvent, decision_of
from llxprt_hooks.commands.test.run import Decision, Outcome
from llxprt_hooks.core.engine.plan import name_text
from llxprt_hooks.core.protocol.inputs import input_problem
from llxprt_hooks.events import HookEventName

if TYPE_CHECKING:
    from llxprt_hooks.commands.fire import LoadedHooks
    from llxprt_hooks.fleet.audit.record import Record

HOW_TO_RECORD: Final = (
    "What hooks are sent is recorded only if you ask for it: run the agent with `llxprt-hooks run --log-payloads`, "
    "keep `llxprt-hooks inspect --record` open meanwhile, or pass `HookLog(project, payloads=True)` as the observer of "
    'your program; in an audit trail, with `"payloads": true`.'
)

AT_ONCE: Final = 2 * (os.cpu_count() or 1)
"""How many events are replayed at a time. Hook processes have their own limit (D-32)."""

MAX_EXAMPLES: Final = 3


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    id: str
    """The id of its first execution, for ``fire --from-log``."""
    timestamp: str
    event: HookEventName
    payload: Mapping[str, Any]
    decision: Decision
    """``allow``, ``ask``, ``block`` or ``stop``: the log records no finer distinction."""
    reason: str | None

    @property
    def subject(self) -> str:
        """What matchers were compared with: the tool's name, for example. Empty if there is nothing."""
        name = self.event.spec.matched_field
        return name_text(self.payload[name]) if name else ""


@dataclass(frozen=True, slots=True)
class Replay:
    """A recorded event that was fired again."""

    recorded: RecordedEvent
    decision: Decision
    """``allow``, ``ask``, ``block`` or ``stop``, as in the log. An ``ask`` that asks nobody allows."""
    reason: str | None
    failures: tuple[str, ...]
    """The hooks that failed, and how."""
    matched: bool
    """Whether any hook ran."""

    @property
    def changed(self) -> bool:
        return self.decision is not self.recorded.decision


@dataclass(slots=True)
class DecisionChange:
    """Decisions that change in the same way."""

    event: str
    subject: str
    before: Decision
    after: Decision
    total: int
    """All replayed events of this kind, including those whose decision stays the same."""
    replays: list[Replay] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return len(self.replays) / self.total

    def to_dict(self) -> dict[str, Any]:
        return {
            "event": self.event,
            "subject": self.subject,
            "from": self.before.value,
            "to": self.after.value,
            "count": len(self.replays),
            "of": self.total,
            "rate": self.rate,
            "examples": [
                {
                    "id": each.recorded.id,
                    "timestamp": each.recorded.timestamp,
                    "recorded_reason": each.recorded.reason,
                    "reason": each.reason,
                }
                for each in self.replays[:MAX_EXAMPLES]
            ],
        }


@dataclass(frozen=True, slots=True)
class BacktestReport:
    replays: Sequence[Replay]
    without_payload: int
    """How many events could not be replayed."""

    @property
    def changed(self) -> int:
        return sum(each.changed for each in self.replays)

    @property
    def failed(self) -> int:
        """Events in which a hook failed."""
        return sum(bool(each.failures) for each in self.replays)

    @property
    def unmatched(self) -> int:
        """Events that no hook ran for."""
        return sum(not each.matched for each in self.replays)

    def changes(self) -> list[DecisionChange]:
        """Return the decisions that change, grouped by event, subject and how they change; most first."""
        totals = Counter((each.recorded.event.value, each.recorded.subject) for each in self.replays)
        found: dict[tuple[str, str, Decision, Decision], DecisionChange] = {}
        for each in self.replays:
            if each.changed:
                kind = each.recorded.event.value, each.recorded.subject
                change = (*kind, each.recorded.decision, each.decision)
                found.setdefault(change, DecisionChange(*change, totals[kind])).replays.append(each)
        return sorted(found.values(), key=lambda each: -len(each.replays))

    def failures(self) -> dict[str, list[str]]:
        """Return what failed, each with the ids of the events; most frequent first."""
        found: dict[str, list[str]] = {}
        for each in self.replays:
            for failure in each.failures:
                found.setdefault(failure, []).append(each.recorded.id)
        return dict(sorted(found.items(), key=lambda item: -len(item[1])))

    def to_dict(self) -> dict[str, Any]:
        """Return the output of ``backtest --json``."""
        return {
            "replayed": len(self.replays),
            "without_payload": self.without_payload,
            "unmatched": self.unmatched,
            "changed": self.changed,
            "failed": self.failed,
            "changes": [change.to_dict() for change in self.changes()],
            "failures": [
                {"error": error, "count": len(ids), "examples": ids[:MAX_EXAMPLES]}
                for error, ids in self.failures().items()
            ],
        }


def recorded_events(
    records: Iterable[Record], *, since: datetime | None = None, only: str | None = None
) -> tuple[list[RecordedEvent], int]:
    """Put the records of each event together, oldest first.

    The number counts events that are left out: what hooks were sent was not recorded, or cannot be used any more.
    With ``only``, what the hook with that name decided is what counts; where it did not run, it decided nothing.
    """
    timeline = Timeline()
    timeline.add(records)
    chosen = [each for each in timeline.events.values() if since is None or each.seconds >= since.timestamp()]
    usable = [event for each in chosen if (event := _event(each, only)) is not None]
    return usable, len(chosen) - len(usable)


async def replay(hooks: LoadedHooks, events: Iterable[RecordedEvent], on_done: Callable[[], None]) -> list[Replay]:
    """Fire recorded events again, several at once. Hooks run for real."""
    places = asyncio.Semaphore(AT_ONCE)

    async def one(event: RecordedEvent) -> Replay:
        async with places:
            trial = await hooks.fire(event.event, event.payload)
        on_done()
        outcome = Outcome.of(trial)
        counts = outcome.decision in _DECISIONS.values() and (outcome.decision is not Decision.ASK or trial.asked)
        decision = outcome.decision if counts else Decision.ALLOW
        failed = [result for result in trial.results if result.error is not None and not result.hook_config.observe]
        failures = (*trial.failures, *(str(result.error) for result in failed))
        return Replay(event, decision, outcome.reason, failures, bool(trial.results))

    with without_warnings():
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(event)) for event in events]
    return [task.result() for task in tasks]


def _event(recorded: TimelineEvent, only: str | None) -> RecordedEvent | None:
    """Return an event of the log; None if its input was not recorded, or does not fit the event any more."""
    payload = recorded.payload
    try:
        event = HookEventName(recorded.event_name)
    except ValueError:
        return None
    if payload is None or input_problem(event, payload):
        return None
    decision, reason = recorded.decision, recorded.reason
    if only is not None:
        decided = {decision_of(each): each.get("reason") for each in recorded.executions if each.get("hook") == only}
        decision = min(decided, key=list(RecordedDecision).index, default=RecordedDecision.ALLOWED)
        reason = str(decided.get(decision) or "")
    counts = _DECISIONS.get(decision, Decision.ALLOW)
    identity, why = str(recorded.executions[0].get("id")), reason if reason and decision in _DECISIONS else None
    return RecordedEvent(identity, recorded.timestamp, event, payload, counts, why)


_DECISIONS: Final = {
    RecordedDecision.BLOCKED: Decision.BLOCK,
    RecordedDecision.STOPPED: Decision.STOP,
    RecordedDecision.ASKED: Decision.ASK,
}
