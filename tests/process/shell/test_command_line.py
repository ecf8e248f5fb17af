"""The project directory in commands: one word whatever its name is, and never shell code (D-22)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llxprt_hooks.process.shell.command_line import expand_command
from tests.support.hooks import run

VARIABLES = ("LLXPRT_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR")
SHELLS = ("bash", "dash" if shutil.which("dash") else "sh")

MOST_HOSTILE_NAMES = [
    "with spaces in it",
    "\ntouch pwned\n",
    "$(touch pwned)",
    "`touch pwned`",
    "' ; touch pwned; '",
    '"; touch pwned; "',
    "?[a-z]*",
    "-rf",
    "back\\slash\\",
    os.fsdecode(b"\xff\xfe not UTF-8"),
]
HOSTILE_NAMES = [
    *MOST_HOSTILE_NAMES,
    "plain",
    " leading and trailing ",
    "tab\tbed",
    "new\nline",
    "ending in a newline\n",
    "carriage\rreturn",
    ";touch pwned",
    ";rm -rf *",
    "&& touch pwned",
    "| touch pwned",
    "& touch pwned",
    "(touch pwned)",
    "<pwned >pwned",
    "it's",
    'say "hi"',
    "*",
    "{a,b}",
    "--",
    "-n -e",
    "#comment",
    " # comment",
    "~",
    "!history",
    "a=b",
    "$HOME",
    "${PATH}",
    "$LLXPRT_PROJECT_DIR",
    "\\",
    "%s%n",
    "größe 😀",
]

WORST = "a b  *?[a-z] $(touch pwned)`touch pwned`;touch pwned & 'x' \"y\" \\ {a,b} # -rf\n<pwned>ü😀 ~"


def ids(texts: list[str]) -> list[str]:
    return [ascii(text) for text in texts]


@pytest.fixture
def hostile_directory(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A directory of the parametrised name, in a directory of its own, with a file for wildcards to find."""
    directory: Path = tmp_path / "around" / request.param
    directory.mkdir(parents=True)
    (directory / "a").touch()
    return directory


def shell_output(shell: str, directory: Path, *arguments: str) -> str:
    """What a shell prints that runs in the directory, with the variables as a hook has them."""
    environment = {**os.environ, **dict.fromkeys(VARIABLES, str(directory))}
    completed = subprocess.run([shell, *arguments], cwd=directory, env=environment, capture_output=True, check=False)
    assert completed.stderr == b""
    return os.fsdecode(completed.stdout)


def assert_nothing_was_executed(directory: Path) -> None:
    assert [path.name for path in directory.parent.iterdir()] == [directory.name]
    assert [path.name for path in directory.iterdir()] == ["a"]


Expected = Callable[[str], str]

WORDS = "printf '%s|'"

