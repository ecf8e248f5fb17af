"""What `init` prints to try a recipe can be tried, and shows what it says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from llxprt_hooks.recipes import NAMES, find_recipe
from tests.support.cli import run

if TYPE_CHECKING:
    from tests.recipes.project import RecipeProject

UNCHANGED = "nothing changed"


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_printed_to_try_a_recipe_shows_what_it_says(
    name: str, bench: RecipeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LLXPRT_TRUST_PROJECT_HOOKS")
    shell("git init --quiet", bench.root).check_returncode()

    told = run("init", name, cwd=bench.root, env=os.environ).stdout
    trust, *steps = (line.strip() for line in told.partition("Next:\n")[2].splitlines())
    program, command, *arguments = shlex.split(trust, comments=True)
    assert (program, command) == ("llxprt-hooks", "trust")
    assert run("trust", "--yes", *arguments, cwd=bench.root, env=os.environ).status == 0
    done = {step: shell(step, bench.root) for step in steps if not step.startswith("#")}

    [expected] = [step.removeprefix("# ") for step in steps if step not in done]
    [fired] = [step for step in done if "llxprt-hooks fire" in step]
    [outcome] = re.findall(
        r"^(?:allowed: |(?=blocked: |stopped: |asks a person: ))([^:\n]+)", done[fired].stdout, flags=re.MULTILINE
    )
    assert expected.startswith(outcome)
    for step, result in done.items():
        assert step == fired or result.returncode == 0, (step, result.stderr)
    if outcome == UNCHANGED:
        left_behind = done[steps[-1]].stdout if steps[-1] in done and steps[-1] != fired else ""
        assert left_behind or leads_on(expected, name, bench.root)


def leads_on(expected: str, name: str, project: Path) -> bool:
    """Whether the line names a file that is there now, or a variable that the recipe reads and nobody has set."""
    files = re.findall(r"(?:~|\.llxprt)/[\w./-]+", expected)
    scripts = "".join(find_recipe(name).scripts.values())
    variables = [each for each in re.findall(r"\b[A-Z]+(?:_[A-Z]+)*\b", expected) if each in scripts]
    there = [(project / os.path.expanduser(file)).exists() for file in files]
    return all(there) and (bool(there) or any(each not in os.environ for each in variables))
