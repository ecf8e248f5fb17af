#!/usr/bin/env python3
"""BeforeTool: blocks shell commands that destroy work or the machine, or that run code straight off the network.

The command line is taken apart as a shell does it: quotes, escapes, pipes, `$( … )`, here-documents, `sh -c`, `sudo`
and the like; then each program has its rule. A seat belt, not a sandbox: a program that hides what it does
(`python -c …`) is not seen through.
"""

import json
import os
import re
import sys

SHELLS = {"sh", "bash", "dash", "zsh", "ksh", "ash", "fish"}
INTERPRETERS = SHELLS | {"python", "perl", "ruby", "node", "php"}
DOWNLOADERS = {"curl", "wget", "fetch", "aria2c", "http", "https"}
DECODERS = {"base64", "base32", "xxd", "uudecode", "openssl"}
PREFIXES = {"sudo", "doas", "env", "nohup", "nice", "ionice", "time", "timeout", "stdbuf", "setsid", "command", "exec",
            "builtin", "xargs", "if", "then", "else", "elif", "while", "until", "do", "!", "{"}  # fmt: skip
WITH_VALUE = {"-u", "-g", "-n", "-s", "-k", "-I", "-L", "-P", "-d", "-C"}
LONGEST = 100_000  # characters; a shell takes little more
DEEPEST = 20  # commands inside of commands
PLAIN = re.compile(r"[^'\"\\`#\n<>|$ \t\r;&()]+")
DISKS = re.compile(r"/dev/(?!null$|zero$|stdout$|stderr$|stdin$|tty|fd/|shm/|u?random$)")
SYSTEM = re.compile(r"/(?:etc|boot|usr|bin|sbin|lib\w*|sys|proc)(?:/|$)")


class Command:
    """One program with its arguments, and what is around it."""

    def __init__(self):
        self.words = []
        self.written_to = []  # targets of > and >>
        self.inner = []  # the texts of $( … ), <( … ) and of a here-document


# Reading a command line.


class Reader:
    """Takes a command line apart into pipelines of commands. Never fails: what is not closed ends with the text."""

    def __init__(self, text):
        self.text = text
        self.at = 0
        self.pipelines = []
        self.command = Command()
        self.pipeline = [self.command]
        self.word = None
        self.redirected = False
        self.here_documents = []

    def read(self):
        steps = {"'": self.single, '"': self.double, "\\": self.escape, "`": self.back_quote, "#": self.comment,
                 "\n": self.newline, "<": self.less, ">": self.greater, "|": self.pipe, "$": self.dollar}  # fmt: skip
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in steps:
                steps[char]()
            elif char in " \t\r":
                self.end_word()
                self.at += 1
            elif char in ";&()":
                self.end_pipeline()
                self.at += 1
            else:
                plain = PLAIN.match(self.text, self.at).group()
                self.add(plain, len(plain))
        self.end_pipeline()
        return self.pipelines

    def add(self, text, length=1):
        self.word = (self.word or "") + text
        self.at += length

    def end_word(self):
        if self.word is not None:
            (self.command.written_to if self.redirected else self.command.words).append(self.word)
            self.redirected = False
        self.word = None

    def end_command(self):
        self.end_word()
        self.redirected = False
        self.command = Command()
        self.pipeline.append(self.command)

    def end_pipeline(self):
        self.end_command()
        self.pipelines.append([each for each in self.pipeline if each.words or each.inner or each.written_to])
        self.pipeline = [self.command]

    def until(self, end, start):
        found = self.text.find(end, start)
        return len(self.text) if found < 0 else found

    def single(self):
        end = self.until("'", self.at + 1)
        self.add(self.text[self.at + 1 : end], end + 1 - self.at)

    def double(self):
        self.add("")
        while self.at < len(self.text) and self.text[self.at] != '"':
            char = self.text[self.at]
            if char == "\\":
                self.escape()
            elif char == "`":
                self.back_quote()
            elif char == "$":
                self.dollar()
            else:
                self.add(char)
        self.at += 1

    def escape(self):
        after = self.text[self.at + 1 : self.at + 2]
        if after == "\n":
            self.at += 2
        else:
            self.add(after, 2)

    def back_quote(self):
        end = self.until("`", self.at + 1)
        self.command.inner.append(self.text[self.at + 1 : end])
        self.add("$()", end + 1 - self.at)

    def dollar(self):
        if self.text.startswith("$'", self.at):
            self.at += 1
            self.single()
        elif self.text.startswith("$(", self.at):
            self.nested(self.at + 2)
            self.add("$()", 0)
        else:
            self.add("$")

    def nested(self, start):
        """A text in brackets, which may have brackets and quotes of its own."""
        depth, at = 1, start
        while at < len(self.text) and depth:
            char = self.text[at]
            if char == "'":
                at = self.until("'", at + 1)
            elif char == "\\":
                at += 1
            depth += {"(": 1, ")": -1}.get(char, 0)
            at += 1
        self.command.inner.append(self.text[start : at - 1])
        self.at = at

    def comment(self):
        if self.word is None:
            self.at = self.until("\n", self.at)
        else:
            self.add("#")

    def newline(self):
        self.at += 1
        for command, delimiter in self.here_documents:
            end = re.compile(rf"^\t*{re.escape(delimiter)}$", re.MULTILINE).search(self.text, self.at)
            command.inner.append(self.text[self.at : end.start() if end else len(self.text)])
            self.at = end.end() if end else len(self.text)
        self.here_documents = []
        self.end_pipeline()

    def less(self):
        here = re.compile(r"<<-?\s*(\\?[\w.-]+|'[^'\n]*'|\"[^\"\n]*\")").match(self.text, self.at)
        if self.text.startswith("<(", self.at):
            self.nested(self.at + 2)
            self.add("<()", 0)
        elif here and not self.text.startswith("<<<", self.at):
            self.end_word()
            self.here_documents.append((self.command, here.group(1).strip("\\'\"")))
            self.at = here.end()
        else:
            self.end_word()
            self.at += 1

    def greater(self):
        if self.word is not None and self.word.isdigit():
            self.word = None
        self.end_word()
        if self.text.startswith(">(", self.at):
            self.nested(self.at + 2)
            return
        while self.text[self.at : self.at + 1] in (">", "|", "&"):
            self.at += 1
        self.redirected = True

    def pipe(self):
        if self.text.startswith("||", self.at):
            self.end_pipeline()
            self.at += 2
        else:
            self.end_command()
            self.at += 2 if self.text.startswith("|&", self.at) else 1


