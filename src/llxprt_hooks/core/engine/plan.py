"""The plan of an event: the hooks that run for it, and what becomes of them when it is fired.

A plan is what callers hold on to: an event that has started keeps its hooks through a reload. Firing it translates,
runs, merges and reports. Whatever fails on the way becomes a failure envelope that names the stage; nothing but
cancellation is raised, and this is the only place that decides whether a failure blocks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from llxprt_hooks._support.json_codec import PAYLOAD_DEPTH, why_hidden
from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks._support.stamps import new_id, timestamp
from llxprt_hooks.core import loops
from llxprt_hooks.core.engine import session_memory
from llxprt_hooks.core.engine.observer import EventEnded, EventStarted, HookObserver, QuestionEnded, notify
from llxprt_hooks.core.engine.reporting import report_end, report_hooks, report_start
from llxprt_hooks.core.engine.results import (
    AggregatedHookResult,
    HookExecutionResult,
    HookStageError,
    ProcessedHookResult,
    build_failure_envelope,
    error_text,
    make_empty_success_result,
)
from llxprt_hooks.core.engine.session import current_session, who_asks
from llxprt_hooks.core.protocol.exit_codes import cannot_run_block, fail_closed_block
from llxprt_hooks.core.protocol.model_outputs import make_output
from llxprt_hooks.events import EventSpec, HookEventName
from llxprt_hooks.process import is_out_of_stack

if TYPE_CHECKING:
    from llxprt_hooks.core.calls.approval import ApprovalRequest, Verdict
    from llxprt_hooks.core.engine.aggregator import HookAggregator
    from llxprt_hooks.core.engine.hints import Hint
    from llxprt_hooks.core.engine.runner import HookRunner
    from llxprt_hooks.core.protocol.outputs import DefaultHookOutput
    from llxprt_hooks.settings.definitions import HookConfig


_log = debug_logger("handler")

_MAX_NAME = 200
"""A name that is not a string is cut to this many characters."""


class EventConfig(Protocol):
    """What an event needs of a configuration: the base fields of its payload."""

    session_id: str
    working_dir: str
    transcript_path: str
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Engine:
    """The parts that fire the plans of a configuration."""

    config: EventConfig
    runner: HookRunner
    aggregator: HookAggregator
    log: logging.Logger
    observer: HookObserver | None = None
    advised: set[tuple[str, Hint]] = field(default_factory=set)
    """The advice that was logged, by hook and mistake: a hook makes its mistakes at every call."""

    def base_fields(self, event_name: HookEventName, plan: ExecutionPlan | None = None) -> dict[str, Any]:
        own = current_session(self.config)
        session = own or self.config
        metadata = self.config.metadata if own is None else {**self.config.metadata, **own.metadata}
        if (asked := who_asks(self.config)) is not None:
            metadata = {**asked.metadata, **metadata}
            if asked.problem is not None and plan is not None and plan.spec.can_block and not plan.observes_only:
                raise HiddenError(asked.problem)
            if asked.problem is not None:
                self.log.warning("%s: %s", event_name, asked.problem)
        return {
            "session_id": session.session_id,
            "cwd": self.config.working_dir,
            "timestamp": timestamp(),
            "hook_event_name": str(event_name),
            "transcript_path": session.transcript_path,
            **({"metadata": metadata} if metadata else {}),
        }

    def report_nothing(self, event_name: HookEventName) -> None:
        """Log an event that no hook was there for (HOOK-146)."""
        if self.log.isEnabledFor(logging.DEBUG):
            nothing = ProcessedHookResult.of(make_empty_success_result())
            report_end(self.log, EventEnded("", event_name, nothing, 0.0))

    @property
    def is_watched(self) -> bool:
        return self.observer is not None or self.log.isEnabledFor(logging.DEBUG)


Fields = Mapping[str, Any] | Callable[[], Mapping[str, Any]]
"""An event's own fields as hooks see them, or a function that translates them."""


