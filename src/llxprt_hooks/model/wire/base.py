"""How an API sends its data over HTTP; each API is one module in this folder.

To read a stream, feed its bytes to an assembler. Its ``response`` is the same object that the API would have sent
without streaming, or None if the stream has not come to its end: then nothing of it may be used.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeAlias, TypeVar

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.events import MODEL_EVENTS, HookEventName
from llxprt_hooks.model.access import field, is_copyable, name_of
from llxprt_hooks.model.wire.sse import SSEParser, encode_json

log = debug_logger("translator")

T = TypeVar("T")
Refusal: TypeAlias = Callable[[str], str | None]
"""Returns why a tool may not be called; None if it may."""

DONE = b"data: [DONE]\n\n"


class Assembler(ABC):
    """Assembles the events of one stream into a response. Feed it bytes, or events that an SDK has read."""

    def __init__(self) -> None:
        self.error: dict[str, Any] | None = None
        """The error that the API sent in place of the rest of the stream."""
        self.head: dict[str, Any] = {}
        """The response without its answer, as far as it has arrived."""
        self._parser = SSEParser()
        self._is_broken = False

    @property
    def response(self) -> dict[str, Any] | None:
        """The complete response; None while the end of the stream is missing, and after an error."""
        if self._is_broken or self.error is not None:
            return None
        return self._if_readable(self._assembled)

    def feed(self, chunk: bytes) -> None:
        for event in self._parser.feed(chunk):
            if not event.data.startswith("[DONE]"):
                self._if_readable(partial(self._add_json, event.data))

    def add(self, event: Any) -> None:
        """Add one event: JSON or an object of the SDK. Whatever else an SDK yields is ignored."""
        if (data := event_data(event)) is None:
            return
        if data.get("type") == "error" or data.get("error"):
            self.error = self.error or data
            return
        self._if_readable(partial(self._add, data))

    def _add_json(self, text: str) -> None:
        self.add(_json(text))

    def _if_readable(self, use: Callable[[], T]) -> T | None:
        """Return what a function returns; None, from now on, if events do not have the form that the API documents."""
        try:
            return use()
        except (AttributeError, KeyError, TypeError, RecursionError):
            log.warning("a stream has an event that cannot be read: it counts as incomplete", exc_info=True)
            self._is_broken = True
            return None

    @abstractmethod
    def _add(self, event: dict[str, Any]) -> None:
        """Add one event. Raises if it does not have the form that the API documents."""

    @abstractmethod
    def _assembled(self) -> dict[str, Any] | None:
        """Return the response, if it is complete."""


ReadEvent: TypeAlias = tuple[Any, dict[str, Any] | None]
"""An event as it arrived, and as JSON; None if it is not JSON."""


def event_data(event: Any) -> dict[str, Any] | None:
    """Return an event, JSON or an object of the SDK, as JSON; None for whatever else an SDK yields."""
    if not is_copyable(event):
        return None
    return dict(event) if isinstance(event, Mapping) else event.model_dump(by_alias=True, exclude_unset=True)


class EventReader:
    """Reads the events in the chunks of a stream, which are bytes, or events that an SDK has read."""

    def __init__(self) -> None:
        self._parser = SSEParser()

    def read(self, chunk: Any) -> list[ReadEvent]:
        if not isinstance(chunk, bytes):
            return [(chunk, event_data(chunk))]
        return [(event.encode(), event_data(_json(event.data))) for event in self._parser.feed(chunk)]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Bypass:
    """Requests that send prompts, or fetch answers, outside of a model call: hooks cannot be shown them (D-91)."""

    method: str
    path: re.Pattern[str]
    """The end of the path."""
    reason: str
    events: tuple[HookEventName, ...] = MODEL_EVENTS
    """The events that would not fire."""

    def matches(self, method: str, path: str) -> bool:
        """Whether an HTTP request is one of these. The query is not part of the path."""
        return method.upper() == self.method and self.path.search(path.rstrip("/")) is not None


def sends(path: str, reason: str) -> Bypass:
    """Return the requests that send prompts, by the end of their path, which is a regular expression."""
    return Bypass("POST", re.compile(f"{path}$"), f"{reason} was not sent: hooks could not be shown its prompts")


def fetches(path: str, reason: str, method: str = "GET") -> Bypass:
    """Return the requests that fetch answers which the API has stored."""
    reason = f"{reason} was not fetched: hooks could not be shown the answers in it"
    return Bypass(method, re.compile(f"{path}$"), reason, (HookEventName.AFTER_MODEL,))


class Wire(ABC):
    """The HTTP side of one API."""

    path: ClassVar[str]
    """The end of the path that requests are posted to."""
    bypasses: ClassVar[tuple[Bypass, ...]] = ()
    END: ClassVar[bytes] = b""
    """What is sent after the last event."""

    @abstractmethod
    def assembler(self, request: Mapping[str, Any] | None = None) -> Assembler:
        """Return an assembler for the stream that answers a request."""

    @abstractmethod
    def events(self, response: Mapping[str, Any], request: Mapping[str, Any] | None = None) -> Iterator[dict[str, Any]]:
        """Yield a complete response as the events of a stream; ``request`` says which optional ones are wanted."""

    @abstractmethod
    def without_calls(self, response: Mapping[str, Any], refusal: Refusal) -> Mapping[str, Any]:
        """Return a complete response whose refused tool calls are text; the same object if none is refused.

        This is for callers that cannot keep an agent from running a tool. If no call is left, the answer is complete,
        and the agent's turn ends with that text.
        """

    @abstractmethod
    def text_in(self, event: Mapping[str, Any]) -> str | None:
        """Return the piece of the answer's text in an event; None if it has none."""

    @abstractmethod
    def with_text(self, event: Mapping[str, Any], text: str, *, begins: bool) -> dict[str, Any]:
        """Return an event like this one, which has text, with another text; ``begins``: it is the first of them."""

    def begun(self, response: Mapping[str, Any], head: Mapping[str, Any]) -> dict[str, Any]:
        """Return a response that ends a stream which another one, with this head, has begun."""
        return {**response, **{name: head[name] for name in ("id", "model", "created", "created_at") if name in head}}

    @abstractmethod
    def moved(self, event: Mapping[str, Any], found: Mapping[str, Any], first: Mapping[str, Any]) -> dict[str, Any]:
        """Return an event that comes after ``found``, for a stream whose text has begun with ``first``."""

    def has_one_answer(self, request: Mapping[str, Any]) -> bool:
        """Whether the response to a request has one answer, so that its text is in order."""
        return True

    def matches(self, method: str, path: str) -> bool:
        """Whether an HTTP request is a model call of this API. The query is not part of the path."""
        return method.upper() == "POST" and path.rstrip("/").endswith(self.path)

    def answers_later(self, request: Mapping[str, Any]) -> bool:
        """Whether the response to a request has no answer yet, and the program fetches it with another request."""
        return False

    def is_streamed(self, request: Mapping[str, Any]) -> bool:
        """Whether the answer to a request is a stream."""
        return request.get("stream") is True

    def assemble(self, events: Iterable[Any], request: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """Return the response in a stream, given as bytes or as events; None if it is incomplete."""
        assembler = self.assembler(request)
        for event in events:
            if isinstance(event, bytes):
                assembler.feed(event)
            else:
                assembler.add(event)
        return assembler.response

    def write(self, response: Mapping[str, Any], request: Mapping[str, Any] | None = None) -> Iterator[bytes]:
        """Yield a complete response as a stream of server-sent events."""
        yield from map(self.encode, self.events(response, request))
        if self.END:
            yield self.END

    def encode(self, event: Mapping[str, Any]) -> bytes:
        """Return an event as it is sent."""
        return encode_json(event, event["type"])


def extended(old: Any, new: Any) -> Any:
    """Return a field with the next piece of it: texts and lists grow, objects are merged, other values are replaced."""
    if isinstance(old, str) and isinstance(new, str):
        return old + new
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        whole = {name: new[name] for name in WHOLE if new.get(name) not in (None, "")}
        return {**old, **{name: extended(old.get(name), new[name]) for name in new if name not in WHOLE}, **whole}
    if isinstance(new, list):
        items = list(old or [])
        for item in new:
            index = field(item, "index")
            numbered = enumerate(items if index is not None else ())
            if same := [place for place, known in numbered if field(known, "index") == index]:
                items[same[0]] = extended(items[same[0]], item)
            else:
                items.append(item)
        return items
    return old if new is None else new


def called(call: Any) -> str:
    """Return the name of the tool that a call is for; empty if it has none."""
    return name_of(field(call, "name")) or ""


def reasons_text(reasons: Iterable[str]) -> str:
    """Return the text in place of calls, given why each one was refused."""
    return "\n\n".join(dict.fromkeys(reasons))


WHOLE = ("id", "type", "role", "index", "finish_reason")
"""Fields that are sent whole. Some servers repeat them in each piece, or leave them empty there."""
