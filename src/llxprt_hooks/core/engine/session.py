"""The session that a call belongs to: its id in payloads, and what hooks leave for its later calls.

A session is in effect for the code inside its ``with`` block, and for the tasks and threads that inherit the context.
Each configuration has its own: two of them in one program do not share sessions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.core.engine import session_memory
from llxprt_hooks.core.protocol.caller import Asked, checked_metadata
from llxprt_hooks.model.restriction import Restriction

if TYPE_CHECKING:
    from concurrent.futures import Future

    from llxprt_hooks.core.engine.journal import Journal
    from llxprt_hooks.core.engine.results import AggregatedHookResult

log = debug_logger("triggers")

P = ParamSpec("P")
R = TypeVar("R")


class StopRequested(Exception):  # a request, not an error
    """A hook asked the agent to stop, outside of any session. ``result`` is what the call would have returned."""

    def __init__(self, reason: str, result: Any) -> None:
        super().__init__(reason)
        self.reason = reason
        self.result = result


_FREE = Restriction()


class Detached:
    """A call without a session, whose caller passes restriction and notes on to later calls, and acts on a stop."""

    stop_reason: str | None = None
    checks_requests = False
    """Whether a request that the translator cannot read is an error of the program, and not a failure of hooks."""

    journal: Journal | None = None

    def __init__(self, restriction: Restriction | None = None, notes: tuple[str, ...] = ()) -> None:
        self.restriction = restriction or _FREE
        self.notes = notes
        self.approved: set[str] = set()
        self.continuations = 0

    def exchange_notes(self, delivered: tuple[str, ...], new: tuple[str, ...]) -> None:
        pass

    def stop(self, reason: str, result: Any) -> None:
        pass


class Sessionless(Detached):
    """A call of ``Hooks`` outside of any session: a stop is raised, and nothing can be kept for later calls."""

    checks_requests = True

    def exchange_notes(self, delivered: tuple[str, ...], new: tuple[str, ...]) -> None:
        if new:
            log.warning("a hook's message for the next model request is dropped: there is no hooks.session()")

    def stop(self, reason: str, result: Any) -> None:
        raise StopRequested(reason, result)


class Session:
    """One run of an agent in a conversation, or, if nobody starts further runs of it, the whole conversation.

    A session is a context variable, which tasks, ``asyncio.to_thread``, ``anyio.to_thread.run_sync`` and the pools of
    LangChain inherit. A new ``threading.Thread``, ``ThreadPoolExecutor.submit`` and ``map``, and
    ``loop.run_in_executor`` do not: let ``run`` call the function there. Sessions can be nested.
    """

    checks_requests = True

    def __init__(
        self, config: object, session_id: str, transcript_path: str, metadata: Mapping[str, Any] | None = None
    ) -> None:
        self.session_id = session_id
        self.transcript_path = transcript_path
        self.metadata = checked_metadata(metadata)
        """Who asks, beside what the configuration says about it (D-141)."""
        self.asked: Asked | None = None
        """Who asks, as the framework that runs the conversation knows it (D-153)."""
        self.restriction = Restriction()
        """Which tools the latest answer of the model may call."""
        self.continuations = 0
        """How many turns in a row hooks have made the agent continue."""
        self._config = config
        self._agent: Hashable = None
        self.conversation = Conversation()
        self._notes = _Notes()
        self._stop = _Stop()

    @property
    def directory(self) -> str | None:
        """The private folder that all hooks of the session share (D-56); None if there cannot be one."""
        return session_memory.open_folder(self.session_id)

    @property
    def approved(self) -> set[str]:
        """The calls that a person has approved for the whole session, by digest."""
        return self.conversation.approved

    @property
    def journal(self) -> Journal | None:
        """Where the conversation is written for hooks of another dialect; None if none of them reads it."""
        return self.conversation.journal

    @property
    def stop_reason(self) -> str | None:
        """Why a hook stopped the agent. Until ``resume``, no model or tool is called."""
        return self._stop.reason

    @stop_reason.setter
    def stop_reason(self, reason: str | None) -> None:
        self._stop.reason = reason

    @property
    def notes(self) -> tuple[str, ...]:
        """Messages of hooks for the next model request."""
        return self._notes.pending.get(self._agent, ())

    @notes.setter
    def notes(self, notes: tuple[str, ...]) -> None:
        self._notes.pending[self._agent] = notes

    def exchange_notes(self, delivered: tuple[str, ...], new: tuple[str, ...]) -> None:
        """Remove the notes that a request has delivered, and add new ones. Calls may run in several threads."""
        with self._notes.lock:
            pending = list(self.notes)
            for note in delivered:
                if note in pending:  # a parallel call may have delivered it, too
                    pending.remove(note)
            self.notes = (*pending, *new)

    def stop(self, reason: str, result: Any) -> None:
        """Call no model and no tool until ``resume``."""
        self.stop_reason = reason

    def resume(self) -> None:
        """Continue after a stop, for example with the user's next prompt."""
        self.stop_reason = None

    def next_run(self) -> Session:
        """Start a new run of this conversation. Runs share notes; a stop ends only its own run."""
        run = self.separate_run()
        run._agent, run._notes = self._agent, self._notes
        return run

    def nested_run(self) -> Session:
        """Return a run inside of this one, such as that of an agent that is a tool: a stop ends both.

        Its model has its own restriction, and its requests their own notes.
        """
        run = self.separate_run()
        run._stop = self._stop
        return run

    def separate_run(self) -> Session:
        """Return a run that shares only what a person approved, and what waits for the first prompt."""
        run = Session(self._config, self.session_id, self.transcript_path, self.metadata)
        run.conversation, run.asked = self.conversation, self.asked
        return run

    def part_of(self, agent: Hashable) -> Session:
        """Return the part of this run that belongs to one of its agents, if each has a conversation of its own.

        A stop ends all of them. In the next run, the agent finds the notes that it has left.
        """
        part = self.nested_run()
        part._agent, part._notes = agent, self._notes
        return part

    @contextmanager
    def active(self) -> Iterator[Session]:
        """Make this the session of the current context, unless it is already."""
        if current_session(self._config) is self:
            yield self
            return
        self.enter()
        try:
            yield self
        finally:
            self.leave()

    def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function in this session, also in a thread that does not inherit the context.

        Such as that of a pool: ``pool.submit(session.run, work, argument)``.
        """
        if iscoroutinefunction(function):
            raise TypeError("`run` calls functions: await a coroutine function inside of the session's `with` block")
        with self.active():
            return function(*args, **kwargs)

    def enter(self) -> None:
        """Make this the session of the current context."""
        _current.set(_Entered(self, _current.get()))

    def leave(self) -> None:
        """Return to the session around this one. May be called in a different context than ``enter``."""
        entered = _current.get()
        if entered is not None and entered.session is self:
            _current.set(entered.outer)


class Conversation:
    """What all runs of a conversation share."""

    def __init__(self) -> None:
        self.approved: set[str] = set()
        self.start: Future[AggregatedHookResult] | None = None
        """The SessionStart hooks that act; what they add goes to the model with the first prompt."""
        self.journal: Journal | None = None


class _Notes:
    """What the runs of a conversation share: what each of its agents is to be told."""

    def __init__(self) -> None:
        self.pending: dict[Hashable, tuple[str, ...]] = {}
        self.lock = threading.Lock()


class _Stop:
    """What a run shares with those inside of it."""

    reason: str | None = None


class _Entered:
    """A session of a context, with the one around it. The same session may be entered in several contexts at once."""

    __slots__ = ("outer", "session")

    def __init__(self, session: Session, outer: _Entered | None) -> None:
        self.session = session
        self.outer = outer


_current: ContextVar[_Entered | None] = ContextVar("llxprt_hooks_session", default=None)


_asked: ContextVar[tuple[object, Asked] | None] = ContextVar("llxprt_hooks_asked", default=None)


@contextmanager
def asked_by(config: object, asked: Asked | None) -> Iterator[None]:
    """Let hooks know who asks, for one call of a conversation, or for one without a session."""
    if asked is None:
        yield
        return
    token = _asked.set((config, asked))
    try:
        yield
    finally:
        _asked.reset(token)


def who_asks(config: object) -> Asked | None:
    """Return what a framework knows about the caller of an event: of this call, else of its conversation."""
    found = _asked.get()
    if found is not None and found[0] is config:
        return found[1]
    session = current_session(config)
    return None if session is None else session.asked


class HookedSession:
    """The session of the event that a function hook is called for."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id

    @property
    def directory(self) -> str | None:
        """The private folder that all hooks of the session share (D-56); None if there cannot be one."""
        return session_memory.open_folder(self.session_id)


hooked_session: ContextVar[HookedSession | None] = ContextVar("llxprt_hooks_hooked_session", default=None)
_ANY = object()


@overload
def current_session() -> Session | HookedSession | None: ...
@overload
def current_session(config: object) -> Session | None: ...
def current_session(config: object = _ANY) -> Session | HookedSession | None:
    """Return the innermost session of a configuration in this context.

    Without a configuration: in a function hook, the session of its event, else the innermost session of any.
    """
    entered = _current.get()
    if config is _ANY:
        return hooked_session.get() or (None if entered is None else entered.session)
    while entered is not None:
        if entered.session._config is config:
            return entered.session
        entered = entered.outer
    return None
