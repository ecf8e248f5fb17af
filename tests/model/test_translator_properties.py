"""Whatever a hook does to the messages, every translator keeps the conversation whole and valid for its API (D-13)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from google.genai import types

from llxprt_hooks.model import GenerateContentParameters, resolve_translator
from tests.model.translator_properties import API, PROPERTIES, Answered, Said, is_image, text

pytestmark = [pytest.mark.slow, pytest.mark.no_cover]


class SDK(API):
    @property
    def translator(self) -> Any:
        return resolve_translator(self.name)


class Chat(SDK):
    name = "openai-chat"
    thoughts_need_more = True

    def request(self, history: list[Said | Answered]) -> Any:
        messages: list[Any] = [{"role": "system", "content": "prompt-0"}]
        for turn in history:
            if isinstance(turn, Said):
                parts = [
                    {"type": "image_url", "image_url": {"url": part}}
                    if is_image(part)
                    else {"type": "text", "text": part}
                    for part in turn.parts
                ]
                messages.append({"role": "user", "content": parts})
                continue
            answer = {"role": "assistant", "content": "".join(turn.texts) or None, "reasoning_content": turn.thought}
            calls = [{"id": call, "type": "function", "function": {"name": "f"}} for call in turn.calls]
            messages.append({**answer, **({"tool_calls": calls} if calls else {})})
            messages += [{"role": "tool", "tool_call_id": call, "content": f"result-{call}"} for call in turn.calls]
            messages += [{"role": "user", "content": turn.remark}] if turn.remark else []
        return {"model": "m", "messages": messages}

    def response(self, answered: Answered) -> Any:
        message = self.request([answered])["messages"][1]
        return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}

    def accept(self, request: Any) -> None:
        """Results follow their calls, all of them, before anything else."""
        open_calls: list[str] = []
        for message in request["messages"]:
            if message["role"] == "tool":
                assert message["tool_call_id"] in open_calls
                open_calls.remove(message["tool_call_id"])
                continue
            assert not open_calls
            open_calls = [call["id"] for call in message.get("tool_calls", ())]
            assert message["content"] or open_calls
        assert not open_calls


class Responses(SDK):
    name = "openai-responses"
    thoughts_need_more = True

    def request(self, history: list[Said | Answered]) -> Any:
        items: list[Any] = [{"role": "developer", "content": "prompt-0"}]
        for turn in history:
            if isinstance(turn, Said):
                parts = [
                    {"type": "input_image", "image_url": part}
                    if is_image(part)
                    else {"type": "input_text", "text": part}
                    for part in turn.parts
                ]
                items.append({"role": "user", "content": parts})
                continue
            if turn.thought:
                items.append({"type": "reasoning", "summary": [], "encrypted_content": turn.thought})
            if turn.texts:
                parts = [{"type": "output_text", "text": text} for text in turn.texts]
                items.append({"type": "message", "role": "assistant", "content": parts})
            items += [{"type": "function_call", "call_id": call, "name": "f"} for call in turn.calls]
            items += [
                {"type": "function_call_output", "call_id": call, "output": f"result-{call}"} for call in turn.calls
            ]
            items += [{"role": "user", "content": turn.remark}] if turn.remark else []
        return {"model": "m", "input": items}

    def response(self, answered: Answered) -> Any:
        kinds = ("reasoning", "message", "function_call")
        output = [item for item in self.request([answered])["input"] if item.get("type") in kinds]
        return {"object": "response", "status": "completed", "output": output}

    def accept(self, request: Any) -> None:
        """Reasoning comes right before what it led to; every call has a result after it."""
        for item, following in pairwise([*request["input"], {"type": "end"}]):
            if item.get("type") == "reasoning":
                assert following.get("role") == "assistant" or following["type"] == "function_call"
            assert item.get("content") != []
        calls = [item["call_id"] for item in request["input"] if "call_id" in item]
        assert set(Counter(calls).values()) <= {2}


class Messages(SDK):
    name = "anthropic-messages"
    thoughts_need_more = True

    def request(self, history: list[Said | Answered]) -> Any:
        messages: list[Any] = []
        for turn in history:
            if isinstance(turn, Said):
                parts = [
                    {"type": "image", "source": {"url": part}} if is_image(part) else text(part) for part in turn.parts
                ]
                messages.append({"role": "user", "content": parts})
                continue
            thought = [{"type": "thinking", "thinking": "", "signature": turn.thought}] if turn.thought else []
            texts = [{"type": "text", "text": text} for text in turn.texts]
            calls = [{"type": "tool_use", "id": call, "name": "f", "input": {}} for call in turn.calls]
            messages.append({"role": "assistant", "content": [*thought, *texts, *calls]})
            results: list[Any] = [
                {"type": "tool_result", "tool_use_id": call, "content": f"result-{call}"} for call in turn.calls
            ]
            results += [{"type": "text", "text": turn.remark}] if turn.remark else []
            messages += [{"role": "user", "content": results}] if results else []
        return {"model": "m", "max_tokens": 9, "system": "prompt-0", "messages": messages}

    def response(self, answered: Answered) -> Any:
        return {"type": "message", "stop_reason": "end_turn", **self.request([answered])["messages"][0]}

    def accept(self, request: Any) -> None:
        """The results of all calls are at the start of the next message; nothing is empty or ends with thinking."""
        for message, following in pairwise([*request["messages"], {"role": "end", "content": []}]):
            blocks = message["content"]
            assert blocks
            if isinstance(blocks, str):
                continue
            assert blocks[-1]["type"] != "thinking"
            assert all(block["text"] for block in blocks if block["type"] == "text")
            if calls := [block["id"] for block in blocks if block["type"] == "tool_use"]:
                results = following["content"][: len(calls)]
                assert following["role"] == "user"
                assert {result["tool_use_id"] for result in results} == set(calls)


class Genai(SDK):
    name = "google-genai"

    def request(self, history: list[Said | Answered]) -> Any:
        contents: list[types.Content] = []
        for turn in history:
            if isinstance(turn, Said):
                parts = [
                    types.Part.from_uri(file_uri=part, mime_type="image/png")
                    if is_image(part)
                    else types.Part(text=part)
                    for part in turn.parts
                ]
                contents.append(types.Content(role="user", parts=parts))
                continue
            thought = [types.Part(text=turn.thought, thought=True)] if turn.thought else []
            texts = [types.Part(text=text) for text in turn.texts]
            calls = [types.Part(function_call=types.FunctionCall(id=call, name="f")) for call in turn.calls]
            contents.append(types.Content(role="model", parts=[*thought, *texts, *calls]))
            results = [
                types.Part(
                    function_response=types.FunctionResponse(id=call, name="f", response={"x": f"result-{call}"})
                )
                for call in turn.calls
            ]
            results += [types.Part(text=turn.remark)] if turn.remark else []
            contents += [types.Content(role="user", parts=results)] if results else []
        return GenerateContentParameters("m", contents, types.GenerateContentConfig(system_instruction="prompt-0"))

    def response(self, answered: Answered) -> Any:
        content = self.request([answered]).contents[0]
        return types.GenerateContentResponse(candidates=[types.Candidate(content=content)])

    def accept(self, request: Any) -> None:
        """The results of all calls are in the next content; nothing is empty."""
        for content, following in pairwise([*request.contents, types.Content(parts=[])]):
            assert content.parts
            if calls := [part.function_call.id for part in content.parts if part.function_call]:
                results = [part.function_response for part in following.parts if part.function_response]
                assert [result.id for result in results] == calls

    def plain(self, value: Any) -> Any:
        if isinstance(value, GenerateContentParameters):
            return [value.contents, value.config]
        return value.model_dump(exclude_none=True)


@pytest.mark.requirement("HOOK-078")
@pytest.mark.parametrize("api", [Chat(), Responses(), Messages(), Genai()], ids=lambda api: api.name)
@pytest.mark.parametrize("property_", PROPERTIES, ids=lambda each: each.__name__)
def test_translators(api: API, property_: Callable[..., None]) -> None:
    property_(api=api)
