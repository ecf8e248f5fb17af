"""The contract of all integrations, through the loops that people write with each client."""

from __future__ import annotations

import asyncio
import inspect
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import anthropic
import openai
import pytest

from llxprt_hooks.events import HookEventName
from llxprt_hooks.integrations.anthropic import AnthropicHooks
from llxprt_hooks.integrations.openai import OpenAIHooks
from llxprt_hooks.model import resolve_translator
from tests.clients.drivers import ChatTexts, MessagesTexts, ResponsesTexts
from tests.integrations.contract import (
    EFFECTS,
    TOOL_NAMES,
    Check,
    Driver,
    Effect,
    Outcome,
    Request,
    Scenario,
    calls_of,
    check,
    check_declarations,
    known_in_model_calls,
    nobody_is_asked,
    ran_normally,
)
from tests.support.api_server import APIServer
from tests.support.api_server import Call as ModelCall

if TYPE_CHECKING:
    from tests.support.project import Project

IMPOSSIBLE = {
    "before_agent": HookEventName.BEFORE_AGENT,
    "after_agent": HookEventName.AFTER_AGENT,
    "pre_compress": HookEventName.PRE_COMPRESS,
    "notification": HookEventName.NOTIFICATION,
    **dict.fromkeys(
        ("acting_prompt_refused", "acting_prompt_stopped", "acting_prompt_context"), HookEventName.BEFORE_AGENT
    ),
    **dict.fromkeys(
        ("acting_continuation", "acting_continuation_limit", "acting_answer_stops", "acting_context_cleared"),
        HookEventName.AFTER_AGENT,
    ),
    "acting_session_context": HookEventName.SESSION_START,
    "acting_compression_blocked": HookEventName.PRE_COMPRESS,
    "acting_permission": HookEventName.NOTIFICATION,
}


def _answered(scenario: Scenario, outcome: Outcome) -> None:
    """A client shows nothing, so there is nobody to suppress the output."""
    assert (outcome.text, outcome.error) == ("hello", None)


def _not_set(scenario: Scenario, outcome: Outcome) -> None:
    """Newer models of Anthropic reject these settings: a hook may change them only if the program sets one."""
    assert outcome.requests[0].temperature is None
    assert "`llm_request.config.temperature` is ignored" in outcome.said


PARTIAL: dict[str, Check] = {
    "after_tool_suppresses": lambda scenario, outcome: ran_normally(outcome),
    "after_model_suppresses": _answered,
    "who_asks": known_in_model_calls,
    "who_asks_is_unknown": nobody_is_asked,
}


class ClientDriver(Driver):
    """A loop around a client, in a session."""

    acts = True
    impossible: ClassVar[Mapping[str, HookEventName]] = IMPOSSIBLE
    partial: ClassVar[Mapping[str, Check]] = PARTIAL

    def __init__(self, *, is_async: bool) -> None:
        self.is_async = is_async

    def run(self, scenario: Scenario) -> Outcome:
        with APIServer().running() as server:
            server.pieces = True
            server.will_say(*map(_answer, scenario.turns), *["done"] * 3)
            outcome = asyncio.run(self._run(scenario, server))
            outcome.requests = [self.request(body) for body in server.requests]
            return outcome

    async def _run(self, scenario: Scenario, server: APIServer) -> Outcome:
        hooks = self.load(scenario)
        client = hooks.wrap(self.client(server))
        try:
            return await self._converse(scenario, hooks, client)
        finally:
            closing = client.close()
            if inspect.isawaitable(closing):
                await closing

    async def _converse(self, scenario: Scenario, hooks: Any, client: Any) -> Outcome:
        outcome = Outcome(runs=scenario.tools.runs)
        functions = {tool.__name__: tool for tool in scenario.tools.functions}
        history: list[Any] = [{"role": "user", "content": scenario.prompt}]
        async with hooks.session(scenario.session_id) as session:
            while session.stop_reason is None:
                response = await self._ask(client, scenario, history, outcome)
                outcome.text = self.text(response)
                try:
                    results = self.run_tools(hooks, response, functions)
                    results = await results if inspect.isawaitable(results) else results
                except LookupError as error:  # a tool's own
                    outcome.error = error
                    break
                outcome.results += [self.result(result) for result in results]
                history += self.turn(response, results)
                if not results:
                    break
            outcome.stop_reason = session.stop_reason
        await hooks.hooks.settle()
        return outcome

    async def _ask(self, client: Any, scenario: Scenario, history: list[Any], outcome: Outcome) -> Any:
        given = self.ask(client, scenario, history, stream=scenario.stream)
        given = await given if inspect.isawaitable(given) else given
        if not scenario.stream:
            return given
        events = [event async for event in given] if self.is_async else list(given)
        outcome.shown += [text for event in events if (text := self.text_of_event(event))]
        return self.joined(events)

    @abstractmethod
    def load(self, scenario: Scenario) -> Any: ...
    @abstractmethod
    def client(self, server: APIServer) -> Any: ...
    @abstractmethod
    def ask(self, client: Any, scenario: Scenario, history: list[Any], *, stream: bool) -> Any: ...
    @abstractmethod
    def text(self, response: Any) -> str: ...
    @abstractmethod
    def text_of_event(self, event: Any) -> str: ...
    @abstractmethod
    def joined(self, events: list[Any]) -> Any: ...
    @abstractmethod
    def run_tools(self, hooks: Any, response: Any, functions: dict[str, Any]) -> Any: ...
    @abstractmethod
    def result(self, result: dict[str, Any]) -> str: ...
    @abstractmethod
    def turn(self, response: Any, results: list[Any]) -> list[Any]: ...
    @abstractmethod
    def request(self, body: dict[str, Any]) -> Request: ...


