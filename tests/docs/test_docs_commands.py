"""The page about the command line has every command, option, default, key and variable, and none that is not there."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import llxprt_hooks.agent.audience as audience
from llxprt_hooks.audit.log import log_file, rotated
from llxprt_hooks.cli.exit_status import ExitStatus
from llxprt_hooks.cli.main import COMMANDS, cli
from llxprt_hooks.settings import Level, settings_file, user_folder
from tests.docs.docs_pages import ROOT, Section, code, sections, table

PAGE = "docs/commands.md"
SOURCES = ROOT / "src"
EVERYWHERE = "options-that-all-commands-have"

PLACEHOLDERS = {click.types.StringParamType: "TEXT", click.IntRange: "N"}
"""What stands for a value where the option itself does not say it."""

CONTEXT = click.Context(cli, info_name="llxprt-hooks", help_option_names=["-h", "--help"])


def command(name: str) -> click.Command:
    found = cli.get_command(CONTEXT, name)
    assert found is not None
    return found


def parameters(name: str) -> list[click.Parameter]:
    """What a user sees: a -C that means nothing is with the options of all commands."""
    return [each for each in command(name).params if not getattr(each, "hidden", False)]


def placeholder(parameter: click.Parameter) -> str:
    """What stands for its value: nothing for a flag, the choices where there are some."""
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return ""
    own = parameter.metavar or PLACEHOLDERS.get(type(parameter.type)) or parameter.make_metavar(CONTEXT)
    return own.removesuffix("...").strip("[]")


def documented(name: str) -> dict[frozenset[str], tuple[str, dict[str, str]]]:
    """The rows of a command's table, by the spellings of an option: its placeholder, and the row."""
    if not parameters(name):
        assert not section_of(name).tables
        return {}
    found = {}
    for row in table(PAGE, "option", anchor=name):
        spellings = [span.partition(" ") for span in code(row["option"])]
        found[frozenset(spelling for spelling, _, _ in spellings)] = (spellings[-1][2], row)
    return found


def section_of(name: str) -> Section:
    [found] = [section for section in sections(ROOT / PAGE) if section.anchor == name]
    return found


def spellings(parameter: click.Parameter) -> frozenset[str]:
    if isinstance(parameter, click.Argument):
        return frozenset({placeholder(parameter)})
    return frozenset([*parameter.opts, *parameter.secondary_opts])


def in_synopsis(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Argument):
        dots = "..." if parameter.nargs == -1 else ""
        return f"{placeholder(parameter)}{dots}" if parameter.required else f"[{placeholder(parameter)}]{dots}"
    option = f"{parameter.opts[0]} {placeholder(parameter)}".strip()
    return option if parameter.required else f"[{option}]"


def test_every_command_has_a_section_and_a_row_in_order() -> None:
    listed = [name for row in table(PAGE, "command") for name in code(row["command"])]
    assert listed == list(COMMANDS)
    anchors = [section.anchor for section in sections(ROOT / PAGE)]
    assert [anchor for anchor in anchors if anchor in COMMANDS] == list(COMMANDS)
    of_json = [anchor.removeprefix("the-json-of-") for anchor in anchors if anchor.startswith("the-json-of-")]
    assert set(of_json) == {"run", *(name for name in COMMANDS if "--json" in all_options(name))}


def all_options(name: str) -> set[str]:
    return {spelling for parameter in parameters(name) for spelling in spellings(parameter)}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_there_and_no_other(name: str) -> None:
    rows = documented(name)
    assert rows.keys() == {spellings(parameter) for parameter in parameters(name)}
    for parameter in parameters(name):
        shown = rows[spellings(parameter)][0]
        assert shown == ("" if isinstance(parameter, click.Argument) else placeholder(parameter)), parameter.name


@pytest.mark.parametrize("name", COMMANDS)
def test_every_default_is_true(name: str) -> None:
    rows = documented(name)
    for parameter in parameters(name):
        _, row = rows[spellings(parameter)]
        told, spans = row["default"], code(row["default"])
        default = parameter.to_info_dict().get("default")
        assert all(row.values()), parameter.name
        assert (told == "required") == parameter.required, parameter.name
        if isinstance(parameter, click.Option) and parameter.is_flag:
            assert told.partition(":")[0] == "off", parameter.name
        elif default is not None:
            assert spans == [str(default)], parameter.name
        elif isinstance(parameter, click.Option):
            assert [span for span in spans if span not in (parameter.help or "")] == [], parameter.name


@pytest.mark.parametrize("name", COMMANDS)
def test_every_choice_is_named(name: str) -> None:
    rows = documented(name)
    for parameter in parameters(name):
        if isinstance(parameter.type, click.Choice) and parameter.metavar not in {"EVENT", "E"}:
            placeholder_shown, row = rows[spellings(parameter)]
            named = [*placeholder_shown.split("|"), *code(row["what it does"])]
            assert [choice for choice in parameter.type.choices if choice not in named] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_synopsis_is_that_of_the_command(name: str) -> None:
    ordered = sorted(parameters(name), key=lambda parameter: isinstance(parameter, click.Option))
    synopsis = " ".join(["llxprt-hooks", name, *map(in_synopsis, ordered)])
    section = (ROOT / PAGE).read_text(encoding="utf-8").split(f"\n## {name}\n")[1].split("\n## ")[0]
    assert [line for line in section.splitlines() if line.startswith("`llxprt-hooks ")] == [f"`{synopsis}`"]


