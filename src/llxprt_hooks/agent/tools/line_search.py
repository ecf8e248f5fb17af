"""The program that looks for a pattern in files, line by line.

It runs as a process of its own, by its path and with nothing but the standard library: some patterns take the regular
expression engine longer than anybody lives, and only a process can be ended in the midst of that.

It reads one JSON object: ``pattern``, ``files``, ``limit``, ``largest``. It writes a JSON array a line: ``["match",
index of the file, line number, text]`` for the first ``limit`` matches, at once; and at the end ``["end", number of
matches, number of files that were too large]``, or ``["invalid", why]``.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys

_WIDTH = 500
"""Characters of a line that are shown."""

_LEAD = 100
"""Characters before the match that are shown of a longer line."""

_BINARY_SIGN = 8192
"""Bytes at the beginning of a file among which a NUL says that it is not text."""


def main() -> None:
    request = json.load(sys.stdin.buffer)
    try:
        pattern = re.compile(request["pattern"])
    except (re.error, OverflowError, RecursionError) as error:
        return say("invalid", str(error))
    found = too_large = 0
    for index, path in enumerate(request["files"]):
        data = content(path, request["largest"])
        if data is None:
            too_large += 1
            continue
        for number, line in enumerate(lines(data), 1):
            match = pattern.search(line)
            if match:
                found += 1
                if found <= request["limit"]:
                    say("match", index, number, excerpt(line, match.start()))
    return say("end", found, too_large)


def content(path: str, largest: int) -> bytes | None:
    """A file's bytes: none where it cannot be read or is no text, None where it is too large."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
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
    return b"" if b"\0" in data[:_BINARY_SIGN] else data


def lines(data: bytes) -> list[str]:
    split = data.split(b"\n")
    if not split[-1]:
        split.pop()
    return [line.removesuffix(b"\r").decode("utf-8", "replace") for line in split]


def excerpt(line: str, at: int) -> str:
    """The line, or the part of a long one in which the match is."""
    if len(line) <= _WIDTH:
        return line
    start = max(0, min(at - _LEAD, len(line) - _WIDTH))
    end = start + _WIDTH
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")


def say(*message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
