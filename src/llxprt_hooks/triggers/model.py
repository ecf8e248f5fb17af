"""Hooks around a model call. Callers use SDK types only; the hook format stays inside the engine (HOOK-141)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from llxprt_hooks.events import HookEventName
from llxprt_hooks.logger import debug_logger
from llxprt_hooks.model import HookFormat, response_payload
from llxprt_hooks.model.outputs import AfterModelHookOutput, BeforeModelHookOutput, BeforeToolSelectionHookOutput
from llxprt_hooks.triggers.failure import output_after_failure
from llxprt_hooks.triggers.portal import on_asyncio
from llxprt_hooks.triggers.relevance import handler_for

if TYPE_CHECKING:
    from llxprt_hooks.config import Config
    from llxprt_hooks.engine.results import ProcessedHookResult
    from llxprt_hooks.model import TranslatorChoice

log = debug_logger("triggers:model")

T = TypeVar("T")
RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")


@dataclass(frozen=True, slots=True, kw_only=True)
class _ModelHookResult:
    """The fields that all three results have (DELTA-HAPP-002)."""

    should_stop: bool = False
    stop_reason: str | None = None
    system_message: str | None = None
    suppress_output: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeModelHookResult(_ModelHookResult, Generic[RequestT]):
    """Whether to call the model, and with which request. A stop also counts as blocked (HOOK-184)."""

    blocked: bool = False
    reason: str | None = None
    synthetic_response: Any | None = None
    modified_request: RequestT | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterModelHookResult(_ModelHookResult, Generic[ResponseT]):
    """The response to use: the hook's, or the model's own."""

    response: ResponseT


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeToolSelectionHookResult(_ModelHookResult):
    """The tool configuration to use, if a hook changed it, with the tools, which are never filtered."""

    tool_config: Any | None = None
    tools: Any | None = None


async def fire_before_model_hook(
    config: Config, request: RequestT, *, translator: TranslatorChoice = None
) -> BeforeModelHookResult[RequestT]:
    """Run the BeforeModel hooks on a complete request."""
    handler = None
    try:
        handler = handler_for(config, HookEventName.BEFORE_MODEL)
        if handler is None:
            return BeforeModelHookResult()
        result = await on_asyncio(handler.fire_before_model_event(request, translator=translator))
        processed = handler.process_common_hook_output_fields(result)
        return _before_model(processed, request, translator)
    except Exception as error:
        block = output_after_failure(config, handler, HookEventName.BEFORE_MODEL, error)
        effect = "called" if block is None else "not called"
        log.warning("BeforeModel hooks failed, the model is %s", effect, exc_info=True)
        return BeforeModelHookResult(blocked=block is not None, reason=None if block is None else block.reason)


async def fire_after_model_hook(
    config: Config, request: Any, response: ResponseT, *, translator: TranslatorChoice = None
) -> AfterModelHookResult[ResponseT]:
    """Run the AfterModel hooks on a complete response and the request as it was sent."""
    try:
        handler = handler_for(config, HookEventName.AFTER_MODEL)
        if handler is None:
            return AfterModelHookResult(response=response)
        result = await on_asyncio(handler.fire_after_model_event(request, response, translator=translator))
        processed = handler.process_common_hook_output_fields(result)
        return _after_model(processed, response, translator)
    except Exception:
        log.warning("AfterModel hooks failed, the response is used unchanged", exc_info=True)
        return AfterModelHookResult(response=response)


async def fire_before_tool_selection_hook(
    config: Config, request: Any, *, translator: TranslatorChoice = None
) -> BeforeToolSelectionHookResult:
    """Run the BeforeToolSelection hooks on a request with tools."""
    try:
        handler = handler_for(config, HookEventName.BEFORE_TOOL_SELECTION)
        if handler is None:
            return BeforeToolSelectionHookResult()
        result = await on_asyncio(handler.fire_before_tool_selection_event(request, translator=translator))
        processed = handler.process_common_hook_output_fields(result)
        return _before_tool_selection(processed, request, translator)
    except Exception:
        log.warning("BeforeToolSelection hooks failed, all tools stay available", exc_info=True)
        return BeforeToolSelectionHookResult()


def _before_model(
    processed: ProcessedHookResult, request: RequestT, translator: TranslatorChoice
) -> BeforeModelHookResult[RequestT]:
    output = processed.aggregated.final_output
    if not isinstance(output, BeforeModelHookOutput):
        return BeforeModelHookResult()
    output = output.using(translator)
    blocked = output.is_blocking_decision() or processed.should_stop
    return BeforeModelHookResult(
        blocked=blocked,
        reason=output.get_effective_reason() if blocked else None,
        synthetic_response=_translated_or(None, lambda: _synthetic(output, request)) if blocked else None,
        modified_request=None if blocked else _changed_request(processed, output, request),
        **_common(processed),
    )


def _synthetic(output: BeforeModelHookOutput, request: Any) -> Any | None:
    is_marked = isinstance(request, HookFormat)
    return output.get_synthetic_response(None if is_marked else output.translator.read_request(request))


def _changed_request(
    processed: ProcessedHookResult, output: BeforeModelHookOutput, request: RequestT
) -> RequestT | None:
    """Return the request with the changes that can be applied; None if nothing changes.

    Each field is applied separately, so that a redacted message is sent even if the hook also chose an invalid model.
    """
    changed: RequestT | None = None
    for name, value in (output.hook_specific_output or {}).get("llm_request", {}).items():
        try:
            base = output.translator.read_request(request) if changed is None else changed
            wanted = output.translator.from_hook_llm_request({name: value}, base)
            changed = changed if wanted is base else wanted
        except Exception:
            if any(result.hook_config.blocks_on_failure for result in processed.aggregated.results):
                raise
            log.warning("a hook's llm_request.%s cannot be used and is ignored", name, exc_info=True)
    return changed


def _after_model(
    processed: ProcessedHookResult, response: ResponseT, translator: TranslatorChoice
) -> AfterModelHookResult[ResponseT]:
    output = processed.aggregated.final_output
    if not isinstance(output, AfterModelHookOutput):
        return AfterModelHookResult(response=response)
    output = output.using(translator)
    modified = _translated_or(None, lambda: _without_echoed_fields(output, response).get_modified_response(response))
    return AfterModelHookResult(response=response if modified is None else modified, **_common(processed))


def _without_echoed_fields(output: AfterModelHookOutput, response: Any) -> AfterModelHookOutput:
    """Return the output without the fields in which a hook only repeats the response that it was shown.

    An unchanged response must keep the model's function calls, which the hook format does not have. If a hook changed
    only ``text``, for example to redact it, the repeated candidates still have the old text and must not override it.
    """
    fields = output.to_dict()
    answer = fields.get("hookSpecificOutput", {}).get("llm_response")
    if not answer:
        return output
    shown = response_payload(response, output.translator)
    echoes_text = answer.get("text", shown.get("text")) == shown.get("text")
    echoes_candidates = "candidates" not in answer or _repeats(answer["candidates"], shown.get("candidates"))
    if echoes_text and echoes_candidates:
        changed = {}
    elif not echoes_text and echoes_candidates:
        changed = {name: value for name, value in answer.items() if name != "candidates"}
    else:
        return output
    fields["hookSpecificOutput"] = {**fields["hookSpecificOutput"], "llm_response": changed}
    return AfterModelHookOutput(fields, translator=output.translator)


def _repeats(given: Any, shown: Any) -> bool:
    """Whether a hook's data is part of what it was shown; a text may be in an object of its own (D-12)."""
    if isinstance(given, Mapping):
        if not isinstance(shown, Mapping):
            return bool(given.get("text") == shown)
        return all(name in shown and _repeats(value, shown[name]) for name, value in given.items())
    if isinstance(given, list) and isinstance(shown, list):
        return len(given) == len(shown) and all(map(_repeats, given, shown))
    return bool(given == shown)


