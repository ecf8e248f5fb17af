"""Rules for programs that read, write, move or delete files.

A rule gets the judge and the arguments of its program, and gives a reason to block the command, or None.
"""

import os
import re

from llxprt_hooks.recipes.collection.parts.dangerous_commands.command_line import (
    MARK,
    UNKNOWN,
    UNKNOWN_WORDS,
    is_unknown,
    plain,
)
from llxprt_hooks.recipes.collection.parts.dangerous_commands.program_words import (
    INTERPRETERS,
    SHELLS,
    STDIN,
    because,
    first,
    has,
    operands,
    program_name,
    short_options,
    value_of,
)


def rm(judge, arguments):
    targets = operands(arguments)
    may_be_option = any(word.startswith(UNKNOWN_WORDS) for word in targets)
    recursive = "r" in short_options(arguments).lower() or has(arguments, "--recursive") or may_be_option
    reasons = [judge.too_much(target) for target in targets]
    if not recursive:  # `rm .` does nothing
        reasons = [why for why, target in zip(reasons, targets) if why and not re.fullmatch(r"\.{1,2}/?", target)]
    return because("it would delete too much", reasons)


def write_to(position):
    """A rule for programs that write to some of their operands."""

    def rule(judge, arguments):
        targets = list(value_of(arguments, "-t", "--target-directory")) or operands(arguments)[position]
        return because("it writes where it should not", map(judge.write, targets))

    return rule


def cp(judge, arguments):
    given = operands(arguments)
    reason = write_to(slice(-1, None))(judge, arguments) if len(given) > 1 or "-t" in arguments else None
    if not reason and len(given) > 1:  # a copy of a file that was just written counts as written too
        copied = judge.written.get(judge.place(given[0]))
        judge.written.pop(judge.place(given[-1]), None)
        if copied is not None:
            judge.written[judge.place(given[-1])] = copied
    return reason


def mv(judge, arguments):
    given = operands(arguments)
    targets = list(value_of(arguments, "-t", "--target-directory"))
    sources, targets = (given, targets) if targets else (given[:-1], given[-1:])
    if any(judge.place(target) == "/dev/null" for target in targets):
        return "moving something to /dev/null destroys it, and perhaps /dev/null"
    texts = [judge.written.get(judge.place(source)) for source in sources]
    reason = because("it would take away too much", map(judge.too_much, sources))
    reason = reason or because("it writes where it should not", map(judge.write, targets))
    for target in targets:
        judge.written.pop(judge.place(target), None)
        if texts[:1] not in ([None], []):
            judge.written[judge.place(target)] = texts[0]
    return reason


def sed(judge, arguments):
    scripts, files = [*value_of(arguments, "-e", "--expression", "-f")], operands(arguments)
    files = [word for word in files if word not in scripts] if scripts else files[1:]
    scripts = scripts or operands(arguments)[:1]
    text = "\n".join(map(plain, scripts))
    if re.search(r"(?:^|[;{}\d$/!])\s*e(?:\s|$)|s(\W)(?:\\.|(?!\1).)*\1(?:\\.|(?!\1).)*\1[gIimp\d]*e", text):
        return "sed would run a part of its input as a command"
    written = re.findall(r"(?:^|[;{}\d$/])\s*w\s+(\S+)|\1[gIimp\d]*w\s+(\S+)", text) if "w" in text else []
    reason = first(judge.write(path) for found in written for path in found if path)
    if "i" in short_options(arguments) or has(arguments, "--in-place"):
        reason = reason or first(judge.write(path) for path in files)
    return f"it changes what it should not: {reason}" if reason else None


def awk(judge, arguments):
    given = operands(arguments)
    text = re.sub(r"/(?:\\.|[^/\n])*/|\"(?:\\.|[^\"])*\"", '""', plain(" ".join(given[:2])))
    if any(STDIN.fullmatch(path) for path in value_of(arguments, "-f", "--file")):
        return "awk would run code from a pipe: put it in the call itself"
    if re.search(r"\bsystem\s*\(|\bgetline\b|(?<!\|)\|(?!\|)|\bprintf?\b[^;}]*>|@", text):
        return "awk would run commands or write files from its own code: use the shell for that"
    return None


def chmod(judge, arguments):
    mode, *places = operands(arguments) or [""]
    recursive = "R" in short_options(arguments) or has(arguments, "--recursive")
    for_all = re.fullmatch(r"0?777|a\+rwx|a?=rwx|[goa]*[+=][rx]*w[rx]*|0?000|[ugoa]*-[rwx]*r[rwx]*", mode)
    if recursive and for_all:
        return "it changes who may read or write a whole tree"
    if re.fullmatch(r"[0-7]?[2467][0-7]{3}|[ugoa]*\+[rwx]*s[rwx]*", mode) and not mode.startswith("0"):
        return "it lets a program run with another user's rights"
    return because("it changes too much", (judge.too_much(place, whole_is_fine=True) for place in places))


def dd(judge, arguments):
    return first(judge.write(word[3:]) for word in arguments if word.startswith("of="))


def disks(judge, arguments):
    return None if {"-l", "--list", "-h", "--help"} & set(arguments) else "it changes disks or file systems"


