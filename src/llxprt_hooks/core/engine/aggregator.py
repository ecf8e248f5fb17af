"""The aggregator: several hooks' outputs into one, by the strategy of the event.

A merge depends on plan order only, never on which hook finished first. A failed hook counts as not run: its converted
output is kept in ``all_outputs`` and merged nowhere, except for the block of exit code 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from llxprt_hooks.core.engine.results import AggregatedHookResult, HookExecutionResult, is_blocked
from llxprt_hooks.core.protocol.model_outputs import make_output
from llxprt_hooks.core.protocol.outputs import BLOCKING, NO_REASON, BeforeToolHookOutput, Beyond, DefaultHookOutput
from llxprt_hooks.events import HookEventName, MergeStrategy
from llxprt_hooks.settings.definitions import HookScope

if TYPE_CHECKING:
    from llxprt_hooks.model import TranslatorChoice

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
        counting: list[HookExecutionResult] = []
        acting: list[HookExecutionResult] = []
        outputs: list[DefaultHookOutput] = []
        errors: list[Exception] = []
        success, total_duration = True, 0.0
        for result in results:  # once: most events have one hook, and comprehensions would cost more than the merge
            total_duration += result.duration
            if result.hook_config.observe:
                continue
            counting.append(result)
            success = success and result.success
            if result.hook_config.acts:
                acting.append(result)
            if result.output is not None:
                outputs.append(result.output)
            if result.error is not None:
                errors.append(result.error)
        final_output = self._merge(counting, event_name)
        return AggregatedHookResult(
            success=success,
            final_output=final_output,
            all_outputs=outputs,
            errors=errors,
            total_duration=total_duration,
            results=list(results),
            decided_by=_decided_by(counting, final_output),
            acting=final_output if len(acting) == len(counting) else self._merge(acting, event_name),
        )

    def _merge(self, results: Sequence[HookExecutionResult], event_name: HookEventName) -> DefaultHookOutput | None:
        if not results:
            return None
        spec = event_name.spec
        answers = [
            _Answer(
                result.output,
                is_final=result.hook_config.fail_closed or result.hook_config.acts or not result.success,
                is_managed=result.hook_config.scope is HookScope.MANAGED,
            )
            for result in results
            if result.output is not None and (result.success or result.output.is_blocking_decision())
        ]
        if not answers:
            return None
        if len(answers) == 1 and spec.merge is MergeStrategy.OR_DECISION and answers[0].output.is_plain:
            return answers[0].output
        outputs = [answer.output for answer in answers]
        fields = _STRATEGIES[spec.merge](outputs, spec.merged_object)
        if spec.merge is MergeStrategy.FIELD_REPLACEMENT:  # only here can a later field undo an earlier one
            fields |= _standing_blocks(answers, fields)
            fields |= _merge_stops(outputs, fields)
        output = make_output(event_name, fields, self._translator)
        if any(each.beyond is not None for each in outputs):
            output.beyond = _merge_beyond(outputs)
        return output


class _Answer(NamedTuple):
    """An output that counts, and how firm its decision is among later ones in a model event (D-05)."""

    output: DefaultHookOutput
    is_final: bool
    """It is exit code 2 or of a hook with ``failClosed``: no hook undoes it."""
    is_managed: bool
    """It is the administrator's: no hook of another level undoes it."""


def _decided_by(results: Sequence[HookExecutionResult], final_output: DefaultHookOutput | None) -> tuple[str, ...]:
    """The hooks whose block or stop is in the final output."""
    if final_output is None:
        return ()
    blocked, stopped = final_output.is_blocking_decision(), final_output.should_stop_execution()
    if not blocked and not stopped:
        return ()
    return tuple(
        result.hook_config.identity
        for result in results
        if result.output is not None
        and (
            (blocked and is_blocked(result.spec, result.output)) or (stopped and result.output.should_stop_execution())
        )
    )


def merge_with_or_decision(outputs: Outputs, merged_object: str) -> Fields:
    """Any block wins, any stop wins, texts are joined, objects that hooks change are merged by top-level key."""
    merged = _merge_common(outputs)
    decision = _or_decision(outputs)
    if decision is not None:
        merged["decision"] = decision
    specific = _merge_specific(outputs, merged_object)
    contexts = _joined([output.get_additional_context() for output in outputs])
    if contexts:
        specific["additionalContext"] = contexts
    specific |= _merge_permissions(outputs, specific)
    if specific:
        merged["hookSpecificOutput"] = specific
    return merged


def merge_with_field_replacement(outputs: Outputs, merged_object: str) -> Fields:
    """Later fields replace earlier ones, but an implied decision never undoes an explicit one."""
    merged: Fields = {}
    for output in outputs:
        merged |= _own_fields(output)
    explicit = [output.decision for output in outputs if output.decision is not None and not output.implied]
    if explicit:
        merged["decision"] = explicit[-1]
    specific = _merge_specific(outputs, merged_object)
    if specific:
        merged["hookSpecificOutput"] = specific
    return merged


def merge_tool_selection(outputs: Outputs, merged_object: str) -> Fields:
    """All allowed names together, the most restrictive mode, and what else a stop needs (HOOK-058)."""
    merged = _merge_common(outputs)
    specific = _merge_specific(outputs, merged_object)
    tool_config = _merge_tool_configs([(output.hook_specific_output or {}).get("toolConfig") for output in outputs])
    if tool_config:
        specific["toolConfig"] = tool_config
    if specific:
        merged["hookSpecificOutput"] = specific
    return merged


