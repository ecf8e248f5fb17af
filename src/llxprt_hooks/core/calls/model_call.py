"""A whole model call with its three hooks, in order.

BeforeToolSelection comes first, if the request has tools, so that BeforeModel sees the request as it will be sent.
AfterModel sees the request as it was sent (D-13). Messages of hooks to the model go into this request, or, if the model
has answered or is not called, into the next one (D-14).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from llxprt_hooks._support.awaitables import resolve
from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.core.calls.lookup import ModelPlans, model_plans
from llxprt_hooks.core.calls.model import (
    AnswerPart,
    ModelRequest,
    ModelResponse,
    after_model,
    after_model_part,
    before_model,
    before_tool_selection,
)
from llxprt_hooks.core.engine.session import Detached, Session, Sessionless
from llxprt_hooks.model import AnyTranslator, Restriction, TranslatorChoice

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.system import CallerConfig

log = debug_logger("triggers:model")

T = TypeVar("T")
RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallResult(Generic[ResponseT]):
    """The result of a model call with its hooks."""

    response: ResponseT | None = None
    """The response to use and to store: the model's, or a hook's. None if there is none."""
    blocked: bool = False
    """Whether a BeforeModel hook blocked the call; ``response`` is then the hook's, if it gave one."""
    reason: str | None = None
    """Why the model was not called. Show it to the user if ``response`` is None."""
    stop_reason: str | None = None
    """If it is not None, end the loop and show it to the user."""
    suppress_output: bool = False
    """Do not show the response."""
    restriction: Restriction = field(default_factory=Restriction)
    """Which tools the response may call. Outside a session, pass it to ``execute_tool_with_hooks``."""
    notes: tuple[str, ...] = ()
    """Messages of hooks for the next request. Outside a session, pass them to the next call."""
    decided_by: tuple[str, ...] = field(default=(), compare=False)
    """The hooks that blocked the call or stopped the agent."""


