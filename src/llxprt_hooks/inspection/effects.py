"""What a hook's output does, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from llxprt_hooks.engine.results import is_blocked
from llxprt_hooks.events import HookEventName
from llxprt_hooks.model.outputs import create_specific_hook_output
from llxprt_hooks.protocol.json_codec import decode_text, write_json
from llxprt_hooks.text import shorten

if TYPE_CHECKING:
    from llxprt_hooks.protocol.outputs import DefaultHookOutput

_LONGEST = 100


def effects(event_name: HookEventName, output: DefaultHookOutput) -> list[str]:
    """The effects of an output for its event, a phrase each; empty when it has none.

    >>> from llxprt_hooks import DefaultHookOutput
    >>> effects(HookEventName.BEFORE_TOOL, DefaultHookOutput({"decision": "deny", "reason": "no secrets"}))
    ['blocks it: no secrets']
    """
    output = create_specific_hook_output(event_name, output.to_dict())  # with BeforeTool's compatibility fields
    found: list[str] = []
    if is_blocked(event_name, output):
        found.append(f"blocks it: {_cut(output.get_effective_reason())}")
    stop_reason = output.get_stop_reason()
    if stop_reason is not None:
        found.append(f"stops the agent: {_cut(stop_reason)}")
    goes_on = not found
    specific = output.hook_specific_output or {}
    for change in CHANGES.get(event_name, ()):
        if specific.get(change.field) and change.where_it_goes_on in (None, goes_on):
            found.append(change.words(specific[change.field]))
    if output.system_message and event_name in CHANGES:
        found.append(f"tells the model: {_cut(output.system_message)}")
    if output.suppress_output and event_name in _SHOWN:
        found.append("hides it from the screen")
    return found


class Change(NamedTuple):
    """A field of ``hookSpecificOutput`` that an event's caller heeds."""

    field: str
    words: Callable[[Any], str]
    where_it_goes_on: bool | None = None
    """True: only where nothing blocks or stops; False: only where something does; None: always."""


def _tool_config(value: Mapping[str, Any]) -> str:
    names = value.get("allowedFunctionNames")
    if value.get("mode") == "NONE" or names == []:
        return "allows no tool"
    return f"allows only: {', '.join(names)}" if names else f"sets the tool mode to {value.get('mode')}"


def _json(value: object) -> str:
    return _cut(decode_text(write_json(value)))


def _cut(text: str) -> str:
    return shorten(" ".join(text.split()), _LONGEST)


CHANGES: Mapping[HookEventName, Sequence[Change]] = {
    HookEventName.BEFORE_TOOL: (
        Change("tool_input", lambda value: f"rewrites the arguments: {_json(value)}", where_it_goes_on=True),
    ),
    HookEventName.AFTER_TOOL: (Change("additionalContext", lambda value: f"adds for the model: {_cut(value)}"),),
    HookEventName.BEFORE_MODEL: (
        Change("llm_request", lambda value: f"changes the request: {', '.join(value)}", where_it_goes_on=True),
        Change("llm_response", lambda _: "answers in the model's place", where_it_goes_on=False),
    ),
    HookEventName.AFTER_MODEL: (Change("llm_response", lambda _: "replaces the answer"),),
    HookEventName.BEFORE_TOOL_SELECTION: (Change("toolConfig", _tool_config),),
}
"""The events whose callers wait for hooks and heed what they say (HOOK-203), and what they heed."""

_SHOWN = frozenset({HookEventName.AFTER_TOOL, HookEventName.AFTER_MODEL})
"""The events about something that would come to the screen."""
