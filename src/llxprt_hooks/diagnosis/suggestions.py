"""Suggests the intended event for an unknown name."""

from __future__ import annotations

import re
from typing import Final

from llxprt_hooks.diagnosis.foreign_names import CLAUDE_EVENTS
from llxprt_hooks.events import HookEventName
from llxprt_hooks.text import closest, letters

_OTHER_WORDS: Final = (
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


def same_letters(name: str, other: str) -> bool:
    """Return whether two names differ only in case and separators."""
    return letters(name) == letters(other)


def meant_event(name: str) -> HookEventName | None:
    """Return the intended event for an unknown name: Claude Code's name for it, or a typo."""
    if (foreign := claude_event(name)) is not None:
        return CLAUDE_EVENTS[foreign]
    meant = letters(name)
    for word, ours in _OTHER_WORDS:
        meant = word.sub(ours, meant)
    close = next((event for event in HookEventName if letters(event) == meant), None) or closest(name, HookEventName)
    return HookEventName(close) if close else None


def claude_event(name: str) -> str | None:
    """Return Claude Code's event with this name, ignoring case."""
    return next((event for event in CLAUDE_EVENTS if same_letters(event, name)), None)
