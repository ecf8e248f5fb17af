"""The aggregator: several hooks' outputs into one, by the strategy of the event.

A merge depends on plan order only, never on which hook finished first. A failed hook counts as not run: its converted
output is kept in ``all_outputs`` and merged nowhere, except for the block of exit code 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from llxprt_hooks.engine.results import AggregatedHookResult
from llxprt_hooks.events import HookEventName
from llxprt_hooks.model.outputs import create_specific_hook_output

if TYPE_CHECKING:
    from llxprt_hooks.engine.results import HookExecutionResult
    from llxprt_hooks.model import TranslatorChoice
    from llxprt_hooks.protocol.outputs import DefaultHookOutput

Fields = dict[str, Any]
Outputs = Sequence["DefaultHookOutput"]


class HookAggregator:
    """Merges the results of an event's hooks."""

    def __init__(self, translator: TranslatorChoice = None) -> None:
        self._translator = translator

    def aggregate_results(
        self, results: Sequence[HookExecutionResult], event_name: HookEventName
    ) -> AggregatedHookResult:
        """One result for all; ``results`` are in plan order."""
        return AggregatedHookResult(
            success=all(result.success for result in results),
            final_output=self._merge(_counting_outputs(results), event_name),
            all_outputs=[result.output for result in results if result.output is not None],
            errors=[result.error for result in results if result.error is not None],
            total_duration=sum(result.duration for result in results),
            results=list(results),
        )

    def _merge(
        self, outputs: Sequence[DefaultHookOutput | None], event_name: HookEventName
    ) -> DefaultHookOutput | None:
        given = [output for output in outputs if output is not None]
        if not given:
            return None
        fields = STRATEGIES[event_name](given)
        return create_specific_hook_output(event_name, fields, translator=self._translator)


def merge_with_or_decision(outputs: Outputs) -> Fields:
    """Any block wins, any stop wins, texts are joined, arguments are laid over each other by key."""
    if len(outputs) == 1:
        return outputs[0].to_dict()
    merged = _merge_common(outputs)
    blocks = [output.decision for output in outputs if output.is_blocking_decision()]
    if blocks:
        merged["decision"] = blocks[-1]
    elif "continue" not in merged:
        merged["decision"] = "allow"
    specific = _merge_specific(outputs, "tool_input")
    contexts = _joined(output.get_additional_context() for output in outputs)
    if contexts:
        specific["additionalContext"] = contexts
    if specific:
        merged["hookSpecificOutput"] = specific
    return merged


def merge_with_field_replacement(outputs: Outputs) -> Fields:
    """Later fields stand, but an implied decision never undoes an explicit one."""
    merged: Fields = {}
    for output in outputs:
        merged |= output.to_dict()
    explicit = [output.decision for output in outputs if output.decision is not None and not output.implied]
    if explicit:
        merged["decision"] = explicit[-1]
    specific = _merge_specific(outputs, "llm_request")
    if specific:
        merged["hookSpecificOutput"] = specific
    return merged


def merge_tool_selection(outputs: Outputs) -> Fields:
    """All allowed names together, the most restrictive mode, and what else a stop needs (HOOK-058)."""
    merged = _merge_common(outputs)
    specific = _merge_specific(outputs)
    tool_config = _merge_tool_configs([(output.hook_specific_output or {}).get("toolConfig") for output in outputs])
    if tool_config:
        specific["toolConfig"] = tool_config
    if specific:
        merged["hookSpecificOutput"] = specific
    return merged


STRATEGIES: Mapping[HookEventName, Callable[[Outputs], Fields]] = {
    HookEventName.BEFORE_TOOL: merge_with_or_decision,
    HookEventName.AFTER_TOOL: merge_with_or_decision,
    HookEventName.BEFORE_AGENT: merge_with_or_decision,
    HookEventName.AFTER_AGENT: merge_with_or_decision,
    HookEventName.SESSION_START: merge_with_or_decision,
    HookEventName.SESSION_END: merge_with_or_decision,
    HookEventName.PRE_COMPRESS: merge_with_or_decision,
    HookEventName.NOTIFICATION: merge_with_or_decision,
    HookEventName.BEFORE_MODEL: merge_with_field_replacement,
    HookEventName.AFTER_MODEL: merge_with_field_replacement,
    HookEventName.BEFORE_TOOL_SELECTION: merge_tool_selection,
}
"""HOOK-190. The last three events of the first group are named by no requirement; nothing they say has an effect."""

_MODES_BY_RESTRICTION = ("NONE", "ANY", "AUTO")


def _counting_outputs(results: Sequence[HookExecutionResult]) -> list[DefaultHookOutput]:
    return [
        result.output
        for result in results
        if result.output is not None and (result.success or result.output.is_blocking_decision())
    ]


def _merge_common(outputs: Outputs) -> Fields:
    """The fields that every OR merge treats alike."""
    texts = {
        "stopReason": _joined(output.stop_reason for output in outputs if _needs_stop_reason(output)),
        "reason": _joined(output.reason for output in outputs),
        "systemMessage": _joined(output.system_message for output in outputs),
    }
    merged: Fields = {name: text for name, text in texts.items() if text}
    if any(output.should_stop_execution() for output in outputs):
        merged["continue"] = False
    if any(output.suppress_output for output in outputs):
        merged["suppressOutput"] = True
    return merged


def _needs_stop_reason(output: DefaultHookOutput) -> bool:
    return output.should_stop_execution() or output.is_blocking_decision()


def _merge_specific(outputs: Outputs, merged_by_key: str | None = None) -> Fields:
    """Shallow, in plan order; the one named field is an object that is merged by top-level key itself."""
    merged: Fields = {}
    for output in outputs:
        specific = output.hook_specific_output or {}
        inner = {**merged.get(merged_by_key, {}), **specific.get(merged_by_key, {})} if merged_by_key else {}
        merged |= specific
        if merged_by_key and inner:
            merged[merged_by_key] = inner
    return merged


def _merge_tool_configs(tool_configs: Iterable[Mapping[str, Any] | None]) -> Fields:
    given = [tool_config for tool_config in tool_configs if tool_config]
    modes = {tool_config.get("mode") for tool_config in given}
    lists = [names for tool_config in given if (names := tool_config.get("allowedFunctionNames")) is not None]
    merged: Fields = {}
    mode = next((mode for mode in _MODES_BY_RESTRICTION if mode in modes), None)
    if mode is not None:
        merged["mode"] = mode
    if mode == "NONE":
        merged["allowedFunctionNames"] = []
    elif lists:
        merged["allowedFunctionNames"] = sorted({name for names in lists for name in names})
    return merged


def _joined(texts: Iterable[str | None]) -> str:
    return "\n".join(text for text in texts if text)
