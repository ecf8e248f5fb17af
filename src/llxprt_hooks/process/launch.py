"""The system call: start a program on three file descriptors."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Streams = tuple[int, int, int]


def launch(
    argv: Sequence[str],
    executable: str,
    streams: Streams,
    env: Mapping[str, str],
    cwd: str,
    started: list[int],
    *passed: int,
) -> None:
    """Start a program in its own session and append its pid to ``started``. The caller has to reap it.

    Raises OSError or ValueError if the program cannot be started. The ``filename`` of an OSError is ``cwd`` if that is
    the problem, otherwise the executable. The pid is not returned but appended, so that the caller can kill the process
    whatever is raised afterwards. The descriptors ``passed`` keep their numbers.
    """
    _Process(started, argv, executable, streams, env, cwd, passed)


class _Process(subprocess.Popen[bytes]):
    """A process that this package reaps, not Popen."""

    def __init__(
        self,
        started: list[int],
        argv: Sequence[str],
        executable: str,
        streams: Streams,
        env: Mapping[str, str],
        cwd: str,
        passed: Sequence[int],
    ) -> None:
        stdin, stdout, stderr = streams
        try:
            # Without preexec_fn, Python uses vfork on Linux: its cost does not depend on the memory of this process.
            super().__init__(
                argv,
                executable=executable,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=env,
                cwd=cwd,
                start_new_session=True,
                pass_fds=passed,
            )
        except (OSError, ValueError):  # Popen has reaped the process, if there was one
            raise
        except BaseException:  # a signal handler raised, when the program may have been started already
            if (pid := getattr(self, "pid", None)) is not None:
                self._hand_over(pid, started)
            raise
        self._hand_over(self.pid, started)

    def _hand_over(self, pid: int, started: list[int]) -> None:
        started.append(pid)
        self.returncode = 0  # otherwise Popen would warn that it is still running, and reap it itself
