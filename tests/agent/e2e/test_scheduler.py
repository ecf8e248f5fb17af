"""The scheduler by itself: the states of a call, and what hooks may and may not do to its result."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest
from google.genai import types

from llxprt_hooks import Config, Hooks, ToolResult
from llxprt_hooks.agent.approval import ApprovalMode, Approver, Ask, Request
from llxprt_hooks.agent.scheduler import CallState, CallStatus, RequestedCall, Scheduler
from llxprt_hooks.agent.tools.tool import Tool, ToolKind
from llxprt_hooks.agent.tools.workspace import Workspace
from llxprt_hooks.agent.ui import AgentEvent, ToolState
from llxprt_hooks.core.engine.session import Session
from llxprt_hooks.model import Restriction
from tests.support.project import hooks_of

if TYPE_CHECKING:
    from tests.support.agent import AgentProject

FREE = Restriction()


class Published:
    """A user interface that keeps what it is told about calls: state, status and result at that moment."""

    def __init__(self) -> None:
        self.states: list[tuple[CallState, CallStatus | None, Any]] = []

    def handle(self, event: AgentEvent) -> None:
        assert isinstance(event, ToolState)
        self.states.append((event.call.state, event.call.status, event.call.result.llm_content))


class Probe:
    """A scheduler with one tool, ``probe``, that notes what it was run with."""

    def __init__(
        self,
        project: AgentProject,
        result: ToolResult | Exception,
        kind: ToolKind = ToolKind.READ,
        ask: Ask | None = None,
        **hooks: str,
    ) -> None:
        self.config = Config(working_dir=project.root, enable_hooks=True, hooks=hooks_of(hooks))
        self.published = Published()
        self.runs: list[dict[str, Any]] = []
        self._result = result
        parameters = {"type": "object", "properties": {"number": {"type": "string"}}}
        tool = Tool("probe", "A probe.", parameters, kind, self._probe)
        approval = Approver(ApprovalMode.DEFAULT, ask=ask)
        self.scheduler = Scheduler(
            Hooks(self.config), Workspace(project.root), {"probe": tool}, approval, self.published
        )

    async def run(self, *names: str, restriction: Restriction = FREE) -> list[RequestedCall]:
        calls = [
            RequestedCall.of(types.FunctionCall(name=name, args={"number": str(number)}))
            for number, name in enumerate(names)
        ]
        session = Session(self.config, "s1", "")
        session.restriction = restriction
        await self.scheduler.run(calls, session)
        return calls

    async def _probe(self, _: Workspace, arguments: Mapping[str, Any]) -> ToolResult:
        self.runs.append(dict(arguments))
        if isinstance(self._result, Exception):
            raise self._result
        return self._result


@pytest.mark.requirement("HOOK-129", "HOOK-204")
async def test_a_blocked_call_goes_from_executing_to_idle_and_its_reason_is_published(project: AgentProject) -> None:
    probe = Probe(project, ToolResult("never"), BeforeTool=project.hook("guard", stderr="not today", exit_code=2))
    [call] = await probe.run("probe")
    assert probe.published.states == [
        (CallState.EXECUTING, None, ""),
        (CallState.IDLE, CallStatus.BLOCKED, "not today"),
    ]
    assert (call.state, call.status, call.result.llm_content) == (CallState.IDLE, CallStatus.BLOCKED, "not today")


async def test_a_call_that_runs_goes_through_the_same_states(project: AgentProject) -> None:
    probe = Probe(project, ToolResult("found it"))
    await probe.run("probe")
    assert probe.published.states == [
        (CallState.EXECUTING, None, ""),
        (CallState.IDLE, CallStatus.SUCCESS, "found it"),
    ]


async def say_no(_: Request) -> bool:
    return False


@pytest.mark.requirement("HOOK-159")
@pytest.mark.parametrize(
    ("ask", "status", "refusal"),
    [
        (say_no, CallStatus.CANCELLED, "The user did not allow this probe call."),
        (None, CallStatus.ERROR, "probe needs the user's approval, but this run is not interactive."),
    ],
)
async def test_a_call_that_is_not_approved_keeps_what_a_hook_says_to_the_model(
    project: AgentProject, ask: Ask | None, status: CallStatus, refusal: str
) -> None:
    hook = project.hook("advise", {"systemMessage": "Use the staging server."})
    probe = Probe(project, ToolResult("never"), ToolKind.EXECUTE, ask, BeforeTool=hook)
    [call] = await probe.run("probe")
    assert call.status is status
    assert call.result.llm_content.startswith(refusal)
    assert call.result.llm_content.endswith("\n\n[System] Use the staging server.")
    assert "staging" not in call.result.return_display
    assert probe.runs == []


@pytest.mark.requirement("HOOK-159")
async def test_a_call_whose_arguments_a_hook_broke_ends_with_the_messages_of_hooks(project: AgentProject) -> None:
    says = {"systemMessage": "Mind the unit.", "hookSpecificOutput": {"tool_input": {"number": 7}}}
    [call] = await Probe(project, ToolResult("never"), BeforeTool=project.hook("spoil", says)).run("probe")
    assert call.status is CallStatus.ERROR
    assert call.result.llm_content.endswith("\n\n[System] Mind the unit.")


@pytest.mark.requirement("HOOK-217")
async def test_hooks_never_change_the_result_that_the_tool_made(project: AgentProject) -> None:
    made = ToolResult("found it", "shown", {"lines": 1})
    says = {
        "systemMessage": "Hm.",
        "suppressOutput": True,
        "continue": False,
        "hookSpecificOutput": {"additionalContext": "x"},
    }
    [call] = await Probe(project, made, AfterTool=project.hook("loud", says)).run("probe")
    assert made == ToolResult("found it", "shown", {"lines": 1})
    assert call.result == ToolResult(
        "found it\n\nx\n\n[System] Hm.",
        "shown",
        {"lines": 1},
        suppress_display=True,
        stop_reason="No reason provided",
        additions=["x", "[System] Hm."],
    )


@pytest.mark.parametrize(
    ("name", "restriction", "status"),
    [
        ("probe", Restriction(frozenset({"probe"})), CallStatus.SUCCESS),
        ("probe", Restriction(frozenset({"other"})), CallStatus.RESTRICTED),
        ("probe", Restriction(frozenset()), CallStatus.RESTRICTED),
        ("other", Restriction(frozenset({"other"})), CallStatus.ERROR),
        ("", FREE, CallStatus.ERROR),
    ],
)
async def test_only_allowed_and_known_tools_run(
    project: AgentProject, name: str, restriction: Restriction, status: CallStatus
) -> None:
    probe = Probe(project, ToolResult("found it"), BeforeTool=project.hook("before"))
    [call] = await probe.run(name, restriction=restriction)
    assert call.status is status
    ran = status is CallStatus.SUCCESS
    assert (len(probe.runs), len(project.payloads("before"))) == (ran, ran)
    assert (call.result.error is None) is ran


async def test_a_tool_that_raises_fails_alone(project: AgentProject) -> None:
    [first, second] = await Probe(project, ValueError("no such thing")).run("probe", "probe")
    assert (first.status, second.status) == (CallStatus.ERROR, CallStatus.ERROR)
    assert "no such thing" in str(first.result.llm_content)


async def test_an_interrupted_scheduler_finishes_every_call(project: AgentProject) -> None:
    probe = Probe(project, ToolResult("found it"), BeforeTool=project.endless_hook("endless"))
    calls = [RequestedCall("probe", {}), RequestedCall("other", {})]
    running = asyncio.create_task(probe.scheduler.run(calls, Session(probe.config, "s1", "")))
    await asyncio.to_thread(project.pids, "endless")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [(call.state, call.status) for call in calls] == [
        (CallState.IDLE, CallStatus.CANCELLED),
        (CallState.IDLE, CallStatus.ERROR),
    ]
    assert probe.runs == []


async def test_at_most_32_calls_of_an_answer_run_at_once(project: AgentProject) -> None:
    running: set[int] = set()
    most = 0

    class Counting(Probe):
        async def _probe(self, workspace: Workspace, arguments: Mapping[str, Any]) -> ToolResult:
            nonlocal most
            running.add(id(arguments))
            most = max(most, len(running))
            for _ in range(10):  # let all others start that can
                await asyncio.sleep(0)
            running.remove(id(arguments))
            return await super()._probe(workspace, arguments)

    probe = Counting(project, ToolResult("found it"))
    calls = await probe.run(*["probe"] * 100)
    assert {call.status for call in calls} == {CallStatus.SUCCESS}
    assert len(probe.runs) == 100
    assert most == 32
