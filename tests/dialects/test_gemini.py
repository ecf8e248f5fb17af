"""Hooks of Gemini CLI: what its program makes of exit codes and streams, its settings and its payloads."""

from __future__ import annotations

import json
from typing import Any

import pytest

from llxprt_hooks import Config, Hooks
from llxprt_hooks.events import HookEventName
from tests.dialects.products import EDIT, MCP, PATCH, SHELL, ForeignProject, prints

DIALECT = "gemini"
FILE = ".gemini/settings.json"


def _settings(event: str, command: str, matcher: str = "", **fields: Any) -> dict[str, Any]:
    return {"hooks": {event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command, **fields}]}]}}


DENY = {"decision": "deny", "reason": "no"}


@pytest.mark.parametrize(
    ("stdout", "stderr", "code", "expected"),
    [
        (DENY, "", 0, {"blocked": "no"}),
        (DENY, "", 1, {"blocked": "no"}),
        (DENY, "", 2, {"blocked": "no"}),
        ("", json.dumps(DENY), 0, {"blocked": "no"}),
        ("", json.dumps(DENY), 2, {"blocked": "no"}),
        (json.dumps(json.dumps(DENY)), "", 0, {"blocked": "no"}),
        ("{}", "ignored", 2, {}),
        ("42", "", 2, {}),
        ("", "", 0, {}),
        ("", "", 2, {"failed": True}),
        ("text", "", 0, {"user": "text"}),
        ("", "text", 0, {"user": "text"}),
        ("", "text", 1, {"user": "Warning: text"}),
        ("", "text", 2, {"blocked": "text"}),
        ("out", "err", 2, {"blocked": "out"}),
        ("", "not found", 127, {"blocked": "not found"}),
        ({"decision": "ask", "systemMessage": "sure?"}, "", 0, {"ask": True, "user": "sure?"}),
        ({"continue": False, "stopReason": "enough"}, "", 0, {"stop": "enough"}),
        ({"hookSpecificOutput": {"tool_input": {"command": "ls -a"}}}, "", 0, {"input": {"command": "ls -a"}}),
        ({"systemMessage": "hello"}, "", 0, {"user": "hello"}),
    ],
)
async def test_before_a_tool(
    foreign: ForeignProject, stdout: Any, stderr: str, code: int, expected: dict[str, Any]
) -> None:
    foreign.write(FILE, _settings("BeforeTool", prints(stdout, stderr, code)))

    assert await foreign.outcome(HookEventName.BEFORE_TOOL) == expected


CONTEXT = {"hookSpecificOutput": {"additionalContext": "note"}}


@pytest.mark.parametrize(
    ("event", "stdout", "stderr", "code", "expected"),
    [
        ("AfterTool", DENY, "", 0, {"blocked": "no"}),
        ("AfterTool", "", "text", 2, {"blocked": "text"}),
        ("AfterTool", CONTEXT, "", 0, {"context": "note"}),
        ("AfterTool", {"hookSpecificOutput": {"tool_response": "ours"}}, "", 0, {}),
        ("BeforeAgent", DENY, "", 0, {"blocked": "no"}),
        ("BeforeAgent", CONTEXT, "", 0, {"context": "note"}),
        ("AfterAgent", DENY, "", 0, {"blocked": "no"}),
        ("AfterAgent", "", "again", 2, {"blocked": "again"}),
        ("SessionStart", CONTEXT, "", 0, {"context": "note"}),
        ("SessionStart", "text", "", 0, {"user": "text"}),
        ("PreCompress", {"systemMessage": "m"}, "", 0, {"user": "m"}),
    ],
)
async def test_other_events(
    foreign: ForeignProject, event: str, stdout: Any, stderr: str, code: int, expected: dict[str, Any]
) -> None:
    foreign.write(FILE, _settings(event, prints(stdout, stderr, code)))

    assert await foreign.outcome(HookEventName(event)) == expected


