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

# Programs, and their actions that are blocked; without any, all of them.
BLOCKED_ACTIONS = {
    "git": "push send-email send-pack",
    "gh": "release pr workflow secret api repo auth",
    "npm": "publish unpublish login token deprecate dist-tag",
    "yarn": "publish npm",
    "pnpm poetry uv hatch flit": "publish",
    "cargo": "publish yank login",
    "gem": "push yank",
    "mvn": "deploy release:perform",
    "lerna changeset gradle gradlew sbt vsce ovsx": "publish release",
    "docker podman": "push login",
    "dotnet nuget cf oras crane": "push",
    "helm": "push install upgrade uninstall rollback",
    "kubectl": "apply create delete replace patch scale rollout exec drain set",
    "oc": "apply create delete replace patch scale rollout exec set",
    "terraform tofu": "apply destroy import taint",
    "pulumi": "up destroy import",
    "firebase serverless sls cdk sam eb": "deploy destroy remove",
    "twine glab ansible ansible-playbook goreleaser semantic-release np skopeo cosign argocd flux hub": "",
    "aws gcloud az vercel netlify fly flyctl heroku wrangler gsutil s3cmd rclone": "",
    "ssh scp sftp rsync ftp lftp nc ncat netcat socat telnet mail sendmail mutt swaks sudo su doas": "",
}
LEAVES_THE_MACHINE = {
    program: set(actions.split()) for programs, actions in BLOCKED_ACTIONS.items() for program in programs.split()
}
PREFIXES = {"env", "nohup", "time", "timeout", "command", "exec", "xargs", "nice", "ionice", "stdbuf", "setsid",
            "builtin", "coproc", "busybox", "npx", "bunx", "if", "then", "do", "else", "elif", "while", "until", "!",
            "{"}  # fmt: skip
SHELLS = {"sh", "bash", "dash", "zsh", "ksh", "ash", "fish"}
# What a program is given as code is searched for these.
INLINE = re.compile(
    r"environ|process\.env|\bENV\b|ENVIRON|socket|urllib|requests|http|subprocess|popen|system|exec|fetch\("
)
MODULES = {"twine": None, "flit": {"publish"}, "hatch": {"publish"}, "poetry": {"publish"}}

SECRET = r"\w*(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_?KEY|CREDENTIAL)\w*"
ENVIRONMENT = re.compile(
    rf"\bprintenv\b|/proc/[\w$*{{}}]+/environ|\bcompgen\s+-e|\bps\s+[\w-]*e[\w-]*w|\$\{{?!?{SECRET}"
    r"|\b(?:export|declare|typeset)\s*(?:-[px]+)?\s*(?:$|[|;>&)])"
    r"|(?:^|[;&|(`]|\$\()\s*(?:env|set)(?:\s+(?:-0|--null|-[vi]))*\s*(?:$|[|;>&)])",
    re.IGNORECASE | re.MULTILINE,
)
PIPELINE = re.compile(
    r"(?:^|/)(?:\.github|\.gitlab|\.circleci|\.buildkite|\.woodpecker|\.azuredevops|\.llxprt)(?:/|$)"
    r"|(?:^|/)(?:\.gitlab-ci\.yml|\.travis\.yml|\.drone\.yml|jenkinsfile|azure-pipelines\.yml|bitbucket-pipelines\.yml"
    r"|appveyor\.yml|codeowners|action\.ya?ml)$"
)
SECRET_FILE = (
    r"(?:^|[\s@=/'\"<])\.env(?![\w.-])|/run/secrets/|/var/run/secrets/|\.git-credentials|\.docker/config\.json"
)
READERS = {"cat", "ls", "grep", "rg", "head", "tail", "less", "diff", "wc", "find", "stat", "file", "actionlint",
           "echo", "printf", "test", "[", "sort", "cut", "jq", "yq", "tree"}  # fmt: skip
GIT_READERS = {"diff", "log", "show", "status", "add", "commit", "blame", "ls-files", "grep"}

