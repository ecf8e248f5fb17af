"""The output of a hook, and what it means.

A field of the wrong type is ignored and the other fields still apply, so that ``{"decision": "deny", "reason": 7}``
still blocks. ``problems`` lists what was ignored; the engine logs it with the name of the hook.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Any, Literal, NamedTuple

from llxprt_hooks._support.fields import FLAG, OBJECT, STRING, TEXT_OR_OBJECT, FieldType, checked, object_of, one_of
from llxprt_hooks._support.text import closest, escape_for_terminal, letters, shorten
from llxprt_hooks.model.answers import REQUEST, TOOL_CONFIG

HookDecision = Literal["ask", "block", "deny", "approve", "allow"]

BLOCKING = frozenset({"block", "deny"})
_PLAIN_DECISIONS = frozenset({"allow", *BLOCKING})
NO_REASON = "No reason provided"

_DECISION = one_of("ask", "block", "deny", "approve", "allow", shows_value=True)

SPECIFIC_FIELDS: Mapping[str, FieldType] = {
    "additionalContext": STRING,
    "permissionDecision": _DECISION,
    "permissionDecisionReason": STRING,
    "tool_input": OBJECT,
    "llm_request": object_of(REQUEST),
    "llm_response": OBJECT,
    "toolConfig": object_of(TOOL_CONFIG),
    "tool_response": TEXT_OR_OBJECT,
    "clearContext": FLAG,
}
"""The known fields of ``hookSpecificOutput``. Others are kept as they are, because they belong to the event."""
FIELDS: Mapping[str, FieldType] = {
    "decision": _DECISION,
    "reason": STRING,
    "continue": FLAG,
    "stopReason": STRING,
    "suppressOutput": FLAG,
    "systemMessage": STRING,
    "hookSpecificOutput": object_of(SPECIFIC_FIELDS),
}
"""The fields of an output. Others are ignored."""
_DECIDING: Mapping[str, FieldType] = {
    "decision": _DECISION,
    "continue": FLAG,
    "hookSpecificOutput": object_of({"permissionDecision": _DECISION}),
}
"""The fields that carry a decision."""
_CHANGES = ("tool_input", "tool_response", "llm_request", "llm_response", "toolConfig")
_SPECIFIC_NAMES = frozenset({"hookEventName", *SPECIFIC_FIELDS})
_IN_SPECIFIC = "hookSpecificOutput."

_MAX_UNKNOWN = 100
"""Unknown fields of one output that are compared with the known ones; there may be a million."""
_MAX_SHOWN = 5
_NO_FIELDS: Mapping[str, Any] = {}


class BlockingError(NamedTuple):
    """Whether an output blocks, and why."""

    blocked: bool
    reason: str


class Beyond(NamedTuple):
    """What only hooks of other dialects can say (D-144)."""

    whole_input: bool = False
    """Whether ``tool_input`` has all arguments, so that it replaces them."""
    beside_result: str = ""
    """Text for the model, after the tool's result."""
    to_user: str = ""
    """Text for the user, which the model does not get."""


