"""No pattern of a guard takes more than its share of time: ten times the text takes about ten times as long."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from llxprt_hooks.recipes import find_recipe
from tests.recipes.test_rates import PROJECT, call, corpus

METHODS = ("search", "match", "fullmatch", "sub", "split", "findall", "finditer")
UNITS = ["a", "A", "0", ".", " ", "/a", "a ", "a.", "-a ", "$a", "$(", "a=", "=", "(", ")", "[", "{", "a,", "'", '"',
         "`", "#", "\\", "*", "|a", "@", ":", "_a", "<", ">", "\n", "a/", "http ", "select ", "curl "]  # fmt: skip


class UsedPatterns:
    """Takes the place of the module ``re``, and remembers how patterns are used."""

    def __init__(self) -> None:
        self.used: set[tuple[str, int, str]] = set()
        for method in METHODS:
            setattr(self, method, self.recording(method))

    def __getattr__(self, name: str) -> Any:
        return getattr(re, name)

    def recording(self, method: str) -> Callable[..., Any]:
        def used(pattern: Any, *arguments: Any, **options: Any) -> Any:
            compiled = re.compile(pattern, options.pop("flags", 0))
            self.used.add((compiled.pattern, compiled.flags, method))
            return getattr(compiled, method)(*arguments, **options)

        return used

    def compile(self, pattern: str, flags: int = 0) -> Any:
        used, compiled = self, re.compile(pattern, flags)

        class Compiled:
            def __getattr__(self, name: str) -> Any:
                if name in METHODS:
                    used.used.add((compiled.pattern, compiled.flags, name))
                return getattr(compiled, name)

        return Compiled()


def patterns_used(recipe: str, monkeypatch: pytest.MonkeyPatch, project: Path) -> set[tuple[str, int, str]]:
    """Run the guard over the commands of its corpus, so that it uses its patterns."""
    [(file, content)] = find_recipe(recipe).scripts.items()
    recorder, module = UsedPatterns(), ModuleType("guard")
    module.__file__ = file
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "re", recorder)
        exec(compile(content, file, "exec"), vars(module))
    names = recipe if recipe != "egress" else "dangerous-commands"
    for families in corpus(names):
        for sample in (sample for samples in families.values() for sample in samples):
            tool, given = call(sample)
            if recipe == "ci-safety-net":
                module.reason_to_block({"tool_name": tool, "tool_input": given, "cwd": PROJECT})
            else:
                (module.judge if recipe == "protected-files" else module.judge_call)(tool, given, str(project))
    return recorder.used


def taken(pattern: re.Pattern[str], method: str, text: str) -> float:
    """Seconds of this process, which do not depend on what else the machine does."""
    begun = time.process_time()
    found = getattr(pattern, method)(*(("", text) if method == "sub" else (text,)))
    list(found) if method == "finditer" else None
    return time.process_time() - begun


@pytest.mark.parametrize("recipe", ["dangerous-commands", "protected-files", "egress", "ci-safety-net"])
def test_every_pattern_takes_time_in_proportion_to_the_text(
    recipe: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    used = patterns_used(recipe, monkeypatch, tmp_path)
    slow = set()
    for text, flags, method in used:
        pattern = re.compile(text, flags)
        for unit in UNITS:
            first = taken(pattern, method, unit * (10_000 // len(unit)))
            if first > 0.003 and taken(pattern, method, unit * (100_000 // len(unit))) > 40 * first:
                slow.add((text, method, unit))
                break

    assert len(used) > 30
    assert slow == set(), json.dumps(sorted(slow), indent=1)
