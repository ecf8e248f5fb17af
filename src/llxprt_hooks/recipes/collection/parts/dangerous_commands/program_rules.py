"""Rules for programs, and which program has which rule.

A rule gets the judge and the arguments of its program, and gives a reason to block the command, or None.
"""

from __future__ import annotations

import collections.abc
import os
import re

from llxprt_hooks.recipes.collection.parts.dangerous_commands.command_reader import (
    MARK,
    PROCESS,
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
    shown,
    value_of,
)
from llxprt_hooks.recipes.collection.parts.dangerous_commands.service_actions import service_reason
from llxprt_hooks.recipes.collection.parts.sql_text import sql_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from llxprt_hooks.recipes.collection.parts.dangerous_commands.judge import Judge

# Programs that read, write, move or delete files.


def rm(judge: Judge, arguments: list[str]) -> str | None:
    targets = operands(arguments)
    may_be_option = any(word.startswith(UNKNOWN_WORDS) for word in targets)
    recursive = "r" in short_options(arguments).lower() or has(arguments, "--recursive") or may_be_option
    reasons = [judge.too_much(target) for target in targets]
    if not recursive:  # `rm .` does nothing
        reasons = [why for why, target in zip(reasons, targets) if why and not re.fullmatch(r"\.{1,2}/?", target)]
    return because("it would delete too much", reasons)


def write_to(position: slice) -> collections.abc.Callable[[Judge, list[str]], str | None]:
    """A rule for programs that write to some of their operands."""

    def rule(judge: Judge, arguments: list[str]) -> str | None:
        targets = list(value_of(arguments, "-t", "--target-directory")) or operands(arguments)[position]
        return because("it writes where it should not", map(judge.write, targets))

    return rule


def outputs(judge: Judge, arguments: list[str]) -> str | None:
    """What most programs mean by -o; only values that are paths outside count."""
    given = value_of(arguments, "-o", "-out", "--out", "--output", "--outfile", "--output-file", "--outdir", "-O")
    elsewhere = (path for path in given if re.match(r"[/~]|\.\.", path))
    return because("it writes where it should not", map(judge.write, elsewhere))


def cp(judge: Judge, arguments: list[str]) -> str | None:
    given = operands(arguments)
    reason = write_to(slice(-1, None))(judge, arguments) if len(given) > 1 or "-t" in arguments else None
    if not reason and len(given) > 1:  # a copy of a file that was just written counts as written too
        copied = judge.written.get(judge.place(given[0]))
        judge.written.pop(judge.place(given[-1]), None)
        if copied is not None or re.match(PROGRAM_FOLDER, judge.place(given[0])):
            judge.written[judge.place(given[-1])] = copied or ""
    return reason


PROGRAM_FOLDER = r"(?:/usr(?:/local)?|/opt/\w+)?/s?bin/|/lib(?:64)?/"


def ln(judge: Judge, arguments: list[str]) -> str | None:
    """A link that this command line makes is followed by what comes after it."""
    given = operands(arguments)
    reason = cp(judge, arguments)
    if not reason and given:
        target, link = given[0], given[1] if len(given) > 1 else os.path.basename(given[0])
        where = judge.place(os.path.join(os.path.dirname(link), target))
        folder = os.path.isdir(plain(judge.place(link))) or link.endswith("/")
        judge.links[judge.place(os.path.join(link, os.path.basename(target)) if folder else link)] = where
    return reason


def mv(judge: Judge, arguments: list[str]) -> str | None:
    given = operands(arguments)
    targets = list(value_of(arguments, "-t", "--target-directory"))
    sources, targets = (given, targets) if targets else (given[:-1], given[-1:])
    if any(judge.place(target) == "/dev/null" for target in targets):
        return "moving something to /dev/null destroys it, and perhaps /dev/null"
    text = judge.written.get(judge.place(sources[0])) if sources else None
    reason = because("it would take away too much", map(judge.too_much, sources))
    reason = reason or because("it writes where it should not", map(judge.write, targets))
    for target in targets:
        judge.written.pop(judge.place(target), None)
        if text is not None:
            judge.written[judge.place(target)] = text
    return reason


def sed(judge: Judge, arguments: list[str]) -> str | None:
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


