"""Make model calls: from the request to the stored answer, with the three model events around each call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from google.genai import types

from llxprt_hooks.agent.answer import complete_answer, first_content, shown_text
from llxprt_hooks.agent.ui import AnswerEnd, AnswerText, ModelBlocked, NoInterface, UserInterface, hook_names
from llxprt_hooks.core.calls.sentences import Sentences
from llxprt_hooks.core.calls.stream import close_stream
from llxprt_hooks.core.engine.session import Session
from llxprt_hooks.model import GenerateContentParameters

if TYPE_CHECKING:
    from llxprt_hooks.agent.provider import Provider
    from llxprt_hooks.core.calls.model_call import HookedModelCall, ModelCallResult
    from llxprt_hooks.hooks import Hooks


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of one model call. The last one is the outcome of a prompt."""

    response: types.GenerateContentResponse = field(
        default_factory=lambda: types.GenerateContentResponse(candidates=[])
    )
    shown: str | None = None
    """The text that was shown to the user, or None without an answer."""
    blocked: str | None = None
    """Why the model call was blocked, if no hook supplied an answer instead, or why the prompt was refused."""
    refused: bool = False
    """Whether the prompt was refused."""
    stop_reason: str | None = None
    usage: types.GenerateContentResponseUsageMetadata | None = None
    """Token usage of the model call, also if a hook replaced the response."""
    stopped_by: str | None = None
    by_model: bool = False
    """Whether the model was called; otherwise a hook answered, or nobody did."""


class Chat:
    """A conversation with the model. ``history`` excludes what hooks added to a single request."""

    def __init__(
        self, hooks: Hooks, provider: Provider, ui: UserInterface, *, model: str, request_config: dict[str, Any]
    ) -> None:
        self._hooks = hooks
        self._provider = provider
        self._ui = ui
        self._model = model
        self._request_config = request_config
        self.session = Session(hooks.config, hooks.config.session_id, hooks.config.transcript_path)
        """What hooks leave for later calls of this conversation: messages, a restriction, a stop."""
        self.history: list[types.Content] = []
        self.usage: types.GenerateContentResponseUsageMetadata | None = None

    def fork(self) -> Chat:
        """Return a chat with a copy of the history, without tools and without output."""
        request_config = {name: value for name, value in self._request_config.items() if name != "tools"}
        chat = Chat(self._hooks, self._provider, NoInterface(), model=self._model, request_config=request_config)
        chat.history = list(self.history)
        return chat

    def restart(self, *history: types.Content) -> None:
        self.history = list(history)
        self.usage = None

    async def close(self) -> None:
        """Close connections to the model. Call it once, at the end of the conversation."""
        await self._provider.close()

    async def ask(self) -> Answer:
        """Send the history to the model and return its answer."""
        received: types.GenerateContentResponse | None = None
        request_config = types.GenerateContentConfig(**self._request_config)
        request = GenerateContentParameters(self._model, list(self.history), request_config)
        with self.session.active():
            call = self._hooks.model_call(request)
            sentences = Sentences(call)
            result = await call.before()
            if result is None:
                received = await self._stream(call, sentences)
                result = sentences.result or await call.after(received)
        if result.response is None:
            return self._unanswered(result)
        usage = None if received is None else received.usage_metadata
        self.usage = usage or self.usage
        shown = "" if result.suppress_output else shown_text(result.response)
        if call.holds_back or received is None:
            self._show("" if result.suppress_output else sentences.continued(shown))
        if (content := first_content(result.response)) is not None:
            self.history.append(content)
        self._ui.handle(AnswerEnd(shown))
        return Answer(
            result.response,
            shown,
            stop_reason=result.stop_reason,
            stopped_by=hook_names(result.decided_by),
            usage=usage,
            by_model=received is not None,
        )

    async def _stream(
        self, call: HookedModelCall[GenerateContentParameters], sentences: Sentences
    ) -> types.GenerateContentResponse:
        """Call the model. Show the answer as it arrives, unless an AfterModel hook must see it first (D-14)."""
        chunks: list[types.GenerateContentResponse] = []
        stream = self._provider.stream(call.request)
        try:
            async for chunk in stream:
                chunks.append(chunk)
                if not call.holds_back:
                    self._show(shown_text(chunk))
                elif call.streams_sentences:
                    self._show(await sentences.add(shown_text(chunk)))
                if sentences.result is not None:
                    break
        finally:
            await close_stream(stream)
        return complete_answer(chunks)

    def _unanswered(self, result: ModelCallResult[types.GenerateContentResponse]) -> Answer:
        """Handle a blocked or stopped call without a synthetic answer (HOOK-138, 174, 202)."""
        if result.blocked and result.stop_reason is None:
            self._ui.handle(ModelBlocked(result.reason or "", hook_names(result.decided_by)))
        return Answer(
            blocked=result.reason if result.blocked else None,
            stop_reason=result.stop_reason,
            stopped_by=hook_names(result.decided_by),
        )

    def _show(self, text: str) -> None:
        if text:
            self._ui.handle(AnswerText(text))
