"""What this project ships is clean."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from llxprt_hooks.diagnosis import diagnose, inspect_project

if TYPE_CHECKING:
    from tests.diagnosis.diagnosis_marks import DiagnosedProject

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "llxprt_hooks"
EXAMPLES = sorted((ROOT / "examples").glob("*/project"))
RECIPES = sorted((SOURCE / "recipes" / "collection").glob("*/settings.json"))


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


@pytest.mark.parametrize("settings", RECIPES, ids=lambda path: path.parent.name)
def test_a_recipe_is_clean(place: DiagnosedProject, settings: Path) -> None:
    place.write(place.user_file, '{ "enableHooks": true }')
    place.write(place.project_file, settings.read_bytes())
    for script in filter(Path.is_file, (settings.parent / "hooks").iterdir()):
        place.write(f".llxprt/hooks/{script.name}", script.read_bytes(), 0o755)

    assert place.diagnose() == []
