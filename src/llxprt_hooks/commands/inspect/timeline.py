"""The events in the log as a person sees them: one entry per event, with its hooks and the result.

``Timeline`` groups the records of the log. A ``View`` is what one filter leaves of it, with figures that are kept up to
date as records arrive, so that neither gets slower with the length of the log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Any

from llxprt_hooks.commands.log import (
    answer_word,
    blocked_word,
    is_answer,
    observed_decision,
    recorded_duration,
    recorded_time,
)
from llxprt_hooks.commands.stats import Figures
from llxprt_hooks.core.protocol.caller import CALLER_FIELDS
from llxprt_hooks.events import TOOL_EVENTS

if TYPE_CHECKING:
    from llxprt_hooks.fleet.audit.record import Record

MAX_EVENTS = 20_000
"""How many events are kept. The log itself is bounded, but someone may watch it for weeks."""

MAX_TEXT = 64 * 1024 * 1024
"""How many characters the kept events may contain: with payloads, one event can have a million."""

_FACETS = ("project", "session", "caller", "event", "tool", "hook")
"""The properties that a person can filter events by."""


class RecordedDecision(StrEnum):
    """The result of an event or of a hook, most important first."""

    BLOCKED = "blocked"
    STOPPED = "stopped"
    ASKED = "asked"
    FAILED = "failed"
    CHANGED = "changed"
    ALLOWED = "allowed"
    RUNNING = "running"
    """Nothing is known yet."""


def would_decide(record: Record) -> str:
    """Return what a hook in observe mode would have decided, for people; empty for other hooks."""
    observed = observed_decision(record)
    decision = decision_of(dict(observed)) if observed else RecordedDecision.ALLOWED
    words = {
        RecordedDecision.BLOCKED: "would block",
        RecordedDecision.STOPPED: "would stop",
        RecordedDecision.ASKED: "would ask",
        RecordedDecision.CHANGED: "would change",
    }
    return words.get(decision, "would allow") if observed else ""


def decision_of(record: Record, *, failed: bool = False) -> RecordedDecision:
    """Return what a record says about its execution or event."""
    if record.get("blocked"):
        return RecordedDecision.BLOCKED
    if record.get("stopped"):
        return RecordedDecision.STOPPED
    if record.get("asked"):
        return RecordedDecision.ASKED
    if failed or record.get("failed") or record.get("errors"):
        return RecordedDecision.FAILED
    return RecordedDecision.CHANGED if record.get("effects") else RecordedDecision.ALLOWED


def decision_word(event_name: str, decision: RecordedDecision) -> str:
    """Return a decision as people see it: a block can be the refusal of a prompt, for example."""
    return blocked_word(event_name) if decision is RecordedDecision.BLOCKED else decision.value


@dataclass(slots=True)
class TimelineEvent:
    """One event: the executions of its hooks and, when all have ended, its own record."""

    id: str
    number: int
    """The events of a timeline are numbered as they arrive."""
    executions: list[Record] = field(default_factory=list)
    started: Record | None = None
    ended: Record | None = None
    answers: list[Record] = field(default_factory=list)
    """What became of the questions that its hooks asked: several, if a framework suspended the call meanwhile."""
    size: int = 0
    """Characters in its records."""
    _text: str | None = None

    def add(self, record: Record) -> None:
        self._text = None
        self.size += sum(map(len, _strings(record)))
        if is_answer(record):
            self.answers.append(record)
        elif "hook" in record:
            self.executions.append(record)
        elif record.get("started"):
            self.started = record
        else:
            self.ended = record

    @property
    def record(self) -> Record:
        """The record that says most about the event."""
        begun = (self.started,) if self.started else ()
        return self.ended or [*begun, *self.answers, *self.executions][-1]

    @property
    def event_name(self) -> str:
        return str(self.record.get("event_name", ""))

    @property
    def project(self) -> str:
        return str(self.record.get("project") or "")

    @property
    def session_id(self) -> str:
        return str(self.record.get("session_id") or "")

    @property
    def callers(self) -> list[str]:
        """Who asked, as far as programs and agents said so: ``team=web``."""
        said = [self.record.get(name) for name in CALLER_FIELDS]
        return [
            f"{name}={value}"
            for each in said
            if isinstance(each, dict)
            for name, value in each.items()
            if isinstance(value, (str, int)) and name not in _NO_CALLER
        ]

    @property
    def timestamp(self) -> str:
        return str(self.record.get("timestamp", ""))

    @property
    def seconds(self) -> float:
        """When it ended, since 1970."""
        when = recorded_time(self.record)
        return 0.0 if when is None else when.timestamp()

    @property
    def payload(self) -> dict[str, Any] | None:
        """What the first hook was sent, if it was recorded."""
        payloads = (execution.get("payload") for execution in self.executions)
        return next((payload for payload in payloads if isinstance(payload, dict)), None)

    @property
    def subject(self) -> str:
        """What matchers were compared with: the tool's name and the like."""
        known = self.record.get("tool_name") or (self.payload or {}).get("tool_name")
        whole = self.ended or self.started
        subject = whole.get("subject") if whole else known
        return subject if isinstance(subject, str) else ""

    @property
    def tool(self) -> str:
        """The tool's name, if the event is about one."""
        return self.subject if self.event_name in TOOL_EVENTS else ""

    @property
    def hooks(self) -> list[str]:
        """The hooks of the plan if it is known, otherwise those that have ended."""
        planned = (self.ended or self.started or {}).get("hooks")
        ran = [str(each.get("hook")) for each in self.executions]
        return [str(each) for each in planned] if isinstance(planned, list) else ran

    @property
    def decision(self) -> RecordedDecision:
        failed = any(execution.get("failed") for execution in self.executions)
        if self.ended:
            return decision_of(self.ended, failed=failed)
        found = [decision_of(execution) for execution in self.executions]
        unknown = RecordedDecision.ASKED if self.answers else RecordedDecision.RUNNING
        return min(found, key=list(RecordedDecision).index, default=unknown)

    @property
    def failed(self) -> bool:
        """Whether any hook failed, or the engine, whatever was decided."""
        return any(each.get("failed") for each in self.executions) or bool(self.ended and self.ended.get("errors"))

    @property
    def reason(self) -> str:
        """Why it was blocked or stopped, or what failed."""
        records = [self.record, *self.executions]
        if reason := next((each["reason"] for each in records if each.get("reason")), None):
            return str(reason)
        errors = self.ended.get("errors") if self.ended else None
        if isinstance(errors, list) and errors:
            return str(errors[0])
        return str(next((each["error"] for each in records if each.get("error")), ""))

    @property
    def output(self) -> dict[str, Any] | None:
        """The merged output, if the event has ended with one."""
        output = self.ended.get("output") if self.ended else None
        return output if isinstance(output, dict) else None

    @property
    def duration(self) -> float:
        """Milliseconds from the start of the first hook to the end of the last."""
        wall_time = recorded_duration({"duration": self.ended.get("wall_time")}) if self.ended else None
        if wall_time is not None:
            return wall_time
        return max((recorded_duration(execution) or 0.0 for execution in self.executions), default=0.0)

    @property
    def text(self) -> str:
        """Everything that is known about it, in lower case, to search in."""
        if self._text is None:
            whole = self.ended or self.started
            records = [*self.executions, *self.answers, *([whole] if whole else [])]
            self._text = "\n".join(each for record in records for each in _strings(record)).casefold()
        return self._text

    def facets(self) -> dict[str, set[str]]:
        """The values to choose it by."""
        values = {
            "project": {self.project},
            "session": {self.session_id},
            "caller": set(self.callers),
            "event": {self.event_name},
            "tool": {self.tool},
            "hook": set(self.hooks),
        }
        return {name: found - {""} for name, found in values.items()}

    def summary(self) -> dict[str, Any]:
        """What a line of the list shows."""
        executions = [
            {
                "hook": str(each.get("hook")),
                "decision": decision_of(each),
                "duration": recorded_duration(each),
                "observed": would_decide(each),
            }
            for each in self.executions
        ]
        return {
            "id": self.id,
            "number": self.number,
            "timestamp": self.timestamp,
            "event": self.event_name,
            "subject": self.subject,
            "project": self.project,
            "session": self.session_id,
            "callers": self.callers,
            "decision": self.decision,
            "word": decision_word(self.event_name, self.decision),
            "failed": self.failed,
            "answer": answer_word(self.answers[-1]) if self.answers else "",
            "reason": self.reason[:300],
            "duration": self.duration,
            "hooks": executions,
            "planned": len(self.hooks),
            "names": self.hooks,
            "complete": self.ended is not None,
            "payload": self.payload is not None,
        }


