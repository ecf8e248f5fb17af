"""The contract of every translator that there is; and that translators which break it are found out."""

from __future__ import annotations

import copy
import json
from threading import Lock
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from google.genai import types

from llxprt_hooks import GenerateContentParameters, HookTranslator, TranslationError, Turn
from llxprt_hooks.model import resolve_translator
from llxprt_hooks.model.google_genai import HookTranslatorGenAIv1
from llxprt_hooks.model.openai_chat import OpenAIChatTranslator
from llxprt_hooks.model.registry import TRANSLATORS
from llxprt_hooks.testing import Sample, check_translator
from tests.model.wire_samples import anthropic_samples, responses_samples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llxprt_hooks.model.format import LLMRequest


def genai_samples() -> list[Any]:
    call = types.Part(
        function_call=types.FunctionCall(id="call-1", name="read_file", args={"file_path": "secret.txt"}),
        thought_signature=b"signed",
    )
    result = types.FunctionResponse(id="call-1", name="read_file", response={"output": "the result"})
    contents = [
        types.UserContent([types.Part(text="Look: "), types.Part(text="at this.")]),
        types.UserContent(types.Part.from_bytes(data=b"\x89PNG", mime_type="image/png")),
        types.ModelContent([types.Part(text="A thought.", thought=True), types.Part(text="Reading."), call]),
        types.UserContent([types.Part(function_response=result), types.Part(text="Go on.")]),
        types.ModelContent("Done."),
        types.UserContent("Thanks."),
    ]
    declared = [types.FunctionDeclaration(name=name) for name in ("read_file", "write_file")]
    calling = types.FunctionCallingConfig(mode=types.FunctionCallingConfigMode.AUTO)
    config = types.GenerateContentConfig(
        temperature=0.5,
        seed=4711,
        system_instruction="Be careful.",
        tools=[types.Tool(function_declarations=declared)],
        tool_config=types.ToolConfig(function_calling_config=calling),
    )
    answer = types.ModelContent([types.Part(text="Here it is."), call])
    response = types.GenerateContentResponse(
        candidates=[types.Candidate(content=answer, finish_reason=types.FinishReason.STOP, index=0)],
        usage_metadata=types.GenerateContentResponseUsageMetadata(prompt_token_count=3),
    )
    hidden = ["call-1", "secret.txt", b"signed", "the result", b"\x89PNG", "A thought.", "Be careful.", 4711]
    request = GenerateContentParameters("m", contents, config)
    as_dict = {
        "contents": [content.model_dump(mode="json", by_alias=True, exclude_none=True) for content in contents],
        "config": {"tools": [{"functionDeclarations": [{"name": "read_file"}]}], "seed": 4711},
    }
    return [
        Sample(request, response, hidden),
        GenerateContentParameters("m", "Hello"),
        GenerateContentParameters("m", ["Hello", call, types.Part(function_response=result), "again"]),
        Sample(as_dict, response.model_dump(mode="json", by_alias=True, exclude_none=True), ["call-1", 4711]),
    ]


IMAGE: dict[str, Any] = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}

PHOTO: dict[str, Any] = {"type": "image_url", "image_url": {"url": "data:image/png;base64,BB=="}}


