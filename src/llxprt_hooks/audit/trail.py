"""Sends the record of every execution to a JetStream stream, without losing one or sending one twice.

A record is written to a file first, see ``spool``; a thread sends what is in the file, one record after the other, and
goes on where it stopped after an outage or a crash. The subject is ``STREAM.AGENT``, so the last message of a subject
says how far its agent got. Nothing here delays or changes a decision.
"""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import importlib
import os
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from llxprt_hooks.audit.chain import Chain
from llxprt_hooks.audit.content import ContentHashes
from llxprt_hooks.audit.record import execution_record
from llxprt_hooks.audit.spool import SpoolFile, spool_folder
from llxprt_hooks.audit.stream import ensure_stream, last_number, record_number, stream_subject
from llxprt_hooks.bus.nats_connection import NatsAddress, open_nats_client
from llxprt_hooks.engine.observer import HookObserver
from llxprt_hooks.logger import debug_logger
from llxprt_hooks.process import blocking_is_forbidden
from llxprt_hooks.process.blocking import call_blocking
from llxprt_hooks.protocol.clock import timestamp
from llxprt_hooks.protocol.json_codec import write_payload

if TYPE_CHECKING:
    from nats.js import JetStreamContext

    from llxprt_hooks.audit.record import Record
    from llxprt_hooks.engine.results import HookExecutionResult
    from llxprt_hooks.settings.audit import AuditRule

log = debug_logger("audit")

LAST_CHANCE: Final = 2.0
"""Seconds that the program's end waits for records to be sent. The next agent sends the rest."""

LONGEST_PAUSE: Final = 5.0
"""Seconds between two attempts to reach the server."""

_SHORTEST_PAUSE: Final = 0.1


class AuditTrail(HookObserver):
    """An observer that records every execution and sends the records to a server."""

    def __init__(self, rule: AuditRule, project: str) -> None:
        self._rule = rule
        self._project = project
        self._contents = ContentHashes(project)
        self._lock = threading.Lock()
        self._pid = 0
        self._agent: _Agent | None = None
        self._later: ThreadPoolExecutor | None = None
        # Not in the thread: a process that is forked during an import cannot import the module any more.
        with suppress(ImportError):  # the thread reports it
            importlib.import_module("nats.js")

    def hook_ended(self, result: HookExecutionResult) -> None:
        if not blocking_is_forbidden():
            self._add(result)
            return
        with self._lock:
            self._start_if_forked()
            self._later = self._later or ThreadPoolExecutor(1, "llxprt-hooks audit")
            self._later.submit(self._add, result)

    def _add(self, result: HookExecutionResult) -> None:
        record = self._record(result)
        with self._lock:
            self._start_if_forked()
            try:
                self._agent = self._agent or _Agent(self._rule)
                self._agent.add(record)
            except OSError as error:
                log.error("an execution is missing in the audit trail: %s", error)

    def _start_if_forked(self) -> None:
        if self._pid != os.getpid():  # a forked process has neither the thread nor the right to the file
            self._pid, self._agent, self._later = os.getpid(), None, None

    def _record(self, result: HookExecutionResult) -> Record:
        config = result.hook_config
        record = execution_record(result, timestamp(), self._project, payloads=self._rule.payloads)
        return {
            **record,
            "level": config.scope.value,
            "content_hash": self._contents.of(config),
            "input_digest": hashlib.sha256(write_payload(result.hook_input)).hexdigest(),
        }


class _Agent:
    """The chain and the file of this process, and the thread that sends what is in the file."""

    def __init__(self, rule: AuditRule) -> None:
        self._rule = rule
        self._folder = spool_folder(rule)
        self._chain = Chain()
        self._file = SpoolFile.create(self._folder, self._chain.agent)
        self._file_lock = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._news = asyncio.Event()
        self._closing = False
        self._warned = False
        self._thread = threading.Thread(target=self._run, name="llxprt-hooks audit", daemon=True)
        self._thread.start()
        _agents.add(self)

    def add(self, record: Record) -> None:
        """Write a record to the file. Raises ``OSError`` if that is not possible."""
        with self._file_lock:
            self._file.append(self._chain.link(record))
        self._wake()

    def forget(self) -> None:
        """Leave everything to the process that this one was forked from."""
        self._file.close(remove=False)

    def close(self) -> None:
        """Wait a moment for the rest to be sent."""
        self._closing = True
        self._wake()
        self._thread.join(LAST_CHANCE)

    def _wake(self) -> None:
        with suppress(RuntimeError):  # everything was sent and the thread has ended
            self._loop.call_soon_threadsafe(self._news.set)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._send_until_closed())
        finally:
            self._loop.close()

    async def _send_until_closed(self) -> None:
        pause = _SHORTEST_PAUSE
        while True:
            try:
                await self._send_while_connected()
            except Exception as error:  # whatever is wrong there, the records stay in the file
                self._warn(error)
            else:
                await call_blocking(partial(self._file.close, remove=True))
                return
            if self._closing:
                return  # the file stays, and with it the lock until the process ends
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _send_while_connected(self) -> None:
        """Send everything, now and when there is more, until the program ends."""
        client = await open_nats_client(NatsAddress(self._rule.servers, self._rule.credentials))
        try:
            stream = client.jetstream()
            await ensure_stream(stream, self._rule.stream)
            if self._warned:
                self._warned = False
                log.warning("the audit trail is sent again")
            for file in await call_blocking(lambda: list(SpoolFile.abandoned(self._folder))):
                await self._send_abandoned(stream, file)
            self._file.rewind()
            while True:
                self._news.clear()
                await self._send(stream, self._file)
                if await call_blocking(self._is_all_sent) and self._closing:
                    return
                await self._news.wait()
        finally:
            await client.close()

    def _is_all_sent(self) -> bool:
        with self._file_lock:
            self._file.empty_if_large()
            return self._file.is_read()

    async def _send_abandoned(self, stream: JetStreamContext, file: SpoolFile) -> None:
        sent = False
        try:
            await self._send(stream, file)
            sent = True
        finally:
            await call_blocking(partial(file.close, remove=sent))

    async def _send(self, stream: JetStreamContext, file: SpoolFile) -> None:
        subject = stream_subject(self._rule.stream, file.agent)
        sent = None
        while lines := await call_blocking(file.unread):
            if sent is None:
                sent = await last_number(stream, self._rule.stream, subject)
            for line in lines:
                number = record_number(line)
                if number is not None and number > sent:
                    # One after the other: if a later record could arrive before an earlier one, the last number would
                    # not say how far this agent got.
                    await stream.publish(
                        subject, line, stream=self._rule.stream, headers={"Nats-Msg-Id": f"{file.agent}-{number}"}
                    )

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            log.warning("the audit trail cannot be sent and is kept in %s: %s", self._folder, error)


_agents: weakref.WeakSet[_Agent] = weakref.WeakSet()
"""The agents of this process."""


@atexit.register
def _close_all() -> None:
    for agent in _agents:
        agent.close()


def _forget_all() -> None:
    """A forked process would otherwise keep the files locked after its parent has ended."""
    for agent in _agents:
        agent.forget()
    _agents.clear()


os.register_at_fork(after_in_child=_forget_all)
