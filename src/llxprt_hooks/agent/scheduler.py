"""Run the tool calls of one answer, each with its hooks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from llxprt_hooks._support.text import shorten
from llxprt_hooks.agent.approval import Approver, Request
from llxprt_hooks.agent.tools.messages import ToolFailure, failed
from llxprt_hooks.agent.tools.tool import Tool, check_requested, texts
from llxprt_hooks.agent.ui import ToolState, UserInterface, hook_names
from llxprt_hooks.core.calls.tool import HookedToolCall, ToolNotRun
from llxprt_hooks.core.protocol.tool_result import ToolResult

if TYPE_CHECKING:
    from google.genai import types

    from llxprt_hooks.agent.tools.workspace import Workspace
    from llxprt_hooks.core.calls.approval import ApprovalRequest
    from llxprt_hooks.core.engine.session import Session
    from llxprt_hooks.hooks import Hooks


MAX_AT_ONCE = 32
"""Calls of one answer that run at once: an answer can have hundreds, and each needs hooks and processes."""

_MAX_NAME = 100


class CallState(StrEnum):
    """The state of a call. A finished call, blocked or not, is idle and stays idle (HOOK-129, 130, 204)."""

    SCHEDULED = "scheduled"
    AWAITING_APPROVAL = "awaiting_approval"
    EXECUTING = "executing"
    IDLE = "idle"


class CallStatus(StrEnum):
    SUCCESS = "success"
    ERROR = "error"
    BLOCKED = "blocked"
    RESTRICTED = "restricted"
    CANCELLED = "cancelled"


@dataclass(slots=True)
class RequestedCall:
    """One call that the model requested, and its outcome."""

    name: str
    args: dict[str, Any]
    """As requested; once the tool runs, as executed."""
    id: str | None = None
    state: CallState = CallState.SCHEDULED
    status: CallStatus | None = None
    result: ToolResult = field(default_factory=ToolResult)
    decided_by: str | None = None
    """The hooks that kept the call from running, or stopped the agent."""
    asked: str | None = None
    """What became of a hook's question about the call."""

    @property
    def blocked_by(self) -> str | None:
        return self.decided_by if self.status is CallStatus.BLOCKED else None

    @classmethod
    def of(cls, requested: types.FunctionCall) -> RequestedCall:
        return cls(requested.name or "", dict(requested.args or {}), requested.id)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "args": self.args,
            "status": None if self.status is None else self.status.value,
            "result": self.result.llm_content,
            **({"asked": self.asked} if self.asked else {}),
            **({"replaced": True} if self.result.replaced else {}),
        }


class _Refused(ToolNotRun):
    """The call was not approved. The message is for the model."""