@dataclass(frozen=True, slots=True)
class Where:
    """Which events to show; unset conditions match every event."""

    project: str = ""
    session: str = ""
    caller: str = ""
    event: str = ""
    tool: str = ""
    hook: str = ""
    decision: str = ""
    slow: float = 0.0
    """Milliseconds that an event took at least."""
    failed: bool = False
    text: str = ""
    """Words that all occur somewhere in the event's records."""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Where:
        """Return the filter that a query string describes. Raises ``ValueError`` for a number that is not one."""
        known = {each.name: given[each.name] for each in fields(cls) if given.get(each.name)}
        return cls(**{**known, "slow": float(known.get("slow", 0)), "failed": known.get("failed") == "1"})  # type: ignore[arg-type]

    def matches(self, event: TimelineEvent) -> bool:
        return (
            (not self.project or event.project == self.project)
            and (not self.session or event.session_id == self.session)
            and (not self.caller or self.caller in event.callers)
            and (not self.event or event.event_name == self.event)
            and (not self.tool or event.subject == self.tool)
            and (not self.hook or self.hook in event.hooks)
            and (not self.decision or event.decision == self.decision)
            and event.duration >= self.slow
            and (not self.failed or event.failed)
            and all(word in event.text for word in self.text.casefold().split())
        )


