"""The conversation of a session in a file, for hooks of another dialect that read it there (D-156).

It is in the session's private folder, and removed with it. It is written only if such a hook is configured, and the
program has no transcript of its own.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks._support.json_codec import write_json
from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.core.engine import session_memory
from llxprt_hooks.process import call_blocking
from llxprt_hooks.settings import append_privately
from llxprt_hooks.settings.foreign import TRANSCRIPTS

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.system import CallerConfig

log = debug_logger("session")

_MAX_SESSIONS: Final = 1024
_open: Final[dict[str, Journal]] = {}
"""By session id, so that the events of a session find the path."""


class Journal:
    """The file of one session. What cannot be written is left out, with a message for debugging."""

    def __init__(self, session_id: str, directory: str, dialect: str) -> None:
        self._session_id = session_id
        self._lines = import_module(TRANSCRIPTS[dialect]).Transcript(session_id, directory)
        self.prompt_id = ""
        """The id of the prompt that the agent works on."""
        self._usage: Mapping[str, int] | None = None
        self._lock = threading.Lock()

    @property
    def path(self) -> str:
        return os.path.join(session_memory.folder_of(self._session_id), session_memory.TRANSCRIPT)  # noqa: PTH118

    def used(self, **tokens: int) -> None:
        """Keep how many tokens the model's latest answer took, for the lines of that answer."""
        self._usage = tokens

    def new_prompt(self) -> None:
        """Give the next prompt an id of its own."""
        self.prompt_id = str(uuid.uuid4())

    def prompt(self, text: str) -> None:
        self._add("prompt", text)

    def answer(self, text: str) -> None:
        if text:
            self._add("answer", text, self._usage)

    def call(self, call_id: str, tool: str, arguments: object) -> None:
        self._add("call", call_id, tool, arguments, self._usage)

    def result(self, call_id: str, text: str, is_error: bool) -> None:
        self._add("result", call_id, text, is_error)

    def _add(self, kind: str, *fields: Any) -> None:
        try:
            with self._lock:
                line = write_json(getattr(self._lines, kind)(*fields)) + b"\n"
                call_blocking(partial(self._append, line))
        except Exception as error:
            log.debug("the transcript %s was not written: %s", self.path, error)

    def _append(self, line: bytes) -> None:
        if session_memory.open_folder(self._session_id) is not None:
            append_privately(Path(self.path), line)


def open_journal(config: CallerConfig, session_id: str) -> Journal | None:
    """Return the journal of a session that starts; None if no hook would read it."""
    system = config.get_hook_system()
    spoken = () if system is None else system.dialects()
    dialect = next((name for name in TRANSCRIPTS if name in spoken), None)
    if dialect is None:
        return None
    while len(_open) >= _MAX_SESSIONS:
        _open.pop(next(iter(_open)), None)
    journal = _open[session_id] = Journal(session_id, config.working_dir, dialect)
    return journal


def journal_of(session_id: object) -> Journal | None:
    """Return the journal of a session that has one."""
    return _open.get(session_id) if isinstance(session_id, str) else None
