"""Hooks around a tool call: what a script says, and what becomes of the tool, its arguments and its result."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import llxprt_hooks
from llxprt_hooks import (
    BeforeToolHookOutput,
    DefaultHookOutput,
    ToolResult,
    execute_tool_with_hooks,
    fire_after_tool_hook,
    fire_before_tool_hook,
)

if TYPE_CHECKING:
    from types import ModuleType

    from tests.support.engine_project import EngineProject

RunTool = Callable[..., Awaitable[ToolResult]]

GIVEN = {"file_path": "a.txt", "content": "x"}


class Tool:
    """A tool that notes what it was called with."""

    def __init__(self, result: object = "done") -> None:
        self.calls: list[Mapping[str, Any]] = []
        self.result = result

    async def __call__(self, tool_input: Mapping[str, Any]) -> Any:
        self.calls.append(tool_input)
        return self.result


@pytest.fixture
def run(project: EngineProject) -> Any:
    """Run a tool with what its BeforeTool and AfterTool hook say."""

    async def run(before: Any = None, after: Any = None, tool: Any = None, given: Any = GIVEN) -> Any:
        events = {"BeforeTool": before, "AfterTool": after}
        config = project.config(
            {event: project.hook(event, said) for event, said in events.items() if said is not None}
        )
        return await execute_tool_with_hooks(config, "write_file", given, tool or Tool())

    return run


# What the two triggers return.


@pytest.mark.requirement("HOOK-127", "HOOK-150")
async def test_the_before_trigger_returns_the_merged_output(project: EngineProject) -> None:
    config = project.config(
        {"BeforeTool": [project.hook("a", {"reason": "one"}), project.hook("b", {"reason": "two"})]}
    )
    output = await fire_before_tool_hook(config, "write_file", GIVEN)
    assert isinstance(output, DefaultHookOutput)
    assert isinstance(output, BeforeToolHookOutput)
    assert output.reason == "one\ntwo"


@pytest.mark.requirement("HOOK-128", "HOOK-151", "HOOK-217")
async def test_the_after_trigger_returns_the_effects_and_applies_none_of_them(project: EngineProject) -> None:
    said = {
        "systemMessage": "note",
        "suppressOutput": True,
        "continue": False,
        "stopReason": "enough",
        "hookSpecificOutput": {"additionalContext": "more"},
    }
    response = {"llmContent": "text", "returnDisplay": "shown", "metadata": {}}
    output = await fire_after_tool_hook(project.config({"AfterTool": project.hook(says=said)}), "glob", {}, response)
    assert isinstance(output, DefaultHookOutput)
    assert (output.system_message, output.suppress_output) == ("note", True)
    assert (output.should_stop_execution(), output.stop_reason) == (True, "enough")
    assert output.get_additional_context() == "more"
    assert response == {"llmContent": "text", "returnDisplay": "shown", "metadata": {}}


@pytest.mark.requirement("HOOK-127", "HOOK-128")
async def test_empty_outputs_merge_to_nothing(project: EngineProject) -> None:
    config = project.config({"BeforeTool": project.hook("before"), "AfterTool": project.hook("after")})
    assert await fire_before_tool_hook(config, "glob", {}) is None
    assert await fire_after_tool_hook(config, "glob", {}, {"llmContent": "x"}) is None
    assert project.runs("before") == project.runs("after") == 1


# Before the tool.


@pytest.mark.requirement("HOOK-183", "HOOK-177", "HOOK-156")
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"says": {"decision": "block", "reason": "no secrets"}}, "no secrets"),
        ({"says": {"decision": "deny", "reason": "no secrets"}}, "no secrets"),
        ({"says": {"decision": "deny", "stopReason": "second best"}}, "second best"),
        ({"says": {"decision": "deny", "reason": "r", "stopReason": "s"}}, "r"),
        ({"says": {"decision": "deny"}}, "No reason provided"),
        ({"exit_code": 2, "stderr": "  from stderr\n"}, "from stderr"),
        ({"exit_code": 2}, "Blocked by hook"),
        ({"exit_code": 2, "says": {"decision": "allow"}}, "Blocked by hook"),
        (
            {"says": {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "compatible"}}},
            "compatible",
        ),
        (
            {
                "says": {
                    "decision": "deny",
                    "reason": "r",
                    "hookSpecificOutput": {"permissionDecisionReason": "comes first"},
                }
            },
            "comes first",
        ),
    ],
)
async def test_a_blocked_tool_does_not_run_and_the_model_gets_the_reason(
    project: EngineProject, options: dict[str, Any], reason: str
) -> None:
    tool = Tool()
    config = project.config({"BeforeTool": project.hook("before", **options), "AfterTool": project.hook("after")})
    result = await execute_tool_with_hooks(config, "write_file", GIVEN, tool)
    assert tool.calls == []
    assert isinstance(result, ToolResult)
    assert result.llm_content == reason
    assert result.error is not None
    assert result.stop_reason is None
    assert project.runs("after") == 0


@pytest.mark.parametrize("decision", ["allow", "approve", "ask", None, "nonsense"])
async def test_any_other_decision_lets_the_tool_run(run: RunTool, decision: str | None) -> None:
    tool = Tool()
    result = await run({"decision": decision, "reason": "fine"}, tool=tool)
    assert tool.calls == [GIVEN]
    assert result.llm_content == "done"


@pytest.mark.requirement("HOOK-019", "HOOK-177", "HOOK-156")
async def test_the_tool_runs_with_the_arguments_that_hooks_changed_and_after_tool_sees_them(
    project: EngineProject,
) -> None:
    tool = Tool()
    given = dict(GIVEN)
    changed = {"hookSpecificOutput": {"tool_input": {"file_path": "/safe/a.txt", "mode": {"w": 1}}}}
    config = project.config({"BeforeTool": project.hook("before", changed), "AfterTool": project.hook("after")})
    await execute_tool_with_hooks(config, "write_file", given, tool)
    final = {"file_path": "/safe/a.txt", "content": "x", "mode": {"w": 1}}
    assert tool.calls == [final]
    assert project.payload("after")["tool_input"] == final
    assert given == GIVEN


@pytest.mark.requirement("HOOK-019")
async def test_a_changed_input_of_a_hook_that_blocks_is_not_run(run: RunTool) -> None:
    tool = Tool()
    await run({"decision": "deny", "hookSpecificOutput": {"tool_input": {"file_path": "/safe"}}}, tool=tool)
    assert tool.calls == []


STOPS = [
    ({"stopReason": "s"}, "s"),
    ({"reason": "r"}, "r"),
    ({"stopReason": "s", "reason": "r"}, "s"),
    ({"stopReason": "s", "reason": "r", "decision": "deny"}, "s"),
    ({}, "No reason provided"),
]


@pytest.mark.requirement("HOOK-177", "DELTA-HAPP-002")
@pytest.mark.parametrize(("fields", "stop_reason"), STOPS)
async def test_a_stop_before_the_tool_keeps_it_from_running_and_reaches_the_caller(
    run: RunTool, fields: dict[str, Any], stop_reason: str
) -> None:
    tool = Tool()
    result = await run({"continue": False, **fields}, tool=tool)
    assert tool.calls == []
    assert result.stop_reason == stop_reason
    assert result.llm_content == ("r" if "decision" in fields else stop_reason)


# After the tool.


@pytest.mark.requirement("HOOK-178", "DELTA-HAPP-002", "HOOK-217")
@pytest.mark.parametrize(("fields", "stop_reason"), STOPS)
async def test_a_stop_after_the_tool_keeps_its_result_and_reaches_the_caller(
    run: RunTool, fields: dict[str, Any], stop_reason: str
) -> None:
    result = await run(after={"continue": False, **fields})
    assert result.llm_content == "done"
    assert result.stop_reason == stop_reason


@pytest.mark.requirement("HOOK-131", "HOOK-178", "HOOK-159", "HOOK-217")
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("done", "done\n\n[System] be careful"),
        ("", "\n\n[System] be careful"),
        ("done\n", "done\n\n\n[System] be careful"),
    ],
)
async def test_a_system_message_is_appended_for_the_model_and_never_displayed(
    run: RunTool, content: str, expected: str
) -> None:
    result = await run(after={"systemMessage": "be careful"}, tool=Tool(ToolResult(content, "shown")))
    assert result.llm_content == expected
    assert result.return_display == "shown"
    assert result.suppress_display is False


@pytest.mark.requirement("HOOK-131")
async def test_a_system_message_joins_content_that_consists_of_parts(run: RunTool, genai: ModuleType) -> None:
    part = genai.Part(text="seen")
    result = await run(after={"systemMessage": "m"}, tool=Tool(ToolResult([part])))
    assert result.llm_content[0] is part
    assert [genai.Part.model_validate(item).text for item in result.llm_content[1:]] == ["\n\n[System] m"]


@pytest.mark.parametrize(
    "content",
    [{"status": "ok"}, [{"status": "ok"}], ["a.txt", "b.txt"], [{"type": "text", "text": "a"}], [], 7, ("a",)],
)
async def test_text_of_hooks_never_changes_the_type_of_a_result_that_is_not_text(run: RunTool, content: Any) -> None:
    after = {"systemMessage": "m", "hookSpecificOutput": {"additionalContext": "more"}}
    result = await run(after=after, tool=Tool(ToolResult(content)))
    assert result.llm_content is content
    assert result.additions == ["more", "[System] m"]


async def test_text_of_hooks_is_listed_next_to_text_too(run: RunTool) -> None:
    result = await run(
        before={"systemMessage": "b"}, after={"hookSpecificOutput": {"additionalContext": "more"}, "systemMessage": "a"}
    )
    assert result.llm_content == "done\n\nmore\n\n[System] b\n\n[System] a"
    assert result.additions == ["more", "[System] b", "[System] a"]


@pytest.mark.requirement("HOOK-131")
async def test_a_system_message_joins_a_tool_that_gave_nothing(run: RunTool) -> None:
    result = await run(after={"systemMessage": "m"}, tool=Tool(ToolResult(None)))
    assert result.llm_content == "\n\n[System] m"


@pytest.mark.requirement("HOOK-159")
@pytest.mark.parametrize("said", [{"decision": "deny", "reason": "no"}, {"continue": False, "stopReason": "no"}])
async def test_a_system_message_of_a_blocked_tool_reaches_the_model_and_no_screen(
    run: RunTool, said: dict[str, Any]
) -> None:
    result = await run({**said, "systemMessage": "ask first"})
    assert result.llm_content == "no\n\n[System] ask first"
    assert "ask first" not in str(result.return_display)


@pytest.mark.requirement("HOOK-132", "HOOK-149", "HOOK-178", "HOOK-217")
async def test_a_suppressed_result_reaches_the_model_but_is_not_to_be_displayed(run: RunTool) -> None:
    result = await run(after={"suppressOutput": True})
    assert result.suppress_display is True
    assert result.llm_content == "done"
    assert (await run(after={"suppressOutput": False})).suppress_display is False


@pytest.mark.requirement("HOOK-132")
async def test_a_tool_that_suppresses_its_own_display_stays_suppressed(run: RunTool) -> None:
    result = await run(after={"suppressOutput": False}, tool=Tool(ToolResult("x", suppress_display=True)))
    assert result.suppress_display is True


@pytest.mark.requirement("HOOK-178", "HOOK-217", "HOOK-156")
async def test_all_effects_of_an_after_tool_hook_apply_together(run: RunTool) -> None:
    original = ToolResult("done", "shown", {"lines": 1}, {"message": "partly"})
    result = await run(
        after={
            "continue": False,
            "stopReason": "enough",
            "suppressOutput": True,
            "systemMessage": "note",
            "hookSpecificOutput": {"additionalContext": "more"},
        },
        tool=Tool(original),
    )
    assert result.llm_content.startswith("done")
    assert "more" in result.llm_content
    assert result.llm_content.endswith("\n\n[System] note")
    assert (result.suppress_display, result.stop_reason) == (True, "enough")
    assert (result.return_display, result.metadata, result.error) == ("shown", {"lines": 1}, {"message": "partly"})
    assert original == ToolResult("done", "shown", {"lines": 1}, {"message": "partly"})


@pytest.mark.requirement("HOOK-178")
@pytest.mark.parametrize(
    "options",
    [
        {"says": {"decision": "block", "reason": "too late"}},
        {"says": {"decision": "deny", "reason": "too late"}},
        {"exit_code": 2, "stderr": "too late"},
        {"says": {"hookSpecificOutput": {"tool_response": {"llmContent": "forged"}, "llmContent": "forged"}}},
        {"says": {"hookSpecificOutput": {"tool_input": {"file_path": "forged"}}}},
    ],
)
async def test_an_after_tool_hook_can_neither_block_nor_rewrite_the_result(
    project: EngineProject, options: dict[str, Any]
) -> None:
    config = project.config({"AfterTool": project.hook(**options)})
    result = await execute_tool_with_hooks(config, "write_file", GIVEN, Tool(ToolResult("done", "shown")))
    assert result == ToolResult("done", "shown")


@pytest.mark.requirement("HOOK-178")
async def test_a_block_after_the_tool_only_ends_a_sequential_chain(project: EngineProject) -> None:
    hooks = [
        {"type": "command", "command": project.hook("first", {"decision": "block", "systemMessage": "heard"})},
        {"type": "command", "command": project.hook("second")},
    ]
    config = project.config({"AfterTool": [{"sequential": True, "hooks": hooks}]})
    result = await execute_tool_with_hooks(config, "write_file", GIVEN, Tool())
    assert (project.runs("first"), project.runs("second")) == (1, 0)
    assert result.llm_content == "done\n\n[System] heard"


# The wrapper.


@pytest.mark.requirement("HOOK-133")
async def test_the_wrapper_runs_before_tool_and_after_in_this_order(project: EngineProject) -> None:
    order = project.root / "order"

    async def tool(tool_input: Mapping[str, Any]) -> Any:
        with order.open("a") as noted:
            noted.write("tool\n")
        return ToolResult("done")

    config = project.config(
        {"BeforeTool": f"cat >/dev/null; echo before >> {order}", "AfterTool": f"cat >/dev/null; echo after >> {order}"}
    )
    result = await execute_tool_with_hooks(config, "write_file", GIVEN, tool)
    assert order.read_text().split() == ["before", "tool", "after"]
    assert result == ToolResult("done")


@pytest.mark.requirement("HOOK-133")
@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("kind", ["function", "coroutine function", "awaitable"])
@pytest.mark.parametrize("outcome", [ToolResult("text", "shown"), "text"])
async def test_a_tool_may_be_any_callable_of_one_argument_and_give_a_result_or_a_text(
    project: EngineProject, enabled: bool, kind: str, outcome: Any
) -> None:
    async def waits(tool_input: Mapping[str, Any]) -> Any:
        await asyncio.sleep(0)
        return outcome

    execute = {
        "function": lambda tool_input: outcome,
        "coroutine function": waits,
        "awaitable": lambda tool_input: asyncio.ensure_future(waits(tool_input)),
    }[kind]
    config = project.config({"BeforeTool": project.hook()}, enable_hooks=enabled)
    result = await execute_tool_with_hooks(config, "write_file", GIVEN, execute)
    assert isinstance(result, ToolResult)
    assert result.llm_content == "text"
    assert project.runs() == enabled


@pytest.mark.requirement("HOOK-133")
@pytest.mark.parametrize("enabled", [True, False])
async def test_what_the_tool_raises_passes_through_untouched_and_after_tool_does_not_fire(
    project: EngineProject, enabled: bool
) -> None:
    error = FileNotFoundError("a.txt")

    def tool(tool_input: Mapping[str, Any]) -> Any:
        raise error

    config = project.config(
        {"BeforeTool": project.hook("before"), "AfterTool": project.hook("after")}, enable_hooks=enabled
    )
    with pytest.raises(FileNotFoundError) as raised:
        await execute_tool_with_hooks(config, "write_file", GIVEN, tool)
    assert raised.value is error
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    assert (project.runs("before"), project.runs("after")) == (enabled, 0)


class Opaque:
    """Content that cannot be compared, like an array: comparing it is an error."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("the truth value of an array is ambiguous")

    __hash__ = None  # type: ignore[assignment]  # how Python marks what cannot be hashed

    def __str__(self) -> str:
        return "opaque"


