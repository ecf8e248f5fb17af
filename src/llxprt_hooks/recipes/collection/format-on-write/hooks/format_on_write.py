#!/usr/bin/env python3
"""AfterTool: formats the file that a tool has just written, and tells the model when that changed it.

The model has to know: otherwise its next edit looks for text that is no longer there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

from llxprt_hooks.recipes.collection.parts.call_paths import paths_in
from llxprt_hooks.recipes.collection.parts.project_approval import is_approved

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


def formatter(path: str, project: str) -> list[str] | None:
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


def content(path: str) -> bytes:
    with open(path, "rb") as opened:
        return opened.read()


def formatted(path: str, command: list[str], project: str) -> str | None:
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


def main() -> None:
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
