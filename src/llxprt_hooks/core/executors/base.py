"""The seam for hook types: what an executor declares, and what it is given to run a hook.

A hook type is one module in this folder with a subclass of ``Executor``, and one line in the table ``EXECUTORS``. All
other parts (settings, trust, ``list``, ``fire``, ``log``, ``validate``, the JSON Schema) ask the executor.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NamedTuple, TypeVar

from llxprt_hooks._support.json_codec import decode_text, repeated_key, write_payload
from llxprt_hooks._support.stamps import new_id
from llxprt_hooks._support.text import escape_for_terminal, shorten
from llxprt_hooks.core.engine.journal import journal_of
from llxprt_hooks.core.engine.results import HookExecutionError, HookExecutionResult, error_text
from llxprt_hooks.core.protocol.caller import asking_agent
from llxprt_hooks.core.protocol.exit_codes import (
    EXIT_CODE_BLOCKING_ERROR,
    EXIT_CODE_SUCCESS,
    Reading,
    read_answer,
    read_outcome,
)
from llxprt_hooks.core.protocol.model_outputs import OUTPUTS
from llxprt_hooks.core.protocol.outputs import Beyond, DefaultHookOutput
from llxprt_hooks.process import Completed, ProcessSlots
from llxprt_hooks.settings.definitions import HookConfig, HookScope
from llxprt_hooks.settings.foreign import Answer, ForeignHook, Situation

if TYPE_CHECKING:
    from llxprt_hooks.events import HookEventName
    from llxprt_hooks.settings.shape import Field, FieldProblem

DEFAULT_OUTPUT_LIMIT = 10 * 1024 * 1024
"""Bytes that are kept of a hook's answer; of a command, of each of its two streams."""

DEFAULT_MAX_PROCESSES = 64
"""How many hook processes one configuration runs at a time."""


Spec = TypeVar("Spec")
Made = TypeVar("Made")
HookInput = Mapping[str, Any]

PROBE_SECONDS: Final = 5
"""How long an executor tries to reach what answers a hook."""


class Probe(NamedTuple):
    """Whether what answers a hook can be reached, without an event."""

    reached: bool
    what: str
    """What was tried, and how it ended; if nothing was reached, also what to do."""


class Executor(ABC, Generic[Spec]):
    """One hook type. ``Spec`` is what its settings are read into: frozen data, comparable by value."""

    fields: ClassVar[Mapping[str, Field] | None] = {}
    """Its own settings keys, beside those of every hook; None if only a program can create such hooks."""
    described: ClassVar[Sequence[str]] = ()
    """The keys that ``describe`` shows in full, most important first. Approval lists all others below."""
    example: ClassVar[Mapping[str, object]] = {}
    """The fields of a typical hook, without its type."""
    in_process: ClassVar[bool] = False
    """Whether hooks run inside this process, so that the event loop they run on matters to them."""
    is_remote: ClassVar[bool] = False
    """Whether somebody else decides, who gets to know which agent asks."""
    is_process: ClassVar[bool] = False
    """Whether a hook is a process, with an exit code and streams to report."""
    unsupported: ClassVar[str] = ""
    """Why hooks of this type always fail; empty if they can be run."""
    packages: ClassVar[Sequence[str]] = ()
    """The modules that hooks of this type need and that only an extra installs."""
    extra: ClassVar[str] = ""
    """The extra that installs them."""

    @abstractmethod
    def read(self, fields: Mapping[str, Any]) -> Spec | list[FieldProblem]:
        """The spec for the declared fields, whose types have been checked, or why there is none."""

    @abstractmethod
    def describe(self, spec: Spec) -> str:
        """What the hook does, in one line for approval, lists and logs. No secrets."""

    def key(self, spec: Spec) -> str:
        """Hooks of this type with the same key run once per event (HOOK-091). Empty: their names decide."""
        return self.describe(spec)

    def is_warm(self, spec: Spec) -> bool:
        """Whether a waiting interpreter may run the hook."""
        return False

    def warmed(self, spec: Spec) -> Spec:
        """The spec of a hook that is warm unless it says otherwise."""
        return spec

    def script_texts(self, spec: Spec) -> Iterable[str]:
        """The texts in which files of the project may be named; their content is approved with the hook."""
        return ()

    def problems(self, spec: Spec, environment: Mapping[str, str]) -> Iterable[FieldProblem]:
        """What ``validate`` reports: the hook fails because of it or, without ``discards``, probably does not do what
        was meant.
        """
        return ()

    def prepare(self, spec: Spec, run: HookRun) -> None:  # most have nothing to prepare
        """Get ready for the first event of a hook, in the background. The input has only what is known before it."""

    @abstractmethod
    async def run(self, spec: Spec, run: HookRun) -> HookExecutionResult:
        """Run the hook once. An exception is a failed hook. The time limit is for the executor to keep."""

    async def probe(self, spec: Spec, working_dir: str) -> Probe | None:
        """Try to reach what answers the hook, for ``PROBE_SECONDS``, with nothing of an event or a header in it.

        None if the hook runs on this machine, or its settings have a problem that ``problems`` reports.
        """
        return None

    def failure(self, spec: Spec, error: Exception) -> str:
        """What an exception of ``run`` means, as the end of a sentence that starts with the hook."""
        return f"could not be run: {error_text(error)}"


