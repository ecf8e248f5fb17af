"""Hooks around a tool call."""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from llxprt_hooks._support.json_codec import PAYLOAD_DEPTH, decode_text, write_json
from llxprt_hooks._support.stamps import new_id
from llxprt_hooks.core.calls.approval import Answered, ApprovalRequest, Approver, Verdict, decide
from llxprt_hooks.core.calls.lookup import NO_PLANS, ToolPlans, plan_for, tool_plans
from llxprt_hooks.core.engine.plan import ExecutionPlan, name_text
from llxprt_hooks.core.engine.results import AggregatedHookResult, error_text
from llxprt_hooks.core.engine.session import Detached, Session, Sessionless, current_session
from llxprt_hooks.core.protocol.outputs import BeforeToolHookOutput, DefaultHookOutput, merged_by_key
from llxprt_hooks.core.protocol.tool_result import RESULT_FIELDS, ToolResult, with_text
from llxprt_hooks.events import HookEventName

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.system import CallerConfig
    from llxprt_hooks.model import Restriction

Execute: TypeAlias = Callable[[dict[str, Any]], Awaitable[Any] | Any]
"""A tool: takes its input and returns a ``ToolResult``, or any other value, which becomes the content of one."""


class ToolNotRun(Exception):  # a statement, not an error
    """What a tool's function raises to say that the tool did not run, so that no AfterTool hook is to see it."""


async def fire_before_tool_hook(
    config: CallerConfig, tool_name: str, tool_input: Mapping[str, Any]
) -> DefaultHookOutput | None:
    """Run the BeforeTool hooks; None means that they returned nothing and the tool may run.

    Do not run the tool if the output's ``is_blocking_decision()`` or ``should_stop_execution()`` is true. Otherwise run
    it with ``{**tool_input, **(output.get_modified_tool_input() or {})}``.
    """
    tool_name = name_text(tool_name)
    plan = plan_for(config, HookEventName.BEFORE_TOOL, tool_name)
    if plan is None:
        return None
    return (await plan.fire({"tool_name": tool_name, "tool_input": tool_input})).final_output


async def fire_after_tool_hook(
    config: CallerConfig, tool_name: str, tool_input: Mapping[str, Any], tool_response: Mapping[str, Any] | ToolResult
) -> DefaultHookOutput | None:
    """Run the AfterTool hooks; None means that they returned nothing and the result is used unchanged.

    ``tool_response`` may be a dict in the format of the protocol. Add the output's ``get_additional_context()`` and
    ``system_message`` to the result for the model, and apply ``suppress_output`` and ``should_stop_execution()``.
    """
    tool_name = name_text(tool_name)
    plan = plan_for(config, HookEventName.AFTER_TOOL, tool_name)
    if plan is None:
        return None
    return (await plan.fire(partial(_after_fields, tool_name, tool_input, tool_response))).final_output


