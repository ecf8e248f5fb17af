"""One model call within its three hooks: their order, what each of them changes, and what is left to the caller.

BeforeToolSelection comes first, if the request has tools, so that BeforeModel sees the request as it will be sent;
AfterModel is shown the request as it was sent (D-13). Messages of hooks to the model go into this request, or, if the
model has answered or is not called, into the next one (D-14).
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

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
    """What came of a model call."""

    response: ResponseT | None = None
    """The answer to use and to store: the model's, or a hook's. None where nobody answered."""
    blocked: bool = False
    """A BeforeModel hook kept the model from being called; ``response`` is its answer in the model's place, if any."""
    reason: str | None = None
    """Why the model was not called, for the user."""
    stop_reason: str | None = None
    """If it is not None: end the loop, and tell the user why."""
    suppress_output: bool = False
    """Do not show the answer."""
    restriction: Restriction = field(default_factory=Restriction)
    """Which tools the answer may call: give it to ``execute_tool_with_hooks``."""
    notes: tuple[str, ...] = ()
    """What hooks have to say to the model with the next request: give them to the next call."""


class HookedModelCall(Generic[RequestT]):
    """A model call in two halves, for callers that call the model themselves.

    ``request`` is what to send after ``before()``. While ``holds_back`` is true, nothing of the answer should be shown
    before ``after()`` has returned: an AfterModel hook may change it.
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
        self._original = request
        self._choice = translator
        self._notes = tuple(notes)

    @property
    def holds_back(self) -> bool:
        """Whether an AfterModel hook will see the answer."""
        return has_hooks_for(self._config, HookEventName.AFTER_MODEL)

    async def before(self) -> ModelCallResult[Any] | None:
        """Run the hooks before the call; None: call the model with ``request``. Else that is the result."""
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

    def _selects_tools(self) -> bool:
        if not has_hooks_for(self._config, HookEventName.BEFORE_TOOL_SELECTION):
            return False
        return bool(self._asked(self.request, lambda translator, request: translator.tools_of(request)))

    def _restriction(self) -> Restriction:
        """The restriction that hooks made; what the program itself put into its request is its own affair."""
        if self.request is self._original:
            return Restriction()
        shown = [self._asked(request, _tool_config) for request in (self._original, self.request)]
        return Restriction() if shown[0] == shown[1] or shown[1] is None else Restriction.of(shown[1])

    def _add_system_message(self, text: str | None) -> None:
        if text:
            self._edit(lambda translator, request: translator.with_system_message(request, text))

    def _edit(self, change: Callable[[AnyTranslator, RequestT], RequestT]) -> None:
        changed = self._asked(self.request, change)
        self.request = self.request if changed is None else changed

    def _asked(self, request: RequestT, question: Callable[[AnyTranslator, RequestT], T]) -> T | None:
        """What the translator answers; None, with a warning, where it fails: the call goes on without it."""
        try:
            translator = resolve_translator(self._choice or self._config.translator)
            return question(translator, translator.read_request(request))
        except Exception:
            log.warning("a hook's change of the request cannot be applied and is ignored", exc_info=True)
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
    """Call a model with its hooks: before it, with what they changed, and after it.

    ``call`` gets the final request as its one argument and returns the complete response; what it raises passes
    through untouched. ``notes`` are those of the previous result. A blocked or stopped model is not called; the result
    then has the reason, and the answer that a hook gave in its place.
    """
    hooked = HookedModelCall(config, request, translator=translator, notes=notes) if config.enable_hooks else None
    if hooked is not None and (result := await hooked.before()) is not None:
        return result
    outcome = call(request if hooked is None else hooked.request)
    response = await outcome if inspect.isawaitable(outcome) else outcome
    return ModelCallResult(response=response) if hooked is None else await hooked.after(response)


def _tool_config(translator: AnyTranslator, request: Any) -> Any:
    return translator.to_hook_tool_config(translator.tool_config_of(request))


def _noted(message: str | None) -> tuple[str, ...]:
    return (message,) if message else ()
