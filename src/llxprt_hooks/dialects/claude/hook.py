"""One hook of Claude Code: the payload that it gets, its environment, and its answer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from llxprt_hooks._support.stamps import new_id
from llxprt_hooks.dialects.claude.answers import Spoken, read
from llxprt_hooks.dialects.claude.rules import WORDS, holds, matching_name
from llxprt_hooks.dialects.claude.tools import (
    Shown,
    failure_of,
    shown_call,
    shown_parts,
    shown_response,
    text_of,
)
from llxprt_hooks.events import HookEventName

if TYPE_CHECKING:
    from llxprt_hooks.process import Completed
    from llxprt_hooks.settings.foreign import Answer, Situation

NAME: Final = "claude"

EVENTS: Final[Mapping[str, HookEventName]] = {
    "PreToolUse": HookEventName.BEFORE_TOOL,
    "PostToolUse": HookEventName.AFTER_TOOL,
    "PostToolUseFailure": HookEventName.AFTER_TOOL,
    "UserPromptSubmit": HookEventName.BEFORE_AGENT,
    "Stop": HookEventName.AFTER_AGENT,
    "SubagentStop": HookEventName.AFTER_TOOL,
    "SessionStart": HookEventName.SESSION_START,
    "SessionEnd": HookEventName.SESSION_END,
    "PreCompact": HookEventName.PRE_COMPRESS,
    "Notification": HookEventName.NOTIFICATION,
    "PermissionRequest": HookEventName.BEFORE_TOOL,
}
"""Its events that exist here. The end of a subagent is that of a call of our tool ``task``; PermissionRequest is the
question whether a call may run."""

_TOOL_EVENTS: Final = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest")
SUBAGENT_STOP: Final = "SubagentStop"
PERMISSION_REQUEST: Final = "PermissionRequest"
_SUBAGENT_TOOL: Final = "task"
_MODES: Final[Mapping[str, str]] = {"auto_edit": "acceptEdits", "yolo": "bypassPermissions"}
_EVENTS_WITH_MODE: Final = (*_TOOL_EVENTS, "UserPromptSubmit", "Stop", "SubagentStop")


class ClaudeHook(NamedTuple):
    """What Claude Code knows about one of its hooks."""

    command: str
    """As it is written, for the reasons that name it."""
    event: str | None = None
    """The event of the settings; None if they are native, and so is their event."""
    matcher: str = ""
    rule: str | None = None
    background: bool = False
    variables: Mapping[str, str] = {}
    root: str = ""
    """The folder that paths in ``rule`` are relative to; empty: the project."""
    origin: str = ""
    """The plugin, whose copy of a hook is another one."""
    is_remote: bool = False
    """Whether its answer is the body of a response, instead of the streams of a process."""
    part: Shown | None = None
    """The part of a call that it is for; None: all of it."""

    @property
    def dialect(self) -> str:
        return NAME

    @property
    def folder(self) -> str:
        return ""

    @property
    def view(self) -> str:
        if self.part is not None:
            return f"{self._moment} {self.part.name} {self.part.arguments['file_path']}"
        return self._moment or NAME

    @property
    def _moment(self) -> str:
        """Its event, if ours happens at another moment too."""
        return self.event if self.event in (SUBAGENT_STOP, PERMISSION_REQUEST) else ""

    @property
    def key(self) -> str:
        return f"{NAME}:{self.event}:{self.matcher}:{self.rule}:{self.origin}"

    def runs_for(self, event_name: HookEventName, hook_input: Mapping[str, Any]) -> Sequence[ClaudeHook]:
        event = _event(event_name, hook_input, self._moment)
        if self.event is not None and event != self.event:
            return ()
        if event == SUBAGENT_STOP and not matching_name(self.matcher)(_agent_type(hook_input)):
            return ()
        if not event_name.spec.is_about_tool:
            return (self,) if self.rule is None else ()
        directory = str(hook_input.get("cwd", ""))
        parts = shown_parts(str(hook_input.get("tool_name", "")), hook_input.get("tool_input"), directory)
        if not parts:
            return (self,) if self.rule is None or self._holds(self._call(hook_input, directory), directory) else ()
        is_for = matching_name(self.matcher if self.event is not None else None)
        calls = (next((call for call in part if is_for(call.name)), None) for part in parts)
        return [self._replace(part=call) for call in calls if call is not None and self._holds(call, directory)]

    def _holds(self, call: Shown, directory: str) -> bool:
        return self.rule is None or holds(self.rule, call.name, call.arguments, directory, self.root or directory)

    def _call(self, hook_input: Mapping[str, Any], directory: str) -> Shown:
        own = str(hook_input.get("tool_name", ""))
        return self.part or shown_call(own, hook_input.get("tool_input"), directory)

    def payload(
        self, event_name: HookEventName, hook_input: Mapping[str, Any], situation: Situation
    ) -> Mapping[str, Any]:
        event = _event(event_name, hook_input, self._moment)
        fields: dict[str, Any] = {
            "session_id": hook_input.get("session_id", ""),
            "transcript_path": situation.transcript or hook_input.get("transcript_path", ""),
            "cwd": hook_input.get("cwd") or situation.directory,
        }
        if situation.prompt_id:
            fields["prompt_id"] = situation.prompt_id
        if event in _EVENTS_WITH_MODE:
            fields["permission_mode"] = _MODES.get(situation.approval_mode, "default")
        fields["hook_event_name"] = event
        if event in _TOOL_EVENTS:
            return {**fields, **_tool_fields(event, hook_input, self._call(hook_input, situation.directory))}
        return {**fields, **_event_fields(event, hook_input)}

    def environment(self, payload: Mapping[str, Any]) -> Mapping[str, str]:
        return {
            "CLAUDECODE": "1",
            "CLAUDE_CODE_ENTRYPOINT": "sdk-cli",
            "CLAUDE_CODE_SESSION_ID": str(payload["session_id"]),
            "CLAUDE_CODE_CHILD_SESSION": "1",
            "CLAUDE_PID": str(os.getpid()),
            **self.variables,
        }

    def read(
        self, event_name: HookEventName, hook_input: Mapping[str, Any], situation: Situation, ended: Completed
    ) -> Answer:
        event = _event(event_name, hook_input, self._moment)
        spoken = Spoken(
            event,
            self.command,
            call=self._call(hook_input, situation.directory),
            own_tool=str(hook_input.get("tool_name", "")),
            tool_input=hook_input.get("tool_input"),
            prompt=str(hook_input.get("prompt", "")),
        )
        return read(spoken, ended, is_remote=self.is_remote)


def _event(event_name: HookEventName, hook_input: Mapping[str, Any], moment: str) -> str:
    """What Claude Code calls a native event at that moment; empty if there is no such event for these hooks."""
    if moment == PERMISSION_REQUEST:
        return moment
    if event_name is not HookEventName.AFTER_TOOL:
        return _NAMES.get(event_name, event_name.value)
    tool = str(hook_input.get("tool_name", ""))
    if moment:
        return SUBAGENT_STOP if tool == _SUBAGENT_TOOL else ""
    failed = failure_of(tool, _response(hook_input)) is not None
    return "PostToolUseFailure" if failed else "PostToolUse"


_NAMES: Final = {event: name for name, event in reversed(list(EVENTS.items())) if event is not HookEventName.AFTER_TOOL}


def _response(hook_input: Mapping[str, Any]) -> Mapping[str, Any]:
    response = hook_input.get("tool_response")
    return response if isinstance(response, Mapping) else {}


def _event_fields(event: str, hook_input: Mapping[str, Any]) -> Mapping[str, Any]:
    if event == "UserPromptSubmit":
        return {"prompt": hook_input.get("prompt", "")}
    if event == "Stop":
        return _stop_fields(hook_input.get("stop_hook_active") is True, str(hook_input.get("prompt_response", "")))
    if event == "SubagentStop":
        return _subagent_fields(hook_input)
    if event == "SessionStart":
        return {"source": _word(HookEventName.SESSION_START, hook_input.get("source"))}
    if event == "SessionEnd":
        return {"reason": _word(HookEventName.SESSION_END, hook_input.get("reason"))}
    if event == "PreCompact":
        trigger = hook_input.get("trigger")
        return {"trigger": trigger, "custom_instructions": "" if trigger == "manual" else None}
    if event == "Notification":
        kind = _word(HookEventName.NOTIFICATION, hook_input.get("notification_type"))
        return {"message": hook_input.get("message", ""), "notification_type": kind}
    own = HookEventName(event).spec.fields if event in set(HookEventName) else {}
    return {name: hook_input[name] for name in own if name in hook_input}


def _tool_fields(event: str, hook_input: Mapping[str, Any], call: Shown) -> Mapping[str, Any]:
    own_name = str(hook_input.get("tool_name", ""))
    fields: dict[str, Any] = {"tool_name": call.name, "tool_input": call.arguments}
    if event == PERMISSION_REQUEST:
        return {**fields, "permission_suggestions": []}
    call_id = {"tool_use_id": hook_input.get("tool_use_id") or f"toolu_{new_id()}"}
    duration = hook_input.get("duration_ms")
    milliseconds = duration if isinstance(duration, int) else 0
    if event == "PreToolUse":
        return {**fields, **call_id}
    if event == "PostToolUseFailure":
        error = failure_of(own_name, _response(hook_input))
        return {**fields, **call_id, "error": error, "is_interrupt": False, "duration_ms": milliseconds}
    response = shown_response(own_name, call, _response(hook_input), milliseconds)
    return {**fields, "tool_response": response, **call_id, "duration_ms": milliseconds}


def _stop_fields(active: bool, text: str) -> dict[str, Any]:
    return {"stop_hook_active": active, "last_assistant_message": text, "background_tasks": [], "session_crons": []}


def _subagent_fields(hook_input: Mapping[str, Any]) -> Mapping[str, Any]:
    own = {"agent_id": f"a{new_id()}", "agent_type": _agent_type(hook_input), "agent_transcript_path": ""}
    return {**_stop_fields(False, text_of(_response(hook_input))), **own}


def _agent_type(hook_input: Mapping[str, Any]) -> str:
    given = hook_input.get("tool_input")
    kind = given.get("subagent_name") if isinstance(given, Mapping) else None
    return str(kind or "general-purpose")


def _word(event_name: HookEventName, value: object) -> object:
    return WORDS[event_name].get(str(value), value)
