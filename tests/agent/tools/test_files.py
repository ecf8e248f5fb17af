"""read_file, write_file, replace and list_directory on real files."""

from __future__ import annotations

import asyncio
import os
import stat
from typing import TYPE_CHECKING

import pytest

from llxprt_hooks.agent.tools import files
from tests.agent.tools.calls import call, fail, succeed

if TYPE_CHECKING:
    from pathlib import Path

    from llxprt_hooks.agent.tools import Workspace

not_root = pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind root")


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("", "0 lines"),
        ("one", "1 line"),
        ("one\n", "1 line"),
        ("eins\r\nzwei\r\n", "2 lines"),
        ("naïve – 漢字 🎉\n\n", "2 lines"),
        ("\ufeffwith a mark\n", "1 line"),
        ("\ttab\x1b[0m\rreturn\n", "1 line"),
    ],
)
async def test_read_gives_the_text_as_it_is(workspace: Workspace, root: Path, content: str, lines: str) -> None:
    (root / "a.txt").write_bytes(content.encode())

    result = await call(workspace, "read_file", file_path="a.txt")

    assert (result.llm_content, result.return_display) == (content, f"read {lines} of a.txt")


async def test_read_errors_are_sentences(workspace: Workspace, root: Path) -> None:
    (root / "sub").mkdir()
    (root / "a.txt").write_text("x")
    (root / "nul").write_bytes(b"\x7fELF\0")
    (root / "latin").write_bytes(b"caf\xe9 au lait")
    (root / "half").write_bytes("é".encode()[:1])

    assert await fail(workspace, "read_file", file_path="no.txt") == "`no.txt` does not exist."
    assert await fail(workspace, "read_file", file_path="no/no.txt") == "`no` does not exist."
    assert await fail(workspace, "read_file", file_path="sub") == "`sub` is a folder, not a file."
    assert await fail(workspace, "read_file", file_path="") == "`.` is a folder, not a file."
    assert "`a.txt` is not a folder" in await fail(workspace, "read_file", file_path="a.txt/b")
    assert "`nul` is a binary file" in await fail(workspace, "read_file", file_path="nul")
    assert "`latin` is not UTF-8 text: invalid continuation byte at byte 3" in await fail(
        workspace, "read_file", file_path="latin"
    )
    assert "`half` is not UTF-8 text" in await fail(workspace, "read_file", file_path="half")
    assert "longer than the operating system allows" in await fail(workspace, "read_file", file_path="x" * 300)


@not_root
async def test_files_that_may_not_be_read_or_written_are_reported(workspace: Workspace, root: Path) -> None:
    (root / "a.txt").write_text("x")
    (root / "a.txt").chmod(0)
    (root / "sub").mkdir(mode=0o500)

    assert "permission denied" in await fail(workspace, "read_file", file_path="a.txt")
    assert "`a.txt` cannot be accessed" in await fail(workspace, "write_file", file_path="a.txt", content="y")
    assert "permission denied" in await fail(workspace, "write_file", file_path="sub/b.txt", content="y")


async def test_read_cuts_a_large_file_and_says_so(workspace: Workspace, root: Path) -> None:
    (root / "a.txt").write_bytes(b"x" + "é".encode() * files.READ_LIMIT)

    result = await call(workspace, "read_file", file_path="a.txt")

    text, _, note = result.llm_content.rpartition("\n")
    assert note == "[Truncated: these are the first 2 MiB of 4 MiB.]"
    assert text == "x" + "é" * (files.READ_LIMIT // 2 - 1)
    assert result.return_display == "read the first 2 MiB of 4 MiB of a.txt"
    assert result.error is None


async def test_read_of_exactly_the_limit_is_whole(workspace: Workspace, root: Path) -> None:
    (root / "a.txt").write_bytes(b"x" * files.READ_LIMIT)

    assert await succeed(workspace, "read_file", file_path="a.txt") == "x" * files.READ_LIMIT


async def test_write_creates_the_file_and_its_folders(workspace: Workspace, root: Path) -> None:
    content = "eins\r\nzwei\n漢字"

    result = await call(workspace, "write_file", file_path="new/er/a.py", content=content)

    assert (root / "new" / "er" / "a.py").read_bytes() == content.encode()
    assert result.llm_content == "Created `new/er/a.py` with 3 lines."
    assert result.return_display == "wrote 3 lines to new/er/a.py (new)"
    assert os.listdir(root / "new" / "er") == ["a.py"]


async def test_write_gives_a_new_file_the_users_permissions(workspace: Workspace, root: Path) -> None:
    (root / "plain").touch()

    await succeed(workspace, "write_file", file_path="a.txt", content="x")

    assert (root / "a.txt").stat().st_mode == (root / "plain").stat().st_mode


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o664])
async def test_write_overwrites_and_keeps_the_permissions(workspace: Workspace, root: Path, mode: int) -> None:
    (root / "a.sh").write_text("long old content\n")
    (root / "a.sh").chmod(mode)

    result = await call(workspace, "write_file", file_path="a.sh", content="x\n")

    assert result.llm_content == "Overwrote `a.sh` with 1 line."
    assert result.return_display == "wrote 1 line to a.sh"
    assert (root / "a.sh").read_text() == "x\n"
    assert stat.S_IMODE((root / "a.sh").stat().st_mode) == mode


