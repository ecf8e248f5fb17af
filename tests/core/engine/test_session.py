"""The notes of a session: what hooks said for the next model request."""

from __future__ import annotations

from llxprt_hooks import Config
from llxprt_hooks.core.engine.session import Session


def test_notes_that_a_framework_has_kept_are_put_back() -> None:
    session = Session(Config(), "s1", "")
    session.notes = ("be polite",)

    assert session.next_run().notes == ("be polite",)
    session.exchange_notes(("be polite", "never said"), ("be brief",))
    assert session.notes == ("be brief",)


def test_each_agent_of_a_run_has_its_own_notes_and_finds_them_in_the_next_run() -> None:
    session = Session(Config(), "s1", "")
    session.part_of("one").exchange_notes((), ("be brief",))

    assert (session.notes, session.part_of("two").notes) == ((), ())
    assert session.part_of("one").notes == session.next_run().part_of("one").notes == ("be brief",)


def test_a_run_inside_of_another_shares_its_stop_and_not_its_notes() -> None:
    session = Session(Config(), "s1", "")
    session.exchange_notes((), ("be brief",))
    nested = session.nested_run()

    assert nested.notes == ()
    nested.stop("enough", None)
    assert session.stop_reason == session.part_of("one").stop_reason == "enough"
