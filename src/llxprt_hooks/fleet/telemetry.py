"""Spans and metrics of hooks through OpenTelemetry.

    from llxprt_hooks import Hooks
    from llxprt_hooks.fleet.telemetry import HookTelemetry

    hooks = Hooks.load(".", observer=HookTelemetry())

Each event is a span, a child of the span that is current where it fires, and each of its hooks is a child of that. They
go to whatever the program's own SDK exports to, and nowhere if the program configures none. Payloads, arguments and
reasons are never part of them. Needs the extra ``otel``.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import llxprt_hooks
from llxprt_hooks._support.histogram import SECONDS
from llxprt_hooks._support.text import from_extra
from llxprt_hooks.core.engine.observer import HookObserver

with from_extra("otel", "telemetry"):
    from opentelemetry import metrics, trace
    from opentelemetry.trace import Status, StatusCode

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.observer import EventEnded, EventStarted
    from llxprt_hooks.core.engine.results import HookExecutionResult

# The conventions for spans of guardrails are not settled, so every name is here.
SCOPE: Final = "llxprt_hooks"
EVENT_SPAN: Final = "hooks {event}"
HOOK_SPAN: Final = "hook {hook}"
EVENTS: Final = "llxprt.hooks.events"
EVENT_DURATION: Final = "llxprt.hooks.event.duration"
EXECUTIONS: Final = "llxprt.hooks.executions"
HOOK_DURATION: Final = "llxprt.hooks.hook.duration"
EVENT: Final = "llxprt.hooks.event"
OUTCOME: Final = "llxprt.hooks.outcome"
DECIDED_BY: Final = "llxprt.hooks.decided_by"
HOOK: Final = "llxprt.hooks.hook"
TYPE: Final = "llxprt.hooks.type"
DIALECT: Final = "llxprt.hooks.dialect"
EXIT_CODE: Final = "llxprt.hooks.exit_code"
OBSERVE: Final = "llxprt.hooks.observe"
SESSION: Final = "session.id"
TOOL: Final = "gen_ai.tool.name"
CALL: Final = "gen_ai.tool.call.id"

MAX_OPEN: Final = 1_000
"""Events whose end is awaited: an event whose caller is cancelled reports none."""


class HookTelemetry(HookObserver):
    """An observer that reports events and hooks to the given providers, or else to the program's global ones."""

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
    ) -> None:
        self._tracer = trace.get_tracer(SCOPE, llxprt_hooks.__version__, tracer_provider)
        meter = metrics.get_meter(SCOPE, llxprt_hooks.__version__, meter_provider)
        self._events = meter.create_counter(EVENTS, "{event}", "Events by outcome")
        self._event_duration = meter.create_histogram(
            EVENT_DURATION, "s", "How long the hooks of an event took", explicit_bucket_boundaries_advisory=SECONDS
        )
        self._executions = meter.create_counter(EXECUTIONS, "{execution}", "Runs of hooks by outcome")
        self._hook_duration = meter.create_histogram(
            HOOK_DURATION, "s", "How long a hook took", explicit_bucket_boundaries_advisory=SECONDS
        )
        self._open: OrderedDict[str, trace.Span] = OrderedDict()

    def event_started(self, event: EventStarted) -> None:
        payload = event.payload
        known = {SESSION: payload.get("session_id"), TOOL: payload.get("tool_name"), CALL: payload.get("tool_use_id")}
        attributes = {EVENT: event.event_name.value, **{name: str(value) for name, value in known.items() if value}}
        self._open[event.event_id] = self._tracer.start_span(
            EVENT_SPAN.format(event=event.event_name.value), attributes=attributes
        )
        if len(self._open) > MAX_OPEN:
            self._open.popitem(last=False)[1].end()

    def hook_ended(self, result: HookExecutionResult) -> None:
        config, ended = result.hook_config, time.time_ns()
        about = {EVENT: result.event_name.value, HOOK: config.identity, OUTCOME: result.outcome}
        self._executions.add(1, about)
        self._hook_duration.record(result.duration / 1000, about)
        event = self._open.get(result.event_id)
        span = self._tracer.start_span(
            HOOK_SPAN.format(hook=config.identity),
            context=None if event is None else trace.set_span_in_context(event),
            start_time=ended - int(result.duration * 1_000_000),
            attributes={**about, TYPE: str(config.type), DIALECT: config.dialect, OBSERVE: config.observe},
        )
        if result.exit_code is not None:
            span.set_attribute(EXIT_CODE, result.exit_code)
        if result.error is not None:
            span.set_status(Status(StatusCode.ERROR, type(result.error).__name__))
        span.end(ended)

    def event_ended(self, event: EventEnded) -> None:
        aggregated = event.processed.aggregated
        about = {EVENT: event.event_name.value, OUTCOME: aggregated.outcome(event.event_name)}
        self._events.add(1, about)
        self._event_duration.record(event.wall_time / 1000, about)
        if (span := self._open.pop(event.event_id, None)) is not None:
            span.set_attributes({**about, DECIDED_BY: aggregated.decided_by})
            span.end()
