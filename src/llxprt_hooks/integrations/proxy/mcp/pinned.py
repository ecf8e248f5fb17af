"""The definitions that a server offers in one connection: those that the user approved reach the client."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

from llxprt_hooks._support.text import escape_for_terminal
from llxprt_hooks.core.engine.plan import name_text
from llxprt_hooks.settings.trust.mcp_pins import INSTRUCTIONS, NEW, RESOURCE, SERVER, TOOL

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
        self._listed: set[str] = set()
        self._complete: set[str] = set()
        """The kinds of definitions that have been listed to the end."""
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

    def listed(self, kind: str, named: str, definitions: Iterable[Any], *, is_first: bool, is_last: bool) -> list[Any]:
        """Take note of a page of a list; return the definitions that the client may get. ``named`` has their names."""
        self._listed.add(kind)
        if is_first:
            self.forget(kind)
        named_parts = [(f"{kind}{name_text(each.get(named))}", each) for each in definitions if isinstance(each, dict)]
        seen: dict[str, Any] = {}
        for part, definition in named_parts:
            compared = _compared(kind, definition)
            before = seen.get(part, self._offered.get(part, compared))
            # Of two with one name, nobody knows which one is used, so they are one definition.
            same = before == compared
            seen[part] = compared if same else [*(before if isinstance(before, list) else [before]), compared]
        self._see(seen)
        if is_last:
            self._complete.add(kind)
            self._report()
        return [definition for part, definition in named_parts if self._objection(part) is None]

    def forget(self, kind: str) -> None:
        """What the server offers of this kind has changed, or is listed again."""
        self._offered = {part: each for part, each in self._offered.items() if not part.startswith(kind)}
        self._objections = {part: each for part, each in self._objections.items() if part in self._offered}
        self._complete.discard(kind)

    def is_known(self, kind: str, name: Any) -> bool:
        """Whether it is known what the server offers under a name, since it last said that this list changed."""
        return f"{kind}{name_text(name)}" in self._objections or (kind == RESOURCE and kind in self._complete)

    def refusal(self, kind: str, name: Any) -> str | None:
        """Return why something that a server offers may not be used; None if it may."""
        part = f"{kind}{name_text(name)}"
        if self._objection(part) is not None:  # unless the user has approved it since
            self._compare()
        objection = self._objection(part)
        if objection is None:
            return None
        what = f"the {kind}`{name_text(name)}` of the MCP server `{self._pins.server}` {objection}"
        problem = f"{what}, so it was not {'called' if kind == TOOL else 'used'}"
        if objection == _NOT_OFFERED:
            return problem
        return f"{problem}. Only the user can approve it: `{self.approve_with}`"

    def _objection(self, part: str) -> str | None:
        if (changed := self._objections.get(SERVER)) is not None and self._pins.approved:
            return f"belongs to a server whose name or address {changed}"
        # Many servers list files, so a new resource is nothing unusual: what it contains is the server's in any case.
        unseen = None if part.startswith(RESOURCE) else _NOT_OFFERED
        objection = self._objections.get(part, unseen)
        return None if objection == NEW and part.startswith(RESOURCE) else objection

    def _see(self, parts: Mapping[str, Any]) -> None:
        self._offered |= parts
        self._compare()
        if self._offered != self._recorded:
            self._recorded = dict(self._offered)
            try:
                self._pins.record_offer({**self._not_listed(), **self._offered})
            except OSError as error:
                _print(f"what the server offers could not be recorded, so it cannot be approved: {error}")

    def _not_listed(self) -> dict[str, Any]:
        """Return what the server offered to other clients, of the kinds that this one has not listed."""
        before = self._pins.offered()
        known = before if isinstance(before, dict) else {}
        return {part: each for part, each in known.items() if not part.startswith(tuple(self._listed))}

    def _compare(self) -> None:
        self._pins.reload()
        self._objections = {part: self._pins.objection(part, each) for part, each in self._offered.items()}

    def _report(self) -> None:
        """Print what is withheld, unless that has not changed."""
        withheld = [f"{part} {objection}" for part in self._objections if (objection := self._objection(part))]
        report = f"withheld from the client: {'; '.join(withheld)}. To approve, run `{self.approve_with}`"
        if withheld and report != self._reported:
            _print(report)
            self._reported = report


def _compared(kind: str, definition: dict[str, Any]) -> dict[str, Any]:
    """Return what must not change in a definition: of a resource, not what follows from its content."""
    if kind != RESOURCE:
        return definition
    return {name: value for name, value in definition.items() if name not in ("size", "annotations")}


def _print(message: str) -> None:
    print(escape_for_terminal(f"llxprt-hooks: {message}"), file=sys.stderr)
