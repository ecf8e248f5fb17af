"""What each event tells its hooks, on stdin, as real scripts read it; and how an input from outside is checked."""

from __future__ import annotations

import inspect
import os
import pwd
import re
import typing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from llxprt_hooks import (
    AggregatedHookResult,
    GenerateContentParameters,
    HookEventHandler,
    HookEventName,
    HookFormat,
    HookTranslator,
    SessionEndReason,
    SessionStartSource,
    ToolResult,
    execute_tool_with_hooks,
    fire_after_model_hook,
    fire_after_tool_hook,
    fire_before_model_hook,
    fire_before_tool_hook,
    fire_before_tool_selection_hook,
)
from llxprt_hooks.core.protocol import caller, inputs
from llxprt_hooks.model import resolve_translator
from llxprt_hooks.model.google_genai import HookTranslatorGenAIv1

if typing.TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import ModuleType

    from google.genai.types import GenerateContentResponse

    from llxprt_hooks.model.format import LLMRequest, LLMResponse
    from tests.support.engine_project import EngineProject, Ready

BASE = {"session_id", "cwd", "timestamp", "hook_event_name", "transcript_path"}

REQUEST = {"messages": [{"role": "user", "content": "hi"}]}
RESPONSE = {"candidates": [{"content": {"role": "model", "parts": ["hello"]}}]}
TOOL_RESPONSE = {"llmContent": "text", "returnDisplay": "shown", "metadata": {}}

EVENTS: dict[str, tuple[Callable[[HookEventHandler], Awaitable[AggregatedHookResult]], dict[str, Any]]] = {
    "BeforeTool": (
        lambda handler: handler.fire_before_tool_event("write_file", {"file_path": "a.txt"}),
        {"tool_name": "write_file", "tool_input": {"file_path": "a.txt"}},
    ),
    "AfterTool": (
        lambda handler: handler.fire_after_tool_event("glob", {"pattern": "*"}, TOOL_RESPONSE),
        {"tool_name": "glob", "tool_input": {"pattern": "*"}, "tool_response": TOOL_RESPONSE},
    ),
    "BeforeModel": (lambda handler: handler.fire_before_model_event(HookFormat(REQUEST)), {"llm_request": REQUEST}),
    "AfterModel": (
        lambda handler: handler.fire_after_model_event(HookFormat(REQUEST), HookFormat(RESPONSE)),
        {"llm_request": REQUEST, "llm_response": RESPONSE},
    ),
    "BeforeToolSelection": (
        lambda handler: handler.fire_before_tool_selection_event(HookFormat(REQUEST)),
        {"llm_request": REQUEST},
    ),
    "SessionStart": (
        lambda handler: handler.fire_session_start_event(SessionStartSource.RESUME),
        {"source": "resume"},
    ),
    "SessionEnd": (
        lambda handler: handler.fire_session_end_event(SessionEndReason.PROMPT_INPUT_EXIT),
        {"reason": "prompt_input_exit"},
    ),
    "BeforeAgent": (lambda handler: handler.fire_before_agent_event("do it"), {"prompt": "do it"}),
    "AfterAgent": (
        lambda handler: handler.fire_after_agent_event("do it", "done", True),
        {"prompt": "do it", "prompt_response": "done", "stop_hook_active": True},
    ),
    "PreCompress": (lambda handler: handler.fire_pre_compress_event("manual"), {"trigger": "manual"}),
    "Notification": (
        lambda handler: handler.fire_notification_event("ToolPermission", "May I?", {"tool": "glob"}),
        {"notification_type": "ToolPermission", "message": "May I?", "details": {"tool": "glob"}},
    ),
}


@pytest.mark.requirement("HOOK-062", "HOOK-144", "HOOK-155")
@pytest.mark.parametrize("event", EVENTS)
async def test_every_event_sends_the_base_fields_and_its_own_and_no_other(
    project: EngineProject, ready: Ready, event: str
) -> None:
    fire, own_fields = EVENTS[event]
    handler = await ready(project.config({event: project.hook()}))
    result = await fire(handler)
    payload = project.payload()
    assert result.success
    assert payload.keys() == BASE | own_fields.keys()
    assert {name: payload[name] for name in own_fields} == own_fields
    assert payload["hook_event_name"] == event
    assert datetime.fromisoformat(payload["timestamp"]).tzinfo


def test_the_table_of_events_is_complete() -> None:
    assert EVENTS.keys() == set(HookEventName)


