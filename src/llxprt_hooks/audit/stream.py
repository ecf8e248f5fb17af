"""The JetStream stream of records: made if it does not exist, and read back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from llxprt_hooks.bus.nats_connection import NatsAddress, open_nats_client
from llxprt_hooks.protocol.json_codec import read_json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from nats.js import JetStreamContext

_WAIT: Final = 5.0
"""Seconds to wait for the next message of a stream that has more."""


def stream_subject(stream: str, agent: str) -> str:
    """Return the subject of an agent's records."""
    return f"{stream}.{agent}"


async def ensure_stream(jetstream: JetStreamContext, stream: str) -> None:
    """Create the stream if it does not exist. It has no limits: what is removed, and when, is the operator's choice."""
    from nats.js.errors import NotFoundError

    try:
        await jetstream.stream_info(stream)
    except NotFoundError:
        await jetstream.add_stream(name=stream, subjects=[stream_subject(stream, "*")])


async def last_number(jetstream: JetStreamContext, stream: str, subject: str) -> int:
    """Return the number of the last record that the stream has of an agent; 0 if it has none."""
    from nats.js.errors import NotFoundError

    try:
        message = await jetstream.get_last_msg(stream, subject)
    except NotFoundError:
        return 0
    return record_number(message.data or b"") or 0


def record_number(line: bytes) -> int | None:
    """Return the number of a record; None for a line that is not a whole record."""
    number = _fields(line).get("seq")
    return number if isinstance(number, int) else None


class StreamReader:
    """Reads the records of a stream, oldest first, and remembers how far it has read."""

    def __init__(self, address: NatsAddress, stream: str) -> None:
        self._address = address
        self._stream = stream
        self._read = 0
        self._seen: set[tuple[object, object]] = set()
        self.repeated = 0
        """How many records the stream has more than once; a reader gets them once."""
        self.removed = 0
        """How many messages the stream no longer has, as of the last time it was read."""

    def lines(self, *, follow: bool = False) -> Generator[bytes, None, None]:
        """Yield the records that were added since the last call, each once, also if the stream has it twice.

        With ``follow``, wait for new ones forever. Raises ``ConnectionError`` or ``LookupError`` if the stream cannot
        be read, and ``ModuleNotFoundError`` without nats-py.
        """
        with asyncio.Runner() as runner:
            reading = self._messages(follow)
            try:
                while (line := runner.run(anext(reading, None))) is not None:
                    yield line
            finally:
                runner.run(reading.aclose())

    async def _messages(self, follow: bool) -> AsyncGenerator[bytes, None]:
        client = await open_nats_client(self._address)
        try:
            from nats.errors import TimeoutError as NoMessageError
            from nats.js.api import ConsumerConfig, DeliverPolicy
            from nats.js.errors import NotFoundError

            jetstream = client.jetstream()
            try:
                state = (await jetstream.stream_info(self._stream)).state
            except NotFoundError as error:
                raise LookupError(f"NATS at {self._address} has no stream {self._stream}") from error
            self.removed = state.last_seq - state.messages
            messages = await jetstream.subscribe(
                stream_subject(self._stream, "*"),
                stream=self._stream,
                ordered_consumer=True,
                config=ConsumerConfig(
                    deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                    opt_start_seq=max(self._read, state.first_seq - 1) + 1,
                ),
            )
            pending = state.messages if self._read < state.last_seq else 0
            while pending or follow:
                try:
                    message = await messages.next_msg(_WAIT if pending else None)
                except NoMessageError as error:
                    raise ConnectionError(f"NATS at {self._address} stopped sending the stream") from error
                self._read, pending = message.metadata.sequence.stream, message.metadata.num_pending
                if (key := _key(message.data)) in self._seen:
                    self.repeated += 1
                    continue
                self._seen.add(key)
                yield message.data
        finally:
            await client.close()


def _key(line: bytes) -> tuple[object, object]:
    record = _fields(line)
    return (str(record.get("agent")), str(record.get("seq"))) if record else (line, None)


def _fields(line: bytes) -> dict[str, object]:
    try:
        record = read_json(line)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}
