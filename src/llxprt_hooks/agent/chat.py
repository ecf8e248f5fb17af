"""The model side: one model call, from the request to the stored answer, with its three hooks around it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from google.genai import types

from llxprt_hooks.agent.answer import complete_answer, first_content, shown_text
from llxprt_hooks.agent.audience import AnswerEnd, AnswerText, Audience, ModelBlocked, NullAudience
from llxprt_hooks.events import HookEventName
from llxprt_hooks.model import GenerateContentParameters, Restriction
from llxprt_hooks.triggers.model_call import ModelCallResult, execute_model_with_hooks
from llxprt_hooks.triggers.relevance import has_hooks_for

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
        self._notes: tuple[str, ...] = ()
        """What hooks have to say to the model with the next request."""
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
        """Have the model answer the history as it is."""
        held_back = has_hooks_for(self._config, HookEventName.AFTER_MODEL)
        answered: list[types.GenerateContentResponse] = []

        async def call(request: GenerateContentParameters) -> types.GenerateContentResponse:
            answered.append(await self._stream(request, held_back=held_back))
            return answered[0]

        result = await execute_model_with_hooks(self._config, self._request(), call, notes=self._notes)
        self._notes = result.notes
        if result.response is None:
            return self._unanswered(result)
        usage = answered[0].usage_metadata if answered else None
        self.usage = usage or self.usage
        shown = "" if result.suppress_output else shown_text(result.response)
        if held_back or not answered:
            self._show(shown)
        self._store(result.response)
        self._audience.handle(AnswerEnd(shown))
        return Answer(result.response, result.restriction, shown, stop_reason=result.stop_reason, usage=usage)

    def _request(self) -> GenerateContentParameters:
        config = types.GenerateContentConfig(**self._request_config)
        return GenerateContentParameters(self._model, list(self.history), config)

    async def _stream(self, request: GenerateContentParameters, *, held_back: bool) -> types.GenerateContentResponse:
        """Call the model; show the answer as it comes, unless an AfterModel hook is to see it first (D-14)."""
        chunks: list[types.GenerateContentResponse] = []
        async for chunk in self._provider.stream(request):
            chunks.append(chunk)
            if not held_back:
                self._show(shown_text(chunk))
        return complete_answer(chunks)

    def _unanswered(self, result: ModelCallResult[types.GenerateContentResponse]) -> Answer:
        """The model was not called, and no hook answered in its place (HOOK-138, 174, 202)."""
        if result.blocked and result.stop_reason is None:
            self._audience.handle(ModelBlocked(result.reason or ""))
        return Answer(blocked=result.reason if result.blocked else None, stop_reason=result.stop_reason)

    def _show(self, text: str) -> None:
        if text:
            self._audience.handle(AnswerText(text))

    def _store(self, response: types.GenerateContentResponse) -> None:
        content = first_content(response)
        if content is not None:
            self.history.append(content)
