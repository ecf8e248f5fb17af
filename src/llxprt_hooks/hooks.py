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
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import aclosing
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeAlias, TypeVar, overload

from llxprt_hooks.config import Config
from llxprt_hooks.engine.definitions import ConfigSource, HookConfig, HookDefinition
from llxprt_hooks.engine.executors.function import FunctionSpec, HookFunction
from llxprt_hooks.engine.matcher import is_invalid
from llxprt_hooks.engine.session import Session, StopRequested, current_session
from llxprt_hooks.events import MODEL_EVENTS, HookEventName, SessionEndReason, SessionStartSource
from llxprt_hooks.logger import debug_logger
from llxprt_hooks.model import check_translator_name
from llxprt_hooks.protocol.inputs import input_problem
from llxprt_hooks.protocol.tool_result import ToolResult
from llxprt_hooks.text import closest
from llxprt_hooks.triggers import portal
from llxprt_hooks.triggers.lifecycle import observe_detached, settle
from llxprt_hooks.triggers.model_call import HookedModelCall, ModelCallResult
from llxprt_hooks.triggers.relevance import has_hooks_for, is_hooked
from llxprt_hooks.triggers.tool import (
    Execute,
    HookedToolCall,
    as_tool_result,
    is_awaitable,
    run_tool_call,
    run_unhooked,
)

if TYPE_CHECKING:
    import os
    from types import TracebackType

    from llxprt_hooks.model import TranslatorChoice
    from llxprt_hooks.model.wire.base import Wire

log = debug_logger("triggers")

P = ParamSpec("P")
R = TypeVar("R")
FunctionT = TypeVar("FunctionT", bound=HookFunction)
RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")
ChunkT = TypeVar("ChunkT")

_DEFAULTS: Mapping[HookEventName, Mapping[str, Any]] = {
    HookEventName.SESSION_START: {"source": SessionStartSource.STARTUP},
    HookEventName.SESSION_END: {"reason": SessionEndReason.EXIT},
    HookEventName.AFTER_AGENT: {"stop_hook_active": False},
    HookEventName.NOTIFICATION: {"details": {}},
}
"""Fields of watching events that a caller may omit."""


class UnknownEventError(TypeError, ValueError):
    """There is no event with this name."""


class HookSession(Session):
    """A conversation, as a context manager: SessionStart fires when it is entered, SessionEnd when it is left."""

    def __init__(self, hooks: Hooks, session_id: str, transcript_path: str) -> None:
        super().__init__(hooks.config, session_id, transcript_path)
        self._hooks = hooks

    def __enter__(self) -> Self:
        self.enter()
        self._hooks.observe(HookEventName.SESSION_START)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        reason = SessionEndReason.EXIT if kind is None else SessionEndReason.OTHER
        self._hooks.observe(HookEventName.SESSION_END, reason=reason)
        self.leave()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)


