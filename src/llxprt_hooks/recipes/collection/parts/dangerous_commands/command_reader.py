"""Reads a command line into simple commands."""

from __future__ import annotations

import re

# Words are strings. In them, characters that quotes made ordinary are moved to a private area of Unicode, and what only
# running the command would tell is a mark. Commands that contain such characters themselves are refused.
QUOTED = {ord(char): 0xE000 + ord(char) for char in "*?[]{}~,"}
UNQUOTED = {moved: char for char, moved in QUOTED.items()}
UNKNOWN, UNKNOWN_WORDS, PROCESS = "\uf8ff", "\uf8fe", "\uf8fd"  # text; text that may become several words; <( … )
VARIABLE, VARIABLE_WORDS, END = "\uf8f0", "\uf8f2", "\uf8f1"  # around the name of a variable, in quotes and not
MARK = re.compile("[\uf8fd-\uf8ff]")
UNREADABLE_CHARACTER = re.compile("[\ue000-\uf8ff\ud800-\udfff\0]")


def plain(word: str) -> str:
    return word.translate(UNQUOTED)


def is_unknown(word: str) -> bool:
    return bool(MARK.search(word)) or END in word


class Unreadable(Exception):
    """Why a command line cannot be read for certain."""


class Command:
    """One program with its arguments, and what is around it."""

    def __init__(self) -> None:
        self.words: list[str] = []
        # Names and words of assignments; None for a value that cannot be known.
        self.assigned: list[tuple[str, str | None]] = []
        self.written_to: list[str] = []  # targets of > and >>
        self.stdin: tuple[str, str | None] | None = None  # ("text", text or None) or ("file", word)

    def redirect(self, operator: str, target: str) -> None:
        if operator == "<<<":
            self.stdin = ("text", None if is_unknown(target) else plain(target))
        elif ">" in operator:
            self.written_to.append(target)
        else:
            self.stdin = ("file", target)


# A script, is a list of pairs: a pipeline (a list of commands) and the operator after it, or
# ENTER and LEAVE around what runs in a shell of its own.
ENTER, LEAVE = ("enter", ""), ("leave", "")
MAX_NESTING = 20  # commands inside commands


def expansion(name: str, quoted: bool) -> str:
    if re.fullmatch(r"[A-Za-z_]\w*", name):
        return (VARIABLE if quoted else VARIABLE_WORDS) + name + END
    return UNKNOWN if quoted or name in "?#$!" else UNKNOWN_WORDS


def substitution(text: str, quoted: bool) -> str:
    """What is known of the output of $( … )."""
    if text.strip() == "pwd":
        return expansion("PWD", quoted)
    if said := re.fullmatch(r"\s*echo\s+([\w./-]+)\s*", text):
        return said.group(1)
    if re.fullmatch(r"\s*mktemp(\s+-[dqut]+|\s+[\w.-]*X{3,}[\w.-]*)*\s*", text):
        return "/tmp/mktemp"
    return UNKNOWN if quoted else UNKNOWN_WORDS


def ansi_c(text: str) -> str:
    """The text of $'…'."""
    simple = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}

    def decoded(found: re.Match[str]) -> str:
        code = found.group(1)
        if code[0] in "xuU":
            return chr(min(int(code[1:], 16), 0x10FFFF))
        if code[0].isdigit():
            return chr(int(code, 8) & 0xFF)
        return simple.get(code, code)

    pattern = r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|c.|.)"
    return re.sub(pattern, decoded, text, flags=re.DOTALL)


def parameter(text: str, script: list[tuple[list[Command] | str, str]], quoted: bool) -> str:
    """The inside of ${ … }: what the word gets for it."""
    if re.fullmatch(r"\w+|[@*#?$!-]", text):
        return expansion(text, quoted)
    if re.search(r"@[A-Za-z]$", text):
        raise Unreadable("it evaluates the text of a variable")
    if named := re.match(r"!?(\w+)(?:\[[^\]]*\])?:?=", text):
        script.append(([assignment(named.group(1), None)], ""))
    return UNKNOWN if quoted else UNKNOWN_WORDS


def assignment(name: str, word: str | None) -> Command:
    command = Command()
    command.assigned.append((name, word))
    return command


def read(text: str) -> list[tuple[list[Command] | str, str]]:
    if UNREADABLE_CHARACTER.search(text):
        raise Unreadable("it has characters that do not belong in a command")
    return CommandReader(text).read()


