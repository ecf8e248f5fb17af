"""Hooks of GitHub Copilot CLI: both spellings of events, and a failure before a tool, which refuses the call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks import Hooks
from llxprt_hooks.agent.tools.protection import ProtectedFiles
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.definitions import HookSet, dialect_of, read_definitions
from llxprt_hooks.settings.trust.status import TrustState, trust_status
from tests.dialects.products import EDIT, FAILED, PATCH, SHELL, TASK, WRITE, ForeignProject, prints

DIALECT = "copilot"
FILE = ".github/hooks/guard.json"
BEFORE, AFTER = HookEventName.BEFORE_TOOL, HookEventName.AFTER_TOOL


def _settings(event: str, command: str, **fields: Any) -> dict[str, Any]:
    return {"version": 1, "hooks": {event: [{"type": "command", "bash": command, **fields}]}}


def _decision(word: str, **fields: Any) -> dict[str, Any]:
    return {"permissionDecision": word, "permissionDecisionReason": "why", **fields}


ERRORED = "Denied by preToolUse hook (hook errored)"
PROGRESS = '{"type": "progress", "message": "..."}\n'
FAILS = {"failed": True}


@pytest.mark.parametrize("event", ["preToolUse", "PreToolUse"])
@pytest.mark.parametrize(
    ("stdout", "stderr", "code", "expected"),
    [
        (_decision("deny"), "", 0, {"blocked": "why"}),
        ({"permissionDecision": "deny"}, "", 0, {"blocked": "Denied by preToolUse hook"}),
        ({"hookSpecificOutput": _decision("deny")}, "", 0, {"blocked": "why"}),
        (_decision("ask"), "", 0, {"ask": True}),
        (_decision("allow"), "", 0, {"allow": True}),
        (PROGRESS + json.dumps(_decision("deny")), "", 0, {"blocked": "why"}),
        ('{"a": 1}\n{"b": 2}', "", 0, {}),
        ("text", "", 0, {}),
        ("", "ignored", 0, {}),
        (_decision("allow"), "no", 2, {"blocked": "why"}),
        ("", "no", 2, {"blocked": "no"}),
        (_decision("allow"), "", 1, {"blocked": ERRORED}),
        ("", "not found", 127, {"blocked": "not found"}),
        ({"modifiedArgs": {"command": "ls -a"}}, "", 0, {"input": {"command": "ls -a"}}),
    ],
)
async def test_before_a_tool(
    foreign: ForeignProject, event: str, stdout: Any, stderr: str, code: int, expected: dict[str, Any]
) -> None:
    foreign.write(FILE, _settings(event, prints(stdout, stderr, code)))

    assert await foreign.outcome(BEFORE) == expected


async def test_a_hook_that_takes_too_long_refuses_nothing_and_one_that_cannot_start_does(
    foreign: ForeignProject,
) -> None:
    foreign.write(FILE, _settings("preToolUse", "sleep 60", timeoutSec=0.05))
    outcome = await foreign.outcome(BEFORE)
    assert list(outcome) == ["user"]
    assert "timed out" in outcome["user"]

    foreign.write(FILE, _settings("preToolUse", "true", cwd="no/such/folder"))
    assert "blocked" in await foreign.outcome(BEFORE)


CONTEXT = {"additionalContext": "note"}
RESULT = {"modifiedResult": {"resultType": "success", "textResultForLlm": "other"}}
FAILURE = {"tool_response": FAILED}


@pytest.mark.parametrize(
    ("event", "native", "fields", "stdout", "stderr", "code", "expected"),
    [
        ("postToolUse", AFTER, {}, CONTEXT, "", 0, {"context": "note"}),
        ("postToolUse", AFTER, {}, RESULT, "", 0, {"replaced": "other"}),
        ("postToolUse", AFTER, FAILURE, CONTEXT, "", 0, {}),
        ("postToolUse", AFTER, {}, "", "warning", 2, {"user": "warning"}),
        ("postToolUse", AFTER, {}, "", "x", 1, FAILS),
        ("postToolUseFailure", AFTER, FAILURE, CONTEXT, "", 0, {"context": "note"}),
        ("postToolUseFailure", AFTER, FAILURE, "try again", "", 2, {"context": "try again"}),
        ("agentStop", HookEventName.AFTER_AGENT, {}, {"decision": "block", "reason": "go on"}, "", 0,
         {"blocked": "go on"}),
        ("Stop", HookEventName.AFTER_AGENT, {}, {"decision": "block", "reason": "go on"}, "", 0, {"blocked": "go on"}),
        ("agentStop", HookEventName.AFTER_AGENT, {}, "", "x", 2, {"user": "x"}),
        ("subagentStop", AFTER, TASK, {"decision": "block", "reason": "go on"}, "", 0, {"context": "go on"}),
        ("subagentStop", AFTER, TASK, {"modifiedResponse": "short"}, "", 0, {"replaced": "short"}),
        ("userPromptSubmitted", HookEventName.BEFORE_AGENT, {}, {"decision": "block"}, "", 0, {}),
        ("sessionStart", HookEventName.SESSION_START, {}, CONTEXT, "", 0, {"context": "note"}),
        ("preCompact", HookEventName.PRE_COMPRESS, {}, {"decision": "block"}, "", 0, {}),
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


_BASH = {"toolName": "bash", "toolArgs": SHELL["tool_input"]}
_CLAUDE = {"tool_name": "Bash", "tool_input": SHELL["tool_input"]}


@pytest.mark.parametrize(
    ("event", "native", "fields", "expected"),
    [
        ("preToolUse", BEFORE, {}, _BASH),
        ("PreToolUse", BEFORE, {}, _CLAUDE),
        (
            "preToolUse",
            BEFORE,
            EDIT,
            {"toolName": "edit", "toolArgs": {"path": "/p/a.txt", "old_str": "old", "new_str": "new"}},
        ),
        ("preToolUse", BEFORE, WRITE, {"toolName": "create", "toolArgs": {"path": "/p/a.txt", "file_text": "new\n"}}),
        (
            "postToolUse",
            AFTER,
            {},
            {**_BASH, "toolResult": {"resultType": "success", "textResultForLlm": "a.txt"}},
        ),
        (
            "PostToolUse",
            AFTER,
            {},
            {**_CLAUDE, "tool_result": {"result_type": "success", "text_result_for_llm": "a.txt"}},
        ),
        ("postToolUseFailure", AFTER, FAILURE, {**_BASH, "error": "no such file"}),
        ("userPromptSubmitted", HookEventName.BEFORE_AGENT, {}, {"prompt": "hello"}),
        (
            "agentStop",
            HookEventName.AFTER_AGENT,
            {},
            {"transcriptPath": "", "stopReason": "end_turn", "stop_hook_active": False},
        ),
        (
            "Stop",
            HookEventName.AFTER_AGENT,
            {},
            {"transcript_path": "", "stop_reason": "end_turn", "stop_hook_active": False},
        ),
        ("sessionStart", HookEventName.SESSION_START, {}, {"source": "startup"}),
        ("sessionEnd", HookEventName.SESSION_END, {}, {"reason": "complete"}),
        (
            "PreCompact",
            HookEventName.PRE_COMPRESS,
            {},
            {"transcript_path": "", "trigger": "auto", "custom_instructions": ""},
        ),
    ],
)
async def test_payloads_have_the_fields_of_the_spelling(
    foreign: ForeignProject, event: str, native: HookEventName, fields: dict[str, Any], expected: dict[str, Any]
) -> None:
    foreign.write(FILE, _settings(event, "jq -c . > payload.json"))

    await foreign.fire(native, fields)

    (payload,) = foreign.received()
    is_camel = event[0].islower()
    assert isinstance(payload["timestamp"], int if is_camel else str)
    session, stamp = payload["sessionId" if is_camel else "session_id"], payload["timestamp"]
    base = {"sessionId": session} if is_camel else {"hook_event_name": event, "session_id": session}
    assert list(payload.items()) == list({**base, "timestamp": stamp, "cwd": "/p", **expected}.items())


@pytest.mark.parametrize(
    ("event", "matcher", "call", "matches"),
    [
        ("preToolUse", "bash|edit", SHELL, True),
        ("preToolUse", "bas", SHELL, False),
        ("preToolUse", "ba.*", SHELL, True),
        ("preToolUse", "edit|create", PATCH, True),
        ("preToolUse", "(", SHELL, False),
        ("preToolUse", "Bash", SHELL, False),
        ("PreToolUse", "Bash", SHELL, True),
        ("PreToolUse", "bash", SHELL, True),
        ("PreToolUse", "Edit|Write", PATCH, True),
        ("PreToolUse", "**", SHELL, True),
        ("PreToolUse", "Ba.*", SHELL, True),
        ("PreToolUse", "Task", TASK, True),
    ],
)
async def test_matchers(foreign: ForeignProject, event: str, matcher: str, call: dict[str, Any], matches: bool) -> None:
    foreign.write(FILE, _settings(event, prints("", "no", 2), matcher=matcher))

    assert ("blocked" in await foreign.outcome(BEFORE, call)) is matches


async def test_all_files_of_the_folder_and_all_levels_add_up(foreign: ForeignProject) -> None:
    foreign.write(FILE, _settings("preToolUse", "echo a >> runs"))
    foreign.write(".github/hooks/second.json", _settings("preToolUse", "echo b >> runs"))
    foreign.write(".github/copilot/settings.json", _settings("preToolUse", "echo c >> runs"))
    foreign.write(".copilot/hooks/mine.json", _settings("preToolUse", "echo d >> runs"), home=True)
    foreign.write(".github/hooks/off.json", {"disableAllHooks": True, **_settings("preToolUse", "echo never >> runs")})
    await foreign.fire(BEFORE)
    assert sorted((foreign.root / "runs").read_text().split()) == ["a", "b", "c", "d"]

    foreign.write(".github/copilot/settings.local.json", {"disableAllHooks": True})
    assert await foreign.fire(BEFORE) is None


async def test_hooks_have_a_folder_variables_and_a_program_of_their_own(foreign: ForeignProject) -> None:
    entry = {"exec": "sh", "args": ["-c", "echo $PWD $COLOR $COPILOT_CLI >&2; exit 2"], "cwd": "scripts"}
    foreign.write("scripts/x", "")
    foreign.write(FILE, {"version": 1, "hooks": {"preToolUse": [{**entry, "env": {"COLOR": "red"}}]}})

    assert await foreign.outcome(BEFORE) == {"blocked": f"{foreign.root}/scripts red 1"}


async def test_an_approval_covers_a_script_in_the_folder_of_the_hook(foreign: ForeignProject) -> None:
    foreign.write(FILE, _settings("preToolUse", "./guard.sh", cwd="scripts"))
    script = foreign.write("scripts/guard.sh", "#!/bin/sh\nexit 2")
    script.chmod(0o755)
    protected = ProtectedFiles(foreign.root, foreign.hooks().config)

    assert "blocked" in await foreign.outcome(BEFORE)
    for name in (FILE, ".github/hooks/new.json", "scripts/guard.sh"):
        assert protected.reason(Path(name), frozenset()) is not None
    assert protected.reason(Path(".github/workflows/ci.yml"), frozenset()) is None
    script.write_text("#!/bin/sh\nexit 0")
    assert trust_status(foreign.root, DIALECT).state is TrustState.CHANGED


async def test_a_new_file_in_the_folder_needs_approval(foreign: ForeignProject) -> None:
    foreign.write(FILE, _settings("preToolUse", "true"))
    foreign.hooks()

    foreign.write(".github/hooks/zz.json", _settings("preToolUse", "true"))

    assert trust_status(foreign.root, DIALECT).state is TrustState.CHANGED


@pytest.mark.parametrize(
    ("event", "entry", "words", "command"),
    [
        ("errorOccurred", {"bash": "true"}, "does not happen here", None),
        ("preToolUsed", {"bash": "true"}, "Did you mean `preToolUse`?", None),
        ("sessionStart", {"type": "prompt", "prompt": "hi"}, "hooks of type prompt run only in", "prompt: hi"),
        ("preToolUse", {"type": "http", "url": "https://x"}, "and the call goes ahead", "http: https://x"),
        ("preToolUse", {"powershell": "x"}, "it has no command", None),
        ("preToolUse", {"bash": "x", "matcher": "("}, "so this hook never runs", "x"),
    ],
)
def test_what_cannot_be_honored_is_said(event: str, entry: dict[str, Any], words: str, command: str | None) -> None:
    found, problems = read_definitions(HookSet({event: [entry]}, dialect=DIALECT))

    assert [words in str(each) for each in problems] == [True]
    assert [each.config.command for each in found] == ([] if command is None else [command])


def test_groups_as_claude_code_writes_them_are_read(foreign: ForeignProject) -> None:
    groups = [{"matcher": "Bash", "hooks": [{"type": "command", "command": "true", "timeout": 5}]}]
    foreign.write(FILE, {"version": 1, "hooks": {"PreToolUse": groups}})

    (hook,) = foreign.definitions()

    assert (hook.where, hook.matcher, hook.config.timeout) == ("hooks.PreToolUse[0].hooks[0]", "Bash", 5_000)


def test_names_can_be_translated_back() -> None:
    call = dialect_of(DIALECT).native_call("postToolUseFailure", "edit", {"path": "a", "new_str": "b"})

    assert call is not None
    assert (call.event_name, call.tool_name, call.tool_input) == (
        AFTER,
        "replace",
        {"file_path": "a", "new_string": "b"},
    )
    assert call.fields["tool_response"]["error"]


async def test_hooks_of_a_plugin_get_the_folder_under_all_its_names(foreign: ForeignProject) -> None:
    plugin = foreign.write("plugin/hooks.json", _settings("preToolUse", "env > plugin.env")).parent
    await Hooks.load(foreign.root, dialects=(DIALECT,), plugins=(plugin,)).run_tool("write_file", {}, lambda _: "")

    variables = dict(line.split("=", 1) for line in (foreign.root / "plugin.env").read_text().splitlines())
    names = ("PLUGIN_ROOT", "COPILOT_PLUGIN_ROOT", "CLAUDE_PLUGIN_ROOT")
    assert [variables.get(name) for name in names] == [str(plugin)] * 3
    assert variables["COPILOT_PLUGIN_DATA"]