@pytest.mark.requirement("HOOK-144", "HOOK-161", "HOOK-215")
async def test_base_fields_come_from_the_configuration_and_the_clock(project: EngineProject, ready: Ready) -> None:
    handler = await ready(
        project.config({"BeforeTool": project.hook()}, session_id="session 7", working_dir=project.root)
    )
    earliest = datetime.now(UTC) - timedelta(milliseconds=1)
    await handler.fire_before_tool_event("glob", {})
    payload = project.payload()
    assert payload["session_id"] == "session 7"
    assert payload["cwd"] == str(project.root)
    assert payload["hook_event_name"] == "BeforeTool"
    assert payload["transcript_path"] == ""
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", payload["timestamp"])
    assert earliest <= datetime.fromisoformat(payload["timestamp"]) <= datetime.now(UTC)


@pytest.mark.requirement("HOOK-161")
async def test_a_configured_transcript_is_sent(project: EngineProject, ready: Ready) -> None:
    handler = await ready(
        project.config({"BeforeTool": project.hook()}, transcript_path=project.root / "transcript.json")
    )
    await handler.fire_before_tool_event("glob", {})
    assert project.payload()["transcript_path"] == str(project.root / "transcript.json")


async def test_the_timestamp_has_milliseconds_even_on_the_full_second(
    project: EngineProject, monkeypatch: pytest.MonkeyPatch, ready: Ready
) -> None:
    full_second = int(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp())
    monkeypatch.setattr("llxprt_hooks._support.stamps.time.time_ns", lambda: full_second * 10**9)
    handler = await ready(project.config({"BeforeTool": project.hook()}))
    await handler.fire_before_tool_event("glob", {})
    assert project.payload()["timestamp"] == "2026-01-02T03:04:05.000Z"


# The five triggers.


@pytest.mark.requirement("HOOK-015")
async def test_a_before_tool_hook_reads_the_tool_and_its_arguments(project: EngineProject) -> None:
    await fire_before_tool_hook(
        project.config({"BeforeTool": project.hook()}), "write_file", {"file_path": "ä", "deep": [1]}
    )
    payload = project.payload()
    assert payload.keys() == BASE | {"tool_name", "tool_input"}
    assert payload["hook_event_name"] == "BeforeTool"
    assert datetime.fromisoformat(payload["timestamp"]).tzinfo
    assert (payload["tool_name"], payload["tool_input"]) == ("write_file", {"file_path": "ä", "deep": [1]})


@pytest.mark.requirement("HOOK-026")
@pytest.mark.parametrize(
    ("result", "told"),
    [
        (ToolResult("text"), {"llmContent": "text", "returnDisplay": "", "metadata": {}}),
        (
            ToolResult(
                "text", "shown", {"lines": 3}, {"message": "half of it"}, suppress_display=True, stop_reason="x"
            ),
            {
                "llmContent": "text",
                "returnDisplay": "shown",
                "metadata": {"lines": 3},
                "error": {"message": "half of it"},
            },
        ),
    ],
)
async def test_an_after_tool_hook_reads_the_result_under_its_names_on_the_wire(
    project: EngineProject, result: Any, told: dict[str, Any]
) -> None:
    config = project.config({"AfterTool": project.hook()})
    await execute_tool_with_hooks(config, "glob", {"pattern": "*"}, lambda _: result)
    payload = project.payload()
    assert payload.keys() == BASE | {"tool_name", "tool_input", "tool_response"}
    assert payload["hook_event_name"] == "AfterTool"
    assert (payload["tool_name"], payload["tool_input"]) == ("glob", {"pattern": "*"})
    assert payload["tool_response"] == told


@pytest.mark.requirement("HOOK-026", "HOOK-151")
async def test_a_tool_response_that_is_a_mapping_reaches_the_hook_as_it_is(project: EngineProject) -> None:
    await fire_after_tool_hook(project.config({"AfterTool": project.hook()}), "glob", {}, TOOL_RESPONSE)
    assert project.payload()["tool_response"] == TOOL_RESPONSE


@pytest.mark.requirement("HOOK-026")
async def test_a_result_of_sdk_parts_reaches_the_hook_as_the_api_writes_them(
    project: EngineProject, genai: ModuleType
) -> None:
    config = project.config({"AfterTool": project.hook()})
    await execute_tool_with_hooks(config, "look", {}, lambda _: ToolResult([genai.Part(text="seen"), "and said"]))
    assert project.payload()["tool_response"]["llmContent"] == [{"text": "seen"}, "and said"]


