"""A policy worker: runs the hooks of its own folder for the events of other processes, a bounded number at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks.core.engine.results import AggregatedHookResult, HookStageError, build_failure_envelope
from llxprt_hooks.core.executors.base import DEFAULT_MAX_PROCESSES
from llxprt_hooks.core.protocol.headers import MAX_HOPS, hop, read_timeout
from llxprt_hooks.fleet.serve.metrics import Metrics
from llxprt_hooks.model.payload import mark_fields

if TYPE_CHECKING:
    from llxprt_hooks.config import Config

MAX_QUEUE: Final = 1024
"""Events that may wait for others to end. More are refused, so that their agents need not wait for a timeout."""

MAX_WAIT: Final = 0.5
"""Seconds that an event may have to wait, if its sender does not say how long it waits for the answer."""

_SHARE_OF_WAITING: Final = 0.5
"""The part of a sender's time that may go into waiting. The rest is for the hooks: an event that starts when its time
is almost over would keep a slot busy for an answer that comes too late."""

_WEIGHT_OF_LATEST: Final = 0.1
"""Of the latest event, in the mean of how long events run."""

MAX_MESSAGE: Final = 10 * 1024 * 1024

_OWN_FIELDS: Final = ("cwd", "transcript_path", "hook_event_name")
"""Base fields that the worker fills in itself: paths of an agent's machine mean nothing here."""


class PolicyWorker:
    """Answers events, whichever way they come."""

    def __init__(
        self,
        config: Config,
        metrics: Metrics | None = None,
        *,
        most_at_once: int = DEFAULT_MAX_PROCESSES,
        queue: int = MAX_QUEUE,
    ) -> None:
        self.config = config
        self.metrics = metrics or Metrics()
        self._most_at_once = most_at_once
        self._slots = asyncio.Semaphore(most_at_once)
        self._queue = queue
        self._mean_seconds = 0.0
        """How long events have run lately, without the time that they waited."""

    async def fire(
        self, event_name: Any, hook_input: Any, hops: str | None = None, patience: str | None = None
    ) -> AggregatedHookResult:
        """Run the hooks of an event. Whatever is wrong with it becomes a failure envelope.

        ``hops`` and ``patience`` are the values of the headers that ``core.protocol.headers`` defines.
        """
        started = time.perf_counter()
        with hop(hops) as number:
            result = await self._fire(event_name, hook_input, number, read_timeout(patience))
        self.metrics.count(event_name, result, time.perf_counter() - started)
        return result

    async def _fire(self, event_name: Any, hook_input: Any, hops: int, patience: float | None) -> AggregatedHookResult:
        if hops > MAX_HOPS:
            return _refusal("loop", f"the event has passed {MAX_HOPS} workers already: do their hooks ask each other?")
        if self.metrics.waiting >= self._queue:
            return _refusal("overloaded", f"the queue is full: the limit is {self._queue}")
        wait = self._expected_wait()
        if wait > (MAX_WAIT if patience is None else patience * _SHARE_OF_WAITING):
            return _refusal("overloaded", f"the event would have to wait for about {wait:.1f} s")
        if not self._slots.locked():
            await self._slots.acquire()  # at once: a timer would cost more than all else here
        else:
            self.metrics.waiting += 1
            try:
                async with asyncio.timeout(patience):
                    await self._slots.acquire()
            except TimeoutError:
                return _refusal("expired", f"the sender's timeout of {patience:g} s expired while the event was queued")
            finally:
                self.metrics.waiting -= 1
        self.metrics.in_progress += 1
        started = time.perf_counter()
        try:
            system = self.config.get_hook_system()
            if system is None:
                return _refusal("disabled", "hooks are disabled on this worker")
            handler = system.ready_event_handler()
            return await handler.fire_event(event_name, _marked(hook_input), keep_base_fields=True)
        finally:
            self.metrics.in_progress -= 1
            self._slots.release()
            seconds = time.perf_counter() - started
            self._mean_seconds += (seconds - self._mean_seconds) * (_WEIGHT_OF_LATEST if self._mean_seconds else 1.0)

    def _expected_wait(self) -> float:
        """Return for how many seconds one more event would wait; 0 if one can start now, however long others took."""
        if not self._slots.locked():
            return 0.0
        return (self.metrics.waiting + 1) * self._mean_seconds / self._most_at_once


def _refusal(stage: str, message: str) -> AggregatedHookResult:
    return build_failure_envelope(HookStageError(stage, message), stage)


def _marked(hook_input: Any) -> Any:
    """Leave out what is the worker's own, and mark model data, which is in hook format where an agent sent it."""
    if not isinstance(hook_input, Mapping):
        return hook_input
    return mark_fields({name: value for name, value in hook_input.items() if name not in _OWN_FIELDS})
