"""How clients of a server over HTTP find out where they get a token, when the proxy is between them.

A server describes itself as a protected resource (RFC 9728): its own URL, and who gives out tokens for it. A client
asks for a token for the URL that it uses, and refuses the description of another one. So where the server names itself,
the client gets the proxy's name; a description that names a third one stays as it is, and is still refused. The proxy
gives out no tokens and checks none: client and authorization server talk to each other directly.

Some authorization servers take nothing but signed assertions: the identity provider that signs them knows the server's
URL, not the proxy's. A client of such a one that reads the description of its own accord gets it as it is. One that was
refused comes from a challenge, and compares; so what a challenge leads to always names the proxy.
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import urlsplit

from llxprt_hooks._support.json_codec import read_json
from llxprt_hooks.core.executors.http import is_loopback
from llxprt_hooks.integrations.proxy.mcp.json_rpc import edited, head_of

WELL_KNOWN: Final = "/.well-known/"
"""Below it, a server describes itself."""
_RESOURCE: Final = f"{WELL_KNOWN}oauth-protected-resource"
_ISSUER: Final = f"{WELL_KNOWN}oauth-authorization-server"
_ASSERTION: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_FROM_CHALLENGE: Final = "llxprt-hooks=challenged"
"""In the query of a URL: the proxy has named it in a challenge."""
_ENDPOINTS: Final = {
    ("GET", "/authorize"): (),
    ("POST", "/authorize"): ("application/x-www-form-urlencoded",),
    ("POST", "/token"): ("application/x-www-form-urlencoded",),
    ("POST", "/register"): ("application/json",),
}
"""Where a client of revision 2025-03-26 gets a token from a server that describes nothing; the bodies they take."""
_NOTHING_ELSE: Final = (_ASSERTION, "refresh_token")
_CHALLENGED: Final = re.compile(rb'(resource_metadata\s*=\s*")([^"]*)(")', re.IGNORECASE)
_LEADS_ELSEWHERE: Final = re.compile(r"\.\.|[%\\]")
"""In a path that has been decoded, what a server may read as another path: that of its messages, say."""
_MAX_NAMED: Final = 16
_PORTS: Final = {"http": 80, "https": 443}


class ProtectedResource:
    """What the proxy passes on of a server's authorization."""

    def __init__(self, url: str, *, is_kept: bool = False) -> None:
        """``url`` is the server's. With ``is_kept``, its description of itself stays as it is."""
        self._url, self._is_kept = url, is_kept
        self._named: list[str] = []
        """Paths at which the server said that it describes itself."""

    def passes(self, method: str, path: str, content_type: str, content: bytes) -> bool:
        """Whether a request that is not for the server itself is about getting a token for it."""
        if method == "GET" and (path.startswith(WELL_KNOWN) or path in self._named):
            return not _LEADS_ELSEWHERE.search(path)
        kinds = _ENDPOINTS.get((method, path))
        if kinds is None or (kinds and content_type.partition(";")[0].strip().lower() not in kinds):
            return False
        return not content or not content.lstrip().startswith((b"{", b"[")) or _is_other_json(content)

    def challenge(self, header: bytes, proxy: str) -> bytes:
        """Return a ``WWW-Authenticate`` header of the server that names the proxy's origin in the place of its own."""
        return _CHALLENGED.sub(lambda found: found[1] + self._moved(found[2], proxy) + found[3], header)

    def _moved(self, given: bytes, proxy: str) -> bytes:
        url = given.decode("latin-1")
        if _origin(url) != _origin(self._url):
            return given
        path = urlsplit(url).path
        if path not in self._named and not path.startswith(WELL_KNOWN):
            self._named = [*self._named, path][-_MAX_NAMED:]
        joined = "&" if urlsplit(url).query else "?"
        return f"{proxy}{url[len(_text_of_origin(url)) :]}{joined}{_FROM_CHALLENGE}".encode("latin-1")

    def description(self, path: str, content: bytes, proxy: str) -> bytes:
        """Return what the server has at a path; if that is its description of itself, with the proxy's origin."""
        if self._is_kept or not (path.startswith(_RESOURCE) or path in self._named):
            return content
        named = _fields_of(content).get("resource")
        if not isinstance(named, str) or _origin(named) != _origin(self._url):
            return content
        below = urlsplit(named).path.rstrip("/")
        own = urlsplit(self._url).path
        if own.rstrip("/") != below and not own.startswith(f"{below}/"):
            return content
        return edited(content, {}, (), {"resource": f"{proxy}{named[len(_text_of_origin(named)) :]}"})

    def issuer_metadata(self, description: bytes) -> str | None:
        """Return where the server that gives out tokens describes itself (RFC 8414), if a request may go there."""
        issuers = _fields_of(description).get("authorization_servers")
        issuer = issuers[0] if isinstance(issuers, list) and issuers else None
        if not isinstance(issuer, str) or (origin := _origin(issuer)) is None:
            return None
        if origin[0] != "https" and not (origin[0] == "http" and _is_local(issuer) and _is_local(self._url)):
            return None
        return f"{_text_of_origin(issuer)}{_ISSUER}{urlsplit(issuer).path.rstrip('/')}"


def without_mark(query: bytes) -> tuple[bytes, bool]:
    """Return the query of a request for a description, and whether its URL is from a challenge of the proxy."""
    rest, mark, end = query.rpartition(_FROM_CHALLENGE.encode())
    return (rest.rstrip(b"&"), True) if mark and not end else (query, False)


def takes_only_assertions(metadata: bytes) -> bool:
    """Whether an authorization server gives tokens for nothing but what an identity provider has signed."""
    grants = _fields_of(metadata).get("grant_types_supported")
    return isinstance(grants, list) and _ASSERTION in grants and all(each in _NOTHING_ELSE for each in grants)


def _is_local(url: str) -> bool:
    return is_loopback(urlsplit(url).hostname or "")


def _is_other_json(content: bytes) -> bool:
    """Whether a JSON text is something else than a message of MCP, which hooks would have to see."""
    head = head_of(content)
    return head is not None and head.method is None and head.id is None


def _fields_of(content: bytes) -> dict[str, Any]:
    try:
        described = read_json(content)
    except ValueError:
        return {}
    return described if isinstance(described, dict) else {}


def _origin(url: str) -> tuple[str, str, int | None] | None:
    try:
        parts = urlsplit(url)
        return parts.scheme.lower(), (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme.lower())
    except ValueError:
        return None


def _text_of_origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
