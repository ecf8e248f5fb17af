"""The runner: executes the hooks of a plan, side by side or as a chain, and never lets one of them raise."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from llxprt_hooks.engine.definitions import HookConfig, HookType
from llxprt_hooks.engine.observer import tell
from llxprt_hooks.engine.results import HookExecutionError, HookExecutionResult
from llxprt_hooks.events import HookEventName
from llxprt_hooks.logger import debug_logger
from llxprt_hooks.process import Completed, SpawnError, run_process
from llxprt_hooks.protocol.exit_codes import Ending, fail_closed_block, read_ending
from llxprt_hooks.protocol.json_codec import decode_text, write_json
from llxprt_hooks.shell.command_line import shell_arguments
from llxprt_hooks.shell.direct_exec import SpawnContext as Surroundings
from llxprt_hooks.shell.environment import process_environment

if TYPE_CHECKING:
    from llxprt_hooks.engine.observer import HookObserver
    from llxprt_hooks.protocol.outputs import DefaultHookOutput

log = debug_logger("runner")

DEFAULT_OUTPUT_LIMIT = 10 * 1024 * 1024
"""Bytes kept of each of a hook's two streams."""

HookInput = Mapping[str, Any]


class _Occasion:
    """What all hooks of an event are given, made once for all of them."""

    def __init__(
        self, event_name: HookEventName, hook_input: HookInput, look_around: Callable[[str], Surroundings]
    ) -> None:
        self.event_name = event_name
        self.hook_input = hook_input
        self.surroundings = look_around(str(hook_input["cwd"]))
        self._payload: bytes | None = None
        self._running = 0
        self._waiting: list[asyncio.Future[None]] = []

    def payload(self) -> bytes:
        """The input as JSON, which takes longer the larger it is: made when it is first asked for."""
        if self._payload is None:
            self._payload = write_json(self.hook_input)
        return self._payload

    async def run(self, start: Callable[[], Awaitable[Completed]]) -> Completed:
        """Run a process, if need be once another one of this event has ended and given back what it held."""
        while True:
            self._running += 1
            gives_back = True
            try:
                return await start()
            except SpawnError as error:
                if not error.for_want_of_resources or error.started or self._running == 1:
                    raise
                gives_back = False
                log.debug("waiting for another hook to end: %s", error)
            finally:
                self._running -= 1
                if gives_back:
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


class HookRunner:
    """Runs hooks, any number of events at once: nothing but what is the same for all of them is kept between events."""

    def __init__(
        self,
        *,
        output_limit: int = DEFAULT_OUTPUT_LIMIT,
        observer: HookObserver | None = None,
        inherited: Callable[[], Mapping[str, str]] = process_environment,
    ) -> None:
        self._output_limit = output_limit
        self._observer = observer
        self._inherited = inherited
        self._surroundings = Surroundings({}, "")

    async def execute_hooks_parallel(
        self, hook_configs: Sequence[HookConfig], event_name: HookEventName, hook_input: HookInput
    ) -> list[HookExecutionResult]:
        """Run all hooks at once on the same input; the results come in plan order."""
        occasion = _Occasion(event_name, hook_input, self._look_around)
        if len(hook_configs) == 1:
            return [await self._execute(hook_configs[0], occasion)]
        occasion.payload()  # now: the caller may change what it gave us before all of these tasks have begun
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._execute(config, occasion)) for config in hook_configs]
        return [task.result() for task in tasks]

    async def execute_hooks_sequential(
        self, hook_configs: Sequence[HookConfig], event_name: HookEventName, hook_input: HookInput
    ) -> list[HookExecutionResult]:
        """Run hooks one after another, each on the input as the ones before left it, up to the first block."""
        results: list[HookExecutionResult] = []
        occasion = _Occasion(event_name, hook_input, self._look_around)
        for config in hook_configs:
            result = await self._execute(config, occasion)
            results.append(result)
            if result.output is None:
                continue
            if result.output.is_blocking_decision():
                log.debug("%s: %s blocked, the rest of the chain is not run", event_name, config.identity)
                break
            if result.success:
                changed = apply_hook_output_to_input(event_name, occasion.hook_input, result.output)
                if changed is not occasion.hook_input:
                    occasion = _Occasion(event_name, changed, self._look_around)
        return results

    async def _execute(self, config: HookConfig, occasion: _Occasion) -> HookExecutionResult:
        started = time.perf_counter()
        tell(self._observer, lambda observer: observer.hook_started(occasion.event_name, config))
        try:
            result = await self._EXECUTORS[config.type](self, config, occasion)
        except Exception as error:  # a hook that cannot be run has failed, and a failed hook allows (HOOK-110)
            result = HookExecutionResult(
                hook_config=config,
                event_name=occasion.event_name,
                success=False,
                duration=(time.perf_counter() - started) * 1000,
                error=_failure(config, f"could not be run: {str(error) or type(error).__name__}", cause=error),
                hook_input=occasion.hook_input,
            )
        if config.fail_closed:
            result = _closed(result)
        tell(self._observer, lambda observer: observer.hook_ended(result))
        return result

    async def _execute_command(self, config: HookConfig, occasion: _Occasion) -> HookExecutionResult:
        completed = await self._run(config, occasion)
        reading = read_ending(
            Ending(
                exit_code=completed.exit_code,
                signal=completed.signal,
                stdout=completed.stdout,
                stderr=completed.stderr,
                stdout_cut=completed.stdout_cut,
                timed_out_after=config.timeout if completed.timed_out else None,
            )
        )
        return HookExecutionResult(
            hook_config=config,
            event_name=occasion.event_name,
            success=reading.success,
            output=reading.output,
            stdout=decode_text(completed.stdout),
            stderr=decode_text(completed.stderr),
            exit_code=reading.exit_code,
            signal=completed.signal,
            duration=completed.duration,
            error=None if reading.error is None else _failure(config, reading.error),
            hint=reading.hint,
            hook_input=occasion.hook_input,
        )

    async def _run(self, config: HookConfig, occasion: _Occasion) -> Completed:
        """Start the program directly where no shell is needed, and through the shell where one is."""
        around = occasion.surroundings
        run = partial(
            run_process,
            stdin=occasion.payload,
            cwd=around.directory,
            timeout=config.timeout / 1000,
            output_limit=self._output_limit,
        )
        direct = around.direct_command(config.command)
        if direct is not None:
            try:
                env = around.direct_environment(direct)
                return await occasion.run(lambda: run(direct.arguments, executable=direct.executable, env=env))
            except SpawnError as error:  # gone since it was looked at, say; the shell has the right words for it
                if error.started:
                    raise
                log.debug("`%s` cannot be started directly: %s", config.command, error)
        shell = _shell_arguments(config.command, os.environ.get("PATH"))
        try:
            return await occasion.run(lambda: run(shell, env=around.environment))
        except SpawnError as error:
            if error.started or os.access(shell[0], os.X_OK):
                raise
        _shell_arguments.cache_clear()  # it was there once, and may be elsewhere now
        shell = _shell_arguments(config.command, os.environ.get("PATH"))
        return await occasion.run(lambda: run(shell, env=around.environment))

    def _look_around(self, directory: str) -> Surroundings:
        """What hooks are started in now; mostly, what they were started in before."""
        inherited, last = self._inherited(), self._surroundings
        if last.inherited is not inherited or last.directory != directory:
            last = self._surroundings = Surroundings(inherited, directory)
        return last

    async def _execute_plugin(self, config: HookConfig, occasion: _Occasion) -> HookExecutionResult:
        raise HookExecutionError("there is no way to run plugins")

    _EXECUTORS: Mapping[HookType, Callable[..., Awaitable[HookExecutionResult]]] = {
        HookType.COMMAND: _execute_command,
        HookType.PLUGIN: _execute_plugin,
    }


