"""What is kept of an MCP server's definitions, and how they are compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from llxprt_hooks.settings.problem import Problem
from llxprt_hooks.settings.trust.mcp_pins import McpPins, definition_text, offers_of

ADD = {"name": "add", "description": "Adds.\nTwo numbers.", "inputSchema": {"type": "object"}, "_meta": {"seen": 1}}
PART = "tool add"


@pytest.fixture
def pins(tmp_path: Path) -> McpPins:
    (tmp_path / "shop").mkdir()
    return McpPins(tmp_path / "shop", "sums")


def test_a_definition_is_new_then_approved_then_changed(pins: McpPins) -> None:
    assert pins.objection(PART, ADD) == "is new"
    pins.approve({PART: ADD})
    assert pins.objection(PART, {**ADD, "_meta": {"seen": 2}}) is None
    assert pins.objection(PART, {**ADD, "description": "Adds!"}) == "has changed since it was approved"
    assert McpPins(pins.project, "sums").objection(PART, ADD) is None
    assert McpPins(pins.project, "other").objection(PART, ADD) == "is new"
    assert pins.forget()
    assert not pins.forget()
    assert pins.objection(PART, ADD) == "is new"


def test_differences_are_shown_line_by_line(pins: McpPins) -> None:
    approved = {PART: ADD, "instructions": "Be kind.", "server": {"tags": [1, "x"]}, "list": ["a", 2]}
    pins.approve(approved)
    assert pins.changes(approved) == {}
    changed = pins.changes({PART: {**ADD, "description": "Adds."}, "server": {"tags": [1]}, "list": ["a", 3]})
    assert "-  Two numbers." in changed[PART]
    assert "-Be kind." in changed["instructions"]
    assert changed["list"][-2:] == ["-2", "+3"]
    assert pins.changes({"tool new": ADD})["tool new"][0] == "--- /dev/null"


def test_a_change_that_lines_do_not_show_is_still_reported(pins: McpPins) -> None:
    pins.approve({PART: ["a", "b"]})
    assert pins.changes({PART: "a\nb"}) == {PART: [f"{PART}: changed in a way that lines do not show"]}


def test_what_a_server_offers_is_kept_for_its_project(pins: McpPins, tmp_path: Path) -> None:
    assert pins.offered() is None
    assert list(offers_of(pins.project)) == []
    pins.record_offer({PART: ADD, "tool huge": "x" * 2_000_000})
    assert pins.offered() == {PART: ADD}
    assert [each.server for each in offers_of(pins.project)] == ["sums"]
    assert list(offers_of(tmp_path)) == []
    pins.record_offer({})
    assert pins.offered() == {}
    pins.offer_file.write_text("{")
    assert isinstance(pins.offered(), Problem)
    assert list(offers_of(pins.project)) == []


def test_what_cannot_be_shown_cannot_be_approved(pins: McpPins) -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert definition_text(deep) is None
    assert pins.objection(PART, "x" * 2_000_000) == "is too large or too deep to be shown, so it cannot be approved"
