"""The text of everything that was approved, to show later what has changed.

A folder beside the store, with one file per text, named by its SHA-256. Only the user may read it. Nothing in it
decides anything: a text that is missing or does not fit its name is only not shown.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from llxprt_hooks.settings.atomic import make_private_folder, write_atomically

if TYPE_CHECKING:
    from collections.abc import Container, Iterable
    from pathlib import Path

MAX_TEXT: Final = 256 * 1024
"""Larger files are not kept and not shown."""


@dataclass(frozen=True, slots=True)
class ApprovedTexts:
    """The texts in one folder."""

    folder: Path

    def read(self, digest: str) -> bytes | None:
        """Return the text with this SHA-256, if it is there."""
        return read_text(self.folder / digest, digest) if digest.isalnum() else None

    def keep(self, texts: Iterable[bytes]) -> None:
        """Add texts."""
        make_private_folder(self.folder)
        for text in texts:
            digest = text_digest(text)
            if self.read(digest) is None:
                write_atomically(self.folder / digest, text, mode=0o600)

    def prune(self, needed: Container[str]) -> None:
        """Delete all other texts."""
        with suppress(OSError):  # it only takes up space
            for file in self.folder.iterdir():
                if file.name not in needed:
                    file.unlink()


def text_digest(text: bytes) -> str:
    """Return the name of a text."""
    return hashlib.sha256(text).hexdigest()


def read_text(file: Path, digest: str) -> bytes | None:
    """Return the content of a file if it is a text, is not too large and has this SHA-256."""
    try:
        # O_NONBLOCK: opening a named pipe would otherwise block.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as opened:
            text = opened.read(MAX_TEXT + 1) or b""
    except OSError:
        return None
    return text if len(text) <= MAX_TEXT and b"\0" not in text and text_digest(text) == digest else None