@pytest.mark.parametrize(
    ("call", "tool_name", "tool_input"),
    [
        (SHELL, "run_shell_command", {"command": "ls", "description": "list"}),
        (EDIT, "replace", {"file_path": "/p/a.txt", "old_string": "old", "new_string": "new"}),
        (
            {"tool_name": "search_file_content", "tool_input": {"pattern": "x", "path": "src", "include": "*.py"}},
            "grep_search",
            {"pattern": "x", "dir_path": "/p/src", "include_pattern": "*.py"},
        ),
        (MCP, "mcp_shop_refund", {"id": 7}),
    ],
)
async def test_the_payload_has_the_names_of_its_product(
    foreign: ForeignProject, call: dict[str, Any], tool_name: str, tool_input: dict[str, Any]
) -> None:
    foreign.write(FILE, _settings("BeforeTool", "jq -c . > payload.json; env > env.txt", tool_name))

    await foreign.outcome(HookEventName.BEFORE_TOOL, call)

    (payload,) = foreign.received()
    assert list(payload)[:7] == [
        "session_id", "transcript_path", "cwd", "hook_event_name", "timestamp", "tool_name", "tool_input",
    ]  # fmt: skip
    assert (payload["tool_name"], payload["tool_input"]) == (tool_name, tool_input)
    assert payload.get("mcp_context") == ({"server_name": "shop", "tool_name": "refund"} if call is MCP else None)
    assert {"GEMINI_CWD", "GEMINI_SESSION_ID", "GEMINI_PROJECT_DIR"} <= {
        line.partition("=")[0] for line in (foreign.root / "env.txt").read_text().splitlines()
    }


async def test_a_result_has_the_shape_of_its_product(foreign: ForeignProject) -> None:
    foreign.write(FILE, _settings("AfterTool", "jq -c . > payload.json"))

    await foreign.outcome(HookEventName.AFTER_TOOL)

    assert foreign.received()[0]["tool_response"] == {"llmContent": "a.txt", "returnDisplay": "a.txt"}


async def test_every_file_of_a_patch_is_shown_to_guards_for_edits(foreign: ForeignProject) -> None:
    foreign.write(FILE, _settings("BeforeTool", "jq -c '[.tool_name, .tool_input.file_path]' >> seen", "replace|write"))

    await foreign.outcome(HookEventName.BEFORE_TOOL, PATCH)

    seen = {tuple(json.loads(line)) for line in (foreign.root / "seen").read_text().splitlines()}
    assert seen == {("write_file", f"{foreign.root}/n.txt"), ("replace", f"{foreign.root}/.env")}


async def test_changed_arguments_come_back_under_our_names(foreign: ForeignProject) -> None:
    answer = {"hookSpecificOutput": {"tool_input": {"dir_path": "docs"}}}
    foreign.write(FILE, _settings("BeforeTool", prints(answer)))
    call = {"tool_name": "search_file_content", "tool_input": {"pattern": "x", "path": "src"}}

    assert await foreign.outcome(HookEventName.BEFORE_TOOL, call) == {"input": {"path": "docs"}}


async def test_files_of_all_levels_add_up_and_switches_count(foreign: ForeignProject) -> None:
    foreign.write(FILE, _settings("BeforeTool", "echo project >> runs"))
    foreign.write(FILE, _settings("BeforeTool", "echo user >> runs", name="mine"), home=True)
    await foreign.fire(HookEventName.BEFORE_TOOL)
    assert sorted((foreign.root / "runs").read_text().split()) == ["project", "user"]

    foreign.write(FILE, {**_settings("BeforeTool", "echo again >> runs"), "hooksConfig": {"disabled": ["mine"]}})
    await foreign.fire(HookEventName.BEFORE_TOOL)
    assert (foreign.root / "runs").read_text().split()[2:] == ["again"]

    foreign.write(FILE, {"hooksConfig": {"enabled": False}}, home=True)
    foreign.write(FILE, _settings("BeforeTool", "echo never >> runs"))
    assert await foreign.fire(HookEventName.BEFORE_TOOL) is None


@pytest.mark.parametrize(("fields", "milliseconds"), [({}, 60_000), ({"timeout": 5}, 5), ({"timeout": "x"}, 60_000)])
def test_times_are_milliseconds(foreign: ForeignProject, fields: dict[str, Any], milliseconds: float) -> None:
    foreign.write(FILE, _settings("BeforeTool", "true", **fields))

    assert [each.config.timeout for each in foreign.definitions()] == [milliseconds]


async def test_a_hook_without_a_group_is_left_out_as_by_its_product(foreign: ForeignProject) -> None:
    foreign.write(FILE, {"hooks": {"BeforeTool": [{"type": "command", "command": "exit 3"}]}})

    assert await foreign.outcome(HookEventName.BEFORE_TOOL) == {}


async def test_a_group_of_native_settings_can_speak_it(foreign: ForeignProject) -> None:
    group = {"dialect": DIALECT, "hooks": [{"type": "command", "command": "echo no >&2; exit 3"}]}
    hooks = Hooks(Config(enable_hooks=True, working_dir=foreign.root, hooks={"BeforeTool": [group]}))

    result = await hooks.run_tool("write_file", {"file_path": "a"}, lambda _: "written")

    assert result.llm_content == "no"
