#!/usr/bin/env python3
"""BeforeTool: keeps tools away from files with secrets, and from changing files that are not for them to change.

Paths are compared as the system will see them: `..`, links, `~` and upper case make no difference. In shell commands
every word that names such a file counts, `cd` is followed, and patterns (`.e*`, `.e${x}nv`) are compared with the names
of the protected files. A search is blocked if it would show a line of one. All of it takes time in proportion to the
length of the call.
"""

from __future__ import annotations

import collections.abc
import fnmatch
import functools
import itertools
import json
import os
import re
import sys
import unicodedata

from llxprt_hooks.recipes.collection.parts.call_commands import (
    MAX_COMMAND,
    NoCommand,
    command_lines,
    folders_of,
    quoted,
)
from llxprt_hooks.recipes.collection.parts.call_paths import MAX_PATH, NOT_PATHS, named_texts, paths_in
from llxprt_hooks.recipes.collection.parts.fail_closed import decide
from llxprt_hooks.recipes.collection.parts.reading_tools import READING_TOOLS

# Neither read nor written. A pattern with a slash is compared with the end of the path, one without with the name.
SECRET = [".env", ".env.*", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "id_rsa",
          "id_dsa", "id_ecdsa", "id_ed25519", ".netrc", ".pgpass", ".pypirc", ".npmrc", ".htpasswd", ".vault-token",
          "credentials.json", "service-account*.json", "secrets.yml", "secrets.yaml", ".git-credentials",
          ".ssh/*", ".gnupg/*", ".aws/*", ".kube/config", ".docker/config.json"]  # fmt: skip
NOT_SECRET = [".env.example*", ".env.sample*", ".env.template*", ".env.dist*", "*.pub"]

# May be read but not written: files that other programs maintain, the git history, and the hooks themselves.
READ_ONLY = ["package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb",
             "poetry.lock", "pdm.lock", "uv.lock", "pipfile.lock", "cargo.lock", "gemfile.lock", "composer.lock",
             "go.sum", "flake.lock", ".git/*", ".llxprt/*"]  # fmt: skip

MAX_ENTRIES = 20_000  # files that are looked at to find protected ones
MAX_BYTES = 1_000_000  # bytes of a protected file that a search is tried on
SKIPPED = {"node_modules", ".git", ".venv", "venv", "__pycache__", "site-packages"}

SEARCHING_TOOLS = {"search_file_content", "grep_search", "grep", "search_files"}
WRITING_PROGRAMS = {"rm", "mv", "cp", "tee", "truncate", "dd", "ln", "install", "rsync", "chmod", "chown", "touch",
                    "unlink", "shred", "patch", "sed", "perl", "ed", "ex", "vi", "vim", "nvim", "nano", "python",
                    "python3", "node", "ruby", "php", "awk", "gawk", "sponge", "tar", "unzip", "split", "rename",
                    "rmdir", "mkdir", "curl", "wget", "scp", "jq", "yq", "sh", "bash", "busybox", "bsdtar", "cpio",
                    "sqlite3", "chattr", "setfacl", "crudini", "git-apply", "ditto", "mkfifo", "sort", "shuf", "uniq",
                    "xxd", "gzip", "gunzip", "bzip2", "xz", "zstd", "openssl", "gcc", "cc", "clang", "zip", "7z",
                    "link", "csplit", "script", "ar", "pax", "gpg", "objcopy", "iconv", "pandoc", "lua", "deno",
                    "bun", "tclsh", "expect", "emacs", "find", "fd"}  # fmt: skip
WRAPPERS = {"sudo", "env", "command", "exec", "nohup", "time", "xargs", "then", "do", "else", "if", "while", "!", "{"}
GIT_WRITES = {"rm", "mv", "checkout", "restore", "apply", "am", "clean", "config"}
# Programs that only say or ask for names; for these the words do not count, but redirections do.
NAMES_ONLY = {"echo", "printf", "ls", "stat", "test", "[", "[[", "which", "mkdir", "basename", "dirname", "realpath"}
GIT_NAMES_ONLY = {"commit", "check-ignore", "status", "tag", "branch"}
COPIES_FOLDERS = {"tar", "zip", "cp", "rsync", "scp", "7z", "bsdtar", "cpio", "docker"}
OWN_COMMANDS = re.compile(r"\bllxprt-hooks\s+(?:-C\s+\S+\s+)?(?:disable|enable|trust|untrust|init|migrate)\b")

PROJECT = os.environ.get("LLXPRT_PROJECT_DIR") or os.getcwd()


def wild(pattern: str, name: str) -> bool:
    """Whether a pattern matches a name. Linear for each star; [ … ] counts as any character."""
    pattern = re.sub(r"\[(?:\[:\w{1,9}:\]|[^\]]){0,99}\]", "?", pattern)
    return fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))


