"""Decide whether a tool call may run: without asking, or only with the user's approval."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from llxprt_hooks._support.text import shorten
from llxprt_hooks.agent.tools.messages import escape_name
from llxprt_hooks.agent.tools.tool import Tool, ToolKind

if TYPE_CHECKING:
    from llxprt_hooks.agent.tools.workspace import Target

_MAX_PATH = 200


class ApprovalMode(StrEnum):
    """Which kinds of tools run without asking."""

    DEFAULT = "default"
    AUTO_EDIT = "auto_edit"
    YOLO = "yolo"


_ALLOWED_KINDS: Mapping[ApprovalMode, frozenset[ToolKind]] = {
    ApprovalMode.DEFAULT: frozenset({ToolKind.READ}),
    ApprovalMode.AUTO_EDIT: frozenset({ToolKind.READ, ToolKind.EDIT}),
    ApprovalMode.YOLO: frozenset(ToolKind),
}


@dataclass(frozen=True, slots=True)
class Request:
    """A call that may need approval: exactly what will happen if the answer is yes."""

    tool: Tool
    arguments: Mapping[str, str]
    """The declared arguments, after hooks."""
    target: Target | None = None
    """The file that the call writes, if it writes one."""
    reason: str | None = None
    """Why a hook asks, if one does."""

    @property
    def protected(self) -> str | None:
        """Why that file is protected, if it is."""
        return self.target.protected if self.target else None


Ask: TypeAlias = Callable[[Request], Awaitable[bool]]
"""Asks the user. True means yes."""

Announce: TypeAlias = Callable[[Request], None]
"""Called when approval is needed, before the user is asked."""


class Approver:
    """Approves or refuses calls. Asks about one call at a time."""

    def __init__(self, mode: ApprovalMode, *, ask: Ask | None = None, announce: Announce = lambda _: None) -> None:
        self._allowed_kinds = _ALLOWED_KINDS[mode]
        self._ask = ask
        self._announce = announce
        self._asking = asyncio.Lock()

    def needed(self, request: Request) -> bool:
        """Whether a person has to be asked. This is always true for a protected file."""
        return request.protected is not None or request.tool.kind not in self._allowed_kinds

    async def refusal(self, request: Request) -> str | None:
        """Ask, and return why the call may not run, as a sentence for the model, or None if it may."""
        self._announce(request)
        if self._ask is None:
            return _refusal_without_user(request)
        async with self._asking:
            approved = await self._ask(request)
        return None if approved else f"The user did not allow this {request.tool.name} call."

    @property
    def interactive(self) -> bool:
        """Whether a user can be asked."""
        return self._ask is not None


def _refusal_without_user(request: Request) -> str:
    tool = request.tool
    if request.protected is not None:
        path = escape_name(shorten(request.arguments[tool.writes or ""], _MAX_PATH))
        return (
            f"`{path}` is protected ({request.protected}): in every approval mode it is written only if the user "
            "approves the call, but this run is not interactive."
        )
    mode = ApprovalMode.AUTO_EDIT if tool.kind is ToolKind.EDIT else ApprovalMode.YOLO
    return (
        f"{tool.name} needs the user's approval, but this run is not interactive. "
        f"The user can allow it with --approval-mode {mode}."
    )
