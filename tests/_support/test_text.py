"""Text for people: what reaches a terminal, how it is cut, which name was meant."""

from __future__ import annotations

import doctest
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llxprt_hooks._support import text
from llxprt_hooks._support.text import PROSE, closest, escape_for_terminal, escape_in_json, shorten

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()))
"""All code points, lone surrogates included."""

ESCAPED = {
    "control": ("\x1b[2J\x07\r\x7f", r"\x1b[2J\x07\r\x7f"),
    "C1": ("\x85\x9b31m", r"\x85\x9b31m"),
    "bidirectional": ("\u202a\u202e\u2066\u2069\u200e\u200f\u061c", r"\u202a\u202e\u2066\u2069\u200e\u200f\u061c"),
    "zero width": ("\u200b\u200c\u200d\u2060\ufeff", r"\u200b\u200c\u200d\u2060\ufeff"),
    "line and paragraph separator": ("\u2028\u2029", r"\u2028\u2029"),
    "soft hyphen": ("\u00ad", r"\xad"),
    "tag characters": ("\U000e0001\U000e0041\U000e007f", r"\U000e0001\U000e0041\U000e007f"),
    "variation selectors": ("\ufe00\U000e0100rm\ufe0f \ufe0e", r"\ufe00\U000e0100rm\ufe0f \ufe0e"),
    "joiner of emoji, in a name": ("👩\u200d💻", r"👩\u200d💻"),
    "stacked marks": ("e" + "\u0301" * 6 + "!", "e" + "\u0301" * 4 + r"\u0301\u0301!"),
    "blank letters": ("\u3164\u115f\uffa0\u2800\u034f", r"\u3164\u115f\uffa0\u2800\u034f"),
    "surrogate": ("\ud800", r"\ud800"),
    "spaces": ("\xa0\u3000", r"\xa0\u3000"),
    "line end and tab": ("a\n\tb", r"a\n\tb"),
}


@pytest.mark.parametrize(("raw", "shown"), ESCAPED.values(), ids=ESCAPED)
def test_what_a_terminal_would_act_on_or_not_show_is_escaped(raw: str, shown: str) -> None:
    assert escape_for_terminal(raw) == shown


@pytest.mark.parametrize(
    "plain", ["", "rm -rf 'a b' \\n ~", "Ünï 漢字 かな", "⚠\ufe0f 👩 🇫🇷 1\ufe0f\u20e3", "a\u0301 \u0e33 नमस्ते"]
)
def test_printable_text_is_left_alone(plain: str) -> None:
    assert escape_for_terminal(plain) == plain


def test_prose_keeps_lines_tabs_and_spaces_and_nothing_else_that_is_not_printable() -> None:
    assert escape_for_terminal("a\n\tb\xa0!\u3000\u200b\r", keep=PROSE) == "a\n\tb\xa0!\u3000\\u200b\\r"


@pytest.mark.parametrize("emoji", ["👩\u200d💻", "❤\ufe0f\u200d🔥", "🧑🏽\u200d🚀"])
def test_prose_keeps_the_joiner_inside_an_emoji(emoji: str) -> None:
    assert escape_for_terminal(emoji, keep=PROSE) == emoji


@pytest.mark.parametrize("raw", ["rm\u200dx", "\u200d👩", "👩\u200d", "👩\u200drm", "\u200d\u200d"])
def test_a_joiner_elsewhere_is_escaped_in_prose_too(raw: str) -> None:
    assert "\u200d" not in escape_for_terminal(raw, keep=PROSE)


@given(raw=st.text())
def test_json_means_the_same_and_shows_nothing_raw(raw: str) -> None:
    shown = escape_in_json(json.dumps({"text": raw}, ensure_ascii=False))

    assert shown == escape_for_terminal(shown)
    assert json.loads(shown) == {"text": raw}


@given(raw=ANY_TEXT, keep=st.sampled_from(["", "\n\t", PROSE]))
def test_no_character_gets_through_that_is_neither_printable_nor_kept(raw: str, keep: str) -> None:
    assert {char for char in escape_for_terminal(raw, keep=keep) if not char.isprintable()} <= set(keep)


@given(raw=ANY_TEXT, length=st.integers(1, 20))
def test_a_shortened_text_fits_and_begins_like_the_whole(raw: str, length: int) -> None:
    short = shorten(raw, length)

    assert len(short) <= length
    assert short == raw or (short.endswith("…") and raw.startswith(short[:-1]) and len(raw) > length)


@pytest.mark.parametrize(
    ("name", "candidates", "meant"),
    [
        ("beforetool", ["AfterTool", "BeforeTool"], "BeforeTool"),
        ("fail_closed", ["failClosed"], "failClosed"),
        ("lits", ["log", "list"], "list"),
        ("migrate", ["list", "log"], None),
        ("x" * 101, ["x" * 101], None),
        ("", ["list"], None),
    ],
)
def test_the_closest_name_is_the_one_with_nearly_the_same_letters(
    name: str, candidates: list[str], meant: str | None
) -> None:
    assert closest(name, candidates) == meant


def test_the_examples_are_right() -> None:
    assert doctest.testmod(text).failed == 0
