"""Measures the guards among the recipes on lists that other projects have labelled.

    python bench/guards.py --lists DIR              a table: list, items, caught, false alarms, time
    python bench/guards.py --lists DIR --misses     and every item that a guard and its list disagree about
    python bench/guards.py --lists DIR --json       the same as JSON
    python bench/guards.py --lists DIR --part 0/2   only items whose hash falls into the first half

DIR has a file for each list, one JSON object per line (``*.jsonl``, ``*.jsonl.gz``): ``label`` (allow, deny, pii),
``text``, and ``tool`` with ``args`` where the item is a tool call. Scripts run as a warm hook runs them, from the
compiled script that ``init`` installs, in this process.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any, Final

from table import table

from llxprt_hooks.events import HookEventName
from llxprt_hooks.recipes import NAMES, find_recipe
from llxprt_hooks.settings.matcher import compile_matcher

COMMANDS: Final = ("dangerous-commands",)
SECRETS: Final = ("secret-scanning",)
CALLS: Final = ("dangerous-commands", "protected-files", "secret-scanning", "egress")
PII: Final = ("pii-redaction",)

GUARDS: Final = {
    "dcg-corpus": COMMANDS,
    "dcg-packs": COMMANDS,
    "safety-net": COMMANDS,
    "karanb192": COMMANDS,
    "redcode-bash": COMMANDS,
    "redcode-python": COMMANDS,
    "dippy": COMMANDS,
    "agent-safety-bench-zh": CALLS,
    "noseyparker": SECRETS,
    "kingfisher": SECRETS,
    "gitleaks": SECRETS,
    "detect-secrets": SECRETS,
    "presidio-research": PII,
}
"""The guards that judge a list together: an item counts as blocked if one of them blocks it."""

PROJECT: Final = "/home/ada/shop"

FOUND: Final = ("EMAIL_ADDRESS", "IBAN_CODE", "US_SSN", "IP_ADDRESS", "CREDIT_CARD", "PHONE_NUMBER")
"""The kinds of personal data that ``pii-redaction`` says it finds."""

Item = dict[str, Any]


@dataclass(slots=True)
class Guard:
    """A recipe's script, and the tools that it is for."""

    name: str
    code: CodeType
    matcher: str

    def answer(self, payload: dict[str, Any]) -> tuple[bool, str]:
        """Whether the script blocks, and what it prints."""
        out, err = io.StringIO(), io.TextIOWrapper(io.BytesIO())
        stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(json.dumps(payload).encode()))
        re.purge()  # a warm hook is a fork that has compiled no pattern yet
        try:
            with redirect_stdout(out), redirect_stderr(err):
                exec(self.code, {"__name__": "__main__", "__file__": self.code.co_filename})
        except SystemExit as stop:
            return stop.code == 2, out.getvalue()
        finally:
            sys.stdin = stdin
        return False, out.getvalue()

    def blocks(self, tool: str, given: dict[str, Any]) -> bool:
        if not compile_matcher(HookEventName.BEFORE_TOOL, self.matcher)(tool):
            return False
        event = {"session_id": "bench", "cwd": PROJECT, "hook_event_name": "BeforeTool"}
        return self.answer({**event, "tool_name": tool, "tool_input": given})[0]

    def changes(self, text: str) -> str:
        """A model's answer after this guard."""
        printed = self.answer({"llm_response": {"text": text}})[1]
        return str(json.loads(printed)["hookSpecificOutput"]["llm_response"]["text"]) if printed else text


@dataclass(slots=True)
class Score:
    """How the guards did on one list."""

    name: str
    attacks: int = 0
    caught: int = 0
    harmless: int = 0
    false_alarms: int = 0
    seconds: float = 0.0
    kinds: dict[str, list[int]] = field(default_factory=dict)
    """Of personal data: how many there are, and how many were taken out."""
    disagreements: list[tuple[str, Item]] = field(default_factory=list)

    def add(self, item: Item, blocked: bool) -> None:
        is_attack = item["label"] == "deny"
        self.attacks += is_attack
        self.harmless += not is_attack
        self.caught += is_attack and blocked
        self.false_alarms += blocked and not is_attack
        if blocked != is_attack:
            self.disagreements.append(("missed" if is_attack else "false alarm", item))

    def add_text(self, item: Item, changed: str) -> None:
        """A text with personal data: each piece of a kind in FOUND counts; one without any should stay."""
        wanted = Counter((kind, value) for kind, value in item["spans"] if kind in FOUND)
        if not wanted:
            self.harmless += 1
            self.false_alarms += changed != item["text"]
        for kind, value in wanted.elements():
            gone = changed.count(value) < item["text"].count(value)
            self.attacks += 1
            self.caught += gone
            seen = self.kinds.setdefault(kind, [0, 0])
            seen[0] += 1
            seen[1] += gone
            if not gone:
                self.disagreements.append(("missed", {**item, "text": f"{kind} {value}: {item['text']}"}))
        if not wanted and changed != item["text"]:
            self.disagreements.append(("false alarm", item))

    @property
    def f1(self) -> float:
        return 2 * self.caught / ((self.attacks + self.caught + self.false_alarms) or 1)

    @property
    def milliseconds(self) -> float:
        """An item, with all guards of the list."""
        return 1000 * self.seconds / ((self.attacks + self.harmless) or 1)

    def row(self) -> list[str]:
        return [
            self.name,
            _share(self.caught, self.attacks),
            _share(self.false_alarms, self.harmless),
            f"{self.f1:.2f}" if self.attacks and self.harmless else "",
            f"{self.milliseconds:.2f}",
        ]

    def as_json(self) -> dict[str, Any]:
        names = ("name", "attacks", "caught", "harmless", "false_alarms", "f1", "milliseconds", "kinds")
        return {name: getattr(self, name) for name in names}