class OpenAIDriver(ClientDriver):
    API: ClassVar[str]

    def load(self, scenario: Scenario) -> OpenAIHooks:
        return OpenAIHooks.load(
            scenario.project.root, aliases=scenario.aliases, approver=scenario.approver, metadata=scenario.metadata
        )

    def client(self, server: APIServer) -> Any:
        kind: Any = openai.AsyncOpenAI if self.is_async else openai.OpenAI
        return kind(api_key="key", base_url=f"{server.url}/v1", max_retries=0)

    def joined(self, events: list[Any]) -> Any:
        wire = resolve_translator(self.API).wire
        assert wire is not None
        kind: Any = openai.types.chat.ChatCompletion if self.API == "openai-chat" else openai.types.responses.Response
        return kind.model_validate(wire.assemble(events))

    def restricted(self, body: dict[str, Any]) -> dict[str, Any]:
        translator: Any = resolve_translator(self.API)
        shown = translator.to_hook_tool_config(body.get("tool_choice"))
        allowed = [] if shown.get("mode") == "NONE" else shown.get("allowedFunctionNames", TOOL_NAMES)
        return {"allowed": frozenset(allowed), "must_call": shown.get("mode") == "ANY"}


class ChatDriver(ChatTexts, OpenAIDriver):
    API = "openai-chat"

    def ask(self, client: Any, scenario: Scenario, history: list[Any], *, stream: bool) -> Any:
        tools = [{"type": "function", "function": {"name": name}} for name in sorted(TOOL_NAMES)]
        messages = [{"role": "system", "content": scenario.system_prompt}, *history]
        about = {"user": scenario.asked_by} if scenario.asked_by else {}
        return client.chat.completions.create(model="model-1", messages=messages, tools=tools, stream=stream, **about)

    def run_tools(self, hooks: OpenAIHooks, response: Any, functions: dict[str, Any]) -> Any:
        run: Any = hooks.arun_tool_calls if self.is_async else hooks.run_tool_calls
        return run(response.choices[0].message.tool_calls, functions)

    def result(self, result: dict[str, Any]) -> str:
        return str(result["content"])

    def turn(self, response: Any, results: list[Any]) -> list[Any]:
        return [response.choices[0].message, *results]

    def request(self, body: dict[str, Any]) -> Request:
        roles = {"assistant": "model"}
        messages = body["messages"]
        return Request(
            texts=[
                (roles.get(message["role"], message["role"]), message["content"])
                for message in messages
                if message["role"] != "tool" and message["content"]
            ],
            results=[message["content"] for message in messages if message["role"] == "tool"],
            calls=[call["function"]["name"] for message in messages for call in message.get("tool_calls") or ()],
            model=body["model"],
            temperature=body.get("temperature"),
            **self.restricted(body),
        )


