"""The system call: start a program on three file descriptors."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Streams = tuple[int, int, int]


def launch(
    argv: Sequence[str], executable: str, streams: Streams, env: Mapping[str, str], cwd: str, started: list[int]
) -> None:
    """Start a program in its own session and append its pid to ``started``. The caller has to reap it.

    Raises OSError or ValueError if the program cannot be started. The ``filename`` of an OSError is ``cwd`` if that is
    the problem, otherwise the executable. The pid is not returned but appended, so that the caller can kill the process
    whatever is raised afterwards.
    """
    stdin, stdout, stderr = streams
    # Without preexec_fn, Python uses vfork on Linux, whose cost does not depend on the memory size of this process.
    popen = subprocess.Popen(
        argv,
        executable=executable,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=env,
        cwd=cwd,
        start_new_session=True,
    )
    started.append(popen.pid)
    popen.returncode = 0  # we reap it; otherwise Popen would warn that it is still running, and reap it itself