def _before_tool_selection(
    processed: ProcessedHookResult, request: Any, translator: TranslatorChoice
) -> BeforeToolSelectionHookResult:
    output = processed.aggregated.final_output
    if not isinstance(output, BeforeToolSelectionHookOutput):
        return BeforeToolSelectionHookResult()
    tool_config, tools = _translated_or((None, None), lambda: _selected_tools(output.using(translator), request))
    return BeforeToolSelectionHookResult(tool_config=tool_config, tools=tools, **_common(processed))


def _selected_tools(output: BeforeToolSelectionHookOutput, request: Any) -> tuple[Any, Any]:
    """Return the tool configuration that hooks changed, with the tools; two Nones if they changed nothing."""
    if not (output.hook_specific_output or {}).get("toolConfig"):
        return None, None
    request = output.translator.read_request(request)
    given, tools = output.translator.tool_config_of(request), output.translator.tools_of(request)
    tool_config, tools = output.apply_tool_config_modifications(given, tools)
    return (None, None) if tool_config is given else (tool_config, tools)


def _common(processed: ProcessedHookResult) -> dict[str, Any]:
    return {
        "should_stop": processed.should_stop,
        "stop_reason": processed.stop_reason,
        "system_message": processed.system_message,
        "suppress_output": processed.suppress_output,
    }


def _translated_or(default: T, translate: Callable[[], T]) -> T:
    """Translate a part of a hook's answer; return the default if that fails, so that the other parts still apply."""
    try:
        return translate()
    except Exception:
        log.warning("a hook's model data cannot be used and is ignored", exc_info=True)
        return default
