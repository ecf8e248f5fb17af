#!/usr/bin/env python3
"""BeforeTool: blocks shell commands that destroy work or the machine, or that run code which nobody has seen.

A command line is read into simple commands, and each program has a rule. Reading is done by tree-sitter-bash if this
Python has it (`pip install tree-sitter tree-sitter-bash`), otherwise, or where that finds an error, by a small reader
that refuses more. What cannot be read for certain is blocked: a program named by an expansion, `eval`, text that is
piped into a shell, code in an argument (`perl -e`).

A seat belt, not a sandbox: what a script, a test or a `make` target does is not seen.
"""

import ast
import fnmatch
import itertools
import json
import math
import os
import re
import sys

from llxprt_hooks.recipes.collection.parts.call_commands import (
    LONGEST,
    PYTHON,
    SHELL,
    SHELL_NAMES,
    SHELL_TOOL,
    NoCommand,
    command_lines,
    folders_of,
    is_python,
    languages_in,
)

try:
    import tree_sitter
    import tree_sitter_bash

    PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
except Exception:  # not installed, or a version with another interface
    PARSER = None

DEEPEST = 20  # commands inside commands
MOST_MEANINGS = 64  # of one command, where variables in it have several values

# Words are strings. In them, characters that quotes made ordinary are moved to a private area of Unicode, and what only
# running the command would tell is a mark. Commands that contain such characters themselves are refused.
QUOTED = {ord(char): 0xE000 + ord(char) for char in "*?[]{}~,"}
UNQUOTED = {moved: char for char, moved in QUOTED.items()}
UNKNOWN, UNKNOWN_WORDS, PROCESS = "\uf8ff", "\uf8fe", "\uf8fd"  # text; text that may become several words; <( … )
VARIABLE, VARIABLE_WORDS, END = "\uf8f0", "\uf8f2", "\uf8f1"  # around the name of a variable, in quotes and not
MARK = re.compile("[\uf8fd-\uf8ff]")
UNREADABLE_CHARACTER = re.compile("[\ue000-\uf8ff\ud800-\udfff\0]")


def plain(word):
    return word.translate(UNQUOTED)


def is_unknown(word):
    return MARK.search(word) or END in word


class Unreadable(Exception):
    """Why a command line cannot be read for certain."""


class Command:
    """One program with its arguments, and what is around it."""

    def __init__(self):
        self.words = []
        self.assigned = []  # names and words of assignments; None for a value that cannot be known
        self.written_to = []  # targets of > and >>
        self.stdin = None  # ("text", text or None) or ("file", word)

    def redirect(self, operator, target):
        if operator == "<<<":
            self.stdin = ("text", None if is_unknown(target) else plain(target))
        elif ">" in operator:
            self.written_to.append(target)
        else:
            self.stdin = ("file", target)


# A script, as both readers give it, is a list of pairs: a pipeline (a list of commands) and the operator after it, or
# ENTER and LEAVE around what runs in a shell of its own.
ENTER, LEAVE = ("enter", ""), ("leave", "")


def read(text):
    if UNREADABLE_CHARACTER.search(text):
        raise Unreadable("it has characters that do not belong in a command")
    if PARSER:
        try:
            return TreeReader(text).read()
        except Unreadable:
            pass  # perhaps the other one can
    return SmallReader(text).read()


def expansion(name, quoted):
    if re.fullmatch(r"[A-Za-z_]\w*", name):
        return (VARIABLE if quoted else VARIABLE_WORDS) + name + END
    return UNKNOWN if quoted or name in "?#$!" else UNKNOWN_WORDS


def substitution(text, quoted):
    """What is known of the output of $( … )."""
    if text.strip() == "pwd":
        return expansion("PWD", quoted)
    if re.fullmatch(r"\s*mktemp(\s+-[dqut]+|\s+[\w.-]*X{3,}[\w.-]*)*\s*", text):
        return "/tmp/mktemp"
    return UNKNOWN if quoted else UNKNOWN_WORDS


def ansi_c(text):
    """The text of $'…'."""
    simple = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}

    def decoded(found):
        code = found.group(1)
        if code[0] in "xuU":
            return chr(min(int(code[1:], 16), 0x10FFFF))
        if code[0].isdigit():
            return chr(int(code, 8) & 0xFF)
        return simple.get(code, code)

    pattern = r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|c.|.)"
    return re.sub(pattern, decoded, text, flags=re.DOTALL)


def parameter(text, script, quoted):
    """The inside of ${ … }: what the word gets for it."""
    if re.fullmatch(r"\w+|[@*#?$!-]", text):
        return expansion(text, quoted)
    if re.search(r"@[A-Za-z]$", text):
        raise Unreadable("it evaluates the text of a variable")
    if named := re.match(r"!?(\w+)(?:\[[^\]]*\])?:?=", text):
        script.append(([assignment(named.group(1), None)], ""))
    return UNKNOWN if quoted else UNKNOWN_WORDS


def assignment(name, word):
    command = Command()
    command.assigned.append((name, word))
    return command


class SmallReader:
    """Reads a command line without a parser. What it does not know, `case` for example, it refuses."""

    OPENING = ("if", "then", "else", "elif", "while", "until", "do", "{", "!")
    CLOSING = ("fi", "done", "}")
    STOP = tuple(" \t\r\n;&|<>()")

    def __init__(self, text, depth=0):
        self.text, self.at, self.depth = text.replace("\\\n", ""), 0, depth
        self.script = []
        self.here_documents = []
        if depth > DEEPEST:
            raise Unreadable("it is too deeply nested")

    def read(self):
        self.list("")
        return self.script

    def peek(self, text):
        return self.text.startswith(text, self.at)

    def take(self, pattern):
        found = re.compile(pattern, re.DOTALL).match(self.text, self.at)
        self.at = found.end() if found else self.at
        return found

    def blanks(self, newlines):
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

    def list(self, closing):
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

    def pipeline(self):
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

    def command(self):
        if self.peek("(("):
            self.arithmetic(2)
            return None
        if self.peek("("):
            self.at += 1
            self.subshell(")")
            return self.simple(closed=True)
        return self.simple()

    def subshell(self, closing):
        self.depth += 1
        if self.depth > DEEPEST:
            raise Unreadable("it is too deeply nested")
        self.script.append(ENTER)
        self.list(closing)
        self.script.append(LEAVE)
        self.depth -= 1

    def simple(self, closed=False):
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

    def array(self, command, name):
        self.at += 1
        command.assigned.append((name, None))
        while True:
            self.blanks(newlines=True)
            if self.take(r"\)"):
                return
            if self.at >= len(self.text) or self.text[self.at] in self.STOP:
                raise Unreadable("it has a list that is not plain")
            self.word()

    def loop(self):
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

    def condition(self):
        while not self.take(r"\s+\]\](?=[\s;&|)]|$)"):
            if self.at >= len(self.text):
                raise Unreadable("a condition is not closed")
            if self.text[self.at] in self.STOP:
                self.at += 1
            else:
                self.word()

    def arithmetic(self, opening):
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

    def expansions(self, text):
        """Read what is substituted inside a text; whether there was any."""
        inner = SmallReader(text, self.depth + 1)
        found = inner.quoted("")
        self.script += inner.script
        return is_unknown(found)

    def redirection(self, command):
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

    def newline(self):
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

    def word(self):
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

    def quoted(self, end):
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

    def dollar(self, quoted):
        if self.peek("`"):
            found = self.take(r"`((?:[^`\\]|\\.)*)`")
            if not found:
                raise Unreadable("a quote is not closed")
            inner = re.sub(r"\\([`$\\])", r"\1", found.group(1))
            nested = SmallReader(inner, self.depth + 1)
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