# Command, and what it prints for a directory; `W` stands for a command that prints each of its words and a bar.
COMMANDS: list[tuple[str, Expected]] = [
    # Outside quotes: exactly one word.
    ("W $LLXPRT_PROJECT_DIR", lambda d: f"{d}|"),
    ("W $GEMINI_PROJECT_DIR", lambda d: f"{d}|"),
    ("W $CLAUDE_PROJECT_DIR", lambda d: f"{d}|"),
    ("W ${LLXPRT_PROJECT_DIR}", lambda d: f"{d}|"),
    ("W ${GEMINI_PROJECT_DIR}", lambda d: f"{d}|"),
    ("W ${CLAUDE_PROJECT_DIR}", lambda d: f"{d}|"),
    ("W $CLAUDE_PROJECT_DIR/x y", lambda d: f"{d}/x|y|"),
    ("W ${LLXPRT_PROJECT_DIR}X", lambda d: f"{d}X|"),
    ("W --dir=$LLXPRT_PROJECT_DIR.", lambda d: f"--dir={d}.|"),
    ("W $LLXPRT_PROJECT_DIR$GEMINI_PROJECT_DIR", lambda d: f"{d}{d}|"),
    ("W $LLXPRT_PROJECT_DIR $GEMINI_PROJECT_DIR", lambda d: f"{d}|{d}|"),
    ("W a$LLXPRT_PROJECT_DIR\\ b", lambda d: f"a{d} b|"),
    ("W \\\\$LLXPRT_PROJECT_DIR", lambda d: f"\\{d}|"),
    ("W '<'$LLXPRT_PROJECT_DIR'>'", lambda d: f"<{d}>|"),
    ('W "<"$LLXPRT_PROJECT_DIR">"', lambda d: f"<{d}>|"),
    ("W it\\'s $LLXPRT_PROJECT_DIR it\\'s", lambda d: f"it's|{d}|it's|"),
    ('W \\"$LLXPRT_PROJECT_DIR\\"', lambda d: f'"{d}"|'),
    ("W \"it's\" $LLXPRT_PROJECT_DIR '\"'", lambda d: f"it's|{d}|\"|"),
    ("x=$LLXPRT_PROJECT_DIR; W \"$x\"", lambda d: f"{d}|"),
    ("export x=$LLXPRT_PROJECT_DIR; W \"$x\"", lambda d: f"{d}|"),
    ("for x in $LLXPRT_PROJECT_DIR; do W \"$x\"; done", lambda d: f"{d}|"),
    ("[ -d $LLXPRT_PROJECT_DIR ] && W yes", lambda _: "yes|"),
    ("cd / && cd -- $LLXPRT_PROJECT_DIR && W \"$PWD\"", lambda d: f"{d}|"),
    ("case $LLXPRT_PROJECT_DIR in $LLXPRT_PROJECT_DIR) W $LLXPRT_PROJECT_DIR;; esac", lambda d: f"{d}|"),
    ("f() { W \"$@\"; }; f $LLXPRT_PROJECT_DIR end", lambda d: f"{d}|end|"),
    ("(W $LLXPRT_PROJECT_DIR; (W $LLXPRT_PROJECT_DIR))", lambda d: f"{d}|{d}|"),
    ("{ W $LLXPRT_PROJECT_DIR; }", lambda d: f"{d}|"),
    ("W $LLXPRT_PROJECT_DIR|cat", lambda d: f"{d}|"),
    ("W $LLXPRT_PROJECT_DIR&&W $LLXPRT_PROJECT_DIR;W $LLXPRT_PROJECT_DIR", lambda d: f"{d}|{d}|{d}|"),
    ("if true; then W $LLXPRT_PROJECT_DIR; fi", lambda d: f"{d}|"),
    ("W ${UNSET:-$LLXPRT_PROJECT_DIR}", lambda d: f"{d}|"),
    ("W ${UNSET:-it\\'s$LLXPRT_PROJECT_DIR}", lambda d: f"it's{d}|"),
    ("sh -c 'W \"$1\"' sh $LLXPRT_PROJECT_DIR".replace("'W", "'printf \"%s|\""), lambda d: f"{d}|"),
    # Inside double quotes: as the shell has it.
    ('W "$LLXPRT_PROJECT_DIR"', lambda d: f"{d}|"),
    ('W "a ${GEMINI_PROJECT_DIR} b"', lambda d: f"a {d} b|"),
    ("W \"it's $LLXPRT_PROJECT_DIR\"", lambda d: f"it's {d}|"),
    ('W "\\"$LLXPRT_PROJECT_DIR\\""', lambda d: f'"{d}"|'),
    ('W "\\\\$LLXPRT_PROJECT_DIR"', lambda d: f"\\{d}|"),
    ('W "${UNSET:-$LLXPRT_PROJECT_DIR}"', lambda d: f"{d}|"),
    ("W \"# $LLXPRT_PROJECT_DIR\" $LLXPRT_PROJECT_DIR", lambda d: f"# {d}|{d}|"),
    ('W "$LLXPRT_PROJECT_DIR"\'$LLXPRT_PROJECT_DIR\'$LLXPRT_PROJECT_DIR', lambda d: f"{d}$LLXPRT_PROJECT_DIR{d}|"),
    # Inside single quotes, escaped, or another variable: left alone.
    ("W '$LLXPRT_PROJECT_DIR'", lambda _: "$LLXPRT_PROJECT_DIR|"),
    ("W '${CLAUDE_PROJECT_DIR}/\"$GEMINI_PROJECT_DIR\"'", lambda _: '${CLAUDE_PROJECT_DIR}/"$GEMINI_PROJECT_DIR"|'),
    ("W '\\' $LLXPRT_PROJECT_DIR", lambda d: f"\\|{d}|"),
    ("W \\$LLXPRT_PROJECT_DIR", lambda _: "$LLXPRT_PROJECT_DIR|"),
    ("W \\\\\\$LLXPRT_PROJECT_DIR", lambda _: "\\$LLXPRT_PROJECT_DIR|"),
    ('W "\\$LLXPRT_PROJECT_DIR"', lambda _: "$LLXPRT_PROJECT_DIR|"),
    ("LLXPRT_PROJECT_DIRX=other; W $LLXPRT_PROJECT_DIRX", lambda _: "other|"),
    ("LLXPRT_PROJECT_DIR_2=other; W ${LLXPRT_PROJECT_DIR_2}", lambda _: "other|"),
    ("W [$LLXPRT_PROJECT_DIR1]", lambda _: "[]|"),
    ("x=$$LLXPRT_PROJECT_DIR; W \"${x#$$}\"", lambda _: "LLXPRT_PROJECT_DIR|"),
    ("x=$$$LLXPRT_PROJECT_DIR; W \"${x#$$}\"", lambda d: f"{d}|"),
    # In commands within: as outside.
    ('W "$(printf \'<%s>\' $LLXPRT_PROJECT_DIR)"', lambda d: f"<{d}>|"),
    ('W "$(printf "<%s>" "$(printf "<%s>" $LLXPRT_PROJECT_DIR)")"', lambda d: f"<<{d}>>|"),
    ("W \"$( # don't\nprintf '<%s>' $LLXPRT_PROJECT_DIR)\"", lambda d: f"<{d}>|"),
    ('W "${UNSET:-$(printf \'<%s>\' $LLXPRT_PROJECT_DIR)}"', lambda d: f"<{d}>|"),
    ("W \"`printf '<%s>' $LLXPRT_PROJECT_DIR`\"", lambda d: f"<{d}>|"),
    ("W \"`printf '<%s>' \\$LLXPRT_PROJECT_DIR`\"", lambda d: f"<{d}>|"),
    ("W \"`printf '<%s>' \\\\$LLXPRT_PROJECT_DIR`\"", lambda _: "<$LLXPRT_PROJECT_DIR>|"),
    ("W \"`printf '<%s>' \\\"$LLXPRT_PROJECT_DIR\\\"`\"", lambda d: f"<{d}>|"),
    ("W \"`printf '<%s>' '$LLXPRT_PROJECT_DIR'`\"", lambda _: "<$LLXPRT_PROJECT_DIR>|"),
    ("W \"`printf '<%s>' \\`printf x\\` $LLXPRT_PROJECT_DIR`\"", lambda d: f"<x><{d}>|"),
    ("W `printf x` $LLXPRT_PROJECT_DIR", lambda d: f"x|{d}|"),
    # Here-documents: the shell expands there without splitting, unless the delimiter is quoted.
    ("cat <<EOF\n<$LLXPRT_PROJECT_DIR>\nEOF\nW $LLXPRT_PROJECT_DIR", lambda d: f"<{d}>\n{d}|"),
    ("cat <<EOF; W $LLXPRT_PROJECT_DIR\nit's \"\nEOF\nW $LLXPRT_PROJECT_DIR", lambda d: f"it's \"\n{d}|{d}|"),
    ("cat <<-EOF\n\t<$LLXPRT_PROJECT_DIR>\n\tEOF\nW $LLXPRT_PROJECT_DIR", lambda d: f"<{d}>\n{d}|"),
    ("cat <<'EOF'\n$LLXPRT_PROJECT_DIR '\nEOF\nW $LLXPRT_PROJECT_DIR", lambda d: f"$LLXPRT_PROJECT_DIR '\n{d}|"),
    ("cat <<\"E F\"\n$LLXPRT_PROJECT_DIR\nE F\nW $LLXPRT_PROJECT_DIR", lambda d: f"$LLXPRT_PROJECT_DIR\n{d}|"),
    ("cat <<\\EOF\n$LLXPRT_PROJECT_DIR\nEOF\nW $LLXPRT_PROJECT_DIR", lambda d: f"$LLXPRT_PROJECT_DIR\n{d}|"),
    ("cat <<E'O'F\n$LLXPRT_PROJECT_DIR\nEOF\nW $LLXPRT_PROJECT_DIR", lambda d: f"$LLXPRT_PROJECT_DIR\n{d}|"),
    ("cat <<A - <<B\n'\nA\n\"$LLXPRT_PROJECT_DIR\"\nB\nW $LLXPRT_PROJECT_DIR", lambda d: f'"{d}"\n{d}|'),
    ("cat <<EOF\n{\"a\": \"$(printf '<%s>' $LLXPRT_PROJECT_DIR)\"}\nEOF", lambda d: f'{{"a": "<{d}>"}}\n'),
    ("cat <<EOF\n`printf '<%s>' $LLXPRT_PROJECT_DIR`\nEOF", lambda d: f"<{d}>\n"),
    ("cat <<EOF\n\\$LLXPRT_PROJECT_DIR \\\\$LLXPRT_PROJECT_DIR\nEOF", lambda d: f"$LLXPRT_PROJECT_DIR \\{d}\n"),
    ("W \"$(cat <<EOF\nit's $LLXPRT_PROJECT_DIR.\nEOF\nW $LLXPRT_PROJECT_DIR)\"", lambda d: f"it's {d}.\n{d}||"),
    # Comments and other text that only looks like quoting.
    ("# don't\nW $LLXPRT_PROJECT_DIR", lambda d: f"{d}|"),
    ("W $LLXPRT_PROJECT_DIR # don't \"\nW $LLXPRT_PROJECT_DIR", lambda d: f"{d}|{d}|"),
    ("(true)# don't\nW $LLXPRT_PROJECT_DIR", lambda d: f"{d}|"),
    ("W a#b's $LLXPRT_PROJECT_DIR'", lambda _: "a#bs $LLXPRT_PROJECT_DIR|"),
    ("W My\\ #1 $LLXPRT_PROJECT_DIR", lambda d: f"My #1|{d}|"),
    ("W $(echo x)#1 $LLXPRT_PROJECT_DIR", lambda d: f"x#1|{d}|"),
    ("W ${#UNSET} $LLXPRT_PROJECT_DIR", lambda d: f"0|{d}|"),
    ("W $((1<<2)) $LLXPRT_PROJECT_DIR\nW $LLXPRT_PROJECT_DIR", lambda d: f"4|{d}|{d}|"),
    ("W $(( (1<<2) + 1 ))\nW $LLXPRT_PROJECT_DIR", lambda d: f"5|{d}|"),
]  # fmt: skip

