"""The sessions of conversations: each run has its own, and those of one conversation share notes."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from llxprt_hooks.core.calls.lifecycle import observe_detached
from llxprt_hooks.core.calls.turn import start_session
from llxprt_hooks.core.engine import session_memory
from llxprt_hooks.core.engine.session import Session
from llxprt_hooks.events import HookEventName, SessionEndReason

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.system import CallerConfig
    from llxprt_hooks.core.protocol.caller import Asked

_REMEMBERED = 1000
"""How many conversations are kept; the one that was used least recently is forgotten first."""


class Sessions:
    """The latest run of each conversation, by session id. A conversation starts when its id is first used.

    A run keeps its own session: hooks run in it even if the conversation has been ended or forgotten.
    """

    def __init__(self, config: CallerConfig) -> None:
        self._config = config
        self._latest: OrderedDict[str, Session] = OrderedDict()
        # Finds a conversation that was forgotten as long as one of its runs is in progress.
        self._alive: WeakValueDictionary[str, Session] = WeakValueDictionary()

    def begin(self, session_id: str, asked: Asked | None = None) -> Session:
        """Return the session of a new run, in which the stop of another run does not count."""
        latest = self.latest(session_id)
        session = Session(self._config, session_id, "") if latest is None else latest.next_run()
        session.asked = asked
        self._latest[session_id] = self._alive[session_id] = session
        self._latest.move_to_end(session_id)
        if latest is None:
            session_memory.keep_at_start(session_id)
            with session.active():
                start_session(self._config, session)
        if len(self._latest) > _REMEMBERED:
            self._latest.popitem(last=False)
        return session

    def latest(self, session_id: str) -> Session | None:
        """Return the session of the latest run of a conversation, which is now the last to be forgotten."""
        if session_id in self._latest:
            self._latest.move_to_end(session_id)
        return self._latest.get(session_id) or self._alive.get(session_id)

    def end(self, session_id: str) -> None:
        """Fire SessionEnd, and forget the conversation."""
        session = self.latest(session_id)
        self._latest.pop(session_id, None)
        self._alive.pop(session_id, None)
        if session is not None:
            with session.active():
                observe_detached(self._config, HookEventName.SESSION_END, reason=SessionEndReason.EXIT)

    def end_all(self) -> None:
        """End every conversation that has begun."""
        for session_id in list(self._latest):
            self.end(session_id)
