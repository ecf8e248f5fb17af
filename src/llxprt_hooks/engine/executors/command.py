"""Hooks of type ``command``: a command line, started directly where that is certain, else through the shell."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from llxprt_hooks.engine.executors.base import Executor
from llxprt_hooks.logger import debug_logger
from llxprt_hooks.process import Completed, SpawnError, run_process
from llxprt_hooks.protocol.exit_codes import HookVerdict, ProcessOutcome, read_outcome
from llxprt_hooks.settings.jsonc import Kind
from llxprt_hooks.settings.shape import Field, Scalar
from llxprt_hooks.shell.command_line import shell_arguments
from llxprt_hooks.shell.direct_exec import SpawnContext

if TYPE_CHECKING:
    from llxprt_hooks.engine.executors.base import EventRun

log = debug_logger("runner")


class CommandSpec(msgspec.Struct, frozen=True):
    """A command line."""

    command: str


class CommandExecutor(Executor[CommandSpec]):
    """Runs a command in the project folder, with the payload on stdin."""

    fields: ClassVar[Mapping[str, Field]] = {
        "command": Field(
            Scalar(Kind.STRING, not_blank=True, is_command_line=True),
            "A command line for bash (sh where there is no bash), run in the project folder. It gets the event as JSON "
            "on stdin. `$LLXPRT_PROJECT_DIR` is the project folder, also without quotes.",
            required=True,
        ),
    }
    described = ("command",)
    example: ClassVar[Mapping[str, object]] = {"command": "$LLXPRT_PROJECT_DIR/.llxprt/hooks/check.sh"}

    def read(self, fields: Mapping[str, Any]) -> CommandSpec:
        return CommandSpec(fields["command"])

    def describe(self, spec: CommandSpec) -> str:
        return spec.command

    def script_texts(self, spec: CommandSpec) -> tuple[str]:
        return (spec.command,)

    async def run(self, spec: CommandSpec, event_run: EventRun, *, timeout_ms: float) -> HookVerdict:
        completed = await _completed(spec.command, event_run, timeout_ms)
        return read_outcome(
            ProcessOutcome(
                exit_code=completed.exit_code,
                signal=completed.signal,
                stdout=completed.stdout,
                stderr=completed.stderr,
                stdout_cut=completed.stdout_cut,
                timed_out_after=timeout_ms if completed.timed_out else None,
            )
        )


async def _completed(command: str, event_run: EventRun, timeout_ms: float) -> Completed:
    """Start the program directly where no shell is needed, and through the shell where one is."""
    context = event_run.runtime.shared(_SpawnContexts).of(event_run)
    processes = event_run.shared(_Processes)
    run = partial(
        run_process,
        stdin=event_run.payload,
        cwd=context.directory,
        timeout=timeout_ms / 1000,
        output_limit=event_run.runtime.output_limit,
    )
    direct = context.direct_command(command)
    if direct is not None:
        try:
            env = context.direct_environment(direct)
            return await processes.run(lambda: run(direct.arguments, executable=direct.executable, env=env))
        except SpawnError as error:  # deleted since the check, for example; the shell has the right error message
            if error.started:
                raise
            log.debug("`%s` cannot be started directly: %s", command, error)
    shell = _shell_arguments(command, os.environ.get("PATH"))
    try:
        return await processes.run(lambda: run(shell, env=context.environment))
    except SpawnError as error:
        if error.started or os.access(shell[0], os.X_OK):
            raise
    _shell_arguments.cache_clear()  # the remembered path of the shell is stale
    shell = _shell_arguments(command, os.environ.get("PATH"))
    return await processes.run(lambda: run(shell, env=context.environment))


@lru_cache(maxsize=1024)
def _shell_arguments(command: str, path: str | None) -> tuple[str, ...]:
    """The result of `shell_arguments`, which depends on the search path and on the files in it."""
    return tuple(shell_arguments(command))


class _SpawnContexts:
    """The spawn context of the latest event, which mostly serves the next one too."""

    def __init__(self) -> None:
        self._latest = SpawnContext({}, "")

    def of(self, event_run: EventRun) -> SpawnContext:
        latest, directory = self._latest, str(event_run.hook_input["cwd"])
        if latest.inherited is not event_run.environment or latest.directory != directory:
            latest = self._latest = SpawnContext(event_run.environment, directory)
        return latest


class _Processes:
    """The processes of one event: one that cannot be started for lack of resources waits until another has ended."""

    def __init__(self) -> None:
        self._running = 0
        self._waiting: list[asyncio.Future[None]] = []

    async def run(self, start: Callable[[], Awaitable[Completed]]) -> Completed:
        while True:
            self._running += 1
            frees_resources = True
            try:
                return await start()
            except SpawnError as error:
                if not error.is_resource_exhaustion or error.started or self._running == 1:
                    raise
                frees_resources = False
                log.debug("waiting for another hook to end: %s", error)
            finally:
                self._running -= 1
                if frees_resources:
                    self._wake()
            await self._another_ended()

    async def _another_ended(self) -> None:
        ended = asyncio.get_running_loop().create_future()
        self._waiting.append(ended)
        await ended

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)