def names(path: str, folder: str) -> collections.abc.Iterator[str]:
    """The paths that a path may mean, from the project if they are in it: as written, and with links followed."""
    path = re.sub(r"^file://", "", path.strip().replace("\0", ""))
    absolute = os.path.normpath(os.path.join(folder, os.path.expanduser(path)))
    for each in {absolute, os.path.realpath(absolute)}:
        for project in (PROJECT, os.path.realpath(PROJECT)):
            if each.startswith(project + "/"):
                each = each[len(project) + 1 :]
        yield unicodedata.normalize("NFC", each).casefold()


def matches(path: str, patterns: list[str]) -> bool:
    parts = path.strip("/").split("/")
    for pattern in patterns:
        wanted = pattern.split("/")
        if len(wanted) == 1:
            if wild(pattern, parts[-1]):
                return True
        elif wanted[-1] == "*":  # a folder: all that is in it, and the folder itself
            if wanted[0] in parts:
                return True
        elif parts[-len(wanted) :] == wanted:
            return True
    return False


def is_secret(path: str) -> bool:
    return matches(path, SECRET) and not matches(path, NOT_SECRET)


def protection(path: str, folder: str, writing: bool) -> str | None:
    if len(path) > MAX_PATH:
        return None
    for each in names(path, folder):
        if is_secret(each):
            return f"{path} may hold secrets, so tools may not read or change it: ask the user for what you need"
        if writing and matches(each, READ_ONLY):
            return f"{path} is protected from changes: use the program that maintains it, or ask the user"
    return None


@functools.cache
def secrets_below(top: str) -> list[str]:
    found: list[str] = []
    seen = 0
    for folder, folders, files in os.walk(top):
        folders[:] = [each for each in folders if each not in SKIPPED]
        seen += len(folders) + len(files)
        if seen > MAX_ENTRIES:
            break
        paths = (os.path.join(folder, file) for file in files)
        found += [path for path in paths if is_secret(os.path.relpath(path, top).casefold())]
    return found


def shows_secret(pattern: str, folder: str) -> str | None:
    """Why a search below a folder is blocked: it would show lines of a protected file."""
    for path in secrets_below(os.path.realpath(folder)):
        shown = os.path.relpath(path, PROJECT)
        advice = f"this search would show lines of {shown}, which may hold secrets: search in another folder"
        try:
            with open(path, encoding="utf-8", errors="replace") as opened:
                text = opened.read(MAX_BYTES)
            if len(pattern) > 500 or re.search(r"[*+}]\)?[*+{]|\([^)]*[*+][^)]*\)[*+{]", pattern):
                return advice  # may take for ever
            if any(re.search(pattern, line, re.IGNORECASE) for line in text.splitlines()):
                return advice
        except re.error:
            return advice
        except OSError:
            continue
    return None


# Shell commands.


def decoded(text: str) -> str:
    """The text with \\x2e and \\056 as the characters that they stand for."""
    text = re.sub(r"\\x([0-9a-fA-F]{2})", lambda found: chr(int(found.group(1), 16)), text)
    return re.sub(r"\\0?([0-7]{2,3})", lambda found: chr(int(found.group(1), 8) & 0x7F), text)


def braces(word: str, most: int = 64) -> list[str]:
    """What {a,b} in a word expands to."""
    done: list[str] = []
    waiting = [word]
    while waiting and len(done) + len(waiting) < most:
        current = waiting.pop()
        found = re.search(r"\{([^{}]*,[^{}]*)\}", current)
        if not found:
            done.append(current)
        else:
            waiting += [current[: found.start()] + part + current[found.end() :] for part in found.group(1).split(",")]
    return done + waiting


def with_values(text: str) -> str:
    """The text with the values of variables that it sets once, and with the defaults of others, in their place."""
    found = re.findall(r"(?:^|[\s;&|(])(\w{1,50})=[\"']?([^\s;&|()$`\"']{0,200})", text)
    values = {name: value for name, value in found if sum(name == other for other, _ in found[:200]) == 1}
    text = re.sub(r"\$\{\w+:?[-=+]([^{}$]*)\}", r"\1", text)
    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda at: values.get(at.group(1) or at.group(2), at.group()), text)


def commands(text: str) -> collections.abc.Iterator[tuple[list[str], list[str], list[str]]]:
    """The parts of a command line between separators, each as its words and as the words after < and >."""
    text = re.sub(r"\$\{[^{}]*\}|\$\w+|\$[@*?#!]", "\ufdd0", with_values(text.replace("$'", "'").replace('$"', '"')))
    for seen in {text, re.sub(r"[\"'\\]", "", text), re.sub(r"[\"'\\]", "", decoded(text))}:
        for part in re.split(r"[;&\n`()]+|\|+", seen):
            written = re.findall(r">\|?\s*[\"']?([^\s\"'<>]+)", part)
            read = re.findall(r"<\s*[\"']?([^\s\"'<>]+)", part)
            words = re.findall(r"[^\s\"'<>]+", part)
            yield words, written, read