class Runtime:
    """What all hooks of one configuration share, for as long as it is used. Events may run in several threads."""

    def __init__(
        self,
        inherited: Callable[[HookScope], Mapping[str, str]],
        working_dir: Callable[[], str],
        output_limit: int = DEFAULT_OUTPUT_LIMIT,
        max_processes: int = DEFAULT_MAX_PROCESSES,
        warm: Callable[[], bool] = lambda: True,
        approval_mode: Callable[[], str] = lambda: "default",
    ) -> None:
        self._made: dict[Callable[[], Any], Any] = {}
        self.inherited = inherited
        """The part of this process's environment that hooks of a scope may have. The same object while unchanged."""
        self.working_dir = working_dir
        """Where hooks run. The ``cwd`` of a payload is data, which a file or a record may have given (D-105)."""
        self.output_limit = output_limit
        self.slots = ProcessSlots(max_processes)
        """An executor starts its processes through these: hooks beyond the limit wait (D-32)."""
        self.warm = warm
        """Whether waiting interpreters may run Python scripts, and programs be started ahead (D-43, D-167)."""
        self._approval_mode = approval_mode

    def situation(self, session_id: object = None) -> Situation:
        """What hooks of other dialects are told besides the event."""
        situation, journal = Situation(self.working_dir(), self._approval_mode()), journal_of(session_id)
        if journal is None:
            return situation
        return situation._replace(transcript=journal.path, prompt_id=journal.prompt_id)

    def shared(self, factory: Callable[[], Made]) -> Made:
        """The one object of a factory, such as a class, that executors keep between hooks. Created on first use."""
        try:
            made: Made = self._made[factory]
        except KeyError:
            made = self._made.setdefault(factory, factory())
        return made


class StartRefusedError(Exception):
    """A hook must not be started. The message is the end of a sentence that starts with the hook."""


