"""What a project says about hooks, as one hash: whatever could change what runs, changes it.

The hash is over the settings and over the scripts of the project that a command names directly: each word of a
command that is a file inside the project counts with its content. What a script goes on to read or import, files
that a wildcard or a changed directory leads to, and files outside the project are not looked at.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_PROJECT_DIR_NAMES: Final = {"LLXPRT_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR", "PWD"}
_BETWEEN_WORDS: Final = re.compile(r"(?:\$\w*|[\s\"'`;|&()<>{}])+")
_BETWEEN_PARTS: Final = re.compile(r"(?:\$\w*|[\s\"'`;|&()<>{}=,:])+")
_QUOTING: Final = re.compile(r"[\"'\\]")


class HookCommand(NamedTuple):
    """A command that would run, and when."""

    event: str
    matcher: str
    command: str


def hook_statement(settings: Mapping[str, Any]) -> dict[str, Any]:
    """All that settings say about hooks, as it stands there; empty where they say nothing."""
    said = {key: settings[key] for key in ("enableHooks", "hooks", "hooksConfig") if settings.get(key, {}) != {}}
    tools = settings.get("tools")
    if isinstance(tools, Mapping) and "enableHooks" in tools:
        said["tools"] = {"enableHooks": tools["enableHooks"]}
    return said


def hook_commands(settings: Mapping[str, Any]) -> tuple[HookCommand, ...]:
    """The commands in a settings' ``hooks``, in order; what has no command is passed over."""
    return tuple(
        HookCommand(event, matcher if isinstance(matcher := group.get("matcher"), str) else "", hook["command"])
        for event, groups in _mapping(settings.get("hooks")).items()
        for group in _mappings(groups)
        for hook in _mappings(group.get("hooks"))
        if isinstance(hook.get("command"), str)
    )


def hook_fingerprint(settings: Mapping[str, Any], scripts: Mapping[str, str] | None = None) -> str:
    """The SHA-256 of what settings say about hooks, and of the ``project_scripts`` that their commands name.

    The order of keys does not matter, the order of lists does.
    """
    said = {"settings": hook_statement(settings), "scripts": dict(scripts or {})}
    canonical = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def project_scripts(commands: Iterable[HookCommand], project_dir: Path) -> dict[str, str]:
    """The files inside the project that commands name, each with the SHA-256 of its content."""
    project = Path(os.path.realpath(project_dir))
    texts = {command.command for command in commands}
    words = {word for text in texts for word in _words(text)}
    files = {file for word in words for file in _files_inside(project, word)}
    return {file: _digest(project / file) for file in sorted(files)}


def _words(command: str) -> Iterator[str]:
    """Everything in a command that could name a file; too many rather than too few."""
    here = _VARIABLE.sub(lambda name: "." if (name[1] or name[2]) in _PROJECT_DIR_NAMES else name[0], command)
    yield from _BETWEEN_WORDS.split(here)
    yield from _BETWEEN_PARTS.split(here)
    if _QUOTING.search(here):
        lexer = shlex.shlex(here, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        lexer.commenters = ""
        try:
            yield from lexer
        except ValueError:  # a quote is not closed: the shell will not run it either
            return


def _files_inside(project: Path, word: str) -> Iterator[str]:
    # With its leading slash taken off as well: `$(pwd)/x.sh` comes as the word `/x.sh`.
    for relative in {word, word.lstrip("/")}:
        file = Path(os.path.normpath(project / relative))
        if not _is_regular(file):
            continue
        # A link counts under its own name, with the content of what it leads to; an absolute path that leads into
        # the project by another way counts under the name that it has there.
        for known in (file, Path(os.path.realpath(file))):
            if known.is_relative_to(project):
                yield str(known.relative_to(project))
                break


def _is_regular(file: Path) -> bool:
    try:
        return stat.S_ISREG(file.stat().st_mode)
    except (OSError, ValueError):  # ValueError: a NUL or a lone surrogate in the name
        return False


def _digest(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError:
        return "unreadable"


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list):
        yield from (element for element in value if isinstance(element, Mapping))
