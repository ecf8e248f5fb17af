"""Changing a file that other processes may be reading or changing at the same moment."""

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
"""Seconds; whoever holds the lock needs it for milliseconds."""


def write_atomically(path: Path, text: str, *, mode: int | None = None) -> None:
    """Replace a file's content as a whole: a reader sees the old or the new, never a part, also after a power cut.

    The file keeps its permissions unless ``mode`` gives others; a new one gets 0644. A symbolic link stays, the file
    it leads to is replaced. The folder must exist.
    """
    target = Path(os.path.realpath(path))
    data = text.encode()
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
def exclusive_lock(file: Path) -> Iterator[None]:
    """Keep other processes from changing a file, by a lock on ``<file>.lock`` beside it, which is there meanwhile.

    Raises ``TimeoutError`` where another process does not let go, and ``OSError`` where the lock file is a link, which
    a stranger's folder may hold to have a file made elsewhere.
    """
    lock = file.with_name(f"{file.name}.lock")
    descriptor = _locked(lock)
    try:
        yield
    finally:
        # Unlink before releasing: waiters then hold a deleted file, notice it, and retry.
        with contextlib.suppress(OSError):
            if _is_still(lock, descriptor) and os.fstat(descriptor).st_size == 0:
                lock.unlink()
        os.close(descriptor)


def _locked(lock: Path) -> int:
    """The descriptor of the lock file once it is ours, and still the one of that name."""
    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            if _is_taken(descriptor) and _is_still(lock, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if time.monotonic() > deadline:
            raise TimeoutError(errno.ETIMEDOUT, "another process holds the lock", str(lock))
        time.sleep(0.005)


def _is_taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_still(lock: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(lock.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _sync_folder(folder: Path) -> None:
    # Some file systems cannot do this; the content itself is safe by then.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
