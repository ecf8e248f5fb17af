"""glob and search_file_content on real trees."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from llxprt_hooks.agent.tools import search
from tests.agent.tools.calls import call, fail, message_of, succeed
from tests.support.processes import DEADLINE, eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from llxprt_hooks import ToolResult
    from llxprt_hooks.agent.tools import Workspace

ENDLESS = r"^(a+)+$"
"""A pattern that takes the engine 2^n steps for n times a and one b."""


def _children() -> set[int]:
    with subprocess.Popen(["ps", "-A", "-o", "pid=,ppid="], stdout=subprocess.PIPE, text=True) as ps:
        assert ps.stdout
        pairs = [tuple(map(int, line.split())) for line in ps.stdout]
    return {pid for pid, parent in pairs if parent == os.getpid()} - {ps.pid}


@pytest.fixture
def tree(root: Path) -> Path:
    """Files that were changed a second after one another, in this order."""
    names = [
        "README.md",
        "src/app.py",
        "src/app.pyi",
        "src/deep/er/x.py",
        "src/deep/er/x.test.py",
        "tests/test_app.py",
        ".env",
        ".git/config",
        ".github/workflows/ci.yml",
        "src/.cache/y.py",
        "odd [name].txt",
    ]
    for age, name in enumerate(names):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"this is {name}\nTODO: nothing\n")
        os.utime(file, (1_000_000 + age, 1_000_000 + age))
    return root


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.md", "README.md"),
        ("./*.md", "README.md"),
        ("README.md", "README.md"),
        ("src/*.py", "src/app.py"),
        ("src/**/*.py", "src/deep/er/x.test.py src/deep/er/x.py src/app.py"),
        ("**/*.py", "tests/test_app.py src/deep/er/x.test.py src/deep/er/x.py src/app.py"),
        ("**/er/*", "src/deep/er/x.test.py src/deep/er/x.py"),
        ("**/deep/**/x.py", "src/deep/er/x.py"),
        ("src/**", "src/deep/er/x.test.py src/deep/er/x.py src/app.pyi src/app.py"),
        ("s?c/app.py[i]", "src/app.pyi"),
        ("s[!a]c/app.py?", "src/app.pyi"),
        ("{src,tests}/*.py", "tests/test_app.py src/app.py"),
        ("**/*.{md,py{i,x}}", "src/app.pyi README.md"),
        ("src/../tests/*.py", "tests/test_app.py"),
        ("*", "odd [name].txt|.env|README.md"),
        (".github/**/*.yml", ".github/workflows/ci.yml"),
        ("**/.git*/**", ".github/workflows/ci.yml .git/config"),
        ("src/.cache/*", "src/.cache/y.py"),
        ("odd [[]name].txt", "odd [name].txt|"),
        ("*.PY", ""),
        ("src", ""),
        ("no/such/**", ""),
        ("README.md/*", ""),
    ],
)
async def test_glob_finds_files_newest_first(workspace: Workspace, tree: Path, pattern: str, found: str) -> None:
    names = [name for name in found.split("|") if name] if "|" in found else found.split()

    result = await call(workspace, "glob", pattern=pattern)

    assert result.error is None
    assert result.llm_content.split("\n") == (names or [f"No file matches `{pattern}`."])
    assert result.return_display == f"found {len(names)} file{'' if len(names) == 1 else 's'}"


async def test_glob_takes_an_absolute_pattern(workspace: Workspace, tree: Path) -> None:
    assert await succeed(workspace, "glob", pattern=f"{tree}/src/*.py") == "src/app.py"


async def test_glob_follows_a_link_that_the_pattern_names(workspace: Workspace, tree: Path) -> None:
    (tree / "link").symlink_to("src/deep")
    (tree / "src" / "loop").symlink_to("..")

    assert await succeed(workspace, "glob", pattern="link/**/x.py") == "src/deep/er/x.py"
    assert await succeed(workspace, "glob", pattern="**/x.py") == "src/deep/er/x.py"


async def test_glob_shows_a_link_to_a_file_inside(workspace: Workspace, tree: Path) -> None:
    (tree / "CLAUDE.md").symlink_to("README.md")

    assert set((await succeed(workspace, "glob", pattern="*.md")).split("\n")) == {"CLAUDE.md", "README.md"}


@pytest.mark.parametrize("pattern", ["", ".", "/", "./"])
async def test_glob_without_a_name_is_an_error(workspace: Workspace, pattern: str) -> None:
    assert "contains no file name" in await fail(workspace, "glob", pattern=pattern)


@pytest.mark.parametrize("pattern", ["*/../../outside/*", "**/..", "src/.."])
async def test_glob_with_dots_behind_a_wildcard_is_an_error(workspace: Workspace, pattern: str) -> None:
    assert "`..`" in await fail(workspace, "glob", pattern=pattern)


@pytest.mark.parametrize("pattern", ["{*,../outside/*}", "{src,..}/outside/*", "{,/}etc/*"])
async def test_glob_braces_do_not_lead_out_of_the_working_directory(
    workspace: Workspace, outside: Path, pattern: str
) -> None:
    assert "outside the working directory" in await fail(workspace, "glob", pattern=pattern)


async def test_glob_takes_no_time_for_malicious_patterns(workspace: Workspace, root: Path) -> None:
    deep = root.joinpath(*["a"] * 60)
    deep.mkdir(parents=True)
    (deep / ("a" * 200)).touch()
    started = time.monotonic()

    await succeed(workspace, "glob", pattern="**/a/" * 30 + "b")
    await succeed(workspace, "glob", pattern="**/" + "*a" * 60 + "b")
    assert "more than 64 alternatives" in await fail(workspace, "glob", pattern="{a,b}" * 200)

    assert time.monotonic() - started < DEADLINE


async def test_glob_of_many_says_how_many_more(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "FILE_LIMIT", 2)
    for number in range(5):
        (root / f"{number}.txt").touch()
        os.utime(root / f"{number}.txt", (100, 100))

    assert await succeed(workspace, "glob", pattern="*") == "0.txt\n1.txt\n[3 more files not shown.]"


async def test_glob_out_of_time_says_so(workspace: Workspace, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "TIME_LIMIT", 0)

    result = await search.glob.run(workspace, {"pattern": "**/*.py"})

    assert "[Stopped after 0 s: there may be more." in result.llm_content


async def test_search_gives_path_line_and_text(workspace: Workspace, tree: Path) -> None:
    result = await call(workspace, "search_file_content", pattern=r"\bthis is (src|README)")

    assert result.llm_content.split("\n") == [
        "README.md:1: this is README.md",
        "src/app.py:1: this is src/app.py",
        "src/app.pyi:1: this is src/app.pyi",
        "src/deep/er/x.py:1: this is src/deep/er/x.py",
        "src/deep/er/x.test.py:1: this is src/deep/er/x.test.py",
    ]
    assert result.return_display == "found 5 matches in 8 files of ."
    assert result.error is None


@pytest.mark.parametrize("folder", ["src/deep", "./src/deep/", "{}/src/deep"])
async def test_search_stays_in_its_folder(workspace: Workspace, tree: Path, folder: str) -> None:
    found = await succeed(workspace, "search_file_content", pattern="^TODO", dir_path=folder.format(tree))

    assert found == "src/deep/er/x.py:2: TODO: nothing\nsrc/deep/er/x.test.py:2: TODO: nothing"


async def test_search_enters_hidden_folders_only_when_asked(workspace: Workspace, tree: Path) -> None:
    pattern = r"this is \."

    assert await succeed(workspace, "search_file_content", pattern=pattern) == ".env:1: this is .env"
    found = await succeed(workspace, "search_file_content", pattern=pattern, dir_path=".git")
    assert found == ".git/config:1: this is .git/config"


async def test_search_takes_lines_as_they_are(workspace: Workspace, root: Path) -> None:
    (root / "a.txt").write_bytes("\tone\r\nzwei é\n\nlast".encode() + b" \xff")

    assert await succeed(workspace, "search_file_content", pattern="one$") == "a.txt:1: \tone"
    assert await succeed(workspace, "search_file_content", pattern="(?i)ZWEI É") == "a.txt:2: zwei é"
    assert await succeed(workspace, "search_file_content", pattern="last") == "a.txt:4: last �"
    assert await succeed(workspace, "search_file_content", pattern="^$") == "a.txt:3: "


async def test_search_passes_over_binary_unreadable_and_linked_files(workspace: Workspace, tree: Path) -> None:
    (tree / "binary").write_bytes(b"needle\0")
    (tree / "link").symlink_to("README.md")
    (tree / "README.md").write_text("needle")
    (tree / "src" / "app.py").write_text("needle")
    (tree / "src" / "app.py").chmod(0)

    found = await succeed(workspace, "search_file_content", pattern="needle")

    assert [line for line in found.split("\n") if "app.py" not in line] == ["README.md:1: needle"]


async def test_search_names_the_large_files_it_left_out(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MAX_FILE", 1024)
    (root / "large").write_text("needle" * 1024)
    (root / "small").write_text("needle")

    found = await succeed(workspace, "search_file_content", pattern="needle")

    assert found == "small:1: needle\n[1 file larger than 1 KiB not searched.]"


async def test_search_says_how_many_more(workspace: Workspace, root: Path) -> None:
    (root / "a.txt").write_text("needle\n" * 1500)

    result = await call(workspace, "search_file_content", pattern="needle")

    *lines, note = result.llm_content.split("\n")
    assert lines == [f"a.txt:{number}: needle" for number in range(1, search.MATCH_LIMIT + 1)]
    assert note.startswith("[1,300 more matches not shown.")
    assert result.return_display == "found 1,500 matches in 1 file of ."


async def test_search_shows_of_a_long_line_the_part_that_matches(workspace: Workspace, root: Path) -> None:
    (root / "a.js").write_text("x" * 5000 + "needle" + "y" * 5000)

    found = await succeed(workspace, "search_file_content", pattern="needle")

    assert found == f"a.js:1: …{'x' * 100}needle{'y' * 394}…"


async def test_search_without_a_match_says_so(workspace: Workspace, tree: Path) -> None:
    found = await succeed(workspace, "search_file_content", pattern="not there", dir_path="src")

    assert found == "No line matches `not there` in 4 files of src."


@pytest.mark.parametrize("pattern", ["(", "[a", "*", "a{99999999999999999999}", "(?P<x", "(" * 5000 + ")" * 5000])
async def test_search_with_an_invalid_pattern_is_an_error(workspace: Workspace, pattern: str) -> None:
    message = await fail(workspace, "search_file_content", pattern=pattern)

    assert "`pattern` is not a valid regular expression" in message


async def test_search_errors_are_sentences(workspace: Workspace, tree: Path) -> None:
    for arguments, told in (({"dir_path": "no"}, "does not exist"), ({"dir_path": "README.md"}, "is not a folder")):
        assert told in await fail(workspace, "search_file_content", pattern="x", **arguments)


async def test_search_works_with_unusual_characters(workspace: Workspace, tree: Path) -> None:
    for pattern in ("a\0b", "漢字", "\n"):
        assert (await succeed(workspace, "search_file_content", pattern=pattern)).startswith("No line matches")


@pytest.mark.skipif(sys.platform == "darwin", reason="names are text there")
async def test_search_finds_files_whose_names_are_not_text(workspace: Workspace, root: Path) -> None:
    (root / os.fsdecode(b"caf\xe9")).write_text("needle")

    assert await succeed(workspace, "search_file_content", pattern="needle") == "caf\\udce9:1: needle"


async def searched(workspace: Workspace, begun: Callable[[ToolResult], bool]) -> tuple[float, ToolResult]:
    """Search for an endless pattern; the time limit and the result. A busy machine needs more time to begin."""
    limit = 0.5
    while True:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(search, "TIME_LIMIT", limit)
            result = await search.search_file_content.run(workspace, {"pattern": ENDLESS})
        if begun(result) or limit > DEADLINE / 4:
            return limit, result
        limit *= 4


async def test_search_with_an_endless_pattern_ends(workspace: Workspace, root: Path) -> None:
    (root / "b.txt").write_text("a" * 64 + "b\n")
    started = time.monotonic()

    limit, result = await searched(workspace, lambda result: "in 1 file" in message_of(result))

    assert f"Nothing was found in 1 file of . within {limit:g} s." in message_of(result)
    assert time.monotonic() - started < DEADLINE


async def test_search_out_of_time_gives_what_was_found(workspace: Workspace, root: Path) -> None:
    (root / "a.txt").write_text("aaa\n")
    (root / "b.txt").write_text("a" * 64 + "b\n")

    limit, result = await searched(workspace, lambda result: result.error is None)

    assert result.error is None
    first, note = result.llm_content.split("\n")
    assert first == "a.txt:1: aaa"
    assert note.startswith(f"[Stopped after {limit:g} s: there may be more.")


async def test_search_leaves_the_event_loop_free_and_can_be_cancelled(workspace: Workspace, root: Path) -> None:
    (root / "b.txt").write_text("a" * 64 + "b\n")
    before = _children()
    searching = asyncio.create_task(call(workspace, "search_file_content", pattern=ENDLESS))
    await asyncio.sleep(0.3)
    started = time.monotonic()

    searching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await searching

    assert time.monotonic() - started < DEADLINE
    assert _children() <= before


async def test_a_walk_ends_when_nobody_waits_for_it(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1000):
        (root / f"{number}").mkdir()
    entries, entered, walking = workspace.entries, [], threading.Event()

    def slow_entries(place: Path) -> object:
        entered.append(place)
        walking.set()
        time.sleep(0.01)
        return entries(place)

    monkeypatch.setattr(workspace, "entries", slow_entries)
    finding = asyncio.create_task(call(workspace, "glob", pattern="**/x"))
    await eventually(walking.is_set)

    finding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await finding

    before = 0
    while before < len(entered):
        before = len(entered)
        await asyncio.sleep(0.1)
    assert before < 1000


async def test_search_without_python_is_an_error(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", str(root / "no-python"))

    assert "there is no such file" in await fail(workspace, "search_file_content", pattern="x")
