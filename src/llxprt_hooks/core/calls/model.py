"""Hooks around a model call. Callers use SDK types only; the hook format stays inside the engine (HOOK-141)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks._support.text import plural
from llxprt_hooks.core.calls.lookup import plan_for
from llxprt_hooks.core.engine.results import ProcessedHookResult
from llxprt_hooks.core.protocol.model_outputs import (
    AfterModelHookOutput,
    BeforeModelHookOutput,
    BeforeToolSelectionHookOutput,
)
from llxprt_hooks.events import HookEventName
from llxprt_hooks.model import HookFormat, TranslationError, request_payload, resolve_translator, response_payload
from llxprt_hooks.model.answers import collected_problems, read_response
from llxprt_hooks.model.payload import request_from, response_from

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.plan import ExecutionPlan
    from llxprt_hooks.core.engine.results import AggregatedHookResult
    from llxprt_hooks.core.engine.system import CallerConfig
    from llxprt_hooks.model import AnyTranslator, TranslatorChoice

log = debug_logger("triggers:model")

T = TypeVar("T")
RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")


@dataclass(frozen=True, slots=True, kw_only=True)
class _ModelHookResult:
    """The fields that all three results have (DELTA-HAPP-002)."""

    should_stop: bool = False
    """End the loop, and show ``stop_reason``."""
    stop_reason: str | None = None
    """The hook's ``stopReason``, else its ``reason``, else ``No reason provided``; None if no hook stops the agent."""
    system_message: str | None = None
    """For the model, never for the user: add it to this request or, after a response, to the next one."""
    suppress_output: bool = False
    """Do not show the response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeModelHookResult(_ModelHookResult, Generic[RequestT]):
    """Whether to call the model, and with which request. A stop also counts as blocked (HOOK-184)."""

    blocked: bool = False
    """Do not call the model: its response is ``synthetic_response``, or empty if that is None."""
    reason: str | None = None
    synthetic_response: Any | None = None
    modified_request: RequestT | None = None
    """Send it instead, if it is not None, but do not store it in the history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterModelHookResult(_ModelHookResult, Generic[ResponseT]):
    """The response to use."""

    response: ResponseT
    """The hook's, or the model's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeToolSelectionHookResult(_ModelHookResult):
    """Which tools the model may call."""

    tool_config: Any | None = None
    """If it is not None, put it in the request, and do not run a call that it does not allow."""
    tools: Any | None = None
    """The tools of the request, never filtered."""


class ModelRequest(Generic[RequestT]):
    """A request as its caller gave it, as the translator read it, and as hooks see it: each is worked out once."""

    def __init__(self, given: RequestT, translator: TranslatorChoice) -> None:
        self.given = given
        self._choice = translator
        self._payloads: dict[bool, Any] = {}

    @cached_property
    def translator(self) -> AnyTranslator:
        """The translator of the call; raises ``TranslationError`` if its SDK cannot be imported."""
        return resolve_translator(self._choice)

    @cached_property
    def read(self) -> Any:
        """The request in the SDK's types; raises ``TranslationError`` for anything else."""
        return request_from(self.given, self.translator)

    def payload(self, *, full: bool) -> Any:
        """The request in hook format, in the view of a plan's hooks."""
        if full not in self._payloads:
            self._payloads[full] = self.as_sent(full=full)
        return self._payloads[full]

    def as_sent(self, *, full: bool) -> Any:
        """The request in hook format as it is now: a program may change it when it sends it (D-13)."""
        if isinstance(self.given, HookFormat):
            return request_payload(self.given)
        translator = self.translator
        return translator.to_full_llm_request(self.read) if full else translator.to_hook_llm_request(self.read)

    def changed(self, request: Any) -> ModelRequest[RequestT]:
        """Return another request of the same SDK, which its translator has made."""
        other: ModelRequest[RequestT] = ModelRequest(request, self._choice)
        other.__dict__ |= {"translator": self.translator, "read": request}
        return other


