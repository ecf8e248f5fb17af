#!/usr/bin/env python3
"""BeforeTool: blocks shell commands that destroy work or the machine, or that run code which nobody has seen.

A command line is read into simple commands, and each program has a rule. What cannot be read for certain is
blocked: a program named by an expansion, `eval`, `case`, text that is piped into a shell, code in an argument
(`perl -e`).

A seat belt, not a sandbox: what a script, a test or a `make` target does is not seen.
"""

from __future__ import annotations

import ast
import itertools
import json
import os
import re
import sys

from llxprt_hooks.recipes.collection.parts.call_commands import (
    MAX_COMMAND,
    PYTHON,
    SHELL,
    SHELL_NAMES,
    SHELL_TOOL,
    NoCommand,
    command_lines,
    folders_of,
    languages_in,
)
from llxprt_hooks.recipes.collection.parts.call_paths import named_texts
from llxprt_hooks.recipes.collection.parts.dangerous_commands.judge import Judge
from llxprt_hooks.recipes.collection.parts.dangerous_commands.program_rules import RULES
from llxprt_hooks.recipes.collection.parts.dangerous_commands.program_words import because, first
from llxprt_hooks.recipes.collection.parts.dangerous_commands.python_code import parsed, risky_python
from llxprt_hooks.recipes.collection.parts.fail_closed import decide
from llxprt_hooks.recipes.collection.parts.python_files import PythonFiles
from llxprt_hooks.recipes.collection.parts.sql_text import is_sql, sql_reason

# Other tools of the matcher, such as docker_run. Only arguments in COMMAND_NAMES are checked, unless the argument
# `language` is a shell or Python.
PERHAPS_SHELL = re.compile(
    r"[Ee]xecut|((^|[_-])r|R)un$|[Ss][Qq][Ll]|[Qq]uery|[Dd]atabase|(^|[^a-zA-Z])[Dd][Bb]([^a-zA-Z]|$)"
)


def magic_reason(judge: Judge, sign: str, text: str) -> str | None:
    """Why a line that a notebook runs is blocked: !command, %magic."""
    word, _, rest = text.strip().partition(" ")
    if sign[0] == "!" or (sign == "%" and word in ("sx", "system")):
        # A notebook puts values in for {name}.
        return judge.inside(re.sub(r"\{[^{},]*\}", "$value", text if sign[0] == "!" else rest))
    if re.search(r"sh$|^(?:script|system|sx|!|perl|ruby|cmd|alias)", word):
        return f"what {sign}{word} runs is not checked"
    if word in RULES or word in ("pip", "conda"):
        return judge.inside(text)
    code = parsed(rest)
    found = risky_python(code) if code else re.search(r"\bos\b|\bshutil\b|subprocess|system|!", rest)
    return f"what %{word} runs is not checked" if found else None


def python_reason(judge: Judge, text: str) -> str | None:
    """Why code for a tool that runs Python is blocked, or None."""
    if len(text) > MAX_COMMAND:
        return "it is too long to be checked"
    if fenced := re.fullmatch(r"\s*```\w*\n(.*?)\n?```\s*", text, re.DOTALL):
        text = fenced.group(1)
    tree = parsed(text.strip())
    if not tree:
        magic = re.compile(r"^([ \t]*)(?:\w[\w, ]*=[ \t]*)?(!!?|%%?)(.*)", re.MULTILINE)
        if reason := first(magic_reason(judge, sign, line) for _, sign, line in magic.findall(text)):
            return reason
        tree = parsed(magic.sub(r"\1pass", text).strip())
    if not tree:
        return judge.text(text)  # not Python
    lines = text.strip().split("\n")
    for node in tree.body:  # rm -rf /x is a difference to Python, and a command to a notebook
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.BinOp):
            line = lines[node.lineno - 1].encode()[node.col_offset :].decode()
            if line.split()[0] in RULES and (reason := judge.inside(line)):
                return reason
    if found := risky_python(tree):
        return f"its Python code has `{found}`, which is not checked: use a shell or file tool for that"
    return python_files_reason(judge, PythonFiles(tree))


def python_files_reason(judge: Judge, files: PythonFiles) -> str | None:
    """Why code is blocked for the files that it writes or sends, or for the processes that it ends."""
    elsewhere = [text for text in files.constants() if text not in files.read] if None in files.written else []
    written = [*(text for text in files.written if text is not None), *elsewhere]
    if reason := because("its Python code writes where it should not", map(judge.write, written)):
        return reason
    if files.sends and any(judge.is_elsewhere(path) for path in [*(files.read - {None}), *files.constants()] if path):
        return "its Python code sends a file from outside the project over the network"
    ends = {"kill", "terminate", "send_signal", "suspend"}
    if "psutil" in files.modules and any(getattr(node, "attr", "") in ends for node in files.nodes):
        return "its Python code ends processes: use `kill` with the number of the one that you mean"
    return None


def line_reason(judge: Judge, line: str) -> str | None:
    """Why a command line is blocked, or None."""
    if line.lstrip().startswith("-"):
        return "it begins with an option: the name of the program must be in an argument such as `command`"
    return judge.text(line)


def sql_texts(given: dict[str, object]) -> list[str]:
    """The arguments of a call that are SQL statements."""
    return [text for _, text in named_texts(given) if is_sql(text)]


def judge_call(tool: str, given: dict[str, object], project: str) -> str | None:
    """Why a call of a tool that runs commands is blocked, or None."""
    languages = languages_in(given)
    is_shell = not PERHAPS_SHELL.search(tool) or bool(SHELL_TOOL.search(tool) or languages & (PYTHON | SHELL))
    try:
        lines, folders = command_lines(tool, given, is_shell), folders_of(given, project)
    except NoCommand as error:
        return str(error)
    if not SHELL_TOOL.search(tool) and (reason := first(sql_reason(text) for text in sql_texts(given))):
        return reason
    lines = [line for line in lines if is_shell or not is_sql(line[1])]
    for (name, line, is_python), folder in itertools.product(lines, folders):
        judge = Judge(project, folder)
        if reason := (python_reason if is_python else line_reason)(judge, line):
            if name in SHELL_NAMES:
                return reason
            script = os.path.basename(__file__)
            return f"{reason}. If `{name}` is not a command, the user can add its name to NOT_COMMANDS in {script}"
    return None


def main() -> str | None:
    try:
        call = json.loads(sys.stdin.buffer.read())
        return judge_call(call["tool_name"], call["tool_input"], call["cwd"])
    except RecursionError:
        return "it is too long or too deeply nested to be checked"


if __name__ == "__main__":
    message = "This command is blocked: {}. If it is really needed, ask the user to run it."
    decide(main, message, unchecked="it cannot be checked")
