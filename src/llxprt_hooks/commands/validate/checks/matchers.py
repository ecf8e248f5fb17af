"""Checks of matchers. Only the first finding for a matcher is reported."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from regress import Regex, RegressError

from llxprt_hooks._support.text import closest
from llxprt_hooks.commands.validate.diagnostic import Diagnostic
from llxprt_hooks.commands.validate.rules import Rule
from llxprt_hooks.events import HookEventName, MatchKind
from llxprt_hooks.settings.matcher import compile_matcher, is_for_all, trimmed
from llxprt_hooks.settings.other_agents import CLAUDE_TOOLS
from llxprt_hooks.settings.search import searching

if TYPE_CHECKING:
    from llxprt_hooks.commands.validate.entries import FileGroup
    from llxprt_hooks.commands.validate.inspection import Inspection
    from llxprt_hooks.settings import Node

_ANYTHING: Final = (".*", ".+", "^.*$", "^.+$")
_GLOB: Final = re.compile(r"[\w*-]*[\w-]\*[\w*-]*|\*[\w*-]+")
_ANCHOR: Final = re.compile(r"(?<!\\)[\^$]|\(\?")
_CLAUDE_TOOL: Final = re.compile(rf"(?:(?<![A-Za-z0-9_])|(?<=\\b))(?:{'|'.join(CLAUDE_TOOLS)})(?![A-Za-z0-9_])")
_PERMISSION: Final = re.compile(rf"({_CLAUDE_TOOL.pattern})\([^()]*\)(?![?*+{{])")
"""A permission rule of Claude Code, such as ``Bash(rm:*)``, mistaken for a matcher."""
_TOOL_FIELDS: Final = {"Bash": "tool_input.command", **dict.fromkeys(("Read", "Write", "Edit"), "tool_input.file_path")}
_BETWEEN_NAMES: Final = re.compile(r"\s*[|,]\s*")
_OF_AN_MCP_SERVER: Final = re.compile(r"mcp|__|discovered_tool_", re.IGNORECASE)
_CLAUDE_VALUES: Final = {"compact": "compress", "permission_prompt": "ToolPermission"}
_MAX_SHOWN: Final = 7
_MAX_LENGTH: Final = 2000
"""Nobody writes longer ones by hand, and a project that was just cloned may have one to keep its reader waiting."""
_NAME_OWN_TOOLS: Final = "If it is for a tool of your own program, list your tools in `hooksConfig.tools`."


@dataclass(frozen=True, eq=False)
class _Matcher:
    """A matcher, and the names it is matched against."""

    group: FileGroup
    node: Node
    text: str
    """Without surrounding white space, which is ignored."""
    event: HookEventName
    subjects: Sequence[str]
    own_tools: bool
    """Whether the subjects are all tools that the program has."""

    @cached_property
    def matched(self) -> list[str]:
        """The known names that it matches."""
        return _selected(self.event, self.text, self.subjects)

    def diagnostic(self, rule: Rule, message: str, fix: str) -> Diagnostic:
        return self.group.file.at(rule, self.node, message, fix)


def check_matcher(inspection: Inspection, group: FileGroup) -> Iterator[Diagnostic]:
    """Find matchers that probably do not match what was intended."""
    event, node = group.event.meant, group.matcher
    if event is None or node is None or is_for_all(str(node.scalar)):
        return
    subjects = event.spec.matched_values or inspection.tools
    matcher = _Matcher(group, node, trimmed(str(node.scalar)), event, subjects, inspection.own_tools)
    checks = _CHECKS[event.spec.match]
    if len(matcher.text) > _MAX_LENGTH:
        checks = tuple(check for check in checks if check is _too_complex)
    if event in inspection.unsupported:  # it is reported that these hooks never run
        checks = tuple(check for check in checks if check is not _matches_no_tool)
    found = next((found for check in checks if (found := check(matcher))), None)
    if found is not None:
        yield found


def _ignored(matcher: _Matcher) -> Diagnostic | None:
    if matcher.text in _ANYTHING:
        return None
    message = f"the matcher `{matcher.text}` is ignored: {matcher.event} does not use matchers"
    return matcher.diagnostic(
        Rule.MATCHER_IGNORED, message, "Remove it, and filter on the JSON from stdin inside the script."
    )


def _matches_no_value(matcher: _Matcher) -> Diagnostic | None:
    if matcher.matched:
        return None
    subject = matcher.event.spec.matched_field
    foreign = _CLAUDE_VALUES.get(matcher.text)
    meant = foreign if foreign in matcher.subjects else closest(matcher.text, matcher.subjects)
    if matcher.text in _ANYTHING:
        fix = "To match everything, write `*` or omit the matcher."
    elif "|" in matcher.text:
        fix = f"The matcher must equal the {subject}: write a separate group for each value."
    elif meant:
        fix = f"Did you mean `{meant}`?"
    else:
        fix = f"Possible values: {_listed(matcher.subjects)}."
    return matcher.diagnostic(Rule.MATCHER_MATCHES_NOTHING, f"no {subject} of {matcher.event} is `{matcher.text}`", fix)


def _invalid(matcher: _Matcher) -> Diagnostic | None:
    error = _error(matcher.text)
    if error is None:
        return None
    if ours := _in_our_names(matcher):
        fix = ours
    elif _GLOB.fullmatch(matcher.text):
        fix = _glob_fix(matcher)
    elif matcher.text.startswith("(?"):
        fix = "Matchers use ECMAScript syntax, without inline flags; write tool names in lower case."
    else:
        fix = "Fix it, or escape literal characters with a backslash (two in JSON)."
    return matcher.diagnostic(
        Rule.MATCHER_INVALID, f"`{matcher.text}` is not a valid regular expression ({error})", fix
    )


def _error(text: str) -> str | None:
    try:
        Regex(text)
    except RegressError as error:
        return str(error).lower()
    except ValueError:  # a lone surrogate, which the engine reads as U+FFFD
        return None
    return None


def _too_complex(matcher: _Matcher) -> Diagnostic | None:
    found: list[str] = []
    matches = searching(matcher.text, found.append)
    name = None if matches is None else next((name for name in matcher.subjects if matches(name) and found), None)
    if name is None:
        return None
    message = f"`{matcher.text}` cannot be compared with `{name}` in a bounded time, and counts as one that matches"
    fix = "Write it without the back-reference, or do not repeat the group that it refers to."
    if len(matcher.text) > _MAX_LENGTH:
        fix = "Write a shorter one, or none, and compare the name in the script."
    return matcher.diagnostic(Rule.MATCHER_TOO_COMPLEX, message, fix)


def _claude_tool(matcher: _Matcher) -> Diagnostic | None:
    unmatched = [word for word in _CLAUDE_TOOL.finditer(matcher.text) if _is_unmatched(matcher, word[0])]
    if not unmatched:
        return None
    word = next((word for word in unmatched if CLAUDE_TOOLS[word[0]]), unmatched[0])
    ours = CLAUDE_TOOLS[word[0]]
    counterpart = f"is called `{ours}` here" if ours else "has no counterpart here"
    message = f"`{word[0]}` is Claude Code's name for a tool that {counterpart}"
    fix = _in_our_names(matcher) or "Remove it together with the group: an empty matcher matches all tools."
    before = str(matcher.node.scalar).index(matcher.text)
    span = (before + word.start(), before + word.end())
    return matcher.group.file.inside(Rule.MATCHER_CLAUDE_TOOL, matcher.node, span, message, fix)


def _in_our_names(matcher: _Matcher) -> str | None:
    """Return the fix for a matcher with Claude Code's names, if they have counterparts."""
    named = [word[0] for word in _CLAUDE_TOOL.finditer(matcher.text)]
    wanted = {ours for name in named if (ours := CLAUDE_TOOLS[name])}
    works = next((text for text in _translations(matcher, wanted) if _selects(matcher, text, wanted)), None)
    if not wanted or works is None:
        return None
    rule = _PERMISSION.search(matcher.text)
    if rule is None:
        return f"Write `{works}`."
    field = _TOOL_FIELDS.get(rule[1], "tool_input")
    return f"Write `{works}`: a matcher sees only the tool's name; check `{field}` in the script."


