"""Safe changes to files that other processes may read or change at the same time."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCK_TIMEOUT: Final = 30.0
"""Seconds; the lock is normally held for milliseconds."""


def write_atomically(path: Path, text: str | bytes, *, mode: int | None = None) -> None:
    """Replace a file's content. Readers see the old or the new content, never a part, even after a power failure.

    The file keeps its permissions unless ``mode`` is given; a new file gets 0644. The target of a symbolic link is
    replaced, not the link. The folder must exist.
    """
    target = Path(os.path.realpath(path))
    data = text.encode() if isinstance(text, str) else text
    if mode is None:
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o644
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            os.fchmod(descriptor, mode)
            opened.write(data)
            opened.flush()
            os.fsync(descriptor)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


@contextlib.contextmanager
def exclusive_lock(file: Path, *, timeout: float = LOCK_TIMEOUT) -> Iterator[None]:
    """Hold an exclusive lock on ``<file>.lock``, which exists only while it is held.

    Raises ``TimeoutError`` if another process does not release it in time, and ``OSError`` if the lock file is a
    symbolic link, because an untrusted folder could use one to create a file elsewhere.
    """
    lock = file.with_name(f"{file.name}.lock")
    descriptor = _acquire(lock, timeout)
    try:
        yield
    finally:
        # Unlink before releasing: waiters then hold a deleted file, notice it, and retry.
        with contextlib.suppress(OSError):
            if _is_same_file(lock, descriptor) and os.fstat(descriptor).st_size == 0:
                lock.unlink()
        os.close(descriptor)


def _acquire(lock: Path, timeout: float) -> int:
    """Wait until the lock file is locked and still exists under its name; return its descriptor."""
    deadline = time.monotonic() + timeout
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            if _try_lock(descriptor) and _is_same_file(lock, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if time.monotonic() >= deadline:
            raise TimeoutError(errno.ETIMEDOUT, "another process holds the lock", str(lock))
        time.sleep(0.005)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_same_file(lock: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(lock.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _sync_folder(folder: Path) -> None:
    # Some file systems do not support this; the content itself is already safe.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
