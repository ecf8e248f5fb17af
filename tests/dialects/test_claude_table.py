"""Exit codes, shapes of stdout and events of Claude Code 2.1.285 against its table, and the payloads that it sends."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import Config, Hooks
from llxprt_hooks.dialects.claude import DIALECT
from llxprt_hooks.dialects.product import ProductHook
from llxprt_hooks.dialects.tools import Shown
from llxprt_hooks.process import Completed
from llxprt_hooks.settings.foreign import Situation

if TYPE_CHECKING:
    from llxprt_hooks.settings.foreign import Answer

EVENTS = tuple(DIALECT.events)

SHAPES = {
    "nothing": "",
    "text": "some text",
    "unclosed": '{"unclosed": 1',
    "array": '[1, 2]\n"just a string"',
    "two": '{"x": 1}\n{"y": 2}',
    "broken": "{not json at all}",
    "invalid": '{"decision": 42}',
    "other keys": '{"tool_name": "Bash"}',
    "allow": '{"decision": "approve"}',
    "block": '{"decision": "block", "reason": "from JSON"}',
}
PLAIN = ("text", "unclosed", "array", "two")
UNREADABLE = ("broken", "invalid")


def _outcome(event: str, shape: str, code: int) -> str:
    """What the product makes of it: its rules, in the order in which they apply."""
    if code == 2 and event != "PermissionRequest":
        return "block: from JSON" if shape == "block" else "block: from stderr"
    if shape in ("other keys", "allow", "block"):
        return {"block": "block: from JSON", "allow": "allow"}.get(shape, "nothing")
    if code != 0 or shape in UNREADABLE:
        return "error"
    is_context = shape in PLAIN and event in ("UserPromptSubmit", "SessionStart")
    return f"context: {SHAPES[shape]}" if is_context else "nothing"


REFUSES = "refuses"
TELLS_MODEL = "tells the model"
TELLS_USER = "tells the user"
IGNORED = "ignored"
EXIT_2 = {
    "PreToolUse": REFUSES,
    "UserPromptSubmit": REFUSES,
    "Stop": REFUSES,
    "PreCompact": REFUSES,
    "PostToolUse": TELLS_MODEL,
    "PostToolUseFailure": TELLS_MODEL,
    "SubagentStop": TELLS_MODEL,
    "SessionStart": TELLS_USER,
    "SessionEnd": TELLS_USER,
    "Notification": IGNORED,
    "PermissionRequest": IGNORED,
}
"""What a block does at each event. JSON that blocks does the same, but only stderr is shown to the user."""


def _expected(event: str, shape: str, code: int) -> tuple[str, str]:
    kind, _, text = _outcome(event, shape, code).partition(": ")
    if kind == "block":
        effect = EXIT_2[event]
        if effect == TELLS_USER and text == "from JSON":
            return (TELLS_USER, "from stderr") if code == 2 else (IGNORED, "")
        return effect, "" if effect == IGNORED else text
    if kind == "allow":
        return ("allows" if event == "PreToolUse" else IGNORED), ""
    return {"context": TELLS_MODEL, "nothing": IGNORED}.get(kind, kind), text


def _found(answer: Answer) -> tuple[str, str]:
    fields = dict(answer.fields or {})
    specific = fields.get("hookSpecificOutput") or {}
    if answer.error is not None:
        return "error", ""
    if fields.get("decision") in ("deny", "block"):
        return REFUSES, str(fields["reason"])
    if specific.get("permissionDecision") == "allow":
        return "allows", ""
    if context := specific.get("additionalContext"):
        return TELLS_MODEL, str(context)
    return (TELLS_USER, answer.to_user) if answer.to_user else (IGNORED, "")


def _read(event: str, ended: Completed) -> Answer:
    hook = ProductHook(DIALECT, "guard.sh", event, call=Shown("Bash", {"command": "ls"}))
    hook_input = {"tool_name": "run_shell_command", "tool_input": {"command": "ls"}}
    return hook.read(DIALECT.events[event].native, hook_input, Situation("/"), ended)


@pytest.mark.parametrize(("event", "code"), [*product(EVENTS, (0, 1, 2, 3, 127))])
def test_every_shape_of_output_means_what_the_table_says(event: str, code: int) -> None:
    for shape, stdout in SHAPES.items():
        ended = Completed(stdout=stdout.encode(), stderr=b"from stderr", exit_code=code)
        effect, text = _found(_read(event, ended))
        expected, part = _expected(event, shape, code)
        assert (shape, effect) == (shape, expected)
        assert part in text


@pytest.mark.parametrize("event", EVENTS)
def test_nothing_of_a_hook_that_took_too_long_counts(event: str) -> None:
    ended = Completed(stdout=SHAPES["block"].encode(), exit_code=2, timed_out_after=10)
    assert _found(_read(event, ended)) == ("error", "")


ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|toolu_\w+|a[0-9a-f]{16}")
COMMON = {"session_id": "s", "transcript_path": "<transcript>", "cwd": "<project>"}
ACTING = {**COMMON, "prompt_id": "<id>", "permission_mode": "bypassPermissions"}
EDIT = {"file_path": "<project>/f.txt", "old_string": "beta", "new_string": "BETA", "replace_all": False}
PAYLOADS: dict[str, dict[str, Any]] = {
    "SessionStart": {**COMMON, "hook_event_name": "SessionStart", "source": "startup"},
    "UserPromptSubmit": {**ACTING, "hook_event_name": "UserPromptSubmit", "prompt": "change it"},
    "PreToolUse": {
        **ACTING, "hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_input": EDIT, "tool_use_id": "<id>",
    },
    "PostToolUse": {
        **ACTING, "hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_input": EDIT,
        "tool_response": {
            "filePath": "<project>/f.txt", "oldString": "beta", "newString": "BETA", "originalFile": None,
            "structuredPatch": [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1,
                                 "lines": ["-beta", "+BETA"]}],
            "userModified": False, "replaceAll": False,
        },
        "tool_use_id": "<id>", "duration_ms": "<number>",
    },
    "PostToolUseFailure": {
        **ACTING, "hook_event_name": "PostToolUseFailure", "tool_name": "Bash", "tool_input": {"command": "false"},
        "tool_use_id": "<id>", "error": "no such command", "is_interrupt": False, "duration_ms": "<number>",
    },
    "Stop": {
        **ACTING, "hook_event_name": "Stop", "stop_hook_active": False, "last_assistant_message": "done",
        "background_tasks": [], "session_crons": [],
    },
    "SessionEnd": {**COMMON, "prompt_id": "<id>", "hook_event_name": "SessionEnd", "reason": "other"},
}  # fmt: skip
"""As recorded, with ids, paths and times masked; in the order of the fields."""


async def test_the_payloads_of_a_session_are_those_that_were_recorded(tmp_path: Path) -> None:
    save = "cat > payload.$$; mv payload.$$ $(jq -r .hook_event_name payload.$$).json"
    matchers = {"PreToolUse": "Edit"}
    groups = {
        event: [{"matcher": matchers.get(event, ""), "hooks": [{"type": "command", "command": save}]}]
        for event in PAYLOADS
    }
    config = Config(enable_hooks=True, working_dir=tmp_path, hooks=groups, dialect="claude")
    config.approval_mode = "yolo"
    hooks = Hooks(config)

    def fails(_: object) -> str:
        raise OSError("no such command")

    async def work(prompt: str) -> str:
        await hooks.run_tool(
            "replace", {"file_path": "f.txt", "old_string": "beta", "new_string": "BETA"}, lambda _: ""
        )
        with pytest.raises(OSError, match="no such command"):
            await hooks.run_tool("run_shell_command", {"command": "false"}, fails)
        return "done"

    async with hooks.session("s"):
        await hooks.run_turn("change it", work)
    await hooks.settle(60)

    for event, expected in PAYLOADS.items():
        text = (tmp_path / f"{event}.json").read_text()
        transcript = json.loads(text)["transcript_path"]
        masked = ID.sub("<id>", text.replace(transcript, "<transcript>").replace(str(tmp_path), "<project>"))
        payload = json.loads(re.sub(r'"duration_ms":\d+', '"duration_ms":"<number>"', masked))
        assert list(payload.items()) == list(expected.items())