BASH_COMMANDS: list[tuple[str, Expected]] = [
    ("W $'it\\'s' $LLXPRT_PROJECT_DIR", lambda d: f"it's|{d}|"),
    ("W $'$LLXPRT_PROJECT_DIR'", lambda _: "$LLXPRT_PROJECT_DIR|"),
    ("W \"$'\" $LLXPRT_PROJECT_DIR", lambda d: f"$'|{d}|"),
    ('W $"a $LLXPRT_PROJECT_DIR"', lambda d: f"a {d}|"),
    ("[[ -d $LLXPRT_PROJECT_DIR ]] && W yes", lambda _: "yes|"),
    ("[[ $LLXPRT_PROJECT_DIR == $LLXPRT_PROJECT_DIR ]] && W yes", lambda _: "yes|"),
    ("x=(1 $LLXPRT_PROJECT_DIR); W \"${x[@]}\"", lambda d: f"1|{d}|"),
    ("cat <<<$LLXPRT_PROJECT_DIR", lambda d: f"{d}\n"),
    ("cat <<< $LLXPRT_PROJECT_DIR; W $LLXPRT_PROJECT_DIR", lambda d: f"{d}\n{d}|"),
    ("W {$LLXPRT_PROJECT_DIR,b}", lambda d: f"{d}|b|"),
    ("cat <(W $LLXPRT_PROJECT_DIR)", lambda d: f"{d}|"),
    ("((x = 1 << 2))\nW $x $LLXPRT_PROJECT_DIR", lambda d: f"4|{d}|"),
]  # fmt: skip

