"""One word for one thing, in every page for users: the terms that CONTRIBUTING.md lists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, RECIPES, ROOT

TERMS = {
    r"(?:hooks?'s?|of (?:a|the|its) hooks?) answers?|answers? of (?:a|the) hooks?": "hook output",
    r"(?:model'?s'?) answers?|answers? of (?:a|the) models?": "model response",
    r"director(?:y|ies)": "folder",
    r"only watch(?:es)?": "observe",
    r"hooks? (?:is|are|was|were) ended|ends? (?:the|a) hooks?": "kill",
    r"time-outs?": "timeout",
    r"misspelt": "misspelled",
}
"""What a reader would take for another thing, and the project's word for it."""

NOT_READ = {"requirements.md", "decisions.md"}
"""Pages with the words of the requirements, and with those of their time."""

READ = [page for page in (*PAGES, *(ROOT / "docs/integrations").glob("*.md"), *RECIPES) if page.name not in NOT_READ]


def strays(text: str) -> list[tuple[int, str, str]]:
    """The line of each stray word outside of code, the word, and what to write instead."""
    prose = re.sub(r"(?ms)^(`{3,}).*?^\1$|`[^`\n]*`", lambda code: "\n" * code[0].count("\n"), text)
    patterns = {re.sub(" ", r"\\s+", rf"(?i)(?<!\w)(?:{word})(?!\w)"): term for word, term in TERMS.items()}
    return [
        (prose.count("\n", 0, found.start()) + 1, found[0], term)
        for pattern, term in patterns.items()
        for found in re.finditer(pattern, prose)
    ]


def test_a_stray_word_is_found_in_prose_and_not_in_code() -> None:
    text = "The directory\n```sh\n# a directory\n```\n`--directory`: the model's\nanswer"
    assert [(line, term) for line, _, term in strays(text)] == [(5, "model response"), (1, "folder")]


@pytest.mark.parametrize("page", READ, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_a_page_has_one_word_for_one_thing(page: Path) -> None:
    assert strays(page.read_text("utf-8")) == []