def _translations(matcher: _Matcher, wanted: set[str]) -> Iterator[str]:
    """Yield translated matchers, from the most similar to the safest."""
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
    """Return whether another matcher selects the wanted tools without a finding of its own."""
    other = replace(matcher, text=text)
    findings = (_glob(other), _unanchored(other))
    return _error(text) is None and wanted <= set(other.matched) and not any(findings)


def _is_unmatched(matcher: _Matcher, name: str) -> bool:
    """Return whether the counterpart of a Claude Code tool is not matched otherwise."""
    if name in matcher.subjects:
        return False
    ours = CLAUDE_TOOLS[name]
    return not matcher.matched if ours is None else ours not in matcher.matched


def _matches_no_tool(matcher: _Matcher) -> Diagnostic | None:
    if matcher.matched or _OF_AN_MCP_SERVER.search(matcher.text):
        return None
    lower = replace(matcher, text=matcher.text.lower())
    meant = lower.text if lower.matched and not _unanchored(lower) else closest(matcher.text, matcher.subjects)
    if matcher.own_tools:
        fix = f"Did you mean `{meant}`?" if meant else f"The tools are {_listed(matcher.subjects)}."
        message = f"`{matcher.text}` matches none of the tools in `hooksConfig.tools`"
        return matcher.diagnostic(Rule.MATCHER_MATCHES_NOTHING, message, fix)
    message = f"`{matcher.text}` does not match any known tool"
    if meant:
        fix = f"Did you mean `{meant}`? {_NAME_OWN_TOOLS}"
        return matcher.diagnostic(Rule.MATCHER_MATCHES_NOTHING, message, fix)
    fix = f"Known tools: {_listed(matcher.subjects)}. {_NAME_OWN_TOOLS}"
    return matcher.diagnostic(Rule.MATCHER_OF_OWN_TOOL, message, fix)


