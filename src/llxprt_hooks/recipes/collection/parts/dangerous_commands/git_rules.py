"""Rules for git."""

import os
import re

from llxprt_hooks.recipes.collection.parts.dangerous_commands.command_line import MARK, plain
from llxprt_hooks.recipes.collection.parts.dangerous_commands.program_words import (
    first,
    has,
    operands,
    short_options,
    value_of,
)

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


def git_clone_or_other(judge, arguments):
    if arguments[:1] == ["clone"]:
        given = operands(arguments[1:])
        made = given[1] if len(given) > 1 else re.sub(r"\.git$", "", os.path.basename(given[0])) if given else ""
        judge.made = judge.made | {judge.place(made)}
    return git(judge, arguments)
