"""The collection: every recipe is complete, says what is true, and acts on its own sample."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from llxprt_hooks.cli.main import run_command_line
from llxprt_hooks.events import HookEventName
from llxprt_hooks.recipes import FIRST_HOOK, NAMES, UnknownRecipeError, find_recipe
from llxprt_hooks.recipes.catalogue import COLLECTION
from llxprt_hooks.settings.trust.status import TrustState, grant_trust, trust_status
from tests.recipes.project import RecipeProject, response

EVERY = (FIRST_HOOK, *NAMES)
DOCS = Path(__file__).parents[2] / "docs" / "recipes.md"


def test_there_are_twenty_five_and_one_to_begin_with() -> None:
    assert len(NAMES) == 25
    assert {folder.name for folder in COLLECTION.iterdir()} == {*EVERY, "parts"}


def test_a_name_that_is_nearly_right_is_answered_with_the_right_one() -> None:
    with pytest.raises(UnknownRecipeError, match="did you mean `secret-scanning`"):
        find_recipe("secret-scaning")
    with pytest.raises(UnknownRecipeError, match="--list"):
        find_recipe("nonsense")


@pytest.mark.parametrize("name", EVERY)
def test_a_recipe_is_complete(name: str) -> None:
    recipe = find_recipe(name)

    assert recipe.description.startswith(f"# {name}\n")
    assert recipe.summary.endswith(".")
    assert len(recipe.summary) <= 120
    assert set(recipe.events) <= set(HookEventName)
    assert recipe.event in recipe.events
    assert isinstance(json.loads(recipe.sample), dict)
    assert (recipe.trial is None) == (name == FIRST_HOOK)
    hooks = [hook for groups in recipe.hooks.values() for group in groups for hook in group["hooks"]]
    for hook in hooks:
        assert hook.keys() <= {"type", "name", "command", "timeout", "failClosed", "warm"}
        assert hook.get("warm", False) == hook["command"].startswith("python3")
        assert hook["name"] == name or hook["name"].startswith("chain-")
    run = {shlex.split(hook["command"])[-1].rpartition("/")[2] for hook in hooks}
    assert run == set(recipe.scripts)


@pytest.mark.parametrize("name", EVERY)
def test_the_scripts_of_a_recipe_run_wherever_a_python_or_a_posix_shell_is(name: str) -> None:
    for file, content in find_recipe(name).scripts.items():
        if file.endswith(".py"):
            assert content.startswith("#!/usr/bin/env python3\n")
            tree = ast.parse(content, feature_version=(3, 9))
            assert "llxprt_hooks" not in {each.module for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)}
        else:
            assert content.startswith("#!/bin/sh\n")
            subprocess.run(["sh", "-n"], input=content, text=True, check=True)


@pytest.mark.parametrize("name", EVERY)
def test_nothing_is_wrong_with_the_settings_that_a_recipe_makes(
    name: str, bench: RecipeProject, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    bench.init(name)
    capfdbinary.readouterr()

    run_command_line(["validate", "--json", "-C", str(bench.root)])

    found = json.loads(capfdbinary.readouterr().out)
    assert [each for each in found["diagnostics"] if each["severity"] != "hint"] == []


BLOCKED = (FIRST_HOOK, "secret-scanning", "dangerous-commands", "protected-files", "egress", "test-first", "read-only")


@pytest.mark.parametrize("name", BLOCKED)
async def test_the_sample_of_a_guard_is_blocked(name: str, bench: RecipeProject) -> None:
    output = (await bench.init(name).try_sample(name, "BeforeTool")).final_output

    assert output is not None
    assert output.is_blocking_decision()


@pytest.mark.parametrize(
    "name", ["pii-redaction", "redact-results", "sequential-chain", "text-only-caveat", "cost-cap"]
)
async def test_the_sample_of_a_recipe_that_changes_something_is_changed(name: str, bench: RecipeProject) -> None:
    output = (await bench.init(name).try_sample(name, find_recipe(name).event)).final_output

    assert output is not None
    assert output.hook_specific_output or output.system_message


@pytest.mark.parametrize("name", sorted(set(EVERY) - {"policy-service"}))
async def test_no_recipe_fails_on_its_sample(name: str, bench: RecipeProject) -> None:
    await bench.init(name).try_sample(name, find_recipe(name).event)


async def test_all_recipes_get_along(bench: RecipeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.init(*(name for name in NAMES if name not in ("read-only", "policy-service")))
    bench.write("tests/test_a.py", "assert a\n")

    assert await bench.verdict("write_file", file_path="a.py", content="x = 1\n") is None
    await bench.fire("AfterModel", llm_request={"messages": []}, llm_response=response("fine"))


def test_a_recipe_at_work_does_not_end_its_own_approval(bench: RecipeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLXPRT_TRUST_PROJECT_HOOKS")
    bench.init(*NAMES)
    grant_trust(bench.root)

    bench.write(".llxprt/state/audit.jsonl", "{}\n")
    for name in ("log.py", "test.py", "policy.py", "service.py", "cache.py", "check.py", "chain.py", "files.py"):
        bench.write(name, "the agent writes files like these\n")

    assert trust_status(bench.root).state is TrustState.TRUSTED


def test_the_page_of_recipes_says_what_they_say() -> None:
    rows = re.findall(r"^\| \[`([\w-]+)`\]\(([^)]*)\) \| (.+) \|$", DOCS.read_text("utf-8"), flags=re.MULTILINE)

    assert tuple(name for name, _, _ in rows) == NAMES
    for name, link, cells in rows:
        recipe = find_recipe(name)
        assert (DOCS.parent / link).resolve() == COLLECTION / name / "README.md"
        assert cells.split(" | ") == [
            recipe.summary,
            ", ".join(recipe.events),
            recipe.when,
            ", ".join(recipe.needs),
        ]
