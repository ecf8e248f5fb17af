"""Sends the record of every execution to a JetStream stream, without losing one or sending one twice.

A record is written to a file first, see ``spool``; a thread sends what is in the file, in order, and goes on where it
stopped after an outage or a crash. What the server has confirmed counts as sent. Of what it may have got without
confirming it, the stream itself is asked. Nothing here delays or changes a decision.
"""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import importlib
import os
import socket
import threading
import weakref
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks._support.json_codec import write_payload
from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks._support.stamps import timestamp
from llxprt_hooks.core.engine.observer import HookObserver
from llxprt_hooks.core.protocol.caller import asking_agent
from llxprt_hooks.fleet.audit.chain import Chain
from llxprt_hooks.fleet.audit.content import ContentHashes
from llxprt_hooks.fleet.audit.record import Record, answer_record, execution_record
from llxprt_hooks.fleet.audit.signing import signer
from llxprt_hooks.fleet.audit.spool import Sent, SpoolFile, spool_folder
from llxprt_hooks.fleet.audit.stream import AuditStream
from llxprt_hooks.fleet.nats_connection import NatsAddress, open_nats_client
from llxprt_hooks.process import call_blocking

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.observer import QuestionEnded
    from llxprt_hooks.core.engine.results import HookExecutionResult
    from llxprt_hooks.settings.audit import AuditRule

log = debug_logger("audit")

LAST_CHANCE: Final = 2.0
"""Seconds that the program's end waits for records to be sent. The next agent sends the rest."""

MAX_PAUSE: Final = 5.0
"""Seconds between two attempts to reach the server."""

RESCAN: Final = 30.0
"""Seconds between two looks for what killed agents have left."""

_MIN_PAUSE: Final = 0.1

_trails: weakref.WeakSet[AuditTrail] = weakref.WeakSet()
_ending = False


class AuditTrail(HookObserver):
    """An observer that records every execution and every answer, and sends the records to a server."""

    def __init__(self, rule: AuditRule, project: str) -> None:
        self._rule = rule
        self._project = project
        self._contents = ContentHashes(project)
        self._agent: _Agent | None = None
        self.forget()
        _trails.add(self)
        # Not in the thread: a process that is forked during an import cannot import the module any more.
        with suppress(ImportError):  # the thread reports it
            importlib.import_module("nats.js")

    def start(self) -> None:
        """Send now what other agents have left, not only when there is a first record. Raises ``OSError``."""
        with self._lock:
            self._agent = self._agent or _Agent(self._rule, self._project)

    def forget(self) -> None:
        """Begin a chain of its own: a forked process has neither the thread nor a right to the file."""
        self._lock = threading.Lock()  # another thread may have held it when the process was forked
        self._agent = None

    def hook_ended(self, result: HookExecutionResult) -> None:
        call_blocking(lambda: self._add(self._record(result)))

    def question_ended(self, question: QuestionEnded) -> None:
        call_blocking(lambda: self._add(self._answer(question)))

    def _add(self, record: Record) -> None:
        with self._lock:
            try:
                if self._agent is None or not self._agent.add(record):
                    self._agent = _Agent(self._rule, self._project)
                    self._agent.add(record)
            except OSError as error:
                log.error("an execution is missing in the audit trail: %s", error)

    def _record(self, result: HookExecutionResult) -> Record:
        config = result.hook_config
        record = execution_record(result, timestamp(), self._project, payloads=self._rule.payloads)
        return {
            "agent": asking_agent(self._project),
            **record,  # on a worker, it names the agent that asked
            "level": config.scope.value,
            "content_hash": self._contents.of(config),
            "input_digest": hashlib.sha256(write_payload(result.hook_input)).hexdigest(),
        }

    def _answer(self, question: QuestionEnded) -> Record:
        record = answer_record(question, timestamp(), self._project, payloads=self._rule.payloads)
        return {"agent": asking_agent(self._project), **record, "level": question.asked_by.hook_config.scope.value}

    def close(self) -> None:
        """Wait a moment for the rest to be sent."""
        if self._agent is not None:
            self._agent.close()

    def drop(self) -> None:
        """In a forked process: leave everything to the one that it was forked from."""
        if self._agent is not None:
            self._agent.drop()
        self.forget()