class ResponsesDriver(ResponsesTexts, OpenAIDriver):
    API = "openai-responses"

    def ask(self, client: Any, scenario: Scenario, history: list[Any], *, stream: bool) -> Any:
        tools = [{"type": "function", "name": name} for name in sorted(TOOL_NAMES)]
        about = {"metadata": {"user": scenario.asked_by}} if scenario.asked_by else {}
        return client.responses.create(
            model="model-1", instructions=scenario.system_prompt, input=history, tools=tools, stream=stream, **about
        )

    def run_tools(self, hooks: OpenAIHooks, response: Any, functions: dict[str, Any]) -> Any:
        run: Any = hooks.arun_tool_calls if self.is_async else hooks.run_tool_calls
        return run(response.output, functions)

    def result(self, result: dict[str, Any]) -> str:
        return str(result["output"])

    def turn(self, response: Any, results: list[Any]) -> list[Any]:
        return [*response.output, *results]

    def request(self, body: dict[str, Any]) -> Request:
        roles = {"assistant": "model"}
        items = body["input"]
        messages = [item for item in items if "role" in item]
        return Request(
            texts=[
                ("system", body["instructions"]),
                *((roles.get(item["role"], item["role"]), _text(item["content"])) for item in messages),
            ],
            results=[item["output"] for item in items if item.get("type") == "function_call_output"],
            calls=[item["name"] for item in items if item.get("type") == "function_call"],
            model=body["model"],
            temperature=body.get("temperature"),
            **self.restricted(body),
        )


class MessagesDriver(MessagesTexts, ClientDriver):
    partial: ClassVar[Mapping[str, Check]] = {**PARTIAL, "before_model_changes_settings": _not_set}

    def load(self, scenario: Scenario) -> AnthropicHooks:
        return AnthropicHooks.load(
            scenario.project.root, aliases=scenario.aliases, approver=scenario.approver, metadata=scenario.metadata
        )

    def client(self, server: APIServer) -> Any:
        kind: Any = anthropic.AsyncAnthropic if self.is_async else anthropic.Anthropic
        return kind(api_key="key", base_url=server.url, max_retries=0)

    def ask(self, client: Any, scenario: Scenario, history: list[Any], *, stream: bool) -> Any:
        tools = [{"name": name, "input_schema": {"type": "object"}} for name in sorted(TOOL_NAMES)]
        options: Any = {"system": scenario.system_prompt, "messages": history, "tools": tools, "stream": stream}
        about = {"metadata": {"user_id": scenario.asked_by}} if scenario.asked_by else {}
        return client.messages.create(model="model-1", max_tokens=100, **options, **about)

    def joined(self, events: list[Any]) -> Any:
        wire = resolve_translator("anthropic-messages").wire
        assert wire is not None
        return anthropic.types.Message.model_validate(wire.assemble(events))

    def run_tools(self, hooks: AnthropicHooks, response: Any, functions: dict[str, Any]) -> Any:
        run: Any = hooks.arun_tool_uses if self.is_async else hooks.run_tool_uses
        return run(response.content, functions)

    def result(self, result: dict[str, Any]) -> str:
        return str(result["content"])

    def turn(self, response: Any, results: list[Any]) -> list[Any]:
        return [{"role": "assistant", "content": response.content}, {"role": "user", "content": results}]

    def request(self, body: dict[str, Any]) -> Request:
        blocks = [
            (message["role"], block)
            for message in body["messages"]
            for block in (
                [{"type": "text", "text": message["content"]}]
                if isinstance(message["content"], str)
                else message["content"]
            )
        ]
        choice = body.get("tool_choice", {}).get("type")
        declared = frozenset(tool["name"] for tool in body["tools"])
        allowed = frozenset([body["tool_choice"]["name"]]) if choice == "tool" else declared
        return Request(
            texts=[
                ("system", body["system"]),
                *(("model" if role == "assistant" else role, b["text"]) for role, b in blocks if b["type"] == "text"),
            ],
            results=[block["content"] for _, block in blocks if block["type"] == "tool_result"],
            calls=[block["name"] for _, block in blocks if block["type"] == "tool_use"],
            model=body["model"],
            temperature=body.get("temperature"),
            allowed=frozenset() if choice == "none" else allowed,
            must_call=choice in ("any", "tool"),
        )


def _answer(turn: Any) -> str | list[ModelCall]:
    return turn if isinstance(turn, str) else [ModelCall(*call) for call in calls_of(turn)]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


DRIVERS = {
    "chat": ChatDriver(is_async=True),
    "chat-sync": ChatDriver(is_async=False),
    "responses": ResponsesDriver(is_async=True),
    "messages": MessagesDriver(is_async=True),
    "messages-sync": MessagesDriver(is_async=False),
}


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("effect", EFFECTS, ids=str)
def test_contract(effect: Effect, driver: str, sandbox: Project, caplog: pytest.LogCaptureFixture) -> None:
    if effect.name == "parallel_calls" and driver.endswith("-sync"):
        pytest.skip("a synchronous program runs one call after the other")
    check(effect, DRIVERS[driver], sandbox, caplog)


@pytest.mark.parametrize("driver", DRIVERS)
def test_declared_gaps(driver: str) -> None:
    check_declarations(DRIVERS[driver])
