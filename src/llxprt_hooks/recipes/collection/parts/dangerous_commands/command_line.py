"""How a command line is represented: words, commands with what is around them, and scripts of these."""

import re

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
DEEPEST = 20  # commands inside commands


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
