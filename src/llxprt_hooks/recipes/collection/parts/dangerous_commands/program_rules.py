"""Rules for all other programs, and which program has which rule."""

import os
import re

from llxprt_hooks.recipes.collection.parts.dangerous_commands.command_line import MARK, PROCESS, plain
from llxprt_hooks.recipes.collection.parts.dangerous_commands.file_rules import (
    awk,
    cd,
    chmod,
    cp,
    dd,
    disks,
    find,
    mkdir,
    mv,
    rm,
    sed,
    tar,
    unknown_folder,
    unzip,
    write_to,
    xargs,
)
from llxprt_hooks.recipes.collection.parts.dangerous_commands.git_rules import git_clone_or_other
from llxprt_hooks.recipes.collection.parts.dangerous_commands.program_words import (
    STDIN,
    because,
    first,
    has,
    operands,
    short_options,
    shown,
    value_of,
)


def kill(judge, arguments):
    targets = [word for word in arguments[1:] if word == "-1"] or (["-1"] if arguments[-2:] == ["--", "-1"] else [])
    return "it would end every process of the user" if targets else None


def pkill(judge, arguments):
    by_user = "u" in short_options(arguments) or has(arguments, "--euid") or has(arguments, "--user")
    patterns = [word for word in operands(arguments) if not re.search(r"\w", plain(word))]
    return "it would end processes without a look at which" if by_user or patterns else None


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


def download(judge, arguments):
    """Keep in mind where a download is written to."""
    to = [*value_of(arguments, "-o", "--output", "--output-document", "-O")]
    links = [word for word in operands(arguments) if re.search(r"[:.]", word)]
    to += [os.path.basename(link.split("?")[0].rpartition(":")[2]) for link in links]
    reasons = [judge.write(each) for each in to if each not in ("-", "") and ("/" in each or "." in each or each in to)]
    return because("it writes where it should not", (why for why in reasons if why and "expansion" not in why))


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
    other = type(judge)("/nonexistent/project", "/nonexistent/project")
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