def meanings(word: str) -> collections.abc.Iterator[str]:
    """The paths that a word may have in it: the word, and what is after =, :, @ and the like in it."""
    for each in braces(word):
        yield each
        parts = re.split(r"[=:,@{}\[\]]+", each)
        yield from parts[:20] if len(parts) > 1 else ()


def pattern_matches(word: str, folder: str, writing: bool) -> str | None:
    """The protection of a file that a word with a pattern or an expansion in it may name."""
    pattern = word.replace("\ufdd0", "*")
    last = pattern.rstrip("/").rpartition("/")[2].casefold()
    folders = [".ssh", ".aws", ".gnupg", ".kube", *([".llxprt", ".git"] if writing else [])]
    for part in pattern.casefold().split("/")[:-1]:
        named = next((each for each in folders if re.match(r"\.|\[", part) and wild(part, each)), None)
        if named and re.search(r"[*?\[]", part):
            shown = word.replace(chr(0xFDD0), "…")
            return f"{shown} may lead to {named}, which is protected: name the files that you mean"
    if "\ufdd0" in word and not re.search(r"\w", last):
        return None  # nothing but a variable
    beginning = re.split(r"[*?]", last)[0]
    before = re.match(r"[^*?\[]*(?=/)", pattern)
    if before and before.group() and (reason := protection(before.group(), folder, writing)):
        return reason
    fixed = [name for name in SECRET if "*" not in name and "/" not in name] + [".ssh", ".aws", ".gnupg"]
    fixed += [".llxprt", ".git", *(name for name in READ_ONLY if "*" not in name)] if writing else []
    for name in fixed:
        if beginning and wild(last, name):
            return f"{word.replace(chr(0xFDD0), '…')} may name {name}, which is protected: name the files that you mean"
    for path in secrets_below(os.path.realpath(PROJECT)):
        relative = os.path.relpath(path, folder).casefold().split("/")
        wanted = os.path.relpath(os.path.join(folder, os.path.expanduser(pattern)), folder).casefold().split("/")
        dots_fit = all(not name.startswith(".") or part.startswith((".", "[")) for part, name in zip(wanted, relative))
        if len(relative) == len(wanted) and dots_fit and all(map(wild, wanted, relative)):
            return protection(path, folder, writing)
    return None


def word_protection(word: str, folder: str, writing: bool) -> str | None:
    for each in meanings(word):
        if re.search("[*?\\[\ufdd0]", each):
            if len(each) > MAX_PATH:
                return "a word of this command is too long to be checked"
            reason = pattern_matches(each, folder, writing)
        else:
            reason = protection(each, folder, writing) if each else None
        if reason:
            return reason
    return None


def program_of(words: list[str]) -> tuple[str, list[str]]:
    for index, word in enumerate(words):
        if os.path.basename(word) not in WRAPPERS and not re.match(r"\w+=|-", word):
            return os.path.basename(word), words[index + 1 :]
    return "", []


def reads_folder(program: str, rest: list[str], text: str, folder: str) -> str | None:
    """Why a command that reads whole folders is blocked."""
    operands = [word for word in rest if not word.startswith("-")]
    if program in ("grep", "egrep", "rg", "ag", "ack"):
        recursive = any(re.match(r"-\w*[rRu]|--recursive|--hidden|--no-ignore", word) for word in rest)
        if recursive and operands:
            for place in operands[1:] or ["."]:
                if os.path.isdir(os.path.join(folder, place)):
                    return shows_secret(operands[0].replace("\ufdd0", "."), os.path.join(folder, place))
        return None
    if program == "git" and "--no-index" in rest:
        return shows_secret((operands[1:2] or ["."])[0] if "grep" in operands else ".", folder)
    if program in ("diff", "colordiff") and any(re.match(r"-\w*r|--recursive", word) for word in rest):
        program = "cp"
    if program == "find" and not re.search(r"-(?:exec|ok)|xargs", text):
        return None
    if program == "find" and re.search(r"-i?(?:name|path)\s", text):
        return None  # the name is a word of its own
    for place in operands if program in COPIES_FOLDERS else operands[:1] or ["."] if program == "find" else ():
        top = os.path.realpath(os.path.join(folder, place))
        if os.path.isdir(top) and secrets_below(top):
            shown = os.path.relpath(secrets_below(top)[0], PROJECT)
            return f"{place} has {shown} in it, which may hold secrets: name the files that you mean"
    return None


