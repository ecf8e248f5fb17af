"""The outputs of model events, which return the caller's own SDK types, and the output class of every event."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from llxprt_hooks.core.protocol.outputs import BeforeToolHookOutput, DefaultHookOutput
from llxprt_hooks.events import HookEventName, OutputKind
from llxprt_hooks.model.registry import resolve_translator

if TYPE_CHECKING:
    from llxprt_hooks.model.translator import AnyTranslator, TranslatorChoice

RequestT = TypeVar("RequestT")


class ModelHookOutput(DefaultHookOutput):
    """An output of a model event. Its data in hook format is translated to the caller's SDK types."""

    __slots__ = ("_translator",)

    def __init__(self, data: Mapping[str, Any], *, implied: bool = False, translator: TranslatorChoice = None) -> None:
        super().__init__(data, implied=implied)
        self._translator = translator

    @property
    def translator(self) -> AnyTranslator:
        """The translator between the hook format and the caller's SDK types."""
        return resolve_translator(self._translator)

    def using(self, translator: TranslatorChoice) -> Self:
        """Return the same output for another SDK; None keeps the current translator."""
        if translator is None:
            return self
        other = copy.copy(self)
        other._translator = translator
        return other


class BeforeModelHookOutput(ModelHookOutput):
    """May answer in place of the model, or change the request."""

    __slots__ = ()

    def get_synthetic_response(self, request: Any = None) -> Any | None:
        """Return the answer to use in place of the model's, as an SDK response, if the hook gave one (HOOK-194).

        ``request`` is the request that it answers; it provides the model's name and similar fields.
        """
        response = self._specific("llm_response")
        if not response:
            return None
        base = None if request is None else self.translator.blank_response(request)
        return self.translator.from_hook_llm_response(response, base)

    def apply_llm_request_modifications(self, request: RequestT) -> RequestT:
        """Return a copy of the request with the hook's changes."""
        changes = self._specific("llm_request")
        changed: RequestT = self.translator.from_hook_llm_request(changes, request) if changes else request
        return changed


class AfterModelHookOutput(ModelHookOutput):
    """May replace the model's response."""

    __slots__ = ()

    def get_modified_response(self, base: Any = None) -> Any | None:
        """Return the hook's answer as an SDK response; for a stop without an answer, its reason (HOOK-048).

        ``base`` is the response that it replaces; it provides ids and similar fields, if the SDK has them.
        """
        if response := self._specific("llm_response"):
            return self.translator.from_hook_llm_response(response, base)
        reason = self.get_stop_reason()
        return None if reason is None else self.translator.from_hook_llm_response(_answer(reason), base)

    def get_refusal(self, base: Any = None) -> Any:
        """Return what takes the place of an answer that hooks which act have blocked: the reason (D-46)."""
        return self.translator.from_hook_llm_response(_answer(self.get_effective_reason()), base)


def _answer(text: str) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": [text]}, "finishReason": "STOP"}]}


class BeforeToolSelectionHookOutput(ModelHookOutput):
    """May restrict which tools the model can call."""

    __slots__ = ()

    def apply_tool_config_modifications(self, tool_config: Any, tools: Any) -> tuple[Any, Any]:
        """Return the tool configuration with the hook's restriction, and the tools, never filtered (HOOK-167)."""
        changes = self._specific("toolConfig")
        if not changes:
            return tool_config, tools
        return self.translator.from_hook_tool_config(changes, tool_config), tools


OUTPUTS: Mapping[OutputKind, type[DefaultHookOutput]] = {
    OutputKind.DEFAULT: DefaultHookOutput,
    OutputKind.BEFORE_TOOL: BeforeToolHookOutput,
    OutputKind.BEFORE_MODEL: BeforeModelHookOutput,
    OutputKind.AFTER_MODEL: AfterModelHookOutput,
    OutputKind.BEFORE_TOOL_SELECTION: BeforeToolSelectionHookOutput,
}
"""The class of an event's outputs, of single hooks and merged."""


def make_output(
    event_name: HookEventName, data: Mapping[str, Any], translator: TranslatorChoice = None
) -> DefaultHookOutput:
    """Create an event's merged output; those of model events translate to and from the caller's SDK."""
    kind = OUTPUTS[event_name.spec.output]
    return kind(data, translator=translator) if issubclass(kind, ModelHookOutput) else kind(data)


def create_hook_output(event_name: str, data: Mapping[str, Any]) -> DefaultHookOutput:
    """Create an event's output from one hook's data; BeforeTool's compatibility fields are not read (HOOK-200)."""
    try:
        kind = HookEventName(event_name).spec.output
    except ValueError:
        kind = OutputKind.DEFAULT
    return DefaultHookOutput(data) if kind is OutputKind.BEFORE_TOOL else OUTPUTS[kind](data)