# Judging it.


class Judge:
    """Finds the first reason to block. `folder` is where commands run; `cd` changes it."""

    def __init__(self, project, folder):
        self.project = os.path.realpath(project)
        self.folder = folder
        self.depth = 0

    def text(self, text):
        if len(text) > LONGEST or self.depth > DEEPEST:
            return "it is too long or too deeply nested to be looked at"
        if re.search(r"(?<!\w)(\w{1,50}|:)\s{0,9}\(\s{0,9}\)\s{0,9}\{\s{0,9}\1\s{0,9}\|\s{0,9}\1\s{0,9}&", text):
            return "this is a fork bomb"
        self.depth += 1
        reason = first(filter(None, map(self.pipeline, Reader(text).read())))
        self.depth -= 1
        return reason

    def pipeline(self, pipeline):
        programs = [bare(command.words) for command in pipeline]
        fetched = False
        for command, words in zip(pipeline, programs):
            program = name(words)
            if fetched and program in INTERPRETERS and reads_program_from_stdin(program, words[1:]):
                return f"it pipes what it downloads or decodes into {program}: save it to a file and look at it first"
            fetched = fetched or program in DOWNLOADERS or (program in DECODERS and is_decoding(program, words[1:]))
            reason = self.command(command, words)
            if reason:
                return reason
        return None

    def command(self, command, words):
        program = name(words)
        for target in command.written_to:
            place = self.place(target)
            if DISKS.match(place) or SYSTEM.match(place):
                return f"it writes to {target}, which belongs to the system"
        runs_text = program in SHELLS | {"eval", "source", "."}
        for inner in command.inner:
            fetches = any(name(bare(each.words)) in DOWNLOADERS for line in Reader(inner).read() for each in line)
            if runs_text and fetches:
                return f"{program} runs what it downloads: save it to a file and look at it first"
            reason = self.text(inner)
            if reason:
                return reason
        if program in SHELLS and "c" in short_options(words[1:]):
            return self.text(next((word for word in words[1:] if not word.startswith(("-", "+"))), ""))
        if program == "eval":
            return self.text(" ".join(words[1:]))
        rule = RULES.get(program) or (mkfs if program.startswith("mkfs") else None)
        return rule(self, words[1:]) if rule else None

    def place(self, path):
        home = os.path.expanduser("~")
        path = re.sub(r"^(?:~|\$HOME\b|\$\{HOME\})(?=/|$)", lambda _: home, path)
        path = re.sub(r"^(?:\$PWD\b|\$\{PWD\})(?=/|$)", lambda _: self.folder, path)
        return os.path.normpath(os.path.join(self.folder, path))

    def too_much(self, path):
        """Why a whole tree at this path should not be touched; None where it is a part of the project."""
        place = self.place(path)
        if "$" in place:
            return f"{path} depends on a variable, and with that empty it may be anything"
        if os.path.basename(place) in ("*", ".*", "{*,.*}"):
            place = os.path.dirname(place)
        place = os.path.realpath(place)
        if self.project == place or self.project.startswith(place.rstrip("/") + "/"):
            return f"{path} is the whole project" + ("" if self.project == place else " and more")
        if os.path.basename(place) == ".git":
            return f"{path} is the history of the project"
        scratch = (os.environ.get("TMPDIR") or "/tmp", "/tmp", "/var/tmp")
        temporary = {os.path.realpath(folder) + "/" for folder in scratch}
        free = tuple(folder for folder in temporary if not self.project.startswith(folder))
        if not place.startswith((self.project + "/", *free)):
            return f"{path} is outside the project"
        return None


