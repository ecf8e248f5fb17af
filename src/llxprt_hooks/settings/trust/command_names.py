"""Decides which file names a command could mean that cannot be read with certainty, see ``started``.

There are too many ways to write a path in a shell (variables, quotes, ``cd hooks &&``, ``~``) to resolve it reliably.
Instead, a name counts if all of its words occur anywhere in the commands, in any order and with any quoting, also after
brace expansion. This includes too many files rather than too few. A name without a suffix, such as ``test``, counts
only if its words are part of a path or come after a program that starts others. Files that a command certainly only
writes to are left out; otherwise a hook that writes a log would invalidate its own approval.

Not included: names that a command does not spell out (a wildcard, an escape such as ``\\x63``, a search path).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

from llxprt_hooks.process.shell.command_line import PROJECT_DIR_REFERENCE
from llxprt_hooks.process.shell.words import INTERPRETERS, without_written

MAX_EXPANSIONS: Final = 1000
"""Maximum number of words that the braces in one word may expand to; a hostile command could have any number."""

_MAX_EXPANDED: Final = 4 * 1024 * 1024
"""Maximum length of all these words, for all commands together."""

_MAX_BRACES: Final = 100
"""Maximum nesting of braces."""

_WORD: Final = re.compile(r"\.?\w+")
_QUOTING: Final = re.compile(r"\\\n|[\"'`\\]")
_ESCAPE_OR_QUOTE: Final = re.compile(r"\\.|[\"'`]", re.DOTALL)
_OPTION_LETTER: Final = re.compile(r"(?<![\w-])-\w")
_EXPANSION: Final = re.compile(r"\$(?:\{[^{}]*\}|[@*#?$!-]|\w+)")
_UNSEPARATED: Final = re.compile(r"[^\s;|&()<>]+")
_QUOTED: Final = r"""\\.|'[^']*'|"(?:\\.|[^"\\])*"|["'\\]"""
_SIMPLE_COMMAND: Final = re.compile(rf"""(?:{_QUOTED}|[^|;&\n"'\\])+""", re.DOTALL)
_QUOTED_WORD: Final = re.compile(rf"""(?:{_QUOTED}|[^\s;|&()<>"'\\])+""", re.DOTALL)
_STARTS_OTHERS: Final = re.compile(
    rf"(?:^|[\s/(])(?:{INTERPRETERS}|g?awk|source|\.|exec|eval|env|"
    r"xargs|nohup|timeout|sudo|command|builtin|nice|setsid|time|npx|uv)(?=\s)|\bPATH="
)
"""A program after which a mere word may be a script."""
_KNOWN_EXPANSION: Final = re.compile(
    PROJECT_DIR_REFERENCE.pattern
    + r"|\$(?:HOME|PWD|\{HOME\}|\{PWD\})(?!\w)|\$\(pwd\)|\$\(git rev-parse --show-toplevel\)"
)
_AFTER_SUBSTITUTION: Final = re.compile(r"\)[^\s;|&<>()]*[/.]\w")
_FIRST_ARGUMENT: Final = re.compile(r"\s+(?:-\S+\s+)*[$`]")
_TAKES_NAMES: Final = re.compile(r"\b(?:find|xargs|parallel)\b")
"""A program that starts others with names from elsewhere in the command."""
_PATTERN_ARGUMENT: Final = re.compile(r"\s+(?:-\S+\s+)*[^\s;|&<>()]*[*?\[]")
_PATTERN_PROGRAM: Final = re.compile(r"(?:^|[;&|(]\s*)(?=\S*/)[^\s;|&<>()]*[*?]")
_ADDS_SUFFIX: Final = re.compile(r"\b(?:python|node|bun|deno|perl|ruby|lua)")
_PATH: Final = re.compile(r"/|\.\w")
_BRACES: Final = re.compile(r"([{},])")
_SEQUENCE: Final = re.compile(r"(-?\d{1,9})\.\.(-?\d{1,9})(?:\.\.-?\d+)?|(\w)\.\.(\w)(?:\.\.-?\d+)?")

_IMPLIED_SUFFIXES: Final = (".js", ".cjs", ".mjs", ".ts", ".py", ".pm", ".rb", ".lua")
"""Suffixes that ``node hooks/check``, ``python -m hooks.check`` and ``perl -Mcheck`` add."""

IMPLIED_FILES: Final = frozenset({"__init__.py", "__main__.py", "index.js", "index.cjs", "index.mjs"})
"""What ``python -m hooks``, ``python hooks`` and ``node hooks`` run in a folder."""


class ScriptsError(Exception):
    """The content of scripts cannot be determined. The message is for the user."""


class CommandNames:
    """The names of files and folders that commands could mean.

    >>> names = CommandNames(["sh {c,}heck.sh $X > out.txt; make test"])
    >>> names.include("check.sh"), names.include("out.txt"), names.include("test")
    (True, False, False)
    """

    def __init__(self, commands: Iterable[str]) -> None:
        commands = set(commands)
        self._words = _words_of(map(without_written, commands))
        self._in_paths = _words_of(path for command in commands for path in paths_in(command))
        self._adds_suffix = any(_ADDS_SUFFIX.search(_QUOTING.sub("", command)) for command in commands)
        self._known: dict[str, bool] = {}

    def __bool__(self) -> bool:
        return bool(self._words)

    def include(self, name: str) -> bool:
        """Whether the commands could mean a file of this name."""
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._include(name)
        return known

    def include_folder(self, name: str) -> bool:
        """Whether the commands could mean something in a folder of this name."""
        return _spell(self._words, _plain(name))

    def imply(self, folder: str, name: str) -> bool:
        """Whether the commands could mean a folder, of which Python or Node runs a file of this name."""
        return self._adds_suffix and name in IMPLIED_FILES and _spell(self._in_paths, _plain(folder))

    def include_path(self, path: str) -> bool:
        """Whether the commands could mean each name on a path."""
        *folders, last = path.split("/")
        implied = bool(folders) and self.imply(folders[-1], last)
        return (implied or self.include(last)) and all(map(self.include_folder, folders))

    def _include(self, name: str) -> bool:
        plain = _plain(name)
        if _spell(self._words if "." in plain else self._in_paths, plain):
            return True
        suffix = next((suffix for suffix in _IMPLIED_SUFFIXES if plain.endswith(suffix)), "")
        return self._adds_suffix and bool(suffix) and _spell(self._in_paths, plain.removesuffix(suffix))


def _spell(words: set[str], plain: str) -> bool:
    return any(words.issuperset(_WORD.findall(reading)) for reading in (plain, _QUOTING.sub("", plain)))


def paths_in(command: str) -> list[str]:
    """Return the parts of a command that look like a path, and those after a program that starts others.

    If a path is assembled from variables, each word of the command may be a part of it.

    >>> paths_in("make test && hooks/check && node lint $X")
    ['hooks/check', ' lint $X']
    """
    text = without_written(command)
    paths = []
    for part in _SIMPLE_COMMAND.findall(text):
        plain = without_quotes(part)
        if started := _STARTS_OTHERS.search(plain):
            paths.append(plain[started.end() :])
        else:
            words = map(without_quotes, _QUOTED_WORD.findall(part))
            paths += [word for word in words if _PATH.search(word) and "://" not in word]
    return [text] if _TAKES_NAMES.search(text) or has_assembled_path(command) else paths


def has_assembled_path(command: str) -> bool:
    """Whether a word that looks like a path has an expansion, so that its text does not show which file it means."""
    text = _QUOTING.sub(_kept_back_quote, _KNOWN_EXPANSION.sub("", without_written(command)))
    expanded = (word for word in _UNSEPARATED.findall(text) if "$" in word or "`" in word)
    return (
        any(map(_PATH.search, expanded))
        or _AFTER_SUBSTITUTION.search(text) is not None
        or any(_FIRST_ARGUMENT.match(text, started.end()) for started in _STARTS_OTHERS.finditer(text))
    )


def starts_pattern(command: str) -> bool:
    """Whether a command starts what a wildcard finds."""
    text = re.sub(_QUOTED, "", command, flags=re.DOTALL)
    return any(_PATTERN_ARGUMENT.match(text, started.end()) for started in _STARTS_OTHERS.finditer(text)) or (
        _PATTERN_PROGRAM.search(text) is not None
    )


def without_quotes(command: str) -> str:
    return _QUOTING.sub("", command)


def _kept_back_quote(quoting: re.Match[str]) -> str:
    return quoting[0] if quoting[0] == "`" else ""


def _words_of(texts: Iterable[str]) -> set[str]:
    """Return the words of all texts, for each way that quotes, options, variables and braces join or split them."""
    words: set[str] = set()
    braces = _Braces()
    for text in map(_plain, texts):
        unquoted = _QUOTING.sub("", text)
        for reading in (
            unquoted,
            _ESCAPE_OR_QUOTE.sub(" ", text),
            _OPTION_LETTER.sub(" ", text),
            _EXPANSION.sub("", unquoted),
            " ".join(braces.expansions(unquoted)),
        ):
            words.update(_WORD.findall(reading))
    return words | {word.removeprefix(".") for word in words}


def _plain(text: str) -> str:
    """Normalize Unicode and case, because some file systems ignore these differences."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


Pieces = list["str | Group"]
Group = list[Pieces]
"""The alternatives between two braces."""


class _Braces:
    """Expands braces as bash does, up to a limit."""

    def __init__(self) -> None:
        self._room = _MAX_EXPANDED

    def expansions(self, text: str) -> Iterator[str]:
        """Yield the expansions of all words that have braces."""
        for word in {found[0] for found in _UNSEPARATED.finditer(text) if "{" in found[0]}:
            yield from self._expanded(_pieces(word))

    def _expanded(self, pieces: Pieces) -> list[str]:
        words = [""]
        for piece in pieces:
            ends = [piece] if isinstance(piece, str) else [end for each in piece for end in self._expanded(each)]
            self._room -= len(words) * sum(map(len, ends)) + len(ends) * (1 + sum(map(len, words)))
            if len(words) * len(ends) > MAX_EXPANSIONS or self._room < 0:
                raise ScriptsError("the braces in the commands expand to too many words")
            words = [word + end for word in words for end in ends]
        return words


def _pieces(word: str) -> Pieces:
    """Read a word with braces. A brace that is not closed, or has only one alternative, is an ordinary character."""
    groups: list[Group] = [[[]]]
    for text in _BRACES.split(word):
        if text == "{":
            groups.append([[]])
            if len(groups) > _MAX_BRACES:
                raise ScriptsError(f"the braces in a command are nested more than {_MAX_BRACES} levels deep")
        elif text == "," and len(groups) > 1:
            groups[-1].append([])
        elif text == "}" and len(groups) > 1:
            group = groups.pop()
            groups[-1][-1] += _closed(group)
        elif text:
            groups[-1][-1].append(text)
    while len(groups) > 1:
        group = groups.pop()
        groups[-1][-1] += ["{", *_with_commas(group)]
    return groups[0][0]


def _closed(group: Group) -> Pieces:
    if len(group) > 1:
        return [group]
    match group[0]:
        case [str(text)] if sequence := _sequence(text):
            return [[[each] for each in sequence]]
    return ["{", *group[0], "}"]


def _with_commas(group: Group) -> Iterator[str | Group]:
    for number, pieces in enumerate(group):
        if number:
            yield ","
        yield from pieces


def _sequence(text: str) -> list[str]:
    found = _SEQUENCE.fullmatch(text)
    if found is None:
        return []
    first, last = (int(found[1]), int(found[2])) if found[1] else (ord(found[3]), ord(found[4]))
    first, last = min(first, last), max(first, last)
    if last - first >= MAX_EXPANSIONS:
        raise ScriptsError(f"the braces in a command expand to more than {MAX_EXPANSIONS} words")
    return [str(each) if found[1] else chr(each) for each in range(first, last + 1)]