class Hooks:
    """The hooks of a configuration, around tools and models, for callers with any event loop.

    ``sync`` has the same operations for callers without one.
    """

    def __init__(self, config: Config | None = None) -> None:
        self.config = Config() if config is None else config
        if not self.config.enable_hooks:
            self.config.get_hook_system()  # warns if hooks were configured but never enabled

    @classmethod
    def load(cls, project_dir: str | os.PathLike[str] = ".", *, strict: bool = False, watch: bool = False) -> Self:
        """Read the settings files, as ``Config.load`` does."""
        return cls(Config.load(project_dir, strict=strict, watch=watch))

    @cached_property
    def sync(self) -> SyncHooks:
        """The same operations for synchronous callers, also inside a running event loop."""
        return SyncHooks(self)

    # Tools.

    def run_tool(self, name: str, args: dict[str, Any], fn: Execute) -> Coroutine[Any, Any, ToolResult]:
        """Run a tool with its hooks. ``fn`` takes the final arguments; it may be a coroutine function.

        A blocked tool does not run; the result has the reason and an ``error``. What ``fn`` raises passes through.
        """
        config = self.config
        if config.enable_hooks and (is_hooked(config, name) or current_session(config) is not None):
            return run_tool_call(_ToolCall(config, name, args), fn)
        return run_unhooked(fn, args)

    def tool_call(self, name: str, args: dict[str, Any]) -> HookedToolCall:
        """Return the two halves of ``run_tool``, for callers that run the tool themselves."""
        return _ToolCall(self.config, name, args)

    @overload
    def tool(self, function: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R | str]]: ...
    @overload
    def tool(self, function: Callable[P, R]) -> Callable[P, R | str]: ...
    def tool(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a function that is a tool: its hooks run with every call, with its arguments by name.

        If hooks block a call, it returns the reason. Text of hooks is appended to a result that is text; beside any
        other result it goes into the session's next model request.
        """
        bind = _binder(function)
        name = function.__name__

        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def call_async(*args: Any, **kwargs: Any) -> Any:
                receiver, arguments = bind(args, kwargs)
                tool = _DecoratedTool(self.config, function, receiver)
                return tool.value_of(await self.run_tool(name, arguments, tool.run_async))

            return call_async

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            receiver, arguments = bind(args, kwargs)
            tool = _DecoratedTool(self.config, function, receiver)
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
            response = call(request)
            return ModelCallResult(response=await response if inspect.isawaitable(response) else response)
        hooked = self.model_call(request, translator=translator)
        if (result := await hooked.before()) is not None:
            return result
        response = call(hooked.request)
        return await hooked.after(await response if inspect.isawaitable(response) else response)

    def model_call(self, request: RequestT, *, translator: TranslatorChoice = None) -> HookedModelCall[RequestT]:
        """Return the two halves of ``call_model``, for callers that call the model themselves."""
        check_translator_name(translator)
        return _ModelCall(self.config, request, translator=translator)

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
        complete answer. ``join`` makes a response of all chunks, ``split`` makes chunks of a response. Both may be
        omitted for events of OpenAI's and Anthropic's APIs; ``split`` only if the events are dicts.
        """
        return ModelStream(self.model_call(request, translator=translator), call, join, split)

    # Sessions and watching events.

    def session(self, session_id: str, transcript_path: str = "") -> HookSession:
        """Return a session to enter, with ``with`` or ``async with``, around the calls of one conversation."""
        return HookSession(self, session_id, transcript_path)

    def observe(self, event: str, **fields: Any) -> None:
        """Start the hooks of an event that nobody waits for, and return. It is finished even if this loop ends."""
        event_name = _event(event)
        if event_name.spec.awaited:
            raise TypeError(f"{event_name} has effects that must be applied: use run_tool or call_model")
        given = {**_DEFAULTS.get(event_name, {}), **fields}
        unknown = given.keys() - event_name.spec.fields.keys()
        problem = f"{event_name} has no field `{min(unknown)}`" if unknown else input_problem(event_name, given)
        if problem:
            raise TypeError(problem)
        observe_detached(self.config, event_name, **given)

    async def settle(self, seconds: float = 5.0) -> int:
        """Wait for the events that still run; return how many are left after the timeout."""
        return await settle(self.config, seconds)

    def has_hooks_for(self, event: str, subject: str | None = None) -> bool:
        """Whether any hook would run for an event; ``subject`` is a tool's name, or what else its matchers compare."""
        return has_hooks_for(self.config, _event(event), subject)

    def reload(self) -> None:
        """Read the settings files again, as ``Config.reload`` does. Functions stay registered."""
        self.config.reload()

    # Functions as hooks.

    @overload
    def on(
        self,
        event: str,
        function: FunctionT,
        *,
        matcher: str | None = None,
        name: str | None = None,
        timeout_ms: float = 60000,
        fail_closed: bool = False,
        threaded: bool = False,
    ) -> FunctionT: ...
    @overload
    def on(
        self,
        event: str,
        function: None = None,
        *,
        matcher: str | None = None,
        name: str | None = None,
        timeout_ms: float = 60000,
        fail_closed: bool = False,
        threaded: bool = False,
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
    ) -> Any:
        """Register a function as a hook; without ``function``, return a decorator that does.

        It gets the payload as a dict of its own, and returns None or an answer: ``deny("…")`` and the like. It runs
        after the hooks of settings, also where those are disabled.
        """
        event_name = _event(event)
        if not timeout_ms > 0:
            raise ValueError(f"timeout_ms must be positive, found {timeout_ms!r}")
        _check_matcher(event_name, matcher)

        def register(function: FunctionT) -> FunctionT:
            if not callable(function):
                raise TypeError(f"a hook must be a function, found {type(function).__name__}")
            if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
                raise TypeError(f"{function.__qualname__}: a hook must return its answer, this function yields it")
            config = HookConfig(
                type="function",
                spec=FunctionSpec(function, threaded),
                timeout=float(timeout_ms),
                name=name,
                fail_closed=fail_closed,
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


class ModelStream(Generic[ChunkT, ResponseT]):
    """The chunks of an answer; an asynchronous iterator."""

    def __init__(
        self,
        hooked: HookedModelCall[Any],
        call: Callable[[Any], Any],
        join: Callable[[list[ChunkT]], ResponseT] | None,
        split: Callable[[ResponseT], Iterable[ChunkT]] | None,
    ) -> None:
        self.result: ModelCallResult[ResponseT] | None = None
        """What hooks decided; None until then. ``response`` is None if chunks were passed on as they arrived."""
        self._hooked = hooked
        self._call = call
        self._given_join = join
        self._given_split = split
        self._chunks = self._iterate()

    def __aiter__(self) -> AsyncIterator[ChunkT]:
        return self._chunks

    async def aclose(self) -> None:
        """End the answer early."""
        await _close(self._chunks)

    async def _iterate(self) -> AsyncIterator[ChunkT]:
        hooked = self._hooked
        self.result = await hooked.before()
        if self.result is not None:
            for chunk in () if self.result.response is None else self._split(self.result.response):
                yield chunk
            return
        holds_back, held_back = hooked.holds_back, []
        source = self._call(hooked.request)
        source = await source if inspect.isawaitable(source) else source
        try:
            async with aclosing(_chunks(source)) as chunks:
                async for chunk in chunks:
                    if holds_back:
                        held_back.append(chunk)
                    else:
                        yield chunk
        finally:
            await _close(source)
        if not holds_back:
            self.result = hooked.passed_on()
            return
        response = self._join(held_back)
        self.result = await hooked.after(response)
        shown = self.result.response
        for chunk in held_back if shown is None or shown is response else self._split(shown):
            yield chunk

    def _join(self, chunks: list[ChunkT]) -> Any:
        if self._given_join is not None:
            return self._given_join(chunks)
        response = self._wire.assemble(chunks, self._hooked.request)
        if response is None:
            raise ConnectionAbortedError("the stream ended before the answer was complete")
        return response

    def _split(self, response: Any) -> Iterable[Any]:
        if self._given_split is not None:
            return self._given_split(response)
        return self._wire.events(response, self._hooked.request)

    @property
    def _wire(self) -> Wire:
        wire = self._hooked.translator.wire
        if wire is None:
            raise TypeError("this SDK's streams have no format of their own: pass `join` and `split`")
        return wire


class SyncHooks:
    """The operations of ``Hooks`` for synchronous callers. Hooks run on a background event loop."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self.config = hooks.config
        self.on = hooks.on
        self.tool = hooks.tool
        self.session = hooks.session
        self.observe = hooks.observe
        self.has_hooks_for = hooks.has_hooks_for
        self.reload = hooks.reload

    def run_tool(self, name: str, args: dict[str, Any], fn: Execute) -> ToolResult:
        """Run a tool with its hooks. ``fn`` runs in this thread; what it returns is awaited if need be."""
        if not self.config.enable_hooks:
            return as_tool_result(_resolved(fn, args))
        return portal.drive(self._hooks.run_tool(name, args, lambda final: _resolved(fn, final)))

    def tool_call(self, name: str, args: dict[str, Any]) -> SyncToolCall:
        """Return the two halves of ``run_tool``, for callers that run the tool themselves."""
        return SyncToolCall(self._hooks.tool_call(name, args))

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
        return portal.drive(
            self._hooks.call_model(request, lambda final: _resolved(call, final), translator=translator)
        )

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

    def settle(self, seconds: float = 5.0) -> int:
        """Wait for the events that still run; return how many are left after the timeout."""
        return portal.drive(self._hooks.settle(seconds))


class SyncToolCall:
    """A tool call in two steps, for synchronous callers that run the tool themselves."""

    def __init__(self, call: HookedToolCall) -> None:
        self._call = call

    @property
    def input(self) -> dict[str, Any]:
        """The arguments; after ``before()``, as hooks changed them."""
        return self._call.input

    def before(self) -> ToolResult | None:
        """Run the hooks before the call. If it returns None, run the tool with ``input``; else use the result."""
        return portal.drive(self._call.before())

    def not_run(self, result: ToolResult) -> ToolResult:
        """Return the result of a call that did not run after ``before()``, with what its hooks say to the model."""
        return self._call.not_run(result)

    def after(self, outcome: Any) -> ToolResult:
        """Run the hooks after the call, on what the tool returned."""
        return portal.drive(self._call.after(outcome))


class SyncModelCall(Generic[RequestT]):
    """A model call in two steps, for synchronous callers that call the model themselves."""

    def __init__(self, call: HookedModelCall[RequestT]) -> None:
        self._call = call

    @property
    def request(self) -> RequestT:
        """The request; after ``before()``, as hooks changed it."""
        return self._call.request

    @property
    def holds_back(self) -> bool:
        """Whether an AfterModel hook will see the answer: then show nothing before ``after()`` has returned."""
        return self._call.holds_back

    def before(self) -> ModelCallResult[Any] | None:
        """Run the hooks before the call. If it returns None, call the model with ``request``; else use the result."""
        return portal.drive(self._call.before())

    def after(self, response: ResponseT) -> ModelCallResult[ResponseT]:
        """Run the hooks after the call, on the complete answer."""
        return portal.drive(self._call.after(response))

    def passed_on(self) -> ModelCallResult[Any]:
        """Return the result of a call whose answer was shown as it arrived, which is allowed unless ``holds_back``."""
        return self._call.passed_on()


class SyncModelStream(Generic[ChunkT, ResponseT]):
    """The chunks of an answer; an iterator."""

    def __init__(self, stream: ModelStream[ChunkT, ResponseT]) -> None:
        self._stream = stream
        self._chunks = self._iterate()

    @property
    def result(self) -> ModelCallResult[ResponseT] | None:
        """What hooks decided; None until then. ``response`` is None if chunks were passed on as they arrived."""
        return self._stream.result

    def __iter__(self) -> Iterator[ChunkT]:
        return self._chunks

    def _iterate(self) -> Generator[ChunkT, None, None]:
        chunks = aiter(self._stream)
        try:
            while (chunk := portal.drive(_next(chunks))) is not _END:
                yield chunk
        finally:
            portal.drive(self._stream.aclose())

    def close(self) -> None:
        """End the answer early."""
        self._chunks.close()


class _ToolCall(HookedToolCall):
    """A tool call that obeys its session, and leaves a stop there."""

    __slots__ = ("_session",)

    def __init__(self, config: Config, name: str, args: dict[str, Any]) -> None:
        self._session = current_session(config)
        super().__init__(config, name, args, restriction=None if self._session is None else self._session.restriction)

    async def before(self) -> ToolResult | None:
        if self._session is not None and (reason := self._session.stop_reason) is not None:
            return ToolResult(reason, reason, error={"message": reason, "type": "hook_stopped"}, stop_reason=reason)
        result = await super().before()
        return None if result is None else _apply_stop(self._session, result)

    async def after(self, outcome: Any) -> ToolResult:
        return _apply_stop(self._session, await super().after(outcome))


class _ModelCall(HookedModelCall[RequestT]):
    """A model call that takes notes from its session, and leaves notes, restriction and a stop there."""

    def __init__(self, config: Config, request: RequestT, *, translator: TranslatorChoice) -> None:
        self._session = current_session(config)
        self._given = () if self._session is None else self._session.notes
        super().__init__(config, request, translator=translator, notes=self._given)

    async def before(self) -> ModelCallResult[Any] | None:
        if self._session is not None and (reason := self._session.stop_reason) is not None:
            return ModelCallResult(blocked=True, reason=reason, stop_reason=reason)
        if self._given or any(has_hooks_for(self._config, event) for event in MODEL_EVENTS):
            self.translator.read_request(self.request)
        result = await super().before()
        if result is None:
            return None
        _leave_notes(self._session, result.notes[len(self._given) :])
        return _apply_stop(self._session, result)

    async def after(self, response: ResponseT) -> ModelCallResult[ResponseT]:
        if self.holds_back:
            self.translator.read_response(response)
        return self._finished(await super().after(response))

    def passed_on(self) -> ModelCallResult[Any]:
        return self._finished(super().passed_on())

    def _finished(self, result: ModelCallResult[ResponseT]) -> ModelCallResult[ResponseT]:
        """Leave what hooks said about an answered request in the session. A call that failed keeps its notes there."""
        _leave_notes(self._session, result.notes, delivered=self._given)
        if self._session is not None:
            self._session.restriction = result.restriction
        return _apply_stop(self._session, result)


def _leave_notes(session: Session | None, notes: tuple[str, ...], *, delivered: tuple[str, ...] = ()) -> None:
    if session is not None:
        session.exchange_notes(delivered, notes)
    elif notes:
        log.warning("a hook's message for the next model request is dropped: there is no hooks.session()")


ResultT = TypeVar("ResultT", ToolResult, ModelCallResult[Any])


def _apply_stop(session: Session | None, result: ResultT) -> ResultT:
    if result.stop_reason is None:
        return result
    if session is None:
        raise StopRequested(result.stop_reason, result)
    session.stop_reason = result.stop_reason
    return result


class _DecoratedTool:
    """One call of a decorated function."""

    def __init__(self, config: Config, function: Callable[..., Any], receiver: tuple[Any, ...]) -> None:
        self._config = config
        self._function = function
        self._receiver = receiver
        self._returned: Any = ""  # a call that hooks refuse returns text

    def run(self, arguments: dict[str, Any]) -> Any:
        self._returned = self._function(*self._receiver, **arguments)
        return self._returned

    async def run_async(self, arguments: dict[str, Any]) -> Any:
        self._returned = await self._function(*self._receiver, **arguments)
        return self._returned

    def value_of(self, result: ToolResult) -> Any:
        """Return the result in the type of what the function returned (D-40)."""
        if isinstance(self._returned, ToolResult):
            return result
        if isinstance(self._returned, str):
            return result.llm_content
        _leave_notes(current_session(self._config), tuple(result.additions))
        return self._returned


_Bound: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]


def _binder(function: Callable[..., Any]) -> Callable[[tuple[Any, ...], dict[str, Any]], _Bound]:
    """Return a function that finds the names of a call's arguments, with those that have defaults.

    It returns them without the object of a method, which is nothing that a model chose, and that object.
    """
    signature = inspect.signature(function)
    receiver = _receiver(function, signature)
    collected = ""
    for parameter in signature.parameters.values():
        if parameter.name != receiver and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise TypeError(
                f"{function.__name__}: hooks need a name for each argument, `{parameter.name}` takes some without"
            )
        if parameter.kind is parameter.VAR_KEYWORD:
            collected = parameter.name

    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Bound:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        named = dict(bound.arguments)
        more = named.pop(collected) if collected else {}
        instance = (named.pop(receiver),) if receiver else ()
        return instance, {**named, **more}

    return bind


def _receiver(function: Callable[..., Any], signature: inspect.Signature) -> str:
    """Return the name of a method's first parameter; empty for a function. A decorator sees no difference but these."""
    scope = function.__qualname__.rpartition(".")[0]
    first = next(iter(signature.parameters), "")
    return first if first in ("self", "cls") and scope and not scope.endswith("<locals>") else ""


def _event(event: str) -> HookEventName:
    try:
        return HookEventName(event)
    except ValueError:
        close = closest(str(event), HookEventName)
        hint = f"did you mean {close}?" if close else f"expected one of {', '.join(HookEventName)}"
        raise UnknownEventError(f"unknown hook event {event!r}; {hint}") from None


def _check_matcher(event_name: HookEventName, matcher: object) -> None:
    """Raise for a matcher that would never match, or that would fail when an event is planned."""
    if matcher is not None and not isinstance(matcher, str):
        raise TypeError(f"matcher must be a string, found {type(matcher).__name__}")
    if is_invalid(event_name, matcher):
        raise ValueError(f"matcher is not a valid ECMAScript regular expression: {matcher!r}")


def _resolved(function: Callable[[Any], Any], argument: Any) -> Any:
    """Call a function for a synchronous caller; an awaitable is awaited on the background loop."""
    outcome = function(argument)
    return portal.run(_awaited(outcome)) if is_awaitable(outcome) else outcome


async def _awaited(awaitable: Awaitable[R]) -> R:
    return await awaitable


_END: Any = object()


async def _next(chunks: AsyncIterator[ChunkT]) -> ChunkT:
    return await anext(chunks, _END)


async def _chunks(source: Any) -> AsyncGenerator[Any, None]:
    if hasattr(source, "__aiter__"):
        async for chunk in source:
            yield chunk
    else:
        for chunk in source:
            yield chunk


async def _close(source: Any) -> None:
    """Close a stream that may not be at its end; SDKs call it ``close``, generators ``aclose``."""
    close = getattr(source, "aclose", None) or getattr(source, "close", None)
    closing = None if close is None else close()
    if inspect.isawaitable(closing):
        await closing
