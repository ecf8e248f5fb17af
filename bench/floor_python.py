"""The floor where there is no C compiler: the loop of floor.c in bare Python, 1.05 to 1.09 times as slow."""

from __future__ import annotations

import os
import select
import sys
import time
from itertools import groupby
from pathlib import Path

_CHUNK = 65536


class Hook:
    """One started process and what is left to write to it and to read from it."""

    def __init__(self, argv: list[str], payload: bytes) -> None:
        their_stdin, self.stdin = os.pipe()
        self.stdout, their_stdout = os.pipe()
        self.stderr, their_stderr = os.pipe()
        os.set_blocking(self.stdin, False)
        self.rest = memoryview(payload)
        self.printed = 0
        self.feed()
        theirs = (their_stdin, their_stdout, their_stderr)
        actions = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(theirs)]
        self.pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=actions)
        for fd in theirs:
            os.close(fd)

    def feed(self) -> None:
        try:
            while self.rest:
                self.rest = self.rest[os.write(self.stdin, self.rest) :]
        except BlockingIOError:
            return
        os.close(self.stdin)
        self.stdin = -1

    def finish(self) -> None:
        poll = select.poll()
        poll.register(self.stdout, select.POLLIN)
        poll.register(self.stderr, select.POLLIN)
        if self.stdin >= 0:
            poll.register(self.stdin, select.POLLOUT)
        reading = {self.stdout, self.stderr}
        while reading:
            for fd, _ in poll.poll():
                if fd not in reading:
                    self.feed()
                    if self.stdin < 0:
                        poll.unregister(fd)
                elif data := os.read(fd, _CHUNK):
                    self.printed += len(data)
                else:
                    poll.unregister(fd)
                    os.close(fd)
                    reading.remove(fd)
        status = os.waitpid(self.pid, 0)[1]
        if status or not self.printed:
            sys.exit(f"floor: the hook failed with status {status}")


def batch(argv: list[str], payload: bytes, width: int) -> int:
    started = time.perf_counter_ns()
    hooks = [Hook(argv, payload) for _ in range(width)]
    for hook in hooks:
        hook.finish()
    return time.perf_counter_ns() - started


def main() -> None:
    groups = [list(group) for between, group in groupby(sys.argv[1:], "--".__eq__) if not between]
    commands = {kind: command for kind, *command in groups}
    for line in sys.stdin:
        kind, count, width, file = line.rstrip("\n").split(" ", 3)
        payload = Path(file).read_bytes()
        print(*(batch(commands[kind], payload, int(width)) for _ in range(int(count))), flush=True)


if __name__ == "__main__":
    main()