def _glob(matcher: _Matcher) -> Diagnostic | None:
    if not all(_GLOB.fullmatch(part) or "*" not in part for part in matcher.text.split("|")) or "*" not in matcher.text:
        return None
    message = f"`{matcher.text}` is a regular expression here, and matches {_listed(matcher.matched) or 'nothing'}"
    return matcher.diagnostic(Rule.MATCHER_GLOB, message, _glob_fix(matcher))


def _glob_fix(matcher: _Matcher) -> str:
    expression = _as_expression(matcher.text)
    fix = f"If you meant a glob, write `{expression}`"
    known = _selected(matcher.event, expression, matcher.subjects)
    return f"{fix}." if known or matcher.own_tools else f"{fix}. {_NAME_OWN_TOOLS}"


def _unanchored(matcher: _Matcher) -> Diagnostic | None:
    if _ANCHOR.search(matcher.text):
        return None
    whole = _selected(matcher.event, f"^(?:{matcher.text})$", matcher.subjects)
    # A full tool name is probably intended to match longer names too, and usually there are none.
    beyond = [name for name in matcher.matched if name not in whole and not any(tool in name for tool in whole)]
    if not beyond or (not whole and len(beyond) == 1):
        return None
    instead = "also matches {}" if whole else "is not a tool's name, but matches {}"
    message = f"`{matcher.text}` {instead.format(_listed(beyond))}"
    return matcher.diagnostic(Rule.MATCHER_UNANCHORED, message, "To match whole names only, write `^(…)$`.")


_Check = Callable[[_Matcher], Diagnostic | None]
_CHECKS: Final[Mapping[MatchKind, tuple[_Check, ...]]] = {
    MatchKind.IGNORED: (_ignored,),
    MatchKind.EXACT: (_matches_no_value,),
    MatchKind.SEARCHED: (_invalid, _too_complex, _claude_tool, _glob, _matches_no_tool, _unanchored),
}


def _selected(event: HookEventName, text: str, subjects: Sequence[str]) -> list[str]:
    matches = compile_matcher(event, text)
    return [subject for subject in subjects if matches(subject)]


def _listed(names: Sequence[str]) -> str:
    shown = [f"`{name}`" for name in names]
    if len(names) > _MAX_SHOWN + 1:
        shown[_MAX_SHOWN:] = [f"{len(names) - _MAX_SHOWN} more"]
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))


def _as_expression(glob: str) -> str:
    """Return the regular expression for a file pattern.

    >>> _as_expression("write_*|*_file|*web*")
    '^write_|_file$|^.*web'
    """
    return "|".join(map(_alternative, glob.split("|")))


def _alternative(glob: str) -> str:
    whole = f"^{glob.replace('*', '.*')}$"
    begins = whole.removesuffix(".*$")
    # Keep one anchor: without any it would be reported as unanchored.
    return begins if begins != whole else whole.removeprefix("^.*")
