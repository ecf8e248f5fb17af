"""``Hooks``: everything that an agent in Python needs, in one object.

>>> from llxprt_hooks import deny
>>> hooks = Hooks()
>>> @hooks.on("BeforeTool", matcher="^delete_")
... def keep_files(payload):
...     return deny("nothing is deleted here")
>>> hooks.sync.run_tool("delete_file", {"path": "a.txt"}, lambda args: "deleted").llm_content
'nothing is deleted here'

Failures of hooks never raise. Mistakes in the calling program do: an unknown event, a request that no translator reads.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from functools import cached_property, partial, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, Self, TypedDict, TypeVar, Unpack, overload

from llxprt_hooks._support.awaitables import resolve
from llxprt_hooks.config import Config, ConfigFields, LoadOptions, configured
from llxprt_hooks.core import loops
from llxprt_hooks.core.calls.lifecycle import observe_detached, settle
from llxprt_hooks.core.calls.lookup import NO_PLANS, has_hooks_for, tool_plans
from llxprt_hooks.core.calls.model_call import HookedModelCall, ModelCallResult
from llxprt_hooks.core.calls.stream import ModelStream, SyncModelStream
from llxprt_hooks.core.calls.sync import SyncModelCall, SyncToolCall, resolved
from llxprt_hooks.core.calls.tool import Execute, HookedToolCall, as_tool_result, run_unhooked
from llxprt_hooks.core.calls.tool_decorator import DecoratedTool, argument_binder, check_function
from llxprt_hooks.core.calls.turn import (
    TurnEnd,
    TurnResult,
    TurnStart,
    after_turn,
    before_compression,
    before_turn,
    run_turn,
    session_started,
    start_session,
)
from llxprt_hooks.core.engine.guards import known_event
from llxprt_hooks.core.engine.session import Session, Sessionless, current_session
from llxprt_hooks.core.executors.function import FunctionSpec, HookFunction
from llxprt_hooks.core.protocol.inputs import input_problem
from llxprt_hooks.events import HookEventName, MatchKind, SessionEndReason, UnknownEventError
from llxprt_hooks.model import TranslatorChoice, check_translator_name
from llxprt_hooks.settings.definitions import ConfigSource, HookConfig, HookDefinition
from llxprt_hooks.settings.matcher import is_invalid
from llxprt_hooks.settings.schema import SENTENCES, WHOLE

if TYPE_CHECKING:
    import os

    from llxprt_hooks.core.protocol.tool_result import ToolResult

P = ParamSpec("P")
R = TypeVar("R")
FunctionT = TypeVar("FunctionT", bound=HookFunction)
RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")
ChunkT = TypeVar("ChunkT")


class HookOptions(TypedDict, total=False):
    """The options of ``Hooks.on``."""

    matcher: str | None
    name: str | None
    timeout_ms: float
    fail_closed: bool
    threaded: bool
    stream: str


class ToolDecorator(Protocol):
    """What ``@hooks.tool(name=…)`` does to a function."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R | str]]: ...
    @overload
    def __call__(self, function: Callable[P, R]) -> Callable[P, R | str]: ...