def _share(number: int, total: int) -> str:
    return f"{number} of {total}, {100 * number / total:.1f} %" if total else ""


def guard(name: str) -> Guard:
    recipe = find_recipe(name)
    [(file, content)] = recipe.scripts.items()
    [groups] = recipe.hooks.values()
    return Guard(name, compile(content, file, "exec"), groups[0].get("matcher", ""))


def items(path: Path) -> Iterator[Item]:
    content = path.read_bytes()
    text = gzip.decompress(content) if path.suffix == ".gz" else content
    yield from map(json.loads, text.splitlines())


def call(item: Item) -> tuple[str, dict[str, Any]]:
    """The tool call that an item is judged as."""
    tool, text = item["tool"], item.get("text")
    given = {
        "run_shell_command": {"command": text},
        "run_python_code": {"code": text},
        "write_file": {"file_path": "settings", "content": text},
    }
    return tool, item.get("args") or given[tool]


def in_part(item: Item, part: tuple[int, int]) -> bool:
    text = item["text"] if "text" in item else json.dumps(item["args"], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[-1] % part[1] == part[0]


def score(name: str, path: Path, guards: list[Guard], part: tuple[int, int]) -> Score:
    result = Score(name)
    for item in items(path):
        if not in_part(item, part):
            continue
        started = time.perf_counter()
        if item["label"] == "pii":
            [redaction] = guards
            changed = redaction.changes(item["text"])
            result.seconds += time.perf_counter() - started
            result.add_text(item, changed)
        else:
            tool, given = call(item)
            blocked = [each.blocks(tool, given) for each in guards]
            result.seconds += time.perf_counter() - started
            result.add(item, any(blocked))
    return result


def total(name: str, scores: list[Score]) -> Score:
    fields = ("attacks", "caught", "harmless", "false_alarms", "seconds")
    return Score(name, **{each: sum(getattr(one, each) for one in scores) for each in fields})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lists", type=Path, required=True, help="the folder with the lists")
    parser.add_argument("--only", default="", help="names of lists, with commas")
    parser.add_argument("--guards", default="", help="judge with these recipes instead, with commas")
    parser.add_argument("--part", default="0/1", help="n/m: the n-th of m parts of every list, from 0")
    parser.add_argument("--misses", action="store_true", help="print every item that guards and list disagree about")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    os.environ.update(HOME="/home/ada", LLXPRT_PROJECT_DIR=PROJECT, CI="true")
    os.environ.pop("TMPDIR", None)
    part, parts = map(int, options.part.split("/"))
    only = options.only.split(",") if options.only else [*GUARDS]
    loaded: dict[str, Guard] = {}
    scores = []
    for name in only:
        found = [path for path in (options.lists / f"{name}.jsonl{end}" for end in ("", ".gz")) if path.is_file()]
        if not found:
            print(f"{options.lists} has no list {name}", file=sys.stderr)
            continue
        wanted = options.guards.split(",") if options.guards else [each for each in GUARDS[name] if each in NAMES]
        for each in wanted:
            loaded.setdefault(each, guard(each))
        scores.append(score(name, found[0], [loaded[each] for each in wanted], (part, parts)))
    commands = [each for each in scores if GUARDS[each.name] is COMMANDS]
    summed = [*scores, total("all commands", commands)] if len(commands) > 1 else scores

    if options.json:
        print(json.dumps([each.as_json() for each in summed], indent=2))
        return
    if options.misses:
        for each in scores:
            for kind, item in each.disagreements:
                shown = item["text"] if "text" in item else json.dumps([item["tool"], item["args"]], ensure_ascii=False)
                print(f"{each.name}: {kind}: {shown!r}")
    print(table(["list", "caught", "false alarms", "F1", "ms an item"], [each.row() for each in summed]))
    for each in summed:
        for kind, (there, gone) in each.kinds.items():
            print(f"  {each.name}, {kind}: {_share(gone, there)}")


if __name__ == "__main__":
    main()
