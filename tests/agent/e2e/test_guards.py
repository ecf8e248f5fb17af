"""What a hostile model tries against its guards in a run: arguments, protected files, secrets, terminals."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pexpect
import pytest

from tests.support.cli import COMMAND
from tests.support.gemini import answer, call
from tests.support.processes import DEADLINE

if TYPE_CHECKING:
    from tests.support.agent import AgentProject

# Arguments.

NESTED: list[Any] = []
for _ in range(300):
    NESTED = [NESTED]

BAD_ARGUMENTS: dict[str, tuple[dict[str, Any], str]] = {
    "undeclared": ({"command": "touch pwned", "x": "y"}, "run_shell_command has no parameter `x`"),
    "undeclared null": ({"command": "touch pwned", "x": None}, "no parameter `x`"),
    "nested": ({"command": "touch pwned", "x": NESTED}, "no parameter `x`"),
    "nested in a declared one": ({"command": "touch pwned", "description": NESTED}, "but got an array"),
    "lone surrogate": ({"command": "touch pwned; : \udc80"}, "lone surrogate"),
    "lone surrogate in a name": ({"command": "touch pwned", "\udc80": ""}, "no parameter `\\udc80`"),
    "wrong type": ({"command": ["touch", "pwned"]}, "expects a string as `command`"),
    "missing": ({"description": "x"}, "needs the string `command`"),
    "long name": ({"command": "touch pwned", "x" * 100_000: ""}, "has no parameter `xxx"),
}


@pytest.mark.parametrize(("arguments", "told"), BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_undeclared_or_invalid_arguments_are_an_error_and_fire_no_event(
    project: AgentProject, arguments: dict[str, Any], told: str
) -> None:
    project.configure(
        BeforeTool=project.hook("before"), AfterTool=project.hook("after"), Notification=project.hook("notification")
    )
    run = project.play("-y", "-o", "json", answers=[answer(call("run_shell_command", **arguments)), answer("Done.")])
    assert run.statuses == ["error"]
    assert told in run.calls[0]["result"]
    assert len(run.calls[0]["result"]) < 1000
    assert run.payloads("before") + run.payloads("after") + run.payloads("notification") == []
    assert not (project.root / "pwned").exists()


@pytest.mark.requirement("HOOK-216")
def test_an_argument_that_a_hook_adds_is_not_passed_to_the_tool(project: AgentProject) -> None:
    project.configure(BeforeTool=project.hook("before", {"hookSpecificOutput": {"tool_input": {"added": 1}}}))
    run = project.play("-y", "-o", "json", answers=[answer(call("glob", pattern="*")), answer("Done.")])
    assert run.statuses == ["success"]


def test_an_argument_that_a_hook_spoils_is_an_error(project: AgentProject) -> None:
    spoiled = {"hookSpecificOutput": {"tool_input": {"file_path": 7}}}
    project.configure(BeforeTool=project.hook("before", spoiled), AfterTool=project.hook("after"))
    asked = answer(call("write_file", file_path="a.txt", content="x"))
    run = project.play("-y", "-o", "json", answers=[asked, answer("Done.")])
    assert run.statuses == ["error"]
    assert "expects a string as `file_path`" in run.calls[0]["result"]
    assert run.payloads("after") == []


# Protected files.

PROTECTED = [
    ".llxprt/settings.json",
    ".llxprt/hooks/new.py",
    ".LLXPRT/hooks/new.py",
    ".config/llxprt-code/settings.json",
    "x/../.llxprt/new",
    "./.git/hooks/pre-commit",
    ".git",
    ".gi\u200dt/config",
    ".git./config",
    "sub/.git/config",
    "link/new.py",
    ".llxprt/more/new.py",
    "script-link",
    "scripts/check.sh",
    "scripts/not_yet.sh",
    "SCRIPTS/CHECK.SH",
    "real.sh",
    "dotfiles.json",
]


def guarded(project: AgentProject) -> None:
    """A project with hooks of its own and of the user, in files that are reached in several ways."""
    project.write("real.sh", "exit 0\n", 0o755)
    (project.root / "scripts").mkdir()
    (project.root / "scripts" / "check.sh").symlink_to("../real.sh")
    (project.root / "script-link").symlink_to("scripts/check.sh")
    hook = {"type": "command", "command": "./scripts/check.sh; ./scripts/not_yet.sh || true"}
    project.write("dotfiles.json", {"enableHooks": True, "hooks": {"BeforeTool": [{"hooks": [hook]}]}}, 0o600)
    (project.home / ".llxprt").mkdir(parents=True, exist_ok=True)
    (project.home / ".llxprt" / "settings.json").symlink_to(project.root / "dotfiles.json")
    (project.root / ".llxprt").mkdir()
    (project.root / "link").symlink_to(".llxprt")
    (project.root / "dotllxprt").mkdir()
    (project.root / ".llxprt" / "more").symlink_to("../dotllxprt")


@pytest.mark.parametrize("mode", ["auto_edit", "yolo"])
def test_protected_files_are_not_written_where_nobody_can_be_asked(project: AgentProject, mode: str) -> None:
    guarded(project)
    before = {str(file): file.read_bytes() for file in project.root.rglob("*") if file.is_file()}
    asked = [call("write_file", file_path=path, content="#!/bin/sh\ntouch pwned\n") for path in PROTECTED]
    asked += [call("replace", file_path=path, old_string="", new_string="touch pwned\n") for path in PROTECTED]
    asked += [call("replace", file_path="real.sh", old_string="exit 0", new_string="touch pwned")]
    run = project.play("-o", "json", "--approval-mode", mode, answers=[answer(asked), answer("Done.")])
    assert [each["args"]["file_path"] for each in run.calls if each["status"] != "error"] == []
    for each in run.calls:
        assert "is protected (" in each["result"]
        assert "in every approval mode it is written only if the user approves" in each["result"]
    assert {str(file): file.read_bytes() for file in project.root.rglob("*") if file.is_file()} == before


def test_other_files_are_written_as_before(project: AgentProject) -> None:
    guarded(project)
    paths = [".gitignore", ".github/workflows/a.yml", "git/config", "llxprt/x", "scripts/other.sh", "a/b/c.txt", "...x"]
    asked = [call("write_file", file_path=path, content="x") for path in paths]
    run = project.play("-o", "json", "-y", answers=[answer(asked), answer("Done.")])
    assert run.statuses == ["success"] * len(paths)


def test_a_hard_link_to_a_protected_file_is_protected(project: AgentProject) -> None:
    guarded(project)
    os.link(project.root / "real.sh", project.root / "harmless.txt")
    asked = answer(call("write_file", file_path="harmless.txt", content="x"))
    run = project.play("-o", "json", "-y", answers=[asked, answer("Done.")])
    assert run.statuses == ["error"]
    assert (project.root / "real.sh").read_text() == "exit 0\n"


def test_the_users_settings_are_protected_if_the_project_is_the_home_directory(project: AgentProject) -> None:
    (project.root / ".llxprt" / "hooks").mkdir(parents=True)
    asked = answer(call("write_file", file_path=".llxprt/hooks/x.py", content="x"))
    run = project.play("-o", "json", "-y", answers=[asked, answer("Done.")], HOME=str(project.root))
    assert run.statuses == ["error"]


# Asking.


@pytest.mark.requirement("HOOK-182", "HOOK-203")
@pytest.mark.parametrize("decision", [{"decision": "ask"}, {"hookSpecificOutput": {"permissionDecision": "ask"}}])
@pytest.mark.parametrize(("arguments", "shell"), [([], "error"), (["-y"], "success")])
def test_ask_asks_nobody_in_any_mode(
    project: AgentProject, arguments: list[str], shell: str, decision: dict[str, Any]
) -> None:
    """Only the approval mode decides whether a person is asked: with ``-y`` about nothing, else about the shell."""
    project.configure(BeforeTool=project.hook("before", decision), Notification=project.hook("asked"))
    calls = [call("glob", pattern="*"), call("run_shell_command", command="true")]
    run = project.play("-o", "json", *arguments, answers=[answer(calls), answer("Done.")])
    assert run.statuses == ["success", shell]
    assert [each["details"]["tool_name"] for each in run.payloads("asked")] == ["run_shell_command"] * (not arguments)


# Secrets and marks in the environment.

SHOW = 'echo "$LLXPRT_AGENT:$GEMINI_API_KEY:$GOOGLE_API_KEY:$GOOGLE_APPLICATION_CREDENTIALS:$OTHER"'
SECRETS = {"GEMINI_API_KEY": "k1", "GOOGLE_API_KEY": "k2", "GOOGLE_APPLICATION_CREDENTIALS": "k3", "OTHER": "o"}

RULES: dict[str, tuple[dict[str, Any] | None, str, str]] = {
    "no rule": (None, "1:k1:k2:k3:o", "1::::o"),
    "deny": ({"deny": ["OTHER"]}, "1:k1:k2:k3:", "1::::"),
    "allow by name": ({"allow": ["*", "GEMINI_API_KEY"]}, "1:k1:k2:k3:o", "1:k1:::o"),
    "allow little": ({"allow": ["PATH"]}, "1::::", "1::::"),
    "denied mark": ({"deny": ["LLXPRT_AGENT", "OTHER"]}, "1:k1:k2:k3:", "1::::"),
}


@pytest.mark.parametrize(("rule", "of_hook", "of_tool"), RULES.values(), ids=RULES)
def test_what_the_agent_starts_is_marked_and_the_shell_has_no_credentials(
    project: AgentProject, rule: dict[str, Any] | None, of_hook: str, of_tool: str
) -> None:
    hook = {"type": "command", "command": f"{SHOW} > {project.note('environment')}"}
    config = {} if rule is None else {"hooksConfig": {"environment": rule}}
    project.put("user", {"enableHooks": True, "hooks": {"BeforeTool": [{"hooks": [hook]}]}, **config})
    asked = answer(call("run_shell_command", command=SHOW))
    run = project.play("-y", "-o", "json", answers=[asked, answer("Done.")], **SECRETS)
    assert project.notes("environment") == [of_hook]
    assert of_tool in run.calls[0]["result"].splitlines()


# Terminals.

EVIL = (
    "\x1b]52;c;Y3VybA==\x07\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\x85\r\u202e\u2066\u200b\u200e\u061c\u2028\u2029"
    "\ufeff\U000e0041\u00ad\u3164"
)
RAW = set(EVIL) - set("]52;c;Y3VybA==]0;owned[2J31m")


def hostile(project: AgentProject) -> list[Any]:
    name = f"hook{EVIL}"
    blocking = f"cat > /dev/null; printf '%s' 'because {EVIL}' >&2; exit 2".replace("\x00", "")
    project.put(
        "user",
        {
            "enableHooks": True,
            "hooks": {
                "BeforeTool": [{"matcher": "glob", "hooks": [{"type": "command", "name": name, "command": blocking}]}],
                "AfterTool": [
                    {"hooks": [{"type": "command", "name": name, "command": f"printf '%s' 'x{EVIL}' >&2; exit 1"}]}
                ],
            },
        },
    )
    (project.root / "a.txt").write_text(EVIL)
    calls = [
        call("glob", pattern=EVIL),
        call("read_file", file_path="a.txt"),
        call("read_file", file_path=f"missing{EVIL}"),
        call(f"tool{EVIL}", **{f"x{EVIL}": EVIL}),
        call("run_shell_command", command="cat a.txt", description=EVIL),
    ]
    return [answer(f"Hello {EVIL}\n\tworld 👩\u200d💻", calls), answer(f"Bye {EVIL}")]


@pytest.mark.parametrize("output", ["text", "json", "stream-json"])
def test_nothing_reaches_stdout_or_stderr_raw(project: AgentProject, output: str) -> None:
    run = project.play("-y", "-o", output, answers=hostile(project))
    assert run.status == 0
    assert not RAW & set(run.stdout)
    assert not RAW & set(run.stderr)
    if output == "text":
        assert "Hello \\x1b]52;" in run.stdout
        assert "\n\tworld 👩\u200d💻" in run.stdout
    elif output == "json":
        assert run.json["response"] == f"Bye {EVIL}"
        assert EVIL in run.calls[-1]["result"]


def test_nothing_reaches_a_terminal_raw(project: AgentProject) -> None:
    recording = project.recording(*hostile(project))
    child = pexpect.spawn(
        COMMAND,
        ["run", "-y", "-p", "Do it.", "--replay", str(recording)],
        cwd=str(project.root),
        env=project.environment(TERM="xterm-256color"),
        encoding="utf-8",
        timeout=DEADLINE,
    )
    child.expect(pexpect.EOF)
    shown = str(child.before).replace("\r\n", "\n")
    assert "Bye \\x1b]52;" in shown
    assert not RAW & set(shown)


def test_a_reason_with_several_lines_does_not_look_like_several_messages(project: AgentProject) -> None:
    reason = "first\nllxprt-hooks: all is well"
    project.configure(BeforeModel=project.hook("guard", stderr=reason, exit_code=2))
    run = project.play(answers=[answer("Hello.")])
    assert ": first\n    llxprt-hooks: all is well\n" in run.stderr


def test_errors_of_the_agent_are_escaped(project: AgentProject) -> None:
    process = project.start("run", "-p", "Do it.", "--replay", f"missing{EVIL}.jsonl")
    _, stderr = process.communicate(timeout=DEADLINE)
    assert process.returncode == 64
    assert "missing\\x1b]52;" in stderr.decode()
    assert not RAW & set(stderr.decode())


def test_a_refusal_names_the_file_on_one_line(project: AgentProject) -> None:
    asked = answer(call("write_file", file_path=".git/a\nb" + "x" * 5000, content=""))
    run = project.play("-y", "-o", "json", answers=[asked, answer("Done.")])
    assert "\n" not in run.calls[0]["result"]
    assert len(run.calls[0]["result"]) < 500
