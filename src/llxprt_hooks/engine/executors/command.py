"""Hooks of type ``command``: a command line, started directly where that is certain, else through the shell."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from llxprt_hooks.engine.executors.base import Executor, HookScope
from llxprt_hooks.logger import debug_logger
from llxprt_hooks.process import Child, SpawnError, blocking_is_forbidden, run_child, spawn
from llxprt_hooks.process.warm import Offer, zygotes
from llxprt_hooks.protocol.exit_codes import HookVerdict, ProcessOutcome, cannot_run_block, read_outcome
from llxprt_hooks.settings.jsonc import Kind
from llxprt_hooks.settings.shape import Field, Scalar
from llxprt_hooks.shell.command_line import shell_arguments
from llxprt_hooks.shell.direct_exec import SpawnContext
from llxprt_hooks.shell.python_start import python_start

if TYPE_CHECKING:
    from llxprt_hooks.engine.executors.base import EventRun

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

    async def run(self, spec: CommandSpec, event_run: EventRun, *, timeout_ms: float) -> HookVerdict:
        runtime = event_run.runtime
        if blocking_is_forbidden():
            event_run.payload()  # not in the thread that starts the hook: the caller may change what it gave us
        start = partial(_start, spec, event_run, runtime.shared(_SpawnContexts).of(event_run))
        try:  # when fewer processes run than the configuration allows (D-32)
            completed = await runtime.slots.run(partial(run_child, start, timeout=timeout_ms / 1000))
        except SpawnError as error:
            if not error.is_unsupported:
                raise
            what = f"{error} Use llxprt-hooks in the main interpreter."
            return HookVerdict(False, output=cannot_run_block(what), error=f"cannot run here: {what}")
        return read_outcome(
            ProcessOutcome(
                exit_code=completed.exit_code,
                signal=completed.signal,
                stdout=completed.stdout,
                stderr=completed.stderr,
                stdout_cut=completed.stdout_cut,
                timed_out_after=timeout_ms if completed.timed_out else None,
                warm=completed.warm,
            )
        )


def _start(spec: CommandSpec, event_run: EventRun, context: SpawnContext) -> Child | Offer:
    """Offer a script to a waiting interpreter if the hook is for that, or start the program."""
    offer = _offer(spec, event_run, context) if spec.warm else None
    return offer or _start_cold(spec.command, event_run, context)


def _start_cold(command: str, event_run: EventRun, context: SpawnContext) -> Child:
    """Start the program directly where no shell is needed, and through the shell where one is."""
    event_run.check_start()
    start = partial(spawn, stdin=event_run.payload, cwd=context.directory, output_limit=event_run.runtime.output_limit)
    direct = context.direct_command(command)
    if direct is not None:
        try:
            env = context.direct_environment(direct)
            return start(direct.arguments, executable=direct.executable, env=env)
        except SpawnError as error:  # deleted since the check, for example; the shell has the right error message
            if error.started or error.is_resource_exhaustion or error.is_unsupported:
                raise
            log.debug("`%s` cannot be started directly: %s", command, error)
    shell = _shell_arguments(command, os.environ.get("PATH"))
    try:
        return start(shell, env=context.environment)
    except SpawnError as error:
        if error.started or error.is_resource_exhaustion or os.access(shell[0], os.X_OK):
            raise
    _shell_arguments.cache_clear()  # the remembered path of the shell is stale
    shell = _shell_arguments(command, os.environ.get("PATH"))
    return start(shell, env=context.environment)


def _offer(spec: CommandSpec, event_run: EventRun, context: SpawnContext) -> Offer | None:
    """Offer a script to a waiting interpreter (D-43). None if there is none for it; nothing has been run then."""
    direct = context.direct_command(spec.command) if event_run.runtime.warm() else None
    if direct is None:
        return None
    env = context.direct_environment(direct)
    python = python_start(direct, env, context.directory)
    if python is None:
        log.debug("`%s` runs cold: it is not a plain start of a Python script", spec.command)
        return None
    event_run.check_start()
    return zygotes.offer(
        python,
        stdin=event_run.payload,
        env=env,
        cwd=context.directory,
        output_limit=event_run.runtime.output_limit,
        otherwise=partial(_start_cold, spec.command, event_run, context),
    )


@lru_cache(maxsize=1024)
def _shell_arguments(command: str, path: str | None) -> tuple[str, ...]:
    """The result of `shell_arguments`, which depends on the search path and on the files in it."""
    return tuple(shell_arguments(command))


class _SpawnContexts:
    """The spawn context of the latest event in each scope, which mostly serves the next one too."""

    def __init__(self) -> None:
        self._latest = dict.fromkeys(HookScope, SpawnContext({}, ""))

    def of(self, event_run: EventRun) -> SpawnContext:
        latest, directory = self._latest[event_run.scope], str(event_run.hook_input["cwd"])
        if latest.inherited is not event_run.environment or latest.directory != directory:
            latest = self._latest[event_run.scope] = SpawnContext(event_run.environment, directory)
        return latest
