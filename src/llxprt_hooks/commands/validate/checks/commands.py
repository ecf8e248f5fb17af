"""Checks of commands: syntax, variables, exit codes."""

from __future__ import annotations

import os
import re
from itertools import dropwhile, islice, takewhile
from typing import TYPE_CHECKING, Final

from llxprt_hooks._support.text import closest
from llxprt_hooks.commands.validate.entries import FileHook, Role
from llxprt_hooks.commands.validate.rules import Rule
from llxprt_hooks.commands.validate.shell_syntax import command_error
from llxprt_hooks.commands.validate.started_programs import MAX_PROGRAMS
from llxprt_hooks.events import Effect, HookEventName
from llxprt_hooks.process.shell.command_line import PROJECT_DIR_REFERENCE, PROJECT_DIR_VARIABLES
from llxprt_hooks.process.shell.words import Word, simple_commands
from llxprt_hooks.settings.extensions import PLACEHOLDER, place_path
from llxprt_hooks.settings.other_agents import FOREIGN_VARIABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from llxprt_hooks.commands.validate.diagnostic import Diagnostic
    from llxprt_hooks.commands.validate.inspection import Inspection

_IN_SINGLE_QUOTES: Final = re.compile(rf"'({PROJECT_DIR_REFERENCE.pattern}[^']*)'")
_IN_BRACES: Final = "|".join(map(re.escape, FOREIGN_VARIABLES))
_WITHOUT_BRACES: Final = "|".join(filter(str.isidentifier, FOREIGN_VARIABLES))
_FOREIGN: Final = re.compile(rf"\$(?:\{{({_IN_BRACES})\}}|({_WITHOUT_BRACES})\b)")
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_SIMILARITY: Final = 0.84
"""Includes `LLXPRT_PROJECT` and `LLXPRT_PROJECT_ROOT`, but not `LLXPRT_PROFILE_DIR`."""
_LINE_NUMBER: Final = re.compile(r" in line \d+$")
_READ_AS_CODE: Final = re.compile(r"-\w*c|eval")
_EXIT_ONE: Final = re.compile(r"(?<!\|\| )\bexit\s+1\b")
_PYTHON: Final = re.compile(r"(?:python|pypy)[\d.]*")
_SAFE_PATH: Final = re.compile(r"-[A-Za-z]*[IP][A-Za-z]*")
_IMPORTING: Final = re.compile(r"-|-[bBdEiOqsSuvx]*[cm].*", re.DOTALL)
"""Python's options for code, a module, or standard input; other flags may come before in the same word."""
_EXIT_TWO: Final = re.compile(r"\bexit\s+2\b")


def check_syntax(inspection: Inspection, hook: FileHook) -> Iterator[Diagnostic]:
    """Find characters that a command must not contain, and commands that the shell cannot parse."""
    if not _is_encodable(hook.command):
        message = "the command has a character that cannot be passed to a program"
        yield hook.in_command(Rule.UNRUNNABLE_COMMAND, None, message, r"Remove `\u0000` and lone surrogates.")
    elif (error := command_error(hook.command)) is not None:
        if "\n" not in hook.command:
            error = _LINE_NUMBER.sub("", error)
        fix = "Fix it, or move a long command into a script."
        yield hook.in_command(Rule.SHELL_SYNTAX, None, f"the shell cannot parse this command: {error}", fix)


def check_quoted_variable(inspection: Inspection, hook: FileHook) -> Iterator[Diagnostic]:
    """Find the project folder in single quotes."""
    for words in islice(simple_commands(hook.command), MAX_PROGRAMS):
        for before, word in zip((None, *words), words, strict=False):
            quoted = _IN_SINGLE_QUOTES.search(word.text)
            if quoted is None or (before and _READ_AS_CODE.fullmatch(before.text)):
                continue
            span = (word.start + quoted.start(), word.start + quoted.end())
            fix = f"Write it without quotes, which is safe here for any path: `{quoted[1]}`."
            yield hook.in_command(Rule.QUOTED_VARIABLE, span, f"the shell does not expand {quoted[0]}", fix)


def check_foreign_variable(inspection: Inspection, hook: FileHook) -> Iterator[Diagnostic]:
    """Find variables that only other agents set."""
    for name, found in _first(_FOREIGN, hook.command).items():
        if name not in os.environ:
            message = f"`{found[0]}` is not set here"
            yield hook.in_command(Rule.FOREIGN_VARIABLE, found.span(), message, FOREIGN_VARIABLES[name])


