"""One way to look at an SDK's objects, its dicts and an API's JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any


def field(value: Any, name: str) -> Any:
    """A field of an object or a dict, whether the dict spells it ``top_k`` or ``topK``; None where it has none."""
    if isinstance(value, dict):
        return value.get(spelling(value, name))
    return getattr(value, name, None)


def spelling(mapping: Mapping[str, Any], name: str) -> str:
    """``name`` as a mapping spells it: ``top_k`` or ``topK``."""
    return name if name in mapping or _camel(name) not in mapping else _camel(name)


def copy_with(value: Any, **fields: Any) -> Any:
    """A shallow copy of a dict or a pydantic object with other fields, which both spell alike."""
    return {**value, **fields} if isinstance(value, dict) else value.model_copy(update=fields)


def as_list(value: Any) -> Sequence[Any]:
    """A list of one where an SDK takes an item for a list of it."""
    if value is None:
        return []
    return value if isinstance(value, (list, tuple)) else [value]


def name_of(value: Any) -> str | None:
    """The name that an enum member or a string stands for."""
    name = value.value if isinstance(value, Enum) else value
    return name if isinstance(name, str) and name else None


def described(value: object) -> str:
    """What was found, for an error message. Only names are shown: values may be secret."""
    if isinstance(value, Mapping):
        names = (name if name.isprintable() else repr(name) for name in map(str, value))
        return f"an object with the fields {', '.join(names) or '(none)'}"
    return f"of type {type(value).__name__}"


@cache
def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(map(str.capitalize, rest))
