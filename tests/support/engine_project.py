"""A project with configurations and event handlers for its hooks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, overload

from llxprt_hooks import Config, HookEventHandler, HookSystem, MessageBus
from llxprt_hooks.core.engine.aggregator import HookAggregator
from llxprt_hooks.core.engine.planner import HookPlanner
from llxprt_hooks.core.engine.registry import HookRegistry
from llxprt_hooks.core.engine.runner import HookRunner
from tests.support.project import Project, hooks_of

Ready = Callable[[Config], Awaitable[HookEventHandler]]
"""The event handler of a configuration, initialized."""

Texts = Callable[[], list[str]]
"""What was logged so far."""

ConfigT = TypeVar("ConfigT", bound=Config)


class EngineProject(Project):
    """A project whose hooks are configured by a program."""

    def payload(self, name: str = "hook") -> dict[str, Any]:
        """What a hook read from its stdin when it was last run."""
        return self.payloads(name)[-1]

    def runs(self, name: str = "hook") -> int:
        """How often a hook was run."""
        return len(self.payloads(name))

    async def started(self, name: str = "endless") -> list[int]:
        """Wait until an endless hook runs; the ids of its processes."""
        return await asyncio.to_thread(self.pids, name)

    def system(self, events: Mapping[str, Any], **options: Any) -> HookSystem:
        """The hook system of an enabled configuration."""
        return system_of(self.config(events, **options))

    @overload
    def config(self, events: Mapping[str, Any], **options: Any) -> Config: ...
    @overload
    def config(self, events: Mapping[str, Any], kind: type[ConfigT], **options: Any) -> ConfigT: ...
    def config(self, events: Mapping[str, Any], kind: type[Config] = Config, **options: Any) -> Config:
        """An enabled configuration."""
        given = {"session_id": "s1", "working_dir": self.root, "enable_hooks": True, **options}
        return kind(hooks=hooks_of(events), **given)

    def handler(
        self,
        config: Config,
        *,
        planner: type[HookPlanner] = HookPlanner,
        runner: type[HookRunner] = HookRunner,
        aggregator: type[HookAggregator] = HookAggregator,
        message_bus: MessageBus | None = None,
        **options: Any,
    ) -> HookEventHandler:
        """An event handler from real parts, or from subclasses of them."""
        registry = HookRegistry(config)
        registry.initialize()
        handler = HookEventHandler(config, planner(registry), runner(), aggregator(), **options)
        if message_bus is not None:
            handler.attach(message_bus)
        return handler


def system_of(config: Config) -> HookSystem:
    """The hook system of a configuration that has hooks enabled."""
    system = config.get_hook_system()
    assert system is not None
    return system