SHOWN_REQUEST = {
    "model": "gemini-3-flash",
    "messages": [
        {"role": "user", "content": "What is in the picture?"},
        {"role": "model", "content": "A cat."},
        {"role": "user", "content": "And now?"},
    ],
    "config": {"temperature": 0.5, "maxOutputTokens": 100},
    "toolConfig": {"mode": "AUTO"},
}
SHOWN_RESPONSE = {
    "text": "A dog, asleep.",
    "candidates": [{"content": {"role": "model", "parts": ["A dog, ", "asleep."]}, "finishReason": "STOP", "index": 0}],
    "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 4, "totalTokenCount": 15},
}


@pytest.mark.requirement("HOOK-034", "HOOK-035", "HOOK-071", "DELTA-HPAY-003")
async def test_a_before_model_hook_reads_the_sdk_request_in_hook_format(
    project: EngineProject, llm_request: GenerateContentParameters
) -> None:
    await fire_before_model_hook(project.config({"BeforeModel": project.hook()}), llm_request)
    payload = project.payload()
    assert payload.keys() == BASE | {"llm_request"}
    assert payload["hook_event_name"] == "BeforeModel"
    assert payload["llm_request"] == SHOWN_REQUEST == resolve_translator().to_hook_llm_request(llm_request)


@pytest.mark.requirement("HOOK-044", "HOOK-045", "HOOK-050", "HOOK-071", "DELTA-HPAY-003")
async def test_an_after_model_hook_reads_the_real_request_and_the_complete_response(
    project: EngineProject, llm_request: GenerateContentParameters, llm_response: GenerateContentResponse
) -> None:
    await fire_after_model_hook(project.config({"AfterModel": project.hook()}), llm_request, llm_response)
    payload = project.payload()
    assert payload.keys() == BASE | {"llm_request", "llm_response"}
    assert payload["hook_event_name"] == "AfterModel"
    assert payload["llm_request"] == SHOWN_REQUEST
    assert payload["llm_response"] == SHOWN_RESPONSE == resolve_translator().to_hook_llm_response(llm_response)


@pytest.mark.requirement("HOOK-054", "HOOK-205", "DELTA-HPAY-003")
async def test_a_tool_selection_hook_reads_the_real_request_in_hook_format(
    project: EngineProject, llm_request: GenerateContentParameters
) -> None:
    await fire_before_tool_selection_hook(project.config({"BeforeToolSelection": project.hook()}), llm_request)
    payload = project.payload()
    assert payload.keys() == BASE | {"llm_request"}
    assert payload["hook_event_name"] == "BeforeToolSelection"
    assert payload["llm_request"] == SHOWN_REQUEST


@pytest.mark.requirement("HOOK-035", "HOOK-045", "HOOK-205")
async def test_all_model_events_go_through_the_translator_of_the_configuration(
    project: EngineProject, llm_request: GenerateContentParameters, llm_response: GenerateContentResponse
) -> None:
    class Shouting(HookTranslatorGenAIv1):
        def to_hook_llm_request(self, request: Any) -> LLMRequest:
            return {"messages": [{"role": "user", "content": "REQUEST"}]}

        def to_hook_llm_response(self, response: Any) -> LLMResponse:
            return {"text": "RESPONSE", "candidates": []}

    assert issubclass(Shouting, HookTranslator)
    config = project.config(
        {"BeforeModel": project.hook("a"), "AfterModel": project.hook("b"), "BeforeToolSelection": project.hook("c")},
        translator=Shouting(),
    )
    await fire_before_model_hook(config, llm_request)
    await fire_after_model_hook(config, llm_request, llm_response)
    await fire_before_tool_selection_hook(config, llm_request)
    assert [project.payload(name)["llm_request"]["messages"][0]["content"] for name in "abc"] == ["REQUEST"] * 3
    assert project.payload("b")["llm_response"]["text"] == "RESPONSE"


# Session events.


@pytest.mark.requirement("DELTA-HPAY-006")
@pytest.mark.parametrize(
    ("method", "parameter", "kind"),
    [
        ("fire_session_start_event", "source", SessionStartSource),
        ("fire_session_end_event", "reason", SessionEndReason),
    ],
)
def test_session_events_take_enums_and_no_mere_strings(method: str, parameter: str, kind: type[Any]) -> None:
    assert typing.get_type_hints(getattr(HookEventHandler, method))[parameter] is kind


@pytest.mark.requirement("DELTA-HPAY-006")
@pytest.mark.parametrize("source", SessionStartSource)
async def test_session_sources_have_fixed_names(
    project: EngineProject, ready: Ready, source: SessionStartSource
) -> None:
    handler = await ready(project.config({"SessionStart": project.hook()}))
    await handler.fire_session_start_event(source)
    assert project.payload()["source"] == source.value


