"""Split a command line into words and simple commands, as far as that is possible without a shell.

Only what is certain is read: programs with literal or quoted arguments, joined by ``|``, ``;``, ``&&``, ``||`` and
``&``. Reading stops silently at anything else: substitutions, here-documents, subshells.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_VARIABLE: Final = r"\$(?a:\{\w+\}|\w+)"
_TOKEN: Final = re.compile(
    rf"""
      (?P<blank>(?:[ \t]|\\\n)+)
    | (?P<comment>(?:(?<=\s)|^)\#[^\n]*)
    | (?P<redirection>[0-9]*(?:>>|>\||>&|<&|<>|>|<(?!<)|&>>|&>)[ \t]*)
    | (?P<end>\|\||&&|\|&|;|\||&|\n)
    | (?P<word>(?:
          [^\s;&|<>()'"\\`$\#]
        | (?<=\S)\#
        | \\[^\n]
        | '[^']*'
        | "(?:[^"\\`$]|\\.|{_VARIABLE}|\$(?=["\s]))*"
        | {_VARIABLE}
      )+)
    """,
    re.VERBOSE | re.DOTALL,
)
_PIECE: Final = re.compile(
    rf"""'(?P<single>[^']*)' | "(?P<double>(?:[^"\\]|\\.)*)" | \\(?P<escaped>.) | (?P<variable>{_VARIABLE})
    | (?P<plain>[^'"\\$]+) | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_IN_DOUBLE_QUOTES: Final = re.compile(rf'\\([$`"\\])|\\\n|({_VARIABLE})', re.DOTALL)
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*\+?=")
_EXPANDED_BY_SHELL: Final = re.compile(r"[*?\[\]{}]")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command line, as written, and its offset."""

    text: str
    start: int

    @property
    def span(self) -> tuple[int, int]:
        return self.start, self.start + len(self.text)

    def value(self, variables: Mapping[str, str]) -> str | None:
        """Return what the program receives, or None if that is not certain."""
        value = ""
        for piece in _PIECE.finditer(self.text):
            meaning = _meaning(piece, variables, first=not value)
            if meaning is None:
                return None
            value += meaning
        return value


def words(command: str) -> list[Word]:
    """Return all words, up to the first piece of text that cannot be read."""
    return [Word(token[0], token.start()) for token in _tokens(command) if token.lastgroup == "word"]


def simple_commands(command: str) -> Iterator[list[Word]]:
    """Yield the words of each program in turn, without the variable assignments before it.

    >>> [[word.text for word in words] for words in simple_commands("A=1 ./a.sh -x | 'b c' > out; $(d)")]
    [['./a.sh', '-x'], ["'b c'"]]
    """
    words: list[Word] = []
    end, to_file = 0, False
    for token in _tokens(command):
        end = token.end()
        if token.lastgroup == "word":
            if not to_file and (words or not _ASSIGNMENT.match(token[0])):
                words.append(Word(token[0], token.start()))
            to_file = False
        elif token.lastgroup == "redirection":
            to_file = True
        elif token.lastgroup == "end":
            if words:
                yield words
            words = []
    if words and end == len(command):
        yield words


def _tokens(command: str) -> Iterator[re.Match[str]]:
    at = 0
    while token := _TOKEN.match(command, at):
        yield token
        at = token.end()


def _meaning(piece: re.Match[str], variables: Mapping[str, str], *, first: bool) -> str | None:
    kind, text = piece.lastgroup, piece[0]
    if kind == "single" or kind == "escaped":
        return piece[kind]
    if kind == "double":
        return _in_double_quotes(piece[kind], variables)
    if kind == "variable":
        return variables.get(text.strip("${}"))
    if kind != "plain" or _EXPANDED_BY_SHELL.search(text):
        return None
    if first and text.startswith("~"):
        return variables["HOME"] + text[1:] if "HOME" in variables and text[1:2] in ("", "/") else None
    return text


def _in_double_quotes(text: str, variables: Mapping[str, str]) -> str | None:
    names = [found[2].strip("${}") for found in _IN_DOUBLE_QUOTES.finditer(text) if found[2]]
    if any(name not in variables for name in names):
        return None
    return _IN_DOUBLE_QUOTES.sub(lambda found: variables[found[2].strip("${}")] if found[2] else found[1] or "", text)
