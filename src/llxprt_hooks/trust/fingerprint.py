"""What a project says about hooks, as one hash: whatever could change what runs, changes it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from llxprt_hooks.engine.definitions import read_hook
from llxprt_hooks.engine.schema import hook_shape
from llxprt_hooks.settings.hook_groups import HookEntry, hook_entries
from llxprt_hooks.settings.levels import FILE_NAME, FOLDER


class HookCommand(NamedTuple):
    """A hook that would run, and when."""

    event: str
    matcher: str
    command: str
    """What it runs, in one line; all of the entry where that cannot be told."""
    details: Mapping[str, str] = {}
    """All other fields of the hook and its group, except its description."""
    script_texts: tuple[str, ...] = ()
    """Where files of the project may be named."""


def hook_statement(settings: Mapping[str, Any]) -> dict[str, Any]:
    """All that settings say about hooks, as it stands there; empty where they say nothing."""
    said = {key: settings[key] for key in ("enableHooks", "hooks", "hooksConfig") if settings.get(key, {}) != {}}
    tools = settings.get("tools")
    if isinstance(tools, Mapping) and "enableHooks" in tools:
        said["tools"] = {"enableHooks": tools["enableHooks"]}
    return said


def hook_commands(settings: Mapping[str, Any]) -> tuple[HookCommand, ...]:
    """Every hook in a settings' ``hooks``, in order, also those that cannot be used."""
    return tuple(map(_hook_command, hook_entries(settings.get("hooks"))))


def _hook_command(entry: HookEntry) -> HookCommand:
    config, _ = read_hook(entry.hook)
    fields = {key: _shown(entry.hook, key) for key in entry.hook}
    matcher = entry.group.get("matcher")
    if config is None:
        command, details = ", ".join(f"{key}: {value}" for key, value in fields.items()), {}
        texts = tuple(text for text in entry.hook.values() if isinstance(text, str))
    else:
        described = ("type", "description", *config.executor.described)
        command, details = config.command, {key: fields[key] for key in fields if key not in described}
        texts = tuple(config.executor.script_texts(config.spec))
    of_group = {key: _json(value) for key, value in entry.group.items() if key not in ("hooks", "matcher")}
    return HookCommand(
        entry.event, matcher if isinstance(matcher, str) else "", command, {**details, **of_group}, texts
    )


def _shown(hook: Mapping[str, Any], key: str) -> str:
    """A field of a hook as JSON; of a secret one only that it is there, or the keys that it has."""
    field, value = hook_shape(hook.get("type")).fields.get(key), hook[key]
    if field is None or not field.secret:
        return _json(value)
    return ", ".join(map(_json, value)) if isinstance(value, Mapping) else "(not shown)"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def hook_fingerprint(settings: Mapping[str, Any], scripts: Mapping[str, str] | None = None) -> str:
    """The SHA-256 of what settings say about hooks, and of the ``project_scripts`` that their hooks name.

    The order of keys does not matter, the order of lists does.
    """
    said = {"settings": hook_statement(settings), "scripts": dict(scripts or {})}
    canonical = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def hook_parts(settings: Mapping[str, Any], scripts: Mapping[str, str]) -> dict[str, str]:
    """The same in parts, each with its SHA-256, to tell later which of them have changed."""
    return {f"{FOLDER}/{FILE_NAME}": hook_fingerprint(settings), **scripts}
