"""A scripted chat model for LangChain, and short forms for agents with hooks."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from llxprt_hooks.integrations.langchain import HooksMiddleware
from tests.support.project import Project, hooks_of


class ScriptedModel(BaseChatModel):
    """Answers from a list, and records what it was sent. Text is streamed word by word."""

    answers: list[AIMessage]
    model_name: str = "scripted"
    temperature: float | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    sent: list[tuple[list[BaseMessage], dict[str, Any]]]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(tools=[tool if isinstance(tool, dict) else tool.name for tool in tools], **kwargs)

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages, stop, kwargs))])

    def _stream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in _chunks_of(self._next(messages, stop, kwargs)):
            if run_manager is not None:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in _chunks_of(self._next(messages, stop, kwargs)):
            if run_manager is not None:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    def _next(self, messages: list[BaseMessage], stop: Any, kwargs: dict[str, Any]) -> AIMessage:
        self.sent.append((list(messages), {**kwargs, "stop": stop, "model": self.model_name}))
        answer = self.answers[min(len(self.sent), len(self.answers)) - 1]
        return answer.model_copy(deep=True)


def _chunks_of(answer: AIMessage) -> list[ChatGenerationChunk]:
    pieces = re.findall(r"\S+\s*", str(answer.text)) or [""]
    chunks = [AIMessageChunk(content=piece) for piece in pieces]
    chunks[-1] = AIMessageChunk(
        content=pieces[-1],
        response_metadata=answer.response_metadata,
        usage_metadata=answer.usage_metadata,
        tool_calls=answer.tool_calls,
    )
    return [ChatGenerationChunk(message=chunk) for chunk in chunks]


def says(text: str) -> AIMessage:
    """Return an answer of the model."""
    return AIMessage(
        text,
        response_metadata={"finish_reason": "stop", "model_name": "scripted", "id": "resp_1"},
        usage_metadata={"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
    )


def calls(*given: tuple[str, dict[str, Any]], text: str = "") -> AIMessage:
    """Return an answer of the model that calls tools."""
    tool_calls = [{"name": name, "args": args, "id": f"call_{n}_{name}"} for n, (name, args) in enumerate(given)]
    return AIMessage(text, tool_calls=tool_calls)


def model_of(*answers: AIMessage, **fields: Any) -> ScriptedModel:
    return ScriptedModel(answers=list(answers), sent=[], **fields)


def write_file(file_path: str, content: str = "") -> str:
    """Write a file."""
    return f"wrote {content} to {file_path}"


NOTE = ("write_file", {"file_path": "a.txt", "content": "hello"})


def middleware(project: Project, aliases: Any = None, **events: Any) -> HooksMiddleware:
    """Return hooks for an agent in a project."""
    return HooksMiddleware(hooks=hooks_of(events), working_dir=project.root, aliases=aliases)


def agent_of(model: BaseChatModel, hooks: Any, *others: Any, tools: Any = (write_file,), **more: Any) -> Any:
    """Return an agent with hooks, which come after other middleware."""
    return create_agent(model, list(tools), middleware=[*others, hooks], **more)


def run(
    agent: Any, prompt: Any = "go", *, mode: str = "sync", thread: str | None = None, **more: Any
) -> dict[str, Any]:
    """Run an agent, synchronously or not."""
    config = {} if thread is None else {"configurable": {"thread_id": thread}}
    given = {"messages": [{"role": "user", "content": prompt}]} if isinstance(prompt, str) else prompt
    if mode == "sync":
        result: dict[str, Any] = agent.invoke(given, config, **more)
        return result
    answered: dict[str, Any] = asyncio.run(agent.ainvoke(given, config, **more))
    return answered


def results_in(result: dict[str, Any]) -> list[str]:
    """Return the tool results, as text."""
    return [str(message.text) for message in result["messages"] if isinstance(message, ToolMessage)]


def marks(message: BaseMessage) -> dict[str, Any]:
    found: dict[str, Any] = message.response_metadata.get("llxprt_hooks", {})
    return found
