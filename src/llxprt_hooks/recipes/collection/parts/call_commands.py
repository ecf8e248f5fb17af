"""Where the commands of a call are, whatever the tool and its arguments are called."""

from __future__ import annotations

import collections.abc
import itertools
import json
import os
import re


def plain_name(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def plain_names(text: str) -> set[str]:
    return {plain_name(name) for name in text.split()}


# In every tool, arguments with these names hold a command. In a tool that runs commands, those in SHELL_NAMES do too.
COMMAND_NAMES = plain_names("command commands cmd cmds command_line cmdline shell_command bash_command argv")
SHELL_NAMES = COMMAND_NAMES | plain_names("script scripts code input args arguments")
# If a tool that runs commands has no argument with such a name, all texts are checked, except those in NOT_COMMANDS.
NOT_COMMANDS = plain_names("name filter limit cols columns rows")
# These are checked only if there is no other text.
HARDLY_COMMANDS = plain_names(
    "description explanation reason purpose thought title summary comment note cwd workdir working_dir "
    "working_directory directory dir_path folder shell language env timeout timeout_ms id pid session_id bash_id "
    "shell_id terminal_id"
)
# Tools that only read, such as read_terminal and BashOutput, do not run their texts.
ONLY_READS = re.compile(r"(^|__)(([Gg]et|[Rr]ead|[Ll]ist|[Rr]esize)(_|[A-Z])|[A-Za-z][a-z]*Output$)")
LINE_NAMES = plain_names("commands cmds scripts")  # a list with such a name has a command in each item
PROGRAM_NAMES, REST_NAMES = plain_names("command cmd program executable"), plain_names("args arguments argv params")
FILE_NAMES = plain_names("file binary path name")  # beside arguments, these hold a program
# Tools that run commands, by their names.
SHELL_TOOL = re.compile(
    r"(^|[^a-zA-Z]|(?=[A-Z]))([Pp]ower|[Rr]un|[Ee]xec|[Ss]hell)?([Ss]hell|[Bb]ash|[Zz]sh|[Ss]h|[Tt]erminal|[Cc]ommands?"
    r"|[Cc]mds?|[Ss]ubprocess|[Ee]xec|([Rr]un|[Ee]xecute|[Ss]tart)[_-]?([Ss]cript|[Pp]rogram|[Pp]rocess)"
    r"|i?[Pp]ython(3|[_-]?([Rr]epl|REPL|ast|[Cc]ode|[Ii]nterpreter|[Ss]cript|[Ee]xec(ut(e|or|ion))?|[Tt]ool))*$)(tool|line)?(?![a-z])"
    r"|(^|__)([Rr]un|[Ee]xecute)$"
)
PYTHON_TOOL = re.compile(
    r"[Pp]ython(3|[_-]?([Rr]epl|REPL|ast|[Cc]ode|[Ii]nterpreter|[Ss]cript|[Ee]xec(ut(e|or|ion))?|[Tt]ool))*$"
)
PYTHON, SHELL = {"python", "python3", "py", "ipython"}, {"shell", "bash", "sh", "zsh"}  # values of `language`
FOLDERS = plain_names("dir_path directory cwd workdir working_dir working_directory folder")
MAX_FOLDERS = 10
MAX_COMMAND = 100_000  # characters of a command; a shell takes little more


class NoCommand(Exception):
    """Why the arguments of a tool that runs commands cannot be checked."""


def languages_in(given: object) -> set[str]:
    return {text.strip().lower() for _, text in texts_in(unpacked(given), lambda path: path[-1] == "language")}


def is_python(tool: str, languages: set[str], name: str, text: str) -> bool:
    """Whether the text of an argument is Python code, by the name of the tool, or by the argument `language`."""
    if PYTHON_TOOL.search(tool):
        return True
    if not languages or not languages <= PYTHON or name in COMMAND_NAMES or len(text) > MAX_COMMAND:
        return False
    try:
        compile(text, name, "exec")
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return False
    return True


def quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def line_of(words: list[str]) -> str:
    """A list as one command line. What a shell would expand stays so: the tool may join the list for a shell."""
    is_plain = re.compile(r"[^\s'\"\\;&|<>()`#]+|&&|\|\|?|;|[<>]+").fullmatch
    return " ".join(word if is_plain(word) else quoted(word) for word in words)


def readings(value: object, name: str = "") -> list[str]:
    """What a text, or a list of texts, may be as a command: a list is a program with its arguments, or lines."""
    if isinstance(value, str):
        return [value] if value.strip() else []
    if not isinstance(value, list) or any(isinstance(each, (dict, list)) for each in value):
        return []
    words = [str(each) for each in value if each is not None and str(each).strip()]
    if not words or not any(isinstance(each, str) for each in value):
        return []
    exact = " ".join(map(quoted, words))  # as a program gets it, without a shell in between
    if re.search(r"\s", words[0].strip()):
        return ["\n".join(words), exact]
    return [*(["\n".join(words)] if name in LINE_NAMES else ()), line_of(words), exact]


def texts_in(
    value: object, wanted: collections.abc.Callable[[tuple[str, ...]], bool], path: tuple[str, ...] = ("",)
) -> collections.abc.Iterator[tuple[str, str]]:
    """The names and texts of the arguments that are wanted. `path` has the names that lead to a value."""
    if lines := readings(value, path[-1]):
        yield from ((path[-1], line) for line in lines if wanted(path))
    elif isinstance(value, list):
        for inner in value:
            yield from texts_in(inner, wanted, path)
    elif isinstance(value, dict):
        named = [((*path, plain_name(name)), inner) for name, inner in value.items()]

        def with_name(names: set[str]) -> list[tuple[tuple[str, ...], object]]:
            return [(at, inner) for at, inner in named if at[-1] in names and readings(inner)]

        # {"command": "bash", "args": ["-c", "…"]} is one command line.
        starts, ends = with_name(PROGRAM_NAMES), with_name(REST_NAMES)
        joined = [*starts, *ends]
        if not starts:  # {"file": "rm", "args": ["-rf", "/"]} is one too, but here the list may also be a whole command
            starts = with_name(FILE_NAMES)
            joined = [(at, inner) for at, inner in ends if readings(inner)[0].startswith("-")]
        if not starts or not ends or not any(wanted(at) for at, _ in starts + ends):
            starts = joined = []
        for start, which in itertools.product(starts, (0, -1)):
            yield ends[0][0][-1], " ".join(readings(inner)[which] for _, inner in (start, *ends))
        for at, inner in named:
            if (at, inner) not in joined:
                yield from texts_in(inner, wanted, at)


def unpacked(value: object, depth: int = 0) -> object:
    """The arguments with the values of texts that are JSON: some tools take all their arguments as one text."""
    if isinstance(value, dict):
        return {name: unpacked(inner, depth) for name, inner in value.items()}
    if isinstance(value, list):
        return value if readings(value) else [unpacked(inner, depth) for inner in value]
    if not isinstance(value, str) or depth > 5 or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        inner = {"commands": unpacked(json.loads(value), depth + 1)}
    except ValueError:
        return value
    # To a shell, most JSON is one word. If it has more in it, the text is checked as well.
    return inner if re.fullmatch(r'[{\[]+"[^$`\r\n]*', value.strip()) else [value, inner]


def numbers_in(given: dict[str, object]) -> collections.abc.Iterator[str]:
    """The names of arguments that should hold a command and hold a number."""
    for name, value in given.items():
        if isinstance(value, dict):
            yield from numbers_in(value)
        elif type(value) in (int, float) and plain_name(name) in COMMAND_NAMES:
            yield name


def command_lines(tool: str, given: dict[str, object], is_shell: bool | None = None) -> list[tuple[str, str, bool]]:
    """The command lines in the arguments of a call, each with the name of its argument, and whether it is Python."""
    languages = languages_in(given)
    is_shell = bool(SHELL_TOOL.search(tool)) if is_shell is None else is_shell
    lines = named_lines(tool, given, is_shell)
    return [(name, line, is_python(tool, languages, name, line)) for name, line in lines]


def named_lines(tool: str, given: dict[str, object], is_shell: bool) -> list[tuple[str, str]]:
    if is_shell and (numbers := list(numbers_in(given))):
        raise NoCommand(f"`{numbers[0]}` is a number, so it cannot be checked as a command")
    named = list(texts_in(given, lambda path: path[-1] in COMMAND_NAMES))
    if not is_shell or (not named and ONLY_READS.search(tool)):
        return named
    everything = unpacked(given)
    for wanted in (
        lambda path: path[-1] in SHELL_NAMES,
        lambda path: path[-1] not in NOT_COMMANDS and HARDLY_COMMANDS.isdisjoint(path),
        lambda path: path[-1] not in NOT_COMMANDS,
    ):
        if found := list(texts_in(everything, wanted)):
            return found
    return []


def folders_in(value: object, name: str = "") -> collections.abc.Iterator[str]:
    if isinstance(value, str) and name in FOLDERS:
        yield value
    elif isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else ((name, each) for each in value):
            yield from folders_in(inner, plain_name(key))


def folders_of(given: object, folder: str) -> list[str]:
    """Where a command may run."""
    named = set(folders_in(unpacked(given))) or {folder}
    if len(named) > MAX_FOLDERS:
        raise NoCommand("it names too many folders to be checked")
    return sorted(os.path.normpath(os.path.join(folder, os.path.expanduser(each))) for each in named)