class HookedModelCall(Generic[RequestT]):
    """A model call in two steps, for callers that call the model themselves.

    Send ``request`` after ``before()``, unless it returned a result. If ``holds_back`` is true, do not show any part of
    the response before ``after()`` has returned, because an AfterModel hook may change it. If it is false and you have
    shown the response as it arrived, call ``passed_on()`` instead of ``after()``. The call takes notes from its
    session, and leaves notes, restriction and a stop there.
    """

    def __init__(
        self,
        config: CallerConfig,
        request: RequestT,
        *,
        translator: TranslatorChoice = None,
        notes: Iterable[str] = (),
        session: Session | Sessionless | None = None,
        plans: ModelPlans | None = None,
    ) -> None:
        self.restriction = Restriction()
        self._config = config
        self._given_plans = plans
        self._request = ModelRequest(request, translator or config.translator)
        self._session = session or Detached(notes=tuple(notes))
        self._given_notes = self._session.notes
        self._new_notes: tuple[str, ...] = ()
        self._sent: Any | None = None
        """The request as it was sent, in hook format, once a part of the answer has been shown to hooks."""

    @property
    def request(self) -> RequestT:
        """The request; after ``before()``, as hooks changed it."""
        return self._request.given

    @property
    def holds_back(self) -> bool:
        """Whether an AfterModel hook will see the answer."""
        after = self._plans[2]
        return after is not None and not after.is_broken

    @property
    def streams_sentences(self) -> bool:
        """Whether the text of the answer may be shown as far as ``after_part`` has returned it."""
        after = self._plans[2]
        return after is not None and after.streams_sentences and not after.is_broken

    @property
    def observes_answers_only(self) -> bool:
        """Whether the AfterModel hooks cannot change anything."""
        after = self._plans[2]
        return after is not None and after.observes_only

    @cached_property
    def _plans(self) -> ModelPlans:
        """The hooks before the selection of tools, before the call and after it, found when they are first needed."""
        return self._given_plans or model_plans(self._config)

    @property
    def translator(self) -> AnyTranslator:
        """The translator of this call; raises ``TranslationError`` if its SDK cannot be imported."""
        return self._request.translator

    async def run(self, call: Callable[[Any], Any]) -> ModelCallResult[Any]:
        """Call a model, with a function or a coroutine function, between its hooks."""
        if (result := await self.before()) is not None:
            return result
        return await self.after(await resolve(call(self.request)))

    async def before(self) -> ModelCallResult[Any] | None:
        """Run the hooks before the call. If it returns None, call the model with ``request``; else use the result."""
        if (reason := self._session.stop_reason) is not None:
            return ModelCallResult(blocked=True, reason=reason, stop_reason=reason)
        selection_plan, before_plan, _ = self._plans
        is_hooked = any(plan is not None and not plan.is_broken for plan in self._plans)
        if self._session.checks_requests and (self._given_notes or is_hooked):
            self._request.read  # noqa: B018 - raises if the translator cannot read it
        for note in self._given_notes:
            self._add_system_message(note)
        if selection_plan is not None and self._translated(lambda request: request.translator.tools_of(request.read)):
            selection, decided_by = await before_tool_selection(selection_plan, self._request)
            self._new_notes = _noted(selection.system_message)
            if selection.should_stop:
                return self._not_called(stop_reason=selection.stop_reason, decided_by=decided_by)
            if selection.tool_config is not None:
                self._edit(lambda translator, request: translator.with_tool_config(request, selection.tool_config))
            self._add_system_message(selection.system_message)
        before, decided_by = await before_model(before_plan, self._request)
        if before.blocked or before.synthetic_response is not None:
            self._new_notes += _noted(before.system_message)
            return self._not_called(
                response=before.synthetic_response,
                blocked=before.blocked,
                reason=before.reason,
                stop_reason=before.stop_reason,
                suppress_output=before.suppress_output,
                decided_by=decided_by,
            )
        if before.modified_request is not None:
            self._request = self._request.changed(before.modified_request)
        self._add_system_message(before.system_message)
        if selection_plan is not None or before_plan is not None:
            self.restriction = self._translated(_restriction) or Restriction()
        return None

    async def after(self, response: ResponseT) -> ModelCallResult[ResponseT]:
        """Run the hooks after the call, on the complete response to ``request``."""
        answer = ModelResponse(response, self._request)
        if self._session.checks_requests and self.holds_back:
            answer.read  # noqa: B018 - raises if the translator cannot read it
        with self._in_session():
            after, decided_by = await after_model(self._plans[2], self._request, answer)
        return self._answered(
            ModelCallResult(
                response=after.response,
                stop_reason=after.stop_reason,
                suppress_output=after.suppress_output,
                restriction=self.restriction,
                notes=_noted(after.system_message),
                decided_by=decided_by,
            )
        )

    async def after_part(self, text: str) -> AnswerPart:
        """Run the hooks after the call on the text that has arrived so far, which ``streams_sentences`` allows."""
        after = self._plans[2]
        assert after is not None
        with self._in_session():
            if self._sent is None:
                self._sent = self._request.as_sent(full=after.sees_all)
            return await after_model_part(after, self._sent, text)

    def ended(self, text: str, part: AnswerPart) -> ModelCallResult[Any]:
        """Return the result of a call whose answer hooks have ended before its end: this text is all of it."""
        blank = self.translator.blank_response(self._request.read)
        return self._answered(
            ModelCallResult(
                response=self.translator.from_hook_llm_response({"text": text}, blank),
                stop_reason=part.stop_reason,
                restriction=self.restriction,
                decided_by=part.decided_by,
            )
        )

    def _in_session(self) -> AbstractContextManager[Any]:
        """The call's session, for hooks that run when a program reads a stream, anywhere."""
        return self._session.active() if isinstance(self._session, Session) else nullcontext()

    def passed_on(self) -> ModelCallResult[Any]:
        """Return the result, without a response, of a call whose response was shown as it arrived."""
        return self._answered(ModelCallResult(restriction=self.restriction))

    def _not_called(self, **fields: Any) -> ModelCallResult[Any]:
        """Return the result of a call that hooks prevented. What the session had for the request, it keeps."""
        self._session.exchange_notes((), self._new_notes)
        return self._finished(ModelCallResult(notes=(*self._given_notes, *self._new_notes), **fields))

    def _answered(self, result: ModelCallResult[ResponseT]) -> ModelCallResult[ResponseT]:
        """Leave what hooks said about an answered request in the session. A call that failed keeps its notes there."""
        self._session.exchange_notes(self._given_notes, result.notes)
        self._session.restriction = result.restriction
        return self._finished(result)

    def _finished(self, result: ModelCallResult[ResponseT]) -> ModelCallResult[ResponseT]:
        if result.stop_reason is not None:
            self._session.stop(result.stop_reason, result)
        return result

    def _add_system_message(self, text: str | None) -> None:
        if text:
            self._edit(lambda translator, request: translator.with_system_message(request, text))

    def _edit(self, change: Callable[[AnyTranslator, Any], Any]) -> None:
        changed = self._translated(lambda request: change(request.translator, request.read))
        if changed is not None:
            self._request = self._request.changed(changed)

    def _translated(self, use: Callable[[ModelRequest[RequestT]], T]) -> T | None:
        """Use the translator on the request; if it fails, log a warning and return None, and the call continues."""
        try:
            return use(self._request)
        except Exception:
            log.warning("a hook's change to the request cannot be applied and is ignored", exc_info=True)
            return None


@overload
async def execute_model_with_hooks(
    config: CallerConfig,
    request: RequestT,
    call: Callable[[RequestT], Awaitable[ResponseT]],
    *,
    translator: TranslatorChoice = None,
    notes: Iterable[str] = (),
) -> ModelCallResult[ResponseT]: ...
@overload
async def execute_model_with_hooks(
    config: CallerConfig,
    request: RequestT,
    call: Callable[[RequestT], ResponseT],
    *,
    translator: TranslatorChoice = None,
    notes: Iterable[str] = (),
) -> ModelCallResult[ResponseT]: ...
async def execute_model_with_hooks(
    config: CallerConfig,
    request: Any,
    call: Callable[[Any], Any],
    *,
    translator: TranslatorChoice = None,
    notes: Iterable[str] = (),
) -> ModelCallResult[Any]:
    """Run the hooks before a model call, the call with the changes of the hooks, and the hooks after it.

    ``call``, a function or a coroutine function, gets the final request as its only argument and returns the complete
    response. If it raises, the exception passes through, and AfterModel does not fire. The given request is never
    changed. ``notes`` are those of the previous result. If hooks block or stop, the model is not called; the result
    then has the reason, and the response that a hook gave in place of the model's.
    """
    if not config.enable_hooks:
        return ModelCallResult(response=await resolve(call(request)))
    return await HookedModelCall(config, request, translator=translator, notes=notes).run(call)


def _restriction(request: ModelRequest[Any]) -> Restriction:
    """Return the restriction in the request as it is sent (D-15)."""
    translator = request.translator
    return Restriction.of(translator.to_hook_tool_config(translator.tool_config_of(request.read)))


def _noted(message: str | None) -> tuple[str, ...]:
    return (message,) if message else ()
