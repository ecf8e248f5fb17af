"""Files that only the user can read."""

from __future__ import annotations

import os
from pathlib import Path


def make_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents, accessible to the user only."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)


def append_privately(file: Path, data: bytes) -> None:
    """Append to a file, created with mode 0600 if missing. Refuses to follow a symbolic link."""
    make_private_folder(file.parent)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "ab", buffering=0) as opened:
        opened.write(data)
