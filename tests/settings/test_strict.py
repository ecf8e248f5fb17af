"""Strict loading: a settings file that exists and cannot be read raises, with its place (D-27)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from llxprt_hooks import Config, Problem, SettingsError
from llxprt_hooks.settings import Level
from llxprt_hooks.settings.load import load_settings

if TYPE_CHECKING:
    from tests.settings.conftest import Write

BROKEN = '{\n  "enableHooks": true,\n  "hooks": {\n'


@pytest.mark.parametrize("level", ["project_file", "user_file", "system_file"])
@pytest.mark.parametrize(
    ("content", "place"),
    [
        (BROKEN, ":4:1: "),
        ('{"hooks": [1 2]}', ":1:14: "),
        ("[]", ":1:1: "),
        (b'{"a": "\xff"}', ":1:8: "),
        ("", ":1:1: "),
    ],
    ids=["cut", "syntax", "no object", "encoding", "empty"],
)
def test_a_file_that_cannot_be_parsed_raises_with_its_place(
    request: pytest.FixtureRequest, project: Path, write: Write, level: str, content: object, place: str
) -> None:
    file = write(request.getfixturevalue(level), content)

    with pytest.raises(SettingsError) as raised:
        Config.load(project, strict=True)

    assert str(raised.value).startswith(f"{file}{place}")
    [problem] = raised.value.problems
    assert isinstance(problem, Problem)
    assert problem.file == file
    assert Config.load(project).settings is not None


@pytest.mark.parametrize("kind", ["folder", "pipe", "too large", "link to itself"])
def test_a_file_that_cannot_be_read_raises(project: Path, user_file: Path, kind: str) -> None:
    user_file.parent.mkdir(exist_ok=True)
    if kind == "folder":
        user_file.mkdir()
    elif kind == "pipe":
        os.mkfifo(user_file)
    elif kind == "link to itself":
        user_file.symlink_to(user_file)
    else:
        user_file.write_bytes(b" " * (4 * 1024 * 1024 + 1))

    with pytest.raises(SettingsError, match="cannot be read"):
        Config.load(project, strict=True)


def test_every_broken_file_is_named(project: Path, user_file: Path, system_file: Path, write: Write) -> None:
    write(user_file, BROKEN)
    write(system_file, BROKEN)

    with pytest.raises(SettingsError) as raised:
        Config.load(project, strict=True)

    assert [line.partition(":")[0] for line in str(raised.value).splitlines()] == [str(user_file), str(system_file)]


def test_missing_files_and_mistakes_inside_a_file_do_not_raise(project: Path, user_file: Path, write: Write) -> None:
    write(user_file, {"enableHooks": "yes", "hooks": {"BeforeTol": [], "BeforeTool": 7}})

    assert Config.load(project, strict=True).settings is not None


@pytest.mark.parametrize("level", [Level.USER, Level.SYSTEM])
def test_the_guards_of_user_and_system_can_be_required(
    level: Level, project: Path, user_file: Path, system_file: Path, write: Write
) -> None:
    file = write(user_file if level is Level.USER else system_file, BROKEN)

    with pytest.raises(SettingsError) as raised:
        load_settings(project).require_guards()

    message = "These settings cannot be read, so their hooks would not run:\n"
    assert raised.value.refusal.startswith(f"{message}{file}:")


def test_single_levels_can_be_required(project: Path, project_file: Path, user_file: Path, write: Write) -> None:
    write(project_file, BROKEN)
    loaded = load_settings(project)

    loaded.require_guards()
    with pytest.raises(SettingsError):
        loaded.require_readable(Level.PROJECT)
    assert list(loaded.unreadable) == [Level.PROJECT]
    assert not user_file.exists()
