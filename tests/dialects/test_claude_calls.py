"""Claude Code's hooks around our tools, prompts and sessions: what they get, and what their answers do."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import Config, Hooks, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.dialects.conftest import MakeHooks

SAVE = "cat > payload.json"


def _answers(event: str, **fields: Any) -> str:
    return f"echo {shlex.quote(json.dumps({'hookSpecificOutput': {'hookEventName': event, **fields}}))}"


async def test_the_payload_has_the_names_and_the_order_of_claude_code(
    claude: MakeHooks, received: Callable[[], dict[str, Any]], tmp_path: Path
) -> None:
    hooks = claude("PreToolUse", SAVE, "Edit")

    await hooks.run_tool("replace", {"file_path": "f.txt", "old_string": "a", "new_string": "b"}, lambda _: "done")

    payload = received()
    assert list(payload) == [
        "session_id", "transcript_path", "cwd", "permission_mode", "hook_event_name", "tool_name", "tool_input",
        "tool_use_id",
    ]  # fmt: skip
    assert payload["hook_event_name"] == "PreToolUse"
    assert payload["permission_mode"] == "default"
    assert payload["tool_name"] == "Edit"
    assert payload["tool_input"] == {
        "file_path": str(tmp_path / "f.txt"), "old_string": "a", "new_string": "b", "replace_all": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("tool", "arguments", "name", "shown"),
    [
        ("run_shell_command", {"command": "ls"}, "Bash", {"command": "ls"}),
        ("write_file", {"absolute_path": "/x/a", "content": "c"}, "Write", {"file_path": "/x/a", "content": "c"}),
        ("read_file", {"file_path": "/x/a"}, "Read", {"file_path": "/x/a"}),
        ("glob", {"pattern": "*", "dir_path": "/x"}, "Glob", {"pattern": "*", "path": "/x"}),
        ("search_file_content", {"pattern": "a", "include": "*.py"}, "Grep", {"pattern": "a", "glob": "*.py"}),
        ("list_directory", {"dir_path": "/x"}, "LS", {"path": "/x"}),
        ("task", {"goal_prompt": "p", "subagent_name": "s"}, "Agent", {"prompt": "p", "subagent_type": "s"}),
        ("mcp__shop__refund", {"id": 1}, "mcp__shop__refund", {"id": 1}),
        ("own_tool", {"id": 1}, "own_tool", {"id": 1}),
    ],
)
async def test_tools_and_arguments_have_their_names_there(
    claude: MakeHooks, received: Callable[[], dict[str, Any]], tool: str, arguments: dict[str, Any], name: str,
    shown: dict[str, Any],
) -> None:  # fmt: skip
    await claude("PreToolUse", SAVE).run_tool(tool, arguments, lambda _: "done")

    payload = received()
    assert payload["tool_name"] == name
    assert payload["tool_input"] == shown


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("insert_at_line", {"file_path": ".env", "line_number": 1, "content": "KEY=1"}),
        ("delete_line_range", {"absolute_path": ".env", "start_line": 1, "end_line": 2}),
        ("ast_edit", {"file_path": ".env", "old_string": "a", "new_string": "b"}),
        ("apply_patch", {"patch": "*** Begin Patch\n*** Update File: .env\n@@\n-a\n+b\n*** End Patch"}),
        ("apply_patch", {"patch_content": "--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-a\n+b\n"}),
        ("apply_patch", {"patch": "*** Begin Patch\n*** Update File: a\n@@\n-a\n+b\n*** Add File: .env\n+K=1\n"}),
        ("apply_patch", {"patch": "*** Begin Patch\n*** Update File: a\n*** Move to: .env\n@@\n-a\n+b\n"}),
        ("apply_patch", {"patch": "--- a\n+++ a\n@@ -1 +1 @@\n-a\n+b\n--- .env\n+++ .env\n@@ -1 +1 @@\n-a\n+b\n"}),
        ("apply_patch", {"patch": "diff --git a/a b/.env\nsimilarity index 100%\nrename from a\nrename to .env\n"}),
        ("apply_patch", {"patch": 'diff --git "a/\\056env" "b/\\056env"\nnew file mode 100644\n'}),
        ("apply_patch", {"patch": "*** a\tnow\n--- .env\tnow\n***************\n*** 1 ****\n! a\n--- 1 ----\n! b\n"}),
        ("apply_patch", {"file_path": "a", "patch_content": "--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-a\n+b\n"}),
        ("apply_patch", {"operations": [{"type": "update_file", "path": "a"}, {"path": ".env", "diff": "+K=1"}]}),
    ],
)
async def test_a_guard_for_files_sees_every_tool_that_writes_one(
    claude: MakeHooks, tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    guard = 'jq -r .tool_input.file_path | grep -q "^$CLAUDE_PROJECT_DIR/.env$" && exit 2 || true'

    result = await claude("PreToolUse", guard, "Edit|Write|MultiEdit").run_tool(tool, arguments, lambda _: "written")

    assert result.error is not None


PATCH = """*** Begin Patch
*** Update File: changed.py
@@
-old
+new
*** Add File: a/made.py
+first
+second
*** End Patch"""


@pytest.mark.parametrize(
    ("matcher", "shown"),
    [
        ("Edit|Write", [("Edit", "changed.py"), ("Write", "a/made.py")]),
        ("Write", [("Write", "a/made.py")]),
        ("Edit", [("Edit", "changed.py"), ("Edit", "a/made.py")]),
        ("Bash", []),
    ],
)
async def test_each_file_of_a_patch_is_a_call_of_its_own_to_guards(
    claude: MakeHooks, tmp_path: Path, matcher: str, shown: list[tuple[str, str]]
) -> None:
    hooks = claude("PreToolUse", "cat > $$.json", matcher)

    await hooks.run_tool("apply_patch", {"patch": PATCH}, lambda _: "patched")

    payloads = [json.loads(file.read_text()) for file in tmp_path.glob("*.json")]
    calls = {each["tool_input"]["file_path"]: (each["tool_name"], each["tool_input"]) for each in payloads}
    assert {path: name for path, (name, _) in calls.items()} == {str(tmp_path / path): name for name, path in shown}
    if ("Write", "a/made.py") in shown:
        assert calls[str(tmp_path / "a/made.py")][1]["content"] == "first\nsecond\n"
    if ("Edit", "changed.py") in shown:
        assert "made.py" not in calls[str(tmp_path / "changed.py")][1]["new_string"]


async def test_one_file_of_several_in_a_patch_cannot_be_changed(claude: MakeHooks) -> None:
    change = 'jq -c "{hookSpecificOutput: {hookEventName: .hook_event_name, updatedInput: (.tool_input + $more)}}"'
    same, other = (claude("PreToolUse", change.replace("$more", more)) for more in ("{}", '{new_string: \\"x\\"}'))

    kept = await same.run_tool("apply_patch", {"patch": PATCH}, lambda given: given["patch"])
    refused = await other.run_tool("apply_patch", {"patch": PATCH}, lambda _: "patched")

    assert kept.llm_content == PATCH
    assert refused.error is not None


@pytest.mark.parametrize(
    ("matcher", "tool", "runs"),
    [
        ("Bash", "run_shell_command", True),
        ("bash", "run_shell_command", False),
        ("Edit", "replace", True),
        ("Edi", "replace", False),
        ("Write | Edit,Read", "read_file", True),
        ("^Rea.*", "read_file", True),
        ("run_shell_command", "run_shell_command", False),
        ("Task", "task", True),
        ("Agent", "task", True),
        ("mcp__shop__.*", "mcp__shop__refund", True),
        ("mcp__shop", "mcp__shop__refund", False),
        ("Edit", "mcp__files__replace", False),
        ("", "own_tool", True),
        ("(", "read_file", False),
    ],
)
async def test_matchers_are_compared_as_claude_code_does(
    claude: MakeHooks, matcher: str, tool: str, runs: bool
) -> None:
    result = await claude("PreToolUse", "exit 2", matcher).run_tool(tool, {}, lambda _: "done")

    assert (result.error is not None) is runs


@pytest.mark.parametrize(("matcher", "name"), [("^send.mail$", "send\ud800mail"), ("x\ud800y", "x\ud800y")])
async def test_a_guard_is_not_evaded_by_a_lone_surrogate(claude: MakeHooks, matcher: str, name: str) -> None:
    result = await claude("PreToolUse", "exit 2", matcher).run_tool(name, {}, lambda _: "done")

    assert result.error is not None


@pytest.mark.parametrize(
    ("rule", "tool", "arguments", "runs"),
    [
        ("Bash(git push *)", "run_shell_command", {"command": "git push --force"}, True),
        ("Bash(git push *)", "run_shell_command", {"command": "git push"}, True),
        ("Bash(git push *)", "run_shell_command", {"command": "git pushy"}, False),
        ("Bash(git push:*)", "run_shell_command", {"command": "cd x && A=1 git push -f"}, True),
        ("Bash(git push:*)", "run_shell_command", {"command": "ls"}, False),
        ("Bash(rm *)", "run_shell_command", {"command": "echo $(rm -rf x)"}, True),
        ("Bash(rm *)", "run_shell_command", {"command": "timeout 5 rm x"}, True),
        ("Bash", "write_file", {"file_path": "a"}, False),
        ("Edit(.env*)", "write_file", {"file_path": "sub/.env.local"}, True),
        ("Edit(.env*)", "write_file", {"file_path": "sub/env.txt"}, False),
        ("Write(/src/**)", "write_file", {"file_path": "src/a/b.py"}, True),
        ("Write(/src/**)", "write_file", {"file_path": "tests/b.py"}, False),
        ("Edit(//etc/**)", "replace", {"file_path": "/etc/passwd"}, True),
        ("Bash(git * push * main)", "run_shell_command", {"command": "git -C a push origin main"}, True),
        ("Bash(git * push * main)", "run_shell_command", {"command": "git -C a push origin mainly"}, False),
        ("Bash(git*push *)", "run_shell_command", {"command": "git pushy; git push-x push origin"}, True),
        ("Bash(rm *)", "run_shell_command", {"command": "A='x y'\"z\"B C=3 nohup time rm x"}, True),
        ("Edit(/**)", "write_file", {"file_path": "..a/x.py"}, True),
        ("Edit(/**)", "write_file", {"file_path": "../x.py"}, False),
        ("Edit(/**)", "write_file", {"file_path": ".."}, False),
        ("Edit(a*b?/*.py)", "write_file", {"file_path": "a.b+/x.py/y"}, True),
        ("Edit(a*b?/*.py)", "write_file", {"file_path": "a/bc/x.py"}, False),
        pytest.param("Bash(x *)", "run_shell_command", {"command": "A=" + "'b'" * 60}, False, id="quotations"),
        pytest.param("Bash(x *)", "run_shell_command", {"command": "a" * 300_000}, False, id="a long word"),
        pytest.param("Bash(x *)", "run_shell_command", {"command": "A=b time " * 50_000}, False, id="long beginning"),
        pytest.param("Bash(*a*a*a*b)", "run_shell_command", {"command": "a" * 20_000}, False, id="stars"),
        pytest.param("Edit(*a*a*a*a*b)", "write_file", {"file_path": "a" * 3000}, False, id="stars in a path"),
    ],
)
async def test_a_hook_with_a_rule_runs_for_its_calls_only(
    claude: MakeHooks, rule: str, tool: str, arguments: dict[str, Any], runs: bool
) -> None:
    hooks = claude("PreToolUse", "exit 2", **{"if": rule})

    result = await hooks.run_tool(tool, arguments, lambda _: "done")

    assert (result.error is not None) is runs


async def test_changed_arguments_replace_all_others(claude: MakeHooks) -> None:
    hooks = claude("PreToolUse", _answers("PreToolUse", permissionDecision="allow", updatedInput={"command": "ls -l"}))

    result = await hooks.run_tool("run_shell_command", {"command": "ls", "description": "d"}, lambda given: given)

    assert result.llm_content == {"command": "ls -l"}


async def test_a_whole_replacement_comes_after_the_changes_of_native_hooks(tmp_path: Path) -> None:
    group = {"hooks": [{"type": "command", "command": _answers("PreToolUse", updatedInput={"command": "theirs"})}]}
    native = {"hooks": [{"type": "command", "command": "echo '" + json.dumps(
        {"hookSpecificOutput": {"tool_input": {"command": "ours", "description": "d"}}}) + "'"}]}  # fmt: skip
    hooks = {"BeforeTool": [{**group, "dialect": "claude"}, native]}
    config = Config(enable_hooks=True, working_dir=tmp_path, hooks=hooks)

    result = await Hooks(config).run_tool("run_shell_command", {"command": "ls"}, lambda given: given)

    assert result.llm_content == {"command": "theirs"}


async def test_paths_that_a_hook_does_not_change_stay_as_they_were(claude: MakeHooks, tmp_path: Path) -> None:
    updated = {"file_path": str(tmp_path / "a"), "content": "new"}
    hooks = claude("PreToolUse", _answers("PreToolUse", updatedInput=updated))

    result = await hooks.run_tool("write_file", {"absolute_path": "a", "content": "old"}, lambda given: given)

    assert result.llm_content == {"absolute_path": "a", "content": "new"}


async def test_a_change_that_cannot_be_applied_refuses_the_call(claude: MakeHooks) -> None:
    hooks = claude("PreToolUse", _answers("PreToolUse", updatedInput={"file_path": "/x", "old_string": "other"}))

    result = await hooks.run_tool("insert_at_line", {"file_path": "a", "content": "c"}, lambda given: given)

    assert result.error is not None
    assert "cannot be applied" in result.llm_content


async def test_what_a_hook_adds_before_a_call_is_beside_the_result(claude: MakeHooks) -> None:
    hooks = claude("PreToolUse", _answers("PreToolUse", additionalContext="mind the tests"))

    result = await hooks.run_tool("read_file", {"file_path": "a"}, lambda _: "content")

    assert result.llm_content == "content\n\nmind the tests"


async def test_a_block_after_a_call_is_beside_the_result(claude: MakeHooks) -> None:
    result = await claude("PostToolUse", "echo not formatted >&2; exit 2").run_tool(
        "write_file", {"file_path": "a"}, lambda _: "written"
    )

    assert result.error is None
    assert result.llm_content.startswith("written\n\n")
    assert result.llm_content.endswith("not formatted")


@pytest.mark.parametrize(
    ("tool", "arguments", "outcome", "expected"),
    [
        ("run_shell_command", {"command": "ls"}, "a.txt", {"stdout": "a.txt", "stderr": "", "interrupted": False}),
        ("write_file", {"file_path": "/x", "content": "c"}, "ok", {"type": "create", "filePath": "/x", "content": "c"}),
        ("replace", {"file_path": "/x", "old_string": "a", "new_string": "b"}, "ok",
         {"filePath": "/x", "oldString": "a", "newString": "b", "replaceAll": False}),
        ("glob", {"pattern": "*"}, "a\nb", {"filenames": ["a", "b"], "numFiles": 2, "truncated": False}),
    ],
)  # fmt: skip
async def test_results_have_the_shapes_of_claude_code(
    claude: MakeHooks, received: Callable[[], dict[str, Any]], tool: str, arguments: dict[str, Any], outcome: str,
    expected: dict[str, Any],
) -> None:  # fmt: skip
    await claude("PostToolUse", SAVE).run_tool(tool, arguments, lambda _: outcome)

    payload = received()
    assert payload["tool_response"].items() >= expected.items()
    assert 0 <= payload["duration_ms"] < 60_000


async def test_the_id_of_a_call_is_the_same_before_and_after_it(tmp_path: Path) -> None:
    save = "jq -r .tool_use_id >> ids.txt"
    groups = {event: [{"hooks": [{"type": "command", "command": save}]}] for event in ("PreToolUse", "PostToolUse")}
    hooks = Hooks(Config(enable_hooks=True, working_dir=tmp_path, hooks=groups, dialect="claude"))

    await hooks.run_tool("read_file", {"file_path": "a"}, lambda _: "content")

    before, after = (tmp_path / "ids.txt").read_text().splitlines()
    assert before == after
    assert before.startswith("toolu_")


async def test_a_failed_call_is_another_event(tmp_path: Path) -> None:
    groups = {
        event: [{"hooks": [{"type": "command", "command": f"jq -r '.error' > {event}"}]}]
        for event in ("PostToolUse", "PostToolUseFailure")
    }
    hooks = Hooks(Config(enable_hooks=True, working_dir=tmp_path, hooks=groups, dialect="claude"))

    def fail(_: dict[str, Any]) -> str:
        raise OSError("no such file")

    with pytest.raises(OSError, match="no such file"):
        await hooks.run_tool("read_file", {"file_path": "a"}, fail)
    failed_command = ToolResult("stdout:\nout\n[exit code 3]", "", metadata={"exit_code": 3})
    await hooks.run_tool("run_shell_command", {"command": "x"}, lambda _: failed_command)

    assert not (tmp_path / "PostToolUse").exists()
    assert (tmp_path / "PostToolUseFailure").read_text() == "Exit code 3\nout\n"


async def test_a_prompt_gets_the_text_that_hooks_print(claude: MakeHooks) -> None:
    start = await claude("UserPromptSubmit", "echo today is Monday").before_turn("hello")

    assert start.prompt == "hello\n\ntoday is Monday"


async def test_a_refused_prompt_is_worded_as_there(claude: MakeHooks) -> None:
    start = await claude("UserPromptSubmit", "echo no >&2; exit 2").before_turn("hello")

    assert start.blocked
    assert start.reason == (
        "UserPromptSubmit operation blocked by hook:\n[echo no >&2; exit 2]: no\n\n\nOriginal prompt: hello"
    )


async def test_the_agent_continues_until_the_hook_lets_it_stop(
    claude: MakeHooks, received: Callable[[], dict[str, Any]]
) -> None:
    command = f"{SAVE}; jq -e .stop_hook_active payload.json >/dev/null || {{ echo run the tests >&2; exit 2; }}"
    prompts: list[str] = []

    def run(prompt: str) -> str:
        prompts.append(prompt)
        return "done"

    turn = await claude("Stop", command).run_turn("hello", run)

    assert turn.continuations == 1
    assert prompts[1].startswith("Stop hook feedback:\n[")
    assert prompts[1].endswith("]: run the tests")
    assert received()["last_assistant_message"] == "done"


async def test_the_end_of_a_subagent_is_reported(claude: MakeHooks, received: Callable[[], dict[str, Any]]) -> None:
    hooks = claude("SubagentStop", SAVE, "")

    await hooks.run_tool("task", {"subagent_name": "reviewer", "goal_prompt": "p"}, lambda _: "reviewed")

    payload = received()
    assert payload["hook_event_name"] == "SubagentStop"
    assert payload["agent_type"] == "reviewer"
    assert payload["last_assistant_message"] == "reviewed"


async def test_hooks_get_the_variables_of_claude_code_and_none_that_it_never_sets(
    claude: MakeHooks, tmp_path: Path
) -> None:
    await claude("PreToolUse", "env > env.txt").run_tool("read_file", {"file_path": "a"}, lambda _: "content")

    variables = dict(line.split("=", 1) for line in (tmp_path / "env.txt").read_text().splitlines() if "=" in line)
    assert variables["CLAUDE_PROJECT_DIR"] == str(tmp_path)
    assert variables["CLAUDECODE"] == "1"
    assert "CLAUDE_TOOL_INPUT" not in variables
    assert "CLAUDE_FILE_PATHS" not in variables
    assert "CLAUDE_ENV_FILE" not in variables


async def test_arguments_in_a_list_need_no_shell(claude: MakeHooks, tmp_path: Path) -> None:
    hooks = claude("PreToolUse", "touch", args=["${CLAUDE_PROJECT_DIR}/a b", "$HOME;c"])

    await hooks.run_tool("read_file", {"file_path": "a"}, lambda _: "content")

    assert {"$HOME;c", "a b"} <= {each.name for each in tmp_path.iterdir()}


async def test_nobody_waits_for_a_hook_in_the_background(claude: MakeHooks, tmp_path: Path) -> None:
    (tmp_path / "gate").touch()
    hooks = claude("PreToolUse", "while [ -e gate ]; do sleep 0.02; done; exit 2", **{"async": True})

    result = await hooks.run_tool("read_file", {"file_path": "a"}, lambda _: "content")
    (tmp_path / "gate").unlink()

    assert result.llm_content == "content"


async def test_the_same_hook_twice_runs_once_and_another_matcher_makes_it_another(tmp_path: Path) -> None:
    hook = {"type": "command", "command": "echo x >> runs.txt"}
    groups = [{"matcher": matcher, "hooks": [hook]} for matcher in ("Read", "Read", "Read|Bash")]
    config = Config(enable_hooks=True, working_dir=tmp_path, hooks={"PreToolUse": groups}, dialect="claude")

    await Hooks(config).run_tool("read_file", {"file_path": "a"}, lambda _: "content")

    assert (tmp_path / "runs.txt").read_text() == "x\nx\n"


async def test_a_native_group_can_speak_claude(tmp_path: Path) -> None:
    hook = {"type": "command", "command": "jq -e '.tool_name == \"Bash\"' && exit 2", "timeout": 5000}
    groups = [{"matcher": "^run_shell_command$", "dialect": "claude", "hooks": [hook]}]
    hooks = Hooks(Config(enable_hooks=True, working_dir=tmp_path, hooks={"BeforeTool": groups}))

    result = await hooks.run_tool("run_shell_command", {"command": "ls"}, lambda _: "done")

    assert result.error is not None


async def test_the_deny_of_either_dialect_wins(tmp_path: Path) -> None:
    allow = {"hooks": [{"type": "command", "command": 'echo \'{"decision": "allow"}\''}]}
    deny = {"dialect": "claude", "hooks": [{"type": "command", "command": "exit 2"}]}
    hooks = Hooks(Config(enable_hooks=True, working_dir=tmp_path, hooks={"BeforeTool": [deny, allow]}))

    result = await hooks.run_tool("read_file", {"file_path": "a"}, lambda _: "content")

    assert result.error is not None
