"""LangChain's packages for OpenAI and Anthropic against a server on this machine: what is really sent and shown."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI

from tests.integrations.langchain_support import agent_of, middleware, results_in, run, write_file
from tests.support import api_server
from tests.support.api_server import APIServer, Call, Reply

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from tests.support.project import Project

MODES = pytest.mark.parametrize("mode", ["sync", "async"])
APIS = pytest.mark.parametrize("api", ["chat", "responses", "anthropic"])
WRITE = Call("write_file", {"file_path": "a.txt", "content": "hello"})
SECRET = "the key is QXJZ"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[APIServer]:
    """The server, with an id of its own for each response: LangChain takes messages with the same id for the same."""
    fields, numbers = api_server.ANSWERS["openai-responses"], count()
    answer = lambda given: {**fields(given), "id": f"resp_{next(numbers)}"}  # noqa: E731
    monkeypatch.setitem(api_server.ANSWERS, "openai-responses", answer)
    with APIServer().running() as server:
        yield server


def model_of(api: str, server: APIServer, **fields: Any) -> BaseChatModel:
    if api == "anthropic":
        given = {"model": "claude-x", "api_key": "none", "base_url": server.url, "max_retries": 0, **fields}
        return ChatAnthropic(**given)
    given = {"model": "gpt-4o", "api_key": "none", "base_url": f"{server.url}/v1", "max_retries": 0, **fields}
    return ChatOpenAI(**given, use_responses_api=api == "responses")


def conversation(body: dict[str, Any]) -> str:
    return str(body.get("messages", body.get("input")))


def streamed(agent: Any, mode: str) -> str:
    """Return the text that is shown while an answer arrives."""
    given = {"messages": [{"role": "user", "content": "go"}]}
    if mode == "sync":
        parts = list(agent.stream(given, stream_mode="messages"))
    else:

        async def collect() -> list[Any]:
            return [part async for part in agent.astream(given, stream_mode="messages")]

        parts = asyncio.run(collect())
    return "".join(str(message.text) for message, _ in parts if message.type.startswith("AI"))


@APIS
@MODES
def test_a_whole_run(sandbox: Project, server: APIServer, api: str, mode: str) -> None:
    """Blocked, rewritten and refused: the API gets a valid conversation each time."""
    redact = sandbox.python_hook(
        "redact",
        "messages = payload['llm_request']['messages']\n"
        "for message in messages:\n"
        "    message['content'] = message['content'].replace('555-1234', '[number]')\n"
        "said = {'hookSpecificOutput': {'llm_request': {'messages': messages, 'config': {'maxOutputTokens': 77}}}}",
    )
    block = {"decision": "deny", "reason": "no keys here"}
    rewrite = {"hookSpecificOutput": {"tool_input": {"file_path": "b.txt"}}}
    hooks = middleware(sandbox, BeforeModel=redact, BeforeTool=sandbox.hook(says=[block, rewrite]))
    server.will_say([WRITE], [WRITE], "done")
    agent = agent_of(model_of(api, server), hooks, system_prompt="You are a test.")
    result = run(agent, "call 555-1234", mode=mode)
    assert result["messages"][-1].text == "done"
    assert results_in(result) == ["no keys here", "wrote hello to b.txt"]
    for body in server.requests:
        assert "call [number]" in conversation(body)
        assert "555-1234" not in str(body)
        assert "You are a test." in str(body)
        assert 77 in body.values()
    assert "no keys here" in conversation(server.requests[1])
    assert "wrote hello to b.txt" in conversation(server.requests[2])


@APIS
@MODES
def test_an_answer_is_held_back(sandbox: Project, server: APIServer, api: str, mode: str) -> None:
    """The request is streamed as the program asked, but nothing is shown before the hook has seen the answer."""
    replace = {"hookSpecificOutput": {"llm_response": {"text": "the key is ***"}}}
    hooks = middleware(sandbox, AfterModel=sandbox.hook(says=replace))
    server.will_say(SECRET)
    assert streamed(agent_of(model_of(api, server), hooks), mode) == "the key is ***"
    assert server.requests[0]["stream"] is True
    assert sandbox.payloads()[0]["llm_response"]["text"] == SECRET


@APIS
@MODES
def test_a_stream_that_breaks_off_shows_nothing(sandbox: Project, server: APIServer, api: str, mode: str) -> None:
    """Half an answer, which no hook has seen, must not be shown."""
    hooks = middleware(sandbox, AfterModel=sandbox.hook())
    server.will_say(Reply(SECRET * 50, drop=True, cut=700))
    shown = ""
    with pytest.raises(Exception):  # noqa: B017, PT011 - each package has its own
        shown = streamed(agent_of(model_of(api, server), hooks), mode)
    assert shown == ""
    assert sandbox.payloads() == []


@APIS
@MODES
@pytest.mark.parametrize("streams", [False, True])
def test_restrictions_in_the_request(sandbox: Project, server: APIServer, api: str, mode: str, streams: bool) -> None:
    """No tool, some tools, and one that must be called, in the words of each API."""

    def glob(pattern: str) -> str:
        """Find files."""
        return pattern

    none, some, one = ({"mode": "NONE"}, {"allowedFunctionNames": ["glob"]}, {"mode": "ANY"})
    configs = [{"hookSpecificOutput": {"toolConfig": config}} for config in (none, some, one)]
    hooks = middleware(sandbox, BeforeToolSelection=sandbox.hook(says=configs))
    server.will_say([WRITE], [WRITE], [WRITE], "done")
    run(agent_of(model_of(api, server, streaming=streams), hooks, tools=[write_file, glob]), mode=mode)
    no_tool, some_tools, any_tool, free = server.requests
    assert no_tool["tool_choice"] == ({"type": "none"} if api == "anthropic" else "none")
    assert [_name(tool) for tool in no_tool["tools"]] == ["write_file", "glob"]
    assert [_name(tool) for tool in some_tools["tools"]] == ["glob"]
    assert "tool_choice" not in some_tools
    assert any_tool["tool_choice"] == ({"type": "any"} if api == "anthropic" else "required")
    assert "tool_choice" not in free
    assert "may not be called now. No tool is allowed." in conversation(some_tools)
    assert "may not be called now. Allowed tools: glob." in conversation(any_tool)


def _name(tool: dict[str, Any]) -> str:
    return str(tool.get("name") or tool["function"]["name"])


@APIS
@MODES
def test_another_model_and_its_settings(sandbox: Project, server: APIServer, api: str, mode: str) -> None:
    wanted = {"model": "other-model", "config": {"temperature": 0.5, "topP": 0.25, "stopSequences": ["END"]}}
    hooks = middleware(sandbox, BeforeModel=sandbox.hook(says={"hookSpecificOutput": {"llm_request": wanted}}))
    run(agent_of(model_of(api, server, temperature=0.1), hooks), mode=mode)
    body = server.requests[0]
    assert (body["model"], body["temperature"], body["top_p"]) == ("other-model", 0.5, 0.25)
    if api != "responses":
        assert body["stop_sequences" if api == "anthropic" else "stop"] == ["END"]


@MODES
def test_a_replaced_answer_is_not_continued_by_its_id(sandbox: Project, server: APIServer, mode: str) -> None:
    """OpenAI keeps answers. A request that refers to one by its id would bring back what the hook removed."""
    replace = {"hookSpecificOutput": {"llm_response": {"text": "the key is ***"}}}
    hooks = middleware(sandbox, AfterModel=sandbox.hook(says=[replace]))
    agent = agent_of(model_of("responses", server, use_previous_response_id=True), hooks)
    server.will_say(SECRET, "done")
    first = run(agent, mode=mode)
    run(agent, {"messages": [*first["messages"], ("user", "and now?")]})
    assert "previous_response_id" not in server.requests[1]
    assert "the key is ***" in conversation(server.requests[1])
