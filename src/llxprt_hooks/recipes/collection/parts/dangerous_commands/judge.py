"""Judges a command line."""

from __future__ import annotations

import collections.abc
import fnmatch
import itertools
import os
import re

from llxprt_hooks.recipes.collection.parts.call_commands import MAX_COMMAND
from llxprt_hooks.recipes.collection.parts.dangerous_commands.command_reader import (
    END,
    MARK,
    MAX_NESTING,
    PROCESS,
    UNKNOWN,
    UNKNOWN_WORDS,
    VARIABLE,
    VARIABLE_WORDS,
    Command,
    Unreadable,
    assignment,
    is_unknown,
    plain,
    read,
)
from llxprt_hooks.recipes.collection.parts.dangerous_commands.program_rules import RULES, database_tool, disks, outputs
from llxprt_hooks.recipes.collection.parts.dangerous_commands.program_words import (
    INTERPRETERS,
    MAX_MEANINGS,
    SHELLS,
    STDIN,
    braces,
    count,
    first,
    operands,
    program_name,
    short_options,
    shown,
)
from llxprt_hooks.recipes.collection.parts.dangerous_commands.python_code import is_harmless_python
from llxprt_hooks.recipes.collection.parts.dangerous_commands.service_actions import SERVICES, service_reason
from llxprt_hooks.recipes.collection.parts.uploads import DUMPS, PIPES, sends, sent_files, sent_texts

# Programs that run another one: their options with a value, and how many words come before that program.
WRAPPERS = {"sudo": ("ugpCDRhTUrt", 0), "doas": ("uC", 0), "env": ("uC", 0), "nohup": ("", 0), "nice": ("n", 0),
            "ionice": ("cn", 0), "time": ("fo", 0), "timeout": ("ks", 1), "gtimeout": ("ks", 1), "stdbuf": ("ioe", 0),
            "setsid": ("", 0), "command": ("", 0), "exec": ("a", 0), "builtin": ("", 0), "coproc": ("", 0),
            "chrt": ("", 1), "taskset": ("", 1), "flock": ("wE", 1), "unshare": ("", 0), "nsenter": ("tSG", 0),
            "chroot": ("", 1), "setpriv": ("", 0), "strace": ("eopsuPEO", 0), "ltrace": ("eopsu", 0),
            "valgrind": ("", 0), "unbuffer": ("", 0), "rlwrap": ("", 0), "fakeroot": ("", 0), "firejail": ("", 0),
            "proot": ("rbw", 0), "systemd-run": ("pu", 0), "busybox": ("", 0), "toybox": ("", 0), "xvfb-run": ("sn", 0),
            "caffeinate": ("tw", 0), "torsocks": ("", 0), "proxychains": ("f", 0), "dbus-run-session": ("", 0),
            "watch": ("nq", 0), "chronic": ("", 0), "numactl": ("CmN", 0),
            "catchsegv": ("", 0), "noglob": ("", 0), "nocorrect": ("", 0)}  # fmt: skip
RUNNERS = {"poetry": "run", "uv": "run", "pipenv": "run", "pdm": "run", "hatch": "run", "rye": "run", "conda": "run",
           "bundle": "exec", "npm": "exec", "pnpm": "exec", "yarn": "exec", "direnv": "exec"}  # fmt: skip
RUN_THEIR_VALUE = re.compile(r"(?:GIT_)?(?:EDITOR|SEQUENCE_EDITOR|PAGER|VISUAL|EXTERNAL_DIFF|SSH_COMMAND|ASKPASS|SSH)"
                             r"|BROWSER|PROMPT_COMMAND|RSYNC_RSH|LESSOPEN|MANPAGER|CC_WRAPPER")  # fmt: skip
LOAD_CODE = {"LD_PRELOAD", "LD_AUDIT", "BASH_ENV", "PERL5OPT", "RUBYOPT", "DYLD_INSERT_LIBRARIES", "PYTHONSTARTUP"}
SET_VARIABLES = {"read", "mapfile", "readarray", "printf", "getopts", "let", "unset", "declare", "typeset", "local",
                 "readonly", "export"}  # fmt: skip
