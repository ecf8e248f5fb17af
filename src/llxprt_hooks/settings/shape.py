"""The vocabulary in which settings are declared: the keys of every object, their types, defaults and meaning.

``engine.schema`` and each hook type in ``engine.executors`` declare their settings with it. The engine reads hooks by
the declaration, ``llxprt-hooks validate`` checks files against it, and the JSON Schema is generated from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from llxprt_hooks.settings.jsonc import Kind


@dataclass(frozen=True, slots=True)
class Scalar:
    """A string, number or boolean. ``choices`` lists all allowed values, ``suggestions`` some of them."""

    kind: Kind
    choices: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()
    above: float | None = None
    not_blank: bool = False
    is_command_line: bool = False
    """Whether it is for the shell: what is put into it must be quoted, and programs and variables in it are checked."""


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """An array whose elements are all declared alike."""

    element: Value
    kind: Kind = Kind.ARRAY


@dataclass(frozen=True, slots=True)
class Shape:
    """An object. An ``open`` one may have other keys, which are not checked."""

    name: str
    description: str
    fields: Mapping[str, Field]
    open: bool = False
    example: Mapping[str, object] | None = None
    kind: Kind = Kind.OBJECT


Value: TypeAlias = "Scalar | ArrayOf | Shape"


@dataclass(frozen=True, slots=True)
class Field:
    """One key of an object."""

    value: Value
    description: str
    default: object = None
    """The value where the key is absent."""
    required: bool = False
    nullable: bool = False
    """Whether null counts as absent; elsewhere it is of the wrong type."""
    deprecated: bool = False
    secret: bool = False
    """Whether the value is never shown; of an object, only its keys are."""


class FieldProblem(NamedTuple):
    """A value that does not fit its declaration."""

    key: str
    message: str
    discards: bool
    """Whether the object cannot be used because of it; otherwise only this value is ignored."""


class FieldReader:
    """Reads objects by their declaration. Made once for each declaration: there may be thousands of objects.

    >>> reader = FieldReader({"timeout": Field(Scalar(Kind.NUMBER, above=0), "", default=60)})
    >>> reader.read({"timeout": -1})[1][0].message
    '`timeout` is ignored: expected a number above 0, found -1'
    """

    def __init__(self, fields: Mapping[str, Field]) -> None:
        self._fields = fields
        self._fits = {key: _fitting(field.value) for key, field in fields.items()}
        self._defaults = {key: field.default for key, field in fields.items()}
        self._required = [key for key, field in fields.items() if field.required]

    def read(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[FieldProblem]]:
        """The declared values of an object, with defaults for those that are absent or do not fit."""
        values, problems = self._defaults.copy(), []
        for key in self._required:
            if given.get(key) is None:
                problems.append(_misfit(key, self._fields[key], None))
        for key, value in given.items():
            fits = self._fits.get(key)
            if fits is None:
                continue
            if fits(value):
                values[key] = value
            elif value is not None or not (self._fields[key].nullable or self._fields[key].required):
                problems.append(_misfit(key, self._fields[key], value))
        return values, problems


def _fitting(declared: Value) -> Callable[[object], bool]:
    """The test for a declared value; strings, which most fields are, without a detour."""
    if isinstance(declared, Scalar) and declared.kind is Kind.STRING and not declared.choices:
        if declared.not_blank:
            return lambda value: isinstance(value, str) and bool(value.strip())
        return lambda value: isinstance(value, str)
    return lambda value: _fits(declared, value)


def _misfit(key: str, field: Field, value: object) -> FieldProblem:
    expected = f"expected {expected_words(field.value)}, found {found_words(value)}"
    words = f"it needs `{key}`: {expected}" if field.required else f"`{key}` is ignored: {expected}"
    return FieldProblem(key, words, discards=field.required)


def fits_limits(declared: Scalar, value: object) -> bool:
    """Whether a value of the declared kind is one of the choices and in range."""
    if declared.not_blank:
        return bool(str(value).strip())
    if declared.choices:
        return value in declared.choices
    return declared.above is None or (isinstance(value, int | float) and declared.above < value < math.inf)


def expected_words(declared: Value) -> str:
    """What a declaration asks for, in a few words."""
    if isinstance(declared, ArrayOf):
        return f"{declared.kind} ({expected_words(declared.element)} each)"
    if isinstance(declared, Shape):
        return str(declared.kind)
    if declared.choices:
        return " or ".join(f'"{choice}"' for choice in declared.choices)
    limit = f" above {declared.above:g}" if declared.above is not None else ""
    return f"{declared.kind}{limit}{' that is not blank' * declared.not_blank}"


def found_words(value: object) -> str:
    """A value that was found, cut to a length that fits in a message."""
    return "nothing" if value is None else f"{value!r:.60}"


_TYPES: Final[Mapping[Kind, type | tuple[type, ...]]] = {
    Kind.STRING: str,
    Kind.NUMBER: (int, float),
    Kind.BOOLEAN: bool,
    Kind.ARRAY: list,
    Kind.OBJECT: Mapping,
}


def _fits(declared: Value, value: object) -> bool:
    kind = declared.kind
    if not isinstance(value, _TYPES[kind]) or (kind is Kind.NUMBER and isinstance(value, bool)):
        return False
    if isinstance(declared, Scalar):
        return fits_limits(declared, value)
    if isinstance(declared, ArrayOf):
        return isinstance(value, list) and all(_fits(declared.element, element) for element in value)
    return isinstance(value, Mapping) and not FieldReader(declared.fields).read(value)[1]