class ExecutionPlan:
    """The hooks of one event, ready to be fired any number of times."""

    __slots__ = (
        "_engine",
        "_must_show_all",
        "acts",
        "event_name",
        "fail_closed",
        "for_question",
        "foreign",
        "hook_configs",
        "in_process",
        "observes_only",
        "sees_all",
        "sequential",
        "streams_sentences",
        "subject",
    )

    is_broken = False
    """Whether finding the hooks failed."""

    def __init__(
        self,
        event_name: HookEventName,
        hook_configs: Sequence[HookConfig],
        sequential: bool = False,
        subject: str | None = None,
        engine: Engine | None = None,
    ) -> None:
        self.event_name = event_name
        self.hook_configs = tuple(hook_configs)
        self.sequential = sequential
        self.subject = subject
        """What matchers were compared with, such as the tool's name; None if the event ignores matchers."""
        self.fail_closed = any(config.blocks_on_failure for config in self.hook_configs)
        """Whether a failure of the engine itself must block."""
        self.observes_only = bool(self.hook_configs) and all(config.observe for config in self.hook_configs)
        """Whether no hook can change anything, and so nothing may block because hooks cannot run."""
        self.acts = any(config.acts and not config.observe for config in self.hook_configs)
        """Whether callers wait for the hooks and honor what only hooks that act can decide (D-46)."""
        self.foreign = any(config.foreign is not None for config in self.hook_configs)
        """Whether any hook speaks another dialect than our own."""
        self.sees_all = bool(self.hook_configs) and all(config.acts for config in self.hook_configs)
        """Whether model data is shown in the full view: an answer is in one view or the other (D-142)."""
        self.streams_sentences = bool(self.hook_configs) and all(config.sentences for config in self.hook_configs)
        """Whether the text of a streamed answer may be released in parts, each as the hooks left it (D-151)."""
        self.in_process = any(config.executor.in_process for config in self.hook_configs)
        """Whether any hook runs inside this process, so that its event loop matters."""
        self.for_question: ExecutionPlan | None = None
        """The hooks that run where a person would be asked about the call."""
        self._engine = engine
        spec = event_name.spec
        self._must_show_all = spec.can_block and not self.observes_only and (spec.is_about_tool or self.fail_closed)
        """Whether hooks must see all of an event that they can block; of other events they get a part (D-31)."""

    async def fire(
        self, fields: Fields, base: Mapping[str, Any] | None = None, extras: Mapping[str, Any] | None = None
    ) -> AggregatedHookResult:
        """Run the hooks and merge their answers. ``base`` replaces base fields; only acting hooks get ``extras``.

        Callers may run on any event loop, or on none: hooks then run on the background loop.
        """
        if not self.hook_configs:  # there are only hooks for the question whether it may happen
            return make_empty_success_result()
        if not loops.runs_here():
            return await self._fire_elsewhere(fields, base, extras)
        engine, event_name = self._engine, self.event_name
        assert engine is not None, "a plan is fired by the engine that made it"
        stage, event_id, wall_time = "translation", "", 0.0
        try:
            own = fields() if callable(fields) else fields
            hook_input = {**engine.base_fields(event_name, self), **(base or {}), **own}
            stage = "validation"
            if self._must_show_all and (why := why_hidden(hook_input)) is not None:
                raise HiddenError(why)
            stage = "execution"
            if event_name is HookEventName.SESSION_START:
                session_memory.at_event(event_name, hook_input, hook_input["session_id"])
            event_id = self._report_start(engine, hook_input)
            started = time.perf_counter()
            runner = engine.runner
            execute = runner.execute_hooks_sequential if self.sequential else runner.execute_hooks_parallel
            results = await execute(self.hook_configs, event_name, hook_input, event_id, extras)
            wall_time = (time.perf_counter() - started) * 1000
            if event_name is HookEventName.SESSION_END:
                session_memory.at_event(event_name, hook_input, hook_input["session_id"])
            stage = "aggregation"
            aggregated = engine.aggregator.aggregate_results(results, event_name)
            if self._must_show_all and (output := aggregated.final_output) is not None:
                aggregated = self._without_hidden_change(aggregated, output)
        except Exception as error:
            aggregated = self.failed(error, stage)
            event_id = event_id or self._report_start(engine, {})
        self._report_end(engine, event_id, aggregated, wall_time)
        return aggregated

    def failed(self, error: Exception, stage: str = "processing") -> AggregatedHookResult:
        """The result of an event during which something other than a hook failed: a block where hooks must not fail."""
        details = {"eventName": self.event_name.value, "type": type(error).__name__}
        envelope = build_failure_envelope(error, stage, details)
        what = str(envelope.errors[0])
        block = self._block_after(error, what)
        of = f" of {self.subject}" if self.subject else ""
        effect = "is blocked" if block is not None and self.spec.can_block else "goes ahead without hooks"
        log = _log if self._engine is None else self._engine.log
        cause = None if isinstance(error, HiddenError) else error  # a traceback would explain nothing
        event = f"{self.event_name}{of}"
        log.warning("%s: %s failed, so it %s: %s", event, stage, effect, error_text(error), exc_info=cause)
        if block is None:
            return envelope
        output = make_output(self.event_name, block)
        return replace(envelope, final_output=output, acting=output if self.acts else None)

    def _block_after(self, error: Exception, what: str) -> Mapping[str, Any] | None:
        if self.observes_only:
            return None
        if isinstance(error, HiddenError):
            return {"decision": "deny", "reason": what}
        if is_out_of_stack(error):
            return cannot_run_block(what)  # D-60
        return fail_closed_block(what) if self.fail_closed else None  # D-27

    def only_acting(self) -> ExecutionPlan:
        """The same plan without the hooks that do not act."""
        hooks = [config for config in self.hook_configs if config.acts]
        return ExecutionPlan(self.event_name, hooks, self.sequential, self.subject, self._engine)

    @property
    def spec(self) -> EventSpec:
        """The facts about the event, for these hooks."""
        return self.event_name.spec_if(self.acts)

    async def _fire_elsewhere(
        self, fields: Fields, base: Mapping[str, Any] | None, extras: Mapping[str, Any] | None
    ) -> AggregatedHookResult:
        try:
            return await loops.on_asyncio(self.fire(fields, base, extras))
        except Exception as error:
            return self.failed(error)

    def _without_hidden_change(
        self, aggregated: AggregatedHookResult, output: DefaultHookOutput
    ) -> AggregatedHookResult:
        """Block a change that the hooks of a chain, or of the next event, cannot see. All else in the output stays."""
        specific = dict(output.hook_specific_output or {})
        changes = specific.pop(self.event_name.spec.merged_object, None)
        why = None if changes is None else why_hidden(changes, PAYLOAD_DEPTH - 1)
        if why is None:
            return aggregated
        refused = self.failed(HiddenError(why), "aggregation")
        specific.pop("permissionDecisionReason", None)
        reasons = [output.get_effective_reason()] if output.is_blocking_decision() else []
        fields = {
            **output.to_dict(),
            "decision": "deny",
            "reason": "\n".join([*reasons, *map(str, refused.errors)]),
            "stopReason": output.get_stop_reason(),
            "hookSpecificOutput": specific,
        }
        return replace(
            aggregated,
            success=False,
            errors=[*aggregated.errors, *refused.errors],
            final_output=make_output(self.event_name, fields),
        )

    def _report_start(self, engine: Engine, payload: Mapping[str, Any]) -> str:
        """Log the plan and notify the observer; the new event's id. A failure here never changes the decision."""
        event_id = new_id()
        if not engine.is_watched:
            return event_id
        event = EventStarted(event_id, self.event_name, self, payload)
        try:
            report_start(engine.log, event)
        except Exception as error:
            engine.log.warning("%s: logging its plan failed: %s", self.event_name, error)
        notify(engine.observer, "event_started", event)
        return event_id

    def report_question(
        self, asked_by: HookExecutionResult, request: ApprovalRequest, started: float, verdict: Verdict
    ) -> None:
        """Log what became of the question that a hook of this plan asked, and notify the observer."""
        engine = self._engine
        if engine is None or not engine.is_watched:
            return
        seconds = time.perf_counter() - started
        about = (self.event_name, request.hook, request.tool_name, verdict.answered.value)
        engine.log.debug("%s: hook `%s` asks about %s: %s", *about)
        notify(engine.observer, "question_ended", QuestionEnded(asked_by, request, verdict, seconds * 1000))

    def _report_end(self, engine: Engine, event_id: str, aggregated: AggregatedHookResult, wall_time: float) -> None:
        """Log the results and notify the observer; a failure here never changes the decision."""
        try:
            debug = engine.log.isEnabledFor(logging.DEBUG)
            if debug or any(map(_is_noteworthy, aggregated.results)):
                report_hooks(engine.log, self.event_name, aggregated, engine.advised)
            if not debug and engine.observer is None:
                return
            processed = ProcessedHookResult.of(aggregated)
            event = EventEnded(event_id, self.event_name, processed, wall_time, self, self.subject)
            report_end(engine.log, event)
        except Exception as error:
            engine.log.warning("%s: logging its results failed: %s", self.event_name, error)
            return
        notify(engine.observer, "event_ended", event)


