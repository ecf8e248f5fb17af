#!/usr/bin/env python3
"""BeforeTool: what an agent must not do where nobody watches. Active in CI (the variable CI), elsewhere silent.

Blocks publishing, deploying and pushing, changes to the pipeline itself, and printing the environment, where CI keeps
its secrets. Stops a session that makes too many calls. CI_SAFETY_NET=always makes it active everywhere.
"""

from __future__ import annotations

import collections.abc
import json
import os
import re
import shlex
import sys
import typing

from llxprt_hooks.recipes.collection.parts.call_commands import (
    MAX_COMMAND,
    NoCommand,
    command_lines,
    quoted,
)
from llxprt_hooks.recipes.collection.parts.call_paths import paths_in
from llxprt_hooks.recipes.collection.parts.fail_closed import decide
from llxprt_hooks.recipes.collection.parts.locked_file import locked_file
from llxprt_hooks.recipes.collection.parts.reading_tools import READING_TOOLS

MAX_CALLS = int(os.environ.get("CI_MAX_TOOL_CALLS") or 200)

# Programs, and their actions that are blocked; without any, all of them.
BLOCKED_ACTIONS = {
    "git": "push send-email send-pack http-push svn p4",
    "gh": "release pr workflow secret api repo auth issue gist run variable cache ssh-key gpg-key codespace",
    "npm": "publish unpublish login adduser token deprecate dist-tag owner access whoami hook",
    "yarn": "publish npm",
    "pnpm poetry uv hatch flit bun deno rye maturin pdm jsr ko wasm-pack": "publish",
    "cargo": "publish yank login owner release",
    "gem": "push yank signin owner",
    "pod conan luarocks hex mix dart flutter composer conda anaconda cpan-upload stack cabal": "push upload publish "
    "trunk hex.publish pub",
    "mvn mvnw": "deploy release:perform deploy:deploy-file nexus-staging:release jib:build",
    "lerna changeset gradle gradlew sbt vsce ovsx nx turbo rush": "publish release publishToMavenCentral jib upload "
    "publishPlugins uploadArchives",
    "docker podman buildah nerdctl": "push login manifest trust swarm stack service context",
    "dotnet nuget cf oras crane regctl ctr": "push copy append tag auth",
    "helm helmfile": "push install upgrade uninstall rollback delete sync apply destroy registry",
    "kubectl oc k3s microk8s": "apply create delete replace patch scale rollout exec drain set run edit label annotate "
    "cp port-forward attach expose autoscale cordon uncordon taint debug proxy login",
    "terraform tofu terragrunt": "apply destroy import taint untaint login state force-unlock run-all push",
    "pulumi": "up destroy import update refresh login stack state cancel",
    "firebase serverless sls cdk sam eb amplify copilot sst chalice zappa skaffold up": "deploy destroy remove publish "
    "bootstrap run release delete hosting:channel:deploy",
    "ng hexo jekyll mkdocs gh-pages mike surge": "deploy gh-deploy",
    "twine glab ansible ansible-playbook goreleaser semantic-release np skopeo cosign argocd flux hub "
    "release-it kaniko": "",
    "ansible-pull puppet chef knife salt fab cap nomad consul vault op doppler packer waypoint dagger-cloud "
    "standard-version": "",
    "aws gcloud az vercel netlify fly flyctl heroku wrangler gsutil s3cmd rclone doctl railway supabase eksctl "
    "linode-cli hcloud oci ibmcloud render aliyun azcopy mc b2 s5cmd bq gitlab-runner circleci travis": "",
    "ssh scp sftp rsync ftp lftp nc ncat netcat socat telnet mail sendmail mutt swaks sudo su doas mailx msmtp rsh "
    "rlogin mosh autossh sshpass ssh-copy-id ngrok cloudflared tailscale ssh-keygen ssh-add croc wormhole tftp "
    "smbclient pkexec runuser nsenter": "",
}
LEAVES_THE_MACHINE = {
    program: set(actions.split()) for programs, actions in BLOCKED_ACTIONS.items() for program in programs.split()
}
PREFIX_WORDS = """env nohup time timeout command exec xargs nice ionice stdbuf setsid builtin coproc busybox npx
bunx pnpx parallel watch strace script chronic unbuffer caffeinate flock taskset chrt firejail fakeroot xvfb-run
tsp entr if then do else elif while until ! {"""
PREFIXES = set(PREFIX_WORDS.split())
SHELLS = {"sh", "bash", "dash", "zsh", "ksh", "ash", "fish"}
# What a program is given as code is searched for these.
INLINE = re.compile(
    r"environ|process\.env|\bENV\b|ENVIRON|socket|urllib|requests|http|subprocess|popen|system|exec|spawn|fetch\(|%%\w*sh\b"
    r"|%%script|%sx"
)
MODULES = {"twine": None, "flit": {"publish"}, "hatch": {"publish"}, "poetry": {"publish"}}

