"""Effects that only the Claude Agent SDK has, with its own program and a loopback server in place of the API."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    Message,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    query,
)

from llxprt_hooks import Config
from llxprt_hooks.integrations.claude_agent_sdk import HookedOptions, hooked, with_hooks
from tests.integrations.claude_support import offline
from tests.support.api_server import APIServer, Call
from tests.support.processes import eventually

if TYPE_CHECKING:
    from tests.support.project import Project


@pytest.fixture
def project(sandbox: Project) -> Project:
    return sandbox


def options_for(project: Project, api_server: APIServer, *tools: str, **more: Any) -> ClaudeAgentOptions:
    given: dict[str, Any] = {
        "cwd": project.root,
        "env": offline(api_server.url, project.home),
        "tools": list(tools),
        "allowed_tools": list(tools),
        "setting_sources": [],
        "model": "model-1",
    }
    return ClaudeAgentOptions(**{**given, **more})


async def ask(options: ClaudeAgentOptions, prompt: str = "go") -> list[Message]:
    return [message async for message in query(prompt=prompt, options=options)]


def config(project: Project, **hooks: Any) -> Config:
    project.configure(**hooks)
    project.approve()
    return Config.load(project.root)


def results_in(api_server: APIServer) -> str:
    return json.dumps(api_server.requests[-1]["messages"])


# Tools of the SDK's program.


async def test_its_own_tools_have_hooks(project: Project, api_server: APIServer) -> None:
    says = {"hookSpecificOutput": {"tool_input": {"command": "echo from the hook"}}}
    group = {"matcher": "^Bash$", "hooks": [{"type": "command", "command": project.hook("before", says=says)}]}
    chosen = config(project, BeforeTool=group, AfterTool=project.hook("after"))
    api_server.will_say([Call("Bash", {"command": "echo from the model", "description": "say it"})])
    await ask(with_hooks(options_for(project, api_server, "Bash"), chosen))
    (before,), (after,) = project.payloads("before"), project.payloads("after")
    assert before["tool_input"] == {"command": "echo from the model", "description": "say it"}
    assert (after["tool_name"], after["tool_input"]["command"]) == ("Bash", "echo from the hook")
    assert after["tool_response"]["llmContent"]["stdout"] == "from the hook"
    assert "from the hook" in results_in(api_server)
    assert before["transcript_path"].endswith(".jsonl")


async def test_names_of_our_own_agent(project: Project, api_server: APIServer) -> None:
    """Hooks for LLxprt Code see its tool names and argument names, and change arguments by these names."""
    project.write("here/a.txt", "needle")
    project.write("there/b.txt", "needle")
    says = {"hookSpecificOutput": {"tool_input": {"dir_path": str(project.root / "there")}}}
    group = {"matcher": "^glob$", "hooks": [{"type": "command", "command": project.hook(says=says)}]}
    chosen = config(project, BeforeTool=group, AfterTool=project.hook("after"))
    api_server.will_say([Call("Glob", {"pattern": "*.txt", "path": str(project.root / "here")})])
    await ask(with_hooks(options_for(project, api_server, "Glob"), chosen, tool_names="llxprt"))
    (before,), (after,) = project.payloads(), project.payloads("after")
    assert (before["tool_name"], after["tool_name"]) == ("glob", "glob")
    assert before["tool_input"] == {"pattern": "*.txt", "dir_path": str(project.root / "here")}
    assert after["tool_input"] == {"pattern": "*.txt", "dir_path": str(project.root / "there")}
    assert "b.txt" in results_in(api_server)
    assert "a.txt" not in results_in(api_server)


async def test_restrictions_have_the_names_of_our_own_agent(project: Project, api_server: APIServer) -> None:
    """Of two tools with one name, the one that exists is allowed; calls are compared by the same names."""
    allowed = {"mode": "AUTO", "allowedFunctionNames": ["replace", "run_shell_command"]}
    hook = project.hook(says=[{"hookSpecificOutput": {"toolConfig": allowed}}, None])
    chosen = config(project, BeforeToolSelection=hook)
    api_server.will_say([Call("Write", {"file_path": "x", "content": "y"}), Call("Bash", {"command": "echo ran"})])
    async with hooked(options_for(project, api_server, "Bash", "Edit", "Write"), chosen, "llxprt") as options:
        await ask(options)
    assert {tool["name"] for tool in api_server.requests[0]["tools"]} == {"Bash", "Edit"}
    assert "write_file may not be called now" in results_in(api_server)
    assert "ran" in results_in(api_server)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"pattern": "*", "path": "a", "dir_path": "b"}, None),
        ({"pattern": "*", "path": "a"}, {"hookSpecificOutput": {"tool_input": {"path": "b"}}}),
    ],
)
async def test_a_call_in_which_two_names_become_one_is_refused(project: Project, arguments: Any, says: Any) -> None:
    """The SDK's program refuses arguments that it does not know. Others that use its protocol may not."""
    chosen = config(project, BeforeTool=project.hook(says=says))
    added = with_hooks(ClaudeAgentOptions(cwd=project.root), chosen, tool_names="llxprt")
    given = {"session_id": "s", "tool_name": "Glob", "tool_use_id": "t", "tool_input": arguments}
    answer = await callback_of(added, "PreToolUse")({**given, "hook_event_name": "PreToolUse"}, "t", None)
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert "`path`" in answer["hookSpecificOutput"]["permissionDecisionReason"]
    assert "`dir_path`" in answer["hookSpecificOutput"]["permissionDecisionReason"]


