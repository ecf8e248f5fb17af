"""The runner: executes the hooks of a plan, in parallel or as a chain, and never lets one of them raise."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.core import loops
from llxprt_hooks.core.engine.observer import HookObserver, HookStarted, notify
from llxprt_hooks.core.executors import EXECUTORS
from llxprt_hooks.core.executors.base import (
    DEFAULT_MAX_PROCESSES,
    DEFAULT_OUTPUT_LIMIT,
    EventRun,
    HookInput,
    HookRun,
    Runtime,
    StartRefusedError,
    hook_failure,
)
from llxprt_hooks.core.protocol.exit_codes import fail_closed_block, unreadable_decision
from llxprt_hooks.core.protocol.model_outputs import OUTPUTS
from llxprt_hooks.core.protocol.outputs import BLOCKING, DefaultHookOutput, merged_by_key
from llxprt_hooks.process import is_out_of_stack
from llxprt_hooks.process.shell.environment import process_environment

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.results import HookExecutionResult
    from llxprt_hooks.events import HookEventName
    from llxprt_hooks.settings.definitions import HookConfig, HookScope

log = debug_logger("runner")


class HookRunner:
    """Runs hooks, any number of events at once. Stateless between events, apart from what executors cache."""

    def __init__(
        self,
        *,
        working_dir: Callable[[], str] = os.getcwd,
        output_limit: int = DEFAULT_OUTPUT_LIMIT,
        max_processes: int = DEFAULT_MAX_PROCESSES,
        observer: HookObserver | None = None,
        inherited: Callable[[HookScope], Mapping[str, str]] = lambda scope: process_environment(),
        warm: Callable[[], bool] = lambda: True,
        approval_mode: Callable[[], str] = lambda: "default",
    ) -> None:
        self._observer = observer
        self._runtime = Runtime(inherited, working_dir, output_limit, max_processes, warm, approval_mode)

    def prepare(self, hook_configs: Iterable[tuple[HookEventName, HookConfig]], base_input: HookInput) -> None:
        """Get ready for the first event of warm hooks, in the background."""
        for event_name, config in hook_configs:
            event_run = EventRun(event_name, {**base_input, "hook_event_name": event_name}, self._runtime)
            config.executor.prepare(config.spec, HookRun(config, event_run))

    async def execute_hooks_parallel(
        self,
        hook_configs: Sequence[HookConfig],
        event_name: HookEventName,
        hook_input: HookInput,
        event_id: str = "",
        extras: HookInput | None = None,
    ) -> list[HookExecutionResult]:
        """Run all hooks at once on the same input; the results come in plan order. Only acting hooks get ``extras``."""
        event_run = EventRun(event_name, hook_input, self._runtime, event_id, extras)
        hook_configs = _runs(hook_configs, event_run)
        if len(hook_configs) == 1:
            return [await self._execute(hook_configs[0], event_run)]
        for config in hook_configs:  # now: the caller may change what it gave us before all of these tasks have begun
            event_run.encode_for(config)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._execute(config, event_run)) for config in hook_configs]
        return [task.result() for task in tasks]

    async def execute_hooks_sequential(
        self,
        hook_configs: Sequence[HookConfig],
        event_name: HookEventName,
        hook_input: HookInput,
        event_id: str = "",
        extras: HookInput | None = None,
    ) -> list[HookExecutionResult]:
        """Run hooks sequentially, each on the input as the ones before left it, up to the first block."""
        results: list[HookExecutionResult] = []
        event_run = EventRun(event_name, hook_input, self._runtime, event_id, extras)
        for planned in hook_configs:
            for config in _runs([planned], event_run):
                result = await self._execute(config, event_run)
                results.append(result)
                if result.output is None:
                    continue
                if result.output.decision in BLOCKING:  # a permission decision ends no chain (HOOK-107, 171)
                    log.debug("%s: %s blocked, the rest of the chain is not run", event_name, config.identity)
                    return results
                if result.success:
                    changed = apply_hook_output_to_input(event_name, event_run.hook_input, result.output)
                    if changed is not event_run.hook_input:
                        event_run = event_run.changed(changed)
        return results

    async def _execute(self, config: HookConfig, event: EventRun, *, waits: bool = True) -> HookExecutionResult:
        """Run one hook, and decide whether its failure blocks. Unless it ``waits``, nobody waits for it already."""
        run = HookRun(config, event)
        if waits and config.foreign is not None and config.foreign.background:
            loops.submit(self._execute(config, event, waits=False))
            return run.answered(None)
        if self._observer is not None:
            started = HookStarted(event.event_id, run.execution_id, event.event_name, config)
            notify(self._observer, "hook_started", started)
        must_block = False
        try:
            if not EXECUTORS[config.type].is_process:  # a process is checked when it is its turn to start (D-32)
                run.check_start()
            result = await EXECUTORS[config.type].run(config.spec, run)
        except StartRefusedError as refusal:
            must_block, result = True, run.failed(str(refusal), refusal)
        except Exception as error:  # a hook that cannot be run has failed, and the call goes ahead (HOOK-110)
            must_block, result = is_out_of_stack(error), run.failed(config.executor.failure(config.spec, error), error)
        if must_block and result.spec.can_block:
            result = _blocked(result)
        elif config.fail_closed:
            result = _apply_fail_closed(result)
        if config.observe:  # logged, and otherwise as if it had said nothing (D-80)
            result = replace(result, output=None, observed=result.output)
        if self._observer is not None:
            notify(self._observer, "hook_ended", result)
        return result


def _runs(hook_configs: Sequence[HookConfig], event: EventRun) -> Sequence[HookConfig]:
    """The hooks that run for an event: one of another dialect may be for another event there, or for several calls."""
    if len(hook_configs) == 1 and hook_configs[0].foreign is None:
        return hook_configs
    return [
        config if foreign is config.foreign else msgspec.structs.replace(config, foreign=foreign)
        for config in hook_configs
        for foreign in (
            (None,) if config.foreign is None else config.foreign.runs_for(event.event_name, event.hook_input)
        )
    ]


def apply_hook_output_to_input(
    event_name: HookEventName, hook_input: HookInput, output: DefaultHookOutput
) -> HookInput:
    """The input for the next hook of a chain; the same object when the output changes nothing of it."""
    field, answer = event_name.spec.chained_field, output.hook_specific_output or {}
    if not field:
        return hook_input
    if event_name.spec.merged_object:
        changes = answer.get(field)
        if output.replaces_input and changes is not None:
            return {**hook_input, field: changes}
        return {**hook_input, field: merged_by_key(hook_input[field], changes)} if changes else hook_input
    context = answer.get("additionalContext")
    return {**hook_input, field: f"{hook_input[field]}\n\n{context}"} if context else hook_input


def _apply_fail_closed(result: HookExecutionResult) -> HookExecutionResult:
    """Turn the failure of a hook with ``failClosed`` into an explicit block; an unclear answer is a failure, too."""
    error = result.error
    if error is None and result.success and result.spec.can_block:
        unclear = unreadable_decision(result.output)
        error = None if unclear is None else hook_failure(result.hook_config, unclear)
    if error is None:
        return result
    block = fail_closed_block(str(error), result.output, key=result.hook_config.fail_closed_key)
    return replace(result, success=False, error=error, output=OUTPUTS[result.event_name.spec.output](block))


def _blocked(result: HookExecutionResult) -> HookExecutionResult:
    """Let a hook that must not or cannot be started block, as firmly as one with ``failClosed`` (D-28, D-60)."""
    config = msgspec.structs.replace(result.hook_config, fail_closed=True)
    output = OUTPUTS[result.event_name.spec.output]({"decision": "deny", "reason": str(result.error)})
    return replace(result, hook_config=config, output=output)