SECRET = (
    r"\w*(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIAL|DATABASE_URL|_PAT\b|_PWD\b)\w*"
)
ENVIRONMENT = re.compile(
    rf"\bprintenv\b|/proc/[\w$*{{}}?\[\]-]+(?:/task/\S+)?/env|\bcompgen\s+-[vA]|\bjq\b[^|;&]{{0,80}}(?:[\s'\"(]env\b|\$ENV)|\bENV\[|%ENV\b|\bgetenv\b"
    r"|\bACTIONS_(?:ID_TOKEN|RUNTIME)\w*|\bextraheader\b|\bgit\s+(?:-\S+\s+)*(?:config\s+(?:\S+\s+)*(?:-l|--list)\b|credential)"
    r"|\bGITHUB_(?:ENV|PATH)\b|\bgh\s+auth\b|\bdocker\s+inspect\b|\bsystemctl\s+show-environment\b|\$\{!\w+[@*]"
    rf"|\bcompgen\s+-e|\bps\s+[\w-]*e[\w-]*w|\$\{{?!?{SECRET}"
    r"|\b(?:export|declare|typeset)\s*(?:-[px]+)?\s*(?:$|[|;>&)])"
    r"|(?:^|[;&|(`]|\$\()[^\S\n]*(?:env|set)(?:\s+(?:-0|--null|-[vi]))*\s*(?:$|[|;>&)])",
    re.IGNORECASE | re.MULTILINE,
)
PIPELINE = re.compile(
    r"(?:^|/)(?:\.github|\.gitlab|\.circleci|\.buildkite|\.woodpecker|\.azuredevops|\.azure-pipelines|\.gitea|\.forgejo"
    r"|\.harness|\.semaphore|\.teamcity|\.tekton|\.husky|\.git/hooks|\.llxprt)(?:/|$)"
    r"|(?:^|/)(?:\.gitlab-ci\.yml|\.travis\.yml|\.drone\.yml|jenkinsfile|azure-pipelines\.yml|bitbucket-pipelines\.yml"
    r"|appveyor\.yml|codeowners|action\.ya?ml)$"
)
SECRET_FILE = (
    r"(?:^|[\s@=/'\"<])\.env(?![\w.-])|/run/secrets/|/var/run/secrets/|\.git-credentials|\.docker/config\.json"
    r"|\.(?:npmrc|pypirc|netrc|pgpass|vault-token)\b|\.(?:ssh|aws|gnupg|kube|azure)/|\.config/(?:gcloud|gh)|\.git/config\b"
    r"|\bid_(?:rsa|ed25519|ecdsa)\b|_credentials/|credentials\.(?:json|toml)"
)
READERS = {"cat", "ls", "grep", "rg", "head", "tail", "less", "diff", "wc", "find", "stat", "file", "actionlint",
           "echo", "printf", "test", "[", "sort", "cut", "jq", "yq", "tree"}  # fmt: skip
GIT_READERS = {"diff", "log", "show", "status", "add", "commit", "blame", "ls-files", "grep"}


