"""Sessions with Claude Code's hooks: the transcript that they read, and the variables that they set."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks import Config, Hooks
from tests.support.agent import AgentProject
from tests.support.gemini import answer, call

COPY = 'cat > "$CLAUDE_PROJECT_DIR/payload.json"; cp "$(jq -r .transcript_path payload.json)" copy.jsonl'
READERS = {
    "last text": 'grep \'"role":"assistant"\' copy.jsonl'
    " | jq -rs 'map(.message.content[]?|select(.type==\"text\")|.text)|last'",
    "tools": "jq -r '.message.content[]? | objects | select(.type==\"tool_use\") | .name' copy.jsonl",
    "results": "jq -r '.message.content[]? | objects | select(.type==\"tool_result\") | .content' copy.jsonl",
    "prompts": "jq -r 'select(.type==\"user\") | .message.content | strings' copy.jsonl",
    "chain": "jq -rs '[.[1:][].parentUuid] == [.[:-1][].uuid]' copy.jsonl",
}
"""How published hooks read a transcript."""


def _hooks(root: Path, **events: str) -> Hooks:
    groups = {event: [{"hooks": [{"type": "command", "command": command}]}] for event, command in events.items()}
    return Hooks(Config(enable_hooks=True, working_dir=root, hooks=groups, dialect="claude"))


def _read(root: Path) -> dict[str, str]:
    runs = {name: subprocess.run(["bash", "-c", text], cwd=root, capture_output=True, text=True, check=True)
            for name, text in READERS.items()}  # fmt: skip
    return {name: run.stdout.strip() for name, run in runs.items()}


async def test_the_conversation_of_a_session_can_be_read_as_there(tmp_path: Path) -> None:
    hooks = _hooks(tmp_path, Stop=COPY)

    async def work(prompt: str) -> str:
        await hooks.run_tool("read_file", {"file_path": "a"}, lambda _: "content of a")
        return "I have read it."

    async with hooks.session("s1"):
        await hooks.run_turn("read a", work)

    assert _read(tmp_path) == {
        "last text": "I have read it.", "tools": "Read", "results": "content of a", "prompts": "read a",
        "chain": "true",
    }  # fmt: skip


async def test_a_transcript_of_the_program_is_used_instead(tmp_path: Path) -> None:
    hooks = _hooks(tmp_path, PreToolUse="cat > payload.json")

    async with hooks.session("s2", transcript_path="/own/transcript.jsonl"):
        await hooks.run_tool("read_file", {"file_path": "a"}, lambda _: "content")

    assert json.loads((tmp_path / "payload.json").read_text())["transcript_path"] == "/own/transcript.jsonl"


async def test_without_such_a_hook_nothing_is_written(tmp_path: Path) -> None:
    native = {"BeforeTool": [{"hooks": [{"type": "command", "command": 'ls "$LLXPRT_SESSION_DIR" > files.txt'}]}]}
    hooks = Hooks(Config(enable_hooks=True, working_dir=tmp_path, hooks=native))

    async with hooks.session("s3"):
        await hooks.run_tool("read_file", {"file_path": "a"}, lambda _: "content")

    assert (tmp_path / "files.txt").read_text() == ""


@pytest.fixture
def project(tmp_path: Path) -> AgentProject:
    return AgentProject(tmp_path)


def _configure(project: AgentProject, **events: Any) -> None:
    groups = {event: [{"hooks": [{"type": "command", "command": command}]}] for event, command in events.items()}
    project.write(".claude/settings.json", json.dumps({"hooks": groups}))


def test_the_agent_writes_the_transcript_and_its_shell_gets_the_variables(project: AgentProject) -> None:
    start = 'echo "export GREETING=\'hello there\'" >> "$CLAUDE_ENV_FILE"'
    _configure(project, SessionStart=start, Stop=COPY)

    run = project.run(
        "-y", "-o", "json", "--dialect", "claude",
        answers=[answer("Let me look.", call("run_shell_command", command='echo "$GREETING"')), answer("Done.")],
    )  # fmt: skip

    assert run.calls[0]["result"].startswith("stdout:\nhello there\n")
    found = _read(project.root)
    assert (found["last text"], found["tools"], found["prompts"]) == ("Done.", "Bash", "Do it.")
    lines = [json.loads(line) for line in (project.root / "copy.jsonl").read_text().splitlines()]
    assert lines[1]["message"]["content"] == [{"type": "text", "text": "Let me look."}]
    assert lines[1]["message"]["usage"]["input_tokens"] > 0


@pytest.mark.parametrize(("behavior", "status"), [("allow", "success"), ("deny", "blocked"), (None, "error")])
def test_the_agents_own_question_is_answered_by_hooks(project: AgentProject, behavior: str | None, status: str) -> None:
    said = {"hookEventName": "PermissionRequest", "decision": {"behavior": behavior, "message": "not now"}}
    _configure(project, PermissionRequest=f"echo '{json.dumps({'hookSpecificOutput': said})}'" if behavior else "true")

    run = project.run(
        "-o", "json", "--dialect", "claude",
        answers=[answer(call("write_file", file_path="a.txt", content="x")), answer("Done.")],
    )  # fmt: skip

    assert run.statuses == [status]
    assert (project.root / "a.txt").exists() is (behavior == "allow")
    assert behavior != "deny" or run.calls[0]["result"] == "not now"


@pytest.mark.parametrize(("native", "claude"), [("exit 2", "true"), ("true", "exit 2"), ("true", "true")])
def test_the_deny_of_either_dialect_wins_in_the_agent(project: AgentProject, native: str, claude: str) -> None:
    project.configure(BeforeTool=native)
    _configure(project, PreToolUse=claude)

    run = project.run(
        "-y", "-o", "json", "--dialect", "claude",
        answers=[answer(call("write_file", file_path="a.txt", content="x")), answer("Done.")],
    )  # fmt: skip

    assert run.statuses == ["success" if native == claude else "blocked"]
