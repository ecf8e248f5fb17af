"""What a hook's output does, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from llxprt_hooks.events import CAN_BLOCK, HookEventName
from llxprt_hooks.wire import decode_text, write_json

if TYPE_CHECKING:
    from llxprt_hooks.outputs import DefaultHookOutput

_LONGEST = 100


def effects(event_name: HookEventName, output: DefaultHookOutput) -> list[str]:
    """The effects of an output for its event, a phrase each; empty when it has none.

    >>> from llxprt_hooks import DefaultHookOutput
    >>> effects(HookEventName.BEFORE_TOOL, DefaultHookOutput({"decision": "deny", "reason": "no secrets"}))
    ['blocks it: no secrets']
    """
    found: list[str] = []
    if output.is_blocking_decision() and event_name in CAN_BLOCK:
        found.append(f"blocks it: {output.get_effective_reason()}")
    stop_reason = output.get_stop_reason()
    if stop_reason is not None:
        found.append(f"stops the agent: {stop_reason}")
    specific = output.hook_specific_output or {}
    for field, word in _WORDS.get(event_name, {}).items():
        if specific.get(field):
            found.append(word(specific[field]))
    if output.system_message:
        found.append(f"tells the model: {_cut(output.system_message)}")
    if output.suppress_output:
        found.append("hides it from the screen")
    return found


def _tool_config(value: Mapping[str, Any]) -> str:
    names = value.get("allowedFunctionNames")
    if value.get("mode") == "NONE" or names == []:
        return "allows no tool"
    return f"allows only: {', '.join(names)}" if names else f"sets the tool mode to {value.get('mode')}"


def _json(value: object) -> str:
    return _cut(decode_text(write_json(value)))


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


_WORDS: Mapping[HookEventName, Mapping[str, Callable[[Any], str]]] = {
    HookEventName.BEFORE_TOOL: {"tool_input": lambda value: f"rewrites the arguments: {_json(value)}"},
    HookEventName.AFTER_TOOL: {"additionalContext": lambda value: f"adds for the model: {_cut(value)}"},
    HookEventName.BEFORE_MODEL: {
        "llm_request": lambda value: f"changes the request: {', '.join(value)}",
        "llm_response": lambda _: "answers in the model's place",
    },
    HookEventName.AFTER_MODEL: {"llm_response": lambda _: "replaces the answer"},
    HookEventName.BEFORE_TOOL_SELECTION: {"toolConfig": _tool_config},
}
