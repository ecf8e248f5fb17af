"""The event handler: plan, translate, run, merge, report; for each event, on direct call or by message.

Whatever fails inside becomes a failure envelope that names the stage; nothing but cancellation is ever raised.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from llxprt_hooks.engine.bus_connection import BusConnection, close_connection
from llxprt_hooks.engine.observer import EventEnded, EventStarted, new_id, notify
from llxprt_hooks.engine.reporting import report_end, report_hooks, report_start
from llxprt_hooks.engine.results import (
    AggregatedHookResult,
    HookStageError,
    ProcessedHookResult,
    build_failure_envelope,
    make_empty_success_result,
)
from llxprt_hooks.engine.session import current_session
from llxprt_hooks.events import FieldKind, HookEventName, SessionEndReason, SessionStartSource
from llxprt_hooks.logger import debug_logger
from llxprt_hooks.model import mark_request, mark_response, request_payload, response_payload
from llxprt_hooks.model.outputs import create_specific_hook_output
from llxprt_hooks.process import is_out_of_stack
from llxprt_hooks.protocol.clock import timestamp
from llxprt_hooks.protocol.exit_codes import cannot_run_block, fail_closed_block
from llxprt_hooks.protocol.inputs import BASE_FIELDS, input_problem, name_text
from llxprt_hooks.protocol.json_codec import PAYLOAD_DEPTH, is_too_deep
from llxprt_hooks.protocol.tool_result import ToolResult

if TYPE_CHECKING:
    from llxprt_hooks.bus.messages import MessageBus
    from llxprt_hooks.engine.advice import Adviser
    from llxprt_hooks.engine.aggregator import HookAggregator
    from llxprt_hooks.engine.observer import HookObserver
    from llxprt_hooks.engine.planner import ExecutionPlan, HookPlanner
    from llxprt_hooks.engine.runner import HookRunner
    from llxprt_hooks.model import TranslatorChoice
    from llxprt_hooks.protocol.outputs import DefaultHookOutput

NEEDS_ASYNCIO = "llxprt-hooks needs asyncio, and this call does not run in an asyncio task"


class EventConfig(Protocol):
    """What the event handler asks of a configuration: the base fields of every payload."""

    @property
    def session_id(self) -> str: ...
    @property
    def working_dir(self) -> str: ...
    @property
    def transcript_path(self) -> str: ...


class HookEventHandler:
    """Fires events. One instance serves all events of a configuration, any number of them at once."""

    def __init__(
        self,
        config: EventConfig,
        planner: HookPlanner,
        runner: HookRunner,
        aggregator: HookAggregator,
        *,
        logger: logging.Logger | None = None,
        translator: TranslatorChoice = None,
        observer: HookObserver | None = None,
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        self._config = config
        self._planner = planner
        self._runner = runner
        self._aggregator = aggregator
        self._log = logger or debug_logger("handler")
        self._translator = translator
        self._observer = observer
        self._prepare = prepare
        self._connections: list[BusConnection] = []
        self._advised: set[tuple[str, Adviser]] = set()

    # The eleven events.

    async def fire_before_tool_event(self, tool_name: str, tool_input: Mapping[str, Any]) -> AggregatedHookResult:
        """A tool is about to run."""
        return await self._fire(HookEventName.BEFORE_TOOL, {"tool_name": tool_name, "tool_input": tool_input})

    async def fire_after_tool_event(
        self, tool_name: str, tool_input: Mapping[str, Any], tool_response: Mapping[str, Any] | ToolResult
    ) -> AggregatedHookResult:
        """A tool has run; its result has not reached the model yet."""
        fields = {"tool_name": tool_name, "tool_input": tool_input, "tool_response": tool_response}
        return await self._fire(HookEventName.AFTER_TOOL, fields)

    async def fire_before_model_event(
        self, request: Any, *, translator: TranslatorChoice = None
    ) -> AggregatedHookResult:
        """The model is about to be called with this request."""
        return await self._fire(HookEventName.BEFORE_MODEL, {"llm_request": request}, translator=translator)

    async def fire_after_model_event(
        self, request: Any, response: Any, *, translator: TranslatorChoice = None
    ) -> AggregatedHookResult:
        """The model has answered completely; the answer has not been used yet."""
        fields = {"llm_request": request, "llm_response": response}
        return await self._fire(HookEventName.AFTER_MODEL, fields, translator=translator)

    async def fire_before_tool_selection_event(
        self, request: Any, *, translator: TranslatorChoice = None
    ) -> AggregatedHookResult:
        """The model is about to choose among the tools of this request."""
        return await self._fire(HookEventName.BEFORE_TOOL_SELECTION, {"llm_request": request}, translator=translator)

    async def fire_session_start_event(
        self, source: SessionStartSource = SessionStartSource.STARTUP
    ) -> AggregatedHookResult:
        """A session begins."""
        return await self._fire(HookEventName.SESSION_START, {"source": source})

    async def fire_session_end_event(self, reason: SessionEndReason = SessionEndReason.EXIT) -> AggregatedHookResult:
        """A session ends."""
        return await self._fire(HookEventName.SESSION_END, {"reason": reason})

    async def fire_before_agent_event(self, prompt: str) -> AggregatedHookResult:
        """The agent is about to work on a prompt."""
        return await self._fire(HookEventName.BEFORE_AGENT, {"prompt": prompt})

    async def fire_after_agent_event(
        self, prompt: str, prompt_response: str, stop_hook_active: bool = False
    ) -> AggregatedHookResult:
        """The agent is done with a prompt."""
        fields = {"prompt": prompt, "prompt_response": prompt_response, "stop_hook_active": stop_hook_active}
        return await self._fire(HookEventName.AFTER_AGENT, fields)

    async def fire_pre_compress_event(self, trigger: str) -> AggregatedHookResult:
        """The conversation is about to be compressed."""
        return await self._fire(HookEventName.PRE_COMPRESS, {"trigger": trigger})

    async def fire_notification_event(
        self, notification_type: str, message: str, details: Mapping[str, Any] | None = None
    ) -> AggregatedHookResult:
        """The user is notified or asked something."""
        fields = {"notification_type": notification_type, "message": message, "details": details or {}}
        return await self._fire(HookEventName.NOTIFICATION, fields)

    async def fire_event(
        self, event_name: str, hook_input: Mapping[str, Any], *, keep_base_fields: bool = False
    ) -> AggregatedHookResult:
        """Fire any event from its input as a mapping, checked first.

        Model data that the translator cannot read may be in hook format without a mark: messages and recorded payloads
        cannot carry one (D-16). With ``keep_base_fields`` the base fields in the input are used, so that a recorded
        payload can be fired again.
        """
        event: HookEventName | None = None
        stage = "initialization"
        try:
            self._prepare()
            stage = "validation"
            event = _narrowed(event_name)
            problem = input_problem(event, hook_input)
            if problem:
                raise HookStageError("validation", problem, {"eventName": event.value})
        except Exception as error:
            return self._failure(error, stage, event)
        fields = {name: hook_input[name] for name in event.spec.fields}
        base = {name: hook_input[name] for name in BASE_FIELDS if name in hook_input} if keep_base_fields else {}
        return await self._fire(event, fields, base, accept_unmarked=True)

    def has_hooks_for(self, event_name: HookEventName, subject: str | None = None) -> bool:
        """Whether any hook would run. After the first call for a subject, this is a dictionary lookup."""
        return self._planner.create_execution_plan(event_name, subject) is not None

    def fails_closed(self, event_name: HookEventName, subject: str | None = None) -> bool:
        """Whether a hook that would run has ``failClosed``: then a failure of the engine blocks, too (D-27)."""
        plan = self._planner.create_execution_plan(event_name, subject)
        return plan is not None and plan.fail_closed

    def enforces(self, event_name: HookEventName, subject: str | None = None) -> bool:
        """Whether a hook that would run can change anything: one that only observes cannot."""
        plan = self._planner.create_execution_plan(event_name, subject)
        return plan is not None and not plan.observes_only

    def runs_in_process(self, event_name: HookEventName, subject: str | None = None) -> bool:
        """Whether a hook that would run is part of this process, so that its event loop matters."""
        plan = self._planner.create_execution_plan(event_name, subject)
        return plan is not None and plan.in_process

    def use_planner(self, planner: HookPlanner) -> None:
        """Plan later events with other hooks. Events that have started keep their plan."""
        self._planner = planner

    def process_common_hook_output_fields(self, result: AggregatedHookResult) -> ProcessedHookResult:
        """Extract the fields that every caller must act on: stop, message, suppression (DELTA-HRUN-004)."""
        output = result.final_output
        if output is None:
            return ProcessedHookResult(result, False, None, None, False)
        return ProcessedHookResult(
            aggregated=result,
            should_stop=output.should_stop_execution(),
            stop_reason=output.get_stop_reason(),
            system_message=output.system_message or None,
            suppress_output=bool(output.suppress_output),
        )

    # By message.

    def attach(self, bus: MessageBus) -> BusConnection:
        """Answer the requests on a message bus: from now on, or as soon as it has subscribed asynchronously."""
        for connection in self._connections:
            if connection.bus is bus:
                return connection
        connection = BusConnection(bus, self.fire_event, self._log)
        self._connections.append(connection)
        return connection

    async def connect(self, bus: MessageBus) -> None:
        """Answer the requests on a message bus from now on."""
        await self.opened(self.attach(bus))

    async def opened(self, connection: BusConnection) -> None:
        """Wait until the bus of a connection has accepted the subscription; drop the connection if it does not."""
        try:
            await connection.opened()
        except Exception:
            if connection in self._connections:
                self._connections.remove(connection)
            raise

    async def disconnect(self) -> None:
        """Unsubscribe from every message bus."""
        while self._connections:
            await close_connection(self._connections.pop().close(), self._log)

    def dispose(self) -> None:
        """Unsubscribe from every message bus, without waiting for one that unsubscribes asynchronously."""
        while self._connections:
            self._connections.pop().close_soon()

    # Pipeline of a single event.

    async def _fire(
        self,
        event_name: HookEventName,
        fields: Mapping[str, Any],
        base: Mapping[str, Any] | None = None,
        translator: TranslatorChoice = None,
        *,
        accept_unmarked: bool = False,
    ) -> AggregatedHookResult:
        stage, plan, subject, event_id, wall_time = "planning", None, None, "", 0.0
        try:
            matched_field = event_name.spec.matched_field
            if matched_field:
                fields = {**fields, matched_field: name_text(fields[matched_field])}
                subject = fields[matched_field]
            plan = self._planner.create_execution_plan(event_name, subject)
            if plan is None:
                nothing = make_empty_success_result()
                self._report_end(event_id, event_name, nothing, wall_time)
                return nothing
            if not in_asyncio_task():
                return self._fire_outside_asyncio(event_name, plan)
            stage = "translation"
            own = _translated(event_name, fields, translator or self._translator, accept_unmarked)
            hook_input = {**self._base_fields(event_name), **(base or {}), **own}
            stage = "validation"
            if _needs_all_levels(event_name, plan) and is_too_deep(hook_input):
                raise NestingError
            stage = "execution"
            event_id = self._report_start(event_name, plan, hook_input)
            started = time.perf_counter()
            execute = self._runner.execute_hooks_sequential if plan.sequential else self._runner.execute_hooks_parallel
            results = await execute(plan.hook_configs, event_name, hook_input, event_id)
            wall_time = (time.perf_counter() - started) * 1000
            stage = "aggregation"
            aggregated = self._aggregator.aggregate_results(results, event_name)
            if _needs_all_levels(event_name, plan) and _changes_are_too_deep(event_name, aggregated.final_output):
                refused = self._failure(NestingError(), stage, event_name)
                errors = [*aggregated.errors, *refused.errors]
                aggregated = replace(aggregated, success=False, errors=errors, final_output=refused.final_output)
        except Exception as error:
            aggregated = self._failure(error, stage, event_name, plan)
            if plan is not None:
                event_id = event_id or self._report_start(event_name, plan, {})
        self._report_end(event_id, event_name, aggregated, wall_time, plan, subject)
        return aggregated

    def _fire_outside_asyncio(self, event_name: HookEventName, plan: ExecutionPlan) -> AggregatedHookResult:
        """Block an event whose hooks cannot be awaited, because the caller runs on another event loop, or on none.

        The triggers do not get here: they run the hooks on a background loop (D-42).
        """
        self._log.error("%s: hooks cannot run: %s", event_name, NEEDS_ASYNCIO)
        envelope = build_failure_envelope(RuntimeError(NEEDS_ASYNCIO), "execution", {"eventName": event_name.value})
        if plan.observes_only:
            return envelope
        block = cannot_run_block(NEEDS_ASYNCIO).to_dict()
        return replace(envelope, final_output=create_specific_hook_output(event_name, block))

    def _report_start(self, event_name: HookEventName, plan: ExecutionPlan, payload: Mapping[str, Any]) -> str:
        """Log the plan and notify the observer; the new event's id. A failure here never changes the decision."""
        event_id = new_id()
        if self._observer is None and not self._log.isEnabledFor(logging.DEBUG):
            return event_id
        event = EventStarted(event_id, event_name, plan, payload)
        try:
            report_start(self._log, event)
        except Exception as error:
            self._log.warning("%s: logging its plan failed: %s", event_name, error)
        notify(self._observer, "event_started", event)
        return event_id

    def _report_end(
        self,
        event_id: str,
        event_name: HookEventName,
        aggregated: AggregatedHookResult,
        wall_time: float,
        plan: ExecutionPlan | None = None,
        subject: str | None = None,
    ) -> None:
        """Log the results and notify the observer; a failure here never changes the decision."""
        try:
            report_hooks(self._log, event_name, aggregated, self._advised)
            if self._observer is None and not self._log.isEnabledFor(logging.DEBUG):
                return
            processed = self.process_common_hook_output_fields(aggregated)
            event = EventEnded(event_id, event_name, processed, wall_time, plan, subject)
            report_end(self._log, event)
        except Exception as error:
            self._log.warning("%s: logging its results failed: %s", event_name, error)
            return
        if event_id:
            notify(self._observer, "event_ended", event)

    def _base_fields(self, event_name: HookEventName) -> dict[str, Any]:
        config = self._config
        session = current_session(config) or config
        return {
            "session_id": session.session_id,
            "cwd": config.working_dir,
            "timestamp": timestamp(),
            "hook_event_name": event_name.value,
            "transcript_path": session.transcript_path,
        }

    def _failure(
        self, error: Exception, stage: str, event_name: HookEventName | None, plan: ExecutionPlan | None = None
    ) -> AggregatedHookResult:
        """The result of an event during which the engine failed: a block where a hook must not fail (D-27)."""
        self._log.warning("%s: %s failed, hooks are skipped: %s", event_name or "hook request", stage, error)
        event = {} if event_name is None else {"eventName": event_name.value}
        envelope = build_failure_envelope(error, stage, {**event, "type": type(error).__name__})
        if event_name is None or (plan is not None and plan.observes_only):
            return envelope
        if isinstance(error, NestingError):
            block = {"decision": "deny", "reason": str(error)}
        elif is_out_of_stack(error):
            block = cannot_run_block(str(envelope.errors[0])).to_dict()
        elif self._must_not_fail(event_name, plan):
            block = fail_closed_block(str(envelope.errors[0])).to_dict()
        else:
            return envelope
        return replace(envelope, final_output=create_specific_hook_output(event_name, block))

    def _must_not_fail(self, event_name: HookEventName, plan: ExecutionPlan | None) -> bool:
        """Whether a planned hook has ``failClosed``; without a plan, whether any hook of the event has it."""
        try:
            return self._planner.has_fail_closed_hook(event_name) if plan is None else plan.fail_closed
        except Exception:  # the hooks themselves cannot be read
            return False


