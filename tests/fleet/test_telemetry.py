"""Spans and metrics of hooks, read back from the real OpenTelemetry SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from llxprt_hooks import Config, Hooks, allow, ask, deny, stop
from llxprt_hooks.fleet import telemetry
from llxprt_hooks.fleet.telemetry import HookTelemetry


class Collected:
    def __init__(self) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers, self.meters = TracerProvider(), MeterProvider([self.reader])
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.telemetry = HookTelemetry(self.tracers, self.meters)

    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self.exporter.get_finished_spans()}

    def points(self) -> dict[str, list[Any]]:
        data = self.reader.get_metrics_data()
        found = data.resource_metrics[0].scope_metrics[0].metrics if data else []
        return {metric.name: list(metric.data.data_points) for metric in found}


@pytest.fixture
def collected() -> Iterator[Collected]:
    made = Collected()
    yield made
    made.tracers.shutdown()
    made.meters.shutdown()


def hooks_with(collected: Collected, answer: Any, *, profile: str = "standard") -> Hooks:
    hooks = Hooks(Config(enable_hooks=True, observer=collected.telemetry, profile=profile, session_id="s1"))
    hooks.on("BeforeTool", answer, name="guard")
    return hooks


async def test_an_event_is_a_child_of_the_current_span_and_its_hooks_are_children_of_the_event(
    collected: Collected,
) -> None:
    hooks = hooks_with(collected, lambda payload: deny("no secrets here"))
    with collected.tracers.get_tracer("app").start_as_current_span("turn") as turn:
        await hooks.run_tool("write_file", {"content": "hunter2"}, lambda arguments: "done")

    spans = collected.spans()
    event, hook = spans["hooks BeforeTool"], spans["hook guard"]
    assert event.parent is not None
    assert event.parent.span_id == turn.get_span_context().span_id
    assert hook.parent is not None
    assert event.context is not None
    assert hook.parent.span_id == event.context.span_id
    assert dict(event.attributes or {}) == {
        telemetry.EVENT: "BeforeTool",
        telemetry.SESSION: "s1",
        telemetry.TOOL: "write_file",
        telemetry.OUTCOME: "blocked",
        telemetry.DECIDED_BY: ("guard",),
    }
    assert event.start_time is not None
    assert hook.start_time is not None
    assert hook.end_time is not None
    assert event.end_time is not None
    assert hook.start_time <= hook.end_time <= event.end_time
    told = repr([(span.name, dict(span.attributes or {}), span.status.description) for span in spans.values()])
    assert "hunter2" not in told
    assert "no secrets here" not in told


@pytest.mark.parametrize(
    ("answer", "profile", "word"),
    [(allow(), "standard", "allowed"), (deny("no"), "standard", "blocked"), (stop("enough"), "standard", "stopped"),
     (ask("sure?"), "standard", "allowed"), (ask("sure?"), "full", "asked")],
)  # fmt: skip
async def test_the_outcome_is_counted(collected: Collected, answer: Any, profile: str, word: str) -> None:
    hooks = hooks_with(collected, lambda payload: answer, profile=profile)
    system = hooks.config.get_hook_system()
    assert system is not None
    for _ in range(3):
        await system.ready_event_handler().fire_before_tool_event("write_file", {})

    points = collected.points()
    for counter, histogram in (
        (telemetry.EVENTS, telemetry.EVENT_DURATION),
        (telemetry.EXECUTIONS, telemetry.HOOK_DURATION),
    ):
        (count,), (duration,) = points[counter], points[histogram]
        assert (count.value, count.attributes[telemetry.OUTCOME]) == (3, word)
        assert duration.count == 3
        assert duration.attributes == count.attributes


async def test_durations_are_counted_in_buckets_as_fine_as_hooks_are_fast(collected: Collected) -> None:
    await hooks_with(collected, lambda payload: None).run_tool("write_file", {}, lambda arguments: "done")

    points = collected.points()
    for histogram in (telemetry.EVENT_DURATION, telemetry.HOOK_DURATION):
        assert sum(bound < 1 for bound in points[histogram][0].explicit_bounds) > 5


async def test_a_failed_hook_is_an_error_and_the_event_goes_ahead(collected: Collected) -> None:
    def broken(payload: dict[str, Any]) -> None:
        raise ValueError("hunter2")

    await hooks_with(collected, broken).run_tool("write_file", {}, lambda arguments: "done")

    spans = collected.spans()
    assert spans["hook guard"].status.status_code is StatusCode.ERROR
    assert "hunter2" not in str(spans["hook guard"].status.description)
    assert (spans["hook guard"].attributes or {})[telemetry.OUTCOME] == "failed"


async def test_events_that_were_cancelled_are_forgotten(collected: Collected, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "MAX_OPEN", 2)

    async def forever(payload: dict[str, Any]) -> None:
        await asyncio.Event().wait()

    hooks = hooks_with(collected, forever)
    for _ in range(5):
        task = asyncio.create_task(hooks.run_tool("write_file", {}, lambda arguments: "done"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert len(collected.exporter.get_finished_spans()) == 3


def test_a_program_without_an_sdk_pays_nothing_and_sees_nothing() -> None:
    hooks = Hooks(Config(enable_hooks=True, observer=HookTelemetry()))
    hooks.on("BeforeTool", lambda payload: deny("no"), name="guard")

    assert hooks.sync.run_tool("write_file", {}, lambda arguments: "done").error is not None
