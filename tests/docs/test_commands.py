"""The pages about the command line have every command, exit status and JSON key, and none that does not exist."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks.cli.main import COMMANDS
from tests.docs.pages import ROOT, code, table
from tests.support.cli import run

PAGE = "docs/commands.md"
JSON_PAGE = "docs/json-output.md"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_its_options(name: str) -> None:
    """The site fills in the block; a reader of the file sees what the command is for, and what prints its help."""
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert f"\n## {name}\n" in text
    assert f"\n```{{help}} {name}\nllxprt-hooks {name} --help    # {COMMANDS[name]}\n```\n" in text


@pytest.mark.parametrize("block", ["commands", "statuses"])
def test_the_page_has_the_command_that_lists_commands_and_exit_statuses(block: str) -> None:
    assert f"\n```{{{block}}}\nllxprt-hooks --help\n```\n" in (ROOT / PAGE).read_text(encoding="utf-8")


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
    done = run(*arguments, cwd=folder, env=os.environ)
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
    "prove": ("prove", "--json", "--timeout", "1", "--", "false"),
    "validate": ("validate", "--json", "--start"),
    "log": ("log", "--json"),
    "stats": ("stats", "--json"),
}


@pytest.mark.parametrize("name", PRINTING)
def test_every_key_of_json_output(name: str, shop: Path) -> None:
    printed(shop, *PRINTING["run"])
    [value] = printed(shop, *PRINTING[name])
    rows = table(JSON_PAGE, "Key", anchor=name)
    assert sorted(span for row in rows for span in code(row["Key"])) == sorted(paths(value))
