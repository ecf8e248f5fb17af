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
