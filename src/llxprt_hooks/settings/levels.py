"""Paths of settings files: three levels, and the user's folder."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Final

FOLDER: Final = ".llxprt"
FILE_NAME: Final = "settings.json"

SYSTEM_SETTINGS = {"darwin": Path("/Library/Application Support/LlxprtCode", FILE_NAME)}.get(
    sys.platform, Path("/etc/llxprt-code", FILE_NAME)
)
"""The administrator's file. It is read even if the variable names another one: its hooks may be managed (D-36)."""
SYSTEM_SETTINGS_VARIABLE: Final = "LLXPRT_SYSTEM_SETTINGS_PATH"

CONFIG_HOME_VARIABLE: Final = "LLXPRT_CONFIG_HOME"
CONFIG_FOLDER = {"darwin": Path("Library", "Preferences", "llxprt-code")}.get(
    sys.platform, Path(".config", "llxprt-code")
)
"""Where current versions of LLxprt Code keep the user's settings, below the home directory."""

LOG_VARIABLE: Final = "LLXPRT_HOOKS_LOG"
"""1, or the path of a file: every program records its hooks for ``llxprt-hooks log``, there if it is a path."""

NO_HOME: Final = Path("/dev/null")
"""A path that can never contain files."""

SHARED_FOLDER: Final = Path("/var/tmp")  # noqa: S108  # what is read there must belong to the user
"""Where approvals are kept if the home directory is inside the project."""


class Level(StrEnum):
    """A level of settings, highest priority first."""

    PROJECT = "project"
    USER = "user"
    SYSTEM = "system"


def user_folder() -> Path:
    """Return ``~/.llxprt``, which contains the user's extensions, approvals and logs."""
    return home_folder() / FOLDER


def inspectors_folder() -> Path:
    """Return where open inspectors announce themselves."""
    return user_folder() / "inspectors"


def wants_log() -> bool:
    """Whether the environment has every program record its hooks."""
    return os.environ.get(LOG_VARIABLE) == "1" or chosen_log() is not None


def chosen_log() -> Path | None:
    """Return the file that the environment chooses for records."""
    chosen = Path(os.environ.get(LOG_VARIABLE, ""))
    return chosen if chosen.is_absolute() else None


def home_folder() -> Path:
    """Return the home directory; a path that can never contain files if there is none."""
    try:
        home = Path.home()
    except RuntimeError:
        home = Path()
    # An empty or relative HOME would resolve to the project folder, and the project could supply the user's settings.
    is_missing = os.environ.get("HOME") == "" or not home.is_absolute()
    return NO_HOME if is_missing else home


def absolute_project(project_dir: str | os.PathLike[str]) -> Path:
    """Return the absolute path that hooks get, so that ``link/..`` means the same for approval and execution."""
    return Path(os.path.abspath(project_dir))  # noqa: PTH100  # pathlib keeps the ..


def settings_file(level: Level, project_dir: Path) -> Path | None:
    """Return the settings file of a level.

    There is no user level if the user's folder is the project or inside it: a project could bring it (D-34).
    """
    if level is Level.USER:
        return None if is_inside(_config_home() or home_folder(), project_dir) else user_settings_file()
    if level is Level.SYSTEM:
        return _absolute(os.environ.get(SYSTEM_SETTINGS_VARIABLE)) or SYSTEM_SETTINGS
    return project_settings_file(project_dir)


def project_settings_file(project_dir: Path) -> Path:
    """Return a project's settings file, whether or not it exists."""
    return project_dir.absolute() / FOLDER / FILE_NAME


def standard_system_file() -> Path | None:
    """Return the administrator's file if a variable names another one in its place."""
    return None if settings_file(Level.SYSTEM, NO_HOME) == SYSTEM_SETTINGS else SYSTEM_SETTINGS


def user_settings_file() -> Path:
    """Return the user's settings file, whether or not it exists (D-47)."""
    first, *others = _user_settings_files()
    if _config_home():
        return first
    return next((file for file in (first, *others) if os.path.lexists(file)), others[-1])


def unused_user_files() -> list[Path]:
    """Return files that would be the user's settings if the one that is used did not exist."""
    used = user_settings_file()
    return [file for file in _user_settings_files() if file != used and os.path.lexists(file)]


def extensions_folder(project_dir: Path) -> Path | None:
    """Return the folder of the user's extensions; None if it is inside the project."""
    return None if is_inside(home_folder(), project_dir) else user_folder() / "extensions"


def approvals_folder(project_dir: Path) -> Path:
    """Return the folder for a project's approval. It is outside the project, which could otherwise approve itself."""
    places = (user_folder(), SHARED_FOLDER / f"llxprt-hooks-{os.geteuid()}")
    return next((place for place in places if not is_inside(place.parent, project_dir)), NO_HOME)


def is_home(folder: Path) -> bool:
    """Return whether a folder is the home directory, whose settings apply to all projects."""
    return os.path.realpath(folder) == os.path.realpath(home_folder())


def is_inside(folder: Path, project_dir: Path) -> bool:
    """Return whether a folder is the project or inside it. Nothing is inside ``/``, which no repository can be."""
    project = Path(os.path.realpath(project_dir))
    return project != Path("/") and Path(os.path.realpath(folder)).is_relative_to(project)


def _user_settings_files() -> list[Path]:
    """Return all places of the user's settings, the preferred one first."""
    folders = [_config_home(), home_folder() / CONFIG_FOLDER, user_folder()]
    return [folder / FILE_NAME for folder in folders if folder]


def _config_home() -> Path | None:
    return _absolute(os.environ.get(CONFIG_HOME_VARIABLE))


def _absolute(path: str | None) -> Path | None:
    """Return the path in a variable. A relative one could lead into the project, so it is ignored."""
    return Path(path) if path and Path(path).is_absolute() else None
