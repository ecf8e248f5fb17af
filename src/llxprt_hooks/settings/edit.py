"""Changes to the text of a settings file that keep everything else as it was written.

Each function takes the text of a file and gives the new one; an empty text is a file that is not there yet. Comments,
indentation, trailing commas and line ends stay as they are, and what is added is written in the file's own style.

>>> print(set_disabled('{\\n  "hooksConfig": { "disabled": ["lint"] } // mine\\n}', "audit", True))
{
  "hooksConfig": { "disabled": ["lint", "audit"] } // mine
}
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from llxprt_hooks.settings.hook_fields import DISABLED_LISTS
from llxprt_hooks.settings.jsonc import LINE_END, SPACE, Kind, Node, parse, shown

WIDTH: Final = 100
"""Columns up to which something new is written on one line."""

LONGEST_LINE: Final = 120
"""Columns up to which a line that was there may grow."""


class EditError(ValueError):
    """A change for which the file has no place, in a sentence for the user."""


def add_hook_group(text: str, event: str, group: Mapping[str, Any]) -> str:
    """Add a group at the end of ``hooks.<event>``; what is missing on the way there is made.

    Raises ``JsoncError`` for a text that cannot be read, ``EditError`` where something else stands in that place.
    """
    return _append(text, ("hooks", event), group)


def set_top_level(text: str, key: str, value: str | float | bool) -> str:
    """Set a key of the file's outermost object. Raises as ``add_hook_group`` does."""
    text = _begun(text)
    root = _root(text)
    node = root.at(key)
    if node is None:
        return _inserted(text, root, value, key)
    return text[: node.start] + _flat(value) + text[node.end :]


def set_disabled(text: str, name: str, disabled: bool) -> str:
    """Add a hook's name to ``hooksConfig.disabled``, or remove it from every list. Raises as ``add_hook_group`` does.

    The text comes back unchanged if there is nothing to change.
    """
    listed = [(path, index) for path in DISABLED_LISTS for index in _indexes(text, path, name)]
    if disabled:
        return text if listed else _append(text, DISABLED_LISTS[0], name)
    for path, index in reversed(listed):
        text = _without_item(text, index, path)
    return text


def _indexes(text: str, path: Sequence[str], item: str) -> list[int]:
    """Where an array has an item."""
    array = _container(_root(_begun(text)), path)
    return [] if array is None else [index for index, each in enumerate(array.items) if each.scalar == item]


def _append(text: str, path: Sequence[str], item: Any) -> str:
    """Put an item at the end of the array that a path of keys leads to."""
    text = _begun(text)
    root = _root(text)
    for depth in range(len(path)):
        if root.at(*path[: depth + 1]) is None:
            value: Any = [item]
            for key in reversed(path[depth + 1 :]):
                value = {key: value}
            return _inserted(text, _expected(root.at(*path[:depth]), Kind.OBJECT, path[:depth]), value, path[depth])
    return _inserted(text, _expected(root.at(*path), Kind.ARRAY, path), item)


def _container(root: Node, path: Sequence[str]) -> Node | None:
    """The array at a path, if it is there."""
    for depth in range(1, len(path)):
        if (node := root.at(*path[:depth])) is not None:
            _expected(node, Kind.OBJECT, path[:depth])
    node = root.at(*path)
    return None if node is None else _expected(node, Kind.ARRAY, path)


def _begun(text: str) -> str:
    return text if text.strip(_BLANK + "\ufeff") else "{}\n"


def _root(text: str) -> Node:
    return _expected(parse(text), Kind.OBJECT, ())


def _expected(node: Node | None, kind: Kind, path: Sequence[str]) -> Node:
    if node is not None and node.kind is kind:
        return node
    where = f"`{shown('.'.join(path))}`" if path else "the settings file"
    raise EditError(f"{where} must be {kind}, found {node.kind if node else 'nothing'}: correct that first")


# Writing.


def _flat(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_string(key)}: {_flat(each)}' for key, each in value.items())} }}" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_flat, value))}]"
    return _string(value) if isinstance(value, str) else json.dumps(value)


