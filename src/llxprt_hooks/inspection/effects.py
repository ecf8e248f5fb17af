"""Describes the effects of a hook's output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llxprt_hooks.engine.results import is_blocked
from llxprt_hooks.events import Effect, HookEventName
from llxprt_hooks.model.outputs import create_specific_hook_output
from llxprt_hooks.protocol.json_codec import decode_text, write_json
from llxprt_hooks.text import one_line, shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from llxprt_hooks.protocol.outputs import DefaultHookOutput

_LONGEST = 100


def effects(event_name: HookEventName, output: DefaultHookOutput) -> list[str]:
    """Return the effects of an output for its event, one phrase each.

    >>> from llxprt_hooks import DefaultHookOutput
    >>> effects(HookEventName.BEFORE_TOOL, DefaultHookOutput({"decision": "deny", "reason": "no secrets"}))
    ['blocks it: no secrets']
    """
    output = create_specific_hook_output(event_name, output.to_dict())  # with BeforeTool's compatibility fields
    spec = event_name.spec
    found: list[str] = []
    if is_blocked(event_name, output):
        found.append(f"blocks it{because(_cut(output.get_effective_reason()))}")
    if (stop_reason := output.get_stop_reason()) is not None:
        found.append(f"stops the agent: {_cut(stop_reason)}")
    goes_on = not found
    specific = output.hook_specific_output or {}
    for effect in spec.effects:
        if specific.get(effect.field) and effect.if_allowed in (None, goes_on):
            found.append(_WORDS[effect](specific[effect.field]))
    if output.system_message and spec.awaited:
        found.append(f"tells the model: {_cut(output.system_message)}")
    if output.suppress_output and spec.suppressible:
        found.append("hides it from the screen")
    return found


def would_have(event_name: HookEventName, output: DefaultHookOutput) -> list[str]:
    """Return what an output would have done if its hook did not only observe.

    >>> from llxprt_hooks import DefaultHookOutput
    >>> would_have(HookEventName.BEFORE_TOOL, DefaultHookOutput({"decision": "deny", "reason": "no secrets"}))
    ['would have blocked: no secrets']
    """
    return [_would_have(phrase) for phrase in effects(event_name, output)]


def _would_have(phrase: str) -> str:
    for does, done in _DONE.items():
        if phrase.startswith(does):
            return f"would have {done}{phrase.removeprefix(does)}"
    return f"would have had an effect: {phrase}"


_DONE = {"blocks it": "blocked", "stops the agent": "stopped the agent"}


def because(reason: str) -> str:
    """Return a reason, to follow words that say what happened. That of ``failClosed`` begins with such words itself.

    >>> because("no secrets"), because("blocked because failClosed is set")
    (': no secrets', ', because failClosed is set')
    """
    return f": {reason}".replace(": blocked because ", ", because ", 1)


def _tool_config(value: Mapping[str, Any]) -> str:
    names = value.get("allowedFunctionNames")
    if value.get("mode") == "NONE" or names == []:
        return "allows no tool"
    return f"allows only: {', '.join(names)}" if names else f"sets the tool mode to {value.get('mode')}"


def _json(value: object) -> str:
    return _cut(decode_text(write_json(value)))


def _cut(text: str) -> str:
    return shorten(one_line(text), _LONGEST)


_WORDS: Mapping[Effect, Callable[[Any], str]] = {
    Effect.REWRITE_ARGUMENTS: lambda value: f"rewrites the arguments: {_json(value)}",
    Effect.ADD_CONTEXT: lambda value: f"adds for the model: {_cut(value)}",
    Effect.CHANGE_REQUEST: lambda value: f"changes the request: {', '.join(value)}",
    Effect.ANSWER_FOR_MODEL: lambda _: "answers instead of the model",
    Effect.REPLACE_ANSWER: lambda _: "replaces the answer",
    Effect.RESTRICT_TOOLS: _tool_config,
}
