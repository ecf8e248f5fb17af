"""Where the paths of a call are, whatever its arguments are called."""

from __future__ import annotations

import collections.abc
import json
import os
import re

MAX_PATH = 4096  # characters that the system takes
# The ends of names of arguments that hold a path, in lower case and without _ and -.
PATH_ENDS = ("path", "paths", "file", "files", "filename", "filenames", "dir", "directory", "folder", "uri", "uris",
             "destination", "dest", "dst")  # fmt: skip
# Arguments with these names hold a path if the text has no spaces or is the name of a file.
PATH_NAMES = {"source", "src", "target", "include", "notebook", "document", "from", "to"}
# Any other text is a path if it is the name of a file, except these. If a tool has no argument with a name from above,
# all texts with a slash and without spaces are checked too.
NOT_PATHS = ("content", "contents", "text", "body", "string", "str", "code", "command", "cmd", "description", "message",
             "prompt", "query", "q", "pattern", "question", "reason", "title", "task", "url")  # fmt: skip
PATCHED = re.compile(
    r"^(?:\*\*\* (?:Add|Update|Delete) File: |\*\*\* Move to: "
    r"|(?:---|\+\+\+) \"?(?:[ab]/)?|(?:rename|copy) (?:from|to) )"
    r"([^\t\r\n]+)",
    re.MULTILINE,
)


def named_texts(value: object, name: str = "", depth: int = 0) -> collections.abc.Iterator[tuple[str, str]]:
    """Every text in the arguments, also in texts that are JSON, with the name of its argument."""
    if isinstance(value, str):
        yield name, value
        if depth < 5 and value.lstrip().startswith(("{", "[")) and not name.endswith(NOT_PATHS):
            try:
                yield from named_texts(json.loads(value), name, depth + 1)
            except ValueError:
                return
    elif isinstance(value, list):
        for inner in value:
            yield from named_texts(inner, name, depth)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if name.endswith(PATH_ENDS):
                yield name, key  # {"files": {"a.txt": "…"}}
            yield from named_texts(inner, key.lower().replace("_", "").replace("-", ""), depth)


def from_uri(text: str) -> list[str]:
    """The path of a file: address."""
    from urllib.parse import unquote  # here, because most calls have no such address

    path = re.sub(r"(?i)^file:(?://(?:localhost(?=/))?)?", "", text)
    return list(dict.fromkeys([unquote(re.sub(r"[?#].*", "", path, flags=re.DOTALL)), unquote(path)]))


def paths_in(given: object, folder: str) -> list[str]:
    """The paths in the arguments of a call."""
    sure: list[str] = []
    maybe: list[str] = []
    others: list[str] = []
    for name, text in named_texts(given):
        is_path = name.endswith(PATH_ENDS)
        patched = PATCHED.findall(text) if not name.endswith(NOT_PATHS) else []
        sure += [
            re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), path).strip('"') for path in patched
        ]
        text = text.strip()
        if len(text) > MAX_PATH:
            text = os.path.normpath(text)  # it may have many ..
        # A web address is not a path, unless a tool may shorten it to one: http://../.env
        is_address = re.match(r"(?i)(?:https?|ftp|s3|gs)://", text) and "/.." not in text
        if not text or len(text) > MAX_PATH or is_address:
            continue
        if re.match(r"(?i)file:", text) and (is_path or name.endswith("url") or not name.endswith(NOT_PATHS)):
            sure += from_uri(text)
        elif is_path:
            sure.append(text)
        elif not name.endswith(NOT_PATHS):
            (maybe if name in PATH_NAMES else others).append(text)
    tops = ["", *(text for text in dict.fromkeys(sure) if os.path.isdir(os.path.join(folder, text)))][:5]

    def existing(text: str) -> list[str]:
        """Where the file that a text names is. A folder counts if the text has a slash."""
        found = [os.path.join(top, os.path.expanduser(text)) for top in tops]
        there = os.path.exists if "/" in text else os.path.isfile
        return [path for path in found if there(os.path.join(folder, path))]

    paths = sure + [path for text in maybe for path in existing(text) or ([] if re.search(r"\s", text) else [text])]
    if not paths:
        paths = [text for text in others if "/" in text and not re.search(r"\s", text)]
    return list(dict.fromkeys(paths + [path for text in others for path in existing(text)]))
