"""The sessions of a framework's conversations, for integrations whose calls come one by one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from llxprt_hooks.engine.session import Session, current_session
from llxprt_hooks.events import HookEventName

if TYPE_CHECKING:
    from llxprt_hooks.hooks import Hooks

_REMEMBERED = 1000
"""How many sessions are kept; the one that was used least recently is forgotten first."""


class Sessions:
    """What hooks left for later calls, by session id. A session starts when its id is first used."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def begin(self, session_id: str, *, announce: bool = True) -> Session:
        """Return the session for a new run, in which an earlier stop no longer counts."""
        session = self._sessions.get(session_id)
        if session is None:
            session = self._sessions[session_id] = Session(self._hooks.config, session_id, "")
            if announce:
                with self.active(session):
                    self._hooks.observe(HookEventName.SESSION_START)
            if len(self._sessions) > _REMEMBERED:
                self._sessions.popitem(last=False)
        self._sessions.move_to_end(session_id)
        session.resume()
        return session

    def get(self, session_id: str) -> Session | None:
        """Return a session that has begun."""
        return self._sessions.get(session_id)

    def end(self, session_id: str) -> None:
        """Fire SessionEnd, and forget the session."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            with self.active(session):
                self._hooks.observe(HookEventName.SESSION_END)

    def end_all(self) -> None:
        """End every session that has begun."""
        for session_id in list(self._sessions):
            self.end(session_id)

    @contextmanager
    def active(self, session: Session) -> Iterator[Session]:
        """Make a session that of the current context, unless it is already."""
        if current_session(self._hooks.config) is session:
            yield session
            return
        session.enter()
        try:
            yield session
        finally:
            session.leave()
