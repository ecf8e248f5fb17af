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
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

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

if TYPE_CHECKING:
    from llxprt_hooks.core.calls.sentences import Sentences

Finish: TypeAlias = Callable[[AIMessage], Awaitable[AIMessage]]


class HeldModel(BaseChatModel):
    """A model whose answer nobody sees, no callback, tracer or stream, before ``finish`` has returned."""

    inner: Any = Field(repr=False)
    finish: Any = Field(repr=False)
    sentences: Any = Field(default=None, repr=False)
    """Returns a ``Sentences`` for each streamed answer; None if it is held back until its end."""
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
        held = _HeldChunks(self.sentences)
        stream = self.inner.stream(messages, {"callbacks": []}, stop=stop, **kwargs)
        try:
            while not held.is_ended and (chunk := _next_unobserved(stream)) is not None:
                yield from loops.drive(held.add(chunk))
        finally:
            stream.close()
        yield from loops.drive(held.rest(self.finish))

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        held = _HeldChunks(self.sentences)
        stream = self.inner.astream(messages, {"callbacks": []}, stop=stop, **kwargs)
        try:
            while not held.is_ended and (chunk := await _anext_unobserved(stream)) is not None:
                for released in await held.add(chunk):
                    yield released
        finally:
            await stream.aclose()
        for released in await held.rest(self.finish):
            yield released


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


def _next_unobserved(stream: Iterator[Any]) -> Any:
    with _unobserved():
        return next(stream, None)


async def _anext_unobserved(stream: AsyncIterator[Any]) -> Any:
    with _unobserved():
        return await anext(stream, None)


class _HeldChunks:
    """The chunks of one answer: held back, but for the text that hooks have seen (D-151)."""

    def __init__(self, begin: Callable[[], Sentences] | None) -> None:
        self._sentences = None if begin is None else begin()
        self._chunks: list[Any] = []
        self._first: AIMessageChunk | None = None
        self._is_open = False
        self._has_more = False

    @property
    def is_ended(self) -> bool:
        """Whether hooks have ended the answer."""
        return self._sentences is not None and self._sentences.result is not None

    async def add(self, chunk: Any) -> list[ChatGenerationChunk]:
        """Add a chunk of the model; return what may be passed on now."""
        self._chunks.append(chunk)
        if self._sentences is None or self._has_more:
            return []
        if (text := _text_in(chunk)) is None:
            self._has_more = self._first is not None and bool(chunk.content or chunk.tool_call_chunks)
            return []
        opening = [] if self._is_open else [each for each in self._chunks if _text_in(each) is None and each.content]
        self._first = self._first or chunk
        if not (new := await self._sentences.add(text)):
            return []
        self._is_open = True
        return [*(_content_chunk(self._first, each.content) for each in opening), self._piece(new)]

    async def rest(self, finish: Finish) -> Iterator[ChatGenerationChunk]:
        """Finish the answer; return what is left to be passed on."""
        answer = _joined(self._chunks)
        final = await finish(answer)
        if not self._is_open:
            return _chunks(final, answer, self._chunks)
        blocks = [final.content] if isinstance(final.content, str) else list(final.content)
        texts = [place for place, block in enumerate(blocks) if _block_text(block) is not None]
        place = texts[0] if texts else -1
        new = self._sentences.continued(_block_text(blocks[place]) or "") if self._sentences and texts else ""
        following = [] if isinstance(final.content, str) else blocks[place + 1 :]
        content = self._piece(new).message.content
        if following:
            content = [*([content] if isinstance(content, str) else content), *following]
        return iter([_last_chunk(final, content)])

    def _piece(self, text: str) -> ChatGenerationChunk:
        first = cast("AIMessageChunk", self._first)
        is_text = isinstance(first.content, str)
        return _content_chunk(first, text if is_text else [{**cast("Any", first.content[0]), "text": text}])


def _text_in(chunk: Any) -> str | None:
    """Return the text of a chunk that has nothing else; None for any other."""
    if not isinstance(chunk, AIMessageChunk) or chunk.tool_call_chunks or not chunk.content:
        return None
    if isinstance(chunk.content, str):
        return chunk.content
    return _block_text(chunk.content[0]) if len(chunk.content) == 1 else None


def _block_text(block: Any) -> str | None:
    if isinstance(block, str):
        return block
    text = block.get("text") if block.get("type") == "text" else None
    return text if isinstance(text, str) else None


def _content_chunk(like: AIMessageChunk, content: Any) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=AIMessageChunk(content=content, id=like.id))


def _chat_result(answer: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=answer)])


def _joined(chunks: list[Any]) -> AIMessage:
    return cast("AIMessage", message_chunk_to_message(reduce(add, chunks)))


def _chunks(answer: AIMessage, original: AIMessage, chunks: list[Any]) -> Iterator[ChatGenerationChunk]:
    """Yield the model's own chunks, or a single one if hooks changed the answer."""
    if answer is original and all(isinstance(chunk, AIMessageChunk) for chunk in chunks):
        yield from (ChatGenerationChunk(message=chunk) for chunk in chunks)
        return
    yield _last_chunk(answer, answer.content)


def _last_chunk(answer: AIMessage, content: Any) -> ChatGenerationChunk:
    calls = [
        ToolCallChunk(name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=index)
        for index, call in enumerate(answer.tool_calls)
    ]
    fields = {**answer.model_dump(exclude={"type", "tool_calls", "invalid_tool_calls"}), "content": content}
    return ChatGenerationChunk(message=AIMessageChunk(**fields, tool_call_chunks=calls, chunk_position="last"))
