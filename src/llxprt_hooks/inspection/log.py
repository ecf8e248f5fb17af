"""The record of executions: which hook ran when, what it decided, what it printed, how long it took.

A bounded local file of JSON lines in the user's folder, readable by the user only. Payloads hold what the agent works
on, and are recorded only if asked for. ``run`` keeps the record; other programs opt in with
``Config(observer=HookLog(project))``.

Any number of processes may write at once: a record is one write to a file opened for appending, and those are not
mixed up. Whatever keeps a record from being written is said once, as a warning, and harms nobody.
"""

from __future__ import annotations

import os
import stat
import uuid
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llxprt_hooks.engine.reporting import LOGGED_OUTPUT, execution_record
from llxprt_hooks.logger import debug_logger
from llxprt_hooks.model.outputs import create_specific_hook_output
from llxprt_hooks.protocol.clock import timestamp
from llxprt_hooks.protocol.json_codec import read_json, write_json
from llxprt_hooks.settings import exclusive_lock, make_private_folder, user_folder

if TYPE_CHECKING:
    from llxprt_hooks.engine.definitions import HookConfig
    from llxprt_hooks.engine.results import HookExecutionResult, ProcessedHookResult
    from llxprt_hooks.events import HookEventName

log = debug_logger("log")

LARGEST = 4 * 1024 * 1024
"""Bytes after which the file is set aside; one file set aside is kept."""

LARGEST_PAYLOAD = 256 * 1024
"""Bytes of a payload beyond which only its size is recorded: cut, it could not be fired again."""

_MOST_EFFECTS = 20
_LONGEST_EFFECT = 100

# O_NONBLOCK: a named pipe in the file's place would hold the agent for ever.
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK


def log_file() -> Path:
    """Where executions are recorded."""
    return user_folder() / "logs" / "hooks.jsonl"


def set_aside(file: Path) -> Path:
    """Where a file goes when it is full."""
    return file.with_suffix(".1.jsonl")


class HookLog:
    """An observer that records every execution; with ``payloads``, also what each hook was sent."""

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

    def hook_started(self, event_name: HookEventName, hook_config: HookConfig) -> None:
        """Recorded when it has ended."""

    def hook_ended(self, result: HookExecutionResult) -> None:
        if self._usable:
            self._append(self._record(result))

    def event_ended(self, event_name: HookEventName, processed: ProcessedHookResult, wall_time: float) -> None:
        """Each hook has been recorded for itself."""

    def _record(self, result: HookExecutionResult) -> dict[str, Any]:
        execution = execution_record(result.event_name, result)
        del execution["output"]  # may repeat the payload; what it comes to is said below
        record = {
            "id": uuid.uuid4().hex[:8],
            "timestamp": timestamp(),
            "session_id": self.session_id or result.hook_input.get("session_id", ""),
            "project": self._project,
            "command": result.hook_config.command,
            "failed": result.error is not None,
            **_decision(result),
            **execution,
        }
        bounded = {name: value[:LOGGED_OUTPUT] if isinstance(value, str) else value for name, value in record.items()}
        return {**bounded, **_payload(result)} if self._payloads else bounded

    def _append(self, record: dict[str, Any]) -> None:
        try:
            self._make_room()
            descriptor = os.open(self._file, _APPEND, 0o600)
            try:
                _write_line(descriptor, write_json(record))
            finally:
                os.close(descriptor)
        except OSError as error:
            self._usable = False
            log.warning("executions are no longer recorded: %s: %s", self._file, error.strerror or error)

    def _make_room(self) -> None:
        """Set a full file aside; two programs that notice it at once do it once."""
        make_private_folder(self._file.parent)
        if not _is_full(self._file):
            return
        with exclusive_lock(self._file):
            if _is_full(self._file):
                self._file.replace(set_aside(self._file))


def _payload(result: HookExecutionResult) -> dict[str, Any]:
    size = len(write_json(result.hook_input))
    return {"payload": result.hook_input} if size <= LARGEST_PAYLOAD else {"payload_bytes": size}


def _decision(result: HookExecutionResult) -> dict[str, Any]:
    """What a hook's output comes to; of what it changes, only the names."""
    if result.output is None:
        return {"blocked": False, "stopped": False, "reason": None, "effects": []}
    output = create_specific_hook_output(result.event_name, result.output.to_dict())
    blocked = result.event_name.spec.can_block and output.is_blocking_decision()
    counts = blocked or result.error is None  # a failed hook has no other effect
    reason = output.get_effective_reason() if blocked else output.get_stop_reason()
    changed = sorted(output.hook_specific_output or {}) if counts else []
    return {
        "blocked": blocked,
        "stopped": counts and output.should_stop_execution(),
        "reason": reason if counts else None,
        "effects": [name[:_LONGEST_EFFECT] for name in islice(changed, _MOST_EFFECTS)],
    }


def _write_line(descriptor: int, data: bytes) -> None:
    """Append a line. One that a full disk cut short, of whichever program, does not take this one with it."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise OSError("it is not a regular file")
    is_cut = status.st_size > 0 and os.pread(descriptor, 1, status.st_size - 1) != b"\n"
    whole = (b"\n" if is_cut else b"") + data + b"\n"
    if os.write(descriptor, whole) < len(whole):
        raise OSError("the disk is full")


def read_log(file: Path | None = None) -> Iterator[dict[str, Any]]:
    """The recorded executions, oldest first; lines that cannot be read are passed over."""
    newest = file or log_file()
    for each in (set_aside(newest), newest):
        try:
            lines = each.read_bytes().splitlines()
        except (FileNotFoundError, NotADirectoryError):
            continue
        yield from (record for line in lines if (record := read_record(line)) is not None)


def read_record(line: bytes) -> dict[str, Any] | None:
    """One line of the record, or None if it is none."""
    try:
        record = read_json(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and "hook" in record else None


def _is_full(file: Path) -> bool:
    try:
        return file.stat().st_size >= LARGEST
    except FileNotFoundError:
        return False
