"""Recordings of any content: ``run --replay`` ends with a documented status and, where it failed, one clear line."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st

from tests.fuzz.documents import lines
from tests.fuzz.guard import corpus, fuzz, unhanged

if TYPE_CHECKING:
    from tests.fuzz.project import FuzzedProject
    from tests.support.cli import Run


def chunk(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP", **fields}]}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"functionCall": {"id": "1", "name": name, "args": arguments}}


def stream(*chunks: dict[str, Any]) -> dict[str, Any]:
    return {"method": "generateContentStream", "response": list(chunks)}


USAGE = {"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3}
RECORDS = [
    {"method": "generateContent", "response": {**chunk({"text": "Done."}), "usageMetadata": USAGE}},
    stream(chunk({"text": "Let me "}, index=0), {**chunk({"text": "see."}), "modelVersion": "m"}),
    stream(chunk({"text": "thinking", "thought": True, "thoughtSignature": "AA=="}, call("glob", pattern="*"))),
    stream(chunk(call("read_file", file_path="a.txt"), call("list_directory", dir_path="."))),
    stream(chunk(call("search_file_content", pattern="a+", dir_path=".")), chunk({"text": ""})),
    stream(chunk(call("write_file", file_path="a.txt", content="x"), call("no_such_tool"))),
    stream(chunk(call("replace", file_path="a.txt", old_string="a", new_string="b"))),
    stream(chunk({"inlineData": {"mimeType": "image/png", "data": "AA=="}}, {"executableCode": {"code": "1"}})),
    stream({"promptFeedback": {"blockReason": "SAFETY"}, "responseId": "r"}),
    stream(chunk({"text": "x"}, safetyRatings=[{"category": "HARM_CATEGORY_HARASSMENT", "probability": "LOW"}])),
    stream(chunk({"text": "x"}, groundingMetadata={"webSearchQueries": ["q"]}, citationMetadata={"citations": []})),
]
FORMATS = ("text", "json", "stream-json")

recordings = lines(RECORDS)


def play(world: FuzzedProject, data: bytes, output_format: str, *, installed: bool = False) -> Run:
    world.clear()
    (world.root / "a.txt").write_text("some text\n")
    file = world.put("recording", data)
    arguments = ("run", "-p", "Do it.", "--replay", str(file), "-o", output_format)
    ended = world.command(*arguments, installed=installed)
    shutil.rmtree(world.home / ".llxprt", ignore_errors=True)
    return ended


def hold(ended: Run, output_format: str) -> None:
    assert ended.status in (0, 1)
    assert "Traceback" not in ended.stderr
    if output_format == "json":
        if ended.status == 1:
            ended.sentence()
        else:
            assert ended.stderr == ""
        if ended.stdout or ended.status == 0:
            assert ended.json["stop_reason"] is None
    elif output_format == "stream-json":
        if ended.status == 1:
            ended.sentence()
        printed = ended.json_lines
        assert ended.status == 1 or printed[-1]["type"] == "result"
    elif ended.status == 1:
        assert ended.stderr.splitlines()[-1].startswith(("llxprt-hooks: ", "Error: "))


@fuzz(150, data=recordings, output_format=st.sampled_from(FORMATS))
def test_a_recording_of_any_content_is_played_or_refused_in_one_line(
    world: FuzzedProject, data: bytes, output_format: str
) -> None:
    hold(play(world, data, output_format), output_format)


@pytest.mark.parametrize("output_format", FORMATS)
@corpus("replay")
@unhanged
def test_what_was_found_is_played_or_refused_in_one_line(
    world: FuzzedProject, case: str, data: bytes, output_format: str
) -> None:
    hold(play(world, data, output_format), output_format)
