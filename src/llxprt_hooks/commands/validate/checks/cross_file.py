"""Checks across hooks and files: duplicates, disabled hooks, sequential groups."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from llxprt_hooks._support.text import closest
from llxprt_hooks.commands.validate.entries import FileGroup, FileHook, Role, SettingsFile
from llxprt_hooks.commands.validate.rules import Rule
from llxprt_hooks.settings import Kind, Node
from llxprt_hooks.settings.hook_fields import DISABLED_LISTS
from llxprt_hooks.settings.matcher import trimmed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from llxprt_hooks.commands.validate.diagnostic import Diagnostic
    from llxprt_hooks.commands.validate.inspection import Inspection
    from llxprt_hooks.events import HookEventName

_UNKNOWN_SUBJECT: Final = "\x00"
"""Represents every unknown name that a matcher may match, such as a tool of an MCP server."""


@dataclass(frozen=True, eq=False)
class _DisabledEntry:
    file: SettingsFile
    path: str
    node: Node

    @property
    def name(self) -> str:
        return str(self.node.scalar)


def check_repeated(inspection: Inspection) -> Iterator[Diagnostic]:
    """Find hooks that already run, and groups of which no hook runs."""
    shadows = _shadows(inspection)
    disabled = _disabled_names(inspection)
    for group in _groups(inspection):
        shadowed = [hook for hook in group.hooks if hook in shadows]
        alive = [hook for hook in group.hooks if hook not in shadows and hook.identity not in disabled]
        if shadowed and not alive:
            first = shadows[shadowed[0]]
            reason = f"`{shadowed[0].identity}` already runs, from {first.file.place(first.node, seen_from=group.file)}"
            others = len(group.hooks) - 1
            rest = {0: "", 1: "; its other hook doesn't run either"}.get(
                others, f"; its other {others} hooks don't run either"
            )
            yield group.file.at(
                Rule.UNREACHABLE_GROUP, group.node, f"no hook of this group runs: {reason}{rest}", "Remove the group."
            )
            continue
        for hook in shadowed:
            place = shadows[hook].file.place(shadows[hook].node, seen_from=hook.file)
            message = f"the same hook already runs for {hook.event}, from {place}"
            yield hook.file.at(Rule.DUPLICATE_COMMAND, hook.main_node, message, "Remove one of them.")


def check_disabled(inspection: Inspection) -> Iterator[Diagnostic]:
    off = {switched.name: switched for switched in _disabled(inspection)}
    for hook in inspection.hooks:
        switched = off.get(hook.identity)
        if switched is not None and hook.can_run and hook.file.document.file not in inspection.managed:
            message = f"this hook is disabled, by {switched.file.place(switched.node, seen_from=hook.file)}"
            fix = f"To enable it, remove it from `{switched.path}`."
            yield hook.file.at(Rule.DISABLED_HOOK, hook.name_node or hook.main_node, message, fix)


def check_disabled_names(inspection: Inspection) -> Iterator[Diagnostic]:
    """Find names in ``hooksConfig.disabled`` that no hook has."""
    hooks = list(inspection.hooks)
    names = {hook.identity for hook in hooks}
    by_command = {hook.config.command: hook.name for hook in hooks if hook.name and hook.config}
    for switched in _disabled(inspection):
        if switched.name in names:
            continue
        meant = by_command.get(switched.name) or closest(switched.name, names)
        # Another level, or for the user's own file another project, may have a hook of that name.
        if meant or not inspection.alone:
            fix = f"Did you mean `{meant}`?" if meant else "If no other project has it, remove it."
            yield switched.file.at(
                Rule.UNKNOWN_DISABLED_HOOK, switched.node, f"no hook is called `{switched.name}`", fix
            )


def check_names(inspection: Inspection) -> Iterator[Diagnostic]:
    """Find different hooks of one event with the same name."""
    first: dict[tuple[HookEventName | None, str], FileHook] = {}
    for hook in inspection.hooks:
        if not hook.name or not hook.name_node or not hook.can_run:
            continue
        other = first.setdefault((hook.event, hook.name), hook)
        if other.key != hook.key:
            place = other.file.place(other.name_node or other.node, seen_from=hook.file)
            message = f"another hook, in {place}, is also called `{hook.name}`"
            yield hook.file.at(Rule.DUPLICATE_NAME, hook.name_node, message, "Give each hook a unique name.")


def check_escalation(inspection: Inspection) -> Iterator[Diagnostic]:
    """Find sequential groups that make other groups sequential; reported once per event."""
    for groups in _by_event(inspection).values():
        chains = [group for group in groups if group.sequential]
        subjects = set().union(*(_selected(inspection, group) for group in chains))
        affected = [group for group in groups if not group.sequential and subjects & _selected(inspection, group)]
        if affected and chains[0].sequential:
            file = chains[0].file
            places = [group.file.place(group.node, seen_from=file) for group in affected[:3]]
            more = f" and {len(affected) - 3} more" if len(affected) > 3 else ""
            message = f"this makes hooks of other groups sequential too: {', '.join(places)}{more}"
            fix = "To run them in parallel, narrow the matchers until no two groups match the same call."
            yield file.at(Rule.SEQUENTIAL_ESCALATION, chains[0].sequential, message, fix)


def _shadows(inspection: Inspection) -> dict[FileHook, FileHook]:
    """Return hooks that never run because an earlier hook runs the same command for all they match; and that hook."""
    disabled = _disabled_names(inspection)
    earlier: dict[tuple[HookEventName | None, str], list[FileHook]] = defaultdict(list)
    shadows: dict[FileHook, FileHook] = {}
    for hook in inspection.hooks:
        if not hook.can_run or hook.identity in disabled:
            continue
        same = earlier[hook.event, hook.key]
        if same and _covers(inspection, same, hook):
            shadows[hook] = same[0]
        else:
            same.append(hook)
    return shadows


def _covers(inspection: Inspection, earlier: Iterable[FileHook], hook: FileHook) -> bool:
    selected = _selected(inspection, hook.group)
    if not selected:
        return any(_matcher_text(other) == _matcher_text(hook) for other in earlier)
    return selected <= set().union(*(_selected(inspection, other.group) for other in earlier))


def _selected(inspection: Inspection, group: FileGroup) -> set[str]:
    """Return the known names that the group matches, and a placeholder if it matches unknown ones."""
    event, matches = group.event.meant, group.matches
    if event is None or matches is None:
        return set()
    known = event.spec.matched_values or (inspection.tools if event.spec.is_about_tool else ())
    return {subject for subject in (*known, _UNKNOWN_SUBJECT) if matches(subject)}


def _matcher_text(hook: FileHook) -> object:
    return trimmed(str(hook.group.matcher.scalar)) if hook.group.matcher else None


def _by_event(inspection: Inspection) -> dict[HookEventName, list[FileGroup]]:
    """Return the groups with at least one hook that runs, by event."""
    disabled = _disabled_names(inspection)
    by_event: dict[HookEventName, list[FileGroup]] = defaultdict(list)
    for group in _groups(inspection):
        if group.event.name and any(hook.can_run and hook.identity not in disabled for hook in group.hooks):
            by_event[group.event.name].append(group)
    return by_event


def _groups(inspection: Inspection) -> Iterator[FileGroup]:
    return (group for file in inspection.files for event in file.events for group in event.groups)


def _disabled_names(inspection: Inspection) -> set[str]:
    return {switched.name for switched in _disabled(inspection)}


def _disabled(inspection: Inspection) -> Iterator[_DisabledEntry]:
    for file in inspection.files:
        for path in DISABLED_LISTS if file.role not in (Role.EXTENSION, Role.MANIFEST) else ():
            names = file.root.at(*path)
            for node in names.items if names else ():
                if node.kind is Kind.STRING:
                    yield _DisabledEntry(file, ".".join(path), node)