class _Answered(ToolNotRun):
    """A hook refused the call in the user's place."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__()
        self.result = result


class Scheduler:
    """Runs tool calls concurrently."""

    def __init__(
        self, hooks: Hooks, workspace: Workspace, tools: Mapping[str, Tool], approval: Approver, ui: UserInterface
    ) -> None:
        self._hooks = hooks
        self._workspace = workspace
        self._tools = tools
        self._approval = approval
        self._ui = ui

    async def run(self, calls: Sequence[RequestedCall], session: Session) -> None:
        """Run the calls of one answer. Each call ends with a result, even if interrupted. No call is retried."""
        slots = asyncio.Semaphore(MAX_AT_ONCE)

        async def run_in_turn(call: RequestedCall) -> None:
            async with slots:
                await self._run(call, session)

        try:
            with session.active():
                async with asyncio.TaskGroup() as group:
                    for call in calls:
                        group.create_task(run_in_turn(call))
        except asyncio.CancelledError:
            for call in calls:
                if call.state is not CallState.IDLE:
                    self._finish(call, CallStatus.CANCELLED, ToolResult.failure("The user interrupted this call."))
            raise

    async def _run(self, call: RequestedCall, session: Session) -> None:
        """Run one call: restriction, declared arguments, BeforeTool, approval, the tool, AfterTool."""
        tool = self._tools.get(call.name)
        if (refusal := session.restriction.refusal(call.name)) is not None:
            return self._finish(call, CallStatus.RESTRICTED, ToolResult.failure(refusal))
        hooked = self._hooks.tool_call(call.name, call.args, tool_use_id=call.id)
        try:
            if tool is None:
                name = shorten(call.name, _MAX_NAME)
                raise ToolFailure(f"Unknown tool {name!r}. Available tools: {', '.join(self._tools)}.")
            check_requested(tool, call.args)
            self._enter(call, CallState.EXECUTING)
            result = await self._hooked(call, tool, hooked)
        except ToolFailure as failure:
            return self._finish(call, CallStatus.ERROR, hooked.not_run(failed(failure)))
        except _Refused as refused:
            status = CallStatus.CANCELLED if self._approval.interactive else CallStatus.ERROR
            return self._finish(call, status, hooked.not_run(ToolResult.failure(str(refused))))
        status = _status(result)
        call.asked = hooked.answered
        call.decided_by = hook_names(result.decided_by)
        return self._finish(call, status, result)

    async def _hooked(self, call: RequestedCall, tool: Tool, hooked: HookedToolCall) -> ToolResult:
        try:
            return await hooked.run(partial(self._execute, call, tool, hooked))
        except _Answered as refused:
            return refused.result

    async def answer(self, asked: ApprovalRequest) -> bool:
        """Ask the user what a hook wants to know."""
        tool = self._tools[asked.tool_name]
        return await self._approval.refusal(self._request(tool, asked.tool_input, asked)) is None

    def _request(self, tool: Tool, final_input: dict[str, Any], asked: ApprovalRequest | None = None) -> Request:
        arguments = texts(tool, final_input)
        target = self._workspace.target(arguments[tool.writes]) if tool.writes else None
        return Request(tool, arguments, target, f"{asked.hook} asks: {asked.reason}" if asked else None)

    async def _execute(
        self, call: RequestedCall, tool: Tool, hooked: HookedToolCall, final_input: dict[str, Any]
    ) -> ToolResult:
        """Ask for approval and run the tool. Raises if the tool does not run, so that AfterTool does not fire."""
        call.args, call.asked = final_input, hooked.answered
        request, workspace = self._request(tool, final_input), self._workspace
        if self._approval.needed(request) and not (hooked.is_approved and request.protected is None):
            self._enter(call, CallState.AWAITING_APPROVAL)
            request = await self._approved(call, hooked, request)
            self._enter(call, CallState.EXECUTING)
            workspace = workspace.approving(request.target.place) if request.target else workspace
        try:
            return await tool.run(workspace, request.arguments)
        except Exception as error:  # report tool errors to the model instead of crashing the agent
            return ToolResult.failure(f"{tool.name} failed: {error}")

    async def _approved(self, call: RequestedCall, hooked: HookedToolCall, request: Request) -> Request:
        """Return what may happen, once hooks or the user have said yes; a protected file needs the user's yes."""
        answered = await hooked.answer_by_hooks()
        if isinstance(answered, ToolResult):
            raise _Answered(answered)
        if answered:
            call.args = hooked.input
            request = self._request(request.tool, hooked.input)
        if answered and request.protected is None:
            return request
        if (refusal := await self._approval.refusal(request)) is not None:
            raise _Refused(refusal)
        return request

    def _enter(self, call: RequestedCall, state: CallState) -> None:
        call.state = state
        self._ui.handle(ToolState(call))

    def _finish(self, call: RequestedCall, status: CallStatus, result: ToolResult) -> None:
        call.status, call.result = status, result
        self._enter(call, CallState.IDLE)


_HOOK_ERRORS = ("hook_blocked", "hook_stopped")


def _status(result: ToolResult) -> CallStatus:
    if result.error is None:
        return CallStatus.SUCCESS
    kind = result.error.get("type") if isinstance(result.error, Mapping) else None
    return CallStatus.BLOCKED if kind in _HOOK_ERRORS else CallStatus.ERROR
