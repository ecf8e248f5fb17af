#!/usr/bin/env python3
"""BeforeTool: no code without a test. A write to a source file is blocked until there is a test for it.

With TEST_FIRST=changed in the environment the test also has to be new or changed since the last commit: then every
change of behaviour begins with a test.
"""

import json
import os
import re
import subprocess
import sys

MODE = os.environ.get("TEST_FIRST", "exists")

# For a source file `name.ext`: the names that its test may have, anywhere in the project.
TESTS = {
    (".py",): ["test_{}.py", "{}_test.py", "test_{}s.py"],
    (".js", ".jsx", ".mjs", ".ts", ".tsx"): ["{}.test{}", "{}.spec{}", "{}-test{}"],
    (".go",): ["{}_test.go"],
    (".rb",): ["{}_spec.rb", "test_{}.rb", "{}_test.rb"],
    (".java",): ["{}Test.java", "{}Tests.java", "{}IT.java"],
    (".kt",): ["{}Test.kt"],
    (".cs",): ["{}Tests.cs", "{}Test.cs"],
    (".php",): ["{}Test.php"],
    (".swift",): ["{}Tests.swift"],
    (".ex",): ["{}_test.exs"],
    (".rs",): ["{}_test.rs", "test_{}.rs", "{}_tests.rs"],
    (".c", ".cc", ".cpp"): ["test_{}{}", "{}_test{}", "{}_tests{}"],
}
SCRIPT_ENDINGS = [".js", ".jsx", ".mjs", ".ts", ".tsx"]

# No tests are asked for these.
EXEMPT = re.compile(
    r"(^|/)(__init__|__main__|conftest|setup|manage|version|_version|settings|config|index|main|mod|types?)\.\w+$"
    r"|\.d\.ts$|\.config\.\w+$|(^|/)(migrations?|examples?|docs?|scripts?|bench(marks)?|\.[^/]+)/"
)
IS_TEST = re.compile(
    r"(^|/)(tests?|specs?|__tests__|testing)/|(^|/)(test_|conftest)|[._-](test|spec)s?\.\w+$|Tests?\.\w+$|IT\.java$"
)
SKIPPED = {"node_modules", "venv", "env", "dist", "build", "target", "vendor", "__pycache__", "site-packages"}


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


def wanted_tests(path):
    stem, end = os.path.splitext(os.path.basename(path))
    end = end.lower()
    for ends, patterns in TESTS.items():
        if end in ends:
            others = SCRIPT_ENDINGS if end in SCRIPT_ENDINGS else [end]
            return [pattern.format(stem, other) for pattern in patterns for other in others]
    return []


def existing(names, project):
    names = set(names)
    for folder, folders, files in os.walk(project):
        folders[:] = [each for each in folders if each not in SKIPPED and not each.startswith(".")]
        for name in names.intersection(files):
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8", errors="replace") as opened:
                if re.search(r"(?i)assert|expect|should|test|require|check", opened.read(1_000_000)):
                    yield path  # an empty file is not a test


def is_approved(project):
    """Whether the project's own programs may run. Where the engine does not say, this script has to be a part of it."""
    if (said := os.environ.get("LLXPRT_PROJECT_TRUSTED")) is not None:
        return said == "1"
    return os.path.realpath(__file__).startswith(os.path.realpath(project) + os.sep)


def is_changed(path, project):
    """Whether a file differs from the last commit; every file does without git, or if the project is not approved."""
    if not is_approved(project):  # `git status` runs filters that the repository names
        return True
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "status", "--porcelain", "--", path],
            cwd=project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return True
    return done.returncode != 0 or bool(done.stdout.strip())


def main():
    call = json.loads(sys.stdin.buffer.read())
    project = os.path.realpath(call["cwd"])
    for given in paths_in(call["tool_input"], project):
        if not (given.lower().endswith(".rs") and "#[test]" in json.dumps(call["tool_input"])):  # tests beside the code
            check(given, project)


def check(given, project):
    """Block the call if this file needs a test first."""
    path = os.path.relpath(os.path.realpath(os.path.join(project, given)), project)
    names = wanted_tests(path)
    if not names or path.startswith("..") or EXEMPT.search(path) or IS_TEST.search(path):
        return
    tests = list(existing(names, project))
    if not tests:
        print(
            f"Test first: there is no test for {path}. Write one, for example {names[0]}, run it and see it fail. "
            "Then repeat this change.",
            file=sys.stderr,
        )
        sys.exit(2)
    if MODE == "changed" and not any(is_changed(test, project) for test in tests):
        shown = ", ".join(os.path.relpath(test, project) for test in tests[:3])
        print(
            f"Test first: {shown} has not changed since the last commit. Add a test for this change, run it and see "
            "it fail. Then repeat this change.",
            file=sys.stderr,
        )
        sys.exit(2)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        sys.stderr.buffer.write(f"Test first: this call cannot be checked ({type(error).__name__}).".encode())
        sys.exit(2)
