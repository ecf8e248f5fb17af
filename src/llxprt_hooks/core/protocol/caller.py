"""Who asks: a program's own words about the caller of an event, and the agent that a worker decides for (D-141)."""

from __future__ import annotations

import math
import os
import pwd
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

CALLER_FIELDS = ("metadata", "agent")
"""Objects in a payload that may be absent; a recorded or sent payload keeps its own."""

CALL_FIELDS = ("tool_use_id", "duration_ms")
"""What only hooks that act get to know about a tool call (D-46). Messages and recorded payloads may have them."""


def checked_metadata(value: object) -> dict[str, Any]:
    """Return a copy of a program's metadata; raises ``TypeError`` if it is not a JSON object.

    >>> checked_metadata({"user": "ada", "roles": ("admin",)})
    {'user': 'ada', 'roles': ['admin']}
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"`metadata` must be a mapping, found {type(value).__name__}")
    try:
        return {key: _checked(each, f"metadata[{key!r}]") for key, each in _members(value, "metadata")}
    except RecursionError:
        raise TypeError("`metadata` is nested too deeply, or contains itself") from None


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asks, as a framework knows it. If there is a ``problem``, what hooks can block is blocked (D-153)."""

    metadata: Mapping[str, Any] = field(default_factory=dict)
    problem: str | None = None

    @classmethod
    def read(cls, read: Callable[[Any], object], context: Any, of: str) -> Asked:
        """Return what a function reads from a framework's context; it may fail.

        >>> Asked.read(lambda request: request["tenant"], {}, "Example").problem
        "`metadata` of Example failed, so hooks cannot know who asks: KeyError: 'tenant'"
        """
        try:
            return cls(checked_metadata(read(context)))
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            return cls(problem=f"`metadata` of {of} failed, so hooks cannot know who asks: {what}")

    def within(self, outer: Asked | None) -> Asked:
        """Return what is known about a run inside of another one: a sub-agent works for the same user."""
        return self if outer is None else Asked({**outer.metadata, **self.metadata}, self.problem or outer.problem)


def asking_agent(project: str) -> dict[str, Any]:
    """Return what a worker and an audit trail get to know about this process."""
    return {"host": _host(), "user": _user(), "project": project, "pid": os.getpid(), "version": _version()}


def _checked(value: object, place: str) -> Any:
    if isinstance(value, Mapping):
        return {key: _checked(each, f"{place}[{key!r}]") for key, each in _members(value, place)}
    if isinstance(value, (list, tuple)):
        return [_checked(each, f"{place}[{index}]") for index, each in enumerate(value)]
    if value is None or isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    found = str(value) if isinstance(value, float) else type(value).__name__
    raise TypeError(f"`{place}` must be a JSON value, found {found}: pass text, numbers, lists and mappings")


def _members(value: Mapping[Any, Any], place: str) -> list[tuple[str, Any]]:
    for key in value:
        if not isinstance(key, str):
            raise TypeError(f"the keys of `{place}` must be strings, found {type(key).__name__}")
    return list(value.items())


@cache
def _host() -> str:
    return socket.gethostname()


@cache
def _user() -> str:
    """The name of the account: environment variables could claim another."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


@cache
def _version() -> str:
    return str(sys.modules["llxprt_hooks"].__version__)
