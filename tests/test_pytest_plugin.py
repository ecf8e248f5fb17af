"""The pytest plugin: the fixture ``hook_run``, and test files as test items."""

from __future__ import annotations

import getpass
import json
from typing import TYPE_CHECKING

import pytest

from tests.support.processes import run_python
from tests.support.project import APPROVED

if TYPE_CHECKING:
    import subprocess

    from tests.support.cli import CliProject

GUARD = """read -r payload; case $payload in *secret*) echo "no secrets$SUFFIX" >&2; exit 2;; esac"""

FIXTURE = """
import asyncio
import pytest

SECRET = {"tool_name": "write_file", "tool_input": {"content": "secret"}}

def test_block(hook_run):
    outcome = hook_run("BeforeTool", SECRET, hook="guard", env={"SUFFIX": "!"})
    assert (outcome.decision, outcome.reason, outcome.output["decision"]) == ("block", "no secrets!", "deny")

def test_no_opinion(hook_run):
    assert hook_run("BeforeTool").decision == "none"

def test_inside_a_running_loop(hook_run):
    async def inside():
        return hook_run("BeforeTool", SECRET)
    assert asyncio.run(inside()).decision == "block"

def test_no_hook(hook_run):
    with pytest.raises(AssertionError, match="no hook is configured for AfterTool"):
        hook_run("AfterTool")

def test_wrong_input(hook_run):
    with pytest.raises(ValueError, match="the input of BeforeTool"):
        hook_run("BeforeTool", {"tool_input": 7})

def test_words_for_a_decision(hook_run):
    blocked, free = hook_run("BeforeTool", SECRET), hook_run("BeforeTool")
    assert (blocked.blocked, blocked.allowed, free.allowed, free.asked) == (True, False, True, False)
    assert blocked.decision == "block" and blocked.decision == "deny" and blocked.decision != "allow"
    assert free.decision == "allow" and free.decision == "none" and free.decision != "block"

def test_an_event_that_does_not_exist(hook_run):
    with pytest.raises(ValueError, match="unknown hook event 'BeforeTol'. Did you mean `BeforeTool`?"):
        hook_run("BeforeTol")

def test_the_hooks_of_a_program(hook_run):
    from llxprt_hooks import Hooks, deny
    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: deny("over the limit"), matcher="^transfer$", name="limit")
    transfer = {"tool_name": "transfer", "tool_input": {"amount": 7}}
    assert hook_run("BeforeTool", transfer, hook="limit", hooks=hooks).reason == "over the limit"
    with pytest.raises(AssertionError, match="limit did not run: its matcher"):
        hook_run("BeforeTool", hooks=hooks)
    assert hooks.sync.run_tool("transfer", {}, lambda args: "done").llm_content == "over the limit"

def test_another_project(hook_run, tmp_path):
    with pytest.raises(AssertionError, match="no hook is configured"):
        hook_run("BeforeTool", project=tmp_path)
"""


@pytest.fixture
def guarded(world: CliProject) -> CliProject:
    world.configure(BeforeTool={"name": "guard", "command": GUARD})
    return world


def run_pytest(world: CliProject, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a project. It makes its temporary folders there."""
    # In the folder that all runs of a user share, a run deletes those of older runs at its end, which can take minutes.
    options = ("-q", "-p", "no:cacheprovider", "--basetemp", str(world.folder / "temporary"))
    return run_python("-m", "pytest", *options, *arguments, cwd=world.root, env=world.environment(**environment))


def run_plugin(world: CliProject, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a project, with only this plugin."""
    disabled = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return run_pytest(world, "-p", "llxprt_hooks.pytest_plugin", *arguments, **disabled, **environment)


def test_the_fixture_runs_the_hooks_of_the_project_that_the_test_is_in(guarded: CliProject) -> None:
    guarded.write("tests/test_hooks.py", FIXTURE)

    done = run_plugin(guarded, "tests", **APPROVED)

    assert done.returncode == 0, done.stdout
    assert "9 passed" in done.stdout


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('hook_run("BeforTool")', "unknown hook event 'BeforTool'. Did you mean `BeforeTool`?"),
        ('hook_run("BeforeTool", {"tool_input": 7})', "`tool_input` in the input of BeforeTool must be an object"),
        ('hook_run("BeforeTool", 7)', "the input must be a dict with fields of the event, found 7"),
        ('hook_run("BeforeTool", env=["A"])', "`env` must be a dict of variables, found ['A']"),
        ('hook_run("BeforeTool", env={"A": 1})', "variables in `env` must be strings, or None to unset one"),
        ('hook_run("BeforeTool", project="no-such")', "`project` must be a folder, and no-such is none"),
        ('hook_run("BeforeTool", hooks=7)', "`hooks` must be a Hooks object of your program, found 7"),
        ('hook_run("BeforeTool", hook="gard")', "no hook is called gard (hooks of BeforeTool: guard)"),
        ('hook_run("BeforeTool", hook="guard").alowed', "'Outcome' object has no attribute 'alowed'"),
    ],
)
def test_a_mistake_in_a_test_shows_the_line_of_the_test_and_nothing_of_this_package(
    guarded: CliProject, call: str, message: str
) -> None:
    guarded.write("test_it.py", f"def test_it(hook_run):\n    {call}\n")

    done = run_plugin(guarded, "test_it.py", **APPROVED)

    assert message in done.stdout
    assert f">       {call}" in done.stdout
    assert "llxprt_hooks/" not in done.stdout.partition("short test summary")[0]


