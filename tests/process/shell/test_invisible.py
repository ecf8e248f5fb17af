"""Run directly, a hook gets the same arguments, streams and variables as through a shell, but for the shell's own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from llxprt_hooks.process import SpawnError
from tests.process.shell.programs import PROJECTS, TELL_ALL, Programs, decided, directly, through_bash

VARIABLES = ("LLXPRT_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR")

PROGRAMS = [
    # found by their path
    *("./cat", "./hook.sh", "sub/hook.sh", "sub/../hook.sh", ".//hook.sh", "./echo", "'./hook.sh'", './"hook".sh'),
    *("$LLXPRT_PROJECT_DIR/cat", "${GEMINI_PROJECT_DIR}/hook.sh", '"$CLAUDE_PROJECT_DIR"/sub/hook.sh'),
    *('"$LLXPRT_PROJECT_DIR/hook.sh"', '"${GEMINI_PROJECT_DIR}/cat"', "/bin/cat", "/usr/bin/env", "//bin/cat"),
    # found in PATH
    *("cat", "hook", "c'a't", "'with space'", "'größe'", '"größe"', "@at", "env", "sh", "cat''"),
    # of the shell's own
    *("echo", "'echo'", "if", "'if'", "[", "'['", "true", ":", ".", "time cat", "! cat", "exec cat", "command cat"),
    *("A=1 cat", "A=1", "deploy=now", "'deploy=now'", "%job", "'%job'", "-dash", "+plus", "''", "cd", "eval cat"),
    # not there, or not to be run
    *("missing", "./missing", "folder", "./folder", "./not-executable", "./no-shebang", "./empty", "./bad-shebang"),
    *("./shebang-of-a-folder", "./empty-shebang", "./not-a-program", "./hook.sh/x", "not-executable", "hook.sh"),
    *("$LLXPRT_PROJECT_DIR", "$HOME/cat", "~/cat", "./ca?", "./{cat,hook.sh}", "$(echo cat)", "\\cat", "größe"),
]

NEEDS_A_SHELL = [
    *("*", "?", "[a-z]*", "~", "{a,b}", "{1..3}", "\\ ", "\\\n", "\\a", "$HOME", "${HOME}", "$(echo x)", "`echo x`"),
    *("$((1+1))", "$$", "$1", "$", "$LLXPRT_PROJECT_DIRX", "$LLXPRT_PROJECT_DIR1", "${LLXPRT_PROJECT_DIR:-x}"),
    *("$'x'", '$"x"', '"$HOME"', '"\\$x"', '"a`echo b`"', '"a!b"', "'", '"', "(", ")", "\n", "\r", "\0", "é", "!", "#"),
    *(" ; echo x", "&& echo x", "|| echo x", " | cat", "&", ">/dev/null", "<.mark", "2>&1", " # comment", "<<<x"),
]

SETTINGS: list[tuple[str, str | None]] = [
    *(("PWD", value) for value in ("{root}/alias", "/no/such", "", None)),
    # what makes bash behave otherwise
    *(("BASH_ENV", "{root}/home/env"), ("BASH_FUNC_hook%%", "() { echo function; }"), ("SHELLOPTS", "xtrace")),
    *(("LC_ALL", "C"), ("LANG", "xx_XX.UTF-8"), ("TMOUT", "1"), ("GLOBIGNORE", "*"), ("CDPATH", "/")),
    # what bash leaves alone
    *(("a-b", "1"), ("a.b", "1"), ("é", "1"), ("1", "1"), ("empty", ""), ("lines", "a\nb"), ("bytes", "\udcff\udcfe")),
    *(("function", "() { :; }"), ("SHELL", "/bin/false"), ("TERM", "dumb"), ("UID", "7"), ("HOSTNAME", "h")),
    # where programs are looked for
    *(
        ("PATH", path)
        for path in (
            "{root}/tools/:/usr/bin:/bin",
            "{root}/other tools//:{root}/tools/.:/bin",
            "{root}/blocked:{root}/tools:/usr/bin",
            "/no/such:{root}/other tools:/bin",
            "sub:{root}/tools:/bin",
            "{root}/tools:sub:.:/bin",
            "{root}/tools::/bin",
            ":/bin",
            "~:/bin",
            "{root}/home/~:/bin",
            "",
            None,
        )
    ),
]  # fmt: skip

variables = st.sampled_from([f"${name}" for name in VARIABLES] + [f"${{{name}}}" for name in VARIABLES])
plain = st.text("ab1_./:@%+,=-", min_size=1, max_size=5)
single_quoted = st.text(' a"$`\\!*;|&\n\t#é😀~{', max_size=4).map(lambda text: f"'{text}'")
double_quoted = st.lists(st.one_of(variables, st.sampled_from([*" a'*;|&\n\t#é😀~{(<", "x"])), max_size=4).map(
    lambda pieces: f'"{"".join(pieces)}"'
)
quoted = st.one_of(plain, single_quoted, double_quoted, variables)


@st.composite
def commands(draw: st.DrawFn) -> str:
    """Mostly commands that may go either way; one in four with something that only a shell understands."""
    pieces = st.one_of(quoted, st.sampled_from(NEEDS_A_SHELL)) if draw(st.integers(0, 3)) == 0 else quoted
    words = draw(st.lists(st.lists(pieces, min_size=1, max_size=3).map("".join), max_size=4))
    blank = st.sampled_from([" ", "  ", "\t"])
    command = draw(blank).join([draw(st.sampled_from(PROGRAMS)), "--", *words, TELL_ALL])
    return draw(st.sampled_from(["", "", " ", "\t"])) + command + draw(st.sampled_from(["", "", " ", "\t "]))


environments = st.lists(st.sampled_from(SETTINGS), max_size=3, unique_by=lambda setting: setting[0]).map(dict)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.mark.slow
@pytest.mark.requirement("HOOK-155", "HOOK-188")
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(command=commands(), name=st.sampled_from(range(len(PROJECTS))), changes=environments)
def test_run_directly_a_command_is_what_it_is_through_bash(
    programs: Programs, runner: asyncio.Runner, command: str, name: int, changes: dict[str, str | None]
) -> None:
    """Argv, environment, directory, stdin, both streams, exit code, signal; or the shell is asked to begin with."""
    directory = programs.projects[name]
    environment = programs.environment(directory, changes)
    direct = decided(command, directory, environment)
    event("through the shell" if direct is None else "directly")
    if direct is None:
        return

    try:
        ending = runner.run(directly(direct, directory, environment))
    except SpawnError:
        return  # then the shell runs the command

    assert ending == runner.run(through_bash(command, directory, environment))


@pytest.mark.parametrize("name", range(len(PROJECTS)), ids=[ascii(name) for name in PROJECTS])
@pytest.mark.parametrize("program", ["./cat", "./hook.sh", "cat", "hook", '"$LLXPRT_PROJECT_DIR"/cat'])
async def test_in_a_directory_of_any_name_a_plain_command_is_run_directly_and_the_same(
    programs: Programs, program: str, name: int
) -> None:
    directory = programs.projects[name]
    environment = programs.environment(
        directory, {"SHLVL": "2", "PWD": "/", "OLDPWD": "/", "PS1": "$ ", "bytes": "\udcff"}
    )
    command = f"{program} -- a 'b c' \"$LLXPRT_PROJECT_DIR\" $GEMINI_PROJECT_DIR/x '$HOME' {TELL_ALL}"
    direct = decided(command, directory, environment)
    assert direct is not None

    assert await directly(direct, directory, environment) == await through_bash(command, directory, environment)


@pytest.mark.parametrize("setting", SETTINGS, ids=ascii)
@pytest.mark.parametrize("program", ["./cat", "hook"])
async def test_no_variable_gives_it_away(programs: Programs, program: str, setting: tuple[str, str | None]) -> None:
    directory = programs.projects[0]
    environment = programs.environment(directory, dict([setting]))
    command = f"{program} -- {TELL_ALL}"
    direct = decided(command, directory, environment)
    if direct is None:
        return

    assert await directly(direct, directory, environment) == await through_bash(command, directory, environment)
