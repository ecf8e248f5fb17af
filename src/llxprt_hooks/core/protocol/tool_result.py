"""The result of a tool, for the model and for the user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)  # not frozen: making one would take three times as long, also for a call without hooks
class ToolResult:
    """The result of a tool call, for the model and for the user."""

    llm_content: Any = ""
    """For the model: a string, which ends with the text that hooks added, or the SDK's parts."""
    return_display: Any = ""
    """For the user, unless ``suppress_display`` is true. The model still gets ``llm_content``."""
    metadata: dict[str, Any] | None = None
    """The tool's own."""
    error: Any = None
    """The tool's own, or a dict with the ``message`` and the ``type`` of a refusal.

    The type is ``hook_blocked`` if a hook blocked the tool, ``hook_stopped`` if a hook stopped the agent before the
    tool ran, and ``restricted`` if the restriction did not allow the tool.
    """
    suppress_display: bool = False
    stop_reason: str | None = None
    """If it is not None, end the loop and show it to the user."""
    additions: list[str] = field(default_factory=list)
    """The texts that hooks added for the model.

    They are already at the end of ``llm_content`` if that is a string or a list of google-genai's parts (D-40).
    Content of any other type does not change, and the caller passes the texts on.
    """
    decided_by: tuple[str, ...] = field(default=(), compare=False)
    """The hooks that blocked the call or stopped the agent."""
    replaced: bool = field(default=False, compare=False)
    """Whether hooks put this in the place of what the tool returned."""

    @property
    def own_content(self) -> Any:
        """The content for the model without what hooks added to it."""
        if not isinstance(self.llm_content, str):
            return self.llm_content
        return self.llm_content.removesuffix("".join(f"\n\n{addition}" for addition in self.additions))

    @classmethod
    def failure(cls, message: str, kind: str | None = None) -> ToolResult:
        """Return the result of a call that did not run or did not succeed; model and user get the same message."""
        error = {"message": message} if kind is None else {"message": message, "type": kind}
        return cls(llm_content=message, return_display=message, error=error)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as AfterTool hooks see it (HOOK-026)."""
        fields = {
            "llmContent": self.llm_content,
            "returnDisplay": self.return_display,
            "metadata": self.metadata or {},
        }
        return fields if self.error is None else {**fields, "error": self.error}


RESULT_FIELDS: Mapping[str, str] = {
    "llmContent": "llm_content",
    "returnDisplay": "return_display",
    "metadata": "metadata",
    "error": "error",
}
"""The fields of a result as hooks see them."""


def with_text(llm_content: Any, text: str) -> Any:
    """Append text to content that is text or a list of google-genai's parts; anything else stays as it is (D-40)."""
    if llm_content is None:
        return text
    if isinstance(llm_content, str):
        return llm_content + text
    return [*llm_content, {"text": text}] if _is_list_of_parts(llm_content) else llm_content


def _is_list_of_parts(content: object) -> bool:
    return isinstance(content, list) and bool(content) and all(map(_is_part, content))


def _is_part(item: object) -> bool:
    return item.keys() == {"text"} if isinstance(item, Mapping) else hasattr(item, "inline_data")
