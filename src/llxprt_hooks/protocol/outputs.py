"""What a hook said, and what it means.

An output is read field by field: one of the wrong type is ignored by itself, with a warning, and never takes its
siblings with it, so that ``{"decision": "deny", "reason": 7}`` still blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from llxprt_hooks.logger import debug_logger

log = debug_logger("outputs")

HookDecision = Literal["ask", "block", "deny", "approve", "allow"]

BLOCKING = frozenset({"block", "deny"})
NO_REASON = "No reason provided"

_DECISIONS = ("ask", "block", "deny", "approve", "allow")
_MODES = ("AUTO", "ANY", "NONE")

# What each field must be: a type, a tuple of the words it may be, or the fields of an object. Fields that a nested
# table does not name are kept as they are, because they belong to the event; at the top level they mean nothing.
_REQUEST_FIELDS: dict[str, Any] = {
    "model": str,
    "messages": list,
    "config": dict,
    "toolConfig": {"mode": _MODES, "allowedFunctionNames": list},
}
_SPECIFIC_FIELDS: dict[str, Any] = {
    "additionalContext": str,
    "permissionDecision": _DECISIONS,
    "permissionDecisionReason": str,
    "tool_input": dict,
    "llm_request": _REQUEST_FIELDS,
    "llm_response": dict,
    "toolConfig": {"mode": _MODES, "allowedFunctionNames": list},
}
_FIELDS: dict[str, Any] = {
    "decision": _DECISIONS,
    "reason": str,
    "continue": bool,
    "stopReason": str,
    "suppressOutput": bool,
    "systemMessage": str,
    "hookSpecificOutput": _SPECIFIC_FIELDS,
}

_KINDS = {
    str: "a string",
    bool: "true or false",
    dict: "an object",
    list: "an array",
    int: "a number",
    float: "a number",
}


class BlockingError(NamedTuple):
    """Whether an output blocks, and why."""

    blocked: bool
    reason: str


class DefaultHookOutput:
    """The output of one hook, or of several merged into one.

    >>> DefaultHookOutput({"decision": "deny", "reason": "no secrets"}).get_blocking_error()
    BlockingError(blocked=True, reason='no secrets')
    """

    __slots__ = (
        "continue_",
        "decision",
        "hook_specific_output",
        "implied",
        "reason",
        "stop_reason",
        "suppress_output",
        "system_message",
    )

    decision: HookDecision | None
    reason: str | None
    continue_: bool | None
    stop_reason: str | None
    suppress_output: bool | None
    system_message: str | None
    hook_specific_output: dict[str, Any] | None
    implied: bool
    """The decision was not said but follows from plain text or a failure; it never undoes an explicit one."""

    def __init__(self, data: Mapping[str, Any], *, implied: bool = False) -> None:
        fields = _checked(data, _FIELDS, "")
        self.decision = fields.get("decision")
        self.reason = fields.get("reason")
        self.continue_ = fields.get("continue")
        self.stop_reason = fields.get("stopReason")
        self.suppress_output = fields.get("suppressOutput")
        self.system_message = fields.get("systemMessage")
        self.hook_specific_output = fields.get("hookSpecificOutput")
        self.implied = implied

    def to_dict(self) -> dict[str, Any]:
        """The fields that are set, under their names on the wire."""
        fields = {
            "decision": self.decision,
            "reason": self.reason,
            "continue": self.continue_,
            "stopReason": self.stop_reason,
            "suppressOutput": self.suppress_output,
            "systemMessage": self.system_message,
            "hookSpecificOutput": self.hook_specific_output,
        }
        return {name: value for name, value in fields.items() if value is not None}

    def is_blocking_decision(self) -> bool:
        """Whether the decision is "block" or "deny"."""
        return self.decision in BLOCKING

    def should_stop_execution(self) -> bool:
        """Whether the hook asked for the agent to stop."""
        return self.continue_ is False

    def get_effective_reason(self) -> str:
        """The reason to show: of a block its ``reason`` first, of anything else its ``stopReason`` first."""
        first, second = self.stop_reason, self.reason
        if self.is_blocking_decision():
            first, second = second, first
        return first or second or NO_REASON

    def get_stop_reason(self) -> str | None:
        """Why the agent is to stop, always the ``stopReason`` first; None when it is not to."""
        return (self.stop_reason or self.reason or NO_REASON) if self.should_stop_execution() else None

    def get_additional_context(self) -> str | None:
        """Text that the hook wants the model to read beside the result."""
        context: str | None = self._specific("additionalContext")
        return context

    def get_blocking_error(self) -> BlockingError:
        """Whether this blocks, with the effective reason if it does."""
        if not self.is_blocking_decision():
            return BlockingError(blocked=False, reason="")
        return BlockingError(blocked=True, reason=self.get_effective_reason())

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.to_dict() == self.to_dict()

    __hash__ = None  # type: ignore[assignment]  # holds mutable JSON

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.to_dict()!r})"

    def _specific(self, name: str) -> Any:
        return (self.hook_specific_output or {}).get(name)


class BeforeToolHookOutput(DefaultHookOutput):
    """Also honours the compatibility fields ``permissionDecision`` and ``permissionDecisionReason``."""

    __slots__ = ()

    def is_blocking_decision(self) -> bool:
        return self._specific("permissionDecision") in BLOCKING or super().is_blocking_decision()

    def get_effective_reason(self) -> str:
        return self._specific("permissionDecisionReason") or super().get_effective_reason()

    def get_modified_tool_input(self) -> dict[str, Any] | None:
        """The arguments that the hook set, to be laid over the original ones."""
        tool_input: dict[str, Any] | None = self._specific("tool_input")
        return tool_input


def _checked(data: Mapping[str, Any], table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The fields of ``data`` that are of the type the table wants; at the top level only those it names."""
    kept: dict[str, Any] = {}
    for name, value in data.items():
        expected = table.get(name)
        if expected is None:
            if where:
                kept[name] = value
        elif isinstance(expected, dict) and isinstance(value, Mapping):
            kept[name] = _checked(value, expected, f"{where}{name}.")
        elif _fits(value, expected):
            kept[name] = _names(value, where) if name == "allowedFunctionNames" else value
        elif value is not None:
            log.warning(
                "hook output: `%s%s` is ignored: expected %s, found %s", where, name, _kind(expected), _found(value)
            )
    return kept


def _names(value: list[Any], where: str) -> list[str]:
    names = [item for item in value if isinstance(item, str)]
    if len(names) < len(value):
        log.warning(
            "hook output: %d items of `%sallowedFunctionNames` are ignored: expected strings",
            len(value) - len(names),
            where,
        )
    return names


def _fits(value: object, expected: Any) -> bool:
    if isinstance(expected, tuple):
        return isinstance(value, str) and value in expected
    return isinstance(expected, type) and isinstance(value, expected)


def _found(value: object) -> str:
    # Only texts are shown: an array that is nested deep enough cannot be, and a warning must cost no decision.
    if isinstance(value, str):
        return repr(value[:80])
    return next((words for kind, words in _KINDS.items() if isinstance(value, kind)), type(value).__name__)


def _kind(expected: Any) -> str:
    if isinstance(expected, tuple):
        return "one of " + ", ".join(f'"{word}"' for word in expected)
    return _KINDS[dict if isinstance(expected, dict) else expected]
