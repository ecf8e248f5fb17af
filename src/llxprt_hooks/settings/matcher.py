"""Matchers: which tool names, sources or reasons a hook group is for.

Settings files are shared with LLxprt Code, so a matcher is an ECMAScript regular expression, searched and not
anchored: the same matcher selects the same tools there and here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from llxprt_hooks._support.json_codec import NODE_WHITESPACE
from llxprt_hooks.events import EVENTS, HookEventName, MatchKind
from llxprt_hooks.settings.search import searching

Matches: TypeAlias = Callable[[str], bool]

_PLAIN = re.compile(r"[A-Za-z0-9_\-]+")

_ANYTHING = ("", "*")
MCP_PREFIX = "mcp__"
_MAX_READINGS = 20


@dataclass(frozen=True, slots=True)
class InvalidMatcher:
    """The test of a matcher that is not a valid regular expression: only the same text passes it (HOOK-088)."""

    matcher: str

    def __call__(self, subject: str) -> bool:
        return subject == self.matcher


def compile_matcher(event_name: HookEventName, matcher: str | None) -> Matches:
    """A test for the value of the event's matched field.

    >>> compile_matcher(HookEventName.BEFORE_TOOL, "write_.*|replace")("write_file")
    True
    """
    text = trimmed(matcher)
    return _everything if text in _ANYTHING else _COMPILERS[event_name](text)


def own_names(tool_name: str) -> tuple[str, ...]:
    """The names that a tool of an MCP server may have there; none for other tools.

    >>> own_names("mcp__shop__refund"), own_names("refund")
    (('refund',), ())

    The name of a server may contain ``__`` like that of a tool. Then each reading counts, as far as a server may be
    called so: the tool's name can be anything.
    """
    if not tool_name.startswith(MCP_PREFIX):
        return ()
    _, *names = tool_name.removeprefix(MCP_PREFIX).split("__")
    return tuple(name for start in range(len(names))[:_MAX_READINGS] if (name := "__".join(names[start:])))


def is_invalid(event_name: HookEventName, matcher: str | None) -> bool:
    """Whether the event reads the matcher as a regular expression, and it is not a valid one."""
    text = trimmed(matcher)
    if event_name.spec.match is not MatchKind.SEARCHED or is_for_all(text) or _PLAIN.fullmatch(text):
        return False
    return searching(text) is None


def trimmed(matcher: str | None) -> str:
    """The matcher as it is used: without white space around it, by the rule of ``String.prototype.trim``."""
    return "" if matcher is None else matcher.strip(NODE_WHITESPACE)


def is_for_all(matcher: str | None) -> bool:
    """Whether a group applies whatever its event is about, because it has no matcher or a blank one or ``*``."""
    return trimmed(matcher) in _ANYTHING


def _everything(_: str) -> bool:
    return True


def _searched(matcher: str) -> Matches:
    if _PLAIN.fullmatch(matcher):
        return lambda subject: matcher in subject
    return searching(matcher) or InvalidMatcher(matcher)


_BY_KIND: Mapping[MatchKind, Callable[[str], Matches]] = {
    MatchKind.SEARCHED: _searched,
    MatchKind.EXACT: lambda matcher: matcher.__eq__,
    MatchKind.IGNORED: lambda _: _everything,
}
_COMPILERS = {event_name: _BY_KIND[spec.match] for event_name, spec in EVENTS.items()}