class View:
    """The events that match a filter, oldest first, and their figures."""

    def __init__(self, where: Where, events: Iterable[TimelineEvent]) -> None:
        self._where = where
        self._events: dict[str, TimelineEvent] = {}
        self.figures = Figures()
        for event in events:
            self.update(event)

    def __len__(self) -> int:
        return len(self._events)

    def update(self, event: TimelineEvent) -> bool | None:
        """Take an event that is new or has changed; whether it matches now, None if it never did."""
        if self._where.matches(event):
            self._events[event.id] = event
            self.figures.add(event)
            return True
        if self._events.pop(event.id, None) is None:
            return None
        self.figures = Figures()
        for each in self._events.values():
            self.figures.add(each)
        return False

    def page(self, *, before: int | None, limit: int) -> list[TimelineEvent]:
        """Return the latest events, or those before a number, newest first."""
        events = reversed(self._events.values())
        return list(islice((event for event in events if before is None or event.number < before), limit))


class Timeline:
    """Groups records by event, in the order in which events first appear."""

    def __init__(self) -> None:
        self.events: dict[str, TimelineEvent] = {}
        self._numbers = 0
        self._size = 0
        self._views: dict[Where, View] = {}
        self._facets: dict[str, Counter[str]] = {name: Counter() for name in _FACETS}
        self._counted: dict[str, dict[str, set[str]]] = {}

    def add(self, records: Iterable[Record]) -> list[TimelineEvent]:
        """Add records; return the events that are new or have changed."""
        touched: dict[str, TimelineEvent] = {}
        for record in records:
            identity = str(record.get("event_id") or record.get("id") or "")
            event = self.events.get(identity)
            if event is None:
                self._numbers += 1
                event = self.events[identity] = TimelineEvent(identity, self._numbers)
            self._size -= event.size
            event.add(record)
            self._size += event.size
            touched[identity] = event
        for event in touched.values():
            self._count(event)
            for view in self._views.values():
                view.update(event)
        self._forget()
        return list(touched.values())

    def view(self, where: Where) -> View:
        """Return the events that match a filter. The latest few views are kept up to date."""
        view = self._views.pop(where, None) or View(where, self.events.values())
        self._views[where] = view
        while len(self._views) > _MAX_VIEWS:
            del self._views[next(iter(self._views))]
        return view

    def facets(self) -> dict[str, list[tuple[str, int]]]:
        """Return what events can be chosen by, the most frequent values first."""
        return {name: (+counter).most_common(_MAX_VALUES) for name, counter in self._facets.items()}

    def _count(self, event: TimelineEvent) -> None:
        before, now = self._counted.get(event.id, {}), event.facets()
        for name in _FACETS:
            known = before.get(name, set())
            self._facets[name].update(now[name] - known)
            self._facets[name].subtract(known - now[name])
        self._counted[event.id] = now

    def _forget(self) -> None:
        """Drop the oldest events, many at once: views must be made again."""
        if len(self.events) <= MAX_EVENTS and self._size <= MAX_TEXT:
            return
        for identity in list(self.events)[:-1]:
            if len(self.events) <= MAX_EVENTS * 9 // 10 and self._size <= MAX_TEXT * 9 // 10:
                break
            self._size -= self.events.pop(identity).size
            for name, values in self._counted.pop(identity).items():
                self._facets[name].subtract(values)
        self._facets = {name: +counter for name, counter in self._facets.items()}
        self._views.clear()


_NO_CALLER = ("pid", "version")
"""What an agent says about itself that nobody looks for an event by."""

_MAX_VIEWS = 8
_MAX_VALUES = 200


def _strings(value: object) -> Iterator[str]:
    """Yield every string in a JSON value except field names."""
    pending = [value]
    while pending:
        if isinstance(each := pending.pop(), str):
            yield each
        elif isinstance(each, dict):
            pending += reversed(each.values())
        elif isinstance(each, list):
            pending += reversed(each)
