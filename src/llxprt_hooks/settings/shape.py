"""The vocabulary in which settings are declared: the keys of every object, their types, defaults and meaning.

``engine.schema`` and each hook type in ``engine.executors`` declare their settings with it. The engine reads hooks by
the declaration, ``llxprt-hooks validate`` checks files against it, and the JSON Schema is generated from it. Files with
tests for hooks are declared in the same way, in ``inspection.hook_test_file``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from llxprt_hooks.settings.jsonc import Kind
from llxprt_hooks.text import without_credentials


@dataclass(frozen=True, slots=True)
class Scalar:
    """A string, number or boolean. ``choices`` lists all allowed values, ``suggestions`` some of them."""

    kind: Kind
    choices: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()
    above: float | None = None
    not_blank: bool = False
    problem: Callable[[str], str | None] | None = None
    """Returns why a string cannot be used, as the end of a sentence without the string; else None."""
    is_command_line: bool = False
    """Whether it is for the shell: what is put into it must be quoted, and programs and variables in it are checked."""


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """An array whose elements are all declared alike."""

    element: Value
    not_blank: bool = False
    kind: Kind = Kind.ARRAY


@dataclass(frozen=True, slots=True)
class Shape:
    """An object. An ``open`` one may have other keys, which are not checked."""

    name: str
    description: str
    fields: Mapping[str, Field]
    open: bool = False
    example: Mapping[str, object] | None = None
    if_unfit: str = ""
    """What a mistake in it means, if none of it is used because of one; elsewhere only that value is ignored."""
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
    address: bool = False
    """Whether it is an address or several: a password in one is not shown."""


class FieldProblem(NamedTuple):
    """A value that does not fit its declaration."""

    key: str
    message: str
    discards: bool
    """Whether the object cannot be used because of it; otherwise only this value is ignored."""


def read_fields(declared: Mapping[str, Field], given: Mapping[str, Any]) -> tuple[dict[str, Any], list[FieldProblem]]:
    """The declared values of an object, with defaults for those that are absent or do not fit.

    >>> fields = {"timeout": Field(Scalar(Kind.NUMBER, above=0), "", default=60)}
    >>> read_fields(fields, {"timeout": -1})[1][0].message
    '`timeout` is ignored: expected a number above 0, found -1'
    """
    values = {key: field.default for key, field in declared.items()}
    problems = [
        _misfit(key, field, None) for key, field in declared.items() if field.required and given.get(key) is None
    ]
    for key, value in given.items():
        field = declared.get(key)
        if field is None:
            continue
        if _fits(field.value, value):
            values[key] = value
        elif value is not None or not (field.nullable or field.required):
            problems.append(_misfit(key, field, value))
    return values, problems


def usual_struct(name: str, fields: Mapping[str, Field]) -> type[msgspec.Struct]:
    """A type with which ``msgspec`` reads the usual object of a declaration, several times as fast.

    It takes only objects in which ``read_fields`` finds no problem, and reads the same values from them. It does not
    take all of these: a null, a fraction, an array, an object and an unknown key are left to ``read_fields``. The keys
    are identifiers.
    """
    members = [(key, _usual(field), *([] if field.required else [_default(field)])) for key, field in fields.items()]
    not_blank = [key for key, field in fields.items() if field.required and getattr(field.value, "not_blank", False)]

    def refuse_blank(usual: object) -> None:  # the `pattern` of msgspec takes longer than all the rest
        for key in not_blank:
            if not getattr(usual, key).strip():
                raise ValueError(key)

    return msgspec.defstruct(
        name,
        members,
        tag_field="type",
        tag=name,
        kw_only=True,
        forbid_unknown_fields=True,
        namespace={"__post_init__": refuse_blank},
    )


class _Unusual:
    """The type of a field that is left to ``read_fields``: no value in settings is of this type."""


def _usual(field: Field) -> Any:
    value = field.value
    if not isinstance(value, Scalar) or value.problem or (value.not_blank and not field.required):
        return _Unusual
    if value.kind is Kind.BOOLEAN:
        return bool
    if value.kind is Kind.NUMBER:
        return int if value.above is None else Annotated[int, msgspec.Meta(gt=math.floor(value.above))]
    return Literal[value.choices] if value.choices and not value.not_blank else str


def _default(field: Field) -> Any:
    default = field.default
    return msgspec.field(default_factory=lambda: default) if isinstance(default, list | dict) else default


def _misfit(key: str, field: Field, value: object) -> FieldProblem:
    is_hidden = field.secret and value is not None
    found = "something else, which is not shown" if is_hidden else found_words(value)
    expected = f"expected {expected_words(field.value)}, found {found}"
    words = f"it needs `{key}`: {expected}" if field.required else f"`{key}` is ignored: {expected}"
    return FieldProblem(key, words, discards=field.required)


def fits_limits(declared: Scalar | ArrayOf, value: object) -> bool:
    """Whether a value of the declared kind is allowed: one of the choices, in range, not blank; elements aside."""
    if isinstance(declared, ArrayOf):
        return bool(value) or not declared.not_blank
    if declared.not_blank:
        return bool(str(value).strip())
    if declared.choices:
        return value in declared.choices
    if declared.problem:
        return declared.problem(str(value)) is None
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
    return "nothing" if value is None else f"{shown_addresses(value)!r:.60}"


def shown_addresses(value: Any) -> Any:
    """A value of settings, with all texts in it as addresses without a password."""
    if isinstance(value, str):
        return without_credentials(value)
    if isinstance(value, Mapping):
        return {key: shown_addresses(each) for key, each in value.items()}
    return [shown_addresses(each) for each in value] if isinstance(value, list) else value


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
    if isinstance(declared, Shape):
        return isinstance(value, Mapping) and not read_fields(declared.fields, value)[1]
    if isinstance(declared, ArrayOf) and isinstance(value, list):
        return fits_limits(declared, value) and all(_fits(declared.element, element) for element in value)
    return fits_limits(declared, value)