_STRATEGIES: Mapping[MergeStrategy, Callable[[Outputs, str], Fields]] = {
    MergeStrategy.OR_DECISION: merge_with_or_decision,
    MergeStrategy.FIELD_REPLACEMENT: merge_with_field_replacement,
    MergeStrategy.TOOL_SELECTION: merge_tool_selection,
}

_MODES_BY_RESTRICTION = ("NONE", "ANY", "AUTO")


def _standing_blocks(answers: Sequence[_Answer], merged: Fields) -> Fields:
    """The blocks of a model event that no later decision undoes, with their reasons (D-05, D-26)."""
    explicit = [answer for answer in answers if answer.output.decision and not answer.output.implied]
    last = explicit[-1:] + [answer for answer in explicit if answer.is_managed][-1:]
    blocks = [
        answer.output
        for answer in explicit
        if answer.output.is_blocking_decision() and (answer.is_final or any(answer is each for each in last))
    ]
    if not blocks:
        return {}
    fields: Fields = {"decision": blocks[-1].decision}
    reason = _joined(_own_fields(output).get("reason") for output in blocks)
    return fields | {"reason": reason} if reason or "reason" in merged else fields


def _or_decision(outputs: Outputs) -> str | None:
    """One rule for one hook and for several: the last blocking word, else ask, else allow unless a hook stops."""
    blocks = [_blocking_word(output) for output in outputs if output.is_blocking_decision()]
    if blocks:
        return blocks[-1]
    if "ask" in [word for output in outputs for word in (output.decision, output.permission_decision)]:
        return "ask"
    return None if False in [output.continue_ for output in outputs] else "allow"


def _blocking_word(output: DefaultHookOutput) -> str | None:
    """The word of a hook that blocks; its own permission decision comes first."""
    permission = output.permission_decision
    return permission if permission in BLOCKING else output.decision


def _merge_permissions(outputs: Outputs, specific: Fields) -> Fields:
    """Deny beats ask beats allow, and the reason is that of all hooks that block, with whichever field (D-26)."""
    if not isinstance(outputs[0], BeforeToolHookOutput):
        return {}
    merged: Fields = {}
    given = [word for output in outputs if (word := output.permission_decision) is not None]
    if given:
        denied = [word for word in given if word in BLOCKING]
        merged["permissionDecision"] = denied[-1] if denied else "ask" if "ask" in given else given[-1]
    blocking = [output for output in outputs if output.is_blocking_decision()]
    if blocking:
        specific.pop("permissionDecisionReason", None)
    if any(map(_permission_reason, blocking)):
        reasons = (_permission_reason(output) or _own_fields(output).get("reason") for output in blocking)
        merged["permissionDecisionReason"] = _joined(reasons)
    return merged


def _permission_reason(output: DefaultHookOutput) -> str | None:
    reason: str | None = (output.hook_specific_output or {}).get("permissionDecisionReason")
    return reason


def _merge_common(outputs: Outputs) -> Fields:
    """The fields that every OR merge treats alike."""
    own = [_own_fields(output) for output in outputs]
    merged: Fields = {}
    for name in ("stopReason", "reason", "systemMessage"):
        if text := _joined([fields.get(name) for fields in own]):
            merged[name] = text
    for output in outputs:
        if output.should_stop_execution():
            merged["continue"] = False
        if output.suppress_output:
            merged["suppressOutput"] = True
    return merged | _merge_stops(outputs, merged)


def _merge_stops(outputs: Outputs, merged: Fields) -> Fields:
    """A stop is final, and its reason is that of the hooks that stop, whatever others have in these fields."""
    stops = [output for output in outputs if output.should_stop_execution()]
    if not stops:
        return {}
    reason = _joined(output.stop_reason for output in stops) or _joined(output.reason for output in stops) or NO_REASON
    if (merged.get("stopReason") or merged.get("reason") or NO_REASON) == reason:
        return {"continue": False}
    return {"continue": False, "stopReason": reason}


def _own_fields(output: DefaultHookOutput) -> Fields:
    """An output's fields, as far as they count among those of other hooks.

    Without a stop of its own, a hook's ``stopReason`` would become the reason of another hook's stop. It stays the
    reason of the hook's block, if that has no other.
    """
    fields = output.to_dict()
    if not output.should_stop_execution():
        stop_reason = fields.pop("stopReason", None)
        if output.is_blocking_decision() and stop_reason and not output.reason:
            fields["reason"] = stop_reason
    return fields


def _merge_specific(outputs: Outputs, merged_object: str) -> Fields:
    """Shallow, in plan order; ``merged_object`` names a field that is merged by top-level key itself.

    A whole replacement of it comes after all changes.
    """
    merged: Fields = {}
    for output in sorted(outputs, key=lambda each: each.replaces_input):
        specific = output.hook_specific_output or {}
        inner: Fields = {}
        if merged_object and not output.replaces_input:
            inner = {**merged.get(merged_object, {}), **specific.get(merged_object, {})}
        merged |= specific
        if inner:
            merged[merged_object] = inner
    return merged


def _merge_beyond(outputs: Outputs) -> Beyond:
    found = [output.beyond for output in outputs if output.beyond is not None]
    return Beyond(
        any(each.whole_input for each in found),
        "\n\n".join(each.beside_result for each in found if each.beside_result),
        _joined(each.to_user for each in found),
    )


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
    return "\n".join(filter(None, texts))
