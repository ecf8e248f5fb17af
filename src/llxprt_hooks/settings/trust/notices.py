"""What people are told about settings that do not apply: which hooks do not run, why, and what to do about it."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from llxprt_hooks._support.text import escape_for_terminal
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.definitions import HookSet, read_definitions
from llxprt_hooks.settings.document import Document, read_document
from llxprt_hooks.settings.foreign import NATIVE
from llxprt_hooks.settings.hook_fields import ENABLING_KEYS
from llxprt_hooks.settings.jsonc import Kind
from llxprt_hooks.settings.levels import FILE_NAME, FOLDER, absolute_project, home_folder
from llxprt_hooks.settings.schema import SETTINGS
from llxprt_hooks.settings.trust.held_back import guards_of
from llxprt_hooks.settings.trust.status import TRUST_VARIABLE, TrustState, approved_by_environment, ignored_approval

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from llxprt_hooks.settings.jsonc import Member
    from llxprt_hooks.settings.load import LevelFile, Settings
    from llxprt_hooks.settings.trust.status import TrustStatus

_EVENTS: Final = frozenset(event.value for event in HookEventName)

NOT_TRUSTED_REASONS: Final = {
    TrustState.UNTRUSTED: "this project is not approved",
    TrustState.CHANGED: "the project has changed since it was approved",
}
"""Why a project's settings are ignored."""


def not_approved(trust: TrustStatus) -> str | None:
    """Return why a project's settings do not apply, and what to do about it; None if they do."""
    reason = NOT_TRUSTED_REASONS.get(trust.state)
    if reason is None:
        return None
    if trust.is_outdated:
        reason = "the approval of this project was given to an earlier version and covered less"
    changed = f" ({', '.join(map(escape_for_terminal, trust.changed))})" if trust.changed else ""
    seen = "what has changed" if changed else "what would run"
    otherwise = "start the program again" if approved_by_environment() else f"set {TRUST_VARIABLE}=1 for one process"
    ignored = f" {other_value}" if (other_value := ignored_approval()) else ""
    command = "llxprt-hooks trust" if trust.dialect == NATIVE else f"llxprt-hooks trust --dialect {trust.dialect}"
    return (
        f"{reason}{changed}. To see {seen}, run `{command} --dry-run`; "
        f"to approve it, run `{command}`, or {otherwise}.{ignored}"
    )


def approval_notices(trust: TrustStatus, *, asked_for_guards: bool = False) -> tuple[str, ...]:
    """Say which hooks of a project do not run because it is not approved; empty if they do.

    ``asked_for_guards``: hooks of another agent that its settings had asked for block, too.
    """
    reason = not_approved(trust)
    if reason is None:
        return ()
    hooks = trust.statement.get("hooks")
    usable = len(read_definitions(HookSet(hooks))[0]) if isinstance(hooks, dict) else 0
    usable = usable if trust.dialect == NATIVE else len(trust.commands)
    subject, consequence = _not_running(usable) if usable else ("The hook settings", "do not apply")
    guarded = trust.dialect != NATIVE or asked_for_guards or any(map(guards_of, trust.held_back))
    if trust.held_back and guarded:
        subject = subject if usable else "The approved hooks"
        verb, who = ("does", "it") if usable == 1 else ("do", "they")
        consequence = f"{verb} not run, and every call that {who} would check is blocked"
    unusable = len(trust.commands) - usable if usable else 0
    more = f" {unusable} more cannot be used: see `llxprt-hooks validate`." if unusable else ""
    return (f"{subject} in {escape_for_terminal(str(trust.settings_file))} {consequence}, because {reason}{more}",)


def never_enabled(
    hook_sets: Iterable[HookSet], disabled: tuple[str, ...], levels: Iterable[LevelFile], *, enabled_elsewhere: bool
) -> str | None:
    """Say which hooks do not run because no file that applies turns hooks on; ``levels`` are those that apply."""
    found = [hook for each in hook_sets for hook in read_definitions(each)[0] if hook.config.identity not in disabled]
    if not found:
        return None
    subject, consequence = _not_running(len(found))
    places = ", ".join(dict.fromkeys(escape_for_terminal(hook.origin) for hook in found))
    nothing = f"no settings file{' that applies' if enabled_elsewhere else ''}"
    advice = f" {meant}" if (meant := misspelled_switch(levels)) else ""
    return f'{subject} in {places} {consequence}, because {nothing} has `"{ENABLING_KEYS[0][0]}": true`.{advice}'


