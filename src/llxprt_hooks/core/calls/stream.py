"""Model calls whose answers arrive in chunks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from llxprt_hooks._support.awaitables import resolve
from llxprt_hooks.core import loops
from llxprt_hooks.core.calls.sentences import SentenceEvents

if TYPE_CHECKING:
    from llxprt_hooks.core.calls.model_call import HookedModelCall, ModelCallResult
    from llxprt_hooks.model.wire.base import Wire

ResponseT = TypeVar("ResponseT")
ChunkT = TypeVar("ChunkT")


class ModelStream(Generic[ChunkT, ResponseT]):
    """The chunks of an answer; an asynchronous iterator."""

    def __init__(
        self,
        hooked: HookedModelCall[Any],
        call: Callable[[Any], Any],
        join: Callable[[list[ChunkT]], ResponseT] | None,
        split: Callable[[ResponseT], Iterable[ChunkT]] | None,
    ) -> None:
        self.result: ModelCallResult[ResponseT] | None = None
        """What hooks decided; None until then.

        It is set before the first chunk if an AfterModel hook sees the complete response, or if a hook answered instead
        of the model. Otherwise it is set after the last one, and ``response`` is None if chunks were passed on as they
        arrived.
        """
        self._hooked = hooked
        self._call = call
        self._given_join = join
        self._given_split = split
        self._chunks = self._iterate()

    def __aiter__(self) -> AsyncIterator[ChunkT]:
        return self._chunks

    async def aclose(self) -> None:
        """End the answer early."""
        await close_stream(self._chunks)

    async def _iterate(self) -> AsyncIterator[ChunkT]:
        hooked = self._hooked
        self.result = await hooked.before()
        if self.result is not None:
            for chunk in () if self.result.response is None else self._split(self.result.response):
                yield chunk
            return
        holds_back, held_back = hooked.holds_back, []
        source = await resolve(self._call(hooked.request))
        if self._streams_sentences:
            async with aclosing(self._sentences(source)) as chunks:
                async for chunk in chunks:
                    yield chunk
            return
        try:
            async with aclosing(_chunks(source)) as chunks:
                async for chunk in chunks:
                    if holds_back:
                        held_back.append(chunk)
                    else:
                        yield chunk
        finally:
            await close_stream(source)
        if not holds_back:
            self.result = hooked.passed_on()
            return
        response = self._join(held_back)
        self.result = await hooked.after(response)
        shown = self.result.response
        for chunk in held_back if shown is None or shown is response else self._split(shown):
            yield chunk

    @property
    def _streams_sentences(self) -> bool:
        is_own = self._given_join is not None or self._given_split is not None
        return self._hooked.streams_sentences and not is_own and self._wire.has_one_answer(self._hooked.request)

    async def _sentences(self, source: Any) -> AsyncGenerator[Any, None]:
        """Yield the chunks of an answer with the text that hooks have left in it."""
        events = SentenceEvents(self._hooked, self._wire)
        try:
            async with aclosing(_chunks(source)) as chunks, aclosing(events.stream(chunks)) as released:
                async for chunk in released:
                    yield chunk
        finally:
            await close_stream(source)
            self.result = events.result

    def _join(self, chunks: list[ChunkT]) -> Any:
        if self._given_join is not None:
            return self._given_join(chunks)
        response = self._wire.assemble(chunks, self._hooked.request)
        if response is None:
            raise ConnectionAbortedError("the stream ended before the answer was complete")
        return response

    def _split(self, response: Any) -> Iterable[Any]:
        if self._given_split is not None:
            return self._given_split(response)
        return self._wire.events(response, self._hooked.request)

    @property
    def _wire(self) -> Wire:
        wire = self._hooked.translator.wire
        if wire is None:
            raise TypeError("stream_model() can't assemble this SDK's chunks by itself: pass `join=` and `split=`")
        return wire


class SyncModelStream(Generic[ChunkT, ResponseT]):
    """The chunks of an answer; an iterator."""

    def __init__(self, stream: ModelStream[ChunkT, ResponseT]) -> None:
        self._stream = stream
        self._chunks = self._iterate()

    @property
    def result(self) -> ModelCallResult[ResponseT] | None:
        """What hooks decided; None until then. ``response`` is None if chunks were passed on as they arrived."""
        return self._stream.result

    def __iter__(self) -> Iterator[ChunkT]:
        return self._chunks

    def _iterate(self) -> Generator[ChunkT, None, None]:
        return in_this_thread(aiter(self._stream))

    def close(self) -> None:
        """End the answer early."""
        self._chunks.close()


def in_this_thread(chunks: AsyncIterator[ChunkT]) -> Generator[ChunkT, None, None]:
    """Yield what an asynchronous iterator yields, for a synchronous caller, and close it."""
    try:
        while (chunk := loops.drive(_next(chunks))) is not _END:
            yield chunk
    finally:
        loops.drive(close_stream(chunks))


_END: Any = object()


async def _next(chunks: AsyncIterator[ChunkT]) -> ChunkT:
    return await anext(chunks, _END)


async def _chunks(source: Any) -> AsyncGenerator[Any, None]:
    if hasattr(source, "__aiter__"):
        async for chunk in source:
            yield chunk
    else:
        for chunk in source:
            yield chunk


async def close_stream(source: Any) -> None:
    """Close a stream that may not be at its end; SDKs call it ``close``, generators ``aclose``."""
    close = getattr(source, "aclose", None) or getattr(source, "close", None)
    if close is not None:
        await resolve(close())
