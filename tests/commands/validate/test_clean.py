"""What this project ships is clean."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from llxprt_hooks.commands.validate import diagnose, inspect_project
from llxprt_hooks.recipes import FIRST_HOOK, NAMES, find_recipe

if TYPE_CHECKING:
    from tests.commands.validate.marks import DiagnosedProject

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "llxprt_hooks"
EXAMPLES = sorted((ROOT / "examples").glob("*/project"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.parent.name)
def test_an_example_is_clean(place: DiagnosedProject, example: Path) -> None:
    project = place.folder / "example"
    shutil.copytree(example, project)
    (project / ".llxprt" / "settings.json").chmod(0o644)

    assert diagnose(inspect_project(project)) == []


def test_the_demo_is_clean(place: DiagnosedProject) -> None:
    demo = SOURCE / "cli" / "demo" / "project"
    shutil.copytree(demo / "hooks", place.root / "hooks")
    place.write(place.project_file, (demo / "settings.json").read_bytes())

    assert place.diagnose() == []


@pytest.mark.parametrize("name", [FIRST_HOOK, *NAMES])
def test_a_recipe_is_clean(place: DiagnosedProject, name: str) -> None:
    recipe = find_recipe(name)
    place.write(place.user_file, '{ "enableHooks": true }')
    profile = {"hooksConfig": {"profile": recipe.profile}} if recipe.profile else {}
    place.write(place.project_file, json.dumps({"hooks": recipe.hooks, **profile}))
    for script, content in recipe.scripts.items():
        place.write(f".llxprt/hooks/{script}", content, 0o755)

    assert place.diagnose() == []
