"""Translates matchers to the names used here.

A Claude Code matcher of plain names (``Write|Edit``) selects exactly those; any other is a regular expression that is
searched. Replacing names inside a regular expression could change its meaning. Instead, the known names are matched
against it, and the new matcher selects the counterparts of those that match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from llxprt_hooks.settings.other_agents import CLAUDE_TOOLS
from llxprt_hooks.settings.search import searching

_PLAIN: Final = re.compile(r"[\w\-, |]*")
_UNKNOWN_TOOLS: Final = ("an_unknown_tool", "Zq")
"""A matcher that selects one of these selects all tools except some."""

_OTHER_TOOLS: Final = ("Agent", "AskUserQuestion", "BashOutput", "ExitPlanMode", "KillShell", "NotebookRead", "Skill")
"""Other tools of Claude Code without a counterpart."""

TOOLS: Final[Mapping[str, str | None]] = {**CLAUDE_TOOLS, **dict.fromkeys(_OTHER_TOOLS)}

RENAMED_GEMINI_TOOLS: Final[Mapping[str, str]] = {"grep_search": "search_file_content"}


@dataclass(frozen=True, slots=True)
class Translated:
    """A matcher with the names used here."""

    matcher: str | None
    """None selects everything."""
    lost: tuple[str, ...] = ()
    """The names without a counterpart."""
    selects_nothing: bool = False


ALL: Final = Translated(None)


def translate_tools(matcher: str) -> Translated:
    """Translate a Claude Code matcher of tools.

    >>> translate_tools("Bash|mcp__github__.*")
    Translated(matcher='^run_shell_command$', lost=('mcp__github__.*',), selects_nothing=False)
    """
    if matcher in ("", "*"):
        return ALL
    if _PLAIN.fullmatch(matcher):
        named = _names(matcher)
        known = [name for name in named if TOOLS.get(name)]
        return _selecting(known, lost=[name for name in named if name not in known])
    selects = _search(matcher)
    selected = [name for name in TOOLS if selects(name)]
    if any(map(selects, _UNKNOWN_TOOLS)):
        return _all_but(name for name in TOOLS if name not in selected)
    lost = [piece for piece in matcher.strip("^$()").split("|") if "mcp__" in piece]
    known = [name for name in selected if TOOLS[name]]
    return _selecting(known, lost=lost or ([] if known else [matcher]))


def translate_words(matcher: str, words: Mapping[str, tuple[str, ...]]) -> tuple[list[str] | None, list[str]]:
    """Translate a Claude Code matcher of fixed values. Return the values here (None: all), and the unknown names."""
    if matcher in ("", "*"):
        return None, []
    if _PLAIN.fullmatch(matcher):
        named = _names(matcher)
        selected, lost = [name for name in named if words.get(name)], [name for name in named if not words.get(name)]
    else:
        selects = _search(matcher)
        selected, lost = [name for name in words if selects(name)], []
    if set(selected) >= {name for name, ours in words.items() if ours}:
        return None, lost
    return [ours for name in selected for ours in words[name]], lost


def rename_gemini_tools(matcher: str) -> str:
    """Translate a Gemini CLI matcher: rename the tools that have another name here."""
    for theirs, ours in RENAMED_GEMINI_TOOLS.items():
        matcher = re.sub(rf"(?<!\w){theirs}(?!\w)", ours, matcher)
    return matcher


def _names(matcher: str) -> list[str]:
    return [name for name in re.split(r"\s*[|,]\s*", matcher.strip()) if name]


def _search(matcher: str) -> Callable[[str], bool]:
    return searching(matcher) or matcher.__eq__


def _selecting(known: Iterable[str], lost: Iterable[str]) -> Translated:
    ours = _counterparts(known)
    if not ours:
        return Translated(None, tuple(lost), selects_nothing=True)
    return Translated(_anchored(ours), tuple(lost))


def _all_but(known: Iterable[str]) -> Translated:
    """Select all tools except the counterparts of these. A counterpart of several needs all of them to be excluded."""
    excluded = set(known)
    ours = _counterparts(excluded) - _counterparts(set(TOOLS) - excluded)
    return Translated(f"^(?!({'|'.join(_ordered(ours))})$)" if ours else None)


def _counterparts(known: Iterable[str]) -> set[str]:
    return {ours for name in known if (ours := TOOLS[name])}


def _anchored(names: set[str]) -> str:
    return f"^{min(names)}$" if len(names) == 1 else f"^({'|'.join(_ordered(names))})$"


def _ordered(names: set[str]) -> list[str]:
    order = ["write_file", "replace", "run_shell_command"]
    return sorted(names, key=lambda name: (order.index(name) if name in order else len(order), name))
