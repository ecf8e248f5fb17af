"""A conversation as every SDK has one: turns with a role, a text, tool calls and results, and what hooks do not see.

A translator reads an SDK's messages as turns. Hooks see the texts, and what they return is matched with the turns here
(D-13), so that the SDK's part is small: it rebuilds its messages from the turns, of which each is unchanged, has
another text, or is new.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from llxprt_hooks.model.alignment import Message, rearrange

if TYPE_CHECKING:
    from llxprt_hooks.model.format import LLMMessage

CallKeys: TypeAlias = tuple[Hashable, ...]
"""What a tool call and its result have in common, the best match first: the id, or the name where there is no id."""


class Turn(NamedTuple):
    """One message of a conversation."""

    role: str
    """``user``, ``model`` or ``system``."""
    text: str
    """What hooks are shown of it; ``""`` where there is nothing to show."""
    source: Any = None
    """The SDK's own message, with all that hooks do not see; None for a message that a hook added."""
    calls: tuple[CallKeys, ...] = ()
    """The tool calls in it."""
    results: tuple[CallKeys, ...] = ()
    """The tool calls whose results it holds."""
    binds_next: bool = False
    """Nothing may be put between this turn and the next one."""
    changed: bool = False
    """The text is not that of the source any more; ``""``: only what hooks do not see is left of the message."""


def messages_of(turns: Sequence[Turn]) -> list[LLMMessage]:
    """What hooks are shown of a conversation."""
    return [{"role": turn.role, "content": turn.text} for turn in turns if turn.text]


def rewrite(turns: Sequence[Turn], wanted: Sequence[LLMMessage]) -> list[Turn] | None:
    """The conversation with the messages that a hook wants; None where these are the ones that it was shown.

    >>> rewrite([Turn("user", "Hi", source="m1")], [{"role": "user", "content": "Hello"}])[0].changed
    True
    """
    if wanted == messages_of(turns):
        return None
    messages = [Message(turn.role, turn.text) for turn in turns]
    steps = rearrange(messages, _glued(turns), [Message(message["role"], message["content"]) for message in wanted])
    return [
        Turn(*message) if index is None else _with_text(turns[index], message.text)
        for index, message in ((step.turn, step.message) for step in steps)
    ]


def _with_text(turn: Turn, text: str) -> Turn:
    return turn if text == turn.text else turn._replace(text=text, changed=True)


def _glued(turns: Sequence[Turn]) -> list[bool]:
    """Which turns stay with the one before: those without text, and all from a tool call to its result."""
    glued: list[bool] = []
    open_calls: defaultdict[Hashable, deque[int]] = defaultdict(deque)
    reaches: list[int] = []
    for index, turn in enumerate(turns):
        is_bound = index > 0 and turns[index - 1].binds_next
        glued.append(not turn.text or bool(turn.results) or is_bound)
        reaches.append(min((_taken(open_calls, keys, index) for keys in turn.results), default=index))
        for keys in turn.calls:
            for key in keys:
                open_calls[key].append(index)
    reach = len(turns)
    for index in reversed(range(len(turns))):
        reach = min(reach, reaches[index])
        glued[index] = glued[index] or reach < index
    return glued


def _taken(open_calls: Mapping[Hashable, deque[int]], keys: CallKeys, default: int) -> int:
    """The turn of the call that a result belongs to, which is then no longer open."""
    for key in keys:
        if open_calls.get(key):
            return open_calls[key].popleft()
    return default
