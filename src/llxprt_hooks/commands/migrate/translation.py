"""Reads another agent's hook settings and translates them; records what cannot be translated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks.commands.migrate.dialects import CLAUDE, NO_SUCH_EVENT
from llxprt_hooks.commands.migrate.matchers import rename_gemini_tools, translate_tools, translate_words
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.did_you_mean import FOREIGN_KEYS
from llxprt_hooks.settings.jsonc import Kind
from llxprt_hooks.settings.other_agents import FOREIGN_VARIABLES
from llxprt_hooks.settings.schema import settings_executor, supported_types
from llxprt_hooks.settings.shape import read_fields

if TYPE_CHECKING:
    from llxprt_hooks.commands.migrate.dialects import Dialect
    from llxprt_hooks.commands.migrate.matchers import Translated
    from llxprt_hooks.events import HookEventName
    from llxprt_hooks.settings.document import Document
    from llxprt_hooks.settings.jsonc import Member, Node
    from llxprt_hooks.settings.problem import Problem

_PROJECT_DIR: Final = re.compile(r"\$(\{?)(?:CLAUDE|GEMINI)_PROJECT_DIR\b")
_FOREIGN_VARIABLE: Final = re.compile(r"\$\{?((?:CLAUDE|GEMINI)_\w+)|\$\{(workspacePath|pathSeparator|/)\}")
_NOT_EVENTS: Final = frozenset({"enabled", "disabled", "notifications"})
"""Keys beside the events in early versions of Gemini CLI."""

_CHANGES_WHAT_RUNS: Final = frozenset({"args", "condition", "if"})
"""Keys without which a hook would run something else, or run more often than intended."""

_DOUBTFUL_SECONDS: Final = 1000
"""A timeout of this many seconds or more was possibly meant in milliseconds."""

_MAX_TIMEOUT: Final = 1e12
"""Larger values are not plausible in either unit."""


@dataclass(slots=True)
class Translation:
    """The translated hooks of another agent's settings file."""

    document: Document
    dialect: Dialect
    groups: list[tuple[HookEventName, dict[str, Any]]] = field(default_factory=list)
    disabled: list[str] = field(default_factory=list)
    left_out: list[Problem] = field(default_factory=list)
    """Settings without a counterpart, with advice."""
    remarks: list[Problem] = field(default_factory=list)
    """Migrated settings that need review."""
    is_on: bool = True

    @property
    def differences(self) -> list[str]:
        """How the translated hooks behave differently here."""
        events = dict.fromkeys(event for event, _ in self.groups)
        found = [each for event in events for each in self.dialect.differences.get(event, ())]
        return [*found, *(self.dialect.general if events else ())]

    def __post_init__(self) -> None:
        root = self.document.root
        self._switches(root)
        hooks = root.at("hooks")
        if hooks is None:
            return
        if hooks.kind is not Kind.OBJECT:
            self._leave_out(hooks.start, f"`hooks`, which must be an object, is {hooks.kind}")
        for member in hooks.members:
            if self.dialect is CLAUDE or member.key not in _NOT_EVENTS:
                self._event(member)

    def _switches(self, root: Node) -> None:
        switches = [root.at("hooksConfig", "enabled"), root.at("tools", "enableHooks"), root.at("hooks", "enabled")]
        off = next((node for node in switches if node and node.scalar is False), None)
        claude_off = root.at("disableAllHooks")
        if claude_off and claude_off.scalar is True:
            off = claude_off
        if off:
            self.is_on = False
            self._remark(off, "hooks are off here, so they are not turned on in the new file either")
        for names in (root.at("hooksConfig", "disabled"), root.at("hooks", "disabled")):
            self.disabled += [item.scalar for item in names.items if isinstance(item.scalar, str)] if names else []

    def _event(self, member: Member) -> None:
        event = self.dialect.events.get(member.key)
        if event is None:
            advice = self.dialect.advice.get(member.key, NO_SUCH_EVENT)
            self._leave_out(member.key_start, f"`{member.key}` has no counterpart. {advice}")
            return
        for group in member.value.items:
            self._group(event, group)

    def _group(self, event: HookEventName, group: Node) -> None:
        hooks = group.at("hooks")
        if hooks is None or hooks.kind is not Kind.ARRAY:
            self._leave_out(group.start, "a group without a list of `hooks`")
            return
        translated = [hook for hook in map(self._hook, hooks.items) if hook]
        if not translated:
            return
        sequential = group.at("sequential")
        for matcher in self._matchers(event, group):
            first = {} if matcher is None else {"matcher": matcher}
            second = {"sequential": True} if sequential and sequential.scalar is True else {}
            self.groups.append((event, {**first, **second, "hooks": translated}))

    # Matchers.

    def _matchers(self, event: HookEventName, group: Node) -> Iterator[str | None]:
        """Yield the translated matchers of a group: one, several if the event matches exact values, or none."""
        node = group.at("matcher")
        if node is None or not isinstance(node.scalar, str):
            yield None
        elif self.dialect is not CLAUDE:
            yield from self._gemini_matcher(event, node, node.scalar)
        elif event.spec.is_about_tool:
            yield from self._tools(node, translate_tools(node.scalar))
        elif event in self.dialect.values:
            yield from self._words(event, node, node.scalar)
        else:  # an event without matchers, there and here
            yield None

    def _tools(self, node: Node, translated: Translated) -> Iterator[str | None]:
        for name in translated.lost:
            self._leave_out(node.start, f"`{name}` in the matcher {node.scalar!r}. {_tool_advice(name)}")
        if not translated.selects_nothing:
            yield translated.matcher

    def _words(self, event: HookEventName, node: Node, matcher: str) -> Iterator[str | None]:
        words, lost = translate_words(matcher, self.dialect.values[event])
        for word in lost:
            self._leave_out(node.start, f"`{word}` in the matcher {matcher!r}: {event} does not have this value here.")
        yield from [None] if words is None else words

    def _gemini_matcher(self, event: HookEventName, node: Node, matcher: str) -> Iterator[str | None]:
        if not event.spec.is_about_tool:
            yield matcher or None
            return
        if "mcp_" in matcher:
            advice = "try the matcher with `llxprt-hooks fire`"
            self._remark(node, f"tools of MCP servers may have other names here: {advice}")
        yield rename_gemini_tools(matcher) or None

    # Hooks.

    def _hook(self, hook: Node) -> dict[str, Any] | None:
        fields = {member.key: member.value for member in hook.members}
        kind = fields.pop("type", None)
        executor = settings_executor(kind.scalar) if kind else None
        if executor is None or executor.unsupported:
            found = f"of type {kind.scalar!r}" if kind else "without a type"
            known = ", ".join(supported_types())
            self._leave_out(hook.start, f"a hook {found}. Supported types: {known}.")
            return None
        own, problems = read_fields(executor.fields or {}, hook)
        if problems:
            self._leave_out(hook.start, f"a hook that cannot be used: {problems[0].message}")
            return None
        for key in sorted(_CHANGES_WHAT_RUNS & set(fields) - set(own)):
            self._leave_out(hook.start, f"a hook with `{key}`, which is not supported here. {FOREIGN_KEYS[key]}")
            return None
        translated: dict[str, Any] = {"type": kind.scalar} if kind else {}
        if name := _text(fields.pop("name", None)):
            translated["name"] = name
        for key in [key for key in own if key in fields]:
            translated[key] = self._renamed(node) if (node := fields.pop(key)).kind is Kind.STRING else own[key]
        if description := _text(fields.pop("description", None)) or _text(fields.pop("statusMessage", None)):
            translated["description"] = description
        if timeout := self._timeout(fields.pop("timeout", None)):
            translated["timeout"] = timeout
        for key, node in fields.items():
            self._remark(node, f"`{key}` of a hook is left out. {FOREIGN_KEYS.get(key, 'It is not supported here.')}")
        return translated

    def _renamed(self, node: Node) -> str:
        """Return a text with the variable for the project folder renamed."""
        text = _text(node)
        foreign = (found[1] or found[2] for found in _FOREIGN_VARIABLE.finditer(_PROJECT_DIR.sub("", text)))
        for variable in dict.fromkeys(foreign):
            advice = FOREIGN_VARIABLES.get(variable, "There is no such variable here.")
            self._remark(node, f"`${variable}` in a command. {advice}")
        return _PROJECT_DIR.sub(r"$\1LLXPRT_PROJECT_DIR", text)

    def _timeout(self, node: Node | None) -> int | float | None:
        if node is None:
            return None
        given = node.scalar
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= _MAX_TIMEOUT:
            self._remark(node, f"`timeout` is left out: {self.document.found(node)} is not a valid timeout")
            return None
        if self.dialect.milliseconds > 1 and given >= _DOUBTFUL_SECONDS:
            meant = f"if milliseconds were meant, write {given} in the new file"
            self._remark(node, f"`timeout` of {given} seconds: {meant}")
        milliseconds = given * self.dialect.milliseconds
        return int(milliseconds) if milliseconds == int(milliseconds) else milliseconds

    def _leave_out(self, offset: int, message: str) -> None:
        self.left_out.append(self.document.problem_at(offset, message))

    def _remark(self, node: Node, message: str) -> None:
        self.remarks.append(self.document.problem_at(node.start, message))


def _tool_advice(name: str) -> str:
    if "mcp__" in name:
        return "Tools of MCP servers have other names here: add those to the matcher."
    return "It has no counterpart here; if your agent has such a tool, add its name to the matcher."


def _text(node: Node | None) -> str:
    return node.scalar if node and isinstance(node.scalar, str) else ""
