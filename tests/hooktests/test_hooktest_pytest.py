"""The pytest plugin: the fixture ``hook_run``, and test files as test items."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.processes import DEADLINE
from tests.support.project import APPROVED

if TYPE_CHECKING:
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

def test_another_project(hook_run, tmp_path):
    with pytest.raises(AssertionError, match="no hook is configured"):
        hook_run("BeforeTool", project=tmp_path)
"""


@pytest.fixture
def guarded(world: CliProject) -> CliProject:
    world.configure(BeforeTool={"name": "guard", "command": GUARD})
    return world


def own_temporary_folder(world: CliProject) -> dict[str, str]:
    """Otherwise pytest deletes what older runs left in the usual folder at its end, which can take minutes."""
    return {"TMPDIR": str(world.home)}


def run_pytest(world: CliProject, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a project, with only this plugin."""
    disabled = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **own_temporary_folder(world)}
    options = ("-q", "-p", "no:cacheprovider", "-p", "llxprt_hooks.pytest_plugin")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *arguments],
        cwd=world.root,
        env=world.environment(**disabled, **environment),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )


def test_the_fixture_runs_the_hooks_of_the_project_that_the_test_is_in(guarded: CliProject) -> None:
    guarded.write("tests/test_hooks.py", FIXTURE)

    done = run_pytest(guarded, "tests", **APPROVED)

    assert done.returncode == 0, done.stdout
    assert "6 passed" in done.stdout


def test_test_files_are_collected_where_pytest_is_told_to_look(guarded: CliProject) -> None:
    guarded.write(
        ".llxprt/hooks/guard.hooktest.json",
        """[
  { "name": "good", "event": "BeforeTool", "input": {}, "expect": { "decision": "none" } },
  { "name": "bad", "event": "BeforeTool", "input": {}, "expect": { "decision": "block" } },
]""",
    )

    done = run_pytest(guarded, ".llxprt", **APPROVED)

    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert '-   "decision": "block"' in done.stdout
    assert '+   "decision": "none"' in done.stdout
    assert "Traceback" not in done.stdout
    assert "no tests ran" in run_pytest(guarded, **APPROVED).stdout


def test_a_broken_file_is_an_error_of_the_collection(guarded: CliProject) -> None:
    guarded.write("x.hooktest.json", '{"event": "BeforeTol", "input": {}}')

    done = run_pytest(guarded, "x.hooktest.json", **APPROVED)

    assert done.returncode == 2
    assert "x.hooktest.json:1:11: unknown event `BeforeTol`, did you mean `BeforeTool`?" in done.stdout


def test_hooks_that_are_not_approved_do_not_run(guarded: CliProject) -> None:
    guarded.configure(BeforeTool="touch ran")
    guarded.write("x.hooktest.json", '{"event": "BeforeTool", "input": {}, "expect": {"decision": "none"}}')

    done = run_pytest(guarded, "x.hooktest.json")

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

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "test_it.py"],
        cwd=guarded.root,
        env=guarded.environment(**own_temporary_folder(guarded)),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )

    assert done.returncode == 0, done.stdout
