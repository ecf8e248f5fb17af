"""What all integrations share: how one is made, and the names under which hooks see a framework's tools.

>>> from llxprt_hooks import HookEventName
>>> class Example(Integration):
...     unsupported = {HookEventName.PRE_COMPRESS: "the framework does not compress"}
>>> example = Example(hooks={"BeforeTool": []}, aliases={"shell": "run_shell_command"})
>>> example.hooks.config.enable_hooks, example.hook_name("shell"), example.hook_name("glob")
(True, 'run_shell_command', 'glob')

An integration whose framework has a base class of its own inherits from both.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeAlias, Unpack, cast

from llxprt_hooks._support.awaitables import resolve
from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks.config import Config, ConfigFields, IntegrationFields, LoadOptions, configured
from llxprt_hooks.core.calls.lookup import NO_PLANS, ModelPlans, model_plans, plan_for, tool_plans
from llxprt_hooks.core.calls.tool import ToolNotRun
from llxprt_hooks.core.engine.session import asked_by, who_asks
from llxprt_hooks.core.protocol.caller import Asked
from llxprt_hooks.core.protocol.tool_result import ToolResult
from llxprt_hooks.events import HookEventName, NotificationType
from llxprt_hooks.hooks import Hooks
from llxprt_hooks.integrations.known_tools import ToolCheck
from llxprt_hooks.integrations.unsupported import lost_effects, require_supported, unsupported_hooks
from llxprt_hooks.model import AnyTranslator, TranslatorChoice, resolve_translator

if TYPE_CHECKING:
    from llxprt_hooks.core.calls.approval import Approver
    from llxprt_hooks.core.calls.model_call import ModelCallResult
    from llxprt_hooks.core.engine.session import Session

log = debug_logger("integrations")

_NO_HOOKS = (
    "%s was made without a configuration and without hooks, so no settings are read: only hooks that you register with "
    "`.hooks.on(…)` run. Use `.load(…)` to read the settings files, or pass `Config()` if this is what you want"
)


WhoAsks: TypeAlias = "Mapping[str, Any] | bool | Callable[[Any], Mapping[str, Any] | None] | None"
"""``metadata`` of an integration: fixed, what the framework has, or what a function reads from its context."""


class Integration:
    """The hooks of a configuration, for one framework.

    Pass a ``Config``, or its keyword arguments: then hooks are enabled if ``hooks`` is given. ``aliases`` maps a tool's
    name in the framework to the name that hooks see, such as ``{"shell": "run_shell_command"}``. With
    ``metadata=True`` hooks get to know who asks from the framework; a function reads it from the framework's context.
    """

    unsupported: ClassVar[Mapping[HookEventName, str]] = {}
    """The events that the framework does not have, each with the reason."""
    not_honored: ClassVar[Mapping[HookEventName, str]] = {}
    """The events at which hooks that act cannot have all their effects, each with the reason."""
    suspensions: ClassVar[tuple[type[Exception], ...]] = ()
    """What a tool raises to suspend a run, in this framework: it has not failed, and AfterTool hooks do not see it."""

    hooks: Hooks

    def __init__(
        self,
        config: Config | None = None,
        *,
        aliases: Mapping[str, str] | None = None,
        metadata: WhoAsks = None,
        **config_fields: Unpack[IntegrationFields],
    ) -> None:
        self._read_metadata = self._reader(metadata)
        fields = cast("ConfigFields", config_fields)  # the same, with room for one more
        if isinstance(metadata, Mapping):
            fields["metadata"] = metadata
        if config is None and not fields:
            log.warning(_NO_HOOKS, type(self).__name__)
        config = configured(config, fields)
        require_supported(config.required, self.unsupported)
        self.hooks = Hooks(config)
        self._aliases = dict(aliases or {})
        self.check_tools = ToolCheck(config, self._aliases, self.hook_name)
        """Call it with the names of the tools that the framework has, whenever they are known."""
        for message in unsupported_hooks(self.unsupported, self.hooks):
            log.warning(message)
        if lost := lost_effects(self.not_honored, self.hooks):
            log.warning(lost)

    @classmethod
    def load(cls, project_dir: str | os.PathLike[str] = ".", **options: Any) -> Self:
        """Read the settings files with the options of ``Config.load``. Others are passed to the constructor."""
        own = () if isinstance(options.get("metadata"), Mapping) else ("metadata",)
        names = [name for name in LoadOptions.__annotations__ if name in options and name not in own]
        given = {name: options.pop(name) for name in names}
        return cls(Config.load(project_dir, **given), **options)

    # Who asks.

    def known_caller(self, context: Any) -> Mapping[str, Any] | None:
        """Return what the framework itself knows about who asks, for ``metadata=True``."""
        return None

    def asked(self, context: Any) -> Asked | None:
        """Read who asks from a context of the framework; None if the program does not want that (D-153)."""
        read = self._read_metadata
        return None if read is None or context is None else Asked.read(read, context, type(self).__name__)

    def asked_by(self, context: Any) -> AbstractContextManager[None]:
        """Let hooks know who asks, for the events of one call."""
        return asked_by(self.hooks.config, self.asked(context))

    def nested_run(self, outer: Session, asked: Asked | None) -> Session:
        """Return the session of a run inside of another one, with what its framework knows about who asks."""
        run = outer.nested_run()
        run.asked = outer.asked if asked is None else asked.within(outer.asked)
        return run

    def _reader(self, metadata: object) -> Callable[[Any], object] | None:
        if metadata is None or metadata is False or isinstance(metadata, Mapping):
            return None
        if metadata is True:
            return self.known_caller
        if iscoroutinefunction(metadata):
            raise TypeError("`metadata` must not be a coroutine function: it is called wherever the framework is")
        if not callable(metadata):
            raise TypeError(f"`metadata` must be a mapping, True or a function, found {type(metadata).__name__}")
        return metadata

    def hook_name(self, tool_name: str) -> str:
        """Return the name under which hooks see a tool of the framework."""
        return self._aliases.get(tool_name, tool_name)

    def has_hooks(self, *events: HookEventName) -> bool:
        """Whether any hook would run for one of these events."""
        return any(map(self.hooks.has_hooks_for, events))

    def acts(self, *events: HookEventName) -> bool:
        """Whether any hook would act at one of these events, so that the answer must be awaited."""
        plans = (plan_for(self.hooks.config, event) for event in events)
        return any(plan is not None and plan.acts for plan in plans)

    def model_plans(self, session: Session | None) -> ModelPlans | None:
        """Return the hooks that run around a model call; None if neither they nor the session matter."""
        if not self.hooks.config.enable_hooks:
            return None
        plans = model_plans(self.hooks.config)
        has_state = session is not None and (session.stop_reason is not None or bool(session.notes))
        return plans if has_state or any(plans) else None

    def has_tool_hooks(self, tool_name: str, session: Session | None = None) -> bool:
        """Whether a call must be shown to hooks, or may have to be refused because of what they did to its session."""
        if session is not None and (session.stop_reason is not None or session.restriction.allowed is not None):
            return True
        return tool_plans(self.hooks.config, self.hook_name(tool_name)) is not NO_PLANS

    async def run_tool(
        self,
        tool_name: str,
        arguments: dict[str, Any],
        run: Callable[[dict[str, Any] | None], Any],
        show: Callable[[Any], ToolResult | None],
        session: Session | None = None,
        *,
        tool_use_id: str | None = None,
        approver: Approver | None = None,
    ) -> ToolRun:
        """Run a framework's tool between its hooks.

        ``run`` gets the arguments that hooks changed, or None. ``show`` returns what the tool returned as AfterTool
        hooks see it, or None if the tool has not finished yet. ``approver`` is the framework's own way to ask.
        """
        call = ToolCallHalves(self, tool_name, arguments, session, tool_use_id=tool_use_id, approver=approver)
        if (refused := await call.before()) is not None:
            return ToolRun(refused=refused)
        try:
            outcome = await resolve(run(call.changed))
        except Exception as error:
            if (result := await call.raised(error)) is None:
                raise
            return ToolRun(result=result)
        shown = show(outcome)
        return ToolRun(outcome, None if shown is None else await call.after(shown))

    def observe_approval(self, tool_name: str, tool_input: Any) -> None:
        """Fire Notification for a call that waits for the user's approval."""
        name = self.hook_name(tool_name)
        self.hooks.observe(
            HookEventName.NOTIFICATION,
            notification_type=NotificationType.TOOL_PERMISSION,
            message=f"{name} needs approval",
            details={"tool_name": name, "tool_input": tool_input},
        )

    def translator(self, translator: TranslatorChoice) -> AnyTranslator:
        """Return a translator for this integration's model calls: hooks restrict tools by the names that they see."""
        resolved = resolve_translator(translator)
        return cast("AnyTranslator", _AliasedTranslator(resolved, self._aliases)) if self._aliases else resolved


