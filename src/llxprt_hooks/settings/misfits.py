"""One walk over a file and its declaration: what does not fit.

The engine reads settings with it, ``llxprt-hooks validate`` explains what it finds, and so do tests for hooks. Each of
them decides what a mistake means.

>>> from llxprt_hooks.settings.jsonc import parse
>>> from llxprt_hooks.settings.shape import Field
>>> shape = Shape("hook", "", {"timeout": Field(Scalar(Kind.NUMBER), "")})
>>> [(found.mistake.name, found.key) for found in misfits(shape, parse('{"timeout": "5s", "x": 1}'))]
[('KIND', 'timeout'), ('UNKNOWN', 'x')]
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from llxprt_hooks.settings.jsonc import Kind, Member, Node, shown
from llxprt_hooks.settings.shape import ArrayOf, Scalar, Shape, Value, expected_words, fits_limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from llxprt_hooks.settings.document import Document


class Mistake(Enum):
    UNKNOWN = auto()
    """A key that is not declared. Whether that matters depends on the object."""
    MISSING = auto()
    """A required key that is absent."""
    KIND = auto()
    """A value of another kind than declared."""
    LIMITS = auto()
    """A value of the declared kind that is blank, not one of the choices, or not allowed for another reason."""


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
        """Whether the value is empty, and must not be."""
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
            return f"`{key}` must be {expected_words(declared)}{found}"
        if self.is_element:
            what = f"a {declared.name}, {declared.kind}," if isinstance(declared, Shape) else declared.kind
            return f"expected {what} here{found}"
        return f"`{key}` must be {declared.kind}{'' if self.shape.fields[key].secret else found}"


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
    if node.kind is not declared.kind:
        yield value
    elif isinstance(declared, Shape):
        yield from misfits(declared, node, resolve)
    elif not fits_limits(declared, node.items if isinstance(declared, ArrayOf) else node.scalar):
        yield value._replace(mistake=Mistake.LIMITS)
    elif isinstance(declared, ArrayOf):
        for item in node.items:
            yield from _in_value(value._replace(node=item, declared=declared.element, is_element=True), resolve)