class HookedToolCall:
    """A tool call in two steps, for callers that run the tool themselves.

    Run the tool with ``input`` after ``before()``, unless it returned a result. The call respects the restriction and
    the stop of its session, and records new ones on it.
    """

    __slots__ = (
        "_config", "_output", "_plans", "_session", "_started", "answered", "approver", "input", "is_approved", "name",
        "report_answer", "tool_use_id",
    )  # fmt: skip

    def __init__(
        self,
        config: CallerConfig,
        tool_name: str,
        tool_input: dict[str, Any],
        *,
        restriction: Restriction | None = None,
        session: Session | Sessionless | None = None,
        plans: ToolPlans | None = None,
        tool_use_id: str | None = None,
    ) -> None:
        self.name = tool_name
        self.input = tool_input
        """The arguments; after ``before()``, as hooks changed them."""
        self.tool_use_id = tool_use_id
        """The id that the model or the framework gave the call."""
        self.approver: Approver | None = None
        """The framework's own way to ask a person, for a program without an approver."""
        self.is_approved = False
        """After ``before()``: whether a hook that acts, or a person that one asked, said that the tool may run."""
        self.answered: Answered | None = None
        """After ``before()``: what became of a hook's question; None if no hook asked."""
        self.report_answer: Callable[[Verdict], None] | None = None
        """Reports the answer to a question that a framework asks by itself, after ``before()``."""
        self._config = config
        self._plans = plans
        self._session = session or Detached(restriction)
        self._output: DefaultHookOutput | None = None
        self._started = 0.0

    async def run(self, execute_fn: Execute) -> ToolResult:
        """Run a tool, which may be a function or a coroutine function, between its hooks."""
        if (result := await self.before()) is not None:
            return result
        try:
            outcome = execute_fn(self.input)
            outcome = await outcome if is_awaitable(outcome) else outcome
        except ToolNotRun:
            raise
        except Exception as error:
            if (result := await self.raised(error)) is None:
                raise
            return result
        return await self.after(outcome)

    async def before(self) -> ToolResult | None:
        """Run the hooks before the call. If it returns None, run the tool with ``input``; else use the result.

        A call that the restriction does not allow fires no event.
        """
        name = name_text(self.name)
        if (stopped := self._stopped()) is not None:
            return stopped
        restriction = self._session.restriction
        if restriction.allowed is not None and (refusal := restriction.refusal(name)) is not None:
            return ToolResult.failure(refusal, "restricted")
        if (journal := self._session.journal) is not None:
            journal.call(self._call_id(), name, self.input)
        before, _ = self._planned()
        if before is None:
            self._started = time.perf_counter()
            return None
        given = self.input
        self.input = own = _own_copy(given, PAYLOAD_DEPTH, {})
        decision = await before.fire({"tool_name": name, "tool_input": own}, extras=self._extras(before))
        output = self._output = decision.final_output
        if output is not None:
            if output.is_blocking_decision() or output.should_stop_execution():
                return self._finished(replace(_refused(output), decided_by=decision.decided_by))
            self.input = _final_input(own, output)
            if before.acts and (refused := await self._ask(before, decision)) is not None:
                return refused
        if self.input is own and _is_copy(own, given, set()):
            self.input = given  # callers recognize by it that nothing has changed
        self._started = time.perf_counter()
        return self._stopped()  # by another call, while the hooks of this one ran

    def _stopped(self) -> ToolResult | None:
        reason = self._session.stop_reason
        return None if reason is None else replace(ToolResult.failure(reason, "hook_stopped"), stop_reason=reason)

    async def raised(self, error: Exception) -> ToolResult | None:
        """Run the hooks that act after a tool that raised. If it returns None, raise the error; else use the result."""
        _, after = self._planned()
        failure = {"message": error_text(error), "type": type(error).__name__}
        result = ToolResult(failure["message"], failure["message"], error=failure)
        if after is None or not after.acts:
            self._record(result)
            return None
        finished = await self._after(after.only_acting(), result, {"error": failure})
        return finished if finished.replaced else None

    def not_run(self, result: ToolResult) -> ToolResult:
        """Return the result of a call that did not run after ``before()``, with what its hooks say to the model."""
        result = result if self._output is None else _with_effects(result, self._output, None)
        self._record(result)
        return result

    async def after(self, outcome: Any) -> ToolResult:
        """Run the hooks after the call, on what the tool returned: a ``ToolResult`` or any other value."""
        return await self._after(self._planned()[1], as_tool_result(outcome))

    async def _after(
        self, after: ExecutionPlan | None, result: ToolResult, shown: Mapping[str, Any] | None = None
    ) -> ToolResult:
        output = None
        if after is not None:
            fields = partial(_after_fields, name_text(self.name), self.input, shown or result)
            decision = await after.fire(fields, extras=self._extras(after, time.perf_counter()))
            output = decision.final_output
            if decision.acting is not None:
                result = _replaced(result, decision.acting)
            result = replace(result, decided_by=decision.decided_by) if decision.decided_by else result
        has_effects = self._output is not None or output is not None
        return self._finished(_with_effects(result, self._output, output) if has_effects else result)

    def _extras(self, plan: ExecutionPlan, ended: float | None = None) -> dict[str, Any] | None:
        """What only hooks that act receive: the id of the call, and how long the tool took."""
        if not plan.acts:
            return None
        if any(each is not None and each.foreign for each in self._planned()):
            self._call_id()  # hooks of other dialects find the same before and after the call
        extras: dict[str, Any] = {} if self.tool_use_id is None else {"tool_use_id": self.tool_use_id}
        if ended is not None:
            extras["duration_ms"] = round((ended - self._started) * 1000)
        return extras

    def _call_id(self) -> str:
        """The id of the call, made up if nobody gave it one."""
        if self.tool_use_id is None:
            self.tool_use_id = f"toolu_{new_id()}"
        return self.tool_use_id

    async def answer_by_hooks(self) -> ToolResult | bool:
        """Let hooks answer the question whether the call may run, before a person is asked (D-156).

        Returns whether they say yes, perhaps with other arguments, or the result of a call that they refuse.
        """
        before = self._planned()[0]
        plan = None if before is None else before.for_question
        if plan is None:
            return False
        fields = {"tool_name": name_text(self.name), "tool_input": self.input}
        decision = await plan.fire(fields, extras=self._extras(plan))
        output = decision.final_output
        if output is None:
            return False
        if output.is_blocking_decision() or output.should_stop_execution():
            return self._finished(replace(_refused(output), decided_by=decision.decided_by))
        if output.permission_decision != "allow":
            return False
        self.input = _final_input(self.input, output)
        return True

    async def _ask(self, before: ExecutionPlan, decision: AggregatedHookResult) -> ToolResult | None:
        """Ask the program's approver if a hook that acts says so; the result of a call that must not run."""
        asking = [each for each in decision.results if each.hook_config.acts and each.output and each.output.asks()]
        if not asking:
            acting = decision.acting
            self.is_approved = acting is not None and acting.permission_decision == "allow"
            return None
        answered = await self.answer_by_hooks()
        if answered is not False:
            self.is_approved = answered is True
            return None if answered is True else answered
        output = asking[0].output
        request = ApprovalRequest(
            tool_name=name_text(self.name),
            tool_input=_own_copy(self.input, PAYLOAD_DEPTH, {}),
            reason="" if output is None else output.get_effective_reason(),
            hook=asking[0].hook_config.identity,
            session_id=(current_session(self._config) or self._config).session_id,
            tool_use_id=self.tool_use_id,
        )
        report = partial(before.report_question, asking[0], request, time.perf_counter())
        try:
            verdict = await decide(self._config.approver, request, self._session, self.approver)
        except Exception:  # so a framework leaves the call until the answer is there
            report(Verdict(Answered.WAITING))
            raise
        report(verdict)
        self.answered = verdict.answered
        self.report_answer = report if verdict.answered is Answered.WAITING else None
        self.is_approved = not verdict.answered.is_refusal
        if self.is_approved:
            return None
        refused = ToolResult.failure(f"{request.reason} ({verdict.why})", "hook_blocked")
        return self._finished(replace(refused, decided_by=(request.hook,)))

    def _planned(self) -> ToolPlans:
        """The hooks before and after the call, found when they are first needed."""
        if self._plans is None:
            self._plans = tool_plans(self._config, self.name)
        return self._plans

    def _record(self, result: ToolResult) -> None:
        if (journal := self._session.journal) is not None:
            content = result.llm_content
            text = content if isinstance(content, str) else decode_text(write_json(content))
            journal.result(self._call_id(), text, result.error is not None)

    def _finished(self, result: ToolResult) -> ToolResult:
        self._record(result)
        if result.stop_reason is not None:
            self._session.stop(result.stop_reason, result)
        return result


