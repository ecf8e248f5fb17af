"""Checks, grants and revokes the approval of a project's hooks (D-21).

Opening a cloned repository must not run its code. A project's hook settings apply only after the user has approved
exactly these; any change needs approval again.

>>> status = trust_status(".")                                          # doctest: +SKIP
>>> for hook in status.commands: print(hook.event, hook.command)        # doctest: +SKIP
>>> grant_trust(".", expected_fingerprint=status.fingerprint)           # doctest: +SKIP
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks.settings.document import read_document
from llxprt_hooks.settings.levels import FILE_NAME, FOLDER, Level, absolute_project, settings_file
from llxprt_hooks.settings.ownership import other_writers
from llxprt_hooks.settings.problem import Problem
from llxprt_hooks.text import escape_for_terminal
from llxprt_hooks.trust.fingerprint import (
    hook_commands,
    hook_fingerprint,
    hook_parts,
    hook_statement,
)
from llxprt_hooks.trust.scripts import ScriptsError, project_scripts
from llxprt_hooks.trust.store import TrustStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from llxprt_hooks.settings.document import Document
    from llxprt_hooks.trust.fingerprint import HookCommand

TRUST_VARIABLE: Final = "LLXPRT_TRUST_PROJECT_HOOKS"
"""Set to ``1`` to approve the project's hooks for one process."""


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
    scripts: tuple[str, ...] = ()
    """The project's files that the hooks name; their content is approved too."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """The parts covered by the fingerprint, each with its own hash."""
    changed: tuple[str, ...] = ()
    """The differences from the approved state: new, deleted or changed scripts, and the settings file."""
    problems: tuple[Problem, ...] = ()

    @property
    def script_texts(self) -> tuple[str, ...]:
        """Texts in which hooks may name files of the project."""
        return tuple(text for hook in self.commands for text in hook.script_texts)

    @property
    def counts(self) -> bool:
        """Whether the project's settings are applied."""
        return self.state in {TrustState.TRUSTED, TrustState.APPROVED_BY_ENVIRONMENT}


class TrustError(Exception):
    """An approval could not be given or withdrawn. The message is for the user."""


def approved_by_environment() -> bool:
    """Return whether projects are approved for this process."""
    return os.environ.get(TRUST_VARIABLE) == "1"


def trust_status(project_dir: str | os.PathLike[str]) -> TrustStatus:
    """Return the trust state of a project, and what an approval would cover."""
    project = absolute_project(project_dir)
    file = settings_file(Level.PROJECT, project)
    return assess_trust(project, read_document(file) if file else None)


def grant_trust(project_dir: str | os.PathLike[str], *, expected_fingerprint: str | None = None) -> TrustStatus:
    """Approve a project's hooks permanently; with ``expected_fingerprint``, only if they still match it."""
    status = trust_status(project_dir)
    if status.state is TrustState.REFUSED:
        raise TrustError(f"the hooks of this project cannot be approved: {status.problems[0]}")
    if expected_fingerprint not in {None, status.fingerprint}:
        project = escape_for_terminal(str(status.project))
        raise TrustError(f"the hooks of {project} have changed since they were shown; review them again")
    if status.state is TrustState.NOTHING_TO_TRUST:
        return status
    store = TrustStore.of(status.project)
    try:
        store.approve(status.project, status.fingerprint, status.parts)
    except OSError as error:
        raise TrustError(f"the approval could not be recorded in {store.file}: {error}") from error
    return replace(status, state=TrustState.TRUSTED, changed=(), problems=())


def revoke_trust(project_dir: str | os.PathLike[str]) -> bool:
    """Revoke a project's approval. Return whether it had one."""
    project = Path(os.path.realpath(absolute_project(project_dir)))
    store = TrustStore.of(project)
    try:
        return store.forget(project)
    except OSError as error:
        raise TrustError(f"the approval could not be removed from {store.file}: {error}") from error


def assess_trust(project_dir: Path, settings: Document | Problem | None) -> TrustStatus:
    """Return the trust state of a project whose settings file has already been read."""
    project = Path(os.path.realpath(project_dir))
    if settings is None:
        return TrustStatus(TrustState.NOTHING_TO_TRUST, project)
    if isinstance(settings, Problem):
        return TrustStatus(TrustState.REFUSED, project, settings.file, problems=(settings,))
    statement = hook_statement(settings.root.to_value())
    if not statement:
        return TrustStatus(TrustState.NOTHING_TO_TRUST, project, settings.file)
    commands = hook_commands(statement)
    known = TrustStatus(TrustState.REFUSED, project, settings.file, statement=statement, commands=commands)
    try:
        _check_file_is_trustworthy(settings, project)
        scripts = project_scripts(known.script_texts, project)
    except (_RefusedError, ScriptsError) as error:
        skipped = settings.problem_at(0, f"{error}, so the hook settings in this file are ignored")
        return replace(known, problems=(skipped,))
    fingerprint = hook_fingerprint(statement, scripts)
    state, problem = _judge(project, fingerprint)
    parts = hook_parts(statement, scripts)
    return replace(
        known,
        state=state,
        fingerprint=fingerprint,
        scripts=tuple(scripts),
        parts=parts,
        changed=_changed(project, parts) if state is TrustState.CHANGED else (),
        problems=(problem,) if problem else (),
    )


def _judge(project: Path, fingerprint: str) -> tuple[TrustState, Problem | None]:
    approved, problem = TrustStore.of(project).approved_hash(project)
    if approved == fingerprint:
        return TrustState.TRUSTED, problem
    if approved_by_environment():
        return TrustState.APPROVED_BY_ENVIRONMENT, problem
    return TrustState.UNTRUSTED if approved is None else TrustState.CHANGED, problem


def _changed(project: Path, parts: Mapping[str, str]) -> tuple[str, ...]:
    approved = TrustStore.of(project).approved_parts(project)
    if not approved:
        return ()  # an old approval, which did not record parts
    return tuple(sorted(name for name in {*approved, *parts} if approved.get(name) != parts.get(name)))


class _RefusedError(Exception):
    """Someone else may have written the settings. The message is for the user."""


def _check_file_is_trustworthy(settings: Document, project: Path) -> None:
    real_file = settings.real_file
    if real_file != project / FOLDER / FILE_NAME:
        where = "" if real_file.is_relative_to(project) else ", outside the project"
        raise _RefusedError(f"this is a link to {escape_for_terminal(str(real_file))}{where}")
    if objection := other_writers(settings):
        raise _RefusedError(objection)