def openai_samples() -> list[Any]:
    def calls(*names: str) -> list[dict[str, Any]]:
        function = {"name": "read_file", "arguments": '{"file_path": "secret.txt"}'}
        return [{"id": name, "type": "function", "function": function} for name in names]

    messages = [
        {"role": "system", "content": "Be careful."},
        {"role": "developer", "content": "Be kind."},
        {
            "role": "user",
            "name": "ann",
            "content": [{"type": "text", "text": "Look: "}, IMAGE, {"type": "text", "text": "at this."}],
        },
        {"role": "assistant", "content": "Reading.", "tool_calls": calls("call-1", "call-2")},
        {"role": "tool", "tool_call_id": "call-1", "content": "the first result"},
        {"role": "tool", "tool_call_id": "call-2", "content": [{"type": "text", "text": "the second result"}]},
        {"role": "assistant", "content": None, "tool_calls": calls("call-3")},
        {"role": "tool", "tool_call_id": "call-3", "content": "the third result"},
        {"role": "system", "content": "A note."},
        {"role": "assistant", "content": "Done.", "refusal": None},
        {"role": "user", "content": "Thanks."},
    ]
    tools = [{"type": "function", "function": {"name": name}} for name in ("read_file", "write_file")]
    request = {
        "model": "gpt-5",
        "messages": messages,
        "temperature": 0.5,
        "max_tokens": 100,
        "stop": "END",
        "seed": 4711,
        "tools": tools,
        "tool_choice": "auto",
        "metadata": {"user": "u-1"},
    }
    response = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-5-2026",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Here it is.", "tool_calls": calls("call-4")},
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    }
    hidden = ["Be careful.", "Be kind.", "call-1", "call-2", "call-3", IMAGE["image_url"]["url"], 4711, "u-1"]
    hidden += ["the first result", "the second result", "the third result", '{"file_path": "secret.txt"}']
    forced = {**request, "tool_choice": {"type": "function", "function": {"name": "write_file"}}}
    return [
        Sample(request, response, hidden),
        Sample(forced, response, hidden),
        Sample(
            {**request, "messages": [*messages, {"role": "user", "content": [{"type": "text", "text": "And"}, PHOTO]}]}
        ),
        {"model": "gpt-5", "messages": [{"role": "user", "content": "Hello"}], "max_completion_tokens": 5},
        {"model": "gpt-5", "messages": [{"role": "user", "content": "Hello"}]},
    ]


SAMPLES = {
    "google-genai": genai_samples,
    "openai-chat": openai_samples,
    "openai-responses": responses_samples,
    "anthropic-messages": anthropic_samples,
}


# A prompt of 20,503 tokens, most of them cached, and an answer of 4.
USAGES: dict[str, dict[str, Any]] = {
    "google-genai": {
        "usage_metadata": {
            "prompt_token_count": 20503,
            "cached_content_token_count": 20000,
            "candidates_token_count": 4,
            "total_token_count": 20507,
        }
    },
    "openai-chat": {
        "usage": {"prompt_tokens": 20503, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 20000}}
    },
    "openai-responses": {
        "usage": {"input_tokens": 20503, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 20000}}
    },
    "anthropic-messages": {
        "usage": {
            "input_tokens": 3,
            "cache_read_input_tokens": 20000,
            "cache_creation_input_tokens": 500,
            "output_tokens": 4,
        }
    },
}


@pytest.mark.requirement("HOOK-073")
@pytest.mark.parametrize("name", TRANSLATORS)
def test_hooks_see_the_same_token_counts_whatever_the_sdk_calls_them(name: str) -> None:
    translator, usage = resolve_translator(name), USAGES[name]
    answer = next(sample.response for sample in SAMPLES[name]() if isinstance(sample, Sample))
    response = {**answer, **usage} if isinstance(answer, dict) else answer.model_copy(update=usage)

    shown = translator.to_hook_llm_response(response)

    counts = {"promptTokenCount": 20503, "candidatesTokenCount": 4, "totalTokenCount": 20507}
    assert shown["usageMetadata"] == counts
    repeated = translator.from_hook_llm_response({**shown, "text": "Changed."}, response)
    assert translator.to_hook_llm_response(repeated)["usageMetadata"] == counts


@pytest.mark.requirement("HOOK-071", "HOOK-075", "HOOK-078", "HOOK-079")
@pytest.mark.parametrize("name", TRANSLATORS)
def test_every_translator_keeps_the_contract(name: str) -> None:
    check_translator(resolve_translator(name), SAMPLES[name]())


def test_a_translator_is_found_by_name_and_made_once() -> None:
    assert resolve_translator("openai-chat") is resolve_translator("openai-chat")
    assert resolve_translator(None) is resolve_translator("google-genai")
    own = OpenAIChatTranslator()
    assert resolve_translator(own) is own


def test_an_unknown_name_is_an_error_with_the_known_ones() -> None:
    with pytest.raises(TranslationError, match="Unknown translator 'openai'; expected one of google-genai, openai"):
        resolve_translator("openai")


def test_without_a_sample_nothing_is_claimed() -> None:
    with pytest.raises(AssertionError, match="at least one sample"):
        check_translator(OpenAIChatTranslator(), [])


# Translators that break a promise.


class ForgetsOtherParts(OpenAIChatTranslator):
    def rebuild(self, request: Any, turns: Sequence[Turn]) -> Any:
        rebuilt = super().rebuild(request, turns)
        messages = [{"role": m["role"], "content": m["content"]} for m in rebuilt["messages"]]
        return {**rebuilt, "messages": messages}


