"""A model whose answer is held back until hooks have seen it.

Middleware of LangChain runs around the model, but callbacks, tracers and streams get tokens from the model itself. So
AfterModel hooks run inside a model that calls the real one.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import reduce, wraps
from inspect import iscoroutinefunction
from operator import add
from typing import Any, Self, TypeAlias, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCallChunk, message_chunk_to_message
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableBinding
from langchain_core.tracers import context as tracers
from langsmith import tracing_context
from pydantic import Field

from llxprt_hooks.core import loops
from llxprt_hooks.integrations.base import log
from llxprt_hooks.integrations.langchain.translator import model_name_of

Finish: TypeAlias = Callable[[AIMessage], Awaitable[AIMessage]]


class HeldModel(BaseChatModel):
    """A model whose answer nobody sees, no callback, tracer or stream, before ``finish`` has returned."""

    inner: Any = Field(repr=False)
    finish: Any = Field(repr=False)
    cache: Any = False  # a cached answer would not be shown to hooks

    @classmethod
    def around(cls, model: Any, finish: Finish, **fields: Any) -> Self:
        profile, disabled = getattr(model, "profile", None), getattr(model, "disable_streaming", False)
        return cls(inner=model, finish=finish, profile=profile, disable_streaming=disabled, **fields)

    @property
    def model_name(self) -> str | None:
        return model_name_of(self.inner)

    @property
    def _llm_type(self) -> str:
        return str(getattr(self.inner, "_llm_type", "hooks"))

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        return cast("Mapping[str, Any]", getattr(self.inner, "_identifying_params", {}))

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        return self.inner._get_ls_params(stop=stop, **kwargs)

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        bound = self.inner.bind_tools(tools, **kwargs)
        if isinstance(bound, RunnableBinding) and bound.bound is self.inner:
            return self.bind(**bound.kwargs)  # callbacks are told the tools, too
        return self.model_copy(update={"inner": bound})

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        with _unobserved():
            answer = self.inner.invoke(messages, {"callbacks": []}, stop=stop, **kwargs)
        return _chat_result(loops.drive(self.finish(answer)))

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        with _unobserved():
            answer = await self.inner.ainvoke(messages, {"callbacks": []}, stop=stop, **kwargs)
        return _chat_result(await self.finish(answer))

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        with _unobserved():
            chunks = list(self.inner.stream(messages, {"callbacks": []}, stop=stop, **kwargs))
        answer = _joined(chunks)
        yield from _chunks(loops.drive(self.finish(answer)), answer, chunks)

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        with _unobserved():
            stream = self.inner.astream(messages, {"callbacks": []}, stop=stop, **kwargs)
            chunks = [chunk async for chunk in stream]
        answer = _joined(chunks)
        for chunk in _chunks(await self.finish(answer), answer, chunks):
            yield chunk


class _Compression:
    """What hooks decided about a compression that is in progress."""

    is_blocked = False


_in_progress: ContextVar[_Compression | None] = ContextVar("llxprt_hooks_compression", default=None)


def unless_blocked(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that compresses the conversation, or returns None if a hook blocks it."""
    if iscoroutinefunction(method):

        @wraps(method)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            with _compressing() as compression:
                update = await method(*args, **kwargs)
            return None if compression.is_blocked else update

        return call_async

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _compressing() as compression:
            update = method(*args, **kwargs)
        return None if compression.is_blocked else update

    return call


@contextmanager
def _compressing() -> Iterator[_Compression]:
    compression = _Compression()
    before = _in_progress.set(compression)
    try:
        yield compression
    finally:
        _in_progress.reset(before)


class Summarizer(HeldModel):
    """A model that announces each call, which a hook may block."""

    announce: Any = Field(repr=False)

    @classmethod
    def around(  # type: ignore[override]
        cls, model: Any, announce: Callable[[], Awaitable[str | None]], **fields: Any
    ) -> Self:
        return super().around(model, _unchanged, announce=announce, **fields)

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        if _is_blocked(loops.drive(self.announce())):
            return _chat_result(AIMessage(""))
        return super()._generate(*args, **kwargs)

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        if _is_blocked(await self.announce()):
            return _chat_result(AIMessage(""))
        return await super()._agenerate(*args, **kwargs)


def _is_blocked(reason: str | None) -> bool:
    """Whether a hook blocks the compression, which has an effect only where its summary is not used then."""
    if reason is None:
        return False
    compression = _in_progress.get()
    if compression is None:
        log.warning(
            "PreCompress: a hook's block has no effect (%s): use hooks.compressing(SummarizationMiddleware(…))", reason
        )
        return False
    compression.is_blocked = True
    return True


async def _unchanged(answer: AIMessage) -> AIMessage:
    return answer


@contextmanager
def _unobserved() -> Iterator[None]:
    """Keep tracers and callbacks of the surrounding context, which LangChain adds to any list of callbacks, away."""
    with ExitStack() as stack:
        stack.enter_context(tracing_context(enabled=False))
        variables: list[ContextVar[Any]] = [hook[0] for hook in tracers._configure_hooks]
        for variable in (tracers.tracing_v2_callback_var, *variables):
            stack.callback(variable.reset, variable.set(None))
        yield


def _chat_result(answer: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=answer)])


def _joined(chunks: list[Any]) -> AIMessage:
    return cast("AIMessage", message_chunk_to_message(reduce(add, chunks)))


def _chunks(answer: AIMessage, original: AIMessage, chunks: list[Any]) -> Iterator[ChatGenerationChunk]:
    """Yield the model's own chunks, or a single one if hooks changed the answer."""
    if answer is original and all(isinstance(chunk, AIMessageChunk) for chunk in chunks):
        yield from (ChatGenerationChunk(message=chunk) for chunk in chunks)
        return
    calls = [
        ToolCallChunk(name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=index)
        for index, call in enumerate(answer.tool_calls)
    ]
    fields = answer.model_dump(exclude={"type", "tool_calls", "invalid_tool_calls"})
    yield ChatGenerationChunk(message=AIMessageChunk(**fields, tool_call_chunks=calls, chunk_position="last"))
