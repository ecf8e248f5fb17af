"""The tests that recipes bring pass in a project that has all of them."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from llxprt_hooks.recipes import FIRST_HOOK, NAMES

if TYPE_CHECKING:
    from tests.support.cli import CliProject


@pytest.mark.parametrize("in_git", [True, False], ids=["in a git repository", "elsewhere"])
def test_the_tests_of_all_recipes_pass(world: CliProject, in_git: bool) -> None:
    if in_git:
        subprocess.run(["git", "init", "--quiet"], cwd=world.root, check=True)
    assert world.run("init", FIRST_HOOK, *NAMES).status == 0

    run = world.run("test", "--json")

    assert [(test["name"], test["problems"]) for test in run.json["tests"] if not test["passed"]] == []
    tested = {test["file"].rpartition("/")[2].removesuffix(".hooktest.json") for test in run.json["tests"]}
    assert tested == {FIRST_HOOK, *NAMES}
    assert run.status == 0


def test_each_recipe_is_tested_alone_and_with_the_hook_it_is_about(world: CliProject) -> None:
    """Tests of one recipe must not depend on the hooks of another."""
    assert world.run("init", "read-only").status == 0

    run = world.run("test", "--json")

    assert (run.json["passed"], run.json["failed"]) == (2, 0)
    assert {test["hook"] for test in run.json["tests"]} == {"read-only"}
