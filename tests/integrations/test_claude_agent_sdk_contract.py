"""The contract through the Claude Agent SDK: its own program, with a loopback server in place of Anthropic's API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    StreamEvent,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from llxprt_hooks import Answered
from llxprt_hooks.config import Config
from llxprt_hooks.events import HookEventName
from llxprt_hooks.integrations.claude_agent_sdk import hooked
from tests.integrations.claude_support import PREFIX, offline, text_of, tool_server
from tests.integrations.contract import (
    EFFECTS,
    NOTE,
    SHELL,
    TOOL_NAMES,
    WROTE_NOTE,
    Call,
    Check,
    Driver,
    Effect,
    Outcome,
    Request,
    Scenario,
    ToolRun,
    acting,
    calls_of,
    check,
    check_declarations,
    ran_normally,
    specific,
)
from tests.support.api_server import APIServer
from tests.support.api_server import Call as ModelCall
from tests.support.processes import until

if TYPE_CHECKING:
    from tests.support.project import Project


def _follows_the_result(scenario: Scenario, outcome: Outcome) -> None:
    """The SDK's program shows the model what hooks say in a reminder of its own, after the result."""
    ran_normally(outcome)
    said = ("[System] mind the gap", "run the tests")
    assert any(text in outcome.requests[1].text for text in said)
    assert not any(text in outcome.results[0] for text in said)


def _not_set(scenario: Scenario, outcome: Outcome) -> None:
    """Newer models of Anthropic reject these settings: a hook may change them only if the program sets one."""
    assert outcome.requests[0].temperature is None
    assert "`llm_request.config.temperature` is ignored" in outcome.said


def _with_reminders(scenario: Scenario, outcome: Outcome) -> None:
    """The program adds messages of its own after the user's."""
    (before,), (after,) = scenario.project.payloads("before"), scenario.project.payloads("after")
    assert {"role": "user", "content": "say hello"} in before["llm_request"]["messages"]
    assert after["llm_request"]["messages"] == before["llm_request"]["messages"]
    assert after["llm_response"]["candidates"][0]["content"]["parts"] == ["hello"]


def _call_is_text(scenario: Scenario, outcome: Outcome) -> None:
    assert outcome.runs == [ToolRun(*SHELL)]
    assert outcome.results == ["ran ls"]
    assert "write_file may not be called now" in outcome.requests[1].text
    assert [payload["tool_name"] for payload in scenario.project.payloads("tool")] == ["run_shell_command"]


def _answer_is_text(scenario: Scenario, outcome: Outcome) -> None:
    assert (outcome.runs, len(outcome.requests)) == ([], 1)
    assert outcome.text == "write_file may not be called now. No tool is allowed."


def _compressed_by_hand(scenario: Scenario, outcome: Outcome) -> None:
    assert [payload["trigger"] for payload in scenario.project.payloads()] == ["manual"]


def _ids_of_the_program(scenario: Scenario, outcome: Outcome) -> None:
    """The program makes the ids, and they must be UUIDs."""
    ids = {payload["session_id"] for payload in scenario.project.payloads()}
    assert len(ids) == 1
    assert len(ids.pop()) == 36


def _is_full(scenario: Scenario) -> bool:
    settings = json.loads(scenario.project.project_file.read_text())
    return bool(settings["hooksConfig"].get("profile") == "full")


def _context_beside_the_prompt(scenario: Scenario, outcome: Outcome) -> None:
    """The program shows it to the model in a reminder of its own."""
    is_full = _is_full(scenario)
    context = ("It is Monday.", "Tests are in tests/.")
    assert any(text in outcome.requests[0].text for text in context) is is_full
    assert outcome.text == "hello"


def _continued_by_feedback(scenario: Scenario, outcome: Outcome) -> None:
    """The program puts words of its own before the reason."""
    is_full = _is_full(scenario)
    assert outcome.text == ("second" if is_full else "first")
    until(lambda: bool(scenario.project.payloads()))
    actives = [payload["stop_hook_active"] for payload in scenario.project.payloads()]
    assert actives == ([False, True] if is_full else [False])
    assert not is_full or "run the tests" in outcome.requests[1].text


