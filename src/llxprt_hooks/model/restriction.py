"""Which tools the model may call: what hooks say about it, combined with the request's own words (D-06, D-15)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llxprt_hooks.model.format import HookToolConfig


@dataclass(frozen=True, slots=True)
class Restriction:
    """The tools that the model may call in one answer; ``allowed`` is None where every tool is.

    >>> Restriction.of({"mode": "ANY", "allowedFunctionNames": ["glob"]}).allows("write_file")
    False
    """

    allowed: frozenset[str] | None = None

    @classmethod
    def of(cls, tool_config: HookToolConfig) -> Restriction:
        """What a tool configuration in hook format allows."""
        if tool_config.get("mode") == "NONE":
            return cls(frozenset())
        names = tool_config.get("allowedFunctionNames")
        return cls() if names is None else cls(frozenset(names))

    def allows(self, name: str) -> bool:
        """Whether a call of this tool may run."""
        return self.allowed is None or name in self.allowed

    def refusal(self, name: str) -> str | None:
        """What to answer the model for a call that may not run; None for one that may."""
        if self.allows(name):
            return None
        allowed = ", ".join(sorted(self.allowed or ()))
        return f"{name} may not be called now. " + (f"Allowed tools: {allowed}." if allowed else "No tool is allowed.")


def combine(shown: HookToolConfig, wanted: HookToolConfig) -> HookToolConfig:
    """The tool configuration that hooks were shown, with what they want of it; what they leave out stays.

    No tool at all is always ``NONE`` with an empty list.
    """
    mode, names = shown.get("mode"), shown.get("allowedFunctionNames")
    if "mode" in wanted and wanted["mode"] != mode:
        # The empty list that came with NONE goes with it.
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