def _is_noteworthy(result: HookExecutionResult) -> bool:
    """Whether a run may be logged without the debug level: a failure, or an answer that may have a mistake in it."""
    if result.error or result.hint or result.observed or result.stderr:
        return True
    output = result.output
    if output is None:
        return False
    if output.is_plain and not output.problems and output.unclear is None:
        return output.is_blocking_decision() and not result.spec.can_block  # which has no effect
    return True


class BrokenPlan(ExecutionPlan):
    """The plan of an event whose hooks could not be found: firing it is a failure, which may block."""

    __slots__ = ("_stage", "error")

    is_broken = True

    def __init__(
        self,
        event_name: HookEventName,
        error: Exception,
        stage: str,
        *,
        fail_closed: bool,
        subject: str | None = None,
        engine: Engine | None = None,
    ) -> None:
        super().__init__(event_name, (), subject=subject, engine=engine)
        self.fail_closed = fail_closed
        self.error = error
        self._stage = stage

    async def fire(
        self, fields: Fields, base: Mapping[str, Any] | None = None, extras: Mapping[str, Any] | None = None
    ) -> AggregatedHookResult:
        return self.failed(self.error, self._stage)


class HiddenError(HookStageError):
    """What an event is about cannot be shown to hooks completely, so it must not happen (D-31)."""

    def __init__(self, why: str) -> None:
        super().__init__("validation", f"blocked: {why}")


def name_text(value: object) -> str:
    """Return the name that a plan is looked up by: a model may produce any value as the name of a tool.

    >>> name_text(["write_file"])
    "['write_file']"
    """
    if type(value) is str:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    try:
        return str.__str__(str(value))[:_MAX_NAME]
    except Exception:  # nested too deeply, or the object's own conversion failed
        return f"<{type(value).__name__}>"
