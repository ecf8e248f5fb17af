"""Tools of the SDK that run between hooks: functions, shells, patches and computers."""

from __future__ import annotations

import copy
import dataclasses
import json
import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from agents import ApplyPatchTool, ComputerTool, CustomTool, FunctionTool, LocalShellTool, ShellTool, Tool
from agents.editor import ApplyPatchResult
from agents.run_internal.items import function_tool_error_output
from agents.tool import _SYNC_FUNCTION_TOOL_MARKER, ShellResult, _FailureHandlingFunctionToolInvoker

from llxprt_hooks._support.awaitables import resolve
from llxprt_hooks._support.json_codec import repeated_key
from llxprt_hooks.core.engine.session import Session, current_session
from llxprt_hooks.events import TOOL_EVENTS
from llxprt_hooks.integrations.base import ToolCallHalves, in_session, json_result, log
from llxprt_hooks.integrations.client import json_object

if TYPE_CHECKING:
    from agents.tool_context import ToolContext

    from llxprt_hooks.core.protocol.tool_result import ToolResult
    from llxprt_hooks.integrations.openai_agents.patches import OpenAIAgentsHooks

OURS = "_llxprt_hooks"
"""The attribute of a tool or a context of the SDK that holds what hooks need to know of it."""
_COMPUTER = "computer_use_preview"
"""The name of every ``ComputerTool``."""

Arguments = dict[str, Any]
Run = Callable[[list[Arguments] | None], Any]
"""Runs a tool with the arguments of each part as hooks changed them, or, given None, with its own."""


async def call_tool(
    hooks: OpenAIAgentsHooks,
    tool_name: str,
    parts: Callable[[], list[Arguments]],
    run: Run,
    refuse: Callable[[str], Any] = str,
    *,
    extends_text: bool = True,
    made: Callable[[Any], Any] = lambda content: content,
    call_id: str | None = None,
    prepared: Prepared | None = None,
) -> Any:
    """Run a tool between its hooks. ``refuse`` returns the result of a call that does not run.

    ``parts`` are the arguments of all that the tool does in the call, which is usually one thing. Hooks judge each by
    itself, and all of them run or none does. ``made`` returns the tool's result with the content that a hook put in its
    place. What hooks say about a result that is not a text goes into the next model request.
    """
    config, name = hooks.hooks.config, hooks.hook_name(tool_name)
    session = current_session(config)
    refusal = None if session is None else session.restriction.refusal(name)
    if refusal is not None:
        return refuse(refusal)
    if not hooks.is_active or not hooks.has_tool_hooks(tool_name, session):
        return await resolve(run(None))
    # Realtime sessions, and runners of another kind: a stop refuses this call, and affects nothing else.
    own = Session(config, config.session_id, config.transcript_path) if session is None else session

    with in_session(own):
        calls: Sequence[ToolCallHalves | Prepared]
        if prepared is None:
            approver = None if call_id is None else hooks.resumed_approver(own, call_id)
            calls = [
                ToolCallHalves(hooks, tool_name, part, own, tool_use_id=call_id, approver=approver) for part in parts()
            ]
        else:
            calls = [prepared]
        try:
            outcome, additions = await _run_between(calls, run, refuse, made)
        except UnreadableArguments as error:
            return refuse(str(error))
        if isinstance(outcome, str) and extends_text:
            outcome += "".join(f"\n\n{addition}" for addition in additions)
        elif additions:
            own.exchange_notes((), tuple(additions))
    if session is None and (own.stop_reason is not None or own.notes):
        log.warning("%s was called outside of a run: a hook's stop or message has no further effect", name)
    return outcome


async def _run_between(
    calls: Sequence[ToolCallHalves | Prepared],
    run: Run,
    refuse: Callable[[str], Any],
    made: Callable[[Any], Any],
) -> tuple[Any, list[str]]:
    """Return the result of a call, and what hooks say about it."""
    for call in calls:
        if (refused := await call.before()) is not None:
            return refuse(str(refused.llm_content)), []
    is_changed = any(call.changed is not None for call in calls)
    try:
        outcome = await resolve(run([call.hooked.input for call in calls] if is_changed else None))
    except UnreadableArguments:
        raise
    except Exception as error:
        results = [result for call in calls if (result := await call.raised(error)) is not None]
        if not results:
            raise
        return _replacement(results, refuse, made), [addition for result in results for addition in result.additions]
    results = [await call.after(json_result(_part_of(outcome, place, len(calls)))) for place, call in enumerate(calls)]
    additions = [addition for result in results for addition in result.additions]
    if any(result.replaced for result in results):
        outcome = _replacement(results, refuse, made)
    return outcome, additions


