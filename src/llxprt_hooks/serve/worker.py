"""A policy worker: runs the hooks of its own folder for the events of other processes, a bounded number at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks.bus.hops import MOST_HOPS, hop
from llxprt_hooks.engine.executors.base import DEFAULT_MAX_PROCESSES
from llxprt_hooks.engine.results import AggregatedHookResult, HookStageError, build_failure_envelope
from llxprt_hooks.model import HookFormat
from llxprt_hooks.model.payload import has_request_shape, has_response_shape
from llxprt_hooks.serve.metrics import Metrics

if TYPE_CHECKING:
    from llxprt_hooks.config import Config

LONGEST_QUEUE: Final = 1024
"""Events that may wait for others to end. More are refused, so that their agents need not wait for a timeout."""

LARGEST_MESSAGE: Final = 10 * 1024 * 1024

_OWN_FIELDS: Final = ("cwd", "transcript_path", "hook_event_name")
"""Base fields that the worker fills in itself: paths of an agent's machine mean nothing here."""


class PolicyWorker:
    """Answers events, whichever way they come."""

    def __init__(
        self, config: Config, *, most_at_once: int = DEFAULT_MAX_PROCESSES, queue: int = LONGEST_QUEUE
    ) -> None:
        self.config = config
        self.metrics = Metrics()
        self._slots = asyncio.Semaphore(most_at_once)
        self._queue = queue

    async def fire(self, event_name: Any, hook_input: Any, hops: str | None = None) -> AggregatedHookResult:
        """Run the hooks of an event. Whatever is wrong with it becomes a failure envelope."""
        started = time.perf_counter()
        with hop(hops) as number:
            result = await self._fire(event_name, hook_input, number)
        self.metrics.count(event_name, result, time.perf_counter() - started)
        return result

    async def _fire(self, event_name: Any, hook_input: Any, hops: int) -> AggregatedHookResult:
        if hops > MOST_HOPS:
            return _refusal("loop", f"the event has passed {MOST_HOPS} workers already: do their hooks ask each other?")
        if self.metrics.waiting >= self._queue:
            return _refusal("overloaded", f"the most events that may wait are waiting already: {self._queue}")
        self.metrics.waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self.metrics.waiting -= 1
        self.metrics.in_progress += 1
        try:
            system = self.config.get_hook_system()
            if system is None:
                return _refusal("disabled", "hooks are disabled on this worker")
            handler = system.ready_event_handler()
            return await handler.fire_event(event_name, _marked(hook_input), keep_base_fields=True)
        finally:
            self.metrics.in_progress -= 1
            self._slots.release()


def _refusal(stage: str, message: str) -> AggregatedHookResult:
    return build_failure_envelope(HookStageError(stage, message), stage)


def _marked(hook_input: Any) -> Any:
    """Leave out what is the worker's own, and mark model data, which is in hook format where an agent sent it."""
    if not isinstance(hook_input, Mapping):
        return hook_input
    fields = {name: value for name, value in hook_input.items() if name not in _OWN_FIELDS}
    if has_request_shape(fields.get("llm_request")):
        fields["llm_request"] = HookFormat(fields["llm_request"])
    if has_response_shape(fields.get("llm_response")):
        fields["llm_response"] = HookFormat(fields["llm_response"])
    return fields
