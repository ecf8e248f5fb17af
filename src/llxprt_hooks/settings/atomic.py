"""Safe changes to files: other processes may read or change them at the same time, and some are only for the user."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Final

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


def append_line(descriptor: int, line: bytes) -> None:
    """Append a line to a regular file. Starts a new line if the last one was cut short by a full disk."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise OSError("it is not a regular file")
    is_cut = status.st_size > 0 and os.pread(descriptor, 1, status.st_size - 1) != b"\n"
    whole = (b"\n" if is_cut else b"") + line + b"\n"
    if os.write(descriptor, whole) < len(whole):
        raise OSError("the disk is full")


def make_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents, accessible to the user only."""
    missing = takewhile(lambda each: not each.exists(), (folder, *folder.parents))
    for each in reversed([*missing]):
        each.mkdir(mode=0o700, exist_ok=True)


def append_privately(file: Path, data: bytes) -> None:
    """Append to a file, created with mode 0600 if missing. Refuses to follow a symbolic link."""
    make_private_folder(file.parent)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "ab", buffering=0) as opened:
        opened.write(data)


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


def is_locked(file: Path | str) -> bool:
    """Whether any process holds the exclusive lock of a file; false where the file system has no locks."""
    try:
        descriptor = os.open(f"{file}.lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: processes that test it do not collide
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


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
