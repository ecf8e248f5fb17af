"""``llxprt-hooks validate`` and ``schema`` as they are installed: output, exit status, terminals."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pexpect
import pytest

from tests.commands.validate.marks import DiagnosedProject, command, settings
from tests.support import cli
from tests.support.cli import COMMAND, Run, ended
from tests.support.processes import DEADLINE

BROKEN = """{
  "enableHooks": true,
  "hooks": {
    "PreToolUse": [],
    "AfterTool": [
      { "hooks": [{ "type": "command", "command": "true", "timeout": 600 }] }
    ]
  }
}
"""
WARNED = BROKEN.replace("PreToolUse", "BeforeTool")
CLEAN = WARNED.replace("600", "6000")


def run(place: DiagnosedProject, *arguments: str, cwd: Path | None = None, **variables: str) -> Run:
    environment = {**os.environ, "COLUMNS": "", **variables}
    del environment["COLUMNS"]
    return cli.run(*arguments, cwd=cwd or place.root, env=environment)


def on_terminal(place: DiagnosedProject, *arguments: str, columns: int = 100, **variables: str) -> str:
    """What a terminal of that width is sent."""
    environment = {**os.environ, "TERM": "xterm-256color", **variables}
    environment.pop("COLUMNS", None)
    if "NO_COLOR" not in variables:
        environment.pop("NO_COLOR", None)
    child = pexpect.spawn(
        COMMAND,
        list(arguments),
        cwd=str(place.root),
        env=environment,
        dimensions=(40, columns),
        encoding="utf-8",
        timeout=DEADLINE,
    )
    return ended(child)[0]


def test_for_people(place: DiagnosedProject) -> None:
    place.write(place.project_file, BROKEN)

    ran = run(place, "validate")

    assert ran.stderr == ""
    assert ran.stdout == (
        """\
.llxprt/settings.json:4:5: error: unknown event `PreToolUse` [unknown-event]
   4 |     "PreToolUse": [],
     |     ^^^^^^^^^^^^
       why: Hooks under an unknown event never run. Names are case-sensitive.
       fix: Did you mean `BeforeTool`? It is the counterpart of Claude Code's `PreToolUse`.

.llxprt/settings.json:6:70: warning: 600 is 0.6 s, which looks like a number of seconds [timeout-seconds]
   6 |       { "hooks": [{ "type": "command", "command": "true", "timeout": 600 }] }
     |                                                                      ^^^
       why: Timeouts are in milliseconds here, in seconds in Claude Code; if a hook times out, the call goes ahead.
       fix: For 600 s write 600000.

