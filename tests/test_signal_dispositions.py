"""Tests do not depend on how pytest was started."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import signal
import conftest
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, flush=True)
import subprocess
subprocess.run([
    "bash", "-c", "for name in HUP INT QUIT TERM; do (kill -$name $BASHPID; echo $name is ignored); done"
], stderr=subprocess.DEVNULL)
"""


def test_signals_that_the_caller_ignores_have_their_default_action_in_tests() -> None:
    ignoring = "trap '' HUP INT QUIT TERM; exec \"$@\""

    done = subprocess.run(
        ["bash", "-c", ignoring, "bash", sys.executable, "-c", SCRIPT],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.stdout, done.stderr) == ("True\n", "")
