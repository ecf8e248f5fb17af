"""run_shell_command with real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from llxprt_hooks.agent.tools import shell
from tests.agent.tools.calls import call, fail, pid_in, succeed
from tests.support.processes import DEADLINE, eventually, lives

if TYPE_CHECKING:
    from pathlib import Path

    from llxprt_hooks.agent.tools import Workspace

GRANDCHILD = "echo before; (sleep 1000 & echo $! > grandchild; wait) & wait"
"""A command whose child has a child."""


@pytest.mark.parametrize(
    ("command", "report"),
    [
        ("echo out", "stdout:\nout\n[exit code 0]"),
        ("echo out; echo err >&2; exit 3", "stdout:\nout\nstderr:\nerr\n[exit code 3]"),
        ("echo err >&2; exit 1", "stderr:\nerr\n[exit code 1]"),
        ("true", "[no output, exit code 0]"),
        ("printf 'no end'; kill -KILL $$", "stdout:\nno end\n[ended by signal SIGKILL]"),
        ("printf '\\n two \\n\\n'", "stdout:\n\n two \n\n[exit code 0]"),
        ("printf '\\xff'", "stdout:\n�\n[exit code 0]"),
        ("cat", "[no output, exit code 0]"),
        ("read answer || echo nothing to read", "stdout:\nnothing to read\n[exit code 0]"),
    ],
)
async def test_output_and_exit_are_reported_and_no_exit_is_an_error(
    workspace: Workspace, command: str, report: str
) -> None:
    assert await succeed(workspace, "run_shell_command", command=command) == report


async def test_the_user_and_hooks_are_told_how_it_ended(workspace: Workspace) -> None:
    result = await call(workspace, "run_shell_command", command="exit 3", description="Give up")

    assert result.return_display == "exit 3: exit code 3"
    assert result.metadata == {"exit_code": 3, "signal": None, "timed_out": False}


async def test_the_user_sees_the_command_on_one_line(workspace: Workspace) -> None:
    result = await call(workspace, "run_shell_command", command="true \x1b[2J" + "#" * 100 + "\nfalse")

    assert result.return_display == "true \\x1b[2J" + "#" * 67 + "…: exit code 1"


async def test_no_description_takes_the_place_of_the_command_and_no_character_hides_text(workspace: Workspace) -> None:
    result = await call(workspace, "run_shell_command", command="true # \u202esecret\u200b", description="List files")

    assert result.return_display == "true # \\u202esecret\\u200b: exit code 0"


async def test_a_missing_program_is_reported_by_the_shell(workspace: Workspace) -> None:
    report = await succeed(workspace, "run_shell_command", command="no-such-program-here")

    assert "not found" in report
    assert report.endswith("[exit code 127]")


async def test_it_runs_in_the_working_directory_or_the_given_folder(workspace: Workspace, root: Path) -> None:
    (root / "sub dir").mkdir()

    assert f"stdout:\n{workspace.root}\n" in await succeed(workspace, "run_shell_command", command="pwd -P")
    for folder in ("sub dir", str(root / "sub dir")):
        report = await succeed(workspace, "run_shell_command", command="pwd -P", dir_path=folder)
        assert f"stdout:\n{workspace.root}/sub dir\n" in report


async def test_it_is_bash(workspace: Workspace) -> None:
    assert "yes" in await succeed(workspace, "run_shell_command", command="[[ -n $BASH_VERSION ]] && echo yes")


async def test_it_inherits_the_environment(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLXPRT_TEST_VALUE", "inherited")

    assert "inherited" in await succeed(workspace, "run_shell_command", command="echo $LLXPRT_TEST_VALUE")


async def test_what_cannot_be_started_is_an_error(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.txt").touch()

    assert "does not exist" in await fail(workspace, "run_shell_command", command="true", dir_path="no")
    assert "is not a folder" in await fail(workspace, "run_shell_command", command="true", dir_path="a.txt")
    assert "NUL character" in await fail(workspace, "run_shell_command", command="echo \0")
    assert "larger than the system allows" in await fail(workspace, "run_shell_command", command="#" * 5_000_000)
    monkeypatch.setenv("PATH", str(root))
    assert "no such program" in await fail(workspace, "run_shell_command", command="true")


async def test_long_output_is_shown_without_its_middle(workspace: Workspace) -> None:
    command = "echo first; head -c 200000 /dev/zero | tr '\\0' x; echo; echo last; seq 100000 >&2"

    report = await succeed(workspace, "run_shell_command", command=command)

    assert report.startswith("stdout:\nfirst\nxxx")
    assert "xxx\n[131.3 KiB of output omitted.]\nxxx" in report
    assert "xxx\nlast\nstderr:\n1\n2\n" in report
    assert report.endswith("\n99999\n100000\n[exit code 0]")
    assert len(report) < 2 * shell.OUTPUT_LIMIT + 500


async def test_a_flood_is_cut(workspace: Workspace) -> None:
    report = await succeed(workspace, "run_shell_command", command="yes | head -c 30000000; echo last >&2")

    assert "\n[Truncated: there was more than 10 MiB of output.]\nstderr:\nlast\n[exit code 0]" in report
    assert len(report) < shell.OUTPUT_LIMIT + 500


async def test_out_of_time_the_whole_group_is_ended(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, limit = time.monotonic(), 1
    monkeypatch.setattr(shell, "TIME_LIMIT", limit)

    result = await shell.run_shell_command.run(workspace, {"command": GRANDCHILD})
    while not (root / "grandchild").exists():  # a busy machine needs more time to get that far
        limit *= 2
        monkeypatch.setattr(shell, "TIME_LIMIT", limit)
        result = await shell.run_shell_command.run(workspace, {"command": GRANDCHILD})

    assert time.monotonic() - started < 2 * DEADLINE
    assert result.llm_content == f"stdout:\nbefore\n[took longer than {limit} s and was killed]"
    assert result.error == {"message": f"The command took longer than {limit} s and was killed."}
    assert result.metadata is not None
    assert result.metadata["timed_out"] is True
    assert not lives(await pid_in(root / "grandchild"))


async def test_cancelled_the_whole_group_is_ended(workspace: Workspace, root: Path) -> None:
    running = asyncio.create_task(call(workspace, "run_shell_command", command=GRANDCHILD))
    grandchild = await pid_in(root / "grandchild")
    assert lives(grandchild)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert not lives(grandchild)


async def test_what_was_left_in_the_background_does_not_hold_it(workspace: Workspace, root: Path) -> None:
    started = time.monotonic()

    report = await succeed(workspace, "run_shell_command", command="sleep 1000 & echo $! > pid; echo done")

    left_behind = await pid_in(root / "pid")
    try:
        assert report == "stdout:\ndone\n[exit code 0]"
        assert time.monotonic() - started < DEADLINE
        assert lives(left_behind)
    finally:
        os.kill(left_behind, signal.SIGKILL)
        await eventually(lambda: not lives(left_behind))


def test_the_time_limit_is_two_minutes_and_shown_to_the_model() -> None:
    assert shell.TIME_LIMIT == 120
    assert "120 s" in shell.run_shell_command.description
