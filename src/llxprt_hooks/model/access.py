"""Uniform access to an SDK's objects, its dicts and an API's JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache, lru_cache
from typing import Any


def field(value: Any, name: str) -> Any:
    """Return a field of an object or a dict, which may spell it ``top_k`` or ``topK``; None if it is missing."""
    if _is_mapping(value.__class__):
        return value.get(spelling(value, name))
    return getattr(value, name, None)


def spelling(mapping: Mapping[str, Any], name: str) -> str:
    """Return ``name`` as a mapping spells it: ``top_k`` or ``topK``."""
    return name if name in mapping or _camel(name) not in mapping else _camel(name)


def copy_with(value: Any, **fields: Any) -> Any:
    """Return a shallow copy of a mapping or a pydantic object with these fields replaced."""
    return {**value, **fields} if isinstance(value, (dict, Mapping)) else value.model_copy(update=fields)


def is_copyable(value: object) -> bool:
    """Whether ``copy_with`` accepts a value: it is a mapping or a pydantic object."""
    return isinstance(value, (dict, Mapping)) or (hasattr(value, "model_copy") and hasattr(value, "model_dump"))


def as_list(value: Any) -> Sequence[Any]:
    """Return a list; an SDK accepts a single item in place of a list of one."""
    if value is None:
        return []
    return value if isinstance(value, (list, tuple)) else [value]


def name_of(value: Any) -> str | None:
    """Return the name in an enum member or a string; None for anything else."""
    name = value.value if isinstance(value, Enum) else value
    return name if isinstance(name, str) and name else None


def described(value: object) -> str:
    """Describe a value for an error message. Only field names are shown: values may be secret."""
    if isinstance(value, Mapping):
        names = (name if name.isprintable() else repr(name) for name in map(str, value))
        return f"an object with the fields {', '.join(names) or '(none)'}"
    return f"of type {type(value).__name__}"


@lru_cache(256)
def _is_mapping(kind: type) -> bool:
    """Whether a type is a mapping. The answer is kept: a large request asks for every field of every part."""
    return issubclass(kind, Mapping)


@cache
def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(map(str.capitalize, rest))
