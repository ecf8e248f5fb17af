"""Types of JSON fields, and one function that checks an object against a table of them.

A field of the wrong type is dropped and reported in a sentence; the other fields are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class FieldType(NamedTuple):
    read: Callable[[Any], Any]
    """Returns the value in the form that is used, or None if it is not of this type."""
    words: str
    """The expected type, in the words of a message."""
    fields: Mapping[str, FieldType] | None = None
    """The known fields of an object."""
    shows_value: bool = False
    """Whether a message may quote a wrong value. Only for values that cannot be secret."""


def checked(
    data: Mapping[str, Any], table: Mapping[str, FieldType], problems: list[str], path: str = "", *, keep_unknown: bool
) -> dict[str, Any]:
    """Return the fields of ``data`` that fit the table, and add the dropped ones to ``problems``. Null means absent.

    >>> problems: list[str] = []
    >>> checked({"reason": 7, "continue": False}, {"reason": STRING, "continue": FLAG}, problems, keep_unknown=False)
    {'continue': False}
    >>> problems
    ['`reason` is ignored: expected a string, found a number']
    """
    kept: dict[str, Any] = {}
    for name, value in data.items():
        field = table.get(name)
        if field is None:
            if keep_unknown:
                kept[name] = value
            elif value is not None:
                problems.append(f"`{path}{name}` is ignored: unknown field")
        elif value is None:
            continue
        elif (read := field.read(value)) is None:
            problems.append(ignored(f"{path}{name}", field, value))
        elif field.fields is not None:
            kept[name] = checked(read, field.fields, problems, f"{path}{name}.", keep_unknown=keep_unknown)
        else:
            kept[name] = read
            if isinstance(read, list) and len(read) < len(value):
                left_out = len(value) - len(read)
                problems.append(f"{left_out} of {len(value)} items of `{path}{name}` are ignored: expected strings")
    return kept


def ignored(path: str, field: FieldType, value: object) -> str:
    """Return the message about a value that is not of the field's type."""
    return f"`{path}` is ignored: expected {field.words}, found {found(value, quote=field.shows_value)}"


def found(value: object, *, quote: bool = False) -> str:
    """Describe a value. Only strings can be quoted: formatting a deeply nested value may raise."""
    if quote and isinstance(value, str):
        return repr(value[:80])
    return next((words for kind, words in _KINDS if isinstance(value, kind)), type(value).__name__)


_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (type(None), "null"),
    (bool, "a boolean"),
    (str, "a string"),
    ((int, float), "a number"),
    (list, "an array"),
    (Mapping, "an object"),
)


def one_of(*words: str, shows_value: bool = False) -> FieldType:
    listed = ", ".join(f'"{word}"' for word in words)
    return FieldType(
        lambda value: value if isinstance(value, str) and value in words else None,
        f"one of {listed}",
        shows_value=shows_value,
    )


def object_of(fields: Mapping[str, FieldType]) -> FieldType:
    """An object whose known fields are also checked."""
    return FieldType(_object, "an object", fields)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _integer(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _strings(value: object) -> list[str] | None:
    strings = _names(value)
    return strings if strings or not value else None


def _names(value: object) -> list[str] | None:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else None


def _object(value: object) -> dict[str, Any] | None:
    if isinstance(value, dict):
        return value
    return dict(value) if isinstance(value, Mapping) else None


def _instance_of(kind: type) -> Callable[[object], Any]:
    return lambda value: value if isinstance(value, kind) else None


STRING = FieldType(_instance_of(str), "a string")
WORD = FieldType(_word, "a string that is not empty")
FLAG = FieldType(_instance_of(bool), "true or false")
NUMBER = FieldType(_number, "a finite number")
INTEGER = FieldType(_integer, "an integer")
OBJECT = FieldType(_object, "an object")
TEXT_OR_OBJECT = FieldType(lambda value: value if isinstance(value, str) else _object(value), "a string or an object")
LIST = FieldType(_instance_of(list), "an array")
STRINGS = FieldType(_strings, "an array of strings")
NAMES = FieldType(_names, "an array of strings")
"""Unlike ``STRINGS``, a list without any string is read as an empty list: it allows no tool."""
