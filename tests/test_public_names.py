"""The public names, and what importing them costs."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import llxprt_hooks
from llxprt_hooks import Config, HookEventHandler, HookEventName, HookSystem, MessageBusType, ToolResult
from tests.support.processes import DEADLINE
from tests.support.project import hooks_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.engine_project import EngineProject

PACKAGE = Path(llxprt_hooks.__file__).parent

NAMES = [
    "Config",
    "Extension",
    "HookSystem",
    "HookSystemNotInitializedError",
    "HookRegistryNotInitializedError",
    "SessionStartSource",
    "SessionEndReason",
    "HookEventName",
    "AggregatedHookResult",
    "HookExecutionResult",
    "ProcessedHookResult",
    "DefaultHookOutput",
    "BeforeToolHookOutput",
    "BeforeModelHookOutput",
    "AfterModelHookOutput",
    "BeforeToolSelectionHookOutput",
    "create_hook_output",
    "fire_before_tool_hook",
    "fire_after_tool_hook",
    "execute_tool_with_hooks",
    "fire_before_model_hook",
    "fire_after_model_hook",
    "fire_before_tool_selection_hook",
    "BeforeModelHookResult",
    "AfterModelHookResult",
    "BeforeToolSelectionHookResult",
    "GenerateContentParameters",
    "ToolResult",
    "InProcessMessageBus",
    "MessageBusType",
    "HookExecutionRequest",
    "HookExecutionResponse",
    "HookEventHandler",
]


def fresh_interpreter(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def parameters(function: Callable[..., Any]) -> list[str]:
    """The parameters that may be given by position."""
    accepted = inspect.signature(function).parameters.values()
    return [each.name for each in accepted if each.name != "self" and each.kind is not each.KEYWORD_ONLY]


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_importable_from_the_package(name: str) -> None:
    assert getattr(llxprt_hooks, name) is not None
    assert name in llxprt_hooks.__all__


@pytest.mark.requirement("HOOK-175")
def test_hook_system_and_event_handler_are_exported_by_the_package() -> None:
    scope: dict[str, object] = {}
    exec("from llxprt_hooks import HookEventHandler, HookSystem", scope)
    assert isinstance(scope["HookSystem"], type)
    assert isinstance(scope["HookEventHandler"], type)


@pytest.mark.requirement("HOOK-142")
def test_hook_system_has_a_module_of_its_own() -> None:
    assert import_module("llxprt_hooks.core.engine.system").HookSystem is HookSystem


@pytest.mark.requirement("HOOK-143")
@pytest.mark.parametrize(
    "method",
    [
        "fire_before_tool_event",
        "fire_after_tool_event",
        "fire_before_model_event",
        "fire_after_model_event",
        "fire_before_tool_selection_event",
    ],
)
def test_the_event_handler_has_a_module_of_its_own_and_fires_the_five_events(method: str) -> None:
    handler = import_module("llxprt_hooks.core.engine.event_handler").HookEventHandler
    assert handler is HookEventHandler
    assert inspect.iscoroutinefunction(getattr(handler, method))


@pytest.mark.requirement("HOOK-176")
@pytest.mark.parametrize("name", ["BeforeModelHookResult", "AfterModelHookResult", "BeforeToolSelectionHookResult"])
def test_the_results_of_model_triggers_are_exported_with_the_triggers(name: str) -> None:
    assert getattr(import_module("llxprt_hooks.core.calls.model"), name) is getattr(llxprt_hooks, name)


def test_there_are_eleven_events_that_equal_their_names_on_the_wire() -> None:
    assert [str(event) for event in HookEventName] == [
        "BeforeTool",
        "AfterTool",
        "BeforeAgent",
        "AfterAgent",
        "BeforeModel",
        "AfterModel",
        "BeforeToolSelection",
        "SessionStart",
        "SessionEnd",
        "PreCompress",
        "Notification",
    ]
    assert [HookEventName.BEFORE_TOOL] == ["BeforeTool"]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("SessionStartSource", {"startup", "resume", "clear", "compress"}),
        ("SessionEndReason", {"exit", "clear", "logout", "prompt_input_exit", "other"}),
        ("PreCompressTrigger", {"manual", "auto"}),
    ],
)
def test_session_enums_hold_the_words_of_the_documents(name: str, values: Any) -> None:
    assert set(getattr(llxprt_hooks, name)) == values


@pytest.mark.requirement("HOOK-127", "HOOK-150")
def test_signature_of_fire_before_tool_hook() -> None:
    fire = llxprt_hooks.fire_before_tool_hook
    assert parameters(fire) == ["config", "tool_name", "tool_input"]
    assert inspect.iscoroutinefunction(fire)
    assert inspect.signature(fire).return_annotation == "DefaultHookOutput | None"


@pytest.mark.requirement("HOOK-128", "HOOK-151")
def test_fire_after_tool_hook_takes_the_response_too_and_promises_an_output_or_nothing() -> None:
    fire = llxprt_hooks.fire_after_tool_hook
    assert parameters(fire) == ["config", "tool_name", "tool_input", "tool_response"]
    assert inspect.iscoroutinefunction(fire)
    assert inspect.signature(fire).return_annotation == "DefaultHookOutput | None"


@pytest.mark.requirement("HOOK-133")
def test_execute_tool_with_hooks_takes_the_tool_and_promises_a_tool_result() -> None:
    execute = llxprt_hooks.execute_tool_with_hooks
    assert parameters(execute) == ["config", "tool_name", "tool_input", "execute_fn"]
    assert inspect.iscoroutinefunction(execute)
    assert inspect.signature(execute).return_annotation == "ToolResult"


@pytest.mark.parametrize(
    ("trigger", "takes", "result", "fields"),
    [
        pytest.param(
            "fire_before_model_hook",
            ["config", "request"],
            "BeforeModelHookResult",
            {"blocked", "reason", "synthetic_response", "modified_request"},
            marks=pytest.mark.requirement("HOOK-135", "HOOK-152"),
        ),
        pytest.param(
            "fire_after_model_hook",
            ["config", "request", "response"],
            "AfterModelHookResult",
            {"response"},
            marks=pytest.mark.requirement("HOOK-136", "HOOK-153"),
        ),
        pytest.param(
            "fire_before_tool_selection_hook",
            ["config", "request"],
            "BeforeToolSelectionHookResult",
            {"tool_config", "tools"},
            marks=pytest.mark.requirement("HOOK-137", "HOOK-154"),
        ),
    ],
)
def test_model_triggers_have_the_agreed_signature_and_result(
    trigger: str, takes: list[Any], result: str, fields: Any
) -> None:
    fire = getattr(llxprt_hooks, trigger)
    assert parameters(fire) == takes
    assert inspect.iscoroutinefunction(fire)
    assert inspect.signature(fire).return_annotation.partition("[")[0] == result
    stop_intent = {"should_stop", "stop_reason", "system_message", "suppress_output"}
    assert {field.name for field in dataclasses.fields(getattr(llxprt_hooks, result))} == fields | stop_intent


@pytest.mark.requirement("HOOK-141")
@pytest.mark.parametrize(
    "trigger", ["fire_before_model_hook", "fire_after_model_hook", "fire_before_tool_selection_hook"]
)
def test_no_trigger_names_the_hook_format_or_an_sdk_in_its_signature(trigger: str) -> None:
    signature = str(inspect.signature(getattr(llxprt_hooks, trigger)))
    assert "LLM" not in signature
    assert "GenerateContent" not in signature


@pytest.mark.parametrize(
    ("method", "takes"),
    [
        ("fire_before_tool_event", ["tool_name", "tool_input"]),
        ("fire_after_tool_event", ["tool_name", "tool_input", "tool_response"]),
        ("fire_before_model_event", ["request"]),
        ("fire_after_model_event", ["request", "response"]),
        ("fire_before_tool_selection_event", ["request"]),
        ("fire_session_start_event", ["source"]),
        ("fire_session_end_event", ["reason"]),
        ("fire_before_agent_event", ["prompt"]),
        ("fire_after_agent_event", ["prompt", "prompt_response", "stop_hook_active"]),
        ("fire_pre_compress_event", ["trigger"]),
        ("fire_notification_event", ["notification_type", "message", "details"]),
    ],
)
def test_every_fire_method_is_asynchronous_and_promises_an_aggregated_result(method: str, takes: list[Any]) -> None:
    fire = getattr(HookEventHandler, method)
    assert parameters(fire) == takes
    assert inspect.iscoroutinefunction(fire)
    assert inspect.signature(fire).return_annotation == "AggregatedHookResult"


@pytest.mark.parametrize("method", ["get_registry", "get_event_handler", "get_status", "get_all_hooks", "dispose"])
def test_hook_system_has_the_agreed_methods(method: str) -> None:
    assert parameters(getattr(HookSystem, method)) == []


def test_initialize_is_asynchronous_and_get_hook_system_is_not() -> None:
    assert inspect.iscoroutinefunction(HookSystem.initialize)
    assert not inspect.iscoroutinefunction(Config.get_hook_system)


def test_config_takes_keywords_only_and_needs_none_of_them() -> None:
    accepted = inspect.signature(Config).parameters
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in accepted.values())
    assert all(parameter.default is not parameter.empty for parameter in accepted.values())
    assert {
        "session_id",
        "working_dir",
        "enable_hooks",
        "hooks",
        "extensions",
        "disabled_hooks",
        "message_bus",
        "transcript_path",
    } <= set(accepted)
    assert Config().enable_hooks is False


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("AggregatedHookResult", ["success", "final_output", "all_outputs", "errors", "total_duration"]),
        (
            "HookExecutionResult",
            [
                "hook_config",
                "event_name",
                "success",
                "output",
                "stdout",
                "stderr",
                "exit_code",
                "signal",
                "duration",
                "error",
            ],
        ),
        ("ProcessedHookResult", ["aggregated", "should_stop", "stop_reason", "system_message", "suppress_output"]),
        ("HookExecutionRequest", ["event_name", "input", "correlation_id"]),
        ("HookExecutionResponse", ["correlation_id", "success", "output", "error"]),
        ("GenerateContentParameters", ["model", "contents", "config"]),
        ("ToolResult", ["llm_content", "return_display", "metadata", "error", "suppress_display", "stop_reason"]),
    ],
)
def test_data_classes_have_the_agreed_fields_in_the_agreed_order(name: str, fields: list[Any]) -> None:
    found = [field.name for field in dataclasses.fields(getattr(llxprt_hooks, name))]
    assert found[: len(fields)] == fields


@pytest.mark.requirement("HOOK-149")
def test_a_tool_result_can_ask_not_to_be_displayed_and_does_not_by_default() -> None:
    assert ToolResult(llm_content="text").suppress_display is False
    assert ToolResult(llm_content="text", suppress_display=True).suppress_display is True


@pytest.mark.requirement("HOOK-183")
def test_a_tool_result_has_no_blocked_field() -> None:
    assert not hasattr(ToolResult(), "blocked")


@pytest.mark.requirement("HOOK-148")
def test_both_errors_of_missing_initialization_are_of_a_kind_and_say_what_to_do() -> None:
    system_error = llxprt_hooks.HookSystemNotInitializedError
    registry_error = llxprt_hooks.HookRegistryNotInitializedError
    assert import_module("llxprt_hooks.core.engine.system").HookSystemNotInitializedError is system_error
    assert system_error.__bases__ == registry_error.__bases__
    assert "initialize" in str(system_error())
    assert "initialize" in str(registry_error())


@pytest.mark.requirement("DELTA-HBUS-001")
def test_message_types_have_their_stable_values() -> None:
    assert [str(each) for each in MessageBusType] == ["hook-execution-request", "hook-execution-response"]


# How names are loaded.


def exported_for_type_checkers() -> dict[str, str]:
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name))
    return {
        alias.name: str(node.module).removeprefix("llxprt_hooks.")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_type_checkers_and_the_interpreter_see_the_same_names_from_the_same_homes() -> None:
    assert exported_for_type_checkers() == llxprt_hooks._HOMES
    assert sorted(llxprt_hooks._HOMES) == sorted(llxprt_hooks.__all__)
    assert len(set(llxprt_hooks.__all__)) == len(llxprt_hooks.__all__)


def test_every_exported_name_is_the_object_of_its_home() -> None:
    for name, home in llxprt_hooks._HOMES.items():
        assert getattr(llxprt_hooks, name) is getattr(import_module(f"llxprt_hooks.{home}"), name)


def test_dir_lists_names_that_were_not_loaded_yet() -> None:
    listed = fresh_interpreter("import llxprt_hooks; print(*dir(llxprt_hooks))").split()
    assert set(NAMES) <= set(listed)


@pytest.mark.slow
def test_a_star_import_brings_every_name() -> None:
    given = fresh_interpreter("from llxprt_hooks import *; print(*dir())").split()
    assert set(NAMES) <= set(given)


def test_an_unknown_name_is_an_attribute_error_that_names_it() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = llxprt_hooks.no_such_name


def test_importing_the_package_loads_none_of_its_modules() -> None:
    loaded = fresh_interpreter(
        "import sys, llxprt_hooks; print(*[name for name in sys.modules if name.startswith('llxprt_hooks.')])"
    )
    assert loaded == ""


IMPORT_EVERYTHING = "import sys, llxprt_hooks\nfor name in llxprt_hooks.__all__: getattr(llxprt_hooks, name)\n"
NO_SDK = "assert not [name for name in sys.modules if name.split('.')[0] == 'google'], sorted(sys.modules)\n"


@pytest.mark.slow
def test_loading_every_public_name_imports_no_sdk() -> None:
    fresh_interpreter(IMPORT_EVERYTHING + NO_SDK)


@pytest.mark.slow
def test_firing_tool_events_imports_no_sdk(project: EngineProject) -> None:
    hooks = hooks_of({"BeforeTool": project.hook("before", {"decision": "allow"}), "AfterTool": project.hook("after")})
    fresh_interpreter(
        IMPORT_EVERYTHING
        + f"config = llxprt_hooks.Config(enable_hooks=True, hooks={hooks!r}, working_dir={str(project.root)!r})\n"
        + "import asyncio\n"
        + "run = llxprt_hooks.execute_tool_with_hooks(config, 'glob', {}, lambda tool_input: 'done')\n"
        + "assert asyncio.run(run).llm_content == 'done'\n"
        + NO_SDK
    )
    assert (project.runs("before"), project.runs("after")) == (1, 1)


@pytest.mark.slow
def test_model_data_in_hook_format_needs_no_sdk(project: EngineProject) -> None:
    hooks = hooks_of({"BeforeModel": project.hook()})
    message = {
        "type": "hook-execution-request",
        "eventName": "BeforeModel",
        "input": {"llm_request": {"messages": [{"role": "user", "content": "hi"}]}},
    }
    fresh_interpreter(
        IMPORT_EVERYTHING
        + "import asyncio\n"
        + "bus = llxprt_hooks.InProcessMessageBus()\n"
        + f"config = llxprt_hooks.Config(enable_hooks=True, hooks={hooks!r}, message_bus=bus)\n"
        + "system = config.get_hook_system()\n"
        + f"asyncio.run(bus.publish({message!r}))\n"
        + NO_SDK
    )
    assert project.payload()["llm_request"] == {"messages": [{"role": "user", "content": "hi"}]}
