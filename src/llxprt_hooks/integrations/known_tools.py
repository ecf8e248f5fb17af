"""Finds aliases and matchers that were probably mistyped, once it is known which tools an agent or a server has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks._support.text import closest, escape_for_terminal
from llxprt_hooks.core.calls.lookup import unmatched_hooks
from llxprt_hooks.settings.matcher import MCP_PREFIX, own_names, trimmed

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.system import CallerConfig
    from llxprt_hooks.settings.definitions import HookDefinition

log = debug_logger("integrations")

_MAX_SHOWN = 12


class ToolCheck:
    """Warns once about each alias and each matcher without a tool, as soon as an agent's or a server's tools are known.

    An alias for a tool of another agent is not a mistake, since several may share them: it is only reported if it
    looks like a typo. A matcher is reported in any case, because its hooks do not guard what they were written for.
    """

    def __init__(self, config: CallerConfig, aliases: Mapping[str, str], hook_name: Callable[[str], str]) -> None:
        self._config = config
        self._hook_name = hook_name
        self._unchecked = dict(aliases)
        self._tools: dict[str, None] = {}
        self._has_new_tools = False
        self._reported: set[tuple[str, str | None]] = set()

    def __call__(self, tools: Iterable[Any], *, more_follow: bool = False, are_all: bool = True) -> None:
        """Compare aliases and matchers with tool names; if more follow, only remember these.

        If an agent may have other tools as well, ``are_all`` is false, and matchers are not compared.
        """
        if not self._unchecked and not self._config.enable_hooks:
            return
        for name in tools:
            if isinstance(name, str) and name not in self._tools:
                self._tools[name] = None
                self._unchecked.pop(name, None)
                self._has_new_tools = True
        if more_follow or not self._has_new_tools:
            return
        self._check_aliases(list(self._tools))
        if are_all:
            self._has_new_tools = False
            self._check_matchers([self._hook_name(name) for name in self._tools])

    def _check_aliases(self, tools: list[str]) -> None:
        for name, hook_name in sorted(self._unchecked.items()):
            advice = _advice(name, hook_name, tools)
            if advice and self._unchecked.pop(name, None):
                log.warning("the alias `%s` has no effect: no tool has this name. %s", name, advice)

    def _check_matchers(self, tools: list[str]) -> None:
        for definition in unmatched_hooks(self._config, tools):
            matcher, key = trimmed(definition.matcher), (definition.event_name, definition.matcher)
            meant = _meant(matcher, tools)
            is_of_another_server = MCP_PREFIX in matcher and meant is None
            if key not in self._reported and not is_of_another_server:
                self._reported.add(key)
                log.warning("%s", escape_for_terminal(_report(definition, matcher, tools, meant)))


def _report(definition: HookDefinition, matcher: str, tools: list[str], meant: str | None) -> str:
    place = ": ".join(filter(None, (definition.origin, definition.where)))
    advice = f"Did you mean `{meant}`?" if meant else f"The tools are {_listed(tools)}."
    return f"{place}: the matcher `{matcher}` matches none of the tools here, so this hook does not run. {advice}"


def _meant(matcher: str, tools: list[str]) -> str | None:
    """Return the tool that was probably meant by a matcher, which may be a list of alternatives."""
    names = [other for name in tools for other in (name, *own_names(name))]
    return next((meant for word in _words(matcher, names) if (meant := closest(word, names))), None)


def _words(matcher: str, names: list[str]) -> Iterator[str]:
    knows_servers = any(name.startswith(MCP_PREFIX) for name in names)
    for word in matcher.split("|"):
        yield word
        if MCP_PREFIX in word and not knows_servers:  # a server that hooks have not been told the name of
            yield word.rpartition("__")[2]


def _listed(tools: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in tools[:_MAX_SHOWN])
    return shown if len(tools) <= _MAX_SHOWN else f"{shown} and {len(tools) - _MAX_SHOWN} more"


def _advice(name: str, hook_name: str, tools: list[str]) -> str | None:
    """Return what was probably meant by an alias for a tool that does not exist."""
    if hook_name in tools:
        return f"Write the name of the tool first: `{hook_name}`, then `{name}`"
    meant = closest(name, tools)
    return f"Did you mean `{meant}`?" if meant else None
