"""Edits to the text of a settings file that preserve everything else.

Each function takes the text of a file and returns the new text; an empty text stands for a missing file. Comments,
indentation, trailing commas and line endings are preserved, and new text follows the file's style.

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

MAX_WIDTH: Final = 100
"""Maximum line length for a new value to be written on one line."""

MAX_LINE: Final = 120
"""Maximum length to which an existing line may grow."""


class EditError(ValueError):
    """The file's content does not allow the edit. The message is for the user."""


def add_hook_group(text: str, event: str, group: Mapping[str, Any]) -> str:
    """Append a group to ``hooks.<event>``, creating missing objects and arrays.

    Raises ``JsoncError`` if the text is not valid JSON, ``EditError`` if a value on that path has another type.
    """
    return _append(text, ("hooks", event), group)


def set_matcher(text: str, event: str, number: int, matcher: str) -> str:
    """Replace the matcher of a group of ``hooks.<event>``. Returns the text unchanged if the group has none."""
    node = parse(text).at("hooks", event, number, "matcher")
    return text if node is None else text[: node.start] + _string(matcher) + text[node.end :]


def set_top_level(text: str, key: str, value: str | float | bool) -> str:
    """Set a key of the file's outermost object. Raises as ``add_hook_group`` does."""
    text = _or_empty_object(text)
    root = _root(text)
    node = root.at(key)
    if node is None:
        return _inserted(text, root, value, key)
    return text[: node.start] + _flat(value) + text[node.end :]


def set_profile(text: str, profile: str) -> str:
    """Set ``hooksConfig.profile``, which the file must not have yet. Raises as ``add_hook_group`` does."""
    text = _or_empty_object(text)
    config = _root(text).at("hooksConfig")
    if config is None:
        return _inserted(text, _root(text), {"profile": profile}, "hooksConfig")
    return _inserted(text, _expected(config, Kind.OBJECT, ("hooksConfig",)), profile, "profile")


def set_disabled(text: str, name: str, disabled: bool) -> str:
    """Add a hook's name to ``hooksConfig.disabled``, or remove it from every list. Raises as ``add_hook_group`` does.

    A list that becomes empty is removed, so that disabling and enabling a hook leaves what was approved (D-87).
    Returns the text unchanged if there is nothing to change.
    """
    listed = [(path, index) for path in DISABLED_LISTS for index in _indexes(text, path, name)]
    if disabled:
        return text if listed else _append(text, DISABLED_LISTS[0], name)
    for path, index in reversed(listed):
        array, _ = _deepest(_root(text), path)
        text = _without_child(text, array, index)
    for path in dict.fromkeys(path for path, _ in listed):
        text = _without_empty(text, path)
    return text


def _indexes(text: str, path: Sequence[str], item: str) -> list[int]:
    array, _ = _deepest(_root(_or_empty_object(text)), path)
    return [index for index, each in enumerate(array.items) if each.scalar == item]


def _append(text: str, path: Sequence[str], item: Any) -> str:
    """Append an item to the array at a path, creating what is missing."""
    text = _or_empty_object(text)
    node, depth = _deepest(_root(text), path)
    if depth == len(path):
        return _inserted(text, node, item)
    value: Any = [item]
    for key in reversed(path[depth + 1 :]):
        value = {key: value}
    return _inserted(text, node, value, path[depth])


def _deepest(root: Node, path: Sequence[str]) -> tuple[Node, int]:
    """Return the array at a path, or the last object before the missing keys; and how many keys lead to it."""
    node = root
    for depth, key in enumerate(path):
        child = _expected(node, Kind.OBJECT, path[:depth]).at(key)
        if child is None:
            return node, depth
        node = child
    return _expected(node, Kind.ARRAY, path), len(path)


def _or_empty_object(text: str) -> str:
    return text if text.strip(_BLANK + "\ufeff") else "{}\n"


def _root(text: str) -> Node:
    return _expected(parse(text), Kind.OBJECT, ())


def _expected(node: Node, kind: Kind, path: Sequence[str]) -> Node:
    if node.kind is kind:
        return node
    where = f"`{shown('.'.join(path))}`" if path else "the settings file"
    raise EditError(f"{where} must be {kind}, found {node.kind}: fix that first")


# Writing.