class ToolRun(NamedTuple):
    """A tool call that is over: what the tool returned, and what hooks made of it or why they did not let it run.

    If ``result.replaced`` is true, the result takes the place of the outcome, which is None if the tool raised.
    """

    outcome: Any = None
    result: ToolResult | None = None
    refused: ToolResult | None = None


class ToolCallHalves:
    """What ``Integration.run_tool`` does before and after a tool, for frameworks that call back twice."""

    def __init__(
        self,
        integration: Integration,
        tool_name: str,
        arguments: dict[str, Any],
        session: Session | None,
        *,
        tool_use_id: str | None = None,
        approver: Approver | None = None,
    ) -> None:
        self._arguments = arguments
        self._session = session
        self._suspensions = integration.suspensions
        self._config = integration.hooks.config
        with in_session(session):
            self._asked = who_asks(self._config)
            name = integration.hook_name(tool_name)
            self.hooked = integration.hooks.tool_call(name, arguments, tool_use_id=tool_use_id)
        self.hooked.approver = approver

    async def before(self) -> ToolResult | None:
        with self._caller():
            return await self.hooked.before()

    @property
    def changed(self) -> dict[str, Any] | None:
        """The arguments, if hooks changed them."""
        final = self.hooked.input
        return None if final is self._arguments else final

    async def after(self, result: ToolResult) -> ToolResult:
        with self._caller():
            return await self.hooked.after(result)

    async def raised(self, error: Exception) -> ToolResult | None:
        """Run the hooks after a tool that raised. If it returns None, raise the error; else use the result."""
        if isinstance(error, (ToolNotRun, *self._suspensions)):
            return None
        with self._caller():
            return await self.hooked.raised(error)

    @contextmanager
    def _caller(self) -> Iterator[None]:
        """Enter the session, with what was known about the caller when the call began: the halves may be far apart."""
        with in_session(self._session), asked_by(self._config, self._asked):
            yield


