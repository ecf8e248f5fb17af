"""A program that searches files for a pattern, line by line.

It runs in a separate process, because some patterns take exponential time and only a process can be killed during a
match. It is started by its path and uses only the standard library.

It reads one JSON object: ``pattern``, ``files``, ``limit``, ``largest``. Files are relative to the working directory.
They are opened folder by folder without following any link, so a folder that becomes a link leads nowhere. It writes
one JSON array per line: for each of the first ``limit`` matches ``["match", index of the file, line number, text]``,
immediately; then ``["end", number of matches, number of files that were too large]``. For an invalid pattern it writes
``["invalid", reason]``.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys

_WIDTH = 500
"""Maximum characters of a line that are shown."""

_LEAD = 100
"""Characters shown before the match in a longer line."""

_BINARY_CHECK = 8192
"""A file with a NUL among this many bytes at its beginning is binary."""


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def main() -> None:
    request = json.load(sys.stdin.buffer)
    try:
        pattern = re.compile(request["pattern"])
    except (re.error, OverflowError, RecursionError) as error:
        return send("invalid", str(error))
    found = too_large = 0
    folders = Folders()
    for index, path in enumerate(request["files"]):
        data = content(folders, path, request["largest"])
        if data is None:
            too_large += 1
            continue
        for number, line in enumerate(lines(data), 1):
            if match := pattern.search(line):
                found += 1
                if found <= request["limit"]:
                    send("match", index, number, excerpt(line, match.start()))
    return send("end", found, too_large)


class Folders:
    """Opens folders from the working directory down. Keeps the latest one open: the next file is usually in it too."""

    def __init__(self) -> None:
        self._latest = ("", os.open(".", _FOLDER))

    def opened(self, path: str) -> int:
        latest, descriptor = self._latest
        if path != latest:
            opened = os.open(".", _FOLDER)
            for name in path.split("/") if path else ():
                outer = opened
                try:
                    opened = os.open(name, _FOLDER, dir_fd=outer)
                finally:
                    os.close(outer)
            os.close(descriptor)
            self._latest = path, opened
        return self._latest[1]


def content(folders: Folders, path: str, largest: int) -> bytes | None:
    """Read a file: empty if it is unreadable or binary, None if it is too large."""
    folder, _, name = path.rpartition("/")
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(name, flags, dir_fd=folders.opened(folder))
    except OSError:
        return b""
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return b""
        if status.st_size > largest:
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as opened:
            data = opened.read(largest)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
    return b"" if b"\0" in data[:_BINARY_CHECK] else data


def lines(data: bytes) -> list[str]:
    split = data.split(b"\n")
    if not split[-1]:
        split.pop()
    return [line.removesuffix(b"\r").decode("utf-8", "replace") for line in split]


def excerpt(line: str, at: int) -> str:
    """Return the line, or the part of a long line around the match."""
    if len(line) <= _WIDTH:
        return line
    start = max(0, min(at - _LEAD, len(line) - _WIDTH))
    end = start + _WIDTH
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")


def send(*message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
