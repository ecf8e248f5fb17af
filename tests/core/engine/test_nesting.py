"""What hooks cannot be shown does not run: values that are nested too deeply for common JSON readers (D-31)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import (
    Config,
    HookFormat,
    InProcessMessageBus,
    MessageBusType,
    ToolResult,
    decode_message,
    encode_message,
    execute_tool_with_hooks,
    fire_after_tool_hook,
    fire_before_model_hook,
    read_response,
)
from llxprt_hooks._support.json_codec import PAYLOAD_DEPTH, TOO_DEEP, is_too_deep, write_payload
from tests.support.engine_project import system_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.engine_project import EngineProject

REASON = "blocked: nested deeper than 64 levels, too deep to pass to hooks"
LEVELS = PAYLOAD_DEPTH - 2
"""What an argument may have: the payload and the object with the arguments are the first two levels."""


def nested(levels: int, core: Any = "core") -> Any:
    for _ in range(levels):
        core = [core]
    return core


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


async def run(config: Config, arguments: Any) -> ToolResult:
    return await execute_tool_with_hooks(config, "sh", arguments, lambda given: ToolResult(given))


@pytest.mark.parametrize("core", ["core", "lone \udc80"], ids=["fast encoder", "slow encoder"])
async def test_arguments_up_to_the_limit_are_shown_in_full(project: EngineProject, core: str) -> None:
    arguments = {"command": "ls", "x": nested(LEVELS, core)}

    result = await run(project.config({"BeforeTool": project.hook()}), arguments)

    assert result.llm_content == arguments
    assert project.payload()["tool_input"] == arguments
    assert depth(project.payload()) == PAYLOAD_DEPTH


@pytest.mark.parametrize("levels", [LEVELS + 1, 100, 201, 300, 900, 2000, 50_000])
@pytest.mark.parametrize("core", ["core", "lone \udc80"], ids=["fast encoder", "slow encoder"])
async def test_arguments_beyond_it_do_not_reach_the_tool(project: EngineProject, levels: int, core: str) -> None:
    config = project.config({"BeforeTool": project.hook()})

    result = await run(config, {"command": "ls", "x": nested(levels, core)})

    assert result.error == {"message": REASON, "type": "hook_blocked"}
    assert project.runs() == 0


async def test_without_a_hook_for_the_tool_nesting_does_not_matter(project: EngineProject) -> None:
    config = project.config({"BeforeTool": [{"matcher": "other", "hooks": [{"type": "command", "command": "exit 2"}]}]})

    assert (await run(config, {"x": nested(500)})).error is None


@dataclass
class Node:
    child: Any


async def test_objects_count_by_what_hooks_would_get(project: EngineProject) -> None:
    config = project.config({"BeforeTool": project.hook()})

    def chain(length: int) -> Any:
        node: Any = "core"
        for _ in range(length):
            node = Node(node)
        return node

    assert (await run(config, {"x": chain(LEVELS)})).error is None
    assert project.runs() == 1
    assert (await run(config, {"x": chain(LEVELS + 1)})).error is not None


async def test_a_value_that_holds_itself_is_still_shown_to_the_guard(project: EngineProject) -> None:
    endless: dict[str, Any] = {"command": "rm"}
    endless["again"] = [endless, endless]

    result = await run(project.config({"BeforeTool": project.hook()}), {"x": endless})

    assert result.error is None
    assert project.payload()["tool_input"] == {"x": {"command": "rm", "again": [None, None]}}


@pytest.mark.parametrize("sequential", [False, True])
async def test_arguments_that_a_hook_nests_too_deeply_do_not_reach_the_tool(
    project: EngineProject, sequential: bool
) -> None:
    deep = project.hook("deep", says={"hookSpecificOutput": {"tool_input": {"x": nested(LEVELS + 1)}}})
    hooks = [{"type": "command", "command": command} for command in (deep, project.hook("guard"))]
    config = project.config({"BeforeTool": [{"sequential": sequential, "hooks": hooks}]})

    result = await system_of(config).ready_event_handler().fire_before_tool_event("sh", {"command": "ls"})

    assert result.final_output is not None
    assert result.final_output.get_blocking_error() == (True, REASON)
    assert len(result.results) == 2
    assert (await run(config, {})).error == {"message": REASON, "type": "hook_blocked"}


async def test_a_change_that_cannot_be_shown_loses_nothing_else_that_hooks_said(project: EngineProject) -> None:
    answers: list[dict[str, Any]] = [
        {"continue": False, "stopReason": "enough", "systemMessage": "m"},
        {"hookSpecificOutput": {"tool_input": {"x": nested(LEVELS + 1)}}},
        {"decision": "deny", "reason": "policy"},
    ]
    commands = [project.hook(f"hook-{index}", says=answer) for index, answer in enumerate(answers)]
    hooks = [{"type": "command", "command": command} for command in commands]

    result = await run(project.config({"BeforeTool": [{"hooks": hooks}]}), {})

    assert result.error == {"message": f"policy\n{REASON}", "type": "hook_blocked"}
    assert result.stop_reason == "enough"
    assert result.additions == ["[System] m"]


class Money(float):
    pass


HIDDEN_NUMBERS = {
    "infinite": float("inf"),
    "not a number": float("nan"),
    "too large": 2**1024,
    "in a list": [1, [2.5, float("-inf")]],
    "of a subclass": Money("inf"),
    "in an object": Node([float("nan")]),
    "beside a string that is not Unicode": ["\udc80", float("inf")],
}


@pytest.mark.parametrize("value", HIDDEN_NUMBERS.values(), ids=HIDDEN_NUMBERS)
async def test_a_number_that_a_guard_would_see_as_null_does_not_reach_the_tool(
    project: EngineProject, value: Any
) -> None:
    hooks = {"BeforeTool": [{"matcher": "sh", "hooks": [{"type": "command", "command": project.hook()}]}]}
    config = project.config(hooks)

    result = await run(config, {"amount": value})

    assert result.error is not None
    assert "a number that hooks cannot be shown" in result.error["message"]
    assert project.runs() == 0
    other = await execute_tool_with_hooks(config, "other", {"amount": value}, lambda given: ToolResult("ran"))
    assert other.llm_content == "ran"


async def test_a_number_that_hooks_can_be_shown_reaches_the_tool(project: EngineProject) -> None:
    arguments = {"a": 1.5, "b": 2**1023, "c": -(2**63), "d": [0, True, None]}

    assert (await run(project.config({"BeforeTool": project.hook()}), arguments)).llm_content == arguments
    assert project.payload()["tool_input"] == arguments


async def test_a_number_that_a_hook_sets_must_be_one_that_hooks_can_be_shown(project: EngineProject) -> None:
    answer = """echo '{"hookSpecificOutput": {"tool_input": {"amount": 1e999}}}'"""
    config = project.config({"BeforeTool": [{"hooks": [{"type": "command", "command": answer}]}]})

    result = await run(config, {})

    assert result.error is not None
    assert "a number that hooks cannot be shown" in result.error["message"]


async def test_a_result_with_such_a_number_is_shown_as_null(project: EngineProject) -> None:
    config = project.config({"AfterTool": project.hook()})

    await execute_tool_with_hooks(config, "sh", {}, lambda _: ToolResult({"value": float("nan")}))

    assert project.payload()["tool_response"]["llmContent"] == {"value": None}


async def test_a_request_that_was_cut_on_its_way_over_the_bus_is_refused(project: EngineProject) -> None:
    bus, answers = InProcessMessageBus(), list[Any]()
    bus.subscribe(MessageBusType.HOOK_EXECUTION_RESPONSE, answers.append)
    system_of(project.config({"BeforeTool": project.hook()}, message_bus=bus))
    fields = {"eventName": "BeforeTool", "input": {"tool_name": "sh", "tool_input": {"x": nested(5000)}}}

    await bus.publish(decode_message(encode_message({"type": "hook-execution-request", **fields})))

    response = read_response(answers[0])
    assert response.output is not None
    assert response.output.final_output is not None
    assert response.output.final_output.is_blocking_decision()
    assert response.error is not None
    assert response.error.code == "validation"
    assert project.runs() == 0


@pytest.mark.requirement("HOOK-026")
@pytest.mark.parametrize("levels", [100, 50_000])
async def test_results_are_cut_for_hooks_with_a_marker(project: EngineProject, levels: int) -> None:
    config = project.config({"AfterTool": project.hook()})
    response = {"llmContent": nested(levels), "returnDisplay": "shown"}

    await fire_after_tool_hook(config, "sh", {"a": 1}, response)

    payload = project.payload()
    assert depth(payload) == PAYLOAD_DEPTH
    assert payload["tool_input"] == {"a": 1}
    assert payload["tool_response"]["returnDisplay"] == "shown"
    assert TOO_DEEP in json.dumps(payload)


@pytest.mark.parametrize("closed", [False, True])
async def test_a_model_request_is_cut_for_hooks_and_blocked_if_one_must_not_fail(
    project: EngineProject, closed: bool
) -> None:
    hook = {"type": "command", "command": project.hook(), "failClosed": closed}
    config = project.config({"BeforeModel": [{"hooks": [hook]}]})
    request: Any = HookFormat({"messages": [{"role": "user", "content": "hi", "extra": nested(100)}]})

    result = await fire_before_model_hook(config, request)

    assert result.blocked is closed
    assert result.reason == (REASON if closed else None)
    assert project.runs() == (0 if closed else 1)
    if not closed:
        assert TOO_DEEP in json.dumps(project.payload())


@pytest.mark.slow
def test_a_value_of_many_equal_parts_is_looked_at_once_per_level() -> None:
    shared: Any = "core"
    for _ in range(30):
        shared = [shared, shared]
    wide = [[number] for number in range(20_000)]

    assert not is_too_deep(shared, 30)
    assert not is_too_deep(wide, 2)
    assert is_too_deep([wide], 2)
    assert not is_too_deep("text", 1)


def test_what_is_cut_keeps_the_rest_of_the_payload(tmp_path: Path) -> None:
    written = json.loads(write_payload({"deep": {"a": nested(100)}, "path": str(tmp_path), "n": [1, {"b": None}]}))

    assert written["path"] == str(tmp_path)
    assert written["n"] == [1, {"b": None}]
    assert depth(written) == PAYLOAD_DEPTH