def bare(words):
    """The words from the program on: without assignments, `sudo`, `env` and the like."""
    words = list(words)
    while words:
        first = os.path.basename(words[0])
        if re.match(r"\w+\+?=", words[0]) and first not in PREFIXES:
            words.pop(0)
        elif first in PREFIXES:
            words.pop(0)
            while words and (words[0].startswith("-") or re.match(r"\w+=", words[0])):
                option = words.pop(0)
                if option in WITH_VALUE and words:
                    words.pop(0)
            if first == "timeout" and words:
                words.pop(0)
        else:
            break
    return words


def name(words):
    program = os.path.basename(words[0]) if words else ""
    return re.sub(r"^(python|perl|ruby|php)[\d.]+$", r"\1", program)


def short_options(arguments):
    return "".join(word[1:] for word in arguments if re.match(r"-[^-]", word))


def operands(arguments):
    if "--" in arguments:
        end = arguments.index("--")
        return [word for word in arguments[:end] if not word.startswith("-")] + arguments[end + 1 :]
    return [word for word in arguments if not word.startswith("-")]


def is_decoding(program, arguments):
    return program == "uudecode" or bool(set(short_options(arguments)) & set("dDr")) or "--decode" in arguments


def reads_program_from_stdin(program, arguments):
    if program in SHELLS:
        return "s" in short_options(arguments) or not operands(arguments)
    has_program = operands(arguments) or set(short_options(arguments)) & set("cemnp")
    return not has_program or arguments[:1] == ["-"]


# The rules: each gets the judge and the arguments of its program, and gives a reason or None.


def rm(judge, arguments):
    if not ("r" in short_options(arguments).lower() or "--recursive" in arguments):
        return None
    return first(f"rm would delete too much: {why}" for why in map(judge.too_much, operands(arguments)) if why)


def chmod(judge, arguments):
    if not ("R" in short_options(arguments) or "--recursive" in arguments):
        return None
    mode, *places = operands(arguments) or [""]
    if re.fullmatch(r"0?777|a\+rwx|[ao]*\+?w", mode):
        return "it lets everybody write to a whole tree"
    reasons = (judge.too_much(place) for place in places)
    return first(f"it changes too much: {why}" for why in reasons if why and not why.endswith("whole project"))


def dd(judge, arguments):
    targets = [judge.place(word[3:]) for word in arguments if word.startswith("of=")]
    return first(f"dd would overwrite {target}" for target in targets if DISKS.match(target) or SYSTEM.match(target))


def mkfs(judge, arguments):
    return None if {"-l", "--list", "-h", "--help"} & set(arguments) else "it changes disks or file systems"


def find(judge, arguments):
    deletes = "-delete" in arguments or re.search(r"-(?:exec|execdir|ok) (?:\S*/)?(?:rm|shred)\b", " ".join(arguments))
    if not deletes:
        return None
    count = next((i for i, word in enumerate(arguments) if word.startswith(("-", "(", "!"))), len(arguments))
    has_test = any(re.match(r"-i?(?:name|path|regex)$|-(?:mtime|mmin|size|empty|newer)", word) for word in arguments)
    reasons = (judge.too_much(place) for place in arguments[:count] or ["."])
    if has_test:  # some of the files in the project are what `find` is for
        reasons = (why for why in reasons if why and not why.endswith("whole project"))
    return first(f"find would delete too much: {why}" for why in reasons if why)