class DefaultHookOutput:
    """The output of one hook, or of several merged into one.

    >>> DefaultHookOutput({"decision": "deny", "reason": "no secrets"}).get_blocking_error()
    BlockingError(blocked=True, reason='no secrets')
    """

    __slots__ = (
        "beyond",
        "continue_",
        "decision",
        "hook_specific_output",
        "implied",
        "problems",
        "reason",
        "stop_reason",
        "suppress_output",
        "system_message",
        "unclear",
        "unknown",
        "unusable",
    )

    decision: HookDecision | None
    reason: str | None
    continue_: bool | None
    stop_reason: str | None
    suppress_output: bool | None
    system_message: str | None
    hook_specific_output: dict[str, Any] | None
    implied: bool
    """Whether the decision follows from plain text or a failure; such a decision never undoes an explicit one."""
    unclear: str | None
    """Why a decision that the hook may have made is not known: which field carries one that cannot be read."""
    problems: Sequence[str]
    """One sentence for each field that is ignored because of its type."""
    unusable: str | None
    """Why a change that the hook may have made cannot be applied: which field was not read."""
    unknown: Sequence[str]
    """The first names that are not those of a field, at the top level and in ``hookSpecificOutput``, as shown."""
    beyond: Beyond | None
    """What a hook of another dialect said beyond these fields."""

    def __init__(self, data: Mapping[str, Any], *, implied: bool = False) -> None:
        problems: list[str] = []
        fields = checked(data, FIELDS, problems, keep_unknown=True)
        specific = fields.get("hookSpecificOutput", _NO_FIELDS)
        is_known = fields.keys() <= FIELDS.keys() and specific.keys() <= _SPECIFIC_NAMES
        self.decision = fields.get("decision")
        self.reason = fields.get("reason")
        self.continue_ = fields.get("continue")
        self.stop_reason = fields.get("stopReason")
        self.suppress_output = fields.get("suppressOutput")
        self.system_message = fields.get("systemMessage")
        self.hook_specific_output = fields.get("hookSpecificOutput")
        self.implied = implied
        self.beyond = None
        self.problems = problems
        self.unknown = () if is_known else _all_unknown(data, specific)
        self.unclear = self.unusable = None
        if problems or not is_known:
            self.unclear = _unclear(data, fields, specific)
            self.unusable = _unusable(data, specific, problems)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are set, under their JSON names."""
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

    @property
    def is_plain(self) -> bool:
        """Whether this is only a decision, perhaps with a reason: merged alone, it stays what it is."""
        return (
            self.decision in _PLAIN_DECISIONS
            and not self.implied
            and self.reason != ""
            and self.hook_specific_output is None
            and self.continue_ is None
            and self.stop_reason is None
            and self.suppress_output is None
            and self.system_message is None
        )

    @property
    def permission_decision(self) -> str | None:
        """The compatibility field ``permissionDecision``, in the output of the event that honors it."""
        return None

    def asks(self) -> bool:
        """Whether the hook wants a person to be asked, and does not refuse the call itself."""
        asked = "ask" in (self.decision, self.permission_decision)
        return asked and not self.is_blocking_decision() and not self.should_stop_execution()

    def is_blocking_decision(self) -> bool:
        """Whether the decision is "block" or "deny"."""
        return self.decision in BLOCKING

    def should_stop_execution(self) -> bool:
        """Whether the hook asked for the agent to stop."""
        return self.continue_ is False

    def get_effective_reason(self) -> str:
        """Return the reason to show: ``reason`` first for a block, ``stopReason`` first for anything else."""
        first, second = self.stop_reason, self.reason
        if self.is_blocking_decision():
            first, second = second, first
        return first or second or NO_REASON

    def get_stop_reason(self) -> str | None:
        """Return why the agent should stop, ``stopReason`` first; None if it should not stop."""
        return (self.stop_reason or self.reason or NO_REASON) if self.should_stop_execution() else None

    def get_additional_context(self) -> str | None:
        """Return the text that the hook adds for the model."""
        context: str | None = self._specific("additionalContext")
        return context

    def get_tool_response(self) -> str | dict[str, Any] | None:
        """Return what a hook that acts puts in the place of a tool's result: text, or some of its fields."""
        response: str | dict[str, Any] | None = self._specific("tool_response")
        return response

    @property
    def replaces_input(self) -> bool:
        """Whether the changed arguments are all that there are: those that they lack are gone."""
        return self.beyond is not None and self.beyond.whole_input

    @property
    def user_message(self) -> str | None:
        """What a hook of another dialect says to the user. The model does not get it."""
        return None if self.beyond is None else self.beyond.to_user or None

    def clears_context(self) -> bool:
        """Whether a hook that acts wants the conversation to be cleared."""
        return self._specific("clearContext") is True

    def get_blocking_error(self) -> BlockingError:
        """Return whether this blocks, and the effective reason if it does."""
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
    """Also honors the compatibility fields ``permissionDecision`` and ``permissionDecisionReason``."""

    __slots__ = ()

    @property
    def permission_decision(self) -> str | None:
        word: str | None = self._specific("permissionDecision")
        return word

    def is_blocking_decision(self) -> bool:
        return self.permission_decision in BLOCKING or super().is_blocking_decision()

    def get_effective_reason(self) -> str:
        reason: str | None = self._specific("permissionDecisionReason")
        return super().get_effective_reason() if reason is None else reason  # an empty string counts (HOOK-199)

    def get_modified_tool_input(self) -> dict[str, Any] | None:
        """Return the arguments that the hook set, to be merged over the original ones."""
        tool_input: dict[str, Any] | None = self._specific("tool_input")
        return tool_input


