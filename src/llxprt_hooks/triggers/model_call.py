"""A whole model call with its three hooks, in order.

BeforeToolSelection comes first, if the request has tools, so that BeforeModel sees the request as it will be sent.
AfterModel sees the request as it was sent (D-13). Messages of hooks to the model go into this request, or, if the model
has answered or is not called, into the next one (D-14).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from llxprt_hooks.bus.messages import resolve
from llxprt_hooks.events import HookEventName
from llxprt_hooks.logger import debug_logger
from llxprt_hooks.model import AnyTranslator, Restriction, resolve_translator
from llxprt_hooks.triggers.model import (
    fire_after_model_hook,
    fire_before_model_hook,
    fire_before_tool_selection_hook,
)
from llxprt_hooks.triggers.relevance import has_hooks_for

if TYPE_CHECKING:
    from llxprt_hooks.config import Config
    from llxprt_hooks.model import TranslatorChoice

log = debug_logger("triggers:model")

T = TypeVar("T")
RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallResult(Generic[ResponseT]):
    """The result of a model call with its hooks."""

    response: ResponseT | None = None
    """The answer to use and to store: the model's, or a hook's. None if there is no answer."""
    blocked: bool = False
    """Whether a BeforeModel hook blocked the call; ``response`` is then the hook's own answer, if it gave one."""
    reason: str | None = None
    """Why the model was not called, for the user."""
    stop_reason: str | None = None
    """If it is not None: end the loop and show it to the user."""
    suppress_output: bool = False
    """Do not show the answer."""
    restriction: Restriction = field(default_factory=Restriction)
    """Which tools the answer may call: pass it to ``execute_tool_with_hooks``."""
    notes: tuple[str, ...] = ()
    """Messages of hooks to the model for the next request: pass them to the next call."""


class HookedModelCall(Generic[RequestT]):
    """A model call in two steps, for callers that call the model themselves.

    Send ``request`` after ``before()``. If ``holds_back`` is true, do not show any part of the answer before
    ``after()`` has returned: an AfterModel hook may change it.
    """

    def __init__(
        self,
        config: Config,
        request: RequestT,
        *,
        translator: TranslatorChoice = None,
        notes: Iterable[str] = (),
    ) -> None:
        self.request = request
        self.restriction = Restriction()
        self._config = config
        self._choice = translator
        self._notes = tuple(notes)

    @property
    def holds_back(self) -> bool:
        """Whether an AfterModel hook will see the answer."""
        return has_hooks_for(self._config, HookEventName.AFTER_MODEL)

    @property
    def translator(self) -> AnyTranslator:
        """The translator of this call; raises ``TranslationError`` if its SDK cannot be imported."""
        return resolve_translator(self._choice or self._config.translator)

    async def before(self) -> ModelCallResult[Any] | None:
        """Run the hooks before the call. If it returns None, call the model with ``request``; else use the result."""
        for note in self._notes:
            self._add_system_message(note)
        if self._selects_tools():
            selection = await fire_before_tool_selection_hook(self._config, self.request, translator=self._choice)
            self._notes = (*self._notes, *_noted(selection.system_message))
            if selection.should_stop:
                return ModelCallResult(stop_reason=selection.stop_reason, notes=self._notes)
            if selection.tool_config is not None:
                self._edit(lambda translator, request: translator.with_tool_config(request, selection.tool_config))
            self._add_system_message(selection.system_message)
        before = await fire_before_model_hook(self._config, self.request, translator=self._choice)
        if before.blocked:
            return ModelCallResult(
                response=before.synthetic_response,
                blocked=True,
                reason=before.reason,
                stop_reason=before.stop_reason,
                suppress_output=before.suppress_output,
                notes=(*self._notes, *_noted(before.system_message)),
            )
        if before.modified_request is not None:
            self.request = before.modified_request
        self._add_system_message(before.system_message)
        self.restriction = self._restriction()
        return None

    async def after(self, response: ResponseT) -> ModelCallResult[ResponseT]:
        """Run the hooks after the call, on the complete answer to ``request``."""
        after = await fire_after_model_hook(self._config, self.request, response, translator=self._choice)
        return ModelCallResult(
            response=after.response,
            stop_reason=after.stop_reason,
            suppress_output=after.suppress_output,
            restriction=self.restriction,
            notes=_noted(after.system_message),
        )

    def passed_on(self) -> ModelCallResult[Any]:
        """Return the result of a call whose answer was shown as it arrived, which is allowed unless ``holds_back``."""
        return ModelCallResult(restriction=self.restriction)

    def _selects_tools(self) -> bool:
        if not has_hooks_for(self._config, HookEventName.BEFORE_TOOL_SELECTION):
            return False
        return bool(self._translated(self.request, lambda translator, request: translator.tools_of(request)))

    def _restriction(self) -> Restriction:
        """Return the restriction in the request as it is sent, if any hook had a say in it (D-15)."""
        if not any(has_hooks_for(self._config, event) for event in _RESTRICTING):
            return Restriction()
        tool_config = self._translated(self.request, _tool_config)
        return Restriction() if tool_config is None else Restriction.of(tool_config)

    def _add_system_message(self, text: str | None) -> None:
        if text:
            self._edit(lambda translator, request: translator.with_system_message(request, text))

    def _edit(self, change: Callable[[AnyTranslator, RequestT], RequestT]) -> None:
        changed = self._translated(self.request, change)
        self.request = self.request if changed is None else changed

    def _translated(self, request: RequestT, use: Callable[[AnyTranslator, RequestT], T]) -> T | None:
        """Use the translator on a request; if it fails, log a warning and return None, and the call continues."""
        try:
            return use(self.translator, self.translator.read_request(request))
        except Exception:
            log.warning("a hook's change to the request cannot be applied and is ignored", exc_info=True)
            return None


