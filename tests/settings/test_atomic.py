"""Files are replaced as a whole, and by one process at a time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from llxprt_hooks.settings import exclusive_lock, write_atomically

HOLD_LOCK = """
import sys
from pathlib import Path
from llxprt_hooks.settings import exclusive_lock
with exclusive_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "folder"
    path.mkdir()
    return path


def mode(file: Path) -> int:
    return file.stat().st_mode & 0o777


def test_a_new_file_is_written(folder: Path) -> None:
    write_atomically(folder / "a", "é\r\n")
    write_atomically(folder / "b", "x", mode=0o600)

    assert (folder / "a").read_bytes() == b"\xc3\xa9\r\n"
    assert (mode(folder / "a"), mode(folder / "b")) == (0o644, 0o600)
    assert sorted(os.listdir(folder)) == ["a", "b"]


@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o755])
def test_an_existing_file_keeps_its_permissions(folder: Path, permissions: int) -> None:
    file = folder / "a"
    file.write_text("old")
    file.chmod(permissions)

    write_atomically(file, "new")

    assert (file.read_text(), mode(file)) == ("new", permissions)


def test_a_link_stays_and_its_target_is_replaced(folder: Path) -> None:
    (folder / "dotfiles").mkdir()
    target = folder / "dotfiles" / "settings.json"
    target.write_text("old")
    link = folder / "settings.json"
    link.symlink_to("dotfiles/settings.json")

    write_atomically(link, "new")

    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / "a"
    file.write_text("old")

    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(file, "new")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(file, "\ud800")

    assert file.read_text() == "old"
    assert os.listdir(folder) == ["a"]


def test_a_reader_sees_the_old_or_the_new(folder: Path) -> None:
    file = folder / "a"
    versions = ["a" * 100_000, "b" * 100_000]
    file.write_text(versions[0])
    done = threading.Event()
    seen: set[str] = set()

    def read() -> None:
        while not done.is_set():
            seen.add(file.read_text())

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(50):
        write_atomically(file, versions[number % 2])
    done.set()
    reader.join()

    assert seen <= set(versions)


@pytest.mark.slow
def test_a_lock_is_waited_for_but_not_for_ever(folder: Path) -> None:
    file = folder / "a"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdin
    assert holder.stdout
    assert holder.stdout.readline() == "held\n"

    with pytest.raises(TimeoutError, match="another process holds the lock"), exclusive_lock(file, timeout=0.05):
        pass
    threading.Timer(0.05, holder.stdin.close).start()
    with exclusive_lock(file):
        assert holder.wait(10) == 0
    holder.stdout.close()


def test_a_lock_is_free_after_an_error(folder: Path) -> None:
    def fail() -> None:
        with exclusive_lock(folder / "a"):
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with exclusive_lock(folder / "a"):
        pass


def test_a_lock_leaves_no_file_behind(folder: Path) -> None:
    with exclusive_lock(folder / "a"):
        assert (folder / "a.lock").stat().st_mode & 0o777 == 0o600

    assert list(folder.iterdir()) == []


COUNT = """
import sys
from pathlib import Path
from llxprt_hooks.settings import exclusive_lock
file = Path(sys.argv[1])
for _ in range(200):
    with exclusive_lock(file):
        file.write_text(str(int(file.read_text()) + 1))
"""


@pytest.mark.slow
def test_processes_that_lock_at_once_exclude_each_other(folder: Path) -> None:
    file = folder / "count"
    file.write_text("0")
    counting = [subprocess.Popen([sys.executable, "-c", COUNT, str(file)]) for _ in range(4)]

    assert [each.wait(60) for each in counting] == [0, 0, 0, 0]
    assert file.read_text() == "800"
    assert list(folder.iterdir()) == [file]


def test_a_lock_that_was_taken_away_is_not_taken_from_the_next_one(folder: Path) -> None:
    lock = folder / "a.lock"
    with exclusive_lock(folder / "a"):
        lock.unlink()
        lock.touch()  # the next one's

    assert lock.exists()


def test_a_file_of_that_name_with_content_is_not_removed_as_a_lock(folder: Path) -> None:
    (folder / "a.lock").write_text("mine")

    with exclusive_lock(folder / "a"):
        pass

    assert (folder / "a.lock").read_text() == "mine"
