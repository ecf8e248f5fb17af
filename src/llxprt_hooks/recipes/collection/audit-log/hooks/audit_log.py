#!/usr/bin/env python3
"""Logs what the agent does: one JSON object per line in .llxprt/state/audit.jsonl, readable only by the user.

Each line has a number and the SHA-256 of the line before it. Outside the project, in
~/.local/state/llxprt-hooks/audit/, a small file has the number of the first line and the number and hash of the last
one. This command detects a log that was changed, cut at either end, emptied, replaced or deleted:

    python3 .llxprt/hooks/audit_log.py --verify
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import sys
import typing

MAX_LENGTH = 200  # characters of an argument; of longer ones the length and the hash are kept
MAX_BYTES = 10 * 1024 * 1024  # bytes, then a new file is begun and one old one is kept
FIELDS = ("tool_name", "source", "reason", "trigger", "notification_type", "message")
FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


def shortened(value: object) -> object:
    if isinstance(value, str) and len(value) > MAX_LENGTH:
        data = value.encode("utf-8", "surrogatepass")
        return {"begin": value[:MAX_LENGTH], "characters": len(value), "sha256": hashlib.sha256(data).hexdigest()}
    if isinstance(value, dict):
        return {key: shortened(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shortened(inner) for inner in value[:50]]
    return value


def record(event: dict[str, typing.Any]) -> dict[str, object]:
    entry = {"at": event["timestamp"], "session": event["session_id"], "event": event["hook_event_name"]}
    entry.update({field: shortened(event[field]) for field in FIELDS if field in event})
    if "tool_input" in event:
        entry["input"] = shortened(event["tool_input"])
    if "tool_response" in event:
        error = event["tool_response"].get("error")
        entry["outcome"] = "error" if error else "ok"
        entry.update({"error": shortened(error)} if error else {})
    if "prompt" in event:
        entry["prompt"] = shortened(event["prompt"])
    return entry


def line_hash(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def state_folder(project: str) -> int:
    """The folder of the log, opened. Nothing on the way to it may be a link, which would lead out of the project."""
    folder = os.open(project, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for name in (".llxprt", "state"):
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=folder)
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        os.close(folder)
        folder = inner
    try:
        ignore = os.open(".gitignore", FLAGS | os.O_EXCL, 0o600, dir_fd=folder)
    except FileExistsError:
        pass  # a link too, wherever it leads
    else:
        os.write(ignore, b"*\n")
        os.close(ignore)
    return folder


def open_in(folder: int, name: str, flags: int = FLAGS) -> typing.BinaryIO:
    opened = os.open(name, flags, 0o600, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        raise OSError(f"{name} is not a regular file")
    return os.fdopen(opened, "r+b" if flags & os.O_RDWR else "rb")


def anchor_file(project: str) -> str:
    """Where the number and the hash of the first and last line are kept: out of reach of tools in the project."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    folder = os.path.join(base, "llxprt-hooks", "audit")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    name = hashlib.sha256(os.path.realpath(project).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return os.path.join(folder, f"{name}.json")


def write(project: str, entry: dict[str, object]) -> None:
    folder = state_folder(project)
    with os.fdopen(os.open(anchor_file(project), FLAGS, 0o600), "r+b") as head:
        fcntl.flock(head, fcntl.LOCK_EX)  # hooks that run at once take turns
        anchor = json.loads(head.read() or b"{}")
        size = os.stat("audit.jsonl", dir_fd=folder).st_size if "audit.jsonl" in os.listdir(folder) else 0
        if size > MAX_BYTES:
            os.replace("audit.jsonl", "audit.jsonl.1", src_dir_fd=folder, dst_dir_fd=folder)
        if size > MAX_BYTES or not anchor:
            anchor["first"] = anchor.get("last", 0) + 1
        number = anchor.get("last", 0) + 1
        line = json.dumps({"number": number, **entry, "previous": anchor.get("hash", "")}).encode("ascii")
        with open_in(folder, "audit.jsonl", FLAGS | os.O_APPEND) as log:
            log.write(line + b"\n")
        anchor.update({"project": project, "last": number, "hash": line_hash(line)})
        head.seek(0)
        head.truncate()
        head.write(json.dumps(anchor).encode("ascii"))


def verify(project: str) -> str | None:
    """What is wrong with the log, or None."""
    try:
        with open(anchor_file(project), "rb") as head:
            anchor = json.loads(head.read() or b"{}")
    except FileNotFoundError:
        anchor = {}
    try:
        with open_in(state_folder(project), "audit.jsonl", os.O_RDONLY | os.O_NOFOLLOW) as log:
            lines = log.read().split(b"\n")[:-1]
    except OSError as error:
        return f"it cannot be read ({error}), and {anchor['last']} lines were written" if anchor else None
    if not anchor:
        return (
            "it was not written by this user on this machine, so there is nothing to compare it with" if lines else None
        )
    expected, previous = anchor["first"], None
    for line in lines:
        try:
            entry = json.loads(line)
            number, said = entry["number"], entry["previous"]
        except (ValueError, KeyError, TypeError):
            return f"the line after line {expected - 1} was not written by this hook"
        if number != expected:
            return f"line {expected} is missing; line {number} is in its place"
        if previous is not None and said != previous:
            return f"line {number - 1} is not the one that was written"
        previous = line_hash(line)
        expected += 1
    if expected - 1 != anchor["last"]:
        return f"lines {expected} to {anchor['last']} are missing at the end"
    return None if previous == anchor["hash"] else f"line {anchor['last']} is not the one that was written"


def main() -> None:
    if sys.argv[1:] == ["--verify"]:
        path = os.path.join(os.getcwd(), ".llxprt", "state", "audit.jsonl")
        if problem := verify(os.getcwd()):
            sys.exit(f"{path}: {problem}")
        print(f"{path}: unbroken")
        return
    event = json.loads(sys.stdin.buffer.read())
    write(event["cwd"], record(event))


if __name__ == "__main__":
    main()
