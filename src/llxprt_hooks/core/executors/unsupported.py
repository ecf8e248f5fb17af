"""Hooks of a type that only another agent can run: they are listed, and fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from llxprt_hooks.core.executors.base import Executor

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.results import HookExecutionResult
    from llxprt_hooks.core.executors.base import HookRun


class UnsupportedExecutor(Executor[str]):
    """Hooks that only a dialect creates, because they need something of their product. The spec describes them."""

    fields: ClassVar[None] = None
    unsupported = "hooks of its type run only in the product that they were written for"

    def read(self, fields: Mapping[str, Any]) -> str:
        raise NotImplementedError  # pragma: no cover - only dialects create such hooks

    def describe(self, spec: str) -> str:
        return spec

    async def run(self, spec: str, run: HookRun) -> HookExecutionResult:
        return run.failed(f"cannot run here: {self.unsupported}")
