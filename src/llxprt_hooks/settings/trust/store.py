"""The user's approvals: which project may run which hooks, in a file outside every project.

``~/.llxprt/trusted_hooks.json`` maps a project's real path to ``{"hash": …, "approved_at": …, "version": …, "parts": …,
"settings_text": …}``. The hash alone decides; the parts, a hash for the settings and one for each file, show what has
changed since, together with the texts in ``~/.llxprt/trusted_texts``. Only the user may read or write them. The file is
replaced atomically under a lock, so concurrent approvals are all recorded; other content is preserved. A file that
cannot be read, or that others could have written, approves nothing. It is never overwritten; the next approval renames
it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from llxprt_hooks._support.stamps import timestamp
from llxprt_hooks.settings.atomic import exclusive_lock, make_private_folder, write_atomically
from llxprt_hooks.settings.document import Document
from llxprt_hooks.settings.levels import approvals_folder, user_folder
from llxprt_hooks.settings.ownership import folder_writers, read_own_document
from llxprt_hooks.settings.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping
    from pathlib import Path

    from llxprt_hooks.settings.jsonc import Node

STORE_NAME: Final = "trusted_hooks.json"
TEXTS_NAME: Final = "trusted_texts"


class ApprovalRecord(NamedTuple):
    """What is recorded besides the hash, which alone decides whether hooks run."""

    parts: Mapping[str, str] = {}
    """The hash of the settings and of each covered file."""
    settings_text: str = ""
    """Which of the texts has the settings."""
    version: int | None = None
    """What the approval covered; None if it was recorded before there were versions."""
    statement: Mapping[str, Any] | None = None
    """What the settings said about hooks, without secrets; None if the text is not there any more."""


NO_APPROVAL: Final = ApprovalRecord()


@dataclass(frozen=True, slots=True)
class TrustStore:
    """The approvals in one file, by default the user's."""

    file: Path = field(default_factory=lambda: user_folder() / STORE_NAME)

    @classmethod
    def of(cls, project: Path) -> TrustStore:
        """Return the store for a project: the user's, unless that is inside the project."""
        return cls(approvals_folder(project) / STORE_NAME)

    def approved_hash(self, project: Path) -> tuple[str | None, Problem | None]:
        """Return the approved hash of a project, if any, and the problem with the store, if any."""
        store = self._read()
        if isinstance(store, Problem):
            return None, store
        recorded = store.root.at(str(project), "hash") if store else None
        return (recorded.scalar if recorded and isinstance(recorded.scalar, str) else None), None

    @property
    def texts(self) -> ApprovedTexts:
        return ApprovedTexts(self.file.with_name(TEXTS_NAME))

    def approval(self, project: Path) -> ApprovalRecord:
        """Return what was recorded with the approval of a project; empty if there is nothing."""
        store = self._read()
        record = store.root.at(str(project)) if isinstance(store, Document) else None
        if record is None:
            return NO_APPROVAL
        approval = _approval(record)
        return approval._replace(statement=_statement(self.texts.read(approval.settings_text)))

    def approve(
        self, project: Path, fingerprint: str, approval: ApprovalRecord = NO_APPROVAL, texts: Iterable[bytes] = ()
    ) -> None:
        make_private_folder(self.file.parent)
        if objection := folder_writers(self.file):
            raise PermissionError(errno.EPERM, f"{objection}, so approvals there do not count")
        with exclusive_lock(self.file):
            store = self._read()
            if isinstance(store, Problem):
                self._rename_invalid()
                store = None
            projects = _members(store)
            record = _members(store, str(project))
            record["hash"] = json.dumps(fingerprint)
            record["approved_at"] = json.dumps(timestamp())
            record["version"] = json.dumps(approval.version)
            record["parts"] = json.dumps(dict(approval.parts))
            record["settings_text"] = json.dumps(approval.settings_text)
            projects[str(project)] = _object(record, indent="  ")
            self.texts.keep(texts)
            self._write(projects)

    def forget(self, project: Path) -> bool:
        """Remove an approval. Return whether there was one."""
        if not self.file.exists():
            return False
        with exclusive_lock(self.file):
            store = self._read()
            if not store or isinstance(store, Problem):
                return False
            projects = _members(store)
            if str(project) not in projects:
                return False
            del projects[str(project)]
            self._write(projects)
            return True

    def _prune_texts(self) -> None:
        store = self._read()
        if isinstance(store, Document):
            approvals = [_approval(member.value) for member in store.root.members]
            self.texts.prune(
                {each.settings_text for each in approvals}.union(*(each.parts.values() for each in approvals))
            )

    def _read(self) -> Document | Problem | None:
        store = read_own_document(self.file, "so its approvals do not count")
        if isinstance(store, Problem):
            return replace(store, message=f"{store.message}; until this is fixed, no project is trusted")
        return store

    def _write(self, projects: Mapping[str, str]) -> None:
        write_atomically(self.file, _object(projects) + "\n", mode=0o600)
        self._prune_texts()

    def _rename_invalid(self) -> None:
        names = (f"{self.file.name}.corrupt{f'.{number}' if number else ''}" for number in count())
        self.file.rename(next(aside for name in names if not (aside := self.file.with_name(name)).exists()))


def _approval(record: Node) -> ApprovalRecord:
    parts, text, version = (record.at(key) for key in ("parts", "settings_text", "version"))
    members = parts.members if parts else ()
    return ApprovalRecord(
        {part.key: part.value.scalar for part in members if isinstance(part.value.scalar, str)},
        text.scalar if text and isinstance(text.scalar, str) else "",
        version.scalar if version and isinstance(version.scalar, int) else None,
    )


def _statement(text: bytes | None) -> Mapping[str, Any] | None:
    try:
        statement = json.loads(text or b"")
    except (ValueError, RecursionError):
        return None
    return statement if isinstance(statement, dict) else None


def _members(store: Document | None, *path: str) -> dict[str, str]:
    """Return the members of an object in the store, each value as source text."""
    node = store.root.at(*path) if store else None
    if store is None or node is None:
        return {}
    return {member.key: store.text[member.value.start : member.value.end] for member in node.members}


def _object(members: Mapping[str, str], *, indent: str = "") -> str:
    lines = ",\n".join(f"{indent}  {json.dumps(key)}: {value}" for key, value in members.items())
    return f"{{\n{lines}\n{indent}}}" if lines else "{}"


MAX_TEXT: Final = 256 * 1024
"""Larger files are not kept and not shown."""


@dataclass(frozen=True, slots=True)
class ApprovedTexts:
    """The text of everything that was approved, to show later what has changed.

    A folder beside the store, with one file per text, named by its SHA-256. Only the user may read it. Nothing in it
    decides anything: a text that is missing or does not fit its name is only not shown.
    """

    folder: Path

    def read(self, digest: str) -> bytes | None:
        """Return the text with this SHA-256, if it is there."""
        return read_text(self.folder / digest, digest) if digest.isalnum() else None

    def keep(self, texts: Iterable[bytes]) -> None:
        make_private_folder(self.folder)
        for text in texts:
            digest = text_digest(text)
            if self.read(digest) is None:
                write_atomically(self.folder / digest, text, mode=0o600)

    def prune(self, needed: Container[str]) -> None:
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