DESTRUCTIVE = {"rm", "shred", "dd", "mv", "chmod", "chown", "find", "git", "mkfs", "wipefs", "eval", "xargs"}
TEXT_PROGRAMS = """echo printf grep egrep fgrep rg ag ack man which type apropos cat less head tail ls pip pip3 brew
cargo go tldr jq yq wc cut tr nl fold column comm diff cmp file stat du basename dirname realpath readlink md5sum
sha1sum sha256sum strings od hexdump tac rev seq date whoami id uname"""
JUST_TEXT = set(TEXT_PROGRAMS.split())
DISKS = re.compile(r"/dev/(?!(?:null|zero|full|stdout|stderr|stdin|tty|u?random)$|fd/|shm/|pts/)")
GIT_OR_HOOKS = {".git": "the history of the project", ".llxprt": "where the guards of this agent are"}
# A substitution, or lines that match: what perl -pe and perl -ne are used for every day.
PERL = re.compile(
    r"\s*(?:s([/|#,!])(?:\\.|(?!\1).)*\1(?:\\.|(?!\1).)*\1[gimsx]*|print(?: (?:if|unless) /(?:\\.|[^/])*/i?)?);?\s*"
)
LOOKUP = re.compile(
    r"\s*(?:console\.log\(|echo )?(?:require\(['\"][\w./@-]+['\"]\)|process\.versions?|PHP_VERSION|[\d+*/ -]+)"
    r"(?:\.\w+)*\)?;?\s*"
)


