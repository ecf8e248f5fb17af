"""The model side: one model call, from the request to the stored answer, with its three hooks around it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from google.genai import types

from llxprt_hooks.agent.answer import complete_answer, first_content, shown_text
from llxprt_hooks.agent.audience import AnswerEnd, AnswerText, Audience, ModelBlocked, NullAudience
from llxprt_hooks.agent.restriction import Restriction
from llxprt_hooks.events import HookEventName
from llxprt_hooks.model import GenerateContentParameters
from llxprt_hooks.triggers.model import (
    fire_after_model_hook,
    fire_before_model_hook,
    fire_before_tool_selection_hook,
)
from llxprt_hooks.triggers.relevance import handler_for

if TYPE_CHECKING:
    from llxprt_hooks.agent.provider import Provider
    from llxprt_hooks.config import Config


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one model call."""

    response: types.GenerateContentResponse = field(
        default_factory=lambda: types.GenerateContentResponse(candidates=[])
    )
    restriction: Restriction = field(default_factory=Restriction)
    shown: str | None = None
    """The text that the user got to see; None where nobody answered."""
    blocked: str | None = None
    """Why the model was not called, if it was not and nothing answered in its place."""
    stop_reason: str | None = None
    usage: types.GenerateContentResponseUsageMetadata | None = None
    """What the model call cost, also where a hook replaced the response."""


class Chat:
    """A conversation with the model. ``history`` keeps what was said, not what hooks added for one request."""

    def __init__(
        self, config: Config, provider: Provider, audience: Audience, *, model: str, request_config: dict[str, Any]
    ) -> None:
        self._config = config
        self._provider = provider
        self._audience = audience
        self._model = model
        self._request_config = request_config
        self._for_next_request: list[str] = []
        self.history: list[types.Content] = []
        self.usage: types.GenerateContentResponseUsageMetadata | None = None

    def aside(self) -> Chat:
        """A chat that begins with the same history, has no tools, and is shown to nobody."""
        request_config = {name: value for name, value in self._request_config.items() if name != "tools"}
        chat = Chat(self._config, self._provider, NullAudience(), model=self._model, request_config=request_config)
        chat.history = list(self.history)
        return chat

    def restart(self, *said: types.Content) -> None:
        """Begin anew, with no more than this said."""
        self.history = list(said)
        self.usage = None

    async def ask(self) -> Answer:
        """Have the model answer the history as it stands."""
        request = self._request()
        if request.config.tools:
            selection = await fire_before_tool_selection_hook(self._config, request)
            request = _with_system_message(_with_tool_config(request, selection.tool_config), selection.system_message)
            if selection.should_stop:
                return Answer(stop_reason=selection.stop_reason)
        before = await fire_before_model_hook(self._config, request)
        request = _with_system_message(before.modified_request or request, before.system_message)
        restriction = Restriction.of(_tool_config(request))
        if before.blocked:
            self._keep(before.system_message)
            return self._without_model(
                before.synthetic_response, restriction, before.reason or "", before.stop_reason, before.suppress_output
            )
        return await self._stream(request, restriction)

    def _request(self) -> GenerateContentParameters:
        contents = [*self.history, *map(_system_content, self._for_next_request)]
        return GenerateContentParameters(self._model, contents, types.GenerateContentConfig(**self._request_config))

    async def _stream(self, request: GenerateContentParameters, restriction: Restriction) -> Answer:
        """Call the model, show the answer as it comes or as the hook left it, and store it."""
        held_back = handler_for(self._config, HookEventName.AFTER_MODEL) is not None
        self._for_next_request.clear()
        chunks: list[types.GenerateContentResponse] = []
        async for chunk in self._provider.stream(request):
            chunks.append(chunk)
            if not held_back:
                self._show(shown_text(chunk))
        response = complete_answer(chunks)
        self.usage = response.usage_metadata or self.usage
        after = await fire_after_model_hook(self._config, request, response)
        self._keep(after.system_message)
        shown = "" if after.suppress_output else shown_text(after.response)
        if held_back:
            self._show(shown)
        self._store(after.response)
        self._audience.handle(AnswerEnd(shown))
        return Answer(after.response, restriction, shown, stop_reason=after.stop_reason, usage=response.usage_metadata)

    def _without_model(
        self,
        synthetic: types.GenerateContentResponse | None,
        restriction: Restriction,
        reason: str,
        stop_reason: str | None,
        suppressed: bool,
    ) -> Answer:
        """The model is not called: a hook answers in its place, or nobody does (HOOK-138, 174, 202)."""
        if synthetic is None:
            if stop_reason is None:
                self._audience.handle(ModelBlocked(reason))
            return Answer(blocked=reason, stop_reason=stop_reason)
        shown = "" if suppressed else shown_text(synthetic)
        self._show(shown)
        self._store(synthetic)
        self._audience.handle(AnswerEnd(shown))
        return Answer(synthetic, restriction, shown, stop_reason=stop_reason)

    def _show(self, text: str) -> None:
        if text:
            self._audience.handle(AnswerText(text))

    def _store(self, response: types.GenerateContentResponse) -> None:
        content = first_content(response)
        if content is not None:
            self.history.append(content)

    def _keep(self, system_message: str | None) -> None:
        if system_message:
            self._for_next_request.append(system_message)


def _with_tool_config(request: GenerateContentParameters, tool_config: Any) -> GenerateContentParameters:
    if tool_config is None:
        return request
    return replace(request, config=request.config.model_copy(update={"tool_config": tool_config}))


def _with_system_message(request: GenerateContentParameters, text: str | None) -> GenerateContentParameters:
    """The request with a hook's message for the model at its end, for this one request (D-14)."""
    return replace(request, contents=[*request.contents, _system_content(text)]) if text else request


def _system_content(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=f"[System] {text}")])


def _tool_config(request: GenerateContentParameters) -> types.ToolConfig | None:
    config: types.GenerateContentConfig = request.config
    return config.tool_config
