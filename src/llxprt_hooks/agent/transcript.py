"""The session's transcript: a JSON object a line, readable by the user only."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llxprt_hooks.settings import user_folder
from llxprt_hooks.wire import write_json

if TYPE_CHECKING:
    from collections.abc import Callable


class Transcript:
    """Appends to one file. Where it cannot be written, the session goes on without it, and says so once."""

    def __init__(self, session_id: str, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._file = user_folder() / "transcripts" / f"{session_id}.jsonl"
        self.path = ""
        """Where it is; empty when it cannot be written."""
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600))
            self.path = str(self._file)
        except OSError as error:
            self._give_up(error)

    def add(self, kind: str, **fields: Any) -> None:
        """Append one entry."""
        if not self.path:
            return
        timestamp = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = write_json({"timestamp": timestamp, "type": kind, **fields}) + b"\n"
        try:
            with Path(self.path).open("ab") as file:
                file.write(line)
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self.path = ""
        self._warn(f"no transcript is kept: {self._file}: {error.strerror}")