class CommandReader:
    """Reads a command line. What it does not know, `case` for example, it refuses."""

    OPENING = ("if", "then", "else", "elif", "while", "until", "do", "{", "!")
    CLOSING = ("fi", "done", "}")
    STOP = tuple(" \t\r\n;&|<>()")

    def __init__(self, text: str, depth: int = 0) -> None:
        self.text, self.at, self.depth = text.replace("\\\n", ""), 0, depth
        self.script: list[tuple[list[Command] | str, str]] = []
        self.here_documents: list[tuple[Command, str, bool, str]] = []
        if depth > MAX_NESTING:
            raise Unreadable("it is too deeply nested")

    def read(self) -> list[tuple[list[Command] | str, str]]:
        self.commands("")
        return self.script

    def peek(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def take(self, pattern: str) -> re.Match[str] | None:
        found = re.compile(pattern, re.DOTALL).match(self.text, self.at)
        self.at = found.end() if found else self.at
        return found

    def blanks(self, newlines: bool) -> None:
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\n" and newlines:
                self.newline()
            elif char in " \t\r":
                self.at += 1
            elif char == "#" and (self.at == 0 or self.text[self.at - 1] in self.STOP):
                self.take(r"[^\n]*")
            else:
                return

    def commands(self, closing: str) -> None:
        while True:
            self.blanks(newlines=True)
            if self.take(r";;?|&(?!>)"):
                continue
            if self.at >= len(self.text):
                if closing:
                    raise Unreadable("a bracket or quote is not closed")
                return
            if closing and self.peek(closing):
                self.at += len(closing)
                return
            if self.peek(")"):
                raise Unreadable("a bracket closes nothing")
            start = self.at
            self.pipeline()
            if self.at == start:
                raise Unreadable("an operator is where a command should be")

    def pipeline(self) -> None:
        commands = []
        while True:
            self.blanks(newlines=True)
            if command := self.command():
                commands.append(command)
            self.blanks(newlines=False)
            if self.peek("||") or not self.take(r"\|&?"):
                break
        operator = self.take(r"&&|\|\|")
        self.script.append((commands, operator.group() if operator else ""))

    def command(self) -> Command | None:
        if self.peek("(("):
            self.arithmetic(2)
            return None
        if self.peek("("):
            self.at += 1
            self.subshell(")")
            return self.simple(closed=True)
        return self.simple()

    def subshell(self, closing: str) -> None:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise Unreadable("it is too deeply nested")
        self.script.append(ENTER)
        self.commands(closing)
        self.script.append(LEAVE)
        self.depth -= 1

    def simple(self, closed: bool = False) -> Command | None:
        """A command with its redirections; after a closing bracket or keyword only those."""
        command = Command()
        while True:
            self.blanks(newlines=False)
            if self.redirection(command):
                continue
            if self.at >= len(self.text) or (self.text[self.at] in self.STOP and not self.take(r"(?=[<>]\()")):
                break
            start = self.at
            word = self.word()
            raw = self.text[start : self.at]
            first = not command.words and not closed
            if not first and closed:
                raise Unreadable("a word follows the end of a block")
            if first and not command.assigned:
                if raw in self.OPENING:
                    self.blanks(newlines=True)
                    return self.command()
                if raw in self.CLOSING:
                    closed = True
                    continue
                if raw in ("for", "select"):
                    return self.loop()
                if raw in ("case", "function", "esac"):
                    raise Unreadable(f"it uses `{raw}`")
                if raw == "[[":
                    self.condition()
                    return None
                if self.take(r"[ \t]*\([ \t]*\)\s*"):
                    return self.command()  # the body of a function
            named = re.match(r"([A-Za-z_]\w*)(?:\[[^\]]*\])?(\+?=)", raw) if first else None
            if named and self.peek("(") and raw.endswith("="):
                self.array(command, named.group(1))
            elif named:
                value = word[named.end() :] if named.group(2) == "=" and "[" not in named.group() else None
                command.assigned.append((named.group(1), value))
            else:
                command.words.append(word)
        if self.at < len(self.text) and self.peek("("):
            raise Unreadable("it has a bracket in the middle of a command")
        return command

    def array(self, command: Command, name: str) -> None:
        self.at += 1
        command.assigned.append((name, None))
        while True:
            self.blanks(newlines=True)
            if self.take(r"\)"):
                return
            if self.at >= len(self.text) or self.text[self.at] in self.STOP:
                raise Unreadable("it has a list that is not plain")
            self.word()

    def loop(self) -> Command | None:
        self.blanks(newlines=False)
        if self.peek("(("):
            self.arithmetic(2)
            return None
        name = self.take(r"\w+")
        if not name:
            raise Unreadable("it has a loop that is not plain")
        command = Command()
        self.blanks(newlines=True)
        if self.take(r"in(?=\s)"):
            self.blanks(newlines=False)
            while self.at < len(self.text) and self.text[self.at] not in ";\n":
                if self.text[self.at] in self.STOP:
                    raise Unreadable("it has a loop that is not plain")
                command.assigned.append((name.group(), self.word()))
                self.blanks(newlines=False)
        else:
            command.assigned.append((name.group(), None))
        return command

    def condition(self) -> None:
        while not self.take(r"\s+\]\](?=[\s;&|)]|$)"):
            if self.at >= len(self.text):
                raise Unreadable("a condition is not closed")
            if self.text[self.at] in self.STOP:
                self.at += 1
            elif re.search(r"\$\(|`", self.word()):
                raise Unreadable("it has a command in quotes, which a condition may run")

    def arithmetic(self, opening: int) -> None:
        """(( … )) or $(( … )): skipped, but what is substituted inside is read."""
        start = self.at + opening
        depth, at = 2, start
        while depth and at < len(self.text):
            depth += {"(": 1, ")": -1}.get(self.text[at], 0)
            at += 1
        if depth or self.text[at - 2 : at] != "))":
            raise Unreadable("it has arithmetic that is not plain")
        inside = self.text[start : at - 2]
        self.expansions(inside)
        for name in re.findall(r"[A-Za-z_]\w*", inside):
            self.script.append(([assignment(name, None)], ""))
        self.at = at

    def expansions(self, text: str) -> bool:
        """Read what is substituted inside a text; whether there was any."""
        inner = CommandReader(text, self.depth + 1)
        found = inner.quoted("")
        self.script += inner.script
        return is_unknown(found)

    def redirection(self, command: Command) -> bool:
        found = self.take(r"\d*(?![<>]\()(&>>?|<<<|<<-?|<>|>>|>\||>&|<&|>|<)")
        if not found:
            return False
        operator = found.group(1)
        self.blanks(newlines=False)
        if operator in ("<<", "<<-"):
            start = self.at
            delimiter = self.word()
            raw = self.text[start : self.at]
            self.here_documents.append((command, plain(delimiter), raw == delimiter, operator))
            return True
        if self.take(r"\d+-?(?=[\s;&|<>)]|$)|-(?=[\s;&|<>)]|$)") and operator in (">&", "<&"):
            return True
        command.redirect(operator, self.word())
        return True

    def newline(self) -> None:
        self.at += 1
        waiting, self.here_documents = self.here_documents, []
        for command, delimiter, expands, operator in waiting:
            indent = r"\t*" if operator == "<<-" else ""
            end = re.compile(rf"^{indent}{re.escape(delimiter)}(?:\n|$)", re.MULTILINE).search(self.text, self.at)
            if not end:
                raise Unreadable("a here-document is not closed")
            body = self.text[self.at : end.start()]
            self.at = end.end()
            command.stdin = ("text", None if expands and self.expansions(body) else body)

    def word(self) -> str:
        word = ""
        while self.at < len(self.text):
            char = self.text[self.at]
            if self.peek("<(") or self.peek(">("):
                self.at += 2
                self.subshell(")")
                word += PROCESS
            elif char == "(" and word[-1:] in tuple("?*+@!"):
                raise Unreadable("it has an extended pattern")
            elif char in self.STOP:
                break
            elif char == "'":
                end = self.text.find("'", self.at + 1)
                if end < 0:
                    raise Unreadable("a quote is not closed")
                word += self.text[self.at + 1 : end].translate(QUOTED)
                self.at = end + 1
            elif char == '"':
                self.at += 1
                word += self.quoted('"')
            elif char == "\\":
                word += self.text[self.at + 1 : self.at + 2].translate(QUOTED)
                self.at += 2
            elif char in "$`":
                word += self.dollar(quoted=False)
            else:
                word += char
                self.at += 1
        return word

    def quoted(self, end: str) -> str:
        """The text up to a closing quote, or to the end."""
        word = ""
        while True:
            if self.at >= len(self.text):
                if end:
                    raise Unreadable("a quote is not closed")
                return word
            char = self.text[self.at]
            if char == end:
                self.at += 1
                return word
            if char == "\\" and self.text[self.at + 1 : self.at + 2] in tuple('$`"\\'):
                word += self.text[self.at + 1]
                self.at += 2
            elif char in "$`":
                word += self.dollar(quoted=True)
            else:
                word += char.translate(QUOTED)
                self.at += 1

    def dollar(self, quoted: bool) -> str:
        if self.peek("`"):
            found = self.take(r"`((?:[^`\\]|\\.)*)`")
            if not found:
                raise Unreadable("a quote is not closed")
            inner = re.sub(r"\\([`$\\])", r"\1", found.group(1))
            nested = CommandReader(inner, self.depth + 1)
            self.script += [ENTER, *nested.read(), LEAVE]
            return substitution(inner, quoted)
        if not quoted and self.peek("$'"):
            found = self.take(r"\$'((?:[^'\\]|\\.)*)'")
            if not found:
                raise Unreadable("a quote is not closed")
            return ansi_c(found.group(1)).translate(QUOTED)
        if not quoted and self.peek('$"'):
            self.at += 2
            return self.quoted('"')
        if self.peek("$(("):
            self.arithmetic(3)
            return UNKNOWN
        if self.peek("$("):
            start = self.at = self.at + 2
            self.subshell(")")
            return substitution(self.text[start : self.at - 1], quoted)
        if self.peek("${"):
            start = self.at = self.at + 2
            self.quoted("}")
            return parameter(self.text[start : self.at - 1], self.script, quoted)
        found = self.take(r"\$([A-Za-z_]\w*|[0-9@*#?$!-])")
        if found:
            return expansion(found.group(1), quoted)
        self.at += 1
        return "$"
