"""Checks whether hooks are on, and whether the project's hooks may run."""

from __future__ import annotations

import os
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from llxprt_hooks._support.text import escape_for_terminal
from llxprt_hooks.commands.validate.checks.script_files import readable_fix
from llxprt_hooks.commands.validate.diagnostic import Diagnostic, diagnostic_of_file
from llxprt_hooks.commands.validate.entries import Role, SettingsFile
from llxprt_hooks.commands.validate.rules import Rule
from llxprt_hooks.commands.validate.started_programs import mentions, place_of, scripts
from llxprt_hooks.settings import Document, Kind, Level, Node, read_document
from llxprt_hooks.settings.extensions import MANIFESTS
from llxprt_hooks.settings.foreign import DIALECTS
from llxprt_hooks.settings.hook_fields import ENABLING_KEYS, read_hook_fields
from llxprt_hooks.settings.levels import FILE_NAME, FOLDER, unused_user_files
from llxprt_hooks.settings.load import first_given, why_not_managed
from llxprt_hooks.settings.ownership import other_writers
from llxprt_hooks.settings.trust.command_names import ScriptsError
from llxprt_hooks.settings.trust.covered_files import CoveredFiles
from llxprt_hooks.settings.trust.notices import unread_documents
from llxprt_hooks.settings.trust.status import TRUST_VARIABLE, TrustState, TrustStatus, ignored_approval, trust_status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from llxprt_hooks.commands.validate.inspection import Inspection

_SWITCH, *_OTHER_SPELLINGS = ENABLING_KEYS

_OF_OTHERS: Final = {
    ".claude/settings.json": "claude",
    ".claude/settings.local.json": "claude",
    ".gemini/settings.json": "gemini",
}


def check_enabled(inspection: Inspection) -> Iterator[Diagnostic]:
    """Find hooks that are configured while hooks are off."""
    others = (hook.file for hook in inspection.hooks if hook.file.document.file not in inspection.managed)
    first = next(others, None)
    settings = [file for file in inspection.files if file.role not in (Role.EXTENSION, Role.MANIFEST)]
    switches = {file: read_hook_fields(file.document).enabled for file in settings}
    if first is None or first_given(switches.values(), False):
        return
    turn_on = 'Add `"enableHooks": true` at the top level.'
    deciding = next((file for file, switch in switches.items() if switch is not None), None)
    if deciding is not None:
        switches_off = (node for path in ENABLING_KEYS if (node := _boolean(deciding, path)) and node.scalar is False)
        fix = f"Write true to run the hooks of {first.document.file}."
        yield deciding.at(Rule.HOOKS_OFF, next(switches_off), "hooks are configured, but this turns them off", fix)
    elif not inspection.alone:
        message = "hooks are configured, but no settings file turns them on"
        yield from _at_hooks(first, Rule.HOOKS_OFF, message, turn_on)
    elif first.role is not Role.EXTENSION:
        yield from _at_hooks(
            first,
            Rule.HOOKS_OFF_HERE,
            "this file does not turn hooks on",
            f"{turn_on} Or turn them on at another level.",
        )


def check_conflicting_switches(inspection: Inspection, file: SettingsFile) -> Iterator[Diagnostic]:
    """Find spellings of the switch that contradict each other."""
    switch = _boolean(file, _SWITCH)
    others = {".".join(path): node for path in _OTHER_SPELLINGS if (node := _boolean(file, path))}
    for spelling, node in others.items():
        if switch is not None and node.scalar is not switch.scalar:
            message = f"`{spelling}` contradicts `enableHooks`, which takes precedence"
            yield file.at(Rule.CONFLICTING_SWITCHES, node, message, "Remove it.")
    if switch is None and len({node.scalar for node in others.values()}) > 1:
        on, *_, off = sorted(others, key=lambda spelling: not others[spelling].scalar)
        message = f"`{on}` is true, but `{off}` is false, so hooks are off"
        yield file.at(Rule.CONFLICTING_SWITCHES, others[on], message, "Write `enableHooks` at the top level instead.")


def check_managed(inspection: Inspection, file: SettingsFile) -> Iterator[Diagnostic]:
    """Find files that claim managed hooks although they cannot have them."""
    if file.role not in (Role.PROJECT, Role.USER, Role.SYSTEM):
        return
    fields = read_hook_fields(file.document)
    for key, node, reason in why_not_managed(Level(file.role), file.document, fields):
        fix = "Remove it, or let root write it to the system's settings."
        yield file.at(Rule.MANAGED_IGNORED, node, f"`{key}` is ignored: {reason}", fix)


def check_user_files(inspection: Inspection, file: SettingsFile) -> Iterator[Diagnostic]:
    """Find user settings that are not read because other user settings exist."""
    if file.role is not Role.USER:
        return
    for unused in unused_user_files():
        message = f"this file is used, and {unused} is ignored"
        yield _of_file(
            file, Rule.UNUSED_USER_SETTINGS, message, "Move what you need into this file, and delete the other."
        )


