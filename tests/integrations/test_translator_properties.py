"""Whatever a hook does to the messages, a framework's translator keeps the conversation whole and valid (D-13).

OpenAI Agents and ADK have the messages of an SDK, whose translators they use. The google-genai that ADK needs has
another major version than the one in the tests of the engine.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents.middleware.types import ModelRequest as LangChainRequest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic_ai.messages import (
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.test import TestModel

from llxprt_hooks.integrations.langchain import LangChainTranslator
from llxprt_hooks.integrations.pydantic_ai import PydanticAIRequest, PydanticAITranslator
from tests.integrations.langchain_support import model_of
from tests.model.test_translator_properties import Genai
from tests.model.translator_properties import API, PROPERTIES, Answered, Said, is_image, text


class LangChain(API):
    name = "langchain"
    translator = LangChainTranslator()
    thoughts_need_more = True

    def request(self, history: list[Said | Answered]) -> Any:
        messages: list[AnyMessage] = []
        for turn in history:
            if isinstance(turn, Said):
                messages.append(
                    HumanMessage(
                        [{"type": "image", "url": part} if is_image(part) else text(part) for part in turn.parts]
                    )
                )
                continue
            messages.append(self.response(turn))
            messages += [ToolMessage(f"result-{call}", tool_call_id=call, name="f") for call in turn.calls]
            messages += [HumanMessage(turn.remark)] if turn.remark else []
        return LangChainRequest(model=model_of(), messages=messages, system_message=SystemMessage("prompt-0"))

    def response(self, answered: Answered) -> Any:
        thought = [{"type": "thinking", "thinking": "", "signature": answered.thought}] if answered.thought else []
        calls = [{"name": "f", "args": {}, "id": call} for call in answered.calls]
        return AIMessage([*thought, *map(text, answered.texts)], tool_calls=calls)

    def accept(self, request: Any) -> None:
        """Results follow their calls, all of them, before anything else; nothing is empty or only a thought."""
        open_calls: list[str] = []
        for message in request.messages:
            if isinstance(message, ToolMessage):
                open_calls.remove(message.tool_call_id)
                continue
            assert not open_calls
            open_calls = [call["id"] for call in getattr(message, "tool_calls", ())]
            assert (
                open_calls
                or isinstance(message.content, str)
                or {each["type"] for each in message.content} - {"thinking"}
            )
        assert not open_calls

    def plain(self, value: Any) -> Any:
        if isinstance(value, BaseMessage):
            return value.model_dump(exclude_none=True)
        return [value.system_message, value.messages]


class PydanticAI(API):
    name = "pydantic-ai"
    translator = PydanticAITranslator(lambda name: TestModel(model_name=name))
    attached = (0, "text", "user-prompt")

    def request(self, history: list[Said | Answered]) -> Any:
        messages: list[ModelMessage] = []
        for turn in history:
            if isinstance(turn, Said):
                parts = [ImageUrl(part) if is_image(part) else part for part in turn.parts]
                messages.append(ModelRequest(parts=[UserPromptPart(parts)]))
                continue
            messages.append(self.response(turn))
            results: list[Any] = [ToolReturnPart("f", f"result-{call}", tool_call_id=call) for call in turn.calls]
            results += [UserPromptPart(turn.remark)] if turn.remark else []
            messages += [ModelRequest(parts=results)] if results else []
        first: list[ModelMessage] = [ModelRequest(parts=[SystemPromptPart("prompt-0")])]
        return PydanticAIRequest(TestModel(), first + messages, None, ModelRequestParameters())

    def response(self, answered: Answered) -> Any:
        thought = [ThinkingPart("", signature=answered.thought)] if answered.thought else []
        calls = [ToolCallPart("f", {}, tool_call_id=call) for call in answered.calls]
        return ModelResponse(parts=[*thought, *map(TextPart, answered.texts), *calls])

    def accept(self, request: Any) -> None:
        """The results of all calls are in the next message; nothing is empty."""
        open_calls: list[str] = []
        for message in request.messages:
            results = [part.tool_call_id for part in message.parts if isinstance(part, ToolReturnPart)]
            assert results == open_calls
            open_calls = [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)]
            assert message.parts or message.instructions
        assert not open_calls

    def dump(self, value: Any) -> str:
        messages = value.messages if isinstance(value, PydanticAIRequest) else [value]
        return json.dumps(ModelMessagesTypeAdapter.dump_python(messages), default=str)


@pytest.mark.requirement("HOOK-078")
@pytest.mark.parametrize("api", [LangChain(), PydanticAI(), Genai()], ids=lambda api: api.name)
@pytest.mark.parametrize("property_", PROPERTIES, ids=lambda each: each.__name__)
def test_translators(api: API, property_: Callable[..., None]) -> None:
    property_(api=api)