def _flat(value: Any) -> str:
    """Write a value on one line."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_string(key)}: {_flat(each)}' for key, each in value.items())} }}" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_flat, value))}]"
    return _string(value) if isinstance(value, str) else json.dumps(value)


def _string(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which UTF-8 can represent only as an escape
        return json.dumps(text)
    return json.dumps(text, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class _Style:
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
        """Write a value, with its key if it has one: on one line if it fits, else on several with indentation."""
        label = "" if key is None else f"{_string(key)}: "
        flat = label + _flat(value)
        if self.is_one_line or not value or not isinstance(value, Mapping | list):
            return flat
        if len(indentation.expandtabs(4)) + len(flat) <= MAX_WIDTH:
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


# Inserting and removing.


def _inserted(text: str, container: Node, value: Any, key: str | None = None) -> str:
    """Return the text with a value added at the end of an object or array."""
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
        if not on_one_line or (not LINE_END.search(written) and _line_length(longer, inside.last_end) <= MAX_LINE):
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
    if inside.is_hugging and not inside.is_empty:  # split the existing single line
        opened = container.start + 1
        before = text[:opened] + child_line + before[opened:].lstrip(_BLANK)
    return f"{before}{child_line}{written}{inside.comma_after}{closing_line}{text[container.end - 1 :]}"


@dataclass(frozen=True, slots=True)
class _Inside:
    """The layout of an object or array around its children."""

    is_empty: bool
    last_end: int
    """Where the last child ends; if empty, where the first would start."""
    tail: str
    """The text after the last child: a comma, comments."""
    blank: str
    """The white space before the closing bracket."""
    comma_before: str
    """The comma that a new child needs before it, if any."""
    comma_after: str
    """A trailing comma, if the last child has one."""
    is_hugging: bool
    """Whether the brackets and what separates the items are on one line."""
    indentation: str | None
    """The indentation of the last child, if it starts below the line of the opening bracket."""

    @classmethod
    def of(cls, text: str, container: Node) -> _Inside:
        children = _children(container)
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


def _without_empty(text: str, path: Sequence[str]) -> str:
    """Return the text without the container at a path if it is empty, and without parents that become empty.

    One with a comment stays, and so does one of two with the same key, because the other would count then.
    """
    for depth in range(len(path), 0, -1):
        *way, key = path[:depth]
        parent = _root(text).at(*way)
        found = [index for index, member in enumerate(parent.members if parent else ()) if member.key == key]
        if parent is None or len(found) != 1:
            return text
        start, end = _children(parent)[found[0]]
        if "".join(text[start:end].split()) not in (f'"{key}":[]', f'"{key}":{{}}'):
            return text
        text = _without_child(text, parent, found[0])
    return text


def _without_child(text: str, container: Node, index: int) -> str:
    """Return the text without one child of an object or array and its comma."""
    children = _children(container)
    start, end = children[index]
    comma = _past_space(text, end)
    if text.startswith(",", comma):
        left, right = text[:start], text[end:comma] + text[comma + 1 :]
    elif index:
        comma = _past_space(text, children[index - 1][1])
        left, right = text[:comma] + text[comma + 1 : start], text[end:]
    else:
        left, right = text[:start], text[end:]
    return _joined(left, right)


def _joined(left: str, right: str) -> str:
    """Join the texts around a removed child, without leaving an empty line or two spaces."""
    before, after = left.rstrip(" \t"), right.lstrip(" \t")
    if (line_end := LINE_END.match(after)) and before.endswith(("\n", "\r")):
        return before + after[line_end.end() :]
    if after.startswith("}"):
        return before + right
    return (before if before.endswith("[") or after.startswith("]") else left) + after


def _children(container: Node) -> list[tuple[int, int]]:
    """Return where each member or item starts and ends."""
    members = [(member.key_start, member.value.end) for member in container.members]
    return members + [(item.start, item.end) for item in container.items]


_BLANK: Final = " \t\r\n"
_INDENTATION: Final = re.compile(r"[ \t]*")


def _past_space(text: str, at: int) -> int:
    space = SPACE.match(text, at)
    return space.end() if space else at


def _line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def _indentation(text: str, at: int) -> str:
    """Return the indentation of the line that contains an offset."""
    found = _INDENTATION.match(text, _line_start(text, at))
    return found[0] if found else ""


def _line_length(text: str, at: int) -> int:
    line_end = LINE_END.search(text, at)
    return (line_end.start() if line_end else len(text)) - _line_start(text, at)
