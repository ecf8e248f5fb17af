"""The hook system: owns the parts of the engine, wires them together, and initializes them when first needed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from llxprt_hooks._support.logger import apply_debug_variable, debug_logger
from llxprt_hooks.core.engine.aggregator import HookAggregator
from llxprt_hooks.core.engine.event_handler import HookEventHandler
from llxprt_hooks.core.engine.plan import EventConfig, ExecutionPlan
from llxprt_hooks.core.engine.planner import HookPlanner
from llxprt_hooks.core.engine.registry import HookRegistry, HookRegistryEntry, RegistryConfig
from llxprt_hooks.core.engine.runner import HookRunner
from llxprt_hooks.process import ForkSafeLock
from llxprt_hooks.process.ahead import ahead
from llxprt_hooks.process.warm import zygotes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from llxprt_hooks.core.calls.approval import Approver
    from llxprt_hooks.core.engine.bus_connection import BusConnection
    from llxprt_hooks.core.engine.messages import MessageBus
    from llxprt_hooks.core.engine.observer import HookObserver
    from llxprt_hooks.events import HookEventName
    from llxprt_hooks.model import TranslatorChoice
    from llxprt_hooks.settings.definitions import HookDefinition, HookScope


log = debug_logger("system")

_NO_BUS = "the message bus cannot be used, so hooks run by direct call only: %s"  # DELTA-HBUS-002


class HookSystemNotInitializedError(RuntimeError):
    """The hook system was used before ``initialize``."""

    def __init__(self) -> None:
        super().__init__("the hook system is not initialized: await `initialize` before using it")


class CallerConfig(RegistryConfig, EventConfig, Protocol):
    """What the engine and its callers ask of a configuration."""

    enable_hooks: bool
    message_bus: MessageBus | None
    translator: TranslatorChoice
    observer: HookObserver | None
    output_limit: int
    max_processes: int
    approver: Approver | None
    """Who decides about a call if a hook that acts asks."""
    approval_mode: str
    """Which calls the program runs without asking, for hooks of dialects that are told."""
    max_continuations: int
    """How many turns in a row AfterAgent hooks can make the agent continue."""

    @property
    def warm(self) -> bool:
        """Whether waiting interpreters may run Python scripts."""

    def inherited_environment(self, scope: HookScope) -> Mapping[str, str]:
        """What hooks of a scope inherit of this process's environment; the same object while it is unchanged."""

    def get_hook_system(self) -> HookSystem | None:
        """The hook system, if hooks are enabled."""


@dataclass(frozen=True, slots=True)
class HookSystemStatus:
    """Whether the system is initialized and how many hooks it knows."""

    initialized: bool
    total_hooks: int


