"""The hook log of any content: every record in it is found, whatever is between the records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import strategies as st

from llxprt_hooks._support.json_codec import write_json
from llxprt_hooks.commands.log import read_log
from tests.fuzz.documents import any_json, any_text, documents, lines
from tests.fuzz.guard import corpus, fuzz, unhanged
from tests.support.cli import call

if TYPE_CHECKING:
    from tests.fuzz.project import FuzzedProject

RECORDS = [
    {
        "id": "1f3a9c02",
        "timestamp": "2026-01-02T03:04:05.678Z",
        "session_id": "s",
        "project": "/p",
        "command": "./guard.sh",
        "failed": False,
        "blocked": True,
        "stopped": False,
        "reason": "no secrets",
        "effects": ["tool_input"],
        "event_name": "BeforeTool",
        "hook": "guard",
        "success": True,
        "duration_ms": 12.5,
        "exit_code": 0,
        "signal": None,
        "stdout": '{"decision": "deny"}',
        "stderr": "",
        "error": None,
    },
    {"id": "2", "hook": "h", "event_name": "AfterTool", "failed": True, "error": "timed out", "duration": 60000},
    {"hook": "h", "duration_ms": 1.5},
    {"hook": "h", "timestamp": "2026-01-02T03:04:05.678Z"},
    {"hook": "h", "effects": ["tool_input"], "project": "."},
]
COMMANDS = (
    ("log",),
    ("log", "--json"),
    ("log", "1f3a"),
    ("log", "--failed"),
    ("log", "--event", "BeforeTool", "--blocked"),
    ("log", "--hook", "guard", "-n", "1000"),
    ("log", "-C", "."),
    ("stats",),
    ("stats", "--json"),
    ("stats", "-C", "."),
)
COLUMNS = ("", "40", "100")

contents = lines(RECORDS)


def hold(
    world: FuzzedProject, monkeypatch: pytest.MonkeyPatch, data: bytes, arguments: tuple[str, ...], columns: str
) -> None:
    world.put("log", data)
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    else:
        monkeypatch.delenv("COLUMNS", raising=False)

    ended = call(*arguments)

    known = {record["id"] for record in read_log() if isinstance(record.get("id"), str)}
    unknown = arguments == ("log", "1f3a") and not any(each.startswith("1f3a") for each in known)
    if unknown and ended.status == 1:
        ended.sentence()
    else:
        assert ended.status == 0
        assert len(ended.stderr.splitlines()) <= 1
    if "--json" in arguments:
        assert all(isinstance(each, dict | list) for each in ended.json_lines)
    else:
        assert ended.stdout.replace("\n", "").isprintable()


@fuzz(200, data=contents, arguments=st.sampled_from(COMMANDS), columns=st.sampled_from(COLUMNS))
def test_a_log_of_any_content_is_shown(
    world: FuzzedProject, monkeypatch: pytest.MonkeyPatch, data: bytes, arguments: tuple[str, ...], columns: str
) -> None:
    hold(world, monkeypatch, data, arguments, columns)


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@corpus("log")
@unhanged
def test_what_was_found_is_shown(
    world: FuzzedProject, monkeypatch: pytest.MonkeyPatch, case: str, data: bytes, arguments: tuple[str, ...]
) -> None:
    for columns in COLUMNS:
        hold(world, monkeypatch, data, arguments, columns)


@st.composite
def records_among_junk(draw: st.DrawFn) -> tuple[bytes, list[str]]:
    """A file with records and other lines, and the ids of the records in order."""
    kept: list[str] = []
    parts: list[bytes] = []
    for number in range(draw(st.integers(1, 5))):
        if draw(st.booleans()):
            kept.append(f"kept-{number}")
            extra = draw(st.dictionaries(any_text, any_json, max_size=2))
            parts.append(write_json({**extra, "hook": "h", "id": kept[-1]}))
        else:
            parts.append(draw(documents(RECORDS).filter(lambda junk: b"\n" not in junk and b"\r" not in junk)))
    return b"\n".join(parts) + draw(st.sampled_from([b"", b"\n", b"\r\n"])), kept


@fuzz(150, older=records_among_junk(), newer=records_among_junk())
def test_every_record_is_read_whatever_is_between_them(
    world: FuzzedProject, older: tuple[bytes, list[str]], newer: tuple[bytes, list[str]]
) -> None:
    world.put("older log", older[0])
    world.put("log", newer[0])
    read = [record["id"] for record in read_log() if str(record.get("id")).startswith("kept-")]
    assert read == older[1] + newer[1]


@fuzz(50, data=contents)
def test_what_is_printed_as_json_is_what_was_read(world: FuzzedProject, data: bytes) -> None:
    world.put("log", data)
    printed = call("log", "--all", "--json", "-n", "1000").json_lines
    assert len(printed) == len(list(read_log()))
    assert all("hook" in record for record in printed)
    json.dumps(printed)
