"""Checks, grants and revokes the approval of a project's hooks (D-21).

Opening a cloned repository must not run its code. A project's hook settings apply only after the user has approved
exactly these; any change needs approval again.

>>> status = trust_status(".")                                          # doctest: +SKIP
>>> for hook in status.commands: print(hook.event, hook.command)        # doctest: +SKIP
>>> grant_trust(".", expected_fingerprint=status.fingerprint)           # doctest: +SKIP
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from llxprt_hooks._support.text import escape_for_terminal, shorten
from llxprt_hooks.settings.definitions import dialect_of
from llxprt_hooks.settings.document import Document, read_document
from llxprt_hooks.settings.foreign import DIALECTS, NATIVE
from llxprt_hooks.settings.levels import FILE_NAME, FOLDER, Level, absolute_project, settings_file
from llxprt_hooks.settings.ownership import other_writers
from llxprt_hooks.settings.problem import Problem
from llxprt_hooks.settings.trust.command_names import ScriptsError
from llxprt_hooks.settings.trust.covered_files import CoveredFiles
from llxprt_hooks.settings.trust.fingerprint import (
    FOREIGN,
    VERSION,
    HookCommand,
    hook_commands,
    hook_fingerprint,
    hook_parts,
    hook_statement,
    settings_text,
)
from llxprt_hooks.settings.trust.held_back import UNKNOWN_GUARDS, dialects_of, guards_of
from llxprt_hooks.settings.trust.store import NO_APPROVAL, ApprovalRecord, TrustStore, read_text, text_digest

TRUST_VARIABLE: Final = "LLXPRT_TRUST_PROJECT_HOOKS"
"""Set to ``1`` to approve, for one process, the hooks that a project has when the process first looks at it."""

_approved_for_process: Final[dict[Path, tuple[str, ApprovalRecord]]] = {}
"""What that variable approves: the fingerprint of each project as it was first found."""

_HOW_TO_APPROVE: Final = (
    "Review the change, approve it with `llxprt-hooks trust`, then reload the settings or start the agent again"
)

_MAX_NAMED: Final = 3
"""How many changed files the reason of a block names."""

_MAX_VALUE: Final = 20


class TrustState(StrEnum):
    """The trust state of a project."""

    NOTHING_TO_TRUST = "nothing_to_trust"
    """Its settings do not mention hooks."""
    TRUSTED = "trusted"
    CHANGED = "changed"
    """Approved before, but changed since."""
    UNTRUSTED = "untrusted"
    APPROVED_BY_ENVIRONMENT = "approved_by_environment"
    REFUSED = "refused"
    """Cannot be approved: its settings or scripts cannot be read, or others could have written the settings."""


@dataclass(frozen=True, slots=True)
class TrustStatus:
    """The trust state of a project, and what an approval would cover."""

    state: TrustState
    project: Path
    """Its real path, the key in the store."""
    file: Path | None = None
    """Its settings file, if it exists."""
    fingerprint: str = ""
    """Hash of everything below. Pass it when granting, so that exactly what was shown is approved."""
    statement: Mapping[str, Any] = field(default_factory=dict)
    """Everything in the project's settings that concerns hooks."""
    commands: tuple[HookCommand, ...] = ()
    files: CoveredFiles | None = field(default=None, repr=False, compare=False)
    """The project's files whose content is approved too."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """The parts covered by the fingerprint, each with its own hash."""
    approved: ApprovalRecord = NO_APPROVAL
    """What was approved before, if the state is ``CHANGED`` or ``REFUSED``."""
    problems: tuple[Problem, ...] = ()
    dialect: str = NATIVE
    """The dialect that the settings are written in; the approval of each is separate."""
    opened: Path | None = field(default=None, repr=False, compare=False)
    """The path that the project was opened with, if a link in it leads to the real one."""

    @property
    def key(self) -> Path:
        """Where the store has the approval."""
        return approval_key(self.project, self.dialect)

    @property
    def scripts(self) -> tuple[str, ...]:
        """The names of the project's files whose content is approved too."""
        return tuple(self.files.files) if self.files else ()

    @property
    def changed(self) -> tuple[str, ...]:
        """The differences from what was approved: new, deleted or changed files, and the settings file."""
        before, now = self.approved.parts, self.parts
        if not before or self.is_outdated:
            return ()
        if not self.statement:  # without hooks, nothing else is covered any more
            return (os.path.relpath(self.settings_file, self.opened or self.project),)
        data = {name for name, file in self.files.files.items() if file.is_data} if self.files else set()
        names = {*before, *(name for name in now if name not in data)}
        return tuple(sorted(name for name in names if before.get(name) != now.get(name)))

    @property
    def settings_file(self) -> Path:
        """Its settings file, existing or not."""
        return self.file or self.project / FOLDER / FILE_NAME

    @property
    def is_outdated(self) -> bool:
        """Whether the project was approved by an earlier version, whose approvals covered something else."""
        return self.state is TrustState.CHANGED and self.approved.version != VERSION

    @property
    def held_back(self) -> tuple[Mapping[str, Any], ...]:
        """The settings whose guards block instead of running: the present ones, and those that were approved.

        Empty if the project's hooks run, and if none were ever approved.
        """
        if self.counts or self.approved is NO_APPROVAL or self.approved.statement == {}:
            return ()
        approved = self.approved.statement
        return (self.statement, UNKNOWN_GUARDS if approved is None else approved)

    @property
    def script_texts(self) -> tuple[str, ...]:
        """Texts in which hooks may name files of the project."""
        return tuple(text for hook in self.commands for text in hook.script_texts)

    def refusal(self) -> str | None:
        """Return why a hook of this project must not be started now, as the end of a sentence that starts with it.

        Called before every start (D-28), in any thread.
        """
        if self.held_back:
            return self._refusal_since_load()
        if self.files is None:
            return None
        try:
            if self.opened is not None and not self.opened.samefile(self.project):
                return _refusal(f"{escape_for_terminal(str(self.opened))} leads to another folder than it did.")
            changed = self.files.changes()
        except (ScriptsError, OSError) as error:
            return f"was not started: {error}, so it cannot be compared with what was approved"
        return _refusal(_named_changes(changed)) if changed else None

    def _refusal_since_load(self) -> str:
        if self.state is TrustState.REFUSED:
            return f"was not started: {self.problems[0]}. The project was approved before, so this blocks the call"
        if self.is_outdated:
            return _refusal("the approval of this project was given to an earlier version.")
        return _refusal(_named_changes(self.changed or (f"{FOLDER}/{FILE_NAME}",)))

    @property
    def counts(self) -> bool:
        """Whether the project's settings are applied."""
        return self.state in {TrustState.TRUSTED, TrustState.APPROVED_BY_ENVIRONMENT}


