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
from functools import partial
from typing import TYPE_CHECKING, Any

from llxprt_hooks.audit.record import Record, event_record, execution_record
from llxprt_hooks.audit.recording import is_recording
from llxprt_hooks.engine.observer import HookObserver
from llxprt_hooks.logger import debug_logger
from llxprt_hooks.process import blocking_is_forbidden
from llxprt_hooks.process.calls_in_thread import MOST_PENDING, CallsInThread
from llxprt_hooks.protocol.clock import timestamp
from llxprt_hooks.protocol.json_codec import write_json
from llxprt_hooks.settings import exclusive_lock, make_private_folder, user_folder
from llxprt_hooks.settings.atomic import append_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from llxprt_hooks.engine.observer import EventEnded
    from llxprt_hooks.engine.results import HookExecutionResult

log = debug_logger("log")

LARGEST = 4 * 1024 * 1024
"""Bytes after which the file is rotated; one rotated file is kept."""

LARGEST_WHILE_LOCKED = 2 * LARGEST
"""Bytes that the file may have while another process keeps it from being rotated; more records are dropped."""

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
        self._later = CallsInThread("llxprt-hooks log")

    def hook_ended(self, result: HookExecutionResult) -> None:
        self._write(partial(self._execution, result, timestamp()))

    def event_ended(self, event: EventEnded) -> None:
        self._write(partial(self._event, event, timestamp()))

    def _write(self, record: Callable[[], Record]) -> None:
        if not self._usable:
            return
        if not blocking_is_forbidden():
            self._append(record())
        elif not self._later.call(lambda: self._append(record()), wait=False):
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


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
