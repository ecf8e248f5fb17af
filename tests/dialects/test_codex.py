"""Hooks of Codex CLI: strict answers, its two kinds of files, and edits that are patches."""

from __future__ import annotations

import json
from typing import Any

import pytest

from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.definitions import dialect_of
from llxprt_hooks.settings.load import load_settings
from tests.dialects.products import EDIT, PATCH, READ, SHELL, TASK, WRITE, ForeignProject, prints

DIALECT = "codex"
FILE = ".codex/hooks.json"


def _settings(event: str, command: str, matcher: str = "", **fields: Any) -> dict[str, Any]:
    return {"hooks": {event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command, **fields}]}]}}


def _own(event: str, **fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


def _before(**fields: Any) -> dict[str, Any]:
    return _own("PreToolUse", **fields)


DENY = _before(permissionDecision="deny", permissionDecisionReason="no")
BLOCK = {"decision": "block", "reason": "no"}
FAILS = {"failed": True}


@pytest.mark.parametrize(
    ("stdout", "stderr", "code", "expected"),
    [
        (DENY, "", 0, {"blocked": "no"}),
        (BLOCK, "", 0, {"blocked": "no"}),
        ("", "no", 2, {"blocked": "no"}),
        (DENY, "other", 2, {"blocked": "other"}),
        ("", "", 2, FAILS),
        (DENY, "", 1, FAILS),
        ("", "not found", 127, FAILS),
        ("", "ignored", 0, {}),
        ("text", "", 0, {}),
        ("{not json", "", 0, FAILS),
        ("[1]", "", 0, FAILS),
        ("{}", "", 0, {}),
        ({"unknown": 1}, "", 0, FAILS),
        ({"decision": 42}, "", 0, FAILS),
        ({"decision": "block"}, "", 0, FAILS),
        ({"decision": "approve"}, "", 0, FAILS),
        ({"continue": False}, "", 0, FAILS),
        ({"stopReason": "x"}, "", 0, FAILS),
        ({"suppressOutput": True}, "", 0, FAILS),
        (_before(permissionDecision="deny"), "", 0, FAILS),
        (_before(permissionDecision="ask"), "", 0, FAILS),
        (_before(permissionDecision="allow"), "", 0, {}),
        (_before(updatedInput={"command": "ls -a"}), "", 0, FAILS),
        (
            _before(permissionDecision="allow", updatedInput={"command": "ls -a"}),
            "",
            0,
            {"input": {"command": "ls -a", "description": "list"}},
        ),
        (_own("PostToolUse", additionalContext="x"), "", 0, FAILS),
        (_before(additionalContext="note"), "", 0, {"beside": "note"}),
        ({"systemMessage": "hello"}, "", 0, {"user": "hello"}),
    ],
)
async def test_before_a_tool(
    foreign: ForeignProject, stdout: Any, stderr: str, code: int, expected: dict[str, Any]
) -> None:
    foreign.write(FILE, _settings("PreToolUse", prints(stdout, stderr, code)))

    assert await foreign.outcome(HookEventName.BEFORE_TOOL) == expected


@pytest.mark.parametrize(
    ("event", "native", "stdout", "stderr", "code", "expected"),
    [
        ("PostToolUse", HookEventName.AFTER_TOOL, BLOCK, "", 0, {"blocked": "no"}),
        ("PostToolUse", HookEventName.AFTER_TOOL, "", "no", 2, {"blocked": "no"}),
        ("PostToolUse", HookEventName.AFTER_TOOL, "", "", 2, FAILS),
        ("PostToolUse", HookEventName.AFTER_TOOL, _own("PostToolUse", additionalContext="n"), "", 0, {"context": "n"}),
        ("PostToolUse", HookEventName.AFTER_TOOL, _own("PostToolUse", updatedMCPToolOutput={}), "", 0, FAILS),
        ("PostToolUse", HookEventName.AFTER_TOOL, {"continue": False, "stopReason": "x"}, "", 0, {"stop": "x"}),
        ("UserPromptSubmit", HookEventName.BEFORE_AGENT, BLOCK, "", 0, {"blocked": "no"}),
        ("UserPromptSubmit", HookEventName.BEFORE_AGENT, "", "no", 2, {"blocked": "no"}),
        ("UserPromptSubmit", HookEventName.BEFORE_AGENT, "text", "", 0, {"context": "text"}),
        ("UserPromptSubmit", HookEventName.BEFORE_AGENT, "", "x", 1, FAILS),
        ("Stop", HookEventName.AFTER_AGENT, BLOCK, "", 0, {"blocked": "no"}),
        ("Stop", HookEventName.AFTER_AGENT, "", "no", 2, {"blocked": "no"}),
        ("Stop", HookEventName.AFTER_AGENT, "text", "", 0, FAILS),
        ("Stop", HookEventName.AFTER_AGENT, {"continue": False, "stopReason": "x"}, "", 0, {"stop": "x"}),
        ("SessionStart", HookEventName.SESSION_START, "text", "", 0, {"context": "text"}),
        ("SessionStart", HookEventName.SESSION_START, "", "no", 2, FAILS),
        ("PreCompact", HookEventName.PRE_COMPRESS, "", "no", 2, FAILS),
        ("PreCompact", HookEventName.PRE_COMPRESS, {"continue": False, "stopReason": "x"}, "", 0, {"stop": "x"}),
    ],
)
async def test_other_events(
    foreign: ForeignProject,
    event: str,
    native: HookEventName,
    stdout: Any,
    stderr: str,
    code: int,
    expected: dict[str, Any],
) -> None:
    foreign.write(FILE, _settings(event, prints(stdout, stderr, code)))

    assert await foreign.outcome(native) == expected


_TURN = {"turn_id": "s", "transcript_path": None, "cwd": "/p"}
_MODE = {"model": "", "permission_mode": "default"}


@pytest.mark.parametrize(
    ("event", "native", "fields"),
    [
        (
            "PreToolUse",
            HookEventName.BEFORE_TOOL,
            {**_MODE, "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "toolu_1"},
        ),
        (
            "PostToolUse",
            HookEventName.AFTER_TOOL,
            {
                **_MODE,
                "tool_name": "Bash",
                "tool_input": {"command": "ls"},
                "tool_response": "a.txt",
                "tool_use_id": "toolu_1",
            },
        ),
        ("UserPromptSubmit", HookEventName.BEFORE_AGENT, {**_MODE, "prompt": "hello"}),
        ("Stop", HookEventName.AFTER_AGENT, {**_MODE, "stop_hook_active": False, "last_assistant_message": "hi"}),
        ("PreCompact", HookEventName.PRE_COMPRESS, {"model": "", "trigger": "auto"}),
        ("SessionStart", HookEventName.SESSION_START, {**_MODE, "source": "startup"}),
        ("SessionEnd", HookEventName.SESSION_END, {**_MODE, "reason": "other"}),
    ],
)
async def test_payloads_have_the_fields_and_the_order_of_the_product(
    foreign: ForeignProject, event: str, native: HookEventName, fields: dict[str, Any]
) -> None:
    foreign.write(FILE, _settings(event, "jq -c . > payload.json"))

    await foreign.fire(native)

    (payload,) = foreign.received()
    session = payload["session_id"]
    expected = {"session_id": session, **_TURN, "hook_event_name": event, **fields}
    if event.startswith("Session"):
        del expected["turn_id"]
    else:
        expected["turn_id"] = session
    assert list(payload.items()) == list(expected.items())


@pytest.mark.parametrize("matcher", ["apply_patch", "Edit", "Write", "Edit|Write", "^apply_.*"])
@pytest.mark.parametrize(
    ("call", "patch"),
    [
        (PATCH, PATCH["tool_input"]["patch"]),
        (WRITE, "*** Begin Patch\n*** Add File: a.txt\n+new\n*** End Patch"),
        (EDIT, "*** Begin Patch\n*** Update File: a.txt\n@@\n-old\n+new\n*** End Patch"),
        (
            {"tool_name": "insert_at_line", "tool_input": {"file_path": "a.txt", "line_number": 1, "content": "x"}},
            "*** Begin Patch\n*** Update File: a.txt\n@@\n+x\n*** End Patch",
        ),
    ],
)
async def test_every_tool_that_writes_files_is_shown_as_a_patch(
    foreign: ForeignProject, matcher: str, call: dict[str, Any], patch: str
) -> None:
    foreign.write(FILE, _settings("PreToolUse", "jq -c '[.tool_name, .tool_input.command]' > payload.json", matcher))

    await foreign.fire(HookEventName.BEFORE_TOOL, call)

    assert json.loads((foreign.root / "payload.json").read_text()) == ["apply_patch", patch]


@pytest.mark.parametrize(
    ("matcher", "call", "matches"),
    [
        ("Bash", SHELL, True),
        ("Bas", SHELL, False),
        ("Ba.h", SHELL, True),
        ("bash", SHELL, False),
        ("*", SHELL, True),
        ("(", SHELL, False),
        ("Agent", TASK, True),
        ("Edit", READ, False),
        ("read_file", READ, True),
    ],
)
async def test_matchers(foreign: ForeignProject, matcher: str, call: dict[str, Any], matches: bool) -> None:
    foreign.write(FILE, _settings("PreToolUse", prints("", "no", 2), matcher))

    assert bool(await foreign.outcome(HookEventName.BEFORE_TOOL, call)) is matches


async def test_only_a_patch_can_be_changed_to_another_patch(foreign: ForeignProject) -> None:
    changed = _before(permissionDecision="allow", updatedInput={"command": "*** Begin Patch"})
    foreign.write(FILE, _settings("PreToolUse", prints(changed)))

    assert await foreign.outcome(HookEventName.BEFORE_TOOL, PATCH) == {"input": {"patch": "*** Begin Patch"}}
    assert "cannot be applied" in (await foreign.outcome(HookEventName.BEFORE_TOOL, EDIT))["blocked"]


async def test_the_end_of_a_subagent_is_that_of_a_task(foreign: ForeignProject) -> None:
    foreign.write(FILE, _settings("SubagentStop", "jq -c . > payload.json; echo more >&2; exit 2", "reviewer"))

    assert await foreign.outcome(HookEventName.AFTER_TOOL, TASK) == {"context": "more"}
    assert foreign.received()[0]["agent_type"] == "reviewer"
    assert await foreign.outcome(HookEventName.AFTER_TOOL, SHELL) == {}


@pytest.mark.parametrize(
    ("event", "tool", "given", "native"),
    [
        ("PreToolUse", "Bash", {"command": "ls"}, ("BeforeTool", "run_shell_command", {"command": "ls"})),
        ("PreToolUse", "apply_patch", {"command": "p"}, ("BeforeTool", "apply_patch", {"patch": "p"})),
        ("SubagentStop", None, None, ("AfterTool", "task", None)),
        ("Stop", None, None, ("AfterAgent", None, None)),
    ],
)
def test_names_can_be_translated_back(event: str, tool: str | None, given: Any, native: tuple[Any, ...]) -> None:
    call = dialect_of(DIALECT).native_call(event, tool, given)

    assert call is not None
    assert (call.event_name, call.tool_name, call.tool_input) == native


TOML = """
model = "gpt"
[[hooks.PreToolUse]]
matcher = "Bash"
[[hooks.PreToolUse.hooks]]
type = "command"
command = "echo toml >> runs"
timeout = 5
[hooks.state."x"]
trusted_hash = "y"
"""


async def test_files_of_both_kinds_and_levels_add_up_and_the_same_hook_runs_twice(foreign: ForeignProject) -> None:
    foreign.write(".codex/config.toml", TOML)
    foreign.write(FILE, _settings("PreToolUse", "echo toml >> runs"))
    foreign.write(".codex/config.toml", TOML.replace("echo toml", "echo user"), home=True)

    await foreign.fire(HookEventName.BEFORE_TOOL)

    assert sorted((foreign.root / "runs").read_text().split()) == ["toml", "toml", "user"]
    assert {each.where for each in foreign.definitions()} == {"hooks.PreToolUse[0].hooks[0]"}


@pytest.mark.parametrize(
    ("event", "fields", "milliseconds"),
    [
        ("PreToolUse", {}, 600_000),
        ("PreToolUse", {"timeout": 5}, 5_000),
        ("SessionEnd", {}, 1_000),
        ("SessionEnd", {"timeout": 60}, 3_000),
    ],
)
def test_times_are_seconds(foreign: ForeignProject, event: str, fields: dict[str, Any], milliseconds: float) -> None:
    foreign.write(FILE, _settings(event, "true", **fields))

    assert [each.config.timeout for each in foreign.definitions()] == [milliseconds]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({**_settings("PreToolUse", "true"), "version": 1}, "`version` is not expected"),
        (
            _settings("PermissionRequest", "true"),
            "this event of Codex CLI does not happen here",
        ),
        ({"hooks": {"Stop": [{"hooks": [{"type": "prompt", "prompt": "x"}]}]}}, "hooks of type prompt run only in"),
        ({"hooks": {"Stop": [{"hooks": [{"type": "command"}]}]}}, "it has no command"),
    ],
)
def test_what_cannot_be_used_is_said(foreign: ForeignProject, settings: dict[str, Any], words: str) -> None:
    foreign.write(FILE, settings)
    config = foreign.hooks().config
    system = config.get_hook_system()
    found = list(map(str, load_settings(foreign.root, dialects=(DIALECT,)).problems))
    if system is not None:
        system.ready_event_handler()
        found += map(str, system.get_registry().problems)

    assert any(words in each for each in found), found
