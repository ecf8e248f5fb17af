"""The tables of the documentation are true, row by row."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import llxprt_hooks
from llxprt_hooks import Config, HookEventName
from llxprt_hooks.core.protocol.outputs import DefaultHookOutput
from llxprt_hooks.events import EVENTS, Effect
from llxprt_hooks.settings.hook_fields import HOOKS_CONFIG
from llxprt_hooks.settings.matcher import compile_matcher
from llxprt_hooks.settings.schema import GROUPS, hook_shape, settings_executors
from tests.docs.pages import ROOT, code, table

PROTOCOL = "docs/protocol.md"
SETTINGS = "docs/settings.md"
CHEAT_SHEET = "docs/cheat-sheet.md"
SAYINGS = table(CHEAT_SHEET, "you want to")
PRINTS = "a program prints, and exits with 0"
PACKAGE = ROOT / "src" / "llxprt_hooks"


async def before_tool(command: str, folder: Path) -> dict[str, Any] | None:
    """The merged output of one BeforeTool hook."""
    hooks = {"BeforeTool": [{"hooks": [{"type": "command", "command": command}]}]}
    system = Config(enable_hooks=True, working_dir=folder, hooks=hooks).get_hook_system()
    assert system is not None
    output = (await system.ready_event_handler().fire_before_tool_event("write_file", {})).final_output
    return None if output is None else output.to_dict()


@pytest.mark.parametrize("row", table(PROTOCOL, "a BeforeTool hook that runs"), ids=str)
async def test_exit_codes(row: dict[str, str], tmp_path: Path) -> None:
    [command] = code(row["a BeforeTool hook that runs"])
    expected = None if row["result"] == "nothing" else json.loads(code(row["result"])[0])
    assert await before_tool(command, tmp_path) == expected


@pytest.mark.parametrize("row", table(PROTOCOL, "a hook that prints"), ids=str)
async def test_plain_text_and_json(row: dict[str, str], tmp_path: Path) -> None:
    [printed], [expected] = code(row["a hook that prints"]), code(row["result"])
    (tmp_path / "printed").write_text(printed, encoding="utf-8")
    assert await before_tool("cat printed", tmp_path) == json.loads(expected)


@pytest.mark.parametrize("row", table(PROTOCOL, "the JSON"), ids=str)
def test_malformed_fields(row: dict[str, str]) -> None:
    [written], [read] = code(row["the JSON"]), code(row["is read as"])
    assert DefaultHookOutput(json.loads(written)).to_dict() == json.loads(read)


def test_the_cheat_sheet_says_it_so_that_it_is_understood() -> None:
    printed = [json.loads(code(row[PRINTS])[0]) for row in SAYINGS if "{" in row[PRINTS]]
    assert [DefaultHookOutput(each).to_dict() for each in printed] == printed
    named = {field for each in printed for field in each.get("hookSpecificOutput", {})}
    assert named == {effect.field for effect in Effect}


REPLIES = ("allow", "deny", "ask", "stop", "rewrite", "context", "message", "change_request", "replace_answer",
           "replace_result", "restrict")  # fmt: skip


def test_the_cheat_sheet_says_what_functions_return() -> None:
    returned = {each for row in SAYINGS for each in code(row["a Python function returns"]) if each != "None"}
    replies = {name: getattr(llxprt_hooks, name) for name in REPLIES}
    assert all(isinstance(eval(each, {**replies}), dict) for each in returned)
    assert {each.partition("(")[0] for each in returned} == replies.keys()


@pytest.mark.parametrize("row", table(SETTINGS, "matcher"), ids=str)
def test_matchers(row: dict[str, str]) -> None:
    matches = compile_matcher(HookEventName.BEFORE_TOOL, code(row["matcher"])[0])
    assert [name for name in code(row["selects"]) if not matches(name)] == []
    assert [name for name in code(row["does not select"]) if matches(name)] == []


@pytest.mark.parametrize("row", table(SETTINGS, "in the command"), ids=str)
async def test_the_project_directory_in_commands(row: dict[str, str], tmp_path: Path) -> None:
    project = tmp_path / "my shop"
    project.mkdir()
    [word], [expected] = code(row["in the command"]), code(row["what the program gets"])
    output = await before_tool(f"printf '%s\\n' {word}", project)
    assert output is not None
    assert output["systemMessage"] == expected.replace("/home/me/my shop", str(project))


FIELD_BLOCK = re.compile(r"^```\{fields\} (\w+)\n(llxprt-hooks schema \| jq .+)\n```$", re.MULTILINE)


def test_the_command_in_a_block_of_fields_prints_them() -> None:
    """A reader of the file sees the command, which prints what the site shows."""
    shown = {
        "group": set(GROUPS[HookEventName.BEFORE_TOOL].fields),
        "hook": set(hook_shape("command").fields),
        "hooksConfig": set(HOOKS_CONFIG.fields),
        **{name: set(settings_executors()[name].fields or {}) for name in ("http", "nats")},
    }
    blocks = dict(FIELD_BLOCK.findall((ROOT / SETTINGS).read_text(encoding="utf-8")))
    assert blocks.keys() == shown.keys()
    if not shutil.which("jq"):
        pytest.skip("jq is not installed")
    for name, command in blocks.items():
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
        assert set(json.loads(done.stdout)) == shown[name]


def test_the_commands_in_the_block_of_events_print_them() -> None:
    [commands] = re.findall(r"(?ms)^```\{events\}\n(.+?)\n```$", (ROOT / PROTOCOL).read_text(encoding="utf-8"))
    if not shutil.which("jq"):
        pytest.skip("jq is not installed")
    done = subprocess.run(["bash", "-c", commands], capture_output=True, text=True, check=True)
    for event, spec in EVENTS.items():
        assert f'"{event}": {json.dumps(spec.description)}' in done.stdout
        assert " ".join([event, *spec.fields]) in done.stdout.splitlines()


def test_the_architecture_has_every_module() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    modules = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert [module for module in sorted(modules - {"__init__"}) if f"**`{module}`**" not in text] == []