# In lower case. All other tools count as tools that write.
READING_TOOLS = {"read_file", "read_many_files", "list_directory", "glob", "search_file_content", "grep_search", "read",
                 "view", "view_file", "list_files", "list_dir", "ls", "grep", "search_files"}  # fmt: skip
# Tools that run commands, by their names: the matcher of dangerous-commands.
SHELL_TOOL = re.compile(
    r"(^|[^a-zA-Z]|(?=[A-Z]))([Pp]ower|[Rr]un|[Ee]xec|[Ss]hell)?([Ss]hell|[Bb]ash|[Zz]sh|[Ss]h|[Tt]erminal|[Cc]ommands?"
    r"|[Cc]mds?|[Ss]ubprocess|[Ee]xec|([Rr]un|[Ee]xecute|[Ss]tart)[_-]?([Ss]cript|[Pp]rogram|[Pp]rocess)"
    r"|i?[Pp]ython(3|[_-]?([Rr]epl|REPL|ast|[Cc]ode|[Ii]nterpreter|[Ss]cript))*$)(tool|line)?(?![a-z])"
    r"|(^|__)([Rr]un|[Ee]xecute)$"
)


# A part of a command line, up to what ends a command outside of quotes; and commands inside of others.
PART = re.compile(r"(?:'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|[^;&|\n()`])+", re.DOTALL)
INSIDE = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")


class Refused(Exception):
    """Why a command line cannot be judged."""


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
            if re.search(r"^\$|\$[{(@*\w]|[*?{}]", words[0]) and words[0] not in ("{", "}"):
                raise Refused("which program runs depends on an expansion: write its name out")
            yield os.path.basename(words[0]), words[1:]


def leaving(text, depth=0):
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
            if module in MODULES and (MODULES[module] is None or MODULES[module] & set(actions)):
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


def inside(program, arguments, depth):
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
    if program in ("awk", "gawk") and re.search(r"ENVIRON|system\(|\|", " ".join(arguments)):
        return f"{program} with code that uses programs or the environment"
    return None


def uploads(program, arguments):
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
    local = hosts and all(re.fullmatch(r"localhost|127\.[\d.]+|0\.0\.0\.0", host) for host in hosts)
    local = local or re.search(r"(?:^| )localhost[:/]", text)
    return f"{program} with data" if sends and not local else None


def changes_pipeline(text):
    for program, arguments in words_of(text):
        reads = program in READERS or (program == "git" and set(arguments[:2]) & GIT_READERS)
        if not reads and any(PIPELINE.search(os.path.normpath(each).casefold()) for each in arguments if each):
            return True
    written = re.findall(r">\|?\s*[\"']?([^\s\"'<>|;&]+)", text)
    return any(PIPELINE.search(os.path.normpath(path).casefold()) for path in written)


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


# Where the command of a call is. This part is the same in all recipes that check commands.


def plain_name(name):
    return name.lower().replace("_", "").replace("-", "")


def plain_names(text):
    return {plain_name(name) for name in text.split()}


# In every tool, arguments with these names hold a command. In a tool that runs commands, those in SHELL_NAMES do too.
COMMAND_NAMES = plain_names("command commands cmd cmds command_line cmdline shell_command bash_command argv")
SHELL_NAMES = COMMAND_NAMES | plain_names("script scripts code input args arguments")
# If a tool that runs commands has no argument with such a name, all texts are checked, except those in NOT_COMMANDS.
NOT_COMMANDS = plain_names("name filter limit cols columns rows")
# These are checked only if there is no other text.
HARDLY_COMMANDS = plain_names(
    "description explanation reason purpose thought title summary comment note cwd workdir working_dir "
    "working_directory directory dir_path folder shell language env timeout timeout_ms id pid session_id bash_id "
    "shell_id terminal_id"
)
# Tools that only read, such as read_terminal and BashOutput, do not run their texts.
ONLY_READS = re.compile(r"(^|__)(([Gg]et|[Rr]ead|[Ll]ist|[Rr]esize)(_|[A-Z])|[A-Za-z][a-z]*Output$)")
LINE_NAMES = plain_names("commands cmds scripts")  # a list with such a name has a command in each item
PROGRAM_NAMES, REST_NAMES = plain_names("command cmd program executable"), plain_names("args arguments argv params")
PYTHON_TOOL = r"[Pp]ython(3|[_-]?([Rr]epl|REPL|ast|[Cc]ode|[Ii]nterpreter|[Ss]cript))*$"
FOLDERS = plain_names("dir_path directory cwd workdir working_dir working_directory folder")


