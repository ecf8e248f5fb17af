"""What a person is shown before an approval: the text of each file, and what has changed since the last approval."""

from __future__ import annotations

import os
import re
from difflib import unified_diff
from typing import TYPE_CHECKING, Final

from llxprt_hooks.process.shell.command_line import PROJECT_DIR_REFERENCE
from llxprt_hooks.settings.levels import FILE_NAME, FOLDER
from llxprt_hooks.settings.trust.command_names import ScriptsError, has_assembled_path, starts_pattern
from llxprt_hooks.settings.trust.covered_files import named_files
from llxprt_hooks.settings.trust.fingerprint import FOREIGN, settings_text
from llxprt_hooks.settings.trust.store import MAX_TEXT, TrustStore, read_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from llxprt_hooks.settings.trust.status import TrustStatus

NOT_TEXT: Final = f"(no text, or larger than {MAX_TEXT // 1024} KiB)"
_IN_PROJECT: Final = re.compile(rf"""(?:{PROJECT_DIR_REFERENCE.pattern}"?|(?<![^\s"'])\.)/([^\s"'`$;|&<>()]+)""")
_SETTINGS: Final = f"{FOLDER}/{FILE_NAME}"


def covered_text(status: TrustStatus, name: str) -> str | None:
    """Return the text of a covered file as it would be approved; None if it cannot be shown."""
    text = read_text(status.project / name, status.parts.get(name, ""))
    return None if text is None else text.decode(errors="replace")


def difference(status: TrustStatus, name: str) -> list[str]:
    """Return the lines of a unified diff between what was approved under a name and its text now."""
    before, after = _approved_text(status, name), _current_text(status, name)
    if before is None or after is None:
        return [f"{name}: changed {NOT_TEXT}"]
    lines = unified_diff(
        before.splitlines(),
        after.splitlines(),
        f"approved/{name}" if name in status.approved.parts else "/dev/null",
        f"now/{name}" if name in status.parts else "/dev/null",
        lineterm="",
    )
    return list(lines) or [f"{name}: changed in a value that is not shown, or in line endings"]


def commands_without_file(status: TrustStatus) -> list[str]:
    """Return the commands for which no file of the project was found, so that nothing they run is covered."""
    return _commands(status, lambda texts: not _named(texts, status.project))


def assembled_commands(status: TrustStatus) -> list[str]:
    """Return the commands that assemble a path, so that their text does not show which file they run."""
    return _commands(status, lambda texts: any(has_assembled_path(text) or starts_pattern(text) for text in texts))


def _commands(status: TrustStatus, include: Callable[[tuple[str, ...]], bool]) -> list[str]:
    commands = (hook.command for hook in status.commands if hook.script_texts and include(hook.script_texts))
    return list(dict.fromkeys(commands))


def _named(texts: tuple[str, ...], project: Path) -> list[str]:
    try:
        return named_files(texts, project)
    except ScriptsError:  # then the project is refused as a whole
        return []


def missing_file(status: TrustStatus, command: str) -> str | None:
    """Return the first file of the project that a command names and that does not exist.

    Only names that begin with the project folder or ``./`` are recognized: others can be anything.
    """
    names = (found[1] for found in _IN_PROJECT.finditer(command))
    return next((name for name in names if not os.path.lexists(status.project / name)), None)


def _approved_text(status: TrustStatus, name: str) -> str | None:
    approved = status.approved
    digest = approved.settings_text if _is_settings(status, name) else approved.parts.get(name)
    if digest is None:
        return ""
    text = TrustStore.of(status.project).texts.read(digest)
    return None if text is None else text.decode(errors="replace")


def _is_settings(status: TrustStatus, name: str) -> bool:
    """Whether a name is that of settings, of which only what concerns hooks is compared."""
    return name == _SETTINGS or any(name in files for files in status.statement.get(FOREIGN, {}).values())


def _current_text(status: TrustStatus, name: str) -> str | None:
    if _is_settings(status, name):
        return settings_text(status.statement)
    return covered_text(status, name) if name in status.parts else ""