# A part of a command line, up to what ends a command outside of quotes; and commands inside of others.
PART = re.compile(r"(?:'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|[^;&|\n()`])+", re.DOTALL)
INSIDE = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")


class Refused(Exception):
    """Why a command line cannot be judged."""


def words_of(text: str) -> collections.abc.Iterator[tuple[str, list[str]]]:
    """The words of each command in a command line."""
    inner = [found.group(1) or found.group(2) or "" for found in INSIDE.finditer(text)]
    for part in [part for each in (text, *inner) for part in PART.findall(each)]:
        try:
            words = shlex.split(part, comments=True)
        except ValueError:  # a quote that ends in another part
            words = part.split()
        while words and (os.path.basename(words[0]) in PREFIXES or re.match(r"\w+=|-|\d+[smh]?$", words[0])):
            words.pop(0)
        if words:
            if re.search(r"^\$|\$[{(@*\w]|[*?{}]", words[0]) and words[0] not in ("{", "}"):
                raise Refused("which program runs depends on an expansion: write its name out")
            yield os.path.basename(words[0]), words[1:]


def leaving(text: str, depth: int = 0) -> str | None:
    """The program and action by which something would leave the machine, or None."""
    for program, arguments in words_of(text):
        if depth > 5:
            raise Refused("it is nested too deeply")
        if found := inside(program, arguments, depth) or uploads(program, arguments):
            return found
        actions = [word for word in arguments if not word.startswith("-")]
        if program == "git" and any(word.startswith("alias.") for word in arguments):
            return "git with an alias"
        if re.fullmatch(r"python[\d.]*|py", program) and "-m" in arguments[:-1]:
            module = arguments[arguments.index("-m") + 1]
            blocked_actions = MODULES.get(module, set())
            if blocked_actions is None or blocked_actions & set(actions):
                return f"python -m {module}"
        if program in LEAVES_THE_MACHINE:
            blocked = LEAVES_THE_MACHINE[program]
            if not blocked:
                return program
            named = {word.split(":")[-1] for word in actions[:4]} | set(actions[:4])
            if any("$" in word for word in actions[:1]):
                raise Refused("what it does depends on an expansion: write it out")
            if blocked & named:
                return f"{program} {min(blocked & named)}"
    return None


def inside(program: str, arguments: list[str], depth: int) -> str | None:
    """What a shell, `eval` or an interpreter is given to run."""
    if program == "eval":
        return leaving(" ".join(arguments), depth + 1) or "eval"
    if program in SHELLS:
        if any(word.startswith("<") for word in arguments) or all(word.startswith(("-", "+")) for word in arguments):
            raise Refused("a shell would run what it reads: put the commands in the call itself")
        for index, word in enumerate(arguments):
            if re.fullmatch(r"-\w*c\w*", word):
                texts = [each for each in arguments[index + 1 :] if not each.startswith("-")][:1]
                if any("$" in each for each in texts):
                    raise Refused("a shell runs a text with an expansion: write it out")
                return leaving(texts[0], depth + 1) if texts else None
    if re.fullmatch(r"(?:python|perl|ruby|node|php)[\d.]*", program):
        has_code = any(re.fullmatch(r"-\w*[cepr]|--eval|--print|-", word) for word in arguments)
        if has_code and INLINE.search(" ".join(arguments)):
            return f"{program} with code that uses the network, programs or the environment"
    if program in ("find", "fd"):
        runs = [index for index, word in enumerate(arguments) if re.fullmatch(r"-(?:exec|ok)(?:dir)?|-[xX]", word)]
        return next(filter(None, (leaving(" ".join(arguments[at + 1 :]), depth + 1) for at in runs)), None)
    if program == "docker" and "--push" in arguments:
        return "docker build --push"
    if program == "git" and any(
        re.match(r"(?:url\..*insteadof|credential\.|http\..*extraheader)", each, re.IGNORECASE) for each in arguments
    ):
        return "git with other addresses or credentials"
    if program in ("awk", "gawk") and re.search(r"ENVIRON|system\(|\|", " ".join(arguments)):
        return f"{program} with code that uses programs or the environment"
    return None


