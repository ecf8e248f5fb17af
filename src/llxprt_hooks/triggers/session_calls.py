"""Tool calls and model calls inside a session: they obey its restriction and stop, and leave theirs there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from llxprt_hooks.engine.session import Session, StopRequested, current_session
from llxprt_hooks.events import MODEL_EVENTS
from llxprt_hooks.logger import debug_logger
from llxprt_hooks.protocol.tool_result import ToolResult
from llxprt_hooks.triggers.model_call import HookedModelCall, ModelCallResult
from llxprt_hooks.triggers.relevance import has_hooks_for
from llxprt_hooks.triggers.tool import HookedToolCall

if TYPE_CHECKING:
    from llxprt_hooks.config import Config
    from llxprt_hooks.model import TranslatorChoice

log = debug_logger("triggers")

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")


class SessionToolCall(HookedToolCall):
    """A tool call that obeys its session, and leaves a stop there."""

    __slots__ = ("_session",)

    def __init__(self, config: Config, name: str, args: dict[str, Any]) -> None:
        self._session = current_session(config)
        super().__init__(config, name, args, restriction=None if self._session is None else self._session.restriction)

    async def before(self) -> ToolResult | None:
        if self._session is not None and (reason := self._session.stop_reason) is not None:
            return ToolResult(reason, reason, error={"message": reason, "type": "hook_stopped"}, stop_reason=reason)
        result = await super().before()
        return None if result is None else _apply_stop(self._session, result)

    async def after(self, outcome: Any) -> ToolResult:
        return _apply_stop(self._session, await super().after(outcome))


class SessionModelCall(HookedModelCall[RequestT]):
    """A model call that takes notes from its session, and leaves notes, restriction and a stop there."""

    def __init__(self, config: Config, request: RequestT, *, translator: TranslatorChoice) -> None:
        self._session = current_session(config)
        self._given = () if self._session is None else self._session.notes
        super().__init__(config, request, translator=translator, notes=self._given)

    async def before(self) -> ModelCallResult[Any] | None:
        if self._session is not None and (reason := self._session.stop_reason) is not None:
            return ModelCallResult(blocked=True, reason=reason, stop_reason=reason)
        if self._given or any(has_hooks_for(self._config, event) for event in MODEL_EVENTS):
            self.translator.read_request(self.request)
        result = await super().before()
        if result is None:
            return None
        leave_notes(self._session, result.notes[len(self._given) :])
        return _apply_stop(self._session, result)

    async def after(self, response: ResponseT) -> ModelCallResult[ResponseT]:
        if self.holds_back:
            self.translator.read_response(response)
        return self._finished(await super().after(response))

    def passed_on(self) -> ModelCallResult[Any]:
        return self._finished(super().passed_on())

    def _finished(self, result: ModelCallResult[ResponseT]) -> ModelCallResult[ResponseT]:
        """Leave what hooks said about an answered request in the session. A call that failed keeps its notes there."""
        leave_notes(self._session, result.notes, delivered=self._given)
        if self._session is not None:
            self._session.restriction = result.restriction
        return _apply_stop(self._session, result)


def leave_notes(session: Session | None, notes: tuple[str, ...], *, delivered: tuple[str, ...] = ()) -> None:
    if session is not None:
        session.exchange_notes(delivered, notes)
    elif notes:
        log.warning("a hook's message for the next model request is dropped: there is no hooks.session()")


ResultT = TypeVar("ResultT", ToolResult, ModelCallResult[Any])


def _apply_stop(session: Session | None, result: ResultT) -> ResultT:
    if result.stop_reason is None:
        return result
    if session is None:
        raise StopRequested(result.stop_reason, result)
    session.stop_reason = result.stop_reason
    return result
