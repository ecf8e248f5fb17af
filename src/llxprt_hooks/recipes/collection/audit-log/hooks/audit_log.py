#!/usr/bin/env python3
"""Writes down what the agent does: a JSON object a line in .llxprt/state/audit.jsonl, never more than the user may see.

Each line has the SHA-256 of the line before it, so a line that was changed or taken out is noticed:

    python3 .llxprt/hooks/audit_log.py --verify
"""

import fcntl
import hashlib
import json
import os
import sys

LONGEST = 200  # characters of an argument; of longer ones the length and the hash are kept
LARGEST = 10 * 1024 * 1024  # bytes, then a new file is begun and one old one is kept
FIELDS = ("tool_name", "source", "reason", "trigger", "notification_type", "message")


def shortened(value):
    if isinstance(value, str) and len(value) > LONGEST:
        data = value.encode("utf-8", "surrogatepass")
        return {"begin": value[:LONGEST], "characters": len(value), "sha256": hashlib.sha256(data).hexdigest()}
    if isinstance(value, dict):
        return {key: shortened(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shortened(inner) for inner in value[:50]]
    return value


def record(event):
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


def line_hash(line):
    return hashlib.sha256(line.rstrip("\n").encode("ascii")).hexdigest()


def last_line(opened):
    """The last line of the file, read from its end."""
    size = opened.seek(0, os.SEEK_END)
    block = 8192
    while True:
        start = max(0, size - block)
        opened.seek(start)
        lines = opened.read(size - start).rstrip(b"\n").split(b"\n")
        if len(lines) > 1 or start == 0:
            return lines[-1].decode("ascii", "replace")
        block *= 4


def state_folder(project):
    folder = os.path.join(project, ".llxprt", "state")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    ignore = os.path.join(folder, ".gitignore")
    if not os.path.exists(ignore):
        with open(ignore, "w", encoding="ascii") as opened:
            opened.write("*\n")
    return folder


def write(project, entry):
    folder = state_folder(project)
    path = os.path.join(folder, "audit.jsonl")
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(os.path.join(folder, "audit.lock"), flags, 0o600), "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(path) and os.path.getsize(path) > LARGEST:
            os.replace(path, f"{path}.1")
        with os.fdopen(os.open(path, flags | os.O_APPEND, 0o600), "r+b") as opened:
            before = last_line(opened)
            entry["previous"] = line_hash(before) if before else ""
            opened.seek(0, os.SEEK_END)
            opened.write(json.dumps(entry).encode("ascii") + b"\n")


def verify(path):
    previous = None
    with open(path, encoding="ascii") as opened:
        for number, line in enumerate(opened, start=1):
            said = json.loads(line)["previous"]
            if previous is not None and said != previous:
                sys.exit(f"{path}, line {number}: the line before it is not the one that was written")
            previous = line_hash(line)
    print(f"{path}: unbroken")


def main():
    if sys.argv[1:] == ["--verify"]:
        verify(os.path.join(os.getcwd(), ".llxprt", "state", "audit.jsonl"))
        return
    event = json.loads(sys.stdin.buffer.read())
    write(event["cwd"], record(event))


main()