class ModelResponse:
    """A response as its caller gave it, as the translator read it, and as hooks see it: each is worked out once."""

    def __init__(self, given: Any, request: ModelRequest[Any]) -> None:
        self.given = given
        self._request = request
        self._payloads: dict[bool, Any] = {}

    @cached_property
    def read(self) -> Any:
        return response_from(self.given, self._request.translator)

    def payload(self, *, full: bool) -> Any:
        """The response in hook format, in the view of a plan's hooks."""
        if full not in self._payloads:
            self._payloads[full] = self._shown(full=full)
        return self._payloads[full]

    def _shown(self, *, full: bool) -> Any:
        if isinstance(self.given, HookFormat):
            return response_payload(self.given)
        translator = self._request.translator
        return translator.to_full_llm_response(self.read) if full else translator.to_hook_llm_response(self.read)


async def fire_before_model_hook(
    config: CallerConfig, request: RequestT, *, translator: TranslatorChoice = None
) -> BeforeModelHookResult[RequestT]:
    """Run the BeforeModel hooks on a complete request."""
    plan = plan_for(config, HookEventName.BEFORE_MODEL)
    result, _ = await before_model(plan, ModelRequest(request, translator or config.translator))
    return result


async def fire_after_model_hook(
    config: CallerConfig, request: Any, response: ResponseT, *, translator: TranslatorChoice = None
) -> AfterModelHookResult[ResponseT]:
    """Run the AfterModel hooks on a complete response, never on a part of one, and the request as it was sent."""
    plan = plan_for(config, HookEventName.AFTER_MODEL)
    sent = ModelRequest(request, translator or config.translator)
    result, _ = await after_model(plan, sent, ModelResponse(response, sent))
    return result


async def fire_before_tool_selection_hook(
    config: CallerConfig, request: Any, *, translator: TranslatorChoice = None
) -> BeforeToolSelectionHookResult:
    """Run the BeforeToolSelection hooks on a request with tools."""
    plan = plan_for(config, HookEventName.BEFORE_TOOL_SELECTION)
    result, _ = await before_tool_selection(plan, ModelRequest(request, translator or config.translator))
    return result


DecidedBy: TypeAlias = tuple[str, ...]
"""The hooks that blocked or stopped."""


async def before_model(
    plan: ExecutionPlan | None, request: ModelRequest[RequestT]
) -> tuple[BeforeModelHookResult[RequestT], DecidedBy]:
    """Run the BeforeModel hooks of a plan, if there are any."""
    if plan is None:
        return BeforeModelHookResult(), ()
    decision = await plan.fire(lambda: {"llm_request": request.payload(full=plan.sees_all)})
    try:
        return _before_model(plan, decision, request), decision.decided_by
    except Exception as error:
        return _before_model(plan, plan.failed(error), request), ()


async def after_model(
    plan: ExecutionPlan | None, request: ModelRequest[Any], response: ModelResponse
) -> tuple[AfterModelHookResult[Any], DecidedBy]:
    """Run the AfterModel hooks of a plan, if there are any."""
    if plan is None:
        return AfterModelHookResult(response=response.given), ()
    full = plan.sees_all
    decision = await plan.fire(
        lambda: {"llm_request": request.as_sent(full=full), "llm_response": response.payload(full=full)}
    )
    output = decision.final_output
    if not isinstance(output, AfterModelHookOutput):
        return AfterModelHookResult(response=response.given), ()
    if (ending := _ending(decision)) is not None:
        used = _translated_or(None, lambda: ending.using(request.translator).get_refusal(response.given))
    else:
        modified = _translated_or(
            None, lambda: _modified_response(output.using(request.translator), response, full=full)
        )
        used = response.given if modified is None else modified
    return AfterModelHookResult(response=used, **_common(decision)), decision.decided_by


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPart:
    """What hooks made of the text of an answer, as far as it has arrived."""

    text: str
    is_last: bool = False
    """Whether they end the answer here, with this text."""
    stop_reason: str | None = None
    decided_by: DecidedBy = ()


