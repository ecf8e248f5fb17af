"""An agent that may run any command cannot disable its guards with the commands of this project (D-28, D-29)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.agent import AgentProject, AgentRun
from tests.support.gemini import answer, call

GUARD = ".llxprt/hooks/guard.sh"
HIDDEN = "env -u LLXPRT_AGENT"


@pytest.fixture
def project(tmp_path: Path) -> AgentProject:
    """An approved project with a guard that blocks ``write_file``."""
    project = AgentProject(tmp_path)
    project.approved = False
    project.write(GUARD, "#!/bin/sh\necho guarded >&2\nexit 2\n", 0o755)
    hook = {"type": "command", "name": "guard", "command": f"$LLXPRT_PROJECT_DIR/{GUARD}"}
    project.configure(BeforeTool={"matcher": "write_file", "hooks": [hook]})
    project.approve()
    return project


def after(project: AgentProject, command: str) -> AgentRun:
    """A run in which the model first runs a command, and then writes a file."""
    answers = [
        answer(call("run_shell_command", command=command)),
        answer(call("write_file", file_path="a.txt", content="x")),
        answer("Done."),
    ]
    project.starts_as_users_do = "llxprt-hooks" in command  # which looks for an agent among its parents' command lines
    return project.run("-y", "-o", "json", answers=answers)


@pytest.mark.parametrize(
    "command", [f"echo > {GUARD}", f"rm {GUARD}", f"printf 'touch pwned' > x; chmod +x x; mv x {GUARD}"]
)
def test_a_guard_that_the_agent_replaced_does_not_run_and_blocks(project: AgentProject, command: str) -> None:
    run = after(project, command)

    assert run.statuses == ["success", "blocked"]
    assert f"{GUARD} has changed since the project was approved" in run.calls[1]["result"]
    assert not (project.root / "a.txt").exists()
    assert not (project.root / "pwned").exists()


@pytest.mark.parametrize(
    "command", ["disable guard", "untrust", "trust --yes", "init --force", "migrate --from claude --yes"]
)
def test_the_commands_for_people_do_nothing_for_the_agent(project: AgentProject, command: str) -> None:
    project.write(
        ".claude/settings.json", {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x"}]}]}}
    )
    before = project.project_file.read_bytes()

    run = after(project, f"{HIDDEN} llxprt-hooks {command}; {HIDDEN} sh -c 'llxprt-hooks {command}'")

    assert run.calls[0]["result"].count("Change or approve hooks yourself") == 2
    assert run.statuses[1] == "blocked"
    assert project.project_file.read_bytes() == before
    assert project.trust_state() == "trusted"


def test_the_agent_cannot_approve_what_it_wrote(project: AgentProject) -> None:
    run = after(project, f"echo exit 0 > {GUARD}; {HIDDEN} llxprt-hooks trust --yes")

    assert run.statuses[1] == "blocked"
    assert project.trust_state() == "changed"


@pytest.mark.parametrize(
    ("file", "protected"),
    [
        ("tools/helper.py", True),
        ("tools/json.py", True),
        ("tools/json/__init__.py", True),
        ("tools/helper/__init__.py", True),
        ("tools/package/part.py", True),
        ("tools/later/inner.py", True),
        ("tools/later.py", True),
        ("tools/application.py", False),
        ("tools/package/other.py", False),
        ("json.py", False),
        ("src/helper.py", False),
    ],
)
def test_what_a_script_of_a_hook_imports_is_protected_like_the_script(
    project: AgentProject, file: str, protected: bool
) -> None:
    """Hooks of the user are not compared before they start, so the agent's code would run at the next event."""
    project.write(
        "tools/check.py", "import json, helper\nfrom package import part\ntry: import later.inner\nexcept: 0\n"
    )
    project.write("tools/helper.py", "")
    project.write("tools/package/__init__.py", "")
    project.write("tools/package/part.py", "")
    project.configure(level="user", BeforeTool=f"{sys.executable} $LLXPRT_PROJECT_DIR/tools/check.py")
    project.configure(BeforeTool="true")
    project.approve()
    evil = "open('ran', 'w')\n"

    writes = answer(call("write_file", file_path=file, content=evil))
    run = project.run("--approval-mode", "auto_edit", "-o", "json", answers=[writes, answer("Done.")])

    assert run.statuses == ["error" if protected else "success"]
    assert ("a configured hook runs or reads it" in run.calls[0]["result"]) is protected


def test_all_modules_beside_an_unparsable_script_are_protected(project: AgentProject) -> None:
    project.write("tools/check.py", "print 'old'\n")
    project.configure(level="user", BeforeTool="python2 $LLXPRT_PROJECT_DIR/tools/check.py; true")

    answers = [
        answer(call("write_file", file_path="tools/application.py", content="x")),
        answer(call("write_file", file_path="tools/notes.txt", content="x")),
        answer("Done."),
    ]
    project.configure(BeforeTool="true")
    project.approve()
    run = project.run("--approval-mode", "auto_edit", "-o", "json", answers=answers)

    assert run.statuses == ["error", "success"]


def test_the_agent_cannot_write_into_an_environment_that_hooks_use(project: AgentProject) -> None:
    project.write(".venv/pyvenv.cfg", "")
    file = ".venv/lib/python3.11/site-packages/a.pth"

    writes = answer(call("replace", file_path=file, old_string="", new_string="import os"))
    run = project.run("--approval-mode", "auto_edit", "-o", "json", answers=[writes, answer("Done.")])

    assert run.statuses == ["error"]
    assert "packages are installed there" in run.calls[0]["result"]


@pytest.mark.parametrize(
    ("command", "mode", "warned"),
    [
        ("make lint || true", "auto_edit", True),
        ("cat; npm test", "auto_edit", True),
        ("go test ./... || true", "auto_edit", True),
        ("make lint || true", "default", False),
        ("./makefile-check; true", "auto_edit", False),
    ],
)
def test_a_hook_that_runs_the_projects_build_is_warned_of_under_auto_edit(
    project: AgentProject, command: str, mode: str, warned: bool
) -> None:
    project.configure(AfterTool=command)
    project.approve()

    run = project.run("--approval-mode", mode, answers=[answer("Done.")])

    assert ("runs the project's own build or tests" in run.stderr) is warned