@lru_cache(maxsize=1024)
def _shell_arguments(command: str, path: str | None) -> tuple[str, ...]:
    """As `shell_arguments` has them; where the shell is depends on the search path, and on what is there."""
    return tuple(shell_arguments(command))


def apply_hook_output_to_input(
    event_name: HookEventName, hook_input: HookInput, output: DefaultHookOutput
) -> HookInput:
    """The input for the next hook of a chain; the same object when the output changes nothing of it."""
    chain = _CHAINS.get(event_name)
    changes = {} if chain is None else chain(hook_input, output.hook_specific_output or {})
    return {**hook_input, **changes} if changes else hook_input


def _chain_tool_input(hook_input: HookInput, specific: Mapping[str, Any]) -> dict[str, Any]:
    return _merged(hook_input, specific, "tool_input")


def _chain_llm_request(hook_input: HookInput, specific: Mapping[str, Any]) -> dict[str, Any]:
    return _merged(hook_input, specific, "llm_request")


def _chain_prompt(hook_input: HookInput, specific: Mapping[str, Any]) -> dict[str, Any]:
    context = specific.get("additionalContext")
    return {"prompt": f"{hook_input['prompt']}\n\n{context}"} if context else {}


def _merged(hook_input: HookInput, specific: Mapping[str, Any], field: str) -> dict[str, Any]:
    """By top-level key: the later hook's value stands, nested objects are not merged (HOOK-105, 216)."""
    changes = specific.get(field)
    return {field: {**hook_input[field], **changes}} if changes else {}


_CHAINS: Mapping[HookEventName, Callable[[HookInput, Mapping[str, Any]], dict[str, Any]]] = {
    HookEventName.BEFORE_TOOL: _chain_tool_input,
    HookEventName.BEFORE_MODEL: _chain_llm_request,
    HookEventName.BEFORE_AGENT: _chain_prompt,
}
"""HOOK-211: the events whose input the next hook of a chain sees changed; for all others it stays as it was."""


def _closed(result: HookExecutionResult) -> HookExecutionResult:
    """A failure of a hook that must not fail is its explicit block, with a reason that says so."""
    if result.error is None:
        return result
    return replace(result, output=fail_closed_block(str(result.error)))


def _failure(config: HookConfig, what: str, cause: Exception | None = None) -> HookExecutionError:
    failure = HookExecutionError(f"hook `{config.identity}` {what}")
    failure.__cause__ = cause
    return failure