def shows_hidden(text: str, folder: str) -> str | None:
    """Why a command is blocked that reads all files of a folder, also those whose names begin with a dot."""
    all_names = re.search(r"\bdotglob\b|\bGLOBIGNORE=|\bglob_?dots\b", text, re.IGNORECASE)
    lists = re.search(r"\bls\s+-\w*[aAf]|\bfd\b.{0,80}-\w*H|\bgit\s+ls-files\b.{0,80}-o|\bprintf\b.{0,80}\.\*", text)
    hands_on = re.search(r"\bxargs\b|\bwhile\s+read\b|\bparallel\b|\$\(|`", text)
    if all_names or (lists and hands_on):
        below = secrets_below(os.path.realpath(folder))
        return f"it may read {os.path.relpath(below[0], PROJECT)}: name the files that you mean" if below else None
    return None


def check_command(text: str, folder: str) -> str | None:
    if len(text) > MAX_COMMAND:
        return "this command is too long to be checked"
    if OWN_COMMANDS.search(text):
        return "only the user may turn the hooks of this agent on or off"
    if hidden := shows_hidden(text, folder):
        return hidden
    seen = set()
    # Names may be handed on, and files be written, by another part of the command than the one that names them.
    hands_on = re.search(r"\bxargs\b|\$\(|`", text)
    elsewhere = re.search(
        r"\b(?:python[\d.]*|node|perl|ruby|php)\s[^|;&]{0,200}-\w{0,9}[ceEpr]\b|>\s*[\"']?\$|-delete\b|\bwritefile\b",
        text,
    )
    elsewhere = elsewhere or re.search(
        r"\bxargs\b[^|;&]{0,200}\b(?:rm|mv|cp|sed|tee|truncate|chmod|unlink|shred)\b", text
    )
    for words, written, read in commands(text):
        program, rest = program_of(words)
        key = (folder, tuple(words))
        if key in seen:
            continue
        seen.add(key)
        targets = [each for each in rest if each not in written and not re.match(r"-|\d+$", each)]
        if program in ("cd", "pushd", "chdir") and targets:
            folder = os.path.normpath(os.path.join(folder, os.path.expanduser(targets[0])))
            if inside := protection(folder, folder, writing=False):
                return inside
            continue
        git_action = next((word for word in rest if not word.startswith("-")), "") if program == "git" else ""
        writes = any(os.path.basename(word) in WRITING_PROGRAMS for word in words) and program not in NAMES_ONLY
        writes = git_action in GIT_WRITES if program == "git" else writes and program not in ("grep", "egrep", "rg")
        writes = writes or bool(elsewhere) or any(word.startswith(("-fprint", "-fls")) for word in rest)
        names_only = (program in NAMES_ONLY and not hands_on) or git_action in GIT_NAMES_ONLY or "--cached" in rest
        names_only = names_only or (program == "find" and not re.search(r"-(?:exec|ok|delete|fprint|fls)|xargs", text))
        for word in dict.fromkeys([*written, *read] if names_only else words):
            if reason := word_protection(word, folder, writes or word in written):
                return reason
        if reason := reads_folder(program, rest, text, folder):
            return reason
    return None


def main() -> str | None:
    call = json.loads(sys.stdin.buffer.read())
    return judge(call["tool_name"], call["tool_input"], call["cwd"])


def judge(tool: str, given: dict[str, object], folder: str) -> str | None:
    """Why a call is blocked, or None."""
    writing = tool.lower() not in READING_TOOLS
    for path in paths_in(given, folder):
        check = word_protection if re.search(r"[*?\[]", path) else protection
        if reason := check(path, folder, writing):
            return reason
    for name, text in named_texts(given):
        is_address = "://" in text or not re.search(r"[@:=]", text) or not re.fullmatch(r"\S{2,300}", text)
        if not is_address and not name.endswith(NOT_PATHS):
            for part in meanings(text):
                if not re.search(r"[*?\[]", part) and (reason := protection(part, folder, writing=False)):
                    return reason
    try:
        places = folders_of(given, folder)
        lines = command_lines(tool, given)
    except NoCommand as error:
        return str(error)
    if tool.lower() in SEARCHING_TOOLS:
        patterns = [text for name, text in named_texts(given) if name in ("pattern", "query", "regex")]
        pairs = itertools.product(patterns, places)
        return next(filter(None, (shows_secret(pattern, place) for pattern, place in pairs)), None)
    for (_, line, is_python), place in itertools.product(lines, places):
        line = f"python3 -c {quoted(line)}" if is_python else line
        if reason := check_command(line, place):
            return reason
    return None


if __name__ == "__main__":
    decide(main)