class EventRun:
    """What all hooks of one event share: the input, encoded once, and the environment at that moment."""

    __slots__ = (
        "_payload",
        "_translated",
        "_views",
        "environment",
        "event_id",
        "event_name",
        "extras",
        "hook_input",
        "runtime",
    )

    def __init__(
        self,
        event_name: HookEventName,
        hook_input: HookInput,
        runtime: Runtime,
        event_id: str = "",
        extras: HookInput | None = None,
    ) -> None:
        self.event_name = event_name
        self.event_id = event_id
        self.hook_input = hook_input
        self.runtime = runtime
        self.extras = extras
        """Fields that only hooks that act receive (D-46)."""
        self._views: dict[tuple[bool, bool], EventRun] = {}
        self.environment = runtime.inherited(HookScope.PROJECT)
        self._payload: bytes | None = None
        self._translated: dict[str, tuple[Mapping[str, Any], bytes]] = {}

    def payload(self) -> bytes:
        """The input as JSON, encoded on the first call: a large one takes time."""
        if self._payload is None:
            self._payload = write_payload(self.hook_input)
        return self._payload

    def translated(self, foreign: ForeignHook) -> tuple[Mapping[str, Any], bytes]:
        """The input as hooks of another dialect get it, and its JSON; once for all hooks of the dialect."""
        if foreign.view not in self._translated:
            fields = foreign.payload(
                self.event_name, self.hook_input, self.runtime.situation(self.hook_input.get("session_id"))
            )
            self._translated[foreign.view] = fields, write_payload(fields)
        return self._translated[foreign.view]

    def encode_for(self, config: HookConfig) -> None:
        """Encode what a hook will be sent."""
        event = self.seen_by(config)
        if config.foreign is None:
            event.payload()
        else:
            event.translated(config.foreign)

    def seen_by(self, config: HookConfig) -> EventRun:
        """The event as a hook sees it."""
        acts = bool(self.extras) and config.acts
        is_remote = config.type not in _LOCAL_TYPES and config.executor.is_remote
        introduces_agent = is_remote and "agent" not in self.hook_input  # a worker asks for its agent
        if not acts and not introduces_agent:
            return self
        view = self._views.get((acts, introduces_agent))
        if view is None:
            agent = {"agent": asking_agent(self.runtime.working_dir())} if introduces_agent else {}
            fields = {**self.hook_input, **agent, **(self.extras or {} if acts else {})}
            view = EventRun(self.event_name, fields, self.runtime, self.event_id)
            self._views[acts, introduces_agent] = view
        return view

    def changed(self, hook_input: HookInput) -> EventRun:
        """The event for the next hook of a chain."""
        return EventRun(self.event_name, hook_input, self.runtime, self.event_id, self.extras)


_NO_PROCESS: Final = Completed()
_LOCAL_TYPES: Final = frozenset({"command", "function"})
"""The usual types, for which no executor has to be asked where their hooks run."""


