"""A streamed answer that is released sentence by sentence, as hooks leave it (D-151).

At the end of each sentence the hooks get the text so far, and what is new in their answer is released. When the answer
is complete, they get all of it. What was released cannot be taken back: if hooks change that part later, their answer
is released again from the first word that differs.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.model.wire.base import EventReader

if TYPE_CHECKING:
    from llxprt_hooks.core.calls.model_call import HookedModelCall, ModelCallResult
    from llxprt_hooks.model.wire.base import ReadEvent, Wire

log = debug_logger("triggers:model")

Finish: TypeAlias = "Callable[[Any], Awaitable[ModelCallResult[Any]]]"
"""Runs the hooks on a complete answer."""

_END = re.compile(r"""[.!?…]["'”’»)\]*_`]*\s+|[。！？]["'”’」』）]*|\n+""")
"""Punctuation counts only before a space, so that `3.14` and the start of `example.com` are not sentences."""


class Sentences:
    """The text of one answer, and how much of it was released."""

    def __init__(self, hooked: HookedModelCall[Any]) -> None:
        self.result: ModelCallResult[Any] | None = None
        """The result of the call, once hooks have ended the answer before its end."""
        self.text = ""
        """What the model has said so far."""
        self.released = ""
        self._hooked = hooked
        self._checked = 0
        self._answer = ""
        """The hooks' latest answer."""

    async def add(self, piece: str) -> str:
        """Add the next piece of the model's text; return what may be shown now."""
        self.text += piece
        ends = [found.end() for found in _END.finditer(self.text, self._checked)]
        if not ends or self.result is not None:
            return ""
        self._checked = ends[-1]
        part = await self._hooked.after_part(self.text[: self._checked])
        new = self.continued(part.text)
        if part.is_last:
            self._answer = self.released
            self.result = self._hooked.ended(self.released, part)
        return new

    def continued(self, answer: str) -> str:
        """Return what is new in an answer of the hooks; it counts as released."""
        new = answer[len(self._answer) :]
        if not answer.startswith(self._answer):
            pairs = takewhile(lambda pair: pair[0] == pair[1], zip(self._answer, answer, strict=False))
            same = "".join(character for character, _ in pairs)
            words = len(same) - len(re.split(r"\s", same)[-1])
            new = answer[words:] if words or not answer else f"\n\n{answer}"
            if words:
                log.warning("an AfterModel hook changed text that was already released, which cannot be taken back")
        self._answer, self.released = answer, self.released + new
        return new


class SentenceEvents:
    """The events of one stream, as an API sends them: held back, but for the text that hooks have seen.

    That is the first text of the answer. Whatever follows it, such as tool calls, waits for the end.
    """

    def __init__(self, hooked: HookedModelCall[Any], wire: Wire) -> None:
        self.sentences = Sentences(hooked)
        self.result: ModelCallResult[Any] | None = None
        """What hooks decided; None until the answer is complete, or they have ended it."""
        self._hooked = hooked
        self._wire = wire
        self._assembler = wire.assembler(hooked.request)
        self._held: list[tuple[Any, bool]] = []
        """The events that were not passed on, and whether each is a piece of the text."""
        self._first: dict[str, Any] | None = None
        """The event with the first piece of the text."""
        self._is_open = False
        self._has_more = False
        """Whether the answer goes on after the text."""

    async def add(self, event: ReadEvent) -> Iterator[Any]:
        """Add an event of the model; return what may be passed on now, as it came or as JSON."""
        given, data = event
        self._assembler.add(data)
        piece = None if data is None or self._has_more else self._wire.text_in(data)
        if piece is None:
            self._has_more = self._has_more or (self._first is not None and not _is_ping(data))
            self._held.append((given, False))
            return iter(())
        self._first = self._first or data
        if not self._is_open:
            self._held.append((given, True))
        return self._released(await self.sentences.add(piece))

    def rest(self, response: Any, final: Any) -> Iterator[Any]:
        """Return what is left to be passed on of a complete response, given what hooks made of it."""
        if not self._is_open:
            return self._wire.events(final, self._hooked.request) if final is not response else self._own()
        if final is response:
            return self._closed(self._released(self.sentences.continued(self.sentences.text)))
        events = self._wire.events(final, self._hooked.request)
        found = next((event for event in events if self._wire.text_in(event) is not None), None)
        if found is None:  # hooks have emptied it: nothing can follow but its end
            shown = self._hooked.translator.from_hook_llm_response({"text": self.sentences.released}, response)
            return self.rest(response, shown)
        return self._moved(found, events)

    async def stream(self, chunks: AsyncIterable[Any], finish: Finish | None = None) -> AsyncGenerator[Any, None]:
        """Yield the events of a stream, as they may be passed on, and finish the call at its end."""
        reader = EventReader()
        async for chunk in chunks:
            for event in reader.read(chunk):
                for passed in await self.add(event):
                    yield passed
                if self._assembler.error is not None:
                    yield event[0]
                    return
                if self.sentences.result is not None:
                    break
            if self.sentences.result is not None:
                break
        response = None
        if (ended := self.sentences.result) is not None:
            self.result = replace(ended, response=self._wire.begun(cast("Any", ended.response), self._assembler.head))
        else:
            response = self._assembler.response
            if response is None:
                raise ConnectionAbortedError("the stream ended before the answer was complete")
            self.result = await (finish or self._hooked.after)(response)
        final = self.result.response
        for passed in self.rest(response, response if final is None else final):
            yield passed

    def _released(self, text: str) -> Iterator[Any]:
        if not text or self._first is None:
            return
        if not self._is_open:
            yield from (given for given, is_text in self._held if not is_text)
            self._held.clear()
        yield self._wire.with_text(self._first, text, begins=not self._is_open)
        self._is_open = True

    def _own(self) -> Iterator[Any]:
        return (given for given, _ in self._held)

    def _closed(self, released: Iterator[Any]) -> Iterator[Any]:
        yield from released
        yield from self._own()

    def _moved(self, found: Mapping[str, Any], following: Iterator[dict[str, Any]]) -> Iterator[Any]:
        """Yield the rest of a response whose text has been released in part, in the place where that has begun."""
        assert self._first is not None
        yield from self._released(self.sentences.continued(self._wire.text_in(found) or ""))
        for event in following:
            yield self._wire.moved(event, found, self._first)


def _is_ping(data: Mapping[str, Any] | None) -> bool:
    return data is None or data.get("type") == "ping"
