"""The registry: every usable hook of the configuration, validated once, in order of priority."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

import msgspec

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks._support.text import escape_for_terminal
from llxprt_hooks.settings.definitions import HookDefinition, HookScope, HookSet, read_definitions
from llxprt_hooks.settings.hook_fields import FULL
from llxprt_hooks.settings.matcher import InvalidMatcher, Matches

if TYPE_CHECKING:
    from llxprt_hooks.events import HookEventName
    from llxprt_hooks.settings.definitions import ConfigSource, HookConfig
    from llxprt_hooks.settings.problem import Problem

log = debug_logger("registry")


class HookRegistryNotInitializedError(RuntimeError):
    """The registry was asked for hooks before ``initialize``."""

    def __init__(self) -> None:
        super().__init__("the hook registry is not initialized: call `initialize` before asking it for hooks")


class RegistryConfig(Protocol):
    """What the registry asks of a configuration."""

    @property
    def hook_sets(self) -> Sequence[HookSet]:
        """The ``hooks`` objects of settings and active extensions, as written."""

    @property
    def disabled_hooks(self) -> Sequence[str]:
        """Names, or commands of hooks without a name, that are switched off."""

    @property
    def function_hooks(self) -> Sequence[HookDefinition]:
        """Hooks that the program registered. They run after all others."""

    @property
    def profile(self) -> str:
        """Whether hooks act: ``full``, or ``standard``."""


class HookRegistryEntry(msgspec.Struct):
    """One registered hook. Only ``enabled`` ever changes."""

    definition: HookDefinition
    enabled: bool
    _matches: Matches | None = None

    def matches(self, subject: str) -> bool:
        """Whether the hook is for a tool, a source and the like. Its matcher is compiled when it is first needed."""
        matches = self._matches
        if matches is None:
            matcher = None if self.definition.matches_all else self.definition.matcher
            matches = self._matches = self.definition.matching(self.definition.event_name, matcher)
            if isinstance(matches, InvalidMatcher) and not self.definition.path:  # its dialect has reported it
                self._warn_of_invalid_matcher()
        return matches(subject)

    @property
    def has_invalid_matcher(self) -> bool:
        """Whether its matcher is not a valid regular expression, as far as that is known: after ``matches``."""
        return isinstance(self._matches, InvalidMatcher)

    @property
    def config(self) -> HookConfig:
        return self.definition.config

    @property
    def event_name(self) -> HookEventName:
        return self.definition.event_name

    @property
    def source(self) -> ConfigSource:
        return self.definition.source

    @property
    def matcher(self) -> str | None:
        return self.definition.matcher

    @property
    def sequential(self) -> bool:
        return self.definition.sequential

    @property
    def managed(self) -> bool:
        """Whether nobody but the administrator can switch it."""
        return self.config.scope is HookScope.MANAGED

    @property
    def name(self) -> str:
        """The name that ``enable``, ``disable`` and lists use."""
        return self.config.identity

    def _warn_of_invalid_matcher(self) -> None:
        definition = self.definition
        place = ": ".join(filter(None, (definition.origin, definition.where)))
        log.warning(
            "%s",
            escape_for_terminal(
                f"{place}: `matcher` {definition.matcher!r} is not a valid regular expression, so it is compared as "
                f"plain text: hook `{self.name}` will match almost no tool, so it will not block anything"
            ),
        )


class HookRegistry:
    """Holds the hooks of a configuration."""

    def __init__(self, config: RegistryConfig) -> None:
        self._config = config
        self._entries: list[HookRegistryEntry] | None = None
        self._by_event: dict[HookEventName, list[HookRegistryEntry]] = {}
        self.problems: list[Problem] = []
        self.revision = 0
        """Incremented on every change; used to invalidate caches."""

    def initialize(self) -> None:
        """Read and validate the configuration, once; what cannot be used is discarded with a warning (HOOK-191)."""
        if self._entries is not None:
            return
        definitions: list[HookDefinition] = []
        problems: list[Problem] = []
        disabled = frozenset(self._config.disabled_hooks)
        off: list[frozenset[str]] = []
        managed: list[HookSet] = []
        for hook_set in sorted(self._config.hook_sets, key=lambda hook_set: hook_set.source.priority):
            read, found = read_definitions(hook_set)
            definitions += map(_acting, read) if hook_set.acts else read
            off += [disabled | frozenset(hook_set.disabled)] * len(read)
            if hook_set.scope is HookScope.MANAGED:
                managed.append(hook_set)
            problems += found
        definitions += self._config.function_hooks
        off += [disabled] * len(self._config.function_hooks)
        if self._config.profile == FULL:
            definitions = list(map(_acting, definitions))
        entries = [
            HookRegistryEntry(definition, not names or definition.config.identity not in names)
            for definition, names in zip(definitions, off, strict=True)
        ]
        for entry in entries if managed else ():
            if entry.managed:  # only the administrator can disable it (D-36)
                entry.enabled = all(entry.name not in hook_set.disabled for hook_set in managed)
        by_event: dict[HookEventName, list[HookRegistryEntry]] = {}
        for event_name, event_entries in groupby(entries, key=attrgetter("definition.event_name")):
            by_event.setdefault(event_name, []).extend(event_entries)
        for problem in problems:
            log.warning("%s", problem)
        self.problems, self._by_event, self._entries = problems, by_event, entries
        log.debug("%d hooks registered, %d problems", len(entries), len(problems))

    def add(self, definition: HookDefinition) -> None:
        """Register one more hook, which runs after all others; does nothing if it is registered already."""
        entries = self._initialized()
        if any(entry.config.spec is definition.config.spec for entry in entries):
            return
        own = _acting(definition) if self._config.profile == FULL else definition
        entry = HookRegistryEntry(own, enabled=own.config.identity not in self._config.disabled_hooks)
        event = definition.event_name
        # New lists: another thread may be reading the old ones.
        self._entries, self._by_event = (
            [*entries, entry],
            {**self._by_event, event: [*self._by_event.get(event, ()), entry]},
        )
        self.revision += 1

    def changed(self, change: Callable[[HookRegistryEntry], HookRegistryEntry | None]) -> HookRegistry:
        """Return a registry of the same hooks, each as a function changes or drops it. This one stays as it is."""
        registry = HookRegistry(self._config)
        registry._entries = [entry for each in self._initialized() if (entry := change(each)) is not None]
        for entry in registry._entries:
            registry._by_event.setdefault(entry.event_name, []).append(entry)
        registry.problems = self.problems
        return registry

    def get_hooks_for_event(self, event_name: HookEventName) -> list[HookRegistryEntry]:
        """The enabled hooks of an event, highest priority first."""
        self._initialized()
        return [entry for entry in self._by_event.get(event_name, ()) if entry.enabled]

    def get_all_hooks(self) -> list[HookRegistryEntry]:
        """All hooks, enabled or not, highest priority first."""
        return list(self._initialized())

    def set_hook_enabled(self, name: str, enabled: bool) -> bool:
        """Switch all hooks of that name, or with that command where they have no name; false if there is none.

        Managed hooks are not switched.
        """
        named = [entry for entry in self._initialized() if entry.name == name and not entry.managed]
        for entry in named:
            entry.enabled = enabled
        if named:
            self.revision += 1
        else:
            log.warning("no hook named %r can be enabled or disabled here; nothing was changed", name)
        return bool(named)

    def _initialized(self) -> list[HookRegistryEntry]:
        if self._entries is None:
            raise HookRegistryNotInitializedError
        return self._entries


def _acting(definition: HookDefinition) -> HookDefinition:
    """Return a hook as it is under the profile ``full`` (D-46)."""
    return msgspec.structs.replace(definition, config=msgspec.structs.replace(definition.config, acts=True))