def test_allow_means_the_same_in_a_test_file_and_in_pytest(world: CliProject) -> None:
    decides = 'echo \'{"decision": "%s", "reason": "because"}\''
    commands = {
        "silent": "true",
        "allows": decides % "allow",
        "asks": decides % "ask",
        "blocks": "exit 2",
        "fails": "no-such",
    }
    world.configure(BeforeTool=[{"name": name, "command": command} for name, command in commands.items()])
    expected = [
        {"name": name, "event": "BeforeTool", "hook": name, "input": {}, "expect": {"decision": "allow"}}
        for name in commands
    ]
    world.write("x.hooktest.json", json.dumps(expected))
    world.write(
        "test_it.py",
        f"""import pytest

@pytest.mark.parametrize("name", {list(commands)})
def test_it(hook_run, name):
    assert hook_run("BeforeTool", hook=name).allowed
""",
    )

    done = run_plugin(world, "-rA", "x.hooktest.json", "test_it.py", **APPROVED)

    passed = {line.split("::")[1] for line in done.stdout.splitlines() if line.startswith("PASSED")}
    assert passed == {"silent", "allows", "test_it[silent]", "test_it[allows]"}
    assert "6 failed, 4 passed" in done.stdout


def test_test_files_are_collected_where_pytest_is_told_to_look(guarded: CliProject) -> None:
    guarded.write(
        ".llxprt/hooks/guard.hooktest.json",
        """[
  { "name": "good", "event": "BeforeTool", "input": {}, "expect": { "decision": "none" } },
  { "name": "bad", "event": "BeforeTool", "input": {}, "expect": { "decision": "block" } },
]""",
    )

    done = run_plugin(guarded, ".llxprt", **APPROVED)

    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert '-   "decision": "block"' in done.stdout
    assert '+   "decision": "none"' in done.stdout
    assert "Traceback" not in done.stdout
    assert "no tests ran" in run_plugin(guarded, **APPROVED).stdout


def test_a_broken_file_is_an_error_of_the_collection(guarded: CliProject) -> None:
    guarded.write("x.hooktest.json", '{"event": "BeforeTol", "input": {}}')

    done = run_plugin(guarded, "x.hooktest.json", **APPROVED)

    assert done.returncode == 2
    assert "x.hooktest.json:1:11: unknown event `BeforeTol`, did you mean `BeforeTool`?" in done.stdout


def test_hooks_that_are_not_approved_do_not_run(guarded: CliProject) -> None:
    guarded.configure(BeforeTool="touch ran")
    guarded.write("x.hooktest.json", '{"event": "BeforeTool", "input": {}, "expect": {"decision": "none"}}')

    done = run_plugin(guarded, "x.hooktest.json")

    assert "this project is not approved" in done.stdout
    assert not (guarded.root / "ran").exists()


def test_pytest_finds_the_plugin_and_loads_nothing_else_of_the_package(guarded: CliProject) -> None:
    guarded.write(
        "test_it.py",
        """import sys
LOADED = {name for name in sys.modules if name.split(".")[0] in ("llxprt_hooks", "msgspec", "regress", "rich", "click")}

def test_it(pytestconfig):
    assert pytestconfig.pluginmanager.hasplugin("llxprt_hooks")
    assert LOADED == {"llxprt_hooks", "llxprt_hooks.pytest_plugin"}
""",
    )

    done = run_pytest(guarded, "-p", "no:asyncio", "test_it.py")

    assert done.returncode == 0, done.stdout


def test_a_run_in_a_test_deletes_nothing_of_other_runs(guarded: CliProject) -> None:
    """pytest keeps the folders of a user's last three runs, and each run deletes the older ones at its end."""
    shared = guarded.folder / "shared" / f"pytest-of-{getpass.getuser()}"
    for number in range(5):
        guarded.write(shared / f"pytest-{number}" / "test_it0" / "file")
    shared.chmod(0o700)
    guarded.write("test_it.py", "def test_it(tmp_path): pass")

    done = run_pytest(guarded, "test_it.py", PYTEST_DEBUG_TEMPROOT=str(shared.parent))

    assert "1 passed" in done.stdout
    assert len(list(shared.rglob("file"))) == 5
