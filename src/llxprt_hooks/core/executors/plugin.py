"""Hooks of type ``plugin``: accepted in settings, and never run (HOOK-195)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from llxprt_hooks.core.executors.base import Executor, HookRun
from llxprt_hooks.settings.jsonc import Kind
from llxprt_hooks.settings.shape import Field, Scalar

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.results import HookExecutionResult


class PluginExecutor(Executor[str]):
    """Hooks that fail, because nothing here can run them. The spec is the ``command``, which may be empty."""

    fields: ClassVar[Mapping[str, Field]] = {
        "command": Field(
            Scalar(Kind.STRING, is_command_line=True), "Not run: hooks of this type are not supported.", nullable=True
        )
    }
    described = ("command",)
    unsupported = "hooks of type `plugin` are not supported"

    def read(self, fields: Mapping[str, Any]) -> str:
        return fields["command"] or ""

    def describe(self, spec: str) -> str:
        return spec or "plugin"

    def key(self, spec: str) -> str:
        return spec

    async def run(self, spec: str, run: HookRun) -> HookExecutionResult:
        raise NotImplementedError(self.unsupported)
