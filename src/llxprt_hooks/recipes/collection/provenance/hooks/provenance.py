#!/usr/bin/env python3
"""After outside content was read, asks about calls with values that the user did not name.

BeforeAgent keeps the user's prompts, AfterTool keeps that the session has read something from outside of the project,
and BeforeTool compares: an address, an id, a path or an amount that no prompt contains may come from what was read.
"""

from __future__ import annotations

import collections.abc
import json
import os
import re
import sys

from llxprt_hooks.recipes.collection.parts.call_commands import SHELL_TOOL, command_lines
from llxprt_hooks.recipes.collection.parts.call_paths import paths_in

ALLOWED = os.environ.get("PROVENANCE_ALLOWED", "")  # values that need no question, like those of a prompt

# Tools that only read, by the first word of their names. What they read may be from outside.
READS = re.compile(
    r"(?i)(get|read|list|search|find|fetch|view|show|query|check|lookup|look|count|describe|glob|grep|ls|cat|web|google"
    r"|browse|open|download|summarize)(?![a-z])|.*_(search|fetch|read|list)$"
)
# Tools of coding agents whose results are the agent's own words.
WRITES = {"write_file", "replace", "edit", "edit_file", "write", "multiedit", "save_memory", "todo_write", "todowrite"}
# Commands that bring something in from elsewhere.
NETWORK = re.compile(
    r"\b(curl|wget|http|https|nc|ncat|ssh|scp|sftp|rsync|ftp|gh|glab|aws|gcloud|az|kubectl|docker|psql|mysql|mail"
    r"|git\s+(clone|fetch|pull)|pip3?\s+(install|download)|npm\s+(install|i|view)|lynx|w3m)\b|://"
)
# Arguments with these names are what a call says, not where it goes.
BODIES = {"body", "content", "contents", "text", "message", "msg", "subject", "title", "description", "comment", "note",
          "query", "prompt", "question", "summary", "reason", "code", "oldstring", "newstring", "oldstr",
          "newstr", "html", "markdown", "caption", "location"}  # fmt: skip
MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?Z?)?|\d\d?:\d\d")
# What a command may name: addresses of the web and of mail, and of machines, and paths outside of the project.
ADDRESSES = re.compile(
    r"\w+://[^\s'\"|;&<>()]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])"
)
HOSTS = re.compile(r"(?<![\w/.@-])(?:[\w-]+\.)+[a-z]{2,}(?=[\s:/'\"]|$)(?:[:/][^\s'\"|;&<>()]*)?")
PATHS = re.compile(r"(?<![\w./:$-])(?:~|\.\.|/)[^\s'\"|;&<>()]*")
HARMLESS_PATHS = ("/dev/null", "/dev/stderr", "/dev/stdout", "/tmp", "/usr/bin", "/bin")
MAX_SHOWN = 3


def own_name(tool: str) -> str:
    """The name that the server of a tool uses for it."""
    return tool.rpartition("__")[2]


def only_reads(tool: str) -> bool:
    return bool(READS.match(own_name(tool)))


def is_inside(path: str, project: str) -> bool:
    """Whether a path is a visible part of the project. Hidden files steer programs."""
    top = os.path.realpath(project)
    inner = os.path.relpath(os.path.realpath(os.path.join(top, os.path.expanduser(path))), top)
    return not any(part.startswith(".") and part != "." for part in inner.split(os.sep))


def reads_outside(tool: str, given: dict[str, object], project: str) -> bool:
    """Whether the result of a call may have somebody else's words in it."""
    if own_name(tool).lower() in WRITES:
        return False
    if SHELL_TOOL.search(tool):
        return any(NETWORK.search(line) for _, line, _ in command_lines(tool, given))
    paths = paths_in(given, project) if only_reads(tool) else []
    there = [os.path.exists(os.path.join(project, path)) and is_inside(path, project) for path in paths]
    return not (there and all(there))