Found 1 error and 1 warning; checked .llxprt/settings.json.
"""
    )


@pytest.mark.parametrize(
    ("fields", "consequence"),
    [
        ({"failClosed": True}, "if a hook times out, `failClosed` blocks the call."),
        ({}, "if a hook times out, the call goes ahead."),
        ({"failClosed": True, "mode": "observe"}, "if a hook times out, the call goes ahead."),
    ],
)
def test_a_short_timeout_is_said_to_block_where_it_does(
    place: DiagnosedProject, fields: dict[str, object], consequence: str
) -> None:
    hook = {"type": "command", "command": "true", "timeout": 600, **fields}
    place.write(place.project_file, json.dumps({"enableHooks": True, "hooks": {"BeforeTool": [{"hooks": [hook]}]}}))

    diagnostics = json.loads(run(place, "validate", "--json").stdout)["diagnostics"]

    [why] = [each["why"] for each in diagnostics if each["code"] == "timeout-seconds"]
    assert why.endswith(consequence)


def test_for_programs(place: DiagnosedProject) -> None:
    place.write(place.project_file, BROKEN)

    ran = run(place, "validate", "--json")

    assert ran.stderr == ""
    told = json.loads(ran.stdout)
    assert (told["errors"], told["warnings"], told["hints"]) == (1, 1, 0)
    assert told["files"] == [str(place.project_file)]
    first, second = told["diagnostics"]
    assert first == {
        "file": str(place.project_file),
        "line": 4,
        "column": 5,
        "end_line": 4,
        "end_column": 17,
        "severity": "error",
        "code": "unknown-event",
        "message": "unknown event `PreToolUse`",
        "why": "Hooks under an unknown event never run. Names are case-sensitive.",
        "fix": "Did you mean `BeforeTool`? It is the counterpart of Claude Code's `PreToolUse`.",
        "text": '"PreToolUse"',
    }
    assert (second["line"], second["column"], second["severity"]) == (6, 70, "warning")


@pytest.mark.parametrize(
    ("text", "arguments", "status"),
    [
        (BROKEN, [], 1),
        (BROKEN, ["--json"], 1),
        (BROKEN, ["--strict"], 1),
        (WARNED, [], 0),
        (WARNED, ["--strict"], 1),
        (WARNED, ["--strict", "--json"], 1),
        (CLEAN, ["--strict"], 0),
        ("{", [], 1),
    ],
)
def test_the_exit_status_is_fit_for_ci(place: DiagnosedProject, text: str, arguments: list[str], status: int) -> None:
    place.write(place.project_file, text)

    assert run(place, "validate", *arguments).status == status


@pytest.mark.parametrize(
    "arguments", [["no-such-file.json"], ["."], ["--nonsense"], ["-C", "no-such-folder"], ["a", "b"]]
)
def test_wrong_usage(place: DiagnosedProject, arguments: list[str]) -> None:
    ran = run(place, "validate", *arguments)

    assert ran.status == 64
    assert ran.stdout == ""
    assert "Usage" in ran.stderr


def test_nothing_to_check(place: DiagnosedProject) -> None:
    ran = run(place, "validate")

    assert ran.status == 0
    assert ran.stdout.startswith("No settings file found. Looked for .llxprt/settings.json, ")
    assert str(place.user_file) in ran.stdout
    assert ran.stdout.endswith(". Run `llxprt-hooks init` to create a first hook.\n")


def test_nothing_to_complain_of(place: DiagnosedProject) -> None:
    place.write(place.project_file, CLEAN)

    assert run(place, "validate").stdout == "No problems found in .llxprt/settings.json.\n"


def test_another_project(place: DiagnosedProject) -> None:
    place.write(place.project_file, BROKEN)

    ran = run(place, "validate", "-C", str(place.root), cwd=place.home)

    assert ran.status == 1
    assert ran.stdout.startswith(f"{place.project_file}:4:5: error:")


def test_a_single_file_is_seen_from_its_own_project(place: DiagnosedProject) -> None:
    place.write("check.sh", "#!/bin/sh\n", 0o755)
    place.write(place.project_file, command("./check.sh"))

    assert run(place, "validate", str(place.project_file), cwd=place.home).status == 0
    elsewhere = run(place, "validate", str(place.project_file), "-C", str(place.home), cwd=place.home)
    assert "[script-missing]" in elsewhere.stdout


def test_a_tool_of_ones_own(place: DiagnosedProject) -> None:
    text = CLEAN.replace('{ "hooks"', '{ "matcher": "^launch_rocket$", "hooks"')
    place.write(place.project_file, text)

    assert (
        "hint: `^launch_rocket$` does not match any known tool [matcher-of-own-tool]" in run(place, "validate").stdout
    )
    assert run(place, "validate", "--strict", "--for", "langchain").status == 0
    assert "matcher" not in run(place, "validate", "--tool", "launch_rocket").stdout


def test_untrusted_hooks_are_reported(place: DiagnosedProject) -> None:
    place.write(place.project_file, CLEAN)

    ran = run(place, "validate", LLXPRT_TRUST_PROJECT_HOOKS="")

    assert ran.status == 0
    assert "[not-trusted]" in ran.stdout
    assert "llxprt-hooks trust" in ran.stdout


def test_a_pipe_gets_no_colour_and_a_diagnostic_one_line(place: DiagnosedProject) -> None:
    place.write(place.project_file, settings(f'"{"Whenever" * 8}": []'))

    out = run(place, "validate").stdout

    assert "\x1b" not in out
    assert re.search(r"(?m)^\.llxprt/settings\.json:4:1: error: .*\[unknown-event\]$", out)


@pytest.mark.parametrize("columns", [30, 40, 80])
def test_a_narrow_terminal_is_not_overrun(place: DiagnosedProject, columns: int) -> None:
    place.write(place.project_file, BROKEN)

    lines = on_terminal(place, "validate", columns=columns, NO_COLOR="1").split("\r\n")

    assert max(map(len, lines)) <= columns
    marked = next(line for line in lines if line.rstrip().endswith("^^^") and "^^^^" not in line)
    above = lines[lines.index(marked) - 1]
    assert above[marked.index("^") : marked.index("^") + 3] == "600"


def test_the_mark_is_under_the_mistake_after_tabs_and_wide_letters(place: DiagnosedProject) -> None:
    place.write(place.project_file, '{\t"漢字": 1, "hooks": 7 }')

    lines = run(place, "validate").stdout.splitlines()

    mark = next(line for line in lines if "^" in line)
    above = lines[lines.index(mark) - 1]
    # Each of the two letters takes two cells, so that the mark is two characters further to the right.
    assert above.index("7") + 2 == mark.index("^")


def test_what_a_file_says_cannot_command_the_terminal(place: DiagnosedProject) -> None:
    hostile = "\\u001b[2J\\u0007\\r\\nforged:1:1\\u202e"
    raw = '"\x9b31m\u202e"'
    place.write(
        place.project_file, f'{{ "enableHooks": true, "hooks": {{ "{hostile}": [], {raw}: [], "SessionStart": [] }} }}'
    )
    place.write(place.user_file, '{ "\x1b[2J" }')

    for out in (run(place, "validate").stdout, on_terminal(place, "validate", NO_COLOR="1")):
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e]", out)
        assert "\nforged" not in out


def test_a_huge_line_is_shown_in_part(place: DiagnosedProject) -> None:
    place.write(place.project_file, f'{{ "x": "{"y" * 300_000}", "hooks": 7, "z": "{"y" * 300_000}" }}')

    out = run(place, "validate").stdout

    assert len(out) < 2000
    assert "…" in out
    assert '"hooks": 7, "z"' in out


def test_the_schema(place: DiagnosedProject) -> None:
    ran = run(place, "schema")

    assert ran.status == 0
    assert ran.stderr == ""
    assert json.loads(ran.stdout)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert "json.schemas" in run(place, "schema", "--help").stdout


def test_nothing_of_the_project_is_run_though_the_search_path_leads_into_it(place: DiagnosedProject) -> None:
    """Relative folders in PATH, such as ./node_modules/.bin, and an empty entry, which is the working directory."""
    ran = place.root / "ran"
    for file in (place.root / folder / name for folder in ("", "bin") for name in ("bash", "sh", "dash", "check")):
        place.write(file, f"#!/bin/sh\ntouch {ran}\n")
        file.chmod(0o755)
    script = place.write(place.root / "hooks" / "x.sh", "#!/bin/bash\necho fine\n")
    script.chmod(0o755)
    commands = ("check --all; fi", "nonesuch", "bash hooks/x.sh", "./hooks/x.sh && true", "dash hooks/x.sh")
    hooks = [{"type": "command", "command": each} for each in commands]
    place.write(place.project_file, json.dumps({"enableHooks": True, "hooks": {"BeforeTool": [{"hooks": hooks}]}}))

    done = run(place, "validate", PATH=f"./bin::bin:{os.environ['PATH']}")

    assert "cannot parse" in done.stdout + done.stderr or "syntax" in done.stdout + done.stderr
    assert not ran.exists()


@pytest.mark.parametrize("profile", ["standard", "full"])
def test_effects_that_an_integration_does_not_have(profile: str, place: DiagnosedProject) -> None:
    settings = {**json.loads(CLEAN.replace("AfterTool", "AfterAgent")), "hooksConfig": {"profile": profile}}
    place.write(place.project_file, json.dumps(settings))
    checked = run(place, "validate", "--for", "adk", ".llxprt/settings.json").stdout
    assert ("lost-effect" in checked) is (profile == "full")
    assert ("some effects of AfterAgent hooks are not available: a plugin cannot" in checked) is (profile == "full")


@pytest.mark.parametrize(
    ("integration", "profile"), [("langchain", "full"), ("langchain", "standard"), ("adk", "full")]
)
def test_an_answer_to_a_question_that_was_asked_before(integration: str, profile: str, place: DiagnosedProject) -> None:
    place.write(
        place.root / "hooks" / "fine.sh", """echo '{"hookSpecificOutput": {"permissionDecision": "allow"}}'\n"""
    )
    settings = json.loads(CLEAN.replace("AfterTool", "BeforeTool"))
    hooks = [{"type": "command", "command": "sh hooks/fine.sh"}]
    settings = {**settings, "hooks": {"BeforeTool": [{"hooks": hooks}]}, "hooksConfig": {"profile": profile}}
    place.write(place.project_file, json.dumps(settings))
    checked = run(place, "validate", "--for", integration, ".llxprt/settings.json").stdout
    assert ("lost-effect" in checked) is ((integration, profile) == ("langchain", "full"))


def test_for_an_integration(place: DiagnosedProject) -> None:
    place.write(place.project_file, CLEAN.replace("AfterTool", "AfterModel"))
    assert "unsupported-event" not in run(place, "validate", ".llxprt/settings.json").stdout
    checked = run(place, "validate", "--for", "mcp-proxy", "--strict", ".llxprt/settings.json")
    assert "hooks for AfterModel will not run: an MCP server does not see the model" in checked.stdout
    assert checked.status == 1
    assert run(place, "validate", "--for", "nothing").status == 64
    place.write(place.project_file, CLEAN.replace("AfterTool", "BeforeModel"))
    checked = run(place, "validate", "--for", "mcp-proxy", ".llxprt/settings.json")
    assert "hooks for BeforeModel will run only for what the server asks the client's model or user" in checked.stdout


def test_sentences_that_a_hook_will_not_get_are_found(place: DiagnosedProject) -> None:
    def hooks(*streams: str) -> str:
        each = [{"type": "command", "command": f"cat {n}", "stream": stream} for n, stream in enumerate(streams)]
        settings = {"enableHooks": True, "hooks": {"AfterModel": [{"hooks": each}]}}
        place.write(place.project_file, json.dumps(settings))
        given = ("validate", "--for", "pydantic-ai") if len(streams) == 1 else ("validate",)
        return run(place, *given, ".llxprt/settings.json").stdout

    assert "`stream` has no effect: pydantic-ai" in hooks("sentences")
    assert "`stream` has no effect: another AfterModel hook" in hooks("sentences", "whole")
    assert "stream-no-effect" not in hooks("sentences", "sentences")
