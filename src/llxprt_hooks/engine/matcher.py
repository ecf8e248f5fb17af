"""Matchers: which tool names, sources or reasons a hook group is for.

Settings files are shared with LLxprt Code, so a matcher is an ECMAScript regular expression, searched and not
anchored: the same matcher selects the same tools there and here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from regress import Regex, RegressError

from llxprt_hooks.events import HookEventName, MatchKind

Matches: TypeAlias = Callable[[str], bool]

_PLAIN = re.compile(r"[A-Za-z0-9_\-]+")

_ANYTHING = ("", "*")


def compile_matcher(event_name: HookEventName, matcher: str | None) -> Matches:
    """A test for the value of the event's matched field.

    >>> compile_matcher(HookEventName.BEFORE_TOOL, "write_.*|replace")("write_file")
    True
    """
    if matcher is None or matcher in _ANYTHING:
        return _everything
    return _COMPILERS[event_name.spec.match](matcher)


def _everything(_: str) -> bool:
    return True


def _ignore(_: str) -> Matches:
    return _everything


def _exactly(matcher: str) -> Matches:
    return matcher.__eq__


def _searched(matcher: str) -> Matches:
    if _PLAIN.fullmatch(matcher):
        return lambda subject: matcher in subject
    try:
        find = Regex(_scalar_values(matcher)).find
    except RegressError:
        return _exactly(matcher)  # HOOK-088
    return lambda subject: find(_scalar_values(subject)) is not None


def _scalar_values(text: str) -> str:
    """The text with U+FFFD for lone surrogates, which the regular expression engine cannot take."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


_COMPILERS: dict[MatchKind, Callable[[str], Matches]] = {
    MatchKind.SEARCHED: _searched,
    MatchKind.EXACT: _exactly,
    MatchKind.IGNORED: _ignore,
}