CASES = [(shell, *case) for shell in SHELLS for case in COMMANDS] + [("bash", *case) for case in BASH_COMMANDS]


def command_line(short: str) -> str:
    return re.sub(r"\bW ", lambda _: f"{WORDS} ", short)


@pytest.mark.requirement("HOOK-188")
@pytest.mark.parametrize("hostile_directory", [WORST], indirect=True, ids=["worst name"])
@pytest.mark.parametrize(("shell", "short", "expected"), CASES, ids=[f"{case[0]} {case[1]!r}" for case in CASES])
def test_a_command_sees_the_directory_as_the_shell_does_but_never_split(
    hostile_directory: Path, shell: str, short: str, expected: Expected
) -> None:
    printed = shell_output(shell, hostile_directory, "-c", expand_command(command_line(short)))

    assert printed == expected(str(hostile_directory))
    assert_nothing_was_executed(hostile_directory)


@pytest.mark.requirement("HOOK-188")
@pytest.mark.parametrize("hostile_directory", MOST_HOSTILE_NAMES, indirect=True, ids=ids(MOST_HOSTILE_NAMES))
@pytest.mark.parametrize("shell", SHELLS)
def test_no_directory_name_breaks_any_of_the_commands(hostile_directory: Path, shell: str) -> None:
    """Each command in a subshell of one process: there are two thousand pairs."""
    cases = [case[1:] for case in CASES if case[0] == shell]
    each = 'for command; do (eval "$command"); printf "\\1"; done'

    printed = shell_output(
        shell, hostile_directory, "-c", each, shell, *(expand_command(command_line(c)) for c, _ in cases)
    )

    expected = {short: expect(str(hostile_directory)) for short, expect in cases}
    assert dict(zip(expected, printed.split("\1")[:-1], strict=True)) == expected
    assert_nothing_was_executed(hostile_directory)


