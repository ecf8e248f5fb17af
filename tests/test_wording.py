"""What people read has none of the phrases that readers stumbled over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wording import ROOT, files, findings, report, text_of


def test_nothing_that_people_read_has_a_phrase_to_avoid() -> None:
    assert report() == []


def test_every_part_of_the_project_is_read() -> None:
    read = {str(file.relative_to(ROOT)) for file in files()}
    assert {"README.md", "CHANGELOG.md", "Makefile", "docs/tutorial.md", "src/llxprt_hooks/cli/main.py"} <= read
    assert {"src/llxprt_hooks/recipes/collection/first-hook/recipe.json", "tests/conftest.py"} <= read


def test_the_names_of_tests_are_read_as_sentences(tmp_path: Path) -> None:
    file = tmp_path / "test_files.py"
    file.write_text(
        "async def test_a_folder_is_no_file(is_no_file: None) -> None: ...\ndef test_one_will_do() -> None: ...\n"
    )
    assert [phrase for _, phrase, _ in findings(text_of(file))] == ["is no", "will do"]


@pytest.mark.parametrize(
    "text",
    [
        "Your file is no JSON.",
        "On a time-out, retry",
        "one variable will do:",
        "Settings are\n    not heard",
        "# it is\n# no folder",
        "a signal, say, ends it",
        "Allowed are: a, b",
        "where the key stands.",
        "It shows what comes of it",
        "no call gets past the guard",
        "what tools\n    returned",
        "and what it came to.",
        "So does a request",
        "whoever asks for it",
        "the result that came of a test",
        "a worker ends in silence",
        "The way of one event",
    ],
)
def test_a_phrase_is_found(text: str) -> None:
    assert list(findings(text))


@pytest.mark.parametrize(
    "text",
    [
        "there is no such file",
        "There\n    are no hooks",
        "it is no longer valid",
        "if value is None:",
        "what a call will do, and when",
        "`…` stands for lines left out",
        "tools that are not allowed are left out",
        "recommended amendments, standard time",
        "the text gets past 80 columns",
    ],
)
def test_plain_english_is_left_alone(text: str) -> None:
    assert list(findings(text)) == []