class NestingError(HookStageError):
    """What an event is about is nested too deeply to be shown to hooks, so it must not happen (D-31)."""

    def __init__(self) -> None:
        super().__init__(
            "validation",
            f"blocked because it is nested deeper than {PAYLOAD_DEPTH} levels, which hooks cannot be shown",
        )


def _needs_all_levels(event_name: HookEventName, plan: ExecutionPlan) -> bool:
    """Whether hooks must see all of an event that they can block; of other events they get a part (D-31)."""
    can_block = event_name.spec.can_block and not plan.observes_only
    return can_block and (event_name.spec.is_about_tool or plan.fail_closed)


def _changes_are_too_deep(event_name: HookEventName, output: DefaultHookOutput | None) -> bool:
    """Whether hooks changed the event to something that the hooks of a chain, or of the next event, cannot see."""
    changes = None if output is None else (output.hook_specific_output or {}).get(event_name.spec.merged_object)
    return changes is not None and is_too_deep(changes, PAYLOAD_DEPTH - 1)


def in_asyncio_task() -> bool:
    """Whether the caller runs in a task of asyncio, or of a loop such as uvloop: only there can hooks be awaited.

    False under trio, also as a guest of asyncio, in a process that was forked by a running task, and without a loop.
    """
    try:
        return asyncio.current_task() is not None
    except RuntimeError:
        return False


