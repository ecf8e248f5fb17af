"""The TCP sockets of this machine, with the user of each, where the system tells: on Linux."""

from __future__ import annotations

import ipaddress
import os
import sys
from pathlib import Path
from typing import Final, NamedTuple

_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENING: Final = "0A"

Endpoint = tuple[str, int]


class TcpSocket(NamedTuple):
    """One line of the table, with endpoints as the system writes them."""

    local: str
    remote: str
    listens: bool
    owner: int


def tcp_sockets() -> list[TcpSocket]:
    """Return all sockets; none where the system does not tell."""
    try:
        lines = [line.split() for file in _TABLES if file.exists() for line in file.read_text().splitlines()[1:]]
    except OSError:
        return []
    return [TcpSocket(line[1], line[2], line[3] == _LISTENING, int(line[7])) for line in lines]


def is_opened_by_this_user(client: Endpoint, server: Endpoint) -> bool:
    """Whether this user or root opened a connection to this process; true for everybody where the system is silent."""
    sockets, near, far = tcp_sockets(), _written(client), _written(server)
    owners = [each.owner for each in sockets if each.local.endswith(near) and each.remote.endswith(far)]
    return not sockets or not all(map(_is_another_user, owners))


def other_user_at(server: Endpoint, client: Endpoint) -> int | None:
    """Return the other user who may have accepted a connection that this process has opened; None if nobody is known.

    That is a user who listens there, or has the other end: one could stop listening right after accepting it.
    """
    near, far, port = _written(server), _written(client), f":{server[1]:04X}"
    accepting = (
        each.owner
        for each in tcp_sockets()
        if (each.local.endswith(near) and (each.listens or each.remote.endswith(far)))
        or (each.listens and each.local.endswith(port) and not each.local.removesuffix(port).strip("0"))
    )
    return next(filter(_is_another_user, accepting), None)


def _is_another_user(owner: int) -> bool:
    return owner not in (0, os.geteuid())


def _written(endpoint: Endpoint) -> str:
    """Return an endpoint as the table has it. An IPv4 address in an IPv6 socket ends with the IPv4 address."""
    packed = ipaddress.ip_address(endpoint[0]).packed
    words = (packed[start : start + 4] for start in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words) + f":{endpoint[1]:04X}"
