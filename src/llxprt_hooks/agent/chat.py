"""Make model calls: from the request to the stored answer, with the three model events around each call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from google.genai import types

from llxprt_hooks.agent.answer import complete_answer, first_content, shown_text
from llxprt_hooks.agent.attribution import Deciders, deciders
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
    """The outcome of one model call."""

    response: types.GenerateContentResponse = field(
        default_factory=lambda: types.GenerateContentResponse(candidates=[])
    )
    restriction: Restriction = field(default_factory=Restriction)
    shown: str | None = None
    """The text that was shown to the user, or None without an answer."""
    blocked: str | None = None
    """Why the model call was blocked, if no hook supplied an answer instead."""
    stop_reason: str | None = None
    usage: types.GenerateContentResponseUsageMetadata | None = None
    """Token usage of the model call, also if a hook replaced the response."""
    stopped_by: str | None = None
    """The hooks that stopped the agent."""
    by_model: bool = False
    """Whether the model was called; otherwise a hook answered, or nobody did."""


class Chat:
    """A conversation with the model. ``history`` excludes what hooks added to a single request."""

    def __init__(
        self, config: Config, provider: Provider, audience: Audience, *, model: str, request_config: dict[str, Any]
    ) -> None:
        self._config = config
        self._provider = provider
        self._audience = audience
        self._model = model
        self._request_config = request_config
        self._notes: tuple[str, ...] = ()
        """System messages from hooks for the next request."""
        self.history: list[types.Content] = []
        self.usage: types.GenerateContentResponseUsageMetadata | None = None

    def fork(self) -> Chat:
        """Return a chat with a copy of the history, without tools and without output."""
        request_config = {name: value for name, value in self._request_config.items() if name != "tools"}
        chat = Chat(self._config, self._provider, NullAudience(), model=self._model, request_config=request_config)
        chat.history = list(self.history)
        return chat

    def restart(self, *history: types.Content) -> None:
        self.history = list(history)
        self.usage = None

    async def ask(self) -> Answer:
        """Send the history to the model and return its answer."""
        held_back = has_hooks_for(self._config, HookEventName.AFTER_MODEL)
        answered: list[types.GenerateContentResponse] = []

        async def call(request: GenerateContentParameters) -> types.GenerateContentResponse:
            answered.append(await self._stream(request, held_back=held_back))
            return answered[0]

        request_config = types.GenerateContentConfig(**self._request_config)
        request = GenerateContentParameters(self._model, list(self.history), request_config)
        with deciders() as found:
            result = await execute_model_with_hooks(self._config, request, call, notes=self._notes)
        self._notes = result.notes
        if result.response is None:
            return self._unanswered(result, found)
        usage = answered[0].usage_metadata if answered else None
        self.usage = usage or self.usage
        shown = "" if result.suppress_output else shown_text(result.response)
        if held_back or not answered:
            self._show(shown)
        if (content := first_content(result.response)) is not None:
            self.history.append(content)
        self._audience.handle(AnswerEnd(shown))
        return Answer(
            result.response,
            result.restriction,
            shown,
            stop_reason=result.stop_reason,
            stopped_by=found.stopped_by,
            usage=usage,
            by_model=bool(answered),
        )

    async def _stream(self, request: GenerateContentParameters, *, held_back: bool) -> types.GenerateContentResponse:
        """Call the model. Show the answer as it arrives, unless an AfterModel hook must see it first (D-14)."""
        chunks: list[types.GenerateContentResponse] = []
        async for chunk in self._provider.stream(request):
            chunks.append(chunk)
            if not held_back:
                self._show(shown_text(chunk))
        return complete_answer(chunks)

    def _unanswered(self, result: ModelCallResult[types.GenerateContentResponse], found: Deciders) -> Answer:
        """Handle a blocked or stopped call without a synthetic answer (HOOK-138, 174, 202)."""
        if result.blocked and result.stop_reason is None:
            self._audience.handle(ModelBlocked(result.reason or "", found.blocked_by))
        return Answer(
            blocked=result.reason if result.blocked else None,
            stop_reason=result.stop_reason,
            stopped_by=found.stopped_by,
        )

    def _show(self, text: str) -> None:
        if text:
            self._audience.handle(AnswerText(text))
