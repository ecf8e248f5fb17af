"""How hooks are run, one module per hook type. A new type is a module here and a line in ``EXECUTORS``."""

from __future__ import annotations

from typing import Any

from llxprt_hooks.core.executors.base import EventRun, Executor, HookRun, Runtime
from llxprt_hooks.core.executors.command import CommandExecutor
from llxprt_hooks.core.executors.function import FunctionExecutor
from llxprt_hooks.core.executors.http import HttpExecutor
from llxprt_hooks.core.executors.nats import NatsExecutor
from llxprt_hooks.core.executors.plugin import PluginExecutor
from llxprt_hooks.core.executors.unsupported import UnsupportedExecutor

EXECUTORS: dict[str, Executor[Any]] = {
    "command": CommandExecutor(),
    "function": FunctionExecutor(),
    "http": HttpExecutor(),
    "nats": NatsExecutor(),
    "plugin": PluginExecutor(),
    "unsupported": UnsupportedExecutor(),
}
"""Hook types by their name in settings."""

__all__ = ["EXECUTORS", "EventRun", "Executor", "HookRun", "Runtime"]