async def test_write_replaces_the_file_as_a_whole(workspace: Workspace, root: Path, outside: Path) -> None:
    """Who has the old file open, or under another name, keeps it as it was."""
    os.link(outside / "secret.txt", root / "a.txt")
    before = (outside / "secret.txt").read_text()
    with (root / "a.txt").open() as reader:
        await succeed(workspace, "write_file", file_path="a.txt", content="new")
        assert reader.read() == before

    assert (outside / "secret.txt").read_text() == before
    assert (root / "a.txt").read_text() == "new"


async def test_write_errors_are_sentences_and_leave_nothing(workspace: Workspace, root: Path) -> None:
    (root / "sub").mkdir()
    (root / "a.txt").write_text("x")

    assert await fail(workspace, "write_file", file_path="sub", content="") == "`sub` is a folder, not a file."
    assert await fail(workspace, "write_file", file_path=".", content="") == "`.` is a folder, not a file."
    assert "`a.txt` is not a folder" in await fail(workspace, "write_file", file_path="a.txt/b", content="")
    assert "a lone surrogate at character 1" in await fail(
        workspace, "write_file", file_path="b.txt", content="a\ud83d"
    )
    assert sorted(os.listdir(root)) == ["a.txt", "sub"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full device")
async def test_write_that_fails_midway_leaves_the_old_file(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.txt").write_text("old")
    fdopen = os.fdopen

    def full(descriptor: int, mode: str) -> object:
        device = os.open("/dev/full", os.O_WRONLY)
        os.dup2(device, descriptor)
        os.close(device)
        return fdopen(descriptor, mode)

    monkeypatch.setattr(os, "fchmod", lambda *_: None)
    monkeypatch.setattr(os, "fdopen", full)

    assert "no space left on the disk" in await fail(workspace, "write_file", file_path="a.txt", content="new")
    assert os.listdir(root) == ["a.txt"]
    assert (root / "a.txt").read_text() == "old"


async def test_replace_changes_the_one_occurrence(workspace: Workspace, root: Path) -> None:
    (root / "a.py").write_bytes("one\r\ntwo é\r\nthree\r\n".encode())
    (root / "a.py").chmod(0o755)

    result = await call(workspace, "replace", file_path="a.py", old_string="two é\r\nth", new_string="2\r\nth\\1")

    assert (root / "a.py").read_bytes() == b"one\r\n2\r\nth\\1ree\r\n"
    assert result.llm_content == "Replaced the one occurrence of `old_string` in `a.py`, at line 2."
    assert result.return_display == "replaced 2 lines with 2 at line 2 of a.py"
    assert stat.S_IMODE((root / "a.py").stat().st_mode) == 0o755


async def test_replace_can_delete(workspace: Workspace, root: Path) -> None:
    (root / "a.py").write_text("one two")

    await succeed(workspace, "replace", file_path="a.py", old_string=" two", new_string="")

    assert (root / "a.py").read_text() == "one"


@pytest.mark.parametrize(("old", "times"), [("x", 0), ("a", 3), ("aa", 2), ("b", 2)])
async def test_replace_needs_exactly_one_occurrence(workspace: Workspace, root: Path, old: str, times: int) -> None:
    (root / "a.txt").write_text("aaabb")

    message = await fail(workspace, "replace", file_path="a.txt", old_string=old, new_string="new")

    assert f"`old_string` occurs {times} times in `a.txt`" in message
    assert "exactly once" in message
    assert (root / "a.txt").read_text() == "aaabb"


async def test_replace_reports_different_line_ends(workspace: Workspace, root: Path) -> None:
    (root / "a.txt").write_bytes(b"one\r\ntwo\r\n")

    assert "CRLF" in await fail(workspace, "replace", file_path="a.txt", old_string="one\ntwo", new_string="x")
    assert "CRLF" not in await fail(workspace, "replace", file_path="a.txt", old_string="three", new_string="x")


async def test_replace_of_nothing_creates_a_new_file_only(workspace: Workspace, root: Path) -> None:
    created = await succeed(workspace, "replace", file_path="sub/a.txt", old_string="", new_string="x\n")
    message = await fail(workspace, "replace", file_path="sub/a.txt", old_string="", new_string="y\n")

    assert created == "Created `sub/a.txt` with 1 line."
    assert message == "`sub/a.txt` already exists. Use an empty `old_string` only to create a new file."
    assert (root / "sub" / "a.txt").read_text() == "x\n"


async def test_replace_errors_are_sentences(workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "a.txt").write_text("12345678")
    (root / "binary").write_bytes(b"12\0")
    monkeypatch.setattr(files, "EDIT_LIMIT", 7)
    arguments = {"old_string": "1", "new_string": "x"}

    assert "does not exist" in await fail(workspace, "replace", file_path="no.txt", **arguments)
    assert "binary" in await fail(workspace, "replace", file_path="binary", **arguments)
    assert "has 8 bytes" in await fail(workspace, "replace", file_path="a.txt", **arguments)
    assert "nothing to change" in await fail(workspace, "replace", file_path="a.txt", old_string="1", new_string="1")


async def test_parallel_changes_of_one_file_are_all_kept(workspace: Workspace, root: Path) -> None:
    (root / "a.txt").write_text("".join(f"<{number}>\n" for number in range(40)))

    await asyncio.gather(
        *(
            succeed(workspace, "replace", file_path="a.txt", old_string=f"<{number}>", new_string=f"[{number}]")
            for number in range(40)
        )
    )

    assert (root / "a.txt").read_text() == "".join(f"[{number}]\n" for number in range(40))


async def test_list_has_folders_first(workspace: Workspace, root: Path) -> None:
    for folder in ("zoo", "src", ".git"):
        (root / folder).mkdir()
    for file in ("b.txt", "a.txt", ".env"):
        (root / file).touch()
    (root / "link").symlink_to("src")

    result = await call(workspace, "list_directory", dir_path=".")

    assert result.llm_content.split("\n") == [".git/", "link/", "src/", "zoo/", ".env", "a.txt", "b.txt"]
    assert result.return_display == "listed 7 entries of ."
    assert await succeed(workspace, "list_directory", dir_path="src") == "The folder `src` is empty."


async def test_list_errors_are_sentences(workspace: Workspace, root: Path) -> None:
    (root / "a.txt").touch()

    assert await fail(workspace, "list_directory", dir_path="no") == "`no` does not exist."
    assert "`a.txt` is not a folder" in await fail(workspace, "list_directory", dir_path="a.txt")


async def test_list_of_many_says_how_many_more(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LIST_LIMIT", 2)
    for number in range(5):
        (root / f"{number}.txt").touch()

    listed = await succeed(workspace, "list_directory", dir_path=".")

    assert listed == "0.txt\n1.txt\n[3 more entries not shown.]"


async def test_a_working_directory_that_is_gone_is_reported(workspace: Workspace, root: Path) -> None:
    root.rmdir()

    assert await fail(workspace, "list_directory", dir_path=".") == "`.` does not exist."
    assert await fail(workspace, "write_file", file_path="a.txt", content="") == "`.` does not exist."
    assert await fail(workspace, "run_shell_command", command="true") == "`.` does not exist."
