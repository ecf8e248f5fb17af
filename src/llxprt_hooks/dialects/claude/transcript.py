"""The conversation as Claude Code's hooks read it: compact JSON, one content block per line."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final

from llxprt_hooks._support.stamps import timestamp
from llxprt_hooks.dialects.claude.tools import TOOLS

_VERSION: Final = "2.1.285"


class Transcript:
    """Makes the lines of one session; each names the one before it."""

    def __init__(self, session_id: str, directory: str) -> None:
        self._session_id = session_id
        self._directory = directory
        self._parent: str | None = None

    def prompt(self, text: str) -> dict[str, Any]:
        return self._line("user", text)

    def answer(self, text: str, usage: Mapping[str, int] | None = None) -> dict[str, Any]:
        return self._line("assistant", [{"type": "text", "text": text}], usage)

    def call(
        self, call_id: str, tool: str, arguments: object, usage: Mapping[str, int] | None = None
    ) -> dict[str, Any]:
        shown = TOOLS.shown(tool, arguments, self._directory)
        block = {"type": "tool_use", "id": call_id, "name": shown.name, "input": shown.arguments}
        return self._line("assistant", [block], usage)

    def result(self, call_id: str, text: str, is_error: bool) -> dict[str, Any]:
        block = {"type": "tool_result", "tool_use_id": call_id, "content": text}
        return self._line("user", [{**block, **({"is_error": True} if is_error else {})}])

    def _line(self, role: str, content: object, usage: Mapping[str, int] | None = None) -> dict[str, Any]:
        parent, self._parent = self._parent, str(uuid.uuid4())
        message: dict[str, Any] = {"role": role, "content": content}
        if role == "assistant":
            counts = {"input_tokens": 0, "output_tokens": 0, **(usage or {})}
            more = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
            message |= {"model": "", "type": "message", "usage": {**counts, **more}}
        return {
            "parentUuid": parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": self._directory,
            "sessionId": self._session_id,
            "version": _VERSION,
            "type": role,
            "message": message,
            "uuid": self._parent,
            "timestamp": timestamp(),
        }
