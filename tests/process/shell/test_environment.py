"""``hooksConfig.environment``: which variables hooks inherit."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks import Config, fire_before_tool_hook
from llxprt_hooks.process.shell.environment import SEARCH_PATHS, process_environment, without_relative_path
from llxprt_hooks.settings.definitions import HookScope
from tests.support.project import Project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = Project(tmp_path, approved=True)
    project.enter(monkeypatch)
    monkeypatch.setenv("API_TOKEN", "secret")
    monkeypatch.setenv("LC_TEST", "kept")
    return project.root


async def inherited(project: Path, **hooks_config: Any) -> dict[str, str]:
    """The environment of a hook of the project."""
    settings = {
        "enableHooks": True,
        "hooksConfig": hooks_config,
        "hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": "env -0 > env"}]}]},
    }
    file = project / ".llxprt" / "settings.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(settings))
    await fire_before_tool_hook(Config.load(project), "write_file", {})
    variables = (project / "env").read_text().split("\0")
    return dict(variable.split("=", 1) for variable in variables if variable)


@pytest.mark.requirement("HOOK-188")
async def test_by_default_hooks_inherit_everything(project: Path) -> None:
    environment = await inherited(project)

    assert environment["API_TOKEN"] == "secret"
    assert environment["LLXPRT_PROJECT_DIR"] == str(project)


async def test_denied_variables_are_not_inherited(project: Path) -> None:
    environment = await inherited(project, environment={"deny": ["API_*"]})

    assert "API_TOKEN" not in environment
    assert environment["LC_TEST"] == "kept"


TRUST = {"a program's own": None, "approved": "1", "not approved": "0"}


@pytest.mark.parametrize("state", TRUST)
async def test_every_hook_can_see_whether_the_project_is_trusted(
    project: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setenv("LLXPRT_PROJECT_TRUSTED", "inherited")
    hooks = {"BeforeTool": [{"hooks": [{"type": "command", "command": "printenv LLXPRT_PROJECT_TRUSTED > told"}]}]}
    if state == "a program's own":
        config = Config(enable_hooks=True, hooks=hooks, working_dir=project)
    else:
        user_file = project.parent / "home" / ".llxprt" / "settings.json"
        user_file.parent.mkdir()
        user_file.write_text(json.dumps({"enableHooks": True, "hooks": hooks}))
        user_file.chmod(0o600)
        if state == "not approved":
            monkeypatch.delenv("LLXPRT_TRUST_PROJECT_HOOKS")
        config = Config.load(project)

    await fire_before_tool_hook(config, "write_file", {})

    assert (project / "told").read_text().strip() == (TRUST[state] or "1")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("node_modules/.bin:{path}", "{path}"),
        (":{path}:", "{path}"),
        (".:./bin:{path}:..", "{path}"),
        ("./bin", os.defpath),
        ("{path}", "{path}"),
    ],
)
@pytest.mark.parametrize("level", ["project", "user", "system", "extension"])
async def test_only_the_projects_own_hooks_have_relative_folders_on_their_search_path(
    sandbox: Project, monkeypatch: pytest.MonkeyPatch, level: str, path: str, expected: str
) -> None:
    inherited_path = os.environ["PATH"]
    hooks = {"BeforeTool": [{"hooks": [{"type": "command", "command": 'printf %s "$PATH" > path'}]}]}
    if level == "extension":
        sandbox.extension("e", {"hooks": hooks})
        sandbox.put("user", {"enableHooks": True})
    else:
        sandbox.put(level, {"enableHooks": True, "hooks": hooks})
    monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", "1")
    monkeypatch.setenv("PATH", path.format(path=inherited_path))

    await fire_before_tool_hook(Config.load(sandbox.root), "write_file", {})

    told = (sandbox.root / "path").read_text()
    assert told == (path if level == "project" else expected).format(path=inherited_path)


async def test_a_project_does_not_bring_the_programs_of_the_users_hooks(
    sandbox: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.script("bin/guard-program", "echo stolen > ran")
    sandbox.configure(level="user", BeforeTool="guard-program")
    monkeypatch.setenv("PATH", f"bin:{os.environ['PATH']}")

    await fire_before_tool_hook(Config.load(sandbox.root), "write_file", {})

    assert not (sandbox.root / "ran").exists()


@pytest.mark.parametrize("search_path", [":/lib", ".", "lib:", "/lib::/more"])
async def test_a_project_does_not_bring_the_modules_of_the_users_hooks(
    sandbox: Project, monkeypatch: pytest.MonkeyPatch, search_path: str
) -> None:
    """An empty entry is the current folder, and `PYTHONPATH=$PYTHONPATH:/lib` leaves one."""
    for folder in (sandbox.root, sandbox.root / "lib"):
        folder.mkdir(exist_ok=True)
        (folder / "json.py").write_text("open('ran', 'w')\n")
    guard = sandbox.home / "guard.py"
    guard.write_text("import json, sys\nprint(json.dumps({'decision': 'deny', 'reason': 'guarded'}))\n")
    sandbox.configure(level="user", BeforeTool=f"{sys.executable} {guard}")
    monkeypatch.setenv("PYTHONPATH", search_path)

    output = await fire_before_tool_hook(Config.load(sandbox.root), "write_file", {})

    assert not (sandbox.root / "ran").exists()
    assert output is not None
    assert output.reason == "guarded"


@pytest.mark.parametrize("name", sorted(SEARCH_PATHS - {"PATH"}))
def test_search_paths_have_only_absolute_entries(name: str) -> None:
    assert without_relative_path({name: ":lib:/lib:.:/more:"}) == {name: "/lib:/more"}
    assert without_relative_path({name: ".:"}) == {}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"BASH_ENV": "env.sh"}, {}),
        ({"ENV": "./env.sh", "BASH_ENV": "$HOME/env.sh"}, {"BASH_ENV": "$HOME/env.sh"}),
        ({"LD_PRELOAD": "./x.so:/lib/y.so:libz.so"}, {"LD_PRELOAD": "/lib/y.so:libz.so"}),
        ({"LUA_PATH": "./?.lua;/lua/?.lua;;"}, {"LUA_PATH": "/lua/?.lua"}),
        ({"PYTHONPYCACHEPREFIX": "cache"}, {}),
        ({"PYTHONPYCACHEPREFIX": "/cache"}, {"PYTHONPYCACHEPREFIX": "/cache"}),
        ({"SHELLOPTS": "braceexpand:noexec", "BASHOPTS": "extdebug"}, {}),
        ({"NODE_OPTIONS": "-r ./x.js", "PERL5OPT": "-w -I. -Mx", "RUBYOPT": "-rx"}, {}),
        ({"NODE_OPTIONS": "--trace-warnings --import=x"}, {}),
        (
            {"NODE_OPTIONS": "--max-old-space-size=4096 -r /x.js"},
            {"NODE_OPTIONS": "--max-old-space-size=4096 -r /x.js"},
        ),
    ],
)
def test_other_names_of_code_are_absolute_too(given: dict[str, str], kept: dict[str, str]) -> None:
    assert without_relative_path(given) == kept


SWITCHES = {
    "an option": {"SHELLOPTS": "noexec"},
    "a start-up file": {"BASH_ENV": "startup.sh"},
    "an absolute start-up file": {"BASH_ENV": "{project}/startup.sh"},
    "a function": {"BASH_FUNC_echo%%": "() {{ exit 0; }}"},
}


@pytest.mark.parametrize("level", ["user", "system"])
@pytest.mark.parametrize("variables", SWITCHES.values(), ids=SWITCHES)
@pytest.mark.parametrize("command", ["echo guarded >&2; exit 2", "{home}/guard.sh"])
async def test_no_variable_switches_off_a_shell_hook_of_the_user(
    sandbox: Project, monkeypatch: pytest.MonkeyPatch, level: str, variables: dict[str, str], command: str
) -> None:
    (sandbox.root / "startup.sh").write_text("exit 0\n")
    guard = sandbox.home / "guard.sh"
    guard.write_text("#!/bin/sh\necho guarded >&2\nexit 2\n")
    guard.chmod(0o755)
    sandbox.configure(level=level, BeforeTool=command.format(home=sandbox.home))
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(project=sandbox.root))

    output = await fire_before_tool_hook(Config.load(sandbox.root), "write_file", {})

    assert output is not None
    assert output.reason == "guarded"


async def test_hooks_of_the_project_and_the_user_run_in_parallel_each_in_its_environment(
    sandbox: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for level in ("project", "user"):
        sandbox.configure(level=level, BeforeTool=f'printf "%s\\n" "$PATH" >> {level}')
    monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", "1")
    absolute = os.environ["PATH"]
    monkeypatch.setenv("PATH", f"bin:{absolute}")
    config = Config.load(sandbox.root)

    for _ in range(2):
        await fire_before_tool_hook(config, "write_file", {})

    assert (sandbox.root / "project").read_text() == f"bin:{absolute}\n" * 2
    assert (sandbox.root / "user").read_text() == f"{absolute}\n" * 2


def test_without_a_search_path_none_is_made_up() -> None:
    assert without_relative_path({"HOME": "/h"}) == {"HOME": "/h"}


def test_the_environment_of_all_scopes_is_one_object_unless_they_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    config = Config(enable_hooks=True)

    first = config.inherited_environment()

    assert all(config.inherited_environment(scope) is first for scope in HookScope)


async def test_a_change_of_the_environment_is_seen_by_the_next_event(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config(
        enable_hooks=True,
        working_dir=project,
        hooks={"BeforeTool": [{"hooks": [{"type": "command", "command": "printenv MINE >> seen"}]}]},
    )
    for value in ("1", "2", None, "3"):
        if value is None:
            monkeypatch.delenv("MINE")
        else:
            monkeypatch.setenv("MINE", value)
        await fire_before_tool_hook(config, "write_file", {})

    assert (project / "seen").read_text() == "1\n2\n3\n"


@pytest.mark.parametrize("kept", [True, False], ids=["as Python keeps it", "kept otherwise"])
def test_the_environment_is_the_same_object_until_it_changes(kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not kept:
        monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setitem(os.environ, "MINE", "1")
    first = process_environment()
    assert first["MINE"] == "1"
    assert (process_environment() is first) is kept

    monkeypatch.setitem(os.environ, "MINE", "2")

    assert process_environment()["MINE"] == "2"
    assert first["MINE"] == "1"
