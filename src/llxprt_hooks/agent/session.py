"""The agent loop: for each prompt, alternate model calls and tool calls until the model is done."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from google.genai import types

from llxprt_hooks.agent.answer import first_content, function_calls
from llxprt_hooks.agent.chat import Answer, Chat
from llxprt_hooks.agent.provider import AgentError
from llxprt_hooks.agent.scheduler import CallStatus, RequestedCall, Scheduler
from llxprt_hooks.agent.ui import Continued, PromptRefused, Stopped, UserInterface, WarningEvent, hook_names
from llxprt_hooks.core.calls.lifecycle import observe
from llxprt_hooks.core.calls.turn import start_session
from llxprt_hooks.events import HookEventName, PreCompressTrigger, SessionEndReason, SessionStartSource
from llxprt_hooks.process import watchdog

if TYPE_CHECKING:
    from llxprt_hooks.agent.transcript import Transcript
    from llxprt_hooks.config import Config
    from llxprt_hooks.hooks import Hooks

SYSTEM_INSTRUCTION = (
    "You are a careful software engineer working in the user's project folder. Use the tools to look before you "
    "answer and to make the changes that are asked for; paths are relative to the folder. Keep answers short."
)
TURN_LIMIT = 100
SETTLE_TIMEOUT = 5.0
"""Seconds that background events get to finish at exit."""
COMPRESS_ABOVE = 500_000
"""The history is compressed before the next prompt when a request had more tokens than this."""

_SUMMARY_PROMPT = (
    "Summarize our conversation so far. The summary will replace it, so include: the task, what was found, what "
    "was changed, decisions and their reasons, and what is left to do."
)

_TOKEN_COUNTS = {
    "promptTokenCount": "prompt_token_count",
    "candidatesTokenCount": "candidates_token_count",
    "totalTokenCount": "total_token_count",
}


@dataclass(slots=True)
class AgentSession:
    """One conversation, from its start event to its end event."""

    hooks: Hooks
    chat: Chat
    scheduler: Scheduler
    ui: UserInterface
    transcript: Transcript
    turn_limit: int = TURN_LIMIT
    tool_calls: list[RequestedCall] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_TOKEN_COUNTS, 0))
    """Token counts over all model calls, under the names that the API gives them."""
    response: str = ""
    """The text of the last answer to the prompt, as shown."""
    continuations: int = 0
    """How many further turns hooks asked for, after the prompt."""

    @property
    def config(self) -> Config:
        return self.hooks.config

    def start(self, source: SessionStartSource = SessionStartSource.STARTUP) -> None:
        with self.chat.session.active():
            start_session(self.config, self.chat.session, source, journaled=True)

    def end(self, reason: SessionEndReason) -> None:
        observe(self.config, HookEventName.SESSION_END, reason=reason)

    async def leave(self, status: int, finish: Callable[[], None] = lambda: None) -> None:
        """Close connections, wait for background events, and call ``finish``.

        Hooks that still run then finish by themselves, and the program ends here with ``status``.
        """
        try:
            await self.chat.close()
            left = await self.hooks.settle(SETTLE_TIMEOUT)
        finally:
            finish()
        if left:
            sys.stdout.flush()
            sys.stderr.flush()
            watchdog.leave_running()
            os._exit(status)  # a normal exit would cancel them

    async def respond(self, prompt: str) -> Answer:
        """Work on a prompt until the model requests no more tools, a hook stops it, or the turn limit is reached."""
        tokens = (self.chat.usage and self.chat.usage.prompt_token_count) or 0
        stopped = await self._compress(PreCompressTrigger.AUTO) if tokens > COMPRESS_ABOVE else None
        self.response, self.continuations = "", 0
        self.chat.session.resume()
        with self.chat.session.active():
            start = await self.hooks.before_turn(prompt)
            if start.blocked:
                self.ui.handle(PromptRefused(start.reason or "", hook_names(start.decided_by)))
                return Answer(blocked=start.reason, refused=True)
            if start.should_stop:
                return self._stopped(Answer(stop_reason=start.stop_reason, stopped_by=hook_names(start.decided_by)))
            answer, asked, sent = stopped, prompt, start.prompt
            while True:
                answer, following = await self._turn(asked, sent, answer)
                if following is None:
                    return answer
                self.continuations += 1
                answer, asked, sent = None, following, following

    async def _turn(self, prompt: str, sent: str, stopped: Answer | None) -> tuple[Answer, str | None]:
        """Work on a prompt, with the hooks after it; return the next prompt, if a hook lets the agent continue."""
        self._append(types.Content(role="user", parts=[types.Part(text=sent)]))
        answer = stopped or await self._turns()
        if answer.stop_reason is not None:
            self._stopped(answer)
        active = self.continuations > 0 or answer.stop_reason is not None
        end = await self.hooks.after_turn(prompt, self.response, active)
        if end.clear_context:
            self.clear()
        if end.should_stop and answer.stop_reason is None:
            answer = replace(answer, stop_reason=end.stop_reason, stopped_by=hook_names(end.decided_by))
            self._stopped(answer)
        if end.next_prompt is None or answer.stop_reason is not None:
            return answer, None
        self.ui.handle(Continued(end.next_prompt, hook_names(end.decided_by)))
        return answer, end.next_prompt

    def _stopped(self, answer: Answer) -> Answer:
        self.ui.handle(Stopped(answer.stop_reason or "", answer.stopped_by))
        return answer

    async def compress(self, trigger: PreCompressTrigger) -> bool:
        """Replace the history with a summary. Returns False if there is none, and the history is as it was."""
        before = self.chat.history
        await self._compress(trigger)
        return self.chat.history is not before

    async def _compress(self, trigger: PreCompressTrigger) -> Answer | None:
        """Replace the history with the model's summary, unless a hook stopped the call or answered it.

        Returns the answer if a hook stopped the agent.
        """
        if (reason := await self.hooks.before_compression(trigger)) is not None:
            self.ui.handle(WarningEvent(f"the conversation was not compressed: {reason}"))
            return None
        fork = self.chat.fork()
        fork.history.append(types.Content(role="user", parts=[types.Part(text=_SUMMARY_PROMPT)]))
        answer = await fork.ask()
        self.chat.session.exchange_notes((), fork.session.notes)
        self._add_usage(answer)
        content = first_content(answer.response)
        if content is None or answer.stop_reason is not None or not answer.by_model:
            return answer if answer.stop_reason else None
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

    async def _turns(self) -> Answer:
        for _ in range(self.turn_limit):
            answer = await self._ask()
            requested = function_calls(answer.response)
            if answer.stop_reason is not None or answer.blocked is not None or not requested:
                return answer
            if (stopping := await self._run_tools(requested)) is not None:
                return Answer(stop_reason=stopping.result.stop_reason, stopped_by=stopping.decided_by)
        raise AgentError(
            f"stopped after {self.turn_limit} model turns without finishing; split the task into smaller prompts"
        )

    async def _ask(self) -> Answer:
        known = len(self.chat.history)
        answer = await self.chat.ask()
        self._add_usage(answer)
        if answer.shown is not None:
            self.response = answer.shown
        if (journal := self.chat.session.journal) is not None:
            tokens = answer.usage
            journal.used(
                input_tokens=getattr(tokens, "prompt_token_count", None) or 0,
                output_tokens=getattr(tokens, "candidates_token_count", None) or 0,
            )
            if function_calls(answer.response):  # the last text is the answer to the prompt, which hooks after it see
                journal.answer(answer.shown or "")
        for content in self.chat.history[known:]:
            self.transcript.add("message", content=content)
        return answer

    async def _run_tools(self, requested: Sequence[types.FunctionCall]) -> RequestedCall | None:
        """Run the calls and append their results, even if interrupted. Returns the call that stopped the agent."""
        calls = [RequestedCall.of(call) for call in requested]
        self.tool_calls += calls
        try:
            await self.scheduler.run(calls, self.chat.session)
        finally:
            self._append(types.Content(role="user", parts=[_response(call) for call in calls]))
        stopped = [call for call in calls if call.result.stop_reason is not None]
        return next((call for call in stopped if call.decided_by), stopped[0] if stopped else None)

    def _append(self, content: types.Content) -> None:
        self.chat.history.append(content)
        self.transcript.add("message", content=content)

    def _add_usage(self, answer: Answer) -> None:
        for name, field_name in _TOKEN_COUNTS.items():
            self.usage[name] += getattr(answer.usage, field_name, None) or 0


def _response(call: RequestedCall) -> types.Part:
    outcome = {"output" if call.status is CallStatus.SUCCESS else "error": call.result.llm_content}
    return types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response=outcome))
