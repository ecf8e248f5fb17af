"""Which commands are started without a shell, so that they cost no shell, and which are not."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from llxprt_hooks.process.shell.direct_exec import SpawnContext
from tests.process.shell.programs import Programs, decided

# Command, and the argv that it comes to; {d} is the project's directory, {root} what is around it.
DIRECT: dict[str, tuple[str, ...]] = {
    "./hook.sh": ("./hook.sh",),
    "sub/hook.sh --strict": ("sub/hook.sh", "--strict"),
    "hook": ("hook",),
    "  hook\t a  b ": ("hook", "a", "b"),
    "cat /etc/passwd": ("cat", "/etc/passwd"),
    "/bin/cat -n": ("/bin/cat", "-n"),
    "$LLXPRT_PROJECT_DIR/hook.sh": ("{d}/hook.sh",),
    "${GEMINI_PROJECT_DIR}/hook.sh x": ("{d}/hook.sh", "x"),
    '"$CLAUDE_PROJECT_DIR"/hook.sh': ("{d}/hook.sh",),
    '"$CLAUDE_PROJECT_DIR/sub/hook.sh" "$LLXPRT_PROJECT_DIR"': ("{d}/sub/hook.sh", "{d}"),
    "hook --dir=$LLXPRT_PROJECT_DIR $GEMINI_PROJECT_DIR$CLAUDE_PROJECT_DIR": ("hook", "--dir={d}", "{d}{d}"),
    "hook 'a b' \"c d\" e\"f\"'g' '' \"\"": ("hook", "a b", "c d", "efg", "", ""),
    "hook '$HOME `x` \\ ! * \"' \"it's; a|b & <c> (d) # {e}\"": (
        "hook",
        '$HOME `x` \\ ! * "',
        "it's; a|b & <c> (d) # {{e}}",
    ),
    "hook 'two\nlines' \"größe 😀\"": ("hook", "two\nlines", "größe 😀"),
    "hook '$LLXPRT_PROJECT_DIR' \\$LLXPRT_PROJECT_DIR": ("hook", "$LLXPRT_PROJECT_DIR", "$LLXPRT_PROJECT_DIR"),
    'hook a\\ b "c\\"d" "e\\f!" a#b é': ("hook", "a b", 'c"d', "e\\f!", "a#b", "é"),
    "hook A=1 if then a=b:c,d%e@f+g": ("hook", "A=1", "if", "then", "a=b:c,d%e@f+g"),
    "'with space' x": ("with space", "x"),
    "'größe'": ("größe",),
    "./echo x": ("./echo", "x"),
    "env python3 check.py": ("env", "python3", "check.py"),
    "./bad-shebang": ("./bad-shebang",),  # the system says no, and then the shell says why
}

SHELL = [
    # operators
    *("hook; hook", "hook && hook", "hook || true", "hook | cat", "hook &", "hook > out", "hook < in", "hook 2>&1"),
    *("(hook)", "{ hook; }", "hook\n", "hook\nhook", "hook <<E\nE", "hook <<< x", "! hook"),
    # a line that goes on, perhaps in the middle of a word
    *("hook a\\\nb", "hook a \\\n b", "ho\\\nok"),
    # expansions
    *("hook $HOME", "hook ${HOME}", 'hook "$HOME"', "hook $(echo x)", "hook `echo x`", "hook $((1+1))", "hook $1"),
    *("hook ~", "hook ~/x", "hook a=~", "hook *", "hook ?", "hook [a]", "hook {a,b}", "hook $'x'", 'hook $"x"'),
    *("hook $LLXPRT_PROJECT_DIRX", "hook $LLXPRT_PROJECT_DIR1", "hook ${LLXPRT_PROJECT_DIR%/*}"),
    *("hook ${LLXPRT_PROJECT_DIR:-x}", "hook $LLXPRT_PROJECT_DI", "hook $", '"$"'),
    # quotes that are not closed, comments
    *("hook 'unclosed", 'hook "unclosed', "hook # comment"),
    # words of the shell's own, however they are written
    *("echo x", "'echo' x", 'e"ch"o x', "if", "test -f x", "'[' -f x ']'", "true", ":", ". ./hook.sh", "source x"),
    *("cd sub", "exec hook", "command hook", "builtin echo", "time hook", "eval hook", "export A", "printf x"),
    *("function", "while", "for", "kill 1", "exit 2", "coproc hook", "type hook", "pwd", "read", "set", "trap x 0"),
    # assignments, jobs, options of bash itself
    *("A=1 hook", "A=1", "A= hook", "deploy=now", "'deploy=now'", "%job", "'%job'", "-dash", "+plus", "-x hook"),
    # no program, or none that the kernel runs
    *("", "   ", "''", '""', "missing", "./missing", "/no/such/program", "folder", "./folder", "sub", "hook.sh"),
    *("./not-executable", "./no-shebang", "./empty", "./hook.sh/x", "$LLXPRT_PROJECT_DIR", "hook\0", "hook 'a\0'"),
]  # fmt: skip


def ids(commands: list[str]) -> list[str]:
    return [ascii(command) for command in commands]


@pytest.fixture(params=["plain", "with  spaces", "größe 😀"])
def directory(programs: Programs, request: pytest.FixtureRequest) -> Path:
    return programs.root / str(request.param)


@pytest.mark.parametrize("command", DIRECT, ids=ids([*DIRECT]))
def test_a_plain_program_with_literal_or_quoted_arguments_needs_no_shell(
    programs: Programs, directory: Path, command: str
) -> None:
    decision = decided(command, directory, programs.environment(directory, {}))

    assert decision is not None
    assert decision.arguments == tuple(word.format(d=directory) for word in DIRECT[command])


@pytest.mark.parametrize("command", SHELL, ids=ids(SHELL))
def test_whatever_is_not_certain_goes_to_the_shell(programs: Programs, directory: Path, command: str) -> None:
    assert decided(command, directory, programs.environment(directory, {})) is None


ENVIRONMENTS: dict[str, dict[str, str | None]] = {
    "of a login": {"SHLVL": "1", "PWD": "{root}", "OLDPWD": "/", "_": "/usr/bin/python3", "LANG": "en_GB.UTF-8"},
    "of a terminal over ssh": {"SHLVL": "1", "SSH_CLIENT": "::1 1 2", "SSH_TTY": "/dev/pts/0", "TERM": "xterm"},
    "of a service": {"SHLVL": None, "PWD": None},
    "with prompts": {"PS1": "$ ", "PS2": "> ", "PROMPT_COMMAND": "date"},
    "in the C locale": {"LC_ALL": "C"},
    "with functions of another shell": {"f": "() { :; }"},
}


@pytest.mark.parametrize("changes", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_usual_environments_take_no_shell(programs: Programs, changes: dict[str, str | None]) -> None:
    assert decided("hook", programs.projects[0], programs.environment(programs.projects[0], changes)) is not None


TELLING: dict[str, dict[str, str | None]] = {
    "a file that bash reads": {"BASH_ENV": "/dev/null"},
    "a function of that name": {"BASH_FUNC_hook%%": "() { echo function; }"},
    "a function of another name": {"BASH_FUNC_other%%": "() { echo function; }"},
    "options of bash": {"SHELLOPTS": "xtrace"},
    "more options of bash": {"BASHOPTS": "extdebug"},
}


@pytest.mark.parametrize("changes", TELLING.values(), ids=TELLING)
@pytest.mark.parametrize("program", ["hook", "./hook.sh"])
def test_where_the_environment_means_something_to_bash_it_gets_it(
    programs: Programs, program: str, changes: dict[str, str | None]
) -> None:
    assert decided(program, programs.projects[0], programs.environment(programs.projects[0], changes)) is None


# PATH, and where `hook` is found; None where that takes a shell to tell.
SEARCH_PATHS: dict[str, str | None] = {
    "{root}/tools:/bin": "{root}/tools/hook",
    "{root}/other tools:{root}/tools": "{root}/other tools/hook",
    "{root}/tools/:/bin": "{root}/tools/hook",
    "{root}/blocked:{root}/tools": "{root}/tools/hook",
    "/no/such:{root}/tools": "{root}/tools/hook",
    "{root}/tools:.": "{root}/tools/hook",
    "{root}/tools:": "{root}/tools/hook",
    ".:{root}/tools": None,
    "sub:{root}/tools": None,
    ":{root}/tools": None,
    "/bin::{root}/tools": None,
    "~/bin:{root}/tools": None,
    "{root}/blocked": None,
    "": None,
}


@pytest.mark.parametrize("path", SEARCH_PATHS)
def test_a_program_is_looked_for_where_bash_looks(programs: Programs, path: str) -> None:
    decision = decided("hook", programs.projects[0], programs.environment(programs.projects[0], {"PATH": path}))

    found = SEARCH_PATHS[path]
    expected = None if found is None else found.format(root=programs.root)
    assert (None if decision is None else decision.executable) == expected


def test_a_path_to_the_program_needs_no_search_path(programs: Programs) -> None:
    assert (
        decided("./hook.sh", programs.projects[0], programs.environment(programs.projects[0], {"PATH": None}))
        is not None
    )


def test_a_directory_that_depends_on_where_we_are_goes_to_the_shell(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(programs.projects[0])

    assert SpawnContext(os.environ, ".").direct_command("./hook.sh") is None


def test_a_name_that_no_file_can_have_is_not_an_error(programs: Programs) -> None:
    environment = programs.environment(programs.projects[0], {})

    assert SpawnContext(environment, str(programs.projects[0])).direct_command("'\ud800'") is None
    assert SpawnContext(environment, "/\0").direct_command("./hook.sh") is None


LISTS_OF_WORDS = {
    "bash": "compgen -bk",
    "ksh": "builtin",
    "zsh": "print -l ${(k)builtins} ${(k)reswords}",
}


@pytest.mark.parametrize("shell", LISTS_OF_WORDS)
def test_no_builtin_or_reserved_word_of_a_shell_is_taken_for_a_program(
    shell: str, tmp_path: Path, programs: Programs
) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    listed = subprocess.run([shell, "-c", LISTS_OF_WORDS[shell]], capture_output=True, text=True, check=True).stdout
    words = [word for word in listed.split() if "/" not in word]
    for word in words:
        shutil.copy(programs.projects[0] / "hook.sh", tmp_path / word)
    environment = programs.environment(programs.projects[0], {"PATH": str(tmp_path)})

    assert [word for word in words if decided(word, programs.projects[0], environment)] == []


def test_the_decision_is_made_once_for_a_command_and_a_directory(programs: Programs, project: Path) -> None:
    shutil.copy(programs.projects[0] / "hook.sh", project)
    environment = programs.environment(project, {})
    first = decided("./hook.sh a", project, environment)
    (project / "hook.sh").unlink()

    assert first is not None
    assert decided("./hook.sh a", project, environment) is first
