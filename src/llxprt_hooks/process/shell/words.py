"""Split a command line into words and simple commands, as far as that is possible without a shell.

Only what is certain is read: programs with literal or quoted arguments, joined by ``|``, ``;``, ``&&``, ``||`` and
``&``. Reading stops silently at anything else: substitutions, here-documents, subshells. ``without_written`` also reads
subshells and simple substitutions, because it need not know their result.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_VARIABLE: Final = r"\$(?a:\{\w+\}|\w+)"
_ESCAPED: Final = r"\\."
_SINGLE: Final = r"'[^']*+'"


def _token(variable: str, in_double_quotes: str = "(?!)", bracket: str = "(?!)") -> re.Pattern[str]:
    """The tokens of a command line. Atomic, so that a hostile command cannot make it try every way to split a word.

    Groups are not possessive: Python before 3.11.5 matches too much with ``(…)++``.
    """
    return re.compile(
        rf"""
          (?P<blank>(?:[ \t]|\\\n)+)
        | (?P<comment>(?:(?<=[\s;&|(])|^)\#[^\n]*)
        | (?P<redirection>[0-9]*(?:>>|>\||>&|<&|<>|>|<(?![<(])|&>>|&>)[ \t]*)
        | (?P<end>\|\||&&|\|&|;{{1,2}}&?|\||&|\n)
        | (?P<bracket>{bracket})
        | (?P<word>(?>(?:
              [^ \t\n;&|<>()'"\\`$\#]++
            | (?<=[^ \t\n;&|<>()])\#
            | (?!\\\n){_ESCAPED}
            | {_SINGLE}
            | "(?>(?:[^"\\`$]|{_ESCAPED}|{variable}|{in_double_quotes}|\$(?=["\s]))*)"
            | {variable}
          )+))
        """,
        re.VERBOSE | re.DOTALL,
    )


_CERTAIN: Final = _token(_VARIABLE)
_READABLE: Final = _token(
    r"\$(?:\w++|[@*#?$!-]|\{\w++\})",
    in_double_quotes=r"""\$\((?>(?:[^"'`()\\$<>\#]|'[^'"]*+')*)\)""",
    bracket=r"\$?\((?!\()|\)",
)
_CLOSED: Final = re.compile(rf"""(?>(?:[^'"\\]|{_ESCAPED}|{_SINGLE}|"(?>(?:[^"\\]|{_ESCAPED})*)")*)""", re.DOTALL)
_PIECE: Final = re.compile(
    rf"""'(?P<single>[^']*)' | "(?P<double>(?:[^"\\]|\\.)*)" | \\(?P<escaped>.) | (?P<variable>{_VARIABLE})
    | (?P<plain>[^'"\\$]+) | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_IN_DOUBLE_QUOTES: Final = re.compile(rf'\\([$`"\\])|\\\n|({_VARIABLE})', re.DOTALL)
_WRITING: Final = frozenset((">", ">>", ">|", "&>", "&>>"))
_SUFFIX: Final = re.compile(r"[^/.]\.\w+$")
_OUTPUT_NAME: Final = r"--(?:out(?:put)?(?:-?file)?|log(?:-?(?:file(?:-?name)?|path|dir|to|output))?)"
_WRITING_OPTION: Final = re.compile(rf"-o|{_OUTPUT_NAME}")
_NAMED_OUTPUT: Final = re.compile(rf"{_OUTPUT_NAME}=[^$`]*")
PYTHONS: Final = r"(?:python|pypy)[\d.]*"
SHELLS: Final = r"(?:a|ba|c|da|fi|k|mk|pdk|rba|tc|ya|z)?sh"
NODES: Final = r"(?:node(?:js)?|bun|deno)[\d.]*"
OTHER_INTERPRETERS: Final = (
    r"(?:perl|ruby|php|lua|luajit|Rscript|tclsh|wish|expect|guile|julia|octave|groovy|elixir|escript|ocaml|swipl|pwsh)"
    r"[\d.]*"
)
INTERPRETERS: Final = rf"(?:{PYTHONS}|{SHELLS}|{NODES}|{OTHER_INTERPRETERS})"
"""The names of programs whose first argument is a script."""

CODE_SUFFIXES: Final = tuple(
    """
    .sh .bash .zsh .ksh .fish .py .pyw .pyc .so .pyd .js .cjs .mjs .ts .node .rb .pl .pm .php .lua .awk .jq .sed .tcl .r
    .R .mk .jar .exe .bat .cmd .ps1 .wasm
    """.split()  # noqa: SIM905  # a list literal would take half a page
)
"""What the names of programs and modules end with."""
_AROUND_OPERATOR: Final = "0123456789 \t"
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*\+?=")
_EXPANDED_BY_SHELL: Final = re.compile(r"[*?\[\]{}]|[=:]~")


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


def literal_arguments(command: str, variables: Mapping[str, str]) -> list[str] | None:
    """Return the arguments of a command line that has nothing but words, all of them certain; None for any other."""
    arguments, end = [], 0
    for token in _tokens(command):
        end = token.end()
        if token.lastgroup == "blank" and "\n" not in token[0]:  # a continued line may continue a word
            continue
        value = Word(token[0], token.start()).value(variables) if token.lastgroup == "word" else None
        if value is None:
            return None
        arguments.append(value)
    return arguments if end == len(command) else None


def without_written(command: str) -> str:
    """Remove the files that a command only writes to, as far as its text can be read with certainty.

    >>> without_written("tee -a audit.log | sh check.sh --log-file x.log > out.txt")
    'tee -a  | sh check.sh --log-file  >  '
    """
    kept, at, is_target, starts, writer = [], 0, False, True, ""
    for token in _tokens(command, _READABLE):
        kind, text = token.lastgroup, token[0]
        if is_target and kind not in ("word", "blank"):
            break
        if kind == "redirection":
            is_target = text.strip(_AROUND_OPERATOR) in _WRITING
        elif kind == "word" and text.startswith("[["):  # where < and > compare
            break
        elif kind == "word":
            writes = is_target or (writer == "tee" and not text.startswith("-")) or writes_next(writer)
            is_plain = is_target or writer == "tee" or is_data_name(text)
            if writes and is_plain and "$(" not in text:
                text = " " if is_target else ""
            is_target = False
            text = text[: text.index("=") + 1] if writes_named(text) else text
            writer = writer if writer == "tee" else token[0] if writes_next(token[0]) else ""
            writer = "tee" if starts and token[0] == "tee" else writer
            starts = False
        elif kind in ("end", "bracket"):
            starts, writer = True, ""
        kept.append(text)
        at = token.end()
    return "".join(kept) + command[at:]


@dataclass(frozen=True, slots=True)
class CertainCommand:
    """One program of a command line: its name and arguments, and the files that the shell opens for it."""

    arguments: tuple[str, ...]
    read: tuple[str, ...]
    written: tuple[str, ...]
    is_fed: bool
    """Whether its standard input is a file, or what the program before it prints."""


def certain_commands(command: str, variables: Mapping[str, str]) -> list[CertainCommand] | None:
    """Return the programs of a command line in which every word is certain; None for any other.

    >>> certain_commands("cat > p.json; grep -q rm p.json", {})[0]
    CertainCommand(arguments=('cat',), read=(), written=('p.json',), is_fed=False)
    """
    found: list[CertainCommand] = []
    arguments: list[str] = []
    read: list[str] = []
    written: list[str] = []
    is_piped, operator, end = False, "", 0
    for token in _tokens(command):
        kind, text, end = token.lastgroup, token[0], token.end()
        if kind == "redirection":
            operator = text.strip(_AROUND_OPERATOR)
        elif kind == "word":
            value = Word(text, token.start()).value(variables)
            if value is None or operator == "<>" or (not arguments and _ASSIGNMENT.match(text)):
                return None
            if not operator:
                arguments.append(value)
            elif operator.startswith("<"):
                read.append(value)
            elif operator in _WRITING or not value.isdecimal():  # else it is a copy of a descriptor
                written.append(value)
            operator = ""
        elif kind == "end":
            found.append(CertainCommand(tuple(arguments), tuple(read), tuple(written), is_piped or bool(read)))
            arguments, read, written, is_piped = [], [], [], text in ("|", "|&")
    found.append(CertainCommand(tuple(arguments), tuple(read), tuple(written), is_piped or bool(read)))
    return found if end == len(command) and not operator else None


def writes_next(argument: str) -> bool:
    """Whether an argument is an option after which a program expects the name of a file to write."""
    return _WRITING_OPTION.fullmatch(argument) is not None


def writes_named(argument: str) -> bool:
    """Whether an argument is such an option together with the file."""
    return _NAMED_OUTPUT.fullmatch(argument) is not None and is_data_name(argument)


def is_data_name(name: str) -> bool:
    """Whether a file has a suffix, and not that of a program."""
    bare = name.rstrip("\"'")
    return _SUFFIX.search(bare) is not None and not bare.endswith(CODE_SUFFIXES)


def open_quote(text: str) -> str:
    """Return the quote that is open at the end of a piece of shell text, or an empty string."""
    closed = _CLOSED.match(text)
    rest = text[closed.end() :] if closed else ""
    return rest[:1].strip("\\")


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


def _tokens(command: str, pattern: re.Pattern[str] = _CERTAIN) -> Iterator[re.Match[str]]:
    at = 0
    while token := pattern.match(command, at):
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
