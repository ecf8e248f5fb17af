"""Which addresses of NATS servers can be used, in settings, by hooks and on the command line."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

_SCHEMES: Final = ("nats", "tls")  # for websockets, nats-py needs another HTTP client, which the extra does not have


def server_problem(server: str) -> str | None:
    """Return why a string is not the address of a NATS server, as the end of a sentence; else None.

    >>> server_problem("nats://127.0.0.1:4222"), server_problem("http://example.com")
    (None, 'expected an address such as "nats://host:4222" or "tls://host:4222"')
    """
    try:
        parts = urlsplit(server)
        is_valid = parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0 and server.split() == [server]
    except ValueError:
        is_valid = False
    if not is_valid:
        return 'expected an address such as "nats://host:4222" or "tls://host:4222"'
    if "@" in server:  # it would be shown wherever the address is
        return "it must not contain a password or token; put credentials in a file, and name it in `credentials`"
    return None