def in_session(session: Session | None) -> AbstractContextManager[object]:
    """Make a session, if there is one, that of the current context."""
    return nullcontext() if session is None else session.active()


def json_result(value: Any) -> ToolResult:
    """Return what a tool returned as hooks see it. For frameworks that install pydantic."""
    content = as_json(value)
    return ToolResult(content, content)


def with_changes(given: Mapping[str, Any], shown: Mapping[str, Any], final: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with the changes of hooks. Those that no hook changed keep the types that JSON does not have.

    >>> with_changes({"path": b"a", "mode": 1}, {"path": "YQ==", "mode": 1}, {"path": "YQ==", "mode": 2})
    {'path': b'a', 'mode': 2}
    """
    return {name: given[name] if name in given and shown.get(name) == value else value for name, value in final.items()}


def metadata_of(given: object, *, without: Callable[[str], bool] = lambda name: False) -> dict[str, Any]:
    """Return what a framework has about its caller as JSON, except for some names. For frameworks with pydantic."""
    items = given.items() if isinstance(given, Mapping) else ()
    return {str(name): as_json(value) for name, value in items if not without(str(name))}


def as_json(value: Any) -> Any:
    """Return a value as JSON, if it can be; else as text. For frameworks that install pydantic."""
    from pydantic_core import to_jsonable_python

    try:
        return to_jsonable_python(value, fallback=str, bytes_mode="base64")
    except ValueError:
        return str(value)


def argument_as_json(value: Any) -> Any:
    """Return a tool's argument as JSON, with all that the tool gets; for frameworks that convert arguments first.

    Serializers may leave out or mask what a guard has to see, so models are read field by field (D-139).
    """
    from pydantic import BaseModel, RootModel, Secret, SecretBytes, SecretStr

    if isinstance(value, (Secret, SecretBytes, SecretStr)):
        return argument_as_json(value.get_secret_value())
    if isinstance(value, RootModel):
        return argument_as_json(value.root)
    if isinstance(value, BaseModel):
        aliases = {name: field.serialization_alias for name, field in type(value).model_fields.items()}
        return {aliases.get(name) or name: argument_as_json(item) for name, item in value}
    if isinstance(value, bytes):
        with suppress(UnicodeDecodeError):
            return value.decode()
    if isinstance(value, dict):
        return {name: argument_as_json(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [argument_as_json(item) for item in value]
    return as_json(value)


def reason_instead(result: ModelCallResult[Any]) -> str | None:
    """Return the text in place of an answer: why hooks stopped, or blocked without an answer; None if there is one."""
    if result.stop_reason is not None:
        return result.stop_reason
    return (result.reason or "") if result.response is None else None


def marks_of(result: ModelCallResult[Any]) -> dict[str, Any]:
    """Return what hooks did to an answer, for its metadata; empty if nothing."""
    marks = {"stop_reason": result.stop_reason, "blocked": result.blocked, "suppress_output": result.suppress_output}
    return {name: value for name, value in marks.items() if value}


class _AliasedTranslator:
    """A translator in whose tool configurations hooks see other tool names than the framework."""

    def __init__(self, translator: AnyTranslator, aliases: Mapping[str, str]) -> None:
        self._translator = translator
        self._shown = aliases
        self._real: dict[str, list[str]] = {}
        for real, shown in aliases.items():
            self._real.setdefault(shown, [shown]).append(real)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._translator, name)

    def to_hook_tool_config(self, tool_config: Any) -> Any:
        return _renamed(self._translator.to_hook_tool_config(tool_config), self._names_shown)

    def from_hook_tool_config(self, hook_tool_config: Mapping[str, Any], base_tool_config: Any) -> Any:
        return self._translator.from_hook_tool_config(_renamed(hook_tool_config, self._names_meant), base_tool_config)

    def to_hook_llm_request(self, request: Any) -> Any:
        return _with_renamed(self._translator.to_hook_llm_request(request), self._names_shown)

    def from_hook_llm_request(self, hook_request: Mapping[str, Any], base_request: Any) -> Any:
        return self._translator.from_hook_llm_request(_with_renamed(hook_request, self._names_meant), base_request)

    def to_full_llm_request(self, request: Any) -> Any:
        return _with_renamed(self._translator.to_full_llm_request(request), self._names_shown)

    def from_full_llm_request(self, hook_request: Mapping[str, Any], base_request: Any) -> Any:
        return self._translator.from_full_llm_request(_with_renamed(hook_request, self._names_meant), base_request)

    def _names_shown(self, name: str) -> list[str]:
        return [self._shown.get(name, name)]

    def _names_meant(self, name: str) -> list[str]:
        """Return all tools that hooks see under a name. Names that the request does not declare are left out later."""
        return self._real.get(name, [name])


def _with_renamed(request: Mapping[str, Any], names: Callable[[str], list[str]]) -> Mapping[str, Any]:
    return {**request, "toolConfig": _renamed(request["toolConfig"], names)} if "toolConfig" in request else request


def _renamed(tool_config: Any, names: Callable[[str], list[str]]) -> Any:
    """Return a tool configuration with other names; hooks may have written anything."""
    allowed = tool_config.get("allowedFunctionNames") if isinstance(tool_config, Mapping) else None
    if not isinstance(allowed, list):
        return tool_config
    renamed: list[Any] = []
    for name in allowed:
        renamed += [other for other in (names(name) if isinstance(name, str) else [name]) if other not in renamed]
    return {**tool_config, "allowedFunctionNames": renamed}
