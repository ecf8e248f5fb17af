#!/usr/bin/env python3
"""AfterTool: formats the file that a tool has just written, and tells the model when that changed it.

The model has to know: otherwise its next edit looks for text that is no longer there.
"""

import json
import os
import re
import shutil
import subprocess
import sys

TIME_LIMIT = 20

# By the end of the name: the first program that is there formats the file.
FORMATTERS = {
    (".py", ".pyi"): [["ruff", "format", "--quiet"], ["black", "--quiet"]],
    (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".css", ".scss", ".html", ".vue", ".yaml", ".yml", ".md"): [
        ["prettier", "--log-level", "warn", "--write"],
        ["biome", "format", "--write"],
    ],
    (".json",): [["prettier", "--log-level", "warn", "--write"], ["biome", "format", "--write"]],
    (".go",): [["gofmt", "-w"]],
    (".rs",): [["rustfmt", "--quiet"]],
    (".sh", ".bash"): [["shfmt", "-w"]],
    (".tf", ".tfvars"): [["terraform", "fmt"]],
    (".c", ".h", ".cc", ".cpp", ".hpp", ".m", ".proto"): [["clang-format", "-i"]],
    (".java",): [["google-java-format", "--replace"]],
    (".kt", ".kts"): [["ktlint", "--format"]],
    (".rb",): [["rubocop", "--autocorrect", "--format", "quiet"]],
    (".swift",): [["swift-format", "--in-place"]],
    (".zig",): [["zig", "fmt"]],
    (".nix",): [["nixfmt"]],
}


# Formatters whose configuration in the project is, or may name, code that they run.
RUN_CODE_OF_THE_PROJECT = {"prettier", "rubocop", "ktlint", "nixfmt"}


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


def formatter(path, project):
    """The command for a file: the project's own tools come first, if it is approved, then those on the search path."""
    approved = is_approved(project)
    own = [os.path.join(project, folder) for folder in (".venv/bin", "venv/bin", "node_modules/.bin")]
    others = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(folder)]
    if not approved:
        others = [folder for folder in others if not os.path.realpath(folder).startswith(project + os.sep)]
    search = os.pathsep.join([*own, *others] if approved else others)
    for ends, commands in FORMATTERS.items():
        for command in commands if path.endswith(ends) else ():
            program = shutil.which(command[0], path=search)
            if program and (approved or command[0] not in RUN_CODE_OF_THE_PROJECT):
                return [program, *command[1:]]
    return None


def content(path):
    with open(path, "rb") as opened:
        return opened.read()


def formatted(path, command, project):
    """What to tell the model, or None."""
    before, program = content(path), os.path.basename(command[0])
    shown = os.path.relpath(path, project)
    try:
        done = subprocess.run(
            [*command, path], cwd=project, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIME_LIMIT
        )
    except subprocess.TimeoutExpired:
        return f"{program} took longer than {TIME_LIMIT} s for {shown} and was ended."
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        return f"{program} could not format {shown}:\n{said[:1500]}"
    if content(path) == before:
        return None
    return f"{shown} was formatted by {program} after this call: read it again before you change it."


def main():
    call = json.loads(sys.stdin.buffer.read())
    project = os.path.realpath(call["cwd"])
    if call["tool_response"].get("error"):
        return
    reports, given = [], paths_in(call["tool_input"], project)
    for path in dict.fromkeys(os.path.realpath(os.path.join(project, each)) for each in given):
        if path.startswith(project + os.sep) and os.path.isfile(path) and (command := formatter(path, project)):
            reports.append(formatted(path, command, project))
    if any(reports):
        print(json.dumps({"hookSpecificOutput": {"additionalContext": "\n".join(filter(None, reports))}}))


if __name__ == "__main__":
    main()