async def execute_tool_with_hooks(
    config: CallerConfig,
    tool_name: str,
    tool_input: dict[str, Any],
    execute_fn: Execute,
    *,
    restriction: Restriction | None = None,
) -> ToolResult:
    """Run the BeforeTool hooks, the tool with the changes of the hooks, and the AfterTool hooks.

    A blocked or stopped tool does not run; the result then has the reason. ``execute_fn``, a function or a coroutine
    function, gets the final input as its only argument. What it returns becomes a ``ToolResult``; if it raises, the
    exception passes through, and AfterTool does not fire. ``restriction`` is that of the model call that requested the
    tool: a call that it does not allow does not run and fires no event.
    """
    plans = tool_plans(config, tool_name)
    if plans is not NO_PLANS or restriction is not None:
        call = HookedToolCall(config, tool_name, tool_input, restriction=restriction, plans=plans)
        return await call.run(execute_fn)
    outcome = execute_fn(tool_input)  # not ``run_unhooked``: its coroutine would add a quarter to the time
    return as_tool_result(await outcome if is_awaitable(outcome) else outcome)


async def run_unhooked(execute_fn: Execute, tool_input: dict[str, Any]) -> ToolResult:
    """Run a tool whose call has no hooks."""
    outcome = execute_fn(tool_input)
    return as_tool_result(await outcome if is_awaitable(outcome) else outcome)


