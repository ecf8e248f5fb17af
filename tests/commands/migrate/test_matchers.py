"""Matchers of other agents, in our names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from regress import Regex

from llxprt_hooks.commands.migrate.dialects import CLAUDE
from llxprt_hooks.commands.migrate.matchers import TOOLS, rename_gemini_tools, translate_tools, translate_words
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.matcher import compile_matcher

CLAUDE_MATCHERS = {
    "": None,
    "*": None,
    ".*": None,
    "Bash": "^run_shell_command$",
    "Write|Edit|MultiEdit": "^(write_file|replace)$",
    "Edit|MultiEdit": "^replace$",
    "Edit, Write": "^(write_file|replace)$",
    "Read|Glob|Grep|LS": "^(glob|list_directory|read_file|search_file_content)$",
    "^(Write|Edit)$": "^(write_file|replace)$",
    "(Multi)?Edit": "^replace$",
    ".*Edit$": "^replace$",
    "Wr.te": "^(write_file|todo_write)$",
    "^(?!Read$)": "^(?!(read_file)$)",
    "^(?!(Read|Glob|Grep|LS)$).*": "^(?!(glob|list_directory|read_file|search_file_content)$)",
    "^(?!Edit$)": None,  # MultiEdit is for it, and both are replace here
}


@pytest.mark.parametrize(("theirs", "ours"), CLAUDE_MATCHERS.items())
def test_a_matcher_of_tools(theirs: str, ours: str | None) -> None:
    translated = translate_tools(theirs)

    assert (translated.matcher, translated.lost, translated.selects_nothing) == (ours, (), False)


LOST = {
    "mcp__memory__create": (None, ("mcp__memory__create",)),
    "mcp__.*": (None, ("mcp__.*",)),
    "Bash|mcp__github__.*": ("^run_shell_command$", ("mcp__github__.*",)),
    "Write|mcp__.*": ("^(write_file|todo_write)$", ("mcp__.*",)),  # searched, so it is for TodoWrite too
    "Write|NotebookEdit": ("^write_file$", ("NotebookEdit",)),
    "Write|Frobnicate": ("^write_file$", ("Frobnicate",)),
    "KillShell": (None, ("KillShell",)),
    "write": (None, ("write",)),
    "Wri[te": (None, ("Wri[te",)),
    "(((\\w+)+)+)+!": (None, ("(((\\w+)+)+)+!",)),
}


@pytest.mark.parametrize(("theirs", "expected"), LOST.items())
def test_what_a_matcher_names_in_vain(theirs: str, expected: tuple[str | None, tuple[str, ...]]) -> None:
    translated = translate_tools(theirs)

    assert (translated.matcher, translated.lost) == expected
    assert translated.selects_nothing is (expected[0] is None)


names = st.sampled_from(sorted(TOOLS))
expressions = st.one_of(
    st.lists(names, min_size=1, max_size=4).map("|".join),
    st.lists(names, min_size=1, max_size=4).map(lambda some: f"^(?:{'|'.join(some)})$"),
    st.lists(names, min_size=1, max_size=4).map(lambda some: f"^(?!(?:{'|'.join(some)})$)"),
    names.map(lambda name: f"{name[:2]}.*"),
)


@given(expressions)
def test_a_matcher_selects_the_counterparts_of_what_it_selected(theirs: str) -> None:
    exact = set(theirs.split("|")) if theirs.replace("|", "").isalnum() else None
    selected = [name for name in TOOLS if (name in exact if exact else Regex(theirs).find(name))]
    expected = {TOOLS[name] for name in selected} - {None}

    translated = translate_tools(theirs)

    matches = compile_matcher(HookEventName.BEFORE_TOOL, translated.matcher)
    ours = {name for name in TOOLS.values() if name and matches(name)} if not translated.selects_nothing else set()
    assert ours == expected


WORDS = {
    (HookEventName.SESSION_START, "startup"): (["startup"], []),
    (HookEventName.SESSION_START, "startup|compact"): (["startup", "compress"], []),
    (HookEventName.SESSION_START, "startup|resume|clear|compact"): (None, []),
    (HookEventName.SESSION_START, "^(startup|resume)$"): (["startup", "resume"], []),
    (HookEventName.SESSION_START, "shutdown"): ([], ["shutdown"]),
    (HookEventName.SESSION_END, "other"): (["exit", "other"], []),
    (HookEventName.PRE_COMPRESS, "auto"): (["auto"], []),
    (HookEventName.PRE_COMPRESS, "*"): (None, []),
    (HookEventName.NOTIFICATION, "permission_prompt"): (None, []),
    (HookEventName.NOTIFICATION, "idle_prompt"): ([], ["idle_prompt"]),
}


@pytest.mark.parametrize(("given", "expected"), WORDS.items(), ids=str)
def test_a_matcher_of_words(given: tuple[HookEventName, str], expected: tuple[list[str] | None, list[str]]) -> None:
    event, matcher = given

    assert translate_words(matcher, CLAUDE.values[event]) == expected


def test_gemini_tools_that_have_another_name_here() -> None:
    assert rename_gemini_tools("grep_search|read_file") == "search_file_content|read_file"
    assert rename_gemini_tools("my_grep_search") == "my_grep_search"
