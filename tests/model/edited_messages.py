"""Random changes to messages, as hooks make them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

# Few texts, so that messages repeat and alignment has something to get wrong.
TEXTS = st.sampled_from(["yes", "no", "go on", "look at this", "look at that", "\ud800"])
ROLES = st.sampled_from(["user", "model"])
MESSAGES = st.builds(lambda role, text: {"role": role, "content": text}, ROLES, TEXTS)


@st.composite
def edited(draw: st.DrawFn, messages: Any) -> Any:
    """Draw the messages after hooks have inserted, removed, edited, repeated, moved or reversed some."""
    messages = list(messages)
    for edit in draw(st.lists(st.sampled_from(["insert", "remove", "edit", "repeat", "move", "reverse"]), max_size=4)):
        place = draw(st.integers(0, len(messages)))
        if edit == "insert":
            messages.insert(place, draw(MESSAGES))
        elif edit == "reverse":
            messages.reverse()
        elif place < len(messages):
            chosen = messages[place]
            if edit in ("remove", "move"):
                del messages[place]
            if edit in ("repeat", "move"):
                messages.insert(draw(st.integers(0, len(messages))), dict(chosen))
            if edit == "edit":
                messages[place] = {**chosen, "content": draw(TEXTS)}
    return messages
