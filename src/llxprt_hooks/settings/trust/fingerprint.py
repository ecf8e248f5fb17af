"""One hash over a project's hook settings and scripts: it changes with everything that could change what runs."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from llxprt_hooks.settings.definitions import HookSet, read_definitions, read_hook
from llxprt_hooks.settings.foreign import NATIVE
from llxprt_hooks.settings.hook_entries import HookEntry, Steps, hook_entries
from llxprt_hooks.settings.levels import FILE_NAME, FOLDER
from llxprt_hooks.settings.schema import fields_of_type
from llxprt_hooks.settings.shape import Field, shown_addresses

VERSION: Final = 3
"""Part of every fingerprint. A higher number ends all approvals, because they covered less."""


FOREIGN: Final = "dialects"
"""The key for what files of other agents say about hooks: by dialect, then by file."""

_USUAL_TYPE: Final = "command"
"""The type that is not shown."""


class HookCommand(NamedTuple):
    """A hook in the settings, for display and approval."""

    event: str
    matcher: str
    command: str
    """What it runs, in one line; all fields of the entry if it is not a valid hook."""
    details: Mapping[str, str] = {}
    """All other fields of the hook and its group, except its description; its type unless that is ``command``."""
    script_texts: tuple[str, ...] = ()
    """Command lines that name files of the project."""


def hook_statement(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything in the settings that concerns hooks, unchanged; empty if there is nothing."""
    statement = {
        key: settings[key] for key in ("enableHooks", "hooks", "hooksConfig", FOREIGN) if settings.get(key, {}) != {}
    }
    tools = settings.get("tools")
    if isinstance(tools, Mapping) and "enableHooks" in tools:
        statement["tools"] = {"enableHooks": tools["enableHooks"]}
    return statement


def hook_commands(settings: Mapping[str, Any]) -> tuple[HookCommand, ...]:
    """Return every hook under ``hooks``, in order, including invalid ones."""
    return (*map(_hook_command, hook_entries(settings.get("hooks"))), *_foreign_commands(settings.get(FOREIGN)))


def commands_of(hook_set: HookSet) -> tuple[HookCommand, ...]:
    """Return every hook of a ``hooks`` object, in its dialect."""
    if hook_set.dialect == NATIVE:
        return hook_commands({"hooks": hook_set.hooks})
    return hook_commands({FOREIGN: {hook_set.dialect: {hook_set.origin: {"hooks": hook_set.hooks}}}})


def _foreign_commands(dialects: object) -> Iterator[HookCommand]:
    """Yield the hooks in files of other agents that can be used."""
    for dialect, files in dialects.items() if isinstance(dialects, Mapping) else ():
        for content in files.values():
            hooks = content.get("hooks") or {}
            for each in read_definitions(HookSet(hooks, dialect=dialect))[0]:
                config, folder = each.config, each.config.foreign.folder if each.config.foreign else ""
                written = dict(_written(hooks, each.path))
                kind = written.get("type", _USUAL_TYPE)
                declared = fields_of_type(kind)
                described = ("type",) if kind == _USUAL_TYPE else config.executor.described
                details = {
                    key: _shown(declared.get(key), value)
                    for key, value in written.items()
                    if key not in (*_SHOWN_ELSEWHERE, *described)
                }
                start = f"cd {shlex.quote(folder)} && " if folder else ""
                texts = tuple(start + text for text in config.executor.script_texts(config.spec))
                event = str(each.path[1])
                yield HookCommand(event, each.matcher or "", config.command, {"dialect": dialect, **details}, texts)


_SHOWN_ELSEWHERE: Final = ("command", "bash", "args", "matcher", "description", "hooks")


def _written(hooks: Any, path: Steps) -> Iterator[tuple[str, Any]]:
    """Yield the fields of an entry of another agent's file, after those of the group that it is in."""
    value = hooks
    for step in path[1:]:
        value = value[step]
        if isinstance(value, Mapping):
            yield from value.items()


