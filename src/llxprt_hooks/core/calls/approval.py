"""Asking a person: what a hook's ``ask`` means where hooks act (D-46).

The program's approver is asked once per call, after all hooks, with the arguments that the tool would get. Nobody to
ask, an approver that fails and any answer but yes are a no.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from llxprt_hooks._support.awaitables import resolve
from llxprt_hooks._support.json_codec import write_json
from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.core import loops
from llxprt_hooks.core.engine.results import error_text
from llxprt_hooks.core.executors.function import in_thread

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.session import Detached, Session

log = debug_logger("triggers")


class Approval(Enum):
    """What an approver may answer, besides True and False."""

    FOR_SESSION = "for this session"
    """Yes, and do not ask again in this session about the same tool with the same arguments."""


@dataclass(frozen=True)
class ApprovalRequest:
    """What a person is asked."""

    tool_name: str
    tool_input: dict[str, Any]
    """The arguments that the tool would get."""
    reason: str
    """Why the hook asks."""
    hook: str
    """The name of the hook that asks."""
    session_id: str
    tool_use_id: str | None = None
    """The framework's id of the call, where it is known."""

    @cached_property
    def digest(self) -> str:
        """What an approval is for: the same tool with the same arguments."""
        return hashlib.sha256(write_json([self.tool_name, self.tool_input])).hexdigest()


Answer: TypeAlias = bool | Approval
Approver: TypeAlias = Callable[[ApprovalRequest], Answer | Awaitable[Answer]]
"""Decides about a call, for example by asking a person. Hook timeouts do not apply to it."""


class NobodyToAsk(Exception):  # a statement, not an error
    """What an approver raises to say why there is nobody whom it could ask."""


class _ApproverFailed(NobodyToAsk):
    pass


LEFT_TO_PROGRAM: Final = object()
"""What a framework's own approver returns if the framework asks by itself, before it runs the tool."""


class Answered(StrEnum):
    """How a question ended."""

    APPROVED = "approved"
    FOR_SESSION = "approved for this session"
    EARLIER = "approved earlier in this session"
    """Nobody was asked again about the same tool with the same arguments."""
    DENIED = "denied"
    NOBODY = "nobody could be asked"
    FAILED = "the approver failed"
    WAITING = "waiting for the answer"
    """The framework has suspended the run, or asks by itself."""

    @property
    def is_refusal(self) -> bool:
        """Whether the call must not run."""
        return self in (Answered.DENIED, Answered.NOBODY, Answered.FAILED)


_ANSWERS: Final[tuple[tuple[object, Answered], ...]] = (
    (True, Answered.APPROVED),
    (Approval.FOR_SESSION, Answered.FOR_SESSION),
    (LEFT_TO_PROGRAM, Answered.WAITING),
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to a question."""

    answered: Answered
    why: str = "the answer was no"
    """Why the call must not run, if it must not."""


async def decide(
    approver: Approver | None, request: ApprovalRequest, session: Session | Detached, own: Approver | None = None
) -> Verdict:
    """Ask, and return the answer.

    ``own`` is the framework's own way to ask, used if the program has no approver. It runs where its caller does, and
    what it raises passes through: a framework may leave a call that way until the answer is there.
    """
    if request.digest in session.approved:
        return Verdict(Answered.EARLIER)
    try:
        answer = await (
            _of_program(approver, request) if own is None or approver is not None else resolve(own(request))
        )
    except NobodyToAsk as why:
        answered = Answered.FAILED if isinstance(why, _ApproverFailed) else Answered.NOBODY
        return Verdict(answered, f"nobody could be asked: {why}")
    if answer is Approval.FOR_SESSION:
        session.approved.add(request.digest)
    return Verdict(next((answered for given, answered in _ANSWERS if answer is given), Answered.DENIED))


async def _of_program(approver: Approver | None, request: ApprovalRequest) -> Any:
    if approver is None:
        raise NobodyToAsk("the program has no approver")
    try:
        return await _asked(approver, request)
    except NobodyToAsk:
        raise
    except Exception as error:
        log.warning("the approver failed, so the call is denied: %s", error_text(error), exc_info=True)
        raise _ApproverFailed(f"the approver failed: {error_text(error)}") from error


async def _asked(approver: Approver, request: ApprovalRequest) -> Any:
    """Ask where the caller runs. A function may wait for a person, so it must not delay an event loop."""
    if loops.runs_here():
        return await in_thread(approver, request)
    return await loops.resolved_here(approver(request))