async def after_model_part(plan: ExecutionPlan, llm_request: Any, text: str) -> AnswerPart:
    """Run the AfterModel hooks of a plan on a part of an answer; it has no ``finishReason`` yet (D-151)."""
    candidate = {"content": {"role": "model", "parts": [text]}, "index": 0}
    given = HookFormat({"text": text, "candidates": [candidate]})
    decision = await plan.fire({"llm_request": llm_request, "llm_response": given.data})
    output = decision.final_output
    if not isinstance(output, AfterModelHookOutput):
        return AnswerPart(text=text)
    if (ending := _ending(decision)) is not None:
        return AnswerPart(text=ending.get_effective_reason(), is_last=True, decided_by=decision.decided_by)
    shown = ModelResponse(given, ModelRequest(None, None))
    answer = (_without_echoed_fields(output, shown, full=plan.sees_all).hook_specific_output or {}).get("llm_response")
    try:
        changed = read_response(answer)["text"] if answer else None
    except TranslationError as error:
        if plan.fail_closed and plan.acts:
            return AnswerPart(text=str(error), is_last=True)
        log.warning("a hook's model data cannot be used and is ignored", exc_info=True)
        changed = None
    if (stop_reason := output.get_stop_reason()) is None:
        return AnswerPart(text=text if changed is None else changed)
    last = stop_reason if changed is None else changed
    return AnswerPart(text=last, is_last=True, stop_reason=stop_reason, decided_by=decision.decided_by)


def _ending(decision: AggregatedHookResult) -> AfterModelHookOutput | None:
    """Return what blocks an answer, which only hooks that act can."""
    block = decision.acting
    return block if isinstance(block, AfterModelHookOutput) and block.is_blocking_decision() else None


async def before_tool_selection(
    plan: ExecutionPlan | None, request: ModelRequest[Any]
) -> tuple[BeforeToolSelectionHookResult, DecidedBy]:
    """Run the BeforeToolSelection hooks of a plan, if there are any."""
    if plan is None:
        return BeforeToolSelectionHookResult(), ()
    decision = await plan.fire(lambda: {"llm_request": request.payload(full=plan.sees_all)})
    output = decision.final_output
    if not isinstance(output, BeforeToolSelectionHookOutput):
        return BeforeToolSelectionHookResult(), ()
    tool_config, tools = _translated_or(
        (None, None), lambda: _selected_tools(output.using(request.translator), request)
    )
    return BeforeToolSelectionHookResult(tool_config=tool_config, tools=tools, **_common(decision)), decision.decided_by


def _before_model(
    plan: ExecutionPlan, decision: AggregatedHookResult, request: ModelRequest[RequestT]
) -> BeforeModelHookResult[RequestT]:
    output = decision.final_output
    if not isinstance(output, BeforeModelHookOutput):
        return BeforeModelHookResult()
    acting = decision.acting
    if not (output.is_blocking_decision() or output.should_stop_execution()):
        if isinstance(acting, BeforeModelHookOutput) and acting.hook_specific_output:
            answer = _translated_or(None, lambda: _synthetic(acting.using(request.translator), request))
            if answer is not None:
                return BeforeModelHookResult(synthetic_response=answer, **_common(decision))
        return BeforeModelHookResult(modified_request=_changed_request(plan, output, request), **_common(decision))
    return BeforeModelHookResult(
        blocked=True,
        reason=output.get_effective_reason(),
        synthetic_response=_translated_or(None, lambda: _synthetic(output.using(request.translator), request)),
        **_common(decision),
    )


def _synthetic(output: BeforeModelHookOutput, request: ModelRequest[Any]) -> Any | None:
    return output.get_synthetic_response(None if isinstance(request.given, HookFormat) else request.read)


