"""What the exit code and the streams of a Claude Code hook mean, as recorded of Claude Code 2.1.285."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks.core.calls.lookup import plan_for
from llxprt_hooks.events import HookEventName

if TYPE_CHECKING:
    from llxprt_hooks import Hooks
    from llxprt_hooks.core.engine.results import AggregatedHookResult
    from tests.dialects.conftest import MakeHooks


def _prints(stdout: str, stderr: str, code: int) -> str:
    return f"printf %s {shlex.quote(stdout)}; printf %s {shlex.quote(stderr)} >&2; exit {code}"


def _specific(event: str, **fields: Any) -> str:
    return json.dumps({"hookSpecificOutput": {"hookEventName": event, **fields}})


DENY = _specific("PreToolUse", permissionDecision="deny", permissionDecisionReason="from JSON")
ALLOW = _specific("PreToolUse", permissionDecision="allow")
BLOCK = json.dumps({"decision": "block", "reason": "from JSON"})

_INPUTS: dict[HookEventName, dict[str, Any]] = {
    HookEventName.BEFORE_TOOL: {"tool_name": "run_shell_command", "tool_input": {"command": "ls"}},
    HookEventName.AFTER_TOOL: {
        "tool_name": "run_shell_command",
        "tool_input": {"command": "ls"},
        "tool_response": {"llmContent": "a.txt", "returnDisplay": "", "metadata": {}},
    },
    HookEventName.BEFORE_AGENT: {"prompt": "hello"},
    HookEventName.AFTER_AGENT: {"prompt": "hello", "prompt_response": "hi", "stop_hook_active": False},
    HookEventName.SESSION_START: {"source": "startup"},
    HookEventName.SESSION_END: {"reason": "exit"},
    HookEventName.PRE_COMPRESS: {"trigger": "auto"},
    HookEventName.NOTIFICATION: {"notification_type": "ToolPermission", "message": "m", "details": {}},
}


async def _fire(hooks: Hooks, event_name: HookEventName) -> AggregatedHookResult:
    fields = _INPUTS[event_name]
    matched = event_name.spec.matched_field
    plan = plan_for(hooks.config, event_name, fields[matched] if matched else None)
    assert plan is not None
    return await plan.fire(fields)


@pytest.mark.parametrize(
    ("stdout", "stderr", "code", "reason", "fails"),
    [
        ("", "ignored", 0, None, False),
        (DENY, "", 1, "from JSON", False),
        ("{not json at all}", "", 0, None, True),
        ('{"decision": 42}', "problem", 1, None, True),
        ('{"unclosed": 1', "", 0, None, False),
        ('[1, 2]\n"just a string"', "", 0, None, False),
        ('{"decision": 42}', "", 0, None, True),
        ('{"x": 1}\n{"y": 2}', "", 0, None, False),
        (DENY, "from stderr", 2, "from JSON", False),
        (ALLOW, "from stderr", 2, "from stderr", False),
        ('{"decision": 42}', "from stderr", 2, "from stderr", False),
        ("", "from stderr", 2, "from stderr", False),
        ("", "", 2, "No stderr output", False),
        ("", "problem", 1, None, True),
        ("", "problem", 127, None, True),
        (BLOCK, "", 0, "from JSON", False),
        (json.dumps({"decision": "block"}), "", 0, "Blocked by hook", False),
        (json.dumps({"decision": "deny", "reason": "no such word"}), "", 0, None, True),
        (json.dumps({"tool_name": "Bash", "tool_input": {"command": "ls"}}), "", 0, None, False),
        (json.dumps({"hookSpecificOutput": {"permissionDecision": "deny"}}), "", 0, None, True),
        (_specific("PostToolUse", permissionDecision="deny"), "", 0, None, True),
        ("just text", "", 0, None, False),
    ],
)
async def test_a_call_is_refused_exactly_where_claude_code_refuses_it(
    claude: MakeHooks, stdout: str, stderr: str, code: int, reason: str | None, fails: bool
) -> None:
    command = _prints(stdout, stderr, code)

    result = await _fire(claude("PreToolUse", command), HookEventName.BEFORE_TOOL)

    output = result.final_output
    assert result.is_blocked(HookEventName.BEFORE_TOOL) is (reason is not None)
    if reason is not None:
        assert output is not None
        by_command = f"[{command}]: " if "JSON" not in reason and reason != "Blocked by hook" else ""
        assert output.get_effective_reason() == f"PreToolUse:Bash hook error: {by_command}{reason}"
    assert bool(result.errors) is fails
    assert output is None or output.system_message is None


@pytest.mark.parametrize(
    ("event", "event_name", "stdout", "stderr", "code", "blocked"),
    [
        ("PostToolUse", HookEventName.AFTER_TOOL, "", "stop", 2, False),
        ("PostToolUse", HookEventName.AFTER_TOOL, BLOCK, "", 0, False),
        ("UserPromptSubmit", HookEventName.BEFORE_AGENT, "", "stop", 2, True),
        ("UserPromptSubmit", HookEventName.BEFORE_AGENT, BLOCK, "", 0, True),
        ("UserPromptSubmit", HookEventName.BEFORE_AGENT, BLOCK, "", 1, True),
        ("UserPromptSubmit", HookEventName.BEFORE_AGENT, "", "stop", 1, False),
        ("Stop", HookEventName.AFTER_AGENT, "", "stop", 2, True),
        ("Stop", HookEventName.AFTER_AGENT, BLOCK, "", 0, True),
        ("Stop", HookEventName.AFTER_AGENT, _specific("Stop", additionalContext="more"), "", 0, True),
        ("Stop", HookEventName.AFTER_AGENT, "", "stop", 1, False),
        ("PreCompact", HookEventName.PRE_COMPRESS, "", "stop", 2, True),
        ("PreCompact", HookEventName.PRE_COMPRESS, BLOCK, "", 0, True),
        ("SessionStart", HookEventName.SESSION_START, "", "stop", 2, False),
        ("SessionStart", HookEventName.SESSION_START, BLOCK, "", 0, False),
        ("SessionEnd", HookEventName.SESSION_END, "", "stop", 2, False),
        ("Notification", HookEventName.NOTIFICATION, "", "stop", 2, False),
    ],
)
async def test_each_event_is_blocked_only_where_claude_code_blocks_it(
    claude: MakeHooks, event: str, event_name: HookEventName, stdout: str, stderr: str, code: int, blocked: bool
) -> None:
    result = await _fire(claude(event, _prints(stdout, stderr, code)), event_name)

    assert result.is_blocked(event_name) is blocked


@pytest.mark.parametrize(
    ("event", "event_name", "is_context"),
    [
        ("UserPromptSubmit", HookEventName.BEFORE_AGENT, True),
        ("SessionStart", HookEventName.SESSION_START, True),
        ("PreToolUse", HookEventName.BEFORE_TOOL, False),
        ("PostToolUse", HookEventName.AFTER_TOOL, False),
        ("Stop", HookEventName.AFTER_AGENT, False),
        ("Notification", HookEventName.NOTIFICATION, False),
    ],
)
async def test_plain_text_is_for_the_model_at_two_events_only(
    claude: MakeHooks, event: str, event_name: HookEventName, is_context: bool
) -> None:
    result = await _fire(claude(event, "echo some text"), event_name)

    output = result.final_output
    assert (output is not None and output.get_additional_context() == "some text") is is_context
    assert is_context or output is None


async def test_a_message_for_the_user_does_not_reach_the_model(claude: MakeHooks) -> None:
    answer = json.dumps({"systemMessage": "for the user", "suppressOutput": True})
    hooks = claude("PreToolUse", _prints(answer, "", 0))

    result = await _fire(hooks, HookEventName.BEFORE_TOOL)
    called = await hooks.run_tool("write_file", {"file_path": "a"}, lambda _: "written")

    assert result.final_output is not None
    assert result.final_output.user_message == "for the user"
    assert called.llm_content == "written"
    assert not called.suppress_display


async def test_an_answer_to_stop_ends_the_work_of_the_agent(claude: MakeHooks) -> None:
    answer = json.dumps({"continue": False, "stopReason": "enough"})

    result = await _fire(claude("PostToolUse", _prints(answer, "", 0)), HookEventName.AFTER_TOOL)

    assert result.final_output is not None
    assert result.final_output.get_stop_reason() == "enough"


async def test_allow_is_a_permission_and_silence_says_nothing(claude: MakeHooks) -> None:
    allowed = await _fire(claude("PreToolUse", _prints(ALLOW, "", 0)), HookEventName.BEFORE_TOOL)
    silent = await _fire(claude("PreToolUse", "true"), HookEventName.BEFORE_TOOL)

    assert allowed.final_output is not None
    assert allowed.final_output.permission_decision == "allow"
    assert silent.final_output is None


async def test_the_model_gets_the_beginning_of_a_very_long_text(claude: MakeHooks) -> None:
    result = await _fire(claude("UserPromptSubmit", "head -c 20000 /dev/zero | tr '\\0' x"), HookEventName.BEFORE_AGENT)

    assert result.final_output is not None
    context = result.final_output.get_additional_context()
    assert context is not None
    assert context.startswith("x" * 2000)
    assert len(context) < 2200


async def test_a_hook_that_takes_too_long_blocks_nothing(claude: MakeHooks) -> None:
    result = await _fire(claude("PreToolUse", "sleep 5; exit 2", timeout=0.05), HookEventName.BEFORE_TOOL)

    assert not result.is_blocked(HookEventName.BEFORE_TOOL)
    assert "timed out" in str(result.errors[0])


async def test_a_failure_blocks_if_the_hook_says_so(claude: MakeHooks) -> None:
    result = await _fire(claude("PreToolUse", "exit 1", onFailure="block"), HookEventName.BEFORE_TOOL)

    assert result.is_blocked(HookEventName.BEFORE_TOOL)
