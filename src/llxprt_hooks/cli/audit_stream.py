"""Reading the audit trail for ``log``, ``stats`` and ``inspect``."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from llxprt_hooks._support.terminal import Part, print_json, print_line, stdout_console
from llxprt_hooks._support.text import plural
from llxprt_hooks.commands.log import LogFilter, read_record
from llxprt_hooks.fleet.audit.chain import Verdict, verify
from llxprt_hooks.fleet.audit.signing import IsSigned, new_key, signature_check
from llxprt_hooks.fleet.audit.spool import spool_files
from llxprt_hooks.fleet.audit.stream import StreamReader
from llxprt_hooks.fleet.nats_connection import NatsAddress

if TYPE_CHECKING:
    from llxprt_hooks.fleet.audit.record import Record

KEYGEN: Final = "keygen"
"""In place of an ID: make a signing key."""

_OPEN: Final = "the chain is not closed: its agent still runs or was killed, or the end was removed (--allow-open)"
_ACCIDENTS: Final = (
    "checked without a key: this finds accidents, but anybody can compute hashes again. To find forgeries, sign the "
    "records (`hooksConfig.audit.signingKey`) and pass --key"
)

_PAUSE: Final = 1.0
"""Seconds before a lost stream is read again."""

VERIFY: Final = "verify"
"""In place of an ID: check the hash chains. No ID is like it, because IDs are hexadecimal."""


@dataclass(frozen=True, slots=True)
class AuditSource:
    """The records on a server. What goes wrong with it is an error of the command."""

    reader: StreamReader

    def read(self, where: LogFilter) -> list[Record]:
        """Return the records that were added since the last call."""
        return list(_records(self.lines(), where))

    def follow(self, where: LogFilter) -> Iterator[Record]:
        """Yield records as they are added, forever. A server that is lost may come back."""
        while True:
            with suppress(click.ClickException):
                yield from _records(self.lines(follow=True), where)
            time.sleep(_PAUSE)

    def followed(self, where: LogFilter) -> Callable[[], list[Record]]:
        """Return a function that returns the records which are new since its last call, without waiting for any."""
        new = deque(self.read(where))
        follow = self.follow(where)
        threading.Thread(target=new.extend, args=(follow,), name="llxprt-hooks audit stream", daemon=True).start()
        return lambda: [new.popleft() for _ in range(len(new))]

    def lines(self, *, follow: bool = False) -> Iterator[bytes]:
        try:
            yield from self.reader.lines(follow=follow)
        except (ConnectionError, LookupError, ModuleNotFoundError) as error:
            raise click.ClickException(str(error)) from error


def _records(lines: Iterable[bytes], where: LogFilter) -> Iterator[Record]:
    records = map(read_record, lines)
    return (record for record in records if record is not None and where.matches(record))


def audit_stream(servers: tuple[str, ...], stream: str, credentials: str | None) -> AuditSource:
    return AuditSource(StreamReader(NatsAddress(servers, credentials), stream))


def verify_chains(source: AuditSource | None, *, as_json: bool, key: str | None, allow_open: bool) -> int:
    """Check the chains of a stream, or of the records that wait to be sent; 1 if one of them is broken.

    With the public key of the agents, every record must be signed, and every chain must begin at 1 and be closed.
    """
    is_signed = None if key is None else _signature_check(key)
    verdicts = list(verify(_waiting() if source is None else source.lines(), is_signed).values())
    for each in verdicts if key is not None else ():
        if each.agent and each.first > 1 and source is not None:
            each.problems.append(f"records 1 to {each.first - 1} are missing")
        if each.agent and not each.is_closed and not allow_open:
            each.problems.append(_OPEN)
    removed = 0 if source is None else source.reader.removed
    if source is None and not verdicts and not as_json:
        hint = "`hooksConfig.audit` turns the audit trail on; for the records on a server, pass --nats"
        click.echo(f"nothing to verify: no records wait to be sent. {hint}", err=True)
        return 0
    if as_json:
        for each in verdicts:
            print_json({"agent": each.agent, "records": each.records, "first": each.first, "problems": each.problems})
    else:
        before = "sent or removed (to check these, pass --nats)" if source is None else "gone"
        for each in verdicts:
            if each.problems or each.first > 1:
                _print_verdict(each, before)
        where = "wait to be sent" if source is None else "in the stream"
        records, broken = sum(each.records for each in verdicts), sum(bool(each.problems) for each in verdicts)
        agents = _count(sum(bool(each.agent) for each in verdicts), "agent")
        click.echo(f"{_count(records, 'record')} of {agents} {where}; chains that are broken: {broken}")
        if key is None:
            click.echo(_ACCIDENTS, err=True)
        if removed:
            click.echo(f"removed from the stream, or expired: {_count(removed, 'message')}", err=True)
    return 1 if any(each.problems for each in verdicts) else 0


def _signature_check(key: str) -> IsSigned:
    try:
        return signature_check(key)
    except ValueError as error:
        raise click.UsageError(f"--key: {error}") from error
    except ModuleNotFoundError as error:
        raise click.ClickException(str(error)) from error


def make_key(file: str) -> int:
    """Make a signing key, and print its public part."""
    try:
        public = new_key(Path(file))
    except (OSError, ModuleNotFoundError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise click.ClickException(f"the key was not written: {file}: {why}") from error
    click.echo(public)
    click.echo(f"the seed is in {file}: name it in `hooksConfig.audit.signingKey`, and keep the public key", err=True)
    return 0


def _waiting() -> Iterator[bytes]:
    for file in spool_files():
        yield from file.read_bytes().splitlines()


def _print_verdict(verdict: Verdict, before: str) -> None:
    gone = f"; before that, {verdict.first - 1} {before}" if verdict.first > 1 else ""
    state: Part = ("broken", "red") if verdict.problems else ("whole", "green")
    agent: Part = (verdict.agent or "unreadable lines", "bold")
    print_line(stdout_console(), agent, "  ", state, f"  {_count(verdict.records, 'record')}{gone}")
    for problem in verdict.problems:
        print_line(stdout_console(), f"  {problem}")


def _count(number: int, what: str) -> str:
    return f"{number} {plural(number, what)}"
