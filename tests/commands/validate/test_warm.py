"""The suggestion to run a Python script in an interpreter that waits."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks.commands.validate import diagnose, inspect_file
from llxprt_hooks.commands.validate.checks.warm import _times

if TYPE_CHECKING:
    from tests.commands.validate.marks import DiagnosedProject

PYTHON = str(Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}"))


def suggestions(
    place: DiagnosedProject, command: str, hooks_config: dict[str, Any] | None = None, **fields: Any
) -> list[str]:
    place.write("hook.py", "print('{}')")
    hook = {"type": "command", "command": command, **fields}
    settings = {"enableHooks": True, "hooks": {"BeforeTool": [{"hooks": [hook]}]}, "hooksConfig": hooks_config or {}}
    place.write(place.project_file, json.dumps(settings))
    found = diagnose(inspect_file(place.project_file, place.root))
    return [each.message for each in found if each.code == "not-warm"]


def test_python_hook_is_suggested_with_the_times_that_were_measured(place: DiagnosedProject) -> None:
    (message,) = suggestions(place, f"{PYTHON} -I hook.py")

    found = re.fullmatch(r"every event starts Python, which takes (\d+) ms here, and (\d+\.\d) ms with `warm`", message)
    assert found is not None
    assert all(float(taken) > 0 for taken in found.groups())


async def test_it_is_measured_also_where_an_event_loop_runs(place: DiagnosedProject) -> None:
    _times.cache_clear()

    (message,) = suggestions(place, f"{PYTHON} -I hook.py")

    assert message.endswith("with `warm`")


@pytest.mark.parametrize("warm", [True, False])
def test_nothing_is_suggested_where_the_hook_says_something(place: DiagnosedProject, warm: bool) -> None:
    assert not suggestions(place, f"{PYTHON} hook.py", warm=warm)


def test_nothing_is_suggested_where_it_is_turned_off(place: DiagnosedProject) -> None:
    assert not suggestions(place, f"{PYTHON} hook.py", {"warm": False})


@pytest.mark.parametrize("command", ["cat", "sh hook.sh | cat", f"{PYTHON} -c pass", f"{PYTHON} missing.py"])
def test_nothing_is_suggested_for_other_commands(place: DiagnosedProject, command: str) -> None:
    assert not suggestions(place, command)


def test_interpreter_of_the_project_is_not_run(place: DiagnosedProject) -> None:
    (place.root / "bin").mkdir()
    (place.root / "bin/python3").symlink_to(PYTHON)

    (message,) = suggestions(place, f"{place.root}/bin/python3 hook.py")

    assert message == "every event starts Python"


def test_interpreter_that_cannot_be_started_has_no_time(place: DiagnosedProject, tmp_path: Path) -> None:
    broken = tmp_path / "elsewhere" / "python3"
    broken.parent.mkdir()
    broken.write_bytes(b"\x7fELF nothing")
    broken.chmod(0o755)

    assert suggestions(place, f"{broken} hook.py") == ["every event starts Python"]


def test_interpreter_that_does_not_run_the_script_has_no_time(place: DiagnosedProject, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "python3"
    other.parent.mkdir()
    other.symlink_to("/bin/false")

    assert suggestions(place, f"{other} hook.py") == ["every event starts Python"]
