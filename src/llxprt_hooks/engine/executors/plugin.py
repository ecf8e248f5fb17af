"""Hooks of type ``plugin``: accepted in settings, and never run (HOOK-195)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from llxprt_hooks.engine.executors.base import Executor

if TYPE_CHECKING:
    from llxprt_hooks.engine.executors.base import EventRun
    from llxprt_hooks.protocol.exit_codes import HookVerdict


class PluginExecutor(Executor[None]):
    """Hooks that fail, because nothing here can run them."""

    unsupported = "hooks of type `plugin` are not supported"

    def read(self, fields: Mapping[str, Any]) -> None:
        return None

    def describe(self, spec: None) -> str:
        return "plugin"

    def key(self, spec: None) -> str:
        return ""

    async def run(self, spec: None, event_run: EventRun, *, timeout_ms: float) -> HookVerdict:
        raise NotImplementedError(self.unsupported)
