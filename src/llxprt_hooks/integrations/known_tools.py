"""Finds aliases of tools that were probably mistyped, once it is known which tools an agent or a server has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks._support.text import closest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

log = debug_logger("integrations")


class AliasCheck:
    """Warns about each alias once. An alias for a tool of another agent is not a mistake: several may share them."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self._unchecked = dict(aliases)
        self._tools: dict[str, None] = {}
        self._has_new_tools = False

    def __call__(self, tools: Iterable[Any], *, more_follow: bool = False) -> None:
        """Compare the aliases with tool names; if more follow, only remember these."""
        if not self._unchecked:
            return
        for name in tools:
            if isinstance(name, str) and name not in self._tools:
                self._tools[name] = None
                self._unchecked.pop(name, None)
                self._has_new_tools = True
        if more_follow or not self._has_new_tools:
            return
        self._has_new_tools = False
        known = list(self._tools)
        for name, hook_name in sorted(self._unchecked.items()):
            advice = _advice(name, hook_name, known)
            if advice and self._unchecked.pop(name, None):
                log.warning("the alias `%s` has no effect: no tool has this name. %s", name, advice)


def _advice(name: str, hook_name: str, tools: list[str]) -> str | None:
    """Return what was probably meant by an alias for a tool that does not exist."""
    if hook_name in tools:
        return f"Write the name of the tool first: `{hook_name}`, then `{name}`"
    meant = closest(name, tools)
    return f"Did you mean `{meant}`?" if meant else None
