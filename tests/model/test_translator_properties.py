"""Whatever a hook does to the messages, every translator keeps the conversation whole and valid for its API (D-13).

Random histories with images, thoughts, calls and results; hooks that edit, insert, delete, repeat and reorder.
"""

from __future__ import annotations

import json
import os
import re
from abc import ABC, abstractmethod
from collections import Counter
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from google.genai import types
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llxprt_hooks.model import GenerateContentParameters, resolve_translator
from llxprt_hooks.testing import Sample, check_translator
from tests.model.edited_messages import MESSAGES, TEXTS, edited

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("TRANSLATOR_EXAMPLES", "300"))
"""How many random edits each translator gets; more of them find nothing new, but it can be tried."""
UNSEEN = re.compile(r"(?:prompt|image|thought|call|result)-\d+")


class Said(NamedTuple):
    """What a person says: texts and images."""

    parts: list[str]


class Answered(NamedTuple):
    """What a model answers: perhaps a thought, texts, and calls with their results."""

    thought: str | None
    texts: list[str]
    calls: list[str]
    remark: str | None
    """A text next to the results."""


@st.composite
def histories(draw: st.DrawFn) -> list[Said | Answered]:
    numbers = count()

    def some(word: str, most: int) -> list[str]:
        return [f"{word}-{next(numbers)}" for _ in range(draw(st.integers(0, most)))]

    def said() -> Said:
        parts = draw(st.lists(TEXTS, max_size=2)) + some("image", 1)
        return Said(draw(st.permutations(parts)) or ["yes"])

    def answered() -> Answered:
        calls = some("call", 2)
        texts = draw(st.lists(TEXTS, min_size=0 if calls else 1, max_size=2))
        remark = draw(st.none() | TEXTS) if calls else None
        return Answered(next(iter(some("thought", 1)), None), texts, calls, remark)

    makers: list[Callable[[], Said | Answered]] = [said, answered]
    kinds = draw(st.lists(st.sampled_from(makers), min_size=1, max_size=5))
    return [kind() for kind in kinds]


def is_image(part: str) -> bool:
    return part.startswith("image-")


def text(content: str, kind: str = "text") -> dict[str, Any]:
    return {"type": kind, "text": content}


class API(ABC):
    """Writes a history in the form of an API, and checks what the API checks."""

    name: str
    thoughts_need_more = False
    """Whether the API rejects a thought without a text or a call after it."""

    @abstractmethod
    def request(self, history: list[Said | Answered]) -> Any: ...

    @abstractmethod
    def response(self, answered: Answered) -> Any: ...

    @abstractmethod
    def accept(self, request: Any) -> None: ...


class Chat(API):
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


class Responses(API):
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


class Messages(API):
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


class Genai(API):
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


APIS = pytest.mark.parametrize("api", [Chat(), Responses(), Messages(), Genai()], ids=lambda api: api.name)


def dump(request: Any) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, GenerateContentParameters):
            return [value.contents, value.config]
        return value.model_dump(exclude_none=True)

    return json.dumps(request, default=plain)


def unseen(request: Any, *, thoughts: bool = True) -> list[str]:
    """What hooks do not see, in order."""
    found = UNSEEN.findall(dump(request))
    return [word for word in found if thoughts or not word.startswith("thought-")]


@pytest.mark.requirement("HOOK-078")
@APIS
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), history=histories())
def test_a_conversation_stays_whole_and_valid(api: API, data: st.DataObject, history: Any) -> None:
    translator, base = resolve_translator(api.name), api.request(history)
    api.accept(base)
    before = dump(base)
    shown = translator.to_hook_llm_request(base)["messages"]
    wanted = data.draw(edited(shown) | st.lists(MESSAGES, max_size=6))

    result = translator.from_hook_llm_request({"messages": wanted}, base)

    api.accept(result)
    assert dump(base) == before
    assert unseen(result, thoughts=False) == unseen(base, thoughts=False)
    if api.thoughts_need_more:
        kept = iter(unseen(base))
        assert all(word in kept for word in unseen(result)), "a thought is new, or at another place"
        led_to_calls = {turn.thought for turn in history if isinstance(turn, Answered) and turn.calls and turn.thought}
        assert led_to_calls <= set(unseen(result))
        if len(wanted) >= len(shown) and wanted[: len(shown)] == shown:
            assert unseen(result) == unseen(base)
    else:
        assert unseen(result) == unseen(base)
    texts = Counter((message["role"], message["content"]) for message in wanted)
    again = translator.to_hook_llm_request(result)["messages"]
    assert Counter((message["role"], message["content"]) for message in again) == texts
    if not any(isinstance(turn, Answered) and turn.calls for turn in history):
        assert again == wanted


