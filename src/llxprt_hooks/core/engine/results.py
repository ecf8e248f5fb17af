"""The results of running hooks: of one hook, of all hooks of an event, and the fields every caller must act on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from llxprt_hooks.core.protocol.outputs import DefaultHookOutput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from llxprt_hooks.events import EventSpec, HookEventName
    from llxprt_hooks.settings.definitions import HookConfig


class HookExecutionError(Exception):
    """A hook could not be run or failed. The message names the hook and the reason."""


class HookStageError(Exception):
    """The engine itself failed while it handled an event, in the named ``stage``."""

    def __init__(self, stage: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.stage = stage
        self.details = details or {}


@dataclass(frozen=True, slots=True)
class HookExecutionResult:
    """The run of one hook.

    ``success`` is execution health, not policy: a hook that blocks with exit code 2 is not a success (HOOK-070). If a
    signal ended the hook, ``exit_code`` is 0 (HOOK-196) and ``signal`` names it.
    """

    hook_config: HookConfig
    event_name: HookEventName
    success: bool
    output: DefaultHookOutput | None = None
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    """None after a timeout, and if the hook could not be started."""
    signal: str | None = None
    duration: float = 0.0
    """Milliseconds."""
    error: Exception | None = None
    hint: str | None = None
    """Advice for the hook's author about a common mistake."""
    hook_input: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The payload that the hook was sent."""
    event_id: str = ""
    """The same for all hooks of one event."""
    execution_id: str = ""
    warm: bool = False
    """Whether a waiting interpreter ran it, or a process that was started ahead."""
    ahead: bool = False
    """Whether it was a process that was started ahead (D-167)."""
    observed: DefaultHookOutput | None = None
    """What a hook in observe mode would have decided; its ``output`` is always None (D-80)."""
    timed_out: bool = False

    @property
    def spec(self) -> EventSpec:
        """The facts about the event, for this hook."""
        return self.event_name.spec_if(self.hook_config.acts)

    @property
    def answer(self) -> DefaultHookOutput | None:
        """What the hook answered, whether it counts or not."""
        return self.output or self.observed

    @property
    def outcome(self) -> str:
        """What the hook decided, in one word for statistics. ``failed`` is a failure that blocks nothing.

        ``would_block`` is a hook in observe mode that would have blocked.
        """
        if is_blocked(self.spec, self.answer):
            return "blocked" if self.observed is None else "would_block"
        if self.error is not None:
            return "failed"
        return _other_outcome(self.output, asked=is_asked(self.spec, self.output))

    def to_dict(self, text_limit: int | None = None) -> dict[str, Any]:
        """The run as plain data, with at most ``text_limit`` characters of stdout and of stderr."""
        return {
            "event_id": self.event_id,
            "execution_id": self.execution_id,
            "event_name": self.event_name.value,
            "hook": self.hook_config.identity,
            "type": str(self.hook_config.type),
            "dialect": self.hook_config.dialect,
            "command": self.hook_config.command,
            "duration_ms": self.duration,
            "warm": self.warm,
            "ahead": self.ahead,
            "success": self.success,
            "exit_code": self.exit_code,
            "signal": self.signal,
            "stdout": self.stdout[:text_limit],
            "stderr": self.stderr[:text_limit],
            "error": None if self.error is None else str(self.error),
            "output": None if self.output is None else self.output.to_dict(),
            "observed": None if self.observed is None else self.observed.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class AggregatedHookResult:
    """The runs of all hooks of one event, merged. For what they decided, use ``final_output``, never ``success``."""

    success: bool
    """Whether every hook ran and exited with 0; a block with exit code 2 is not a success. True without hooks."""
    final_output: DefaultHookOutput | None = None
    """What the hooks decided; None if none of them did."""
    all_outputs: list[DefaultHookOutput] = field(default_factory=list)
    """The output of each hook, also of hooks that failed."""
    errors: list[Exception] = field(default_factory=list)
    """A ``HookExecutionError`` if a hook failed, a ``HookStageError`` if the engine failed."""
    total_duration: float = 0.0
    """The sum of the hooks' durations in milliseconds."""
    results: list[HookExecutionResult] = field(default_factory=list)
    """The single runs, in the order of the plan."""
    decided_by: tuple[str, ...] = field(default=(), compare=False)
    """The hooks that blocked the event or stopped the agent; empty if none did, or if the engine itself failed."""
    acting: DefaultHookOutput | None = None
    """What the hooks that act decided together; None if none of them did."""

    def is_blocked(self, event_name: HookEventName) -> bool:
        """Whether the event is blocked: hooks decide so, and callers honor it."""
        return is_blocked(event_name.spec, self.final_output) or is_blocked(event_name.spec.acting, self.acting)

    def is_asked(self, event_name: HookEventName) -> bool:
        """Whether a person is asked about the event: a hook that acts wants it, and none refuses."""
        return is_asked(event_name.spec.acting, self.acting) and not self.is_blocked(event_name)

    def outcome(self, event_name: HookEventName) -> str:
        """What became of the event, in one word for statistics. ``refused`` is one that the engine can't handle."""
        if self.is_blocked(event_name):
            return "blocked"
        if any(isinstance(error, HookStageError) for error in self.errors):
            return "refused"
        if self.errors and self.final_output is None:
            return "failed"
        return _other_outcome(self.final_output, asked=self.is_asked(event_name))

    def to_dict(self) -> dict[str, Any]:
        """The result under its names on the wire."""
        return {
            "success": self.success,
            "finalOutput": None if self.final_output is None else self.final_output.to_dict(),
            "allOutputs": [output.to_dict() for output in self.all_outputs],
            "errors": [str(error) for error in self.errors],
            "totalDuration": self.total_duration,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> AggregatedHookResult:
        """A result from its wire form; the single runs are not part of it, and errors are text."""
        final = fields.get("finalOutput")
        return cls(
            success=fields["success"] is True,
            final_output=None if final is None else DefaultHookOutput(final),
            all_outputs=[DefaultHookOutput(each) for each in fields.get("allOutputs") or ()],
            errors=[HookExecutionError(str(each)) for each in fields.get("errors") or ()],
            total_duration=float(fields.get("totalDuration") or 0),
        )


@dataclass(frozen=True, slots=True)
class ProcessedHookResult:
    """The fields of a result that every caller must act on, read in one place (DELTA-HAPP-001)."""

    aggregated: AggregatedHookResult
    should_stop: bool
    stop_reason: str | None
    system_message: str | None
    suppress_output: bool

    @classmethod
    def of(cls, aggregated: AggregatedHookResult) -> ProcessedHookResult:
        output = aggregated.final_output
        if output is None:
            return cls(aggregated, False, None, None, False)
        return cls(
            aggregated,
            should_stop=output.should_stop_execution(),
            stop_reason=output.get_stop_reason(),
            system_message=output.system_message or None,
            suppress_output=bool(output.suppress_output),
        )


def is_blocked(spec: EventSpec, output: DefaultHookOutput | None) -> bool:
    """Whether an output blocks its event: it decides so, and callers of this event honor it (HOOK-177 to 181)."""
    return spec.can_block and output is not None and output.is_blocking_decision()


def is_asked(spec: EventSpec, output: DefaultHookOutput | None) -> bool:
    """Whether a person is asked: the output says so, and callers of this event do it (D-46)."""
    return spec.asks and output is not None and output.asks()


def _other_outcome(output: DefaultHookOutput | None, *, asked: bool) -> str:
    if output is not None and output.should_stop_execution():
        return "stopped"
    return "asked" if asked else "allowed"


def is_refusal(output: DefaultHookOutput | None) -> bool:
    """Whether an output blocks or stops. Such an output is clear also where another hook failed (D-45)."""
    return output is not None and (output.is_blocking_decision() or output.should_stop_execution())


def make_empty_success_result() -> AggregatedHookResult:
    """The result of an event that no hook was there for; a fresh one each time (DELTA-HFAIL-004)."""
    return AggregatedHookResult(success=True)


def build_failure_envelope(
    error: BaseException, stage: str, details: dict[str, Any] | None = None
) -> AggregatedHookResult:
    """The result of an event during which the engine itself failed (DELTA-HFAIL-001)."""
    if isinstance(error, HookStageError):
        return AggregatedHookResult(success=False, errors=[error])
    failure = HookStageError(stage, f"hook {stage} failed: {error_text(error)}", details)
    failure.__cause__ = error
    return AggregatedHookResult(success=False, errors=[failure])


def error_text(error: BaseException) -> str:
    """The text of an error, or its type if it has none or its own text fails."""
    try:
        return str(error) or type(error).__name__
    except Exception:  # an error of the embedding program, whose own text fails
        return type(error).__name__
