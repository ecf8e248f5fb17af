"""Which environment variables hooks inherit: all of them, unless ``hooksConfig.environment`` restricts them.

Example: ``{"environment": {"allow": ["PATH", "LC_*"], "deny": ["LC_SECRET"]}}``. With ``allow``, hooks inherit only
the listed variables; they never inherit those in ``deny``. An entry is a full name, or a prefix followed by ``*``. The
rules of all levels apply, so a level can only restrict further. An invalid rule lets no variable through, because
ignoring it could expose what it was meant to hide. ``LLXPRT_AGENT``, which marks what an agent starts, always passes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from llxprt_hooks.settings.jsonc import Kind
from llxprt_hooks.settings.shape import ArrayOf, Field, Scalar, Shape

AGENT_VARIABLE: Final = "LLXPRT_AGENT"
"""Set to ``1`` in everything that an agent starts."""

_PATTERN: Final = re.compile(r"[^=*\0]*\*|[^=*\0]+")


def _name_problem(name: str) -> str | None:
    return None if _PATTERN.fullmatch(name) else "expected the name of a variable, optionally ending in `*`"


_NAMES: Final = ArrayOf(Scalar(Kind.STRING, problem=_name_problem))

ENVIRONMENT: Final = Shape(
    "environment",
    "Which environment variables hooks inherit. A name can end with `*`.",
    {
        "allow": Field(_NAMES, "Hooks inherit only these.", default=["*"]),
        "deny": Field(_NAMES, "Hooks never inherit these.", default=[]),
    },
    example={"deny": ["AWS_*", "GITHUB_TOKEN"]},
    if_unfit="until this is fixed, hooks inherit no variables",
)


@dataclass(frozen=True, slots=True)
class EnvironmentRule:
    """The rule of one level: hooks inherit the variables in ``allow``, except those in ``deny``."""

    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()

    def admits(self, name: str) -> bool:
        return _listed(name, self.allow) and not _listed(name, self.deny)


NOTHING: Final = EnvironmentRule(allow=())
"""The rule in place of one that does not fit its declaration."""


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


def _listed(name: str, patterns: tuple[str, ...]) -> bool:
    return any(name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern for pattern in patterns)
