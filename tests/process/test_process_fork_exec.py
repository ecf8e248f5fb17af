"""Starting a process with the private C function of CPython, where its signature is known."""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

import llxprt_hooks.process.child as child_module
from llxprt_hooks.process import SpawnError, fork_exec
from tests.process.process_runs import in_python, run

if TYPE_CHECKING:
    from pathlib import Path

IMPORT_WITH = """
import subprocess
{replace}
from llxprt_hooks.process import fork_exec
print(fork_exec.launch.__name__)
"""


@pytest.mark.skipif(
    sys.implementation.name != "cpython" or sys.version_info[:2] not in {(3, 11), (3, 12), (3, 13), (3, 14)},
    reason="the signature in this Python is not known in advance",
)
def test_spawn_uses_fork_exec_where_its_signature_is_known() -> None:
    assert child_module.launch is fork_exec.launch_with_fork_exec


@pytest.mark.parametrize(
    "replace",
    [
        "del subprocess._fork_exec",
        "subprocess._fork_exec = lambda argv: 0",
        "real = subprocess._fork_exec; subprocess._fork_exec = lambda *a, new: real(*a)",
        "subprocess._fork_exec = lambda *a: 0",
        "subprocess._fork_exec = lambda *a: 1 / 0",
        "import sys; sys.implementation.name = 'pypy'",
    ],
    ids=["missing", "fewer parameters", "another parameter", "accepts anything", "fails otherwise", "not CPython"],
)
def test_spawn_uses_popen_where_the_signature_is_unknown(tmp_path: Path, replace: str) -> None:
    printed = in_python(IMPORT_WITH.format(replace=replace), fresh=True, cwd=tmp_path)

    assert printed == "launch\n"


def test_spawn_probe_starts_nothing_and_opens_nothing(tmp_path: Path) -> None:
    printed = in_python(
        """
import os, subprocess
from llxprt_hooks.process import fork_exec

before = os.listdir("/dev/fd")
fork_exec._probe(subprocess._fork_exec)
assert os.listdir("/dev/fd") == before
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("no child")
""",
        cwd=tmp_path,
    )

    assert printed == "no child\n"


async def test_spawn_does_not_wait_for_a_process_that_another_thread_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its child has a copy of the pipe on which a failed start is reported."""
    make, copies = fork_exec._error_pipe, []

    def copied() -> tuple[int, int]:
        ends = make()
        copies.append(os.dup(ends[1]))
        return ends

    monkeypatch.setattr(fork_exec, "_error_pipe", copied)
    try:
        assert (await run("echo", "started")).stdout == b"started\n"
        with pytest.raises(SpawnError, match="there is no such program"):
            await run("no-such-program")
    finally:
        for copy in copies:
            os.close(copy)


def test_spawn_failure_may_be_reported_in_pieces() -> None:
    reader, writer = os.pipe()

    def write() -> None:
        for piece in (b"OSError:", b"2", b":", b"noexec"):
            os.write(writer, piece)
            time.sleep(0.01)
        os.close(writer)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        error = fork_exec._error(fork_exec._read_message(reader), "program", "/folder")
    finally:
        thread.join()
        os.close(reader)

    assert (error.errno, error.filename) == (errno.ENOENT, "/folder")
