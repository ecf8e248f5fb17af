"""The planner: which hooks run for an event, in which order, in parallel or sequentially, and why others do not."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from msgspec import structs

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks._support.text import shorten
from llxprt_hooks.core.engine.plan import Engine, ExecutionPlan
from llxprt_hooks.settings.definitions import HookConfig, HookDefinition, HookScope
from llxprt_hooks.settings.matcher import is_for_all, own_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from llxprt_hooks.core.engine.registry import HookRegistry, HookRegistryEntry
    from llxprt_hooks.events import HookEventName

log = debug_logger("planner")

_MAX_MATCHER = 80
"""A longer matcher is cut where it is only named: its place is shown beside it."""

_REMEMBERED_PLANS = 4096
"""Upper bound for cached plans: a model can produce unlimited tool names."""


class Skip(StrEnum):
    """Why a hook of an event does not run."""

    HOOKS_OFF = "hooks off"
    NOT_APPROVED = "not approved"
    DISABLED = "disabled"
    NOT_MATCHED = "not matched"
    DUPLICATE = "duplicate"
    NO_QUESTION = "no question"


@dataclass(frozen=True, slots=True)
class PlannedHook:
    """A hook that was considered for an event."""

    definition: HookDefinition
    skip: Skip | None
    """None if it runs."""
    why: str
    """The reason, for people."""

    @property
    def runs(self) -> bool:
        return self.skip is None


class HookPlanner:
    """Makes plans and caches them: planning the same event and subject again is a lookup."""

    def __init__(self, registry: HookRegistry, engine: Engine | None = None) -> None:
        self._registry = registry
        self.engine = engine
        """What fires the plans."""
        self._plans: dict[tuple[HookEventName, str | None], ExecutionPlan | None] = {}
        self._revision = registry.revision

    def create_execution_plan(self, event_name: HookEventName, subject: str | None = None) -> ExecutionPlan | None:
        """The plan for an event, or None when no hook is for it.

        ``subject`` is what matchers are matched against: the tool's name, the session's source and the like; None for
        events that have none.
        """
        if self._revision != self._registry.revision or len(self._plans) >= _REMEMBERED_PLANS:
            self._revision, self._plans = self._registry.revision, {}
        plans = self._plans  # another thread may replace it while this one plans; then the plan is not kept
        try:
            return plans[event_name, subject]
        except KeyError:
            plan = plans[event_name, subject] = self._plan(event_name, subject)
            return plan

    def has_fail_closed_hook(self, event_name: HookEventName) -> bool:
        """Whether any hook of an event has ``failClosed``, whatever its matcher."""
        return any(entry.config.blocks_on_failure for entry in self._registry.get_hooks_for_event(event_name))

    def unmatched(self, event_name: HookEventName, subjects: Iterable[str]) -> list[HookDefinition]:
        """The hooks of an event whose matchers match none of these."""
        entries = self._registry.get_hooks_for_event(event_name)
        considered = (each for subject in subjects for each in _considered(entries, subject))
        matched = {id(entry) for entry, skip, _ in considered if skip is not Skip.NOT_MATCHED}
        return [entry.definition for entry in entries if id(entry) not in matched]

    def explain(
        self, event_name: HookEventName, subject: str | None = None, *, hooks_enabled: bool = True
    ) -> list[PlannedHook]:
        """Every hook of an event in order of priority, whether it runs, and why."""
        entries = [entry for entry in self._registry.get_all_hooks() if entry.event_name == event_name]
        if not hooks_enabled:
            return [PlannedHook(entry.definition, Skip.HOOKS_OFF, "hooks are off") for entry in entries]
        considered = list(_considered(entries, subject))
        configs = {id(entry): config for entry, config in _running(considered)}
        return [
            PlannedHook(
                entry.definition if skip else structs.replace(entry.definition, config=configs[id(entry)]),
                skip,
                _why(entry, subject, skip, first),
            )
            for entry, skip, first in considered
        ]

    def _plan(self, event_name: HookEventName, subject: str | None) -> ExecutionPlan | None:
        entries = self._registry.get_hooks_for_event(event_name)
        running = _running(_considered(entries, subject))
        answering = _running(_considered(entries, subject, asked=True))
        if not running and not answering:
            return None
        sequential = any(entry.sequential for entry, _ in running)  # HOOK-109
        plan = ExecutionPlan(event_name, [config for _, config in running], sequential, subject, self.engine)
        if answering:
            hooks = [config for _, config in answering]
            plan.for_question = ExecutionPlan(event_name, hooks, False, subject, self.engine)
        log.debug(
            "%s %s: %s, %s",
            event_name,
            subject or "",
            ", ".join(config.identity for config in plan.hook_configs),
            "sequentially" if plan.sequential else "in parallel",
        )
        return plan


_Considered: TypeAlias = "tuple[HookRegistryEntry, Skip | None, HookRegistryEntry]"
"""A hook, what keeps it from running, and the first hook of its command: the one that runs (HOOK-090)."""


def _considered(
    entries: Iterable[HookRegistryEntry], subject: str | None, *, asked: bool = False
) -> Iterator[_Considered]:
    """The hooks of an event; ``asked``, of the question that a person is asked about it."""
    disabled, not_matched = Skip.DISABLED, Skip.NOT_MATCHED  # looked up once: there may be thousands of hooks
    others = () if subject is None else own_names(subject)  # a guard for `refund` is one for that of any server (D-110)
    running: dict[str, HookRegistryEntry] = {}
    for entry in entries:
        if not entry.enabled:
            yield entry, disabled, entry
        elif entry.config.answers_question is not asked:
            yield entry, Skip.NO_QUESTION, entry
        elif subject is not None and not entry.matches(subject) and not _matches_own(entry, others):
            yield entry, not_matched, entry
        else:
            first = running.setdefault(entry.config.deduplication_key, entry)
            yield entry, None if first is entry else Skip.DUPLICATE, first


def _matches_own(entry: HookRegistryEntry, names: tuple[str, ...]) -> bool:
    """Whether a hook is for a tool of an MCP server under the tool's own name. Other dialects do not know that."""
    return bool(names) and entry.config.foreign is None and any(map(entry.matches, names))


