"""Hooks around a model call. Callers deal in SDK types only; the hook format never leaves the engine (HOOK-141)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from llxprt_hooks.events import HookEventName
from llxprt_hooks.logger import debug_logger
from llxprt_hooks.model.outputs import AfterModelHookOutput, BeforeModelHookOutput, BeforeToolSelectionHookOutput
from llxprt_hooks.triggers.relevance import handler_for

if TYPE_CHECKING:
    from llxprt_hooks.config import Config
    from llxprt_hooks.engine.results import ProcessedHookResult
    from llxprt_hooks.model import GenerateContentParameters

log = debug_logger("triggers:model")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class _ModelHookResult:
    """What each of the three results carries beside its own fields (DELTA-HAPP-002)."""

    should_stop: bool = False
    stop_reason: str | None = None
    system_message: str | None = None
    suppress_output: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeModelHookResult(_ModelHookResult):
    """Whether to call the model, and with what. A stop also counts as blocked (HOOK-184)."""

    blocked: bool = False
    reason: str | None = None
    synthetic_response: Any | None = None
    modified_request: GenerateContentParameters | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterModelHookResult(_ModelHookResult):
    """The response to use: the hook's, or the model's own."""

    response: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeToolSelectionHookResult(_ModelHookResult):
    """The tool configuration to use, if a hook changed it, with the tools, which are never filtered."""

    tool_config: Any | None = None
    tools: Any | None = None


async def fire_before_model_hook(config: Config, request: GenerateContentParameters) -> BeforeModelHookResult:
    """Run the BeforeModel hooks on a complete request."""
    try:
        handler = handler_for(config, HookEventName.BEFORE_MODEL)
        if handler is None:
            return BeforeModelHookResult()
        processed = handler.process_common_hook_output_fields(await handler.fire_before_model_event(request))
        return _before_model(processed, request)
    except Exception:
        log.warning("BeforeModel hooks failed, the model is called", exc_info=True)
        return BeforeModelHookResult()


async def fire_after_model_hook(
    config: Config, request: GenerateContentParameters, response: Any
) -> AfterModelHookResult:
    """Run the AfterModel hooks on a complete response and the request as it was sent."""
    try:
        handler = handler_for(config, HookEventName.AFTER_MODEL)
        if handler is None:
            return AfterModelHookResult(response=response)
        processed = handler.process_common_hook_output_fields(await handler.fire_after_model_event(request, response))
        return _after_model(processed, response)
    except Exception:
        log.warning("AfterModel hooks failed, the response stands", exc_info=True)
        return AfterModelHookResult(response=response)


async def fire_before_tool_selection_hook(
    config: Config, request: GenerateContentParameters
) -> BeforeToolSelectionHookResult:
    """Run the BeforeToolSelection hooks on a request with tools."""
    try:
        handler = handler_for(config, HookEventName.BEFORE_TOOL_SELECTION)
        if handler is None:
            return BeforeToolSelectionHookResult()
        processed = handler.process_common_hook_output_fields(await handler.fire_before_tool_selection_event(request))
        return _before_tool_selection(processed, request)
    except Exception:
        log.warning("BeforeToolSelection hooks failed, all tools stay available", exc_info=True)
        return BeforeToolSelectionHookResult()


def _before_model(processed: ProcessedHookResult, request: GenerateContentParameters) -> BeforeModelHookResult:
    output = processed.aggregated.final_output
    if not isinstance(output, BeforeModelHookOutput):
        return BeforeModelHookResult()
    blocked = output.is_blocking_decision() or processed.should_stop
    modified = request if blocked else _or(request, lambda: output.apply_llm_request_modifications(request))
    return BeforeModelHookResult(
        blocked=blocked,
        reason=output.get_effective_reason() if blocked else None,
        synthetic_response=_or(None, output.get_synthetic_response) if blocked else None,
        modified_request=None if modified is request else modified,
        **_common(processed),
    )


def _after_model(processed: ProcessedHookResult, response: Any) -> AfterModelHookResult:
    output = processed.aggregated.final_output
    if not isinstance(output, AfterModelHookOutput):
        return AfterModelHookResult(response=response)
    modified = _or(None, lambda: _heeding_what_changed(output, response).get_modified_response())
    return AfterModelHookResult(response=response if modified is None else modified, **_common(processed))


def _heeding_what_changed(output: AfterModelHookOutput, response: Any) -> AfterModelHookOutput:
    """The output without what a hook merely repeated of the response it was shown.

    A response that comes back unchanged must not cost the model's function calls, which the hook format lacks; and
    where only ``text`` was changed, say redacted, the candidates that still hold the old text must not win over it.
    """
    fields = output.to_dict()
    said = fields.get("hookSpecificOutput", {}).get("llm_response")
    if not said:
        return output
    shown = output.translator.response_payload(response)
    if said == shown:
        changed = {}
    elif "text" in said and said["text"] != shown.get("text") and said.get("candidates") == shown.get("candidates"):
        changed = {name: value for name, value in said.items() if name != "candidates"}
    else:
        return output
    fields["hookSpecificOutput"] = {**fields["hookSpecificOutput"], "llm_response": changed}
    return AfterModelHookOutput(fields, translator=output.translator)


def _before_tool_selection(
    processed: ProcessedHookResult, request: GenerateContentParameters
) -> BeforeToolSelectionHookResult:
    output = processed.aggregated.final_output
    if not isinstance(output, BeforeToolSelectionHookOutput):
        return BeforeToolSelectionHookResult()
    given = (_config_field(request, "tool_config", "toolConfig"), _config_field(request, "tools", "tools"))
    tool_config, tools = _or(given, lambda: output.apply_tool_config_modifications(*given))
    unchanged = tool_config is given[0]
    return BeforeToolSelectionHookResult(
        tool_config=None if unchanged else tool_config, tools=None if unchanged else tools, **_common(processed)
    )


def _config_field(request: GenerateContentParameters, name: str, alias: str) -> Any:
    config = getattr(request, "config", None)  # another SDK's request may have none
    if isinstance(config, dict):
        return config.get(name, config.get(alias))
    return getattr(config, name, None)


def _common(processed: ProcessedHookResult) -> dict[str, Any]:
    return {
        "should_stop": processed.should_stop,
        "stop_reason": processed.stop_reason,
        "system_message": processed.system_message,
        "suppress_output": processed.suppress_output,
    }


def _or(default: T, translate: Callable[[], T]) -> T:
    """What a hook said in SDK types; the default where it cannot be translated: the rest of what it said stands."""
    try:
        return translate()
    except Exception:
        log.warning("a hook's model data cannot be used and is ignored", exc_info=True)
        return default
