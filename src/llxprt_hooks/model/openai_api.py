"""What the two APIs of OpenAI have in common: how a request restricts which tools may be called."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from llxprt_hooks.model.access import as_list, field
from llxprt_hooks.model.json_api import JSONTranslator, Request, ToolChoice

if TYPE_CHECKING:
    from llxprt_hooks.model.format import HookToolConfig

MODES = {"none": "NONE", "auto": "AUTO", "required": "ANY"}
CHOICES = {mode: choice for choice, mode in MODES.items()}


class OpenAITranslator(JSONTranslator):
    """Reads and writes ``tool_choice``: a mode, one tool, or ``allowed_tools``."""

    @abstractmethod
    def tool_name(self, tool: Any) -> str | None:
        """Return the name in a declared tool, or in a tool choice for one tool."""

    @abstractmethod
    def reference(self, tool: Any) -> dict[str, Any]:
        """Return a declared tool as a tool choice names it."""

    @abstractmethod
    def function(self, name: str) -> dict[str, Any]:
        """Return a function as a tool choice names it."""

    @abstractmethod
    def allowed_tools(self, choice: str, tools: list[dict[str, Any]]) -> dict[str, Any]:
        """Return a tool choice for several tools."""

    @abstractmethod
    def allowed_in(self, tool_choice: Any) -> Any:
        """Return the part of a tool choice for several tools that has ``mode`` and ``tools``."""

    def with_tool_config(self, request: Request, tool_config: ToolChoice) -> Request:
        """Leave a request without tools as it is, and drop names of unknown tools: the API rejects both."""
        if not self.tools_of(request):
            return request
        shown = self.to_hook_tool_config(tool_config)
        if "allowedFunctionNames" in shown and tool_config != self.tool_config_of(request):
            declared = {self.tool_name(tool): self.reference(tool) for tool in as_list(self.tools_of(request))}
            references = {name: declared[name] for name in shown["allowedFunctionNames"] if name in declared}
            tool_config = self._tool_choice(CHOICES[shown["mode"]], references)
        return super().with_tool_config(request, tool_config)

    def to_hook_tool_config(self, tool_config: ToolChoice | None) -> HookToolConfig:
        if isinstance(tool_config, str):
            return {"mode": MODES[tool_config]} if tool_config in MODES else {}
        if field(tool_config, "type") != "allowed_tools":
            name = self.tool_name(tool_config)
            return {"mode": "ANY", "allowedFunctionNames": [name]} if name else {}
        allowed = self.allowed_in(tool_config)
        tools = as_list(field(allowed, "tools"))
        names = [name for tool in tools if (name := self.tool_name(tool))]
        shown: HookToolConfig = {"mode": MODES.get(field(allowed, "mode"), "AUTO")}
        if names or not tools:  # an empty list would forbid tools of a type that is unknown here
            shown["allowedFunctionNames"] = names
        return shown

    def build_tool_config(self, tool_config: HookToolConfig, base: ToolChoice | None) -> ToolChoice:
        if base is not None and tool_config == self.to_hook_tool_config(base):
            return base
        choice, names = CHOICES[tool_config.get("mode", "AUTO")], tool_config.get("allowedFunctionNames")
        if choice == "none" or names is None:
            return choice
        return self._tool_choice(choice, {name: self.function(name) for name in names})

    def _tool_choice(self, choice: str, references: Mapping[str, dict[str, Any]]) -> ToolChoice:
        tools = list(references.values())
        if not tools:
            return "none"
        if choice == "required" and len(tools) == 1:
            return tools[0]  # unlike allowed_tools, every server of these APIs supports this form
        return self.allowed_tools(choice, tools)
