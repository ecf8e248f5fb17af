"""``llxprt-hooks migrate``: hooks of other agents, taken over."""

from __future__ import annotations

import json
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pexpect
import pytest

from llxprt_hooks import Config, execute_tool_with_hooks
from llxprt_hooks.cli.main import run_command_line
from llxprt_hooks.commands.migrate.dialects import CLAUDE
from llxprt_hooks.settings import parse
from tests.support.processes import DEADLINE

COMMAND = str(Path(sysconfig.get_path("scripts")) / "llxprt-hooks")

Write: TypeAlias = Callable[[str, Any], Path]


def migrate(*arguments: str) -> int:
    return run_command_line(["migrate", *arguments])


def hook(command: str = "./x.sh", **fields: Any) -> dict[str, Any]:
    return {"type": "command", "command": command, **fields}


def claude(**events: Any) -> dict[str, Any]:
    return {"hooks": events}


def migrated(project: Path) -> Any:
    return parse((project / ".llxprt" / "settings.json").read_text()).to_value()


# Claude Code

CLAUDE_HOOKS = {
    "every event": (
        {name: [{"hooks": [hook(f"./{name}")]}] for name in (
            "PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SessionStart", "SessionEnd", "PreCompact",
            "Notification",
        )},
        {ours: [{"hooks": [hook(f"./{name}")]}] for name, ours in {
            "PreToolUse": "BeforeTool", "PostToolUse": "AfterTool", "UserPromptSubmit": "BeforeAgent",
            "Stop": "AfterAgent", "SessionStart": "SessionStart", "SessionEnd": "SessionEnd",
            "PreCompact": "PreCompress", "Notification": "Notification",
        }.items()},
    ),
    "seconds": (
        {"PreToolUse": [{"hooks": [hook(timeout=10), hook("./y.sh", timeout=0.5)]}]},
        {"BeforeTool": [{"hooks": [hook(timeout=10_000), hook("./y.sh", timeout=500)]}]},
    ),
    "variables": (
        {"PreToolUse": [{"hooks": [hook('"$CLAUDE_PROJECT_DIR"/a ${CLAUDE_PROJECT_DIR}/b $CLAUDE_PROJECT_DIRX')]}]},
        {"BeforeTool": [
            {"hooks": [hook('"$LLXPRT_PROJECT_DIR"/a ${LLXPRT_PROJECT_DIR}/b $CLAUDE_PROJECT_DIRX')]}
        ]},
    ),
    "a matcher that is ignored": (
        {"Stop": [{"matcher": "anything", "hooks": [hook()]}]},
        {"AfterAgent": [{"hooks": [hook()]}]},
    ),
    "a matcher of several words": (
        {"SessionStart": [{"matcher": "startup|compact", "hooks": [hook()]}]},
        {"SessionStart": [{"matcher": "startup", "hooks": [hook()]}, {"matcher": "compress", "hooks": [hook()]}]},
    ),
    "what it says while it runs": (
        {"PreToolUse": [{"matcher": "Bash", "hooks": [hook(statusMessage="Checking…")]}]},
        {"BeforeTool": [{"matcher": "^run_shell_command$", "hooks": [hook(description="Checking…")]}]},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("theirs", "ours"), CLAUDE_HOOKS.values(), ids=CLAUDE_HOOKS)
def test_claude_hooks_are_migrated(theirs: Any, ours: Any, project: Path, write: Write) -> None:
    source = write(".claude/settings.json", {"hooks": theirs})
    before = source.read_bytes()

    assert migrate("--from", "claude", "--yes") == 0

    assert migrated(project) == {"enableHooks": True, "hooks": ours}
    assert source.read_bytes() == before


NO_COUNTERPART = {
    "SubagentStop": (
        claude(SubagentStop=[{"hooks": [hook()]}]),
        ":3:5: `SubagentStop` has no counterpart. There are no subagents here",
    ),
    "PermissionRequest": (claude(PermissionRequest=[{"hooks": [hook()]}]), "to decide about a tool, use BeforeTool"),
    "an event nobody knows": (claude(Frobnicate=[{"hooks": [hook()]}]), "`Frobnicate` has no counterpart"),
    "a prompt": (
        claude(PreToolUse=[{"hooks": [{"type": "prompt", "prompt": "Is that good?"}]}]),
        "a hook of type 'prompt'. Supported types: command",
    ),
    "a tool of an MCP server": (
        claude(PreToolUse=[{"matcher": "mcp__memory__.*", "hooks": [hook()]}]),
        "`mcp__memory__.*` in the matcher 'mcp__memory__.*'. Tools of MCP servers have other names here",
    ),
    "a condition": (
        claude(PreToolUse=[{"hooks": [hook(**{"if": "Bash(git *)"})]}]),
        "a hook with `if`, which is not supported here. Read stdin in the script",
    ),
    "arguments apart": (claude(PreToolUse=[{"hooks": [hook("node", args=["x.js"])]}]), "a hook with `args`"),
    "no command": (
        claude(PreToolUse=[{"hooks": [{"type": "command"}]}]),
        "a hook that cannot be used: it needs `command`",
    ),
    "no hooks": (claude(PreToolUse=[{"matcher": "Bash"}]), "a group without a list of `hooks`"),
    "a list": ({"hooks": []}, "`hooks`, which must be an object, is an array"),
}


@pytest.mark.parametrize(("settings", "message"), NO_COUNTERPART.values(), ids=NO_COUNTERPART)
def test_what_has_no_counterpart_is_left_out_and_named(
    settings: Any, message: str, project: Path, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write(".claude/settings.json", settings)

    assert migrate("--from", "claude", "--yes") == 0

    printed = capsys.readouterr()
    assert message in printed.err
    assert "has no hooks that can be migrated" in printed.err
    assert printed.out == ""
    assert not (project / ".llxprt").exists()


IN_BACKGROUND: dict[str, Any] = {"async": True}

REMARKS = {
    "a variable": (
        hook("${CLAUDE_PLUGIN_ROOT}/x.sh"),
        "`$CLAUDE_PLUGIN_ROOT` in a command. In an extension's hooks.json",
    ),
    "a doubtful timeout": (hook(timeout=5000), "`timeout` of 5000 seconds: if milliseconds were meant, write 5000"),
    "no time": (hook(timeout="soon"), '`timeout` is left out: "soon" is not a valid timeout'),
    "async": (hook(**IN_BACKGROUND), "`async` of a hook is left out. Run the script in the background"),
    "address": (hook(url="https://a.b"), "`url` of a hook is left out. To send events to an address"),
    "unknown": (hook(colour="red"), "`colour` of a hook is left out. It is not supported here."),
}


@pytest.mark.parametrize(("given", "message"), REMARKS.values(), ids=REMARKS)
def test_what_deserves_a_look_is_pointed_out(
    given: Any, message: str, project: Path, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write(".claude/settings.json", claude(PreToolUse=[{"hooks": [given]}]))

    assert migrate("--from", "claude", "--yes") == 0

    assert message in capsys.readouterr().err
    assert len(migrated(project)["hooks"]["BeforeTool"]) == 1


def test_differences_are_reported_for_the_events_in_use(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write(".claude/settings.json", claude(PostToolUse=[{"hooks": [hook()]}]))

    migrate("--from", "claude")

    told = capsys.readouterr().err
    assert "exit code 2 has no effect once a tool has run" in told
    assert "permissionDecision" not in told


CHATTER = "plain text on stdout goes to the model"


@pytest.mark.parametrize("event", CLAUDE.events)
def test_chatter_is_warned_of_where_it_would_reach_the_model(
    event: str, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write(".claude/settings.json", claude(**{event: [{"hooks": [hook()]}]}))

    migrate("--from", "claude")

    assert (CHATTER in " ".join(capsys.readouterr().err.split())) is (event in {"PreToolUse", "PostToolUse"})


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse"])
@pytest.mark.parametrize(
    ("command", "read"),
    [
        ("echo 1 file formatted", "written\n\n[System] 1 file formatted"),
        ("echo 1 file formatted >&2", "written"),
        ("echo 1 file formatted >/dev/null", "written"),
    ],
)
async def test_chatter_reaches_the_model_unless_it_is_redirected(
    event: str, command: str, read: str, project: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(".claude/settings.json", claude(**{event: [{"matcher": "Write", "hooks": [hook(command)]}]}))
    migrate("--from", "claude", "--yes")
    monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", "1")

    result = await execute_tool_with_hooks(Config.load(project), "write_file", {}, lambda _: "written")

    assert result.llm_content == read


def test_names_in_scripts_are_found(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write(".claude/hooks/check.py", 'import json\n\nif call["tool_name"] == "Write":\n    deny()\n')
    write(".claude/settings.json", claude(PreToolUse=[{"hooks": [hook("$CLAUDE_PROJECT_DIR/.claude/hooks/check.py")]}]))

    migrate("--from", "claude")

    assert ".claude/hooks/check.py:3:25: `Write`: the tool is called `write_file` here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("script", "column"),
    [
        ("jq -r .tool_response.filePath\n", 8),
        ('call["tool_response"]["stdout"]\n', 7),
        ('call.get("tool_response", {}).get("success")\n', 11),
        ('call["tool_response"]["llmContent"]\n', None),
    ],
)
def test_fields_of_results_in_scripts_are_found(
    write: Write, capsys: pytest.CaptureFixture[str], script: str, column: int | None
) -> None:
    write(".claude/hooks/format", f"#!/usr/bin/env x\n{script}")
    write(".claude/settings.json", claude(PostToolUse=[{"hooks": [hook("$CLAUDE_PROJECT_DIR/.claude/hooks/format")]}]))

    migrate("--from", "claude")

    told = capsys.readouterr().err
    assert ("`tool_response`: the result" in told) is (column is not None)
    assert column is None or f".claude/hooks/format:2:{column}: `tool_response`: the result is in its field" in told


def test_hooks_that_are_off_are_not_turned_on(project: Path, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write(".claude/settings.json", {"disableAllHooks": True, **claude(Stop=[{"hooks": [hook()]}])})

    migrate("--from", "claude", "--yes")

    assert migrated(project) == {"hooks": {"AfterAgent": [{"hooks": [hook()]}]}}
    assert "hooks are off here" in capsys.readouterr().err


# Gemini CLI


def test_gemini_hooks_are_migrated(project: Path, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    group = {
        "matcher": "write_file|grep_search",
        "sequential": True,
        "hooks": [hook("$GEMINI_PROJECT_DIR/x.sh", name="check", timeout=5000, description="looks at it")],
    }
    gemini = {
        "hooksConfig": {"enabled": True, "disabled": ["check"]},
        "hooks": {
            "BeforeTool": [group],
            "SessionStart": [{"matcher": "startup", "hooks": [hook()]}],
            "enabled": True,
            "notifications": False,
        },
    }
    write(".gemini/settings.json", gemini)

    assert migrate("--from", "gemini", "--yes") == 0

    expected = {**group, "matcher": "write_file|search_file_content"}
    expected["hooks"] = [
        hook("$LLXPRT_PROJECT_DIR/x.sh", name="check", timeout=5000, description="looks at it"),
    ]
    assert migrated(project) == {
        "enableHooks": True,
        "hooks": {"BeforeTool": [expected], "SessionStart": [{"matcher": "startup", "hooks": [hook()]}]},
        "hooksConfig": {"disabled": ["check"]},
    }
    told = capsys.readouterr().err
    assert "`systemMessage` goes to the model here" in told
    assert "SessionStart: what it prints does not reach the model" in told


def test_gemini_hooks_that_are_off_are_not_turned_on(project: Path, write: Write) -> None:
    write(".gemini/settings.json", {"hooks": {"enabled": False, "AfterAgent": [{"hooks": [hook()]}]}})

    migrate("--from", "gemini", "--yes")

    assert "enableHooks" not in migrated(project)


# The file that is written


COMMENTED = """{
    // how I like it
    "theme": "dark",
    "hooks": {
        "BeforeTool": [
            // mine
            { "hooks": [{ "type": "command", "command": "./mine.sh" }] },
        ],
    },
}
"""

DIFF = """--- a/.llxprt/settings.json
+++ b/.llxprt/settings.json
@@ -5,6 +5,8 @@
         "BeforeTool": [
             // mine
             { "hooks": [{ "type": "command", "command": "./mine.sh" }] },
+            { "matcher": "^write_file$", "hooks": [{ "type": "command", "command": "./x.sh" }] },
         ],
     },
+    "enableHooks": true,
 }
"""


def test_without_yes_the_difference_is_shown_and_nothing_written(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    target = write(".llxprt/settings.json", COMMENTED)
    write(".claude/settings.json", claude(PreToolUse=[{"matcher": "Write", "hooks": [hook()]}]))

    assert migrate("--from", "claude") == 0

    printed = capsys.readouterr()
    assert printed.out == DIFF
    assert "Nothing was written. To write the changes, pass --yes." in printed.err
    assert target.read_text() == COMMENTED


def test_the_difference_is_a_patch(project: Path, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    target = write(".llxprt/settings.json", COMMENTED.rstrip("\n"))
    write(".claude/settings.json", claude(PreToolUse=[{"matcher": "Write", "hooks": [hook()]}]))
    migrate("--from", "claude")
    patch = capsys.readouterr().out

    subprocess.run(["git", "apply", "-"], input=patch, text=True, cwd=project, check=True)

    applied = target.read_text()
    write(".llxprt/settings.json", COMMENTED.rstrip("\n"))
    migrate("--from", "claude", "--yes")
    assert applied == target.read_text()


def test_doing_it_again_changes_nothing(project: Path, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    no_equivalent = {"type": "prompt", "prompt": "x"}
    groups = [{"matcher": "startup|clear", "hooks": [hook(), no_equivalent]}]
    write(".claude/settings.json", claude(SessionStart=groups))
    migrate("--from", "claude", "--yes")
    first = (project / ".llxprt" / "settings.json").read_bytes()
    capsys.readouterr()

    assert migrate("--from", "claude", "--yes") == 0

    printed = capsys.readouterr()
    assert (project / ".llxprt" / "settings.json").read_bytes() == first
    assert printed.out == ""
    assert printed.err.startswith("Nothing to do: ")
    assert len(printed.err.splitlines()) == 1


async def test_migrated_hooks_run(project: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write(".claude/hooks/no.sh", "#!/bin/sh\necho 'not today' >&2\nexit 2\n").chmod(0o755)
    command = '"$CLAUDE_PROJECT_DIR"/.claude/hooks/no.sh'
    write(".claude/settings.json", claude(PreToolUse=[{"matcher": "Write|Edit", "hooks": [hook(command, timeout=5)]}]))
    migrate("--from", "claude", "--yes")
    monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", "1")

    system = Config.load(project).get_hook_system()
    assert system is not None
    await system.initialize()
    written = await system.get_event_handler().fire_before_tool_event("write_file", {})
    read = await system.get_event_handler().fire_before_tool_event("read_file", {})

    assert written.final_output is not None
    assert written.final_output.get_effective_reason() == "not today"
    assert read.final_output is None


# Which files


def test_migrate_with_explicit_file_and_project(project: Path, write: Write, tmp_path: Path) -> None:
    source = tmp_path / "their settings.json"
    source.write_text(json.dumps(claude(Stop=[{"hooks": [hook()]}])))
    other = tmp_path / "other"
    other.mkdir()

    assert migrate("--from", "claude", str(source), "-C", str(other), "--yes") == 0

    assert (other / ".llxprt" / "settings.json").exists()
    assert not (project / ".llxprt").exists()


def test_in_the_home_folder_it_is_the_users_own_settings(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text(json.dumps(claude(Stop=[{"hooks": [hook()]}])))

    assert migrate("--from", "claude", "-C", str(home), "--yes") == 0

    assert Config.load("/").enable_hooks
    assert "llxprt-hooks trust" not in capsys.readouterr().err


def test_a_second_file_is_mentioned(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write(".claude/settings.json", {})
    write(".claude/settings.local.json", {})

    migrate("--from", "claude")

    assert "llxprt-hooks migrate --from claude .claude/settings.local.json" in capsys.readouterr().err


FAILURES = {
    "no file": ({}, "there is no file .claude/settings.json. Pass the path of the Claude Code settings file"),
    "no file, and a broken target": ({".llxprt/settings.json": "{"}, "there is no file .claude/settings.json. Pass"),
    "a broken source": ({".claude/settings.json": "{"}, "settings.json:1:2: expected"),
    "a broken target": ({".claude/settings.json": "{}", ".llxprt/settings.json": "{"}, "settings.json:1:2: expected"),
    "no place in the target": (
        {".claude/settings.json": claude(Stop=[{"hooks": [hook()]}]), ".llxprt/settings.json": '{"hooks": 1}'},
        "`hooks` must be an object, found a number",
    ),
}


@pytest.mark.parametrize(("files", "message"), FAILURES.values(), ids=FAILURES)
def test_failures(files: dict[str, Any], message: str, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    written = {write(name, content): None for name, content in files.items()}
    before = {file: file.read_bytes() for file in written}

    assert migrate("--from", "claude", "--yes") == 1

    assert message in capsys.readouterr().err
    assert {file: file.read_bytes() for file in written} == before


def test_a_link_out_of_the_project_is_not_followed(
    project: Path, write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(".claude/settings.json", claude(Stop=[{"hooks": [hook()]}]))
    outside = tmp_path / "outside"
    outside.mkdir()
    (project / ".llxprt").symlink_to(outside)

    assert migrate("--from", "claude", "--yes") == 1

    assert "is a link to a file outside" in capsys.readouterr().err
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [[], ["--from", "cursor"], ["--from", "claude", "-C", "/no/such"], ["--from", "claude", "gone.json"]],
    ids=str,
)
def test_wrong_usage(arguments: list[str]) -> None:
    assert migrate(*arguments) == 64


@pytest.mark.parametrize("no_color", ["", "1"])
def test_on_a_terminal_the_difference_has_colour(no_color: str, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write(".claude/settings.json", claude(Stop=[{"hooks": [hook()]}]))
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("COLUMNS", raising=False)
    child = pexpect.spawn(
        COMMAND, ["migrate", "--from", "claude"], encoding="utf-8", timeout=DEADLINE, dimensions=(60, 100)
    )
    screen = str(child.read())
    child.close()

    assert child.exitstatus == 0
    assert ('\x1b[32m+  "enableHooks": true,' in screen) is not bool(no_color)
