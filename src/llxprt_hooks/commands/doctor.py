"""Whether hooks work on this machine: which files are read, what each hook's state is, and whether a hook can block.

Errors of ``validate`` are part of it. Nothing of the project is run. Shells check the syntax of scripts (``bash -n``),
servers and workers of hooks that run are tried without an event, and a canary, a hook of the doctor's own, goes through
the engine from payload to decision.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks._support.text import plural
from llxprt_hooks.commands.list import TRUST_WORDS, Inventory, Item, take_inventory
from llxprt_hooks.commands.validate import Diagnostic, Severity, inspect_project
from llxprt_hooks.commands.validate.diagnose import findings
from llxprt_hooks.commands.validate.rules import Rule
from llxprt_hooks.core.engine.results import error_text
from llxprt_hooks.core.executors.base import Probe
from llxprt_hooks.fleet.audit.log import log_file
from llxprt_hooks.fleet.canary import canary_problem
from llxprt_hooks.settings import Level, Problem
from llxprt_hooks.settings.levels import absolute_project, standard_system_file, unused_user_files, user_settings_file
from llxprt_hooks.settings.load import LevelFile, Settings, extension_hook_set
from llxprt_hooks.settings.ownership import folder_writers
from llxprt_hooks.settings.trust.notices import why_off
from llxprt_hooks.settings.trust.status import TrustState
from llxprt_hooks.settings.trust.store import TrustStore

if TYPE_CHECKING:
    from llxprt_hooks.commands.validate.entries import FileHook
    from llxprt_hooks.settings.definitions import HookConfig
    from llxprt_hooks.settings.foreign_files import ForeignFile, ForeignSettings

_BREAKING: Final = (Rule.PROGRAM_NOT_FOUND, Rule.SCRIPT_WRITABLE)
"""Warnings of ``validate`` with which a guard cannot be relied on."""

_OF_PROJECT: Final = {
    TRUST_WORDS[TrustState.UNTRUSTED]: "it is not approved",
    TRUST_WORDS[TrustState.CHANGED]: "it has changed since it was approved",
    TRUST_WORDS[TrustState.REFUSED]: "its settings are refused",
}
"""Why no hook of a project runs, by the state of all of them."""


class Health(StrEnum):
    OK = "ok"
    NOTICE = "notice"
    """Something that the user should know, and that may be intended."""
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Finding:
    health: Health
    what: str
    """A level, a hook, a file."""
    path: str
    state: str
    """What was found, for people."""


@dataclass(frozen=True, slots=True)
class CheckedHook:
    """A hook, and whether what it needs exists."""

    item: Item
    state: str
    runs: bool
    problems: tuple[str, ...]
    """Why it cannot work: a missing script, an interpreter that does not exist."""
    warnings: tuple[str, ...]
    """What is probably wrong, such as a matcher that matches no known tool."""
    off_on_purpose: bool
    """Whether a list of disabled hooks names it, a file turns hooks off, or only managed hooks may run."""
    reached: str = ""
    """How the server or worker that answers it was reached; empty if it was not tried, or failed."""

    @property
    def health(self) -> Health:
        if self.problems and not self.off_on_purpose:
            return Health.BROKEN
        return Health.OK if self.runs and not self.warnings else Health.NOTICE

    def to_dict(self) -> dict[str, Any]:
        about = self.item.to_dict()
        kept = {key: about[key] for key in ("name", "event", "command", "source", "file", "where", "managed")}
        return {**kept, "health": self.health, "state": self.state, "runs": self.runs} | {
            "problems": list(self.problems),
            "warnings": list(self.warnings),
            "reached": self.reached,
        }


@dataclass(frozen=True, slots=True)
class Report:
    project: Path
    levels: list[Finding]
    hooks: list[CheckedHook]
    files: list[Finding]
    canary: Finding
    problems: list[str] = field(default_factory=list)
    """What is wrong in the settings."""
    notices: list[str] = field(default_factory=list)
    configured: int = 0
    """The number of hooks in all files, including those that cannot be used."""
    unread: bool = False
    """Whether the folder has no settings, and hooks were found where they do not apply to it."""

    @property
    def broken(self) -> int:
        """The number of things that do not work."""
        findings = [*self.levels, *self.files, self.canary]
        healths = [*(each.health for each in findings), *(hook.health for hook in self.hooks)]
        return healths.count(Health.BROKEN) + len(self.problems)

    @property
    def running(self) -> int:
        """The number of hooks that run and can work."""
        return sum(hook.runs and not hook.problems for hook in self.hooks)

    @property
    def ok(self) -> bool:
        """Whether nothing is broken, and every hook runs unless it was turned off on purpose."""
        off = sum(hook.off_on_purpose for hook in self.hooks)
        return not self.broken and not self.unread and self.running + off == self.configured

    @property
    def summary(self) -> str:
        count = self.broken
        if count:
            rest = f" {count} {plural(count, 'problem')}. `llxprt-hooks validate` explains problems in settings."
        elif doubtful := sum(bool(hook.warnings) for hook in self.hooks):
            rest = f" {doubtful} with a warning: `llxprt-hooks validate` explains it."
        else:
            rest = " Nothing is broken." * self.ok
        return self._running_words() + rest

    def _running_words(self) -> str:
        if self.running:
            verb = "runs" if self.running == 1 else "run"
            return f"{self.running} of {self.configured} {plural(self.configured, 'hook')} {verb}."
        states = "; ".join(sorted({hook.state for hook in self.hooks if not hook.runs}))
        if states in _OF_PROJECT:
            return f"No hook of this project runs: {_OF_PROJECT[states]}."
        if states:
            return f"No hook runs: {states}."
        empty = not self.configured and not self.broken
        return "No hooks are configured here: no call is checked." if empty else "No hook works."

    def to_dict(self) -> dict[str, Any]:
        """Return the output of ``doctor --json``."""
        return {
            "ok": self.ok,
            "summary": self.summary,
            "configured": self.configured,
            "running": self.running,
            "project": str(self.project),
            "levels": [asdict(level) for level in self.levels],
            "hooks": [hook.to_dict() for hook in self.hooks],
            "files": [asdict(file) for file in self.files],
            "canary": asdict(self.canary),
            "problems": self.problems,
            "notices": self.notices,
        }


async def examine(directory: str) -> Report:
    """Check everything that decides whether the hooks of a project work."""
    inventory = take_inventory(directory)
    settings = inventory.settings
    levels = list(_levels(settings))
    inspection = inspect_project(absolute_project(directory))
    found = list(findings(inspection))
    shown = {each.state for each in levels if each.health is Health.BROKEN}
    places = {(each.file, each.line) for each in (*settings.problems, *inventory.discarded)}
    errors = (each for each, hooks in found if _breaks(each) and not any(hook.can_run for hook in hooks))
    off = why_off(settings) if inventory.items else None
    return Report(
        project=settings.trust.project,
        levels=levels,
        hooks=_hooks(found, inventory, await _probes(inventory)),
        files=[
            _private_file("log", log_file()),
            _private_file("trust store", TrustStore.of(settings.trust.project).file),
        ],
        canary=await _canary(),
        problems=[
            *(problem for problem in inventory.problems if not any(problem.endswith(f": {state}") for state in shown)),
            *dict.fromkeys(
                f"{each.file}:{each.line}:{each.column}: {each.message}"
                for each in errors
                if (each.file, each.line) not in places and each.message not in shown
            ),
        ],
        notices=[*([off] if off else ()), *settings.notices],
        configured=max(len(list(inspection.hooks)), len(inventory.items)),
        unread=bool(settings.misplaced),
    )


def _levels(settings: Settings) -> Iterator[Finding]:
    by_level = {level: [each for each in settings.levels if each.level is level] for level in Level}
    for level, files in by_level.items():
        yield from (_level(each, settings) for each in files)
        if not files:
            path = str(user_settings_file())
            yield Finding(Health.NOTICE, level, path, "not used, because the home directory is inside the project")
    for unused in unused_user_files():
        yield Finding(Health.NOTICE, Level.USER, str(unused), f"not used, because {user_settings_file()} is")
    standard = standard_system_file()
    if standard and standard.exists() and standard not in (each.file for each in settings.levels):
        reason = "not used: it is not managed, and LLXPRT_SYSTEM_SETTINGS_PATH names another file"
        yield Finding(Health.NOTICE, Level.SYSTEM, str(standard), reason)
    for extension in settings.extensions:
        yield Finding(Health.OK, "extension", str(extension.path), f"read: {extension.name}")
    for foreign in settings.foreign:
        yield from (_foreign(each, foreign) for each in foreign.files if each.content is not None)


def _foreign(file: ForeignFile, settings: ForeignSettings) -> Finding:
    """A settings file of another agent."""
    trust, is_project = settings.trust, file.found.level is Level.PROJECT
    health, state = Health.OK, "read"
    if isinstance(file.content, Problem):
        health, state = Health.BROKEN, file.content.message
    elif is_project and trust.state is TrustState.REFUSED:
        health, state = Health.BROKEN, trust.problems[0].message
    elif is_project and trust.state in TRUST_WORDS:
        health, state = Health.OK if trust.counts else Health.NOTICE, f"read, {TRUST_WORDS[trust.state]}"
    return Finding(health, settings.dialect, str(file.found.file), state)


def _level(level: LevelFile, settings: Settings) -> Finding:
    trust = settings.trust
    if isinstance(level.content, Problem):
        health, state = Health.BROKEN, level.content.message
    elif level.content is None:
        health, state = Health.OK, "not there (optional)"
    elif level.level is Level.PROJECT and trust.state is TrustState.REFUSED:
        health, state = Health.BROKEN, trust.problems[0].message
    elif level.level is Level.PROJECT and trust.state in TRUST_WORDS:
        health, state = Health.OK if trust.counts else Health.NOTICE, f"read, {TRUST_WORDS[trust.state]}"
    else:
        health, state = Health.OK, "read, managed" if level.managed else "read"
    return Finding(health, level.level, str(level.file), state)


def _breaks(diagnostic: Diagnostic) -> bool:
    return diagnostic.severity is Severity.ERROR or diagnostic.rule in _BREAKING


async def _probes(inventory: Inventory) -> dict[str, Probe | None]:
    """Try what answers the hooks that run, each address once; a project that is not approved reaches nobody."""
    folder = str(inventory.settings.trust.project)
    running = {each.definition.config.deduplication_key: each.definition.config
               for each in inventory.items if inventory.runs(each)}  # fmt: skip

    async def probe(config: HookConfig) -> Probe | None:
        try:
            return await config.executor.probe(config.spec, folder)
        except ModuleNotFoundError:  # a problem that `validate` finds
            return None
        except Exception as error:  # a packet of a server, for example, that a client cannot read
            return Probe(False, f"trying to reach what answers it failed: {error_text(error)}")

    return dict(zip(running, await asyncio.gather(*map(probe, running.values())), strict=True))


def _hooks(
    found: Iterable[tuple[Diagnostic, tuple[FileHook, ...]]],
    inventory: Inventory,
    probes: Mapping[str, Probe | None],
) -> list[CheckedHook]:
    extensions = {
        each.document.file: extension_hook_set(each).origin for each in inventory.settings.extensions if each.document
    }
    by_hook: dict[tuple[object, ...], dict[Diagnostic, None]] = {}
    for diagnostic, hooks in found:
        for hook in hooks:  # by its place, because hooks of several files may have the same name
            file, group = hook.file.document.file, hook.group
            numbers = group.written.number, hook.entry.number
            place = (extensions.get(file.absolute(), str(file)), group.event.name, *numbers)
            by_hook.setdefault(place, {})[diagnostic] = None
    checked = []
    for item in inventory.items:
        defined = item.definition
        found_in_item = by_hook.get((defined.origin, defined.event_name, defined.group_number, defined.number), {})
        # Somebody turned hooks off, as opposed to nobody having turned them on.
        is_off = bool(item.skipped) or not inventory.hooks_enabled
        turned_off = is_off and item.approved and not inventory.settings.never_enabled
        probe = probes.get(defined.config.deduplication_key) if inventory.runs(item) else None
        unreached = [probe.what] if probe and not probe.reached else []
        warnings = (each for each in found_in_item if each.severity is Severity.WARNING and not _breaks(each))
        checked.append(
            CheckedHook(
                item,
                inventory.state(item),
                inventory.runs(item),
                problems=(*dict.fromkeys(each.message for each in found_in_item if _breaks(each)), *unreached),
                warnings=tuple(dict.fromkeys(each.message for each in warnings)),
                off_on_purpose=not item.enabled or turned_off,
                reached=probe.what if probe and probe.reached else "",
            )
        )
    return checked


def _private_file(what: str, file: Path) -> Finding:
    """Check that a file can be written by the user, and only by the user, whether or not it exists yet."""
    existing = next(path for path in (file, *file.parents) if os.path.lexists(path))
    if not (existing.is_file() if existing == file else existing.is_dir()):
        problem: str | None = f"{existing} is not a {'file' if existing == file else 'folder'}"
    else:
        problem = folder_writers(existing if existing == file else existing / file.name)
    if not problem and not os.access(existing, os.W_OK):
        problem = f"you may not write to {existing}"
    if not problem and existing == file:
        status = file.stat()
        if status.st_uid != os.geteuid():
            problem = "it belongs to another user"
        elif (mode := stat.S_IMODE(status.st_mode)) & 0o077:
            problem = f"others can read it (mode {mode:04o}; fix it with `chmod 600`)"
    state = "private and writable" if existing == file else "does not exist yet, and can be created"
    return Finding(Health.BROKEN if problem else Health.OK, what, str(file), problem or state)


async def _canary() -> Finding:
    problem = await canary_problem()
    works = "a hook was started, got its payload, and blocked with exit code 2"
    return Finding(Health.BROKEN if problem else Health.OK, "canary", "", problem or works)
