"""The agent loop: for each prompt, alternate model calls and tool calls until the model is done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from google.genai import types

from llxprt_hooks.agent.answer import first_content, function_calls
from llxprt_hooks.agent.audience import Audience, Stopped
from llxprt_hooks.agent.errors import AgentError
from llxprt_hooks.agent.scheduler import CallStatus, Scheduler, ToolCall
from llxprt_hooks.events import PreCompressTrigger, SessionEndReason, SessionStartSource
from llxprt_hooks.triggers.lifecycle import (
    fire_after_agent_hook,
    fire_before_agent_hook,
    fire_pre_compress_hook,
    fire_session_end_hook,
    fire_session_start_hook,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llxprt_hooks.agent.chat import Answer, Chat
    from llxprt_hooks.agent.transcript import Transcript
    from llxprt_hooks.config import Config

SYSTEM_INSTRUCTION = (
    "You are a careful software engineer working in the user's project folder. Use the tools to look before you "
    "answer and to make the changes that are asked for; paths are relative to the folder. Keep answers short."
)
TURN_LIMIT = 100
COMPRESS_ABOVE = 500_000
"""The history is compressed before the next prompt when a request had more tokens than this."""

_SUMMARY_PROMPT = (
    "Summarize our conversation so far. The summary will replace it, so include: the task, what was found, what "
    "was changed, decisions and their reasons, and what is left to do."
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the work on a prompt ended."""

    stop_reason: str | None = None
    stopped_by: str | None = None
    """The hooks that stopped the agent."""
    blocked: str | None = None
    """Why a model call was blocked, if no hook supplied an answer instead."""


@dataclass(slots=True)
class Usage:
    """Token counts over all model calls of the session."""

    prompt: int = 0
    candidates: int = 0
    total: int = 0

    def add(self, usage: types.GenerateContentResponseUsageMetadata | None) -> None:
        if usage is not None:
            self.prompt += usage.prompt_token_count or 0
            self.candidates += usage.candidates_token_count or 0
            self.total += usage.total_token_count or 0

    def to_dict(self) -> dict[str, int]:
        return {
            "promptTokenCount": self.prompt,
            "candidatesTokenCount": self.candidates,
            "totalTokenCount": self.total,
        }


@dataclass(slots=True)
class Session:
    """One conversation, from its start event to its end event."""

    config: Config
    chat: Chat
    scheduler: Scheduler
    audience: Audience
    transcript: Transcript
    turn_limit: int = TURN_LIMIT
    tool_calls: list[ToolCall] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    response: str = ""
    """The text of the last answer to the prompt, as shown."""

    def start(self, source: SessionStartSource = SessionStartSource.STARTUP) -> None:
        fire_session_start_hook(self.config, source)

    def end(self, reason: SessionEndReason) -> None:
        fire_session_end_hook(self.config, reason)

    async def respond(self, prompt: str) -> Outcome:
        """Work on a prompt until the model requests no more tools, a hook stops it, or the turn limit is reached."""
        stopped = await self._compress(PreCompressTrigger.AUTO) if self._history_is_long() else None
        self.response = ""
        fire_before_agent_hook(self.config, prompt)
        self._append(types.Content(role="user", parts=[types.Part(text=prompt)]))
        outcome = stopped or await self._turns()
        if outcome.stop_reason is not None:
            self.audience.handle(Stopped(outcome.stop_reason, outcome.stopped_by))
        fire_after_agent_hook(self.config, prompt, self.response, outcome.stop_reason is not None)
        return outcome

    async def compress(self, trigger: PreCompressTrigger) -> bool:
        """Replace the history with a summary. Returns False if there is none, and the history is as it was."""
        before = self.chat.history
        await self._compress(trigger)
        return self.chat.history is not before

    async def _compress(self, trigger: PreCompressTrigger) -> Outcome | None:
        """Replace the history with the model's summary, unless a hook stopped the call or answered it.

        Returns the outcome if a hook stopped the agent.
        """
        fire_pre_compress_hook(self.config, trigger)
        fork = self.chat.fork()
        fork.history.append(types.Content(role="user", parts=[types.Part(text=_SUMMARY_PROMPT)]))
        answer = await fork.ask()
        self.usage.add(answer.usage)
        content = first_content(answer.response)
        if content is None or answer.stop_reason is not None or not answer.by_model:
            return Outcome(answer.stop_reason, answer.stopped_by) if answer.stop_reason else None
        task = types.Content(role="user", parts=[types.Part(text="This is what we have done so far.")])
        self.chat.restart(task, content)
        self.transcript.add("compressed", trigger=trigger.value, content=content)
        self.start(SessionStartSource.COMPRESS)
        return None

    def clear(self) -> None:
        """Discard the conversation and start a new one."""
        self.end(SessionEndReason.CLEAR)
        self.chat.restart()
        self.transcript.add("cleared")
        self.start(SessionStartSource.CLEAR)

    async def _turns(self) -> Outcome:
        for _ in range(self.turn_limit):
            answer = await self._ask()
            if answer.stop_reason is not None or answer.blocked is not None:
                return Outcome(answer.stop_reason, answer.stopped_by, answer.blocked)
            requested = function_calls(answer.response)
            if not requested:
                return Outcome()
            if (stopping := await self._run_tools(requested, answer)) is not None:
                return Outcome(stopping.result.stop_reason, stopping.stopped_by)
        raise AgentError(f"the turn limit of {self.turn_limit} was reached before the agent was done")

    async def _ask(self) -> Answer:
        known = len(self.chat.history)
        answer = await self.chat.ask()
        self.usage.add(answer.usage)
        if answer.shown is not None:
            self.response = answer.shown
        for content in self.chat.history[known:]:
            self.transcript.add("message", content=content)
        return answer

    async def _run_tools(self, requested: Sequence[types.FunctionCall], answer: Answer) -> ToolCall | None:
        """Run the calls and append their results, even if interrupted. Returns the call that stopped the agent."""
        calls = [ToolCall.of(call) for call in requested]
        self.tool_calls += calls
        try:
            await self.scheduler.run(calls, answer.restriction)
        finally:
            self._append(types.Content(role="user", parts=[_response(call) for call in calls]))
        return next((call for call in calls if call.result.stop_reason is not None), None)

    def _append(self, content: types.Content) -> None:
        self.chat.history.append(content)
        self.transcript.add("message", content=content)

    def _history_is_long(self) -> bool:
        usage = self.chat.usage
        return bool(usage and (usage.prompt_token_count or 0) > COMPRESS_ABOVE)


def _response(call: ToolCall) -> types.Part:
    outcome = {"output" if call.status is CallStatus.SUCCESS else "error": call.result.llm_content}
    return types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response=outcome))