def merged_by_key(base: object, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a hook's changes to an object by top-level key. They replace arguments that are not an object."""
    return {**(base if isinstance(base, Mapping) else {}), **changes}


def _unclear(data: Mapping[str, Any], fields: Mapping[str, Any], specific: Mapping[str, Any]) -> str | None:
    """Return why the decision in an answer is not known. ``fields`` has its valid fields."""
    # A field that is valid in its place is clear, whatever else has a similar name.
    missing = (_DECIDING.keys() - fields.keys()) | ({"permissionDecision"} - specific.keys())
    problems: list[str] = []
    checked(data, _DECIDING, problems, keep_unknown=True)
    reasons = (
        _misplaced(data, ["permissionDecision"], missing),
        _misplaced(specific, ["decision", "continue"], missing, _IN_SPECIFIC),
        problems,
        _misspelled(_unknown(data, FIELDS), missing),
        _misspelled(_unknown(specific, _SPECIFIC_NAMES), missing, _IN_SPECIFIC),
        _nothing_known(data),
    )
    return next(chain.from_iterable(reasons), None)


def _unusable(data: Mapping[str, Any], specific: Mapping[str, Any], problems: Iterable[str]) -> str | None:
    """Return why a change is not known: its field has a wrong type, or a name that is not read."""
    missing = SPECIFIC_FIELDS.keys() - specific.keys()
    reasons = (
        (problem for problem in problems if _IN_SPECIFIC in problem),
        _misplaced(data, _CHANGES, missing),
        _misspelled(_unknown(specific, _SPECIFIC_NAMES), missing, _IN_SPECIFIC),
    )
    return next(chain.from_iterable(reasons), None)


def _misplaced(data: Mapping[str, Any], names: Iterable[str], missing: Container[str], path: str = "") -> Iterator[str]:
    return (_not_read(name, name, path) for name in names if name in missing and data.get(name) is not None)


def _misspelled(names: Iterable[str], missing: Container[str], path: str = "") -> Iterator[str]:
    """Describe the unknown fields that were probably meant to carry a decision."""
    return (_not_read(name, meant, path) for name in names if (meant := _meant(name)) and meant in missing)


def _nothing_known(data: Mapping[str, Any]) -> Iterator[str]:
    """Describe an answer without a known field."""
    if FIELDS.keys() & data.keys() or all(value is None for value in data.values()):
        return
    yield from (_not_read(name, meant) for name in _unknown(data, FIELDS) if (meant := _meant(name)))
    shown = ", ".join(f"`{name}`" for name in _all_unknown(data, _NO_FIELDS))
    yield f"none of its fields is read{f' ({shown})' if shown else ''}; known fields: {', '.join(FIELDS)}"


def _not_read(name: str, meant: str, path: str = "") -> str:
    """Return the message about a field that is not known in its place."""
    shown = f"`{path}{_shown(name)}` is not read"
    home = "at the top level" if meant in FIELDS else "in `hookSpecificOutput`"
    if name == meant:
        return f"{shown} there: it belongs {home}"
    is_here = (meant in FIELDS) is not bool(path)
    return f"{shown}: did you mean `{meant}`{'' if is_here else f' {home}'}?"


def _all_unknown(data: Mapping[str, Any], specific: Mapping[str, Any]) -> Sequence[str]:
    inside = (f"{_IN_SPECIFIC}{_shown(name)}" for name in _unknown(specific, _SPECIFIC_NAMES))
    return tuple(islice(chain(map(_shown, _unknown(data, FIELDS)), inside), _MAX_SHOWN))


def _unknown(data: Mapping[Any, Any], known: Container[str]) -> Iterator[str]:
    """The names of unknown fields. Null means absent, and a function's mapping may have keys that are not strings."""
    unknown = (name for name, value in data.items() if name not in known and value is not None)
    return (name for name in islice(unknown, _MAX_UNKNOWN) if isinstance(name, str))


_ELSEWHERE = {"updatedinput": "tool_input"}
"""Fields of other agents' hooks, by their letters, and what they are called here."""


def _meant(name: str) -> str | None:
    return _ELSEWHERE.get(letters(name[:101])) or _likely_field(
        name[:101]
    )  # `closest` reads no longer ones, and the cache would keep them


@lru_cache(maxsize=1024)
def _likely_field(name: str) -> str | None:
    # One or two wrong letters. `precision` and `permissionMode` are fields of their own, and must not block.
    return closest(name, (*FIELDS, *SPECIFIC_FIELDS), similarity=0.85)


def _shown(name: str) -> str:
    return escape_for_terminal(shorten(name, 60))


def misread_fields(data: Mapping[str, Any]) -> Iterator[str]:
    """Describe the fields of an answer that are probably misspelled or in the wrong place.

    This is advice only, so it finds more than ``unclear``, which may block.
    """
    specific = data.get("hookSpecificOutput")
    inside = specific if isinstance(specific, Mapping) else _NO_FIELDS
    for fields, known, path in ((data, FIELDS, ""), (inside, _SPECIFIC_NAMES, _IN_SPECIFIC)):
        for name in _unknown(fields, known):
            meant = closest(name, (*FIELDS, "hookEventName", *SPECIFIC_FIELDS))
            if meant and (meant == name or meant not in fields):
                yield _not_read(name, meant, path)


def output_problems(data: Mapping[str, Any]) -> list[str]:
    """Return one sentence for each field of an output that is ignored because of its type."""
    problems: list[str] = []
    checked(data, FIELDS, problems, keep_unknown=True)
    return problems