@pytest.mark.requirement("HOOK-111")
async def test_content_of_any_kind_survives_the_hooks(run: RunTool) -> None:
    content = Opaque()
    result = await run(after={"systemMessage": "m"}, tool=Tool(ToolResult(content)))
    assert result.llm_content is content
    assert result.additions == ["[System] m"]


# Callers in the package itself.

PACKAGE = Path(llxprt_hooks.__file__).parent
TRIGGERS = {
    "fire_before_tool_hook",
    "fire_after_tool_hook",
    "execute_tool_with_hooks",
    "fire_before_model_hook",
    "fire_after_model_hook",
    "fire_before_tool_selection_hook",
    "fire_before_tool_event",
    "fire_after_tool_event",
    "fire_before_model_event",
    "fire_after_model_event",
    "fire_before_tool_selection_event",
    "before_model",
    "after_model",
    "before_tool_selection",
    "fire",
}
DETACHED = "core/calls/lifecycle.py"  # starts events that nobody waits for (HOOK-203)


def trigger_calls(tree: ast.AST) -> Any:
    """Each call of a trigger, with the nodes around it, innermost first."""
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    for node in ast.walk(tree):
        name = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
        if name in TRIGGERS:
            around = []
            outer = node
            while outer in parents:
                outer = parents[outer]
                around.append(outer)
            yield name, node, around