def why_off(settings: Settings) -> str | None:
    """Return why all hooks are off; None if only an approval is missing, which a notice reports."""
    if settings.enabled_if_approved:
        return None
    deciding = next((each.file for each in settings.levels if each.fields and each.fields.enabled is False), None)
    if deciding is not None:
        return f"hooks are off: {escape_for_terminal(str(deciding))} turns them off"
    advice = misspelled_switch(settings.levels)
    return 'hooks are off: no settings file has `"enableHooks": true`' + (f". {advice}" if advice else "")


def misspelled_switch(levels: Iterable[LevelFile]) -> str | None:
    """Return which key was probably meant to turn hooks on, as a sentence."""
    from llxprt_hooks.settings.did_you_mean import meant_key  # not needed if hooks are on

    switch = ENABLING_KEYS[0][0]
    for each in levels:
        for member in each.content.root.members if isinstance(each.content, Document) else ():
            if member.key != switch and meant_key(SETTINGS, member.key) == switch:
                return f"`{escape_for_terminal(member.key)}` is not read: did you mean `{switch}`?"
    return None


def _not_running(count: int) -> tuple[str, str]:
    if count == 1:
        return "1 hook", "is not running and so blocks nothing"
    return f"{count} hooks", "are not running and so block nothing"


def missing_project(project_dir: str | os.PathLike[str]) -> str | None:
    """Return why a project has no hooks at all, if its folder is missing."""
    project = absolute_project(project_dir)
    if project.is_dir():
        return None
    what = "is not a directory" if project.exists() else "does not exist"
    name = escape_for_terminal(str(project))
    return f"{name} {what}: no project hooks were loaded, so they block nothing."


def hooks_in_unread_files(project: Path) -> Iterator[str]:
    """Warn about hooks in files that look like settings of the project and are not read."""
    for document in unread_documents(project):
        name = escape_for_terminal(str(document.file))
        yield (
            f"Hooks in {name} are not running and so block nothing, because this file isn't read. "
            f"Move them to `{FOLDER}/{FILE_NAME}`."
        )


def hooks_under_another_key(levels: Iterable[LevelFile]) -> Iterator[str]:
    """Warn about hooks that are not below ``hooks``: an event beside it, or another spelling of it."""
    for each in levels:
        for member in each.content.root.members if isinstance(each.content, Document) else ():
            is_hooks = member.key.casefold() in ("hook", "hooks") and member.key != "hooks"
            if is_hooks or member.key in _EVENTS:
                meant = "did you mean `hooks`?" if is_hooks else "events belong in `hooks`."
                place = escape_for_terminal(f"{each.file}: `{member.key}`")
                yield f"{place} is not read, so the hooks in it are not running and so block nothing: {meant}"


def hooks_elsewhere(project: Path) -> Iterator[str]:
    """Warn about a missing folder, or one without settings inside a project whose hooks do not apply to it."""
    if missing := missing_project(project):
        yield missing
        return
    home = home_folder()
    for folder in project.parents:
        if folder == home:
            return
        if (folder / FOLDER / FILE_NAME).is_file():
            name = escape_for_terminal(str(folder))
            yield (
                f"Hooks in {name} don't apply to its subfolders: they won't run here, so they block nothing. "
                f"Load that folder, or pass `-C {name}` on the command line."
            )
            return


_MAX_FILES: Final = 20
"""A folder of a stranger may have any number."""


def unread_documents(project: Path) -> Iterator[Document]:
    """Yield the documents with hooks in a project's folder and in its ``.llxprt`` that are not its settings."""
    folder = project / FOLDER
    try:
        beside = sorted(islice((each for each in folder.iterdir() if each.suffix == ".json"), _MAX_FILES))
    except OSError:
        beside = []
    for file in (project / FILE_NAME, *beside, folder / "settings.jsonc", folder / "hooks" / "hooks.json"):
        document = read_document(file) if file != folder / FILE_NAME else None
        if isinstance(document, Document) and _has_hooks(document):
            yield document


def _has_hooks(document: Document) -> bool:
    """A file of this name may belong to any program: only hooks for a known event count."""
    hooks = document.root.at("hooks")
    return any(map(is_event, hooks.members)) if hooks else False


def is_event(member: Member) -> bool:
    """Return whether a member of an object has the hooks of an event, here or in Claude Code."""
    from llxprt_hooks.settings.other_agents import CLAUDE_EVENTS  # not needed to start an agent

    return member.value.kind is Kind.ARRAY and (member.key in tuple(HookEventName) or member.key in CLAUDE_EVENTS)
