"""Matchers select the tools that they select in LLxprt Code: ECMAScript regular expressions, searched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llxprt_hooks import HookEventName
from llxprt_hooks.settings.matcher import compile_matcher
from tests.support.hooks import SUBJECTS, planned, registry_of
from tests.support.replies import group

TOOL_EVENTS = (HookEventName.BEFORE_TOOL, HookEventName.AFTER_TOOL)

# Each row was compared with Node's `new RegExp(matcher).test(name)`.
REGULAR_EXPRESSIONS: list[tuple[str, list[str], list[str]]] = [
    ("write_file", ["write_file", "mcp__fs__write_file", "write_file_2"], ["write", "Write_file", "writexfile"]),
    ("write_*", ["write", "write_", "write_file", "rewrite", "writefile"], ["writ", "wri_te", "read_file"]),
    ("write_.*", ["write_", "write_file", "overwrite_all"], ["write", "writefile"]),
    ("^write", ["write_file"], ["overwrite"]),
    ("file$", ["write_file"], ["write_files", "file\n"]),
    ("^(?:read|write)_file$", ["read_file", "write_file"], ["read_file_2", "aread_file"]),
    ("Write|Edit", ["Write", "MultiEdit"], ["write", "edit"]),
    ("write_(?=file)", ["write_file"], ["write_dir"]),
    ("write_(?!file)", ["write_dir", "write_"], ["write_file"]),
    ("(?<=mcp__)write", ["mcp__write"], ["write", "mcp_write"]),
    ("(?<!mcp__)write", ["write", "mcp_write"], ["mcp__write"]),
    (r"^(?<server>\w+)__\k<server>$", ["a__a", "fs__fs"], ["a__b"]),
    (r"(a)\1", ["aa"], ["ab"]),
    (r"\bfile\b", ["a-file", "file"], ["write_file", "files"]),
    (r"\d+", ["tool2"], ["tool", "tool٢"]),
    (r"^\w+$", ["write_file"], ["write-file", "größe"]),
    ("a.c", ["abc", "a-c", "aéc"], ["a\nc", "a\u2028c", "a\u2029c", "ac"]),
    ("[^a-z_]", ["write-file", "é"], ["write_file"]),
    ("[^]", ["a", "\n"], [""]),
    ("[]", [], ["", "a", "[]"]),
    ("x{2}", ["xx", "axxb"], ["x", "x{2}"]),
    ("x{,2}", ["x{,2}"], ["x", "xx"]),
    ("a{", ["a{"], ["a"]),
    ("]", ["]"], ["["]),
    (r"\/", ["a/b"], ["ab"]),
    (r"\_", ["a_b"], ["ab"]),
    (r"\p{L}", ["p{L}"], ["a", "p"]),
    ("[[:alpha:]]", ["a]", ":]"], ["b]", "a"]),
    ("(?:)", ["", "anything"], []),
    ("$^", [""], ["a"]),
    ("é", ["é", "café"], ["e"]),
    ("😀", ["a😀"], ["a"]),
]

# Node refuses each of these with a SyntaxError.
NO_REGULAR_EXPRESSIONS = [
    "[", "(", ")", "*a", "+", "?", "a**", "a++", "a{2,1}", "[b-a]", "(?i)write", "(?P<n>a)", "(?<n", "\\", "(?>a)",
    "(?#note)a", "write_file(", r"(?<n>a)\k<m>",
]  # fmt: skip


@pytest.mark.requirement("HOOK-087", "HOOK-021", "HOOK-032")
@pytest.mark.parametrize("event_name", TOOL_EVENTS)
@pytest.mark.parametrize(
    ("matcher", "selected", "others"), REGULAR_EXPRESSIONS, ids=[row[0] for row in REGULAR_EXPRESSIONS]
)
def test_a_matcher_is_searched_in_the_tool_name_as_ecmascript_does(
    event_name: HookEventName, matcher: str, selected: list[str], others: list[str]
) -> None:
    registry = registry_of({event_name: [group("check", matcher=matcher)]})

    names = [*selected, *others]
    assert [name for name in names if planned(registry, event_name, name) == ["check"]] == selected
    assert [name for name in names if planned(registry, event_name, name) == []] == others


@pytest.mark.requirement("HOOK-088")
@pytest.mark.parametrize("event_name", TOOL_EVENTS)
@pytest.mark.parametrize("matcher", NO_REGULAR_EXPRESSIONS)
def test_a_matcher_that_is_not_a_regular_expression_is_an_exact_string(event_name: HookEventName, matcher: str) -> None:
    registry = registry_of({event_name: [group("check", matcher=matcher)]})

    assert planned(registry, event_name, matcher) == ["check"]
    for name in (f"{matcher}x", f"x{matcher}", "write_file", "a", "", "write"):
        assert planned(registry, event_name, name) == []


@pytest.mark.requirement("HOOK-089", "HOOK-022")
@pytest.mark.parametrize("event_name", TOOL_EVENTS)
@pytest.mark.parametrize("fields", [{}, {"matcher": None}, {"matcher": ""}, {"matcher": "*"}])
@pytest.mark.parametrize("name", ["write_file", "", "*", "größe", "a\nb", "\ud800"])
def test_no_matcher_an_empty_one_and_a_star_select_every_tool(
    event_name: HookEventName, fields: dict[str, str | None], name: str
) -> None:
    assert planned(registry_of({event_name: [group("check", **fields)]}), event_name, name) == ["check"]


@pytest.mark.parametrize(
    ("matcher", "name", "matches"),
    [
        (r"[^\x00-\x7F]", "write\ud800", True),
        ("write.file", "write\ud800file", True),
        (r"^\w+$", "write\ud800", False),
        (r"\?", "write\ud800", False),
        ("😀", "\ud83d\ude00", True),
        ("write", "\ud800write", True),
    ],
)
def test_a_guard_is_not_evaded_by_a_lone_surrogate_in_the_tool_name(matcher: str, name: str, matches: bool) -> None:
    """The answers are Node's."""
    assert compile_matcher(HookEventName.BEFORE_TOOL, matcher)(name) is matches


