"""What targets are fed: any bytes, any JSON, and valid documents with something done to them."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

# Texts include lone surrogates, which JSON can write and UTF-8 cannot.
any_text = st.text(st.characters(), max_size=12)
EXTREMES: dict[type, tuple[Any, ...]] = {
    bool: (0, 1, "true", None),
    int: (0, -1, 2**63, 2**64, 10**350, -(10**350), float("inf"), float("-inf"), float("nan"), 1e308, 5e-324, True),
    float: (0, -1, 2**63, 2**64, 10**350, -(10**350), float("inf"), float("-inf"), float("nan"), 1e308, 5e-324, True),
    str: ("", " ", "*", "[", "(?=", "\0", "\ud800", "a\nb", "\x1b[2J", "..", "/", "~", "$HOME", "x" * 5000, "é" * 100),
}
"""What a value of each type may be at the most."""

any_scalar = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | any_text
    | st.sampled_from([extreme for kind in (int, str) for extreme in EXTREMES[kind]])
)
any_json = st.recursive(
    any_scalar,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)

ODD = (
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\x00",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\\ud800",
    b"\\udc00\\ud800",
    b"\\u0000",
    b"\\",
    b'"',
    b"1e999",
    b"-1e999",
    b"-0",
    b"9" * 400,
    b"9" * 5000,
    b"0." + b"1" * 5000,
    b"NaN",
    b"-Infinity",
    b"[" * 150,
    b"[" * 3000,
    b'{"a":' * 3000,
    b"]",
    b"}",
    b",",
    b"//",
    b"/*",
    b"*/",
    b"\r",
    b"\n",
    b"\n\n{}\n",
    b"\xe2\x80\xa8",
    b"\xc2\x85",
    b"\x1b[2J",
    b"x" * 70_000,
)
"""Pieces that readers of JSON have stumbled over."""


def encoded(value: object, *, ascii_only: bool = True, indent: int | None = None) -> bytes:
    """A value as JSON; lone surrogates as escapes, or else as the invalid UTF-8 that some programs write."""
    return json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")


CHANGES = ("delete", "any", "type", "exchange", "wrap", "repeat", "rename", "deep")


@st.composite
def mutated(draw: st.DrawFn, valid: Sequence[Any], most: int = 3) -> Any:
    """One of the valid documents after a few changes to its structure."""
    root = [copy.deepcopy(draw(st.sampled_from(valid)))]
    for _ in range(draw(st.integers(0, most))):
        places = _places(root)
        container, key = draw(st.sampled_from(places))
        value = container[key]
        change = draw(st.sampled_from(CHANGES))
        if type(value) in EXTREMES and draw(st.booleans()):
            change = "extreme"
        if change == "delete" and container is not root:
            del container[key]
        elif change == "any":
            container[key] = draw(any_json)
        elif change == "type":
            container[key] = draw(st.sampled_from([None, True, 0, 1.5, str(value)[:50], [], {}, [value], {"": value}]))
        elif change == "exchange":
            other, place = draw(st.sampled_from(places))
            container[key] = copy.deepcopy(other[place]) if _holds(other, place) else None
        elif change == "wrap":
            container[key] = draw(st.sampled_from([[value], {"text": value}, [value, value], [[value]]]))
        elif change == "repeat" and isinstance(value, list) and value:
            value.insert(draw(st.integers(0, len(value))), copy.deepcopy(draw(st.sampled_from(value))))
        elif change == "rename" and isinstance(container, dict):
            container[draw(any_text | st.sampled_from([key.upper(), f"{key} ", f"{key}s"]))] = container.pop(key)
        elif change == "extreme":
            container[key] = draw(st.sampled_from(EXTREMES[type(value)]))
        elif change == "deep":
            for _ in range(draw(st.sampled_from([50, 98, 250]))):
                value = [value]
            container[key] = value
    return root[0]


def _places(root: list[Any]) -> list[tuple[Any, Any]]:
    """Every value of a document, as the container that holds it and the key that it has there."""
    places: list[tuple[Any, Any]] = []
    todo: list[Any] = [root]
    while todo:
        container = todo.pop()
        items = container.items() if isinstance(container, dict) else enumerate(container)
        for key, value in items:
            places.append((container, key))
            if isinstance(value, (dict, list)):
                todo.append(value)
    return places


def _holds(container: Any, key: Any) -> bool:
    return key in container if isinstance(container, dict) else key < len(container)


@st.composite
def mangled(draw: st.DrawFn, documents: st.SearchStrategy[bytes]) -> bytes:
    """A document after a few changes to its bytes."""
    data = draw(documents)
    for _ in range(draw(st.integers(1, 3))):
        start, end = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
        change = draw(st.sampled_from(["odd", "cut", "drop", "repeat", "splice", "byte", "key", "junk"]))
        if change == "odd":
            data = data[:start] + draw(st.sampled_from(ODD)) + data[start:]
        elif change == "cut":
            data = data[:start]
        elif change == "drop":
            data = data[:start] + data[end:]
        elif change == "repeat":
            data = data[:end] + data[start:]
        elif change == "splice":
            data = data[:start] + draw(documents)[end:]
        elif change == "byte" and start < len(data):
            data = data[:start] + bytes([draw(st.integers(0, 255))]) + data[start + 1 :]
        elif change == "key":
            data = draw(_with_a_key_again(data))
        elif change == "junk":
            data = data[:start] + draw(st.binary(max_size=8)) + data[start:]
    return data


@st.composite
def _with_a_key_again(draw: st.DrawFn, data: bytes) -> bytes:
    openings = [found.end() for found in re.finditer(rb"\{", data)]
    keys = re.findall(rb'"[A-Za-z_]+"(?=\s*:)', data)
    if not openings or not keys:
        return data
    at = draw(st.sampled_from(openings))
    key: bytes = draw(st.sampled_from(keys))
    return data[:at] + key + b": " + encoded(draw(any_json)) + b", " + data[at:]


def written(valid: Sequence[Any], indents: Sequence[int | None] = (None, 1)) -> st.SearchStrategy[bytes]:
    """A mutated document as well-formed JSON, or what Python takes for that."""
    return st.builds(encoded, mutated(valid), ascii_only=st.booleans(), indent=st.sampled_from(indents))


odd_documents = st.builds(encoded, any_json) | st.binary(max_size=60) | st.sampled_from(ODD)


def documents(valid: Sequence[Any]) -> st.SearchStrategy[bytes]:
    """A file or stream in which one of the valid documents is expected, and anything may be."""
    whole = written(valid)
    return _mostly(whole, mangled(whole), odd_documents)


def lines(valid: Sequence[Any], most: int = 4) -> st.SearchStrategy[bytes]:
    """The same for a file with a document a line."""
    line = written(valid, indents=[None])
    several = st.lists(_mostly(line, mangled(line), odd_documents), max_size=most).map(b"\n".join)
    return _mostly(st.lists(line, min_size=1, max_size=most).map(b"\n".join), several, mangled(several))


def _mostly(usual: st.SearchStrategy[bytes], *others: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """As often the first as the others together: too much junk hides what lies behind the reader."""
    return st.booleans().flatmap(lambda is_usual: usual if is_usual else st.one_of(*others))