class _Agent:
    """The chain and the file of this process, and the thread that sends what is in the file."""

    def __init__(self, rule: AuditRule, project: str) -> None:
        self._rule = rule
        self._address = NatsAddress(rule.servers, rule.credentials and str(_path(project, rule.credentials)))
        self._folder = spool_folder(rule)
        self._chain = Chain(signer(_path(project, rule.signing_key)) if rule.signing_key else None)
        self._file = SpoolFile.create(self._folder, self._chain.agent)
        self._sent = Sent()
        self._in_doubt = False
        """Whether the server may have more of the own records than it has confirmed."""
        self._file_lock = threading.Lock()
        self._closed = False
        self._loop = _Loop()
        self._news = asyncio.Event()
        self._end = asyncio.Event()
        self._ending = False
        self._warned = False
        self._thread = threading.Thread(target=self._run, name="llxprt-hooks audit", daemon=True)
        if not _ending:  # at the end of a program no thread can be started; the next agent sends the record
            self._thread.start()

    def add(self, record: Record) -> bool:
        """Write a record to the file; false if it is closed. Raises ``OSError`` if that is not possible."""
        with self._file_lock:
            if self._closed:
                return False
            self._file.append(self._chain.link(record))
        self._wake()
        return True

    def drop(self) -> None:
        # Otherwise a forked process would keep the file locked after its parent has ended.
        self._file.close(remove=False)

    def close(self) -> None:
        if self._thread.is_alive():
            self._close_chain()
            self._ending = True
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._end.set)
            self._wake()
            self._thread.join(LAST_CHANCE)

    def _close_chain(self) -> None:
        """Sign that there are no more records in this chain. Later ones begin another."""
        with self._file_lock:
            if self._chain.is_signed and not self._closed:
                self._closed = True
                try:
                    self._file.append(self._chain.close(timestamp()))
                except OSError as error:
                    log.error("the audit trail could not be closed: %s", error)

    def _wake(self) -> None:
        with suppress(RuntimeError):  # everything was sent and the thread has ended
            self._loop.call_soon_threadsafe(self._news.set)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._send_until_closed())
        finally:
            self._loop.close()

    async def _send_until_closed(self) -> None:
        pause = _MIN_PAUSE
        while True:
            try:
                await self._send_while_connected()
            except Exception as error:  # whatever is wrong there, the records stay in the file
                self._warn(error)
            else:
                return
            if self._ending:
                return  # the file stays, and with it the lock until the process ends
            await self._pause(pause)
            pause = min(2 * pause, MAX_PAUSE)

    async def _pause(self, seconds: float) -> None:
        """Wait, but not longer than the program runs."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._end.wait(), seconds)

    async def _send_while_connected(self) -> None:
        """Send everything, now and when there is more, until the program ends."""
        client = await open_nats_client(self._address)
        leftovers = None
        try:
            stream = AuditStream(client, self._rule.stream)
            await stream.ensure()
            leftovers = asyncio.create_task(self._send_abandoned(stream))
            await self._send_own(stream)
            await leftovers
        finally:
            if leftovers is not None:
                leftovers.cancel()
                await asyncio.gather(leftovers, return_exceptions=True)
            await client.close()

    async def _send_own(self, stream: AuditStream) -> None:
        self._file.rewind()
        while True:
            self._news.clear()
            in_doubt, self._in_doubt = self._in_doubt, True
            await self._send(stream, self._file, in_doubt=in_doubt)
            self._in_doubt = False
            if call_blocking(self._close_if_ending):
                return
            await self._news.wait()

    def _close_if_ending(self) -> bool:
        with self._file_lock:
            self._file.empty_if_large()
            is_over = self._ending and self._file.is_read()
            if is_over:
                self._closed = True
                self._file.close(remove=True)
            return is_over

    async def _send_abandoned(self, stream: AuditStream) -> None:
        """Send what other agents have left, now and from time to time, and once more when the program ends."""
        is_last = False
        while not is_last:
            is_last = self._ending
            found = SpoolFile.abandoned(self._folder)
            while stream.is_connected and (file := call_blocking(partial(next, found, None))) is not None:
                await self._send_one(stream, file)
            if not is_last:
                await self._pause(RESCAN)

    async def _send_one(self, stream: AuditStream, file: SpoolFile) -> None:
        """Send what an agent has left. If that is not possible, it stays for another time."""
        complete = False
        try:
            await self._send(stream, file, in_doubt=True)
            complete = True
        except Exception as error:
            log.warning("%s cannot be sent: %s", file.path, error)
        finally:
            call_blocking(partial(file.close, remove=complete))

    async def _send(self, stream: AuditStream, file: SpoolFile, *, in_doubt: bool) -> None:
        """Send the records that have not been read. ``in_doubt``: the stream may have some that are not confirmed."""
        is_own = file is self._file
        sent = self._sent if is_own else call_blocking(lambda: file.sent)
        stored = await stream.stored(file.agent, sent.sequence) if in_doubt else {}
        while lines := call_blocking(file.unread):
            async for progress, refused in stream.publish(file.agent, lines, sent, stored):
                if refused is not None:
                    kept = call_blocking(partial(file.refuse, refused))
                    log.error("the server refuses a record of the audit trail, which is now in %s", kept)
                sent = progress
                if is_own:
                    self._sent = sent
            call_blocking(partial(file.note_sent, sent))
            if self._warned:
                self._warned = False
                log.warning("the audit trail is sent again")

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            log.warning("the audit trail cannot be sent and is kept in %s: %s", self._folder, error)


def _path(project: str, path: str) -> Path:
    return Path(project, os.path.expanduser(path))  # noqa: PTH111


class _Loop(asyncio.SelectorEventLoop):
    """Looks host names up itself: at the end of a program there are no threads to do it."""

    async def getaddrinfo(self, host: Any, port: Any, **options: Any) -> Any:
        return socket.getaddrinfo(host, port, **options)


@atexit.register
def _close_all() -> None:
    global _ending
    _ending = True
    for trail in _trails:
        trail.close()


def _drop_all() -> None:
    for trail in _trails:
        trail.drop()


os.register_at_fork(after_in_child=_drop_all)
