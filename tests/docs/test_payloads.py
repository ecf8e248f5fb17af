"""The payloads in the documentation are what the engine sends, from an SDK's own objects."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from google.genai import types

from llxprt_hooks import Config, GenerateContentParameters, HookEventHandler, ToolResult
from llxprt_hooks.events import EVENTS
from tests.docs.pages import every_section

BLOCKS = [block for section in every_section() for block in section.blocks if "stdin" in block.words]
[COMPLETE] = [json.loads(block.text) for block in BLOCKS if not block.words["stdin"]]
BASE = {name: value for name, value in COMPLETE.items() if name not in EVENTS[COMPLETE["hook_event_name"]].fields}
ALSO = {"BeforeModel": ("BeforeModel", "BeforeToolSelection")}
"""Events whose fields the page shows once."""
PAYLOADS = [COMPLETE] + [
    {**BASE, "hook_event_name": event, **json.loads(block.text)}
    for block in BLOCKS
    if (shown := block.words["stdin"])
    for event in ALSO.get(shown, (shown,))
]
"""One payload is complete; of the others, the page has the fields that the event adds to its base fields."""


def sdk_request(request: dict[str, Any]) -> GenerateContentParameters:
    contents = [
        types.Content(role=message["role"], parts=[types.Part(text=message["content"])])
        for message in request["messages"]
    ]
    calling = {"functionCallingConfig": request["toolConfig"]} if "toolConfig" in request else None
    config = types.GenerateContentConfig.model_validate({**request.get("config", {}), "toolConfig": calling})
    return GenerateContentParameters(request["model"], contents, config)


def sdk_response(response: dict[str, Any]) -> types.GenerateContentResponse:
    [candidate] = response["candidates"]
    parts = [{"text": text} for text in candidate["content"]["parts"]]
    sdk_candidate = {**candidate, "content": {"role": "model", "parts": parts}}
    return types.GenerateContentResponse.model_validate(
        {"candidates": [sdk_candidate], "usageMetadata": response["usageMetadata"]}
    )


def sdk_result(response: dict[str, Any]) -> ToolResult:
    return ToolResult(llm_content=response["llmContent"], return_display=response["returnDisplay"])


FIRE: dict[str, Callable[[HookEventHandler, dict[str, Any]], Awaitable[object]]] = {
    "BeforeTool": lambda handler, sent: handler.fire_before_tool_event(sent["tool_name"], sent["tool_input"]),
    "AfterTool": lambda handler, sent: handler.fire_after_tool_event(
        sent["tool_name"], sent["tool_input"], sdk_result(sent["tool_response"])
    ),
    "BeforeModel": lambda handler, sent: handler.fire_before_model_event(sdk_request(sent["llm_request"])),
    "AfterModel": lambda handler, sent: handler.fire_after_model_event(
        sdk_request(sent["llm_request"]), sdk_response(sent["llm_response"])
    ),
    "BeforeToolSelection": lambda handler, sent: handler.fire_before_tool_selection_event(
        sdk_request(sent["llm_request"])
    ),
}


def test_each_of_the_main_events_has_one() -> None:
    assert sorted(payload["hook_event_name"] for payload in PAYLOADS) == sorted(FIRE)


@pytest.mark.parametrize("documented", PAYLOADS, ids=lambda payload: payload["hook_event_name"])
async def test_a_hook_gets_the_documented_payload(documented: dict[str, Any], tmp_path: Path) -> None:
    event = documented["hook_event_name"]
    hooks = {event: [{"hooks": [{"type": "command", "command": "cat > got.json"}]}]}
    config = Config(session_id=documented["session_id"], working_dir=tmp_path, enable_hooks=True, hooks=hooks)
    system = config.get_hook_system()
    assert system is not None
    await FIRE[event](system.ready_event_handler(), documented)
    got = json.loads((tmp_path / "got.json").read_text())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", documented["timestamp"])
    assert got == {**documented, "cwd": str(tmp_path), "timestamp": got["timestamp"]}
    assert list(got) == list(documented)
