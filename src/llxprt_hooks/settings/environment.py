"""Which variables of the environment hooks inherit: all of them, unless ``hooksConfig.environment`` says otherwise.

Say ``{"environment": {"allow": ["PATH", "LC_*"], "deny": ["LC_SECRET"]}}``: with ``allow`` only what it lists is
inherited, and never what ``deny`` lists. A name is written out, or ends with a ``*`` that stands for any rest. Every
level's rule holds, so a level can only take away from what the others leave. A rule in which anything cannot be
understood was meant to keep something from hooks, and nobody knows what: it lets nothing through.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from llxprt_hooks.settings.jsonc import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from llxprt_hooks.settings.hook_fields import FieldReader
    from llxprt_hooks.settings.jsonc import Node

_LISTS: Final = ("allow", "deny")
_PATTERN: Final = re.compile(r"[^=*\0]*\*|[^=*\0]+")


@dataclass(frozen=True, slots=True)
class EnvironmentRule:
    """What one level lets through: the variables that ``allow`` lists, without those that ``deny`` lists."""

    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()

    def admits(self, name: str) -> bool:
        """Whether a variable of that name is inherited."""
        return _listed(name, self.allow) and not _listed(name, self.deny)


NOTHING: Final = EnvironmentRule(allow=())


@dataclass(frozen=True, slots=True)
class HookEnvironment:
    """The rules of all levels, each of which holds."""

    rules: tuple[EnvironmentRule, ...] = ()

    def restricted(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The part of an environment that hooks inherit.

        >>> HookEnvironment((EnvironmentRule(deny=("AWS_*",)),)).restricted({"PATH": "/bin", "AWS_KEY": "x"})
        {'PATH': '/bin'}
        """
        return {name: value for name, value in environ.items() if all(rule.admits(name) for rule in self.rules)}


def read_environment(reader: FieldReader, config: Node | None) -> EnvironmentRule | None:
    """The rule in a ``hooksConfig``, if there is one."""
    node = config.at("environment") if config else None
    if node is None:
        return None
    mistakes = list(_mistakes(node))
    for place, expected in mistakes:
        reader.report(place, f"{expected}; until this is corrected hooks inherit no variables at all")
    if mistakes:
        return NOTHING
    return EnvironmentRule(**{name: _strings(listed) for name in _LISTS if (listed := node.at(name))})


def _mistakes(node: Node) -> Iterator[tuple[Node, str]]:
    if node.kind is not Kind.OBJECT:
        yield node, f'"environment" must be {Kind.OBJECT} with "allow" and "deny"'
    for member in node.members:
        if member.key not in _LISTS:
            yield member.value, '"environment" has no keys but "allow" and "deny"'
        elif member.value.kind is not Kind.ARRAY:
            yield member.value, f'"{member.key}" must be {Kind.ARRAY} of names'
        else:
            for item in member.value.items:
                if not isinstance(item.scalar, str) or not _PATTERN.fullmatch(item.scalar):
                    yield item, f'"{member.key}" lists names of variables, with a "*" at the end or none'


def _strings(listed: Node) -> tuple[str, ...]:
    return tuple(str(item.scalar) for item in listed.items)


def _listed(name: str, patterns: tuple[str, ...]) -> bool:
    return any(name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern for pattern in patterns)
