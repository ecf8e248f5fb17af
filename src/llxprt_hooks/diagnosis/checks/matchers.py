"""Matchers: what they select, and what was likely meant. The first check that finds something has the say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from regress import Regex, RegressError

from llxprt_hooks.diagnosis.diagnostic import Diagnostic, Rule
from llxprt_hooks.diagnosis.foreign_names import CLAUDE_TOOLS
from llxprt_hooks.diagnosis.rules import (
    MATCHER_CLAUDE_TOOL,
    MATCHER_GLOB,
    MATCHER_IGNORED,
    MATCHER_INVALID,
    MATCHER_MATCHES_NOTHING,
    MATCHER_UNANCHORED,
)
from llxprt_hooks.engine.matcher import compile_matcher, is_for_all, trimmed
from llxprt_hooks.events import MatchKind
from llxprt_hooks.text import closest

if TYPE_CHECKING:
    from llxprt_hooks.diagnosis.entries import GroupEntry
    from llxprt_hooks.diagnosis.inspection import Inspection
    from llxprt_hooks.events import HookEventName
    from llxprt_hooks.settings import Node

_ANYTHING: Final = (".*", ".+", "^.*$", "^.+$")
_GLOB: Final = re.compile(r"[\w*-]*[\w-]\*[\w*-]*|\*[\w*-]+")
_ANCHOR: Final = re.compile(r"(?<!\\)[\^$]|\(\?")
_CLAUDE_TOOL: Final = re.compile(rf"(?:(?<![A-Za-z0-9_])|(?<=\\b))(?:{'|'.join(CLAUDE_TOOLS)})(?![A-Za-z0-9_])")
_PERMISSION: Final = re.compile(rf"({_CLAUDE_TOOL.pattern})\([^()]*\)(?![?*+{{])")
"""A rule of Claude Code's permissions, such as ``Bash(rm:*)``, which people take for a matcher."""
_LOOKED_AT: Final = {"Bash": "tool_input.command", **dict.fromkeys(("Read", "Write", "Edit"), "tool_input.file_path")}
_BETWEEN_NAMES: Final = re.compile(r"\s*[|,]\s*")
_OF_AN_MCP_SERVER: Final = re.compile(r"mcp|__|discovered_tool_", re.IGNORECASE)
_CLAUDE_VALUES: Final = {"compact": "compress", "permission_prompt": "ToolPermission"}
_MOST_SHOWN: Final = 7


@dataclass(frozen=True, eq=False)
class _Matcher:
    """A matcher, and what it is compared with."""

    group: GroupEntry
    node: Node
    text: str
    """Without the white space around it, which does not count."""
    event: HookEventName
    subjects: Sequence[str]

    @cached_property
    def matched(self) -> list[str]:
        """What of all that is known it selects."""
        return _selected(self.event, self.text, self.subjects)

    def told(self, rule: Rule, message: str, fix: str) -> Diagnostic:
        return self.group.file.at(rule, self.node, message, fix)


def check_matcher(inspection: Inspection, group: GroupEntry) -> Iterator[Diagnostic]:
    """A matcher that does not select what it seems to."""
    event, node = group.event.meant, group.matcher
    if event is None or node is None or is_for_all(str(node.scalar)):
        return
    matcher = _Matcher(group, node, trimmed(str(node.scalar)), event, event.spec.matched_values or inspection.tools)
    found = next((told for check in _CHECKS[event.spec.match] if (told := check(matcher))), None)
    if found is not None:
        yield found


def _ignored(matcher: _Matcher) -> Diagnostic | None:
    if matcher.text in _ANYTHING:
        return None
    message = f"the matcher `{matcher.text}` is ignored: {matcher.event} has nothing to match"
    return matcher.told(MATCHER_IGNORED, message, "Take it out, and let the script look at its stdin and decide.")


