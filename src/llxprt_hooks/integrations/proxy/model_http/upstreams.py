"""The APIs that the model proxy serves, and where their requests go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from llxprt_hooks._support.http_server import LOOPBACK_NAMES


@dataclass(frozen=True, slots=True)
class Api:
    """An API, or several with the same base URL."""

    name: str
    path: str
    """The path of its base URL at the proxy: its name, and the path that a gateway for all APIs has for it."""
    variable: str
    """The environment variable from which its clients read the base URL."""
    default: str
    """The base URL of the API itself."""
    error_fields: Mapping[str, Any]
    """What an error of the API has beside the object ``error``."""
    detail_fields: Mapping[str, Any]
    """What that object has beside type and message."""

    def error(self, status: int, message: str) -> dict[str, Any]:
        """Return an error as the API writes it."""
        kind = "invalid_request_error" if status < 500 else "api_error"
        return {**self.error_fields, "error": {"type": kind, "message": message, **self.detail_fields}}


APIS: Final = (
    Api("anthropic", "/anthropic", "ANTHROPIC_BASE_URL", "https://api.anthropic.com", {"type": "error"}, {}),
    Api("openai", "/openai/v1", "OPENAI_BASE_URL", "https://api.openai.com/v1", {}, {"param": None, "code": None}),
)


class UpstreamError(ValueError):
    """A URL cannot be used for an API."""


def upstreams(given: Iterable[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the base URL of each API, by its name.

    ``URL`` is for all of them, ``NAME=URL`` for one. What is not given is read from the variables of the clients, as
    they would do without the proxy.

    >>> upstreams(["http://localhost:4000"], {})
    {'anthropic': 'http://localhost:4000', 'openai': 'http://localhost:4000/v1'}
    """
    chosen = {api.name: environment.get(api.variable) or api.default for api in APIS}
    for item in given:
        name, equals, url = item.partition("=")
        if equals and "/" not in name:
            if name not in chosen:
                raise UpstreamError(f"unknown API {name!r}; expected one of {', '.join(chosen)}")
            chosen[name] = url
        else:
            root = item.rstrip("/").removesuffix("/v1")
            chosen |= {api.name: root + api.path.removeprefix(f"/{api.name}") for api in APIS}
    for name, url in chosen.items():
        _check_upstream(name, url)
    return {name: url.rstrip("/") for name, url in chosen.items()}


def _check_upstream(name: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        is_complete = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise UpstreamError(f"the upstream of {name} is not a valid URL") from None
    if not is_complete:
        raise UpstreamError(f"the upstream of {name} must be a URL such as https://api.example.com, found {url!r}")
    if parts.username is not None or parts.query or parts.fragment:
        raise UpstreamError(f"the upstream of {name} must not have a user, a query or a fragment")


def check_not_this(name: str, url: str, host: str, port: int) -> None:
    parts = urlsplit(url)
    is_here = (parts.hostname or "") in (host, *LOOPBACK_NAMES)
    if is_here and parts.port == port:
        raise UpstreamError(f"the upstream of {name} is this proxy itself: pass --upstream {name}=URL")
