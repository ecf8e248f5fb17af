"""The definitions that a server offers in one connection: those that the user approved reach the client."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

from llxprt_hooks._support.text import escape_for_terminal
from llxprt_hooks.core.engine.plan import name_text
from llxprt_hooks.settings.trust.mcp_pins import INSTRUCTIONS, SERVER, TOOL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from llxprt_hooks.settings.trust.mcp_pins import McpPins

_NOT_OFFERED = "is not offered by the server"


class PinnedServer:
    """What a server has offered so far, compared with what the user approved."""

    def __init__(self, pins: McpPins) -> None:
        self._pins = pins
        self._offered: dict[str, Any] = {}
        self._objections: dict[str, str | None] = {}
        """Why a part may not be used; None if it may."""
        self._recorded: dict[str, Any] = {}
        self._reported = ""
        self.approve_with = f"llxprt-hooks trust --mcp {shlex.quote(pins.server)} -C {shlex.quote(str(pins.project))}"

    def introduced(self, result: Mapping[str, Any]) -> tuple[str, ...]:
        """Take note of how a server introduces itself; return the fields that the client must not get."""
        info = result.get("serverInfo")
        identity = {"name": info.get("name") if isinstance(info, dict) else None}
        parts: dict[str, Any] = {SERVER: identity if self._pins.url is None else {**identity, "url": self._pins.url}}
        if (instructions := result.get(INSTRUCTIONS)) is not None:
            parts[INSTRUCTIONS] = instructions
        self._see(parts)
        is_usable = self._objections[SERVER] is None and self._objections.get(INSTRUCTIONS) is None
        return () if is_usable else (INSTRUCTIONS,)

    def listed(self, tools: Iterable[Any], *, is_first: bool, is_last: bool) -> list[Any]:
        """Take note of a page of the server's tools; return those that the client may get."""
        if is_first:
            self.forget_tools()
        named = [(f"{TOOL}{name_text(tool.get('name'))}", tool) for tool in tools if isinstance(tool, dict)]
        seen: dict[str, Any] = {}
        for part, tool in named:
            before = seen.get(part, self._offered.get(part, tool))
            # Of two tools with one name, nobody knows which one a call is for, so they are one definition.
            seen[part] = tool if before == tool else [*(before if isinstance(before, list) else [before]), tool]
        self._see(seen)
        if is_last:
            self._report()
        return [tool for part, tool in named if self._objection(part) is None]

    def forget_tools(self) -> None:
        """The server's tools have changed, or are listed again."""
        self._offered = {part: each for part, each in self._offered.items() if not part.startswith(TOOL)}
        self._objections = {part: each for part, each in self._objections.items() if part in self._offered}

    def is_known(self, tool_name: Any) -> bool:
        """Whether the server has offered a tool since it last said that its tools changed."""
        return f"{TOOL}{name_text(tool_name)}" in self._objections

    def allows(self, tool_name: Any) -> bool:
        """Whether a tool is known and approved."""
        return self._objection(f"{TOOL}{name_text(tool_name)}") is None

    def refusal(self, tool_name: Any) -> str | None:
        """Return why a tool may not be called; None if it may."""
        if not self.allows(tool_name):  # unless the user has approved it since
            self._compare()
        objection = self._objection(f"{TOOL}{name_text(tool_name)}")
        if objection is None:
            return None
        tool = f"the tool `{name_text(tool_name)}` of the MCP server `{self._pins.server}`"
        if objection == _NOT_OFFERED:
            return f"{tool} {objection}, so it was not called"
        return f"{tool} {objection}, so it was not called. Only the user can approve it: `{self.approve_with}`"

    def _objection(self, part: str) -> str | None:
        if (changed := self._objections.get(SERVER)) is not None and self._pins.approved:
            return f"belongs to a server whose name or address {changed}"
        return self._objections.get(part, _NOT_OFFERED)

    def _see(self, parts: Mapping[str, Any]) -> None:
        self._offered |= parts
        self._compare()
        if self._offered != self._recorded:
            self._recorded = dict(self._offered)
            try:
                self._pins.record_offer(self._offered)
            except OSError as error:
                _print(f"what the server offers could not be recorded, so it cannot be approved: {error}")

    def _compare(self) -> None:
        self._pins.reload()
        self._objections = {part: self._pins.objection(part, each) for part, each in self._offered.items()}

    def _report(self) -> None:
        """Print what is withheld, unless that has not changed."""
        withheld = [f"{part} {objection}" for part, objection in self._objections.items() if objection is not None]
        report = f"withheld from the client: {'; '.join(withheld)}. To approve, run `{self.approve_with}`"
        if withheld and report != self._reported:
            _print(report)
            self._reported = report


def _print(message: str) -> None:
    print(escape_for_terminal(f"llxprt-hooks: {message}"), file=sys.stderr)
