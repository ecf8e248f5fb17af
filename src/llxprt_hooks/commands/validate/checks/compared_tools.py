"""Checks for Claude Code's tool names in migrated scripts and commands, which make a hook do nothing."""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from llxprt_hooks._support.text import escape_for_terminal
from llxprt_hooks.commands.validate.claude_names import ForeignWord, compared_tools, script_text
from llxprt_hooks.commands.validate.rules import Rule
from llxprt_hooks.commands.validate.started_programs import Place, Script, mentions, place_of, scripts
from llxprt_hooks.settings.other_agents import CLAUDE_TOOLS
from llxprt_hooks.settings.trust.command_names import ScriptsError
from llxprt_hooks.settings.trust.covered_files import named_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from llxprt_hooks.commands.validate.diagnostic import Diagnostic
    from llxprt_hooks.commands.validate.entries import FileHook
    from llxprt_hooks.commands.validate.inspection import Inspection

_MAX_SHOWN: Final = 4
_MAX_SCRIPTS: Final = 100
"""A hostile project could have any number."""


def check_compared_tools(inspection: Inspection) -> Iterator[Diagnostic]:
    """Find commands and scripts that compare the tool's name with a name it does not have here."""
    hooks = [hook for hook in inspection.hooks if hook.command_node and hook.event and hook.event.spec.is_about_tool]
    for hook in hooks:
        if words := _foreign(inspection, hook.command):
            yield _diagnostic(hook, _span(hook.command, words[0]), "the command", words)
    started = [script for hook in hooks for script in scripts(inspection, hook)]
    for file in islice(_files(inspection, hooks, started), _MAX_SCRIPTS):
        words = _foreign(inspection, script_text(file) or "")
        place = place_of(file, started) or _mention(file, hooks, started) if words else None
        if place is not None:
            yield _diagnostic(*place, _name(inspection, file), words)


def _foreign(inspection: Inspection, text: str) -> list[ForeignWord]:
    """Return the names of Claude Code's tools in a text, except those that a tool has here too."""
    return [word for word in compared_tools(text) if word.name not in inspection.tools]


def _files(inspection: Inspection, hooks: list[FileHook], started: list[Script]) -> dict[Path, None]:
    """Return the scripts that may be shown: those that commands start, and those in the project that they may name."""
    files = [Path(os.path.realpath(script.path)) for script in started if script.may_be_shown]
    project = Path(os.path.realpath(inspection.directory))
    with suppress(ScriptsError):  # reported by `check_trust`
        files += [project / name for name in named_files((hook.command for hook in hooks), project)]
    return dict.fromkeys(files)


def _mention(file: Path, hooks: list[FileHook], started: list[Script]) -> Place | None:
    """Return where a command mentions the file's name, except in the path of another known script."""
    known = [(script.hook, script.word.span) for script in started]
    return next((place for place in mentions(file, hooks) if not any(_within(place, each) for each in known)), None)


def _within(place: Place, other: Place) -> bool:
    (hook, (start, end)), (other_hook, (other_start, other_end)) = place, other
    return hook is other_hook and other_start <= start and end <= other_end


def _diagnostic(hook: FileHook, span: tuple[int, int], where: str, words: list[ForeignWord]) -> Diagnostic:
    lines: dict[str, int] = {}
    for word in words:
        lines.setdefault(word.name, word.line)
    shown = list(lines.items())[:_MAX_SHOWN]
    by_line = groupby(shown, key=itemgetter(1))
    found = ", ".join(f"{', '.join(f'`{name}`' for name, _ in names)} in line {line}" for line, names in by_line)
    ours = ", ".join(dict.fromkeys(f"`{CLAUDE_TOOLS[name]}`" for name, _ in shown))
    more = " and more" if len(lines) > len(shown) else ""
    message = f"{where} compares the tool's name with Claude Code's: {found}{more}"
    fix = f"Compare with {ours}; with both, if Claude Code uses it too."
    return hook.in_command(Rule.SCRIPT_CLAUDE_TOOL, span, message, fix)


def _span(command: str, word: ForeignWord) -> tuple[int, int]:
    line = sum(map(len, command.splitlines(keepends=True)[: word.line - 1]))
    start = command.index(word.name, line + word.column - 1)
    return start, start + len(word.name)


def _name(inspection: Inspection, file: Path) -> str:
    project = os.path.realpath(inspection.directory)
    return escape_for_terminal(str(file.relative_to(project) if file.is_relative_to(project) else file))
