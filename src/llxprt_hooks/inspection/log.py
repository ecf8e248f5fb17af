"""The log of executions: which hook ran when, its decision, its output, its duration; and the result of its event.

A bounded local file of JSON lines in the user's folder, readable by the user only. A line is one execution, or one
event: its plan and the merged decision, after the executions of its hooks. Payloads contain the data the agent works
on. They, and answers that may repeat them, are recorded only on request. ``run``, ``serve`` and the proxies write the
log; other programs opt in with ``Config(observer=HookLog(project))``.

Several processes may write at once: each record is a single write to a file opened for appending. Writing never waits
for another process. If a record cannot be written, the log warns once and stops recording; hooks are not affected.
"""

from __future__ import annotations

import os
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

from llxprt_hooks.audit.record import Record, event_record, execution_record
from llxprt_hooks.engine.observer import HookObserver
from llxprt_hooks.inspection.recording import is_recording
from llxprt_hooks.logger import debug_logger
from llxprt_hooks.process import blocking_is_forbidden
from llxprt_hooks.protocol.clock import timestamp
from llxprt_hooks.protocol.json_codec import read_json_object, write_json
from llxprt_hooks.settings import exclusive_lock, make_private_folder, user_folder
from llxprt_hooks.settings.atomic import append_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from llxprt_hooks.engine.observer import EventEnded
    from llxprt_hooks.engine.results import HookExecutionResult

log = debug_logger("log")

LARGEST = 4 * 1024 * 1024
"""Bytes after which the file is rotated; one rotated file is kept."""

LARGEST_WHILE_LOCKED = 2 * LARGEST
"""Bytes that the file may have while another process keeps it from being rotated; more records are dropped."""

MOST_PENDING = 1000
"""Records that may wait to be written, where only a thread may write; more are dropped."""

LONGEST = 1e12
"""Maximum plausible duration in milliseconds, about thirty years."""

POLL = 0.2
"""Seconds between two reads while following the file."""

# O_NONBLOCK: opening a named pipe would otherwise block forever.
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK


def log_file() -> Path:
    return user_folder() / "logs" / "hooks.jsonl"


def rotated(file: Path) -> Path:
    return file.with_suffix(".1.jsonl")


class HookLog(HookObserver):
    """An observer that records every execution; with ``payloads``, also each hook's input."""

    def __init__(
        self,
        project: str | os.PathLike[str] = "",
        *,
        session_id: str = "",
        file: Path | None = None,
        payloads: bool = False,
    ) -> None:
        self.session_id = session_id
        self._payloads = payloads
        self._project = os.path.abspath(project) if project else ""  # noqa: PTH100  # as the user knows it
        self._file = file or log_file()
        self._usable = True
        self._dropped = 0
        self._later = _WriteLater()

    def hook_ended(self, result: HookExecutionResult) -> None:
        self._write(partial(self._execution, result, timestamp()))

    def event_ended(self, event: EventEnded) -> None:
        self._write(partial(self._event, event, timestamp()))

    def _write(self, record: Callable[[], Record]) -> None:
        if not self._usable:
            return
        if not blocking_is_forbidden():
            self._append(record())
        elif not self._later.call(lambda: self._append(record())):
            self._drop(f"{MOST_PENDING} records wait to be written")

    def _execution(self, result: HookExecutionResult, ended: str) -> Record:
        payloads = self._records_payloads()
        return execution_record(result, ended, self._project, session_id=self.session_id, payloads=payloads)

    def _event(self, event: EventEnded, ended: str) -> Record:
        payloads = self._records_payloads()
        return event_record(event, ended, self._project, session_id=self.session_id, payloads=payloads)

    def _records_payloads(self) -> bool:
        return self._payloads or is_recording(self._file.parent)

    def _append(self, record: dict[str, Any]) -> None:
        try:
            self._make_room()
            descriptor = os.open(self._file, _APPEND, 0o600)
            try:
                append_line(descriptor, write_json(record))
            finally:
                os.close(descriptor)
        except TimeoutError as error:
            self._drop(f"{self._file} is full, and {error.strerror}")
        except OSError as error:
            self._usable = False
            log.warning("executions are no longer recorded: %s: %s", self._file, error.strerror or error)
        else:
            self._report_dropped()

    def _make_room(self) -> None:
        """Rotate a full file, once even if several processes notice it. While another process holds the lock, append.

        Raises ``TimeoutError`` if that has gone on for too long.
        """
        make_private_folder(self._file.parent)
        if _size(self._file) < LARGEST:
            return
        try:
            with exclusive_lock(self._file, timeout=0):
                if _size(self._file) >= LARGEST:
                    self._file.replace(rotated(self._file))
        except TimeoutError:
            if _size(self._file) >= LARGEST_WHILE_LOCKED:
                raise

    def _drop(self, why: str) -> None:
        self._dropped += 1
        if self._dropped == 1:
            log.warning("executions are not recorded for now: %s", why)

    def _report_dropped(self) -> None:
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            log.warning("executions are recorded again; %d records were not written", dropped)


class _WriteLater:
    """Writes in a thread, in order."""

    def __init__(self) -> None:
        self._pid = 0
        self._pending: deque[None] = deque()

    def call(self, write: Callable[[], None]) -> bool:
        """Write soon; false if too much is pending. At the end of the program the interpreter waits for the rest."""
        if self._pid != os.getpid():  # a forked process does not have the thread
            self._pid, self._thread = os.getpid(), ThreadPoolExecutor(1, "llxprt-hooks log")
            self._pending.clear()
        if len(self._pending) >= MOST_PENDING:
            return False
        self._pending.append(None)
        self._thread.submit(write).add_done_callback(lambda _: self._pending.pop())
        return True


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which records to read; unset conditions match every record."""

    execution: str | None = None
    """The id of an execution, or a prefix of it."""
    event: str | None = None
    hook: str | None = None
    project: str | None = None
    """A real path."""
    failed: bool = False
    blocked: bool = False

    def matches(self, record: Record) -> bool:
        return (
            (self.event is None or record.get("event_name") == self.event)
            and (self.hook is None or record.get("hook") == self.hook)
            and (not self.failed or bool(record.get("failed")))
            and (not self.blocked or bool(record.get("blocked")))
            and (self.execution is None or str(record.get("id", "")).startswith(self.execution))
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


def observed_decision(record: Record) -> Mapping[str, Any]:
    """Return what a hook in observe mode would have decided; empty for other hooks."""
    observed = record.get("observed")
    return observed if isinstance(observed, dict) else {}


def recorded_duration(record: Record) -> float | None:
    """Return the duration of an execution in milliseconds; None if the record has no plausible one."""
    duration = record.get("duration")
    return float(duration) if isinstance(duration, int | float) and 0 <= duration <= LONGEST else None


def recorded_time(record: Record) -> datetime | None:
    """Return when a record was written, in local time; None if it does not say."""
    try:
        return datetime.fromisoformat(str(record.get("timestamp"))).astimezone()
    except (ValueError, OverflowError):
        return None


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


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