def git(judge, arguments):
    arguments = list(arguments)
    while arguments and arguments[0].startswith("-"):
        option = arguments.pop(0)
        if option in ("-C", "-c", "--git-dir", "--work-tree") and arguments:
            arguments.pop(0)
    action, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    short, long = short_options(rest), {word.split("=")[0] for word in rest if word.startswith("--")}
    everything = {".", "./", "*", ":/"} & set(rest)
    if action == "push":
        if "f" in short or "--force" in long or "--mirror" in long or any(word.startswith("+") for word in rest):
            return "a forced push overwrites what others have pushed (--force-with-lease does not)"
        if "d" in short or "--delete" in long or any(word.startswith(":") for word in operands(rest)):
            return "it deletes a branch or tag on the server"
    lost = {
        "reset": "--hard" in long,
        "clean": "f" in short or "--force" in long,
        "checkout": bool(everything) or "f" in short or "--force" in long,
        "restore": bool(everything) and ("--staged" not in long or "--worktree" in long),
        "stash": rest[:1] in (["clear"], ["drop"]),
        "branch": "D" in short,
        "reflog": rest[:1] in (["expire"], ["delete"]),
        "filter-branch": True,
        "filter-repo": True,
    }
    return f"git {action} in this form throws work away: commit or stash it first" if lost.get(action) else None


def kill(judge, arguments):
    targets = [word for word in arguments[1:] if word == "-1"] or (["-1"] if arguments[-2:] == ["--", "-1"] else [])
    return "it would end every process of the user" if targets else None


def mv(judge, arguments):
    *sources, target = operands(arguments) or [""]
    if judge.place(target) == "/dev/null":
        return "moving something to /dev/null destroys it, and perhaps /dev/null"
    reasons = (judge.too_much(source) for source in sources)
    return first(f"mv would take away too much: {why}" for why in reasons if why and "outside" not in why)


def cd(judge, arguments):
    judge.folder = judge.place((operands(arguments) or ["~"])[0])


def sql(judge, arguments):
    found = re.search(r"(?i)\b(drop\s+(?:database|schema|table)|truncate\s+table)\b", " ".join(arguments))
    return f"it would {found.group(1).upper()}" if found else None


def words_rule(*forbidden, reason):
    return lambda judge, arguments: reason if set(operands(arguments)) & set(forbidden) else None


def always(reason):
    return lambda judge, arguments: reason


def first(reasons):
    return next(iter(reasons), None)


RULES = {
    "rm": rm,
    "shred": rm,
    "chmod": chmod,
    "chown": chmod,
    "chgrp": chmod,
    "dd": dd,
    "find": find,
    "git": git,
    "kill": kill,
    "mv": mv,
    "cd": cd,
    "pushd": cd,
    **dict.fromkeys(["mke2fs", "mkswap", "wipefs", "fdisk", "sfdisk", "gdisk", "sgdisk", "parted", "blkdiscard"], mkfs),
    **dict.fromkeys(["shutdown", "reboot", "halt", "poweroff"], always("it would stop the machine")),
    **dict.fromkeys(["psql", "mysql", "mariadb", "sqlite3"], sql),
    "init": words_rule("0", "6", reason="it would stop the machine"),
    "systemctl": words_rule("poweroff", "reboot", "halt", "rescue", "emergency", reason="it would stop the machine"),
    "dropdb": always("it would delete a database"),
    "terraform": words_rule("destroy", reason="it would delete infrastructure"),
    "kubectl": words_rule("delete", "drain", reason="it would delete things in a cluster"),
    "crontab": lambda judge, arguments: "it deletes all cron jobs" if "r" in short_options(arguments) else None,
}


def main():
    call = json.loads(sys.stdin.buffer.read())
    given = call["tool_input"]
    command = given.get("command")
    if not isinstance(command, str):
        return
    folder = given.get("dir_path") or given.get("directory") or ""
    folder = os.path.normpath(os.path.join(call["cwd"], folder if isinstance(folder, str) else ""))
    reason = Judge(call["cwd"], folder).text(command)
    if reason:
        print(f"This command is blocked: {reason}. If it is really needed, ask the user to run it.", file=sys.stderr)
        sys.exit(2)


main()
