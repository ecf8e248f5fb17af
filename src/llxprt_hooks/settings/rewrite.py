"""Writing a settings file anew, after its new text was worked out from the one that was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llxprt_hooks.settings.atomic import exclusive_lock, write_atomically
from llxprt_hooks.settings.document import read_document
from llxprt_hooks.settings.problem import Problem

if TYPE_CHECKING:
    from pathlib import Path


class ChangedMeanwhileError(Exception):
    """Somebody else was quicker, in a sentence for the user."""


def rewrite(file: Path, before: str, after: str) -> None:
    """Put one text in place of another, which is empty where there is no file; refuses where it is no longer that."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(file):
        document = read_document(file)
        if isinstance(document, Problem) or (document.text if document else "") != before:
            raise ChangedMeanwhileError(f"{file} was changed by another program meanwhile, and is left as it is")
        write_atomically(file, after)
