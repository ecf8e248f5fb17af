"""A search with any expression ends, and has the answer that the ECMAScript engine would have in the end."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from regress import Regex, RegressError

from llxprt_hooks import HookEventName
from llxprt_hooks.settings import search
from llxprt_hooks.settings.matcher import compile_matcher

PARTS = (  # noqa: SIM905 - a list literal would take a page
    r"a b A _ - . [ab] [^a] [^] [] \w \d \b \B ^ $ ( (?: (?= (?! (?<= (?<! (?i: (?s: (?m: (?i-s: (?<n> ) ) ) | * + ? "
    r"{2} {1,2} {0,} { } ] \. \x41 \u0061 \u{61} \n \c \cA {,2} \0 \07 *? ?? \k \8 \- \p{L}"
).split()


@given(st.lists(st.sampled_from(PARTS), max_size=10), st.text("abA_-.1\n é😀{}p]", max_size=6))
def test_both_ways_to_search_agree(parts: list[str], text: str) -> None:
    pattern = "".join(parts)
    pattern += ")" * (pattern.count("(") - pattern.count(")"))
    try:
        expected = Regex(pattern).find(text) is not None
    except RegressError:
        assume(False)

    assert search._is_found(pattern, text) is expected


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^(a+)+$", "a" * 60 + "!", False),
        ("^(a+)+$", "a" * 60, True),
        ("^(a|a)*$", "a" * 60 + "!", False),
        ("^(?:a?){60}a{60}$", "a" * 59, False),
        ("^(?:.*_)*(?!x)y$", "a_" * 100 + "x", False),
        ("(?<=^(?:a+)+)!", "b" + "a" * 60 + "!", False),
        (".*a.*b.*c.*d.*e.*f$", "abcde" * 40, False),
        pytest.param(r"^(a+)+\1$", "a" * 60 + "!", True, id="a back-reference cannot be bounded, so it holds"),
        ("^(?:(?:a{999}){999}){999}$", "a", False),
        ("^(?:(?:(?:a+)+)+)+$", "a" * 60 + "!", False),
        pytest.param("^(?:(?:(?:a+)+)+)+$", "a" * 99_999 + "!", True, id="nor can what is too large"),
        pytest.param("(?:a|b)*x{" + "9" * 5000 + "}", "a", True, id="nor a number that nobody counts to"),
        pytest.param("tool_1|" * 4000 + "tool_2", "tool_2", True, id="thousands of alternatives are compared"),
        pytest.param("a|" * 1_000_000 + "b", "c", True, id="and more than that are not read"),
        pytest.param(r"rm\s+-rf", "x" * 100_000, False, id="a text may be long"),
        pytest.param("rm|dd", "x" * 3_000_000, False, id="and longer"),
    ],
)
def test_no_matcher_hangs(pattern: str, text: str, matches: bool) -> None:
    assert compile_matcher(HookEventName.BEFORE_TOOL, pattern)(text) is matches