def _replacement(results: list[ToolResult], refuse: Callable[[str], Any], made: Callable[[Any], Any]) -> Any:
    """Return the result that hooks put in the place of a tool's own, or of what it raised."""
    contents = [result.own_content for result in results]
    content = contents[0] if len(contents) == 1 else "\n".join(map(str, contents))
    return refuse(str(content)) if any(result.error is not None for result in results) else made(content)


def _part_of(outcome: Any, place: int, count: int) -> Any:
    """Return the result of one of several commands, if the executor has told them apart."""
    if not isinstance(outcome, ShellResult) or len(outcome.output) != count:
        return outcome
    return dataclasses.replace(outcome, output=[outcome.output[place]])


class Prepared:
    """A call whose hooks have run before the SDK asks about it. Its tool may run later, in another task."""

    def __init__(self, call: ToolCallHalves, arguments: Arguments) -> None:
        self.hooked = call.hooked
        self.arguments = arguments
        self.waits = False
        """Whether a person has to answer first."""
        self.refused: ToolResult | None = None
        self.raised, self.after = call.raised, call.after
        self._call = call

    async def run_hooks(self) -> None:
        try:
            self.refused = await self._call.before()
        except WaitsForAnswer:
            self.waits = True

    @property
    def decides(self) -> bool:
        """Whether hooks have answered the tool's own question."""
        return self.waits or self.refused is not None or self.hooked.is_approved

    @property
    def changed(self) -> Arguments | None:
        return self._call.changed

    async def before(self) -> ToolResult | None:
        return self.refused


class WaitsForAnswer(Exception):  # a statement, not an error
    """The call has to wait for the answer of a person."""


class UnreadableArguments(ValueError):
    """The arguments of a call are not a JSON object, so what a hook has changed in them must not run as one."""


async def act(cls: Any, computer: Any, tool_call: Any, original: Any, hooks: OpenAIAgentsHooks) -> Any:
    """Run a batch of actions on a computer. Their result can only be a picture: a refusal follows as a message."""

    def shown() -> list[Arguments]:
        return [{"actions": [cls._serialize_action_payload(action) for action in cls._iter_actions(tool_call)]}]

    def run(changed: list[Arguments] | None) -> Any:
        if changed is None:
            return original(cls, computer, tool_call)
        actions = {"actions": changed[0].get("actions") or [{"type": "screenshot"}], "action": None}
        return original(cls, computer, tool_call.model_copy(update=actions))

    def refuse(reason: str) -> Any:
        if (session := current_session(hooks.hooks.config)) is not None:
            session.exchange_notes((), (f"The computer did nothing: {reason}",))
        return computer.screenshot()

    return await resolve(await call_tool(hooks, _COMPUTER, shown, run, refuse, extends_text=False, made=refuse))


def hooked(tool: Tool, hooks: OpenAIAgentsHooks) -> Tool:
    """Return a tool with its hooks, or the tool itself if the SDK does not run it."""
    hook = _HOOKED.get(type(tool)) or next((hook for kind, hook in _HOOKED.items() if isinstance(tool, kind)), None)
    if hook is not None and not (isinstance(tool, ShellTool) and tool.executor is None):
        return cast("Tool", _copy_with_hooks(tool, hook, hooks))
    if not isinstance(tool, ComputerTool) and tool.name not in hooks.unseen_tools and hooks.has_hooks(*TOOL_EVENTS):
        hooks.unseen_tools.add(tool.name)
        log.warning("hooks do not see the calls of %s: the provider runs it itself", tool.name)
    return tool


