"""``run --record``: what a model answered can be played again."""

from __future__ import annotations

import base64
import json
import stat
from pathlib import Path

import pytest

from tests.support.agent import HTTP, AgentProject
from tests.support.gemini import End, Reply, answer, call, unfinished


def test_a_conversation_with_the_api_can_be_recorded_and_played_again(tmp_path: Path) -> None:
    project = AgentProject(tmp_path, HTTP)
    project.configure(AfterModel="""echo '{"hookSpecificOutput": {"llm_response": {"text": "redacted"}}}'""")
    signed = {"text": "Let me see.", "thoughtSignature": base64.b64encode(b"\x00\xff signed").decode()}
    answers = [answer(signed, "half \ud83d "), answer("Done.")]
    recording = project.folder / "made.jsonl"

    recorded = project.run("-o", "json", "--record", str(recording), answers=answers)
    again = project.call("run", "-p", "Do it.", "-o", "json", "--replay", str(recording))

    assert (recorded.status, again.status) == (0, 0)
    assert stat.S_IMODE(recording.stat().st_mode) == 0o600
    [line] = [json.loads(line) for line in recording.read_text().splitlines()]
    assert line == {"method": "generateContentStream", "response": answers[0]}
    assert (recorded.json["response"], again.json["response"]) == ("redacted", "redacted")


def test_every_model_call_of_a_run_is_recorded(project: AgentProject) -> None:
    answers = [answer(call("glob", pattern="*")), answer("One ", "file.")]
    recording = project.folder / "made.jsonl"

    recorded = project.play("--record", str(recording), answers=answers)
    again = project.call("run", "-p", "Do it.", "--replay", str(recording))

    assert (again.status, again.stdout, again.stderr) == (recorded.status, recorded.stdout, recorded.stderr)
    assert [json.loads(line)["response"] for line in recording.read_text().splitlines()] == answers


def test_an_answer_that_was_cut_off_is_not_recorded(tmp_path: Path) -> None:
    project = AgentProject(tmp_path, HTTP)
    recording = project.folder / "made.jsonl"

    run = project.run("--record", str(recording), answers=[Reply(unfinished("I was ab"), End.TORN)])

    assert run.status == 1
    assert recording.read_text() == ""


@pytest.mark.parametrize("existing", ["file", "link"])
def test_nothing_is_overwritten(project: AgentProject, existing: str) -> None:
    recording = project.folder / "made.jsonl"
    if existing == "link":
        recording.symlink_to(project.folder / "target")
    else:
        recording.write_text("precious")

    run = project.play("--record", str(recording), answers=[answer("Done.")])

    assert run.status == 1
    assert f"the recording {recording} exists already" in run.stderr
    assert existing == "link" or recording.read_text() == "precious"
    assert not (project.folder / "target").exists()


def test_a_recording_that_cannot_be_written_is_one_sentence(project: AgentProject) -> None:
    run = project.play("--record", str(project.folder / "nowhere" / "made.jsonl"), answers=[answer("Done.")])

    assert run.status == 1
    assert run.sentence().endswith("made.jsonl cannot be written: No such file or directory")
