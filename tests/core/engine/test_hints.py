"""Advice on classic mistakes, where they are made and nowhere else."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from llxprt_hooks import HookEventName
from llxprt_hooks.core.engine.hints import hints_on
from llxprt_hooks.core.engine.runner import HookRunner
from llxprt_hooks.core.executors.command import CommandSpec
from llxprt_hooks.settings.definitions import HookConfig
from tests.support.replies import printing as says

E = HookEventName
TOOL_INPUT = {"cwd": "/", "tool_name": "t", "tool_input": {}}


async def advice(command: str, event: HookEventName = E.BEFORE_TOOL, **config: Any) -> list[str]:
    """The hints on a real run of a hook."""
    hook = HookConfig("command", CommandSpec(command), name="guard", **config)
    [result] = await HookRunner().execute_hooks_parallel([hook], event, TOOL_INPUT)
    hints = hints_on(result)
    assert all(hint.startswith("guard: ") for hint in hints)
    return hints


def script(first_line: str) -> str:
    return f"d=$(mktemp -d); printf '{first_line}\\n' > $d/hook; chmod +x $d/hook; $d/hook"


MISTAKES: dict[str, tuple[HookEventName, str, str]] = {
    "exit 1 to block": (E.BEFORE_TOOL, "echo no >&2; exit 1", "to block, exit with 2"),
    "JSON with exit 1": (E.BEFORE_TOOL, f"{says({'decision': 'deny'})}; exit 1", "exited with 1, so the JSON was not"),
    "JSON encoded twice, with exit 1": (
        E.BEFORE_TOOL,
        f"{says(json.dumps(json.dumps({'decision': 'deny'})))}; exit 1",
        "exited with 1, so the JSON was not",
    ),
    "JSON with exit 2 and stderr": (E.BEFORE_TOOL, f"{says({})}; echo no >&2; exit 2", "exited with 2, so the JSON"),
    "reason on stdout with exit 2": (E.BEFORE_TOOL, "echo no; exit 2", "print the reason to stderr"),
    "text before JSON": (E.BEFORE_TOOL, f"echo checking; {says({'decision': 'deny'})}", "print only JSON"),
    "text after JSON": (E.BEFORE_TOOL, f"{says({'decision': 'deny'})}; echo done", "print only JSON"),
    "missing program": (E.BEFORE_TOOL, "no-such-program-anywhere", "127 means that a program was not found"),
    "missing program in a script": (E.BEFORE_TOOL, "x=$(jqq .); true", "it did not find the program `jqq` and went on"),
    "not executable": (E.BEFORE_TOOL, "/etc/passwd", "try `chmod +x`"),
    "shell syntax": (E.BEFORE_TOOL, "if then", "and exited with 2, which blocks"),
    "slip of the pen": (E.BEFORE_TOOL, says({"desicion": "deny"}), "did you mean `decision`?"),
    "field in the wrong place": (E.AFTER_TOOL, says({"additionalContext": "x"}), "belongs in `hookSpecificOutput`"),
    "Claude Code's name": (
        E.BEFORE_TOOL,
        says({"hookSpecificOutput": {"updatedInput": {}}}),
        "`hookSpecificOutput.updatedInput` is not read: did you mean `tool_input`?",
    ),
    "wrong type": (E.BEFORE_TOOL, says({"decision": "deny", "reason": 7}), "`reason` is ignored: expected a string"),
    "unknown decision": (E.BEFORE_TOOL, says({"decision": "reject"}), "`decision` is ignored: expected one of"),
    "ask": (E.BEFORE_TOOL, says({"decision": "ask"}), "`ask` doesn't prompt anyone"),
    "block after the fact": (E.AFTER_TOOL, says({"decision": "block"}), "AfterTool cannot be blocked"),
    "exit 2 after the fact": (E.AFTER_TOOL, "echo no >&2; exit 2", "AfterTool cannot be blocked"),
    "answer without a block": (
        E.BEFORE_MODEL,
        says({"hookSpecificOutput": {"llm_response": {"text": "x"}}}),
        'add `"decision": "block"`',
    ),
    "a Python dictionary": (
        E.BEFORE_TOOL,
        """echo "{'decision': 'deny'}" """,
        "looks like JSON but is not valid (expecting",
    ),
    "a trailing comma": (E.BEFORE_TOOL, """echo '{"decision": "deny",}'""", "looks like JSON but is not valid"),
    "two objects": (E.BEFORE_TOOL, "echo '{}'; echo '{}'", "looks like JSON but is not valid (extra data"),
    "a crash": (E.BEFORE_TOOL, "python3 -c 'import nothing_of_that_name'", "ended with a Python exception"),
    "no such interpreter": (
        E.BEFORE_TOOL,
        script("#!/no/such/program"),
        "first line names a missing program",
    ),
    "lines as in Windows": (E.BEFORE_TOOL, script("#!/bin/sh\\r"), "first line names a missing program"),
    "fields of another agent": (E.BEFORE_TOOL, says({"ok": False}), "none of its fields is read"),
    "a reason without a stop": (E.BEFORE_TOOL, says({"stopReason": "x"}), 'counts only beside `"continue": false`'),
    "context before a tool": (
        E.BEFORE_TOOL,
        says({"hookSpecificOutput": {"additionalContext": "x"}}),
        "`hookSpecificOutput.additionalContext` has no effect in BeforeTool",
    ),
    "exit 2 to tell the model": (E.AFTER_TOOL, "echo tests fail >&2; exit 2", "exit with 0 and print it"),
    "script that sh does not find": (E.BEFORE_TOOL, "dash no-such.sh", "did not find the script"),
    "script that python does not find": (E.BEFORE_TOOL, "python3 no-such.py", "did not find the script"),
    "context at the start": (E.SESSION_START, "echo be brief", "is not added to the conversation"),
    "context with a prompt": (E.BEFORE_AGENT, "echo be brief", "is not added to the conversation"),
    "event that nobody waits for": (E.SESSION_START, says({"decision": "block"}), "does not wait for SessionStart"),
}


@pytest.mark.parametrize(("event", "command", "words"), MISTAKES.values(), ids=MISTAKES)
async def test_a_classic_mistake_is_explained(event: HookEventName, command: str, words: str) -> None:
    hints = await advice(command, event)

    assert [hint for hint in hints if words in hint], hints


async def test_a_longer_timeout_is_answered_with_what_the_hook_may_wait_for() -> None:
    [hint] = await advice("sleep 5", timeout=1000)

    assert "does it wait for input, a lock or the network?" in hint


async def test_a_timeout_that_looks_like_seconds_is_explained() -> None:
    [hint] = await advice("sleep 5", timeout=60)

    assert hint == "guard: its timeout is 60 ms, because `timeout` is in milliseconds; 60 s would be 60000"


GOOD: dict[str, tuple[HookEventName, str]] = {
    "silence": (E.BEFORE_TOOL, "true"),
    "plain text": (E.BEFORE_TOOL, "echo all is well"),
    "text with braces": (E.BEFORE_TOOL, "echo 'use {} here'"),
    "exit 2": (E.BEFORE_TOOL, "echo no >&2; exit 2"),
    "deny": (E.BEFORE_TOOL, says({"decision": "deny", "reason": "no"})),
    "JSON encoded twice": (E.BEFORE_TOOL, says(json.dumps(json.dumps({"decision": "deny"})))),
    "rewrite": (E.BEFORE_TOOL, says({"hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": {}}})),
    "fields of one's own": (E.BEFORE_TOOL, says({"decision": "allow", "rule": "R-17"})),
    "failure where nothing can be blocked": (E.AFTER_TOOL, "exit 1"),
    "plain text that nobody waits for": (E.SESSION_END, "echo goodbye"),
    "answer": (E.BEFORE_MODEL, says({"decision": "block", "hookSpecificOutput": {"llm_response": {"text": "x"}}})),
}


@pytest.mark.parametrize(("event", "command"), GOOD.values(), ids=GOOD)
async def test_valid_output_causes_no_hint(event: HookEventName, command: str) -> None:
    assert await advice(command, event) == []


async def test_a_hook_that_blocks_when_it_fails_need_not_exit_with_2() -> None:
    assert await advice("exit 1", fail_closed=True) == []


async def test_collecting_advice_leaves_logging_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("llxprt:core:hooks:runner")
    before = (logger.level, logger.propagate, list(logger.handlers))

    await advice(says({"reason": 7}))

    assert (logger.level, logger.propagate, logger.handlers) == before
    assert caplog.records == []
