"""Paths of settings files: three levels, and the user's folder."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Final

SYSTEM_SETTINGS: Final = Path("/etc/llxprt-code/settings.json")
SYSTEM_SETTINGS_VARIABLE: Final = "LLXPRT_SYSTEM_SETTINGS_PATH"
FOLDER: Final = ".llxprt"
FILE_NAME: Final = "settings.json"

NO_HOME: Final = Path("/dev/null")
"""A path that can never contain files."""


class Level(StrEnum):
    """A level of settings, highest priority first."""

    PROJECT = "project"
    USER = "user"
    SYSTEM = "system"


def user_folder() -> Path:
    """Return ``~/.llxprt``, which contains the user's settings, extensions and approvals."""
    try:
        home = Path.home()
    except RuntimeError:
        home = Path()
    # An empty or relative HOME would resolve to the project folder, and the project could supply the user's settings.
    is_missing = os.environ.get("HOME") == "" or not home.is_absolute()
    return (NO_HOME if is_missing else home) / FOLDER


def absolute_project(project_dir: str | os.PathLike[str]) -> Path:
    """Return the absolute path that hooks get, so that ``link/..`` means the same for approval and execution."""
    return Path(os.path.abspath(project_dir))  # noqa: PTH100  # pathlib keeps the ..


def settings_file(level: Level, project_dir: Path) -> Path | None:
    """Return the settings file of a level. In the home directory there is no project level: its file is the user's."""
    if level is Level.USER:
        return user_folder() / FILE_NAME
    if level is Level.SYSTEM:
        named = Path(os.environ.get(SYSTEM_SETTINGS_VARIABLE, ""))
        return named if named.is_absolute() else SYSTEM_SETTINGS
    if _is_same_directory(project_dir, user_folder().parent):
        return None
    return project_dir.absolute() / FOLDER / FILE_NAME


def _is_same_directory(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False
