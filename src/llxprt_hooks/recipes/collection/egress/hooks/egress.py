#!/usr/bin/env python3
"""BeforeTool: keeps data on this machine. It is sent only to hosts on a list, and some kinds of files are sent nowhere.

Looks at commands, at Python code, and at tools with an address among their arguments. A seat belt, not a firewall: what
a script, a test or a package does on the network is not seen.
"""

from __future__ import annotations

import collections.abc
import itertools
import json
import os
import re
import sys

from llxprt_hooks.recipes.collection.parts.call_commands import (
    MAX_COMMAND,
    SHELL_TOOL,
    NoCommand,
    command_lines,
    folders_of,
)
from llxprt_hooks.recipes.collection.parts.call_paths import named_texts
from llxprt_hooks.recipes.collection.parts.dangerous_commands.command_reader import Command, plain
from llxprt_hooks.recipes.collection.parts.dangerous_commands.judge import Judge
from llxprt_hooks.recipes.collection.parts.dangerous_commands.program_words import program_name
from llxprt_hooks.recipes.collection.parts.dangerous_commands.python_code import parsed
from llxprt_hooks.recipes.collection.parts.fail_closed import decide
from llxprt_hooks.recipes.collection.parts.python_files import PythonFiles
from llxprt_hooks.recipes.collection.parts.uploads import hosts, is_unclear, sends, sent_files

# Hosts that may be sent to; *.example.com also stands for example.com. The variable EGRESS_HOSTS adds others.
ALLOWED_HOSTS = """localhost 127.* 0.0.0.0 [::1] ::1 *.localhost *.local *.internal *.test 10.* 192.168.*
github.com api.github.com gitlab.com bitbucket.org pypi.org registry.npmjs.org crates.io"""
# Whether any host may be asked for a page or a file. If not, these have to be in ALLOWED_HOSTS too.
DOWNLOADS_FROM_ANYWHERE = True
# Files that are sent nowhere: the ends of their names.
NEVER_SENT = (
    r"(?:^|/)(?:\.env(?:\.(?!example|sample|template)[\w.-]+)?|\.netrc|\.pgpass|\.npmrc|\.pypirc|\.git-credentials|id_\w+"
    r"|credentials(?:\.json)?|[^/]{1,255}\.(?:pem|key|p12|pfx|jks|keystore|kdbx|sqlite3?|dump|bak)|\.bash_history|shadow|passwd)$"
    r"|(?:^|/)\.(?:ssh|aws|gnupg|kube|docker|config/gcloud|git)(?:/|$)"
)
SECRET_VARIABLE = r"\$\{?\w*(?:TOKEN|SECRET|PASSW|KEY|CREDENTIAL|DATABASE_URL|SESSION|COOKIE)\w*"
NETWORK_PROGRAM = r"\s*(?:sudo\s+)?(?:curl|wget|nc|ncat|https?|xh|mail|dig|nslookup|ping)\s"
METHOD_NAMES, ADDRESS_NAMES = ("method", "verb"), ("url", "uri", "endpoint", "address", "href", "webhook")
FILE_ARGUMENTS = ("attach", "attachment", "attachments", "file", "files", "filename", "path", "filepath", "upload")
SENDING_TOOL = r"(?i)(?:^|[_-])(?:send|post|upload|publish|share|email|mail|slack|tweet|webhook|http)"


class Refused(Exception):
    """Why a call is blocked."""


def is_allowed(host: str) -> bool:
    patterns = f"{ALLOWED_HOSTS} {os.environ.get('EGRESS_HOSTS', '').replace(',', ' ')}".lower().split()
    if "." not in host and ":" not in host and host:
        return True  # a machine of this network
    for pattern in patterns:
        rest = pattern.removeprefix("*.")
        if host == rest or (pattern != rest and host.endswith("." + rest)):
            return True
        if pattern.endswith(".*") and re.fullmatch(re.escape(pattern[:-1]) + r"[\d.]+", host):
            return True
    return False


def check_host(host: str, data: bool) -> None:
    if not is_allowed(host) and (data or not DOWNLOADS_FROM_ANYWHERE):
        raise Refused(
            f"{host} is not among the hosts that data may be sent to: ask the user to add it to ALLOWED_HOSTS"
        )


def check_file(path: str) -> None:
    if re.search(NEVER_SENT, plain(path).lower()):
        raise Refused(f"{plain(path)} may hold secrets, so it is not sent anywhere")