def awk(judge: Judge, arguments: list[str]) -> str | None:
    given = operands(arguments)
    text = re.sub(r"/(?:\\.|[^/\n])*/|\"(?:\\.|[^\"])*\"", '""', plain(" ".join(given[:2])))
    if reason := first(judge.run_file("awk", path) for path in value_of(arguments, "-f", "--file")):
        return reason
    if any(STDIN.fullmatch(path) for path in value_of(arguments, "-f", "--file")):
        return "awk would run code from a pipe: put it in the call itself"
    outside = re.sub(r"\([^()]*\)", "", text)  # in brackets, > compares
    if re.search(r"\bsystem\s*\(|\bgetline\b|(?<!\|)\|(?!\|)|@", text) or re.search(r"\bprintf?\b[^;}]*>", outside):
        return "awk would run commands or write files from its own code: use the shell for that"
    return None


def chmod(judge: Judge, arguments: list[str]) -> str | None:
    mode, *places = operands(arguments) or [""]
    recursive = "R" in short_options(arguments) or has(arguments, "--recursive")
    for_all = re.fullmatch(r"0?777|a\+rwx|a?=rwx|[goa]*[+=][rx]*w[rx]*|0?000|[ugoa]*-[rwx]*r[rwx]*", mode)
    if recursive and for_all:
        return "it changes who may read or write a whole tree"
    if re.fullmatch(r"[0-7]?[2467][0-7]{3}|[ugoa]*\+[rwx]*s[rwx]*", mode) and not mode.startswith("0"):
        return "it lets a program run with another user's rights"
    return because("it changes too much", (judge.too_much(place, whole_is_fine=True) for place in places))


def dd(judge: Judge, arguments: list[str]) -> str | None:
    return first(judge.write(word[3:]) for word in arguments if word.startswith("of="))


def disks(judge: Judge, arguments: list[str]) -> str | None:
    return None if only_asks(arguments) else "it changes disks or file systems"


def only_asks(arguments: list[str]) -> bool:
    """Whether a program that administers the machine is only asked how things are."""
    asks = (
        r"-[lhVnvLS]+|--(?:list|help|version|json|show|status|display|query)\S*|(?:list|info|get|status|show)\w*|print"
    )
    return not arguments or any(re.fullmatch(asks, word) for word in arguments)


TESTS = re.compile(
    r"-i?(?:name|path|regex|wholename|lname)$|-(?:mtime|mmin|ctime|atime|amin|size|empty|newer|user|perm)"
)


def found_by(arguments: list[str]) -> collections.abc.Iterator[str]:
    """The paths that `find` may give, as far as it goes: below a place if there is a test, else the place itself."""
    arguments = [word for word in arguments if word not in ("-L", "-H", "-P")]
    length = next((i for i, word in enumerate(arguments) if word.startswith(("-", "(", "!", "\\"))), len(arguments))
    tests = [(i, word) for i, word in enumerate(arguments)
             if TESTS.match(word) and arguments[i - 1] not in ("!", "-not", "-o", "-or")]  # fmt: skip
    everything = all(not re.search(r"\w", "".join(arguments[i + 1 : i + 2])) for i, word in tests)
    for place in arguments[:length] or ["."]:
        yield f"{place}/*" if everything else f"{place}/found"


def find(judge: Judge, arguments: list[str]) -> str | None:
    paths = list(found_by(arguments))
    own = re.sub(r" -(?:exec|ok)(?:dir)? .*? (?:;|\\;|\+)(?= |$)", " ", " ".join(["", *arguments]))
    if "-delete" in own.split() and (reason := rm(judge, ["-r", *paths])):
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


def over_files(judge: Judge, words: list[str], paths: list[str]) -> str | None:
    """Judge a command that `find` or `xargs` runs for some paths."""
    if any(word != "{}" and "{}" in plain(word) for word in words[1:]) and program_name((words or [""])[0]) in SHELLS:
        return "it runs a text that contains file names"
    judge.replaces = True
    at = [index for index, word in enumerate(words) if plain(word) == "{}"]
    filled = [each for word in words for each in (paths if plain(word) == "{}" else [word])]
    reason = judge.program(filled if at else [*words, *paths])
    judge.replaces = False
    return reason