class NoCommand(Exception):
    """Why the arguments of a tool that runs commands cannot be checked."""


def is_python(tool):
    """Whether the texts of a tool are Python code."""
    return "ython" in tool and bool(re.search(PYTHON_TOOL, tool))


def quoted(word):
    return "'" + word.replace("'", "'\\''") + "'"


def line_of(words):
    """A list as one command line. What a shell would expand stays so: the tool may join the list for a shell."""
    is_plain = re.compile(r"[^\s'\"\\;&|<>()`#]+|&&|\|\|?|;|[<>]+").fullmatch
    return " ".join(word if is_plain(word) else quoted(word) for word in words)


def readings(value, name=""):
    """What a text, or a list of texts, may be as a command: a list is a program with its arguments, or lines."""
    if isinstance(value, str):
        return [value] if value.strip() else []
    if not isinstance(value, list) or any(isinstance(each, (dict, list)) for each in value):
        return []
    words = [str(each) for each in value if each is not None and str(each).strip()]
    if not words or not any(isinstance(each, str) for each in value):
        return []
    if re.search(r"\s", words[0].strip()):
        return ["\n".join(words)]
    return [*(["\n".join(words)] if name in LINE_NAMES else ()), line_of(words)]


def texts_in(value, wanted, path=("",)):
    """The names and texts of the arguments that are wanted. `path` has the names that lead to a value."""
    if lines := readings(value, path[-1]):
        yield from ((path[-1], line) for line in lines if wanted(path))
    elif isinstance(value, list):
        for inner in value:
            yield from texts_in(inner, wanted, path)
    elif isinstance(value, dict):
        named = [((*path, plain_name(name)), inner) for name, inner in value.items()]
        # {"command": "bash", "args": ["-c", "…"]} is one command line.
        starts = [(at, inner) for at, inner in named if at[-1] in PROGRAM_NAMES and readings(inner)]
        ends = [(at, inner) for at, inner in named if at[-1] in REST_NAMES and readings(inner)]
        joined = [*starts, *ends] if starts and ends and any(wanted(at) for at, _ in starts + ends) else []
        for start in starts if joined else ():
            yield start[0][-1], " ".join(readings(inner)[0] for _, inner in (start, *ends))
        for at, inner in named:
            if (at, inner) not in joined:
                yield from texts_in(inner, wanted, at)


def json_in(given):
    """The values of texts that are JSON: some tools take all their arguments as one text."""
    for _, text in texts_in(given, lambda path: True):
        if text.lstrip().startswith(("{", "[")):
            try:
                yield json.loads(text)
            except ValueError:
                continue


def numbers_in(given):
    """The names of arguments that should hold a command and hold a number."""
    for name, value in given.items():
        if isinstance(value, dict):
            yield from numbers_in(value)
        elif type(value) in (int, float) and plain_name(name) in COMMAND_NAMES:
            yield name


def command_lines(tool, given, is_shell=True):
    """The command lines in the arguments of a call, each with the name of its argument."""
    if is_shell and (numbers := list(numbers_in(given))):
        raise NoCommand(f"`{numbers[0]}` is a number, so it cannot be checked as a command")
    named = list(texts_in(given, lambda path: path[-1] in COMMAND_NAMES))
    if not is_shell or (not named and ONLY_READS.search(tool)):
        return named
    everything = [given, {"commands": list(json_in(given))}]
    for wanted in (
        lambda path: path[-1] in SHELL_NAMES,
        lambda path: path[-1] not in NOT_COMMANDS and HARDLY_COMMANDS.isdisjoint(path),
        lambda path: path[-1] not in NOT_COMMANDS,
    ):
        if found := list(texts_in(everything, wanted)):
            return found
    return []


