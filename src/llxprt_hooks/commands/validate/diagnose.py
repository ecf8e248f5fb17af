"""Runs all checks on an inspection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from llxprt_hooks.commands.validate.checks import (
    commands,
    cross_file,
    hooks,
    keys,
    matchers,
    script_files,
    script_text,
    switches,
    warm,
)
from llxprt_hooks.commands.validate.diagnostic import Diagnostic

if TYPE_CHECKING:
    from llxprt_hooks.commands.validate.entries import FileEvent, FileGroup, FileHook, SettingsFile
    from llxprt_hooks.commands.validate.inspection import Inspection

Found = Iterator[Diagnostic]

ALL_FILES: Final[tuple[Callable[[Inspection], Found], ...]] = (
    switches.check_enabled,
    switches.check_unread_files,
    cross_file.check_repeated,
    cross_file.check_disabled,
    cross_file.check_disabled_names,
    cross_file.check_names,
    cross_file.check_escalation,
)
EACH_FILE: Final[tuple[Callable[[Inspection, SettingsFile], Found], ...]] = (
    switches.check_trust,
    switches.check_managed,
    switches.check_user_files,
    switches.check_manifest,
    switches.check_conflicting_switches,
    keys.check_shape,
    keys.check_duplicate_keys,
)
EACH_EVENT: Final[tuple[Callable[[Inspection, FileEvent], Found], ...]] = (
    hooks.check_event,
    hooks.check_groups,
    hooks.check_unsupported_event,
    hooks.check_lost_effect,
)
EACH_GROUP: Final[tuple[Callable[[Inspection, FileGroup], Found], ...]] = (matchers.check_matcher,)
EACH_HOOK: Final[tuple[Callable[[Inspection, FileHook], Found], ...]] = (
    hooks.check_type,
    hooks.check_own_rules,
    hooks.check_timeout,
    hooks.check_fail_closed,
    script_text.check_full_view,
    hooks.check_stream,
)
EACH_COMMAND: Final[tuple[Callable[[Inspection, FileHook], Found], ...]] = (
    commands.check_syntax,
    commands.check_quoted_variable,
    commands.check_foreign_variable,
    commands.check_misspelled_variable,
    commands.check_extension_path,
    commands.check_exit_codes,
    commands.check_imports_from_project,
    warm.check_warm,
    script_files.check_program,
    script_files.check_script,
    script_text.check_script_text,
    script_text.check_compared_tools,
    script_text.check_written_arguments,
)


def diagnose(inspection: Inspection) -> list[Diagnostic]:
    """Return all diagnostics, sorted by file and position; those outside settings files come last."""
    order = {file: number for number, file in enumerate(inspection.looked_for)}
    found = dict.fromkeys(diagnostic for diagnostic, _ in findings(inspection))
    return sorted(found, key=lambda each: (order.get(each.file, len(order)), each.file, each.line, each.column))


def findings(inspection: Inspection) -> Iterator[tuple[Diagnostic, tuple[FileHook, ...]]]:
    """Yield each diagnostic with the hooks that it is about: none for a whole file, all of a group for its matcher."""
    yield from ((each, ()) for each in (*inspection.unread, *inspection.others))
    for check in ALL_FILES:
        yield from ((each, ()) for each in check(inspection))
    for file in inspection.files:
        for check_file in EACH_FILE:
            yield from ((each, ()) for each in check_file(inspection, file))
        for event in file.events:
            yield from _in_event(inspection, event)


def _in_event(inspection: Inspection, event: FileEvent) -> Iterator[tuple[Diagnostic, tuple[FileHook, ...]]]:
    for check_event in EACH_EVENT:
        yield from ((each, ()) for each in check_event(inspection, event))
    for group in event.groups:
        for check_group in EACH_GROUP:
            yield from ((each, group.hooks) for each in check_group(inspection, group))
        for hook in group.hooks:
            for check_hook in (*EACH_HOOK, *(EACH_COMMAND if hook.command_node else ())):
                yield from ((_for_hook(each, hook), (hook,)) for each in check_hook(inspection, hook))


def _for_hook(diagnostic: Diagnostic, hook: FileHook) -> Diagnostic:
    """Return the diagnostic with the consequence that a failure of this hook has."""
    if not hook.blocks_on_failure:
        return diagnostic
    why = diagnostic.why.replace("calls go ahead", "`failClosed` blocks every call")
    return replace(diagnostic, own_why=why.replace("the call goes ahead", "`failClosed` blocks the call"))