def is_awaitable(outcome: Any) -> bool:
    """Whether what a tool returned must be awaited first; the usual results are recognized at once."""
    return not isinstance(outcome, (ToolResult, str)) and inspect.isawaitable(outcome)


def as_tool_result(outcome: Any) -> ToolResult:
    """Return what a tool returned as a ``ToolResult``; any other value is its content."""
    return outcome if isinstance(outcome, ToolResult) else ToolResult(outcome, outcome)


def _after_fields(tool_name: str, tool_input: Any, response: Mapping[str, Any] | ToolResult) -> dict[str, Any]:
    shown = response.to_dict() if isinstance(response, ToolResult) else response
    return {"tool_name": tool_name, "tool_input": tool_input, "tool_response": shown}


def _own_copy(value: Any, levels: int, copies: dict[int, Any]) -> Any:
    """Copy the dicts and lists in the arguments, so that nobody changes them between the hooks and the tool.

    Other objects are the program's own, and stay. What is nested deeper than hooks are shown is refused later.
    """
    if type(value) not in (dict, list) or not levels:
        return value
    if id(value) not in copies:
        own = copies[id(value)] = type(value)()
        if type(value) is dict:
            own.update({name: _own_copy(item, levels - 1, copies) for name, item in value.items()})
        else:
            own.extend([_own_copy(item, levels - 1, copies) for item in value])
    return copies[id(value)]


def _is_copy(own: Any, given: Any, seen: set[int]) -> bool:
    """Whether the value that was copied still is what it was."""
    if own is given or id(own) in seen:
        return True
    seen.add(id(own))
    if type(own) is dict and type(given) is dict:
        return own.keys() == given.keys() and all(_is_copy(item, given.get(name), seen) for name, item in own.items())
    if type(own) is list and type(given) is list:
        return len(own) == len(given) and all(
            _is_copy(item, other, seen) for item, other in zip(own, given, strict=False)
        )
    return False


def _final_input(tool_input: dict[str, Any], before: DefaultHookOutput) -> dict[str, Any]:
    changes = before.get_modified_tool_input() if isinstance(before, BeforeToolHookOutput) else None
    if changes is not None and before.replaces_input:
        return dict(changes)
    return merged_by_key(tool_input, changes) if changes else tool_input


def _replaced(result: ToolResult, acting: DefaultHookOutput) -> ToolResult:
    """Return the result that hooks which act put in its place: a block's reason, text, or some of its fields (D-46)."""
    if acting.is_blocking_decision():
        return replace(ToolResult.failure(acting.get_effective_reason(), "hook_blocked"), replaced=True)
    response = acting.get_tool_response()
    if response is None:
        return result
    if isinstance(response, str):
        return replace(result, llm_content=response, return_display=response, error=None, replaced=True)
    fields = {RESULT_FIELDS[name]: value for name, value in response.items() if name in RESULT_FIELDS}
    changed = fields.get("error")
    message = changed.get("message") if isinstance(changed, Mapping) else None
    if isinstance(message, str) and result.llm_content == (result.error or {}).get("message"):
        # All that hooks were shown of a failure is its error: the text that the model gets must be the changed one.
        fields = {"llm_content": message, "return_display": message, **fields}
    return replace(result, **{"error": None, **fields}, replaced=True)


def _refused(before: DefaultHookOutput) -> ToolResult:
    reason = before.get_effective_reason()
    kind = "hook_blocked" if before.is_blocking_decision() else "hook_stopped"
    return _with_effects(ToolResult.failure(reason, kind), before, None)


def _with_effects(result: ToolResult, before: DefaultHookOutput | None, after: DefaultHookOutput | None) -> ToolResult:
    """Return the result with the hooks' context, messages, suppression and stop reason (HOOK-217)."""
    outputs = [output for output in (before, after) if output is not None]
    context = after.get_additional_context() if after is not None else None
    beside = [output.beyond.beside_result for output in outputs if output.beyond is not None]
    additions = [*filter(None, beside), *([context] if context else [])]
    additions += [f"[System] {output.system_message}" for output in outputs if output.system_message]
    content = result.llm_content
    for addition in additions:
        content = with_text(content, f"\n\n{addition}")
    return replace(
        result,
        llm_content=content,
        suppress_display=result.suppress_display or bool(after is not None and after.suppress_output),
        stop_reason=next((reason for output in outputs if (reason := output.get_stop_reason())), result.stop_reason),
        additions=[*result.additions, *additions],
    )