class ForgetsResults(OpenAIChatTranslator):
    def rebuild(self, request: Any, turns: Sequence[Turn]) -> Any:
        return super().rebuild(request, [turn for turn in turns if not turn.results])


class DropsTheSystemPrompt(OpenAIChatTranslator):
    def rebuild(self, request: Any, turns: Sequence[Turn]) -> Any:
        prompt = len(request["messages"]) - len(self.turns(request))
        rebuilt = super().rebuild(request, turns)
        return {**rebuilt, "messages": rebuilt["messages"][prompt:]}


class SeparatesCallsAndResults(OpenAIChatTranslator):
    def turns(self, request: Any) -> list[Turn]:
        return [turn._replace(text=turn.text or "shown", calls=(), results=()) for turn in super().turns(request)]


class CopiesAlways(OpenAIChatTranslator):
    def from_hook_llm_request(self, hook_request: Any, base_request: Any) -> Any:
        return dict(super().from_hook_llm_request(hook_request, base_request))


class ChangesItsInput(OpenAIChatTranslator):
    def with_fields(self, request: Any, fields: Any) -> Any:
        request.update(fields)
        return dict(request)


class ForgetsTheMode(OpenAIChatTranslator):
    def build_tool_config(self, tool_config: Any, base: Any) -> Any:
        return super().build_tool_config(tool_config | {"mode": "AUTO"}, base)


class ForgetsTheNames(OpenAIChatTranslator):
    def build_tool_config(self, tool_config: Any, base: Any) -> Any:
        return super().build_tool_config({"mode": tool_config.get("mode", "AUTO")}, base)


class SaysNothing(OpenAIChatTranslator):
    def with_system_message(self, request: Any, text: str) -> Any:
        return request


class IgnoresSettings(OpenAIChatTranslator):
    def with_fields(self, request: Any, fields: Any) -> Any:
        return super().with_fields(request, {**fields, "temperature": 1})


class LeavesOutEmptySettings(OpenAIChatTranslator):
    def to_hook_llm_request(self, request: Any) -> LLMRequest:
        shown = super().to_hook_llm_request(request)
        if not shown["config"]:
            del shown["config"]
        return shown


class TakesHookFormat(OpenAIChatTranslator):
    def read_request(self, value: Any) -> Any:
        return value if isinstance(value, dict) else super().read_request(value)


class KeepsTheOldAnswer(OpenAIChatTranslator):
    def from_hook_llm_response(self, hook_response: Any, base: Any = None) -> Any:
        replaced = super().from_hook_llm_response(hook_response, base)
        return {**replaced, "choices": [*replaced["choices"], *(base or {}).get("choices", [])]}


class AnswersNothing(OpenAIChatTranslator):
    def from_hook_llm_response(self, hook_response: Any, base: Any = None) -> Any:
        return super().from_hook_llm_response({"text": "", **hook_response}, base)


class MutatesParts(HookTranslatorGenAIv1):
    def rebuild(self, request: Any, turns: Sequence[Turn]) -> Any:
        rebuilt = super().rebuild(request, turns)
        request.contents.reverse()
        return rebuilt


class DropsImages(HookTranslatorGenAIv1):
    def turns(self, request: Any) -> list[Turn]:
        return [turn for turn in super().turns(request) if turn.text or turn.calls or turn.results]


class DropsTools(HookTranslatorGenAIv1):
    def with_fields(self, request: Any, fields: Any) -> Any:
        return super().with_fields(request, {**fields, "tools": None})


class KeepsToolCalls(OpenAIChatTranslator):
    def from_hook_llm_response(self, hook_response: Any, base: Any = None) -> Any:
        replaced = super().from_hook_llm_response(hook_response, base)
        for new, old in zip(replaced["choices"], (base or {}).get("choices", []), strict=False):
            new["message"]["tool_calls"] = old["message"]["tool_calls"]
        return replaced


class SwapsImages(OpenAIChatTranslator):
    def rebuild(self, request: Any, turns: Sequence[Turn]) -> Any:
        rebuilt = super().rebuild(request, turns)
        dumped = json.dumps(rebuilt["messages"])
        if "AA==" not in dumped or "BB==" not in dumped:
            return rebuilt
        swapped = dumped.replace("AA==", "CC==").replace("BB==", "AA==").replace("CC==", "BB==")
        return {**rebuilt, "messages": json.loads(swapped)}