class EgressJudge(Judge):
    """Follows a command line as dangerous-commands does, and looks at what each program sends."""

    def command(self, command: Command, upstream: list[Command]) -> str | None:
        super().command(command, upstream)  # what is dangerous in another way is not for this hook
        return None

    def program(self, words: list[str]) -> str | None:
        if words:
            self.check(program_name(words[0]), words[1:])
        return super().program(words)

    def check(self, program: str, arguments: list[str]) -> None:
        found = [*hosts(program, arguments)]
        data = sends(program, arguments) or (program == "git" and bool({"push", "remote"} & set(arguments)))
        address_is_data = any(is_unclear(word) and re.search(r"://|^[\w-]+\.[\w.-]*/", word) for word in arguments)
        if program in ("dig", "nslookup", "host", "ping") and any(map(is_unclear, arguments)):
            raise Refused("it may send data in the name of a host")
        if not found and data and any(map(is_unclear, arguments)) and program in ("curl", "wget", "nc", "ssh", "scp"):
            raise Refused("which host it sends to depends on an expansion: write it out")
        for host in found:
            check_host(host, data or address_is_data)
        if not data:
            return
        files = sent_files(program, arguments)
        if self.current.stdin and self.current.stdin[0] == "file":
            files.append(self.current.stdin[1] or "")
        for path in [*files, *(word for command in self.upstream for word in command.words[1:])]:
            check_file(path)
        if reason := self.sent(program, arguments):
            raise Refused(reason)


def check_line(line: str, project: str, folder: str) -> None:
    judge = EgressJudge(project, folder)
    if len(line) > MAX_COMMAND:
        raise Refused("the command is too long to be checked")
    for part in re.split(r"[\n;&|]+", line):
        as_login = re.search(r"(?i)authorization|-u\b|--user\b|-H\b|--header\b", part)
        if re.match(NETWORK_PROGRAM, part) and re.search(SECRET_VARIABLE, part) and not as_login:
            raise Refused("it sends a secret variable")
    if reason := judge.text(line):
        raise Refused(reason)


def check_python(text: str, project: str, folder: str) -> None:
    tree = parsed(text.strip())
    if not tree:
        return
    files = PythonFiles(tree)
    for host in re.findall(r"https?://(?:[^/@\s'\"]*@)?([^/:?#\s'\"{}]+)", text):
        check_host(host.lower(), files.sends)
    if not files.sends:
        return
    judge = Judge(project, folder)
    for path in [each for each in files.read if each]:
        check_file(path)
        if judge.is_elsewhere(path):
            raise Refused(f"{path} is outside the project, so it is not sent anywhere")


def check_call(tool: str, given: dict[str, object], project: str) -> None:
    """Look at the addresses and files among the arguments of a tool other than a shell."""
    texts = list(named_texts(given))
    methods = {text.upper() for name, text in texts if name in METHOD_NAMES}
    bodies = [text for name, text in texts if name in ("body", "data", "json", "payload", "content", "message", "text")]
    data = bool(methods - {"GET", "HEAD", "OPTIONS"}) or bool(re.search(SENDING_TOOL, tool) and (bodies or not methods))
    judge = Judge(project, project)
    for name, text in texts:
        if name.endswith(ADDRESS_NAMES) and (found := re.match(r"\w+://(?:[^/@\s]*@)?([^/:?#\s]+)", text.strip())):
            check_host(found.group(1).lower(), data)
        elif data and name in FILE_ARGUMENTS and re.search(SENDING_TOOL, tool):
            check_file(text)
            if judge.is_elsewhere(text):
                raise Refused(f"{text} is outside the project, so it is not sent anywhere")
    if data and any(re.search(SECRET_VARIABLE, text) for text in bodies):
        raise Refused("it sends a secret variable")


def judge_call(tool: str, given: dict[str, object], folder: str) -> str | None:
    """Why a call is blocked, or None."""
    try:
        lines: collections.abc.Iterable[tuple[str, str, bool]] = command_lines(tool, given)
        for (_, line, is_python), place in itertools.product(lines, folders_of(given, folder)):
            (check_python if is_python else check_line)(line, folder, place)
        if not SHELL_TOOL.search(tool):
            check_call(tool, given, folder)
    except (Refused, NoCommand) as error:
        return str(error)
    return None


def main() -> str | None:
    call = json.loads(sys.stdin.buffer.read())
    return judge_call(call["tool_name"], call["tool_input"], call["cwd"])


if __name__ == "__main__":
    decide(main, "Nothing was sent: {}.")
