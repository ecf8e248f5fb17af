"""How hooks are run, one module per hook type. A new type is a module here and a line in ``EXECUTORS``."""

from __future__ import annotations

from typing import Any

from llxprt_hooks.engine.executors.base import EventRun, Executor, Runtime
from llxprt_hooks.engine.executors.command import CommandExecutor
from llxprt_hooks.engine.executors.function import FunctionExecutor
from llxprt_hooks.engine.executors.http import HttpExecutor
from llxprt_hooks.engine.executors.nats import NatsExecutor
from llxprt_hooks.engine.executors.plugin import PluginExecutor

EXECUTORS: dict[str, Executor[Any]] = {
    "command": CommandExecutor(),
    "function": FunctionExecutor(),
    "http": HttpExecutor(),
    "nats": NatsExecutor(),
    "plugin": PluginExecutor(),
}
"""Hook types by their name in settings."""


def settings_executors() -> dict[str, Executor[Any]]:
    """The hook types that settings may name."""
    return {name: executor for name, executor in EXECUTORS.items() if executor.fields is not None}


def settings_executor(type_name: object) -> Executor[Any] | None:
    """The executor of a ``type`` in settings; None if there is no such type."""
    executor = EXECUTORS.get(type_name) if isinstance(type_name, str) else None
    return executor if executor is not None and executor.fields is not None else None


__all__ = ["EXECUTORS", "EventRun", "Executor", "Runtime", "settings_executor", "settings_executors"]
