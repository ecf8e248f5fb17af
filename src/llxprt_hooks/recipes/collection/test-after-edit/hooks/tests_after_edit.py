#!/usr/bin/env python3
"""AfterTool: runs the tests after an edit, and shows the model the result.

Edits of one answer are made in parallel; their tests are run one after another, and an edit that was made before a
run began takes over that run's result instead of asking for another.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

COMMAND = os.environ.get("TEST_AFTER_EDIT_COMMAND", "")  # what to run; found out if empty
TIME_LIMIT = 120  # seconds; the hook's own `timeout` has to be longer
LONGEST = 4000  # characters of output for the model
NOT_CODE = (".md", ".rst", ".txt", ".adoc", ".svg", ".png", ".jpg", ".gif", ".ico", ".lock", ".csv", "LICENSE")


# Where the paths of a call are. This part is the same in all recipes that check paths.

LONGEST_PATH = 4096  # characters that the system takes
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
    r"^(?:\*\*\* (?:Add|Update|Delete) File: |\*\*\* Move to: |(?:---|\+\+\+) (?:[ab]/)?|(?:rename|copy) (?:from|to) )"
    r"([^\t\r\n]+)",
    re.MULTILINE,
)


def named_texts(value, name="", depth=0):
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
            yield from named_texts(inner, key.lower().replace("_", "").replace("-", ""), depth)


def from_uri(text):
    """The path of a file: address."""
    from urllib.parse import unquote  # here, because most calls have no such address

    path = re.sub(r"(?i)^file:(?://(?:localhost(?=/))?)?", "", text)
    return list(dict.fromkeys([unquote(re.sub(r"[?#].*", "", path, flags=re.DOTALL)), unquote(path)]))


def paths_in(given, folder):
    """The paths in the arguments of a call."""
    sure, maybe, others = [], [], []
    for name, text in named_texts(given):
        is_path = name.endswith(PATH_ENDS)
        sure += PATCHED.findall(text) if not name.endswith(NOT_PATHS) else ()
        text = text.strip()
        if len(text) > LONGEST_PATH:
            text = os.path.normpath(text)  # it may have many ..
        # A web address is not a path, unless a tool may shorten it to one: http://../.env
        is_address = re.match(r"(?i)(?:https?|ftp|s3|gs)://", text) and "/.." not in text
        if not text or len(text) > LONGEST_PATH or is_address:
            continue
        if re.match(r"(?i)file:", text) and (is_path or name.endswith("url") or not name.endswith(NOT_PATHS)):
            sure += from_uri(text)
        elif is_path:
            sure.append(text)
        elif not name.endswith(NOT_PATHS):
            (maybe if name in PATH_NAMES else others).append(text)
    tops = ["", *(text for text in dict.fromkeys(sure) if os.path.isdir(os.path.join(folder, text)))][:5]

    def existing(text):
        """Where the file that a text names is. A folder counts if the text has a slash."""
        found = [os.path.join(top, os.path.expanduser(text)) for top in tops]
        there = os.path.exists if "/" in text else os.path.isfile
        return [path for path in found if there(os.path.join(folder, path))]

    paths = sure + [path for text in maybe for path in existing(text) or ([] if re.search(r"\s", text) else [text])]
    if not paths:
        paths = [text for text in others if "/" in text and not re.search(r"\s", text)]
    return list(dict.fromkeys(paths + [path for text in others for path in existing(text)]))


# The end of the part that is the same.


def is_approved(project):
    """Whether the project's own programs may run. Where the engine does not say, this script has to be a part of it."""
    if (said := os.environ.get("LLXPRT_PROJECT_TRUSTED")) is not None:
        return said == "1"
    return os.path.realpath(__file__).startswith(os.path.realpath(project) + os.sep)


def test_command(project):
    """How this project is tested, or None."""
    if COMMAND:
        return COMMAND

    def has(*names):
        return any(os.path.exists(os.path.join(project, name)) for name in names)

    if has("pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini", "conftest.py") and has("tests", "test"):
        for own in (".venv/bin/pytest", "venv/bin/pytest"):
            if has(own):
                return f"{own} -q -x"
        if shutil.which("pytest"):
            return "pytest -q -x"
    if has("package.json"):
        with open(os.path.join(project, "package.json"), encoding="utf-8") as opened:
            script = (json.load(opened).get("scripts") or {}).get("test", "")
        if script and "no test specified" not in script:
            return "npm test --silent"
    if has("go.mod"):
        return "go test ./..."
    if has("Cargo.toml"):
        return "cargo test --quiet"
    if has("Makefile"):
        with open(os.path.join(project, "Makefile"), encoding="utf-8", errors="replace") as opened:
            if any(line.startswith("test:") for line in opened):
                return "make test"
    return None


def run(command, project):
    """Run the tests; all that they started ends with them, or with this hook."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        cwd=project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=os.setpgrp,  # process_group= needs Python 3.11
    )

    def end(*_):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    signal.signal(signal.SIGTERM, lambda *_: (end(), sys.exit(1)))
    started = time.monotonic()
    try:
        output = process.communicate(timeout=TIME_LIMIT)[0].decode("utf-8", "replace").strip()
    except subprocess.TimeoutExpired:
        end()
        return f"`{command}` took longer than {TIME_LIMIT} s and was ended; run the tests that matter yourself."
    took = time.monotonic() - started
    if process.returncode == 0:
        return f"The tests pass (`{command}`, {took:.1f} s)."
    if process.returncode in (126, 127):
        print(f"`{command}` cannot be run: {output}", file=sys.stderr)
        sys.exit(1)
    shown = output if len(output) <= LONGEST else f"[…]\n{output[-LONGEST:]}"
    return f"The tests fail (`{command}`, exit code {process.returncode}):\n{shown}"


def outcome(command, project, asked):
    """The result of a run that began after `asked`: another hook's if there is one, else one of our own."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(cache, "llxprt-hooks", "test-after-edit")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    name = hashlib.sha256(f"{project}\0{command}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
    descriptor = os.open(os.path.join(folder, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+", encoding="utf-8", errors="replace") as state:
        fcntl.flock(state, fcntl.LOCK_EX)
        try:
            last = json.load(state)
        except ValueError:
            last = {}
        if "result" in last and last["began"] > asked:
            return last["result"]
        began = time.time()
        result = run(command, project)
        state.seek(0)
        state.truncate()
        json.dump({"began": began, "result": result}, state)
        return result


def main():
    asked = time.time()
    call = json.loads(sys.stdin.buffer.read())
    project = os.path.realpath(call["cwd"])
    paths = paths_in(call["tool_input"], project)
    if call["tool_response"].get("error") or (paths and all(path.endswith(NOT_CODE) for path in paths)):
        return
    command = test_command(project) if is_approved(project) else None
    if command:
        print(json.dumps({"hookSpecificOutput": {"additionalContext": outcome(command, project, asked)}}))


if __name__ == "__main__":
    main()
