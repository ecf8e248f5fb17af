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

# The ends of names of arguments that hold a path, in lower case and without _ and -.
PATH_NAMES = ("path", "paths", "file", "files", "filename", "filenames", "dir", "directory", "folder", "uri", "uris",
              "source", "src", "destination", "dest", "dst", "target", "include", "notebook", "document")  # fmt: skip
# If a tool has no argument with such a name, texts that may be a path are checked, except these.
NOT_PATHS = ("content", "contents", "text", "body", "string", "str", "code", "command", "cmd", "description", "message",
             "prompt", "query", "pattern", "question", "reason", "title", "url")  # fmt: skip


def named_texts(value, name=""):
    """Every text in the arguments, with the name of its argument."""
    if isinstance(value, str):
        yield name.lower().replace("_", "").replace("-", ""), value
    elif isinstance(value, list):
        for inner in value:
            yield from named_texts(inner, name)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from named_texts(inner, key)


def is_path(text, folder):
    """Whether the text of an argument whose name does not say so may be a path: it has a slash, or the file exists."""
    return ("/" in text and not re.search(r"\s", text)) or os.path.lexists(os.path.join(folder, text))


def paths_in(given, folder):
    """The paths in the arguments of a call."""
    texts = [(name, text.strip()) for name, text in named_texts(given) if text.strip()]
    # A web address is not a path, unless a tool may shorten it to one: http://../.env
    texts = [(name, text) for name, text in texts if not re.match(r"(?is)https?://(?!.*\.\.)", text)]
    named = [text for name, text in texts if name.endswith(PATH_NAMES)]
    if not named:
        named = [text for name, text in texts if not name.endswith(NOT_PATHS) and is_path(text, folder)]
    return named + [text for _, text in texts if text.startswith("file://")]


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
    told, given = [], paths_in(call["tool_input"], project)
    for path in dict.fromkeys(os.path.realpath(os.path.join(project, each)) for each in given):
        if path.startswith(project + os.sep) and os.path.isfile(path) and (command := formatter(path, project)):
            told.append(formatted(path, command, project))
    if any(told):
        print(json.dumps({"hookSpecificOutput": {"additionalContext": "\n".join(filter(None, told))}}))


if __name__ == "__main__":
    main()
