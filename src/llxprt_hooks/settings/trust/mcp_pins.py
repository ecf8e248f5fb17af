"""Which definitions of an MCP server the user approved, and which ones the server offered last.

A definition is what a server says about itself to a model: a tool with its description and schemas, a prompt, a
resource, or the server's instructions. The proxy records what a server offers, ``llxprt-hooks trust --mcp NAME`` shows
and approves it, and the proxy withholds whatever differs from what was approved. Approvals are in the same store as
those of hooks, under the project and the name of the server.
"""

from __future__ import annotations

import json
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from llxprt_hooks.settings.atomic import make_private_folder, write_atomically
from llxprt_hooks.settings.document import Document
from llxprt_hooks.settings.ownership import read_own_document
from llxprt_hooks.settings.trust.store import MAX_TEXT, ApprovalRecord, TrustStore, text_digest

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from llxprt_hooks.settings.problem import Problem

OFFERS_NAME: Final = "mcp_offers"
SERVER: Final = "server"
"""The part that identifies the server. If it has changed, nothing of the server is approved."""
INSTRUCTIONS: Final = "instructions"
TOOL: Final = "tool "
PROMPT: Final = "prompt "
RESOURCE: Final = "resource "
TEMPLATE: Final = "template "
"""The part of a tool is this word and its name; that of a prompt, of a resource or of a template for resources too."""
NEW: Final = "is new"

_NOT_FOR_MODELS: Final = "_meta"
_VERSION: Final = 1


class McpPins:
    """The definitions of one server, as a project uses it."""

    def __init__(self, project_dir: str | os.PathLike[str], server: str, url: str | None = None) -> None:
        """``url`` is where the server is reached; None if the client starts it."""
        self.project = Path(project_dir).resolve()
        self.server = server
        self.url = url
        self._store = TrustStore.of(self.project)
        self._key = Path(f"{self.project}#mcp:{quote(server, safe='')}")
        self.offer_file = self._store.file.with_name(OFFERS_NAME) / f"{text_digest(str(self._key).encode())}.json"
        self.approved: Mapping[str, str] = {}
        """The digest of each part that was approved."""
        self.reload()

    def reload(self) -> None:
        """Read the approval again: the user may have approved something since."""
        fingerprint, _ = self._store.approved_hash(self._key)
        parts = self._store.approval(self._key).parts
        self.approved = parts if fingerprint == _fingerprint(parts) else {}

    def objection(self, part: str, definition: Any) -> str | None:
        """Return why a definition may not be used, as a phrase; None if it is the approved one."""
        text = definition_text(definition)
        if text is None:
            return "is too large or too deep to be shown, so it cannot be approved"
        if part not in self.approved:
            return NEW
        return None if self.approved[part] == text_digest(text) else "has changed since it was approved"

    def offered(self) -> dict[str, Any] | Problem | None:
        """Return what the server offered last, by part; None if the proxy has not seen it yet."""
        document = read_own_document(self.offer_file, "so it is not shown")
        if not isinstance(document, Document):
            return document
        parts = document.root.at("parts")
        return dict(parts.to_value()) if parts is not None and parts.members else {}

    def record_offer(self, parts: Mapping[str, Any]) -> None:
        """Keep what the server offers, for ``trust``."""
        make_private_folder(self.offer_file.parent)
        known = {part: definition for part, definition in parts.items() if definition_text(definition) is not None}
        record = {"project": str(self.project), "server": self.server, "parts": known}
        write_atomically(self.offer_file, json.dumps(record, indent=1) + "\n", mode=0o600)

    def approve(self, parts: Mapping[str, Any]) -> None:
        """Approve these definitions, and no others."""
        texts = {part: text for part, definition in parts.items() if (text := definition_text(definition)) is not None}
        digests = {part: text_digest(text) for part, text in texts.items()}
        self._store.approve(self._key, _fingerprint(digests), ApprovalRecord(digests, version=_VERSION), texts.values())
        self.reload()

    def forget(self) -> bool:
        """Withdraw the approval. Return whether there was one."""
        forgotten = self._store.forget(self._key)
        self.reload()
        return forgotten

    def changes(self, parts: Mapping[str, Any]) -> dict[str, list[str]]:
        """Return how definitions differ from the approved ones: for each part, the lines of a unified diff."""
        found = {part: self._difference(part, parts.get(part)) for part in {**self.approved, **parts}}
        return {part: lines for part, lines in found.items() if lines}

    def _difference(self, part: str, definition: Any) -> list[str]:
        if definition is not None and self.objection(part, definition) is None:
            return []
        digest = self.approved.get(part)
        before = [] if digest is None else definition_lines(json.loads(self._store.texts.read(digest) or b"null"))
        after = [] if definition is None else definition_lines(definition)
        names = ("/dev/null" if digest is None else f"approved/{part}", f"now/{part}" if after else "/dev/null")
        return [*unified_diff(before, after, *names, lineterm="")] or [
            f"{part}: changed in a way that lines do not show"
        ]


def offers_of(project_dir: str | os.PathLike[str]) -> Iterator[McpPins]:
    """Yield the servers of a project that the proxy has seen."""
    project = Path(project_dir).resolve()
    folder = TrustStore.of(project).file.with_name(OFFERS_NAME)
    for file in sorted(folder.glob("*.json")):
        document = read_own_document(file)
        record = document.root.to_value() if isinstance(document, Document) else None
        if isinstance(record, dict) and record.get("project") == str(project) and isinstance(record.get("server"), str):
            yield McpPins(project, record["server"])


def definition_text(definition: Any) -> bytes | None:
    """Return a definition as it is compared and kept; None if it is too large or too deep to be shown.

    >>> definition_text({"name": "a", "description": "\\u200b", "_meta": {"seen": 7}})
    b'{\\n "description": "\\\\u200b",\\n "name": "a"\\n}'
    """
    compared = definition
    if isinstance(definition, dict):
        compared = {name: value for name, value in definition.items() if name != _NOT_FOR_MODELS}
    try:
        text = json.dumps(compared, sort_keys=True, indent=1).encode()
    except RecursionError:
        return None
    return text if len(text) <= MAX_TEXT else None


def definition_lines(definition: Any) -> list[str]:
    """Return a definition for people: texts line by line, schemas as JSON."""
    if isinstance(definition, str):
        return definition.split("\n")
    if isinstance(definition, list):
        return [line for each in definition for line in definition_lines(each)]
    if not isinstance(definition, dict):
        return [json.dumps(definition, ensure_ascii=False)]
    lines: list[str] = []
    for name, value in sorted(definition.items(), key=lambda item: (not isinstance(item[1], str), item[0])):
        if name == _NOT_FOR_MODELS:
            continue
        if isinstance(value, str):
            first, *more = value.split("\n")
            lines += [f"{name}: {first}", *(f"  {line}" for line in more)]
        else:
            first, *more = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False).split("\n")
            lines += [f"{name}: {first}", *more]
    return lines


def _fingerprint(parts: Mapping[str, str]) -> str:
    return text_digest(json.dumps(dict(parts), sort_keys=True).encode())