def xargs(judge: Judge, arguments: list[str]) -> str | None:
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
    is_text = len(words) == 3 and re.fullmatch(r"-\w*c", words[1]) and "{}" not in words[2]
    if program in SHELLS and is_text:
        return over_files(judge, words, [])  # what is read becomes $0, $1 and so on
    runs_file = program in INTERPRETERS and any(re.match(r"-m|[\w./-]+\.\w+$", word) for word in words[1:])
    if (program in SHELLS or program in INTERPRETERS or program in ("env", "eval", "sudo", "xargs")) and not runs_file:
        return f"xargs would hand text that nobody has seen to {program}: use a loop, or name the files"
    return over_files(judge, words, list(piped_paths(judge)))


def piped_paths(judge: Judge) -> list[str]:
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


def cd(judge: Judge, arguments: list[str]) -> None:
    target = (operands(arguments) or ["~"])[0]
    place = UNKNOWN if target == "-" else judge.place(target)
    certain = os.path.isdir(plain(place)) or judge.operator in ("&&", "||") or place in judge.made
    judge.folder = None if MARK.search(place) or re.search(r"[*?\[]", place) or not certain else place


def mkdir(judge: Judge, arguments: list[str]) -> None:
    judge.made = judge.made | {judge.place(word) for word in operands(arguments)}


def unknown_folder(judge: Judge, arguments: list[str]) -> None:
    judge.folder = None


def tar(judge: Judge, arguments: list[str]) -> str | None:
    text = plain(" ".join(arguments))
    if re.search(r"--(?:to-command|checkpoint-action|use-compress-program|rsh-command)|(?:^| )-I ?\S*[ /]", text):
        return "it makes tar run another program"
    flags = short_options(arguments[:1]) or arguments[0] if arguments else ""
    places = list(value_of(arguments, "-C", "--directory"))
    if "x" in flags or has(arguments, "--extract"):
        judge.unpacked = judge.unpacked or any(
            program_name((command.words or [""])[0]) in ("curl", "wget", "fetch") for command in judge.upstream
        )
        reason = first(judge.write(place + "/x") for place in places) or ("P" in flags and "it may write anywhere")
        return f"it unpacks where it should not: {reason}" if reason else None
    if has(arguments, "--remove-files"):
        return because("tar would take away too much", map(judge.too_much, operands(arguments)[1:]))
    return None


def unzip(judge: Judge, arguments: list[str]) -> str | None:
    return first(judge.write(place + "/x") for place in value_of(arguments, "-d"))


# git.

GIT_RUNS = re.compile(
    r"(?i)(?:alias\..*|core\.(?:pager|editor|sshcommand|fsmonitor|hookspath|askpass|gitproxy)|sequence\.editor|gpg\..*"
    r"|diff\.(?:external|.*\.(?:command|textconv))|filter\..*|merge\..*\.driver|credential\..*helper|pager\..*"
    r"|(?:diff|merge)tool\..*|interactive\.difffilter|uploadpack\..*|protocol\..*allow"
    r"|remote\..*\.(?:uploadpack|receivepack|proxy)"
    r"|include.*\.path|clean\.requireforce|receive\.deny.*)$"
)


def git(judge: Judge, arguments: list[str]) -> str | None:
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


def git_options(action: str, rest: list[str]) -> str:
    """The short options of an action of git. What follows one that has a value is its value: `-bfeature`."""
    valued = {"checkout": "bB", "switch": "cC", "commit": "mFCct", "tag": "mFu", "restore": "s", "log": "nLSG"}
    given = [short_options([word]) for word in rest[: rest.index("--") if "--" in rest else None]]
    return "".join(re.sub(rf"(?<=[{valued.get(action, '-')}]).*", "", letters) for letters in given)


def discards_files(judge: Judge, action: str, rest: list[str], short: str) -> bool:
    """Whether git would put the files of a commit in the place of changed ones."""
    given = operands(rest)
    if action == "restore":
        staged = has(rest, "--staged") or "S" in short
        return bool(given) and (not staged or has(rest, "--worktree") or "W" in short)
    if re.search("[bBdlt]", short) or any(has(rest, each) for each in ("--orphan", "--track", "--detach")):
        return "p" in short
    if "--" in rest:
        return rest[-1] != "--"
    names = [word for word in given if word != "-"]
    is_file = len(names) == 1 and (
        re.search(r"(?<!\d)\.[a-z]{1,4}$", names[0]) or os.path.isfile(plain(judge.place(names[0])))
    )
    return len(names) > 1 or bool(is_file) or "p" in short