class TreeReader:
    """Reads a command line with tree-sitter. An error in the tree, or a node that is not expected, is unreadable."""

    BLOCKS = ("program", "list", "compound_statement", "do_group", "if_statement", "elif_clause", "else_clause",
              "while_statement", "case_statement", "case_item", "function_definition", "negated_command", "pipeline",
              "subshell", "c_style_for_statement", "command_substitution", "process_substitution")  # fmt: skip
    STATEMENTS = (*BLOCKS, "command", "redirected_statement", "for_statement", "declaration_command", "unset_command",
                  "test_command", "variable_assignment", "variable_assignments")  # fmt: skip
    SHELLS_OF_THEIR_OWN = ("subshell", "command_substitution", "process_substitution")

    def __init__(self, text):
        self.source = text.replace("\\\n", "").encode()
        self.script = []

    def read(self):
        root = PARSER.parse(self.source).root_node
        if root.has_error:
            raise Unreadable("it is not valid shell")
        self.statement(root)
        return self.script

    def text(self, node):
        return self.source[node.start_byte : node.end_byte].decode()

    def statement(self, node):
        """Read a statement; the commands of it that a pipe may lead to are given back, the others are in the script."""
        kind = node.type
        if kind == "command":
            return [self.command(node)]
        if kind == "redirected_statement":
            return self.redirected(node)
        if kind in ("declaration_command", "unset_command"):
            command = Command()
            command.words = [self.word(child) for child in node.children]
            return [command]
        if kind in ("variable_assignment", "variable_assignments"):
            command = Command()
            for child in [node] if kind == "variable_assignment" else node.children:
                self.assignment(child, command)
            return [command]
        if kind == "test_command":
            self.substitutions(node)
            return []
        if kind == "for_statement":
            return self.loop(node)
        if kind not in self.BLOCKS:
            raise Unreadable(f"it has a {kind.replace('_', ' ')}")
        return self.block(node)

    def block(self, node):
        if node.type in self.SHELLS_OF_THEIR_OWN:
            self.script.append(ENTER)
        pipeline, waiting = [], None
        for child in node.children:
            if child.type in self.STATEMENTS:
                if waiting is not None:
                    self.script.append((waiting, child.prev_sibling.type if child.prev_sibling else ""))
                    waiting = None
                commands = self.statement(child)
                if node.type == "pipeline":
                    pipeline += commands
                else:
                    waiting = commands
            elif child.type not in ("word", "comment", "heredoc_body") and child.is_named:
                self.substitutions(child)
        if waiting is not None:
            after = node.next_sibling.type if node.next_sibling else ""
            self.script.append((waiting, after if node.type == "list" else ""))
        if node.type in self.SHELLS_OF_THEIR_OWN:
            self.script.append(LEAVE)
        return pipeline

    def command(self, node):
        command = Command()
        for child in node.children:
            if child.type == "variable_assignment":
                self.assignment(child, command)
            elif child.type == "command_name":
                command.words.append(self.word(child.children[0]))
            elif child.type in ("file_redirect", "herestring_redirect"):
                self.redirection(child, command)
            elif child.type == "subshell":
                raise Unreadable("it has a bracket in the middle of a command")
            else:
                command.words.append(self.word(child))
        return command

    def redirected(self, node):
        body, *redirects = node.children
        commands = self.statement(body) if body.type in self.STATEMENTS else [Command()]
        if body.type not in self.STATEMENTS:
            redirects = node.children
        command = commands[-1] if commands else Command()
        if redirects and body.end_byte == redirects[0].start_byte and re.fullmatch(r"\d+", (command.words or [""])[-1]):
            command.words.pop()  # the grammar takes the 0 of `0<file` for a word
        following = []
        for redirect in redirects:
            if redirect.type == "heredoc_redirect":
                following += self.here_document(redirect, command)
            else:
                self.redirection(redirect, command)
        return (commands or [command]) + following

    def here_document(self, node, command):
        following, body, expands = [], "", False
        for child in node.children:
            if child.type == "heredoc_body":
                body = self.text(child)
                expands = bool(child.children) and any(each.type != "heredoc_content" for each in child.children)
                self.substitutions(child)
            elif child.type in ("file_redirect", "herestring_redirect"):
                self.redirection(child, command)
            elif child.type in self.STATEMENTS:
                following += self.statement(child)
            elif child.is_named and child.type not in ("heredoc_start", "heredoc_end", "file_descriptor"):
                command.words.append(self.word(child))
        command.stdin = ("text", None if expands else body)
        return following

    def redirection(self, node, command):
        operator, targets = "", []
        for child in node.children:
            if child.type == "file_descriptor":
                continue
            if child.is_named:
                targets.append(child)
            else:
                operator = child.type
        if not targets:
            return
        target = self.word(targets[0])
        command.words += map(self.word, targets[1:])  # the grammar takes what follows for more targets
        if operator not in (">&", "<&") or not re.fullmatch(r"\d+-?|-", target):
            command.redirect(operator, target)

    def assignment(self, node, command):
        if node.type != "variable_assignment":
            return
        target, operator, *value = node.children
        name = re.match(r"\w*", self.text(target)).group()
        plain = target.type == "variable_name" and operator.type == "=" and len(value) <= 1
        if plain and (not value or value[0].type != "array"):
            command.assigned.append((name, self.word(value[0]) if value else ""))
        else:
            self.substitutions(node)
            command.assigned.append((name, None))

    def loop(self, node):
        command = Command()
        name = next(self.text(child) for child in node.children if child.type == "variable_name")
        given = [child for child in node.children if child.is_named and child.type not in ("variable_name", "do_group")]
        command.assigned += [(name, self.word(child)) for child in given] or [(name, None)]
        self.script.append(([command], ""))
        for child in node.children:
            if child.type == "do_group":
                self.block(child)
        return []

    def substitutions(self, node):
        """Read the commands that are substituted somewhere inside, and names that arithmetic may set."""
        if node.type in ("command_substitution", "process_substitution"):
            self.block(node)
        elif node.type in ("expansion", "simple_expansion"):
            self.word(node)
        else:
            if node.type in ("variable_name", "word") and re.fullmatch(r"[A-Za-z_]\w*", self.text(node)):
                self.script.append(([assignment(self.text(node), None)], ""))
            for child in node.children:
                self.substitutions(child)

    def word(self, node, quoted=False):
        kind, text = node.type, self.text(node)
        if kind in ("word", "number", "variable_name", "extglob_pattern", "regex", "brace_expression", "test_operator"):
            if kind == "extglob_pattern" and "(" in text:
                raise Unreadable("it has an extended pattern")
            plain = re.sub(r"\\(.)", lambda found: found.group(1).translate(QUOTED), text, flags=re.DOTALL)
            return plain if kind != "brace_expression" or not node.child_count else text
        if not node.is_named:
            return text
        if kind == "raw_string":
            return text[1:-1].translate(QUOTED)
        if kind == "ansi_c_string":
            return ansi_c(text[2:-1]).translate(QUOTED)
        if kind == "variable_assignment":
            self.substitutions(node)
            name = re.match(r"\w*", text).group()
            value = node.children[-1]
            plain = len(node.children) == 3 and value.type not in ("array", "=")
            return f"{name}={self.word(value)}" if plain else f"{name}={UNKNOWN}"
        if kind == "string":
            return self.pieces(node, node.start_byte + 1, node.end_byte - 1)
        if kind == "translated_string":
            return self.word(node.children[-1])
        if kind == "concatenation":
            return "".join(map(self.word, node.children))
        if kind == "simple_expansion":
            return expansion(text[1:], quoted)
        if kind == "expansion":
            for child in node.children:
                self.substitutions(child) if child.child_count else None
            return parameter(text[2:-1], self.script, quoted)
        if kind == "command_substitution":
            self.block(node)
            return substitution(text.strip("`") if text.startswith("`") else text[2:-1], quoted)
        if kind == "process_substitution":
            self.block(node)
            return PROCESS
        if kind == "arithmetic_expansion":
            self.substitutions(node)
            return UNKNOWN
        raise Unreadable(f"it has a {kind.replace('_', ' ')}")

    def pieces(self, node, start, end):
        """The text of a string in double quotes; the grammar leaves some of it between the nodes."""
        word, at = "", start
        for child in node.children:
            if child.type in ("string_content", '"') or child.start_byte < at:
                continue
            word += self.unescaped(at, child.start_byte) + self.word(child, quoted=True)
            at = child.end_byte
        return word + self.unescaped(at, end)

    def unescaped(self, start, end):
        return re.sub(r'\\([$`"\\])', r"\1", self.source[start:end].decode()).translate(QUOTED)