TESTS = re.compile(
    r"-i?(?:name|path|regex|wholename|lname)$|-(?:mtime|mmin|ctime|atime|amin|size|empty|newer|user|perm)"
)


def found_by(arguments):
    """The paths that `find` may give, as far as it goes: below a place if there is a test, else the place itself."""
    arguments = [word for word in arguments if word not in ("-L", "-H", "-P")]
    length = next((i for i, word in enumerate(arguments) if word.startswith(("-", "(", "!", "\\"))), len(arguments))
    tests = [(i, word) for i, word in enumerate(arguments)
             if TESTS.match(word) and arguments[i - 1] not in ("!", "-not", "-o", "-or")]  # fmt: skip
    everything = all(not re.search(r"\w", "".join(arguments[i + 1 : i + 2])) for i, word in tests)
    for place in arguments[:length] or ["."]:
        yield f"{place}/*" if everything else f"{place}/found"


def find(judge, arguments):
    paths = list(found_by(arguments))
    if "-delete" in arguments and (reason := rm(judge, ["-r", *paths])):
        return reason
    if reason := first(map(judge.write, value_of(arguments, "-fprint", "-fprintf", "-fls", "-fprint0"))):
        return reason
    for index, word in enumerate(arguments):
        if re.fullmatch(r"-(?:exec|execdir|ok|okdir)", word):
            rest = arguments[index + 1 :]
            end = next((i for i, each in enumerate(rest) if each in (";", "\\;", "+")), len(rest))
            if reason := over_files(judge, rest[:end], paths):
                return reason
    return None


def over_files(judge, words, paths):
    """Judge a command that `find` or `xargs` runs for some paths."""
    if any(word != "{}" and "{}" in plain(word) for word in words[1:]) and program_name((words or [""])[0]) in SHELLS:
        return "it runs a text that contains file names"
    judge.replaces = True
    at = [index for index, word in enumerate(words) if plain(word) == "{}"]
    filled = [each for word in words for each in (paths if plain(word) == "{}" else [word])]
    reason = judge.program(filled if at else [*words, *paths])
    judge.replaces = False
    return reason


def xargs(judge, arguments):
    words = list(arguments)
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option in ("-I", "-n", "-P", "-L", "-d", "-s", "-a", "-E") and words:
            value = words.pop(0)
            if option == "-I":
                words = [word.replace(value, "{}") for word in words]
    if not words:
        return None
    program = program_name(words[0])
    runs_file = program in INTERPRETERS and any(re.match(r"-m|[\w./-]+\.\w+$", word) for word in words[1:])
    if (program in SHELLS or program in INTERPRETERS or program in ("env", "eval", "sudo", "xargs")) and not runs_file:
        return f"xargs would hand text that nobody has seen to {program}: use a loop, or name the files"
    return over_files(judge, words, list(piped_paths(judge)))


def piped_paths(judge):
    """The paths that a pipe leads to `xargs`, if the program that lists them is known."""
    source, *filters = [command.words for command in judge.upstream] or [[]]
    if any(
        program_name((words or [""])[0]) not in ("grep", "egrep", "sort", "head", "tail", "uniq", "rg")
        for words in filters
    ):
        return [UNKNOWN]
    program, arguments = (program_name(source[0]), source[1:]) if source else ("", [])
    if any(map(is_unknown, arguments)):
        return [UNKNOWN]
    if program == "find":
        narrowed = any(re.search(r"\w{2}", word) for words in filters for word in operands(words[1:]))
        return [re.sub(r"\*$", "found", place) if narrowed else place for place in found_by(arguments)]
    if program == "git" and arguments[:1] in (["ls-files"], ["diff"]):
        return ["./found"] if len(arguments) > 1 or filters else ["./*"]
    if program in ("grep", "rg", "egrep", "ag", "fd"):
        places = [each for each in operands(arguments)[1:] if "/" in each]
        return [f"{place}/found" for place in places] or ["./found"]
    return [UNKNOWN]


def cd(judge, arguments):
    target = (operands(arguments) or ["~"])[0]
    place = UNKNOWN if target == "-" else judge.place(target)
    certain = os.path.isdir(plain(place)) or judge.operator in ("&&", "||") or place in judge.made
    judge.folder = None if MARK.search(place) or re.search(r"[*?\[]", place) or not certain else place


def mkdir(judge, arguments):
    judge.made = judge.made | {judge.place(word) for word in operands(arguments)}


def unknown_folder(judge, arguments):
    judge.folder = None


def tar(judge, arguments):
    text = plain(" ".join(arguments))
    if re.search(r"--(?:to-command|checkpoint-action|use-compress-program|rsh-command)|(?:^| )-I ?\S*[ /]", text):
        return "it makes tar run another program"
    flags = short_options(arguments[:1]) or arguments[0] if arguments else ""
    places = list(value_of(arguments, "-C", "--directory"))
    if "x" in flags or has(arguments, "--extract"):
        reason = first(judge.write(place + "/x") for place in places) or ("P" in flags and "it may write anywhere")
        return f"it unpacks where it should not: {reason}" if reason else None
    if has(arguments, "--remove-files"):
        return because("tar would take away too much", map(judge.too_much, operands(arguments)[1:]))
    return None


def unzip(judge, arguments):
    return first(judge.write(place + "/x") for place in value_of(arguments, "-d"))