@overload
async def execute_model_with_hooks(
    config: Config,
    request: RequestT,
    call: Callable[[RequestT], Awaitable[ResponseT]],
    *,
    translator: TranslatorChoice = None,
    notes: Iterable[str] = (),
) -> ModelCallResult[ResponseT]: ...
@overload
async def execute_model_with_hooks(
    config: Config,
    request: RequestT,
    call: Callable[[RequestT], ResponseT],
    *,
    translator: TranslatorChoice = None,
    notes: Iterable[str] = (),
) -> ModelCallResult[ResponseT]: ...
async def execute_model_with_hooks(
    config: Config,
    request: Any,
    call: Callable[[Any], Any],
    *,
    translator: TranslatorChoice = None,
    notes: Iterable[str] = (),
) -> ModelCallResult[Any]:
    """Run the hooks before a model call, the call with the changes of the hooks, and the hooks after it.

    ``call`` gets the final request as its only argument and returns the complete response; its exceptions pass through.
    ``notes`` are those of the previous result. If hooks block or stop, the model is not called; the result then has the
    reason, and the answer that a hook gave in place of the model's.
    """
    if not config.enable_hooks:
        return ModelCallResult(response=await resolve(call(request)))
    return await run_model_call(HookedModelCall(config, request, translator=translator, notes=notes), call)


async def run_model_call(hooked: HookedModelCall[Any], call: Callable[[Any], Any]) -> ModelCallResult[Any]:
    """Call a model, with a function or a coroutine function, between the hooks of its call."""
    if (result := await hooked.before()) is not None:
        return result
    return await hooked.after(await resolve(call(hooked.request)))


_RESTRICTING = (HookEventName.BEFORE_TOOL_SELECTION, HookEventName.BEFORE_MODEL)


def _tool_config(translator: AnyTranslator, request: Any) -> Any:
    return translator.to_hook_tool_config(translator.tool_config_of(request))


def _noted(message: str | None) -> tuple[str, ...]:
    return (message,) if message else ()