@pytest.mark.requirement("HOOK-188", "HOOK-155")
@pytest.mark.parametrize("hostile_directory", [*HOSTILE_NAMES, WORST], indirect=True, ids=ids([*HOSTILE_NAMES, WORST]))
@pytest.mark.parametrize("shell_needed", ["", " # it's"], ids=["plain command", "command for a shell"])
async def test_a_hook_that_lives_in_the_directory_is_found_and_told_where_it_is(
    hostile_directory: Path, shell_needed: str
) -> None:
    script = hostile_directory / "a"
    script.write_text('#!/bin/sh\nprintf \'%s\\0\' "$@" "$LLXPRT_PROJECT_DIR" "$PWD"\n')
    script.chmod(0o755)
    arguments = "1 $LLXPRT_PROJECT_DIR 2 ${GEMINI_PROJECT_DIR} 3 \"$CLAUDE_PROJECT_DIR\" 4 '$LLXPRT_PROJECT_DIR'"

    result = await run(f"$LLXPRT_PROJECT_DIR/a {arguments}{shell_needed}", hostile_directory)

    d = os.fsencode(hostile_directory).decode("utf-8", "replace")
    assert result.success
    assert result.stdout.split("\0")[:-1] == ["1", d, "2", d, "3", d, "4", "$LLXPRT_PROJECT_DIR", d, d]
    assert_nothing_was_executed(hostile_directory)


UNTOUCHED = [
    "",
    "check",
    "python3 check.py --strict 'a b' \"$HOME\" $HOME `date` $(date)",
    "echo LLXPRT_PROJECT_DIR",
    "$LLXPRT_PROJECT_DIRX/check $LLXPRT_PROJECT $llxprt_project_dir $OLDPWD",
    "cat <<EOF\nit's\nEOF\n# don't",
    "unclosed ' \" $( ` ${",
    "trailing \\",
    "\ttabs \r\n and ünïcode \ud800",
    "'$LLXPRT_PROJECT_DIR' \\$GEMINI_PROJECT_DIR",
    '"$LLXPRT_PROJECT_DIR/check" "${CLAUDE_PROJECT_DIR}"',
]


