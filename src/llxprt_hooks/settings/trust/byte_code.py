"""Decides whether Python would run a file of byte code in place of the source file that an approval covers.

Python runs byte code in ``__pycache__`` if its header fits the source: by time and size, or by a hash. The author
of byte code also writes its header, so a fitting header says nothing about the code. Byte code that Python itself has
made from the source is harmless, and common. It is recognized by making it again: the source is compiled, and both are
compared without loading either. That takes a Python of the same version; what another version made counts as foreign.
"""

from __future__ import annotations

import importlib.util
import marshal
import os
import re
import struct
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

CACHE_FOLDER: Final = "__pycache__"
SUFFIX: Final = ".pyc"

_HEADER: Final = 16
_HASHED: Final = 1
MAX_COMPARED: Final = 4 * 1024 * 1024
"""Maximum size of all files that are compared; a hostile project could have any number."""

_OF_PYTEST: Final = re.compile(r"[^.]*\.\w+-\d+-pytest-[\d.]+\.pyc")
"""The names of files that only pytest reads."""


def source_name(cached: str) -> str:
    """Return the name of the source file that a file in ``__pycache__`` belongs to.

    >>> source_name("check.cpython-311.pyc"), source_name("a.b.cpython-311.opt-1.pyc")
    ('check.py', 'a.b.py')
    """
    return f"{cached.removesuffix(SUFFIX).partition('.opt-')[0].rpartition('.')[0]}.py"


class ByteCodeCheck:
    """Checks files of byte code, up to a limit; those beyond it count as foreign."""

    def __init__(self) -> None:
        self._left = MAX_COMPARED

    def replaces_source(self, cached: Path) -> bool:
        """Whether Python would run this file of ``__pycache__``, and did not make it from the source file beside it.

        Raises ``OSError`` if one of them cannot be read.
        """
        if _OF_PYTEST.fullmatch(cached.name):
            return False
        source = cached.parent.parent / source_name(cached.name)
        try:
            status = source.stat()
        except FileNotFoundError:  # without a source, Python does not look into this folder
            return False
        with cached.open("rb") as opened:
            header = opened.read(_HEADER).ljust(_HEADER, b"\0")
            flags, *fit = struct.unpack_from("<III", header, 4)
            if flags & _HASHED:
                return True
            if fit != [int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF]:
                return False
            self._left -= status.st_size + os.fstat(opened.fileno()).st_size
            if self._left < 0 or not header.startswith(importlib.util.MAGIC_NUMBER):
                return True
            return not _is_made_of(opened.read(), source.read_bytes(), _optimization(cached.name))


def _optimization(name: str) -> int:
    _, _, level = name.removesuffix(SUFFIX).partition(".opt-")
    return int(level) if level in ("1", "2") else 0


def _is_made_of(code: bytes, source: bytes, optimization: int) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):
            compiled = compile(source, "", "exec", dont_inherit=True, optimize=optimization)
        return _MarshalReader(code).read() == _MarshalReader(marshal.dumps(compiled)).read()
    except (SyntaxError, ValueError, LookupError, TypeError, RecursionError, MemoryError, struct.error):
        return False


class _MarshalReader:
    """Reads the format of ``marshal``: equal code has equal results, whatever it was read from.

    ``marshal`` itself is not safe with data that somebody else has made. Values are bytes, and tuples for what contains
    other values. The name of the source file is left out.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._references: list[object] = []

    def read(self) -> object:
        kind = self.take(1)[0]
        if not kind & _REFERENCED:
            return _KINDS[chr(kind)](self)
        place = len(self._references)
        self._references.append(None)
        value = self._references[place] = _KINDS[chr(kind & ~_REFERENCED)](self)
        return value

    def take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) != size:
            raise ValueError("the data ends too early")
        self._at += size
        return taken

    def number(self) -> int:
        return int.from_bytes(self.take(4), "little", signed=True)

    def length(self) -> int:
        return self.take(1)[0]

    def long(self) -> bytes:
        digits = self.number()  # negative for a negative number
        return b"%d " % digits + self.take(2 * abs(digits))

    def referenced(self) -> object:
        return self._references[self.number()]

    def items(self, size: int) -> tuple[object, ...]:
        return tuple(self.read() for _ in range(size))

    def unordered(self) -> frozenset[object]:
        items = self.items(self.number())
        # Hashing what contains itself many times over would take forever.
        if not all(isinstance(item, bytes) or (isinstance(item, tuple) and _is_flat(item)) for item in items):
            raise ValueError("a set of nested values")
        return frozenset(items)

    def code(self) -> tuple[object, ...]:
        numbers = self.take(5 * 4)
        parts = self.items(5)
        self.read()  # the name of the source file
        return (numbers, *parts, *self.items(2), self.take(4), *self.items(2))


def _is_flat(items: tuple[object, ...]) -> bool:
    return all(isinstance(item, bytes) for item in items)


_REFERENCED: Final = 0x80
"""A bit of a value's kind: a later value may refer to it."""

_KINDS: Final[Mapping[str, Callable[[_MarshalReader], object]]] = {
    "N": lambda _: b"N",
    "T": lambda _: b"T",
    "F": lambda _: b"F",
    ".": lambda _: b".",
    "i": lambda reader: b"i" + reader.take(4),
    "l": lambda reader: reader.long(),
    "g": lambda reader: b"g" + reader.take(8),
    "y": lambda reader: b"y" + reader.take(16),
    "s": lambda reader: b"s" + reader.take(reader.number()),
    **dict.fromkeys("utaA", lambda reader: b"u" + reader.take(reader.number())),
    **dict.fromkeys("zZ", lambda reader: b"u" + reader.take(reader.length())),
    "(": lambda reader: reader.items(reader.number()),
    ")": lambda reader: reader.items(reader.length()),
    ">": lambda reader: reader.unordered(),
    ":": lambda reader: (b":", *reader.items(3)),
    "c": lambda reader: reader.code(),
    "r": lambda reader: reader.referenced(),
}
