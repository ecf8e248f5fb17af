"""The session's transcript: one JSON object per line, readable by the user only."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from llxprt_hooks._support.json_codec import write_json
from llxprt_hooks._support.stamps import timestamp
from llxprt_hooks.settings import append_privately, user_folder


class Transcript:
    """Appends to one file. If it cannot be written, the session warns once and continues without a transcript."""

    def __init__(self, session_id: str, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._file = user_folder() / "transcripts" / f"{session_id.replace(os.sep, '_')}.jsonl"
        self.path = ""
        """The path of the file, or empty if it cannot be written."""
        try:
            append_privately(self._file, b"")
            self.path = str(self._file)
        except OSError as error:
            self._give_up(error)

    def add(self, kind: str, **fields: Any) -> None:
        if not self.path:
            return
        line = write_json({"timestamp": timestamp(), "type": kind, **fields}) + b"\n"
        try:
            append_privately(self._file, line)
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self.path = ""
        self._warn(f"cannot write the transcript {self._file}: {error.strerror}")