def _running(considered: Iterable[_Considered]) -> list[tuple[HookRegistryEntry, HookConfig]]:
    """The hooks that run, in order, each with what it runs with."""
    copies: dict[int, list[HookRegistryEntry]] = {}
    for entry, skip, first in considered:
        if skip is None or skip is Skip.DUPLICATE:
            copies.setdefault(id(first), []).append(entry)
    return [(entries[0], _strictest([entry.config for entry in entries])) for entries in copies.values()]


def _strictest(copies: list[HookConfig]) -> HookConfig:
    """The hook that runs for all copies: the first one (HOOK-091), but a copy never disables a guard.

    Copies that only observe do not count beside one that does not (D-80). If any copy has ``failClosed``, the hook that
    runs has it too, with the longest timeout of all (D-27). Sentences are for all copies or none (D-151). Copies do not
    affect a managed hook (D-36).
    """
    if len(copies) > 1:
        copies = [copy for copy in copies if not copy.observe] or copies
    if len(copies) == 1 or copies[0].scope is HookScope.MANAGED:
        return copies[0]
    first = structs.replace(copies[0], sentences=all(copy.sentences for copy in copies))
    if not any(copy.fail_closed for copy in copies):
        return first
    return structs.replace(first, fail_closed=True, timeout=max(copy.timeout for copy in copies))


def _why(entry: HookRegistryEntry, subject: str | None, skip: Skip | None, first: HookRegistryEntry) -> str:
    matcher = repr(shorten(entry.matcher or "", _MAX_MATCHER))
    if skip is Skip.DISABLED:
        return "it is disabled"
    if skip is Skip.NO_QUESTION:
        return "it runs only where a person would be asked about the call"
    if skip is Skip.NOT_MATCHED and entry.has_invalid_matcher:
        return f"its matcher {matcher} is not a valid regular expression, so it matches only the same text"
    if skip is Skip.NOT_MATCHED:
        return f"its matcher {matcher} does not match {subject!r}"
    if skip is Skip.DUPLICATE:
        return f"the same command is at {first.definition.where} already, and runs once"
    if subject is None:
        return f"{entry.event_name} ignores matchers"
    if is_for_all(entry.matcher):
        return "it has no matcher that narrows it"
    if entry.definition.matches_all:
        return f"its matcher {matcher} is not valid, so its failClosed group matches everything"
    return f"its matcher {matcher} matches {subject!r}"