def _matches_no_value(matcher: _Matcher) -> Diagnostic | None:
    if matcher.matched:
        return None
    subject = matcher.event.spec.matched_field
    foreign = _CLAUDE_VALUES.get(matcher.text)
    meant = foreign if foreign in matcher.subjects else closest(matcher.text, matcher.subjects)
    if matcher.text in _ANYTHING:
        fix = "For all write `*`, or no matcher."
    elif "|" in matcher.text:
        fix = f"The {subject} is compared with the whole text: write a group for each of them."
    elif meant:
        fix = f"Did you mean `{meant}`?"
    else:
        fix = f"The {subject} is {_listed(matcher.subjects, ' or ')}."
    return matcher.told(MATCHER_MATCHES_NOTHING, f"no {subject} of {matcher.event} is `{matcher.text}`", fix)


def _invalid(matcher: _Matcher) -> Diagnostic | None:
    error = _error(matcher.text)
    if error is None:
        return None
    if ours := _in_our_names(matcher):
        fix = ours
    elif _GLOB.fullmatch(matcher.text):
        fix = _glob_fix(matcher)
    elif matcher.text.startswith("(?"):
        fix = "It is ECMAScript's syntax, which has no inline flags; write the names in lower case, as tools have them."
    else:
        fix = "Correct it, or put a backslash (in JSON two) before characters that are meant as they are."
    return matcher.told(MATCHER_INVALID, f"`{matcher.text}` is no regular expression ({error})", fix)


def _error(text: str) -> str | None:
    try:
        Regex(text)
    except RegressError as error:
        return str(error).lower()
    except ValueError:  # a lone surrogate, which the engine takes as U+FFFD
        return None
    return None


def _claude_tool(matcher: _Matcher) -> Diagnostic | None:
    lost = [word for word in _CLAUDE_TOOL.finditer(matcher.text) if _is_lost(matcher, word[0])]
    if not lost:
        return None
    word = next((word for word in lost if CLAUDE_TOOLS[word[0]]), lost[0])
    ours = CLAUDE_TOOLS[word[0]]
    called = f"`{ours}` here" if ours else "nothing here: it has no counterpart"
    message = f"`{word[0]}` is Claude Code's name for a tool that is called {called}"
    fix = _in_our_names(matcher) or "Take it out, and the group with it: an empty matcher is for all tools."
    before = str(matcher.node.scalar).index(matcher.text)
    span = (before + word.start(), before + word.end())
    return matcher.group.file.inside(MATCHER_CLAUDE_TOOL, matcher.node, span, message, fix)


def _in_our_names(matcher: _Matcher) -> str | None:
    """What to write for a matcher with Claude Code's names, if they have counterparts."""
    named = [word[0] for word in _CLAUDE_TOOL.finditer(matcher.text)]
    wanted = {ours for name in named if (ours := CLAUDE_TOOLS[name])}
    works = next((text for text in _translations(matcher, wanted) if _selects(matcher, text, wanted)), None)
    if not wanted or works is None:
        return None
    rule = _PERMISSION.search(matcher.text)
    if rule is None:
        return f"Write `{works}`."
    looked_at = _LOOKED_AT.get(rule[1], "tool_input")
    return f"Write `{works}`: a matcher sees only the tool's name, so let the script look at `{looked_at}`."


def _translations(matcher: _Matcher, wanted: set[str]) -> Iterator[str]:
    """A matcher in our names, the nearest to what is written first, the surest last."""
    if not _PERMISSION.search(matcher.text):
        yield _joined(_CLAUDE_TOOL.sub(_ours, matcher.text).split("|"))
    names = _PERMISSION.sub(lambda rule: f"^{_ours(rule)}$", matcher.text)
    yield _joined(_BETWEEN_NAMES.split(_CLAUDE_TOOL.sub(_ours, names).strip()))
    everything = "|".join(sorted({*matcher.matched, *wanted}))
    yield f"^({everything})$" if "|" in everything else f"^{everything}$"


def _ours(word: re.Match[str]) -> str:
    name = word[1] if word.re is _PERMISSION else word[0]
    return CLAUDE_TOOLS[name] or name


def _joined(names: Sequence[str]) -> str:
    return "|".join(dict.fromkeys(names))


