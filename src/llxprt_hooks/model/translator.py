"""The base class of all translators between the hook format and an SDK. Nothing here depends on an SDK.

A new SDK is one module with a subclass and one line in ``registry``. Most SDKs have a conversation of messages with
parts: for them ``MessageTranslator`` in ``messages`` does most of the work. Check a translator with
``llxprt_hooks.testing.check_translator``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar, cast

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.model import answers
from llxprt_hooks.model.conversation import Turn, messages_of, rewrite
from llxprt_hooks.model.full_view import Seen, View
from llxprt_hooks.model.restriction import combine

if TYPE_CHECKING:
    from llxprt_hooks.model.format import (
        HookToolConfig,
        LLMCandidate,
        LLMConfig,
        LLMMessage,
        LLMRequest,
        LLMResponse,
        LLMUsage,
    )
    from llxprt_hooks.model.wire.base import Wire

log = debug_logger("translator")

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")
ToolConfigT = TypeVar("ToolConfigT")


USUAL_SETTINGS: Mapping[str, str] = {
    "temperature": "temperature",
    "maxOutputTokens": "max_output_tokens",
    "topP": "top_p",
    "topK": "top_k",
    "stopSequences": "stop_sequences",
    "candidateCount": "candidate_count",
    "presencePenalty": "presence_penalty",
    "frequencyPenalty": "frequency_penalty",
}
"""Settings of the hook format, and what most SDKs call them."""


class HookTranslator(ABC, Generic[RequestT, ResponseT, ToolConfigT]):
    """Translates one SDK's requests, responses and tool configurations to the hook format and back.

    Implement the abstract methods for an SDK; the other methods use them. No method may change its arguments, and a
    request without changes must be returned as the same object.
    """

    SETTINGS: ClassVar[Mapping[str, str]] = {}
    """Maps settings of the hook format to the SDK's names. Settings that are missing here are ignored."""
    TOOL_CONFIG: ClassVar[str] = "tool_config"
    """The field of a request that controls which tools may be called."""
    wire: ClassVar[Wire | None] = None
    """How the API sends this data over HTTP; None if the SDK does not show it."""

    # Each SDK implements these.

    @abstractmethod
    def read_request(self, value: object) -> RequestT:
        """Read an SDK request or its JSON; raise ``TranslationError`` for anything else, including hook format."""

    @abstractmethod
    def read_response(self, value: object) -> ResponseT:
        """Read an SDK response or its JSON; raise ``TranslationError`` for anything else, including hook format."""

    @abstractmethod
    def field(self, request: RequestT, name: str) -> Any:
        """Return ``model``, ``tools``, a setting or the tool configuration, by the SDK's name; None if unset."""

    @abstractmethod
    def with_fields(self, request: RequestT, fields: Mapping[str, Any]) -> RequestT:
        """Return a copy of a request with other values for some of these fields."""

    @abstractmethod
    def turns(self, request: RequestT) -> Sequence[Turn]:
        """Return the conversation without the system prompt, which hooks do not see."""

    @abstractmethod
    def rebuild(self, request: RequestT, turns: Sequence[Turn]) -> RequestT:
        """Return a copy of a request with this conversation.

        A turn that is not ``changed`` keeps its source. A changed turn keeps everything of its source but the text; it
        is dropped if nothing remains. A turn without a source is new.
        """

    @abstractmethod
    def to_hook_llm_response(self, response: ResponseT) -> LLMResponse:
        """Return the response as hooks see it: text only."""

    @abstractmethod
    def from_hook_llm_response(self, hook_response: Mapping[str, Any], base: ResponseT | None = None) -> ResponseT:
        """Return a response with the hook's text; ids and similar fields come from ``base``, the replaced response.

        Tool calls are not kept (HOOK-079). Raise ``TranslationError`` if there is neither text nor a candidate.
        """

    @abstractmethod
    def to_hook_tool_config(self, tool_config: ToolConfigT | None) -> HookToolConfig:
        """Return the tool configuration as hooks see it; empty if nothing is set."""

    @abstractmethod
    def build_tool_config(self, tool_config: HookToolConfig, base: ToolConfigT | None) -> ToolConfigT:
        """Return ``base`` with the mode and the allowed names of a complete tool configuration in hook format."""

    # These may be overridden.

    def shown_turns(self, request: RequestT) -> Sequence[Turn]:
        """Return the conversation without what only ``rebuild`` needs: keys of calls and results, and bindings."""
        return self.turns(request)

    def prompt_turns(self, request: RequestT) -> Sequence[Turn]:
        """Return the system prompt, which only the full view shows."""
        return ()

    def with_prompt_turns(self, request: RequestT, turns: Sequence[Turn]) -> RequestT:
        """Return a copy of a request with another system prompt: all turns of ``prompt_turns``, some changed."""
        return request

    def seen_in(self, source: Any) -> Seen:
        """Return what the full view shows of a turn's source beside its text: calls, results and other parts."""
        return Seen()

    def with_results(self, source: Any, texts: Sequence[str]) -> Any:
        """Return a copy of a turn's source with other texts for the results in it, one for each."""
        return source

    def to_full_llm_response(self, response: ResponseT) -> LLMResponse:
        """Return the response as hooks with the full view see it: its text and its tool calls."""
        return self.to_hook_llm_response(response)

    def from_full_llm_response(self, hook_response: Mapping[str, Any], base: ResponseT) -> ResponseT | None:
        """Return ``base`` with a hook's texts and calls; None if the hook says nothing about calls (HOOK-079)."""
        return None

    def supports(self, request: RequestT, setting: str) -> bool:
        """Whether a request can have a setting of the hook format; any other is ignored with a warning."""
        return setting in self.SETTINGS

    def blank_response(self, request: RequestT) -> ResponseT | None:
        """Return an empty response to a request, the base of an answer in place of the model's; None if unnecessary."""
        return None

    def hidden_parts(self, response: ResponseT) -> Mapping[str, int]:
        """Count the parts of a response that hooks do not see, by kind. A hook's own answer has none of them."""
        return {}

    def reason_response(self, request: RequestT, reason: str) -> ResponseT:
        """Return an answer to a request that hooks blocked, for clients that can return nothing but an answer."""
        return self.from_hook_llm_response({"text": reason}, self.blank_response(request))

    # These build on the methods above.

    def to_hook_llm_request(self, request: RequestT) -> LLMRequest:
        """Return the request as hooks see it: text only, without settings that are not set."""
        return self._with_messages_shown(request, messages_of(self.shown_turns(request)))

    def _with_messages_shown(self, request: RequestT, messages: list[LLMMessage]) -> LLMRequest:
        model = self.field(request, "model")
        hook_request: LLMRequest = {"model": model} if model else {}
        hook_request["messages"] = messages
        hook_request["config"] = self.settings_of(request)
        if tool_config := self.to_hook_tool_config(self.tool_config_of(request)):
            hook_request["toolConfig"] = tool_config
        return hook_request

    def from_hook_llm_request(self, hook_request: Mapping[str, Any], base_request: RequestT) -> RequestT:
        """Return ``base_request`` with the well-formed changes in a hook's (partial) request."""
        wanted = answers.read_request(hook_request, lambda: messages_of(self.turns(base_request)))
        request = base_request
        if "messages" in wanted and (turns := rewrite(self.turns(request), wanted["messages"])) is not None:
            request = self.rebuild(request, turns)
        if fields := self._changed_fields(request, wanted):
            request = self.with_fields(request, fields)
        shown = self.to_hook_tool_config(self.tool_config_of(request))
        tool_config = wanted.get("toolConfig", {})
        if {**shown, **tool_config} != shown:
            request = self.with_tool_config(
                request, self.from_hook_tool_config(tool_config, self.tool_config_of(request))
            )
        return request

    def to_full_llm_request(self, request: RequestT) -> LLMRequest:
        """Return the request as hooks that act see it: with system prompt, calls and results (D-142)."""
        return self._with_messages_shown(request, View(self, request).messages)

    def from_full_llm_request(self, hook_request: Mapping[str, Any], base_request: RequestT) -> RequestT:
        """Return ``base_request`` with the changes of a hook that was shown the full view."""
        request, others = base_request, dict(hook_request)
        if "messages" in others:
            view = View(self, base_request)
            given = {"messages": others.pop("messages")}
            wanted = answers.read_request(given, lambda: view.messages, full=True)
            request = view.rewritten(wanted["messages"]) if "messages" in wanted else request
        return self.from_hook_llm_request(others, request)

    def from_hook_tool_config(
        self, hook_tool_config: Mapping[str, Any], base_tool_config: ToolConfigT | None
    ) -> ToolConfigT:
        """Return ``base_tool_config`` with the hook's mode and allowed names; omitted fields stay as they were."""
        wanted = answers.read_tool_config(hook_tool_config)
        return self.build_tool_config(combine(self.to_hook_tool_config(base_tool_config), wanted), base_tool_config)

    def settings_of(self, request: RequestT) -> LLMConfig:
        """Return the settings that hooks see, without those that are not set."""
        values = {name: self.field(request, sdk_name) for name, sdk_name in self.SETTINGS.items()}
        return cast("LLMConfig", {name: _plain(value) for name, value in values.items() if value is not None})

    def tool_config_of(self, request: RequestT) -> ToolConfigT | None:
        """Return the tool configuration of a request, in the SDK's own form."""
        return cast("ToolConfigT | None", self.field(request, self.TOOL_CONFIG))

    def with_tool_config(self, request: RequestT, tool_config: ToolConfigT) -> RequestT:
        """Return a copy of a request with another tool configuration."""
        return self.with_fields(request, {self.TOOL_CONFIG: tool_config})

    def tools_of(self, request: RequestT) -> Any:
        """Return the tools of a request, in the SDK's own form."""
        return self.field(request, "tools")

    def with_system_message(self, request: RequestT, text: str) -> RequestT:
        """Return a copy of a request with a hook's message to the model at its end (D-14)."""
        return self.rebuild(request, [*self.turns(request), Turn("system", text)])

    def _changed_fields(self, request: RequestT, wanted: LLMRequest) -> dict[str, Any]:
        changed: dict[str, Any] = {}
        if "model" in wanted and wanted["model"] != self.field(request, "model"):
            changed["model"] = wanted["model"]
        shown = self.settings_of(request)
        for name, value in wanted.get("config", {}).items():
            if not self.supports(request, name):
                answers.report(f"`llm_request.config.{name}` is ignored: this request cannot have it")
            elif value != shown.get(name):
                changed[self.SETTINGS[name]] = value
        return changed


AnyTranslator: TypeAlias = HookTranslator[Any, Any, Any]
"""A translator for any SDK; the engine passes its types through without reading them."""

TranslatorChoice: TypeAlias = AnyTranslator | str | None
"""A translator, its name in ``registry``, or None for the configuration's translator, by default google-genai's."""


def build_hook_response(candidates: list[LLMCandidate], usage: LLMUsage) -> LLMResponse:
    """Return a response in hook format."""
    text = "".join(candidates[0]["content"]["parts"]) if candidates else ""
    response: LLMResponse = {"text": text, "candidates": candidates}
    if usage:
        response["usageMetadata"] = usage
    return response


def _plain(value: Any) -> Any:
    """Return a setting as scripts expect it: some SDKs have a float ``topK``, which is shown as 40, not 40.0."""
    if isinstance(value, list):
        return list(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value