@given(matcher=st.text(st.characters(), max_size=12), name=st.text(st.characters(), max_size=12))
def test_no_matcher_and_no_tool_name_ever_raise(matcher: str, name: str) -> None:
    for event_name in HookEventName:
        assert compile_matcher(event_name, matcher)(name) in (True, False)


@pytest.mark.parametrize(
    ("event_name", "word", "others"),
    [
        (HookEventName.SESSION_START, "startup", ["resume", "clear", "compress", "startup2", "start"]),
        (HookEventName.SESSION_END, "prompt_input_exit", ["exit", "clear", "logout", "other"]),
        (HookEventName.PRE_COMPRESS, "manual", ["auto", "manually"]),
        (HookEventName.NOTIFICATION, "ToolPermission", ["Tool", "toolpermission", "ToolPermission2"]),
    ],
)
class TestSessionEvents:
    """D-19: SessionStart, SessionEnd, PreCompress and Notification match exactly."""

    def test_a_matcher_selects_its_own_word_and_no_other(
        self, event_name: HookEventName, word: str, others: list[str]
    ) -> None:
        registry = registry_of({event_name: [group("check", matcher=word)]})

        assert planned(registry, event_name, word) == ["check"]
        for other in others:
            assert planned(registry, event_name, other) == []

    def test_a_matcher_is_not_a_regular_expression(
        self, event_name: HookEventName, word: str, others: list[str]
    ) -> None:
        for matcher in (word[:-1] + ".", f"{word}|{others[0]}", ".*", f"^{word}$", word[:4]):
            assert planned(registry_of({event_name: [group("check", matcher=matcher)]}), event_name, word) == []

    @pytest.mark.parametrize("fields", [{}, {"matcher": ""}, {"matcher": "*"}])
    def test_without_a_matcher_every_word_is_selected(
        self, event_name: HookEventName, word: str, others: list[str], fields: dict[str, str]
    ) -> None:
        registry = registry_of({event_name: [group("check", **fields)]})

        for each in (word, *others):
            assert planned(registry, event_name, each) == ["check"]


BLANKS = ["", " ", "\t\n", "\u00a0\u2003\ufeff"]
"""What ``String.prototype.trim`` removes."""


@pytest.mark.requirement("HOOK-087")
@pytest.mark.parametrize("before", BLANKS)
@pytest.mark.parametrize("after", BLANKS)
@pytest.mark.parametrize(
    ("event_name", "matcher", "others"),
    [
        (HookEventName.BEFORE_TOOL, "^write_file$", ["write_file ", "overwrite_file"]),
        (HookEventName.AFTER_TOOL, "write_file", ["read_file"]),
        (HookEventName.SESSION_START, "startup", ["resume", " startup"]),
    ],
)
def test_white_space_around_a_matcher_does_not_count(
    event_name: HookEventName, matcher: str, others: list[str], before: str, after: str
) -> None:
    registry = registry_of({event_name: [group("check", matcher=before + matcher + after)]})

    assert planned(registry, event_name, matcher.strip("^$")) == ["check"]
    for other in others:
        assert planned(registry, event_name, other) == []


@pytest.mark.requirement("HOOK-089")
@pytest.mark.parametrize("matcher", [*BLANKS, " * ", "\t*"])
@pytest.mark.parametrize("event_name", SUBJECTS)
def test_a_blank_matcher_matches_everything(event_name: HookEventName, matcher: str) -> None:
    registry = registry_of({event_name: [group("check", matcher=matcher)]})

    for subject in ("write_file", "startup", "", " ", "anything"):
        assert planned(registry, event_name, subject) == ["check"]


@pytest.mark.parametrize("character", ["\x1c", "\x85", "\u200b"])
def test_what_javascript_does_not_trim_counts(character: str) -> None:
    registry = registry_of({HookEventName.BEFORE_TOOL: [group("check", matcher=f"write_file{character}")]})

    assert planned(registry, HookEventName.BEFORE_TOOL, "write_file") == []


MODEL_EVENTS = (HookEventName.BEFORE_MODEL, HookEventName.AFTER_MODEL, HookEventName.BEFORE_TOOL_SELECTION)
AGENT_EVENTS = (HookEventName.BEFORE_AGENT, HookEventName.AFTER_AGENT)


@pytest.mark.requirement("HOOK-041", "HOOK-051", "HOOK-059")
@pytest.mark.parametrize("event_name", [*MODEL_EVENTS, *AGENT_EVENTS])
@pytest.mark.parametrize("matcher", ["write_file", "^$", "[", "(?!)", "*", "", None])
def test_model_and_agent_events_ignore_matchers(event_name: HookEventName, matcher: str | None) -> None:
    assert event_name not in SUBJECTS

    registry = registry_of({event_name: [group("check", matcher=matcher)]})

    assert planned(registry, event_name) == ["check"]
    assert compile_matcher(event_name, matcher)("gemini-2.5-pro") is True
