"""The vocabulary in which settings are declared: the keys of every object, their types, defaults and meaning.

``schema`` and each hook type in ``core.executors`` declare their settings with it, and so does ``llxprt-hooks test``
for its files. The JSON Schema is generated from it. One walk over an object finds what does not fit: the engine
ignores it, ``llxprt-hooks validate`` explains it.

>>> from llxprt_hooks.settings.jsonc import parse
>>> shape = Shape("hook", "", {"timeout": Field(Scalar(Kind.NUMBER), "")})
>>> [(found.mistake.name, found.key) for found in misfits(shape, parse('{"timeout": "5s", "x": 1}'))]
[('KIND', 'timeout'), ('UNKNOWN', 'x')]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from llxprt_hooks._support.text import without_credentials
from llxprt_hooks.settings.jsonc import Kind, Member, Node, shown

if TYPE_CHECKING:
    from llxprt_hooks.settings.document import Document


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
    or_boolean: bool = False
    """Whether it may also be true or false: all elements, or none."""
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


def shown_addresses(value: Any) -> Any:
    """A value of settings, with all texts in it as addresses without a password."""
    if isinstance(value, str):
        return without_credentials(value)
    if isinstance(value, Mapping):
        return {key: shown_addresses(each) for key, each in value.items()}
    return [shown_addresses(each) for each in value] if isinstance(value, list) else value


class Mistake(Enum):
    UNKNOWN = auto()
    """A key that is not declared. Whether that matters depends on the object."""
    MISSING = auto()
    KIND = auto()
    LIMITS = auto()
    """A value of the right type that is blank, not one of the choices, or not allowed for another reason."""


class Misfit(NamedTuple):
    """A part of a file that does not fit its declaration."""

    mistake: Mistake
    shape: Shape
    """The object that has the key."""
    key: str
    node: Node
    """The value; where a key is unknown or missing, the object."""
    declared: Value
    """What the value should be; where a key is unknown, the object."""
    is_element: bool = False
    """Whether the value is an element of the array under the key."""
    member: Member | None = None
    """The unknown key."""

    @property
    def is_blank(self) -> bool:
        """Whether a required value is blank."""
        return self.mistake is Mistake.LIMITS and not isinstance(self.declared, Shape) and self.declared.not_blank

    @property
    def effect(self) -> str:
        """What the mistake means, if none of the object is used because of it."""
        return self.shape.if_unfit or (self.declared.if_unfit if isinstance(self.declared, Shape) else "")

    def words(self, document: Document) -> str:
        """What is wrong, in a few words, without values that are never shown."""
        key, declared = self.key, self.declared
        if self.mistake is Mistake.UNKNOWN:
            return f"unknown key `{shown(key)}`"
        if self.mistake is Mistake.MISSING:
            return f"this {self.shape.name} has no `{key}`"
        if self.is_blank:
            return f"the `{key}` of this {self.shape.name} is empty"
        found = f", found {document.found(self.node)}"
        if self.mistake is Mistake.LIMITS:
            if isinstance(declared, Scalar) and declared.problem:
                return f"`{key}`: {declared.problem(str(self.node.scalar))}"
            return f"`{key}` must be {_expected_words(declared)}{found}"
        if self.is_element:
            what = f"a {declared.name}, {declared.kind}," if isinstance(declared, Shape) else declared.kind
            return f"expected {what} here{found}"
        return f"`{key}` must be {declared.kind}{'' if self.shape.fields[key].secret else found}"


def read_fields(declared: Mapping[str, Field], given: Node) -> tuple[dict[str, Any], list[FieldProblem]]:
    """Return the declared values of an object, with defaults for those that are absent or do not fit.

    >>> from llxprt_hooks.settings.jsonc import parse
    >>> fields = {"timeout": Field(Scalar(Kind.NUMBER, above=0), "", default=60)}
    >>> read_fields(fields, parse('{"timeout": -1}'))[1][0].message
    '`timeout` is ignored: expected a number above 0, found -1'
    """
    values = {key: field.default for key, field in declared.items()}
    members = given.fields
    problems: list[FieldProblem] = []
    for key, field in declared.items():
        member = members.get(key)
        if member is not None and _fits(field.value, member.value):
            values[key] = member.value.to_value()
        elif field.required or (member is not None and not (member.value.kind is Kind.NULL and field.nullable)):
            problems.append(_problem(key, field, member.value if member else None))
    return values, problems


def _fits(declared: Value, node: Node) -> bool:
    if isinstance(declared, Scalar):
        return node.kind is declared.kind and _fits_limits(declared, node.scalar)
    found = _in_value(Misfit(Mistake.KIND, _ANY, "", node, declared), lambda value, _: value)
    return all(misfit.mistake is Mistake.UNKNOWN for misfit in found)


_ANY: Final = Shape("", "", {})


def _problem(key: str, field: Field, node: Node | None) -> FieldProblem:
    is_hidden = field.secret and node is not None and node.kind is not Kind.NULL
    found = "something else, which is not shown" if is_hidden else found_words(node)
    expected = f"expected {_expected_words(field.value)}, found {found}"
    words = f"it needs `{key}`: {expected}" if field.required else f"`{key}` is ignored: {expected}"
    return FieldProblem(key, words, discards=field.required)


Resolve = Callable[[Value, Node], Value]
"""Returns what is declared for a value, where that depends on the value."""


def misfits(shape: Shape, node: Node, resolve: Resolve = lambda declared, _: declared) -> Iterator[Misfit]:
    """Yield what does not fit in an object: first its members in order, then the missing ones."""
    for member in node.members:
        if member.key in shape.fields:
            yield from member_misfits(shape, member.key, member.value, resolve)
        else:
            yield Misfit(Mistake.UNKNOWN, shape, member.key, node, shape, member=member)
    given = {member.key for member in node.members}
    for key, field in shape.fields.items():
        if field.required and key not in given:
            yield Misfit(Mistake.MISSING, shape, key, node, field.value)


def member_misfits(
    shape: Shape, key: str, node: Node, resolve: Resolve = lambda declared, _: declared
) -> Iterator[Misfit]:
    """Yield what does not fit in the value of a declared key."""
    field = shape.fields[key]
    if node.kind is not Kind.NULL or not field.nullable:
        yield from _in_value(Misfit(Mistake.KIND, shape, key, node, field.value), resolve)


def _in_value(value: Misfit, resolve: Resolve) -> Iterator[Misfit]:
    """Yield what does not fit in a value, given as the mistake that it is if it is of another kind."""
    node = value.node
    value = value._replace(declared=resolve(value.declared, node))
    declared = value.declared
    if isinstance(declared, ArrayOf) and declared.or_boolean and node.kind is Kind.BOOLEAN:
        return
    if node.kind is not declared.kind:
        yield value
    elif isinstance(declared, Shape):
        yield from misfits(declared, node, resolve)
    elif not _fits_limits(declared, node.items if isinstance(declared, ArrayOf) else node.scalar):
        yield value._replace(mistake=Mistake.LIMITS)
    elif isinstance(declared, ArrayOf):
        for item in node.items:
            yield from _in_value(value._replace(node=item, declared=declared.element, is_element=True), resolve)


def _fits_limits(declared: Scalar | ArrayOf, value: object) -> bool:
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


def _expected_words(declared: Value) -> str:
    """What a declaration asks for, in a few words."""
    if isinstance(declared, ArrayOf):
        boolean = f"{Kind.BOOLEAN} or " if declared.or_boolean else ""
        return f"{boolean}{declared.kind} ({_expected_words(declared.element)} each)"
    if isinstance(declared, Shape):
        return str(declared.kind)
    if declared.choices:
        return " or ".join(f'"{choice}"' for choice in declared.choices)
    limit = f" above {declared.above:g}" if declared.above is not None else ""
    return f"{declared.kind}{limit}{' that is not blank' * declared.not_blank}"


def found_words(node: Node | None) -> str:
    """A value that was found, cut to a length that fits in a message."""
    if node is None or node.kind is Kind.NULL:
        return "nothing"
    if node.kind is Kind.STRING:
        return f"{without_credentials(str(node.scalar))!r:.60}"
    if node.kind is Kind.OTHER:
        return type(node.scalar).__name__
    try:
        return node.kind if node.kind in (Kind.OBJECT, Kind.ARRAY) else f"{node.scalar!r:.60}"
    except ValueError:  # an integer with more digits than Python converts
        return node.kind
