"""Hooks of type ``command``: a command line, started directly where that is certain, else through the shell."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.core.engine import session_memory
from llxprt_hooks.core.executors.base import Executor, HookRun
from llxprt_hooks.core.protocol.exit_codes import cannot_run_block
from llxprt_hooks.events import HookEventName
from llxprt_hooks.process import Child, SpawnError, run_child, spawn
from llxprt_hooks.process.ahead import Prepared, Start, ahead
from llxprt_hooks.process.shell.command_line import shell_arguments
from llxprt_hooks.process.shell.direct_exec import SpawnContext
from llxprt_hooks.process.shell.python_start import python_start
from llxprt_hooks.process.warm import PythonStart, ScriptOffer, zygotes
from llxprt_hooks.settings.definitions import HookScope
from llxprt_hooks.settings.foreign import ENV_FILES
from llxprt_hooks.settings.jsonc import Kind
from llxprt_hooks.settings.shape import Field, Scalar

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.results import HookExecutionResult
    from llxprt_hooks.process.shell.environment import Environment

log = debug_logger("runner")


class CommandSpec(msgspec.Struct, frozen=True):
    """A command line, and whether a waiting interpreter may run it."""

    command: str
    warm: bool | None = None
    """None: the settings decide."""


class CommandExecutor(Executor[CommandSpec]):
    """Runs a command in the project folder, with the payload on stdin."""

    fields: ClassVar[Mapping[str, Field]] = {
        "command": Field(
            Scalar(Kind.STRING, not_blank=True, is_command_line=True),
            "A command line for bash (or sh, if bash is not installed), with `~`, pipes and variables. It runs in the "
            "project folder and gets the event as JSON on stdin.",
            required=True,
        ),
        "warm": Field(
            Scalar(Kind.BOOLEAN),
            "Starts the command before its event, to save the time that starting takes. A Python script runs in an "
            "interpreter that is already running. Any other program waits for its input, so whatever it does before it "
            "reads happens earlier.",
            nullable=True,
        ),
    }
    described = ("command",)
    is_process = True
    example: ClassVar[Mapping[str, object]] = {"command": "$LLXPRT_PROJECT_DIR/.llxprt/hooks/check.sh"}

    def read(self, fields: Mapping[str, Any]) -> CommandSpec:
        return CommandSpec(fields["command"], fields["warm"])

    def describe(self, spec: CommandSpec) -> str:
        return spec.command

    def is_warm(self, spec: CommandSpec) -> bool:
        return bool(spec.warm)

    def warmed(self, spec: CommandSpec) -> CommandSpec:
        return CommandSpec(spec.command, True) if spec.warm is None else spec

    def script_texts(self, spec: CommandSpec) -> tuple[str]:
        return (spec.command,)

    def prepare(self, spec: CommandSpec, run: HookRun) -> None:
        if spec.warm:
            _Warm(spec, run, run.runtime.shared(_SpawnContexts).of(run)).prepare_first()

    def first_start(self, spec: CommandSpec, run: HookRun) -> Start | None:
        """What a process is started with that waits for the first event; None if an interpreter waits instead."""
        return _Warm(spec, run, run.runtime.shared(_SpawnContexts).of(run)).first_start()

    async def run(self, spec: CommandSpec, run: HookRun) -> HookExecutionResult:
        context = run.runtime.shared(_SpawnContexts).of(run)
        warm = _Warm(spec, run, context) if spec.warm and run.runtime.warm() else None
        start = warm.start if warm else partial(_start_cold, spec, run, context)
        try:  # when fewer processes run than the configuration allows (D-32)
            result = run.ended(await run.runtime.slots.run(partial(run_child, start, timeout=run.timeout_ms / 1000)))
            if warm:
                warm.prepare_next()
            return result
        except SpawnError as error:
            if error.is_resource_exhaustion and not error.started and ahead.give_way():
                return await self.run(spec, run)
            if not error.is_unsupported:
                raise
            what = f"{error} Use llxprt-hooks in the main interpreter."
            return run.failed(f"cannot run here: {what}", output=cannot_run_block(what))


def _start_cold(
    spec: CommandSpec, run: HookRun, context: SpawnContext, environment: Environment | None = None
) -> Child:
    """Start the program directly where no shell is needed, and through the shell where one is."""
    run.check_start()
    command = spec.command
    environment = _environment(context, run) if environment is None else environment
    start = partial(
        spawn, stdin=run.payload, env=environment, cwd=context.directory, output_limit=run.runtime.output_limit
    )
    direct = context.direct_command(command)
    if direct is not None:
        try:
            return start(direct.arguments, executable=direct.executable)
        except SpawnError as error:  # deleted since the check, for example; the shell has the right error message
            if error.started or error.is_resource_exhaustion or error.is_unsupported:
                raise
            log.debug("`%s` cannot be started directly: %s", command, error)
    shell = _shell(command, run)
    try:
        return start(shell)
    except SpawnError as error:
        if error.started or error.is_resource_exhaustion or os.access(shell[0], os.X_OK):
            raise
    _shell_arguments.cache_clear()  # the remembered path of the shell is stale
    return start(_shell(command, run))


class _Warm:
    """One run of a warm hook, and the start of its next process (D-43, D-167)."""

    def __init__(self, spec: CommandSpec, run: HookRun, context: SpawnContext) -> None:
        self._spec = spec
        self._run = run
        self._context = context
        self._start: Start | None = None
        self._key = spec.command, context.directory, run.config.scope, run.runtime.output_limit

    def start(self) -> Child | ScriptOffer:
        """Let a program that was started ahead go on, or a waiting interpreter run a Python script; else start one."""
        run = self._run
        environment = _environment(self._context, run)
        cold = partial(_start_cold, self._spec, run, self._context, environment)
        run.check_start()
        start = self._next(environment)
        waited = ahead.waits_for(self._key)
        if not waited:
            if (python := self._python_start()) is not None:
                offer = zygotes.offer(
                    python,
                    stdin=run.payload,
                    env=environment,
                    cwd=self._context.directory,
                    output_limit=run.runtime.output_limit,
                    otherwise=cold,
                )
                return offer or cold()
            if ahead.patience:
                ahead.start_now(self._key, partial(self._prepared, start))
        self._start = start
        payload = run.payload()  # it may raise: before a process is taken that nobody would end
        child = ahead.take(self._key, start)
        if child is None:
            if waited and self._python_start() is not None:
                self._start = None  # it has become one, which an interpreter runs from now on
            log.debug("`%s` runs cold: none was started ahead", self._spec.command)
            return cold()
        return child.begin(payload)

    def prepare_next(self) -> None:
        """Start the process for the next event soon, as this one was started."""
        start = self._start
        if start is not None and self._run.event.event_name is not HookEventName.SESSION_END:
            ahead.prepare(self._key, partial(self._prepared, start))

    def prepare_first(self) -> None:
        """Start the process for the first event soon."""
        ahead.prepare(self._key, self._first)

    def _first(self) -> Prepared | None:
        start = self.first_start()
        return None if start is None else self._prepared(start)

    def first_start(self) -> Start | None:
        run, context = self._run, self._context
        if self._python_start() is not None:
            return None
        folder = session_memory.folder_of(str(run.hook_input.get("session_id", "")))  # the event creates it
        own = {**run.own_environment, session_memory.VARIABLE: folder}
        return self._next(context.environment_with(own))

    def _python_start(self) -> PythonStart | None:
        context = self._context
        direct = context.direct_command(self._spec.command)
        return python_start(direct, context.environment, context.directory) if direct else None

    def _next(self, environment: Environment) -> Start:
        spec, context = self._spec, self._context
        direct = context.direct_command(spec.command)
        argv = _shell(spec.command, self._run) if direct is None else direct.arguments
        executable = None if direct is None else direct.executable
        return Start(argv, executable, environment, context.directory, self._run.runtime.output_limit)

    def _prepared(self, start: Start) -> Prepared:
        from llxprt_hooks.core.executors.watched_files import FilesOfCommands

        self._run.check_start()
        runtime = self._run.runtime
        files = runtime.shared(FilesOfCommands).of(self._spec.command, start, runtime.working_dir())
        return Prepared(start, files.change)


def _shell(command: str, run: HookRun) -> tuple[str, ...]:
    return _shell_arguments(command, os.environ.get("PATH"), run.config.scope is not HookScope.PROJECT)


def _environment(context: SpawnContext, run: HookRun) -> Environment:
    """The environment with the private folder of the event's session (D-56), and with what the hook's dialect adds."""
    own = dict(run.own_environment)
    if (folder := session_memory.open_folder(str(run.hook_input.get("session_id", "")))) is not None:
        own[session_memory.VARIABLE] = folder
        if run.event.event_name is HookEventName.SESSION_START and (name := ENV_FILES.get(run.config.dialect)):
            own[name] = os.path.join(folder, session_memory.ENV_FILE)  # noqa: PTH118
    return context.environment_with(own)


@lru_cache(maxsize=1024)
def _shell_arguments(command: str, path: str | None, protected: bool) -> tuple[str, ...]:
    """The result of `shell_arguments`, which depends on the search path and on the files in it."""
    return tuple(shell_arguments(command, protected=protected))


class _SpawnContexts:
    """The spawn context of the latest event in each scope and folder, which mostly serves the next one too."""

    def __init__(self) -> None:
        self._latest: dict[tuple[HookScope, str], SpawnContext] = {}

    def of(self, run: HookRun) -> SpawnContext:
        project = run.runtime.working_dir()
        place = run.config.scope, run.config.foreign.folder if run.config.foreign is not None else ""
        latest = self._latest.get(place)
        if latest is None or latest.inherited is not run.environment or latest.project != project:
            latest = self._latest[place] = SpawnContext(run.environment, run.folder, project)
        return latest
