"""Each script that a user gets is one file that needs no other, whatever it imports in the collection."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from llxprt_hooks.recipes import FIRST_HOOK, NAMES, bundle, find_recipe
from llxprt_hooks.recipes.bundle import PACKAGE, PARTS, bundled
from llxprt_hooks.recipes.catalogue import COLLECTION

ROOT = Path(__file__).parents[2]
SCRIPTS = {
    file: (recipe, content)
    for recipe in map(find_recipe, (FIRST_HOOK, *NAMES))
    for file, content in recipe.scripts.items()
    if file.endswith(".py")
}


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(bundle, "PARTS", tmp_path)
    return tmp_path


def test_parts_are_written_once_after_the_settings_of_the_script(parts: Path) -> None:
    (parts / "shapes").mkdir()
    (parts / "shapes" / "circle.py").write_text(
        f'"""Round things.\n\nOf any size.\n"""\n\nfrom __future__ import annotations\n\nimport math\n\n'
        f"from {PACKAGE}units import half\n\nTYPE_CHECKING = False\nif TYPE_CHECKING:\n"
        f"    from {PACKAGE}shapes.square import Square\n\n\n"
        "def area(diameter: float | Square):\n    return math.pi * half(diameter) ** 2\n"
    )
    (parts / "units.py").write_text("import decimal\n\n\ndef half(length):\n    return decimal.Decimal(length) / 2\n")

    script = bundled(
        f'#!/usr/bin/env python3\n"""Blocks."""\n\nfrom __future__ import annotations\n\nimport json\nimport sys\n\n'
        f"from {PACKAGE}shapes.circle import area\nfrom {PACKAGE}units import half\n\n"
        "MOST = 3  # may be changed\n\n\n# The hook itself.\n\n\n"
        "# Why it is one function.\n@decorated\ndef main():\n    print(json.dumps(area(half(MOST))), sys.argv)\n"
    )

    assert (
        script
        == '''#!/usr/bin/env python3
"""Blocks."""

from __future__ import annotations

import decimal
import json
import math
import sys

MOST = 3  # may be changed


def half(length):
    return decimal.Decimal(length) / 2


# Round things.
#
# Of any size.


def area(diameter: float | Square):
    return math.pi * half(diameter) ** 2


# The hook itself.


# Why it is one function.
@decorated
def main():
    print(json.dumps(area(half(MOST))), sys.argv)
'''
    )


def test_a_part_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(FileNotFoundError, match="nothing"):
        bundled(f"from {PACKAGE}nothing import anything\n")


def test_an_import_of_names_that_would_be_lost_is_an_error() -> None:
    with pytest.raises(ValueError, match="from json import loads"):
        bundled(f"from json import loads\nfrom {PACKAGE}call_paths import paths_in\n")


def test_every_part_is_in_a_script() -> None:
    sources = "".join(file.read_text("utf-8") for file in COLLECTION.rglob("*.py"))

    names = [".".join(file.relative_to(PARTS).with_suffix("").parts) for file in PARTS.rglob("*.py")]
    assert [name for name in names if f"from {PACKAGE}{name} import" not in sources] == []


@pytest.mark.parametrize("file", SCRIPTS)
def test_a_script_imports_nothing_but_the_standard_library(file: str) -> None:
    tree = ast.parse(SCRIPTS[file][1])

    imported = {each.name for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names}
    imported |= {node.module or "." for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names


@pytest.mark.parametrize("file", SCRIPTS)
def test_no_name_of_a_script_is_defined_twice(file: str) -> None:
    """A function of the script must not replace one that a part uses."""
    defined: Counter[str] = Counter()
    for node in ast.parse(SCRIPTS[file][1]).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined[node.name] += 1
        elif isinstance(node, ast.Assign):
            targets = [each for target in node.targets for each in ast.walk(target)]
            defined.update(
                each.id for each in targets if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
            )

    assert {name for name, times in defined.items() if times > 1} == set()


@pytest.mark.parametrize("file", SCRIPTS)
def test_a_script_reads_as_if_written_by_hand(file: str) -> None:
    """The linter finds undefined and unused names in it too."""
    recipe, content = SCRIPTS[file]
    as_file = f"--stdin-filename={COLLECTION / recipe.name / 'hooks' / file}"
    for command in (["check", "--no-cache"], ["format", "--check", "--no-cache"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, as_file, "-"],
            input=content.encode(),
            cwd=ROOT,
            capture_output=True,
        )
        assert done.returncode == 0, (done.stdout + done.stderr).decode()


@pytest.mark.parametrize("file", SCRIPTS)
def test_a_script_runs_as_a_single_file_that_was_copied(file: str, tmp_path: Path) -> None:
    recipe, content = SCRIPTS[file]
    place, project = tmp_path / "elsewhere" / file, tmp_path / "project"
    place.parent.mkdir()
    project.mkdir()
    place.write_text(content, "utf-8")
    event = {
        "session_id": "s1",
        "cwd": str(project),
        "timestamp": "2026-01-01T00:00:00.000Z",
        "hook_event_name": recipe.event,
        **json.loads(recipe.sample),
    }

    done = subprocess.run(
        [sys.executable, "-IS", str(place)],  # -S: without the packages of this environment
        input=json.dumps(event).encode(),
        cwd=project,
        env={"HOME": str(tmp_path), "PATH": os.defpath, "CI": "true"},
        capture_output=True,
    )

    assert done.returncode in (0, 2), done.stderr.decode()
    assert b"Error" not in done.stderr
