"""The command line as a whole: help, exit status, streams, colour, and readers who have gone."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from typing import Any

import pytest

from llxprt_hooks.cli.main import COMMANDS
from llxprt_hooks.commands.exit_status import ExitStatus
from tests.support.cli import COMMAND, ESCAPE, Call, CliProject


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command_has_an_example_that_can_be_copied(call: Call, name: str) -> None:
    run = call(name, "--help")

    _, _, examples = run.stdout.partition("Example")
    assert f"llxprt-hooks {name}" in examples
    assert (run.status, run.stderr) == (0, "")


def test_help_lists_every_command_with_a_whole_sentence(world: CliProject) -> None:
    listing = world.run("--help").stdout

    for name, does in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(does)}$", listing, re.MULTILINE)


def test_help_lists_every_exit_status_with_its_meaning(world: CliProject) -> None:
    listing = " ".join(world.run("--help").stdout.split())

    assert [status for status in ExitStatus if f" {int(status)} {status.meaning}" not in listing] == []


def test_help_loads_no_more_than_it_needs() -> None:
    """So that it comes at once: neither the engine, nor an event loop, nor a terminal library."""
    program = (
        "import sys\nfrom llxprt_hooks.cli.main import run_command_line\n"
        "status = run_command_line(['--help'])\n"
        "heavy = {'asyncio', 'msgspec', 'rich', 'google', 'llxprt_hooks.config', 'llxprt_hooks.cli.commands.run'}\n"
        "sys.exit(status or ' '.join(heavy & set(sys.modules)) or 0)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stderr) == (0, "")


def test_no_command_searches_for_garbage_while_it_starts_and_ends(world: CliProject) -> None:
    """What a command imports stays until the end. Searching through it would take up to half of its time."""
    program = (
        "import atexit, gc\nfrom llxprt_hooks.cli.main import main\n"
        "searches = []\ngc.callbacks.append(lambda phase, _: searches.append(phase))\n"
        "atexit.register(lambda: print(len(searches), gc.get_freeze_count() > 1000))\n"
        "main(['list', '--json'])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=world.root, env=world.environment(), capture_output=True, text=True
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[-1] == "0 True"


# `runpy` imports these before any code of the package runs; with `python -P` it does not look for them here either.
IMPORTED_BY_RUNPY = {
    "collections",
    "contextlib",
    "functools",
    "importlib",
    "keyword",
    "operator",
    "reprlib",
    "types",
    "warnings",
}


@pytest.mark.parametrize("options", [("-m", "llxprt_hooks"), ("-mllxprt_hooks",), ("-P", "-m", "llxprt_hooks")])
def test_the_package_imports_nothing_of_the_folder_where_it_is_run(world: CliProject, options: tuple[str, ...]) -> None:
    for name in sys.stdlib_module_names - (set() if "-P" in options else IMPORTED_BY_RUNPY):
        (world.root / f"{name}.py").write_text("import os; os.write(2, b'HOSTILE'); raise SystemExit(99)")

    ended = subprocess.run(
        [sys.executable, *options, "list"],
        cwd=world.root,
        env=world.environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (0, "")


CHECK = "import sys\nbefore = list(sys.path)\nimport llxprt_hooks\nsys.exit(before != sys.path)\n"


@pytest.mark.parametrize("arguments", [("-c", CHECK), ("-m", "other")])
def test_importing_the_package_changes_no_search_path(world: CliProject, arguments: tuple[str, str]) -> None:
    (world.root / "other").mkdir()
    (world.root / "other" / "__init__.py").write_text(CHECK)

    ended = subprocess.run([sys.executable, *arguments], cwd=world.root, capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_package_can_be_run_as_a_module(world: CliProject) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "llxprt_hooks", "list"],
        cwd=world.root,
        env=world.environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 0
    assert ended.stdout == world.run("list").stdout


def test_version_is_printed(world: CliProject) -> None:
    run = world.run("--version")

    assert run.status == 0
    assert re.search(r"\d+\.\d+\.\d+", run.stdout)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Usage: llxprt-hooks"),
        (["lits"], "No such command 'lits'. Did you mean `list`?"),
        (["xyzzy"], "No such command 'xyzzy'."),
        (["list", "--nope"], "--nope"),
        (["list", "-C", "nowhere"], "nowhere"),
        (["disable"], "NAME"),
        (["completion", "tcsh"], "tcsh"),
        (["log", "-n", "-1"], "-1"),
        (["log", "--event", "beforeModel"], "Did you mean BeforeModel?"),
    ],
)
def test_wrong_usage_is_status_64_on_stderr(call: Call, arguments: list[str], words: str) -> None:
    run = call(*arguments)

    assert run.status == 64
    assert words in run.stderr
    assert run.stdout == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_takes_a_folder(call: Call, name: str) -> None:
    run = call(name, "-C", ".", "--help")

    assert (run.status, run.stderr) == (0, "")


@pytest.mark.parametrize(
    "command",
    [
        "list",
        "list --json",
        "fire BeforeTool",
        "stats --all",
        "log --all",
        "trust --dry-run",
        "schema",
        "init --list",
        "demo",
        "--help",
    ],
)
def test_a_closed_output_pipe_is_not_reported(world: CliProject, command: str) -> None:
    world.configure(BeforeTool=[f"echo {number}" for number in range(300)])
    world.log_file.parent.mkdir(parents=True)
    line = '{"id": "1", "hook": "%s", "event_name": "BeforeTool", "duration": 1.5}\n'
    world.log_file.write_text("".join(line % ("x" * 200) for _ in range(300)))

    ended = subprocess.run(
        ["bash", "-c", f"set -o pipefail; llxprt-hooks {command} | true"],
        cwd=world.root,
        env=world.environment(LLXPRT_TRUST_PROJECT_HOOKS="1"),
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.stderr == ""
    assert ended.returncode in (0, 141)


def test_a_full_disk_is_one_sentence(world: CliProject) -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [COMMAND, "list"],
            cwd=world.root,
            env=world.environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )

    assert ended.returncode == 1
    assert ended.stderr.decode().splitlines() == ["Error: standard output: No space left on device"]


def test_closed_streams_do_not_matter(world: CliProject) -> None:
    world.configure(BeforeTool="exit 2")

    ended = subprocess.run(
        ["sh", "-c", "llxprt-hooks fire BeforeTool --json <&- >&- 2>&-"],
        cwd=world.root,
        env=world.environment(LLXPRT_TRUST_PROJECT_HOOKS="1"),
        check=False,
    )

    assert ended.returncode == 2


# Colour.


@pytest.fixture
def colourful(world: CliProject) -> CliProject:
    world.configure(BeforeTool={"name": "guard", "command": "echo no >&2; exit 2"})
    return world


@pytest.mark.parametrize("command", ["list", "fire BeforeTool"])
def test_there_is_colour_on_a_terminal(colourful: CliProject, command: str) -> None:
    assert "\x1b[1mguard\x1b[0m" in colourful.screen(f"llxprt-hooks {command}")[0]


@pytest.mark.parametrize("command", ["list", "fire BeforeTool"])
@pytest.mark.parametrize(
    ("redirection", "environment"),
    [("", {"NO_COLOR": "1"}), ("", {"TERM": "dumb"}), (" 2>&1 | cat", {})],
    ids=["NO_COLOR", "a dumb terminal", "a pipe"],
)
def test_there_is_none_elsewhere(
    colourful: CliProject, command: str, redirection: str, environment: dict[str, Any]
) -> None:
    screen, _ = colourful.screen(f"llxprt-hooks {command}{redirection}", **environment)

    assert "guard" in screen
    assert ESCAPE not in screen


def test_errors_about_files_cannot_command_the_terminal(world: CliProject) -> None:
    folder = world.root / "a\x1b[2Jb"
    folder.mkdir()
    (folder / ".llxprt").mkdir()
    (folder / ".llxprt" / "settings.json").write_text('{"hooks": {"BeforeTool": []}}')
    (folder / ".llxprt" / "settings.json").chmod(0o666)

    run = world.run("trust", "--yes", "-C", str(folder), approved=False)

    assert run.status == 1
    assert ESCAPE not in run.stdout + run.stderr
    assert r"a\x1b[2Jb" in run.stderr


@pytest.mark.parametrize("arguments", [["list"], ["fire", "BeforeTool"]])
def test_a_program_that_runs_a_command_in_its_process_keeps_its_logging(call: Call, arguments: list[str]) -> None:
    root = logging.getLogger()
    call("--version")
    before = root.level

    call(*arguments)

    assert root.level == before < logging.ERROR


def test_the_right_place_of_an_option_before_the_command_is_shown(world: CliProject) -> None:
    run = world.run("-C", "somewhere", "list")

    assert "-C goes after the command, as in: llxprt-hooks list -C somewhere" in run.stderr
    assert run.status == 64
