"""A spinner that shows which hooks are running."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

from llxprt_hooks.cli.terminal import line, stderr_console
from llxprt_hooks.engine.observer import HookObserver
from llxprt_hooks.text import one_line

if TYPE_CHECKING:
    from rich.status import Status

    from llxprt_hooks.engine.definitions import HookConfig
    from llxprt_hooks.engine.observer import HookStarted
    from llxprt_hooks.engine.results import HookExecutionResult

SPINNER_DELAY = 0.3
"""Seconds before the spinner appears."""


class HookSpinner(HookObserver):
    """An observer that shows the names of running hooks on stderr, if it is a terminal."""

    def __init__(self) -> None:
        self._console = stderr_console()
        self._running: dict[str, HookConfig] = {}
        self._status: Status | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._running.clear()
        self._show()

    def hook_started(self, hook: HookStarted) -> None:
        self._running[hook.execution_id] = hook.hook_config
        if self._console.is_terminal:
            asyncio.get_running_loop().call_later(SPINNER_DELAY, self._show)

    def hook_ended(self, result: HookExecutionResult) -> None:
        del self._running[result.execution_id]
        if self._status is not None:
            self._show()

    def _show(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None
        if self._running:
            self._status = self._console.status(line(self._text()))
            self._status.start()

    def _text(self) -> str:
        longest = max(self._running.values(), key=lambda config: config.timeout)
        names = one_line(", ".join(config.identity for config in self._running.values()))
        return f"waiting for {names} (at most {longest.timeout / 1000:g} s)"
