"""The SDKs' own loops: Anthropic's tool runner and OpenAI's runner for Responses."""

import asyncio
import logging
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic, beta_async_tool, beta_tool
from openai import AsyncOpenAI, OpenAI, pydantic_responses_function_tool
from openai.lib.responses_tool_runner import (
    AsyncRegisteredFunction,
    AsyncResponsesToolRunner,
    RegisteredFunction,
    ResponsesToolRunner,
    ToolRunnerError,
)
from openai.types.responses import Response
from openai.types.responses.function_tool_param import FunctionToolParam
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import BaseModel, Field

from llxprt_hooks import Config, StopRequested, context, deny, rewrite, stop
from llxprt_hooks.integrations.anthropic import AnthropicHooks
from llxprt_hooks.integrations.openai import OpenAIHooks
from tests.support.api_server import APIServer, Call

ASKED = [Call("repeat", {"word": "hi", "times": 2})]


@beta_tool
def repeat(word: str, times: int) -> str:
    """Repeat a word."""
    return " ".join([word] * times)


@beta_async_tool
async def repeat_async(word: str, times: int) -> str:
    """Repeat a word."""
    return " ".join([word] * times)


repeat_async.name = "repeat"

OPTIONS: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}


def anthropic_run(hooks: AnthropicHooks, server: APIServer, *, is_async: bool) -> str:
    """Run the loop with one call of the tool; return the text of the last message."""
    server.will_say(ASKED, "done")

    async def run() -> Any:
        async with hooks.wrap(AsyncAnthropic(api_key="key", base_url=server.url, max_retries=0)) as client:
            runner = client.beta.messages.tool_runner(**OPTIONS, tools=hooks.tools([repeat_async]))
            return await runner.until_done()

    if is_async:
        message = asyncio.run(run())
    else:
        with hooks.wrap(Anthropic(api_key="key", base_url=server.url, max_retries=0)) as client:
            message = client.beta.messages.tool_runner(**OPTIONS, tools=hooks.tools([repeat])).until_done()
    return "".join(block.text for block in message.content if block.type == "text")


def result_sent(server: APIServer) -> dict[str, Any]:
    block: dict[str, Any] = server.requests[1]["messages"][-1]["content"][0]
    return block


both = pytest.mark.parametrize("is_async", [False, True])


@both
def test_tools_of_anthropics_runner_have_hooks(server: APIServer, is_async: bool) -> None:
    hooks = AnthropicHooks()
    hooks.hooks.on("BeforeTool", lambda payload: rewrite(times=3), matcher="^repeat$")
    hooks.hooks.on("AfterTool", lambda payload: context("how nice"))
    assert anthropic_run(hooks, server, is_async=is_async) == "done"
    assert result_sent(server)["content"] == "hi hi hi\n\nhow nice"


@both
def test_a_blocked_call_of_anthropics_runner_is_an_error(server: APIServer, is_async: bool) -> None:
    hooks = AnthropicHooks()
    hooks.hooks.on("BeforeTool", lambda payload: deny("not now"))
    assert anthropic_run(hooks, server, is_async=is_async) == "done"
    assert (result_sent(server)["content"], result_sent(server)["is_error"]) == ("not now", True)


@both
def test_rewritten_arguments_are_validated(server: APIServer, is_async: bool) -> None:
    hooks = AnthropicHooks()
    hooks.hooks.on("BeforeTool", lambda payload: rewrite(times="many"))
    assert anthropic_run(hooks, server, is_async=is_async) == "done"
    assert "Invalid arguments for function repeat" in str(result_sent(server)["content"])


@both
def test_a_stop_ends_anthropics_runner(server: APIServer, is_async: bool) -> None:
    hooks = AnthropicHooks()
    hooks.hooks.on("AfterTool", lambda payload: stop("enough"))
    with hooks.session("s1"):
        assert anthropic_run(hooks, server, is_async=is_async) == "enough"
    with pytest.raises(StopRequested, match="enough"):
        anthropic_run(hooks, server, is_async=is_async)
    assert len(server.requests) == 2, "the model was asked again after a stop"
    hooks.hooks.on("BeforeModel", lambda payload: None)
    server.will_say("as usual")
    with hooks.wrap(Anthropic(api_key="key", base_url=server.url)) as client:
        assert client.messages.create(**OPTIONS).content[0].text == "as usual"