def test_every_option_that_the_page_mentions_exists() -> None:
    known = {option for name in COMMANDS for option in all_options(name)} | {"--help", "--version"}
    prose = [line for line in (ROOT / PAGE).read_text(encoding="utf-8").splitlines() if "llxprt-hooks" in line]
    spoken = {option for line in prose for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", line)}
    assert spoken - known == set()


def test_the_options_that_all_commands_have() -> None:
    rows = {name for row in table(PAGE, "option", anchor=EVERYWHERE) for name in code(row["option"])}
    shown = [each for each in cli.get_params(CONTEXT) if not getattr(each, "hidden", False)]
    own = {option for parameter in shown for option in parameter.opts}
    assert rows == {*own, "-C DIR"}
    for name in COMMANDS:
        assert any("-C" in parameter.opts for parameter in command(name).params), name


def test_every_exit_status() -> None:
    assert {int(row["status"]) for row in table(PAGE, "status")} == set(ExitStatus)


# What --json prints.

FREE = {"results[].output", "final_output", "tool_calls[].args", "effects", "payload", "observed"}
FREE |= {"tests[].expected", "tests[].actual.output"}
"""Keys whose value has whatever keys it has."""

SETTINGS = {
    "enableHooks": True,
    "hooks": {"BeforeTool": [{"hooks": [{"type": "command", "name": "guard", "command": "echo no >&2; exit 2"}]}]},
}
ANSWERS: list[list[dict[str, Any]]] = [
    [{"functionCall": {"name": "glob", "args": {"pattern": "*"}}}],
    [{"text": "Done."}],
]


@pytest.fixture
def shop(tmp_path: Path, home: Path) -> Path:
    """A project with a mistake in its settings that nobody has approved, and a hook of the user's."""
    folder = tmp_path / "shop"
    for root, settings in ((folder, {**SETTINGS, "hooks": {"BeforeTol": []}}), (home, SETTINGS)):
        (root / ".llxprt").mkdir(parents=True)
        (root / ".llxprt" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        (root / ".llxprt" / "settings.json").chmod(0o644)
    contents = [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"} for parts in ANSWERS]
    recorded = [{"method": "generateContent", "response": {"candidates": [content]}} for content in contents]
    test = {"event": "BeforeTool", "input": {}, "expect": {"decision": "block", "reason": "no"}}
    (folder / "tests.hooktest.json").write_text(json.dumps(test), encoding="utf-8")
    broken = {"type": "command", "name": "broken", "command": "exit 3", "failClosed": True}
    stricter = {"enableHooks": True, "hooks": {"BeforeTool": [{"hooks": [broken]}]}}
    (folder / "stricter.json").write_text(json.dumps(stricter), encoding="utf-8")
    (folder / "stricter.json").chmod(0o644)
    (folder / "answers.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in recorded), encoding="utf-8")
    return folder


def printed(folder: Path, *arguments: str) -> list[Any]:
    """What a command prints, a JSON value a line."""
    command_line = [sys.executable, "-m", "llxprt_hooks", *arguments]
    done = subprocess.run(command_line, cwd=folder, capture_output=True, text=True)
    assert done.stdout, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def paths(value: Any, path: str = "") -> Iterator[str]:
    """The keys of a JSON value, as the page writes them."""
    if isinstance(value, dict) and path not in FREE:
        for key, inner in value.items():
            name = "EVENT" if key == "BeforeTool" else key
            yield from paths(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and path not in FREE:
        found = {key for inner in value for key in paths(inner, f"{path}[]")}
        yield from found or {f"{path}[]"}
    else:
        yield path


RUN = ("run", "-p", "look", "--replay", "answers.jsonl")
PRINTING: dict[str, tuple[str, ...]] = {
    "run": (*RUN, "-o", "json", "--log-payloads"),
    "fire": ("fire", "BeforeTool", "--json"),
    "list": ("list", "--json"),
    "doctor": ("doctor", "--json"),
    "test": ("test", "--json", "tests.hooktest.json"),
    "backtest": ("backtest", "--json", "--settings", "stricter.json", "--only", "broken"),
    "validate": ("validate", "--json"),
    "log": ("log", "--json"),
    "stats": ("stats", "--json"),
}


@pytest.mark.parametrize("name", PRINTING)
def test_every_key_of_json_output(name: str, shop: Path) -> None:
    printed(shop, *PRINTING["run"])
    [value] = printed(shop, *PRINTING[name])
    rows = table(PAGE, "key", anchor=f"the-json-of-{name}")
    assert sorted(span for row in rows for span in code(row["key"])) == sorted(paths(value))


def test_every_kind_of_line_of_a_stream(shop: Path) -> None:
    rows = {code(row["type"])[0]: code(row["other keys"]) for row in table(PAGE, "type")}
    kinds = {each.type for each in vars(audience).values() if isinstance(each, type) and hasattr(each, "type")}
    assert rows.keys() == kinds | {"result"}
    for line in printed(shop, *RUN, "-o", "stream-json"):
        if line["type"] != "result":
            assert line.keys() - {"type"} <= set(rows[line["type"]])


# Environment variables.

READ_BY_LIBRARIES = {
    "ANTHROPIC_BASE_URL": "the table of APIs in proxy/model_http",
    "GOOGLE_GEMINI_BASE_URL": "google-genai",
    "HOME": "pathlib, for the home folder",
    "OPENAI_BASE_URL": "the table of APIs in proxy/model_http",
    "_LLXPRT_HOOKS_COMPLETE": "click",
}

OF_RECIPES = SOURCES / "llxprt_hooks" / "recipes" / "collection"
"""Not looked at: scripts that are copied into projects and are the user's own there, with variables of their own."""

HANDED_ON = {
    "cli/commands/model_proxy.py": "the agent inherits it",
    "cli/commands/serve.py": "reads the token from the variable that an option names",
    "diagnosis/checks/commands.py": "looks for variables that a command in the settings names",
    "inspection/hook_tests.py": "sets variables that a test file names",
    "integrations/claude_agent_sdk.py": "the SDK's program inherits it",
    "process/warm/zygote.py": "becomes that of the script that it runs",
    "shell/environment.py": "hooks inherit it",
}
"""Files that use the environment otherwise than for variables of fixed names, each with the reason."""


def test_every_environment_variable() -> None:
    rows = {name for row in table(PAGE, "variable") for name in code(row["variable"])}
    read: set[str] = set()
    handed_on: set[str] = set()
    for file in sorted(SOURCES.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if ("environ" in text or "getenv" in text) and not file.is_relative_to(OF_RECIPES):
            names, whole = variables(ast.parse(text))
            read |= names
            handed_on |= {file.relative_to(SOURCES / "llxprt_hooks").as_posix()} if whole else set()
    assert rows == read | READ_BY_LIBRARIES.keys()
    assert handed_on == HANDED_ON.keys()


def variables(module: ast.Module) -> tuple[set[str], bool]:
    """The names that a module reads from the environment, and whether it uses the environment in another way."""
    parents = {child: node for node in ast.walk(module) for child in ast.iter_child_nodes(node)}
    known = constants(module)
    names: set[str] = set()
    otherwise = False
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "environb", "getenv", "getenvb"}:
            key = key_of(node, parents)
            found = set() if key is None else strings(key, known)
            names |= found
            otherwise = otherwise or not found
    return names, otherwise


def key_of(node: ast.Attribute, parents: dict[ast.AST, ast.AST]) -> ast.expr | None:
    """What is looked up: ``environ[KEY]``, ``KEY in environ``, ``environ.get(KEY)`` or ``getenv(KEY)``."""
    user = parents[node]
    if isinstance(user, ast.Subscript):
        return user.slice
    if isinstance(user, ast.Compare):
        return user.left
    function: ast.AST = user if isinstance(user, ast.Attribute) else node
    call = parents[function]
    return call.args[0] if isinstance(call, ast.Call) and call.func is function and call.args else None


def constants(module: ast.Module, *, imports: bool = True) -> dict[str, ast.expr]:
    """What names stand for: constants of the module and of those it imports, and what comprehensions take from them."""
    found: dict[str, ast.expr] = {}
    for node in ast.walk(module):
        if imports and isinstance(node, ast.ImportFrom) and (node.module or "").startswith("llxprt_hooks."):
            file = (SOURCES / (node.module or "").replace(".", "/")).with_suffix(".py")
            imported = constants(ast.parse(file.read_text(encoding="utf-8")), imports=False) if file.exists() else {}
            found |= {
                name.name: imported[name.name] for name in node.names if name.name in imported and name.name.isupper()
            }
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            found[node.target.id] = node.value
        elif isinstance(node, ast.comprehension) and isinstance(node.target, ast.Name):
            found.setdefault(node.target.id, node.iter)
    return found


def strings(expression: ast.expr, known: dict[str, ast.expr]) -> set[str]:
    """The strings that an expression may be; none where that cannot be seen."""
    if isinstance(expression, ast.Constant) and isinstance(expression.value, str):
        return {expression.value}
    if isinstance(expression, ast.Tuple):
        return {string for element in expression.elts for string in strings(element, known)}
    if isinstance(expression, ast.Name) and expression.id in known:
        return strings(known[expression.id], {name: each for name, each in known.items() if name != expression.id})
    return set()


# Files.


def test_the_files_of_the_user_are_where_the_page_says() -> None:
    named = {span for row in table(PAGE, "file", anchor="files") for span in code(row["file"])}
    user_settings = settings_file(Level.USER, ROOT)
    assert user_settings is not None
    for file in (log_file(), rotated(log_file()), user_settings):
        assert f"~/.llxprt/{file.relative_to(user_folder())}" in named