# Judging it.

SHELLS = {"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "mksh", "rbash", "tcsh", "csh", "pwsh", "yash"}
# Interpreters, and the options after which code follows.
INTERPRETERS = {"python": "c", "pypy": "c", "perl": "eE", "ruby": "e", "node": "ep", "nodejs": "ep", "bun": "ep",
                "deno": "", "php": "rBRE", "lua": "e", "luajit": "e", "tclsh": "", "expect": "c", "osascript": "e",
                "Rscript": "e", "julia": "eE", "groovy": "e", "guile": "c", "ghc": "e", "scala": "e", "elixir": "e",
                "gdb": "", "lldb": ""}  # fmt: skip
# Programs that run another one: their options with a value, and how many words come before that program.
WRAPPERS = {"sudo": ("ugpCDRhTUrt", 0), "doas": ("uC", 0), "env": ("uC", 0), "nohup": ("", 0), "nice": ("n", 0),
            "ionice": ("cn", 0), "time": ("fo", 0), "timeout": ("ks", 1), "gtimeout": ("ks", 1), "stdbuf": ("ioe", 0),
            "setsid": ("", 0), "command": ("", 0), "exec": ("a", 0), "builtin": ("", 0), "coproc": ("", 0),
            "chrt": ("", 1), "taskset": ("", 1), "flock": ("wE", 1), "unshare": ("", 0), "nsenter": ("tSG", 0),
            "chroot": ("", 1), "setpriv": ("", 0), "strace": ("eopsuPEO", 0), "ltrace": ("eopsu", 0),
            "valgrind": ("", 0), "unbuffer": ("", 0), "rlwrap": ("", 0), "fakeroot": ("", 0), "firejail": ("", 0),
            "proot": ("rbw", 0), "systemd-run": ("pu", 0), "busybox": ("", 0), "toybox": ("", 0), "xvfb-run": ("sn", 0),
            "caffeinate": ("tw", 0), "torsocks": ("", 0), "proxychains": ("f", 0), "dbus-run-session": ("", 0),
            "watch": ("nq", 0), "chronic": ("", 0), "parallel": ("jIaNnL", 0), "numactl": ("CmN", 0),
            "catchsegv": ("", 0), "noglob": ("", 0), "nocorrect": ("", 0)}  # fmt: skip
RUNNERS = {"poetry": "run", "uv": "run", "pipenv": "run", "pdm": "run", "hatch": "run", "rye": "run", "conda": "run",
           "bundle": "exec", "npm": "exec", "pnpm": "exec", "yarn": "exec", "direnv": "exec"}  # fmt: skip
RUN_THEIR_VALUE = re.compile(r"(?:GIT_)?(?:EDITOR|SEQUENCE_EDITOR|PAGER|VISUAL|EXTERNAL_DIFF|SSH_COMMAND|ASKPASS|SSH)"
                             r"|BROWSER|PROMPT_COMMAND|RSYNC_RSH|LESSOPEN|MANPAGER|CC_WRAPPER")  # fmt: skip
LOAD_CODE = {"LD_PRELOAD", "LD_AUDIT", "BASH_ENV", "PERL5OPT", "RUBYOPT", "DYLD_INSERT_LIBRARIES", "PYTHONSTARTUP"}
DESTRUCTIVE = {"rm", "shred", "dd", "mv", "chmod", "chown", "find", "git", "mkfs", "wipefs", "eval", "xargs"}
JUST_TEXT = {"echo", "printf", "grep", "egrep", "fgrep", "rg", "ag", "ack", "man", "which", "type", "apropos",
             "cat", "less", "head", "tail", "ls", "pip", "pip3", "brew", "cargo", "go", "tldr", "jq", "yq"}  # fmt: skip
DISKS = re.compile(r"/dev/(?!(?:null|zero|full|stdout|stderr|stdin|tty|u?random)$|fd/|shm/|pts/)")
STDIN = re.compile(r"/dev/(?:stdin|fd/.*)|/proc/[^/]+/fd/.*|-")
GIT_OR_HOOKS = {".git": "the history of the project", ".llxprt": "where the guards of this agent are"}


class Judge:
    """Finds the first reason to block. `folder` is where commands run; `cd` changes it, None is unknown."""

    def __init__(self, project, folder):
        self.project = os.path.realpath(project)
        self.folder = folder
        self.depth = 0
        self.values = {}  # of the variables that the command line sets; None where they cannot be known
        self.knows_values = True
        self.written = {}  # files that the command line writes, and their text if it is known
        self.upstream = []
        self.current = Command()

    def text(self, text):
        """Why this command line is blocked, or None."""
        if len(text) > LONGEST or self.depth >= DEEPEST:
            return "it is too long or too deeply nested to be checked"
        try:
            script = read(text)
        except Unreadable as error:
            return f"it cannot be read for certain: {error}. Write it in a simpler form"
        if is_fork_bomb(text):
            return "it defines a function that starts itself again and again"
        self.depth += 1
        outer = self.values, self.knows_values
        self.values, self.knows_values = {}, True
        self.collect_values(script)
        reason = self.script(script)
        self.values, self.knows_values = outer
        self.depth -= 1
        return reason

    def inside(self, text):
        """Judge a text that another shell runs: its `cd` does not count here."""
        folder = self.folder
        reason = self.text(text)
        self.folder = folder
        return reason

    def script(self, script):
        folders = []
        for pipeline, operator in script:
            if pipeline == "enter":
                folders.append(self.folder)
            elif pipeline == "leave":
                self.folder = folders.pop()
            else:
                for index, command in enumerate(pipeline):
                    self.operator = operator
                    if reason := self.command(command, pipeline[:index]):
                        return reason
        return None

    # What words mean.

    def collect_values(self, script):
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

    def may_be(self, name, word):
        if word is None or self.values.get(name, []) is None:
            self.values[name] = None
        else:
            self.values.setdefault(name, []).append(word)

    def meanings(self, word, names=()):
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
        if count(pieces) > MOST_MEANINGS:
            return [UNKNOWN_WORDS]
        return ["".join(chosen) for chosen in itertools.product(*pieces)]

    def variable(self, name, names):
        """The values of a variable, None if they cannot be known; `names` are the variables it is looked up for."""
        if not self.knows_values or name in names or len(names) > 5:
            return None
        if name in self.values:
            words = self.values[name]
            if words is None or len(words) > MOST_MEANINGS:
                return None
            values = [each for word in words for each in self.meanings(word, (*names, name))]
            return values if len(values) <= MOST_MEANINGS else None
        known = {"HOME": os.path.expanduser("~"), "PWD": self.folder, "TMPDIR": os.environ.get("TMPDIR") or "/tmp"}
        return [known[name]] if known.get(name) else None

    def command(self, command, upstream):
        for target in command.written_to:
            if reason := first(self.write(path, command) for path in self.meanings(target)):
                return reason
        for name, word in command.assigned:
            for value in self.meanings(word or "") if name in LOAD_CODE or RUN_THEIR_VALUE.fullmatch(name) else ():
                if name in LOAD_CODE or MARK.search(value):
                    return f"{name} makes other programs load code"
                if reason := self.inside(plain(value)):
                    return reason
        alternatives = [self.meanings(word) for word in command.words]
        if count(alternatives) > MOST_MEANINGS:
            alternatives = [each if len(each) == 1 else [UNKNOWN_WORDS] for each in alternatives]
        self.current, self.upstream = command, upstream
        chosen = itertools.product(*alternatives)
        return first(self.program([each for word in words for each in braces(word)]) for words in chosen)

    def program(self, words):
        """Judge a program with its arguments."""
        words = list(words)
        if not words:
            return None
        folder, _, last = words[0].rpartition("/")
        if MARK.search(last) or UNKNOWN_WORDS in folder or PROCESS in folder:
            return "which program it runs depends on an expansion: write the program's name out"
        if re.search(r"[*?\[]", words[0]) and words[0] not in ("[", "[["):
            return "which program it runs depends on a pattern: write the program's name out"
        program = name(words[0])
        ran = self.written.get(self.place(words[0])) if "/" in words[0] else None
        if ran is not None:
            return self.ran(words[0], ran)
        if program in WRAPPERS or re.fullmatch(r"ld(-linux|-musl)?[\w.-]*\.so[\d.]*", program):
            return self.wrapped(program, words[1:])
        if RUNNERS.get(program) in words[1:2]:
            return self.wrapped(program, words[2:])
        if program in SHELLS:
            return self.shell(program, words[1:])
        if program in INTERPRETERS:
            return self.interpreter(program, words[1:])
        if rule := RULES.get(program) or (disks if program.startswith("mkfs") else None):
            return rule(self, words[1:])
        return None if program in JUST_TEXT else self.unknown(words)

    def unknown(self, words):
        """A program without a rule may run another one that it is given, as `sudo` does."""
        for index, word in enumerate(words[1:], start=1):
            program = name(word)
            is_risky = program in DESTRUCTIVE or (
                program in SHELLS and "c" in short_options(words[index + 1 : index + 2])
            )
            if is_risky and (reason := self.program(words[index:])):
                return reason
        return None

    def wrapped(self, program, arguments):
        """Judge what `sudo`, `timeout` and the like run; where an option is not known, both ways to read it."""
        valued, before = WRAPPERS.get(program, ("", 0))
        words, unsure = list(arguments), False
        if program == "command" and words[:1] in (["-v"], ["-V"]):
            return None
        while words and (words[0].startswith("-") or re.match(r"[A-Za-z_]\w*=", words[0])) and words[0] != "--":
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
        if program == "parallel":
            if not words or words[0].startswith(":::") or (":::" in words and "{}" in words[: words.index(":::")]):
                return "parallel runs its arguments as commands: run them one by one"
            words = [*words[: words.index(":::")], UNKNOWN] if ":::" in words else [*words, UNKNOWN]
        if program in ("watch", "parallel"):
            return self.inside(" ".join(map(plain, words))) if not MARK.search("".join(words)) else self.program(words)
        if program == "flock" and words[1:2] == ["-c"]:
            words = ["sh", *words[1:]]
            before = 0
        return first(self.program(words[start:]) for start in ({before, before + 1} if unsure else {before}))

    def ran(self, path, text):
        """Judge a file that this command line has written and now runs."""
        if text and not re.match(r"#!.*(?:python|node|perl|ruby)", text):
            return self.inside(text)
        return f"{shown(path)} is written and run in one go: write it, check it, and run it in a call of its own"

    def stdin_program(self, program, judged):
        """Judge a program that is read from stdin: a text is judged, a file counts as a script."""
        kind, value = self.current.stdin or ("", None)
        if kind == "file" and PROCESS not in value and not STDIN.fullmatch(value):
            return self.run_file(program, value)
        if kind == "text" and value is not None:
            return judged(value)
        return f"{program} would run what it reads from a pipe or terminal: put the commands in the call itself"

    def run_file(self, program, path):
        if PROCESS in path:
            return f"{program} would run what another program prints: save it to a file and check it first"
        text = self.written.get(self.place(path))
        return None if text is None else self.ran(path, text if program in SHELLS else "")

    def shell(self, program, arguments):
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

    def interpreter(self, program, arguments):
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
            if code or long:
                text = (code or long).group(1) or (following or [""])[0]
                return self.code(program, word, text)
            if word in ("--version", "-V", "--help", "-h", "-v", "--check", "-l", "-i"):
                return None
            if STDIN.fullmatch(word):
                break
            if not word.startswith("-") and not (index and arguments[index - 1] in ("-W", "-X", "-r", "--require")):
                if program == "deno":
                    remote = any(re.match(r"https?:", each) for each in arguments)
                    return "it runs a script straight off the network" if remote else None
                if name(word) in ("manage.py", "artisan"):
                    return database_tool(self, arguments[index + 1 :])
                return self.run_file(program, word)
        if program in ("deno", "bun", "gdb", "lldb", "ghc", "osascript") and not self.current.stdin:
            return None
        return self.stdin_program(program, lambda text: self.code(program, "-", text))

    def code(self, program, option, text):
        if not MARK.search(text):
            if program in ("python", "pypy") and is_harmless_python(plain(text)):
                return None
            if program == "perl" and PERL.fullmatch(plain(text)) and not re.search(r"\(\?\??\{|[@$]\{", plain(text)):
                return None
            if program in ("node", "nodejs", "bun", "php") and LOOKUP.fullmatch(plain(text)):
                return None
        return f"{program} {option} runs code that is not checked: write it to a file with the file tool, then run that"

    # Paths.

    def place(self, path):
        """The absolute path; one that begins with a mark cannot be known."""
        if re.match(r"~(?=/|$)", path):
            path = os.path.expanduser("~") + path[1:] if "HOME" not in self.values else UNKNOWN
        elif path.startswith("~") or (self.folder is None and not path.startswith("/")):
            return UNKNOWN
        return os.path.normpath(os.path.join(self.folder or "/", path))

    def temporary(self, place):
        scratch = {os.path.realpath(each) + "/" for each in (os.environ.get("TMPDIR") or "/tmp", "/tmp", "/var/tmp")}
        free = tuple(folder for folder in scratch if not self.project.startswith(folder))
        return place.startswith(free) if free else False

    def too_much(self, path, whole_is_fine=False):
        """Why files at this path should not be deleted or moved away; None where they are a part of the project."""
        place = self.place(path)
        if MARK.search(place):
            return f"{shown(path)} depends on an expansion or an unknown folder, and may be anything"
        while re.search(r"[*?\[]", os.path.basename(place)):
            pattern = os.path.basename(place)
            if any(fnmatch.fnmatchcase(each, pattern) for each in GIT_OR_HOOKS) and pattern.startswith("."):
                return f"{shown(path)} matches .git"
            if re.search(r"\w", re.sub(r"\[[^\]]*\]", "", pattern)):
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

    def write(self, path, command=None):
        """Why nothing should be written to this path; what is written is kept in mind."""
        place = self.place(path)
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
        if not real.startswith(self.project + "/"):
            return f"{shown(path)} is outside the project"
        inside = real[len(self.project) + 1 :].split("/")
        return f"{shown(path)} is {GIT_OR_HOOKS[inside[0]]}" if inside[0] in GIT_OR_HOOKS else None


# Small helpers.


def shown(path):
    return MARK.sub("…", plain(path))[:80]


def name(word):
    program = os.path.basename(plain(word))
    program = re.sub(r"^(python|pypy|perl|ruby|php|lua|node|tclsh)[\d.]+$", r"\1", program)
    return program if program in INTERPRETERS else program.lower()


def count(alternatives):
    return math.prod(map(len, alternatives))


def braces(word):
    """What {a,b} in a word expands to; too much of it is unknown."""
    done, waiting = [], [word]
    while waiting:
        current = waiting.pop()
        found = re.search(r"\{([^{}]*,[^{}]*)\}", current)
        if not found:
            done.append(current)
        else:
            waiting += [current[: found.start()] + part + current[found.end() :] for part in found.group(1).split(",")]
        if len(done) + len(waiting) > MOST_MEANINGS:
            return [UNKNOWN_WORDS]
    return done[::-1]


def short_options(arguments):
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return "".join(word[1:] for word in arguments[:end] if re.match(r"-[^-]", word))


def has(arguments, option):
    """Whether a long option is given; programs accept its beginning too."""
    given = (word.split("=")[0] for word in arguments if word.startswith("--") and len(word) > 3)
    return any(option.startswith(each) for each in given)


def operands(arguments):
    if "--" in arguments:
        end = arguments.index("--")
        return [word for word in arguments[:end] if not word.startswith("-")] + arguments[end + 1 :]
    return [word for word in arguments if not word.startswith("-")]


def value_of(arguments, *options):
    """The values of options, in each way to write them."""
    for index, word in enumerate(arguments):
        for option in options:
            if word == option and index + 1 < len(arguments):
                yield arguments[index + 1]
            elif option.startswith("--") and word.startswith(option + "="):
                yield word[len(option) + 1 :]
            elif not option.startswith("--") and word.startswith(option) and len(word) > 2:
                yield word[2:]


def first(reasons):
    return next((reason for reason in reasons if reason), None)


def because(what, reasons):
    return first(f"{what}: {why}" for why in reasons if why)


def is_fork_bomb(text):
    for found in re.finditer(
        r"(?:function\s{1,9})?([\w:.-]{1,50})\s{0,9}(?:\(\s{0,9}\))?\s{0,9}\{([^{}]{1,500})\}", text
    ):
        own, body = re.escape(found.group(1)), found.group(2)
        if re.search(rf"(?<![\w.-]){own}(?![\w.-])", body) and re.search(r"(?<![&>])&(?![&>])", body):
            return True
    return False


# A substitution, or lines that match: what perl -pe and perl -ne are used for every day.
PERL = re.compile(
    r"\s*(?:s([/|#,!])(?:\\.|(?!\1).)*\1(?:\\.|(?!\1).)*\1[gimsx]*|print(?: (?:if|unless) /(?:\\.|[^/])*/i?)?);?\s*"
)
LOOKUP = re.compile(
    r"\s*(?:console\.log\(|echo )?(?:require\(['\"][\w./@-]+['\"]\)|process\.versions?|PHP_VERSION|[\d+*/ -]+)"
    r"(?:\.\w+)*\)?;?\s*"
)


PLAIN_PYTHON = (ast.Module, ast.Expr, ast.alias, ast.keyword, ast.expr_context, ast.Name, ast.Constant, ast.Subscript,
                ast.Slice, ast.Starred, ast.JoinedStr, ast.FormattedValue, ast.List, ast.Tuple, ast.Dict, ast.Set,
                ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
                ast.IfExp, ast.If, ast.For, ast.Assign, ast.AugAssign, ast.ListComp, ast.SetComp, ast.DictComp,
                ast.GeneratorExp, ast.comprehension)  # fmt: skip


def is_harmless_python(text):
    """Whether code does no more than import, compute and print: everything in it must be on a list."""
    functions = {"print", "len", "sorted", "list", "dict", "set", "tuple", "str", "int", "float", "bool",
                 "repr", "type", "dir", "range", "sum", "min", "max", "any", "all", "enumerate", "zip", "round", "abs",
                 "isinstance", "hasattr", "open", "chr", "ord", "hex", "bin", "reversed"}  # fmt: skip
    methods = {"items", "keys", "values", "get", "split", "strip", "rstrip", "lstrip", "join", "format", "append",
               "startswith", "endswith", "read", "readlines", "splitlines", "lower", "upper", "count", "index", "sort",
               "most_common", "update", "isoformat", "now", "today"}  # fmt: skip
    modules = {"json": {"load", "loads", "dumps"}, "math": None, "platform": None, "time": {"time"}, "re": None,
               "sysconfig": {"get_path", "get_paths"}, "site": {"getsitepackages"}, "tomllib": {"load", "loads"},
               "datetime": None, "collections": None, "itertools": None, "statistics": None}  # fmt: skip
    try:
        nodes = list(ast.walk(ast.parse(text.strip())))
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return False
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if any(each.name == "*" or each.asname in {*functions, *modules} for each in node.names):
                return False
            if isinstance(node, ast.ImportFrom) and any(each.name in {*functions, *modules} for each in node.names):
                return False
        elif isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name):
                reads = len(node.args) == 1 or getattr(node.args[1], "value", "") in ("r", "rb") if node.args else True
                fine = called.id in functions and (called.id != "open" or (reads and not node.keywords))
            else:
                owner = getattr(called, "value", None)
                allowed = modules.get(owner.id, methods) if isinstance(owner, ast.Name) else methods
                asks = called.attr.startswith("is_") and not node.args if isinstance(called, ast.Attribute) else False
                fine = isinstance(called, ast.Attribute) and (allowed is None or called.attr in allowed or asks)
            if not fine:
                return False
        elif isinstance(node, ast.Attribute):
            known = ("__version__", "__file__", "__name__", "__doc__", "__path__")
            if isinstance(node.ctx, ast.Store) or (node.attr.startswith("_") and node.attr not in known):
                return False
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            if node.id in functions or node.id in modules:
                return False
        elif not isinstance(node, PLAIN_PYTHON):
            return False
    return True