def test_tools_that_have_no_hooks_are_named(caplog: pytest.LogCaptureFixture) -> None:
    class Toolset:
        pass

    toolset, hosted = Toolset(), {"type": "web_search_20250305", "name": "web_search"}
    with caplog.at_level(logging.WARNING):
        assert AnthropicHooks(Config()).tools([toolset, hosted]) == [toolset, hosted]
    assert [record.getMessage() for record in caplog.records] == [
        "Toolset runs without hooks: only function tools and the SDK's own have them"
    ]


class Repeat(BaseModel):
    word: str
    times: int


TOOL: FunctionToolParam = {
    "type": "function",
    "name": "repeat",
    "strict": False,
    "parameters": {
        "type": "object",
        "properties": {"word": {"type": "string"}, "times": {"type": "integer"}},
        "required": ["word", "times"],
        "additionalProperties": False,
    },
}


def repeat_json(arguments: dict[str, object]) -> str:
    given = Repeat.model_validate(arguments)
    return " ".join([given.word] * given.times)


def repeat_typed(arguments: Repeat) -> str:
    return " ".join([arguments.word] * arguments.times)


PARAMETERS: ResponseCreateParamsNonStreaming = {"model": "m", "input": "go"}


def openai_run(hooks: OpenAIHooks, server: APIServer, kind: str) -> str:
    """Run the loop with one call of the tool; return the text of the last response."""
    server.will_say(ASKED, "done")
    options: dict[str, Any] = {"api_key": "key", "base_url": f"{server.url}/v1", "max_retries": 0}

    async def execute(arguments: dict[str, object]) -> str:
        return repeat_json(arguments)

    async def run() -> Response:
        functions = hooks.functions([AsyncRegisteredFunction(TOOL, execute)])
        async with hooks.wrap(AsyncOpenAI(**options)) as client:
            return await AsyncResponsesToolRunner(functions=functions).run(client, PARAMETERS)

    if kind == "async":
        return asyncio.run(run()).output_text
    typed = RegisteredFunction.from_tool(pydantic_responses_function_tool(Repeat, name="repeat"), execute=repeat_typed)
    function = RegisteredFunction(TOOL, repeat_json) if kind == "sync" else typed
    runner = ResponsesToolRunner(functions=hooks.functions([function]))
    with hooks.wrap(OpenAI(**options)) as client:
        return runner.run(client, PARAMETERS).output_text


every = pytest.mark.parametrize("kind", ["sync", "async", "typed"])


def output_sent(server: APIServer) -> Any:
    return server.requests[1]["input"][-1]["output"]


@every
def test_functions_of_openais_runner_have_hooks(server: APIServer, kind: str) -> None:
    hooks = OpenAIHooks()
    hooks.hooks.on("BeforeTool", lambda payload: rewrite(times=3), matcher="^repeat$")
    hooks.hooks.on("AfterTool", lambda payload: context("how nice"))
    assert openai_run(hooks, server, kind) == "done"
    assert output_sent(server) == "hi hi hi\n\nhow nice"


def test_hooks_of_openais_runner_see_what_a_function_gets_and_not_what_its_type_prints(server: APIServer) -> None:
    class Masked(Repeat):
        word: str = Field(exclude=True)

    hooks = OpenAIHooks()
    seen: list[Any] = []
    hooks.hooks.on("BeforeTool", seen.append)
    tool = pydantic_responses_function_tool(Masked, name="repeat")
    functions = hooks.functions([RegisteredFunction.from_tool(tool, execute=repeat_typed)])
    server.will_say(ASKED, "done")
    with hooks.wrap(OpenAI(api_key="key", base_url=f"{server.url}/v1", max_retries=0)) as client:
        ResponsesToolRunner(functions=functions).run(client, PARAMETERS)
    assert seen[0]["tool_input"] == {"word": "hi", "times": 2}


@every
def test_a_blocked_call_of_openais_runner_is_answered_with_the_reason(server: APIServer, kind: str) -> None:
    hooks = OpenAIHooks()
    hooks.hooks.on("BeforeTool", lambda payload: deny("not now"))
    assert openai_run(hooks, server, kind) == "done"
    assert output_sent(server) == "not now"


@every
def test_functions_without_hooks_run_as_before(server: APIServer, kind: str) -> None:
    assert openai_run(OpenAIHooks(), server, kind) == "done"
    assert output_sent(server) == "hi hi"


@every
def test_a_stop_ends_openais_runner(server: APIServer, kind: str) -> None:
    hooks = OpenAIHooks()
    hooks.hooks.on("AfterTool", lambda payload: stop("enough"))
    with hooks.session("s1"):
        assert openai_run(hooks, server, kind) == "enough"
    with pytest.raises(ToolRunnerError):
        openai_run(hooks, server, kind)
    assert len(server.requests) == 2, "the model was asked again after a stop"