def check_trust(inspection: Inspection, file: SettingsFile) -> Iterator[Diagnostic]:
    """Find project settings that are refused or not approved, and settings that others may change."""
    if file.role is not Role.PROJECT:
        if file.role is not Role.FILE and (objection := other_writers(file.document)):
            what = "extension" if file.role is Role.MANIFEST else "file"
            yield _of_file(file, Rule.REFUSED_SETTINGS, f"{objection}, so this {what} is ignored", _ownership_fix(file))
        return
    status = trust_status(inspection.directory)
    if status.state is TrustState.REFUSED:
        yield _refused(inspection, file, status)
        return
    for problem in status.problems:
        place, fix = problem.file or file.document.file, "Fix the file, or delete it and approve again."
        yield diagnostic_of_file(place, Rule.TRUST_STORE, problem.message, fix)
    if status.state in _NOT_APPROVED and not inspection.alone:
        fix = f"Review the hooks, then run `llxprt-hooks trust`; or set {TRUST_VARIABLE}=1 for one process, as in CI."
        fix = " ".join(filter(None, (fix, ignored_approval())))
        changed = f": {', '.join(map(escape_for_terminal, status.changed))}" if status.changed else ""
        yield from _at_hooks(file, Rule.NOT_TRUSTED, _NOT_APPROVED[status.state] + changed, fix)


def _refused(inspection: Inspection, file: SettingsFile, status: TrustStatus) -> Diagnostic:
    if file.document.real_file != Path(os.path.realpath(inspection.directory)) / FOLDER / FILE_NAME:
        fix = "Replace the link with a regular file."
    elif other_writers(file.document):
        fix = _ownership_fix(file)
    elif unreadable := _unreadable_script(inspection, file, status):
        return unreadable
    else:
        fix = "Use commands that name readable files, and fewer of them."
    return _of_file(file, Rule.REFUSED_SETTINGS, status.problems[0].message, fix)


def _ownership_fix(file: SettingsFile) -> str:
    path = quote(str(file.document.file))
    return (
        f"Run `chmod go-w {path}`, and the same for its parent folders. "
        f"If another user owns it, run `sudo chown $USER {path}`."
    )


def _unreadable_script(inspection: Inspection, file: SettingsFile, status: TrustStatus) -> Diagnostic | None:
    """Return a diagnostic for the unreadable script, if a command names it."""
    unreadable = _unreadable_path(status)
    if unreadable is None:
        return None
    hooks = [hook for hook in file.hooks if hook.command_node]
    started = [script for hook in hooks for script in scripts(inspection, hook)]
    place = place_of(unreadable, started) or next(mentions(unreadable, hooks), None)
    if place is None:
        return None
    hook, span = place
    return hook.in_command(Rule.SCRIPT_UNREADABLE, span, status.problems[0].message, readable_fix(unreadable))


def _unreadable_path(status: TrustStatus) -> Path | None:
    try:
        CoveredFiles(status.script_texts, status.project)
    except ScriptsError as error:
        return Path(error.__cause__.filename) if isinstance(error.__cause__, OSError) else None
    return None


_NOT_APPROVED: Final = {
    TrustState.UNTRUSTED: "this project's hooks are not approved yet",
    TrustState.CHANGED: "this project's hooks have changed since they were approved",
}


def check_manifest(inspection: Inspection, file: SettingsFile) -> Iterator[Diagnostic]:
    """Find hooks of extensions without a manifest."""
    extension = file.extension
    if extension is None or file.document.file.parent.name != "hooks":
        return
    if not any((extension / manifest).is_file() for manifest in MANIFESTS):
        message = f"these hooks are ignored: {extension} has no {MANIFESTS[0]}"
        yield _of_file(
            file, Rule.EXTENSION_WITHOUT_MANIFEST, message, f'Create one: `{{ "name": "{extension.name}" }}`.'
        )


def check_unread_files(inspection: Inspection) -> Iterator[Diagnostic]:
    """Find hooks of the project in files that are not read."""
    if inspection.alone:
        return
    for document in unread_documents(inspection.directory):
        if document.file not in inspection.looked_for:
            yield from _unread(document, "Move its hooks to `.llxprt/settings.json`.")
    if not any(file.role is Role.PROJECT and file.events for file in inspection.files):
        for path, agent in _OF_OTHERS.items():
            document_of_agent = read_document(inspection.directory / path)
            if isinstance(document_of_agent, Document) and document_of_agent.file not in inspection.looked_for:
                yield from _unread(document_of_agent, _fix(agent))


def _fix(agent: str) -> str:
    migrate = f"`llxprt-hooks migrate --from {agent}` makes them native."
    return f"To run them unchanged, add `--dialect {agent}`. {migrate}" if agent in DIALECTS else migrate


def _unread(document: Document, fix: str) -> Iterator[Diagnostic]:
    file = SettingsFile(document, Role.FILE)
    if file.events:
        yield from _at_hooks(file, Rule.UNREAD_FILE, "this file contains hooks but is not read", fix)


def _boolean(file: SettingsFile, path: tuple[str, ...]) -> Node | None:
    node = file.root.at(*path)
    return node if node and node.kind is Kind.BOOLEAN else None


def _at_hooks(file: SettingsFile, rule: Rule, message: str, fix: str) -> Iterator[Diagnostic]:
    members = file.root.fields
    member = next((members[key] for key in ("hooks", "hooksConfig", "enableHooks", "tools") if key in members), None)
    yield file.at_key(rule, member, message, fix) if member else _of_file(file, rule, message, fix)


def _of_file(file: SettingsFile, rule: Rule, message: str, fix: str) -> Diagnostic:
    return diagnostic_of_file(file.document.file, rule, message, fix)