# The rules: each gets the judge and the arguments of its program, and gives a reason or None.


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
    if any(word != "{}" and "{}" in plain(word) for word in words[1:]) and name((words or [""])[0]) in SHELLS:
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
    program = name(words[0])
    runs_file = program in INTERPRETERS and any(re.match(r"-m|[\w./-]+\.\w+$", word) for word in words[1:])
    if (program in SHELLS or program in INTERPRETERS or program in ("env", "eval", "sudo", "xargs")) and not runs_file:
        return f"xargs would hand text that nobody has seen to {program}: use a loop, or name the files"
    return over_files(judge, words, list(piped_paths(judge)))


def piped_paths(judge):
    """The paths that a pipe leads to `xargs`, if the program that lists them is known."""
    source, *filters = [command.words for command in judge.upstream] or [[]]
    if any(
        name((words or [""])[0]) not in ("grep", "egrep", "sort", "head", "tail", "uniq", "rg") for words in filters
    ):
        return [UNKNOWN]
    program, arguments = (name(source[0]), source[1:]) if source else ("", [])
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


GIT_RUNS = re.compile(
    r"(?i)(?:alias\..*|core\.(?:pager|editor|sshcommand|fsmonitor|hookspath|askpass|gitproxy)|sequence\.editor|gpg\..*"
    r"|diff\.(?:external|.*\.(?:command|textconv))|filter\..*|merge\..*\.driver|credential\..*helper|pager\..*"
    r"|(?:diff|merge)tool\..*|interactive\.difffilter|uploadpack\..*|protocol\..*allow"
    r"|remote\..*\.(?:uploadpack|receivepack|proxy)"
    r"|include.*\.path|clean\.requireforce|receive\.deny.*)$"
)


