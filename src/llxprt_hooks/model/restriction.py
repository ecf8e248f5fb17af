"""Which tools the model may call: the hooks' restriction combined with the request's own (D-06, D-15)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llxprt_hooks.model.format import HookToolConfig


@dataclass(frozen=True, slots=True)
class Restriction:
    """The tools that the model may call in one answer; ``allowed`` is None if every tool is allowed.

    >>> Restriction.of({"mode": "ANY", "allowedFunctionNames": ["glob"]}).allows("write_file")
    False
    """

    allowed: frozenset[str] | None = None
    is_complete: bool = True
    """Whether ``allowed`` has all names that are allowed, and no others than those of tools."""

    @classmethod
    def of(cls, tool_config: HookToolConfig) -> Restriction:
        """Return the restriction in a tool configuration in hook format."""
        if tool_config.get("mode") == "NONE":
            return cls(frozenset())
        names = tool_config.get("allowedFunctionNames")
        return cls() if names is None else cls(frozenset(names))

    def allows(self, name: str) -> bool:
        """Whether calls of this tool may run."""
        return self.allowed is None or name in self.allowed

    def refusal(self, name: str) -> str | None:
        """Return the error message for a call that may not run; None if it may run.

        >>> Restriction(frozenset({"glob"}), is_complete=False).refusal("shell")
        'shell may not be called now: hooks do not offer it.'
        """
        if self.allows(name):
            return None
        if not self.is_complete:
            return f"{name} may not be called now: hooks do not offer it."
        allowed = ", ".join(sorted(self.allowed or ()))
        return f"{name} may not be called now. " + (f"Allowed tools: {allowed}." if allowed else "No tool is allowed.")


def combine(shown: HookToolConfig, wanted: HookToolConfig) -> HookToolConfig:
    """Return the tool configuration that hooks were shown with their changes; omitted fields stay.

    If no tool is allowed, the result is ``NONE`` with an empty list.
    """
    mode, names = shown.get("mode"), shown.get("allowedFunctionNames")
    if "mode" in wanted and wanted["mode"] != mode:
        # The empty list belongs to NONE: remove it together with the mode.
        names = None if mode == "NONE" and not names else names
        mode = wanted["mode"]
    if "allowedFunctionNames" in wanted:
        names = wanted["allowedFunctionNames"]
        mode = (mode or "AUTO") if names else "NONE"
    if wanted and mode == "NONE":
        names = []
    combined: HookToolConfig = {}
    if mode is not None:
        combined["mode"] = mode
    if names is not None:
        combined["allowedFunctionNames"] = names
    return combined