def _refusal(why: str) -> str:
    return f"was not started: {why} {_HOW_TO_APPROVE}"


def _named_changes(changed: tuple[str, ...]) -> str:
    names = ", ".join(map(escape_for_terminal, changed[:_MAX_NAMED]))
    more = f" and {len(changed) - _MAX_NAMED} more" if len(changed) > _MAX_NAMED else ""
    return f"{names}{more} {'has' if len(changed) == 1 else 'have'} changed since the project was approved."


def approval_key(project: Path, dialect: str) -> Path:
    """Return where the store has the approval of a project's hooks in a dialect."""
    return project if dialect == NATIVE else Path(f"{project}#{dialect}")


class TrustError(Exception):
    """An approval could not be given or withdrawn. The message is for the user."""


def approved_by_environment() -> bool:
    """Return whether projects are approved for this process."""
    return os.environ.get(TRUST_VARIABLE) == "1"


def ignored_approval() -> str | None:
    """Return why the variable approves nothing, if its value is neither yes nor no."""
    value = os.environ.get(TRUST_VARIABLE, "")
    if value in ("", "0", "1"):
        return None
    return f"{TRUST_VARIABLE} is `{escape_for_terminal(shorten(value, _MAX_VALUE))}`; only `1` counts."


def has_approval(project: Path) -> bool:
    """Return whether a project is approved, permanently or for this process, as it is now or as it was.

    Approvals that cannot be read are not withdrawn.
    """
    return approved_by_environment() or TrustStore.of(project).approved_hash(project) != (None, None)