def _compression_blocked_by_hand(scenario: Scenario, outcome: Outcome) -> None:
    assert [payload["trigger"] for payload in scenario.project.payloads()] == ["manual"]


def _context_beside_the_result(scenario: Scenario, outcome: Outcome) -> None:
    is_full = _is_full(scenario)
    assert outcome.results == ["redacted" if is_full else "wrote a.txt"]
    assert "by the guard" in outcome.requests[1].text
    assert ("wrote a.txt" in outcome.requests[1].text) is not is_full


class ClaudeDriver(Driver):
    """A conversation with the program of the SDK, whose tools are functions of this process."""

    partial: ClassVar[Mapping[str, Check]] = {
        "before_tool_message": _follows_the_result,
        "after_tool_context": _follows_the_result,
        "after_tool_message": _follows_the_result,
        "after_tool_suppresses": lambda scenario, outcome: ran_normally(outcome),
        "after_model_suppresses": lambda scenario, outcome: None,
        "before_model_changes_settings": _not_set,
        "model_payloads": _with_reminders,
        "selection_holds_for_names": _call_is_text,
        "selection_holds_for_none": _answer_is_text,
        "pre_compress": _compressed_by_hand,
        "session_ids": _ids_of_the_program,
        "acting_prompt_context": _context_beside_the_prompt,
        "acting_session_context": _context_beside_the_prompt,
        "acting_continuation": _continued_by_feedback,
        "acting_compression_blocked": _compression_blocked_by_hand,
        "acting_result_text": _context_beside_the_result,
    }
    impossible: ClassVar[Mapping[str, HookEventName]] = {
        "acting_context_cleared": HookEventName.AFTER_AGENT,
        "acting_failure_replaced": HookEventName.AFTER_TOOL,
    }
    acts = True

    def __init__(self, user: Any = None) -> None:
        self.user = user
        """Whom the program asks."""

    def run(self, scenario: Scenario) -> Outcome:
        with APIServer().running() as server:
            server.pieces = True
            server.will_say(*map(_answer, scenario.turns), *["done"] * 3)
            outcome = asyncio.run(self._run(scenario, server))
            outcome.requests = [_request(body) for body in server.requests]
            return outcome

    async def _run(self, scenario: Scenario, server: APIServer) -> Outcome:
        outcome = Outcome(runs=scenario.tools.runs)
        names = [tool.__name__ for tool in scenario.tools.functions]

        async def allow(*_: Any) -> PermissionResultAllow:
            return PermissionResultAllow()

        can_use_tool = self.user or (allow if scenario.approval else None)

        options = ClaudeAgentOptions(
            cwd=scenario.project.root,
            env=offline(server.url, scenario.project.home),
            mcp_servers={"t": tool_server(scenario.tools)},
            tools=[],
            allowed_tools=[] if scenario.approval else [PREFIX + name for name in names],
            can_use_tool=can_use_tool,
            setting_sources=[],
            system_prompt=scenario.system_prompt,
            model="model-1",
            thinking={"type": "disabled"},
            include_partial_messages=scenario.stream,
        )
        aliases = {PREFIX + name: scenario.aliases.get(name, name) for name in names}
        config = Config.load(scenario.project.root, approver=scenario.approver)
        # The SDK has no place for a user: a function of the program knows it.
        metadata = scenario.metadata is True and (lambda given: {"user": scenario.asked_by, "in": given["session_id"]})
        hooking = hooked(options, config, aliases=aliases, metadata=metadata or scenario.metadata)
        async with hooking as options, ClaudeSDKClient(options) as client:
            await self._converse(client, scenario.prompt, outcome)
            if scenario.compress:
                await self._converse(client, "/compact", Outcome())
            outcome.stop_reason = options.stop_reason()
        return outcome

    async def _converse(self, client: ClaudeSDKClient, prompt: str, outcome: Outcome) -> None:
        await client.query(prompt)
        calls: list[tuple[str, list[str]]] = []
        async for message in client.receive_response():
            if isinstance(message, AssistantMessage):
                calls += [(block.id, []) for block in message.content if isinstance(block, ToolUseBlock)]
                outcome.text = "".join(block.text for block in message.content if isinstance(block, TextBlock))
            elif isinstance(message, UserMessage) and isinstance(message.content, list):
                for block in message.content:
                    if isinstance(block, ToolResultBlock):  # in the order in which the calls ended
                        next(results for call, results in calls if call == block.tool_use_id and not results).append(
                            text_of(block.content)
                        )
            elif isinstance(message, StreamEvent) and message.event["type"] == "content_block_delta":
                outcome.shown.append(message.event["delta"].get("text", ""))
            elif isinstance(message, ResultMessage) and message.is_error:
                outcome.error = RuntimeError(str(message.result or message.errors))
            elif isinstance(message, ResultMessage):
                outcome.text = outcome.text or message.result or ""
        outcome.results += [result for _, results in calls for result in results]


