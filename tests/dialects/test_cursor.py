"""Hooks of Cursor: several events for one call, and what answers about a permission mean."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from llxprt_hooks import Hooks
from llxprt_hooks.agent.tools.protection import ProtectedFiles
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.definitions import HookSet, dialect_of, read_definitions
from llxprt_hooks.settings.trust.status import TrustState, trust_status
from tests.dialects.products import EDIT, FAILED, MCP, PATCH, READ, SHELL, TASK, WRITE, ForeignProject, prints

DIALECT = "cursor"
FILE = ".cursor/hooks.json"
BEFORE, AFTER = HookEventName.BEFORE_TOOL, HookEventName.AFTER_TOOL
SAVE = "jq -c . >> payload.json"


def _settings(event: str, command: str, **fields: Any) -> dict[str, Any]:
    return {"version": 1, "hooks": {event: [{"command": command, **fields}]}}


DENY = {"permission": "deny", "agent_message": "no", "user_message": "it said no"}
FAILS = {"failed": True}


@pytest.mark.parametrize(
    ("stdout", "stderr", "code", "expected"),
    [
        (DENY, "", 0, {"blocked": "no", "user": "it said no"}),
        ({"permission": "deny", "userMessage": "old"}, "", 0, {"blocked": "old", "user": "old"}),
        ({"permission": "deny"}, "", 0, {"blocked": "Blocked by hook"}),
        ({"permission": "allow"}, "", 0, {}),
        ({"permission": "ask"}, "", 0, {}),
        ({}, "", 0, {}),
        ("", "", 0, {}),
        ("text", "", 0, {"blocked": "The hook printed something that is not JSON, so the call is refused."}),
        ("[1]", "", 0, {"blocked": "The hook printed something that is not JSON, so the call is refused."}),
        ("", "no", 2, {"blocked": "no"}),
        (DENY, "other", 2, {"blocked": "no"}),
        ("", "", 2, {"blocked": "Blocked by hook"}),
        (DENY, "", 1, FAILS),
        ("", "not found", 127, FAILS),
        ({"permission": "allow", "updated_input": {"command": "ls -a"}}, "", 0, {"input": {"command": "ls -a"}}),
    ],
)
async def test_before_a_tool(
    foreign: ForeignProject, stdout: Any, stderr: str, code: int, expected: dict[str, Any]
) -> None:
    foreign.write(FILE, _settings("preToolUse", prints(stdout, stderr, code)))

    assert await foreign.outcome(BEFORE) == expected


@pytest.mark.parametrize(
    ("stdout", "code", "expected"),
    [("", 0, True), ("", 1, True), ("", 127, True), ({}, 0, False), ({"permission": "allow"}, 0, False)],
)
async def test_fail_closed(foreign: ForeignProject, stdout: Any, code: int, expected: bool) -> None:
    foreign.write(FILE, _settings("beforeShellExecution", prints(stdout, "", code), failClosed=True))

    assert ("blocked" in await foreign.outcome(BEFORE)) is expected


@pytest.mark.parametrize(
    ("event", "call", "stdout", "stderr", "code", "expected"),
    [
        ("beforeShellExecution", SHELL, DENY, "", 0, {"blocked": "no", "user": "it said no"}),
        ("beforeShellExecution", SHELL, {"permission": "ask"}, "", 0, {"ask": True}),
        ("beforeShellExecution", WRITE, DENY, "", 0, {}),
        ("beforeMCPExecution", MCP, DENY, "", 0, {"blocked": "no", "user": "it said no"}),
        ("beforeMCPExecution", MCP, {"permission": "ask"}, "", 0, {"ask": True}),
        ("beforeMCPExecution", SHELL, DENY, "", 0, {}),
        ("beforeReadFile", READ, DENY, "", 0, {"blocked": "no", "user": "it said no"}),
        ("beforeReadFile", READ, "", "no", 2, {"blocked": "no"}),
        ("subagentStart", TASK, DENY, "", 0, {"blocked": "no", "user": "it said no"}),
    ],
)
async def test_events_before_some_tools(
    foreign: ForeignProject,
    event: str,
    call: dict[str, Any],
    stdout: Any,
    stderr: str,
    code: int,
    expected: dict[str, Any],
) -> None:
    foreign.write(FILE, _settings(event, prints(stdout, stderr, code)))

    assert await foreign.outcome(BEFORE, call) == expected


@pytest.mark.parametrize(
    ("event", "native", "fields", "stdout", "stderr", "code", "expected"),
    [
        ("postToolUse", AFTER, {}, {"additional_context": "note"}, "", 0, {"context": "note"}),
        ("postToolUse", AFTER, MCP, {"updated_mcp_tool_output": {"a": 1}}, "", 0, {"replaced": '{"a": 1}'}),
        ("postToolUse", AFTER, {}, {"updated_mcp_tool_output": "x"}, "", 0, {}),
        ("postToolUse", AFTER, {"tool_response": FAILED}, {"additional_context": "note"}, "", 0, {}),
        ("postToolUse", AFTER, {}, "text", "", 0, FAILS),
        (
            "postToolUseFailure",
            AFTER,
            {"tool_response": FAILED},
            {"additional_context": "note"},
            "",
            0,
            {"context": "note"},
        ),
        ("afterFileEdit", AFTER, WRITE, {"additional_context": "note"}, "", 0, {}),
        ("beforeSubmitPrompt", HookEventName.BEFORE_AGENT, {}, {"continue": False, "user_message": "no"}, "", 0,
         {"blocked": "no"}),
        ("beforeSubmitPrompt", HookEventName.BEFORE_AGENT, {}, {"continue": True}, "", 0, {}),
        ("beforeSubmitPrompt", HookEventName.BEFORE_AGENT, {}, "", "no", 2, {"blocked": "no"}),
        ("stop", HookEventName.AFTER_AGENT, {}, {"followup_message": "go on"}, "", 0, {"blocked": "go on"}),
        ("stop", HookEventName.AFTER_AGENT, {}, {}, "", 0, {}),
        ("stop", HookEventName.AFTER_AGENT, {}, "", "x", 1, FAILS),
        ("afterAgentResponse", HookEventName.AFTER_AGENT, {}, {"followup_message": "go on"}, "", 0, {}),
        ("sessionStart", HookEventName.SESSION_START, {}, {"additional_context": "note"}, "", 0, {"context": "note"}),
        ("subagentStop", AFTER, TASK, {"followup_message": "go on"}, "", 0, {"context": "go on"}),
    ],
)  # fmt: skip
async def test_other_events(
    foreign: ForeignProject,
    event: str,
    native: HookEventName,
    fields: dict[str, Any],
    stdout: Any,
    stderr: str,
    code: int,
    expected: dict[str, Any],
) -> None:
    foreign.write(FILE, _settings(event, prints(stdout, stderr, code)))

    assert await foreign.outcome(native, fields) == expected


_IDS = {"tool_use_id": "toolu_1", "cwd": "/p"}


@pytest.mark.parametrize(
    ("event", "native", "fields", "expected"),
    [
        (
            "preToolUse",
            BEFORE,
            EDIT,
            {
                "tool_name": "Write",
                "tool_input": {"file_path": "/p/a.txt", "old_string": "old", "new_string": "new"},
                **_IDS,
            },
        ),
        ("preToolUse", BEFORE, MCP, {"tool_name": "MCP:refund", "tool_input": {"id": 7}, **_IDS}),
        ("beforeShellExecution", BEFORE, SHELL, {"command": "ls", "cwd": "/p", "sandbox": False}),
        ("beforeMCPExecution", BEFORE, MCP, {"tool_name": "refund", "tool_input": '{"id": 7}'}),
        ("beforeReadFile", BEFORE, READ, {"file_path": "/p/a.txt", "content": "text", "attachments": []}),
        (
            "postToolUse",
            AFTER,
            {},
            {
                "tool_name": "Shell",
                "tool_input": SHELL["tool_input"],
                "tool_output": '"a.txt"',
                "duration": 1500,
                **_IDS,
            },
        ),
        (
            "postToolUseFailure",
            AFTER,
            {"tool_response": FAILED},
            {
                "tool_name": "Shell",
                "tool_input": SHELL["tool_input"],
                **_IDS,
                "error_message": "no such file",
                "failure_type": "error",
                "duration": 1500,
                "is_interrupt": False,
            },
        ),
        (
            "afterShellExecution",
            AFTER,
            {},
            {"command": "ls", "output": "a.txt", "duration": 1500, "sandbox": False},
        ),
        (
            "afterFileEdit",
            AFTER,
            EDIT,
            {"file_path": "/p/a.txt", "edits": [{"old_string": "old", "new_string": "new"}]},
        ),
        ("beforeSubmitPrompt", HookEventName.BEFORE_AGENT, {}, {"prompt": "hello", "attachments": []}),
        ("stop", HookEventName.AFTER_AGENT, {}, {"status": "completed", "loop_count": 0}),
        ("afterAgentResponse", HookEventName.AFTER_AGENT, {}, {"text": "hi"}),
        ("sessionStart", HookEventName.SESSION_START, {}, {"is_background_agent": False, "composer_mode": "agent"}),
        ("preCompact", HookEventName.PRE_COMPRESS, {}, {"trigger": "auto"}),
    ],
)
async def test_payloads_have_the_fields_of_the_product(
    foreign: ForeignProject, event: str, native: HookEventName, fields: dict[str, Any], expected: dict[str, Any]
) -> None:
    foreign.write("a.txt", "text")
    foreign.write(FILE, _settings(event, f"{SAVE}; env > env.txt"))

    await foreign.fire(native, fields)

    (payload,) = foreign.received()
    session = payload["session_id"]
    common = {
        "conversation_id": session,
        "generation_id": session,
        "model": "",
        "model_id": "",
        "model_params": [],
        "hook_event_name": event,
        "cursor_version": "2026.09.28",
        "workspace_roots": ["/p"],
        "user_email": None,
        "transcript_path": None,
        "session_id": session,
    }
    assert list(payload.items()) == list({**common, **expected}.items())
    assert f"CURSOR_PROJECT_DIR={foreign.root}\n" in (foreign.root / "env.txt").read_text()


@pytest.mark.parametrize("kind", ["pipe", "folder", "missing"])
async def test_only_a_file_has_content(foreign: ForeignProject, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(foreign.root / "a.txt")
    elif kind == "folder":
        (foreign.root / "a.txt").mkdir()
    foreign.write(FILE, _settings("beforeReadFile", SAVE))

    await foreign.fire(BEFORE, READ)

    assert foreign.received()[0]["content"] == ""


@pytest.mark.parametrize(
    ("event", "matcher", "call", "matches"),
    [
        ("preToolUse", "Shell|Read", SHELL, True),
        ("preToolUse", "Write", EDIT, True),
        ("preToolUse", "Write", PATCH, True),
        ("preToolUse", "Shell", WRITE, False),
        ("preToolUse", "^MCP:", MCP, True),
        ("preToolUse", "*", SHELL, True),
        ("beforeShellExecution", "^ls", SHELL, True),
        ("beforeShellExecution", "rm", SHELL, False),
        ("subagentStart", "reviewer", TASK, True),
        ("subagentStart", "explorer", TASK, False),
        ("beforeReadFile", "Read", READ, True),
    ],
)
async def test_matchers(foreign: ForeignProject, event: str, matcher: str, call: dict[str, Any], matches: bool) -> None:
    foreign.write(FILE, _settings(event, prints("", "no", 2), matcher=matcher))

    assert ("blocked" in await foreign.outcome(BEFORE, call)) is matches


async def test_every_file_of_a_patch_is_shown_after_it_was_edited(foreign: ForeignProject) -> None:
    foreign.write(FILE, _settings("afterFileEdit", SAVE))

    await foreign.fire(AFTER, PATCH)

    assert {each["file_path"] for each in foreign.received()} == {"/p/n.txt", "/p/.env"}


async def test_hooks_of_the_user_run_in_their_own_folder(foreign: ForeignProject) -> None:
    foreign.write(FILE, _settings("preToolUse", "./guard.sh"), home=True)
    script = foreign.write(".cursor/guard.sh", "#!/bin/sh\necho $PWD $CURSOR_PROJECT_DIR >&2; exit 2", home=True)
    script.chmod(0o755)

    assert await foreign.outcome(BEFORE) == {"blocked": f"{foreign.home}/.cursor {foreign.root}"}


async def test_an_approval_covers_the_scripts_and_the_agent_cannot_write_them(foreign: ForeignProject) -> None:
    foreign.write(FILE, _settings("preToolUse", "sh .cursor/hooks/guard.sh"))
    script = foreign.write(".cursor/hooks/guard.sh", "echo no >&2; exit 2")
    protected = ProtectedFiles(foreign.root, foreign.hooks().config)

    assert await foreign.outcome(BEFORE) == {"blocked": "no"}
    assert protected.reason(script.relative_to(foreign.root), frozenset()) is not None
    assert protected.reason((foreign.root / FILE).relative_to(foreign.root), frozenset()) is not None
    script.write_text("true")
    assert trust_status(foreign.root, DIALECT).state is TrustState.CHANGED
    changed = Hooks.load(foreign.root, dialects=(DIALECT,))
    assert (await changed.run_tool("write_file", {"file_path": "a"}, lambda _: "written")).error is not None


@pytest.mark.parametrize(
    ("event", "entry", "words", "usable"),
    [
        ("afterTabFileEdit", {"command": "true"}, "does not happen here", False),
        ("preToolUse", {"type": "prompt", "prompt": "ok?"}, "hooks of type prompt run only in Cursor", True),
        (
            "preToolUse",
            {"type": "prompt", "prompt": "ok?", "failClosed": True},
            "it counts as failed, and blocks",
            True,
        ),
        ("preToolUse", {}, "it has no command", False),
        ("stop", {"command": "true", "loop_limit": 3}, "`loop_limit` has no effect here", True),
    ],
)
def test_what_cannot_be_honored_is_said(event: str, entry: dict[str, Any], words: str, usable: bool) -> None:
    found, problems = read_definitions(HookSet({event: [entry]}, dialect=DIALECT))

    assert [words in str(each) for each in problems] == [True]
    assert [each.where for each in found] == ([f"hooks.{event}[0]"] if usable else [])


@pytest.mark.parametrize(
    ("event", "tool", "given", "native"),
    [
        ("preToolUse", "Shell", {"command": "ls"}, ("BeforeTool", "run_shell_command", {"command": "ls"})),
        ("beforeShellExecution", None, {"command": "ls"}, ("BeforeTool", "run_shell_command", {"command": "ls"})),
        ("afterFileEdit", None, None, ("AfterTool", "write_file", None)),
    ],
)
def test_names_can_be_translated_back(event: str, tool: str | None, given: Any, native: tuple[Any, ...]) -> None:
    call = dialect_of(DIALECT).native_call(event, tool, given)

    assert call is not None
    assert (call.event_name, call.tool_name, call.tool_input) == native


async def test_a_changed_call_that_cannot_be_made_is_refused(foreign: ForeignProject) -> None:
    answer = {"permission": "allow", "updated_input": {"file_path": "/x"}}
    foreign.write(FILE, _settings("preToolUse", prints(json.dumps(answer))))

    assert "cannot be applied" in (await foreign.outcome(BEFORE, PATCH))["blocked"]
