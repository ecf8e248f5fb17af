"""``failClosed`` and hooks that end well without a clear answer: that is a failure, and it blocks (D-27)."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import (
    BeforeModelHookResult,
    Config,
    HookEventName,
    ToolResult,
    execute_tool_with_hooks,
    fire_before_model_hook,
)
from llxprt_hooks.core.engine.hints import hints_on
from llxprt_hooks.core.engine.planner import HookPlanner
from tests.support.replies import run_tool

if TYPE_CHECKING:
    from pathlib import Path

UNCLEAR: dict[str, bytes] = {
    "text": b"looks fine to me",
    "text before the JSON": b'checking...\n{"decision": "deny"}',
    "two JSON lines": b'{"decision": "deny"}\n{"systemMessage": "done"}',
    "NaN": b'{"decision": "deny", "score": NaN}',
    "cut JSON": b'{"decision": "deny", "reason": "no',
    "UTF-16": '{"decision": "deny"}'.encode("utf-16"),
    "Python dict": b"{'decision': 'deny'}",
    "JSON array": b'[{"decision": "deny"}]',
    "JSON string that does not contain JSON": b'"deny"',
    "JSON string with an array": b'"[]"',
    "null": b"null",
    "upper case": b'{"decision": "Deny"}',
    "another word": b'{"decision": "reject"}',
    "empty word": b'{"decision": ""}',
    "decision of a wrong type": b'{"decision": ["deny"]}',
    "decision encoded twice": b'"{\\"decision\\": \\"Deny\\"}"',
    "continue as text": b'{"continue": "false"}',
    "continue as number": b'{"continue": 0}',
    "permission with an unknown word": b'{"hookSpecificOutput": {"permissionDecision": "Deny"}}',
    "permission of a wrong type": b'{"hookSpecificOutput": {"permissionDecision": false}}',
    "permission at the top level": b'{"permissionDecision": "deny"}',
    "misspelled decision": b'{"descision": "deny"}',
    "decision in capitals": b'{"Decision": "deny"}',
    "misspelled decision beside others": b'{"reason": "no", "id": 7, "decison": "deny"}',
    "misspelled continue": b'{"contine": false}',
    "misspelled specific output": b'{"hook_specific_output": {"permissionDecision": "deny"}}',
    "misspelled permission": b'{"permission_decision": "deny"}',
    "specific output of a wrong type": b'{"hookSpecificOutput": "deny"}',
    "unknown field": b'{"verdict": "fine"}',
    "all fields unknown": b'{"block": true, "deny": "yes"}',
    "field of another place": b'{"additionalContext": "fine"}',
    "misspelled field that decides nothing": b'{"reson": "fine"}',
    "decision in the specific output": b'{"hookSpecificOutput": {"decision": "deny"}}',
    "stop in the specific output": b'{"decision": "allow", "hookSpecificOutput": {"continue": false}}',
    "misspelled permission in the specific output": b'{"hookSpecificOutput": {"permisionDecision": "deny"}}',
    "misspelled decision in the specific output": b'{"hookSpecificOutput": {"descision": "deny"}}',
    "decision twice": b'{"decision": "deny", "decision": "allow"}',
    "decision twice, encoded twice": b'"{\\"decision\\": \\"deny\\", \\"decision\\": \\"allow\\"}"',
    "permission twice": b'{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecision": "allow"}}',
    "arguments of a wrong type": b'{"decision": "allow", "hookSpecificOutput": {"tool_input": "rm"}}',
    "arguments in camel case": b'{"hookSpecificOutput": {"toolInput": {"a": 1}}}',
    "arguments under Claude's name": b'{"hookSpecificOutput": {"updatedInput": {"a": 1}}}',
    "arguments at the top level": b'{"decision": "allow", "tool_input": {"a": 1}}',
    "misspelled beside a wrong value": b'{"decision": "Deny", "decisions": ["x"]}',
}
CLEAR: dict[str, bytes] = {
    "arguments under both names": b'{"hookSpecificOutput": {"tool_input": {"a": 1}, "updatedInput": {"a": 1}}}',
    "the same name in two objects": b'{"decision": "allow", "hookSpecificOutput": {"x": [{"a": 1}, {"a": 2}]}}',
    "nothing": b"",
    "white space": b" \n\t",
    "empty object": b"{}",
    "allow": b'{"decision": "allow"}',
    "ask": b'{"decision": "ask"}',
    "null decision": b'{"decision": null, "continue": null}',
    "encoded twice": b'"{\\"decision\\": \\"allow\\"}"',
    "byte order mark": b'\xef\xbb\xbf{"decision": "approve"}',
    "wrong type elsewhere": b'{"decision": "allow", "reason": 7}',
    "unknown field beside a known one": b'{"result": "deny", "reason": "no"}',
    "unknown field beside null": b'{"decision": null, "score": 7}',
    "unknown field in the specific output": b'{"hookSpecificOutput": {"hookEventName": "BeforeTool", "block": true}}',
    "misspelled, but null": b'{"descision": null}',
    "like a decision, but another word": b'{"decision": "allow", "precision": 1, "revision": 2, "permissionMode": "x"}',
    "misspelled field that decides nothing": b'{"decision": "allow", "reson": "fine", "permissionDecisionReason": "x"}',
    "misspelled beside the right field": b'{"decision": "allow", "decisions": ["x"], "Continue": 1, "continue": true}',
    "misplaced beside the right field": b'{"decision": "allow", "hookSpecificOutput": {"decision": "deny"}}',
    "permission in both places": b"""
        {"permissionDecision": "allow", "permission_decision": 1,
         "hookSpecificOutput": {"permissionDecision": "allow", "permissionDecisions": []}}""",
    "misplaced, but null": b'{"permissionDecision": null, "hookSpecificOutput": {"decision": null}}',
}


def configured(folder: Path, stdout: bytes, event: str = "BeforeTool", **hook: Any) -> Config:
    answer = folder / "answer"
    answer.write_bytes(stdout)
    entry = {
        "type": "command",
        "command": f"cat {shlex.quote(str(answer))}",
        "name": "guard",
        **hook,
    }
    return Config(enable_hooks=True, working_dir=folder, hooks={event: [{"hooks": [entry]}]})


@pytest.mark.parametrize("stdout", UNCLEAR.values(), ids=UNCLEAR)
async def test_an_unclear_answer_of_a_fail_closed_hook_blocks(tmp_path: Path, stdout: bytes) -> None:
    result = await run_tool(configured(tmp_path, stdout, failClosed=True))

    assert result.error is not None
    assert result.error["type"] == "hook_blocked"
    assert result.llm_content.startswith("blocked because failClosed is set: hook `guard` ")


@pytest.mark.requirement("HOOK-110", "HOOK-212", "HOOK-114")
@pytest.mark.parametrize("stdout", UNCLEAR.values(), ids=UNCLEAR)
async def test_without_fail_closed_an_unclear_answer_allows(tmp_path: Path, stdout: bytes) -> None:
    assert (await run_tool(configured(tmp_path, stdout))).error is None


@pytest.mark.requirement("HOOK-065", "HOOK-193")
@pytest.mark.parametrize("stdout", CLEAR.values(), ids=CLEAR)
async def test_a_clear_answer_of_a_fail_closed_hook_counts(tmp_path: Path, stdout: bytes) -> None:
    result = await run_tool(configured(tmp_path, stdout, failClosed=True))

    assert result.error is None
    assert result.llm_content.startswith("RAN")


REDACTED = {"role": "user", "content": "***"}
UNUSABLE: dict[str, Any] = {
    "messages of a wrong type": {"llm_request": {"messages": 5}},
    "a message under another name": {"llm_request": {"messages": [{"role": "user", "text": "***"}]}},
    "one malformed message of two": {"llm_request": {"messages": [REDACTED, {"role": "user", "content": 5}]}},
    "a text in place of a message": {"llm_request": {"messages": [REDACTED, "***"]}},
    "another name for messages": {"llm_request": {"contents": [REDACTED]}},
    "a request of a wrong type": {"llm_request": [REDACTED]},
    "a request in camel case": {"llmRequest": {"messages": [REDACTED]}},
    "a misspelled request": {"llm_requst": {"messages": [REDACTED]}},
    "a setting that the API does not have": {"llm_request": {"messages": [REDACTED], "config": {"topK": 3}}},
    "a setting of a wrong type": {"llm_request": {"config": {"temperature": "low"}}},
    "an unknown setting": {"llm_request": {"config": {"heat": 1}}},
}


@pytest.mark.parametrize("specific", UNUSABLE.values(), ids=UNUSABLE)
@pytest.mark.parametrize("closed", [True, False])
async def test_a_change_that_cannot_be_applied_is_a_failure_of_a_fail_closed_hook(
    tmp_path: Path, specific: dict[str, Any], closed: bool
) -> None:
    request = {"model": "m", "messages": [{"role": "user", "content": "a secret"}]}
    stdout = json.dumps({"decision": "allow", "hookSpecificOutput": specific}).encode()
    config = configured(tmp_path, stdout, "BeforeModel", failClosed=closed)

    result: BeforeModelHookResult[Any] = await fire_before_model_hook(config, request, translator="openai-chat")

    assert result.blocked is closed
    assert not closed or "is ignored" in str(result.reason) or "is not read" in str(result.reason)


async def test_a_change_that_can_be_applied_is(tmp_path: Path) -> None:
    request = {"model": "m", "messages": [{"role": "user", "content": "a secret"}]}
    specific = {"llm_request": {"messages": [REDACTED], "config": {"temperature": 0}}}
    stdout = json.dumps({"hookSpecificOutput": specific}).encode()
    config = configured(tmp_path, stdout, "BeforeModel", failClosed=True)

    result: BeforeModelHookResult[Any] = await fire_before_model_hook(config, request, translator="openai-chat")

    assert not result.blocked
    assert result.modified_request is not None
    assert result.modified_request["messages"] == [REDACTED]


@pytest.mark.requirement("HOOK-178")
async def test_where_nothing_can_be_blocked_an_unclear_answer_stays_a_message(tmp_path: Path) -> None:
    result = await run_tool(configured(tmp_path, b"3 files changed", "AfterTool", failClosed=True))

    assert result.llm_content == "RAN\n\n[System] 3 files changed"


async def test_a_stop_next_to_an_unclear_decision_is_kept(tmp_path: Path) -> None:
    answer = json.dumps({"decision": "Deny", "continue": False, "stopReason": "the budget is spent"}).encode()

    result = await run_tool(configured(tmp_path, answer, failClosed=True))

    assert result.error is not None
    assert result.stop_reason == "the budget is spent"


@pytest.mark.parametrize(
    ("stdout", "error", "hints"),
    [
        (b'{"decision": "Deny"}', "found 'Deny'", []),
        (b'{"descision": "deny"}', "`descision` is not read: did you mean `decision`?", []),
        (
            b'so: {"decision": "deny"}',
            "something other than one JSON object",
            ["guard: it printed other text around its JSON, so it is not an answer: print only JSON"],
        ),
    ],
)
async def test_the_result_says_once_what_was_unclear_and_how_to_fix_it(
    tmp_path: Path, stdout: bytes, error: str, hints: list[str]
) -> None:
    system = configured(tmp_path, stdout, failClosed=True).get_hook_system()
    assert system is not None
    await system.initialize()

    [result] = (await system.get_event_handler().fire_before_tool_event("rm", {})).results

    assert not result.success
    assert error in str(result.error)
    assert hints_on(result) == hints


ENCODES = 'import json, sys; sys.stdout.buffer.write(json.load(sys.stdin)["tool_input"]["command"].encode())'


async def test_a_guard_that_crashes_over_a_lone_surrogate_blocks(tmp_path: Path) -> None:
    hook = {
        "type": "command",
        "command": f"{shlex.quote(sys.executable)} -c {shlex.quote(ENCODES)}",
        "failClosed": True,
    }
    config = Config(enable_hooks=True, working_dir=tmp_path, hooks={"BeforeTool": [{"hooks": [hook]}]})

    result = await execute_tool_with_hooks(config, "sh", {"command": "rm \udc80"}, lambda _: ToolResult("RAN"))

    assert "exited with code 1" in result.llm_content


@pytest.mark.requirement("HOOK-090", "HOOK-091")
@pytest.mark.parametrize("order", [1, -1])
async def test_a_copy_of_a_guard_takes_neither_fail_closed_nor_time_from_it(tmp_path: Path, order: int) -> None:
    guard: dict[str, Any] = {"type": "command", "command": "sleep 0.2; exit 1"}
    copies = [{**guard, "failClosed": True}, {**guard, "timeout": 1}, {**guard, "timeout": 90_000}]
    groups = [{"hooks": [copy]} for copy in copies[::order]]
    config = Config(enable_hooks=True, working_dir=tmp_path, hooks={"BeforeTool": groups})

    result = await run_tool(config)

    assert "failClosed is set: hook `sleep 0.2; exit 1` exited with code 1" in result.llm_content
    system = config.get_hook_system()
    assert system is not None
    [ran] = (await system.get_event_handler().fire_before_tool_event("rm", {})).results
    assert ran.hook_config.timeout == 90_000


INVALID = ["(run_shell", "(?P<x>run)", "(?i)RUN", "["]


@pytest.mark.parametrize("matcher", INVALID)
async def test_an_invalid_matcher_of_a_group_that_fails_closed_matches_everything(tmp_path: Path, matcher: str) -> None:
    hooks = [{"type": "command", "command": "true"}, {"type": "command", "command": "exit 2", "failClosed": True}]
    group = {"matcher": matcher, "hooks": hooks}
    config = Config(enable_hooks=True, working_dir=tmp_path, hooks={"BeforeTool": [group]})

    result = await run_tool(config)

    assert result.error is not None
    system = config.get_hook_system()
    assert system is not None
    [problem] = system.get_registry().problems
    assert str(problem).startswith(f"hooks.BeforeTool[0]: `matcher` {matcher!r} is not a valid regular expression; ")
    handler = system.get_event_handler()
    assert len((await handler.fire_before_tool_event("anything", {})).results) == 2
    explained = HookPlanner(system.get_registry()).explain(HookEventName.BEFORE_TOOL, "rm")
    why = f"its matcher {matcher!r} is not valid, so its failClosed group matches everything"
    assert [hook.why for hook in explained] == [why, why]


@pytest.mark.requirement("HOOK-088")
@pytest.mark.parametrize("matcher", INVALID)
async def test_another_invalid_matcher_is_a_name(tmp_path: Path, matcher: str) -> None:
    group = {"matcher": matcher, "hooks": [{"type": "command", "command": "exit 2"}]}
    config = Config(enable_hooks=True, working_dir=tmp_path, hooks={"BeforeTool": [group]})

    assert (await run_tool(config)).llm_content == "RAN"
    named = await execute_tool_with_hooks(config, matcher, {}, lambda _: ToolResult("RAN"))
    assert named.error is not None


@pytest.mark.parametrize(
    ("hooks", "warning"),
    [
        ({"BeforeTool": [{"hooks": [{"type": "command", "command": "true", "failClosed": "true"}]}]}, "`failClosed`"),
        ({"BeforeTol": [{"hooks": [{"type": "command", "command": "true", "failClosed": True}]}]}, "`BeforeTool`?"),
        ({"BeforeTool": [{"hooks": [{"command": "true", "failClosed": True}]}]}, "`type` must be"),
    ],
)
async def test_settings_that_do_not_make_a_guard_are_logged_when_they_are_loaded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, hooks: dict[str, Any], warning: str
) -> None:
    system = Config(enable_hooks=True, working_dir=tmp_path, hooks=hooks).get_hook_system()
    assert system is not None

    await system.initialize()

    assert any(warning in record.getMessage() for record in caplog.records if record.levelname == "WARNING")
