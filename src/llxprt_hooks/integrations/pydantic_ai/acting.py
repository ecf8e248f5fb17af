"""What hooks that act need in pydantic-ai: the prompt of a run, and calls that wait for a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ApprovalRequired
from pydantic_ai.messages import ModelMessage, ModelResponse, UserPromptPart
from pydantic_ai.tools import DeferredToolRequests, RunContext

from llxprt_hooks.core.calls.approval import ApprovalRequest, NobodyToAsk
from llxprt_hooks.core.calls.model_call import ModelCallResult
from llxprt_hooks.events import HookEventName
from llxprt_hooks.integrations.approvals import OpenQuestions, question_about
from llxprt_hooks.integrations.pydantic_ai.translator import MARK, mapping

if TYPE_CHECKING:
    from llxprt_hooks.core.calls.turn import TurnEnd, TurnStart

ASKED_BEFORE = {
    HookEventName.BEFORE_TOOL: '`permissionDecision: "allow"` comes too late for a tool that requires approval, since '
    "a person is asked before the tool is called"
}
_REFUSED_PROMPT = "(a prompt that was refused)"


class Turn:
    """A prompt that a run works on, with what hooks made of it."""

    def __init__(self, prompt: str, start: TurnStart) -> None:
        self.asked = prompt
        self.start = start
        self.is_over = False
        self._is_applied = False

    def apply(self, messages: list[ModelMessage]) -> ModelCallResult[ModelResponse] | None:
        """Add what hooks add to the prompt, once, or take a prompt out that they refuse, and return the answer then.

        It is changed where the conversation has it, because later requests must not have it either.
        """
        if self._is_applied:
            return None
        self._is_applied = True
        parts = [part for message in messages for part in message.parts]
        prompt = next((part for part in reversed(parts) if isinstance(part, UserPromptPart)), None)
        reason = self.start.reason
        if reason is not None:
            if prompt is not None:
                prompt.content = _REFUSED_PROMPT
            return ModelCallResult(blocked=True, reason=reason, stop_reason=self.start.stop_reason)
        if prompt is not None and (context := self.start.prompt.removeprefix(self.asked)):
            given = prompt.content
            prompt.content = f"{given}{context}" if isinstance(given, str) else [*given, context.lstrip()]
        return None


def mark_end(end: TurnEnd, messages: list[ModelMessage]) -> None:
    """Put what the program must do about the end of a turn into the metadata of the last answer."""
    marks = {"stop_reason": end.stop_reason, "clear_context": end.clear_context}
    last = messages[-1] if messages else None
    if any(marks.values()) and isinstance(last, ModelResponse):
        given = mapping((last.metadata or {}).get(MARK))
        new = {name: value for name, value in marks.items() if value}
        last.metadata = {**(last.metadata or {}), MARK: {**given, **new}}


class Deferred:
    """Asks a person by a deferred call, which the framework makes again with the answer (D-127)."""

    def __init__(self, questions: OpenQuestions, ctx: RunContext[Any]) -> None:
        self._questions = questions
        self._ctx = ctx
        self._call = (ctx.conversation_id, ctx.tool_call_id)

    def __call__(self, request: ApprovalRequest) -> bool:
        ctx = self._ctx
        given = ctx.tool_call_metadata
        returned = given.get(MARK) if isinstance(given, Mapping) else None
        if ctx.tool_call_approved and self._questions.accepts(self._call, request, returned):
            return True
        if not _can_defer(ctx):
            raise NobodyToAsk(
                "the program has no approver, and the agent has no `DeferredToolRequests` among its output types"
            )
        question = question_about(request)
        self._questions.asked(self._call, question)
        raise ApprovalRequired({MARK: {**question, "reason": request.reason, "tool_input": request.tool_input}})

    def close(self) -> None:
        """Forget the question: the call is over."""
        self._questions.close(self._call)


def _can_defer(ctx: RunContext[Any]) -> bool:
    """Whether a call can wait for a person: its program, or one of the agent's capabilities, expects it."""
    if ctx.agent is None:
        return False
    given: Any = ctx.agent.output_type
    if DeferredToolRequests in (given if isinstance(given, (list, tuple)) else [given]):
        return True
    capabilities: list[AbstractCapability[Any]] = []
    if ctx.root_capability is not None:
        ctx.root_capability.apply(capabilities.append)
    return any(map(_answers_deferred_calls, capabilities))


def _answers_deferred_calls(capability: AbstractCapability[Any]) -> bool:
    is_own = type(capability).__module__.startswith("llxprt_hooks.")  # only notifies
    default = AbstractCapability.handle_deferred_tool_calls
    return type(capability).handle_deferred_tool_calls is not default and not is_own
