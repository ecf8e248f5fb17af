"""Which message is which, after a hook has been at the list."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llxprt_hooks.model.alignment import Message, Step, align, rearrange


def messages(line: str) -> list[Message]:
    """``"u:hello m:hi"`` as messages; ``_`` stands for a space."""
    names = {"u": "user", "m": "model", "s": "system"}
    return [Message(names[word[0]], word[2:].replace("_", " ")) for word in line.split()]


@pytest.mark.requirement("HOOK-078")
@pytest.mark.parametrize(
    ("old", "new", "sources"),
    [
        ("u:a m:b u:c", "u:a m:b u:c", [0, 1, 2]),
        ("u:a m:b u:c", "u:a m:b u:c u:d", [0, 1, 2, None]),
        ("u:a m:b u:c", "s:x u:a m:b u:c", [None, 0, 1, 2]),
        ("u:a m:b u:c", "u:a u:c", [0, 2]),
        ("u:a m:b u:c", "u:a m:B u:c", [0, 1, 2]),
        ("u:a m:b u:c", "u:a u:B u:c", [0, None, 2]),
        ("u:a m:b u:c", "u:A m:B u:C", [0, 1, 2]),
        ("u:a m:b", "m:b u:a", [None, 0]),
        # The first of two copies is the original.
        ("u:a m:b", "u:a u:a m:b", [0, None, 1]),
        ("u:go m:x u:go m:y", "u:go m:x m:y", [0, 1, 3]),
        # A changed message is recognised beside new ones.
        ("u:hello_world", "u:other u:hello_there_world", [None, 0]),
        ("u:hello_world", "u:hello_there_world u:other", [0, None]),
        ("u:hello m:b", "s:x u:hello! m:b", [None, 0, 1]),
        # Of messages that were moved, the longest run that is still in order is kept.
        ("u:a u:b u:c u:d u:e u:f u:g", "u:c u:d u:e u:b u:f", [2, 3, 4, None, 5]),
        # No anchors: the most messages that can be kept are kept.
        ("u:a u:b u:a u:b", "u:b u:a u:b u:a", [1, 2, 3, None]),
        ("", "u:a", [None]),
        ("u:a", "", []),
    ],
)
def test_alignment(old: str, new: str, sources: list[Any]) -> None:
    assert align(messages(old), messages(new)) == sources


WORDS = st.lists(st.builds(Message, st.sampled_from(["user", "model"]), st.sampled_from("abcdefgh")), max_size=12)


@given(WORDS, WORDS)
def test_alignment_keeps_order_and_roles(old: Any, new: Any) -> None:
    sources = align(old, new)

    found = [source for source in sources if source is not None]
    assert found == sorted(set(found))
    assert len(sources) == len(new)
    assert all(source is None or old[source].role == message.role for source, message in zip(sources, new, strict=True))


def test_new_messages_follow_the_unit_and_what_is_left_of_removed_ones() -> None:
    turns = messages("u:a m:b u: m:c u:d")
    glued = [False, False, True, False, False]

    steps = rearrange(turns, glued, messages("u:a s:new u:d"))

    assert steps == [
        Step(0, Message("user", "a")),
        Step(1, Message("model", "")),
        Step(2, Message("user", "")),
        Step(3, Message("model", "")),
        Step(None, Message("system", "new")),
        Step(4, Message("user", "d")),
    ]