def callback_of(options: ClaudeAgentOptions, event: Any) -> Any:
    assert options.hooks is not None
    return options.hooks[event][0].hooks[0]


async def test_calls_with_the_same_id_keep_their_own_results(project: Project) -> None:
    """Some gateways count the calls of each answer, so an agent and the one that it has started share ids."""
    chosen = config(project, BeforeTool=project.hook(), AfterTool=project.hook("after"))
    added = with_hooks(ClaudeAgentOptions(cwd=project.root), chosen)
    before, after = callback_of(added, "PreToolUse"), callback_of(added, "PostToolUse")
    task = {"session_id": "s", "tool_name": "Task", "tool_use_id": "call_0", "tool_input": {"prompt": "look"}}
    calls = [
        task,
        *({**task, "agent_id": agent, "tool_name": "Read", "tool_input": {"file_path": agent}} for agent in "ab"),
    ]
    for call in calls:
        await before({**call, "hook_event_name": "PreToolUse"}, "call_0", None)
    for call in reversed(calls):
        await after({**call, "hook_event_name": "PostToolUse", "tool_response": call["tool_input"]}, "call_0", None)
    shown = [(each["tool_name"], each["tool_response"]["llmContent"]) for each in project.payloads("after")]
    assert shown == [(call["tool_name"], call["tool_input"]) for call in reversed(calls)]


async def test_hooks_see_a_tool_that_ran_and_failed(project: Project, api_server: APIServer) -> None:
    chosen = config(
        project,
        BeforeTool=project.hook(says={"systemMessage": "mind the gap"}),
        AfterTool=project.hook("after", says={"hookSpecificOutput": {"additionalContext": "clean up"}}),
    )
    api_server.will_say([Call("Bash", {"command": "touch ran; echo oops >&2; exit 3"})])
    await ask(with_hooks(options_for(project, api_server, "Bash"), chosen))
    assert (project.root / "ran").exists()
    assert "[System] mind the gap" in results_in(api_server)
    assert "clean up" in results_in(api_server)
    (after,) = project.payloads("after")
    assert after["tool_input"]["command"].startswith("touch ran")
    assert "oops" in after["tool_response"]["error"]["message"]


async def test_a_stop_after_a_tool_that_failed_ends_the_turn(project: Project, api_server: APIServer) -> None:
    chosen = config(project, AfterTool=project.hook(says={"continue": False, "stopReason": "enough"}))
    api_server.will_say([Call("Bash", {"command": "exit 3"})], [Call("Bash", {"command": "touch two"})])
    options = with_hooks(options_for(project, api_server, "Bash"), chosen)
    await ask(options)
    assert options.stop_reason() == "enough"
    assert not (project.root / "two").exists()