class DuplicatesImages(OpenAIChatTranslator):
    def rebuild(self, request: Any, turns: Sequence[Turn]) -> Any:
        *others, last = super().rebuild(request, turns)["messages"]
        if last["role"] == "user" and isinstance(last["content"], str):
            last = {**last, "content": [{"type": "text", "text": last["content"]}, IMAGE]}
        return {**request, "messages": [*others, last]}


class CopiesMessages(OpenAIChatTranslator):
    def rebuild(self, request: Any, turns: Sequence[Turn]) -> Any:
        rebuilt = super().rebuild(request, turns)
        return {**rebuilt, "messages": [dict(message) for message in rebuilt["messages"]]}


class DropsToolsWithAChoice(OpenAIChatTranslator):
    def with_tool_config(self, request: Any, tool_config: Any) -> Any:
        return {**super().with_tool_config(request, tool_config), "tools": None}


class DropsAFieldWithAChoice(OpenAIChatTranslator):
    def with_tool_config(self, request: Any, tool_config: Any) -> Any:
        chosen = super().with_tool_config(request, tool_config)
        return {name: value for name, value in chosen.items() if name != "metadata"}


class InterruptsWithASystemMessage(OpenAIChatTranslator):
    def with_system_message(self, request: Any, text: str) -> Any:
        *others, last = request["messages"]
        message = {"role": "system", "content": text}
        return {**request, "messages": [*others, message, last] if last["role"] == "tool" else [*others, last, message]}


class WritesWhatItCannotRead(OpenAIChatTranslator):
    def new_message(self, role: str, text: str) -> Any:
        return SimpleNamespace(**super().new_message(role, text))


BROKEN = {
    WritesWhatItCannotRead: "cannot be read again",
    KeepsToolCalls: "still has tool calls of the model",
    SwapsImages: "in another message, or there twice",
    DuplicatesImages: "in another message, or there twice",
    CopiesMessages: "expected the same object",
    DropsToolsWithAChoice: "dropped other fields: .*write_file",
    DropsAFieldWithAChoice: "dropped other fields: u-1",
    InterruptsWithASystemMessage: "a system message: a message was put between a tool call and its result",
    ForgetsOtherParts: "lost data that hooks do not see",
    ForgetsResults: "lost data that hooks do not see",
    DropsTheSystemPrompt: "lost data that hooks do not see",
    SeparatesCallsAndResults: "hooks wanted|lost|put between",
    CopiesAlways: "must stay the same object",
    ChangesItsInput: "an input was changed",
    ForgetsTheMode: "the tool choice",
    ForgetsTheNames: "the tool choice",
    SaysNothing: "a system message must be the last message",
    IgnoresSettings: "a hook set",
    LeavesOutEmptySettings: "`config` in a payload must always be an object",
    TakesHookFormat: "must raise TranslationError for a request in hook format",
    KeepsTheOldAnswer: "still has the text of the model",
    AnswersNothing: "must raise TranslationError for an answer without text",
    MutatesParts: "an input was changed",
    DropsImages: "lost data that hooks do not see",
    DropsTools: "lost data that hooks do not see",
}


@pytest.mark.parametrize(("broken", "complaint"), BROKEN.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_a_translator_that_breaks_the_contract_is_found_out(broken: type[Any], complaint: str) -> None:
    samples = openai_samples() if issubclass(broken, OpenAIChatTranslator) else genai_samples()
    with pytest.raises(AssertionError, match=rf"{broken.__name__}, sample \d: .*({complaint})"):
        check_translator(broken(), samples)


def test_samples_are_not_changed() -> None:
    samples = openai_samples()
    before = copy.deepcopy(samples)
    check_translator(OpenAIChatTranslator(), samples)
    assert samples == before


def test_a_sample_may_hold_objects_that_cannot_be_copied() -> None:
    request = {"model": "m", "messages": [{"role": "user", "content": "Hello"}], "extra_body": {"lock": Lock(), 1: 2}}

    check_translator(OpenAIChatTranslator(), [Sample(request)])


def test_a_translator_that_does_not_count_hidden_parts_reports_none() -> None:
    assert HookTranslator.hidden_parts(HookTranslatorGenAIv1(), types.GenerateContentResponse()) == {}