def git_action(judge: Judge, action: str, rest: list[str]) -> str | None:
    if MARK.search(action):
        return "what git does depends on an expansion: write it out"
    action = action.lower()
    short, force = git_options(action, rest), has(rest, "--force")
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
        "checkout": everything
        or "f" in short
        or force
        or has(rest, "--pathspec-from-file")
        or has(rest, "--patch")
        or discards_files(judge, action, rest, short),
        "switch": "f" in short or force or has(rest, "--discard-changes"),
        "restore": discards_files(judge, action, rest, short) or has(rest, "--pathspec-from-file"),
        "rm": (everything and "--cached" not in rest) or ("f" in short and "r" in short and everything),
        "stash": rest[:1] in (["clear"], ["drop"]),
        "branch": "D" in short or ("f" in short) or (force and ("d" in short or has(rest, "--delete"))),
        "tag": "d" in short or has(rest, "--delete") or "f" in short or force,
        "remote": rest[:1] in (["remove"], ["rm"], ["prune"]),
        "notes": rest[:1] in (["remove"], ["prune"]),
        "lfs": rest[:1] == ["prune"],
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


def git_clone_or_other(judge: Judge, arguments: list[str]) -> str | None:
    if arguments[:1] == ["clone"]:
        given = operands(arguments[1:])
        made = given[1] if len(given) > 1 else re.sub(r"\.git$", "", os.path.basename(given[0])) if given else ""
        judge.made = judge.made | {judge.place(made)}
    return git(judge, arguments)


# All others.


# In the names and arguments of processes.
SYSTEM_SERVICES = (
    r"(?i)\b(?:systemd\S*|init|sshd?|dbus\S*|crond?|rsyslogd?|auditd|networkmanager|dockerd?|docker-proxy|containerd\S*|kubelet"
    r"|nginx|apache2?|httpd|mysqld?|mariadbd?|postgres(?:ql)?|redis-server|mongod|rabbitmq\S*|haproxy|firewalld|ufw|fail2ban|udevd?"
    r"|journald|ntpd|chronyd|named|postfix|dovecot|snmpd|rpcbind|vsftpd|squid|memcached|tomcat\d*|etcd|agetty|snapd|polkitd)\b"
)


def kill(judge: Judge, arguments: list[str]) -> str | None:
    given = [plain(word) for word in arguments]
    if "-1" in given[1:] or given[-2:] == ["--", "-1"]:
        return "it would end every process of the user"
    if {"1", "-1"} & set(given[-1:]) or "1" in operands(given):
        return "it would end the first process of the machine"
    if MARK.search("".join(arguments)) and re.search(SYSTEM_SERVICES, judge.line):
        return "it would end a service of the machine: ask the user"
    return None


def pkill(judge: Judge, arguments: list[str]) -> str | None:
    by_user = "u" in short_options(arguments) or has(arguments, "--euid") or has(arguments, "--user")
    patterns = [word for word in operands(arguments) if not re.search(r"\w", plain(word))]
    if re.search(SYSTEM_SERVICES, " ".join(map(plain, operands(arguments)))):
        return "it would end a service of the machine: ask the user"
    return "it would end processes without a look at which" if by_user or patterns else None


def quoted_parts(text: str) -> list[str]:
    """What is in quotes in a text: `echo "DROP TABLE x" | psql`."""
    return re.findall(r"['\"]([^'\"]{5,})['\"]", text)


def sql(judge: Judge, arguments: list[str]) -> str | None:
    texts = [*arguments]
    for command in [*judge.upstream, judge.current]:
        texts += command.words
        if command.stdin and command.stdin[0] == "text":
            texts.append(command.stdin[1] or "")
    text = plain(" ".join(texts))
    if {"-readonly", "--readonly"} & set(arguments):
        return None
    if re.search(
        r"(?i)\b(?:dropDatabase|flushall|flushdb|dropIndexes|dropUser|dropAllUsers|(?:deleteMany|remove|deleteOne)\(\s*\{\s*\}"
        r"|shutdown(?:Server)?|script\s+flush|debug\s+segfault|config\s+(?:set|resetstat|rewrite)|cluster\s+reset"
        r"|(?<!/)unlink\s|slaveof\s|replicaof\s)|\.drop\(|(?:^| )del\s+\S",
        text,
    ):
        return "it would delete data in a database"
    statements = (word for word in map(plain, texts) if re.search(r"\s", word))
    if reason := first(sql_reason(statement) for text in statements for statement in [text, *quoted_parts(text)]):
        return reason
    if re.search(r"(?:^|[\s;'])\\!|(?:^|[\s'\"])\.(?:shell|system)\b|\bsystem\s", text):
        return "it makes the database client run a program"
    return None


