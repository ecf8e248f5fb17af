"""The session that a call belongs to: its id in payloads, and what hooks leave for its later calls.

A session is in effect for the code inside its ``with`` block, and for the tasks and threads that inherit the context.
Each configuration has its own: two of them in one program do not share sessions.
"""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import Any

from llxprt_hooks.model.restriction import Restriction


class StopRequested(Exception):  # a request, not an error
    """A hook asked the agent to stop, outside of any session. ``result`` is what the call would have returned."""

    def __init__(self, reason: str, result: Any) -> None:
        super().__init__(reason)
        self.reason = reason
        self.result = result


class Session:
    """One conversation."""

    def __init__(self, config: object, session_id: str, transcript_path: str) -> None:
        self.session_id = session_id
        self.transcript_path = transcript_path
        self.stop_reason: str | None = None
        """Why a hook stopped the agent. Until ``resume``, no model or tool is called."""
        self.restriction = Restriction()
        """Which tools the latest answer of the model may call."""
        self.notes: tuple[str, ...] = ()
        """Messages of hooks for the next model request."""
        self._config = config
        self._lock = threading.Lock()
        self._outer: Session | None = None

    def exchange_notes(self, delivered: int, new: tuple[str, ...]) -> None:
        """Remove the notes that a request has delivered, and add new ones. Calls may run in several threads."""
        with self._lock:
            self.notes = (*self.notes[delivered:], *new)

    def resume(self) -> None:
        """Continue after a stop, for example with the user's next prompt."""
        self.stop_reason = None

    def enter(self) -> None:
        """Make this the session of the current context."""
        self._outer = _current.get()
        _current.set(self)

    def leave(self) -> None:
        """Return to the session around this one. The context may be another one than that of ``enter``."""
        if _current.get() is self:
            _current.set(self._outer)


_current: ContextVar[Session | None] = ContextVar("llxprt_hooks_session", default=None)


def current_session(config: object) -> Session | None:
    """Return the innermost session of a configuration in this context."""
    session = _current.get()
    while session is not None and session._config is not config:
        session = session._outer
    return session
