#!/usr/bin/env python3
"""BeforeTool: what an agent must not do where nobody watches. Active in CI (the variable CI), elsewhere silent.

Blocks publishing, deploying and pushing, changes to the pipeline itself, and printing the environment, where CI keeps
its secrets. Stops a session that makes too many calls. CI_SAFETY_NET=always makes it active everywhere.
"""

import fcntl
import hashlib
import json
import os
import re
import shlex
import sys

LONGEST = 100_000  # characters of a command; a shell takes little more
MOST_CALLS = int(os.environ.get("CI_MAX_TOOL_CALLS") or 200)

# Program to the actions that are blocked; None is all of them.
LEAVES_THE_MACHINE = {
    "git": {"push", "send-email", "send-pack"},
    "gh": {"release", "pr", "workflow", "secret", "api", "repo", "auth"},
    "glab": None,
    "npm": {"publish", "unpublish", "login", "token", "deprecate", "dist-tag"},
    "yarn": {"publish", "npm"},
    "pnpm": {"publish"},
    "twine": None,
    "poetry": {"publish"},
    "uv": {"publish"},
    "hatch": {"publish"},
    "flit": {"publish"},
    "cargo": {"publish", "yank", "login"},
    "gem": {"push", "yank"},
    "mvn": {"deploy", "release:perform"},
    "docker": {"push", "login"},
    "podman": {"push", "login"},
    "helm": {"push", "install", "upgrade", "uninstall", "rollback"},
    "kubectl": {"apply", "create", "delete", "replace", "patch", "scale", "rollout", "exec", "drain", "set"},
    "terraform": {"apply", "destroy", "import", "taint"},
    "tofu": {"apply", "destroy", "import", "taint"},
    "pulumi": {"up", "destroy", "import"},
    "ansible-playbook": None,
    **dict.fromkeys(["aws", "gcloud", "az", "vercel", "netlify", "fly", "flyctl", "heroku", "wrangler"], None),
    **dict.fromkeys(["ssh", "scp", "sftp", "rsync", "nc", "ncat", "telnet", "mail", "sendmail", "sudo", "su"], None),
}
PREFIXES = {"env", "nohup", "time", "timeout", "command", "exec", "xargs", "nice", "if", "then", "do", "!", "{"}
SHELLS = {"sh", "bash", "dash", "zsh", "ksh"}
MODULES = {"twine": None, "flit": {"publish"}, "hatch": {"publish"}, "poetry": {"publish"}}

ENVIRONMENT = re.compile(
    r"\bprintenv\b|/proc/[\w$*]+/environ|\b(?:export|declare|typeset)\s+-[px]+\s*(?:$|[|;>&)])"
    r"|(?:^|[;&|(`]|\$\()\s*(?:env|set)\s*(?:$|[|;>&)])"
    r"|\b(?:echo|printf|cat\s*<<<)\b[^;&|]*\$\{?\w*(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|CREDENTIAL)",
    re.IGNORECASE | re.MULTILINE,
)
PIPELINE = re.compile(
    r"(?:^|/)(?:\.github|\.gitlab|\.circleci|\.buildkite|\.woodpecker|\.azuredevops|\.llxprt)/"
    r"|(?:^|/)(?:\.gitlab-ci\.yml|\.travis\.yml|\.drone\.yml|jenkinsfile|azure-pipelines\.yml|bitbucket-pipelines\.yml"
    r"|appveyor\.yml|codeowners|action\.ya?ml)$"
)


# A part of a command line, up to what ends a command outside of quotes; and commands inside of others.
PART = re.compile(r"(?:'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|[^;&|\n()`])+", re.DOTALL)
INSIDE = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")


def words_of(text):
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
            yield os.path.basename(words[0]), words[1:]


def leaving(text, depth=0):
    """The program and action by which something would leave the machine, or None."""
    for program, arguments in words_of(text):
        actions = [word for word in arguments if not word.startswith("-")]
        if program in SHELLS and "-c" in " ".join(arguments) and depth < 3:
            for argument in arguments:
                found = leaving(argument, depth + 1) if " " in argument else None
                if found:
                    return found
        if re.fullmatch(r"python[\d.]*|py", program) and "-m" in arguments[:-1]:
            module = arguments[arguments.index("-m") + 1]
            if module in MODULES and (MODULES[module] is None or MODULES[module] & set(actions)):
                return f"python -m {module}"
        if program in LEAVES_THE_MACHINE:
            blocked = LEAVES_THE_MACHINE[program]
            if blocked is None:
                return program
            found = blocked & set(actions[:3])
            if found:
                return f"{program} {min(found)}"
    return None


def too_many_calls(event):
    """Count the session's calls; whether this one is beyond the limit."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(cache, "llxprt-hooks", "ci-safety-net")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    name = hashlib.sha256(event["session_id"].encode("utf-8", "surrogatepass")).hexdigest()[:32]
    with os.fdopen(os.open(os.path.join(folder, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        count = int(opened.read() or 0) + 1
        opened.seek(0)
        opened.write(str(count))
    return count > MOST_CALLS


def reason_to_block(event):
    given = event["tool_input"]
    command = given.get("command")
    if isinstance(command, str):
        if len(command) > LONGEST:
            return "this command is too long to be looked at"
        found = leaving(command)
        if found:
            return f"`{found}` is not for an agent in CI: leave the result in the working tree, a step after it decides"
        if ENVIRONMENT.search(command):
            return "the environment of a CI job holds secrets and is not printed"
        written = re.findall(r">\|?\s*[\"']?([^\s\"'<>|;&]+)", command)
        if any(PIPELINE.search(os.path.normpath(path).casefold()) for path in written):
            return "the pipeline is not changed from inside the pipeline"
    path = given.get("file_path")
    if isinstance(path, str) and event["tool_name"] != "read_file":
        place = os.path.realpath(os.path.join(event["cwd"], path))
        if PIPELINE.search(place.casefold()):
            return f"{path} belongs to the pipeline, which is not changed from inside the pipeline"
    return None


def main():
    if os.environ.get("CI", "").lower() in ("", "0", "false") and os.environ.get("CI_SAFETY_NET") != "always":
        return
    event = json.loads(sys.stdin.buffer.read())
    if too_many_calls(event):
        stop = f"more than {MOST_CALLS} tool calls in one CI session: this looks like a loop"
        print(json.dumps({"continue": False, "stopReason": stop}))
        return
    reason = reason_to_block(event)
    if reason:
        print(f"CI safety net: {reason}.", file=sys.stderr)
        sys.exit(2)


main()