# Ports of services with data of their own, on any machine.
DATA_PORTS = (
    r":(?:2379|5601|5984|6333|7474|7700|8001|8086|8108|8123|8200|8444|8500|8529|8983|9090|9091|9093|9200|9201|9600"
    r"|15672)\b"
)
LOCAL = r"(?i)(?:https?://)?(?:[^/@]*@)?(?:localhost|127\.[\d.]+|0\.0\.0\.0|\[?::1\]?)?(?::\d+)?(?=[/?#]|$)"
DELETING_PATH = (
    r"(?i)/(?:do)?(?:delete|purge|destroy|truncate|wipe|drop)(?:$|[/?_A-Z])|_delete_by_query|/delete_series|/clean_tombstones"
    r"|/_close\b|/(?:doKill|exit|safeExit|shutdown|quitquitquit|flush_?all|reset_?all|clear)(?:$|[/?])"
)


def http_method(judge: Judge, arguments: list[str]) -> str | None:
    """A request that deletes something on a server; a server that is developed here may be asked to."""
    given = [plain(word) for word in arguments]
    methods = {*value_of(given, "-X", "--request", "--method"), *given[:2]}
    links = [word for word in operands(given) if re.search(r"[:/.]", word)]
    is_local = all(re.match(LOCAL, link) and not re.search(DATA_PORTS, link) for link in links)
    if {"DELETE", "delete", "PURGE"} & methods and not is_local:
        return "it would delete something on a server: ask the user"
    sends = {"POST", "PUT", "post", "put"} & methods or any(re.match(r"-d|--data|--json|-F", word) for word in given)
    if sends and any(re.search(DELETING_PATH, link.split("?")[0]) for link in links):
        return "it would delete or stop something on a server: ask the user"
    return None


def download(judge: Judge, arguments: list[str]) -> str | None:
    """Keep in mind where a download is written to."""
    to = [*value_of(arguments, "-o", "--output", "--output-document", "-O")]
    links = [word for word in operands(arguments) if re.search(r"[:.]", word)]
    to += [os.path.basename(link.split("?")[0].rpartition(":")[2]) for link in links]
    reasons = [judge.write(each) for each in to if each not in ("-", "") and ("/" in each or "." in each or each in to)]
    reason = because("it writes where it should not", (why for why in reasons if why and "expansion" not in why))
    return reason or http_method(judge, arguments)


def scp(judge: Judge, arguments: list[str]) -> str | None:
    given = operands(arguments)
    if reason := text_rule("-S")(judge, arguments) or (ssh_options(arguments) if given else None):
        return reason
    if not given or re.match(r"[\w.@-]+:|scp:", given[-1]):
        return None
    got = [os.path.join(given[-1], os.path.basename(source.rpartition(":")[2])) for source in given[:-1]]
    return because("it writes where it should not", map(judge.write, [given[-1], *got]))


def rsync(judge: Judge, arguments: list[str]) -> str | None:
    given = operands(arguments)
    if "n" in short_options(arguments) or has(arguments, "--dry-run"):
        return None
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


def ssh_options(arguments: list[str]) -> str | None:
    runs = r"(?i)(?:proxycommand|localcommand|permitlocalcommand|knownhostscommand|match|include)"
    if any(re.match(runs, value) for value in value_of(arguments, "-o")):
        return "it makes ssh run another program"
    own = any(not value.startswith(("~/.ssh", "/dev/null")) for value in value_of(arguments, "-F"))
    return "settings of ssh in a file can run any program" if own else None


def ssh(judge: Judge, arguments: list[str]) -> str | None:
    words = list(arguments)
    if reason := ssh_options(arguments):
        return reason
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if re.fullmatch(r"-[bcDEeFIiJLlmOopQRSWw]", option) and words:
            words.pop(0)
    if len(words) < 2:
        return None
    if MARK.search(" ".join(words[1:])):
        return "what it runs on the other machine depends on an expansion"
    other = type(judge)("/nonexistent/project", "/nonexistent/project")
    other.depth = judge.depth + 1
    return other.text(" ".join(map(plain, words[1:])))