def uploads(program: str, arguments: list[str]) -> str | None:
    """Whether curl or wget would send something to another machine."""
    if program not in ("curl", "wget", "http", "https", "xh"):
        return None
    text = " ".join(arguments)
    sends = re.search(
        r"(?:^| )(?:-\w*[dFT]\b|-d\S|--data|--form|--upload|--post|--body|--json|-X ?P|--request[= ]P|--method)", text
    )
    if program in ("http", "https", "xh"):
        sends = re.search(r"\b(?:POST|PUT|PATCH)\b|\w=", text)
    hosts = re.findall(r"(?:https?://)([\w.-]+)", text) or re.findall(r"(?:^| )([\w-]+\.[\w.-]+)(?:[/: ]|$)", text)
    local = bool(hosts) and all(re.fullmatch(r"localhost|127\.[\d.]+|0\.0\.0\.0", host) for host in hosts)
    local = local or bool(re.search(r"(?:^| )localhost[:/]", text))
    return f"{program} with data" if sends and not local else None


def changes_pipeline(text: str) -> bool:
    for program, arguments in words_of(text):
        reads = program in READERS or (program == "git" and set(arguments[:2]) & GIT_READERS)
        if not reads and any(PIPELINE.search(os.path.normpath(each).casefold()) for each in arguments if each):
            return True
    written = re.findall(r">\|?\s*[\"']?([^\s\"'<>|;&]+)", text)
    return any(PIPELINE.search(os.path.normpath(path).casefold()) for path in written)


def too_many_calls(event: dict[str, typing.Any]) -> bool:
    """Count the session's calls; whether this one is beyond the limit."""
    with locked_file("ci-safety-net", event["session_id"]) as opened:
        count = int(opened.read() or 0) + 1
        opened.seek(0)
        opened.write(str(count))
    return count > MAX_CALLS


def check_command(command: str) -> str | None:
    """Why a command line is blocked, or None."""
    if len(command) > MAX_COMMAND:
        return "this command is too long to be checked"
    try:
        found = leaving(command)
    except Refused as error:
        return str(error)
    if found:
        return f"`{found}` is not allowed for an agent in CI: leave the result in the working tree for a later step"
    if ENVIRONMENT.search(command) or re.search(SECRET_FILE, command):
        return "the agent may not read the secrets of a CI job"
    return "the agent may not change the pipeline that it runs in" if changes_pipeline(command) else None


def reason_to_block(event: dict[str, typing.Any]) -> str | None:
    tool, given, folder = event["tool_name"], event["tool_input"], event["cwd"]
    try:
        lines = command_lines(tool, given)
    except NoCommand as error:
        return str(error)
    for _, line, is_python in lines:
        texts = [line]
        if is_python:  # a notebook runs what is after ! as a command
            texts = [f"python3 -c {quoted(line)}", *re.findall(r"(?m)^[ \t]*(?:\w[\w, ]*=[ \t]*)?!!?(.*)", line)]
        if reason := next(filter(None, map(check_command, texts)), None):
            return reason
    for path in paths_in(given, folder) if tool.lower() not in READING_TOOLS else ():
        place = os.path.realpath(os.path.join(folder, path))
        if PIPELINE.search(place.casefold()):
            return f"{path} belongs to the pipeline, which the agent may not change"
    return None


def main() -> str | None:
    if os.environ.get("CI", "").lower() in ("", "0", "false") and os.environ.get("CI_SAFETY_NET") != "always":
        return None
    event = json.loads(sys.stdin.buffer.read())
    if too_many_calls(event):
        stop = f"more than {MAX_CALLS} tool calls in one CI session: this looks like a loop"
        print(json.dumps({"continue": False, "stopReason": stop}))
        return None
    return reason_to_block(event)


if __name__ == "__main__":
    decide(main, "CI safety net: {}.")
