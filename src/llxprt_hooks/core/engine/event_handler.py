"""The event handler: fires each event of the requirements, on direct call or by message.

It is a thin layer over plans. Nothing but cancellation is ever raised.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.core.engine.bus_connection import BusConnection, close_connection
from llxprt_hooks.core.engine.plan import BrokenPlan, Engine, EventConfig, name_text
from llxprt_hooks.core.engine.results import (
    AggregatedHookResult,
    HookStageError,
    ProcessedHookResult,
    build_failure_envelope,
    make_empty_success_result,
)
from llxprt_hooks.core.protocol.caller import CALL_FIELDS, CALLER_FIELDS
from llxprt_hooks.core.protocol.inputs import BASE_FIELDS, input_problem
from llxprt_hooks.core.protocol.tool_result import ToolResult
from llxprt_hooks.events import FieldKind, HookEventName, SessionEndReason, SessionStartSource
from llxprt_hooks.model import TranslatorChoice, mark_request, mark_response, request_payload, response_payload

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.aggregator import HookAggregator
    from llxprt_hooks.core.engine.messages import MessageBus
    from llxprt_hooks.core.engine.observer import HookObserver
    from llxprt_hooks.core.engine.planner import HookPlanner
    from llxprt_hooks.core.engine.runner import HookRunner


class HookEventHandler:
    """Fires events. One instance serves all events of a configuration, any number of them at once.

    Requests and responses are those of the SDK or their JSON, which the translator reads, or ``HookFormat(data)``.
    """

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
        self._log = logger or debug_logger("handler")
        self._engine = Engine(config, runner, aggregator, self._log, observer)
        self._planner = planner
        planner.engine = self._engine
        self._translator = translator
        self._prepare = prepare
        self._connections: list[BusConnection] = []

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
        payload can be fired again; who asks is always what the input says, if it says so.
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
            return self._unusable(error, stage, event)
        kept = (*(BASE_FIELDS if keep_base_fields else ()), *CALLER_FIELDS)
        base = {name: hook_input[name] for name in kept if name in hook_input}
        names = CALL_FIELDS if event.spec.is_about_tool else ()
        extras = {name: hook_input[name] for name in names if name in hook_input}
        return await self._fire(event, hook_input, base, extras=extras, accept_unmarked=True)

    def use_planner(self, planner: HookPlanner) -> None:
        """Plan later events with other hooks. Events that have started keep their plan."""
        planner.engine = self._engine
        self._planner = planner

    def process_common_hook_output_fields(self, result: AggregatedHookResult) -> ProcessedHookResult:
        """Extract the fields that every caller must act on: stop, message, suppression (DELTA-HRUN-004)."""
        return ProcessedHookResult.of(result)

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

    async def _fire(
        self,
        event_name: HookEventName,
        fields: Mapping[str, Any],
        base: Mapping[str, Any] | None = None,
        translator: TranslatorChoice = None,
        *,
        extras: Mapping[str, Any] | None = None,
        accept_unmarked: bool = False,
    ) -> AggregatedHookResult:
        matched_field = event_name.spec.matched_field
        subject = name_text(fields[matched_field]) if matched_field else None
        try:
            plan = self._planner.create_execution_plan(event_name, subject)
        except Exception as error:
            plan = self._broken(event_name, error, "planning", subject)
        if plan is None:
            self._engine.report_nothing(event_name)
            return make_empty_success_result()
        choice = translator or self._translator
        translate = partial(
            event_fields, event_name, fields, choice, accept_unmarked=accept_unmarked, full=plan.sees_all
        )
        return await plan.fire(translate, base, extras)

    def _unusable(self, error: Exception, stage: str, event_name: HookEventName | None) -> AggregatedHookResult:
        """The result of a request by message that cannot become an event."""
        if event_name is not None:
            return self._broken(event_name, error, stage).failed(error, stage)
        self._log.warning("hook request: %s failed, so no hook runs: %s", stage, error)
        return build_failure_envelope(error, stage, {"type": type(error).__name__})

    def _broken(
        self, event_name: HookEventName, error: Exception, stage: str, subject: str | None = None
    ) -> BrokenPlan:
        """An event of which it is not known which hooks would run: any of them may have ``failClosed``."""
        fail_closed = False
        with suppress(Exception):  # the hooks themselves cannot be read
            fail_closed = self._planner.has_fail_closed_hook(event_name)
        return BrokenPlan(event_name, error, stage, fail_closed=fail_closed, subject=subject, engine=self._engine)


def event_fields(
    event_name: HookEventName,
    fields: Mapping[str, Any],
    translator: TranslatorChoice,
    *,
    accept_unmarked: bool = False,
    full: bool = False,
) -> dict[str, Any]:
    """The event's own fields in the form and order that hooks know; model data through the translator."""
    spec = event_name.spec
    shown = {name: fields[name] for name in spec.fields}
    for name in spec.translated_fields:
        shown[name] = _translated_field(spec.fields[name].kind, fields[name], translator, accept_unmarked, full)
    if spec.matched_field:
        shown[spec.matched_field] = name_text(fields[spec.matched_field])
    return shown


def _translated_field(
    kind: FieldKind, value: Any, translator: TranslatorChoice, accept_unmarked: bool, full: bool
) -> Any:
    if kind is FieldKind.MODEL_REQUEST:
        return request_payload(mark_request(value, translator) if accept_unmarked else value, translator, full=full)
    if kind is FieldKind.MODEL_RESPONSE:
        return response_payload(mark_response(value, translator) if accept_unmarked else value, translator, full=full)
    return value.to_dict() if isinstance(value, ToolResult) else value


def _narrowed(event_name: object) -> HookEventName:
    try:
        return HookEventName(event_name)  # type: ignore[arg-type]  # any object may be asked about
    except ValueError:
        supported = ", ".join(HookEventName)
        raise HookStageError(
            "unsupported_event", f"unknown hook event {event_name!r:.60}; expected one of {supported}"
        ) from None
