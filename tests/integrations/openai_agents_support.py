"""Answers of a scripted model, and a tool, for the tests of the OpenAI Agents SDK."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agents import function_tool
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

if TYPE_CHECKING:
    from agents.testing import ScriptedModel


def say(text: str) -> list[Any]:
    part = ResponseOutputText(type="output_text", text=text, annotations=[])
    return [ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[part])]


def call(name: str = "write_file", call_id: str = "c1", **args: Any) -> list[Any]:
    arguments = json.dumps(args or {"path": "a.txt"})
    return [ResponseFunctionToolCall(type="function_call", name=name, arguments=arguments, call_id=call_id)]


def results(model: ScriptedModel) -> list[str]:
    assert model.last_call is not None
    return [item["output"] for item in model.last_call.input if item.get("type") == "function_call_output"]


class Files:
    """A tool, and what it did."""

    def __init__(self, needs_approval: Any = False) -> None:
        self.written: list[str] = []

        @function_tool(needs_approval=needs_approval)
        def write_file(path: str) -> str:
            self.written.append(path)
            return f"wrote {path}"

        self.tool = write_file


def allow_only(*names: str) -> dict[str, Any]:
    """Return what a hook says that allows only these tools."""
    return {"hookSpecificOutput": {"toolConfig": {"mode": "AUTO", "allowedFunctionNames": [*names]}}}


NO_TOOL: dict[str, Any] = {"hookSpecificOutput": {"toolConfig": {"mode": "NONE"}}}
