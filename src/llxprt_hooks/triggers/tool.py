"""Hooks around a tool call."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from llxprt_hooks.events import HookEventName
from llxprt_hooks.logger import debug_logger
from llxprt_hooks.protocol.inputs import name_text
from llxprt_hooks.protocol.json_codec import PAYLOAD_DEPTH
from llxprt_hooks.protocol.outputs import BeforeToolHookOutput, merged_by_key
from llxprt_hooks.protocol.tool_result import ToolResult, with_text
from llxprt_hooks.triggers.failure import output_after_failure
from llxprt_hooks.triggers.portal import on_asyncio
from llxprt_hooks.triggers.relevance import handler_for, is_hooked

if TYPE_CHECKING:
    from llxprt_hooks.config import Config
    from llxprt_hooks.model import Restriction
    from llxprt_hooks.protocol.outputs import DefaultHookOutput

log = debug_logger("triggers:tool")

Execute: TypeAlias = Callable[[dict[str, Any]], Awaitable[Any] | Any]
"""A tool: takes its input and returns a ``ToolResult``, or any other value, which becomes the content of one."""


async def fire_before_tool_hook(
    config: Config, tool_name: str, tool_input: Mapping[str, Any]
) -> DefaultHookOutput | None:
    """Run the BeforeTool hooks; None means that they returned nothing and the tool may run."""
    handler = None
    tool_name = name_text(tool_name)
    try:
        handler = handler_for(config, HookEventName.BEFORE_TOOL, tool_name)
        if handler is None:
            return None
        return (await on_asyncio(handler.fire_before_tool_event(tool_name, tool_input))).final_output
    except Exception as error:
        output = output_after_failure(config, handler, HookEventName.BEFORE_TOOL, error, tool_name)
        effect = "runs" if output is None else "is blocked"
        log.warning("BeforeTool hooks of %s failed, the tool %s", tool_name, effect, exc_info=True)
        return output


async def fire_after_tool_hook(
    config: Config, tool_name: str, tool_input: Mapping[str, Any], tool_response: Mapping[str, Any] | ToolResult
) -> DefaultHookOutput | None:
    """Run the AfterTool hooks; None means that they returned nothing and the result is used unchanged."""
    tool_name = name_text(tool_name)
    try:
        handler = handler_for(config, HookEventName.AFTER_TOOL, tool_name)
        if handler is None:
            return None
        return (await on_asyncio(handler.fire_after_tool_event(tool_name, tool_input, tool_response))).final_output
    except Exception:
        log.warning("AfterTool hooks of %s failed, the result is used unchanged", tool_name, exc_info=True)
        return None


class HookedToolCall:
    """A tool call in two steps, for callers that run the tool themselves.

    Run the tool with ``input`` after ``before()``, unless it returned a result.
    """

    __slots__ = ("_before", "_config", "_restriction", "input", "name")

    def __init__(
        self, config: Config, tool_name: str, tool_input: dict[str, Any], *, restriction: Restriction | None = None
    ) -> None:
        self.name = tool_name
        self.input = tool_input
        """The arguments; after ``before()``, as hooks changed them."""
        self._config = config
        self._restriction = restriction
        self._before: DefaultHookOutput | None = None

    async def before(self) -> ToolResult | None:
        """Run the hooks before the call. If it returns None, run the tool with ``input``; else use the result.

        A call that the restriction does not allow fires no event.
        """
        if self._restriction is not None and (refusal := self._restriction.refusal(name_text(self.name))) is not None:
            return ToolResult.failure(refusal, "restricted")
        given = self.input
        self.input = own = _own_copy(given, PAYLOAD_DEPTH, {})
        before = self._before = await fire_before_tool_hook(self._config, self.name, self.input)
        if before is not None:
            if before.is_blocking_decision() or before.should_stop_execution():
                return _refused(before)
            self.input = _final_input(own, before)
        if self.input is own and _is_copy(own, given, set()):
            self.input = given  # callers recognize by it that nothing has changed
        return None

    def not_run(self, result: ToolResult) -> ToolResult:
        """Return the result of a call that did not run after ``before()``, with what its hooks say to the model."""
        return result if self._before is None else _with_effects(result, self._before, None)

    async def after(self, outcome: Any) -> ToolResult:
        """Run the hooks after the call, on what the tool returned: a ``ToolResult`` or any other value."""
        result = as_tool_result(outcome)
        after = await fire_after_tool_hook(self._config, self.name, self.input, result)
        if self._before is None and after is None:
            return result
        return _with_effects(result, self._before, after)


async def execute_tool_with_hooks(
    config: Config,
    tool_name: str,
    tool_input: dict[str, Any],
    execute_fn: Execute,
    *,
    restriction: Restriction | None = None,
) -> ToolResult:
    """Run the BeforeTool hooks, the tool with the changes of the hooks, and the AfterTool hooks.

    A blocked or stopped tool does not run; the result then has the reason. ``execute_fn`` gets the final input as its
    only argument; its exceptions pass through. ``restriction`` is that of the model call that requested the tool: a
    call that it does not allow does not run and fires no event.
    """
    if restriction is not None or is_hooked(config, tool_name):
        return await run_tool_call(HookedToolCall(config, tool_name, tool_input, restriction=restriction), execute_fn)
    outcome = execute_fn(tool_input)  # not ``run_unhooked``: its coroutine would add a quarter to the time
    return as_tool_result(await outcome if is_awaitable(outcome) else outcome)


async def run_tool_call(call: HookedToolCall, execute_fn: Execute) -> ToolResult:
    """Run a tool, which may be a function or a coroutine function, between the hooks of its call."""
    if (result := await call.before()) is not None:
        return result
    outcome = execute_fn(call.input)
    return await call.after(await outcome if is_awaitable(outcome) else outcome)


async def run_unhooked(execute_fn: Execute, tool_input: dict[str, Any]) -> ToolResult:
    """Run a tool whose call has no hooks."""
    outcome = execute_fn(tool_input)
    return as_tool_result(await outcome if is_awaitable(outcome) else outcome)


def is_awaitable(outcome: Any) -> bool:
    """Whether what a tool returned must be awaited first; the usual results are recognized at once."""
    return not isinstance(outcome, (ToolResult, str)) and inspect.isawaitable(outcome)


def as_tool_result(outcome: Any) -> ToolResult:
    """Return what a tool returned as a ``ToolResult``; any other value is its content."""
    return outcome if isinstance(outcome, ToolResult) else ToolResult(outcome, outcome)


def _own_copy(value: Any, levels: int, copies: dict[int, Any]) -> Any:
    """Copy the dicts and lists in the arguments, so that nobody changes them between the hooks and the tool.

    Other objects are the program's own, and stay. What is nested deeper than hooks are shown is refused later.
    """
    if type(value) not in (dict, list) or not levels:
        return value
    if id(value) not in copies:
        own = copies[id(value)] = type(value)()
        if type(value) is dict:
            own.update({name: _own_copy(item, levels - 1, copies) for name, item in value.items()})
        else:
            own.extend([_own_copy(item, levels - 1, copies) for item in value])
    return copies[id(value)]


def _is_copy(own: Any, given: Any, seen: set[int]) -> bool:
    """Whether the value that was copied still is what it was."""
    if own is given or id(own) in seen:
        return True
    seen.add(id(own))
    if type(own) is dict and type(given) is dict:
        return own.keys() == given.keys() and all(_is_copy(item, given.get(name), seen) for name, item in own.items())
    if type(own) is list and type(given) is list:
        return len(own) == len(given) and all(
            _is_copy(item, other, seen) for item, other in zip(own, given, strict=False)
        )
    return False


def _final_input(tool_input: dict[str, Any], before: DefaultHookOutput) -> dict[str, Any]:
    changes = before.get_modified_tool_input() if isinstance(before, BeforeToolHookOutput) else None
    return merged_by_key(tool_input, changes) if changes else tool_input


def _refused(before: DefaultHookOutput) -> ToolResult:
    reason = before.get_effective_reason()
    kind = "hook_blocked" if before.is_blocking_decision() else "hook_stopped"
    return _with_effects(ToolResult.failure(reason, kind), before, None)


def _with_effects(result: ToolResult, before: DefaultHookOutput | None, after: DefaultHookOutput | None) -> ToolResult:
    """Return the result with the hooks' context, messages, suppression and stop reason (HOOK-217)."""
    outputs = [output for output in (before, after) if output is not None]
    context = after.get_additional_context() if after is not None else None
    additions = [context] if context else []
    additions += [f"[System] {output.system_message}" for output in outputs if output.system_message]
    content = result.llm_content
    for addition in additions:
        content = with_text(content, f"\n\n{addition}")
    return replace(
        result,
        llm_content=content,
        suppress_display=result.suppress_display or bool(after is not None and after.suppress_output),
        stop_reason=next((reason for output in outputs if (reason := output.get_stop_reason())), result.stop_reason),
        additions=[*result.additions, *additions],
    )
