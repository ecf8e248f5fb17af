"""``llxprt-hooks watch``: events as they happen, in a terminal and in a pipe."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pexpect
import pytest

from tests.support.inspector import GUARD, fire
from tests.support.processes import DEADLINE, until

if TYPE_CHECKING:
    from tests.support.cli import CliProject

SECRET = {"file_path": "a.txt", "content": "AKIA1234"}
UP, ENTER, ESCAPE, PAGE_DOWN = "\x1b[A", "\r", "\x1b", "\x1b[6~"


@pytest.fixture
def guarded(world: CliProject) -> CliProject:
    world.write(world.project_file, {"enableHooks": True, "hooks": GUARD})
    return world


@contextmanager
def watching(world: CliProject, *arguments: str, columns: int = 140) -> Iterator[pexpect.spawn[str]]:
    child = world.terminal(" ".join(["exec llxprt-hooks watch", *arguments]), columns=columns)
    child.delaybeforesend = None
    try:
        yield child
    finally:
        child.close(force=True)


def test_events_appear_one_a_line_and_enter_shows_the_details(guarded: CliProject) -> None:
    with watching(guarded) as terminal:
        terminal.expect_exact("waiting for events")
        fire(guarded, "write_file", SECRET)
        terminal.expect_exact("hook events: 2, following")
        terminal.expect(r"BeforeTool +.*write_file +.*blocked.* ms +no-secrets.*it has a key")
        terminal.expect(r"> .*AfterTool +.*write_file +.*failed.* ms +broken")
        terminal.send("k")
        terminal.expect(r"> .*BeforeTool")
        terminal.send(ENTER)
        terminal.expect_exact("exit code 2")
        terminal.expect_exact("it has a key")
        terminal.expect_exact("AKIA1234")
        terminal.send(ESCAPE)
        terminal.expect_exact("hook events: 2\x1b")
        fire(guarded, "read_file", {})
        terminal.expect_exact("hook events: 3\x1b")
        terminal.send("G")
        terminal.expect_exact("following")
        terminal.send(UP + UP + ENTER + "q" + "q")
        terminal.expect(pexpect.EOF)
        terminal.close()
        assert terminal.exitstatus == 0


def test_details_that_do_not_fit_are_scrolled(guarded: CliProject) -> None:
    fire(guarded, "write_file", {"content": [str(number) for number in range(200)]})
    with watching(guarded) as terminal:
        terminal.expect_exact("following")
        terminal.send("k" + ENTER)
        terminal.expect(r"48 of \d\d\d lines")
        terminal.send(PAGE_DOWN)
        terminal.expect(r"96 of \d\d\d lines")
        terminal.send("G")
        terminal.expect(r"(\d\d\d) of \1 lines")


def test_the_terminal_is_as_before_after_ctrl_c(guarded: CliProject) -> None:
    child = guarded.terminal("trap : INT; stty -a > before; llxprt-hooks watch; echo status $?; stty -a > after; cat")
    try:
        child.expect_exact("waiting for events")
        child.sendintr()
        child.expect_exact("status 130")
        until(lambda: (guarded.root / "after").exists() and (guarded.root / "after").read_text() != "")
        assert (guarded.root / "before").read_text() == (guarded.root / "after").read_text()
    finally:
        child.close(force=True)


def test_what_hooks_say_cannot_command_the_terminal(world: CliProject) -> None:
    rude = r"printf '\033]0;owned\007\033[2J' >&2; exit 2"
    hook = {"type": "command", "name": "rude", "command": rude}
    world.write(world.project_file, {"enableHooks": True, "hooks": {"BeforeTool": [{"hooks": [hook]}]}})
    fire(world, "a\x1b[2Jtool", {})
    with watching(world) as terminal:
        terminal.expect_exact(r"\x1b]0;owned\x07\x1b[2J")
        terminal.send(ENTER)
        terminal.expect_exact("exit code 2")
        terminal.expect_exact(r"\x1b]0;owned\x07\x1b[2J")
        assert "\x1b]0;owned" not in f"{terminal.before}{terminal.after}"


def test_a_pipe_gets_plain_lines_of_what_happens_from_now_on(guarded: CliProject) -> None:
    fire(guarded, "write_file", SECRET)
    process = guarded.start("watch")
    lines: list[str] = []
    with process:
        assert process.stdout
        reader = threading.Thread(target=lambda: lines.extend(each.decode() for each in process.stdout or ()))
        reader.start()
        try:

            def arrived() -> bool:
                fire(guarded, "write_file", SECRET)
                return len(lines) >= 3  # it may begin between the two events of a call

            until(arrived)
            process.send_signal(signal.SIGINT)
            assert process.wait(DEADLINE) == 130
        finally:
            process.kill()
            reader.join(DEADLINE)
    before, after = lines[1:3] if "AfterTool" in lines[0] else lines[:2]
    assert re.search(r"BeforeTool +write_file +blocked +[0-9.]+ ms +no-secrets +it has a key$", before)
    assert re.search(r"AfterTool +write_file +failed", after)
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("--event AfterTool", "AfterTool"),
        ("--blocked", "BeforeTool"),
        ("--failed", "AfterTool"),
        ("--hook no-secrets", "BeforeTool"),
    ],
)
def test_filters(guarded: CliProject, arguments: str, shown: str) -> None:
    fire(guarded, "write_file", SECRET)
    with watching(guarded, arguments, "-C", ".") as terminal:
        terminal.expect_exact("hook events: 1, following")
        terminal.expect(rf"> .*{shown}")
