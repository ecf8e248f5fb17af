"""Regular expressions in the source mean the same in every supported Python."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT

POSSESSIVE_GROUP = re.compile(r"(?<![\\`])\)(?:[*+?]|\{\d*,?\d*\})\+(?! )")


def test_the_search_finds_possessive_groups() -> None:
    assert all(map(POSSESSIVE_GROUP.search, ("(?:a|b)*+", "(a)++", "(a)?+", "(a){2,}+")))
    assert not any(map(POSSESSIVE_GROUP.search, (r"\(\)*+", "[a-z]++", "(?>(?:a|b)*)", "f(x) + 1")))


def test_no_group_is_possessive() -> None:
    """Python before 3.11.5 matches too much with them: an atomic group, ``(?>(?:…)*)``, means the same everywhere."""
    source = ROOT / "src" / "llxprt_hooks"
    found = [
        f"{file.relative_to(source)}:{number}"
        for file in source.rglob("*.py")
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
        if POSSESSIVE_GROUP.search(line) and "``" not in line
    ]
    assert found == []
