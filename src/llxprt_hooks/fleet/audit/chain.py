"""Records that are linked by their hashes, so that a missing or changed one is noticed.

Each agent has a chain. A record carries the agent's random id (``agent``), its own number from 1 (``seq``), the hash of
the record before it (``prev``), and as last field its ``hash``: the SHA-256 of the line without that field.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks._support.json_codec import read_json_object, write_json
from llxprt_hooks._support.stamps import new_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_HASHED: Final = re.compile(rb'(\{.*),"hash":"([0-9a-f]{64})"\}', re.DOTALL)


class Chain:
    """The chain of one agent."""

    def __init__(self) -> None:
        self.agent = new_id()
        self._length = 0
        self._last = ""

    def link(self, record: Mapping[str, Any]) -> bytes:
        """Return a record as the next line of the chain, without its line end.

        The lines must be kept in this order, so the caller makes one at a time.
        """
        self._length += 1
        body = write_json({**record, "agent": self.agent, "seq": self._length, "prev": self._last})
        self._last = hashlib.sha256(body).hexdigest()
        return b'%s,"hash":"%s"}' % (body[:-1], self._last.encode())


@dataclass(slots=True)
class Verdict:
    """What is known about the chain of one agent."""

    agent: str
    records: int = 0
    first: int = 0
    """The number of its first record; more than 1 if records before it are gone."""
    problems: list[str] = field(default_factory=list)
    _last: tuple[int, str] = (0, "")

    def add(self, record: Mapping[str, Any], digest: str | None) -> None:
        """Check the next record of this agent."""
        number, before = record.get("seq"), record.get("prev")
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            self.problems.append("a record without a number")
            return
        last, last_digest = self._last
        if digest is None:
            self.problems.append(f"record {number} was changed: its hash is not that of its content")
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


def verify(lines: Iterable[bytes]) -> dict[str, Verdict]:
    """Check all chains in these lines, each in the order of its records. Lines of other kinds are skipped.

    >>> chain = Chain()
    >>> lines = [chain.link({"hook": "a"}), chain.link({"hook": "b"}), chain.link({"hook": "c"})]
    >>> verify([lines[0], lines[2]])[chain.agent].problems
    ['record 2 is missing']
    """
    verdicts: dict[str, Verdict] = {}
    for line in lines:
        record = read_json_object(line) or {}
        if isinstance(agent := record.get("agent"), str):
            verdicts.setdefault(agent, Verdict(agent)).add(record, checked_hash(line))
    return verdicts


def checked_hash(line: bytes) -> str | None:
    """Return the hash of a line, or ``None`` if it is not the hash of its content."""
    found = _HASHED.fullmatch(line.strip())
    if found is None:
        return None
    digest = hashlib.sha256(found[1] + b"}").hexdigest()
    return digest if digest.encode() == found[2] else None