def values_in(value: object, name: str = "") -> collections.abc.Iterator[str]:
    """The addresses, ids, paths and amounts of a call, whatever its arguments are called."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from values_in(inner, re.sub(r"[\W_]", "", key.lower()))
    elif isinstance(value, list):
        for inner in value:
            yield from values_in(inner, name)
    elif name in BODIES or value is None or isinstance(value, bool) or value == "":
        return
    elif not MOMENT.fullmatch(str(value)):
        yield str(value)


def values_of_command(line: str, project: str) -> collections.abc.Iterator[str]:
    yield from ADDRESSES.findall(line)
    if NETWORK.search(line):
        yield from HOSTS.findall(ADDRESSES.sub(" ", line))
    for path in PATHS.findall(line):
        if not path.startswith(HARMLESS_PATHS) and not is_inside(path, project):
            yield path


def plain(text: str) -> str:
    """A text in the form in which it is compared: no difference of case, spaces and thousands."""
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", re.sub(r"\s+", " ", text.casefold()))
    return re.sub(r"(?<=\d)\.0+(?!\d)", "", text)


def is_named(value: str, named: str) -> bool:
    """Whether the user has named a value, as a whole word."""
    wanted = plain(value).strip()
    wanted = re.sub(r"^(?:\w+://|\./)", "", wanted).rstrip("/")
    return bool(wanted) and re.search(rf"(?<![\w.@-]){re.escape(wanted)}(?![\w@-])(?!\.\w)", named) is not None


def strange(tool: str, given: dict[str, object], project: str, named: str) -> list[str]:
    """The values of a call that the user has not named."""
    if only_reads(tool):  # what is fetched from an address can carry data there
        values = [value for value in values_in(given) if "://" in value or re.match(r"www\.", value)]
    elif SHELL_TOOL.search(tool):
        values = [value for _, line, _ in command_lines(tool, given) for value in values_of_command(line, project)]
    else:
        inside = {path for path in paths_in(given, project) if is_inside(path, project)}
        is_writing = own_name(tool).lower() in WRITES
        values = [value for value in values_in(given) if not (is_writing and value in inside)]
    return [value for value in dict.fromkeys(values) if not is_named(value, named)]


def remembered(folder: str, name: str) -> str | None:
    try:
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as opened:
            return opened.read()
    except FileNotFoundError:
        return None


def remember(folder: str, name: str, text: str) -> None:
    with open(os.path.join(folder, name), "a", encoding="utf-8", errors="replace") as opened:
        opened.write(f"{text}\n")


def answer(event: dict[str, object], folder: str | None) -> dict[str, str] | None:
    """What the hook answers. Without a folder nothing can be remembered, so everything counts as read."""
    which = event["hook_event_name"]
    if which == "BeforeAgent":
        if folder:
            remember(folder, "provenance-prompts", str(event["prompt"]))
        return None
    tool, given, project = str(event["tool_name"]), dict(event["tool_input"]), str(event["cwd"])  # type: ignore[call-overload]
    if which == "AfterTool":
        if folder and reads_outside(tool, given, project):
            remember(folder, "provenance-read", tool)
        return None
    source = remembered(folder, "provenance-read") if folder else "what nobody could remember"
    if source is None:
        return None
    named = plain(f"{remembered(folder, 'provenance-prompts') if folder else ''}\n{ALLOWED}")
    found = strange(tool, given, project, named)
    if not found:
        return None
    shown = ", ".join(f"`{value[:80]}`" for value in found[:MAX_SHOWN])
    more = f" and {len(found) - MAX_SHOWN} more" if len(found) > MAX_SHOWN else ""
    first = source.split("\n", 1)[0]
    reason = f"No prompt names {shown}{more}, and this session has read outside content ({first})."
    return {"decision": "ask", "reason": reason}


def main() -> None:
    given = answer(json.loads(sys.stdin.buffer.read()), os.environ.get("LLXPRT_SESSION_DIR"))
    if given is not None:
        print(json.dumps(given))


if __name__ == "__main__":
    main()
