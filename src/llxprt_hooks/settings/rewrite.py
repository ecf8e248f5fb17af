"""Replaces the text of a settings file, unless it was modified since it was read."""

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
    """Replace a file's text; raise if it is no longer ``before`` (empty for a missing file)."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(file):
        document = read_document(file)
        if isinstance(document, Problem) or (document.text if document else "") != before:
            raise ChangedMeanwhileError(f"{file} was changed by another program in the meantime; it was not modified")
        write_atomically(file, after)
