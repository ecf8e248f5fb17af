"""The files that keep records until a server has them."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from llxprt_hooks.fleet.audit import spool
from llxprt_hooks.fleet.audit.spool import Sent, SpoolFile, spool_files, spool_folder
from llxprt_hooks.settings.audit import AuditRule

if TYPE_CHECKING:
    from tests.support.project import Project

RULE = AuditRule(("nats://127.0.0.1:4222",))


def test_records_are_read_in_order_and_once() -> None:
    file = SpoolFile.create(spool_folder(RULE), "a")
    file.append(b"1")
    file.append(b"2")
    assert file.unread() == [b"1", b"2"]
    assert file.unread() == []
    file.append(b"3")
    assert file.unread() == [b"3"]
    file.rewind()
    assert file.unread() == [b"1", b"2", b"3"]


def test_only_the_user_can_read_them() -> None:
    file = SpoolFile.create(spool_folder(RULE), "a")
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert file.path.parent.stat().st_mode & 0o777 == 0o700


def test_each_stream_has_a_folder_of_its_own() -> None:
    folders = {
        spool_folder(rule) for rule in (RULE, AuditRule(RULE.servers, "OTHER"), AuditRule(("nats://127.0.0.1:4223",)))
    }
    assert len(folders) == 3


def test_a_large_record_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "_CHUNK", 10)
    file = SpoolFile.create(spool_folder(RULE), "a")
    file.append(b"x" * 35)
    file.append(b"y")
    assert [line for _ in range(2) for line in file.unread()] == [b"x" * 35, b"y"]


def test_a_record_that_was_cut_short_does_not_spoil_the_next() -> None:
    file = SpoolFile.create(spool_folder(RULE), "a")
    file.append(b"1")
    with file.path.open("ab") as raw:
        raw.write(b"half")
    file.append(b"2")
    assert file.unread() == [b"1", b"half", b"2"]


def test_a_full_disk_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    file = SpoolFile.create(spool_folder(RULE), "a")
    monkeypatch.setattr(os, "write", lambda _descriptor, data: len(data) - 1)
    with pytest.raises(OSError, match="the disk is full"):
        file.append(b"1")


def test_a_file_that_was_sent_is_emptied_when_it_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "EMPTIED_AT", 5)
    file = SpoolFile.create(spool_folder(RULE), "a")
    file.append(b"123456")
    file.empty_if_large()  # not read yet
    assert file.unread() == [b"123456"]
    assert file.is_read()
    file.empty_if_large()
    assert file.path.stat().st_size == 0
    file.append(b"7")
    assert file.unread() == [b"7"]


def test_a_file_in_use_is_nobody_elses(sandbox: Project) -> None:
    file = SpoolFile.create(spool_folder(RULE), "a")
    file.append(b"1")
    code = (
        "import sys; from pathlib import Path; from llxprt_hooks.fleet.audit.spool import SpoolFile\n"
        "print([file.agent for file in SpoolFile.abandoned(Path(sys.argv[1]))])"
    )
    command = [sys.executable, "-c", code, str(file.path.parent)]
    environment = sandbox.environment()
    assert subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout == "[]\n"
    file.close(remove=False)
    assert subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout == "['a']\n"


def test_the_next_owner_of_a_file_reads_it_from_the_start_and_removes_it() -> None:
    file = SpoolFile.create(spool_folder(RULE), "a")
    file.append(b"1")
    file.unread()
    file.close(remove=False)
    assert spool_files() == [file.path]
    (taken,) = SpoolFile.abandoned(file.path.parent)
    assert taken.unread() == [b"1"]
    taken.close(remove=True)
    assert spool_files() == []


def test_a_file_that_was_removed_meanwhile_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = spool_folder(RULE)
    for agent in ("a", "b"):
        SpoolFile.create(folder, agent).close(remove=False)
    found = sorted(folder.glob("*.jsonl"))
    monkeypatch.setattr(Path, "glob", lambda _folder, _pattern: iter([folder / "gone.jsonl", *found]))
    opened = os.open

    def open_and_remove(path: Path, flags: int) -> int:
        descriptor = opened(path, flags)
        if path.name == "b.jsonl":
            path.unlink()
        return descriptor

    monkeypatch.setattr(os, "open", open_and_remove)
    assert [file.agent for file in SpoolFile.abandoned(folder)] == ["a"]


def test_a_new_file_is_never_taken_for_an_abandoned_one(monkeypatch: pytest.MonkeyPatch) -> None:
    folder, lock = spool_folder(RULE), fcntl.flock
    taken: list[SpoolFile] = []

    def take_first(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        taken.extend(SpoolFile.abandoned(folder))
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", take_first)
    file = SpoolFile.create(folder, "a")
    assert taken == []
    assert spool_files() == [file.path]


def test_the_next_owner_of_a_file_knows_how_far_it_was_sent() -> None:
    file = SpoolFile.create(spool_folder(RULE), "a")
    assert file.sent == Sent(0, 0)
    file.note_sent(Sent(7, 1234567))
    file.note_sent(Sent(8, 9))
    file.close(remove=False)
    (taken,) = SpoolFile.abandoned(file.path.parent)
    assert taken.sent == Sent(8, 9)
    taken.close(remove=True)
    assert list(file.path.parent.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"7", b"x y\n"])
def test_an_unreadable_note_means_that_nothing_is_known(content: bytes) -> None:
    file = SpoolFile.create(spool_folder(RULE), "a")
    file.path.with_suffix(".sent").write_bytes(content)
    assert file.sent == Sent(0, 0)


def test_a_file_is_closed_once() -> None:
    file = SpoolFile.create(spool_folder(RULE), "a")
    file.close(remove=False)
    reused = os.open(os.devnull, os.O_RDONLY)
    file.close(remove=False)
    os.fstat(reused)
    os.close(reused)


def test_a_refused_record_is_kept() -> None:
    file = SpoolFile.create(spool_folder(RULE), "a")
    assert file.refuse(b"1") == file.refuse(b"2")
    assert file.path.with_suffix(".refused").read_bytes() == b"1\n2\n"
