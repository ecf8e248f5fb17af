"""Files that hold records until a server has them.

Each agent appends to a file of its own, which it keeps locked while it runs. A file that is not locked belongs to an
agent that ended or was killed before everything was sent; the agent that finds it sends the rest. How far it got is in
a file beside it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from llxprt_hooks.settings import make_private_folder, user_folder
from llxprt_hooks.settings.atomic import append_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from llxprt_hooks.settings.audit import AuditRule

EMPTIED_AT: Final = 4 * 1024 * 1024
"""Bytes after which a file is emptied as soon as all of it has been sent."""

_CHUNK: Final = 1024 * 1024
_OPENED: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_PATTERN: Final = "*.jsonl"
_SENT: Final = re.compile(rb"(\d+) (\d+)\n")


def spool_folder(rule: AuditRule) -> Path:
    """Return the folder for the records of one stream."""
    target = "\n".join((rule.stream, *sorted(rule.servers)))
    return user_folder() / "audit" / hashlib.sha256(target.encode()).hexdigest()[:16]


def spool_files() -> list[Path]:
    """Return the files of all streams whose records have not all been sent."""
    return sorted((user_folder() / "audit").glob(f"*/{_PATTERN}"))


class Sent(NamedTuple):
    """How far the records of a file have been sent."""

    number: int = 0
    """The last record that the server has, with all before it."""
    sequence: int = 0
    """Where the stream has it."""


class SpoolFile:
    """The records of one agent that have not been sent. The lock is kept until ``close``."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._position = 0

    @property
    def agent(self) -> str:
        return self.path.stem

    @classmethod
    def create(cls, folder: Path, agent: str) -> SpoolFile:
        """Create the file of this agent. Raises ``OSError`` if that is not possible."""
        make_private_folder(folder)
        path = folder / f"{agent}.jsonl"
        new = path.with_suffix(".new")
        file = cls(path, os.open(new, _OPENED | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600))
        # Nobody else may lock it before this process does: it would be taken for an abandoned one, and removed.
        fcntl.flock(file._descriptor, fcntl.LOCK_EX)
        new.rename(path)
        return file

    @classmethod
    def abandoned(cls, folder: Path) -> Iterator[SpoolFile]:
        """Yield the files of agents that no longer run, one at a time, each locked by this process."""
        for path in sorted(folder.glob(_PATTERN)):
            try:
                descriptor = os.open(path, _OPENED | os.O_APPEND)
            except OSError:  # sent and removed meanwhile
                continue
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(descriptor)
                continue
            if os.fstat(descriptor).st_nlink:
                yield cls(path, descriptor)
            else:  # the process that had the lock has sent and removed it
                os.close(descriptor)

    @property
    def sent(self) -> Sent:
        """What is known to be sent."""
        try:
            found = _SENT.fullmatch(self._sent_file.read_bytes())
        except OSError:
            found = None
        return Sent(int(found[1]), int(found[2])) if found else Sent()

    def note_sent(self, sent: Sent) -> None:
        """Remember what is sent, for the process that takes this file over. Raises ``OSError``."""
        descriptor = os.open(self._sent_file, _OPENED | os.O_CREAT, 0o600)
        try:
            # One write of always the same size, so that nobody reads half of it.
            os.pwrite(descriptor, b"%020d %020d\n" % sent, 0)
        finally:
            os.close(descriptor)

    @property
    def _sent_file(self) -> Path:
        return self.path.with_suffix(".sent")

    def append(self, line: bytes) -> None:
        """Add a record. Starts a new line if the last one was cut short. Raises ``OSError``."""
        append_line(self._descriptor, line)

    def unread(self) -> list[bytes]:
        """Return the next records, not too many at once; none if all have been read."""
        chunk = self._read(self._position)
        while chunk and b"\n" not in chunk and (more := self._read(self._position + len(chunk))):
            chunk += more
        end = chunk.rfind(b"\n") + 1
        self._position += end
        return chunk[:end].splitlines()

    def _read(self, position: int) -> bytes:
        return os.pread(self._descriptor, _CHUNK, position)

    def rewind(self) -> None:
        """Read all records again."""
        self._position = 0

    def empty_if_large(self) -> None:
        """Remove the records from a large file. The caller has sent all of them, and no other is being appended."""
        if self._position >= EMPTIED_AT and self.is_read():
            os.ftruncate(self._descriptor, 0)
            self._position = 0

    def is_read(self) -> bool:
        """Whether all records have been read."""
        return os.fstat(self._descriptor).st_size == self._position

    def refuse(self, line: bytes) -> Path:
        """Keep a record that the server will never take in another file. Return its path. Raises ``OSError``."""
        path = self.path.with_suffix(".refused")
        descriptor = os.open(path, _OPENED | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line + b"\n")
        finally:
            os.close(descriptor)
        return path

    def close(self, *, remove: bool) -> None:
        """Unlock the file; with ``remove``, delete it first."""
        if self._descriptor < 0:
            return
        if remove:
            self.path.unlink(missing_ok=True)
            self._sent_file.unlink(missing_ok=True)
        # Its number may belong to another file of the program at once.
        descriptor, self._descriptor = self._descriptor, -1
        with suppress(OSError):
            os.close(descriptor)