@pytest.mark.parametrize("command", UNTOUCHED)
def test_a_command_that_needs_nothing_is_passed_on_as_it_is(command: str) -> None:
    assert expand_command(command) == command


FRAGMENTS = [
    *(f"${name}" for name in VARIABLES),
    *(f"${{{name}}}" for name in VARIABLES),
    *("$(", "${", "$((", "((", "<<E\n", "\nE\n", "<<'E'\n", "$'", "$$"),
    *"\\'\"`(){}#<>|&;$ \n\tax",
]


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join))
def test_whatever_the_text_is_nothing_but_double_quotes_is_ever_added(command: str) -> None:
    expanded = expand_command(command)

    # After `>&` bash expands a file name twice, so it is written the other way round.
    assert expanded.replace('"', "").replace("&>", ">&") == command.replace('"', "").replace("&>", ">&")
    assert (len(expanded) - len(command)) % 2 == 0


@given(st.text(st.characters()).filter(lambda text: "_PROJECT_DIR" not in text))
def test_a_command_without_the_variables_is_passed_on_byte_for_byte(command: str) -> None:
    assert expand_command(command) == command


class Writer:
    """Writes random shell commands around the variables, of all the ways of quoting, to a given depth."""

    texts = ("a", "/", "-x", "é", "=", ".", "*", "?", "~", "[", "]", "!", "%", "1", "_", "X", "#", ",")
    escapes = ("\\'", '\\"', "\\\\", "\\$", "\\ ", "\\#", "\\`", "\\(")
    in_single = (" ", '"', "\\", "`", "$(", ")", "\n", "<<E", " # ", "{")
    in_double = (" ", "'", '\\"', "\\\\", "\\`", "(", ")", " # ", "\n", "<<E", "$'", "&")
    in_document = (" ", "'", '"', "\\\\", "\\`", "(", ")", "#", "\n")

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def one_of(self, *ways: Callable[[], str]) -> str:
        return self.draw(st.sampled_from(ways))()

    def text(self, *more: str) -> str:
        return self.draw(st.sampled_from([*self.texts, *more]))

    def variable(self) -> str:
        name = self.draw(st.sampled_from(VARIABLES))
        return self.draw(st.sampled_from([f"${name}", f"${{{name}}}"]))

    def escaped_variable(self) -> str:
        return "\\" + self.variable()

    def several(self, *ways: Callable[[], str], most: int = 4) -> str:
        return "".join(self.one_of(*ways) for _ in range(self.draw(st.integers(1, most))))

    def single_quoted(self) -> str:
        return "'" + self.several(self.variable, lambda: self.text(*self.in_single)) + "'"

    def double_quoted(self, depth: int) -> str:
        ways = [self.variable, self.escaped_variable, lambda: self.text(*self.in_double)]
        ways.append(lambda: f"${{UNSET:-{self.variable()}}}")
        if depth:
            ways += [lambda: f"$( {self.command(depth - 1)}\n)", lambda: self.back_quoted(depth - 1, '"')]
        return '"' + self.several(*ways) + '"'

    def back_quoted(self, depth: int, escaped: str = "") -> str:
        return "`" + re.sub(rf"([\\`{escaped}])", r"\\\1", self.command(depth)) + "`"

    def word(self, depth: int) -> str:
        return self.several(
            self.variable,
            self.variable,
            self.escaped_variable,
            lambda: self.text(*self.escapes),
            self.single_quoted,
            lambda: self.double_quoted(depth),
        )

    def words(self, depth: int) -> str:
        return " ".join(self.word(depth) for _ in range(self.draw(st.integers(1, 3))))

    def document(self, depth: int) -> str:
        ways = [self.variable, self.escaped_variable, lambda: self.text(*self.in_document)]
        if depth:
            ways += [lambda: f"$( {self.command(depth - 1)}\n)", lambda: self.back_quoted(depth - 1)]
        delimiter = self.draw(st.sampled_from(["E{}", "'E{}'", '"E{}"', "\\E{}", 'E"{}"'])).format(depth)
        return f"cat <<{delimiter}; {WORDS} {self.words(0)}\n{self.several(*ways)}\nE{depth}\n{WORDS} {self.words(0)}"

    def command(self, depth: int) -> str:
        return self.one_of(
            lambda: f"{WORDS} {self.words(depth)}",
            lambda: f"{WORDS} {self.words(depth)} # it's \" ` ( $LLXPRT_PROJECT_DIR\n{WORDS} {self.words(depth)}",
            lambda: f"({WORDS} {self.words(depth)})",
            lambda: f'for x in {self.words(depth)}; do {WORDS} "$x"; done',
            lambda: f'x={self.word(depth)}; {WORDS} "$x" $((1<<3))\n{WORDS} {self.word(depth)}',
            lambda: self.document(depth),
        )


