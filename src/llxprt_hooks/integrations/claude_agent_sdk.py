"""Hooks in the Claude Agent SDK.

::

    options = with_hooks(ClaudeAgentOptions(cwd="."))            # tools, prompts, compaction, notifications
    async with hooked(ClaudeAgentOptions(cwd=".")) as options:   # also the model
        async for message in query(prompt="…", options=options): ...

The SDK calls back for tools, but not for the model. ``hooked`` therefore runs a model proxy, and lets the SDK's program
use it. Words of the two protocols that look alike are not: there, ``systemMessage`` is for the user and
``suppressOutput`` hides a hook's own output.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Unpack
from weakref import WeakKeyDictionary

from llxprt_hooks._support.text import from_extra
from llxprt_hooks.config import Config, IntegrationFields
from llxprt_hooks.core import loops
from llxprt_hooks.core.calls.approval import LEFT_TO_PROGRAM, Answered, NobodyToAsk, Verdict
from llxprt_hooks.core.calls.sessions import Sessions
from llxprt_hooks.core.engine.session import who_asks
from llxprt_hooks.core.protocol.tool_result import ToolResult
from llxprt_hooks.events import HookEventName
from llxprt_hooks.integrations.base import Integration, ToolCallHalves, WhoAsks
from llxprt_hooks.integrations.mcp_results import is_text_block
from llxprt_hooks.integrations.unsupported import NOT_HONORED, UNSUPPORTED
from llxprt_hooks.settings.other_agents import CLAUDE_TOOLS

with from_extra("claude-agent-sdk"):
    from claude_agent_sdk import ClaudeAgentOptions, HookMatcher

if TYPE_CHECKING:
    from claude_agent_sdk.types import CanUseTool, HookEvent, PermissionResult, ToolPermissionContext

    from llxprt_hooks.core.calls.approval import ApprovalRequest
    from llxprt_hooks.core.engine.session import Session

ToolNames = Literal["claude", "llxprt"]

_TIMEOUT = 24 * 3600.0
"""Seconds that the SDK's program waits for a callback. Hooks have their own timeouts, and must not be left out."""
_MAX_CALLS = 1000
_VARIABLE = "ANTHROPIC_BASE_URL"
_OTHER_PROVIDERS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")

_TEXTS = ("stdout", "stderr", "content", "result", "output", "text")
"""Where the program's own tools have their text."""
_NOT_REPLACED = "A hook replaced the result of {}, but Claude Code has no place for it, so the agent stops."
_UNSEEN = {"suppressOriginalPrompt": True}
"""The reason is shown without the prompt that was refused."""

_ALIASES = {tool: name for tool, name in CLAUDE_TOOLS.items() if name is not None}
"""The tool names of our own agent."""
_ARGUMENTS = {"Glob": {"path": "dir_path"}, "Grep": {"path": "dir_path"}, "LS": {"path": "dir_path"}}
"""Arguments that have another name in our own agent."""


def with_hooks(
    options: ClaudeAgentOptions | None = None,
    config: Config | None = None,
    tool_names: ToolNames = "claude",
    *,
    aliases: Mapping[str, str] | None = None,
    metadata: WhoAsks = None,
) -> HookedOptions:
    """Return options whose callbacks run hooks, in addition to the callbacks that they have.

    Without ``config``, the settings files of ``options.cwd`` are read. With ``tool_names="llxprt"`` hooks see the tools
    under the names of LLxprt Code: ``Bash`` as ``run_shell_command``, and so on.
    """
    options = options or ClaudeAgentOptions()
    hooks = ClaudeHooks(config or _config(options), tool_names=tool_names, aliases=aliases, metadata=metadata)
    return hooks.added_to(options)