class HookRun:
    """One run of a hook: what its executor needs to start it, and the record of how it ended."""

    __slots__ = (
        "_started",
        "config",
        "event",
        "execution_id",
        "hook_input",
        "payload",
        "runtime",
        "timeout_ms",
    )

    def __init__(self, config: HookConfig, event: EventRun) -> None:
        event = event.seen_by(config)
        self.config = config
        self.event = event
        self.runtime = event.runtime
        self.hook_input = event.hook_input
        self.payload = event.payload if config.foreign is None else self._translated_payload
        self.timeout_ms = config.timeout
        self.execution_id = new_id()
        self._started = time.perf_counter()

    @property
    def environment(self) -> Mapping[str, str]:
        """What the hook inherits of this process's environment; the same object while that is unchanged."""
        scope = self.config.scope
        return self.event.environment if scope is HookScope.PROJECT else self.runtime.inherited(scope)

    @property
    def own_environment(self) -> Mapping[str, str]:
        """The variables that only hooks of its dialect get."""
        foreign = self.config.foreign
        return {} if foreign is None else foreign.environment(self.event.translated(foreign)[0])

    @property
    def folder(self) -> str:
        """Where the hook runs: the project, or what its dialect says."""
        project, foreign = self.runtime.working_dir(), self.config.foreign
        return project if foreign is None or not foreign.folder else os.path.join(project, foreign.folder)  # noqa: PTH118

    def check_start(self) -> None:
        """Raise ``StartRefusedError`` if the hook must not be started (D-28).

        An executor that runs files of the project calls this right before every start. It may read the file system.
        """
        if self.config.before_start is None:
            return
        try:
            refusal = self.config.before_start()
        except Exception as error:
            reason = error_text(error)
            refusal = f"was not started: its files could not be compared with what was approved: {reason}"
        if refusal is not None:
            raise StartRefusedError(refusal)

    def ended(self, process: Completed) -> HookExecutionResult:
        """The record of a hook whose process has ended."""
        foreign, event = self.config.foreign, self.event
        if foreign is not None:
            answer = foreign.read(event.event_name, event.hook_input, self.runtime.situation(), process)
            return self._result(self._foreign_reading(answer, process), process)
        return self._result(self._checked(read_outcome(process, self._output_class), process.stdout), process)

    def answered(self, answer: bytes | Mapping[str, Any] | None, received: bytes = b"") -> HookExecutionResult:
        """The record of a hook that answered without a process of its own; ``received`` is what the answer was in."""
        if self.config.foreign is not None and isinstance(answer, bytes):
            event, spoken = self.event, Completed(stdout=answer, exit_code=EXIT_CODE_SUCCESS)
            said = self.config.foreign.read(event.event_name, event.hook_input, self.runtime.situation(), spoken)
            return self._result(self._foreign_reading(said, _NO_PROCESS))
        reading = Reading(True, output=read_answer(answer, self._output_class))
        return self._result(self._checked(reading, answer if isinstance(answer, bytes) else received))

    def timed_out(self) -> HookExecutionResult:
        """The record of a hook that did not answer in time."""
        return self.ended(Completed(timed_out_after=self.timeout_ms))

    def failed(
        self, what: str, cause: Exception | None = None, *, output: Mapping[str, Any] | None = None
    ) -> HookExecutionResult:
        """The record of a hook that failed; ``what`` is the end of a sentence that starts with the hook."""
        reading = Reading(False, output=None if output is None else self._output_class(output), error=what)
        return self._result(reading, cause=cause)

    def _translated_payload(self) -> bytes:
        assert self.config.foreign is not None
        return self.event.translated(self.config.foreign)[1]

    def _foreign_reading(self, answer: Answer, process: Completed) -> Reading:
        """Return what a hook of another dialect answered. As with ours, exit code 2 is not a success (HOOK-070)."""
        output = None
        if answer.fields is not None or answer.to_user or answer.beside_result:
            output = self._output_class(answer.fields or {})
            output.beyond = Beyond(answer.whole_input, answer.beside_result, answer.to_user)
        blocks = output is not None and output.is_blocking_decision()
        failed = answer.error is not None or (blocks and process.exit_code == EXIT_CODE_BLOCKING_ERROR)
        exit_code = EXIT_CODE_SUCCESS if process.signal is not None else process.exit_code
        return Reading(not failed, exit_code, output, error=answer.error)

    def _checked(self, reading: Reading, received: bytes) -> Reading:
        """Mark an answer as unclear in which a name occurs twice, where that matters (D-27)."""
        output = reading.output if self.config.fail_closed and reading.success else None
        if output is not None and (name := repeated_key(decode_text(received))):
            output.unclear = f"`{escape_for_terminal(shorten(name, 60))}` occurs twice in one object"
        return reading

    @property
    def _output_class(self) -> type[DefaultHookOutput]:
        return OUTPUTS[self.event.event_name.spec.output]

    def _result(
        self,
        reading: Reading,
        process: Completed = _NO_PROCESS,
        cause: Exception | None = None,
    ) -> HookExecutionResult:
        config, event = self.config, self.event
        return HookExecutionResult(
            hook_config=config,
            event_name=event.event_name,
            success=reading.success,
            output=reading.output,
            stdout=decode_text(process.stdout),
            stderr=decode_text(process.stderr),
            exit_code=reading.exit_code,
            signal=process.signal,
            duration=(time.perf_counter() - self._started) * 1000,
            error=None if reading.error is None else hook_failure(config, reading.error, cause),
            hint=reading.hint,
            hook_input=event.hook_input,
            event_id=event.event_id,
            execution_id=self.execution_id,
            warm=process.warm or process.ahead,
            ahead=process.ahead,
            timed_out=process.timed_out,
        )


def hook_failure(config: HookConfig, what: str, cause: Exception | None = None) -> HookExecutionError:
    """The error of a hook; ``what`` is the end of a sentence that starts with the hook."""
    failure = HookExecutionError(f"hook `{config.identity}` {what}")
    failure.__cause__ = cause
    return failure
