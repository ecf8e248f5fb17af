"""What a hook of another agent wants, collected and said in native terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks._support.json_codec import read_json_text
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.foreign import Answer

if TYPE_CHECKING:
    from llxprt_hooks.process import Completed

BLOCK: Final = 2
"""The exit code that blocks."""
BLOCKED: Final = "Blocked by hook"
"""The reason of a hook that gives none."""


class Reply:
    """A native answer in the making."""

    def __init__(self, event_name: HookEventName) -> None:
        self._event = event_name
        self._fields: dict[str, Any] = {}
        self._specific: dict[str, Any] = {}
        self._beside: list[str] = []
        self._to_user: list[str] = []
        self._whole = False

    def block(self, reason: str) -> Reply:
        """Refuse the call or prompt; after a tool, replace its result; at the end of a turn, go on."""
        self._fields |= {"decision": "deny" if self._event is HookEventName.BEFORE_TOOL else "block", "reason": reason}
        if self._event is HookEventName.BEFORE_TOOL:
            self._specific |= {"permissionDecision": "deny", "permissionDecisionReason": reason}
        return self

    def permit(self, word: str, reason: str = "") -> Reply:
        """Let a person decide (``ask``), or answer for one (``allow``)."""
        self._specific |= {"permissionDecision": word, **({"permissionDecisionReason": reason} if reason else {})}
        return self

    def stop(self, reason: str) -> Reply:
        """End the agent's turn."""
        self._fields |= {"continue": False, "stopReason": reason}
        return self

    def context(self, text: object) -> Reply:
        """Add text for the model; before a tool runs, it goes with the result."""
        if isinstance(text, str) and text and self._event is HookEventName.BEFORE_TOOL:
            self._beside.append(text)
        elif isinstance(text, str) and text:
            before = self._specific.get("additionalContext")
            self._specific["additionalContext"] = f"{before}\n{text}" if before else text
        return self

    def change(self, arguments: Mapping[str, Any], *, whole: bool) -> Reply:
        """Change arguments, or replace them all."""
        self._specific["tool_input"], self._whole = dict(arguments), whole
        return self

    def replace(self, text: str) -> Reply:
        """Put text in the place of a tool's result."""
        self._specific["tool_response"] = text
        return self

    def tell(self, text: object) -> Reply:
        """Say something to the user."""
        if isinstance(text, str) and text:
            self._to_user.append(text)
        return self

    def answer(self, error: str | None = None) -> Answer:
        fields = {**self._fields, **({"hookSpecificOutput": self._specific} if self._specific else {})}
        return Answer(fields or None, error, self._whole, "\n\n".join(self._beside), "\n".join(self._to_user))


def unfinished(ended: Completed) -> str | None:
    """Why a process has no answer, as the end of a sentence that starts with the hook; None if it may have one."""
    if ended.timed_out:
        return f"timed out after {ended.timed_out_after:.15g} ms"
    if ended.stdout_cut:
        return f"wrote more to stdout than the limit of {len(ended.stdout)} bytes; none of it was used"
    return None


def code_words(ended: Completed) -> str:
    """How a process ended that failed, as the end of a sentence that starts with the hook."""
    how = ended.signal or ("an unknown status" if ended.exit_code is None else f"code {ended.exit_code}")
    return f"failed with {how}"


def json_object(text: str) -> Mapping[str, Any] | None:
    """The JSON object in a text; None if the text is something else."""
    if "{" not in text:
        return None
    try:
        value = read_json_text(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def text_field(fields: Mapping[str, Any], *names: str) -> str:
    """The first of these fields that is a text; empty if none is."""
    return next((value for name in names if isinstance(value := fields.get(name), str) and value), "")
