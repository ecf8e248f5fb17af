"""Replace the text of a settings file by a new one that was derived from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llxprt_hooks.settings.atomic import exclusive_lock, write_atomically
from llxprt_hooks.settings.document import read_document
from llxprt_hooks.settings.problem import Problem

if TYPE_CHECKING:
    from pathlib import Path


class ChangedMeanwhileError(Exception):
    """The file was modified concurrently. The message is for the user."""


def rewrite(file: Path, before: str, after: str) -> None:
    """Replace a file's text, empty if there is no file; raise if the file no longer has the text ``before``."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(file):
        document = read_document(file)
        if isinstance(document, Problem) or (document.text if document else "") != before:
            raise ChangedMeanwhileError(f"{file} was changed by another program in the meantime; it was not modified")
        write_atomically(file, after)
