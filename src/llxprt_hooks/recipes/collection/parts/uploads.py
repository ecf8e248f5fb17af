"""Which hosts a command talks to, and which files it sends there."""

from __future__ import annotations

import collections.abc
import re

from llxprt_hooks.recipes.collection.parts.dangerous_commands.command_reader import MARK, plain
from llxprt_hooks.recipes.collection.parts.dangerous_commands.program_words import operands, value_of

# Programs that send, and the options whose values they send. A value that begins with @ or < names a file.
DATA_OPTIONS = {
    "curl": "-d --data --data-binary --data-raw --data-ascii --data-urlencode --json -F --form --form-string",
    "wget": "--post-data --body-data",
    "mail mailx mutt swaks sendmail msmtp": "-s --body --header",
    "http https xh": "--raw",
}
FILE_OPTIONS = {
    "curl": "-T --upload-file",
    "wget": "--post-file --body-file",
    "mail mailx mutt swaks": "-a -A --attach",
    "openssl": "-in",
}
# Programs that copy all their operands to the last one, if that is on another machine.
COPIES = "scp rsync rclone aws gsutil s3cmd mc azcopy b2 gcloud s5cmd"
# Programs that send what they read from a pipe or a file.
PIPES = "nc ncat netcat socat telnet ssh sftp ftp lftp mail mailx mutt sendmail openssl"
# Programs that print what should not leave the machine.
DUMPS = "env printenv history mysqldump pg_dump pg_dumpall mongodump sqldump"
MAILERS = "mail mailx mutt sendmail msmtp"
REMOTE = r"(?:[\w.-]+@)?[\w.-]+:(?!//)|(?:https?|ftps?|sftp|s3|gs|az|scp|rsync|ssh|b2|abfss?|wasbs?)://"


def options_of(table: dict[str, str], program: str) -> list[str]:
    return [option for programs, options in table.items() if program in programs.split() for option in options.split()]


def is_remote(word: str) -> bool:
    return bool(re.match(REMOTE, plain(word)))


def sent_texts(program: str, arguments: list[str]) -> list[str]:
    """What a command sends that is not in a file."""
    fields = (
        [word for word in operands(arguments) if re.search(r"\w:?=", word)]
        if program in ("http", "https", "xh")
        else []
    )
    return [*value_of(arguments, *options_of(DATA_OPTIONS, program)), *fields]


def sent_files(program: str, arguments: list[str]) -> list[str]:
    """The files that a command sends; - is what it reads."""
    files = [*value_of(arguments, *options_of(FILE_OPTIONS, program))]
    for text in sent_texts(program, arguments):
        if named := re.match(r"(?:[\w.\[\]-]*=)?[@<]([^;,]+)", plain(text)):
            files.append(named.group(1))
    given = operands(arguments)
    copies = program in ("scp", "rsync") or bool(
        {"cp", "sync", "mv", "copy", "copyto", "move", "put", "upload"} & {*given}
    )
    if program in COPIES.split() and copies and given and is_remote(given[-1]):
        files += [word for word in given[:-1] if not is_remote(word)]
    if program in ("http", "https", "xh"):
        files += [word.partition("@")[2] for word in given if re.match(r"[\w-]+:?=?@", word) and "://" not in word]
    return files


def sends(program: str, arguments: list[str]) -> bool:
    """Whether a command sends more than a request for a page."""
    methods = {*value_of(arguments, "-X", "--request", "--method")} & {"POST", "PUT", "PATCH"}
    if program == "openssl":
        return "s_client" in arguments
    return bool(methods or sent_texts(program, arguments) or sent_files(program, arguments)) or program in PIPES.split()


# How programs name a host; the first two are for all of them.
HOST_FORMS = [
    ("", r"((?:s3|gs|az|b2|abfss?|wasbs?)://[^/\s]+)"),
    ("", r"[a-zA-Z][\w+.-]*://(?:[^/@\s]*@)?(\[[^\]]*\]|[^/:?#\s]+)"),
    ("scp rsync sftp git", r"(?:[\w.-]+@)?([\w.-]+):(?!//)"),
    ("socat", r"(?i)(?:tcp|udp|ssl|openssl)\w*:([^:,]+)"),
    ("curl wget http https xh openssl", r"([\w-]+(?:\.[\w-]+)+|localhost)(?=[:/?]|$)"),
]
DIRECT = "ssh nc ncat netcat telnet ftp lftp sftp"  # the first operand is a host


def hosts(program: str, arguments: list[str]) -> collections.abc.Iterator[str]:
    """The hosts that a command names."""
    words = [plain(word) for word in arguments]
    given = operands(words)
    forms = [form for programs, form in HOST_FORMS if not programs or program in programs.split()]
    for word in [*given, *value_of(words, "--url", "-connect", "--index-url", "--registry", "--server")]:
        found = next(filter(None, (re.match(form, word) for form in forms)), None)
        if found:
            yield found.group(1).lower()
    direct = [word for word in given if not re.fullmatch(r"\d+", word)]
    if program in DIRECT.split() and direct and "://" not in direct[0]:
        yield direct[0].rpartition("@")[2].partition(":")[0].lower()
    if program in MAILERS.split():
        yield from (word.rpartition("@")[2].lower() for word in given if "@" in word)


def is_unclear(text: str) -> bool:
    return bool(MARK.search(text))