def check_misspelled_variable(inspection: Inspection, hook: FileHook) -> Iterator[Diagnostic]:
    """Find typos of the project folder's variable that neither the environment nor the command sets."""
    known = {*PROJECT_DIR_VARIABLES, *FOREIGN_VARIABLES, *os.environ}
    for name, found in _first(_VARIABLE, hook.command).items():
        if name in known or not closest(name, PROJECT_DIR_VARIABLES, similarity=_SIMILARITY):
            continue
        if not re.search(rf"(?<![\w${{]){name}\b", hook.command):
            message, fix = f"`{found[0]}` is not set", f"Did you mean `${PROJECT_DIR_VARIABLES[0]}`?"
            yield hook.in_command(Rule.MISSPELT_VARIABLE, found.span(), message, fix)


def _first(pattern: re.Pattern[str], command: str) -> dict[str, re.Match[str]]:
    """Return where each variable that a pattern finds is used first."""
    return {found[1] or found[2]: found for found in reversed(list(pattern.finditer(command)))}


def check_extension_path(inspection: Inspection, hook: FileHook) -> Iterator[Diagnostic]:
    """Find ``${extensionPath}`` where it is unknown or cannot be inserted safely."""
    at = hook.command.find(PLACEHOLDER)
    if at < 0:
        return
    span = (at, at + len(PLACEHOLDER))
    if hook.file.extension is None:
        message = f"`{PLACEHOLDER}` is available only in an extension's hooks.json"
        fix = "Write `$LLXPRT_PROJECT_DIR`, or the path itself."
        yield hook.in_command(Rule.FOREIGN_VARIABLE, span, message, fix)
    elif place_path(hook.command, str(hook.file.extension)) is None:
        message = f"the shell could read parts of {hook.file.extension} as code here"
        fix = "Rename that folder, or move the command into a script of the extension."
        yield hook.in_command(Rule.UNSAFE_EXTENSION_PATH, span, message, fix)


def check_exit_codes(inspection: Inspection, hook: FileHook) -> Iterator[Diagnostic]:
    """Find guards that exit with 1 instead of 2, and with 2 where nothing can be blocked."""
    event, spec = hook.event, hook.spec
    one, two = _EXIT_ONE.search(hook.command), _EXIT_TWO.search(hook.command)
    if not event or not spec:
        return
    if two and not spec.can_block:
        yield hook.in_command(Rule.EXIT_TWO_NO_EFFECT, two.span(), *exit_two_advice(event, two[0]))
    elif one and not two and spec.can_block and not hook.fails_closed:
        message, fix = f"`exit 1` does not block {event}", "To block, print the reason to stderr and `exit 2`."
        yield hook.in_command(Rule.EXIT_ONE, one.span(), message, fix)


def exit_two_advice(event: HookEventName, written: str) -> tuple[str, str]:
    """Return what is wrong with a block of an event that cannot be blocked, and the fix."""
    context = " To tell the model something, exit with 0 and print it." * (Effect.ADD_CONTEXT in event.spec.effects)
    return (
        f"`{written}` has no effect for {event}, which cannot be blocked",
        f"Use an earlier event to block: BeforeTool or BeforeModel.{to_act(event)}{context}",
    )


def to_act(event: HookEventName) -> str:
    """Return how the event can be blocked after all, as a sentence; empty if it cannot."""
    return " Or let hooks act: set `hooksConfig.profile` to `full`." * event.spec.acting.can_block


def check_imports_from_project(inspection: Inspection, hook: FileHook) -> Iterator[Diagnostic]:
    """Find commands outside the project with which Python imports modules from the project."""
    if hook.file.role not in (Role.USER, Role.SYSTEM, Role.EXTENSION):
        return
    for words in islice(simple_commands(hook.command), MAX_PROGRAMS):
        if (option := _import_option(words)) is not None and "PYTHONSAFEPATH=" not in hook.command:
            message = f"with `{option.text}`, Python imports modules from the project's folder first"
            fix = "Add the option `-P` or `-I` before it, or use a script with an absolute path."
            yield hook.in_command(Rule.IMPORTS_FROM_PROJECT, option.span, message, fix)


def _import_option(words: Iterable[Word]) -> Word | None:
    """Return the option of Python with which it imports from the working folder."""
    after_python = dropwhile(lambda word: not _PYTHON.fullmatch(word.text.rpartition("/")[2]), words)
    for option in takewhile(lambda word: word.text.startswith("-"), islice(after_python, 1, None)):
        if _SAFE_PATH.fullmatch(option.text):
            return None
        if _IMPORTING.fullmatch(option.text):
            return option
    return None


def _is_encodable(command: str) -> bool:
    try:
        return b"\0" not in os.fsencode(command)
    except UnicodeEncodeError:
        return False