def _hook_command(entry: HookEntry) -> HookCommand:
    config, _ = read_hook(entry.node)
    hook = entry.hook
    declared = fields_of_type(hook.get("type"))  # of an unknown type, any type's secrets
    fields = {key: _shown(declared.get(key), value) for key, value in hook.items()}
    if config is None:
        command, details = ", ".join(f"{key}: {value}" for key, value in fields.items()), {}
        texts = tuple(text for text in hook.values() if isinstance(text, str))
    else:
        described = ("description", *config.executor.described, *(["type"] if config.type == _USUAL_TYPE else []))
        command, details = config.command, {key: fields[key] for key in fields if key not in described}
        texts = tuple(config.executor.script_texts(config.spec))
        if not config.executor.is_process:  # each is the path of a file, which the hook reads
            texts = tuple(f"cat {shlex.quote(os.path.join('.', text))}" for text in texts)  # noqa: PTH118
    group = entry.group.node.to_value()
    others = {key: _json(value) for key, value in group.items() if key not in ("hooks", "matcher")}
    return HookCommand(entry.event, entry.group.matcher or "", command, {**details, **others}, texts)


def _shown(field: Field | None, value: Any) -> str:
    """Return a field of a hook as JSON, without secrets: of a secret field only its keys or a placeholder."""
    if field is None or not field.secret:
        return _json(shown_addresses(value) if field is not None and field.address else value)
    return ", ".join(map(_json, value)) if isinstance(value, Mapping) else "(not shown)"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def hook_fingerprint(settings: Mapping[str, Any], scripts: Mapping[str, str] | None = None) -> str:
    """Return the SHA-256 of the hook settings and of the digests of all covered files.

    The order of keys does not matter, the order of lists does.
    """
    covered = {"version": VERSION, "settings": hook_statement(settings), "scripts": dict(scripts or {})}
    canonical = json.dumps(covered, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def settings_text(settings: Mapping[str, Any]) -> str:
    """Return everything in the settings that concerns hooks as text to compare, one value per line, without secrets."""
    statement = hook_statement(settings)
    hooks = statement.get("hooks")
    if isinstance(hooks, Mapping):
        statement["hooks"] = {event: without_secrets(groups) for event, groups in hooks.items()}
    if FOREIGN in statement:
        statement[FOREIGN] = {
            dialect: {file: _without_values(content) for file, content in files.items()}
            for dialect, files in statement[FOREIGN].items()
        }
    if "hooksConfig" in statement:
        statement["hooksConfig"] = without_secrets(statement["hooksConfig"])
    return json.dumps(statement, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _without_values(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a file of another agent says, without the values of its variables, which may be secrets."""
    said = without_secrets(content)
    return {key: sorted(value) if key == "env" and isinstance(value, dict) else value for key, value in said.items()}


def without_secrets(value: Any) -> Any:
    """Return settings with a placeholder in each field that a hook type declares as secret, and in its addresses."""
    if isinstance(value, list):
        return [without_secrets(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    declared = fields_of_type(value.get("type"))
    return {key: _without_secret(declared.get(key), each) for key, each in value.items()}


def _without_secret(field: Field | None, value: Any) -> Any:
    if field is not None and field.secret:
        return _shown(field, value)
    return shown_addresses(value) if field is not None and field.address else without_secrets(value)


def hook_parts(settings: Mapping[str, Any], scripts: Mapping[str, str]) -> dict[str, str]:
    """Return a SHA-256 for the settings and for each script, to find out later which have changed."""
    files = {
        file: hook_fingerprint({FOREIGN: {dialect: {file: content}}})
        for dialect, contents in (settings.get(FOREIGN) or {}).items()
        for file, content in contents.items()
    }
    return {**(files or {f"{FOLDER}/{FILE_NAME}": hook_fingerprint(settings)}), **scripts}
