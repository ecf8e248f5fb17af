"""Functions that are tools: what ``@hooks.tool`` needs to know of one, and of one call of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from llxprt_hooks.core.engine.session import Sessionless, current_session
from llxprt_hooks.core.protocol.tool_result import ToolResult

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.system import CallerConfig


class DecoratedTool:
    """One call of a decorated function."""

    def __init__(self, config: CallerConfig, function: Callable[..., Any], receiver: tuple[Any, ...]) -> None:
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
        """Return the result in the type of what the function returned, unless hooks replaced it (D-40, D-46)."""
        if isinstance(self._returned, ToolResult):
            return result
        if isinstance(self._returned, str) or result.replaced:
            return result.llm_content
        (current_session(self._config) or Sessionless()).exchange_notes((), tuple(result.additions))
        return self._returned


def check_function(function: Any) -> None:
    """Raise TypeError for what cannot be decorated, and say what to do instead."""
    if function is None:
        raise TypeError("`@hooks.tool` needs a function or a name: write it without parentheses, or with `name=`")
    if not callable(function) or not hasattr(function, "__name__"):
        raise TypeError(
            f"`@hooks.tool` decorates a function, found {type(function).__name__}: if a decorator such as `@tool`"
            " made it, put `@hooks.tool` below that one"
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{function.__qualname__}: a tool must return its result; generators are not supported")


_Bound: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]


def argument_binder(function: Callable[..., Any]) -> Callable[[tuple[Any, ...], dict[str, Any]], _Bound]:
    """Return a function that finds the names of a call's arguments, with those that have defaults.

    It returns them without the object of a method, which is nothing that a model chose, and that object.
    """
    signature = inspect.signature(function)
    receiver = _receiver(function, signature)
    collected = ""
    for parameter in signature.parameters.values():
        if parameter.name != receiver and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
            raise TypeError(
                f"{function.__name__}: `{stars}{parameter.name}` isn't supported by @hooks.tool, because hooks "
                "identify arguments by name. Use parameters that can be passed by name."
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