def folder_of(given, folder):
    """Where a command runs."""
    places = [value for name, value in given.items() if plain_name(name) in FOLDERS and isinstance(value, str)]
    return os.path.normpath(os.path.join(folder, *map(os.path.expanduser, places[:1])))


# The end of the part that is the same.


# Where the paths of a call are. This part is the same in all recipes that check paths.

# The ends of names of arguments that hold a path, in lower case and without _ and -.
PATH_NAMES = ("path", "paths", "file", "files", "filename", "filenames", "dir", "directory", "folder", "uri", "uris",
              "source", "src", "destination", "dest", "dst", "target", "include", "notebook", "document")  # fmt: skip
# If a tool has no argument with such a name, texts that may be a path are checked, except these.
NOT_PATHS = ("content", "contents", "text", "body", "string", "str", "code", "command", "cmd", "description", "message",
             "prompt", "query", "pattern", "question", "reason", "title", "url")  # fmt: skip


def named_texts(value, name=""):
    """Every text in the arguments, with the name of its argument."""
    if isinstance(value, str):
        yield name.lower().replace("_", "").replace("-", ""), value
    elif isinstance(value, list):
        for inner in value:
            yield from named_texts(inner, name)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from named_texts(inner, key)


def is_path(text, folder):
    """Whether the text of an argument whose name does not say so may be a path: it has a slash, or the file exists."""
    return ("/" in text and not re.search(r"\s", text)) or os.path.lexists(os.path.join(folder, text))


def paths_in(given, folder):
    """The paths in the arguments of a call."""
    texts = [(name, text.strip()) for name, text in named_texts(given) if text.strip()]
    # A web address is not a path, unless a tool may shorten it to one: http://../.env
    texts = [(name, text) for name, text in texts if not re.match(r"(?is)https?://(?!.*\.\.)", text)]
    named = [text for name, text in texts if name.endswith(PATH_NAMES)]
    if not named:
        named = [text for name, text in texts if not name.endswith(NOT_PATHS) and is_path(text, folder)]
    return named + [text for _, text in texts if text.startswith("file://")]


# The end of the part that is the same.


def check_command(command):
    """Why a command line is blocked, or None."""
    if len(command) > LONGEST:
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


def reason_to_block(event):
    tool, given, folder = event["tool_name"], event["tool_input"], event["cwd"]
    try:
        lines = command_lines(tool, given, bool(SHELL_TOOL.search(tool)))
    except NoCommand as error:
        return str(error)
    for _, line in lines:
        if reason := check_command(f"python3 -c {quoted(line)}" if is_python(tool) else line):
            return reason
    for path in paths_in(given, folder) if tool.lower() not in READING_TOOLS else ():
        place = os.path.realpath(os.path.join(folder, re.sub(r"^file://", "", path)))
        if PIPELINE.search(place.casefold()):
            return f"{path} belongs to the pipeline, which the agent may not change"
    return None


def main():
    if os.environ.get("CI", "").lower() in ("", "0", "false") and os.environ.get("CI_SAFETY_NET") != "always":
        return None
    event = json.loads(sys.stdin.buffer.read())
    if too_many_calls(event):
        stop = f"more than {MOST_CALLS} tool calls in one CI session: this looks like a loop"
        print(json.dumps({"continue": False, "stopReason": stop}))
        return None
    return reason_to_block(event)


def decide():
    """Exit code 2 blocks, whatever goes wrong on the way."""
    try:
        reason = main()
    except BaseException as error:
        reason = f"this call cannot be checked ({type(error).__name__})"
    if reason:
        sys.stderr.buffer.write(f"CI safety net: {reason}.\n".encode("utf-8", "backslashreplace"))
        sys.exit(2)


if __name__ == "__main__":
    decide()
