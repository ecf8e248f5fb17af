"""Reads the log of executions, which ``audit.log`` writes: all of it, what is new, or what matches a filter."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from llxprt_hooks._support.json_codec import read_json_object, write_json
from llxprt_hooks.events import HookEventName
from llxprt_hooks.fleet.audit.log import log_file, rotated
from llxprt_hooks.settings.matcher import own_names

if TYPE_CHECKING:
    from llxprt_hooks.fleet.audit.record import Record

MAX_DURATION = 1e12
"""Maximum plausible duration in milliseconds, about thirty years."""

POLL = 0.2
"""Seconds between two reads while following the file."""


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which records to read; unset conditions match every record."""

    execution: str | None = None
    """The id of an execution, or of the answer to its question, or a prefix of it."""
    event: str | None = None
    hook: str | None = None
    project: str | None = None
    """A real path."""
    failed: bool = False
    blocked: bool = False
    answers: bool = False
    """Whether to read the answers to the questions of hooks, too."""
    tool: str | None = None
    """A tool's name; of a tool of an MCP server, also its own name (``refund`` for ``mcp__shop__refund``)."""
    session: str | None = None
    """The id of a session, or a prefix of it."""
    since: datetime | None = None
    caller: tuple[tuple[str, str], ...] = ()
    """Fields of ``metadata`` and what they must have, as text; ``agent.host`` is a field of ``agent``."""

    def matches(self, record: Record) -> bool:
        return (
            (self.event is None or record.get("event_name") == self.event)
            and (self.hook is None or record.get("hook") == self.hook)
            and (self.tool is None or _is_about(self.tool, record))
            and (self.session is None or str(record.get("session_id", "")).startswith(self.session))
            and (self.since is None or ((when := recorded_time(record)) is not None and when >= self.since))
            and all(caller_field(record, name) == value for name, value in self.caller)
            and (not self.failed or bool(record.get("failed")))
            and (not self.blocked or bool(record.get("blocked")))
            and (self.execution is None or any(each.startswith(self.execution) for each in _ids(record)))
            and (self.answers or not is_answer(record))
            and (self.project is None or _ran_in(self.project, record))
        )


class LogReader:
    """Reads the records of a log, oldest first, and remembers how far it has read: executions, with ``events`` also
    those of events.

    Skips lines that are not records. If the file is rotated meanwhile, reads the rest of it, then the new one.
    """

    def __init__(
        self,
        file: Path | None = None,
        where: LogFilter = LogFilter(),  # noqa: B008  # it is frozen
        *,
        events: bool = False,
    ) -> None:
        self._file = file or log_file()
        self._events = events
        self._where = where
        self._inode: int | None = None
        self._position = 0

    def read(self) -> list[Record]:
        """Return the records added since the last call; on the first call, all records."""
        with _opened(self._file) as newest:
            records: list[Record] = []
            inode = _inode(newest)
            if inode != self._inode:
                with _opened(rotated(self._file)) as older:
                    if _inode(older) != inode and self._inode in (None, _inode(older)):
                        records += self._read_on(older)
                self._inode, self._position = inode, 0
            records += self._read_on(newest)
        return [record for record in records if ("hook" in record or self._events) and self._where.matches(record)]

    def follow(self) -> Iterator[Record]:
        """Yield new records as they are added, forever."""
        while True:
            yield from self.read()
            time.sleep(POLL)

    def _read_on(self, file: BinaryIO) -> list[Record]:
        if os.fstat(file.fileno()).st_size < self._position:  # it was emptied
            self._position = 0
        file.seek(self._position)
        added = file.read()
        end = added.rfind(b"\n") + 1
        records = [record for line in added[:end].splitlines() if (record := read_record(line)) is not None]
        if (unfinished := read_record(added[end:])) is not None:
            records.append(unfinished)
            end = len(added)
        self._position += end
        return records


def read_log(where: LogFilter = LogFilter()) -> list[Record]:  # noqa: B008  # it is frozen
    """Return the recorded executions, oldest first."""
    return LogReader(where=where).read()


def is_answer(record: Record) -> bool:
    """Whether a record is about the answer to a hook's question."""
    return "answer" in record


def answer_word(record: Record) -> str:
    """Return what became of the call that a hook asked about, in one word.

    >>> answer_word({"answer": "approved for this session"}), answer_word({"answer": "denied", "blocked": True})
    ('approved', 'denied')
    """
    return "denied" if record.get("blocked") else str(record.get("answer")).partition(" ")[0]


def answer_details(record: Record) -> str:
    """Return all else about an answer: how it came about, and why the hook asked."""
    answer, word = str(record.get("answer")), answer_word(record)
    how = str(record.get("refusal") or answer.removeprefix(word).strip())
    reason = record.get("reason")
    return f"{reason} ({how})" if reason and how else str(reason or how)


def _ids(record: Record) -> tuple[str, str]:
    return str(record.get("id", "")), str(record.get("execution_id", ""))


def blocked_word(event_name: str) -> str:
    """Return what a block of an event does, for people.

    >>> blocked_word("BeforeTool"), blocked_word("BeforeAgent")
    ('blocked', 'refused')
    """
    return HookEventName(event_name).spec.blocked_word if event_name in tuple(HookEventName) else "blocked"


def observed_decision(record: Record) -> Mapping[str, Any]:
    """Return what a hook in observe mode would have decided; empty for other hooks."""
    observed = record.get("observed")
    return observed if isinstance(observed, dict) else {}


def recorded_duration(record: Record) -> float | None:
    """Return the duration of an execution in milliseconds; None if the record has no plausible one."""
    duration = record.get("duration_ms", record.get("duration"))  # its name before 0.4
    return float(duration) if isinstance(duration, int | float) and 0 <= duration <= MAX_DURATION else None


def recorded_time(record: Record) -> datetime | None:
    """Return when a record was written, in local time; None if it does not say."""
    try:
        return datetime.fromisoformat(str(record.get("timestamp"))).astimezone()
    except (ValueError, OverflowError):
        return None


def _is_about(tool: str, record: Record) -> bool:
    name = record.get("tool_name")
    return isinstance(name, str) and tool in (name, *own_names(name))


def caller_field(record: Record, name: str) -> str | None:
    """Return what a record says about who asked: a field of ``metadata``, or ``agent.host`` and the like.

    >>> caller_field({"metadata": {"tenant": "shop", "level": 3}}, "level")
    '3'
    """
    about, dot, field = name.partition(".")
    is_agent = about == "agent" and bool(dot)
    fields = record.get("agent" if is_agent else "metadata")
    found = fields.get(field if is_agent else name) if isinstance(fields, dict) else None
    return found if found is None or isinstance(found, str) else write_json(found).decode()


def _ran_in(project: str, record: Record) -> bool:
    recorded = record.get("project")
    try:
        return isinstance(recorded, str) and os.path.realpath(recorded) == project
    except ValueError:  # a NUL or a lone surrogate, which no path contains
        return False


def read_record(line: bytes) -> Record | None:
    """Return the record in a line, or ``None`` if the line has none."""
    record = read_json_object(line)
    return record if record and ("hook" in record or "hooks" in record) else None


def _opened(file: Path) -> BinaryIO:
    """Open a file for reading; a missing file reads as empty."""
    try:
        return file.open("rb")
    except (FileNotFoundError, NotADirectoryError):
        return open(os.devnull, "rb")  # noqa: PTH123


def _inode(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_ino
