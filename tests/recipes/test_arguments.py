"""Guards find the command and the path of a call whatever the tool and its arguments are called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks.events import HookEventName
from llxprt_hooks.recipes import FIRST_HOOK, NAMES, find_recipe
from llxprt_hooks.settings.matcher import compile_matcher
from tests.recipes.test_rates import call, corpus, script

if TYPE_CHECKING:
    from tests.recipes.project import RecipeProject

CHECK_PATHS = ("protected-files", "ci-safety-net", "test-first", "test-after-edit", "format-on-write")

SHELLS = [
    "run_shell_command",
    "shell",
    "bash",
    "Bash",
    "sh",
    "run",
    "Run",
    "run_command",
    "runCommand",
    "execute_command",
    "execute",
    "terminal",
    "shell_exec",
    "exec",
    "run_in_terminal",
    "run_terminal_cmd",
    "execute_bash",
    "run_script",
    "start_process",
    "mcp__box__sh",
    "mcp__box__run",
    "mcp__box__shell-exec",
    "box-bash",
    "zsh",
    "runZsh",
    "run_commands",
    "runcommand",
    "shelltool",
    "commandline",
    "powershell",
    "PowerShell",
    "ShellTool",
    "local_shell",
    "python",
    "Python_REPL",
    "python_repl_ast",
    "run_python_code",
    "ipython",
    "python3",
    "python_execute",
    "mcp__ssh__execute",
]
# In these, only arguments with the name of a command are checked.
PERHAPS_SHELLS = [
    "run_query",
    "sql_query",
    "execute_sql",
    "execute_code",
    "executor",
    "executeQuery",
    "code_execution",
    "ssh_execute",
    "execute_in_container",
    "mcp__docker__container_run",
    "dockerRun",
    "dry_run",
]
NOT_SHELLS = [
    "write_file",
    "replace",
    "read_file",
    "glob",
    "run_tests",
    "search",
    "finish",
    "show",
    "push",
    "mcp__desktop-commander__read_file",
    "python_docs_search",
    "publish",
    "recommend",
    "process_image",
    "transcript",
    "seashell_lookup",
    "bashful",
    "get_commander",
    "restart_processor",
]


@pytest.mark.parametrize("recipe", CHECK_PATHS)
def test_a_text_that_is_too_long_for_a_path_is_not_resolved_as_one(recipe: str) -> None:
    """Resolving a long text with many slashes takes quadratic time: a picture would end in a timeout."""
    paths_in = script(recipe).paths_in

    assert paths_in({"image": "abc/" * 1_000_000}, "/tmp") == []
    assert paths_in({"path": "abc/" * 1_000_000}, "/tmp") == []
    assert paths_in({"path": "abc/../" * 1_000 + ".env"}, "/tmp") == [".env"]


def dangerous_matcher() -> str:
    [group] = find_recipe("dangerous-commands").hooks["BeforeTool"]
    return str(group["matcher"])


def test_dangerous_commands_matches_tools_that_run_commands() -> None:
    matches = compile_matcher(HookEventName.BEFORE_TOOL, dangerous_matcher())

    attacked = {call(sample)[0] for samples in corpus("dangerous-commands")[0].values() for sample in samples}

    assert [tool for tool in [*SHELLS, *PERHAPS_SHELLS, *attacked] if not matches(tool)] == []
    assert [tool for tool in NOT_SHELLS if matches(tool)] == []


def test_the_matcher_is_what_the_scripts_know_of_tools() -> None:
    module = script("dangerous-commands")

    assert dangerous_matcher() == f"{module.SHELL_TOOL.pattern}|{module.PERHAPS_SHELL.pattern}"
    assert [tool for tool in SHELLS if not module.SHELL_TOOL.search(tool)] == []
    assert [tool for tool in PERHAPS_SHELLS if module.SHELL_TOOL.search(tool)] == []


BLOCKED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "another name": ("dangerous-commands", "run_command", {"cmd": "rm -rf /"}),
    "a list": ("dangerous-commands", "shell", {"command": ["bash", "-lc", "rm -rf /"]}),
    "an unknown name": ("dangerous-commands", "Bash", {"what": {"to": "rm -rf /"}}),
    "python": ("dangerous-commands", "python", {"code": "import shutil\nshutil.rmtree('/')"}),
    "in CI": ("ci-safety-net", "shell", {"cmd": "git push"}),
    "the pipeline": ("ci-safety-net", "edit", {"target_file": ".github/workflows/ci.yml"}),
    "a command that reads a secret": ("protected-files", "shell", {"cmd": "cat .env"}),
    "a path": ("protected-files", "read_file", {"filepath": ".env"}),
    "a destination": ("protected-files", "copy", {"src": "a", "dst": ".env"}),
    "an address": ("protected-files", "read_file", {"uri": "file:///srv/.env"}),
    "code": ("test-first", "write_file", {"filename": "shop/price.py", "content": "x"}),
    "code in another argument": ("test-first", "replace", {"target": {"file": "shop/price.py"}}),
}


@pytest.mark.parametrize("case", BLOCKED)
async def test_a_call_is_blocked_whatever_its_argument_is_called(
    case: str, bench: RecipeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, tool, given = BLOCKED[case]
    monkeypatch.setenv("CI", "true")

    assert await bench.init(recipe).verdict(tool, **given) is not None


async def test_a_shell_call_that_cannot_be_checked_says_which_argument_it_is(bench: RecipeProject) -> None:
    bench.init("dangerous-commands")

    number = await bench.verdict("shell", command=7, title="x")
    text = await bench.verdict("shell", mood="it's")

    assert "`command` is a number, so it cannot be checked as a command" in str(number)
    assert "If `mood` is not a command, the user can add its name to NOT_COMMANDS in dangerous_commands.py" in str(text)
    assert await bench.verdict("shell") is None
    assert await bench.verdict("shell", restart=True) is None


async def test_the_name_that_a_user_adds_is_not_checked(bench: RecipeProject) -> None:
    bench.init("dangerous-commands")
    script = bench.root / ".llxprt" / "hooks" / "dangerous_commands.py"
    script.write_text(script.read_text().replace('"name filter', '"My_Mood name filter'))

    assert await bench.verdict("shell", my_mood="it's") is None
    assert await bench.verdict("shell", my_mood="it's", line="ls") is None
    assert await bench.verdict("shell", my_mood="it's", line="rm -rf /") is not None


async def test_the_written_file_is_found_whatever_its_argument_is_called(
    bench: RecipeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.init("format-on-write", "test-after-edit")
    bench.write("a.py", "x=1\n")
    bench.write("bin/ruff", '#!/bin/sh\necho "x = 1" > "$3"\n')
    (bench.root / "bin" / "ruff").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bench.root / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("TEST_AFTER_EDIT_COMMAND", "echo 1 passed")

    told = await bench.context("write_file", filename="a.py", content="x=1\n")

    assert "a.py was formatted by ruff" in told
    assert "The tests pass" in told
    assert "The tests pass" not in await bench.context("write_file", target_file="notes.md", content="x")


def test_every_guard_that_reads_arguments_is_among_them() -> None:
    """A script that reads one name only, such as ``tool_input["command"]``, misses tools that use another."""
    reads_one = {
        name
        for name in (FIRST_HOOK, *NAMES)
        for content in find_recipe(name).scripts.values()
        if '["tool_input"].get(' in content or 'given.get("command")' in content
    }

    assert reads_one == {"first-hook", "sequential-chain"}