@APIS
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), history=histories())
def test_a_conversation_in_full_view_stays_whole_and_valid(api: API, data: st.DataObject, history: Any) -> None:
    translator, base = resolve_translator(api.name), api.request(history)
    before = dump(base)
    shown = translator.to_full_llm_request(base)["messages"]
    assert json.loads(json.dumps(shown)) == shown
    wanted = data.draw(edited(shown) | st.lists(MESSAGES, max_size=6))

    result = translator.from_full_llm_request({"messages": wanted}, base)

    api.accept(result)
    assert dump(base) == before
    assert result is base or wanted != shown
    again = translator.to_full_llm_request(result)["messages"]
    assert hidden(result) == hidden(base)
    assert calls_in(again) == calls_in(shown)
    assert results_in(again) == {call: results_in(wanted).get(call, "") for call in results_in(shown)}
    assert texts_in(again) == texts_in(wanted)
    if len(wanted) >= len(shown) and wanted[: len(shown)] == shown:
        assert thoughts_in(result) == thoughts_in(base)


def thoughts_in(request: Any) -> list[str]:
    return [word for word in unseen(request) if word.startswith("thought-")]


def hidden(request: Any) -> list[str]:
    """What even the full view does not show, except thoughts, which may go with their text."""
    return [word for word in unseen(request) if word.startswith("image-")]


def calls_in(messages: Any) -> list[Any]:
    return [call for message in messages for call in message.get("toolCalls", ())]


def results_in(messages: Any) -> dict[str, str]:
    results = [message for message in messages if message["role"] == "tool"]
    return {result["toolCallId"]: result["content"] for result in reversed(results)}


def texts_in(messages: Any) -> Counter[tuple[str, str]]:
    shown = ((each["role"], each["content"]) for each in messages if each["role"] != "tool" and each["content"])
    return Counter(
        ("system", text.removeprefix("[System] ")) if role == "system" or text.startswith("[System]") else (role, text)
        for role, text in shown
    )


@APIS
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), history=histories().filter(lambda turns: any(isinstance(turn, Answered) for turn in turns)))
def test_of_an_answer_in_full_view_only_what_hooks_change_is_changed(
    api: API, data: st.DataObject, history: Any
) -> None:
    answered = next(turn for turn in history if isinstance(turn, Answered))
    translator, base = resolve_translator(api.name), api.response(answered)
    before = dump(base)
    shown = translator.to_full_llm_response(base)
    content = shown["candidates"][0]["content"]
    assert [call["id"] for call in content.get("toolCalls", ())] == answered.calls
    assert translator.from_full_llm_response(shown, base) is (base if answered.calls else None)
    if not answered.calls:
        return
    kept = [call for call in content["toolCalls"] if data.draw(st.booleans())]
    calls = [{**call, "args": {"a": 1}} if data.draw(st.booleans()) else call for call in kept]
    parts = [f"{text}!" for text in content["parts"]] if data.draw(st.booleans()) else content["parts"]
    wanted = {"candidates": [{"content": {"role": "model", "parts": parts, "toolCalls": calls}}]}

    result = translator.from_full_llm_response(wanted, base)

    assert dump(base) == before
    again = translator.to_full_llm_response(result)["candidates"][0]["content"]
    assert again.get("toolCalls", []) == calls
    assert "".join(again["parts"]) == "".join(parts)
    if answered.thought and (calls or answered.texts):
        assert answered.thought in dump(result)


@APIS
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(history=histories())
def test_random_conversations_pass_the_check(api: API, history: Any) -> None:
    thoughts = [turn.thought for turn in history if isinstance(turn, Answered) and turn.thought and not turn.calls]
    attached = [*thoughts, "thinking", "reasoning"] if api.thoughts_need_more else []

    check_translator(resolve_translator(api.name), [Sample(api.request(history), attached=attached)])


@APIS
@settings(max_examples=60, deadline=None)
@given(history=histories())
def test_a_system_message_goes_to_the_end_of_a_valid_request(api: API, history: Any) -> None:
    translator, base = resolve_translator(api.name), api.request(history)

    result = translator.with_system_message(base, "Be brief.")

    api.accept(result)
    assert unseen(result) == unseen(base)
    assert translator.turns(result)[-1].text.endswith("Be brief.")
