"""PermissionRequest hooks of Claude Code: they answer the question whether a call may run, in a person's place."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks import ApprovalRequest, Config, Hooks, StopRequested

SHELL = ("run_shell_command", {"command": "ls", "description": "list"})


def _says(event: str, **fields: Any) -> str:
    return f"echo {shlex.quote(json.dumps({'hookSpecificOutput': {'hookEventName': event, **fields}}))}"


ASK = _says("PreToolUse", permissionDecision="ask", permissionDecisionReason="sure?")
YES = _says("PermissionRequest", decision={"behavior": "allow"})
NO = _says("PermissionRequest", decision={"behavior": "deny", "message": "not here"})


def _hooks(root: Path, *answers: str, before: str = ASK, approver: Any = None) -> Hooks:
    groups = {
        "PreToolUse": [{"hooks": [{"type": "command", "command": before}]}],
        "PermissionRequest": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": answer} for answer in answers]}
        ],
    }
    return Hooks(Config(enable_hooks=True, working_dir=root, hooks=groups, dialect="claude", approver=approver))


@pytest.mark.parametrize(
    ("answers", "runs", "asked"),
    [
        ([YES], True, False),
        ([NO], False, False),
        ([YES, NO], False, False),
        (["true"], True, True),
        (["exit 1"], True, True),
        (["echo no >&2; exit 2"], True, True),
        ([f"{NO}; exit 2"], False, False),
        ([_says("PreToolUse", permissionDecision="deny")], True, True),
        ([_says("PermissionRequest", decision={"behavior": "perhaps"})], True, True),
    ],
)
async def test_an_answer_of_a_hook_takes_the_place_of_a_persons(
    tmp_path: Path, answers: list[str], runs: bool, asked: bool
) -> None:
    questions: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> bool:
        questions.append(request)
        return True

    hooks = _hooks(tmp_path, *answers, approver=approve)

    result = await hooks.run_tool(*SHELL, lambda _: "done")

    assert (result.error is None) is runs
    assert bool(questions) is asked
    assert runs or result.llm_content == "not here"


async def test_without_a_question_they_do_not_run(tmp_path: Path) -> None:
    hooks = _hooks(tmp_path, f"touch ran; {NO}", before="true")

    assert (await hooks.run_tool(*SHELL, lambda _: "done")).error is None
    assert not (tmp_path / "ran").exists()


async def test_if_nobody_can_be_asked_and_no_hook_answers_the_call_is_denied(tmp_path: Path) -> None:
    result = await _hooks(tmp_path, "true").run_tool(*SHELL, lambda _: "done")

    assert "nobody could be asked" in str(result.llm_content)


async def test_they_get_what_the_dialog_would_show(tmp_path: Path) -> None:
    await _hooks(tmp_path, "cat > payload.json").run_tool(*SHELL, lambda _: "done")

    payload = json.loads((tmp_path / "payload.json").read_text())
    assert list(payload) == [
        "session_id", "transcript_path", "cwd", "permission_mode", "hook_event_name", "tool_name", "tool_input",
        "permission_suggestions",
    ]  # fmt: skip
    assert (payload["hook_event_name"], payload["tool_name"]) == ("PermissionRequest", "Bash")


async def test_a_yes_may_have_other_arguments_and_a_no_may_end_the_work(tmp_path: Path) -> None:
    changed = _says("PermissionRequest", decision={"behavior": "allow", "updatedInput": {"command": "ls -l"}})
    ends = _says("PermissionRequest", decision={"behavior": "deny", "message": "enough", "interrupt": True})

    rewritten = await _hooks(tmp_path, changed).run_tool(*SHELL, lambda given: json.dumps(given))

    assert json.loads(str(rewritten.llm_content)) == {"command": "ls -l"}
    with pytest.raises(StopRequested, match="enough"):
        await _hooks(tmp_path, ends).run_tool(*SHELL, lambda _: "done")


def test_such_a_hook_guards_nothing(tmp_path: Path) -> None:
    only = {"PermissionRequest": [{"hooks": [{"type": "command", "command": NO}]}]}
    hooks = Hooks(Config(enable_hooks=True, working_dir=tmp_path, hooks=only, dialect="claude"))

    assert not hooks.has_hooks_for("BeforeTool", "run_shell_command")
