"""Files for the user's eyes only."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from llxprt_hooks.agent.transcript import Transcript
from llxprt_hooks.settings import append_privately


@pytest.fixture(autouse=True)
def lax_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_file_and_every_folder_made_for_it_are_the_users_only(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / "c.jsonl"

    append_privately(file, b"one\n")
    append_privately(file, b"two\n")

    assert file.read_bytes() == b"one\ntwo\n"
    assert [mode(file), mode(file.parent), mode(file.parent.parent)] == [0o600, 0o700, 0o700]


def test_a_link_in_its_place_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.touch()
    (tmp_path / "link").symlink_to(target)

    with pytest.raises(OSError, match="link"):
        append_privately(tmp_path / "link", b"x")
    assert target.read_bytes() == b""


def test_a_transcript_that_was_deleted_comes_back_private(home: Path) -> None:
    transcript = Transcript("../../escape", warn=pytest.fail)
    file = Path(transcript.path)

    file.unlink()
    transcript.add("message", content="x")

    assert mode(file) == 0o600
    assert mode(home / ".llxprt") == 0o700
    assert file.parent == home / ".llxprt" / "transcripts"
