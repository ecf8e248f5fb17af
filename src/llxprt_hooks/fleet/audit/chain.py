"""Records that are linked by their hashes, so that a missing or changed one is noticed.

Each agent has a chain. A record carries the chain's random id (``chain``), its own number from 1 (``seq``), the hash of
the record before it (``prev``), and after all others its ``hash``: the SHA-256 of the line up to there. Hashes prove
integrity against accidents only, because anybody can compute them again. In a signed chain, ``signature`` is the last
field, over the hash, and the record with which the agent closes its chain says ``closed``.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks._support.json_codec import read_json_object, write_json
from llxprt_hooks._support.stamps import new_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from llxprt_hooks.fleet.audit.signing import IsSigned, Sign

_HASHED: Final = re.compile(rb'(\{.*),"hash":"([0-9a-f]{64})"(?:,"signature":"([A-Za-z0-9+/=]{88})")?\}', re.DOTALL)
CLOSED: Final = "closed"


class Chain:
    """The chain of one agent."""

    def __init__(self, sign: Sign | None = None) -> None:
        self.agent = new_id()
        self._sign = sign
        self._length = 0
        self._last = ""

    def link(self, record: Mapping[str, Any]) -> bytes:
        """Return a record as the next line of the chain, without its line end.

        The lines must be kept in this order, so the caller makes one at a time.
        """
        self._length += 1
        body = write_json({**record, "chain": self.agent, "seq": self._length, "prev": self._last})
        self._last = hashlib.sha256(body).hexdigest()
        digest = self._last.encode()
        signature = b',"signature":"%s"' % base64.b64encode(self._sign(digest)) if self._sign else b""
        return b'%s,"hash":"%s"%s}' % (body[:-1], digest, signature)

    @property
    def is_signed(self) -> bool:
        return self._sign is not None

    def close(self, when: str) -> bytes:
        """Return the last line of a signed chain: without it, nobody could tell whether others were after the last."""
        return self.link({CLOSED: True, "timestamp": when})


@dataclass(slots=True)
class Verdict:
    """What is known about the chain of one agent."""

    agent: str
    records: int = 0
    first: int = 0
    """The number of its first record; more than 1 if records before it are gone."""
    problems: list[str] = field(default_factory=list)
    is_closed: bool = False
    """Whether its last record is the one with which its agent closed the chain."""
    _last: tuple[int, str] = (0, "")

    def add(self, record: Mapping[str, Any], digest: str | None, *, is_signed: bool = True) -> None:
        """Check the next record of this agent."""
        self.is_closed = record.get(CLOSED) is True
        number, before = record.get("seq"), record.get("prev")
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            self.problems.append("a record without a number")
            return
        last, last_digest = self._last
        if digest is None:
            self.problems.append(f"record {number} was changed: its hash is not that of its content")
        elif not is_signed:
            self.problems.append(f"record {number} is not signed with this key: it is forged, or of another key")
        if not self.records:
            self.first = number
            if number == 1 and before != "":
                self.problems.append("record 1 names a record before it")
        elif number <= last:
            self.problems.append(f"record {number} comes after record {last}")
        elif number > last + 1:
            missing = f"record {last + 1} is" if number == last + 2 else f"records {last + 1} to {number - 1} are"
            self.problems.append(f"{missing} missing")
        elif before != last_digest:
            self.problems.append(f"record {number} does not follow record {last}: one of them was replaced")
        self.records += 1
        self._last = max(number, last), str(record.get("hash"))


UNREADABLE: Final = ""
"""The name under which ``verify`` counts lines that belong to no agent."""


def verify(lines: Iterable[bytes], is_signed: IsSigned | None = None) -> dict[str, Verdict]:
    """Check all chains in these lines, each in the order of its records; with ``is_signed``, the signatures too.

    >>> chain = Chain()
    >>> lines = [chain.link({"hook": "a"}), chain.link({"hook": "b"}), chain.link({"hook": "c"})]
    >>> verify([lines[0], lines[2]])[chain.agent].problems
    ['record 2 is missing']
    """
    verdicts: dict[str, Verdict] = {}
    for number, line in enumerate(filter(bytes.strip, lines), start=1):
        record = read_json_object(line) or {}
        # Until 0.3 the id was in `agent`, which is now an object: who the agent was.
        if isinstance(agent := record.get("chain", record.get("agent")), str) and agent != UNREADABLE:
            signed = is_signed is None or _has_signature(line, is_signed)
            verdicts.setdefault(agent, Verdict(agent)).add(record, checked_hash(line), is_signed=signed)
        else:
            found = verdicts.setdefault(UNREADABLE, Verdict(UNREADABLE))
            found.problems.append(f"line {number} is not a record of an agent")
    return verdicts


def _has_signature(line: bytes, is_signed: IsSigned) -> bool:
    found = _HASHED.fullmatch(line.strip())
    return bool(found and found[3] and is_signed(found[2], base64.b64decode(found[3])))


def checked_hash(line: bytes) -> str | None:
    """Return the hash of a line, or ``None`` if it is not the hash of its content."""
    found = _HASHED.fullmatch(line.strip())
    if found is None:
        return None
    digest = hashlib.sha256(found[1] + b"}").hexdigest()
    return digest if digest.encode() == found[2] else None
