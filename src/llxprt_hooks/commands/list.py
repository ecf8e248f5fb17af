"""The configured hooks: the source and state of each, and whether it may run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from llxprt_hooks._support.logger import without_warnings
from llxprt_hooks.config import Config
from llxprt_hooks.core.engine.registry import HookRegistry
from llxprt_hooks.settings import Level, Problem
from llxprt_hooks.settings.definitions import HookDefinition, HookScope
from llxprt_hooks.settings.load import Settings, skipped_hooks, unapproved_hooks
from llxprt_hooks.settings.trust.notices import why_off
from llxprt_hooks.settings.trust.status import TrustState

if TYPE_CHECKING:
    from llxprt_hooks.events import HookEventName

TRUST_WORDS: Mapping[TrustState, str] = {
    TrustState.TRUSTED: "approved",
    TrustState.APPROVED_BY_ENVIRONMENT: "approved for this process",
    TrustState.UNTRUSTED: "not approved",
    TrustState.CHANGED: "changed since approved",
    TrustState.REFUSED: "refused",
}
"""The approval of a project's hooks; those of other levels need no approval."""


@dataclass(frozen=True, slots=True)
class Item:
    definition: HookDefinition
    source: str
    """project, user, system, managed, or the extension."""
    enabled: bool
    """Whether it is not in a list of disabled hooks."""
    trust: TrustState | None = None
    """The trust state of the project the hook belongs to; None for hooks of other levels."""
    skipped: str = ""
    """Why it does not run although managed hooks do."""

    @property
    def managed(self) -> bool:
        """Whether the administrator configured it, so that nobody else can switch it off."""
        return self.definition.config.scope is HookScope.MANAGED

    @property
    def name(self) -> str:
        """The name for ``enable`` and ``disable``."""
        return self.definition.config.identity

    @property
    def unusable(self) -> str:
        """Why it never runs, whatever the tool; empty if it may."""
        if self.definition.has_invalid_matcher:
            return "its matcher is not a valid regular expression"
        return self.definition.config.executor.unsupported

    @property
    def approved(self) -> bool:
        """Whether the user has approved the project's hooks; always true for other levels."""
        return self.trust in (None, TrustState.TRUSTED, TrustState.APPROVED_BY_ENVIRONMENT)

    def to_dict(self) -> dict[str, Any]:
        config = self.definition.config
        return {
            "name": self.name,
            "command": config.command,
            "type": str(config.type),
            "dialect": config.dialect,
            "description": config.description,
            "event": self.definition.event_name.value,
            "matcher": self.definition.matcher,
            "sequential": self.definition.sequential,
            "timeout_ms": config.timeout,
            "fail_closed": config.fail_closed,
            "mode": config.mode,
            "stream": config.stream,
            "warm": config.warm,
            "source": self.source,
            "file": self.definition.origin,
            "where": self.definition.where,
            "managed": self.managed,
            "enabled": self.enabled,
            "approved": self.approved,
        }


@dataclass(frozen=True, slots=True)
class Inventory:
    """All hooks that apply to a project, including those that may not run."""

    settings: Settings
    hooks_enabled: bool
    items: list[Item]
    discarded: list[Problem]
    """What is wrong with hooks that cannot be used."""

    @property
    def problems(self) -> list[str]:
        """Everything that is wrong with the settings."""
        return [*map(str, self.settings.problems), *map(str, self.discarded)]

    @property
    def warnings(self) -> list[str]:
        """Everything that is wrong, and what it means for the hooks."""
        off = why_off(self.settings) if self.items and not self.settings.never_enabled else None
        return [*([off] if off else ()), *map(str, self.discarded), *self.settings.warnings]

    def for_event(self, event_name: HookEventName) -> list[Item]:
        return [item for item in self.items if item.definition.event_name == event_name]

    def runs(self, item: Item) -> bool:
        """Return whether a hook runs when its matcher matches."""
        return self.hooks_enabled and item.enabled and item.approved and not item.skipped and not item.unusable

    def state(self, item: Item) -> str:
        """Return ``enabled``, and whether the hook only observes; or why it does not run."""
        obstacles = ["disabled"] * (not item.enabled)
        if item.trust and not item.approved:
            obstacles.append(TRUST_WORDS[item.trust])
        obstacles += filter(None, (item.skipped, item.unusable))
        if not obstacles and not self.hooks_enabled:
            return "hooks are off"
        usual = "enabled, only observes" if item.definition.config.observe else "enabled"
        return ", ".join(obstacles) or usual

    def to_dict(self) -> dict[str, Any]:
        """Return the output of ``list --json``."""
        return {
            "enabled": self.hooks_enabled,
            "profile": self.settings.profile,
            "trust": self.settings.trust.state.value,
            "hooks": [{**item.to_dict(), "runs": self.runs(item)} for item in self.items],
            "notices": list(self.settings.notices),
            "problems": self.problems,
        }


def take_inventory(directory: str) -> Inventory:
    """Read the settings and list their hooks. Runs nothing."""
    with without_warnings():
        config = Config.load(directory)
        registry = HookRegistry(config)
        registry.initialize()
    settings = loaded_settings(config)
    unapproved, discarded = unapproved_hooks(settings)
    items = [
        *(_item(each, settings, each.config.identity not in settings.disabled_if_approved) for each in unapproved),
        *(_item(entry.definition, settings, entry.enabled) for entry in registry.get_all_hooks()),
        *(
            replace(_item(each, settings, each.config.identity not in settings.disabled), skipped=why)
            for each, why in skipped_hooks(settings)
        ),
    ]
    return Inventory(settings, config.enable_hooks, items, [*discarded, *registry.problems])


def loaded_settings(config: Config) -> Settings:
    """Return the settings of a configuration that was loaded from files."""
    if config.settings is None:
        raise AssertionError("a loaded configuration has settings")
    return config.settings


def _item(definition: HookDefinition, settings: Settings, enabled: bool) -> Item:
    if definition.config.scope is HookScope.MANAGED:
        return Item(definition, HookScope.MANAGED, enabled)
    levels = {str(each.file): each.level for each in settings.levels}
    levels |= {str(each.found.file): each.found.level for foreign in settings.foreign for each in foreign.files}
    level = levels.get(definition.origin)
    trust = settings.trust_of(definition.origin).state if level is Level.PROJECT else None
    return Item(definition, level or definition.origin, enabled, trust)