def _string(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which a file in UTF-8 can hold as an escape only
        return json.dumps(text)
    return json.dumps(text, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class _Style:
    """How a file is written."""

    line_end: str
    unit: str
    """One step of indentation."""
    is_one_line: bool

    @classmethod
    def of(cls, text: str, root: Node) -> _Style:
        written = text[root.start : root.end]
        line_end = LINE_END.search(text)
        first = root.members[0].key_start if root.members else root.start
        unit = _indentation(text, first) if LINE_END.search(text, root.start, first) else ""
        return cls(
            line_end=line_end[0] if line_end else "\n",
            unit=unit or "  ",
            is_one_line=bool(root.members) and not LINE_END.search(written),
        )

    def write(self, value: Any, indentation: str, key: str | None = None) -> str:
        """A value, with its key in an object: on one line where it fits, else on several, indented like its line."""
        label = "" if key is None else f"{_string(key)}: "
        flat = label + _flat(value)
        if self.is_one_line or not value or not isinstance(value, Mapping | list):
            return flat
        if len(indentation.expandtabs(4)) + len(flat) <= WIDTH:
            return flat
        inner = indentation + self.unit
        if isinstance(value, Mapping):
            opener, closer = "{}"
            children = [self.write(each, inner, name) for name, each in value.items()]
        else:
            opener, closer = "[]"
            children = [self.write(each, inner) for each in value]
        separator = f",{self.line_end}{inner}"
        return f"{label}{opener}{self.line_end}{inner}{separator.join(children)}{self.line_end}{indentation}{closer}"


# Putting in and taking out.


def _inserted(text: str, container: Node, value: Any, key: str | None = None) -> str:
    """The text with a value at the end of an object or array."""
    root = parse(text)
    style = _Style.of(text, root)
    inside = _Inside.of(text, container)
    if style.is_one_line:
        return _on_the_line(text, container, inside, style.write(value, "", key))
    outer = _indentation(text, container.start)
    if inside.is_hugging and container.start != root.start:
        written = style.write(value, outer, key)
        longer = _on_the_line(text, container, inside, written)
        on_one_line = not LINE_END.search(text, container.start, container.end)
        if not on_one_line or (not LINE_END.search(written) and _line_length(longer, inside.last_end) <= LONGEST_LINE):
            return longer
    inner = outer + style.unit if inside.indentation is None else inside.indentation
    lines = (style.line_end + inner, style.line_end + outer)
    return _on_a_line_of_its_own(text, container, inside, style.write(value, inner, key), lines)


def _on_the_line(text: str, container: Node, inside: _Inside, written: str) -> str:
    padding = " " if inside.is_empty and container.kind is Kind.OBJECT else ""
    space = padding if inside.is_empty and not inside.tail else " "
    after = inside.comma_after + (inside.blank or padding) + text[container.end - 1 :]
    return f"{text[: inside.last_end]}{inside.comma_before}{inside.tail}{space}{written}{after}"


def _on_a_line_of_its_own(text: str, container: Node, inside: _Inside, written: str, lines: tuple[str, str]) -> str:
    child_line, closing_line = lines
    before = text[: inside.last_end] + inside.comma_before + inside.tail
    if inside.is_hugging and not inside.is_empty:  # what stood on one line is opened up
        opened = container.start + 1
        before = text[:opened] + child_line + before[opened:].lstrip(_BLANK)
    return f"{before}{child_line}{written}{inside.comma_after}{closing_line}{text[container.end - 1 :]}"


@dataclass(frozen=True, slots=True)
class _Inside:
    """What an object or array holds around its children."""

    is_empty: bool
    last_end: int
    """Where the last child ends; without one, where the first would begin."""
    tail: str
    """What follows the last child: a comma, comments."""
    blank: str
    """The white space before the closing bracket."""
    comma_before: str
    """What a further child needs before it."""
    comma_after: str
    """What it gets after it, where the last child had that too."""
    is_hugging: bool
    """No line ends between the brackets but those within children."""
    indentation: str | None
    """That of the last child, where it begins on a line below the opening bracket."""

    @classmethod
    def of(cls, text: str, container: Node) -> _Inside:
        children = [(member.key_start, member.value.end) for member in container.members]
        children += [(item.start, item.end) for item in container.items]
        edges = [container.start + 1, *(offset for child in children for offset in child), container.end - 1]
        gaps = zip(edges[::2], edges[1::2], strict=True)
        last_start, last_end = children[-1] if children else (edges[0], edges[0])
        rest = text[last_end : edges[-1]]
        tail = rest.rstrip(_BLANK)
        comma = bool(children) and text.startswith(",", _past_space(text, last_end))
        below = bool(children) and LINE_END.search(text, container.start, last_start) is not None
        return cls(
            is_empty=not children,
            last_end=last_end,
            tail=tail,
            blank=rest[len(tail) :],
            comma_before="," if children and not comma else "",
            comma_after="," if comma else "",
            is_hugging=not any(LINE_END.search(text, *gap) for gap in gaps),
            indentation=_indentation(text, last_start) if below else None,
        )


def _without_item(text: str, index: int, path: Sequence[str]) -> str:
    """The text without one item of the array at a path, and without the comma that set it apart."""
    array = _expected(_root(text).at(*path), Kind.ARRAY, path)
    item = array.items[index]
    comma = _past_space(text, item.end)
    if text.startswith(",", comma):
        left, right = text[: item.start], text[item.end : comma] + text[comma + 1 :]
    elif index:
        comma = _past_space(text, array.items[index - 1].end)
        left, right = text[:comma] + text[comma + 1 : item.start], text[item.end :]
    else:
        left, right = text[: item.start], text[item.end :]
    return _closed_up(left, right)


def _closed_up(left: str, right: str) -> str:
    """Join what stood around something that was taken out, without leaving an empty line or two spaces."""
    before, after = left.rstrip(" \t"), right.lstrip(" \t")
    line_end = LINE_END.match(after)
    if line_end and before.endswith(("\n", "\r")):
        return before + after[line_end.end() :]
    return (before if before.endswith("[") or after.startswith("]") else left) + after


_BLANK: Final = " \t\r\n"
_INDENTATION: Final = re.compile(r"[ \t]*")


def _past_space(text: str, at: int) -> int:
    space = SPACE.match(text, at)
    return space.end() if space else at


def _line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def _indentation(text: str, at: int) -> str:
    """That of the line in which an offset stands."""
    found = _INDENTATION.match(text, _line_start(text, at))
    return found[0] if found else ""


def _line_length(text: str, at: int) -> int:
    line_end = LINE_END.search(text, at)
    return (line_end.start() if line_end else len(text)) - _line_start(text, at)
