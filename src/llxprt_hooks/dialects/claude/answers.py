"""What Claude Code makes of a hook's exit code and streams, as a native answer (recorded of version 2.1.285).

JSON is read whatever the exit code is. Exit code 2 blocks even if the JSON allows. Any other code is a failure only if
there is no JSON. Plain text counts at two events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from llxprt_hooks._support.json_codec import decode_text, read_json_text
from llxprt_hooks.dialects.claude.tools import Shown, UnusableChangeError, own_input
from llxprt_hooks.settings.foreign import Answer

if TYPE_CHECKING:
    from llxprt_hooks.process import Completed

MAX_TEXT: Final = 10_000
"""Characters of one text that reach the model; of a longer one, it gets the beginning."""
_PREVIEW: Final = 2_000
_BLOCK: Final = 2
_BLOCKED: Final = "Blocked by hook"
_TEXT_EVENTS: Final = ("UserPromptSubmit", "SessionStart")
"""The events at which plain text is context for the model."""
BLOCKING_EVENTS: Final = ("PreToolUse", "UserPromptSubmit", "Stop", "SubagentStop", "PreCompact")
_AFTER_TOOL: Final = ("PostToolUse", "PostToolUseFailure")
_STDERR_TO_USER: Final = ("SessionStart", "SessionEnd")
_OUTPUT_FIELDS: Final = ("continue", "suppressOutput", "stopReason", "decision", "reason", "systemMessage",
                         "hookSpecificOutput", "async")  # fmt: skip

_NOT_JSON: Final = "printed something that looks like a JSON object but is not valid JSON"
_NOT_VALID: Final = "printed JSON that is not a valid answer"

Check = Callable[[Any], bool]


def _is(kind: type) -> Check:
    return lambda value: isinstance(value, kind)


def _one_of(*words: str) -> Check:
    return lambda value: value in words if isinstance(value, str) else False


_FIELDS: Final[Mapping[str, Check]] = {
    "continue": _is(bool),
    "suppressOutput": _is(bool),
    "stopReason": _is(str),
    "decision": _one_of("approve", "block"),
    "reason": _is(str),
    "systemMessage": _is(str),
    "hookSpecificOutput": _is(dict),
}
_SPECIFIC: Final[Mapping[str, Mapping[str, Check]]] = {
    "PreToolUse": {
        "permissionDecision": _one_of("allow", "deny", "ask", "defer"),
        "permissionDecisionReason": _is(str),
        "updatedInput": _is(dict),
        "additionalContext": _is(str),
    },
    "PermissionRequest": {
        "decision": lambda value: isinstance(value, dict) and value.get("behavior") in ("allow", "deny"),
    },
}
_ANY_SPECIFIC: Final[Mapping[str, Check]] = {"additionalContext": _is(str)}


class Spoken(NamedTuple):
    """A hook's run, in the product's names."""

    event: str
    command: str
    call: Shown
    """What the hook was told of the call."""
    own_tool: str = ""
    tool_input: object = None
    """The arguments, in our names."""
    prompt: str = ""


def read(spoken: Spoken, ended: Completed, *, is_remote: bool = False) -> Answer:
    """The native answer in the end of a process, or in a response that ``is_remote``."""
    if ended.timed_out:
        return Answer(error=f"timed out after {ended.timed_out_after:.15g} ms")
    if ended.stdout_cut:
        return Answer(error=f"wrote more to stdout than the limit of {len(ended.stdout)} bytes; none of it was used")
    stdout, stderr = decode_text(ended.stdout).strip(), decode_text(ended.stderr).strip()
    fields, mistake = _json(spoken.event, stdout)
    if ended.exit_code == _BLOCK and spoken.event != "PermissionRequest":
        return _exit_2(spoken, fields or {}, stderr)
    if fields is not None:
        return _from_json(spoken, fields)
    failed = "" if ended.exit_code == 0 else f"failed with non-blocking status {_code(ended)}: {_first_line(stderr)}"
    if mistake:
        return Answer(error=f"{mistake}; it {failed}" if failed else mistake)
    if failed:
        return Answer(error=failed)
    if is_remote and stdout:
        return Answer(error="got an answer that is not a JSON object")
    if stdout and spoken.event in _TEXT_EVENTS:
        return Answer(_context(stdout))
    return Answer()


def _code(ended: Completed) -> str:
    return ended.signal or ("unknown" if ended.exit_code is None else f"code {ended.exit_code}")


def _first_line(stderr: str) -> str:
    return stderr.partition("\n")[0] or "No stderr output"


def _json(event: str, stdout: str) -> tuple[Mapping[str, Any] | None, str]:
    """The fields in stdout if it is one JSON object, else None; and what is wrong if it should have been one."""
    if not (stdout.startswith("{") and stdout.endswith("}")):
        return None, ""
    try:
        value = read_json_text(stdout)
    except ValueError:
        return None, "" if _is_lines(stdout) else _NOT_JSON
    if not isinstance(value, dict):
        return None, _NOT_JSON
    wrong = next(_mistakes(event, value), None)
    return (value, "") if wrong is None else (None, f"{_NOT_VALID}: {wrong}")


def _is_lines(stdout: str) -> bool:
    """Whether these are several JSON documents without an answer among them, which are plain text."""
    try:
        documents = [read_json_text(line) for line in stdout.splitlines() if line.strip()]
    except ValueError:
        return False
    return not any(isinstance(each, dict) and any(name in each for name in _OUTPUT_FIELDS) for each in documents)


def _mistakes(event: str, fields: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"`{name}`" for name, fits in _FIELDS.items() if name in fields and not fits(fields[name]))
    specific = fields.get("hookSpecificOutput")
    if not isinstance(specific, dict):
        return
    if specific.get("hookEventName") != event:
        yield f"`hookSpecificOutput.hookEventName` must be {event}"
    declared = _SPECIFIC.get(event, _ANY_SPECIFIC)
    yield from (
        f"`hookSpecificOutput.{name}`"
        for name, fits in declared.items()
        if name in specific and not fits(specific[name])
    )


def _exit_2(spoken: Spoken, fields: Mapping[str, Any], stderr: str) -> Answer:
    to_user = str(fields.get("systemMessage") or "")
    if spoken.event in _STDERR_TO_USER:
        return Answer(None, to_user="\n".join(filter(None, (to_user, stderr))))
    reason = _blocking_reason(spoken.event, fields)
    if reason is None:
        reason = f"[{spoken.command}]: {stderr or 'No stderr output'}"
    return _blocked(spoken, reason)._replace(to_user=to_user)


def _blocking_reason(event: str, fields: Mapping[str, Any]) -> str | None:
    """The reason in JSON that blocks; None if it does not."""
    specific = fields.get("hookSpecificOutput") or {}
    if event == "PreToolUse":
        decision = specific.get("permissionDecision") or _LEGACY.get(fields.get("decision", ""))
        if decision != "deny":
            return None
        return specific.get("permissionDecisionReason") or fields.get("reason") or _BLOCKED
    return fields.get("reason") or _BLOCKED if fields.get("decision") == "block" else None


_LEGACY: Final = {"approve": "allow", "block": "deny"}


def _blocked(spoken: Spoken, reason: str) -> Answer:
    """The native answer for a block, with the words that the model, or the user, reads there."""
    event, reason = spoken.event, _capped(reason)
    if event == "PreToolUse":
        reason = f"PreToolUse:{spoken.call.name} hook error: {reason}"
        specific = {"permissionDecision": "deny", "permissionDecisionReason": reason}
        return Answer({"decision": "deny", "reason": reason, "hookSpecificOutput": specific})
    if event in _AFTER_TOOL:
        return Answer(_context(f"{event}:{spoken.call.name} hook feedback: {reason}"))
    if event == "UserPromptSubmit":
        reason = f"UserPromptSubmit operation blocked by hook:\n{reason}\n\n\nOriginal prompt: {spoken.prompt}"
    elif event in ("Stop", "SubagentStop"):
        reason = f"{event} hook feedback:\n{reason}"
    if event == "SubagentStop":
        return Answer(_context(reason))
    return Answer({"decision": "block", "reason": reason}) if event in BLOCKING_EVENTS else Answer()


def _from_json(spoken: Spoken, fields: Mapping[str, Any]) -> Answer:
    event, specific = spoken.event, fields.get("hookSpecificOutput") or {}
    if event == "PermissionRequest":
        return _permission(spoken, specific.get("decision") or {}, fields)
    reason = _blocking_reason(event, fields)
    context = specific.get("additionalContext") or ""
    if reason is None and event in ("Stop", "SubagentStop") and context:
        reason = context
    answer = Answer() if reason is None else _blocked(spoken, reason)
    native = dict(answer.fields or {})
    if event == "PreToolUse":
        if reason is None:
            answer = _permitted(spoken, fields, specific)
            native = dict(answer.fields or {})
        if context:
            answer = answer._replace(beside_result=_capped(context))
    elif context and event not in ("Stop", "SubagentStop", "PreCompact"):
        before = (native.get("hookSpecificOutput") or {}).get("additionalContext")
        native |= _context("\n".join(filter(None, (before, context))))
    if fields.get("continue") is False:
        native |= {"continue": False, "stopReason": fields.get("stopReason") or fields.get("reason") or _BLOCKED}
    to_user = fields.get("systemMessage") or ""
    return answer._replace(fields=native or None, to_user=to_user)


def _permitted(spoken: Spoken, fields: Mapping[str, Any], specific: Mapping[str, Any]) -> Answer:
    """The native answer of a hook that does not refuse the call."""
    decision = specific.get("permissionDecision") or _LEGACY.get(fields.get("decision", ""))
    native: dict[str, Any] = {}
    if decision is not None:
        # Nobody resumes a deferred call here: a person decides at once, or the call is denied.
        native["permissionDecision"] = "ask" if decision == "defer" else decision
        if text := specific.get("permissionDecisionReason") or fields.get("reason"):
            native["permissionDecisionReason"] = text
    updated = specific.get("updatedInput")
    if updated is None or decision == "defer":
        return Answer({"hookSpecificOutput": native} if native else None)
    try:
        native["tool_input"] = own_input(spoken.own_tool, spoken.tool_input, updated, spoken.call)
    except UnusableChangeError as error:
        return _blocked(spoken, f"the hook changed the call in a way that cannot be applied here: {error}")
    return Answer({"hookSpecificOutput": native}, whole_input=True)


def _permission(spoken: Spoken, decision: Mapping[str, Any], fields: Mapping[str, Any]) -> Answer:
    """The answer to the question whether a call may run: yes, perhaps with other arguments, or no."""
    behavior, to_user = decision.get("behavior"), str(fields.get("systemMessage") or "")
    native: dict[str, Any] = {}
    if behavior == "deny":
        reason = str(decision.get("message") or "Permission denied by hook")
        native = {"decision": "deny", "reason": _capped(reason)}
        if decision.get("interrupt") is True:
            native |= {"continue": False, "stopReason": reason}
    if fields.get("continue") is False:
        native |= {"continue": False, "stopReason": fields.get("stopReason") or _BLOCKED}
    if behavior == "allow":
        specific: dict[str, Any] = {"permissionDecision": "allow"}
        if isinstance(updated := decision.get("updatedInput"), dict):
            specific["updatedInput"] = updated
        return _permitted(spoken, {}, specific)._replace(to_user=to_user)
    return Answer(native or None, to_user=to_user)


def _context(text: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"additionalContext": _capped(text)}}


def _capped(text: str) -> str:
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[:_PREVIEW]}\n[{len(text)} characters, of which these are the first {_PREVIEW}]"