async def test_a_call_that_another_callback_denies_fires_no_after_tool(project: Project, api_server: APIServer) -> None:
    async def refuse(given: Any, tool_use_id: str | None, context: Any) -> Any:
        decision = {"permissionDecision": "deny", "permissionDecisionReason": "not mine"}
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}

    chosen = config(project, BeforeTool=project.hook(), AfterTool=project.hook("after"))
    given = options_for(project, api_server, "Bash", hooks={"PreToolUse": [HookMatcher(hooks=[refuse])]})
    api_server.will_say([Call("Bash", {"command": "touch ran"})])
    await ask(with_hooks(given, chosen))
    assert not (project.root / "ran").exists()
    assert (len(project.payloads()), project.payloads("after")) == (1, [])


@pytest.mark.parametrize("answer", [PermissionResultAllow(), PermissionResultDeny(message="the user said no")])
async def test_changed_arguments_still_need_permission(
    project: Project, api_server: APIServer, answer: PermissionResultAllow | PermissionResultDeny
) -> None:
    asked: list[Any] = []

    async def decide(name: str, arguments: dict[str, Any], context: Any) -> Any:
        asked.append(arguments["command"])
        return answer

    says = {"hookSpecificOutput": {"tool_input": {"command": "touch changed"}}}
    chosen = config(
        project,
        BeforeTool=project.hook(says=says),
        AfterTool=project.hook("after"),
        Notification=project.hook("notified"),
    )
    api_server.will_say([Call("Bash", {"command": "touch original"})])
    given = options_for(project, api_server, "Bash", allowed_tools=[], can_use_tool=decide)
    async with ClaudeSDKClient(with_hooks(given, chosen)) as client:
        await client.query("go")
        async for _ in client.receive_response():
            pass
    assert asked == ["touch changed"]
    assert (project.root / "changed").exists() is isinstance(answer, PermissionResultAllow)
    assert len(project.payloads("after")) == int(isinstance(answer, PermissionResultAllow))
    await eventually(lambda: len(project.payloads("notified")) == 1)
    (payload,) = project.payloads("notified")
    assert (payload["notification_type"], payload["message"]) == ("ToolPermission", "Bash needs approval")
    assert payload["details"] == {"tool_name": "Bash", "tool_input": {"command": "touch changed"}}


async def test_a_stop_lasts_until_the_next_prompt(project: Project, api_server: APIServer) -> None:
    chosen = config(project, BeforeTool=project.hook(says=[{"continue": False, "stopReason": "enough"}, None]))
    api_server.will_say([Call("Bash", {"command": "touch one"})], [Call("Bash", {"command": "touch two"})], "done")
    async with (
        hooked(options_for(project, api_server, "Bash"), chosen) as options,
        ClaudeSDKClient(options) as client,
    ):
        await client.query("go")
        messages = [message async for message in client.receive_response()]
        assert options.stop_reason() == "enough"
        result = messages[-1]
        assert isinstance(result, ResultMessage)
        assert options.stop_reason(result.session_id) == "enough"
        await client.query("go on")
        assert [message async for message in client.receive_response()]
        assert options.stop_reason() is None
    assert not (project.root / "one").exists()
    assert (project.root / "two").exists()


async def test_a_slow_hook_is_waited_for_and_a_lost_answer_blocks(project: Project) -> None:
    added = with_hooks(ClaudeAgentOptions(cwd=project.root), config(project, BeforeTool=project.hook()))
    assert added.hooks is not None
    (matcher,) = added.hooks["PreToolUse"]
    assert matcher.timeout is not None
    assert matcher.timeout > 3600
    assert matcher.on_failure == "block"


# Options.


async def test_callbacks_of_the_program_stay(project: Project, api_server: APIServer) -> None:
    seen: list[str] = []

    async def callback(given: Any, tool_use_id: str | None, context: Any) -> Any:
        seen.append(given["tool_name"])
        return {}

    own = HookMatcher(matcher="Bash", hooks=[callback])
    given = options_for(project, api_server, "Bash", hooks={"PreToolUse": [own]})
    added = with_hooks(given, config(project, BeforeTool=project.hook()))
    assert isinstance(added, HookedOptions)
    assert given.hooks == {"PreToolUse": [own]}
    api_server.will_say([Call("Bash", {"command": "true"})])
    await ask(added)
    assert seen == ["Bash"]
    assert len(project.payloads()) == 1