def _translated(
    event_name: HookEventName, fields: Mapping[str, Any], translator: TranslatorChoice, accept_unmarked: bool
) -> dict[str, Any]:
    """The event's own fields in the form that hooks know; model data through the translator (DELTA-HPAY-003)."""
    spec, translated = event_name.spec, dict(fields)
    for name in spec.translated_fields:
        translated[name] = _translated_field(spec.fields[name].kind, fields[name], translator, accept_unmarked)
    return translated


def _translated_field(kind: FieldKind, value: Any, translator: TranslatorChoice, accept_unmarked: bool) -> Any:
    if kind is FieldKind.MODEL_REQUEST:
        return request_payload(mark_request(value, translator) if accept_unmarked else value, translator)
    if kind is FieldKind.MODEL_RESPONSE:
        return response_payload(mark_response(value, translator) if accept_unmarked else value, translator)
    return value.to_dict() if isinstance(value, ToolResult) else value


def _narrowed(event_name: object) -> HookEventName:
    try:
        return HookEventName(event_name)  # type: ignore[arg-type]  # any object may be asked about
    except ValueError:
        supported = ", ".join(HookEventName)
        raise HookStageError(
            "unsupported_event", f"unknown hook event {event_name!r:.60}; expected one of {supported}"
        ) from None
