"""The results of events that no hook was there for, or during which the engine itself failed."""

from __future__ import annotations

import pytest

from llxprt_hooks.core.engine.results import build_failure_envelope, make_empty_success_result


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.requirement("DELTA-HFAIL-001")
def test_an_error_without_text_is_named_by_its_class() -> None:
    assert "TimeoutError" in str(build_failure_envelope(TimeoutError(), "execution").errors[0])


@pytest.mark.requirement("DELTA-HFAIL-001")
def test_an_error_whose_text_cannot_be_had_still_makes_an_envelope() -> None:
    envelope = build_failure_envelope(Unspeakable(), "execution")

    assert envelope.success is False
    assert "Unspeakable" in str(envelope.errors[0])


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


@pytest.mark.requirement("DELTA-HFAIL-001")
def test_a_result_uses_wire_names() -> None:
    assert build_failure_envelope(ValueError("x"), "planning").to_dict() == {
        "success": False,
        "finalOutput": None,
        "allOutputs": [],
        "errors": ["hook planning failed: x"],
        "totalDuration": 0.0,
    }
