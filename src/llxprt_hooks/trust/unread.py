"""Files of a project that have hooks but are not read, because settings have one place: ``.llxprt/settings.json``."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.document import Document, read_document
from llxprt_hooks.settings.jsonc import Kind
from llxprt_hooks.settings.levels import FILE_NAME, FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from llxprt_hooks.settings.jsonc import Member

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
    """A file of this name may belong to any program: only hooks for a known event count."""
    hooks = document.root.at("hooks")
    return any(map(is_event, hooks.members)) if hooks else False


def is_event(member: Member) -> bool:
    """Return whether a member of an object has the hooks of an event, here or in Claude Code."""
    from llxprt_hooks.foreign import CLAUDE_EVENTS  # not needed to start an agent

    return member.value.kind is Kind.ARRAY and (member.key in tuple(HookEventName) or member.key in CLAUDE_EVENTS)
