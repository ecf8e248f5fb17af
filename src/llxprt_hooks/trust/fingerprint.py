"""What a project says about hooks, as one hash: whatever could change what runs, changes it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from llxprt_hooks.settings.levels import FILE_NAME, FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator


class HookCommand(NamedTuple):
    """A command that would run, and when."""

    event: str
    matcher: str
    command: str


def hook_statement(settings: Mapping[str, Any]) -> dict[str, Any]:
    """All that settings say about hooks, as it stands there; empty where they say nothing."""
    said = {key: settings[key] for key in ("enableHooks", "hooks", "hooksConfig") if settings.get(key, {}) != {}}
    tools = settings.get("tools")
    if isinstance(tools, Mapping) and "enableHooks" in tools:
        said["tools"] = {"enableHooks": tools["enableHooks"]}
    return said


def hook_commands(settings: Mapping[str, Any]) -> tuple[HookCommand, ...]:
    """The commands in a settings' ``hooks``, in order; what has no command is passed over."""
    return tuple(
        HookCommand(event, matcher if isinstance(matcher := group.get("matcher"), str) else "", hook["command"])
        for event, groups in _mapping(settings.get("hooks")).items()
        for group in _mappings(groups)
        for hook in _mappings(group.get("hooks"))
        if isinstance(hook.get("command"), str)
    )


def hook_fingerprint(settings: Mapping[str, Any], scripts: Mapping[str, str] | None = None) -> str:
    """The SHA-256 of what settings say about hooks, and of the ``project_scripts`` that their commands name.

    The order of keys does not matter, the order of lists does.
    """
    said = {"settings": hook_statement(settings), "scripts": dict(scripts or {})}
    canonical = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def hook_parts(settings: Mapping[str, Any], scripts: Mapping[str, str]) -> dict[str, str]:
    """The same in parts, each with its SHA-256, to tell later which of them have changed."""
    return {f"{FOLDER}/{FILE_NAME}": hook_fingerprint(settings), **scripts}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list):
        yield from (element for element in value if isinstance(element, Mapping))
