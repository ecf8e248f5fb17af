"""Checks of keys and types against the declared shape of settings."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from llxprt_hooks.diagnosis.entries import Role, SettingsFile, is_bare_hook
from llxprt_hooks.diagnosis.rules import Rule
from llxprt_hooks.engine.executors import settings_executor, settings_executors
from llxprt_hooks.engine.schema import (
    ENVIRONMENT,
    EXTENSION_HOOKS,
    GROUPS,
    HOOK,
    HOOKS,
    HOOKS_CONFIG,
    SETTINGS,
    hook_shape,
)
from llxprt_hooks.engine.suggestions import (
    COMMENTS,
    KEY_ADVICE,
    NOT_EVENTS,
    belongs,
    meant_event,
    meant_key,
    same_letters,
)
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings import Kind, Member, Node
from llxprt_hooks.settings.environment import mistakes_in
from llxprt_hooks.settings.jsonc import duplicate_members
from llxprt_hooks.settings.shape import ArrayOf, Field, Scalar, Shape, Value, expected_words, fits_limits
from llxprt_hooks.trust.unread import is_event

if TYPE_CHECKING:
    from collections.abc import Iterator

    from llxprt_hooks.diagnosis.diagnostic import Diagnostic
    from llxprt_hooks.diagnosis.inspection import Inspection

_ANY_GROUP: Final = GROUPS[HookEventName.BEFORE_TOOL]


def check_shape(inspection: Inspection, file: SettingsFile) -> Iterator[Diagnostic]:
    """Find unknown, misspelled, misplaced and missing keys, and values of the wrong type."""
    shape = EXTENSION_HOOKS if file.role is Role.EXTENSION else SETTINGS
    return _object(file, shape, file.root)


def check_duplicate_keys(inspection: Inspection, file: SettingsFile) -> Iterator[Diagnostic]:
    """Find duplicate keys."""
    for member in duplicate_members(file.root):
        message = f"duplicate key `{member.key}` in this object; the last one wins"
        yield file.at_key(Rule.DUPLICATE_KEY, member, message, "Merge the two, or remove one.")


def check_environment(inspection: Inspection, file: SettingsFile) -> Iterator[Diagnostic]:
    """Find mistakes in ``hooksConfig.environment``."""
    rule = file.root.at("hooksConfig", "environment")
    for node, expected in mistakes_in(rule) if rule else ():
        fix = 'Write names in two lists: `{ "allow": ["PATH", "LC_*"], "deny": ["LC_SECRET"] }`.'
        yield file.at(Rule.ENVIRONMENT_MISTAKE, node, expected, fix)


def _object(file: SettingsFile, shape: Shape, node: Node) -> Iterator[Diagnostic]:
    meant: set[str] = set()
    for member in node.members:
        field = shape.fields.get(member.key)
        if field is not None and field.value is ENVIRONMENT:
            continue  # `check_environment` is stricter
        if field is not None:
            yield from _member(file, member.key, field, member.value)
            continue
        if shape.name == "hooks":
            yield from _event(file, member)
            continue
        typo_of = _typo_of(shape, node, member.key)
        if typo_of is not None:
            meant.add(typo_of)
        yield from _unknown(file, shape, member, typo_of)
    yield from _missing(file, shape, node, meant)


def _member(file: SettingsFile, key: str, field: Field, node: Node) -> Iterator[Diagnostic]:
    if node.kind is Kind.NULL and field.nullable:
        return
    if node.kind is field.value.kind:
        yield from _value(file, key, field.value, node)
        return
    found = "" if field.secret else f", found {file.document.found(node)}"
    yield file.at(
        Rule.WRONG_TYPE, node, f"`{key}` must be {field.value.kind}{found}", _type_fix(key, field.value, node)
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
        yield file.at(Rule.INVALID_VALUE, node, message, "Write an allowed value.")


_CHECKED_ELSEWHERE: Final = ("type", "timeout")
"""Fields of a hook with their own checks."""


def _hook_shape(hook: Node) -> Shape:
    """Return the shape of a hook by its type, or by the most likely type if it is missing or misspelled."""
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
        yield file.at(Rule.EMPTY_GROUP, node, "this group has no hooks", "Add a hook, or remove the group.")
    for item in node.items:
        if item.kind is not element.kind:
            what = f"a {element.name}, {element.kind}," if isinstance(element, Shape) else str(element.kind)
            yield file.at(
                Rule.WRONG_TYPE, item, f"expected {what} here, found {file.document.found(item)}", _element_fix(element)
            )
        elif isinstance(element, Shape) and element.name == "group" and is_bare_hook(item):
            message, fix = "expected a group of hooks here, found a hook", 'Put it in a group: `{ "hooks": [ … ] }`.'
            yield file.at(Rule.HOOK_OUTSIDE_GROUP, item, message, fix)
            yield from _value(file, "", HOOK, item)
        else:
            yield from _value(file, "", element, item)


def _event(file: SettingsFile, member: Member) -> Iterator[Diagnostic]:
    """Check the value under an unknown event; another check reports the name itself."""
    if member.key in NOT_EVENTS:
        fix = belongs(HOOKS)[member.key]
        yield file.at_key(Rule.MISPLACED_KEY, member, f"`{member.key}` is not an event and has no effect here", fix)
    elif member.value.kind is Kind.ARRAY:
        event = meant_event(member.key)
        yield from _array(file, GROUPS[event] if event else _ANY_GROUP, member.value)


def _unknown(file: SettingsFile, shape: Shape, member: Member, typo_of: str | None) -> Iterator[Diagnostic]:
    key = member.key
    home = belongs(shape).get(key)
    advice = KEY_ADVICE.get(shape.name, {}).get(key)
    if home is None and shape in (SETTINGS, EXTENSION_HOOKS, HOOKS_CONFIG) and is_event(member):
        home = "Move it into `hooks`."
    if home is not None:
        yield file.at_key(Rule.MISPLACED_KEY, member, f"`{key}` has no effect here", home)
    elif typo_of is not None:
        yield file.at_key(Rule.MISSPELT_KEY, member, f"unknown key `{key}`", f"Did you mean `{typo_of}`?")
    elif advice is not None:
        yield file.at_key(Rule.UNKNOWN_KEY, member, f"the key `{key}` has no effect here", advice)
    elif not shape.open and key not in COMMENTS:
        known = ", ".join(f"`{each}`" for each in shape.fields)
        yield file.at_key(Rule.UNKNOWN_KEY, member, f"unknown key `{key}`", f"Known keys: {known}.")
    elif (similar := meant_key(shape, key)) is not None:
        fix = f"Did you mean `{similar}`, which is here too? If it is another program's, leave it."
        yield file.at_key(Rule.UNKNOWN_KEY, member, f"unknown key `{key}`", fix)


def _typo_of(shape: Shape, node: Node, key: str) -> str | None:
    """Return the key that was most likely intended, unless it is also present."""
    intended = meant_key(shape, key)
    return intended if intended and node.at(intended) is None else None


def _missing(file: SettingsFile, shape: Shape, node: Node, meant: set[str]) -> Iterator[Diagnostic]:
    for key, field in shape.fields.items():
        if not field.required or key in meant:
            continue
        found = node.at(key)
        if found is None:
            yield file.at(Rule.MISSING_KEY, node, f"this {shape.name} has no `{key}`", _missing_fix(shape, key))
        elif isinstance(field.value, Scalar) and field.value.not_blank and not str(found.scalar).strip():
            yield file.at(
                Rule.MISSING_KEY, found, f"the `{key}` of this {shape.name} is empty", _missing_fix(shape, key)
            )


def _missing_fix(shape: Shape, key: str) -> str:
    if key == "type" and shape.example:
        return f'Add `"type": "{shape.example["type"]}"`.'
    if (shape.name, key) in _MISSING_FIXES:
        return _MISSING_FIXES[shape.name, key]
    if shape.example and key in shape.example:
        return f'Add what to run: `"{key}": {json.dumps(shape.example[key])}`.'
    return "Add it."


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
        return "Put it in brackets: `[ … ]`."
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