def _changed_request(
    plan: ExecutionPlan, output: BeforeModelHookOutput, request: ModelRequest[RequestT]
) -> RequestT | None:
    """Return the request with the changes that can be applied; None if nothing changes.

    Each field is applied separately, so that a redacted message is sent even if the hook also chose an invalid model.
    """
    changed: RequestT | None = None
    for name, value in (output.hook_specific_output or {}).get("llm_request", {}).items():
        try:
            base = request.read if changed is None else changed
            wanted = _applied({name: value}, base, request.translator, plan)
            changed = changed if wanted is base else wanted
        except Exception:
            if plan.fail_closed:
                raise
            log.warning("a hook's llm_request.%s cannot be used and is ignored", name, exc_info=True)
    return changed


def _applied(changes: Mapping[str, Any], base: Any, translator: AnyTranslator, plan: ExecutionPlan) -> Any:
    """Return a request with a hook's changes; a part that cannot be applied is logged, or raises (``failClosed``)."""
    apply = translator.from_full_llm_request if plan.sees_all else translator.from_hook_llm_request
    if not plan.fail_closed:
        return apply(changes, base)
    with collected_problems() as problems:
        changed = apply(changes, base)
    if problems:
        raise TranslationError(problems[0])
    return changed


_CALLS = ("call", "tool", "function")
"""Words in the names that SDKs have for a tool call."""


def _modified_response(output: AfterModelHookOutput, response: ModelResponse, *, full: bool) -> Any | None:
    answer = (output.hook_specific_output or {}).get("llm_response")
    if full and answer and not isinstance(response.given, HookFormat):
        changed = output.translator.from_full_llm_response(_with_text(answer, response), response.read)
        if changed is not None:
            return None if changed is response.read else changed
    modified = _without_echoed_fields(output, response, full=full).get_modified_response(response.given)
    if modified is not None and not isinstance(response.given, HookFormat):
        hidden = output.translator.hidden_parts(response.read)
        if calls := sum(count for kind, count in hidden.items() if any(word in kind for word in _CALLS)):
            dropped = f"its {calls} {plural(calls, 'tool call')} {'is' if calls == 1 else 'are'}"
            log.warning("an AfterModel hook replaced a response with text, so %s dropped", dropped)
    return modified


def _with_text(answer: Mapping[str, Any], response: ModelResponse) -> Mapping[str, Any]:
    """Return a hook's answer whose first candidate has the changed ``text``, if the hook changed only that."""
    shown, candidates = response.payload(full=True), answer.get("candidates")
    is_changed = isinstance(answer.get("text"), str) and answer["text"] != shown.get("text")
    if not is_changed or not candidates or not _repeats(candidates, shown.get("candidates")):
        return answer
    first = {**candidates[0], "content": {**candidates[0]["content"], "parts": [answer["text"]]}}
    return {**answer, "candidates": [first, *candidates[1:]]}


def _without_echoed_fields(
    output: AfterModelHookOutput, response: ModelResponse, *, full: bool
) -> AfterModelHookOutput:
    """Return the output without the fields in which a hook only repeats the response that it was shown.

    An unchanged response must keep the model's function calls, which the hook format does not have. If a hook changed
    only ``text``, for example to redact it, the repeated candidates still have the old text and must not override it.
    """
    fields = output.to_dict()
    answer = fields.get("hookSpecificOutput", {}).get("llm_response")
    if not answer:
        return output
    shown = response.payload(full=full)
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


def _selected_tools(output: BeforeToolSelectionHookOutput, request: ModelRequest[Any]) -> tuple[Any, Any]:
    """Return the tool configuration that hooks changed, with the tools; two Nones if they changed nothing."""
    if not (output.hook_specific_output or {}).get("toolConfig"):
        return None, None
    translator = request.translator
    given, tools = translator.tool_config_of(request.read), translator.tools_of(request.read)
    tool_config, tools = output.apply_tool_config_modifications(given, tools)
    return (None, None) if tool_config is given else (tool_config, tools)


def _common(decision: AggregatedHookResult) -> dict[str, Any]:
    processed = ProcessedHookResult.of(decision)
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
