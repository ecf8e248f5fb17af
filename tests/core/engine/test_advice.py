"""Warnings at run time about mistakes that leave a guard without effect: they name the hook, and come once (D-93)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import Config, HookEventName, Hooks, ToolResult, ask, execute_tool_with_hooks
from llxprt_hooks.core.engine.planner import HookPlanner
from tests.support.replies import printing, run_tool

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.project import Project

    Warnings = Callable[[], list[str]]


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Warnings:
    return lambda: [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def configured(command: str, event: str = "BeforeTool", **hook: Any) -> Config:
    entry = {"type": "command", "command": command, "name": "guard", **hook}
    return Config(enable_hooks=True, hooks={event: [{"hooks": [entry]}]})


FIELDS = "decision, reason, continue, stopReason, suppressOutput, systemMessage, hookSpecificOutput"
NOT_JSON = (
    "it printed text that looks like a decision, but is not one JSON object: "
    "that is passed on as a message, and nothing is blocked"
)
ASK = (
    "`ask` doesn't prompt anyone here, and the call goes ahead; to ask a person, set `hooksConfig.profile` to `full`; "
    "to block it, return `deny`"
)
NO_JQQ = (
    "it did not find the program `jqq` and went on without it, so a check may have been skipped: install it. "
    "If that is intended, send its stderr to /dev/null; "
    'otherwise begin the script with `set -eu` and set "failClosed": true'
)
MISTAKES: dict[str, tuple[str, str]] = {
    "a program with a name that may be a secret": (
        "x=$(ghp_s3cretT0ken .); true",
        NO_JQQ.replace("the program `jqq`", "a program"),
    ),
    "misspelled": (printing({"descision": "deny"}), "`descision` is not read: did you mean `decision`?"),
    "in capitals": (printing({"Continue": False}), "`Continue` is not read: did you mean `continue`?"),
    "misplaced": (
        printing({"permissionDecision": "deny"}),
        "`permissionDecision` is not read there: it belongs in `hookSpecificOutput`",
    ),
    "misplaced in the specific output": (
        printing({"hookSpecificOutput": {"decision": "deny"}}),
        "`hookSpecificOutput.decision` is not read there: it belongs at the top level",
    ),
    "misspelled in the specific output": (
        printing({"hookSpecificOutput": {"permisionDecision": "deny"}}),
        "`hookSpecificOutput.permisionDecision` is not read: did you mean `permissionDecision`?",
    ),
    "misspelled and misplaced": (
        printing({"hookSpecificOutput": {"Decision": "deny"}}),
        "`hookSpecificOutput.Decision` is not read: did you mean `decision` at the top level?",
    ),
    "misspelled permission": (
        printing({"permission_decision": "deny"}),
        "`permission_decision` is not read: did you mean `permissionDecision` in `hookSpecificOutput`?",
    ),
    "misspelled message": (
        printing({"systemMessages": "hi"}),
        "`systemMessages` is not read: did you mean `systemMessage`?",
    ),
    "a reason, but no decision": (
        printing({"result": "deny", "rule": 7, "reason": "no"}),
        f"its answer has no effect: `result`, `rule` are not read; known fields: {FIELDS}",
    ),
    "only a reason": (
        printing({"reason": "no"}),
        (
            'it gives a reason, but decides nothing, so nothing is blocked: to block, add `"decision": "deny"`, '
            'and to stop the agent `"continue": false`'
        ),
    ),
    "nothing known in the specific output": (
        printing({"hookSpecificOutput": {"hookEventName": "x", "block": True}}),
        f"its answer has no effect: `hookSpecificOutput.block` is not read; known fields: {FIELDS}",
    ),
    "nothing known": (
        printing({"block": True, "why": "no"}),
        f"none of its fields is read (`block`, `why`); known fields: {FIELDS}",
    ),
    "many": (
        printing({f"x{number}": 1 for number in range(1000)}),
        f"none of its fields is read (`x0`, `x1`, `x2`, `x3`, `x4`); known fields: {FIELDS}",
    ),
    "escapes": (printing({"de\x1b[cision": "deny"}), r"`de\x1b[cision` is not read: did you mean `decision`?"),
    "wrong type": (
        printing({"decision": "allow", "reason": 7}),
        "`reason` is ignored: expected a string, found a number",
    ),
    "text before JSON": (f"echo checking; {printing({'decision': 'deny'})}", NOT_JSON),
    "Python's dict": (printing("{'decision': 'deny'}"), NOT_JSON),
    "not JSON": (printing('{"continue" : false,}'), NOT_JSON),
    "YAML": (printing("permissionDecision: deny"), NOT_JSON),
    "escaped": (printing(r"{\"decision\": \"deny\"}"), NOT_JSON),
    "ask": (printing({"decision": "ask"}), ASK),
    "ask in the older spelling": (printing({"hookSpecificOutput": {"permissionDecision": "ask"}}), ASK),
    "bash": ("jqq -r .tool_name; true", NO_JQQ),
    "dash": ("sh -c 'x=$(jqq -r .tool_name); exit 0'", NO_JQQ),
    "zsh": ("echo 'guard.sh:3: command not found: jqq' >&2", NO_JQQ),
}


@pytest.mark.parametrize(("command", "advice"), MISTAKES.values(), ids=MISTAKES)
async def test_a_mistake_is_logged_with_the_hook_and_the_call_goes_ahead(
    command: str, advice: str, warnings: Warnings
) -> None:
    assert (await run_tool(configured(command))).error is None

    assert warnings() == [f"BeforeTool: hook `guard`: {advice}"]


async def test_fail_closed_is_not_suggested_where_it_is_set(warnings: Warnings) -> None:
    await run_tool(configured("jqq; true", failClosed=True))

    [warning] = warnings()
    assert warning.endswith("otherwise begin the script with `set -eu`")


QUIET: dict[str, str] = {
    "nothing": "true",
    "no opinion": printing({}),
    "null": printing({"descision": None}),
    "fields of one's own": printing({"decision": "allow", "rule": "R-17"}),
    "fields of one's own in the specific output": printing({"hookSpecificOutput": {"tool_input": {}, "rule": "R-17"}}),
    "misspelled beside the right field": printing({"decision": "allow", "decisions": ["x"]}),
    "text": printing("Decision: go on. To continue: nothing."),
    "a remark": "echo 'config: not found, using defaults' >&2",
    "missing program that is meant to be missing": "set -eu; x=$(jqq 2>/dev/null || echo x)",
    "block in spite of a missing program": f"jqq; {printing({'decision': 'deny'})}",
    "block beside ask": printing({"decision": "deny", "hookSpecificOutput": {"permissionDecision": "ask"}}),
    "stop beside ask": printing({"decision": "ask", "continue": False}),
}


@pytest.mark.parametrize("command", QUIET.values(), ids=QUIET)
async def test_valid_output_causes_no_warning(command: str, warnings: Warnings) -> None:
    await run_tool(configured(command))

    assert warnings() == []


async def test_advice_comes_once_for_each_hook_and_mistake(warnings: Warnings) -> None:
    hooks = [
        {"type": "command", "command": f"jqq; {printing({'decision': 'ask'})}", "name": "first"},
        {"type": "command", "command": printing({"decision": "ask"}), "name": "second"},
    ]
    config = Config(enable_hooks=True, hooks={"BeforeTool": [{"hooks": hooks}]})
    for _ in range(3):
        await run_tool(config)

    assert warnings() == [
        f"BeforeTool: hook `first`: {ASK}",
        f"BeforeTool: hook `first`: {NO_JQQ}",
        f"BeforeTool: hook `second`: {ASK}",
    ]


async def test_a_misspelled_decision_of_a_fail_closed_hook_blocks_and_is_named() -> None:
    result = await run_tool(configured(printing({"descision": "allow"}), failClosed=True))

    assert result.llm_content == (
        "blocked because failClosed is set: hook `guard` gave no clear answer: "
        "`descision` is not read: did you mean `decision`?"
    )


async def test_the_failure_of_a_fail_closed_hook_is_warned_of_once(warnings: Warnings) -> None:
    await run_tool(configured(printing({"descision": "allow"}), failClosed=True))

    [warning] = warnings()
    assert warning.endswith("did you mean `decision`? The call is blocked, because failClosed is set")


@pytest.mark.parametrize("fail_closed", [True, False])
async def test_a_function_is_read_the_same_way(fail_closed: bool, warnings: Warnings) -> None:
    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: {7: "x", "descision": "deny"}, name="guard", fail_closed=fail_closed)  # type: ignore[type-var]

    result = await hooks.run_tool("rm", {}, lambda _: "RAN")

    assert (result.error is not None) is fail_closed
    assert "`descision` is not read: did you mean `decision`?" in warnings()[0]


async def test_an_answer_of_a_function_without_any_name_is_unclear() -> None:
    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: {7: "x"}, name="guard", fail_closed=True)  # type: ignore[type-var]

    result = await hooks.run_tool("rm", {}, lambda _: "RAN")

    assert "gave no clear answer: none of its fields is read; known fields: " in result.llm_content


async def test_ask_of_a_function_is_warned_of(warnings: Warnings) -> None:
    hooks = Hooks()
    hooks.on("BeforeTool", lambda payload: ask("Is this right?"), name="guard", fail_closed=True)

    assert (await hooks.run_tool("rm", {}, lambda _: "RAN")).llm_content == "RAN"
    assert warnings() == [f"BeforeTool: hook `guard`: {ASK}"]


async def test_a_hook_that_only_observes_is_warned_of_too(warnings: Warnings) -> None:
    await run_tool(configured(printing({"descision": "deny"}), mode="observe"))

    assert warnings() == ["BeforeTool: hook `guard`: `descision` is not read: did you mean `decision`?"]


async def test_ask_is_not_warned_of_where_nothing_can_be_blocked(warnings: Warnings) -> None:
    await run_tool(configured(printing({"decision": "ask"}), "AfterTool"))

    assert warnings() == []


EXIT_2 = "To block, exit with 2."


async def test_exit_code_1_is_reported_with_what_would_block(warnings: Warnings) -> None:
    await run_tool(configured("echo no >&2; exit 1"))

    [warning] = warnings()
    assert warning == (
        "BeforeTool: hook `guard` exited with code 1, which is a failure: the call goes ahead. "
        f'{EXIT_2} To block whenever the hook fails, set "failClosed": true. Its stderr: no'
    )


@pytest.mark.parametrize(
    ("command", "event"), [("exit 3", "BeforeTool"), ("exit 1", "AfterTool"), ("python3 -c 1/0", "BeforeTool")]
)
async def test_exit_code_2_is_not_suggested_where_it_was_not_meant(
    command: str, event: str, warnings: Warnings
) -> None:
    await run_tool(configured(command, event))

    [warning] = warnings()
    assert EXIT_2 not in warning


# Matchers that are not valid.

INVALID = (
    "`matcher` '^(write_file' is not a valid regular expression, so it is compared as plain text: "
    "hook `{}` will match almost no tool, so it will not block anything"
)


@pytest.mark.requirement("HOOK-088")
async def test_a_matcher_that_is_not_valid_is_warned_of_at_the_first_event(warnings: Warnings) -> None:
    names = ("first", "second")
    hooks = [{"type": "command", "command": "exit 2", "name": name} for name in names]
    group = {"matcher": "^(write_file", "hooks": hooks}
    config = Config(enable_hooks=True, hooks={"BeforeTool": [group]})
    for _ in range(2):
        assert (await run_tool(config)).error is None

    assert warnings() == [
        f"hooks.BeforeTool[0].hooks[{number}]: {INVALID.format(name)}" for number, name in enumerate(names)
    ]


@pytest.mark.requirement("HOOK-088")
async def test_a_matcher_that_is_not_valid_still_matches_the_same_text() -> None:
    group = {"matcher": "^(write_file", "hooks": [{"type": "command", "command": "exit 2"}]}
    config = Config(enable_hooks=True, hooks={"BeforeTool": [group]})

    result = await execute_tool_with_hooks(config, "^(write_file", {}, lambda _: ToolResult("RAN"))

    assert result.error is not None


async def test_a_matcher_that_fail_closed_makes_one_for_all_is_not_warned_of_twice(warnings: Warnings) -> None:
    hook = {"type": "command", "command": "true", "failClosed": True}
    config = Config(enable_hooks=True, hooks={"BeforeTool": [{"matcher": "^(write_file", "hooks": [hook]}]})
    await run_tool(config)

    [warning] = warnings()
    assert "the group is for every tool" in warning


async def test_a_plan_says_that_a_matcher_is_not_valid() -> None:
    group = {"matcher": "^(write_file", "hooks": [{"type": "command", "command": "true"}]}
    system = Config(enable_hooks=True, hooks={"BeforeTool": [group]}).get_hook_system()
    assert system is not None
    await system.initialize()
    [planned] = HookPlanner(system.get_registry()).explain(HookEventName.BEFORE_TOOL, "write_file")

    assert planned.why == (
        "its matcher '^(write_file' is not a valid regular expression, so it matches only the same text"
    )


# Keys that are not read.

UNREAD: dict[str, tuple[dict[str, Any], str]] = {
    "misspelled": ({"failclosed": True}, "`failclosed` is ignored: unknown key. Did you mean `failClosed`?"),
    "another word": ({"timeoutMs": 5}, "`timeoutMs` is ignored: unknown key. Did you mean `timeout`?"),
    "misplaced": (
        {"matcher": "x"},
        "`matcher` is ignored: it has no effect here. Move it to the group, next to `hooks`.",
    ),
}
UNREAD_IN_GROUP: dict[str, tuple[dict[str, Any], str]] = {
    "misspelled": ({"mather": "x"}, "`mather` is ignored: unknown key. Did you mean `matcher`?"),
    "another word": ({"tools": "x"}, "`tools` is ignored: unknown key. Did you mean `matcher`?"),
    "misplaced": (
        {"failClosed": True},
        "`failClosed` is ignored: it has no effect here. Move it to a hook, next to `type`.",
    ),
}


@pytest.mark.parametrize(("keys", "problem"), UNREAD.values(), ids=UNREAD)
async def test_a_key_of_a_hook_that_is_not_read_is_warned_of(
    keys: dict[str, Any], problem: str, warnings: Warnings
) -> None:
    assert (await run_tool(configured("exit 2", **keys))).error is not None

    assert warnings() == [f"hooks.BeforeTool[0].hooks[0]: {problem}"]


@pytest.mark.parametrize(("keys", "problem"), UNREAD_IN_GROUP.values(), ids=UNREAD_IN_GROUP)
async def test_a_key_of_a_group_that_is_not_read_is_warned_of(
    keys: dict[str, Any], problem: str, warnings: Warnings
) -> None:
    group = {"hooks": [{"type": "command", "command": "exit 2"}], **keys}
    assert (await run_tool(Config(enable_hooks=True, hooks={"BeforeTool": [group]}))).error is not None

    assert warnings() == [f"hooks.BeforeTool[0]: {problem}"]


@pytest.mark.parametrize(
    "keys",
    [
        {"$comment": "why"},
        {"statusMessage": "Checking"},
        {"env": {}, "async": True, "model": "x"},
        {"vendor": 1, 7: 1},
        {"timeout": 5000, "timeOut": 7000},
        {"id" * 100: 1},
    ],
)
async def test_keys_of_other_programs_and_comments_are_not_warned_of(keys: dict[Any, Any], warnings: Warnings) -> None:
    hook = {"type": "command", "command": "exit 2", **keys}
    group = {"hooks": [hook], "description": "for people", "vendor": 1}
    assert (await run_tool(Config(enable_hooks=True, hooks={"BeforeTool": [group]}))).error is not None

    assert warnings() == []


async def test_suggestions_are_limited_to_the_first_unknown_keys(warnings: Warnings) -> None:
    many: dict[str, Any] = {f"x{number}": 1 for number in range(2000)}
    assert (await run_tool(configured("exit 2", **many, failclosed=True))).error is not None

    assert warnings() == []


@pytest.mark.parametrize("name", ["failclosed", "BeforTool"])
async def test_the_position_is_that_of_the_key(
    sandbox: Project, name: str, monkeypatch: pytest.MonkeyPatch, warnings: Warnings
) -> None:
    monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", "1")
    text = """{ "enableHooks": true, "hooks": {
  "BeforTool": [],
  "BeforeTool": [{ "hooks": [
    { "type": "command", "command": "true",
      "failclosed": true }] }] } }"""
    sandbox.put("project", text)
    await run_tool(Config.load(sandbox.root))

    before = text[: text.index(f'"{name}"')]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    assert [each for each in warnings() if f"settings.json:{line}:{column}: " in each]
