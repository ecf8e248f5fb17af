"""Commands that change or approve hooks do nothing when an agent runs them (D-29)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from llxprt_hooks.cli import started_by_agent
from tests.support.cli import COMMAND, Call, CliProject
from tests.support.project import files_in

COMMANDS = (
    ("trust", "--yes"),
    ("trust",),
    ("untrust",),
    ("trust", "--mcp", "shop", "--yes"),
    ("untrust", "--mcp", "shop"),
    ("enable", "off"),
    ("disable", "guard"),
    ("init",),
    ("init", "--user"),
    ("migrate", "--from", "claude", "--yes"),
)


@pytest.fixture
def guarded(world: CliProject) -> CliProject:
    """An approved project with one hook on and one off, and hooks of Claude Code to migrate."""
    hooks = [{"type": "command", "name": name, "command": world.script(name, "exit 2")} for name in ("guard", "off")]
    world.put(
        "project",
        {"enableHooks": True, "hooks": {"BeforeTool": [{"hooks": hooks}]}, "hooksConfig": {"disabled": ["off"]}},
    )
    claude = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}}
    world.write(".claude/settings.json", claude)
    world.approve()
    return world


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_with_the_agents_variable_nothing_changes(guarded: CliProject, arguments: tuple[str, ...]) -> None:
    before = files_in(guarded.folder)

    run = guarded.run(*arguments, approved=False, LLXPRT_AGENT="1")

    assert run.status == 1
    assert "Change or approve hooks yourself, in a terminal of your own." in run.sentence()
    assert files_in(guarded.folder) == before


def below(world: CliProject, *agent: str) -> subprocess.CompletedProcess[str]:
    """Run ``untrust`` as the grandchild of a process with this command line, without the agent's variable."""
    stand_in = world.write(world.folder / "bin" / "stand_in.py", STAND_IN)
    for name in ("llxprt-hooks", "other-tool"):
        shutil.copy(stand_in, world.folder / "bin" / name)
    world.write(world.folder / "bin" / "llxprt_hooks" / "__main__.py", STAND_IN)
    world.write(world.folder / "bin" / "llxprt_hooks" / "__init__.py")
    return subprocess.run(
        [sys.executable, *agent],
        cwd=world.folder / "bin",
        env=world.environment(HOOKS_COMMAND=COMMAND, PROJECT=str(world.root)),
        capture_output=True,
        text=True,
        check=False,
    )


STAND_IN = """\
import os, subprocess, sys
line = '"$HOOKS_COMMAND" untrust -C "$PROJECT"; exit $?'
sys.exit(subprocess.run(["/bin/sh", "-c", line]).returncode)
"""


@pytest.mark.parametrize(
    "agent", [("llxprt-hooks", "run", "-y"), ("-m", "llxprt_hooks", "run"), ("-I", "llxprt_hooks/__main__.py", "run")]
)
def test_below_an_agent_nothing_changes(guarded: CliProject, agent: tuple[str, ...]) -> None:
    run = below(guarded, *agent)

    assert run.returncode == 1
    assert "is an agent" in run.stderr
    assert guarded.trust_state() == "trusted"


@pytest.mark.parametrize(
    "other", [("llxprt-hooks", "fire"), ("other-tool", "run"), ("other-tool", "llxprt-hooks run"), ("llxprt-hooks",)]
)
def test_below_another_program_they_work(guarded: CliProject, other: tuple[str, ...]) -> None:
    run = below(guarded, *other)

    assert run.returncode == 0, run.stderr
    assert guarded.trust_state() == "untrusted"


@pytest.mark.skipif(not Path(started_by_agent._PS_PROGRAM).exists(), reason="needs ps")
@pytest.mark.parametrize(("line", "found"), [(["llxprt-hooks", "run"], True), (["llxprt-hooks", "log"], False)])
def test_without_proc_ps_is_used(
    world: CliProject, monkeypatch: pytest.MonkeyPatch, line: list[str], found: bool
) -> None:
    program = world.write(world.folder / line[0], "import sys\nsys.stdin.read()\n")
    with subprocess.Popen([sys.executable, str(program), *line[1:]], stdin=subprocess.PIPE) as agent:
        monkeypatch.setattr(sys, "platform", "darwin")
        monkeypatch.setattr("os.getppid", lambda: agent.pid)

        assert started_by_agent.agent_among_parents() == (agent.pid if found else None)


@pytest.mark.skipif(not Path(started_by_agent._PS_PROGRAM).exists(), reason="needs ps")
def test_a_script_of_a_shell_is_not_an_agent(world: CliProject, monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["sh", "-c", "read x; : llxprt-hooks run"], stdin=subprocess.PIPE) as shell:
        monkeypatch.setattr("os.getppid", lambda: shell.pid)
        for platform in ("linux", "darwin"):
            monkeypatch.setattr(sys, "platform", platform)

            assert started_by_agent.agent_among_parents() is None


def test_parents_that_cannot_be_seen_are_not_taken_for_an_agent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(started_by_agent, "_PROC", tmp_path)

    assert started_by_agent.agent_among_parents() is None


def test_help_is_there_for_everybody(guarded: CliProject, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLXPRT_AGENT", "1")

    assert call("trust", "--help").status == 0
    assert call("list").status == 0
