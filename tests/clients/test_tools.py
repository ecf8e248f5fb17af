"""Every effect of the tool events, in what is sent back to the model."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from llxprt_hooks import StopRequested, ToolResult, context, rewrite, stop
from llxprt_hooks.integrations.anthropic import AnthropicHooks
from llxprt_hooks.integrations.openai import OpenAIHooks
from tests.clients.drivers import Driver, MessagesDriver
from tests.support.api_server import Call


def read_file(path: str) -> str:
    return f"content of {path}"


def run(driver: Driver, *calls: Call, **functions: Callable[..., Any]) -> list[Any]:
    """Let the model ask for calls, and run them."""
    driver.server.will_say(list(calls))
    return driver.run_tools(driver.create(), functions)


def content(result: dict[str, Any]) -> Any:
    return result.get("content", result.get("output"))


READ = Call("read_file", {"path": "a.txt"})


def test_results_have_the_form_that_the_api_expects(driver: Driver) -> None:
    (result,) = run(driver, READ, read_file=read_file)
    assert result in (
        {"role": "tool", "tool_call_id": "call_0", "content": "content of a.txt"},
        {"type": "function_call_output", "call_id": "call_0", "output": "content of a.txt"},
        {"type": "tool_result", "tool_use_id": "call_0", "content": "content of a.txt"},
    )


def test_text_of_hooks_is_a_part_of_its_own_next_to_parts(driver: Driver) -> None:
    driver.hooks.on("AfterTool", lambda payload: context("it is old"))
    part = {"type": "image", "source": "…"}
    (result,) = run(driver, READ, read_file=lambda path: [part])
    first, second = content(result)
    assert first == part
    assert second["type"] in ("text", "input_text")
    assert second["text"] == "it is old"


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ({"size": 3}, '{"size": 3}'),
        ([{"text": "a"}], '[{"text": "a"}]'),
        (None, ""),
        (ToolResult({"size": 3}), '{"size": 3}'),
        ({3}, '"{3}"'),
    ],
)
def test_other_results_are_sent_as_json(driver: Driver, returned: Any, expected: str) -> None:
    seen: list[Any] = []

    @driver.hooks.on("AfterTool")
    def note(payload: dict[str, Any]) -> Any:
        seen.append(payload["tool_response"]["llmContent"])
        return context("old")

    (result,) = run(driver, READ, read_file=lambda path: returned)
    assert content(result) == f"{expected}\n\nold"
    assert seen == [expected], "hooks see what the model will see"


def test_calls_that_cannot_be_made_are_answered_with_an_error_and_fire_no_event(driver: Driver) -> None:
    driver.hooks.on("BeforeTool", lambda payload: pytest.fail("an event fired"))
    results = run(driver, Call("rm", {}), Call("read_file", []), read_file=read_file)  # type: ignore[arg-type]
    assert "There is no tool rm. Tools: read_file." in json.dumps(results[0])
    assert "The arguments of read_file are not a JSON object." in json.dumps(results[1])


@pytest.mark.parametrize("hooked", [True, False])
def test_arguments_that_are_nested_too_deeply_do_not_reach_the_tool(hooked: bool) -> None:
    """A model can nest arguments deeper than Python's reader. The other calls of its answer still run."""
    hooks = OpenAIHooks(hooks={})
    if hooked:
        hooks.hooks.on("BeforeTool", lambda payload: None)
    deep = "[" * 100_000 + "]" * 100_000
    texts = [f'{{"path": "a.txt", "more": {deep}}}', '{"path": "b.txt"}']
    calls = [{"id": text[10], "function": {"name": "read_file", "arguments": text}} for text in texts]

    first, second = hooks.run_tool_calls(calls, {"read_file": lambda path, more=None: read_file(path)})

    assert content(first) == "The arguments of read_file are nested too deeply."
    assert content(second) == "content of b.txt"


def test_arguments_with_a_number_that_only_python_accepts_reach_no_guarded_tool() -> None:
    hooks = OpenAIHooks(hooks={})
    hooks.hooks.on("BeforeTool", lambda payload: None)
    call = {"id": "1", "function": {"name": "read_file", "arguments": '{"path": "a.txt", "size": NaN}'}}

    (result,) = hooks.run_tool_calls([call], {"read_file": pytest.fail})

    assert content(result).startswith("blocked: it contains a number that hooks cannot be shown")


def test_coroutine_functions_are_awaited(driver: Driver) -> None:
    async def read_later(path: str) -> str:
        await asyncio.sleep(0)
        return read_file(path)

    driver.hooks.on("AfterTool", lambda payload: context("old"))
    (result,) = run(driver, READ, read_file=read_later)
    assert content(result) == "content of a.txt\n\nold"