def trust_status(project_dir: str | os.PathLike[str], dialect: str = NATIVE) -> TrustStatus:
    """Return the trust state of a project's hooks in a dialect, and what an approval would cover."""
    project = absolute_project(project_dir)
    if dialect != NATIVE:
        files = (each.file for each in dialect_of(dialect).files(project) if each.level is Level.PROJECT)
        return assess_foreign(project, dialect, [found for file in files if (found := read_document(file)) is not None])
    file = settings_file(Level.PROJECT, project)
    return assess_trust(project, read_document(file) if file else None)


def grant_trust(
    project_dir: str | os.PathLike[str], *, expected_fingerprint: str | None = None, dialect: str = NATIVE
) -> TrustStatus:
    """Approve a project's hooks permanently; with ``expected_fingerprint``, only if they still match it."""
    status = trust_status(project_dir, dialect)
    if status.state is TrustState.REFUSED:
        raise TrustError(f"the hooks of this project cannot be approved: {status.problems[0]}")
    if expected_fingerprint not in {None, status.fingerprint}:
        project = escape_for_terminal(str(status.project))
        raise TrustError(f"the hooks of {project} have changed since they were shown; review them again")
    if status.state is TrustState.NOTHING_TO_TRUST:
        return status
    store = TrustStore.of(status.project)
    settings = settings_text(status.statement).encode(errors="backslashreplace")
    files = (read_text(status.project / name, digest) for name, digest in status.parts.items())
    approval = ApprovalRecord(status.parts, text_digest(settings), VERSION)
    texts = [settings, *(text for text in files if text is not None)]
    try:
        store.approve(status.key, status.fingerprint, approval, texts)
    except OSError as error:
        raise TrustError(f"the approval could not be recorded in {store.file}: {error}") from error
    return replace(status, state=TrustState.TRUSTED, approved=NO_APPROVAL, problems=())


def revoke_trust(project_dir: str | os.PathLike[str]) -> bool:
    """Revoke a project's approval. Return whether it had one."""
    project = Path(os.path.realpath(absolute_project(project_dir)))
    store = TrustStore.of(project)
    try:
        forgotten = [store.forget(approval_key(project, dialect)) for dialect in (NATIVE, *DIALECTS)]
    except OSError as error:
        raise TrustError(f"the approval could not be removed from {store.file}: {error}") from error
    return any(forgotten)


def assess_trust(project_dir: Path, settings: Document | Problem | None) -> TrustStatus:
    """Return the trust state of a project whose settings file has already been read."""
    project = Path(os.path.realpath(project_dir))
    return _assessed(replace(_found(project, settings), opened=None if project_dir == project else project_dir))


def assess_foreign(project_dir: Path, dialect: str, settings: Sequence[Document | Problem]) -> TrustStatus:
    """Return the trust state of a project's files of another agent, which have already been read."""
    project = Path(os.path.realpath(project_dir))
    opened = None if project_dir == project else project_dir
    return _assessed(replace(_found_foreign(project, project_dir, dialect, settings), opened=opened, dialect=dialect))


def _assessed(found: TrustStatus) -> TrustStatus:
    """Compare what was found with what was approved."""
    project, key = found.project, found.key
    by_process = None
    if approved_by_environment():
        statement = {} if found.state is TrustState.REFUSED else found.statement
        now = found.fingerprint, ApprovalRecord(found.parts, version=VERSION, statement=statement)
        by_process = _approved_for_process.setdefault(key, now)
    store = TrustStore.of(project)
    by_user, problem = store.approved_hash(key)
    recorded = (by_user, store.approval(key)) if by_user is not None else None
    if (files := found.files) is not None:
        found = replace(found, problems=(problem,) if problem else ())
        for approval, state in (
            (recorded, TrustState.TRUSTED),
            (by_process, TrustState.APPROVED_BY_ENVIRONMENT),
        ):
            if approval and (same := _if_same(found, files, *approval)):
                return replace(same, state=state)
    elif found.state is TrustState.NOTHING_TO_TRUST and by_user == found.fingerprint:
        return found  # the user has approved that the hooks are gone
    last = by_process or recorded  # an agent could have changed it since the process looked at it first
    if last is None or (found.state is TrustState.NOTHING_TO_TRUST and not _had_guards(last[1])):
        return found
    state = TrustState.REFUSED if found.state is TrustState.REFUSED else TrustState.CHANGED
    return replace(found, state=state, approved=last[1])


