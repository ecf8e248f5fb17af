"""The JetStream stream of records: made if it does not exist, added to, and read back."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Final

from llxprt_hooks._support.json_codec import read_json_object
from llxprt_hooks.fleet.audit.spool import Sent
from llxprt_hooks.fleet.nats_connection import NatsAddress, open_nats_client

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Mapping, Sequence

    from nats.aio.client import Client
    from nats.js import JetStreamContext
    from nats.js.api import RawStreamMsg

_WAIT: Final = 5.0
"""Seconds to wait for a confirmation, or for the next message of a stream that has more."""

_AT_ONCE: Final = 64
"""Records that are on their way before the first of them is confirmed."""

_HEADERS: Final = 1024
"""Bytes that a message has besides the record, at most."""

_TOO_LARGE: Final = 10054
"""The server's code for a message that the stream does not take because of its size."""


def stream_subject(stream: str, agent: str) -> str:
    return f"{stream}.{agent}"


class AuditStream:
    """Adds records to the stream of a server."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._jetstream = client.jetstream()
        self._name = name

    @property
    def is_connected(self) -> bool:
        return self._client.is_connected

    async def ensure(self) -> None:
        """Create the stream if it does not exist. It has no limits: what is removed is the operator's choice."""
        from nats.js.errors import NotFoundError

        try:
            await self._jetstream.stream_info(self._name)
        except NotFoundError:
            await self._jetstream.add_stream(name=self._name, subjects=[stream_subject(self._name, "*")])

    async def stored(self, agent: str, after: int) -> dict[bytes, int]:
        """Return the records of an agent that the stream has behind a sequence number, each with its own."""
        found: dict[bytes, int] = {}
        while (message := await _next_message(self._jetstream, self._name, agent, after)) is not None:
            after = message.seq or after + 1
            found[message.data or b""] = after
        return found

    async def publish(
        self, agent: str, lines: Sequence[bytes], sent: Sent, stored: Mapping[bytes, int]
    ) -> AsyncGenerator[tuple[Sent, bytes | None], None]:
        """Add the records that are neither sent nor stored. Yield how far it got, and a record refused for good."""
        new = [(number, line) for line in lines if (number := record_number(line)) is not None and number > sent.number]
        for start in range(0, len(new), _AT_ONCE):
            batch = new[start : start + _AT_ONCE]
            # The tasks begin in this order, and each writes its message to the connection before it waits for anything.
            tasks = [asyncio.create_task(self._sequence(agent, line, stored)) for _, line in batch]
            for (number, line), sequence in zip(
                batch, await asyncio.gather(*tasks, return_exceptions=True), strict=True
            ):
                if isinstance(sequence, BaseException):
                    raise sequence
                sent = Sent(number, sent.sequence if sequence is None else sequence)
                yield sent, line if sequence is None else None

    async def _sequence(self, agent: str, line: bytes, stored: Mapping[bytes, int]) -> int | None:
        """Return where the stream has a record, which is added if need be; None if the server will never take it."""
        from nats.js.errors import APIError

        if line in stored:
            return stored[line]
        if len(line) + _HEADERS > self._client.max_payload:
            return None
        # Nobody can know the id before the record: the server would take a message that has it for this one.
        subject, headers = stream_subject(self._name, agent), {"Nats-Msg-Id": hashlib.sha256(line).hexdigest()}
        try:
            ack = await self._jetstream.publish(subject, line, _WAIT, self._name, headers)
            if ack.duplicate and not await self._has(ack.seq, line):
                ack = await self._jetstream.publish(subject, line, _WAIT, self._name)
            return ack.seq
        except APIError as error:
            if error.err_code == _TOO_LARGE:
                return None
            raise

    async def _has(self, sequence: int, line: bytes) -> bool:
        """Whether the stream has a record at a place."""
        from nats.js.errors import NotFoundError

        try:
            return (await self._jetstream.get_msg(self._name, seq=sequence)).data == line
        except NotFoundError:
            return False


def record_number(line: bytes) -> int | None:
    """Return the number of a record; None for a line that is not a whole record."""
    number = (read_json_object(line) or {}).get("seq")
    return number if isinstance(number, int) else None


class StreamReader:
    """Reads the records of a stream, oldest first, and remembers how far it has read."""

    def __init__(self, address: NatsAddress, stream: str) -> None:
        self._address = address
        self._stream = stream
        self._read = 0
        self._seen: set[bytes] = set()
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
            # The state of the stream also counts messages that were removed.
            pending = int(await _next_message(jetstream, self._stream, "*", self._read) is not None)
            while pending or follow:
                try:
                    message = await messages.next_msg(_WAIT if pending else None)
                except NoMessageError as error:
                    raise ConnectionError(f"NATS at {self._address} stopped sending the stream") from error
                self._read, pending = message.metadata.sequence.stream, message.metadata.num_pending
                if (key := hashlib.sha256(message.data).digest()) in self._seen:
                    self.repeated += 1
                    continue
                self._seen.add(key)
                yield message.data
        finally:
            await client.close()


async def _next_message(jetstream: JetStreamContext, stream: str, agent: str, after: int) -> RawStreamMsg | None:
    """Return an agent's first message after a sequence number; None if there is none."""
    from nats.js.errors import NotFoundError

    try:
        return await jetstream.get_msg(stream, seq=after + 1, subject=stream_subject(stream, agent), next=True)
    except NotFoundError:
        return None
