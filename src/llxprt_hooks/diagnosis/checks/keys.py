"""Keys and types: a file held against the declared shape of settings."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from llxprt_hooks.diagnosis.entries import Role, SettingsFile, is_bare_hook
from llxprt_hooks.diagnosis.foreign_names import CLAUDE_EVENTS, FOREIGN_KEYS
from llxprt_hooks.diagnosis.rules import (
    DUPLICATE_KEY,
    EMPTY_GROUP,
    ENVIRONMENT_MISTAKE,
    HOOK_OUTSIDE_GROUP,
    INVALID_VALUE,
    MISPLACED_KEY,
    MISSING_KEY,
    MISSPELT_KEY,
    UNKNOWN_KEY,
    WRONG_TYPE,
)
from llxprt_hooks.diagnosis.suggestions import meant_event, same_letters
from llxprt_hooks.engine.executors import settings_executor, settings_executors
from llxprt_hooks.engine.schema import (
    ENVIRONMENT,
    EXTENSION_HOOKS,
    GROUPS,
    HOOK,
    HOOK_FIELDS,
    HOOKS_CONFIG,
    SETTINGS,
    hook_shape,
    own_fields,
)
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings import Document, Kind, Member, Node
from llxprt_hooks.settings.environment import read_environment
from llxprt_hooks.settings.hook_fields import FieldReader
from llxprt_hooks.settings.hook_groups import SWITCHES
from llxprt_hooks.settings.jsonc import duplicate_members
from llxprt_hooks.settings.shape import ArrayOf, Field, Scalar, Shape, Value, expected_words, fits_limits
from llxprt_hooks.text import closest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from llxprt_hooks.diagnosis.diagnostic import Diagnostic
    from llxprt_hooks.diagnosis.inspection import Inspection

_ANY_GROUP: Final = GROUPS[HookEventName.BEFORE_TOOL]
_COMMENTS: Final = ("$schema", "$comment", "//", "_comment", "comment")
"""Keys that are written for people or editors."""

_IN_A_GROUP, _IN_A_HOOK, _AT_THE_TOP, _NOT_IN_AN_EXTENSION = (
    "It belongs to the group, beside `hooks`.",
    "It belongs to a hook, beside `type`.",
    "Move it to the top level of the file.",
    "An extension cannot switch hooks; do it in a settings file.",
)
_BELONGS: Final[Mapping[str, Mapping[str, str]]] = {
    "hook": {
        "matcher": _IN_A_GROUP,
        "sequential": _IN_A_GROUP,
        "hooks": "A hook has no hooks; list them in the group.",
    },
    "group": dict.fromkeys(("type", *(key for key in HOOK_FIELDS if key != "description")), _IN_A_HOOK),
    "hooks": {
        **dict.fromkeys(SWITCHES, _NOT_IN_AN_EXTENSION),
        "enableHooks": _AT_THE_TOP,
        "notifications": "It belongs to `hooksConfig`, beside `hooks`.",
        "hooksConfig": _AT_THE_TOP,
    },
    "hooksConfig": {"enableHooks": _AT_THE_TOP, "hooks": _AT_THE_TOP},
    "extension": dict.fromkeys(("enableHooks", "hooksConfig"), _NOT_IN_AN_EXTENSION),
}
"""Shape to the keys that are known elsewhere, and where they belong."""

NO_EVENTS: Final = frozenset(_BELONGS["hooks"])
"""Keys that stand among the events by mistake."""

_OTHER_WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "hook": {
        **dict.fromkeys(("cmd", "script", "exec", "run", "bash", "shellCommand"), "command"),
        **dict.fromkeys(("timeoutMs", "timeoutMillis", "timeoutSeconds", "timeoutSec"), "timeout"),
        **dict.fromkeys(("id", "title", "hookName"), "name"),
        **dict.fromkeys(("kind",), "type"),
    },
    "group": {
        **dict.fromkeys(("match", "pattern", "tool", "tools", "toolName", "tool_name", "filter"), "matcher"),
        **dict.fromkeys(("hook", "commands", "handlers", "actions"), "hooks"),
        **dict.fromkeys(("serial", "chain"), "sequential"),
    },
    "hooksConfig": dict.fromkeys(("disable", "off", "disabledHooks"), "disabled"),
    "settings": dict.fromkeys(("hooksEnabled", "hooks_enabled"), "enableHooks"),
}
"""Shape to words that are used for one of its keys."""

_OWN_ADVICE: Final[Mapping[str, Mapping[str, str]]] = {
    "hook": {
        **FOREIGN_KEYS,
        **dict.fromkeys(("enabled", "disabled"), "To switch the hook off, list its name in `hooksConfig.disabled`."),
    },
    "settings": {"disableAllHooks": 'Write `"enableHooks": false`.'},
}
"""Shape to keys that have no counterpart, and what to do instead."""


def check_shape(inspection: Inspection, file: SettingsFile) -> Iterator[Diagnostic]:
    """Unknown, misspelt, misplaced and missing keys, and values of another type."""
    shape = EXTENSION_HOOKS if file.role is Role.EXTENSION else SETTINGS
    return _object(file, shape, file.root)


def check_duplicate_keys(inspection: Inspection, file: SettingsFile) -> Iterator[Diagnostic]:
    """A key that stood before in the same object."""
    for member in duplicate_members(file.root):
        yield file.at_key(
            DUPLICATE_KEY,
            member,
            f"the key `{member.key}` stands twice in this object, and this last one counts",
            "Merge the two, or take one out.",
        )


def check_environment(inspection: Inspection, file: SettingsFile) -> Iterator[Diagnostic]:
    """A rule for variables in which something cannot be understood."""
    mistakes = _Mistakes(file.document)
    read_environment(mistakes, file.root.at("hooksConfig"))
    for node, message in mistakes.found:
        fix = 'Write names in two lists: `{ "allow": ["PATH", "LC_*"], "deny": ["LC_SECRET"] }`.'
        yield file.at(ENVIRONMENT_MISTAKE, node, message.partition(";")[0], fix)


class _Mistakes(FieldReader):
    """What the engine finds wrong, with where it stands."""

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self.found: list[tuple[Node, str]] = []

    def report(self, node: Node, message: str) -> None:
        self.found.append((node, message))


def _object(file: SettingsFile, shape: Shape, node: Node) -> Iterator[Diagnostic]:
    meant: set[str] = set()
    for member in node.members:
        field = shape.fields.get(member.key)
        if field is not None and field.value is ENVIRONMENT:
            continue  # the engine has its own, stricter word on that: `check_environment`
        if field is not None:
            yield from _member(file, member.key, field, member.value)
            continue
        if shape.name == "hooks":
            yield from _event(file, member)
            continue
        slip = _slip(shape, node, member.key)
        if slip is not None:
            meant.add(slip)
        yield from _unknown(file, shape, member, slip)
    yield from _missing(file, shape, node, meant)


def _member(file: SettingsFile, key: str, field: Field, node: Node) -> Iterator[Diagnostic]:
    if node.kind is Kind.NULL and field.nullable:
        return
    if node.kind is field.value.kind:
        yield from _value(file, key, field.value, node)
        return
    yield file.at(
        WRONG_TYPE,
        node,
        f"`{key}` must be {field.value.kind}, found {file.document.found(node)}",
        _type_fix(key, field.value, node),
    )


def _value(file: SettingsFile, key: str, value: Value, node: Node) -> Iterator[Diagnostic]:
    if value is HOOK:
        yield from _object(file, _hook_shape(node), node)
    elif isinstance(value, Shape):
        yield from _object(file, value, node)
    elif isinstance(value, ArrayOf):
        yield from _array(file, value.element, node)
    elif key not in _CHECKED_ELSEWHERE and not value.not_blank and not fits_limits(value, node.scalar):
        message = f"`{key}` must be {expected_words(value)}, found {file.document.found(node)}"
        yield file.at(INVALID_VALUE, node, message, "Write a value that is allowed here.")


_CHECKED_ELSEWHERE: Final = ("type", "timeout")
"""Fields of a hook with rules of their own."""


def _hook_shape(hook: Node) -> Shape:
    """What a hook may have, by its type; by the type that was most likely meant, if that is missing or misspelt."""
    node = hook.at("type")
    name = node.scalar if node else None
    if settings_executor(name) is not None:
        return hook_shape(name)
    if isinstance(name, str):
        return hook_shape(next((known for known in settings_executors() if same_letters(name, known)), None))
    keys = {member.key for member in hook.members}
    return hook_shape(max(settings_executors(), key=lambda known: len(keys & hook_shape(known).fields.keys())))


def _array(file: SettingsFile, element: Value, node: Node) -> Iterator[Diagnostic]:
    if element is HOOK and not node.items:
        yield file.at(EMPTY_GROUP, node, "this group has no hooks", "Add a hook, or take the group out.")
    for item in node.items:
        if item.kind is not element.kind:
            what = f"a {element.name}, {element.kind}," if isinstance(element, Shape) else str(element.kind)
            yield file.at(
                WRONG_TYPE, item, f"expected {what} here, found {file.document.found(item)}", _element_fix(element)
            )
        elif isinstance(element, Shape) and element.name == "group" and is_bare_hook(item):
            yield file.at(
                HOOK_OUTSIDE_GROUP,
                item,
                "this is a hook, where a group of hooks is expected",
                'Put it into a group: `{ "hooks": [ … ] }`.',
            )
            yield from _value(file, "", HOOK, item)
        else:
            yield from _value(file, "", element, item)


def _event(file: SettingsFile, member: Member) -> Iterator[Diagnostic]:
    """What stands under a name that is no event; the name itself is told by another check."""
    if member.key in NO_EVENTS:
        fix = _BELONGS["hooks"][member.key]
        yield file.at_key(MISPLACED_KEY, member, f"`{member.key}` is no event, and has no effect here", fix)
    elif member.value.kind is Kind.ARRAY:
        event = meant_event(member.key)
        yield from _array(file, GROUPS[event] if event else _ANY_GROUP, member.value)


def _unknown(file: SettingsFile, shape: Shape, member: Member, slip: str | None) -> Iterator[Diagnostic]:
    key = member.key
    home = _belongs(shape).get(key)
    advice = _OWN_ADVICE.get(shape.name, {}).get(key)
    if home is None and shape in (SETTINGS, EXTENSION_HOOKS, HOOKS_CONFIG) and _is_event(member):
        home = "Move it into `hooks`."
    if home is not None:
        yield file.at_key(MISPLACED_KEY, member, f"`{key}` has no effect here", home)
    elif slip is not None:
        yield file.at_key(MISSPELT_KEY, member, f"there is no key `{key}` here", f"Did you mean `{slip}`?")
    elif advice is not None:
        yield file.at_key(UNKNOWN_KEY, member, f"the key `{key}` has no effect here", advice)
    elif not shape.open and key not in _COMMENTS:
        known = ", ".join(f"`{each}`" for each in shape.fields)
        yield file.at_key(UNKNOWN_KEY, member, f"there is no key `{key}` here", f"Known here are {known}.")


def _belongs(shape: Shape) -> Mapping[str, str]:
    """The keys that are known elsewhere, and where they belong."""
    belongs = _BELONGS.get(shape.name, {})
    return {**dict.fromkeys(own_fields(), _IN_A_HOOK), **belongs} if shape.name == "group" else belongs


def _slip(shape: Shape, node: Node, key: str) -> str | None:
    """The key that was meant, unless it is there as well."""
    if key in _COMMENTS or key in _belongs(shape) or key in _OWN_ADVICE.get(shape.name, {}):
        return None
    words = _OTHER_WORDS.get(shape.name, {})
    other = next((ours for word, ours in words.items() if ours in shape.fields and same_letters(word, key)), None)
    # Among keys that belong to others a name must be very like one of ours; "tool" is no slip of "tools".
    candidates = [each for each in shape.fields if each != "tools"]
    slip = other or closest(key, candidates, similarity=0.88 if shape.open else 0.75)
    return slip if slip and node.at(slip) is None else None


def _missing(file: SettingsFile, shape: Shape, node: Node, meant: set[str]) -> Iterator[Diagnostic]:
    for key, field in shape.fields.items():
        if not field.required or key in meant:
            continue
        found = node.at(key)
        if found is None:
            yield file.at(MISSING_KEY, node, f"this {shape.name} has no `{key}`", _missing_fix(shape, key))
        elif isinstance(field.value, Scalar) and field.value.not_blank and not str(found.scalar).strip():
            yield file.at(MISSING_KEY, found, f"the `{key}` of this {shape.name} is empty", _missing_fix(shape, key))


def _missing_fix(shape: Shape, key: str) -> str:
    if (shape.name, key) in _MISSING_FIXES:
        return _MISSING_FIXES[shape.name, key]
    if shape.example and key in shape.example:
        return f'Say what to run: `"{key}": {json.dumps(shape.example[key])}`.'
    return "Add it."


def _is_event(member: Member) -> bool:
    return member.value.kind is Kind.ARRAY and (member.key in tuple(HookEventName) or member.key in CLAUDE_EVENTS)


_MISSING_FIXES: Final = {
    ("hook", "type"): 'Add `"type": "command"`.',
    ("group", "hooks"): 'List its hooks: `"hooks": [{ "type": "command", "command": "…" }]`.',
    ("extension", "hooks"): 'Put the events under that key: `{ "hooks": { … } }`.',
}


_DIGITS: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|sec|m|min)?\w*\s*")
_UNITS: Final = {None: 1, "ms": 1, "s": 1000, "sec": 1000, "m": 60_000, "min": 60_000}


def _type_fix(key: str, value: Value, node: Node) -> str:
    if isinstance(node.scalar, str):
        if value.kind is Kind.BOOLEAN and node.scalar.strip().lower() in ("true", "false"):
            return f"Write {node.scalar.strip().lower()} without quotes."
        if value.kind is Kind.NUMBER and (number := _DIGITS.fullmatch(node.scalar)):
            return f"Write milliseconds, without quotes: {float(number[1]) * _UNITS[number[2]]:.0f}."
    if value.kind is Kind.ARRAY and node.kind in (Kind.OBJECT, Kind.STRING):
        return "Put it into brackets: `[ … ]`."
    if value.kind is Kind.STRING and node.kind is Kind.ARRAY:
        return _JOINED.get(key, "Write one string.")
    return _WANTED[value.kind]


_JOINED: Final = {
    "matcher": 'Write one regular expression: `"^(write_file|replace)$"`.',
    "command": "Write one command line.",
}
_WANTED: Final = {
    Kind.BOOLEAN: "Write true or false.",
    Kind.NUMBER: "Write a number.",
    Kind.STRING: "Write it in double quotes.",
    Kind.ARRAY: "Write an array: `[ … ]`.",
    Kind.OBJECT: "Write an object: `{ … }`.",
}


def _element_fix(element: Value) -> str:
    if isinstance(element, Shape):
        return _ELEMENTS[element.name]
    return _WANTED[element.kind]


_ELEMENTS: Final = {
    "group": 'Write a group: `{ "hooks": [{ "type": "command", "command": "…" }] }`.',
    "hook": 'Write a hook: `{ "type": "command", "command": "…" }`.',
}
