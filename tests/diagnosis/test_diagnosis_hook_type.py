"""What a hook type declares is checked in files, whatever the type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from llxprt_hooks.engine.executors import EXECUTORS
from llxprt_hooks.engine.executors.command import CommandExecutor
from llxprt_hooks.settings import Kind
from llxprt_hooks.settings.shape import Field, Scalar
from tests.diagnosis.diagnosis_marks import field, span, unmarked

if TYPE_CHECKING:
    import pytest

    from tests.diagnosis.diagnosis_marks import DiagnosedProject


class WithNiceness(CommandExecutor):
    fields: ClassVar[Mapping[str, Field]] = {
        **CommandExecutor.fields,
        "niceness": Field(Scalar(Kind.NUMBER, above=0), "How nice the process is."),
    }


def test_a_value_out_of_range_is_found(place: DiagnosedProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXECUTORS, "command", WithNiceness())
    marked = unmarked(field('"niceness": «0»'))

    [found] = place.diagnose_text(marked.text)

    assert (found.code, span(found)) == ("invalid-value", marked.spans[0])
    assert "a number above 0" in found.message