def _if_same(
    found: TrustStatus, covered: CoveredFiles, fingerprint: str, approved: ApprovalRecord
) -> TrustStatus | None:
    """Return a project as far as it was approved, if that has not changed: data that is new since does not count."""
    files = covered.only_approved(approved.parts)
    digests = {name: file.digest for name, file in files.files.items()}
    if hook_fingerprint(found.statement, digests) != fingerprint:
        return None
    return replace(found, fingerprint=fingerprint, files=files, parts=hook_parts(found.statement, digests))


def _had_guards(approved: ApprovalRecord) -> bool:
    """Return whether approved settings had guards: their own, those of another agent's files, or asked for those."""
    statement = approved.statement
    return statement is None or FOREIGN in statement or bool(guards_of(statement) or dialects_of(statement))


def _found(project: Path, settings: Document | Problem | None) -> TrustStatus:
    """Return what is to be approved, as untrusted, unless there is nothing or it is refused."""
    if settings is None:
        return _nothing(project)
    if isinstance(settings, Problem):
        return TrustStatus(TrustState.REFUSED, project, settings.file, problems=(settings,))
    statement = hook_statement(settings.root.to_value())
    if not statement:
        return replace(_nothing(project), file=settings.file)
    return _covered(project, statement, {project / FOLDER / FILE_NAME: settings})


def _found_foreign(
    project: Path, project_dir: Path, dialect: str, settings: Sequence[Document | Problem]
) -> TrustStatus:
    """Return what is to be approved of another agent's files, as above."""
    contents: dict[str, Any] = {}
    documents: dict[Path, Document] = {}
    for each in settings:
        if isinstance(each, Problem):
            return TrustStatus(TrustState.REFUSED, project, each.file, problems=(each,))
        read = dialect_of(dialect).read_file(each)
        if read.hooks or read.off is not None:
            name = each.file.relative_to(project_dir)
            said = {"hooks": dict(read.hooks), "env": dict(read.variables), "off": read.off}
            contents[name.as_posix()] = {key: value for key, value in said.items() if value}
            documents[project / name] = each
    if not contents:
        own = [each.file for each in dialect_of(dialect).files(project_dir) if each.level is Level.PROJECT]
        return replace(_nothing(project), file=own[-1])
    return _covered(project, {FOREIGN: {dialect: contents}}, documents)


def _covered(project: Path, statement: Mapping[str, Any], documents: Mapping[Path, Document]) -> TrustStatus:
    """Return these settings with the files that their hooks run; refused if somebody else could have written them."""
    settings = next(iter(documents.values()))
    commands = hook_commands(statement)
    known = TrustStatus(TrustState.REFUSED, project, settings.file, statement=statement, commands=commands)
    try:
        for place, settings in documents.items():
            if objection := _link_objection(settings, project, place) or other_writers(settings):
                raise ScriptsError(objection)
        files = CoveredFiles(known.script_texts, project)
    except ScriptsError as error:
        skipped = settings.problem_at(0, f"{error}, so the hook settings in this file are ignored")
        return replace(known, problems=(skipped,))
    digests = {name: file.digest for name, file in files.files.items()}
    return replace(
        known,
        state=TrustState.UNTRUSTED,
        fingerprint=hook_fingerprint(statement, digests),
        files=files,
        parts=hook_parts(statement, digests),
    )


def _nothing(project: Path) -> TrustStatus:
    state, fingerprint = TrustState.NOTHING_TO_TRUST, hook_fingerprint({})
    return TrustStatus(state, project, fingerprint=fingerprint, parts=hook_parts({}, {}))


def _link_objection(settings: Document, project: Path, place: Path) -> str | None:
    real_file = settings.real_file
    if real_file == place:
        return None
    where = "" if real_file.is_relative_to(project) else ", outside the project"
    return f"this is a link to {escape_for_terminal(str(real_file))}{where}"
