"""The neutral conversation: what stays together whatever a hook adds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llxprt_hooks.model.conversation import Turn, messages_of, rewrite

if TYPE_CHECKING:
    from collections.abc import Sequence


def texts(turns: Sequence[Turn]) -> list[str]:
    return [turn.text or turn.source for turn in turns]


def with_message_after(turns: Sequence[Turn], place: Any) -> Any:
    shown = messages_of(turns)
    return rewrite(turns, [*shown[:place], {"role": "user", "content": "new"}, *shown[place:]])


def test_nothing_is_put_after_a_turn_that_binds_the_next() -> None:
    turns = [Turn("user", "a", 1), Turn("model", "reasoning", 2, binds_next=True), Turn("model", "b", 3)]

    assert texts(with_message_after(turns, 2)) == ["a", "reasoning", "b", "new"]
    assert texts(with_message_after(turns, 1)) == ["a", "new", "reasoning", "b"]


def test_nothing_is_put_between_a_call_and_its_result() -> None:
    turns = [
        Turn("user", "a", 1),
        Turn("model", "calling", 2, calls=(("c1",), ("c2",))),
        Turn("user", "first", 3, results=(("c1",),)),
        Turn("model", "meanwhile", 4),
        Turn("user", "second", 5, results=(("c2",),)),
        Turn("user", "b", 6),
    ]

    for place in range(2, 6):
        assert texts(with_message_after(turns, place)) == [
            *("a", "calling", "first", "meanwhile", "second"),
            *("new", "b"),
        ]


def test_unchanged_turns_are_the_same_objects_and_new_ones_have_no_source() -> None:
    turns = [Turn("user", "a", 1), Turn("model", "b", 2)]

    first, second, third = with_message_after(turns, 2)

    assert first is turns[0]
    assert second is turns[1]
    assert third == Turn("user", "new")


def test_the_messages_that_were_shown_change_nothing() -> None:
    turns = [Turn("user", "a", 1), Turn("user", "", 2), Turn("model", "b", 3)]

    assert rewrite(turns, messages_of(turns)) is None


def test_a_turn_at_the_start_that_binds_the_next_does_not_bind_more() -> None:
    turns = [Turn("model", "", 1, binds_next=True), Turn("model", "a", 2), Turn("user", "b", 3)]

    assert texts(with_message_after(turns, 1)) == [1, "a", "new", "b"]
