"""What Claude Code makes of a hook's exit code and streams, as a native answer (recorded of version 2.1.285).

JSON is read whatever the exit code is. Exit code 2 blocks even if the JSON allows. Any other code is a failure only if
there is no JSON. Plain text counts at two events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks._support.json_codec import decode_text, read_json_text
from llxprt_hooks.dialects.replies import BLOCK, BLOCKED, Reply, unfinished

if TYPE_CHECKING:
    from llxprt_hooks.dialects.product import Spoken
    from llxprt_hooks.process import Completed
    from llxprt_hooks.settings.foreign import Answer

MAX_TEXT: Final = 10_000
"""Characters of one text that reach the model; of a longer one, it gets the beginning."""
_PREVIEW: Final = 2_000
_TEXT_EVENTS: Final = ("UserPromptSubmit", "SessionStart")
"""The events at which plain text is context for the model."""
BLOCKING_EVENTS: Final = ("PreToolUse", "UserPromptSubmit", "Stop", "SubagentStop", "PreCompact")
_AFTER_TOOL: Final = ("PostToolUse", "PostToolUseFailure")
_ENDS: Final = ("Stop", "SubagentStop")
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


def read(spoken: Spoken, ended: Completed) -> Answer:
    """The native answer in the end of a process, or in a response."""
    reply = Reply(spoken.native)
    if (why := unfinished(ended)) is not None:
        return reply.answer(why)
    stdout, stderr = decode_text(ended.stdout).strip(), decode_text(ended.stderr).strip()
    fields, mistake = _json(spoken.event, stdout)
    if ended.exit_code == BLOCK and spoken.event != "PermissionRequest":
        return _exit_2(spoken, reply, fields or {}, stderr)
    if fields is not None:
        return _from_json(spoken, reply, fields)
    failed = "" if ended.exit_code == 0 else f"failed with non-blocking status {_code(ended)}: {_first_line(stderr)}"
    if mistake:
        return reply.answer(f"{mistake}; it {failed}" if failed else mistake)
    if failed:
        return reply.answer(failed)
    if spoken.hook.is_remote and stdout:
        return reply.answer("got an answer that is not a JSON object")
    return reply.context(_capped(stdout) if spoken.event in _TEXT_EVENTS else None).answer()


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


def _exit_2(spoken: Spoken, reply: Reply, fields: Mapping[str, Any], stderr: str) -> Answer:
    reply.tell(fields.get("systemMessage"))
    if spoken.event in _STDERR_TO_USER:
        return reply.tell(stderr).answer()
    reason = _blocking_reason(spoken.event, fields)
    return _block(spoken, reply, reason or f"[{spoken.hook.command}]: {stderr or 'No stderr output'}").answer()


def _blocking_reason(event: str, fields: Mapping[str, Any]) -> str | None:
    """The reason in JSON that blocks; None if it does not."""
    specific = fields.get("hookSpecificOutput") or {}
    if event == "PreToolUse":
        decision = specific.get("permissionDecision") or _LEGACY.get(fields.get("decision", ""))
        if decision != "deny":
            return None
        return specific.get("permissionDecisionReason") or fields.get("reason") or BLOCKED
    return fields.get("reason") or BLOCKED if fields.get("decision") == "block" else None


_LEGACY: Final = {"approve": "allow", "block": "deny"}


def _block(spoken: Spoken, reply: Reply, reason: str) -> Reply:
    """Block, with the words that the model, or the user, reads there."""
    event, reason = spoken.event, _capped(reason)
    if event == "PreToolUse":
        return reply.block(f"PreToolUse:{spoken.call.name} hook error: {reason}")
    if event in _AFTER_TOOL:
        return reply.context(_capped(f"{event}:{spoken.call.name} hook feedback: {reason}"))
    if event == "UserPromptSubmit":
        reason = f"UserPromptSubmit operation blocked by hook:\n{reason}\n\n\nOriginal prompt: {spoken.get('prompt')}"
    elif event in _ENDS:
        reason = f"{event} hook feedback:\n{reason}"
    if event == "SubagentStop":
        return reply.context(_capped(reason))
    return reply.block(reason) if event in BLOCKING_EVENTS else reply


def _from_json(spoken: Spoken, reply: Reply, fields: Mapping[str, Any]) -> Answer:
    event, specific = spoken.event, fields.get("hookSpecificOutput") or {}
    reply.tell(fields.get("systemMessage"))
    context = specific.get("additionalContext") or ""
    reason = _blocking_reason(event, fields) or (context if event in _ENDS else "")
    if event == "PermissionRequest":
        _permission(spoken, reply, specific.get("decision") or {})
    elif reason:
        _block(spoken, reply, reason)
    elif event == "PreToolUse":
        decision = specific.get("permissionDecision") or _LEGACY.get(fields.get("decision", ""))
        if decision is not None:
            # Nobody resumes a deferred call here: a person decides at once, or the call is denied.
            reason = specific.get("permissionDecisionReason") or fields.get("reason") or ""
            reply.permit("ask" if decision == "defer" else decision, reason)
        if decision != "defer":
            spoken.change(reply, specific.get("updatedInput"), whole=True)
    if event not in (*_ENDS, "PreCompact"):
        reply.context(_capped(context))
    if fields.get("continue") is False:
        reply.stop(fields.get("stopReason") or fields.get("reason") or BLOCKED)
    return reply.answer()


def _permission(spoken: Spoken, reply: Reply, decision: Mapping[str, Any]) -> None:
    """Answer the question whether a call may run: yes, perhaps with other arguments, or no."""
    if decision.get("behavior") == "deny":
        reason = str(decision.get("message") or "Permission denied by hook")
        reply.block(_capped(reason))
        if decision.get("interrupt") is True:
            reply.stop(reason)
    elif decision.get("behavior") == "allow":
        reply.permit("allow")
        spoken.change(reply, decision.get("updatedInput"), whole=True)


def _capped(text: str) -> str:
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[:_PREVIEW]}\n[{len(text)} characters, of which these are the first {_PREVIEW}]"