@asynccontextmanager
async def hooked(
    options: ClaudeAgentOptions | None = None,
    config: Config | None = None,
    tool_names: ToolNames = "claude",
    *,
    aliases: Mapping[str, str] | None = None,
    metadata: WhoAsks = None,
) -> AsyncIterator[HookedOptions]:
    """Do the same as ``with_hooks``, and run a model proxy for the hooks of model events while the block runs."""
    with from_extra("claude-agent-sdk"):
        from llxprt_hooks.integrations.proxy.model_http.app import ModelProxy
        from llxprt_hooks.integrations.proxy.model_http.server import serving
        from llxprt_hooks.integrations.proxy.model_http.upstreams import upstreams

    if not loops.runs_here():
        raise RuntimeError("hooked() needs asyncio; with_hooks() works with trio, too, without hooks for the model")
    options = options or ClaudeAgentOptions()
    environment = {**os.environ, **options.env}
    for name in _OTHER_PROVIDERS:
        if environment.get(name, "") not in ("", "0", "false"):
            raise RuntimeError(
                f"{name} is set, but hooked() works only with Anthropic's API. "
                "Unset it, or use with_hooks(), which runs tool hooks only"
            )
    hooks = _ClaudeHooksWithModel(config or _config(options), tool_names=tool_names, aliases=aliases, metadata=metadata)
    upstream = upstreams([], environment)["anthropic"]
    async with serving(ModelProxy(hooks.hooks, {"anthropic": upstream}, agent=hooks)) as running:
        variables = {**options.env, **running.environment(environment)}
        settings = _with_base_url(options, running.base_urls[_VARIABLE])
        yield hooks.added_to(replace(options, env=variables, settings=settings))


class HookedOptions(ClaudeAgentOptions):
    """Options with hooks."""

    _hooks: ClaudeHooks

    def stop_reason(self, session_id: str | None = None) -> str | None:
        """Return why a hook stopped a session, by default the latest one. The SDK's messages do not have it."""
        return self._hooks.stop_reason(session_id)