def _answer(turn: Any) -> str | list[ModelCall]:
    return turn if isinstance(turn, str) else [ModelCall(PREFIX + call.name, call.args) for call in calls_of(turn)]


def _request(body: dict[str, Any]) -> Request:
    blocks = [
        (message["role"], block)
        for message in body["messages"]
        for block in (
            [{"type": "text", "text": message["content"]}]
            if isinstance(message["content"], str)
            else message["content"]
        )
    ]
    choice = body.get("tool_choice", {}).get("type")
    declared = TOOL_NAMES & {tool["name"].removeprefix(PREFIX) for tool in body.get("tools", ())}
    allowed = frozenset([body["tool_choice"]["name"].removeprefix(PREFIX)]) if choice == "tool" else declared
    return Request(
        texts=[
            ("system", text_of(body["system"])),
            *(("model" if role == "assistant" else role, b["text"]) for role, b in blocks if b["type"] == "text"),
        ],
        results=[text_of(block["content"]) for _, block in blocks if block["type"] == "tool_result"],
        calls=[block["name"].removeprefix(PREFIX) for _, block in blocks if block["type"] == "tool_use"],
        model=body["model"],
        temperature=body.get("temperature"),
        allowed=frozenset() if choice == "none" else allowed,
        must_call=choice in ("any", "tool"),
    )


@pytest.mark.parametrize("effect", EFFECTS, ids=str)
def test_contract(effect: Effect, sandbox: Project, caplog: pytest.LogCaptureFixture) -> None:
    check(effect, ClaudeDriver(), sandbox, caplog)


@pytest.mark.filterwarnings("ignore::claude_agent_sdk.types.CanUseToolShadowedWarning")
@pytest.mark.parametrize(
    ("answer", "logged"),
    [
        (PermissionResultAllow(), [Answered.WAITING, Answered.APPROVED]),
        (PermissionResultDeny(message="not today"), [Answered.WAITING, Answered.DENIED]),
        (None, [Answered.NOBODY]),
    ],
    ids=["yes", "no", "nobody"],
)
def test_a_hook_asks_by_the_programs_permission(
    answer: Any, logged: list[Answered], sandbox: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also about a tool that the program allows. Without a callback there is nobody to ask."""
    rewritten = specific(tool_input={"file_path": "a.txt"})
    acting(sandbox, True, BeforeTool=sandbox.hook(says={"decision": "ask", "reason": "sure?", **rewritten}))
    sandbox.approve()
    monkeypatch.setenv("LLXPRT_HOOKS_LOG", "1")
    asked: list[Any] = []

    async def user(name: str, arguments: dict[str, Any], context: Any) -> Any:
        asked.append(arguments)
        return answer

    call = Call("write_file", {"file_path": "b.txt", "content": "hello"})
    outcome = ClaudeDriver(answer and user).run(Scenario(project=sandbox, turns=[call, "done"]))
    assert asked == ([dict(NOTE.args)] if answer else [])
    assert outcome.runs == (WROTE_NOTE if isinstance(answer, PermissionResultAllow) else [])
    assert ("nobody could be asked" in outcome.results[0]) is (answer is None)
    records = [json.loads(line) for line in sandbox.log_file.read_text().splitlines()]
    assert [record["answer"] for record in records if "answer" in record] == logged


def test_declared_gaps() -> None:
    check_declarations(ClaudeDriver())