@st.composite
def commands(draw: st.DrawFn) -> str:
    return Writer(draw).command(draw(st.integers(0, 2)))


@pytest.mark.slow
@pytest.mark.requirement("HOOK-188")
@pytest.mark.parametrize("shell", SHELLS)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(lines=st.lists(commands(), min_size=1, max_size=12))
def test_the_name_of_the_directory_makes_no_difference_to_any_command(
    tmp_path_factory: pytest.TempPathFactory, shell: str, lines: list[str]
) -> None:
    """What a command prints for a harmless name, which no shell splits, it prints for any name: that name."""
    harmless = "/some/where"
    hostile = f"/some/{WORST}"
    directory = tmp_path_factory.mktemp("around") / "d"
    directory.mkdir()
    (directory / "a").touch()
    each = 'for command; do (eval "$command") 2>/dev/null; printf "\\1%s\\2" $?; done'

    def printed(value: str, lines: list[str]) -> list[str]:
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **dict.fromkeys(VARIABLES, value)}
        argv = [shell, "-c", each, shell, *lines]
        return subprocess.run(
            argv, cwd=directory, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=True
        ).stdout.decode().split("\2")  # fmt: skip

    as_written = printed(harmless, lines)
    as_run = printed(hostile, [expand_command(line) for line in lines])

    assert len(as_written) == len(as_run) == len(lines) + 1
    for line, harmless_output, hostile_output in zip(lines, as_written[:-1], as_run[:-1], strict=True):
        if harmless_output.endswith("\0010"):  # a command that the shell takes
            assert hostile_output == harmless_output.replace(harmless, hostile), json.dumps(line)
    assert_nothing_was_executed(directory)


async def test_where_there_is_no_bash_sh_runs_the_hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "sh").write_text(f'#!/bin/sh\necho used > {tmp_path}/sh\nexec /bin/sh "$@"\n')
    (programs / "sh").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    directory = tmp_path / "with spaces"
    directory.mkdir()

    result = await run("printf '%s|' $LLXPRT_PROJECT_DIR", directory)

    assert result.stdout == f"{directory}|"
    assert (tmp_path / "sh").read_text() == "used\n"


@pytest.mark.requirement("HOOK-188")
@pytest.mark.parametrize(
    "command",
    [
        'echo x >& "$LLXPRT_PROJECT_DIR/log"',
        "echo x >&$LLXPRT_PROJECT_DIR/log",
        'echo x 1>& "${GEMINI_PROJECT_DIR}/log"',
        'echo x >& pre"$CLAUDE_PROJECT_DIR/log" || echo x >& "$LLXPRT_PROJECT_DIR/log"',
    ],
)
async def test_a_file_name_that_bash_would_read_twice_is_read_once(command: str, tmp_path: Path) -> None:
    project = tmp_path / "a$(touch pwned)b"
    project.mkdir()
    await run(command, project)

    assert [file.name for file in project.iterdir()] == ["log"]
    assert (project / "log").read_text() == "x\n"
