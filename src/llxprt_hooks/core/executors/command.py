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
from llxprt_hooks.process.shell.command_line import shell_arguments
from llxprt_hooks.process.shell.direct_exec import SpawnContext
from llxprt_hooks.process.shell.python_start import python_start
from llxprt_hooks.process.warm import ScriptOffer, zygotes
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
    warm: bool = False


class CommandExecutor(Executor[CommandSpec]):
    """Runs a command in the project folder, with the payload on stdin."""

    fields: ClassVar[Mapping[str, Field]] = {
        "command": Field(
            Scalar(Kind.STRING, not_blank=True, is_command_line=True),
            "A command line for bash (sh where there is no bash), run in the project folder. It gets the event as JSON "
            "on stdin. `$LLXPRT_PROJECT_DIR` is the project folder, also without quotes.",
            required=True,
        ),
        "warm": Field(
            Scalar(Kind.BOOLEAN),
            "Whether a Python script runs in an interpreter that is already started: the same script, without the time "
            "that Python takes to start. Any other command runs as usual.",
            default=False,
            nullable=True,
        ),
    }
    described = ("command",)
    is_process = True
    example: ClassVar[Mapping[str, object]] = {"command": "$LLXPRT_PROJECT_DIR/.llxprt/hooks/check.sh"}

    def read(self, fields: Mapping[str, Any]) -> CommandSpec:
        return CommandSpec(fields["command"], bool(fields["warm"]))

    def describe(self, spec: CommandSpec) -> str:
        return spec.command

    def is_warm(self, spec: CommandSpec) -> bool:
        return spec.warm

    def script_texts(self, spec: CommandSpec) -> tuple[str]:
        return (spec.command,)

    async def run(self, spec: CommandSpec, run: HookRun) -> HookExecutionResult:
        context = run.runtime.shared(_SpawnContexts).of(run)
        start = partial(_start_warm if spec.warm else _start_cold, spec, run, context)
        try:  # when fewer processes run than the configuration allows (D-32)
            return run.ended(await run.runtime.slots.run(partial(run_child, start, timeout=run.timeout_ms / 1000)))
        except SpawnError as error:
            if not error.is_unsupported:
                raise
            what = f"{error} Use llxprt-hooks in the main interpreter."
            return run.failed(f"cannot run here: {what}", output=cannot_run_block(what))


def _start_cold(spec: CommandSpec, run: HookRun, context: SpawnContext) -> Child:
    """Start the program directly where no shell is needed, and through the shell where one is."""
    run.check_start()
    command = spec.command
    environment = _environment(context, run)
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
    protected = run.config.scope is not HookScope.PROJECT
    shell = _shell_arguments(command, os.environ.get("PATH"), protected)
    try:
        return start(shell)
    except SpawnError as error:
        if error.started or error.is_resource_exhaustion or os.access(shell[0], os.X_OK):
            raise
    _shell_arguments.cache_clear()  # the remembered path of the shell is stale
    shell = _shell_arguments(command, os.environ.get("PATH"), protected)
    return start(shell)


def _start_warm(spec: CommandSpec, run: HookRun, context: SpawnContext) -> Child | ScriptOffer:
    """Run the script in a warm interpreter if there can be one (D-43); otherwise start the program."""
    direct = context.direct_command(spec.command) if run.runtime.warm() else None
    if direct is None:
        return _start_cold(spec, run, context)
    python = python_start(direct, context.environment, context.directory)
    if python is None:
        log.debug("`%s` runs cold: it is not a plain start of a Python script", spec.command)
        return _start_cold(spec, run, context)
    run.check_start()
    cold = partial(_start_cold, spec, run, context)
    offer = zygotes.offer(
        python,
        stdin=run.payload,
        env=_environment(context, run),
        cwd=context.directory,
        output_limit=run.runtime.output_limit,
        otherwise=cold,
    )
    return offer or cold()


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
