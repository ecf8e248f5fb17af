"""The eleven moments in an agent's life at which hooks run, and what is told at each of them."""

from __future__ import annotations

from enum import StrEnum


class HookEventName(StrEnum):
    """An event, by the name that settings files and payloads use."""

    BEFORE_TOOL = "BeforeTool"
    AFTER_TOOL = "AfterTool"
    BEFORE_AGENT = "BeforeAgent"
    AFTER_AGENT = "AfterAgent"
    BEFORE_MODEL = "BeforeModel"
    AFTER_MODEL = "AfterModel"
    BEFORE_TOOL_SELECTION = "BeforeToolSelection"
    SESSION_START = "SessionStart"
    SESSION_END = "SessionEnd"
    PRE_COMPRESS = "PreCompress"
    NOTIFICATION = "Notification"


class SessionStartSource(StrEnum):
    """How a session came to be."""

    STARTUP = "startup"
    RESUME = "resume"
    CLEAR = "clear"
    COMPRESS = "compress"


class SessionEndReason(StrEnum):
    """Why a session ended."""

    EXIT = "exit"
    CLEAR = "clear"
    LOGOUT = "logout"
    PROMPT_INPUT_EXIT = "prompt_input_exit"
    OTHER = "other"


class PreCompressTrigger(StrEnum):
    """Who asked for the conversation to be compressed."""

    MANUAL = "manual"
    AUTO = "auto"


class NotificationType(StrEnum):
    """What a notification is about."""

    TOOL_PERMISSION = "ToolPermission"


CAN_BLOCK = frozenset({HookEventName.BEFORE_TOOL, HookEventName.BEFORE_MODEL})
"""The in-scope events whose callers honour a block (HOOK-177 to 181); elsewhere it only ends a sequential chain."""