def _copy_with_hooks(tool: Any, hook: Callable[[Any, OpenAIAgentsHooks], None], hooks: OpenAIAgentsHooks) -> Any:
    """Return a copy of a tool that runs with its hooks. It is made again when a field of the tool has changed."""
    fields = vars(tool)
    made = fields.get(OURS)
    if made is hooks:  # it is such a copy
        return tool
    is_same = isinstance(made, _Made) and made.hooks is hooks and made.ids == [*map(id, fields.values())]
    if is_same and made.acts == hooks.asks_before(tool):
        return made.tool
    copied = copy.copy(tool)
    vars(copied)[OURS] = hooks
    hook(copied, hooks)
    acts = hooks.asks_before(copied)
    if acts or getattr(copied, "needs_approval", False) is not False:
        copied.needs_approval = _unless_restricted(copied.needs_approval, copied.name, hooks, acts=acts)
    fields[OURS] = made = _Made(hooks, copied, acts)
    made.values = [*fields.values()]
    made.ids = [*map(id, made.values)]
    return copied


class _Made:
    """A tool with hooks, and what the fields of the original were. It keeps their values, so that ids stay unique."""

    values: list[Any]
    ids: list[int]

    def __init__(self, hooks: OpenAIAgentsHooks, tool: Any, acts: bool) -> None:
        self.hooks = hooks
        self.tool = tool
        self.acts = acts


def _unless_restricted(policy: Any, name: str, hooks: OpenAIAgentsHooks, *, acts: bool) -> Any:
    """Return an approval policy that does not ask about a call that will be refused anyway.

    Where hooks act, they run now: one may ask, or answer the tool's own question.
    """

    async def needs_approval(context: Any, arguments: Any, call_id: str) -> bool:
        session = current_session(hooks.hooks.config)
        if session is not None and not session.restriction.allows(hooks.hook_name(name)):
            return False
        if acts and session is not None and hooks.is_active:
            given = arguments if isinstance(arguments, dict) else arguments_of(str(arguments))
            prepared = await hooks.prepare(name, given, call_id, session)
            if prepared.decides:
                return prepared.waits
        return bool(await resolve(policy(context, arguments, call_id) if callable(policy) else policy))

    return needs_approval


def _hook_function(tool: Any, hooks: OpenAIAgentsHooks) -> None:
    """Replace what runs a tool; by one of the SDK's own kind, by which approval policies inspect arguments."""
    invoker = tool.on_invoke_tool
    if not isinstance(invoker, _FailureHandlingFunctionToolInvoker):
        tool.on_invoke_tool = _Invocation(invoker, tool, hooks)
        return
    inner = _Invocation(invoker._invoke_tool_impl, tool, hooks)
    tool.on_invoke_tool = _FailureHandlingFunctionToolInvoker(inner, invoker._on_handled_error, function_tool=tool)
    if getattr(invoker, _SYNC_FUNCTION_TOOL_MARKER, False):
        setattr(tool.on_invoke_tool, _SYNC_FUNCTION_TOOL_MARKER, True)


class _Invocation:
    """Runs a tool between its hooks. In all else it looks like what it replaces."""

    def __init__(self, run: Callable[[Any, str], Any], tool: Any, hooks: OpenAIAgentsHooks) -> None:
        self._run = run
        self._tool = tool
        self._hooks = hooks
        self._schema = getattr(tool, "output_json_schema", None)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)

    async def __call__(self, context: ToolContext[Any], given: str) -> Any:
        def run(changed: list[Arguments] | None) -> Any:
            if changed is None and (isinstance(self._tool, CustomTool) or repeated_key(given) is None):
                return self._run(context, given)
            # A tool that reads the text itself may take a value that hooks have not seen.
            final = arguments_of(given) if changed is None else changed[0]
            if not isinstance(self._tool, CustomTool) and json_object(given.strip()) is None:
                raise UnreadableArguments(f"The arguments of {self._tool.name} are not a JSON object.")
            context.tool_arguments = _written(self._tool, final)
            context._function_tool_arguments = None  # those that were read for the approval policy
            return self._run(context, context.tool_arguments)

        def refuse(reason: str) -> Any:
            return function_tool_error_output(context.tool_call, reason, output_json_schema=self._schema)

        return await call_tool(
            self._hooks,
            self._tool.name,
            lambda: [arguments_of(given)],
            run,
            refuse,
            extends_text=self._schema is None,
            made=lambda content: refuse(content) if self._schema and isinstance(content, str) else content,
            call_id=context.tool_call_id,
            prepared=self._hooks.take_prepared(context.tool_call_id, given),
        )


