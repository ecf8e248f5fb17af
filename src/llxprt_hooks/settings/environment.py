"""Which environment variables hooks inherit: all of them, unless ``hooksConfig.environment`` restricts them.

Example: ``{"environment": {"allow": ["PATH", "LC_*"], "deny": ["LC_SECRET"]}}``. With ``allow``, hooks inherit only
the listed variables; they never inherit those in ``deny``. An entry is a full name, or a prefix followed by ``*``. The
rules of all levels apply, so a level can only restrict further. An invalid rule lets no variable through, because
ignoring it could expose what it was meant to hide. ``LLXPRT_AGENT``, which marks what an agent starts, always passes.
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

AGENT_VARIABLE: Final = "LLXPRT_AGENT"
"""Set to ``1`` in everything that an agent starts."""

_LISTS: Final = ("allow", "deny")
_PATTERN: Final = re.compile(r"[^=*\0]*\*|[^=*\0]+")


@dataclass(frozen=True, slots=True)
class EnvironmentRule:
    """The rule of one level: hooks inherit the variables in ``allow``, except those in ``deny``."""

    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()

    def admits(self, name: str) -> bool:
        """Return whether a variable is inherited."""
        return _listed(name, self.allow) and not _listed(name, self.deny)


NOTHING: Final = EnvironmentRule(allow=())


@dataclass(frozen=True, slots=True)
class HookEnvironment:
    """The rules of all levels; a variable must pass each of them."""

    rules: tuple[EnvironmentRule, ...] = ()

    def restricted(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that hooks inherit.

        >>> HookEnvironment((EnvironmentRule(deny=("AWS_*",)),)).restricted({"PATH": "/bin", "AWS_KEY": "x"})
        {'PATH': '/bin'}
        """
        return {name: value for name, value in environ.items() if self._admits(name)}

    def _admits(self, name: str) -> bool:
        return name == AGENT_VARIABLE or all(rule.admits(name) for rule in self.rules)


def read_environment(reader: FieldReader, config: Node | None) -> EnvironmentRule | None:
    """Return the rule in a ``hooksConfig``, or ``None``."""
    node = config.at("environment") if config else None
    if node is None:
        return None
    mistakes = list(mistakes_in(node))
    for place, expected in mistakes:
        reader.report(place, f"{expected}; until this is fixed, hooks inherit no variables")
    if mistakes:
        return NOTHING
    return EnvironmentRule(**{member.key: tuple(member.value.to_value()) for member in node.members})


def mistakes_in(node: Node) -> Iterator[tuple[Node, str]]:
    """Yield what is wrong with a rule: where, and what was expected."""
    if node.kind is not Kind.OBJECT:
        yield node, f'"environment" must be {Kind.OBJECT} with "allow" and "deny"'
    for member in node.members:
        if member.key not in _LISTS:
            yield member.value, '"environment" may only contain "allow" and "deny"'
        elif member.value.kind is not Kind.ARRAY:
            yield member.value, f'"{member.key}" must be {Kind.ARRAY} of names'
        else:
            for item in member.value.items:
                if not isinstance(item.scalar, str) or not _PATTERN.fullmatch(item.scalar):
                    yield item, f'"{member.key}" must list variable names, optionally ending in "*"'


def _listed(name: str, patterns: tuple[str, ...]) -> bool:
    return any(name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern for pattern in patterns)