class HookSession(Session):
    """A conversation, as a context manager: SessionStart fires when it is entered, SessionEnd when it is left."""

    def __init__(self, hooks: Hooks, session_id: str, transcript_path: str, metadata: Mapping[str, Any] | None) -> None:
        super().__init__(hooks.config, session_id, transcript_path, metadata)
        self._hooks = hooks

    def __enter__(self) -> Self:
        self.enter()
        start_session(self._hooks.config, self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        reason = SessionEndReason.EXIT if kind is None else SessionEndReason.OTHER
        self.leave()
        self.enter()  # also in another context than that of `__enter__`, where another session may be the current one
        self._hooks.observe(HookEventName.SESSION_END, reason=reason)
        self.leave()

    async def __aenter__(self) -> Self:
        self.enter()
        await session_started(self._hooks.config, self)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.__exit__(kind)


class Hooks:
    """The hooks of a configuration, around tools and models, for callers with any event loop.

    Pass a ``Config``, or its keyword arguments: then hooks are enabled if ``hooks`` is given. Without either, the only
    hooks are functions. ``config`` is the configuration, and ``sync`` has the same operations for callers without an
    event loop.
    """

    def __init__(self, config: Config | None = None, **config_fields: Unpack[ConfigFields]) -> None:
        self.config = configured(config, config_fields)
        if not self.config.enable_hooks:
            self.config.get_hook_system()  # warns if hooks were configured but never enabled

    @classmethod
    def load(cls, project_dir: str | os.PathLike[str] = ".", **options: Unpack[LoadOptions]) -> Self:
        """Read the settings files, as ``Config.load`` does, with the same options.

        Succeeds even when hooks cannot run because they are off or not approved: see ``require``.
        """
        return cls(Config.load(project_dir, **options))

    @cached_property
    def sync(self) -> SyncHooks:
        """The same operations for synchronous callers, also inside a running event loop."""
        return SyncHooks(self)

    # Tools.

    def run_tool(
        self, name: str, args: dict[str, Any], fn: Execute, *, tool_use_id: str | None = None
    ) -> Coroutine[Any, Any, ToolResult]:
        """Run a tool with its hooks. ``fn`` takes the final arguments; it may be a coroutine function.

        A blocked tool does not run; the result has the reason and an ``error``. What ``fn`` raises passes through.
        ``tool_use_id`` is the id of the call, which hooks that act receive.
        """
        config = self.config
        if config.enable_hooks:
            plans, session = tool_plans(config, name), current_session(config)
            if plans is not NO_PLANS or session is not None:
                return HookedToolCall(
                    config, name, args, session=session or Sessionless(), plans=plans, tool_use_id=tool_use_id
                ).run(fn)
        return run_unhooked(fn, args)

    def tool_call(self, name: str, args: dict[str, Any], *, tool_use_id: str | None = None) -> HookedToolCall:
        """Return the two halves of ``run_tool``, for callers that run the tool themselves."""
        session = current_session(self.config) or Sessionless()
        return HookedToolCall(self.config, name, args, session=session, tool_use_id=tool_use_id)

    @overload
    def tool(self, function: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R | str]]: ...
    @overload
    def tool(self, function: Callable[P, R]) -> Callable[P, R | str]: ...
    @overload
    def tool(self, *, name: str) -> ToolDecorator: ...
    def tool(self, function: Any = None, *, name: str | None = None) -> Any:
        """Decorate a function that is a tool: its hooks run with every call, with its arguments by name.

        Hooks see the function's name, or the given one: ``@hooks.tool(name="write_file")``. They see its arguments with
        their defaults, and not the ``self`` of a method. If hooks block a call, it returns the reason. Text of hooks is
        appended to a result that is text; beside any other result it goes into the session's next model request. Put
        a framework's own decorator above this one. A function that yields its result, or takes arguments without
        names, is a ``TypeError``.
        """
        if function is None and name is not None:
            return partial(self._tool, name)
        check_function(function)
        return self._tool(name or function.__name__, function)

    def _tool(self, name: str, function: Any) -> Callable[..., Any]:
        check_function(function)
        bind = argument_binder(function)

        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def call_async(*args: Any, **kwargs: Any) -> Any:
                receiver, arguments = bind(args, kwargs)
                tool = DecoratedTool(self.config, function, receiver)
                return tool.value_of(await self.run_tool(name, arguments, tool.run_async))

            return call_async

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            receiver, arguments = bind(args, kwargs)
            tool = DecoratedTool(self.config, function, receiver)
            return tool.value_of(self.sync.run_tool(name, arguments, tool.run))

        return call

    # Models.

    @overload
    async def call_model(
        self,
        request: RequestT,
        call: Callable[[RequestT], Awaitable[ResponseT]],
        *,
        translator: TranslatorChoice = None,
    ) -> ModelCallResult[ResponseT]: ...
    @overload
    async def call_model(
        self, request: RequestT, call: Callable[[RequestT], ResponseT], *, translator: TranslatorChoice = None
    ) -> ModelCallResult[ResponseT]: ...
    async def call_model(
        self, request: Any, call: Callable[[Any], Any], *, translator: TranslatorChoice = None
    ) -> ModelCallResult[Any]:
        """Call a model with its hooks. ``call`` takes the final request and returns the complete response.

        In a session, messages of hooks for the next request, restrictions of tools, and stops are applied to its later
        calls. Raises ``TranslationError`` if hooks would run and the translator cannot read the request or response.
        """
        if not self.config.enable_hooks:
            check_translator_name(translator)
            return ModelCallResult(response=await resolve(call(request)))
        return await self.model_call(request, translator=translator).run(call)

    def model_call(self, request: RequestT, *, translator: TranslatorChoice = None) -> HookedModelCall[RequestT]:
        """Return the two halves of ``call_model``, for callers that call the model themselves."""
        check_translator_name(translator)
        session = current_session(self.config) or Sessionless()
        return HookedModelCall(self.config, request, translator=translator, session=session)

    @overload
    def stream_model(
        self,
        request: RequestT,
        call: Callable[[RequestT], Any],
        *,
        join: Callable[[list[ChunkT]], ResponseT],
        split: Callable[[ResponseT], Iterable[ChunkT]],
        translator: TranslatorChoice = None,
    ) -> ModelStream[ChunkT, ResponseT]: ...
    @overload
    def stream_model(
        self,
        request: RequestT,
        call: Callable[[RequestT], Any],
        *,
        join: None = None,
        split: Callable[[Any], Iterable[Any]] | None = None,
        translator: TranslatorChoice = None,
    ) -> ModelStream[Any, Any]: ...
    def stream_model(
        self,
        request: Any,
        call: Callable[[Any], Any],
        *,
        join: Callable[[list[Any]], Any] | None = None,
        split: Callable[[Any], Iterable[Any]] | None = None,
        translator: TranslatorChoice = None,
    ) -> ModelStream[Any, Any]:
        """Call a model that answers in pieces, and iterate over them with ``async for``.

        ``call`` returns an iterator of chunks, asynchronous or not, or an awaitable of one. Chunks are passed on as
        they arrive, unless an AfterModel hook is configured: then nothing is passed on before the hook has seen the
        complete response; if the stream fails before that, its error is raised. ``join`` makes a response of all
        chunks, ``split`` makes chunks of a response that a hook changed or returned. Both may be omitted for events of
        OpenAI's and Anthropic's APIs; ``split`` only if the events are dicts. If neither is given and all AfterModel
        hooks have ``stream="sentences"``, each sentence is passed on as soon as they have seen it.
        """
        return ModelStream(self.model_call(request, translator=translator), call, join, split)

    # Turns.

    @overload
    async def run_turn(
        self, prompt: str, run: Callable[[str], Awaitable[R]], *, text: Callable[[R], str] = str
    ) -> TurnResult[R]: ...
    @overload
    async def run_turn(
        self, prompt: str, run: Callable[[str], R], *, text: Callable[[R], str] = str
    ) -> TurnResult[R]: ...
    async def run_turn(
        self, prompt: str, run: Callable[[str], Any], *, text: Callable[[Any], str] = str
    ) -> TurnResult[Any]:
        """Let the agent answer a prompt, with the hooks around it.

        ``run`` takes the prompt as the model should get it, and returns the answer; ``text`` returns the answer's text
        for hooks. A refused prompt is not run. If an AfterAgent hook that acts wants the agent to continue, ``run`` is
        called again with the hook's reason as prompt. What ``run`` raises passes through.
        """
        return await run_turn(self.config, prompt, run, text)

    async def before_turn(self, prompt: str) -> TurnStart:
        """Run the hooks on a new prompt, for callers that run the turn themselves."""
        return await before_turn(self.config, prompt)

    async def after_turn(self, prompt: str, response: str, stop_hook_active: bool = False) -> TurnEnd:
        """Run the hooks on the answer to a prompt, for callers that run the turn themselves.

        Pass ``stop_hook_active=True`` if a hook has let the agent continue with this prompt.
        """
        return await after_turn(self.config, prompt, response, stop_hook_active)

    async def before_compression(self, trigger: str) -> str | None:
        """Run the hooks before a conversation is compressed; return why it must not be, or None if it may."""
        return await before_compression(self.config, trigger)

    # Sessions and watching events.

    def session(
        self, session_id: str, transcript_path: str = "", metadata: Mapping[str, Any] | None = None
    ) -> HookSession:
        """Return a session to enter, with ``with`` or ``async with``, around the calls of one conversation.

        ``metadata`` says who asks. Its fields take precedence over those of the configuration.
        """
        return HookSession(self, session_id, transcript_path, metadata)

    def observe(self, event: str, **fields: Any) -> None:
        """Start the hooks of an event that nobody waits for, and return. It is finished even if this loop ends.

        ``fields`` are the event's own. One that is missing or unknown is a ``TypeError``.
        """
        event_name = known_event(event)
        if event_name.spec.awaited:
            raise TypeError(
                f"observe() is only for events that hooks observe. {event_name} can change the call: "
                "use run_tool() or call_model()"
            )
        given = {**event_name.spec.defaults, **fields}
        unknown = given.keys() - event_name.spec.fields.keys()
        problem = f"{event_name} has no field `{min(unknown)}`" if unknown else input_problem(event_name, given)
        if problem:
            raise TypeError(problem)
        observe_detached(self.config, event_name, **given)

    async def settle(self, seconds: float = 5.0) -> int:
        """Wait for the events that still run; return how many are left after the timeout."""
        return await settle(self.config, seconds)

    def has_hooks_for(self, event: str, subject: str | None = None) -> bool:
        """Whether any hook would run for an event; ``subject`` is a tool's name, or what else its matchers compare.

        Costs a few dictionary lookups.
        """
        return has_hooks_for(self.config, known_event(event), subject)

    def reload(self) -> None:
        """Read the settings files again, as ``Config.reload`` does. Functions stay registered."""
        self.config.reload()

    # Functions as hooks.

    @overload
    def on(self, event: str, function: FunctionT, **options: Unpack[HookOptions]) -> FunctionT: ...
    @overload
    def on(
        self, event: str, function: None = None, **options: Unpack[HookOptions]
    ) -> Callable[[FunctionT], FunctionT]: ...
    def on(
        self,
        event: str,
        function: Any = None,
        *,
        matcher: str | None = None,
        name: str | None = None,
        timeout_ms: float = 60000,
        fail_closed: bool = False,
        threaded: bool = False,
        stream: str = WHOLE,
    ) -> Any:
        """Register a function as a hook; without ``function``, return a decorator that does.

        It gets the payload as a dict of its own, and returns None, a reply such as ``deny("…")``, or a mapping in the
        format that scripts print. It runs after the hooks of settings and extensions, even if those are disabled.

        If it raises, times out or returns anything else, it has failed: the call goes ahead, unless ``fail_closed``.
        The warning names the exception and its line. A function that is not a coroutine function blocks the event loop
        of the call, and its timeout cannot end it; with ``threaded``, it runs in a thread of its own. There,
        ``sys.exit()`` and ``KeyboardInterrupt`` are failures; elsewhere they end the program.
        """
        if callable(event):
            raise UnknownEventError('`@hooks.on` needs an event: `@hooks.on("BeforeTool")`')
        event_name = known_event(event)
        if not timeout_ms > 0:
            raise ValueError(f"timeout_ms must be positive, found {timeout_ms!r}")
        _check_matcher(event_name, matcher)
        if stream not in (WHOLE, SENTENCES):
            raise ValueError(f"stream must be {WHOLE!r} or {SENTENCES!r}, found {stream!r}")

        def register(function: FunctionT) -> FunctionT:
            if not callable(function):
                raise TypeError(f"a hook must be a function, found {type(function).__name__}")
            if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
                raise TypeError(f"{function.__qualname__}: a hook must return its answer; generators are not supported")
            config = HookConfig(
                type="function",
                spec=FunctionSpec(function, threaded),
                timeout=float(timeout_ms),
                name=name,
                fail_closed=fail_closed,
                sentences=stream == SENTENCES,
            )
            self.config.add_function_hook(
                HookDefinition(
                    config=config,
                    event_name=event_name,
                    source=ConfigSource.PROJECT,
                    origin="",
                    group_number=None,
                    number=len(self.config.function_hooks),
                    matcher=matcher,
                )
            )
            return function

        return register if function is None else register(function)


