"""Where the records of executions are sent: ``hooksConfig.audit``.

Example: ``{"audit": {"nats": {"servers": ["tls://nats.example.org"], "stream": "LLXPRT_HOOKS"}}}``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from llxprt_hooks.settings.jsonc import Kind
from llxprt_hooks.settings.nats_address import server_problem
from llxprt_hooks.settings.shape import ArrayOf, Field, Scalar, Shape

DEFAULT_STREAM: Final = "LLXPRT_HOOKS"
_STREAM_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,200}")


def _stream_problem(stream: str) -> str | None:
    return None if _STREAM_NAME.fullmatch(stream) else "expected up to 200 letters, digits, `_` and `-`"


_NOTHING_IS_SENT: Final = "until this is fixed, no records are sent"

AUDIT_NATS: Final = Shape(
    "audit.nats",
    "The NATS server with JetStream that gets the records.",
    {
        "servers": Field(
            ArrayOf(Scalar(Kind.STRING, problem=server_problem), not_blank=True),
            "Its addresses, for example `tls://nats.example.org:4222`.",
            required=True,
            address=True,
        ),
        "stream": Field(
            Scalar(Kind.STRING, problem=_stream_problem),
            "The stream; it is created if it does not exist.",
            default=DEFAULT_STREAM,
        ),
        "credentials": Field(Scalar(Kind.STRING), "The path of a file with credentials."),
    },
    example={"servers": ["nats://127.0.0.1:4222"]},
    if_unfit=_NOTHING_IS_SENT,
)

AUDIT: Final = Shape(
    "audit",
    "Where the record of every execution is sent.",
    {
        "nats": Field(AUDIT_NATS, AUDIT_NATS.description, required=True),
        "signingKey": Field(
            Scalar(Kind.STRING, not_blank=True),
            "The path of a file with the seed of an NKey, with which every record is signed; `llxprt-hooks log keygen` "
            "makes one.",
        ),
        "payloads": Field(Scalar(Kind.BOOLEAN), "Whether records contain what hooks were sent.", default=False),
    },
    example={"nats": {"servers": ["nats://127.0.0.1:4222"]}},
    if_unfit=_NOTHING_IS_SENT,
)


@dataclass(frozen=True, slots=True)
class AuditRule:
    """The server and the stream that get the records."""

    servers: tuple[str, ...] = field(repr=False)  # an address may contain a password
    stream: str = DEFAULT_STREAM
    credentials: str | None = None
    payloads: bool = False
    """Whether the records contain what the hooks were sent."""
    signing_key: str | None = None
    """The path of the key that signs the records."""

    @classmethod
    def of(cls, nats: Mapping[str, Any], *, payloads: bool, signing_key: str | None) -> AuditRule:
        """The rule with a value that fits ``AUDIT_NATS``."""
        stream = nats.get("stream", DEFAULT_STREAM)
        return cls(tuple(nats["servers"]), stream, nats.get("credentials"), payloads, signing_key)


NOWHERE: Final = AuditRule(())
"""What a file with a mistake says: no records are sent, and no other file can have them sent elsewhere."""
