"""Guards find the command and the path of a call whatever the tool and its arguments are called."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks.engine.matcher import compile_matcher
from llxprt_hooks.events import HookEventName
from llxprt_hooks.recipes import find_recipe
from llxprt_hooks.recipes.catalogue import COLLECTION

if TYPE_CHECKING:
    from tests.recipes.recipe_project import RecipeProject

CHECK_COMMANDS = ("dangerous-commands", "protected-files", "ci-safety-net")
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
]
NOT_SHELLS = [
    "write_file",
    "replace",
    "read_file",
    "glob",
    "run_tests",
    "run_query",
    "execute_sql",
    "execute_code",
    "executor",
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
    "dry_run",
    "restart_processor",
    "executeQuery",
]


def source(recipe: str) -> str:
    [script] = find_recipe(recipe).scripts.values()
    return script


def shared_part(recipe: str, first_line: str) -> str:
    return source(recipe).partition(first_line)[2].partition("# The end of the part that is the same.\n")[0]


@pytest.mark.parametrize(
    ("recipes", "first_line"),
    [(CHECK_COMMANDS, "# Where the command of a call is."), (CHECK_PATHS, "# Where the paths of a call are.")],
)
def test_recipes_that_look_for_the_same_have_the_same_code_for_it(recipes: tuple[str, ...], first_line: str) -> None:
    parts = {shared_part(recipe, first_line) for recipe in recipes}

    assert len(parts) == 1
    assert parts != {""}


def dangerous_matcher() -> str:
    [group] = find_recipe("dangerous-commands").hooks["BeforeTool"]
    return str(group["matcher"])


def test_dangerous_commands_is_for_tools_that_run_commands() -> None:
    matches = compile_matcher(HookEventName.BEFORE_TOOL, dangerous_matcher())

    assert [tool for tool in SHELLS if not matches(tool)] == []
    assert [tool for tool in NOT_SHELLS if matches(tool)] == []


@pytest.mark.parametrize("recipe", ["protected-files", "ci-safety-net"])
def test_guards_for_all_tools_know_the_same_shells(recipe: str) -> None:
    tree = ast.parse(source(recipe))
    [value] = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SHELL_TOOL"
    ]

    assert isinstance(value, ast.Call)
    assert ast.literal_eval(value.args[0]) == dangerous_matcher()


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
        folder.name
        for folder in COLLECTION.iterdir()
        for script in (folder / "hooks").glob("*.py")
        if '["tool_input"].get(' in script.read_text("utf-8") or 'given.get("command")' in script.read_text("utf-8")
    }

    assert reads_one == {"first-hook", "sequential-chain"}
