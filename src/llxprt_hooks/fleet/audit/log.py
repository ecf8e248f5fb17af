"""The log of executions: which hook ran when, its decision, its output, its duration; and the result of its event.

A bounded local file of JSON lines in the user's folder, readable by the user only. A line is one execution, one event
(its plan and the merged decision, after the executions of its hooks), or the answer to a hook's question; while an
inspector is open, also the start of an event. Payloads
contain the data the agent works on. They, and answers that may repeat them, are recorded only on request. ``run``,
``serve`` and the proxies write the log; other programs opt in with ``Config(observer=HookLog(project))``.

Several processes may write at once: each record is a single write to a file opened for appending. Writing never waits
for another process. If a record cannot be written, the log warns once and stops recording; hooks are not affected.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from llxprt_hooks._support.json_codec import write_json
from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks._support.stamps import timestamp
from llxprt_hooks.core.engine.observer import EventEnded, EventStarted, HookObserver
from llxprt_hooks.fleet.audit.record import Record, answer_record, event_record, execution_record, start_record
from llxprt_hooks.fleet.audit.recording import is_recording, is_watched
from llxprt_hooks.process import call_blocking
from llxprt_hooks.settings import exclusive_lock, make_private_folder, user_folder
from llxprt_hooks.settings.atomic import append_line
from llxprt_hooks.settings.levels import chosen_log

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from llxprt_hooks.core.engine.observer import QuestionEnded
    from llxprt_hooks.core.engine.results import HookExecutionResult

log = debug_logger("log")

MAX_BYTES = 4 * 1024 * 1024
"""Bytes after which the file is rotated; one rotated file is kept."""

MAX_BYTES_WHILE_LOCKED = 2 * MAX_BYTES
"""Bytes that the file may have while another process keeps it from being rotated; more records are dropped."""

# O_NONBLOCK: opening a named pipe would otherwise block forever.
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK


def log_file() -> Path:
    return chosen_log() or user_folder() / "logs" / "hooks.jsonl"


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
        self._path, self._folder = os.fspath(self._file), os.fspath(self._file.parent)  # what is written to every time
        self._usable = True
        self._dropped = 0

    def event_started(self, event: EventStarted) -> None:
        if is_watched():
            self._write(partial(start_record, event))

    def hook_ended(self, result: HookExecutionResult) -> None:
        self._write(partial(execution_record, result))

    def event_ended(self, event: EventEnded) -> None:
        self._write(partial(event_record, event))

    def question_ended(self, question: QuestionEnded) -> None:
        self._write(partial(answer_record, question))

    def _write(self, make_record: Callable[..., Record]) -> None:
        if self._usable:
            call_blocking(lambda: self._append(make_record))

    def _append(self, make_record: Callable[..., Record]) -> None:
        payloads = self._payloads or is_recording(self._folder)
        record = make_record(timestamp(), self._project, session_id=self.session_id, payloads=payloads)
        try:
            descriptor = self._opened()
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

    def _opened(self) -> int:
        """Open the file, with room for a record. Raises ``TimeoutError`` if it cannot be rotated."""
        try:
            descriptor = os.open(self._path, _APPEND, 0o600)
        except FileNotFoundError:
            make_private_folder(self._file.parent)
            return os.open(self._path, _APPEND, 0o600)
        if os.fstat(descriptor).st_size < MAX_BYTES:
            return descriptor
        os.close(descriptor)
        self._make_room()
        return os.open(self._path, _APPEND, 0o600)

    def _make_room(self) -> None:
        """Rotate a full file, once even if several processes notice it. While another process holds the lock, append.

        Raises ``TimeoutError`` if that has gone on for too long.
        """
        try:
            with exclusive_lock(self._file, timeout=0):
                if _size(self._file) >= MAX_BYTES:
                    self._file.replace(rotated(self._file))
        except TimeoutError:
            if _size(self._file) >= MAX_BYTES_WHILE_LOCKED:
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
