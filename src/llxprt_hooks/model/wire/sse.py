"""Server-sent events, bytes to events and back: https://html.spec.whatwg.org/multipage/server-sent-events.html"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

BOM = b"\xef\xbb\xbf"


class ServerSentEvent(NamedTuple):
    data: str
    event: str | None = None

    def encode(self) -> bytes:
        """Return the event as it is sent."""
        name = f"event: {self.event}\n" if self.event else ""
        data = self.data.replace("\n", "\ndata: ")
        return f"{name}data: {data}\n\n".encode()


class SSEParser:
    """Splits a stream into events. The bytes may be cut anywhere, even inside a character or a line ending.

    >>> parser = SSEParser()
    >>> parser.feed(b"data: {}"), parser.feed(bytes([10, 10]))
    ([], [ServerSentEvent(data='{}', event=None)])
    """

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._data: list[str] = []
        self._event: str | None = None
        self._after_cr = False
        self._is_start = True

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Return the events that these bytes complete. An event that the stream does not complete is never returned."""
        events: list[ServerSentEvent] = []
        if not chunk:
            return events
        if self._after_cr:
            # The line ended with the CR at the end of the previous chunk; this may be the LF of a CRLF.
            chunk = chunk.removeprefix(b"\n")
        for line in chunk.splitlines(keepends=True):
            self._line.append(line)
            if line.endswith((b"\r", b"\n")):
                text, self._line = b"".join(self._line).rstrip(b"\r\n"), []
                if (event := self._read(text)) is not None:
                    events.append(event)
        self._after_cr = chunk.endswith(b"\r")
        return events

    def _read(self, line: bytes) -> ServerSentEvent | None:
        """Read one line; return the event if an empty line ends it."""
        if self._is_start:
            line, self._is_start = line.removeprefix(BOM), False
        if not line:
            event = ServerSentEvent("\n".join(self._data), self._event) if self._data else None
            self._data, self._event = [], None
            return event
        name, _, value = line.decode(errors="replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        return None


def encode_json(data: Any, event: str | None = None) -> bytes:
    """Return an event with JSON data. It is pure ASCII, so no parser can take a character of it for a line end."""
    return ServerSentEvent(json.dumps(data, separators=(",", ":")), event).encode()
