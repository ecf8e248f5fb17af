"""Files that hold records until a server has them.

Each agent appends to a file of its own, which it keeps locked while it runs. A file that is not locked belongs to an
agent that ended or was killed before everything was sent; whoever finds it sends the rest.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from typing import TYPE_CHECKING, Final

from llxprt_hooks.settings import make_private_folder, user_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from llxprt_hooks.settings.audit import AuditRule

EMPTIED_AT: Final = 4 * 1024 * 1024
"""Bytes after which a file is emptied as soon as all of it has been sent."""

_CHUNK: Final = 1024 * 1024
_OPENED: Final = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


def spool_folder(rule: AuditRule) -> Path:
    """Return the folder for the records of one stream."""
    target = "\n".join((rule.stream, *sorted(rule.servers)))
    return user_folder() / "audit" / hashlib.sha256(target.encode()).hexdigest()[:16]


def spool_files() -> list[Path]:
    """Return the files of all streams whose records have not all been sent."""
    return sorted((user_folder() / "audit").glob("*/*.jsonl"))


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
        file = cls(path, os.open(path, _OPENED | os.O_CREAT | os.O_EXCL, 0o600))
        fcntl.flock(file._descriptor, fcntl.LOCK_EX)
        return file

    @classmethod
    def abandoned(cls, folder: Path) -> Iterator[SpoolFile]:
        """Yield the files of agents that no longer run, each locked by this process."""
        for path in sorted(folder.glob("*.jsonl")):
            try:
                descriptor = os.open(path, _OPENED)
            except OSError:  # sent and removed meanwhile
                continue
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(descriptor)
                continue
            if os.fstat(descriptor).st_nlink:
                yield cls(path, descriptor)
            else:  # whoever had the lock before has sent and removed it
                os.close(descriptor)

    def append(self, line: bytes) -> None:
        """Add a record. Starts a new line if the last one was cut short. Raises ``OSError``."""
        size = os.fstat(self._descriptor).st_size
        is_cut = size > 0 and os.pread(self._descriptor, 1, size - 1) != b"\n"
        whole = (b"\n" if is_cut else b"") + line + b"\n"
        if os.write(self._descriptor, whole) < len(whole):
            raise OSError("the disk is full")

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
        if self._position >= EMPTIED_AT and os.fstat(self._descriptor).st_size == self._position:
            os.ftruncate(self._descriptor, 0)
            self._position = 0

    def is_read(self) -> bool:
        """Whether all records have been read."""
        return os.fstat(self._descriptor).st_size == self._position

    def close(self, *, remove: bool) -> None:
        """Unlock the file; with ``remove``, delete it first."""
        if remove:
            self.path.unlink(missing_ok=True)
        os.close(self._descriptor)
