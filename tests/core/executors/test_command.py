"""What a hook script sees and what its ending means: stdin, environment, directory, exit code (HOOK-155)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from llxprt_hooks import HookEventName
from llxprt_hooks.core.engine.planner import HookPlanner
from llxprt_hooks.core.engine.runner import HookRunner
from llxprt_hooks.core.executors.command import CommandSpec
from llxprt_hooks.settings.definitions import HookConfig
from tests.support.hooks import EVENT_FIELDS, SUBJECTS, hook, payload, planned, registry_of, run, seen
from tests.support.processes import DEADLINE
from tests.support.replies import group

BEFORE_TOOL = HookEventName.BEFORE_TOOL
VARIABLES = ("LLXPRT_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR")


class TestStdin:
    @pytest.mark.requirement("HOOK-061", "HOOK-155", "HOOK-203", "HOOK-081")
    @pytest.mark.parametrize("event_name", HookEventName)
    async def test_a_hook_of_any_event_is_registered_run_and_given_its_payload(
        self, event_name: HookEventName, folder: Path
    ) -> None:
        registry = registry_of({event_name.value: [group("cat > stdin; echo out; echo err >&2")]})
        plan = HookPlanner(registry).create_execution_plan(event_name, SUBJECTS.get(event_name))
        assert plan is not None
        sent = payload(event_name, folder)

        [result] = await HookRunner(working_dir=lambda: str(folder)).execute_hooks_parallel(
            plan.hook_configs, event_name, sent
        )

        assert seen(folder, "stdin") == sent
        assert set(sent) == {"session_id", "cwd", "timestamp", "hook_event_name", "transcript_path"} | set(
            EVENT_FIELDS[event_name]
        )
        assert (result.success, result.stdout, result.stderr, result.event_name) == (True, "out\n", "err\n", event_name)

    @pytest.mark.requirement("HOOK-061")
    @pytest.mark.parametrize("size", [0, 1, 70_000, 3_000_000])
    async def test_stdin_is_one_json_object_and_then_ends(self, size: int, folder: Path) -> None:
        sent = payload(BEFORE_TOOL, folder, tool_input={"content": "é" * size})

        [result] = await HookRunner(working_dir=lambda: str(folder)).execute_hooks_parallel(
            [hook("cat; echo; echo end")], BEFORE_TOOL, sent
        )

        document, end = result.stdout.removesuffix("\n").split("\n")
        assert json.loads(document) == sent
        assert end == "end"

    @pytest.mark.parametrize("hooks", [1, 3])
    async def test_what_the_caller_changes_later_is_not_seen(self, hooks: int, folder: Path) -> None:
        tool_input = {"content": "as it was"}
        sent = payload(BEFORE_TOOL, folder, tool_input=tool_input)
        commands = [hook(f"cat > stdin{number}") for number in range(hooks)]

        running = asyncio.create_task(
            HookRunner(working_dir=lambda: str(folder)).execute_hooks_parallel(commands, BEFORE_TOOL, sent)
        )
        await asyncio.sleep(0)
        tool_input["content"] = "changed"
        await running

        assert [seen(folder, f"stdin{number}")["tool_input"]["content"] for number in range(hooks)] == [
            "as it was"
        ] * hooks

    @pytest.mark.requirement("HOOK-061")
    async def test_strings_that_have_no_encoding_are_still_sent(self, folder: Path) -> None:
        sent = payload(BEFORE_TOOL, folder, tool_name="\ud800", tool_input={"\udfff": "a\ud800b", "nul": "\0"})
        read = f'{sys.executable} -c \'import json, sys; print(json.load(sys.stdin)["tool_input"]["nul"] == chr(0))\''

        [result] = await HookRunner(working_dir=lambda: str(folder)).execute_hooks_parallel(
            [hook(read)], BEFORE_TOOL, sent
        )

        assert result.stdout == "True\n"

    @pytest.mark.requirement("HOOK-192")
    @pytest.mark.parametrize("close", ["exec 0<&-", "exec 0</dev/null", "head -c 10 > /dev/null; exec 0<&-", ":"])
    async def test_the_answer_of_a_hook_that_does_not_read_its_stdin_is_used(self, close: str, folder: Path) -> None:
        sent = payload(BEFORE_TOOL, folder, tool_input={"content": "x" * 5_000_000})
        command = f'{close}; sleep 0.1; echo \'{{"decision": "deny", "reason": "no"}}\'; echo note >&2'

        [result] = await HookRunner(working_dir=lambda: str(folder)).execute_hooks_parallel(
            [hook(command)], BEFORE_TOOL, sent
        )

        assert result.success
        assert result.error is None
        assert result.output is not None
        assert (result.output.decision, result.output.reason, result.stderr) == ("deny", "no", "note\n")


class TestEnvironment:
    # A shell itself sets these, or takes them away, for what it runs.
    shells_own = (b"_", b"SHLVL", b"PWD", b"OLDPWD", b"PS1", b"PS2")

    async def environment(self, directory: Path, command: str = "env -0 > env") -> dict[bytes, bytes]:
        await run(command, directory)
        entries = (directory / "env").read_bytes().removesuffix(b"\0").split(b"\0")
        return dict(entry.split(b"=", 1) for entry in entries)

    @pytest.mark.requirement("HOOK-188", "HOOK-155")
    @pytest.mark.parametrize("plain", [True, False], ids=["plain command", "command for a shell"])
    async def test_three_variables_are_the_directory_and_all_others_are_inherited(
        self, plain: bool, folder: Path, script: Callable[[str, str], str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("INHERITED", "a\nb 'c' \"d\" $e")
        monkeypatch.setenv("NO_UTF_8", os.fsdecode(b"\xff\xfe"))
        monkeypatch.setenv("EMPTY", "")
        monkeypatch.setenv("GEMINI_PROJECT_DIR", "/elsewhere")
        monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
        dump = script("dump", "#!/bin/sh\nenv -0 > env\n")

        environment = await self.environment(folder, dump if plain else f"{dump} # dump")

        expected = {**os.environb, **dict.fromkeys(map(os.fsencode, VARIABLES), os.fsencode(folder))}
        assert b"/.llxprt/sessions/" in environment.pop(b"LLXPRT_SESSION_DIR")
        for name in self.shells_own:
            environment.pop(name, None)
            expected.pop(name, None)
        assert environment == expected

    @pytest.mark.requirement("HOOK-188")
    async def test_the_directory_is_that_of_the_payload_not_that_of_the_program(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)

        environment = await self.environment(folder)

        assert {environment[os.fsencode(name)] for name in VARIABLES} == {os.fsencode(folder)}

    async def test_running_a_hook_leaves_the_programs_own_environment_alone(self, folder: Path) -> None:
        before = dict(os.environ)

        await run("true", folder)

        assert dict(os.environ) == before

    async def test_a_hook_runs_in_the_directory_of_the_payload(self, folder: Path) -> None:
        """D-18."""
        result = await run("pwd -P; touch here", folder)

        assert result.stdout == f"{folder.resolve()}\n"
        assert (folder / "here").exists()


# The table of section 35: exit code, stdout, stderr; success, output.


class TestWhatCannotBeRun:
    @pytest.mark.requirement("HOOK-195")
    async def test_a_plugin_is_registered_but_fails_when_it_is_to_run_and_its_neighbours_run(
        self, folder: Path
    ) -> None:
        plugin = {"type": "plugin", "name": "@acme/guard"}
        registry = registry_of({"BeforeTool": [{"hooks": [plugin, {"type": "command", "command": "echo neighbour"}]}]})
        plan = HookPlanner(registry).create_execution_plan(BEFORE_TOOL, "write_file")
        assert plan is not None

        for execute in (
            HookRunner(working_dir=lambda: str(folder)).execute_hooks_parallel,
            HookRunner().execute_hooks_sequential,
        ):
            failed, neighbour = await execute(plan.hook_configs, BEFORE_TOOL, payload(BEFORE_TOOL, folder))

            assert not failed.success
            assert failed.output is None
            assert "plugin" in str(failed.error)
            assert neighbour.success
            assert neighbour.stdout == "neighbour\n"

    @pytest.mark.requirement("HOOK-195")
    def test_plugins_with_different_names_are_different_hooks(self) -> None:
        plugins = [{"type": "plugin", "name": "a"}, {"type": "plugin", "name": "b"}]

        assert planned(registry_of({"BeforeTool": [{"hooks": plugins}]}), BEFORE_TOOL, "x") == ["plugin", "plugin"]

    @pytest.mark.parametrize(
        "command",
        ["no-such-program-anywhere", "/no/such/file", "./directory", "nul\0byte", "lone\ud800"],
    )
    async def test_a_command_that_cannot_be_run_is_a_failed_hook_that_says_so(self, command: str, folder: Path) -> None:
        (folder / "directory").mkdir()

        failed, neighbour = await HookRunner(working_dir=lambda: str(folder)).execute_hooks_parallel(
            [hook(command), hook("echo neighbour")], BEFORE_TOOL, payload(BEFORE_TOOL, folder)
        )

        assert not failed.success
        assert failed.error is not None
        assert failed.output is None or not failed.output.is_blocking_decision()
        assert neighbour.success

    async def test_without_hooks_there_are_no_results(self, folder: Path) -> None:
        for execute in (
            HookRunner(working_dir=lambda: str(folder)).execute_hooks_parallel,
            HookRunner().execute_hooks_sequential,
        ):
            assert await execute([], BEFORE_TOOL, payload(BEFORE_TOOL, folder)) == []

    async def test_a_result_names_its_hook(self, folder: Path) -> None:
        config = HookConfig("command", CommandSpec("true"), name="guard")

        [result] = await HookRunner(working_dir=lambda: str(folder)).execute_hooks_parallel(
            [config], BEFORE_TOOL, payload(BEFORE_TOOL, folder)
        )

        assert result.hook_config is config


IN_A_TERMINAL = """
import asyncio, fcntl, json, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
open("/dev/tty").close()  # this program has a controlling terminal

from tests.support.hooks import run
result = asyncio.run(run(sys.argv[1], sys.argv[2]))
print(json.dumps([result.success, result.stdout, result.stderr]), file=open(sys.argv[3], "w"))
"""

TERMINAL_CHECK = """
(exec 3</dev/tty) 2>/dev/null && echo 'a controlling terminal'
for stream in 0 1 2; do test -t $stream && echo "stream $stream is a terminal"; done
echo done
"""


@pytest.mark.slow
@pytest.mark.requirement("HOOK-125")
async def test_a_hook_has_no_terminal_even_where_the_program_has_one(folder: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(IN_A_TERMINAL)
    answer = tmp_path / "answer"
    ours, theirs = os.openpty()
    try:
        subprocess.run(
            [sys.executable, program, TERMINAL_CHECK, folder, answer],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            check=True,
            timeout=DEADLINE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
    finally:
        os.close(ours)
        os.close(theirs)
    without = await run(TERMINAL_CHECK, folder)

    assert json.loads(answer.read_text()) == [True, "done\n", ""]
    assert (without.success, without.stdout, without.stderr) == (True, "done\n", "")