class SyncHooks:
    """The operations of ``Hooks`` for synchronous callers, even in a running event loop, in any thread, after a fork.

    Hooks run on one event loop in a background thread, which starts when it is first needed and ends at exit. The tool
    and the model call run in the caller's thread, and hooks see its context variables. Ctrl-C kills a running hook
    before ``KeyboardInterrupt`` is raised. At exit, events that nobody waits for have up to five seconds to finish. A
    function hook may use these operations itself.
    """

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self.config = hooks.config
        self.on = hooks.on
        self.tool = hooks.tool
        self.session = hooks.session
        self.observe = hooks.observe
        self.has_hooks_for = hooks.has_hooks_for
        self.reload = hooks.reload

    def run_tool(self, name: str, args: dict[str, Any], fn: Execute, *, tool_use_id: str | None = None) -> ToolResult:
        """Run a tool with its hooks. ``fn`` runs in this thread; what it returns is awaited if need be."""
        if not self.config.enable_hooks:
            return as_tool_result(resolved(fn, args))
        run = self._hooks.run_tool(name, args, lambda final: resolved(fn, final), tool_use_id=tool_use_id)
        return loops.drive(run)

    def tool_call(self, name: str, args: dict[str, Any], *, tool_use_id: str | None = None) -> SyncToolCall:
        """Return the two halves of ``run_tool``, for callers that run the tool themselves."""
        return SyncToolCall(self._hooks.tool_call(name, args, tool_use_id=tool_use_id))

    @overload
    def call_model(
        self,
        request: RequestT,
        call: Callable[[RequestT], Awaitable[ResponseT]],
        *,
        translator: TranslatorChoice = None,
    ) -> ModelCallResult[ResponseT]: ...
    @overload
    def call_model(
        self, request: RequestT, call: Callable[[RequestT], ResponseT], *, translator: TranslatorChoice = None
    ) -> ModelCallResult[ResponseT]: ...
    def call_model(
        self, request: Any, call: Callable[[Any], Any], *, translator: TranslatorChoice = None
    ) -> ModelCallResult[Any]:
        """Call a model with its hooks. ``call`` runs in this thread; what it returns is awaited if need be."""
        return loops.drive(self._hooks.call_model(request, lambda final: resolved(call, final), translator=translator))

    def model_call(self, request: RequestT, *, translator: TranslatorChoice = None) -> SyncModelCall[RequestT]:
        """Return the two halves of ``call_model``, for callers that call the model themselves."""
        return SyncModelCall(self._hooks.model_call(request, translator=translator))

    @overload
    def stream_model(
        self,
        request: RequestT,
        call: Callable[[RequestT], Iterable[ChunkT]],
        *,
        join: Callable[[list[ChunkT]], ResponseT],
        split: Callable[[ResponseT], Iterable[ChunkT]],
        translator: TranslatorChoice = None,
    ) -> SyncModelStream[ChunkT, ResponseT]: ...
    @overload
    def stream_model(
        self,
        request: RequestT,
        call: Callable[[RequestT], Iterable[Any]],
        *,
        join: None = None,
        split: Callable[[Any], Iterable[Any]] | None = None,
        translator: TranslatorChoice = None,
    ) -> SyncModelStream[Any, Any]: ...
    def stream_model(
        self,
        request: Any,
        call: Callable[[Any], Any],
        *,
        join: Callable[[list[Any]], Any] | None = None,
        split: Callable[[Any], Iterable[Any]] | None = None,
        translator: TranslatorChoice = None,
    ) -> SyncModelStream[Any, Any]:
        """Call a model that answers in pieces, and iterate over them with ``for``."""
        hooked = self._hooks.model_call(request, translator=translator)
        return SyncModelStream(ModelStream(hooked, call, join, split))

    @overload
    def run_turn(
        self, prompt: str, run: Callable[[str], Awaitable[R]], *, text: Callable[[R], str] = str
    ) -> TurnResult[R]: ...
    @overload
    def run_turn(self, prompt: str, run: Callable[[str], R], *, text: Callable[[R], str] = str) -> TurnResult[R]: ...
    def run_turn(self, prompt: str, run: Callable[[str], Any], *, text: Callable[[Any], str] = str) -> TurnResult[Any]:
        """Let the agent answer a prompt. ``run`` is called in this thread; what it returns is awaited if need be."""
        return loops.drive(self._hooks.run_turn(prompt, lambda sent: resolved(run, sent), text=text))

    def before_turn(self, prompt: str) -> TurnStart:
        """Run the hooks on a new prompt, for callers that run the turn themselves."""
        return loops.drive(self._hooks.before_turn(prompt))

    def after_turn(self, prompt: str, response: str, stop_hook_active: bool = False) -> TurnEnd:
        """Run the hooks on the answer to a prompt, for callers that run the turn themselves."""
        return loops.drive(self._hooks.after_turn(prompt, response, stop_hook_active))

    def before_compression(self, trigger: str) -> str | None:
        """Run the hooks before a conversation is compressed; return why it must not be, or None if it may."""
        return loops.drive(self._hooks.before_compression(trigger))

    def settle(self, seconds: float = 5.0) -> int:
        """Wait for the events that still run; return how many are left after the timeout."""
        return loops.drive(self._hooks.settle(seconds))


def _check_matcher(event_name: HookEventName, matcher: object) -> None:
    """Raise for a matcher that would never match, or that would fail when an event is planned."""
    if matcher is not None and not isinstance(matcher, str):
        raise TypeError(f"matcher must be a string, found {type(matcher).__name__}")
    if matcher and event_name.spec.match is MatchKind.IGNORED:
        raise ValueError(f"{event_name} ignores matchers, so {matcher!r} would restrict nothing: leave it out")
    if is_invalid(event_name, matcher):
        raise ValueError(f"matcher is not a valid ECMAScript regular expression: {matcher!r}")
