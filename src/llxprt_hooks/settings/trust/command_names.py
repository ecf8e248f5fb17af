"""Decides which file names a command could mean.

There are too many ways to write a path in a shell (variables, quotes, ``cd hooks &&``, ``~``) to resolve it reliably.
Instead, a name counts if all of its words occur anywhere in the commands, in any order and with any quoting, also after
brace expansion. This includes too many files rather than too few. Files that a command certainly only writes to are
left out; otherwise a hook that writes a log would invalidate its own approval.

Not included: names that a command does not spell out (a wildcard, an escape such as ``\\x63``, a search path).
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from llxprt_hooks.process.shell.words import without_written

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
SIMPLE_COMMAND: Final = re.compile(r"[^|;&\n]+")
_ADDS_SUFFIX: Final = re.compile(r"\b(?:python|node|bun|deno)")
_PATH: Final = re.compile(r"/|\.\w")
_BRACES: Final = re.compile(r"([{},])")
_SEQUENCE: Final = re.compile(r"(-?\d{1,9})\.\.(-?\d{1,9})(?:\.\.-?\d+)?|(\w)\.\.(\w)(?:\.\.-?\d+)?")

_IMPLIED_SUFFIXES: Final = (".js", ".cjs", ".mjs", ".ts", ".py")
"""Suffixes that ``node hooks/check`` and ``python -m hooks.check`` add."""

IMPLIED_FILES: Final = frozenset({"__init__.py", "__main__.py", "index.js", "index.cjs", "index.mjs"})
"""What ``python -m hooks``, ``python hooks`` and ``node hooks`` run in a folder."""


class ScriptsError(Exception):
    """The content of scripts cannot be determined. The message is for the user."""


class CommandNames:
    """The names of files and folders that commands could mean.

    >>> names = CommandNames(["sh {c,}heck.sh > out.txt"])
    >>> names.include("check.sh"), names.include("out.txt")
    (True, False)
    """

    def __init__(self, commands: Iterable[str]) -> None:
        self._words = _words_of(commands)
        self._known: dict[str, bool] = {}

    def __bool__(self) -> bool:
        return bool(self._words)

    def include(self, name: str) -> bool:
        """Whether the commands could mean a file of this name."""
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._include(name)
        return known

    def include_path(self, path: str) -> bool:
        """Whether the commands could mean each name on a path; a file that a folder implies counts with it."""
        *folders, last = path.split("/")
        implied = bool(folders) and last in IMPLIED_FILES
        return (implied or self.include(last)) and all(map(self.include, folders))

    def spell(self, name: str) -> bool:
        """Whether the commands could mean a file of this name without adding a suffix to what they say."""
        plain = _plain(name)
        return any(self._words.issuperset(_WORD.findall(reading)) for reading in (plain, _QUOTING.sub("", plain)))

    def _include(self, name: str) -> bool:
        plain = _plain(name)
        suffix = next((suffix for suffix in _IMPLIED_SUFFIXES if plain.endswith(suffix)), "")
        return self.spell(plain.removesuffix(suffix))


def paths_in(command: str) -> list[str]:
    """Return the parts of a command that look like a path, and those in which a program may add a suffix to a name.

    >>> paths_in("make test && hooks/check && node lint")
    ['hooks/check', ' node lint']
    """
    paths = []
    for part in SIMPLE_COMMAND.findall(_QUOTING.sub("", without_written(command))):
        if _ADDS_SUFFIX.search(part):
            paths.append(part)
        else:
            paths += [word for word in _UNSEPARATED.findall(part) if _PATH.search(word) and "://" not in word]
    return paths


def _words_of(commands: Iterable[str]) -> set[str]:
    """Return the words of all commands, for each way that quotes, options, variables and braces join or split them."""
    words: set[str] = set()
    braces = _Braces()
    for command in set(commands):
        text = _plain(without_written(command))
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