class Judge:
    """Finds the first reason to block. `folder` is where commands run; `cd` changes it, None is unknown."""

    def __init__(self, project: str, folder: str | None) -> None:
        self.project = os.path.realpath(project)
        self.folder = folder
        self.depth = 0
        # Of the variables that the command line sets; None where they cannot be known.
        self.values: dict[str, list[str] | None] = {}
        self.knows_values = True
        self.made: set[str] = set()  # folders that the command line makes
        self.written: dict[str, str] = {}  # files that the command line writes, and their text if it is known
        self.links: dict[str, str] = {}  # links that the command line makes, and where they lead
        self.aliases: dict[str, str] = {}
        self.line = ""
        self.read_elsewhere: list[str] = []  # files outside the project that the command line names
        self.unpacked = False  # whether the command line has unpacked a download
        self.upstream: list[Command] = []
        self.operator = ""
        self.current = Command()

    def text(self, text: str) -> str | None:
        """Why this command line is blocked, or None."""
        if len(text) > MAX_COMMAND or self.depth >= MAX_NESTING:
            return "it is too long or too deeply nested to be checked"
        try:
            script = read(text)
        except Unreadable as error:
            return f"it cannot be read for certain: {error}. Write it in a simpler form"
        if is_fork_bomb(text):
            return "it defines a function that starts itself again and again"
        if not self.depth:
            self.line = text
        self.depth += 1
        outer = self.values, self.knows_values
        self.values, self.knows_values = {}, True
        self.collect_values(script)
        reason = self.script(script)
        self.values, self.knows_values = outer
        self.depth -= 1
        return reason

    def inside(self, text: str) -> str | None:
        """Judge a text that another shell runs: its `cd` does not count here."""
        folder = self.folder
        reason = self.text(text)
        self.folder = folder
        return reason

    def script(self, script: list[tuple[list[Command] | str, str]]) -> str | None:
        folders = []
        for pipeline, operator in script:
            if pipeline == "enter":
                folders.append(self.folder)
            elif isinstance(pipeline, str):
                self.folder = folders.pop()
            else:
                for index, command in enumerate(pipeline):
                    self.operator = operator
                    if reason := self.command(command, pipeline[:index]):
                        return reason
        return None

    # What words mean.

    def collect_values(self, script: list[tuple[list[Command] | str, str]]) -> None:
        """The values that each variable may have, whatever the order in which commands run."""
        for pipeline, _ in script:
            for command in pipeline if isinstance(pipeline, list) else ():
                reads = command.words[:1] == ["read"]
                for name, word in command.assigned:
                    if not (reads and name == "IFS"):
                        self.may_be(name, word)
                if command.words and command.words[0] in SET_VARIABLES:
                    for word in command.words[1:]:
                        name, equals, value = word.partition("=")
                        if is_unknown(name):
                            self.knows_values = False
                        else:
                            self.may_be(plain(name).split("[")[0], value if equals else None)
                    if "n" in short_options(command.words[1:]) and command.words[0] != "printf":
                        self.knows_values = False  # a variable under another name
                if command.words and command.words[0] in ("source", "."):
                    self.knows_values = False

    def may_be(self, name: str, word: str | None) -> None:
        known = self.values.setdefault(name, [])
        if word is None or known is None:
            self.values[name] = None
        else:
            known.append(word)

    def meanings(self, word: str, names: tuple[str, ...] = ()) -> list[str]:
        """What a word may stand for: each a string in which what is not known is marked."""
        pieces = []
        for piece in re.split(f"([{VARIABLE}{VARIABLE_WORDS}][^{END}]*{END})", word):
            if not piece.startswith((VARIABLE, VARIABLE_WORDS)):
                pieces.append([piece])
                continue
            in_quotes = piece[0] == VARIABLE
            values = self.variable(piece[1:-1], names)
            unknown = UNKNOWN if in_quotes else UNKNOWN_WORDS
            if values is None or (not in_quotes and "IFS" in self.values):
                pieces.append([unknown])
            elif in_quotes:
                pieces.append(values)  # with patterns left alive: the words of a loop are expanded before
            else:
                pieces.append([unknown if re.search(r"[\s*?\[]", value) else value for value in values])
        if count(pieces) > MAX_MEANINGS:
            return [UNKNOWN_WORDS]
        return ["".join(chosen) for chosen in itertools.product(*pieces)]

    def variable(self, name: str, names: tuple[str, ...]) -> list[str] | None:
        """The values of a variable, None if they cannot be known; `names` are the variables it is looked up for."""
        if not self.knows_values or name in names or len(names) > 5:
            return None
        if name in self.values:
            words = self.values[name]
            if words is None or len(words) > MAX_MEANINGS:
                return None
            values = [each for word in words for each in self.meanings(word, (*names, name))]
            return values if len(values) <= MAX_MEANINGS else None
        known = {"HOME": os.path.expanduser("~"), "PWD": self.folder, "TMPDIR": os.environ.get("TMPDIR") or "/tmp"}
        value = known.get(name)
        return [value] if value else None

    def command(self, command: Command, upstream: list[Command]) -> str | None:
        for target in command.written_to:
            if reason := first(self.write(path, command) for path in self.meanings(target)):
                return reason
        for name, word in command.assigned:
            if re.search(r"\$\(|`", plain(word or "")) or name.startswith("BASH_FUNC"):
                return "it puts a command into a variable, where arithmetic and other programs run it"
            if name == "CDPATH":
                return "CDPATH makes `cd` go elsewhere"
            for value in self.meanings(word or "") if name in LOAD_CODE or RUN_THEIR_VALUE.fullmatch(name) else ():
                if name in LOAD_CODE or MARK.search(value):
                    return f"{name} makes other programs load code"
                if reason := self.inside(plain(value)):
                    return reason
        alternatives = [self.meanings(word) for word in command.words]
        if count(alternatives) > MAX_MEANINGS:
            alternatives = [each if len(each) == 1 else [UNKNOWN_WORDS] for each in alternatives]
        self.current, self.upstream = command, upstream
        chosen = itertools.product(*alternatives)
        return first(self.program([each for word in words for each in braces(word)]) for words in chosen)

    def program(self, words: list[str]) -> str | None:
        words = list(words)
        if not words:
            return None
        folder, _, last = words[0].rpartition("/")
        if MARK.search(last) or UNKNOWN_WORDS in folder or PROCESS in folder:
            return "which program it runs depends on an expansion: write the program's name out"
        if re.search(r"[*?\[]", words[0]) and words[0] not in ("[", "[["):
            return "which program it runs depends on a pattern: write the program's name out"
        program = program_name(words[0])
        ran = self.written.get(self.place(words[0])) if "/" in words[0] else None
        if ran is not None:
            return self.ran(words[0], ran)
        if self.unpacked and "/" in words[0] and self.place(words[0]).startswith(self.project):
            return f"{shown(words[0])} may be from the download that this command unpacks: look at it first"
        if words[0] in self.aliases and self.depth < MAX_NESTING:
            body = self.aliases.pop(words[0])  # it may name itself
            return self.inside(
                " ".join([body, *(word if not MARK.search(word) else '"$unknown"' for word in words[1:])])
            )
        if program == "parallel":
            return self.parallel(words[1:])
        if program in WRAPPERS or re.fullmatch(r"ld(-linux|-musl)?[\w.-]*\.so[\d.]*", program):
            return self.wrapped(program, words[1:])
        if RUNNERS.get(program) in words[1:2]:
            return self.wrapped(program, words[2:])
        if program in SHELLS:
            return self.shell(program, words[1:])
        if program in INTERPRETERS:
            return self.interpreter(program, words[1:])
        if reason := self.sent(program, words[1:]):
            return reason
        rule = RULES.get(program) or (disks if program.startswith("mkfs") else None)
        if rule and (reason := rule(self, words[1:])):
            return reason
        if program in SERVICES:
            return service_reason(program, words[1:])
        if rule or program in JUST_TEXT:
            return None
        return self.unknown(words) or (service_reason(program, words[1:]) if "/" not in words[0] else None)

    def sent(self, program: str, arguments: list[str]) -> str | None:
        """Why a program is blocked for what it would send over the network: files that are not the project's."""
        paths = [word for word in arguments if re.match(r"[/~]|\.\./", word)]
        if not sends(program, arguments):
            self.read_elsewhere += filter(self.is_elsewhere, paths)
            return None
        files = [word for word in sent_files(program, arguments) if word != "-"]
        kind, value = self.current.stdin or ("", None)
        files += [value] if kind == "file" and value and program in PIPES.split() else []
        is_piped = program in PIPES.split() or any(
            re.fullmatch(r"@?-|.*=@-", plain(word))
            for word in [*sent_texts(program, arguments), *sent_files(program, arguments)]
        )
        for command in self.upstream if is_piped else ():
            files += [word for word in command.words[1:] if re.match(r"[/~]|\.\./", word)]
            if program_name((command.words or [""])[0]) in DUMPS.split():
                return "it sends a database or the environment over the network"
        found = [each for each in files if self.is_elsewhere(each)]
        if not found and (files or MARK.search("".join(sent_texts(program, arguments)))):
            found = self.read_elsewhere
        return f"it sends {shown(found[0])}, which is outside the project, over the network" if found else None

    def unknown(self, words: list[str]) -> str | None:
        """A program without a rule may run another one that it is given, as `sudo` does, or write to a file."""
        if reason := outputs(self, words[1:]):
            return reason
        texts = (plain(word).partition("=")[2] or plain(word) for word in words[1:] if re.search(r"\s", word))
        runs = (
            text for text in texts if program_name((text.split() or [""])[0]) in DESTRUCTIVE and not MARK.search(text)
        )
        if reason := first(map(self.inside, runs)):
            return reason
        for index, word in enumerate(words[1:], start=1):
            program = program_name(word)
            is_risky = program in DESTRUCTIVE or (
                program in SHELLS and "c" in short_options(words[index + 1 : index + 2])
            )
            if is_risky and (reason := self.program(words[index:])):
                return reason
        return None

    def wrapped(self, program: str, arguments: list[str]) -> str | None:
        """Judge what `sudo`, `timeout` and the like run; where an option is not known, both ways to read it."""
        valued, before = WRAPPERS.get(program, ("", 0))
        words, unsure = list(arguments), False
        if program == "command" and words[:1] in (["-v"], ["-V"]):
            return None
        while words and (words[0].startswith("-") or re.match(r"[A-Za-z_]\w*(?:%%)?=", words[0])) and words[0] != "--":
            option = words.pop(0)
            unsure = False
            is_assignment = "=" in option and not option.startswith("-")
            if is_assignment and (reason := self.command(assignment(*option.split("=", 1)), [])):
                return reason
            if program == "env" and re.match(r"-\w*S|--split", option):
                return self.inside(" ".join(map(plain, [option.partition("S")[2].lstrip("="), *words])))
            if program == "env" and re.match(r"-C|--chdir", option):
                self.folder = self.place(option.partition("=")[2] or option[2:].lstrip("-chdir") or (words or ["?"])[0])
            if re.fullmatch(rf"-\w*[{valued or '-'}]", option) and words:
                words.pop(0)
            else:
                unsure = "=" not in option and option.startswith("--")
        words = words[1:] if words[:1] == ["--"] else words
        if program == "watch":
            return self.inside(" ".join(map(plain, words))) if not MARK.search("".join(words)) else self.program(words)
        if program == "flock" and words[1:2] == ["-c"]:
            words = ["sh", *words[1:]]
            before = 0
        return first(self.program(words[start:]) for start in ({before, before + 1} if unsure else {before}))

    def parallel(self, arguments: list[str]) -> str | None:
        """Judge what GNU parallel runs: a template, in which each value takes the place of {}, as a line of a shell."""
        words = list(arguments)
        while words and words[0].startswith("-"):
            option = words.pop(0)
            if re.fullmatch(r"-[jIaNnLPSC]|--(?:jobs|arg-file|colsep|delay|timeout|joblog|results|retries)", option):
                words = words[1:]
        start = next((index for index, word in enumerate(words) if re.fullmatch(r":::[:+]*", word)), len(words))
        template, values = words[:start], [word for word in words[start + 1 :] if not word.startswith(":::")]
        from_text = start < len(words) and not words[start].startswith("::::")
        if not template or not from_text or len(values) > MAX_MEANINGS:
            values = [UNKNOWN]
        if values == [UNKNOWN] and (not template or program_name(template[0]) in {*SHELLS, *INTERPRETERS}):
            return "parallel runs what it reads as commands: run them one by one"
        if not any(re.search(r"\{[\d./#%]*\}", plain(word)) for word in template):
            template = [*template, "{}"]
        for value in values:
            filled = [value.join(re.split(r"\{[\d./#%]*\}", plain(word))) for word in template]
            if reason := self.program(filled) or (None if MARK.search(value) else self.inside(" ".join(filled))):
                return reason
        return None

    def ran(self, path: str, text: str) -> str | None:
        """Judge a file that this command line has written and now runs."""
        if text and not re.match(r"#!.*(?:python|node|perl|ruby)", text):
            return self.inside(text)
        return f"{shown(path)} is written and run in one go: write it, check it, and run it in a call of its own"

    def stdin_program(self, program: str, judged: collections.abc.Callable[[str], str | None]) -> str | None:
        """Judge a program that is read from stdin: a text is judged, a file counts as a script."""
        kind, value = self.current.stdin or ("", None)
        if kind == "file" and value is not None and PROCESS not in value and not STDIN.fullmatch(value):
            return self.run_file(program, value)
        if kind == "text" and value is not None:
            return judged(value)
        return f"{program} would run what it reads from a pipe or terminal: put the commands in the call itself"

    def run_file(self, program: str, path: str) -> str | None:
        if PROCESS in path:
            return f"{program} would run what another program prints: save it to a file and check it first"
        text = self.written.get(self.place(path))
        return None if text is None else self.ran(path, text if program in SHELLS else "")

    def shell(self, program: str, arguments: list[str]) -> str | None:
        operand, rest = None, list(arguments)
        while rest:
            word = rest.pop(0)
            if re.fullmatch(r"[-+](?:[oO]|-rcfile|-init-file)", word):
                value = rest.pop(0) if rest else ""
                if "file" in word and PROCESS in value:
                    return f"{program} would run what another program prints"
            elif re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*|-[cC]ommand|--command(?:=.*)?|-EncodedCommand", word):
                text = next((each for each in rest if not re.match(r"[-+]", each)), "")
                if "=" in word:
                    text = word.partition("=")[2]
                if MARK.search(text):
                    return f"{program} -c runs a text that depends on an expansion: write the command out"
                if "{}" in text and self.replaces:
                    return f"{program} -c runs a text that contains file names"
                return self.inside(plain(text))
            elif word in ("--version", "--help"):
                return None
            elif not word.startswith(("-", "+")) or word == "-":
                operand = word
                break
            elif "s" in word and not word.startswith("--"):
                break
        if operand is None or STDIN.fullmatch(operand):
            return self.stdin_program(program, self.inside)
        if program == "pwsh":
            return "PowerShell is not understood here: use sh"
        return self.run_file(program, operand)

    replaces = False  # whether `{}` in words stands for a file

    def interpreter(self, program: str, arguments: list[str]) -> str | None:
        options = INTERPRETERS[program]
        is_python = program in ("python", "pypy")
        for index, word in enumerate(arguments):
            following = arguments[index + 1 : index + 2]
            code = re.fullmatch(rf"-[a-zA-Z0-9.]*?[{options or '-'}](.*)", word, re.DOTALL)
            long = re.fullmatch(r"--?(?:eval|print|execute|run|ex|eval-command)(?:=(.*))?", word, re.DOTALL)
            if is_python and word.startswith("-m"):
                module, *rest = [word[2:], *arguments[index + 1 :]] if word[2:] else arguments[index + 1 :] or [""]
                runs_text = module in ("timeit", "code", "pdb", "trace", "cProfile")
                texts = [each for each in operands(rest) if not re.fullmatch(r"[\w./-]+", each)] if runs_text else []
                return first(self.code(program, f"-m {module}", text) for text in texts)
            if found := code or long:
                return self.code(program, word, found.group(1) or (following or [""])[0])
            if word in ("--version", "-V", "--help", "-h", "-v", "--check", "-l", "-i"):
                return None
            if STDIN.fullmatch(word):
                break
            if not word.startswith("-") and not (index and arguments[index - 1] in ("-W", "-X", "-r", "--require")):
                if program == "deno":
                    remote = any(re.match(r"https?:", each) for each in arguments)
                    return "it runs a script straight off the network" if remote else None
                if program_name(word) in ("manage.py", "artisan"):
                    return database_tool(self, arguments[index + 1 :])
                return self.run_file(program, word)
        if program in ("deno", "bun", "gdb", "lldb", "ghc", "osascript") and not self.current.stdin:
            return None
        return self.stdin_program(program, lambda text: self.code(program, "-", text))

    def code(self, program: str, option: str, text: str) -> str | None:
        if not MARK.search(text):
            if program in ("python", "pypy") and is_harmless_python(plain(text)):
                return None
            if program == "perl" and PERL.fullmatch(plain(text)) and not re.search(r"\(\?\??\{|[@$]\{", plain(text)):
                return None
            if program in ("node", "nodejs", "bun", "php") and LOOKUP.fullmatch(plain(text)):
                return None
        return f"{program} {option} runs code that is not checked: write it to a file with the file tool, then run that"

    # Paths.

    def place(self, path: str) -> str:
        """The absolute path; one that begins with a mark cannot be known."""
        if re.match(r"~(?=/|$)", path):
            path = os.path.expanduser("~") + path[1:] if "HOME" not in self.values else UNKNOWN
        elif path.startswith("~") or (self.folder is None and not path.startswith("/")):
            return UNKNOWN
        path = os.path.normpath(os.path.join(self.folder or "/", path))
        for link, target in self.links.items():
            if path.startswith(link + "/"):
                return os.path.normpath(target + path[len(link) :])
        return path

    def temporary(self, place: str) -> bool:
        scratch = {os.path.realpath(each) + "/" for each in (os.environ.get("TMPDIR") or "/tmp", "/tmp", "/var/tmp")}
        free = tuple(folder for folder in scratch if not self.project.startswith(folder))
        return place.startswith(free) if free else False

    def is_elsewhere(self, path: str) -> bool:
        """Whether a file is neither in the project nor temporary."""
        place = os.path.realpath(plain(self.place(path)))
        scratch = self.temporary(place) or place == self.project or place.startswith((self.project + "/", "/dev/"))
        return not scratch and not MARK.search(place)

    def too_much(self, path: str, whole_is_fine: bool = False) -> str | None:
        """Why files at this path should not be deleted or moved away; None where they are a part of the project."""
        place = self.place(path)
        if MARK.search(place):
            return f"{shown(path)} depends on an expansion or an unknown folder, and may be anything"
        while re.search(r"[*?\[]", os.path.basename(place)):
            pattern = os.path.basename(place)
            if any(fnmatch.fnmatchcase(each, pattern) for each in GIT_OR_HOOKS) and pattern.startswith("."):
                return f"{shown(path)} matches .git"
            if re.search(r"\w", re.sub(r"\[[^\]]{0,99}\]", "", pattern)):
                break
            place = os.path.dirname(place)  # a pattern that matches everything
        if place.startswith("/proc/"):  # links there lead elsewhere for each process
            return f"{shown(path)} depends on the process, and may be anything"
        place = os.path.realpath(plain(place))
        if self.project == place or self.project.startswith(place.rstrip("/") + "/"):
            if whole_is_fine and self.project == place:
                return None
            return f"{shown(path)} is the whole project" + ("" if self.project == place else " and more")
        if self.temporary(place):
            return None
        if not place.startswith(self.project + "/"):
            return f"{shown(path)} is outside the project"
        for part in place[len(self.project) + 1 :].split("/"):
            if part in GIT_OR_HOOKS and not place.endswith(".lock"):
                return f"{shown(path)} is {GIT_OR_HOOKS[part]}"
        return None

    def write(self, path: str, command: Command | None = None) -> str | None:
        """Why nothing should be written to this path; what is written is kept in mind."""
        place = self.place(path)
        place = self.links.get(place, place)
        if mark := MARK.search(place):
            whole_variable = path in (UNKNOWN, UNKNOWN_WORDS) and not any(each is None for each in self.values.values())
            below = place[: mark.start()].startswith(self.project + "/")
            return None if whole_variable or below else f"{shown(path)} depends on an expansion, and may be anything"
        if DISKS.match(place):
            return f"{shown(path)} is a device or a connection"
        real = os.path.realpath(plain(place))
        text = ""
        if command and command.stdin and command.stdin[0] == "text" and command.words[:1] == ["cat"]:
            text = command.stdin[1] or ""
        self.written[place] = text
        if place.startswith("/dev/") or self.temporary(real) or real.startswith("/dev/"):
            return None
        if real == self.project:  # into it, under the same name
            return None
        if not real.startswith(self.project + "/"):
            return f"{shown(path)} is outside the project"
        inside = real[len(self.project) + 1 :].split("/")
        return f"{shown(path)} is {GIT_OR_HOOKS[inside[0]]}" if inside[0] in GIT_OR_HOOKS else None


def is_fork_bomb(text: str) -> bool:
    for found in re.finditer(
        r"(?:function\s{1,9})?([\w:.-]{1,50})\s{0,9}(?:\(\s{0,9}\))?\s{0,9}\{([^{}]{1,500})\}", text
    ):
        own, body = re.escape(found.group(1)), found.group(2)
        if re.search(rf"(?<![\w.-]){own}(?![\w.-])", body) and re.search(r"(?<![&>])&(?![&>])", body):
            return True
    return False
