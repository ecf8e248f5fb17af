"""What hooks of Claude Code get, in the order of its fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks._support.stamps import new_id
from llxprt_hooks.dialects.claude.tools import shown_response

if TYPE_CHECKING:
    from llxprt_hooks.dialects.product import Spoken

_TOOL_EVENTS: Final = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest")
_EVENTS_WITH_MODE: Final = (*_TOOL_EVENTS, "UserPromptSubmit", "Stop", "SubagentStop")


def payload(spoken: Spoken) -> Mapping[str, Any]:
    event, situation = spoken.event, spoken.situation
    fields: dict[str, Any] = {
        "session_id": spoken.get("session_id"),
        "transcript_path": situation.transcript or spoken.get("transcript_path"),
        "cwd": spoken.directory,
    }
    if situation.prompt_id:
        fields["prompt_id"] = situation.prompt_id
    if event in _EVENTS_WITH_MODE:
        fields["permission_mode"] = spoken.permission_mode
    own = _tool_fields(spoken) if event in _TOOL_EVENTS else _event_fields(spoken)
    return {**fields, "hook_event_name": event, **own}


def _tool_fields(spoken: Spoken) -> Mapping[str, Any]:
    call, event = spoken.call, spoken.event
    fields: dict[str, Any] = {"tool_name": call.name, "tool_input": call.arguments}
    if event == "PermissionRequest":
        return {**fields, "permission_suggestions": []}
    call_id = {"tool_use_id": spoken.get("tool_use_id") or f"toolu_{new_id()}"}
    if event == "PreToolUse":
        return {**fields, **call_id}
    duration = {"duration_ms": spoken.milliseconds}
    if event == "PostToolUseFailure":
        return {**fields, **call_id, "error": spoken.error, "is_interrupt": False, **duration}
    response = shown_response(spoken.tool_name, call, spoken.response, spoken.milliseconds)
    return {**fields, "tool_response": response, **call_id, **duration}


def _event_fields(spoken: Spoken) -> Mapping[str, Any]:
    event = spoken.event
    if event == "UserPromptSubmit":
        return {"prompt": spoken.get("prompt")}
    if event == "Stop":
        return _stop_fields(spoken.get("stop_hook_active") is True, str(spoken.get("prompt_response")))
    if event == "SubagentStop":
        own = {"agent_id": f"a{new_id()}", "agent_type": spoken.agent_type, "agent_transcript_path": ""}
        return {**_stop_fields(False, spoken.result), **own}
    if event == "PreCompact":
        return {"trigger": spoken.word, "custom_instructions": "" if spoken.word == "manual" else None}
    if event == "Notification":
        return {"message": spoken.get("message"), "notification_type": spoken.word}
    return {spoken.native.spec.matched_field: spoken.word}  # the source of a session, or the reason of its end


def _stop_fields(active: bool, text: str) -> dict[str, Any]:
    return {"stop_hook_active": active, "last_assistant_message": text, "background_tasks": [], "session_crons": []}