def docker(judge: Judge, arguments: list[str]) -> str | None:
    words = [plain(word) for word in arguments]
    text = " ".join(words)
    if re.search(
        r"\bprune\b|\b(?:volume|network|image|machine) rm\b|\b(?:rm|rmi)\b.* (?:-\w*f\w*|--force)\b|\bdown\b.* --rmi\b"
        r"|(?<!-)\b(?:down|rm)\b.* (?:-v|--volumes)\b"
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


def npx(judge: Judge, arguments: list[str]) -> str | None:
    given = operands(arguments)
    if given and re.match(r"https?:|git\+|github:|file:", given[0]):
        return "it runs code straight off the network: look at it first"
    if any(word in ("-c", "--call") for word in arguments):
        return first(judge.inside(plain(text)) for text in value_of(arguments, "-c", "--call"))
    return judge.program(given) or database_tool(judge, given)


def text_matches(pattern: str, reason: str) -> collections.abc.Callable[[Judge, list[str]], str | None]:
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


def text_rule(*options: str) -> collections.abc.Callable[[Judge, list[str]], str | None]:
    """A rule for programs that hand a text to a shell: the value of an option, or all operands."""

    def rule(judge: Judge, arguments: list[str]) -> str | None:
        joined = [word for word in arguments if options and re.fullmatch(r"-\w+c", word)]  # script -qc …
        texts = list(value_of(arguments, *options, *joined)) if options else operands(arguments)[:1]
        if any(MARK.search(text) for text in texts):
            return "it runs a text that depends on an expansion"
        return first(judge.inside(plain(text)) for text in texts) or judge.unknown(["", *arguments])

    return rule


def sort(judge: Judge, arguments: list[str]) -> str | None:
    if has(arguments, "--compress-program"):
        return "it makes sort run another program"
    return because("it writes where it should not", map(judge.write, value_of(arguments, "-o", "--output")))


def compress(judge: Judge, arguments: list[str]) -> str | None:
    """These put a file in the place of the one that they are given."""
    keeps = set(short_options(arguments)) & set("cltkV") or has(arguments, "--stdout") or has(arguments, "--keep")
    return None if keeps else because("it would take away too much", map(judge.too_much, operands(arguments)))


def patch(judge: Judge, arguments: list[str]) -> str | None:
    places = [*value_of(arguments, "-o", "-d", "-r"), *operands(arguments)[:1]]
    return because("it writes where it should not", map(judge.write, places))


def java(judge: Judge, arguments: list[str]) -> str | None:
    if "-jar" not in arguments[:-1]:
        return None
    jar, *rest = arguments[arguments.index("-jar") + 1 :]
    return service_reason(os.path.basename(jar), rest)


def alias(judge: Judge, arguments: list[str]) -> str | None:
    judge.aliases.update(
        (name, plain(text)) for name, equals, text in (word.partition("=") for word in arguments) if equals
    )
    return first(judge.inside(plain(word).partition("=")[2]) for word in arguments if "=" in word)


def source(judge: Judge, arguments: list[str]) -> str | None:
    path = (arguments or [""])[0]
    if STDIN.fullmatch(path) or MARK.search(path.rpartition("/")[2]) or PROCESS in path:
        return "it runs what another program prints, or a file that is not named: save it and check it first"
    return judge.run_file("source", path)


def editor(judge: Judge, arguments: list[str]) -> str | None:
    scripted = any(re.match(r"-c|--cmd|\+.|-S|-es|-s$|-e$", word) for word in arguments) or judge.current.stdin
    return (
        "the editor would run commands that are not checked: use the file tools" if scripted or judge.upstream else None
    )


def make(judge: Judge, arguments: list[str]) -> str | None:
    if any(word.startswith("--eval") for word in arguments) or "-" in value_of(arguments, "-f", "--file"):
        return "make would run rules that are not in a file"
    other_shell = any(re.match(r"SHELL=|\.SHELLFLAGS=", word) for word in arguments)
    return "it makes make use another shell" if other_shell else None


def crontab(judge: Judge, arguments: list[str]) -> str | None:
    return None if "l" in short_options(arguments) else "it changes jobs that run later, when nobody watches"


def words_rule(forbidden: str, reason: str) -> collections.abc.Callable[[Judge, list[str]], str | None]:
    return lambda judge, arguments: reason if set(map(plain, arguments)) & set(forbidden.split()) else None


def always(reason: str) -> collections.abc.Callable[[Judge, list[str]], str | None]:
    return lambda judge, arguments: reason


STOPS = "it would stop the machine"
ADMINISTERS = "it changes the users, packages, network or kernel of the machine: ask the user to do it"


def administers(judge: Judge, arguments: list[str]) -> str | None:
    return None if only_asks(arguments) else ADMINISTERS


# Programs that share a rule, and the rule.
RULES_OF_PROGRAMS: dict[str, collections.abc.Callable[[Judge, list[str]], str | None]] = {
    "rm shred srm wipe unlink trash": rm,
    "rimraf": lambda judge, arguments: rm(judge, ["-r", *arguments]),
    "chmod chown chgrp setfacl chattr": chmod,
    "tee truncate touch": write_to(slice(0, None)),
    "cp install": cp,
    "ln link": ln,
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
    "curl wget aria2c fetch http https xh": download,
    "scp sftp": scp,
    "nc ncat netcat socat": connect,
    "ssh": ssh,
    "docker podman docker-compose nerdctl": docker,
    "mke2fs mkswap wipefs fdisk sfdisk cfdisk gdisk sgdisk parted blkdiscard cryptsetup lvremove vgremove pvremove "
    "zpool zfs mdadm hdparm nvme badblocks diskutil swapoff umount mount losetup": disks,
    "shutdown reboot halt poweroff telinit kexec": always(STOPS),
    "init": words_rule("0 6", STOPS),
    "userdel usermod useradd groupdel passwd chpasswd visudo chsh iptables ip6tables nft ufw modprobe rmmod insmod "
    "setenforce update-alternatives firewall-cmd auditctl hwclock timedatectl hostnamectl route": administers,
    "sysctl": lambda judge, arguments: (
        ADMINISTERS if re.search(r"=|(?:^| )(?:-\w*[wp]|--(?:system|load|write))\b", " ".join(arguments)) else None
    ),
    "pacman": lambda judge, arguments: ADMINISTERS if short_options(arguments).startswith("R") else None,
    "dpkg": lambda judge, arguments: ADMINISTERS if set(short_options(arguments)) & set("rP") else None,
    "psql mysql mariadb sqlite3 mongosh mongo redis-cli valkey-cli cqlsh duckdb clickhouse-client clickhouse sqlcmd "
    "sqlplus influx cockroach pgcli mycli usql litecli snowsql": sql,
    "pg_restore mongorestore": words_rule("--clean -c --drop", "it would delete data in a database"),
    "dropdb": always("it would delete a database"),
    "dropuser": always("it would delete a database user"),
    "mysqladmin": words_rule("drop", "it would delete a database"),
    "rails rake prisma alembic sequelize knex typeorm artisan": database_tool,
    "npx bunx pnpx": npx,
    "eval": always("eval runs text as code: write the command out"),
    "source .": source,
    "trap": text_rule(),
    "alias": alias,
    "hash": lambda judge, arguments: "it gives a command another program" if "p" in short_options(arguments) else None,
    "enable": lambda judge, arguments: "it loads code into the shell" if "f" in short_options(arguments) else None,
    "test [ let printf read unset declare typeset local export": evaluates,
    "bind complete compgen fc": always("it changes what the shell runs later"),
    "su runuser sg script capsh": text_rule("-c", "--command"),
    "split": text_rule("--filter"),
    "zip": text_rule("-TT", "--unzip-command"),
    "mapfile readarray": text_rule("-C"),
    "tcpdump": text_rule("-z", "--postrotate-command"),
    "man": text_rule("-P", "--pager", "-H", "--html"),
    "xterm gnome-terminal konsole": always("what runs in another terminal is not checked: run it here"),
    "run-parts": always("it runs every file of a folder: run the one that you mean"),
    "gcc g++ cc c++ clang clang++": lambda judge, arguments: (
        "it makes the compiler run another program" if "-wrapper" in arguments else outputs(judge, arguments)
    ),
    "sort shuf": sort,
    "uniq xxd": write_to(slice(1, 2)),
    "gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd lzma compress": compress,
    "patch": patch,
    "java": java,
    "nix-shell": text_rule("--run", "--command"),
    "at batch": always("it runs commands later, when nobody watches"),
    "crontab": crontab,
    "tmux screen": always("what runs in another terminal is not checked: run it here"),
    "vim vi nvim ex view ed emacs": editor,
    "make gmake": make,
}
RULES = {program: rule for programs, rule in RULES_OF_PROGRAMS.items() for program in programs.split()}