def discarded(around: list[ast.AST]) -> bool:
    """Whether a call is not awaited on the spot (``on_asyncio`` may be in between), or awaited as a statement."""
    if isinstance(around[0], ast.Call) and getattr(around[0].func, "attr", "") == "on_asyncio":
        around = around[1:]
    return not isinstance(around[0], ast.Await) or isinstance(around[1], ast.Expr)


@pytest.mark.requirement("HOOK-134")
@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("async def f(): await fire_before_tool_hook(c, t, i)", True),
        ("async def f(): fire_before_tool_hook(c, t, i)", True),
        ("async def f(): create_task(fire_after_model_hook(c, r, a))", True),
        ("async def f(): x = await fire_before_tool_hook(c, t, i)", False),
        ("async def f(): return (await handler.fire_before_tool_event(t, i)).final_output", False),
        ("async def f(): return (await loops.on_asyncio(handler.fire_before_tool_event(t, i))).final_output", False),
        ("async def f(): await loops.on_asyncio(handler.fire_before_tool_event(t, i))", True),
    ],
)
def test_the_search_for_discarded_results_finds_them(code: str, found: bool) -> None:
    assert [discarded(around) for _, _, around in trigger_calls(ast.parse(code))] == [found]


@pytest.mark.slow
@pytest.mark.requirement("HOOK-134")
def test_no_caller_in_the_package_discards_the_result_of_a_trigger() -> None:
    calls = [
        (f"{file.relative_to(PACKAGE)}:{node.lineno} {name}", discarded(around))
        for file in sorted(set(PACKAGE.rglob("*.py")) - {PACKAGE / DETACHED})
        for name, node, around in trigger_calls(ast.parse(file.read_text()))
    ]
    assert len(calls) >= 7
    assert [where for where, is_discarded in calls if is_discarded] == []
