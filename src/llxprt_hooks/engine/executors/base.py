"""The seam for hook types: what an executor declares, and what it is given to run a hook.

A hook type is one module in this folder with a subclass of ``Executor``, and one line in the table ``EXECUTORS``. All
other parts (settings, trust, ``list``, ``fire``, ``log``, ``validate``, the JSON Schema) ask the executor.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from llxprt_hooks.engine.results import error_text
from llxprt_hooks.process import ProcessSlots
from llxprt_hooks.protocol.json_codec import write_payload

if TYPE_CHECKING:
    from llxprt_hooks.events import HookEventName
    from llxprt_hooks.protocol.exit_codes import HookVerdict
    from llxprt_hooks.settings.shape import Field, FieldProblem

DEFAULT_OUTPUT_LIMIT = 10 * 1024 * 1024
"""Bytes that are kept of a hook's answer; of a command, of each of its two streams."""

DEFAULT_MAX_PROCESSES = 64
"""Hooks of a configuration that run as processes at once."""


class HookScope(StrEnum):
    """Who a hook belongs to. That decides which environment it gets, and who can switch it off."""

    PROJECT = "project"
    """The project, or the program that created the configuration."""
    USER = "user"
    """The user, the system or an extension. It also runs in projects that nobody approved (D-35)."""
    MANAGED = "managed"
    """The administrator. No other level affects it (D-36)."""


Spec = TypeVar("Spec")
Made = TypeVar("Made")
HookInput = Mapping[str, Any]


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

    def script_texts(self, spec: Spec) -> Iterable[str]:
        """The texts in which files of the project may be named; their content is approved with the hook."""
        return ()

    def problems(self, spec: Spec, environment: Mapping[str, str]) -> Iterable[FieldProblem]:
        """What ``validate`` reports: the hook fails because of it or, without ``discards``, probably does not do what
        was meant.
        """
        return ()

    @abstractmethod
    async def run(self, spec: Spec, event_run: EventRun, *, timeout_ms: float) -> HookVerdict:
        """Run the hook once. An exception is a failed hook. The time limit is for the executor to keep."""

    def failure(self, spec: Spec, error: Exception) -> str:
        """What an exception of ``run`` means, as the end of a sentence that starts with the hook."""
        return f"could not be run: {error_text(error)}"


class Runtime:
    """What all hooks of one configuration share, for as long as it is used. Events may run in several threads."""

    def __init__(
        self,
        inherited: Callable[[HookScope], Mapping[str, str]],
        output_limit: int = DEFAULT_OUTPUT_LIMIT,
        max_processes: int = DEFAULT_MAX_PROCESSES,
        warm: Callable[[], bool] = lambda: True,
    ) -> None:
        self._made: dict[Callable[[], Any], Any] = {}
        self.inherited = inherited
        """The part of this process's environment that hooks of a scope may have. The same object while unchanged."""
        self.output_limit = output_limit
        self.slots = ProcessSlots(max_processes)
        """An executor starts its processes through these: hooks beyond the limit wait (D-32)."""
        self.warm = warm
        """Whether waiting interpreters may run Python scripts (D-43)."""

    def shared(self, factory: Callable[[], Made]) -> Made:
        """The one object of a factory, such as a class, that executors keep between hooks. Created on first use."""
        try:
            made: Made = self._made[factory]
        except KeyError:
            made = self._made.setdefault(factory, factory())
        return made


BeforeStart = Callable[[], str | None]
"""Returns why a hook must not be started now, as the end of a sentence that starts with the hook; else None.

It may read files. It knows nothing of event loops, so that it can be called in any thread.
"""


class StartRefusedError(Exception):
    """A hook must not be started. The message is the end of a sentence that starts with the hook."""


class EventRun:
    """What all hooks of one event share: the payload, encoded once, and the environment at that moment."""

    def __init__(self, event_name: HookEventName, hook_input: HookInput, runtime: Runtime, event_id: str = "") -> None:
        self.event_name = event_name
        self.event_id = event_id
        self.hook_input = hook_input
        self.runtime = runtime
        self.scope = HookScope.PROJECT
        self.environment = runtime.inherited(self.scope)
        self._before_start: BeforeStart | None = None
        self._payload: bytes | None = None

    def of_hook(self, scope: HookScope, before_start: BeforeStart | None) -> EventRun:
        """The same event for one hook: with the environment of its scope, and what to check before it starts."""
        environment = self.environment if scope is self.scope else self.runtime.inherited(scope)
        if environment is self.environment and before_start is self._before_start:  # nearly always
            return self
        run = copy.copy(self)
        run.scope, run.environment, run._before_start = scope, environment, before_start
        return run

    def check_start(self) -> None:
        """Raise ``StartRefusedError`` if the hook must not be started (D-28).

        An executor that runs files of the project calls this right before every start. It may read the file system.
        """
        if self._before_start is None:
            return
        try:
            refusal = self._before_start()
        except Exception as error:
            reason = error_text(error)
            refusal = f"was not started: its files could not be compared with what was approved: {reason}"
        if refusal is not None:
            raise StartRefusedError(refusal)

    def payload(self) -> bytes:
        """The input as JSON, encoded on the first call: a large one takes time."""
        if self._payload is None:
            self._payload = write_payload(self.hook_input)
        return self._payload
