"""The guards of a project that was approved and has changed since: they do not run, and block in their place (D-28).

The approved settings count as well as the present ones, because the change may have removed the guard.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any, Final

from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.definitions import read_hook
from llxprt_hooks.settings.foreign import DIALECTS
from llxprt_hooks.settings.hook_entries import HookEntry, hook_entries
from llxprt_hooks.settings.hook_fields import DISABLED_LISTS, ENABLING_KEYS, FULL, switched_by
from llxprt_hooks.settings.schema import OBSERVE, settings_executor

BLOCKING_EVENTS: Final = tuple(event for event in HookEventName if event.spec.can_block)
_IF_ACTING: Final = tuple(event for event in HookEventName if event.spec.acting.can_block)

UNKNOWN_GUARDS: Final[Mapping[str, Any]] = {
    "enableHooks": True,
    "hooks": {
        event.value: [{"hooks": [{"type": "command", "command": "the approved hooks"}]}] for event in BLOCKING_EVENTS
    },
}
"""Stands for approved settings whose text is not there any more: they may have guarded any call."""


def switch_of(statement: Mapping[str, Any]) -> bool | None:
    """Return whether settings turn hooks on; None if they do not say."""
    return switched_by(_at(statement, path) for path in ENABLING_KEYS)


def acts(statement: Mapping[str, Any]) -> bool:
    """Return whether the hooks of settings act, so that they could block more events (D-46)."""
    return _at(statement, ("hooksConfig", "profile")) == FULL


def dialects_of(statement: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the other agents whose hooks settings ask for."""
    names = _at(statement, ("hooksConfig", "dialects"))
    return tuple(name for name in DIALECTS if name in names) if isinstance(names, list) else ()


def guards_of(statement: Mapping[str, Any], *, full: bool = False) -> dict[str, list[Any]]:
    """Return the hooks of settings that could block: each as a command hook that is only there to be refused.

    With ``full``, those that could do so because they act, too.
    """
    events = _IF_ACTING if full or acts(statement) else BLOCKING_EVENTS
    lists = (_at(statement, path) for path in DISABLED_LISTS)
    disabled = [name for names in lists if isinstance(names, list) for name in names]
    guards: dict[str, list[Any]] = {event: [] for event in HookEventName}
    for entry in _entries(statement, events):
        name, command = _words(entry)
        if (name or command) not in disabled:
            closed = entry.hook.get("failClosed") is True
            stand_in = {"type": "command", "command": command, "name": name, "failClosed": closed}
            spoken = {"dialect": dialect} if (dialect := _dialect(entry)) else {}
            guards[entry.event].append({"matcher": entry.group.matcher, **spoken, "hooks": [stand_in]})
    return {event: groups for event, groups in guards.items() if groups}


def _entries(statement: Mapping[str, Any], events: Container[str]) -> Iterator[HookEntry]:
    for entry in hook_entries(statement.get("hooks", {})):
        executor = settings_executor(entry.hook.get("type"))
        usable = executor is not None and not executor.unsupported
        could_block = entry.event in (_IF_ACTING if _dialect(entry) else events)
        if usable and could_block and entry.hook.get("mode") != OBSERVE:
            yield entry


def _dialect(entry: HookEntry) -> str | None:
    """Return the other agent's dialect that a hook speaks, so that it acts; None if it speaks ours."""
    node = entry.group.node.at("dialect")
    return node.scalar if node and isinstance(node.scalar, str) and node.scalar in DIALECTS else None


def _words(entry: HookEntry) -> tuple[str | None, str]:
    """Return the name and the command of a hook. Approved texts have no secrets, so it may not be readable as one."""
    config, _ = read_hook(entry.node)
    if config is not None:
        return config.name, config.command
    name, *values = (entry.hook.get(key) for key in ("name", "command", "type"))
    command = next(value for value in values if isinstance(value, str) and value.strip())
    return name if isinstance(name, str) else None, command


def _at(value: object, path: tuple[str, ...]) -> object:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
