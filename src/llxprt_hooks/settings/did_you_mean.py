"""What an unknown name in settings was probably meant to be: an event, or a key of a hook or group.

``definitions`` warns with it, ``llxprt-hooks validate`` reports it. It is imported when an unknown name is found.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Final

from llxprt_hooks._support.text import closest, letters
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.hook_entries import SWITCHES
from llxprt_hooks.settings.other_agents import CLAUDE_EVENTS
from llxprt_hooks.settings.schema import HOOK_FIELDS, own_fields

if TYPE_CHECKING:
    from llxprt_hooks.settings.shape import Shape

_EVENT_WORDS: Final = (
    (re.compile(r"^on"), ""),
    (re.compile(r"^(?:pre|before)(?=compact|compress)"), "pre"),
    (re.compile(r"^pre(?!comp)"), "before"),
    (re.compile(r"^post"), "after"),
    (re.compile(r"compact(?:ion)?|compression"), "compress"),
    (re.compile(r"llm"), "model"),
    (re.compile(r"(?<=session)(?:begin|open|init)"), "start"),
    (re.compile(r"(?<=session)(?:stop|close|exit|finish)"), "end"),
    (re.compile(r"(?:use|call|execution|request|response|hook|event|(?<!s)s)$"), ""),
)
"""Words in other names of events, and the words used here."""

FOREIGN_KEYS: Final[Mapping[str, str]] = {
    "args": "Put the arguments into `command`.",
    "async": "Run the script in the background: `(my-script &)`; the agent does not wait for it.",
    "asyncRewake": "There is no counterpart here.",
    "condition": "Read stdin in the script and decide there.",
    "cwd": "Hooks run in the project folder; start the command with `cd … &&`.",
    "env": "Set variables in the command: `NAME=value my-script`.",
    "environment": "Set variables in the command: `NAME=value my-script`.",
    "if": "Read stdin in the script and decide there, or narrow the group's `matcher`.",
    "model": "Call a model from a script.",
    "once": "Record in the script that it has run.",
    "prompt": "Call a model from a script.",
    "shell": "Commands are run by bash, or by sh if bash is not installed; for another shell write `zsh -c '…'`.",
    "source": "The source of a hook is the file that contains it.",
    "statusMessage": "Use `description`.",
    "url": 'To send events to an address, write `"type": "http"` and the `url`, without `command`.',
}
"""Hook keys of other agents, and what to do here."""

COMMENTS: Final = ("$schema", "$comment", "//", "_comment", "comment")
"""Keys for people or editors."""

_IN_A_GROUP, _IN_A_HOOK, _AT_THE_TOP, _NOT_IN_AN_EXTENSION = (
    "Move it to the group, next to `hooks`.",
    "Move it to a hook, next to `type`.",
    "Move it to the top level of the file.",
    "An extension cannot turn hooks on or off; use a settings file.",
)
_BELONGS: Final[Mapping[str, Mapping[str, str]]] = {
    "hook": {
        "matcher": _IN_A_GROUP,
        "sequential": _IN_A_GROUP,
        "hooks": "A hook cannot contain hooks; list them in the group.",
    },
    "group": dict.fromkeys(("type", *(key for key in HOOK_FIELDS if key != "description")), _IN_A_HOOK),
    "hooks": {
        **dict.fromkeys(SWITCHES, _NOT_IN_AN_EXTENSION),
        "enableHooks": _AT_THE_TOP,
        "notifications": "Move it to `hooksConfig`, next to `hooks`.",
        "hooksConfig": _AT_THE_TOP,
    },
    "hooksConfig": {"enableHooks": _AT_THE_TOP, "hooks": _AT_THE_TOP},
    "extension": dict.fromkeys(("enableHooks", "hooksConfig"), _NOT_IN_AN_EXTENSION),
}
"""Per shape: misplaced keys, and where they belong."""

NOT_EVENTS: Final = frozenset(_BELONGS["hooks"])
"""Keys that are not events but are often put among them."""

_KEY_WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "hook": {
        **dict.fromkeys(("cmd", "script", "exec", "run", "bash", "shellCommand"), "command"),
        **dict.fromkeys(("timeoutMs", "timeoutMillis", "timeoutSeconds", "timeoutSec"), "timeout"),
        **dict.fromkeys(("id", "title", "hookName"), "name"),
        **dict.fromkeys(("kind",), "type"),
    },
    "group": {
        **dict.fromkeys(("match", "pattern", "tool", "tools", "toolName", "tool_name", "filter"), "matcher"),
        **dict.fromkeys(("hook", "commands", "handlers", "actions"), "hooks"),
        **dict.fromkeys(("serial", "chain"), "sequential"),
    },
    "hooksConfig": dict.fromkeys(("disable", "off", "disabledHooks"), "disabled"),
    "settings": dict.fromkeys(("hooksEnabled", "hooks_enabled"), "enableHooks"),
}
"""Per shape: other words for its keys."""

KEY_ADVICE: Final[Mapping[str, Mapping[str, str]]] = {
    "hook": {
        **FOREIGN_KEYS,
        **dict.fromkeys(("enabled", "disabled"), "To disable the hook, add its name to `hooksConfig.disabled`."),
    },
    "settings": {"disableAllHooks": 'Write `"enableHooks": false`.'},
}
"""Per shape: keys without a counterpart, and what to do instead."""


def same_letters(name: str, other: str) -> bool:
    """Return whether two names differ only in case and separators."""
    return letters(name) == letters(other)


def meant_event(name: str) -> HookEventName | None:
    """Return the intended event for an unknown name: Claude Code's name for it, or a typo."""
    if (foreign := claude_event(name)) is not None:
        return CLAUDE_EVENTS[foreign]
    meant = letters(name)
    for word, ours in _EVENT_WORDS:
        meant = word.sub(ours, meant)
    close = next((event for event in HookEventName if letters(event) == meant), None) or closest(name, HookEventName)
    return HookEventName(close) if close else None