class ClaudeHooks(Integration):
    """The hooks of a configuration, as callbacks of the SDK."""

    unsupported = UNSUPPORTED["claude-agent-sdk"]
    not_honored = NOT_HONORED["claude-agent-sdk"]

    def __init__(
        self,
        config: Config | None = None,
        *,
        tool_names: ToolNames = "claude",
        aliases: Mapping[str, str] | None = None,
        metadata: WhoAsks = None,
        **config_fields: Unpack[IntegrationFields],
    ) -> None:
        if tool_names not in ("claude", "llxprt"):
            raise ValueError(f"tool_names must be 'claude' or 'llxprt', found {tool_names!r}")
        translates = tool_names == "llxprt"
        names = {**(_ALIASES if translates else {}), **(aliases or {})}
        super().__init__(config, aliases=names, metadata=metadata, **config_fields)
        self._arguments = _ARGUMENTS if translates else {}
        self.sessions = Sessions(self.hooks.config)
        self._latest: Session | None = None
        self._prompts: WeakKeyDictionary[Session, str] = WeakKeyDictionary()
        self._calls = _PendingCalls()
        self._can_ask = False

    def added_to(self, options: ClaudeAgentOptions) -> HookedOptions:
        merged: dict[Any, list[HookMatcher]] = {event: list(found) for event, found in (options.hooks or {}).items()}
        for event, matcher in self._matchers().items():
            merged.setdefault(event, []).append(matcher)
        given = {each.name: getattr(options, each.name) for each in fields(ClaudeAgentOptions) if each.init}
        if options.can_use_tool is not None:
            given["can_use_tool"] = self._reported(options.can_use_tool)
        self._can_ask = options.can_use_tool is not None or options.permission_prompt_tool_name is not None
        added = HookedOptions(**{**given, "hooks": merged or None})
        added._hooks = self
        return added

    def stop_reason(self, session_id: str | None = None) -> str | None:
        """Return why a hook stopped a session, by default the latest one."""
        session = self._latest if session_id is None else self.sessions.latest(session_id)
        return None if session is None else session.stop_reason

    def _matchers(self) -> dict[HookEvent, HookMatcher]:
        if not self.hooks.config.enable_hooks:
            return {}
        callbacks: dict[HookEvent, Callable[[Any], Any]] = {
            "PreToolUse": self._before_tool,
            "PostToolUse": self._after_tool,
            "PostToolUseFailure": self._after_failed_tool,
            "PermissionRequest": self._asked,
            "UserPromptSubmit": self._prompted,
            "Stop": self._answered,
            "PreCompact": self._compacting,
            "Notification": self._notified,
        }
        return {event: self._matcher(event, callback) for event, callback in callbacks.items()}

    def _matcher(self, event: HookEvent, callback: Callable[[Any], Any]) -> HookMatcher:
        async def called(given: Any, tool_use_id: str | None, context: Any) -> Any:
            with self.asked_by(given):
                return await callback(given)

        # A guard whose answer is lost must not let the call through.
        return HookMatcher(hooks=[called], timeout=_TIMEOUT, on_failure="block" if event == "PreToolUse" else None)

    def known_caller(self, context: Mapping[str, Any]) -> dict[str, Any]:
        """Return which agent it is, if it has a name, and what it may do without asking. The SDK knows no user."""
        return {name: context[name] for name in ("agent_type", "permission_mode") if context.get(name) is not None}

    # Tools.

    async def _before_tool(self, given: Any) -> dict[str, Any]:
        name, session = given["tool_name"], self._session(given)
        if not self.has_tool_hooks(name, session):
            return {}
        names = self._arguments.get(name, {})
        if (same := _same_name(given["tool_input"], names)) is not None:
            return _denied(f"The arguments {same} of {name} are one argument for hooks: give only one of them.")
        asked: list[ApprovalRequest] = []

        def ask(request: ApprovalRequest) -> Any:
            if not self._can_ask:
                raise NobodyToAsk("the options have no can_use_tool")
            asked.append(request)
            return LEFT_TO_PROGRAM  # the SDK's program asks, before it runs the tool

        call = ToolCallHalves(
            self, name, self._renamed(given), session, tool_use_id=given.get("tool_use_id"), approver=ask
        )
        if (refused := await call.before()) is not None:
            return _denied(str(refused.llm_content), refused.stop_reason)
        real_names = {shown: real for real, shown in names.items()}
        if call.changed is not None and (same := _same_name(call.changed, real_names)) is not None:
            return _denied(
                f"A hook gave {name} the arguments {same}, which are one argument: it must give one of them."
            )
        self._calls.add(given, call)
        changed = {} if call.changed is None else {"updatedInput": _with_names(call.changed, real_names)}
        return _output("PreToolUse", {**_permission(call, asked), **changed})

    def _reported(self, can_use_tool: CanUseTool) -> CanUseTool:
        """Return the program's callback, reporting its answers to questions of hooks."""

        async def answer(name: str, arguments: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
            report = self._calls.question(name, context) or (lambda verdict: None)
            try:
                given = await can_use_tool(name, arguments, context)
            except Exception:
                report(Verdict(Answered.FAILED))
                raise
            report(Verdict(Answered.APPROVED if given.behavior == "allow" else Answered.DENIED))
            return given

        return answer

    async def _after_tool(self, given: Any) -> dict[str, Any]:
        content = _content(given["tool_response"])
        return await self._after(given, ToolResult(content, content))

    async def _after_failed_tool(self, given: Any) -> dict[str, Any]:
        """Run the hooks after a tool that ran and failed: what it did before remains."""
        return await self._after(given, ToolResult.failure(given["error"], "failed"))

    async def _after(self, given: Any, outcome: ToolResult) -> dict[str, Any]:
        self._session(given)
        if (call := self._calls.pop(given)) is None:
            return {}
        call.hooked.input = self._renamed(given)  # the user may have changed it after the hooks
        result = await call.after(outcome)
        return _after_output(given, result)

    def _renamed(self, given: Any) -> dict[str, Any]:
        return _with_names(given["tool_input"], self._arguments.get(given["tool_name"], {}))

    # Prompts, answers and compaction, which hooks that act decide about.

    async def _prompted(self, given: Any) -> dict[str, Any]:
        prompt = given["prompt"]
        self._prompts[self.sessions.begin(given["session_id"])] = prompt
        session = self._session(given)
        with session.active():
            start = await self.hooks.before_turn(prompt)
        if start.should_stop:
            session.stop_reason = start.stop_reason
            return _output("UserPromptSubmit", {}, start.stop_reason)
        if start.blocked:
            return {"decision": "block", "reason": start.reason or "", **_output("UserPromptSubmit", _UNSEEN)}
        added = start.prompt.removeprefix(prompt).strip()
        return _output("UserPromptSubmit", {"additionalContext": added} if added else {})

    async def _answered(self, given: Any) -> dict[str, Any]:
        session = self._session(given)
        stopped, prompt = session.stop_reason, self._prompts.get(session, "")
        with session.active():
            answer = given.get("last_assistant_message") or ""
            end = await self.hooks.after_turn(prompt, answer, given["stop_hook_active"])
        if stopped is not None or (end.should_stop and end.stop_reason is not None):
            session.stop_reason = stopped or end.stop_reason
            return {} if stopped is not None else _output("Stop", {}, end.stop_reason)
        if end.next_prompt is None:
            return {}
        self._prompts[session] = end.next_prompt
        return {"decision": "block", "reason": end.next_prompt}

    async def _compacting(self, given: Any) -> dict[str, Any]:
        with self._session(given).active():
            reason = await self.hooks.before_compression(given["trigger"])
        return {} if reason is None else {"decision": "block", "reason": reason}

    # Events that nobody waits for.

    async def _asked(self, given: Any) -> dict[str, Any]:
        with self._session(given).active():
            self.observe_approval(given["tool_name"], self._renamed(given))
        return {}

    async def _notified(self, given: Any) -> dict[str, Any]:
        kind = given["notification_type"]
        if kind == "permission_prompt":  # PermissionRequest was there before
            return {}
        details = {"title": given["title"]} if given.get("title") else {}
        message = given["message"]
        return self._observe(
            given, HookEventName.NOTIFICATION, notification_type=kind, message=message, details=details
        )

    def _observe(self, given: Any, event: HookEventName, **fields: Any) -> dict[str, Any]:
        with self._session(given).active():
            self.hooks.observe(event, **fields)
        return {}

    def _session(self, given: Any) -> Session:
        session = self.sessions.latest(given["session_id"]) or self.sessions.begin(given["session_id"])
        session.transcript_path = given.get("transcript_path") or ""
        session.asked = who_asks(self.hooks.config)  # for the calls of its model, which come through the proxy
        self._latest = session
        return session


class _PendingCalls:
    """The calls whose end has not been reported. Ids are the model's: agents, and calls of one agent, may share one."""

    def __init__(self) -> None:
        self._calls: OrderedDict[tuple[Any, ...], list[ToolCallHalves]] = OrderedDict()

    def add(self, given: Any, call: ToolCallHalves) -> None:
        self._calls.setdefault(_key(given), []).append(call)
        if len(self._calls) > _MAX_CALLS:  # of calls that nobody permitted, the end is not reported
            self._calls.popitem(last=False)

    def question(self, tool_name: str, context: ToolPermissionContext) -> Callable[[Verdict], None] | None:
        """Return what reports the answer to a hook's question about a call."""
        known = (context.agent_id, tool_name, context.tool_use_id)
        found = [call for key, calls in self._calls.items() if key[1:] == known for call in calls]
        return next((call.hooked.report_answer for call in reversed(found)), None)

    def pop(self, given: Any) -> ToolCallHalves | None:
        calls = self._calls.get(key := _key(given))
        if calls is None:
            return None
        if len(calls) == 1:
            del self._calls[key]
        return calls.pop(0)


def _key(given: Any) -> tuple[Any, ...]:
    return given["session_id"], given.get("agent_id"), given["tool_name"], given["tool_use_id"]


class _ClaudeHooksWithModel(ClaudeHooks):
    unsupported: ClassVar[Mapping[HookEventName, str]] = {}


def _config(options: ClaudeAgentOptions) -> Config:
    return Config.load(options.cwd or ".")


def _output(event: str, specific: dict[str, Any], stop_reason: str | None = None) -> dict[str, Any]:
    stopped = {} if stop_reason is None else {"continue_": False, "stopReason": stop_reason}
    return {**stopped, **({"hookSpecificOutput": {"hookEventName": event, **specific}} if specific else {})}


def _denied(reason: str, stop_reason: str | None = None) -> dict[str, Any]:
    decision = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    return _output("PreToolUse", decision, stop_reason)


def _permission(call: ToolCallHalves, asked: list[ApprovalRequest]) -> dict[str, Any]:
    """Return what hooks that act say about the program's own question: it asks, or need not ask."""
    if asked:
        return {"permissionDecision": "ask", "permissionDecisionReason": asked[0].reason}
    return {"permissionDecision": "allow"} if call.hooked.is_approved else {}


def _after_output(given: Any, result: ToolResult) -> dict[str, Any]:
    """Return what hooks say about a result. If they replaced it and the program would not take that, it has to stop."""
    event = given["hook_event_name"]
    if not result.replaced or event != "PostToolUse":  # nothing takes the place of a tool's failure
        return _output(event, _context(result), result.stop_reason)
    final = _in_shape(given["tool_response"], result.own_content)
    if final is None:
        return _output(event, _context(result), result.stop_reason or _NOT_REPLACED.format(given["tool_name"]))
    return _output(event, {**_context(result), "updatedToolOutput": final}, result.stop_reason)


def _in_shape(response: Any, content: Any) -> Any:
    """Return other content in the shape of a tool's response: the program ignores another one. None if it has no place.

    >>> _in_shape({"stdout": "a", "stderr": "b", "interrupted": False}, "hidden")
    {'stdout': 'hidden', 'stderr': '', 'interrupted': False}
    >>> _in_shape({"file": {"filePath": "a", "content": "b"}}, "hidden")
    {'file': {'filePath': 'a', 'content': 'hidden'}}
    """
    if isinstance(content, Mapping) and isinstance(response, Mapping):
        return dict(content) if content.keys() == response.keys() else None
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    if isinstance(response, str):
        return text
    if isinstance(response, list):
        return [{"type": "text", "text": text}]
    left = [text]
    shaped = _with_text(response, left)
    return None if left else shaped


def _with_text(value: Any, left: list[str]) -> Any:
    """Return a response whose first text is the one that is left, and whose others are empty."""
    if not isinstance(value, Mapping):
        return value
    return {
        name: (left.pop() if left else "") if name in _TEXTS and isinstance(part, str) else _with_text(part, left)
        for name, part in value.items()
    }


def _context(result: ToolResult) -> dict[str, Any]:
    return {"additionalContext": "\n\n".join(result.additions)} if result.additions else {}


def _content(response: Any) -> Any:
    """Return a tool's response as hooks see it: blocks of text as text, and the rest as it is."""
    if isinstance(response, list) and response and all(map(is_text_block, response)):
        return "\n\n".join(block["text"] for block in response)
    return response


def _with_names(arguments: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in arguments.items()} if names else arguments


def _same_name(arguments: Mapping[str, Any], names: Mapping[str, str]) -> str | None:
    """Return two arguments that have the same name afterwards: one would hide the other from hooks."""
    pairs = ((name, other) for name, other in names.items() if name in arguments and other in arguments)
    return next((f"`{name}` and `{other}`" for name, other in pairs), None)


def _with_base_url(options: ClaudeAgentOptions, url: str) -> str:
    """Return the settings of options with the base URL: that in a settings file would win over the environment."""
    given = options.settings or "{}"
    text = given if given.lstrip().startswith("{") else Path(options.cwd or ".", given).read_text("utf-8")
    settings = json.loads(text)
    return json.dumps({**settings, "env": {**settings.get("env", {}), _VARIABLE: url}})