def git(judge, arguments):
    arguments = list(arguments)
    folder = judge.folder
    while arguments and arguments[0].startswith("-"):
        option = arguments.pop(0)
        value = option.partition("=")[2]
        if option in ("-C", "-c", "--git-dir", "--work-tree", "--exec-path", "--config-env") and arguments:
            value = arguments.pop(0)
        if option.startswith(("-c", "--config-env")) and GIT_RUNS.match(plain(value).split("=")[0]):
            return "this git setting runs a program or removes a safety"
        if option.startswith("--exec-path="):
            return "it makes git run other programs than its own"
        if option in ("-C", "--work-tree"):
            judge.folder = judge.place(value)
    action, rest = (plain(arguments[0]), [plain(word) for word in arguments[1:]]) if arguments else ("", [])
    reason = git_action(judge, action, rest)
    judge.folder = folder
    return reason


def git_action(judge, action, rest):
    if MARK.search(action):
        return "what git does depends on an expansion: write it out"
    short, force = short_options(rest), has(rest, "--force")
    targets = operands(rest)
    everything = any(re.fullmatch(r"\.|\./|\.\./?|\*|:/?|:\(.*\).*|/.*|\*\*?/?\*?|:[!/^].*", word) for word in targets)
    if any(has(rest, each) for each in ("--upload-pack", "--receive-pack")) or any("ext::" in word for word in rest):
        return "it makes git run another program"
    if action in ("grep", "difftool", "mergetool") and re.search(
        r"(?:^| )(?:-O|--open-files|-x|--extcmd)", " ".join(rest)
    ):
        return "it makes git run another program"
    if action == "config" and any(GIT_RUNS.match(word) for word in targets[:1]) and len(targets) > 1:
        return "this git setting runs a program or removes a safety"
    if action in ("rebase", "bisect", "submodule"):
        texts = list(value_of(rest, "--exec", "-x")) if action == "rebase" else []
        if rest[:1] in (["run"], ["foreach"]):
            texts = [" ".join(word for word in rest[1:] if word != "--recursive")]
        if reason := first(map(judge.inside, texts)):
            return reason
    if action == "push":
        refspecs = [word for word in targets if word.startswith("+")]
        forced = force and not all(word.startswith("--force-") for word in rest if "--forc" in word)
        if "f" in short or forced or has(rest, "--mirror") or refspecs or has(rest, "--prune"):
            return "a forced push overwrites what others have pushed; --force-with-lease does not"
        if "d" in short or has(rest, "--delete") or any(re.match(r":.", word) for word in targets):
            return "it deletes a branch or tag on the server"
        return None
    lost = {
        "reset": has(rest, "--hard") or has(rest, "--merge"),
        "clean": ("f" in short or force) and "n" not in short and not has(rest, "--dry-run"),
        "checkout": everything or "f" in short or force or has(rest, "--pathspec-from-file"),
        "switch": "f" in short or force or has(rest, "--discard-changes"),
        "restore": everything
        and (not (has(rest, "--staged") or "S" in short) or has(rest, "--worktree") or "W" in short),
        "rm": (everything and "--cached" not in rest) or ("f" in short and "r" in short and everything),
        "stash": rest[:1] in (["clear"], ["drop"]),
        "branch": "D" in short or ("f" in short) or (force and ("d" in short or has(rest, "--delete"))),
        "submodule": rest[:1] == ["deinit"] and ("f" in short or force),
        "worktree": rest[:1] == ["remove"] and ("f" in short or force),
        "reflog": rest[:1] in (["expire"], ["delete"]),
        "update-ref": "d" in short or "--stdin" in rest,
        "gc": any(word.startswith("--prune=") and word != "--prune=never" for word in rest),
        "prune": "n" not in short,
        "read-tree": "u" in short or has(rest, "--reset"),
        "checkout-index": "f" in short,
        "filter-branch": True,
        "filter-repo": True,
        "replace": True,
    }
    return f"git {action} in this form throws work away: commit or stash it first" if lost.get(action) else None