def test_what_a_tool_raises_passes_through(driver: Driver) -> None:
    def broken(path: str) -> str:
        raise KeyError(path)

    with pytest.raises(KeyError, match=r"a\.txt"):
        run(driver, READ, READ, read_file=broken)


def test_a_stop_in_a_session_ends_the_other_calls_and_the_next_request(driver: Driver) -> None:
    driver.hooks.on("AfterTool", lambda payload: stop("enough"))
    with driver.clients.session("s1") as session:
        results = run(driver, READ, read_file=read_file)
        assert content(results[0]) == "content of a.txt"
        assert session.stop_reason == "enough"
        assert content(driver.run_tools(_response(driver), {"read_file": pytest.fail})[0]) == "enough"
        assert driver.ask() == "enough"


def test_a_stop_outside_of_a_session_raises(driver: Driver) -> None:
    driver.hooks.on("BeforeTool", lambda payload: stop("enough"))
    with pytest.raises(StopRequested, match="enough"):
        run(driver, READ, read_file=pytest.fail)


def _response(driver: Driver) -> Any:
    """Return an answer with a call, made with a client without hooks."""
    driver.server.will_say([READ])
    other = type(driver)(driver.server, is_async=False, by_http=False)
    try:
        return other.create()
    finally:
        other.close()


def test_aliases_are_the_names_that_hooks_see(driver: Driver) -> None:
    clients = driver.integration(driver.hooks.config, aliases={"shell": "run_shell_command"})
    other = type(driver)(driver.server, is_async=False, by_http=False, clients=clients)
    seen: list[str] = []
    driver.hooks.on("BeforeTool", lambda payload: seen.append(payload["tool_name"]))
    names = {"mode": "ANY", "allowedFunctionNames": ["run_shell_command", "glob"]}
    driver.hooks.on("BeforeToolSelection", lambda payload: {"hookSpecificOutput": {"toolConfig": names}})
    requests: list[Any] = []
    driver.hooks.on("BeforeModel", lambda payload: requests.append(payload["llm_request"].get("toolConfig")))
    driver.server.will_say([Call("shell", {"command": "ls"}), Call("rm", {})])
    with clients.session("s1"):
        response = other.create(**other.tools("shell", "glob", "rm"))
        results = other.run_tools(response, {"shell": lambda command: command, "rm": pytest.fail})
    other.close()
    sent = driver.server.requests[0]
    restricted = json.dumps(sent["tools"] if isinstance(driver, MessagesDriver) else sent["tool_choice"])
    assert '"shell"' in restricted
    assert "rm" not in restricted
    assert "run_shell_command" not in restricted
    assert seen == ["run_shell_command"]
    assert content(results[0]) == "ls"
    assert "rm may not be called now" in content(results[1])
    if not isinstance(driver, MessagesDriver):
        assert set(requests[0]["allowedFunctionNames"]) == {"run_shell_command", "glob"}


async def test_if_one_call_fails_the_others_are_cancelled() -> None:
    cancelled = asyncio.Event()

    async def wait(path: str) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return path

    async def fail(path: str) -> str:
        await asyncio.sleep(0)
        raise KeyError(path)

    blocks = [{"type": "tool_use", "id": name, "name": name, "input": {"path": name}} for name in ("wait", "fail")]
    with pytest.raises(KeyError):
        await AnthropicHooks().arun_tool_uses(blocks, {"wait": wait, "fail": fail})
    await asyncio.wait_for(cancelled.wait(), 10)


def test_calls_run_in_trio() -> None:
    import trio

    hooks = AnthropicHooks()
    hooks.hooks.on("BeforeTool", lambda payload: rewrite(path="b"))

    async def main() -> list[Any]:
        block = {"type": "tool_use", "id": "1", "name": "read_file", "input": {"path": "a"}}
        return await hooks.arun_tool_uses([block, {"type": "text", "text": "hm"}], {"read_file": read_file})

    assert [result["content"] for result in trio.run(main)] == ["content of b"]


def test_a_custom_tool_of_openai_has_a_text_as_its_argument() -> None:
    hooks = OpenAIHooks()
    hooks.hooks.on("BeforeTool", lambda payload: rewrite(input=payload["tool_input"]["input"].upper()))
    chat = {"id": "1", "type": "custom", "custom": {"name": "sql", "input": "select"}}
    item = {"type": "custom_tool_call", "call_id": "2", "name": "sql", "input": "select"}
    functions = {"sql": lambda **arguments: f"ran {arguments['input']}"}
    assert hooks.run_tool_calls([chat, item, {"type": "reasoning", "id": "3"}], functions) == [
        {"role": "tool", "tool_call_id": "1", "content": "ran SELECT"},
        {"type": "custom_tool_call_output", "call_id": "2", "output": "ran SELECT"},
    ]
    assert hooks.run_tool_calls(None, functions) == []
