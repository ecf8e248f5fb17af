"""Bad input: one clear sentence on stderr and the right exit status, never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.agent import AgentProject, AgentRun
from tests.support.cli import COMMAND
from tests.support.gemini import answer, call
from tests.support.processes import DEADLINE

GOOD = json.dumps({"method": "generateContentStream", "response": answer(call("glob", pattern="*"))})


def sentence(run: AgentRun) -> str:
    """The one line on stderr of a run that failed."""
    assert run.status == 1, run
    [line] = run.stderr.splitlines()
    assert line.startswith(("llxprt-hooks: ", "Error: "))
    assert len(line) < 500
    return line


# Recordings.


def recorded(method: object, response: object) -> str:
    return json.dumps({"method": method, "response": response})


STREAM, WHOLE = "generateContentStream", "generateContent"

MALFORMED: dict[str, tuple[str | bytes, list[str]]] = {
    "not JSON": ("{", ["recorded.jsonl:1", "JSON"]),
    "not JSON in the third line": (f"{GOOD}\n\nnull null\n", ["recorded.jsonl:3", "JSON"]),
    "too deep": ("[" * 100_000, ["recorded.jsonl:1"]),
    "no object": ("[]", ["recorded.jsonl:1", "method"]),
    "no method": (json.dumps({"response": []}), ["recorded.jsonl:1", "method", STREAM, WHOLE]),
    "unknown method": (recorded("countTokens", {}), ["recorded.jsonl:1", "method", STREAM, WHOLE]),
    "method of the wrong type": (recorded([STREAM], []), ["recorded.jsonl:1", "method", STREAM, WHOLE]),
    "no response": (json.dumps({"method": STREAM}), ["recorded.jsonl:1", "response", STREAM]),
    "stream that is not an array": (recorded(STREAM, {}), ["recorded.jsonl:1", "response", STREAM]),
    "whole that is not an object": (recorded(WHOLE, []), ["recorded.jsonl:1", "response", WHOLE]),
    "chunk that is not an object": (recorded(STREAM, [7]), ["recorded.jsonl:1", "Gemini API"]),
    "malformed chunk": (
        recorded(STREAM, [{"candidates": [{"content": "hello", "finishReason": "STOP"}]}]),
        ["recorded.jsonl:1", "Gemini API", "candidates.0.content"],
    ),
    "not UTF-8": (b'{"method": "\xff"}', ["recorded.jsonl"]),
}


@pytest.mark.parametrize(("content", "words"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_recording_is_refused_before_anything_runs(
    project: AgentProject, content: str | bytes, words: list[str]
) -> None:
    project.configure(BeforeModel=project.hook("before"), SessionStart=project.hook("start"))
    recording = project.file("recorded.jsonl", content)
    run = project.call("run", "-p", "Do it.", "-o", "json", "--replay", str(recording))
    assert [word for word in words if word not in sentence(run)] == []
    assert run.stdout == ""
    assert run.payloads("before") == run.payloads("start") == []


def test_running_out_of_recorded_answers_is_a_clear_error(project: AgentProject) -> None:
    run = project.play("-o", "json", answers=[answer("Let me look.", call("glob", pattern="*"))])
    assert "no more recorded answers" in sentence(run)
    assert "answers.jsonl" in sentence(run)
    assert (run.json["response"], run.statuses) == ("Let me look.", ["success"])


def test_unknown_fields_in_a_recording_are_ignored(project: AgentProject) -> None:
    """As the SDK does on the wire. Both methods may be mixed."""
    first, second = answer(call("glob", pattern="*"))[0], answer("Done.")[0]
    first["candidates"][0]["content"]["parts"][0]["brandNew"] = {"x": [1]}
    first["candidates"][0]["alsoNew"] = 1
    first["newToo"] = []
    lines = [recorded(WHOLE, first), recorded(STREAM, [second])]
    recording = project.file("recorded.jsonl", "\n".join(lines))
    run = project.call("run", "-p", "Do it.", "-o", "json", "--replay", str(recording))
    assert (run.status, run.json["response"], run.statuses, run.stderr) == (0, "Done.", ["success"], "")


# The API.


def test_a_missing_key_says_which_variable_to_set(project: AgentProject) -> None:
    run = project.call("run", "-p", "Do it.")
    assert "GEMINI_API_KEY" in sentence(run)
    assert "GOOGLE_API_KEY" in sentence(run)
    assert run.stdout == ""


def test_an_environment_in_which_the_api_cannot_be_called_is_reported(project: AgentProject) -> None:
    run = project.call("run", "-p", "Do it.", GEMINI_API_KEY="test", HTTPS_PROXY="http://127.0.0.1:port")
    assert "port" in sentence(run)
    assert run.stdout == ""


# Settings.


def test_hooks_of_a_project_that_is_not_approved_do_not_run_and_a_notice_says_so(project: AgentProject) -> None:
    project.configure(BeforeModel=project.hook("theirs", {"decision": "block", "reason": "mine now"}))
    run = project.play("-o", "json", answers=[answer("Done.")], LLXPRT_TRUST_PROJECT_HOOKS="")
    assert (run.status, run.json["response"], run.json["hooks"]) == (0, "Done.", {})
    assert run.payloads("theirs") == []
    assert "llxprt-hooks trust" in run.stderr


# Usage.

WRONG_USAGE = {
    "unknown option": (["run", "--colour"], "--colour"),
    "unknown command": (["walk"], "walk"),
    "unknown format": (["run", "-p", "x", "-o", "xml"], "xml"),
    "unknown approval mode": (["run", "-p", "x", "--approval-mode", "never"], "never"),
    "contradiction": (["run", "-p", "x", "-y", "--approval-mode", "default"], "--approval-mode"),
    "missing value": (["run", "-p"], "-p"),
    "extra argument": (["run", "do it"], "do it"),
    "empty prompt": (["run", "-p", " \n"], "prompt"),
    "no prompt": (["run"], "prompt"),
    "no prompt, headless": (["run", "--headless"], "prompt"),
    "missing folder": (["run", "-p", "x", "-C", "no/such/folder"], "no/such/folder"),
    "folder that is a file": (["run", "-p", "x", "-C", "a.txt"], "a.txt"),
    "missing recording": (["run", "-p", "x", "--replay", "nowhere.jsonl"], "nowhere.jsonl"),
    "recording that is a folder": (["run", "-p", "x", "--replay", "."], "--replay"),
}


@pytest.mark.parametrize(("arguments", "named"), WRONG_USAGE.values(), ids=WRONG_USAGE)
def test_wrong_usage_is_explained(project: AgentProject, arguments: list[str], named: str) -> None:
    (project.root / "a.txt").touch()
    run = project.call(*arguments)
    assert (run.status, run.stdout) == (64, "")
    last = run.stderr.splitlines()[-1]
    assert last.startswith("Error: ")
    assert named in last


def test_the_folder_that_is_given_is_the_project(project: AgentProject) -> None:
    (project.root / "inside.txt").write_text("x")
    project.configure(BeforeTool=project.hook("before"))
    recording = project.recording(answer(call("glob", pattern="*.txt")), answer("Done."))
    ended = subprocess.run(
        [COMMAND, "run", "-p", "x", "-o", "json", "-C", "project", "--replay", recording.name],
        cwd=project.folder,
        env=project.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=DEADLINE,
        check=False,
    )
    assert ended.returncode == 0
    assert "inside.txt" in json.loads(ended.stdout)["tool_calls"][0]["result"]
    assert project.payloads("before")[0]["cwd"] == str(project.root)


# Streams that are closed or full.


def redirected(project: AgentProject, redirection: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    recording = project.recording(
        answer("On it.", [call("run_shell_command", command=f"echo {number}") for number in range(3)]), answer("Done.")
    )
    return subprocess.run(
        ["/bin/sh", "-c", f'"$@" {redirection}', "sh", COMMAND, "run", *arguments, "--replay", str(recording)],
        cwd=project.root,
        env=project.environment(),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


def test_a_closed_standard_input_is_an_empty_one(project: AgentProject) -> None:
    ended = redirected(project, "<&-")
    assert ended.returncode == 64
    assert ended.stderr.splitlines()[-1].startswith("Error: ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("output_format", ["text", "stream-json"])
def test_output_that_cannot_be_written_is_one_sentence(project: AgentProject, output_format: str) -> None:
    ended = redirected(project, "> /dev/full", "-p", "x", "-y", "-o", output_format)
    assert ended.returncode == 1
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("Error: ")
    assert os.strerror(28) in last
    assert "Traceback" not in ended.stderr


def test_a_closed_output_pipe_ends_the_run_without_a_message(project: AgentProject) -> None:
    ended = redirected(project, "-p x -y -o stream-json | head -n 2")
    assert len(ended.stdout.splitlines()) == 2
    assert ended.stderr == ""


# Endless turns.


def test_a_turn_limit_ends_a_run_that_would_not_end(project: AgentProject) -> None:
    run = project.play("-o", "json", answers=[answer(call("list_directory", dir_path="."))] * 101)
    assert "stopped after 100 model turns" in sentence(run)
    assert run.statuses == ["success"] * 100


# Settings.

CUT_SHORT = '{\n  "enableHooks": true,\n  "hooks": {\n'


@pytest.mark.parametrize("level", ["user", "system"])
def test_settings_of_user_or_system_that_cannot_be_read_keep_the_agent_from_starting(
    tmp_path: Path, level: str
) -> None:
    project = AgentProject(tmp_path)
    file = project.write(project.user_file if level == "user" else project.system_file, CUT_SHORT)

    run = project.play(answers=[answer("Done.")])

    assert run.status == 1
    assert run.stdout == ""
    assert "These settings cannot be read, so their hooks would not run:" in run.stderr
    assert f"{file}:4:1: expected a key" in run.stderr


def test_settings_of_a_project_that_cannot_be_read_do_not(tmp_path: Path) -> None:
    project = AgentProject(tmp_path)
    project.write(project.project_file, CUT_SHORT)

    run = project.play(answers=[answer("Done.")])

    assert run.status == 0
    assert "settings.json:4:1: " in run.stderr
