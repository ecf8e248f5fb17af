"""A program of a test that does not end in time says where it is."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.processes import end, run_python, where_it_hangs

HANGS = """
import threading
def in_a_thread(): threading.Event().wait()
threading.Thread(target=in_a_thread).start()
def in_the_main_thread():
    print("before", flush=True)
    threading.Event().wait()
in_the_main_thread()
"""

ENDS_BEFORE_ITS_CHILD = """
import subprocess
print(subprocess.Popen(["sleep", "600"]).pid, flush=True)
"""


def started(text: str) -> tuple[subprocess.Popen[bytes], str]:
    """A program, and the first line that it prints."""
    command = [sys.executable, "-X", "faulthandler", "-c", text]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
    assert process.stdout
    return process, process.stdout.readline().decode().strip()


def test_the_stacks_of_all_threads_are_in_the_message() -> None:
    process, _ = started(HANGS)
    with process:
        message = where_it_hangs(process)

    assert "did not end in time" in message
    assert " in in_a_thread\n" in message
    assert " in in_the_main_thread\n" in message


def test_a_process_that_keeps_the_output_open_is_in_the_message() -> None:
    process, child = started(ENDS_BEFORE_ITS_CHILD)
    with process:
        process.wait()
        message = where_it_hangs(process)
        end(int(child))

    assert "ended with status 0, but its output did not" in message
    assert f"\n{child} b'sleep" in message


def test_a_program_that_takes_too_long_fails_the_test() -> None:
    with pytest.raises(pytest.fail.Exception, match="did not end in time"):
        run_python("-c", "import time; time.sleep(600)", seconds=0.1)


def test_a_program_that_ends() -> None:
    done = run_python("-c", "import sys; print(input()); sys.exit('bad')", stdin="given\n")

    assert (done.returncode, done.stdout, done.stderr) == (1, "given\n", "bad\n")
