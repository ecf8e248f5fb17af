"""The hooks of Codex CLI, as version 0.159 runs them.

Its answers look like Claude Code's and are read strictly: JSON counts at exit code 0 only, and an answer with a key or
a value that is not expected is a failure, with which the call goes ahead. Files are edited with one tool,
``apply_patch``, so every tool of ours that writes files is shown as that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from llxprt_hooks._support.json_codec import decode_text
from llxprt_hooks.dialects.patches import patch_key, patch_of
from llxprt_hooks.dialects.product import (
    NO_COMMAND,
    Event,
    Handler,
    Product,
    command_of,
    user_files,
    written_hooks,
)
from llxprt_hooks.dialects.replies import BLOCK, Reply, code_words, json_object, unfinished
from llxprt_hooks.dialects.tools import SHELL, SUBAGENT, WRITERS, Shown, Tool, ToolTable, UnusableChangeError
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.foreign import DialectFile, ReadFile
from llxprt_hooks.settings.levels import Level

if TYPE_CHECKING:
    from llxprt_hooks.dialects.product import Reader, Spoken
    from llxprt_hooks.process import Completed
    from llxprt_hooks.settings.document import Document
    from llxprt_hooks.settings.foreign import Answer

_FOLDER: Final = ".codex"
_NAMES: Final = ("hooks.json", "config.toml")
_FILE_KEYS: Final = ("description", "hooks")
_SECONDS: Final[Mapping[str, float]] = {"SessionEnd": 1}
"""How long hooks may take that do not say; of other events, 600 seconds."""
_MOST_SECONDS: Final = {"SessionEnd": 3}
_USUAL_SECONDS: Final = 600
_PATCH: Final = "apply_patch"
_EDITS: Final = ("Edit", "Write")
"""What matchers may call it, too."""
_TEXT_EVENTS: Final = ("SessionStart", "UserPromptSubmit")
"""The events at which plain text is context for the model."""
_JSON_EVENTS: Final = ("Stop", "SubagentStop")
"""The events at which other text than JSON is a failure."""
_BLOCKING: Final = ("PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SubagentStop")
_UNIVERSAL: Final[Mapping[str, type]] = {
    "continue": bool,
    "stopReason": str,
    "suppressOutput": bool,
    "systemMessage": str,
}
_DECIDING: Final[Mapping[str, type]] = {**_UNIVERSAL, "decision": str, "reason": str, "hookSpecificOutput": dict}
_KEYS: Final[Mapping[str, Mapping[str, type]]] = {
    "PreToolUse": _DECIDING,
    "PostToolUse": _DECIDING,
    "UserPromptSubmit": _DECIDING,
    "Stop": {**_UNIVERSAL, "decision": str, "reason": str},
    "SubagentStop": {**_UNIVERSAL, "decision": str, "reason": str},
    "SessionStart": {**_UNIVERSAL, "hookSpecificOutput": dict},
}
"""The keys of an answer, and the types of their values; of other events, the universal ones."""
_SPECIFIC: Final[Mapping[str, Mapping[str, type]]] = {
    "PreToolUse": {
        "permissionDecision": str,
        "permissionDecisionReason": str,
        "updatedInput": dict,
        "additionalContext": str,
    },
    "PostToolUse": {"additionalContext": str, "updatedMCPToolOutput": object},
}
_ANY_SPECIFIC: Final[Mapping[str, type]] = {"additionalContext": str}
_WORDS: Final = {"decision": ("block", "approve"), "permissionDecision": ("allow", "deny", "ask")}


class Codex(Product):
    """The dialect of Codex CLI."""

    name = "codex"
    title = "Codex CLI 0.159"
    events: ClassVar[Mapping[str, Event]] = {
        "PreToolUse": Event(HookEventName.BEFORE_TOOL),
        "PostToolUse": Event(HookEventName.AFTER_TOOL),
        "SubagentStop": Event(HookEventName.AFTER_TOOL, SUBAGENT.__eq__, tool=SUBAGENT, by_name=False),
        "UserPromptSubmit": Event(HookEventName.BEFORE_AGENT),
        "Stop": Event(HookEventName.AFTER_AGENT),
        "SessionStart": Event(HookEventName.SESSION_START),
        "SessionEnd": Event(HookEventName.SESSION_END),
        "PreCompact": Event(HookEventName.PRE_COMPRESS),
    }
    other_events = ("PermissionRequest", "PostCompact", "SubagentStart", "Interrupt")
    elsewhere: ClassVar[Mapping[str, str]] = {"prompt": "prompt", "agent": "prompt", "mcp_tool": "tool"}
    absent = ("state",)
    plain = re.compile(r"[A-Za-z0-9_|]*")
    words: ClassVar[Mapping[HookEventName, Mapping[str, str]]] = {
        HookEventName.SESSION_START: {"compress": "compact"},
        HookEventName.SESSION_END: {"exit": "other"},
    }
    tools = ToolTable(
        {
            SHELL: Tool("Bash"),
            SUBAGENT: Tool("spawn_agent", {"goal_prompt": "message"}, other_names=("Agent",)),
            _PATCH: Tool(_PATCH, {"patch": "command"}, other_names=_EDITS),
            **{name: Tool(_PATCH, other_names=_EDITS) for name in WRITERS if name != _PATCH},
        },
        viewed=(),
    )

    def files(self, project: Path) -> Sequence[DialectFile]:
        own = [DialectFile(project / _FOLDER / name, Level.PROJECT) for name in _NAMES]
        return [*own, *user_files(project, _FOLDER, *_NAMES, variable="CODEX_HOME")]

    def plugin(self, folder: Path) -> DialectFile:
        variables = dict.fromkeys(("PLUGIN_ROOT", "CLAUDE_PLUGIN_ROOT"), str(folder))
        return DialectFile(folder / "hooks" / "hooks.json", Level.USER, variables, is_plugin=True)

    def read_file(self, document: Document) -> ReadFile:
        root, off = document.root, None
        if document.file.suffix != ".toml":
            unknown = [key for key in root.fields if key not in _FILE_KEYS]
            if unknown:
                why = f"`{unknown[0]}` is not expected here, so none of the hooks in this file are used"
                return ReadFile({}, gaps=[(root.fields[unknown[0]].key_start, why)])
        for key in ("hooks", "codex_hooks"):
            feature = root.at("features", key)
            off = True if feature is not None and feature.scalar is False else off
        return ReadFile(written_hooks(document), off=off)

    def handler(self, event: str, hook: Mapping[str, Any], reader: Reader) -> Handler | str:
        command = command_of(hook, "command")
        milliseconds = reader.milliseconds(hook.get("timeout"), _SECONDS.get(event, _USUAL_SECONDS) * 1000)
        milliseconds = min(milliseconds, _MOST_SECONDS.get(event, milliseconds) * 1000)
        background = hook.get("async") is True
        return NO_COMMAND if command is None else Handler(command, milliseconds, background=background)

    def shown(self, spoken: Spoken) -> Shown:
        """The call: of the shell its command, of a tool that writes files a patch."""
        given = spoken.get("tool_input")
        fields = given if isinstance(given, Mapping) else {}
        if spoken.tool_name == SHELL:
            return Shown("Bash", {"command": fields.get("command", "")})
        if spoken.tool_name in WRITERS:
            return Shown(_PATCH, {"command": patch_of(spoken.tool_name, fields)})
        return spoken.call

    def own_input(self, spoken: Spoken, changed: Mapping[str, Any]) -> dict[str, Any]:
        """Only what a hook was shown can be changed: everything else stays."""
        given, command = spoken.get("tool_input"), changed.get("command")
        fields = dict(given) if isinstance(given, Mapping) else {}
        if spoken.tool_name == SHELL:
            return {**fields, "command": command} if isinstance(command, str) else fields
        if spoken.tool_name not in WRITERS or command == self.shown(spoken).arguments["command"]:
            return fields if spoken.tool_name in WRITERS else super().own_input(spoken, changed)
        name = patch_key(fields)
        if spoken.tool_name != _PATCH or name is None or not isinstance(command, str):
            raise UnusableChangeError(f"the tool {spoken.tool_name} takes no patch")
        return {**fields, name: command}

    def payload(self, spoken: Spoken) -> Mapping[str, Any]:
        event, session = spoken.event, spoken.get("session_id")
        is_in_turn = event not in ("SessionStart", "SessionEnd")
        return {
            "session_id": session,
            **({"turn_id": session} if is_in_turn else {}),
            "transcript_path": spoken.get("transcript_path") or None,
            **({"agent_transcript_path": None} if event == "SubagentStop" else {}),
            "cwd": spoken.directory,
            "hook_event_name": event,
            "model": "",
            **({} if event == "PreCompact" else {"permission_mode": spoken.permission_mode}),
            **dict(self._own_fields(spoken)),
        }

    def _own_fields(self, spoken: Spoken) -> Iterator[tuple[str, Any]]:
        event = spoken.event
        if event in ("PreToolUse", "PostToolUse"):
            call = self.shown(spoken)
            yield from (("tool_name", call.name), ("tool_input", call.arguments))
            if event == "PostToolUse":
                yield "tool_response", spoken.error or spoken.result
            yield "tool_use_id", spoken.get("tool_use_id") or "call"
        elif event == "UserPromptSubmit":
            yield "prompt", spoken.get("prompt")
        elif event == "SubagentStop":
            yield from (("stop_hook_active", False), ("agent_id", spoken.get("tool_use_id") or "agent"))
            yield from (("agent_type", spoken.agent_type), ("last_assistant_message", spoken.result or None))
        elif event == "Stop":
            yield "stop_hook_active", spoken.get("stop_hook_active") is True
            yield "last_assistant_message", spoken.get("prompt_response") or None
        else:
            yield spoken.native.spec.matched_field, spoken.word

    def answer(self, spoken: Spoken, ended: Completed) -> Answer:
        reply = Reply(spoken.native)
        if (why := unfinished(ended)) is not None:
            return reply.answer(why)
        stdout, stderr = decode_text(ended.stdout).strip(), decode_text(ended.stderr).strip()
        if ended.exit_code == BLOCK and spoken.event in _BLOCKING:
            if not stderr:
                return reply.answer("exited with code 2 and wrote no reason to stderr, so it blocks nothing")
            return _blocked(spoken, reply, stderr).answer()
        if ended.exit_code != 0:
            return reply.answer(code_words(ended))
        if not stdout:
            return reply.answer()
        fields = json_object(stdout)
        if fields is not None:
            return self._from_json(spoken, fields)
        if stdout[0] in "{[" or spoken.event in _JSON_EVENTS:
            return reply.answer("printed something that is not a valid answer")
        return reply.context(stdout if spoken.event in _TEXT_EVENTS else None).answer()

    def _from_json(self, spoken: Spoken, fields: Mapping[str, Any]) -> Answer:
        event, reply = spoken.event, Reply(spoken.native).tell(fields.get("systemMessage"))
        specific = fields.get("hookSpecificOutput") or {}
        if (mistake := next(_mistakes(event, fields), None)) is not None:
            return reply.answer(f"printed JSON that is not a valid answer: {mistake}")
        if event == "PreToolUse":
            reason = specific.get("permissionDecisionReason") if "permissionDecision" in specific else None
            if specific.get("permissionDecision") == "deny" or fields.get("decision") == "block":
                reply.block((reason or fields.get("reason") or "").strip())
            elif "updatedInput" in specific:
                spoken.change(reply, specific["updatedInput"], whole=True)
        elif fields.get("decision") == "block" and fields.get("continue") is not False:
            _blocked(spoken, reply, fields["reason"].strip())
        if fields.get("continue") is False:
            reply.stop(fields.get("stopReason") or f"{event} hook stopped execution")
        return reply.context(specific.get("additionalContext")).answer()


def _blocked(spoken: Spoken, reply: Reply, reason: str) -> Reply:
    return reply.context(reason) if spoken.event == "SubagentStop" else reply.block(reason)


_MISTAKES: Final[Sequence[tuple[str, Callable[[Mapping[str, Any], Mapping[str, Any]], bool]]]] = (
    ("`continue: false` has no effect before a tool", lambda top, own: top.get("continue") is False),
    ("`stopReason` has no effect before a tool", lambda top, own: "stopReason" in top),
    ("`suppressOutput` has no effect before a tool", lambda top, own: top.get("suppressOutput") is True),
    ("`updatedInput` needs the permission allow", lambda top, own: "updatedInput" in own and not _says(own, "allow")),
    ("the permission ask does not exist", lambda top, own: _says(own, "ask")),
    ("a denial needs a reason", lambda top, own: _says(own, "deny") and not _text(own, "permissionDecisionReason")),
    ("the decision approve does not exist", lambda top, own: top.get("decision") == "approve"),
)
"""What a hook before a tool must not say."""


def _says(own: Mapping[str, Any], word: str) -> bool:
    return own.get("permissionDecision") == word


def _text(fields: Mapping[str, Any], name: str) -> str:
    return str(fields.get(name) or "").strip()


def _mistakes(event: str, fields: Mapping[str, Any]) -> Iterator[str]:
    yield from _wrong(fields, _KEYS.get(event, _UNIVERSAL), "")
    specific = fields.get("hookSpecificOutput")
    own = specific if isinstance(specific, Mapping) else {}
    if specific is not None:
        declared = {**_SPECIFIC.get(event, _ANY_SPECIFIC), "hookEventName": str}
        yield from _wrong(own, declared, "hookSpecificOutput.")
        if own.get("hookEventName") != event:
            yield f"`hookSpecificOutput.hookEventName` must be {event}"
    if event == "PreToolUse":
        yield from (words for words, is_wrong in _MISTAKES if is_wrong(fields, own))
    elif event == "PostToolUse" and fields.get("suppressOutput") is True:
        yield "`suppressOutput` has no effect after a tool"
    if event == "PostToolUse" and "updatedMCPToolOutput" in own:
        yield "`updatedMCPToolOutput` does not exist"
    if fields.get("decision") == "block" and not _text(fields, "reason"):
        yield "a block needs a reason"


def _wrong(fields: Mapping[str, Any], declared: Mapping[str, type], where: str) -> Iterator[str]:
    for name, value in fields.items():
        if name not in declared:
            yield f"`{where}{name}` is not expected"
        elif value is not None and not (isinstance(value, declared[name]) and value in _WORDS.get(name, (value,))):
            yield f"`{where}{name}`"


DIALECT: Final = Codex()
