"""Convert a tool configuration to what the Gemini API accepts (D-15)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.genai import types

if TYPE_CHECKING:
    from collections.abc import Collection

Mode = types.FunctionCallingConfigMode


def sendable_tool_config(tool_config: types.ToolConfig | None, declared: Collection[str]) -> types.ToolConfig | None:
    """Return the tool configuration in the form the Gemini API accepts.

    The API accepts only names of declared tools, and only with ANY or VALIDATED. It treats an empty list as no
    restriction. So AUTO with names is sent as VALIDATED, and a list without any declared tool as NONE.
    """
    calling = tool_config.function_calling_config if tool_config else None
    if tool_config is None or calling is None or calling.allowed_function_names is None:
        return tool_config
    names = [name for name in calling.allowed_function_names if name in declared]
    if calling.mode == Mode.NONE or not names:
        sent = types.FunctionCallingConfig(mode=Mode.NONE)
    else:
        mode = Mode.ANY if calling.mode == Mode.ANY else Mode.VALIDATED
        sent = calling.model_copy(update={"mode": mode, "allowed_function_names": names})
    return tool_config.model_copy(update={"function_calling_config": sent})