@pytest.mark.requirement("DELTA-HPAY-006")
async def test_a_session_starts_up_and_exits_by_default(project: EngineProject, ready: Ready) -> None:
    handler = await ready(project.config({"SessionStart": project.hook("start"), "SessionEnd": project.hook("end")}))
    await handler.fire_session_start_event()
    await handler.fire_session_end_event()
    assert (project.payload("start")["source"], project.payload("end")["reason"]) == ("startup", "exit")


@pytest.mark.parametrize(
    ("event", "matcher", "runs"),
    [
        ("SessionStart", "resume", 1),
        ("SessionStart", "startup", 0),
        ("SessionEnd", "prompt_input_exit", 1),
        ("SessionEnd", "exit", 0),
        ("PreCompress", "manual", 1),
        ("PreCompress", "auto", 0),
        ("Notification", "ToolPermission", 1),
        ("Notification", "Tool", 0),
        ("BeforeAgent", "nothing like it", 1),
        ("BeforeModel", "nothing like it", 1),
        ("BeforeTool", "^write_", 1),
        ("AfterTool", "^write_", 0),
    ],
)
async def test_each_event_compares_matchers_with_its_own_field(
    project: EngineProject, ready: Ready, event: str, matcher: str, runs: int
) -> None:
    group = {"matcher": matcher, "hooks": [{"type": "command", "command": project.hook()}]}
    handler = await ready(project.config({event: [group]}))
    await EVENTS[event][0](handler)
    assert project.runs() == runs


# Inputs from outside.

VALID = {event: fields for event, (_, fields) in EVENTS.items()}
VALIDATORS = {
    event: getattr(inputs, f"validate_{re.sub(r'(?<!^)(?=[A-Z])', '_', event).lower()}_input") for event in EVENTS
}
INVALID = [
    ("BeforeTool", {"tool_input": {}}),
    ("BeforeTool", {"tool_name": "glob"}),
    ("BeforeTool", {"tool_name": 7, "tool_input": {}}),
    ("BeforeTool", {"tool_name": "glob", "tool_input": "text"}),
    ("BeforeTool", {"tool_name": "glob", "tool_input": None}),
    ("AfterTool", {"tool_name": "glob", "tool_input": {}}),
    ("AfterTool", {"tool_name": "glob", "tool_input": {}, "tool_response": "text"}),
    ("BeforeModel", {}),
    ("BeforeModel", {"llm_request": "text"}),
    ("BeforeModel", {"llm_request": None}),
    ("BeforeModel", {"llm_request": [REQUEST]}),
    ("AfterModel", {"llm_request": REQUEST}),
    ("AfterModel", {"llm_response": RESPONSE}),
    ("AfterModel", {"llm_request": REQUEST, "llm_response": 7}),
    ("BeforeToolSelection", {}),
    ("BeforeToolSelection", {"llm_request": True}),
    ("BeforeAgent", {}),
    ("BeforeAgent", {"prompt": ["text"]}),
    ("AfterAgent", {"prompt": "a", "prompt_response": "b"}),
    ("AfterAgent", {"prompt": "a", "prompt_response": "b", "stop_hook_active": "yes"}),
    ("AfterAgent", {"prompt": "a", "stop_hook_active": True}),
    ("Notification", {"notification_type": "ToolPermission", "message": "m"}),
    ("Notification", {"notification_type": "ToolPermission", "message": 7, "details": {}}),
    ("Notification", {"notification_type": None, "message": "m", "details": {}}),
    ("Notification", {"notification_type": "ToolPermission", "message": "m", "details": []}),
    ("SessionStart", {}),
    ("SessionStart", {"source": "yesterday"}),
    ("SessionEnd", {"reason": 1}),
    ("PreCompress", {"trigger": "someone"}),
]


@pytest.mark.requirement("DELTA-HPAY-001", "DELTA-HPAY-005")
@pytest.mark.parametrize("event", EVENTS)
def test_each_event_has_a_validator_that_accepts_its_own_input(event: str) -> None:
    assert VALIDATORS[event](VALID[event]) is True
    assert VALIDATORS[event]({**VALID[event], "session_id": "s", "cwd": "/", "unknown": 1}) is True


@pytest.mark.requirement("DELTA-HPAY-001", "DELTA-HPAY-005")
@pytest.mark.parametrize(("event", "value"), INVALID)
def test_a_validator_refuses_what_lacks_a_field_or_has_one_of_the_wrong_type(event: str, value: dict[str, Any]) -> None:
    assert VALIDATORS[event](value) is False


@pytest.mark.requirement("DELTA-HPAY-001")
@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("value", [None, "text", 7, [], [("tool_name", "glob")]])
def test_a_validator_refuses_a_value_that_is_not_an_object(event: str, value: Any) -> None:
    assert VALIDATORS[event](value) is False


