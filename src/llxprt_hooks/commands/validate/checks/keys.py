"""Checks of keys and types against the declared shape of settings."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from llxprt_hooks.commands.validate.entries import Role, SettingsFile, is_bare_hook
from llxprt_hooks.commands.validate.rules import Rule
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings import Kind, Member, Node
from llxprt_hooks.settings.did_you_mean import (
    COMMENTS,
    KEY_ADVICE,
    NOT_EVENTS,
    belongs,
    meant_event,
    meant_key,
    same_letters,
)
from llxprt_hooks.settings.environment import ENVIRONMENT
from llxprt_hooks.settings.extensions import MANIFEST
from llxprt_hooks.settings.hook_fields import HOOKS_CONFIG
from llxprt_hooks.settings.jsonc import duplicate_members
from llxprt_hooks.settings.schema import (
    EXTENSION_HOOKS,
    HOOK,
    HOOKS,
    SETTINGS,
    hook_shape,
    settings_executor,
    settings_executors,
)
from llxprt_hooks.settings.shape import Misfit, Mistake, Shape, Value, member_misfits, misfits
from llxprt_hooks.settings.trust.notices import is_event

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from llxprt_hooks.commands.validate.diagnostic import Diagnostic
    from llxprt_hooks.commands.validate.inspection import Inspection

_SHAPES: Final = {Role.EXTENSION: EXTENSION_HOOKS, Role.MANIFEST: MANIFEST}


def check_shape(inspection: Inspection, file: SettingsFile) -> Iterator[Diagnostic]:
    """Find unknown, misspelled, misplaced and missing keys, and values that are not as declared."""
    return _diagnostics(file, misfits(_SHAPES.get(file.role, SETTINGS), file.root, _resolve))


def check_duplicate_keys(inspection: Inspection, file: SettingsFile) -> Iterator[Diagnostic]:
    for member in duplicate_members(file.root) if file.role is not Role.MANIFEST else ():
        message = f"duplicate key `{member.key}` in this object; the last one wins"
        yield file.at_key(Rule.DUPLICATE_KEY, member, message, "Merge the two, or remove one.")


def _diagnostics(file: SettingsFile, found: Iterable[Misfit]) -> Iterator[Diagnostic]:
    meant: set[tuple[int, str]] = set()
    """Missing keys, of which the object has a misspelling: where it starts, and the key."""
    for misfit in found:
        if misfit.shape is ENVIRONMENT or misfit.declared is ENVIRONMENT:
            yield _environment_mistake(file, misfit)
        elif misfit.member is not None and misfit.shape.name == "hooks":
            yield from _event(file, misfit.member)
        elif misfit.member is not None:
            typo_of = _typo_of(misfit.shape, misfit.node, misfit.key)
            meant.add((misfit.node.start, typo_of or ""))
            yield from _unknown(file, misfit.shape, misfit.member, typo_of)
        elif misfit.mistake is not Mistake.MISSING or (misfit.node.start, misfit.key) not in meant:
            yield from _unfit(file, misfit)


def _environment_mistake(file: SettingsFile, misfit: Misfit) -> Diagnostic:
    node = misfit.member.value if misfit.member else misfit.node
    fix = 'Write names in two lists: `{ "allow": ["PATH", "LC_*"], "deny": ["LC_SECRET"] }`.'
    return file.at(Rule.ENVIRONMENT_MISTAKE, node, misfit.words(file.document), fix)


def _unfit(file: SettingsFile, misfit: Misfit) -> Iterator[Diagnostic]:
    if misfit.mistake is Mistake.MISSING or misfit.is_blank:
        rule, fix = Rule.MISSING_KEY, _missing_fix(misfit.shape, misfit.key)
    elif misfit.mistake is Mistake.KIND:
        rule, fix = Rule.WRONG_TYPE, _type_fix(misfit)
    elif misfit.key in _CHECKED_ELSEWHERE:
        return
    else:
        rule, fix = Rule.INVALID_VALUE, "Write an allowed value."
    why = f"{misfit.effect[0].upper()}{misfit.effect[1:]}." if misfit.effect else ""
    yield replace(file.at(rule, misfit.node, misfit.words(file.document), fix), own_why=why)


_CHECKED_ELSEWHERE: Final = ("type", "timeout")
"""Fields of a hook with their own checks."""


def _resolve(declared: Value, node: Node) -> Value:
    """Return the declaration of a hook by its type, also of one in the place of a group."""
    is_hook = declared is HOOK or (isinstance(declared, Shape) and declared.name == "group" and is_bare_hook(node))
    return _hook_shape(node) if is_hook and node.kind is Kind.OBJECT else declared


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


def _event(file: SettingsFile, member: Member) -> Iterator[Diagnostic]:
    """Check the value under an unknown event; another check reports the name itself."""
    if member.key in NOT_EVENTS:
        fix = belongs(HOOKS)[member.key]
        yield file.at_key(Rule.MISPLACED_KEY, member, f"`{member.key}` is not an event and has no effect here", fix)
    elif member.value.kind is Kind.ARRAY:
        event = meant_event(member.key) or HookEventName.BEFORE_TOOL
        yield from _diagnostics(file, member_misfits(HOOKS, event, member.value, _resolve))


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
        fix = f"Did you mean `{similar}`, which is set here as well? If another program uses this key, leave it."
        yield file.at_key(Rule.UNKNOWN_KEY, member, f"unknown key `{key}`", fix)


def _typo_of(shape: Shape, node: Node, key: str) -> str | None:
    """Return the key that was most likely intended, unless it is also present."""
    intended = meant_key(shape, key)
    return intended if intended and node.at(intended) is None else None


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


def _type_fix(misfit: Misfit) -> str:
    value, node = misfit.declared, misfit.node
    if misfit.is_element:
        return _ELEMENTS[value.name] if isinstance(value, Shape) else _WANTED[value.kind]
    if isinstance(node.scalar, str):
        if value.kind is Kind.BOOLEAN and node.scalar.strip().lower() in ("true", "false"):
            return f"Write {node.scalar.strip().lower()} without quotes."
        if value.kind is Kind.NUMBER and (number := _DIGITS.fullmatch(node.scalar)):
            return f"Write milliseconds, without quotes: {float(number[1]) * _UNITS[number[2]]:.0f}."
    if value.kind is Kind.ARRAY and node.kind in (Kind.OBJECT, Kind.STRING):
        return "Put it in brackets: `[ … ]`."
    if value.kind is Kind.STRING and node.kind is Kind.ARRAY:
        return _JOINED.get(misfit.key, "Write one string.")
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


_ELEMENTS: Final = {
    "group": 'Write a group: `{ "hooks": [{ "type": "command", "command": "…" }] }`.',
    "hook": 'Write a hook: `{ "type": "command", "command": "…" }`.',
}
