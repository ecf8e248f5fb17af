#!/usr/bin/env python3
"""BeforeTool: keeps tools away from files with secrets, and from changing files that are not for them to change.

Paths are compared as the system will see them: `..`, links, `~` and upper case make no difference. In shell commands
every word that names such a file counts, wildcards are expanded, and quotes inside a word are taken out.
"""

import fnmatch
import glob
import itertools
import json
import os
import re
import sys
import unicodedata

# Neither read nor written. A pattern with a slash is compared with the end of the path, one without with the name.
SECRET = [".env", ".env.*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "id_rsa", "id_dsa",
          "id_ecdsa", "id_ed25519", ".netrc", ".pgpass", ".pypirc", ".npmrc", ".htpasswd", ".vault-token",
          "credentials.json", "service-account*.json", "secrets.yml", "secrets.yaml", ".ssh/*", ".gnupg/*", ".aws/*",
          ".kube/config", ".docker/config.json"]  # fmt: skip
NOT_SECRET = [".env.example", ".env.sample", ".env.template", ".env.dist", "*.pub"]

# Read, but not written: what tools of their own write, what holds the history, and the hooks themselves.
READ_ONLY = ["package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb",
             "poetry.lock", "pdm.lock", "uv.lock", "pipfile.lock", "cargo.lock", "gemfile.lock", "composer.lock",
             "go.sum", "flake.lock", ".git/*", ".llxprt/*"]  # fmt: skip

LONGEST = 100_000  # characters of a command; a shell takes little more
READING_TOOLS = {"read_file", "read_many_files", "list_directory", "glob", "search_file_content", "grep_search"}
PATH_ARGUMENTS = {"file_path", "absolute_path", "path", "paths", "dir_path", "include", "filename", "file", "source",
                  "destination", "target", "notebook_path"}  # fmt: skip
WRITING_PROGRAMS = {"rm", "mv", "cp", "tee", "truncate", "dd", "ln", "install", "rsync", "chmod", "chown", "touch",
                    "unlink", "shred", "patch", "sed", "perl", "ed", "ex", "vim", "nano"}  # fmt: skip


PROJECT = os.environ.get("LLXPRT_PROJECT_DIR") or os.getcwd()


def names(path, folder):
    """The paths that a path may mean, from the project if they are in it: as written, and with links followed."""
    path = re.sub(r"^file://", "", path.strip().replace("\0", ""))
    absolute = os.path.normpath(os.path.join(folder, os.path.expanduser(path)))
    for each in {absolute, os.path.realpath(absolute)}:
        for project in (PROJECT, os.path.realpath(PROJECT)):
            if each.startswith(project + "/"):
                each = each[len(project) + 1 :]
        yield unicodedata.normalize("NFC", each).casefold()


def matches(path, patterns):
    parts = path.strip("/").split("/")
    for pattern in patterns:
        wanted = pattern.split("/")
        if len(wanted) == 1:
            if fnmatch.fnmatchcase(parts[-1], pattern):
                return True
        elif wanted[-1] == "*":  # a folder: all that is in it, and the folder itself
            if wanted[0] in parts:
                return True
        elif parts[-len(wanted) :] == wanted:
            return True
    return False


def protection(path, folder, writing):
    for each in names(path, folder):
        if matches(each, SECRET) and not matches(each, NOT_SECRET):
            return f"{path} may hold secrets, so tools do not touch it: ask the user for what you need from it"
        if writing and matches(each, READ_ONLY):
            return f"{path} is not for you to change: use the program that maintains it, or ask the user"
    return None


def paths(value, key=""):
    """The paths among the arguments."""
    if isinstance(value, str) and key in PATH_ARGUMENTS:
        yield value
    elif isinstance(value, list):
        for inner in value:
            yield from paths(inner, key)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from paths(inner, name)


def commands(text):
    """The parts of a command line between separators, each as its words and as the words it writes to."""
    for text_as_seen in {text, re.sub(r"[\"'\\]", "", text)}:
        for part in re.split(r"[;&\n`()]+|\|+", text_as_seen):
            targets = re.findall(r">\|?\s*[\"']?([^\s\"'<>]+)", part)
            yield [word for word in re.split(r"[\s\"'<>=:,@{}]+", part) if word], targets


def expanded(word, folder):
    yield word
    if re.search(r"[*?\[]", word):
        yield from itertools.islice(glob.iglob(os.path.join(folder, os.path.expanduser(word))), 1000)


def check_command(text, folder):
    if len(text) > LONGEST:
        return "this command is too long to be looked at"
    for words, targets in commands(text):
        writes = any(os.path.basename(word) in WRITING_PROGRAMS for word in words[:3])
        for word in words:
            for path in expanded(word, folder):
                reason = protection(path, folder, writes or word in targets)
                if reason:
                    return reason
    return None


def main():
    call = json.loads(sys.stdin.buffer.read())
    given, folder = call["tool_input"], call["cwd"]
    writing = call["tool_name"] not in READING_TOOLS
    reasons = [protection(path, folder, writing) for path in paths(given)]
    command = given.get("command")
    if isinstance(command, str):
        inside = given.get("dir_path") if isinstance(given.get("dir_path"), str) else ""
        reasons.append(check_command(command, os.path.join(folder, inside)))
    for reason in filter(None, reasons):
        print(reason, file=sys.stderr)
        sys.exit(2)


main()