def kill(judge, arguments):
    targets = [word for word in arguments[1:] if word == "-1"] or (["-1"] if arguments[-2:] == ["--", "-1"] else [])
    return "it would end every process of the user" if targets else None


def pkill(judge, arguments):
    by_user = "u" in short_options(arguments) or has(arguments, "--euid") or has(arguments, "--user")
    patterns = [word for word in operands(arguments) if not re.search(r"\w", plain(word))]
    return "it would end processes without a look at which" if by_user or patterns else None


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


def cd(judge, arguments):
    target = (operands(arguments) or ["~"])[0]
    place = UNKNOWN if target == "-" else judge.place(target)
    certain = os.path.isdir(plain(place)) or judge.operator in ("&&", "||") or place in judge.made
    judge.folder = None if MARK.search(place) or re.search(r"[*?\[]", place) or not certain else place


Judge.made = set()  # folders that the command line makes


def mkdir(judge, arguments):
    judge.made = judge.made | {judge.place(word) for word in operands(arguments)}


def git_clone_or_other(judge, arguments):
    if arguments[:1] == ["clone"]:
        given = operands(arguments[1:])
        made = given[1] if len(given) > 1 else re.sub(r"\.git$", "", os.path.basename(given[0])) if given else ""
        judge.made = judge.made | {judge.place(made)}
    return git(judge, arguments)


def unknown_folder(judge, arguments):
    judge.folder = None


def download(judge, arguments):
    """Keep in mind where a download is written to."""
    to = [*value_of(arguments, "-o", "--output", "--output-document", "-O")]
    links = [word for word in operands(arguments) if re.search(r"[:.]", word)]
    to += [os.path.basename(link.split("?")[0].rpartition(":")[2]) for link in links]
    reasons = [judge.write(each) for each in to if each not in ("-", "") and ("/" in each or "." in each or each in to)]
    return because("it writes where it should not", (why for why in reasons if why and "expansion" not in why))


def sql(judge, arguments):
    texts = [*arguments]
    for command in [*judge.upstream, judge.current]:
        texts += command.words
        if command.stdin and command.stdin[0] == "text":
            texts.append(command.stdin[1] or "")
    text = plain(" ".join(texts))
    found = re.search(r"(?i)\b(drop\s+(?:database|schema|table|user|role|keyspace)|truncate\s+(?:table\s+)?\w)", text)
    if found or re.search(r"(?i)\b(?:dropDatabase|flushall|flushdb|deleteMany\(\s*\{\s*\})|\.drop\(\)", text):
        return "it would delete data in a database"
    if re.search(r"(?i)\bdelete\s+from\s+[\w.\"`]+\s*(?:;|['\"]|$)", text):
        return "it would delete every row of a table"
    if re.search(r"(?:^|[\s;'])\\!|(?:^|[\s'\"])\.(?:shell|system)\b|\bsystem\s", text):
        return "it makes the database client run a program"
    return None


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


def rsync(judge, arguments):
    given = operands(arguments)
    remote = [word for word in given if re.match(r"[\w.@-]+:", word)]
    if reason := text_rule("-e", "--rsh", "--rsync-path")(judge, arguments):
        return reason
    if any(has([word], "--delete") or word.startswith("--del") for word in arguments) or has(
        arguments, "--remove-source-files"
    ):
        return because("rsync would delete too much", map(judge.too_much, given[-1:])) or (
            "rsync --delete on another machine: ask the user" if given[-1:] == remote[-1:] and remote else None
        )
    return None if not given or given[-1] in remote else first(judge.write(place) for place in given[-1:])


