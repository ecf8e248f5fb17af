"""The driver of plain ``Hooks``: a small agent with the JSON of OpenAI's Chat Completions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from llxprt_hooks import Hooks, ToolResult
from llxprt_hooks.model.registry import resolve_translator
from tests.integrations.contract import (
    TOOL_NAMES,
    Call,
    Check,
    Driver,
    Outcome,
    Request,
    Scenario,
    Turn,
    calls_of,
    nobody_is_asked,
    pieces_of,
)

API = "openai-chat"
MODEL = "model-1"


class HooksDriver(Driver):
    """An agent loop around ``Hooks``."""

    acts = True
    partial: ClassVar[Mapping[str, Check]] = {"who_asks_is_unknown": nobody_is_asked}

    def run(self, scenario: Scenario) -> Outcome:
        return asyncio.run(_Conversation(scenario).run())


class SyncHooksDriver(Driver):
    """The same around ``Hooks.sync``; calls of one answer run in threads."""

    acts = True
    partial: ClassVar[Mapping[str, Check]] = HooksDriver.partial

    def run(self, scenario: Scenario) -> Outcome:
        return asyncio.run(_SyncConversation(scenario).run())


class _Conversation:
    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.hooks = Hooks.load(scenario.project.root, approver=scenario.approver)
        self.model = ChatModel(scenario)
        self.messages: list[dict[str, Any]] = [
            {"role": "system", "content": scenario.system_prompt},
        ]
        self.outcome = Outcome(runs=scenario.tools.runs, requests=self.model.requests)

    async def run(self) -> Outcome:
        scenario, outcome = self.scenario, self.outcome
        about = {"user": scenario.asked_by} if scenario.metadata is True else None
        with self.hooks.session(scenario.session_id, metadata=about) as session:
            start = await self.hooks.before_turn(scenario.prompt)
            outcome.text, outcome.stop_reason = start.reason or "", start.stop_reason
            asked, sent = scenario.prompt, None if start.reason else start.prompt
            while sent is not None:
                self.messages.append({"role": "user", "content": sent})
                await self.work(session)
                end = await self.hooks.after_turn(asked, outcome.text, asked is not scenario.prompt)
                outcome.stop_reason = session.stop_reason or end.stop_reason
                if end.clear_context:
                    del self.messages[1:]
                sent = None if session.stop_reason else end.next_prompt
                asked = sent or asked
        await self.hooks.settle()
        return outcome

    async def work(self, session: Any) -> None:
        """Call the model and the tools, until the model is done."""
        while (calls := await self.ask()) and not session.stop_reason:
            results = await asyncio.gather(*(self.call(call) for call in calls))
            self.outcome.results += results
            ids = (call["id"] for call in self.messages[-1]["tool_calls"])
            self.messages += [
                {"role": "tool", "tool_call_id": id_, "content": result}
                for id_, result in zip(ids, results, strict=True)
            ]
            if session.stop_reason:
                return
            if self.scenario.compress and await self.hooks.before_compression("auto") is None:
                self.messages[1] = {"role": "user", "content": "a summary"}

    async def ask(self) -> list[Call]:
        """Call the model; return the calls of its answer."""
        request = {
            "model": MODEL,
            "messages": self.messages,
            "tools": [{"type": "function", "function": {"name": name}} for name in sorted(TOOL_NAMES)],
        }
        response = await (self.streamed(request) if self.scenario.stream else self.complete(request))
        if response is None:
            return []
        message = response["choices"][0]["message"]
        self.messages.append(message)
        self.outcome.text = message["content"] or ""
        calls = (call["function"] for call in message.get("tool_calls", ()))
        return [Call(call["name"], json.loads(call["arguments"])) for call in calls]

    async def complete(self, request: dict[str, Any]) -> Any:
        result = await self.hooks.call_model(request, self.model.complete, translator=API)
        self.outcome.suppressed |= result.suppress_output
        self.outcome.text = result.reason or ""
        return result.response

    async def streamed(self, request: dict[str, Any]) -> Any:
        stream = self.hooks.stream_model(request, self.model.stream, translator=API)
        chunks = [chunk async for chunk in stream]
        return self.joined(chunks)

    def joined(self, chunks: list[dict[str, Any]]) -> Any:
        deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
        self.outcome.shown += [delta["content"] for delta in deltas if delta.get("content")]
        wire = resolve_translator(API).wire
        assert wire is not None
        return wire.assemble(chunks)

    async def call(self, call: Call) -> str:
        hooked = self.hooks.tool_call(self.name(call), call.args, tool_use_id="call-1")
        if (refused := await hooked.before()) is not None:
            return self.result(refused)
        try:
            outcome = self.tool(call, hooked.is_approved)(hooked.input)
        except LookupError as error:
            replaced = await hooked.raised(error)
            return str(error) if replaced is None else self.result(replaced)
        return self.result(await hooked.after(outcome))

    def name(self, call: Call) -> str:
        return self.scenario.aliases.get(call.name, call.name)

    def tool(self, call: Call, is_approved: bool) -> Any:
        def run(args: dict[str, Any]) -> Any:
            if self.scenario.approval and not is_approved:
                name = self.name(call)
                self.hooks.observe(
                    "Notification",
                    notification_type="ToolPermission",
                    message=f"{name} needs approval",
                    details={"tool_name": name, "tool_input": args},
                )
            return getattr(self.scenario.tools, call.name)(**args)

        return run

    def result(self, result: ToolResult) -> str:
        self.outcome.suppressed |= result.suppress_display
        if isinstance(result.llm_content, str):
            return result.llm_content
        return "\n\n".join([json.dumps(result.llm_content), *result.additions])


class _SyncConversation(_Conversation):
    async def complete(self, request: dict[str, Any]) -> Any:
        result = self.hooks.sync.call_model(request, self.model.complete, translator=API)
        self.outcome.suppressed |= result.suppress_output
        self.outcome.text = result.reason or ""
        return result.response

    async def streamed(self, request: dict[str, Any]) -> Any:
        return self.joined(list(self.hooks.sync.stream_model(request, self.model.stream, translator=API)))

    async def call(self, call: Call) -> str:
        return await asyncio.to_thread(self.call_in_thread, call)

    def call_in_thread(self, call: Call) -> str:
        hooked = self.hooks.sync.tool_call(self.name(call), call.args, tool_use_id="call-1")
        if (refused := hooked.before()) is not None:
            return self.result(refused)
        try:
            outcome = self.tool(call, hooked.is_approved)(hooked.input)
        except LookupError as error:
            replaced = hooked.raised(error)
            return str(error) if replaced is None else self.result(replaced)
        return self.result(hooked.after(outcome))


@dataclass
class ChatModel:
    """A model of Chat Completions that answers from a scenario, and records what it is asked."""

    scenario: Scenario
    requests: list[Request] = field(default_factory=list)

    def complete(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer in one piece."""
        turn = self._next(request)
        choice = {"index": 0, "message": self._message(turn), "finish_reason": "stop"}
        return {"id": "chat-1", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice]}

    def stream(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Answer piece by piece."""
        turn = self._next(request)
        message = self._message(turn)
        deltas: list[dict[str, Any]] = [{"role": "assistant"}]
        deltas += [{"content": piece} for piece in (pieces_of(turn) if isinstance(turn, str) else ())]
        deltas += [{"tool_calls": [{"index": n, **call}]} for n, call in enumerate(message.get("tool_calls", ()))]
        finishes: list[str | None] = [*[None] * len(deltas), "stop"]
        for delta, finish_reason in zip([*deltas, {}], finishes, strict=True):
            choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
            yield {"id": "chat-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": [choice]}

    def _next(self, request: Mapping[str, Any]) -> Turn:
        self.requests.append(chat_request(request))
        return self.scenario.turn(len(self.requests) - 1)

    def _message(self, turn: Turn) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": turn if isinstance(turn, str) else None}
        if calls := calls_of(turn):
            message["tool_calls"] = [
                {
                    "id": f"call-{len(self.requests)}-{number}",
                    "type": "function",
                    "function": {"name": call.name, "arguments": json.dumps(call.args)},
                }
                for number, call in enumerate(calls)
            ]
        return message


def chat_request(body: Mapping[str, Any]) -> Request:
    """Return a request of Chat Completions in neutral terms."""
    messages = body["messages"]
    roles = {"assistant": "model", "developer": "system"}
    declared = frozenset(tool["function"]["name"] for tool in body.get("tools", ()))
    mode, allowed = _choice(body.get("tool_choice"), declared)
    return Request(
        texts=[
            (roles.get(message["role"], message["role"]), text_of(message["content"]))
            for message in messages
            if message["role"] != "tool" and message["content"]
        ],
        results=[text_of(message["content"]) for message in messages if message["role"] == "tool"],
        calls=[call["function"]["name"] for message in messages for call in message.get("tool_calls") or ()],
        allowed=allowed,
        must_call=mode == "required",
        model=body["model"],
        temperature=body.get("temperature"),
    )


def text_of(content: str | Iterable[Mapping[str, Any]]) -> str:
    """Return the text of a message's content."""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _choice(choice: Any, declared: frozenset[str]) -> tuple[str, frozenset[str]]:
    match choice:
        case None:
            return "auto", declared
        case str():
            return choice, frozenset() if choice == "none" else declared
        case {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}:
            return mode, frozenset(tool["function"]["name"] for tool in tools)
    return "required", frozenset({choice["function"]["name"]})