class HookSystem:
    """One per configuration, shared by all events."""

    def __init__(self, config: CallerConfig) -> None:
        apply_debug_variable()
        self._config = config
        self._lock = ForkSafeLock()
        self.initialized = False
        self._registry = HookRegistry(config)
        self._planner = HookPlanner(self._registry)
        self._runner = HookRunner(
            working_dir=lambda: config.working_dir,
            output_limit=config.output_limit,
            max_processes=config.max_processes,
            observer=config.observer,
            inherited=config.inherited_environment,
            warm=lambda: config.warm,
            approval_mode=lambda: config.approval_mode,
        )
        self._event_handler = HookEventHandler(
            config,
            self._planner,
            self._runner,
            HookAggregator(config.translator),
            logger=debug_logger("handler"),
            translator=config.translator,
            observer=config.observer,
            prepare=self._initialize,
        )
        self._connecting = self._connect_soon(config.message_bus)  # DELTA-HSYS-001

    async def initialize(self) -> None:
        """Read and validate the hooks; the second and later calls do nothing (HOOK-004).

        A message bus of the configuration that subscribes asynchronously has done so when this returns.
        """
        self._initialize()
        if self._connecting is not None:
            await asyncio.wait([self._connecting])

    def get_registry(self) -> HookRegistry:
        self._require_initialized()
        return self._registry

    def get_event_handler(self) -> HookEventHandler:
        self._require_initialized()
        return self._event_handler

    def plan(self, event_name: HookEventName, subject: str | None = None) -> ExecutionPlan | None:
        """The hooks that run for an event; None if there are none. Initializes the system on first use.

        ``subject`` is what matchers are compared with: a tool's name, a session's source and the like. Planning the
        same event and subject again is a dictionary lookup.
        """
        if not self.initialized:
            self._initialize()
        return self._planner.create_execution_plan(event_name, subject)

    def unmatched(self, event_name: HookEventName, subjects: Iterable[str]) -> list[HookDefinition]:
        """The hooks of an event whose matchers match none of these. Initializes the system on first use."""
        self._initialize()
        return self._planner.unmatched(event_name, subjects)

    def dialects(self) -> frozenset[str]:
        """The languages that the hooks speak. Initializes the system on first use."""
        self._initialize()
        return frozenset(entry.config.dialect for entry in self._registry.get_all_hooks())

    def ready_event_handler(self) -> HookEventHandler:
        """Return the event handler; initialize the system first if needed."""
        self._initialize()
        return self._event_handler

    def get_status(self) -> HookSystemStatus:
        count = len(self._registry.get_all_hooks()) if self.initialized else 0
        return HookSystemStatus(initialized=self.initialized, total_hooks=count)

    def get_all_hooks(self) -> list[HookRegistryEntry]:
        """Every registered hook, enabled or not."""
        return self.get_registry().get_all_hooks()

    def set_hook_enabled(self, name: str, enabled: bool) -> bool:
        """Switch hooks on or off by name, or by command where they have none; false if there is none.

        Applies to all hooks with that name, in this process, until the settings are read again.
        """
        return self.get_registry().set_hook_enabled(name, enabled)

    async def connect(self, bus: MessageBus) -> None:
        """Answer the hook requests on a message bus, from now until ``disconnect`` or ``dispose``."""
        await self._event_handler.connect(bus)

    async def disconnect(self) -> None:
        """Unsubscribe from every message bus. Direct calls still work."""
        await self._event_handler.disconnect()

    def add(self, definition: HookDefinition) -> None:
        """Register a hook of the configuration that was added after the system was created."""
        with self._lock:
            if self.initialized:
                self._registry.add(definition)

    def reload(self, change: Callable[[], None]) -> None:
        """Change the configuration, and read the hooks again. Events that have started finish with the old hooks."""
        with self._lock:
            was_warm = self._config.warm
            change()
            if was_warm and not self._config.warm:
                zygotes.close()
                ahead.close()
            if not self.initialized:
                return
            registry = HookRegistry(self._config)
            registry.initialize()
            self._registry, self._planner = registry, HookPlanner(registry)
            self._event_handler.use_planner(self._planner)
            self._prepare()

    def dispose(self) -> None:
        """Unsubscribe from every message bus, without waiting. Direct calls still work."""
        self._event_handler.dispose()

    def _connect_soon(self, bus: MessageBus | None) -> asyncio.Task[None] | None:
        """Subscribe to the configured bus: now, or where that takes awaiting, in a task, which is returned."""
        try:
            connection = None if bus is None else self._event_handler.attach(bus)
            if connection is not None and connection.is_opening:
                return asyncio.get_running_loop().create_task(self._opened(connection))
        except Exception as error:
            log.warning(_NO_BUS, error, exc_info=True)
        return None

    async def _opened(self, connection: BusConnection) -> None:
        try:
            await self._event_handler.opened(connection)
        except Exception as error:
            log.warning(_NO_BUS, error, exc_info=True)

    def _initialize(self) -> None:
        if self.initialized:
            return
        with self._lock:
            if not self.initialized:  # another thread may have done it meanwhile (HOOK-003)
                self._registry.initialize()
                self.initialized = True
                self._prepare()

    def _prepare(self) -> None:
        """Start the first processes of hooks that are started ahead."""
        found = [each for each in self._registry.get_all_hooks() if each.enabled and each.config.warm]
        hooks, config = [(each.event_name, each.config) for each in found], self._config
        if not hooks or not config.warm:
            return
        base = {"session_id": config.session_id, "transcript_path": config.transcript_path, "cwd": config.working_dir}
        self._runner.prepare(hooks, base)

    def _require_initialized(self) -> None:
        if not self.initialized:
            raise HookSystemNotInitializedError