def ssh(judge, arguments):
    words = list(arguments)
    while words and words[0].startswith("-"):
        option = words.pop(0)
        value = words.pop(0) if re.fullmatch(r"-[bcDEeFIiJLlmOopQRSWw]", option) and words else option[2:]
        if option.startswith("-o") and re.match(r"(?i)(?:proxycommand|localcommand|knownhostscommand)", value):
            return "it makes ssh run another program"
    if len(words) < 2:
        return None
    if MARK.search(" ".join(words[1:])):
        return "what it runs on the other machine depends on an expansion"
    other = Judge("/nonexistent/project", "/nonexistent/project")
    other.depth = judge.depth + 1
    return other.text(" ".join(map(plain, words[1:])))


def docker(judge, arguments):
    words = [plain(word) for word in arguments]
    text = " ".join(words)
    if re.search(
        r"\bprune\b|\bvolume rm\b|(?<!-)\b(?:down|rm)\b.* (?:-v|--volumes)\b"
        r"|\b(?:stack|swarm|node|service) (?:rm|leave)\b",
        text,
    ):
        return "it would delete containers, images or volumes with their data"
    if re.search(r"\b(?:rm|rmi|kill|stop)\b", text) and MARK.search(text):
        return "it would delete or stop every container: name the ones that you mean"
    if re.search(r"--privileged|--(?:pid|net|network|ipc|userns)[= ]host", text) and re.search(
        r"\b(?:run|create|exec)\b", text
    ):
        return "the container would have the rights of the machine itself"
    for mount in value_of(words, "-v", "--volume"):
        source = mount.split(":")[0]
        if source.startswith(("/", "~")) and not judge.place(source).startswith((judge.project, "/tmp/")):
            return f"the container would see {shown(source)}, which is outside the project"
    if re.search(r"--mount[= ]\S*(?:src|source)=/(?!tmp/)", text) and judge.project not in text:
        return "the container would see files outside the project"
    return None


def cloud(judge, arguments):
    words = [plain(word) for word in operands(arguments)]
    deletes = [word for word in words if re.match(r"(?:delete|terminate|destroy|remove|purge|deregister)\b|rb$", word)]
    removes_all = "rm" in words and (has(arguments, "--recursive") or "r" in short_options(arguments))
    return "it would delete things in the cloud" if deletes or removes_all else None


def npx(judge, arguments):
    given = operands(arguments)
    if given and re.match(r"https?:|git\+|github:|file:", given[0]):
        return "it runs code straight off the network: look at it first"
    if any(word in ("-c", "--call") for word in arguments):
        return first(judge.inside(plain(text)) for text in value_of(arguments, "-c", "--call"))
    return judge.program(given) or database_tool(judge, given)


def text_matches(pattern, reason):
    """A rule for programs whose arguments, as one text, say enough."""
    return lambda judge, arguments: reason if re.search(pattern, plain(" ".join(arguments))) else None


connect = text_matches(
    r"(?i)(?:^| )-\w*[ec]\b ?\S|--(?:sh-)?exec|exec:|system:", "it connects a program to the network"
)
database_tool = text_matches(
    r"\bdb:(?:drop|reset|purge|truncate|wipe)|migrate:(?:fresh|reset|refresh)|migrate reset"
    r"|--force-reset|\b(?:flush|reset_db|sqlflush)\b.*|downgrade base",
    "it would delete data in a database",
)
evaluates = text_matches(
    r"\$\(|`", "it evaluates text as code"
)  # builtins evaluate an index in a name: `a[$(command)]`


def text_rule(*options):
    """A rule for programs that hand a text to a shell: the value of an option, or all operands."""

    def rule(judge, arguments):
        joined = [word for word in arguments if options and re.fullmatch(r"-\w+c", word)]  # script -qc …
        texts = list(value_of(arguments, *options, *joined)) if options else operands(arguments)[:1]
        if any(MARK.search(text) for text in texts):
            return "it runs a text that depends on an expansion"
        return first(judge.inside(plain(text)) for text in texts) or judge.unknown(["", *arguments])

    return rule


def alias(judge, arguments):
    return first(judge.inside(plain(word).partition("=")[2]) for word in arguments if "=" in word)


def source(judge, arguments):
    path = (arguments or [""])[0]
    if STDIN.fullmatch(path) or MARK.search(path.rpartition("/")[2]) or PROCESS in path:
        return "it runs what another program prints, or a file that is not named: save it and check it first"
    return judge.run_file("source", path)


def editor(judge, arguments):
    scripted = any(re.match(r"-c|--cmd|\+.|-S|-es|-s$|-e$", word) for word in arguments) or judge.current.stdin
    return (
        "the editor would run commands that are not checked: use the file tools" if scripted or judge.upstream else None
    )


def make(judge, arguments):
    if any(word.startswith("--eval") for word in arguments) or "-" in value_of(arguments, "-f", "--file"):
        return "make would run rules that are not in a file"
    other_shell = any(re.match(r"SHELL=|\.SHELLFLAGS=", word) for word in arguments)
    return "it makes make use another shell" if other_shell else None


def crontab(judge, arguments):
    return None if "l" in short_options(arguments) else "it changes jobs that run later, when nobody watches"


def words_rule(forbidden, reason):
    return lambda judge, arguments: reason if set(map(plain, arguments)) & set(forbidden.split()) else None


def always(reason):
    return lambda judge, arguments: reason


SET_VARIABLES = {"read", "mapfile", "readarray", "printf", "getopts", "let", "unset", "declare", "typeset", "local",
                 "readonly", "export"}  # fmt: skip
STOPS = "it would stop the machine"
ADMINISTERS = "it changes the users, packages, network or kernel of the machine: ask the user to do it"
# Programs that share a rule, and the rule.
RULES_OF_PROGRAMS = {
    "rm shred srm wipe unlink trash": rm,
    "rimraf": lambda judge, arguments: rm(judge, ["-r", *arguments]),
    "chmod chown chgrp setfacl chattr": chmod,
    "tee truncate touch": write_to(slice(0, None)),
    "cp ln install link": cp,
    "mv": mv,
    "dd dcfldd": dd,
    "sed gsed": sed,
    "awk gawk mawk nawk": awk,
    "find": find,
    "xargs": xargs,
    "cd pushd chdir": cd,
    "popd": unknown_folder,
    "mkdir": mkdir,
    "git": git_clone_or_other,
    "kill": kill,
    "pkill killall": pkill,
    "killall5": always("it would end every process"),
    "rsync": rsync,
    "tar bsdtar": tar,
    "unzip": unzip,
    "curl wget aria2c fetch http https xh scp sftp": download,
    "nc ncat netcat socat": connect,
    "ssh": ssh,
    "docker podman docker-compose nerdctl": docker,
    "aws gcloud az gsutil heroku fly flyctl vercel doctl linode-cli": cloud,
    "mke2fs mkswap wipefs fdisk sfdisk cfdisk gdisk sgdisk parted blkdiscard cryptsetup lvremove vgremove pvremove "
    "zpool zfs mdadm hdparm nvme badblocks diskutil swapoff umount mount losetup": disks,
    "shutdown reboot halt poweroff telinit kexec": always(STOPS),
    "init": words_rule("0 6", STOPS),
    "systemctl": words_rule("poweroff reboot halt rescue emergency isolate kexec suspend", STOPS),
    "loginctl": words_rule("poweroff reboot halt terminate-user kill-user", STOPS),
    "userdel usermod useradd groupdel passwd chpasswd visudo chsh iptables ip6tables nft ufw sysctl modprobe rmmod "
    "insmod setenforce update-alternatives": always(ADMINISTERS),
    "apt apt-get dnf yum zypper apk": words_rule("remove purge autoremove erase del", ADMINISTERS),
    "pacman": lambda judge, arguments: ADMINISTERS if short_options(arguments).startswith("R") else None,
    "dpkg": lambda judge, arguments: ADMINISTERS if set(short_options(arguments)) & set("rP") else None,
    "psql mysql mariadb sqlite3 mongosh mongo redis-cli cqlsh duckdb": sql,
    "dropdb": always("it would delete a database"),
    "dropuser": always("it would delete a database user"),
    "mysqladmin": words_rule("drop", "it would delete a database"),
    "rails rake prisma alembic sequelize knex typeorm artisan": database_tool,
    "terraform": words_rule("destroy -destroy rm", "it would delete infrastructure"),
    "tofu pulumi cdk": words_rule("destroy", "it would delete infrastructure"),
    "kubectl": words_rule("delete drain", "it would delete things in a cluster"),
    "helm": words_rule("uninstall delete", "it would delete things in a cluster"),
    "gh": words_rule("delete", "it would delete things on the server"),
    "npm": words_rule("unpublish", "it takes a package away from others"),
    "cargo gem": words_rule("yank", "it takes a package away from others"),
    "npx bunx pnpx": npx,
    "eval": always("eval runs text as code: write the command out"),
    "source .": source,
    "trap": text_rule(),
    "alias": alias,
    "hash": lambda judge, arguments: "it gives a command another program" if "p" in short_options(arguments) else None,
    "enable": lambda judge, arguments: "it loads code into the shell" if "f" in short_options(arguments) else None,
    "test [ let printf read unset declare typeset local export": evaluates,
    "bind complete compgen fc": always("it changes what the shell runs later"),
    "su runuser sg script": text_rule("-c", "--command"),
    "nix-shell": text_rule("--run", "--command"),
    "at batch": always("it runs commands later, when nobody watches"),
    "crontab": crontab,
    "tmux screen": always("what runs in another terminal is not checked: run it here"),
    "vim vi nvim ex view ed emacs": editor,
    "make gmake": make,
}
RULES = {program: rule for programs, rule in RULES_OF_PROGRAMS.items() for program in programs.split()}


