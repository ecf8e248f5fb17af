"""A hook's command line: its shell, its environment, and the project directory in it.

``$LLXPRT_PROJECT_DIR`` and its two aliases are ordinary environment variables of the hook, so the shell itself
expands them and the directory's name is never read as shell code. Outside quotes the shell would split the value at
spaces and expand wildcards in it, so there the variable is put into double quotes first.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping

PROJECT_DIR_VARIABLES = ("LLXPRT_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR")
PROJECT_TRUSTED_VARIABLE = "LLXPRT_PROJECT_TRUSTED"
"""``1`` if the project is approved, else ``0``: whether a hook may run programs of the project (D-35)."""

_NAMES = "|".join(PROJECT_DIR_VARIABLES)
PROJECT_DIR_REFERENCE = re.compile(rf"\$(?:\{{(?:{_NAMES})\}}|(?:{_NAMES})(?![A-Za-z0-9_]))")
"""A project directory variable as a command refers to it: ``$NAME`` or ``${NAME}``."""

_STRING = re.compile(r"'[^']*'?|\$'(?:\\.|[^'\\])*'?", re.DOTALL)
_BACK_QUOTED = re.compile(r"`((?:\\.|[^`\\])*)`?", re.DOTALL)
_COMMENT = re.compile(r"#[^\n]*")
_HEREDOC = re.compile(r"<<(-?)[ \t]*((?:\\.|'[^'\n]*'|\"[^\"\n]*\"|[^\s;&|<>()'\"\\])+)")
_BOTH_STREAMS = re.compile(
    rf"""1?>&(?=[ \t]*(?:[^\s;&|<>()'"\\]|\\.|'[^']*'|"(?:\\.|[^"\\])*")*?"?{PROJECT_DIR_REFERENCE.pattern})""",
    re.DOTALL,
)
_QUOTING = re.compile(r"\\(.)|'([^']*)'|\"([^\"]*)\"")

_ARITHMETIC = "(("
_HERE_DOCUMENT = "<<"
_CLOSING = {'"': '"', "(": ")", "$(": ")", _ARITHMETIC: ")", "${": "}"}
_OTHER_REDIRECTION = tuple("0123456789&<>}")
_BETWEEN_WORDS = " \t\n;&|<>"


def shell_arguments(command: str, *, protected: bool = False) -> list[str]:
    """Return the argument vector that runs a command line, with bash if it is installed, otherwise with sh.

    If ``protected``, bash ignores the options, functions and start-up files in its environment.
    """
    path = absolute_search_path()
    bash = shutil.which("bash", path=path)
    shell = bash or shutil.which("sh", path=path) or "/bin/sh"
    options = ["-p"] if protected and bash else []
    return [shell, *options, "-c", expand_command(command, for_bash=bash is not None)]


def absolute_search_path() -> str:
    """Return PATH without relative entries, where a repository could place its own programs."""
    return ":".join(folder for folder in os.environ.get("PATH", os.defpath).split(":") if folder.startswith("/"))


def hook_environment(inherited: Mapping[str, str], project_dir: str) -> dict[str, str]:
    """Return the inherited environment with the project directory under its three names (HOOK-188)."""
    return {**inherited, **dict.fromkeys(PROJECT_DIR_VARIABLES, project_dir)}


def expand_command(command: str, *, for_bash: bool = True) -> str:
    """Quote the project directory variables wherever the shell would split or glob them.

    >>> expand_command("$LLXPRT_PROJECT_DIR/check.sh '$LLXPRT_PROJECT_DIR'")
    '"$LLXPRT_PROJECT_DIR"/check.sh \\'$LLXPRT_PROJECT_DIR\\''
    """
    if not PROJECT_DIR_REFERENCE.search(command):
        return command
    pieces = []
    at = 0
    for start, end in _Scanner(command).bare_variables():
        bare = command[start:end]
        pieces += [command[at:start], _quoted(bare, for_bash=for_bash)]
        at = end
    return "".join([*pieces, command[at:]])


def _quoted(bare: str, *, for_bash: bool) -> str:
    """Put a variable in double quotes; replace ``>&``, after which bash expands a file name twice, with ``&>``."""
    if bare.endswith(">&"):
        return "&>" if for_bash else bare
    return f'"{bare}"'


class _Scanner:
    """Scans shell text and tracks the quotes around each position.

    It reads only as much shell syntax as it takes to find the variables that would be split. A mistake means that a
    value is split or a wildcard expanded; the value itself never becomes part of the text, so it cannot become code.
    """

    def __init__(self, text: str, *enclosing: str) -> None:
        self._text = text
        self._at = 0
        self._bare: list[tuple[int, int]] = []
        self._nesting = list(enclosing)
        """The open constructs: keys of ``_CLOSING``, and ``_HERE_DOCUMENT`` if the text is the body of one."""
        self._in_word = False
        self._heredocs: list[tuple[re.Pattern[str], bool]] = []

    def bare_variables(self) -> list[tuple[int, int]]:
        """Return the spans of the variables that the shell would split, in order."""
        while self._at < len(self._text):
            variable = PROJECT_DIR_REFERENCE.match(self._text, self._at)
            if variable and not self._in_quotes():
                self._bare.append(variable.span())
                self._move_to(variable.end())
            else:
                self._step()
        return self._bare

    def _innermost(self) -> str:
        return self._nesting[-1] if self._nesting else ""

    def _around(self) -> str:
        """Return the innermost construct that affects quoting; ``${…}`` does not."""
        return next((opening for opening in reversed(self._nesting) if opening != "${"), "")

    def _in_quotes(self) -> bool:
        return self._around() in ('"', _HERE_DOCUMENT)

    def _move_to(self, end: int, *, in_word: bool = True) -> None:
        self._at = end
        self._in_word = in_word

    def _open(self, opening: str, end: int) -> None:
        self._nesting.append(opening)
        self._move_to(end, in_word=False)

    def _step(self) -> None:
        """Skip one unit of text: a character, an escape, a quoted string, a comment, a here-document."""
        text, at = self._text, self._at
        if text[at] == "\\":
            self._move_to(at + 2, in_word=self._in_word or not text.startswith("\n", at + 1))
        elif text[at] == _CLOSING.get(self._innermost()):
            self._move_to(at + 1, in_word=self._nesting.pop() != "(")
        elif text.startswith("$$", at):
            self._move_to(at + 2)  # the shell's process id: a name after it is not a variable
        elif text.startswith(("$(", "${"), at):
            self._open(_ARITHMETIC if text.startswith("$((", at) else text[at : at + 2], at + 2)
        elif back_quoted := _BACK_QUOTED.match(text, at):
            self._back_quoted(back_quoted)
        elif text[at] == '"' and self._innermost() != _HERE_DOCUMENT:
            self._open('"', at + 1)
        elif self._in_quotes():
            self._move_to(at + 1)
        elif string := _STRING.match(text, at):
            self._move_to(string.end())
        elif self._innermost() == "${":
            self._move_to(at + 1)
        else:
            self._step_in_command()

    def _step_in_command(self) -> None:
        text, at = self._text, self._at
        arithmetic = self._innermost() == _ARITHMETIC
        if not self._in_word and (comment := _COMMENT.match(text, at)):
            self._move_to(comment.end(), in_word=False)
        elif not arithmetic and self._is_both_streams() and (both := _BOTH_STREAMS.match(text, at)):
            self._bare.append(both.span())
            self._move_to(both.end(), in_word=False)
        elif text[at] == "(":
            self._open(_ARITHMETIC if arithmetic or text.startswith("((", at) else "(", at + 1)
        elif text.startswith("<<<", at):
            self._move_to(at + 3, in_word=False)
        elif not arithmetic and (heredoc := _HEREDOC.match(text, at)):
            self._heredoc(heredoc)
        elif text[at] == "\n" and self._heredocs:
            self._heredoc_bodies()
        else:
            self._move_to(at + 1, in_word=text[at] not in _BETWEEN_WORDS)

    def _is_both_streams(self) -> bool:
        """Whether a ``>&`` here is not part of ``2>&`` or ``<>&``: only then bash expands the file name twice."""
        before = self._text[self._at - 1 : self._at] if self._at else ""
        return before not in _OTHER_REDIRECTION if self._text[self._at] == ">" else not self._in_word

    def _back_quoted(self, back_quoted: re.Match[str]) -> None:
        """Scan the command between backquotes, after removing one level of backslashes."""
        escape = r'\\[\\`$"]' if self._around() == '"' else r"\\[\\`$]"
        units = list(re.compile(rf"{escape}|.", re.DOTALL).finditer(self._text, *back_quoted.span(1)))
        starts = [*(unit.start() for unit in units), back_quoted.end(1)]
        command = _Scanner("".join(unit.group()[-1] for unit in units))
        self._bare += [(starts[start], starts[end]) for start, end in command.bare_variables()]
        self._move_to(back_quoted.end())

    def _heredoc(self, heredoc: re.Match[str]) -> None:
        dash, word = heredoc.groups()
        delimiter = _QUOTING.sub(lambda quoting: "".join(filter(None, quoting.groups())), word)
        indent = r"\t*" if dash else ""
        end = re.compile(rf"^{indent}{re.escape(delimiter)}$", re.MULTILINE)
        self._heredocs.append((end, delimiter != word))
        self._move_to(heredoc.end())

    def _heredoc_bodies(self) -> None:
        """Skip the bodies, where the shell splits variables only inside command substitutions."""
        self._move_to(self._at + 1, in_word=False)
        for delimiter, literal in self._heredocs:
            start, last = self._at, delimiter.search(self._text, self._at)
            self._move_to(last.end() if last else len(self._text), in_word=False)
            if not literal:
                body = _Scanner(self._text[start : self._at], _HERE_DOCUMENT)
                self._bare += [(start + first, start + end) for first, end in body.bare_variables()]
        self._heredocs.clear()
