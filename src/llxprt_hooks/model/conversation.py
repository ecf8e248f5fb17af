"""The neutral conversation: turns with a role, a text, tool calls and results, and data that hooks do not see.

A translator reads an SDK's messages as turns. Hooks see the texts; the messages that they return are matched with the
turns here (D-13). The translator then only rebuilds its messages from turns that are unchanged, have a changed text, or
are new.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from llxprt_hooks.model.alignment import Message, rearrange

if TYPE_CHECKING:
    from llxprt_hooks.model.format import LLMMessage

CallKeys: TypeAlias = tuple[Hashable, ...]
"""Keys that a tool call and its result share, the best match first: the id, then the name."""


class Turn(NamedTuple):
    role: str
    """``user``, ``model`` or ``system``."""
    text: str
    """The text that hooks see; ``""`` if there is none."""
    source: Any = None
    """The SDK's own message, with everything that hooks do not see; None for a message that a hook added."""
    calls: tuple[CallKeys, ...] = ()
    results: tuple[CallKeys, ...] = ()
    """The tool calls whose results are in it."""
    binds_next: bool = False
    """Whether nothing may be inserted between this turn and the next."""
    changed: bool = False
    """Whether the text differs from that of the source; if it is ``""``, only the data that hooks do not see stays."""


def messages_of(turns: Sequence[Turn]) -> list[LLMMessage]:
    """Return the messages that hooks see."""
    return [{"role": turn.role, "content": turn.text} for turn in turns if turn.text]


def rewrite(turns: Sequence[Turn], wanted: Sequence[LLMMessage]) -> list[Turn] | None:
    """Return the conversation with a hook's messages; None if the hook returned the messages that it was shown.

    >>> rewrite([Turn("user", "Hi", source="m1")], [{"role": "user", "content": "Hello"}])[0].changed
    True
    """
    if wanted == messages_of(turns):
        return None
    messages = [Message(turn.role, turn.text) for turn in turns]
    steps = rearrange(messages, glued(turns), [Message(message["role"], message["content"]) for message in wanted])
    return [
        Turn(message.role, message.text) if index is None else with_text(turns[index], message.text)
        for index, message in ((step.turn, step.message) for step in steps)
    ]


def with_text(turn: Turn, text: str) -> Turn:
    """Return a turn with a text, which may be that of its source."""
    return turn if text == turn.text else turn._replace(text=text, changed=True)


def glued(turns: Sequence[Turn]) -> list[bool]:
    """Return which turns stay with the previous one: those without text, and all from a tool call to its result."""
    glued: list[bool] = []
    open_calls: defaultdict[Hashable, deque[int]] = defaultdict(deque)
    reaches: list[int] = []
    for index, turn in enumerate(turns):
        is_bound = index > 0 and turns[index - 1].binds_next
        # A turn that binds the next belongs to that one, and not to the previous.
        is_silent = not turn.text and not turn.binds_next
        glued.append(is_silent or bool(turn.results) or is_bound)
        reaches.append(min((_close_call(open_calls, keys, index) for keys in turn.results), default=index))
        for keys in turn.calls:
            for key in keys:
                open_calls[key].append(index)
    reach = len(turns)
    for index in reversed(range(len(turns))):
        reach = min(reach, reaches[index])
        glued[index] = glued[index] or reach < index
    return glued


def _close_call(open_calls: Mapping[Hashable, deque[int]], keys: CallKeys, default: int) -> int:
    """Remove the call that a result belongs to from the open ones; return its turn."""
    for key in keys:
        if open_calls.get(key):
            return open_calls[key].popleft()
    return default