def claude_event(name: str) -> str | None:
    """Return Claude Code's event with this name, ignoring case."""
    return next((event for event in CLAUDE_EVENTS if same_letters(event, name)), None)


def event_fix(name: str) -> str:
    """Return what to do about an unknown event, as a sentence."""
    foreign, meant = claude_event(name), meant_event(name)
    if foreign and meant:
        return f"Did you mean `{meant}`? It is the counterpart of Claude Code's `{foreign}`."
    if foreign:
        return f"Claude Code's `{foreign}` has no counterpart here; remove it."
    return (
        f"Did you mean `{meant}`?" if meant else f"The events are {', '.join(f'`{event}`' for event in HookEventName)}."
    )


def belongs(shape: Shape) -> Mapping[str, str]:
    """Return the misplaced keys of a shape, and where they belong."""
    misplaced = _BELONGS.get(shape.name, {})
    return {**dict.fromkeys(own_fields(), _IN_A_HOOK), **misplaced} if shape.name == "group" else misplaced


def meant_key(shape: Shape, key: str) -> str | None:
    """Return the key of the shape that another key is probably a misspelling of."""
    if key in COMMENTS or key in belongs(shape) or key in KEY_ADVICE.get(shape.name, {}):
        return None
    words = _KEY_WORDS.get(shape.name, {})
    other = next((ours for word, ours in words.items() if ours in shape.fields and same_letters(word, key)), None)
    # An open object has unrelated keys, so the name must be very similar; "tool" is not a typo of "tools".
    candidates = [each for each in shape.fields if each != "tools"]
    return other or closest(key, candidates, similarity=0.88 if shape.open else 0.75)


def why_unread(shape: Shape, key: str, given: Container[str]) -> str | None:
    """Return why an unknown key of an object has no effect, if it was probably meant to have one; else None.

    ``given`` has all keys of the object.
    """
    home = belongs(shape).get(key)
    if home is not None:
        return f"it has no effect here. {home}"
    meant = meant_key(shape, key)
    return f"unknown key. Did you mean `{meant}`?" if meant and meant not in given else None
