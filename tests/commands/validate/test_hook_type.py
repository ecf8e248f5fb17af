"""What a hook type declares is checked in files, whatever the type."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import pytest

from llxprt_hooks.core.executors import EXECUTORS
from llxprt_hooks.core.executors.command import CommandExecutor
from llxprt_hooks.settings import Kind
from llxprt_hooks.settings.shape import Field, Scalar
from tests.commands.validate.marks import field, hook, span, unmarked

if TYPE_CHECKING:
    from tests.commands.validate.marks import DiagnosedProject


class WithNiceness(CommandExecutor):
    fields: ClassVar[Mapping[str, Field]] = {
        **CommandExecutor.fields,
        "niceness": Field(Scalar(Kind.NUMBER, above=0), "How nice the process is."),
    }


@pytest.mark.parametrize(
    ("fields", "package", "extra"),
    [
        ('"url": "https://policy.example.com"', "certifi", "http"),
        ('"servers": ["tls://example.com"], "subject": "hooks"', "nats", "nats"),
    ],
)
def test_a_type_whose_packages_are_missing_is_found(
    place: DiagnosedProject, monkeypatch: pytest.MonkeyPatch, fields: str, package: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    marked = unmarked(hook(f'"type": «"{extra}"», {fields}'))

    [found] = place.diagnose_text(marked.text)

    assert (found.code, span(found)) == ("failing-hook", marked.spans[0])
    assert f"(No module named '{package}')" in found.message
    assert f"pip install 'llxprt-hooks[{extra}]'" in found.message


def test_a_value_out_of_range_is_found(place: DiagnosedProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXECUTORS, "command", WithNiceness())
    marked = unmarked(field('"niceness": «0»'))

    [found] = place.diagnose_text(marked.text)

    assert (found.code, span(found)) == ("invalid-value", marked.spans[0])
    assert "a number above 0" in found.message
