"""What a translator between the hook format and an SDK has to offer. Nothing here knows an SDK.

A new SDK is one module with a subclass of ``HookTranslator`` and one line in ``registry``;
``llxprt_hooks.testing.check_translator`` checks it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar, cast

from llxprt_hooks.logger import debug_logger
from llxprt_hooks.model import answers
from llxprt_hooks.model.access import field
from llxprt_hooks.model.conversation import Turn, messages_of, rewrite
from llxprt_hooks.model.restriction import combine

if TYPE_CHECKING:
    from llxprt_hooks.model.format import HookToolConfig, LLMCandidate, LLMConfig, LLMRequest, LLMResponse, LLMUsage

log = debug_logger("translator")

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")
ToolConfigT = TypeVar("ToolConfigT")


class HookTranslator(ABC, Generic[RequestT, ResponseT, ToolConfigT]):
    """Translates one SDK's requests, responses and tool configurations to the hook format and back.

    The abstract methods are the SDK's own; everything else follows from them. No method changes what it is given, and
    a request in which nothing changes is returned as the same object.
    """

    SETTINGS: ClassVar[Mapping[str, str]] = {}
    """The settings of the hook format and the SDK's names for them. One that is missing here is ignored."""
    TOOL_CONFIG: ClassVar[str] = "tool_config"
    """The field of a request that says which tools may be called."""

    # What each SDK implements.

    @abstractmethod
    def read_request(self, value: object) -> RequestT:
        """An SDK request, or its JSON, as a request; a ``TranslationError`` for anything else, hook format included."""

    @abstractmethod
    def read_response(self, value: object) -> ResponseT:
        """An SDK response, or its JSON, as a response; a ``TranslationError`` for anything else."""

    @abstractmethod
    def field(self, request: RequestT, name: str) -> Any:
        """``model``, ``tools``, a setting or the tool configuration, by the SDK's name; None where it is not set."""

    @abstractmethod
    def with_fields(self, request: RequestT, fields: Mapping[str, Any]) -> RequestT:
        """A copy of a request with other values for some of these fields."""

    @abstractmethod
    def turns(self, request: RequestT) -> Sequence[Turn]:
        """The conversation, without the system prompt, which hooks do not see."""

    @abstractmethod
    def rebuild(self, request: RequestT, turns: Sequence[Turn]) -> RequestT:
        """A copy of a request with this conversation.

        A turn that is not ``changed`` keeps its source. A changed one keeps all of its source but the text, or is left
        out where nothing remains. One without a source is new.
        """

    @abstractmethod
    def to_hook_llm_response(self, response: ResponseT) -> LLMResponse:
        """The response as hooks see it: text only."""

    @abstractmethod
    def from_hook_llm_response(self, hook_response: Mapping[str, Any], base: ResponseT | None = None) -> ResponseT:
        """A response with the text of the hook's; ids and the like come from ``base``, the response it replaces.

        Tool calls are not kept (HOOK-079). Without any text or candidate a ``TranslationError``.
        """

    @abstractmethod
    def to_hook_tool_config(self, tool_config: ToolConfigT | None) -> HookToolConfig:
        """The tool configuration as hooks see it; empty where nothing is set."""

    @abstractmethod
    def build_tool_config(self, tool_config: HookToolConfig, base: ToolConfigT | None) -> ToolConfigT:
        """``base`` with the mode and the allowed names of a complete tool configuration in hook format."""

    # What follows from it.

    def to_hook_llm_request(self, request: RequestT) -> LLMRequest:
        """The request as hooks see it: text only; settings that are not set are left out."""
        model = self.field(request, "model")
        hook_request: LLMRequest = {"model": model} if model else {}
        hook_request["messages"] = messages_of(self.turns(request))
        hook_request["config"] = self.settings_of(request)
        if tool_config := self.to_hook_tool_config(self.tool_config_of(request)):
            hook_request["toolConfig"] = tool_config
        return hook_request

    def from_hook_llm_request(self, hook_request: Mapping[str, Any], base_request: RequestT) -> RequestT:
        """``base_request`` with the well-formed changes of a hook's (partial) request; all else is as it was."""
        wanted = answers.read_request(hook_request)
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

    def from_hook_tool_config(
        self, hook_tool_config: Mapping[str, Any], base_tool_config: ToolConfigT | None
    ) -> ToolConfigT:
        """``base_tool_config`` with the hook's mode and allowed names; what is left out stays as it was."""
        wanted = answers.read_tool_config(hook_tool_config)
        return self.build_tool_config(combine(self.to_hook_tool_config(base_tool_config), wanted), base_tool_config)

    def settings_of(self, request: RequestT) -> LLMConfig:
        """The settings that hooks see, so far as they are set."""
        values = {name: self.field(request, sdk_name) for name, sdk_name in self.SETTINGS.items()}
        return cast("LLMConfig", {name: _plain(value) for name, value in values.items() if value is not None})

    def tool_config_of(self, request: RequestT) -> ToolConfigT | None:
        """Which tools the request lets the model call, in the SDK's own form."""
        return cast("ToolConfigT | None", self.field(request, self.TOOL_CONFIG))

    def with_tool_config(self, request: RequestT, tool_config: ToolConfigT) -> RequestT:
        """A copy of a request with another tool configuration."""
        return self.with_fields(request, {self.TOOL_CONFIG: tool_config})

    def tools_of(self, request: RequestT) -> Any:
        """The tools that the request offers, in the SDK's own form."""
        return self.field(request, "tools")

    def with_system_message(self, request: RequestT, text: str) -> RequestT:
        """A copy of a request with a hook's message to the model at its end (D-14)."""
        return self.rebuild(request, [*self.turns(request), Turn("system", text)])

    def _changed_fields(self, request: RequestT, wanted: LLMRequest) -> dict[str, Any]:
        changed: dict[str, Any] = {}
        if "model" in wanted and wanted["model"] != self.field(request, "model"):
            changed["model"] = wanted["model"]
        shown = self.settings_of(request)
        for name, value in wanted.get("config", {}).items():
            if name not in self.SETTINGS:
                log.warning("ignored llm_request.config.%s of a hook's answer: this SDK has no such setting", name)
            elif value != shown.get(name):
                changed[self.SETTINGS[name]] = value
        return changed


AnyTranslator: TypeAlias = HookTranslator[Any, Any, Any]
"""A translator for whichever SDK; the engine passes its types through unseen."""

TranslatorChoice: TypeAlias = AnyTranslator | str | None
"""A translator, one by its name in ``registry``, or None: the configuration's, or else google-genai's."""


def build_hook_response(candidates: list[LLMCandidate], usage: Any, usage_names: Mapping[str, str]) -> LLMResponse:
    """Return a response in hook format; ``usage_names`` maps the hook format's token counts to the SDK's names."""
    text = "".join(candidates[0]["content"]["parts"]) if candidates else ""
    response: LLMResponse = {"text": text, "candidates": candidates}
    counts = {name: field(usage, sdk_name) for name, sdk_name in usage_names.items()}
    if set_counts := {name: count for name, count in counts.items() if count is not None}:
        response["usageMetadata"] = cast("LLMUsage", set_counts)
    return response


def _plain(value: Any) -> Any:
    """Return a setting as scripts expect it: some SDKs have a float ``topK``, which is shown as 40, not 40.0."""
    if isinstance(value, list):
        return list(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value
