"""Files of a project that have hooks but are not read, because settings have one place: ``.llxprt/settings.json``."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from llxprt_hooks.settings.document import Document, read_document
from llxprt_hooks.settings.hook_groups import SWITCHES
from llxprt_hooks.settings.jsonc import Kind
from llxprt_hooks.settings.levels import FILE_NAME, FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MOST_FILES: Final = 20
"""A folder of a stranger may have any number."""


def unread_documents(project: Path) -> Iterator[Document]:
    """Yield the documents with hooks in a project's folder and in its ``.llxprt`` that are not its settings."""
    folder = project / FOLDER
    try:
        beside = sorted(islice((each for each in folder.iterdir() if each.suffix == ".json"), _MOST_FILES))
    except OSError:
        beside = []
    for file in (project / FILE_NAME, *beside, folder / "settings.jsonc", folder / "hooks" / "hooks.json"):
        document = read_document(file) if file != folder / FILE_NAME else None
        if isinstance(document, Document) and _has_hooks(document):
            yield document


def _has_hooks(document: Document) -> bool:
    hooks = document.root.at("hooks")
    members = hooks.members if hooks else ()
    return any(member.key not in SWITCHES and member.value.kind is Kind.ARRAY for member in members)