# Other tools of the matcher, such as execute_sql. Only arguments in COMMAND_NAMES are checked, unless the argument
# `language` is a shell or Python.
PERHAPS_SHELL = re.compile(r"[Ee]xecut|((^|[_-])r|R)un$")

# Python code that runs programs or deletes files: modules, names anywhere, and names in modules for files.
RISKY_MODULES = {"subprocess", "pty", "ctypes", "cffi", "importlib", "builtins", "runpy", "pexpect", "sh", "plumbum"}
RISKY_NAMES = re.compile(
    r"system|popen\w*|rmtree|unlink|rmdir|removedirs|(posix_)?spawn\w*|exec[lv]p?e?|fork(pty)?|__(import|builtins)__"
    r"|(create_)?subprocess_(shell|exec)|run_(line|cell)_magic|getoutput"
)
FILE_MODULES = {"os", "posix", "shutil"}
RISKY_IN_FILE_MODULES = {"remove", "rename", "renames", "replace", "kill", "killpg", "chmod", "chown", "lchown",
                         "truncate", "move", "*", "__dict__", "__getattribute__"}  # fmt: skip


def risky_python(tree, depth=0):
    """What runs programs or deletes files in Python code, or None."""
    nodes = list(ast.walk(tree)) if tree else []
    modules = {name: name for name in FILE_MODULES}  # by the name that the code gives them; these are never replaced
    docstrings, owners, without_arguments = set(), set(), set()
    for node in nodes:
        if isinstance(node, ast.Import):
            for top, each in ((each.name.split(".")[0], each) for each in node.names):
                if modules.get(each.asname or top) not in FILE_MODULES:
                    modules[each.asname or top] = top
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings.add(node.value)
        elif isinstance(node, ast.Attribute):
            owners.add(node.value)
        elif isinstance(node, ast.Call) and not node.args and not node.keywords:
            without_arguments.add(node.func)

    def module(node):
        return modules.get(node.id, node.id) if isinstance(node, ast.Name) else getattr(node, "attr", None)

    for node in nodes:
        found = []
        if isinstance(node, ast.Import):
            found = [each.name for each in node.names if each.name.split(".")[0] in RISKY_MODULES]
        elif isinstance(node, ast.ImportFrom):
            top, names = (node.module or "").split(".")[0], {each.name for each in node.names}
            found = [node.module] if top in RISKY_MODULES else [*filter(RISKY_NAMES.fullmatch, names)]
            found += names & RISKY_IN_FILE_MODULES if top in FILE_MODULES else names & RISKY_MODULES
        elif isinstance(node, ast.Attribute):
            in_files = module(node.value) in FILE_MODULES and node.attr in RISKY_IN_FILE_MODULES
            in_system = module(node.value) == "sys" and node.attr == "modules"
            risky = in_files or in_system or node.attr in RISKY_MODULES - {"sh"} or RISKY_NAMES.fullmatch(node.attr)
            asks = node in without_arguments and module(node.value) == "platform"  # platform.system()
            found = [node.attr] if risky and not asks else []
        elif isinstance(node, ast.Name):
            handed_on = module(node) in FILE_MODULES and node not in owners and isinstance(node.ctx, ast.Load)
            risky = handed_on or node.id in ("exec", "eval") or RISKY_NAMES.fullmatch(node.id)
            found = [node.id] if risky or node.id in RISKY_MODULES - {"sh"} else []
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            is_code = depth < 3 and re.search(r"\(|\bimport\b", node.value)
            found = [risky_python(parsed(node.value.strip()), depth + 1)] if is_code else []
            if RISKY_NAMES.fullmatch(node.value) and node.value not in ("system", "fork", "spawn"):  # common words
                found = [node.value]
        if any(found):
            return found[0]
    return None


def parsed(text):
    try:
        return ast.parse(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def magic_reason(judge, sign, text):
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


def python_reason(judge, text):
    """Why code for a tool that runs Python is blocked, or None."""
    if len(text) > LONGEST:
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
    return None


def line_reason(judge, line):
    """Why a command line is blocked, or None."""
    if line.lstrip().startswith("-"):
        return "it begins with an option: the name of the program must be in an argument such as `command`"
    return judge.text(line)


def judge_call(tool, given, project):
    """Why a call of a tool that runs commands is blocked, or None."""
    languages = languages_in(given)
    is_shell = not PERHAPS_SHELL.search(tool) or SHELL_TOOL.search(tool) or languages & (PYTHON | SHELL)
    try:
        lines, folders = command_lines(tool, given, is_shell), folders_of(given, project)
    except NoCommand as error:
        return str(error)
    for (name, line), folder in itertools.product(lines, folders):
        judge = Judge(project, folder)
        if reason := (python_reason if is_python(tool, languages, name, line) else line_reason)(judge, line):
            if name in SHELL_NAMES:
                return reason
            script = os.path.basename(__file__)
            return f"{reason}. If `{name}` is not a command, the user can add its name to NOT_COMMANDS in {script}"
    return None


def main():
    call = json.loads(sys.stdin.buffer.read())
    return judge_call(call["tool_name"], call["tool_input"], call["cwd"])


def decide():
    """Exit code 2 blocks, whatever goes wrong on the way."""
    try:
        reason = main()
    except RecursionError:
        reason = "it is too long or too deeply nested to be checked"
    except BaseException as error:
        reason = f"it cannot be checked ({type(error).__name__})"
    if reason:
        text = f"This command is blocked: {reason}. If it is really needed, ask the user to run it.\n"
        sys.stderr.buffer.write(text.encode("utf-8", "backslashreplace"))
        sys.exit(2)


if __name__ == "__main__":
    decide()
