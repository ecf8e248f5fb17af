"""Where the records of executions are sent: ``hooksConfig.audit``.

Example: ``{"audit": {"nats": {"servers": ["tls://nats.example.org"], "stream": "LLXPRT_HOOKS"}}}``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from llxprt_hooks.settings.jsonc import Kind
from llxprt_hooks.settings.nats_address import server_problem

if TYPE_CHECKING:
    from llxprt_hooks.settings.hook_fields import FieldReader
    from llxprt_hooks.settings.jsonc import Node

DEFAULT_STREAM: Final = "LLXPRT_HOOKS"
_STREAM_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,200}")
_NOT_AUDITED: Final = "until this is fixed, no records are sent"


@dataclass(frozen=True, slots=True)
class AuditRule:
    """The server and the stream that get the records."""

    servers: tuple[str, ...] = field(repr=False)  # an address may contain a password
    stream: str = DEFAULT_STREAM
    credentials: str | None = None
    payloads: bool = False
    """Whether the records contain what the hooks were sent."""


def read_audit(reader: FieldReader, config: Node | None) -> AuditRule | None:
    """Return the rule in a ``hooksConfig``, or ``None``."""
    audit = reader.member(config, "audit", Kind.OBJECT)
    if audit is None:
        return None
    nats = reader.member(audit, "nats", Kind.OBJECT)
    servers = tuple(reader.strings(nats, "servers"))
    if nats is None or not servers:
        reader.report(nats or audit, f'"audit" must name "servers" under "nats"; {_NOT_AUDITED}')
        return None
    if problem := next(filter(None, map(server_problem, servers)), None):
        reader.report(nats, f'"servers": {problem}; {_NOT_AUDITED}')
        return None
    stream = reader.member(nats, "stream", Kind.STRING)
    if stream and not _STREAM_NAME.fullmatch(str(stream.scalar)):
        reader.report(stream, f'"stream" must consist of letters, digits, "_" and "-"; {_NOT_AUDITED}')
        return None
    credentials = reader.member(nats, "credentials", Kind.STRING)
    return AuditRule(
        servers,
        str(stream.scalar) if stream else DEFAULT_STREAM,
        str(credentials.scalar) if credentials else None,
        bool(reader.switch(audit, "payloads")),
    )