def _hook_shell(tool: ShellTool, hooks: OpenAIAgentsHooks) -> None:
    executor = cast("Callable[[Any], Any]", tool.executor)

    async def execute(request: Any) -> Any:
        action = request.data.action

        def commands() -> list[Arguments]:
            # Executors run each in a shell of its own; joined, one could hide the next in a quote or a document.
            return [_given(command=command, timeout_ms=action.timeout_ms) for command in action.commands]

        def run(changed: list[Arguments] | None) -> Any:
            if changed is None:
                return executor(request)
            timeouts = [each["timeout_ms"] for each in changed if each.get("timeout_ms") != action.timeout_ms]
            final = dataclasses.replace(
                action,
                commands=[str(each.get("command", "")) for each in changed],
                timeout_ms=timeouts[-1] if timeouts else action.timeout_ms,
            )
            return executor(dataclasses.replace(request, data=dataclasses.replace(request.data, action=final)))

        return await call_tool(hooks, tool.name, commands, run, call_id=request.data.call_id)

    tool.executor = execute


def _hook_local_shell(tool: LocalShellTool, hooks: OpenAIAgentsHooks) -> None:
    executor = tool.executor

    async def execute(request: Any) -> Any:
        action = request.data.action

        def run(changed: list[Arguments] | None) -> Any:
            if changed is None:
                return executor(request)
            changes = {**changed[0], "command": shlex.split(str(changed[0].get("command", "")))}
            data = request.data.model_copy(update={"action": action.model_copy(update=changes)})
            return executor(dataclasses.replace(request, data=data))

        def shown() -> list[Arguments]:
            given = _given(
                command=shlex.join(action.command),
                working_directory=action.working_directory,
                timeout_ms=action.timeout_ms,
                user=action.user,
                env=action.env or None,
            )
            return [given]

        return await call_tool(hooks, tool.name, shown, run, call_id=request.data.call_id)

    tool.executor = execute


def _hook_patch(tool: ApplyPatchTool, hooks: OpenAIAgentsHooks) -> None:
    tool.editor = _HookedEditor(tool.editor, tool.name, hooks)


class _HookedEditor:
    """Applies patches between hooks, which run for each file."""

    def __init__(self, editor: Any, tool_name: str, hooks: OpenAIAgentsHooks) -> None:
        self._editor = editor
        self._tool_name = tool_name
        self._hooks = hooks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._editor, name)

    async def create_file(self, operation: Any) -> Any:
        names = ("type", "path", "diff", "move_to")

        def run(changed: list[Arguments] | None) -> Any:
            fields = {} if changed is None else {name: changed[0].get(name) for name in names}
            final = dataclasses.replace(operation, **fields)
            return getattr(self._editor, final.type)(final)

        def refuse(reason: str) -> ApplyPatchResult:
            return ApplyPatchResult(status="failed", output=reason)

        shown = _given(**{name: getattr(operation, name) for name in names})

        def made(content: Any) -> ApplyPatchResult:
            return ApplyPatchResult(status="completed", output=str(content))

        return await call_tool(self._hooks, self._tool_name, lambda: [shown], run, refuse, made=made)

    update_file = delete_file = create_file  # the operation says which of them it is


_HOOKED: dict[type[Any], Callable[[Any, OpenAIAgentsHooks], None]] = {
    FunctionTool: _hook_function,
    CustomTool: _hook_function,
    ShellTool: _hook_shell,
    LocalShellTool: _hook_local_shell,
    ApplyPatchTool: _hook_patch,
}


def _given(**arguments: Any) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}


def arguments_of(given: str) -> Arguments:
    """Return a call's arguments; text that is not a JSON object is shown under one name."""
    arguments = json_object(given.strip())
    return {"input": given} if arguments is None else arguments


def _written(tool: Any, arguments: dict[str, Any]) -> str:
    if isinstance(tool, CustomTool):
        return str(arguments.get("input", ""))
    return json.dumps(arguments, ensure_ascii=False)