def _selects(matcher: _Matcher, text: str, wanted: set[str]) -> bool:
    """Whether another text selects what is wanted, and nothing is to be said about it."""
    other = replace(matcher, text=text)
    complaints = (_glob(other), _unanchored(other))
    return _error(text) is None and wanted <= set(other.matched) and not any(complaints)


def _is_lost(matcher: _Matcher, name: str) -> bool:
    """Whether the tool that a name of Claude Code's stands for is not selected by other means."""
    ours = CLAUDE_TOOLS[name]
    return not matcher.matched if ours is None else ours not in matcher.matched


def _matches_no_tool(matcher: _Matcher) -> Diagnostic | None:
    if matcher.matched or _OF_AN_MCP_SERVER.search(matcher.text):
        return None
    lower = replace(matcher, text=matcher.text.lower())
    meant = lower.text if lower.matched and not _unanchored(lower) else closest(matcher.text, matcher.subjects)
    if meant:
        fix = f"Did you mean `{meant}`?"
    else:
        fix = f"Known tools: {_listed(matcher.subjects)}; for a tool of your own pass `--tool NAME`."
    return matcher.told(MATCHER_MATCHES_NOTHING, f"`{matcher.text}` matches none of the known tools", fix)


def _glob(matcher: _Matcher) -> Diagnostic | None:
    if not all(_GLOB.fullmatch(part) or "*" not in part for part in matcher.text.split("|")) or "*" not in matcher.text:
        return None
    message = f"`{matcher.text}` is read as a regular expression, and matches {_listed(matcher.matched) or 'nothing'}"
    return matcher.told(MATCHER_GLOB, message, _glob_fix(matcher))


def _glob_fix(matcher: _Matcher) -> str:
    expression = _as_expression(matcher.text)
    fix = f"For what it means as a file pattern write `{expression}`"
    known = _selected(matcher.event, expression, matcher.subjects)
    return f"{fix}." if known else f"{fix}; for a tool of your own give `--tool NAME`."


def _unanchored(matcher: _Matcher) -> Diagnostic | None:
    if _ANCHOR.search(matcher.text):
        return None
    whole = _selected(matcher.event, f"^(?:{matcher.text})$", matcher.subjects)
    # Who names a tool in full knows that it is found in longer names too, and mostly there are none.
    beyond = [name for name in matcher.matched if name not in whole and not any(tool in name for tool in whole)]
    if not beyond or (not whole and len(beyond) == 1):
        return None
    instead = "is found in {} as well" if whole else "is no tool's name, but is found in {}"
    message = f"`{matcher.text}` {instead.format(_listed(beyond))}"
    return matcher.told(
        MATCHER_UNANCHORED, message, "If that is too much, say where the name begins and ends: `^(…)$`."
    )


_Check = Callable[[_Matcher], Diagnostic | None]
_CHECKS: Final[Mapping[MatchKind, tuple[_Check, ...]]] = {
    MatchKind.IGNORED: (_ignored,),
    MatchKind.EXACT: (_matches_no_value,),
    MatchKind.SEARCHED: (_invalid, _claude_tool, _glob, _matches_no_tool, _unanchored),
}


def _selected(event: HookEventName, text: str, subjects: Sequence[str]) -> list[str]:
    matches = compile_matcher(event, text)
    return [subject for subject in subjects if matches(subject)]


def _listed(names: Sequence[str], last: str = " and ") -> str:
    shown = [f"`{name}`" for name in names]
    if len(names) > _MOST_SHOWN + 1:
        shown[_MOST_SHOWN:] = [f"{len(names) - _MOST_SHOWN} more"]
    return last.join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))


def _as_expression(glob: str) -> str:
    """The regular expression that selects what a file pattern would.

    >>> _as_expression("write_*|*_file|*web*")
    '^write_|_file$|^.*web'
    """
    return "|".join(map(_alternative, glob.split("|")))


def _alternative(glob: str) -> str:
    whole = f"^{glob.replace('*', '.*')}$"
    begins = whole.removesuffix(".*$")
    # With neither end said it would look like a name that is found in others by mistake.
    return begins if begins != whole else whole.removeprefix("^.*")
