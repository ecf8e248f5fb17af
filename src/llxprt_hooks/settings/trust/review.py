"""What a person is shown before an approval: the text of each file, and what has changed since the last approval."""

from __future__ import annotations

import os
import re
from difflib import unified_diff
from typing import TYPE_CHECKING, Final

from llxprt_hooks.process.shell.command_line import PROJECT_DIR_REFERENCE
from llxprt_hooks.settings.levels import FILE_NAME, FOLDER
from llxprt_hooks.settings.trust.command_names import CommandNames, ScriptsError
from llxprt_hooks.settings.trust.fingerprint import settings_text
from llxprt_hooks.settings.trust.store import MAX_TEXT, TrustStore, read_text

if TYPE_CHECKING:
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
    found = []
    for hook in status.commands:
        names = _names(hook.script_texts)
        if hook.script_texts and not any(map(names.include_path, status.scripts)):
            found.append(hook.command)
    return list(dict.fromkeys(found))


def missing_file(status: TrustStatus, command: str) -> str | None:
    """Return the first file of the project that a command names and that does not exist.

    Only names that begin with the project folder or ``./`` are recognized: others can be anything.
    """
    names = (found[1] for found in _IN_PROJECT.finditer(command))
    return next((name for name in names if not os.path.lexists(status.project / name)), None)


def _names(texts: tuple[str, ...]) -> CommandNames:
    try:
        return CommandNames(texts)
    except ScriptsError:  # then the project is refused as a whole
        return CommandNames(())


def _approved_text(status: TrustStatus, name: str) -> str | None:
    approved = status.approved
    digest = approved.settings_text if name == _SETTINGS else approved.parts.get(name)
    if digest is None:
        return ""
    text = TrustStore.of(status.project).texts.read(digest)
    return None if text is None else text.decode(errors="replace")


def _current_text(status: TrustStatus, name: str) -> str | None:
    if name == _SETTINGS:
        return settings_text(status.statement)
    return covered_text(status, name) if name in status.parts else ""