def test_without_hooks_nothing_is_added(project: Project) -> None:
    assert with_hooks(ClaudeAgentOptions(cwd=project.root)).hooks is None
    assert with_hooks(config=Config()).hooks is None
    with pytest.raises(ValueError, match="'claude' or 'llxprt'"):
        with_hooks(tool_names="gemini")  # type: ignore[arg-type]


def test_events_that_need_the_proxy_are_reported(project: Project, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with_hooks(ClaudeAgentOptions(), config(project, BeforeModel=project.hook(), SessionEnd=project.hook()))
    assert "hooks for BeforeModel are configured but will not run: the SDK's hooks do not see the model" in caplog.text
    assert "hooks for SessionEnd are configured but will not run" in caplog.text
    assert caplog.text.count("use `hooked()`") == 2


# The model.


@pytest.mark.parametrize("place", ["home", "root"])
async def test_no_settings_file_leads_past_the_proxy(project: Project, api_server: APIServer, place: str) -> None:
    """The SDK's program prefers the environment in its settings files."""
    chosen = config(project, BeforeModel=project.hook(says={"decision": "block", "reason": "not today"}))
    settings = {"env": {"ANTHROPIC_BASE_URL": api_server.url}}
    project.write(getattr(project, place) / ".claude" / "settings.json", settings)
    async with hooked(options_for(project, api_server, setting_sources=None), chosen) as options:
        messages = await ask(options)
    assert api_server.requests == []
    assert isinstance(messages[-1], ResultMessage)
    assert messages[-1].result == "not today"


@pytest.mark.parametrize("as_file", [False, True])
async def test_settings_of_the_options_stay(project: Project, api_server: APIServer, as_file: bool) -> None:
    settings = json.dumps({"env": {"A": "1", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}, "cleanupPeriodDays": 7})
    project.write("more.json", settings)
    given = options_for(project, api_server, settings="more.json" if as_file else settings)
    async with hooked(given, config(project, BeforeModel=project.hook())) as options:
        assert options.settings is not None
        merged = json.loads(options.settings)
        url = options.env["ANTHROPIC_BASE_URL"]
        assert merged == {"env": {"A": "1", "ANTHROPIC_BASE_URL": url}, "cleanupPeriodDays": 7}
        await ask(options)
    assert given.env["ANTHROPIC_BASE_URL"] == api_server.url
    assert len(api_server.requests) == len(project.payloads()) == 1


async def test_sessions_start_once_and_end_with_the_block(project: Project, api_server: APIServer) -> None:
    chosen = config(project, SessionStart=project.hook("start"), SessionEnd=project.hook("end"))
    async with (
        hooked(options_for(project, api_server), chosen) as options,
        ClaudeSDKClient(options) as client,
    ):
        for prompt in ("one", "two"):
            await client.query(prompt)
            assert [message async for message in client.receive_response()]
        assert project.payloads("end") == []
    (started,), (ended,) = project.payloads("start"), project.payloads("end")
    assert started["session_id"] == ended["session_id"]


@pytest.mark.parametrize("variable", ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"])
async def test_models_of_other_providers_are_refused(project: Project, variable: str) -> None:
    with pytest.raises(RuntimeError, match=variable):
        async with hooked(ClaudeAgentOptions(env={variable: "1"}), Config()):
            pass
    async with hooked(ClaudeAgentOptions(env={variable: "0"}), Config()):
        pass


def test_under_trio_only_the_tools_have_hooks(project: Project, api_server: APIServer) -> None:
    chosen = config(project, BeforeTool=project.hook(says={"decision": "deny", "reason": "not here"}))
    api_server.will_say([Call("Bash", {"command": "touch ran"})])
    options = options_for(project, api_server, "Bash")

    async def main() -> None:
        with pytest.raises(RuntimeError, match="needs asyncio"):
            async with hooked(options, chosen):
                pass
        async for _ in query(prompt="go", options=with_hooks(options, chosen)):
            pass

    trio.run(main)
    assert "not here" in results_in(api_server)
    assert not Path(project.root, "ran").exists()
