"""A tool name that is not a string is converted to text and guarded like any other."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import Config, execute_tool_with_hooks, fire_after_tool_hook, fire_before_tool_hook

if TYPE_CHECKING:
    from tests.support.engine_project import EngineProject, Ready, Texts


class Unhashable(str):
    __hash__ = None  # type: ignore[assignment]  # how Python marks what cannot be hashed


class Mute:
    def __str__(self) -> str:
        raise RuntimeError("no text")


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


NAMES: dict[str, tuple[Any, str]] = {
    "number": (7, "7"),
    "null": (None, "None"),
    "list": (["write_file"], "['write_file']"),
    "object": ({"name": "write_file"}, "{'name': 'write_file'}"),
    "string without a hash": (Unhashable("write_file"), "write_file"),
    "long": (["x" * 500], "['" + "x" * 198),
    "nested too deep": (nested(100_000), "<list>"),
    "without a text": (Mute(), "<Mute>"),
}
names = pytest.mark.parametrize(("name", "text"), NAMES.values(), ids=NAMES)


@pytest.fixture(autouse=True)
def _everything_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)


@names
async def test_a_guard_for_all_tools_guards_it(project: EngineProject, name: Any, text: str) -> None:
    config = project.config({"BeforeTool": project.hook(stderr="not here", exit_code=2)})

    result = await execute_tool_with_hooks(config, name, {}, lambda _: "ran")

    assert result.llm_content == "not here"
    assert project.payload()["tool_name"] == text
    assert len(text) <= 200


@pytest.mark.parametrize("name", ["list", "object", "string without a hash"])
async def test_matchers_are_compared_with_its_text(project: EngineProject, name: str) -> None:
    group = {"matcher": "write_file", "hooks": [{"type": "command", "command": project.hook(exit_code=2)}]}
    config = project.config({"BeforeTool": [group]})

    blocked = await fire_before_tool_hook(config, NAMES[name][0], {})
    other = await fire_before_tool_hook(config, ["read_file"], {})  # type: ignore[arg-type]

    assert blocked is not None
    assert blocked.is_blocking_decision()
    assert other is None
    assert project.runs() == 1


@names
async def test_hooks_after_the_tool_see_it_too(project: EngineProject, name: Any, text: str) -> None:
    config = project.config({"AfterTool": project.hook(says={"systemMessage": "seen"})})

    result = await execute_tool_with_hooks(config, name, {}, lambda _: "ran")

    assert result.llm_content == "ran\n\n[System] seen"
    assert project.payload()["tool_name"] == text


@names
async def test_the_event_handler_converts_it_by_itself(
    project: EngineProject, ready: Ready, name: Any, text: str
) -> None:
    handler = await ready(project.config({"BeforeTool": project.hook(exit_code=2), "AfterTool": project.hook("after")}))

    before = await handler.fire_before_tool_event(name, {})
    after = await handler.fire_after_tool_event(name, {}, {"llmContent": "ran"})

    assert before.final_output is not None
    assert before.final_output.is_blocking_decision()
    assert after.success
    assert [project.payload(hook)["tool_name"] for hook in ("hook", "after")] == [text, text]


class Broken(Config):
    def get_hook_system(self) -> Any:
        raise RuntimeError("the engine is broken")


@names
async def test_a_failure_of_the_engine_is_logged_with_its_text(
    project: EngineProject, warnings_of_engine: Texts, name: Any, text: str
) -> None:
    config = project.config({"BeforeTool": project.hook()}, Broken)

    assert await fire_before_tool_hook(config, name, {}) is None
    assert await fire_after_tool_hook(config, name, {}, {}) is None
    assert [text in warning for warning in warnings_of_engine()] == [True, True]
