"""What the words of a command mean to a program: its name, options and operands."""

from __future__ import annotations

import collections.abc
import math
import os
import re

from llxprt_hooks.recipes.collection.parts.dangerous_commands.command_reader import MARK, UNKNOWN_WORDS, plain

SHELLS = {"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "mksh", "rbash", "tcsh", "csh", "pwsh", "yash"}
# Interpreters, and the options after which code follows.
INTERPRETERS = {"python": "c", "pypy": "c", "perl": "eE", "ruby": "e", "node": "ep", "nodejs": "ep", "bun": "ep",
                "deno": "", "php": "rBRE", "lua": "e", "luajit": "e", "tclsh": "", "expect": "c", "osascript": "e",
                "Rscript": "e", "julia": "eE", "groovy": "e", "guile": "c", "ghc": "e", "scala": "e", "elixir": "e",
                "gdb": "", "lldb": ""}  # fmt: skip
STDIN = re.compile(r"/dev/(?:stdin|fd/.*)|/proc/[^/]+/fd/.*|-")
MAX_MEANINGS = 64  # of one command, where variables in it have several values


def shown(path: str) -> str:
    return MARK.sub("…", plain(path))[:80]


def program_name(word: str) -> str:
    program = os.path.basename(plain(word))
    program = re.sub(r"^(python|pypy|perl|ruby|php|lua|node|tclsh)[\d.]+$", r"\1", program)
    return program if program in INTERPRETERS else program.lower()


def count(alternatives: list[list[str]]) -> int:
    return math.prod(map(len, alternatives))


def braces(word: str) -> list[str]:
    """What {a,b} in a word expands to; too much of it is unknown."""
    done, waiting = [], [word]
    while waiting:
        current = waiting.pop()
        found = re.search(r"\{([^{}]*,[^{}]*)\}", current)
        if not found:
            done.append(current)
        else:
            waiting += [current[: found.start()] + part + current[found.end() :] for part in found.group(1).split(",")]
        if len(done) + len(waiting) > MAX_MEANINGS:
            return [UNKNOWN_WORDS]
    return done[::-1]


def short_options(arguments: list[str]) -> str:
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return "".join(word[1:] for word in arguments[:end] if re.match(r"-[^-]", word))


def has(arguments: list[str], option: str) -> bool:
    """Whether a long option is given; programs accept its beginning too."""
    given = (word.split("=")[0] for word in arguments if word.startswith("--") and len(word) > 3)
    return any(option.startswith(each) for each in given)


def operands(arguments: list[str]) -> list[str]:
    if "--" in arguments:
        end = arguments.index("--")
        return [word for word in arguments[:end] if not word.startswith("-")] + arguments[end + 1 :]
    return [word for word in arguments if not word.startswith("-")]


def value_of(arguments: list[str], *options: str) -> collections.abc.Iterator[str]:
    """The values of options, in each way to write them."""
    for index, word in enumerate(arguments):
        for option in options:
            if word == option and index + 1 < len(arguments):
                yield arguments[index + 1]
            elif option.startswith("--") and word.startswith(option + "="):
                yield word[len(option) + 1 :]
            elif not option.startswith("--") and word.startswith(option) and len(word) > 2:
                yield word[2:]


def first(reasons: collections.abc.Iterable[str | None]) -> str | None:
    return next((reason for reason in reasons if reason), None)


def because(what: str, reasons: collections.abc.Iterable[str | None]) -> str | None:
    return first(f"{what}: {why}" for why in reasons if why)
