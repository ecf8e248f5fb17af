"""The results of events that no hook was there for, or during which the engine itself failed."""

from __future__ import annotations

from typing import Any

import pytest

from llxprt_hooks import AggregatedHookResult, HookEventName, HookStageError
from llxprt_hooks.core.engine.results import build_failure_envelope, make_empty_success_result


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.requirement("DELTA-HFAIL-001")
def test_a_failure_envelope_is_not_a_success_and_has_the_error_and_its_stage() -> None:
    error = KeyError("missing")

    envelope = build_failure_envelope(error, "planning", {"eventName": "BeforeTool"})

    assert isinstance(envelope, AggregatedHookResult)
    assert envelope.success is False
    assert envelope.final_output is None
    assert envelope.all_outputs == []
    assert envelope.total_duration == 0
    (failure,) = envelope.errors
    assert isinstance(failure, HookStageError)
    assert failure.stage == "planning"
    assert failure.details == {"eventName": "BeforeTool"}
    assert failure.__cause__ is error
    assert "planning" in str(failure)
    assert "missing" in str(failure)


@pytest.mark.requirement("DELTA-HFAIL-001")
def test_an_error_without_text_is_named_by_its_class() -> None:
    assert "TimeoutError" in str(build_failure_envelope(TimeoutError(), "execution").errors[0])


@pytest.mark.requirement("DELTA-HFAIL-001")
def test_an_error_whose_text_cannot_be_had_still_makes_an_envelope() -> None:
    envelope = build_failure_envelope(Unspeakable(), "execution")

    assert envelope.success is False
    assert "Unspeakable" in str(envelope.errors[0])


@pytest.mark.requirement("DELTA-HFAIL-001")
def test_every_failure_envelope_is_a_fresh_one() -> None:
    first, second = (build_failure_envelope(ValueError("x"), "planning") for _ in range(2))
    first.errors.clear()
    first.all_outputs.append(None)  # type: ignore[arg-type]

    assert len(second.errors) == 1
    assert second.all_outputs == []


@pytest.mark.requirement("DELTA-HFAIL-001")
async def test_an_event_that_the_engine_cannot_handle_ends_in_a_failure_envelope(
    config_with: Any, printing: Any
) -> None:
    system = config_with(HookEventName.BEFORE_MODEL, printing("{}")).get_hook_system()
    await system.initialize()

    result = await system.get_event_handler().fire_before_model_event(object())

    assert result.success is False
    assert result.final_output is None
    (failure,) = result.errors
    assert failure.stage == "translation"


@pytest.mark.requirement("DELTA-HFAIL-004")
def test_an_empty_success_is_a_fresh_object_each_time() -> None:
    first, second = make_empty_success_result(), make_empty_success_result()
    first.all_outputs.append(None)  # type: ignore[arg-type]
    first.errors.append(ValueError())
    first.results.append(None)  # type: ignore[arg-type]

    for untouched in (second, make_empty_success_result()):
        assert untouched is not first
        assert untouched.success is True
        assert untouched.final_output is None
        assert untouched.all_outputs == []
        assert untouched.errors == []
        assert untouched.results == []
        assert untouched.total_duration == 0


@pytest.mark.requirement("DELTA-HFAIL-004")
async def test_what_a_caller_does_to_the_result_of_an_unmatched_event_does_not_reach_the_next(
    config_with: Any, printing: Any
) -> None:
    system = config_with(HookEventName.BEFORE_TOOL, printing("{}")).get_hook_system()
    await system.initialize()
    handler = system.get_event_handler()

    first = await handler.fire_after_tool_event("write_file", {}, {})
    first.errors.append(ValueError())
    first.all_outputs.append(None)
    second = await handler.fire_after_tool_event("write_file", {}, {})

    assert (second.success, second.final_output, second.all_outputs, second.errors) == (True, None, [], [])


@pytest.mark.requirement("DELTA-HFAIL-001")
def test_a_result_uses_wire_names() -> None:
    assert build_failure_envelope(ValueError("x"), "planning").to_dict() == {
        "success": False,
        "finalOutput": None,
        "allOutputs": [],
        "errors": ["hook planning failed: x"],
        "totalDuration": 0.0,
    }