@pytest.mark.requirement("DELTA-HPAY-001")
@pytest.mark.parametrize("field", sorted(BASE))
def test_a_validator_refuses_base_fields_that_are_not_strings(field: str) -> None:
    assert VALIDATORS["BeforeTool"]({**VALID["BeforeTool"], field: 7}) is False


@pytest.mark.requirement("DELTA-HPAY-005")
@pytest.mark.parametrize("event", EVENTS)
def test_each_validator_is_a_type_predicate(event: str) -> None:
    promised = typing.get_type_hints(VALIDATORS[event])["return"]
    assert typing.get_origin(promised) in {typing.TypeGuard, getattr(typing, "TypeIs", typing.TypeGuard)}
    (narrowed,) = typing.get_args(promised)
    assert narrowed.__name__ == f"{event}Input"
    assert VALID[event].keys() <= typing.get_type_hints(narrowed).keys()


@pytest.mark.requirement("DELTA-HFAIL-005")
def test_inside_the_event_handler_event_names_are_enums() -> None:
    methods = {
        name: inspect.signature(method).parameters.get("event_name")
        for name, method in inspect.getmembers(HookEventHandler, inspect.isfunction)
    }
    inside = {
        name: parameter.annotation
        for name, parameter in methods.items()
        if parameter is not None and name != "fire_event"
    }
    assert inside
    assert {name: kind for name, kind in inside.items() if kind not in ("HookEventName", "HookEventName | None")} == {}


@pytest.mark.requirement("DELTA-HFAIL-005")
@pytest.mark.parametrize("event", EVENTS)
async def test_the_name_of_an_event_that_is_fired_as_a_string_becomes_an_enum(
    project: EngineProject, ready: Ready, event: str
) -> None:
    handler = await ready(project.config({event: project.hook()}))
    result = await handler.fire_event(event, VALID[event])
    assert [(run.event_name, type(run.event_name)) for run in result.results] == [(event, HookEventName)]


@pytest.mark.requirement("DELTA-HFAIL-005")
@pytest.mark.parametrize("event_name", ["beforetool", "", "Before Tool", "BEFORE_TOOL", "hasattr"])
async def test_an_unknown_event_name_is_a_structured_failure_and_runs_nothing(
    project: EngineProject, ready: Ready, event_name: str
) -> None:
    handler = await ready(project.config({"BeforeTool": project.hook()}))
    result = await handler.fire_event(event_name, VALID["BeforeTool"])
    assert result.success is False
    assert len(result.errors) == 1
    assert repr(event_name) in str(result.errors[0])
    assert project.runs() == 0


@pytest.mark.requirement("DELTA-HPAY-001", "DELTA-HPAY-002")
@pytest.mark.parametrize(("event", "value"), INVALID)
async def test_an_invalid_input_is_a_structured_failure_and_runs_nothing(
    project: EngineProject, ready: Ready, event: str, value: dict[str, Any]
) -> None:
    handler = await ready(project.config({event: project.hook()}))
    result = await handler.fire_event(event, value)
    assert (result.success, result.final_output, result.all_outputs) == (False, None, [])
    assert event in str(result.errors[0])
    assert project.runs() == 0


async def test_a_recorded_payload_can_be_fired_again_with_its_own_base_fields(
    project: EngineProject, ready: Ready
) -> None:
    config = project.config({"BeforeTool": project.hook()})
    handler = await ready(config)
    recorded = {**VALID["BeforeTool"], "session_id": "earlier", "timestamp": "2020-01-01T00:00:00.000Z"}
    await handler.fire_event("BeforeTool", recorded, keep_base_fields=True)
    assert project.payload()["session_id"] == "earlier"
    assert project.payload()["timestamp"] == "2020-01-01T00:00:00.000Z"
    assert project.payload()["cwd"] == config.working_dir
    await handler.fire_event("BeforeTool", recorded)
    assert project.payload()["session_id"] == "s1"


def test_metadata_in_an_input_is_an_object() -> None:
    given = {"tool_name": "glob", "tool_input": {}, "metadata": 5}
    assert "`metadata`" in str(inputs.input_problem(HookEventName.BEFORE_TOOL, given))


def test_a_result_knows_its_content_without_what_hooks_added() -> None:
    assert ToolResult("done\n\nbe brief", additions=["be brief"]).own_content == "done"
    assert ToolResult({"found": 1}, additions=["be brief"]).own_content == {"found": 1}


def test_an_account_without_a_name_is_named_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    assert caller._user.__wrapped__() == str(os.getuid())
