"""What changed since the decision: the shell has the words for it, and the result is the shell's."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks import HookEventName, HookExecutionResult
from llxprt_hooks.core.engine.runner import HookRunner
from llxprt_hooks.core.executors.command import CommandSpec
from llxprt_hooks.process.shell.direct_exec import SpawnContext
from llxprt_hooks.settings.definitions import HookConfig

SAY = '#!/bin/sh\necho "$0 $*"\n'


def write(file: Path, text: str = SAY, mode: int = 0o755) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)


async def run(command: str, project: Path, **fields: Any) -> HookExecutionResult:
    """Run one hook as the engine does, and forget how long it took."""
    hook = HookConfig("command", CommandSpec(command), **fields)
    payload = {"cwd": str(project), "hook_event_name": "BeforeTool", "tool_name": "x", "tool_input": {}}
    [result] = await HookRunner(working_dir=lambda: str(project)).execute_hooks_parallel(
        [hook], HookEventName.BEFORE_TOOL, payload
    )
    return replace(result, duration=0.0)


@pytest.fixture
def without_direct_execution(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Called, it sends every further hook through the shell."""
    return lambda: monkeypatch.setattr(SpawnContext, "direct_command", lambda *_: None)


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SHLVL", "1")
    monkeypatch.setenv("PATH", f"{tmp_path}/first:{tmp_path}/second:/usr/bin:/bin")
    for name in ("BASH_ENV", "ENV", "LC_ALL"):
        monkeypatch.delenv(name, raising=False)


def into_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


CHANGES: dict[str, tuple[Callable[[Path], Any], int, str]] = {
    "it is gone": (lambda file: file.unlink(), 127, "No such file or directory"),
    "it is no longer executable": (lambda file: file.chmod(0o644), 126, "Permission denied"),
    "it is a folder now": (into_a_folder, 126, "Is a directory"),
    "its folder is gone": (lambda file: shutil.rmtree(file.parent), 127, "No such file or directory"),
    "its interpreter is gone": (lambda file: file.write_text("#!/no/such/interpreter\n"), 127, "hooks/hook"),
    "its interpreter is a folder": (lambda file: file.write_text("#!/usr\n"), 126, "Permission denied"),
    "it is not a program of this system": (lambda file: file.write_bytes(b"\x7fELF\0\0"), 126, "Exec format error"),
    "it has no interpreter any more": (lambda file: file.write_text("echo plain; exit 3\n"), 3, ""),
    "it is empty": (lambda file: file.write_text(""), 0, ""),
}


@pytest.mark.requirement("HOOK-155")
@pytest.mark.parametrize("change", CHANGES)
async def test_what_changed_after_the_decision_ends_as_the_shell_ends_it(
    change: str, project: Path, without_direct_execution: Callable[[], None]
) -> None:
    make, exit_code, words = CHANGES[change]
    file = project / "hooks" / "hook"
    write(file)
    assert (await run("hooks/hook a", project)).stdout == "hooks/hook a\n"
    make(file)

    result = await run("hooks/hook a", project)

    without_direct_execution()
    assert (result.exit_code, words in result.stderr) == (exit_code, True)
    assert same(result, await run("hooks/hook a", project))


async def test_a_program_that_appears_earlier_in_the_search_path_is_the_one_that_runs(
    project: Path, tmp_path: Path
) -> None:
    write(tmp_path / "second" / "hook")
    assert (await run("hook", project)).stdout == f"{tmp_path}/second/hook \n"

    write(tmp_path / "first" / "hook")

    assert (await run("hook", project)).stdout == f"{tmp_path}/first/hook \n"


async def test_a_program_that_disappears_is_looked_for_further_on(project: Path, tmp_path: Path) -> None:
    write(tmp_path / "first" / "hook")
    write(tmp_path / "second" / "hook")
    assert (await run("hook", project)).stdout == f"{tmp_path}/first/hook \n"

    (tmp_path / "first" / "hook").unlink()

    assert (await run("hook", project)).stdout == f"{tmp_path}/second/hook \n"


async def test_a_program_that_was_not_there_is_run_once_it_is(project: Path) -> None:
    assert (await run("./hook", project)).exit_code == 127

    write(project / "hook")

    assert (await run("./hook", project)).stdout == "./hook \n"


HOOKS = {
    "allows": "#!/bin/sh\ncat\n",
    "denies": '#!/bin/sh\necho \'{"decision": "deny", "reason": "no"}\'\n',
    "blocks": "#!/bin/sh\necho 'no secrets' >&2\nexit 2\n",
    "fails": "#!/bin/sh\necho text; echo oops >&2\nexit 1\n",
    "is killed": "#!/bin/sh\necho text; kill -KILL $$\n",
    "ignores its input": "#!/bin/sh\nexec <&-; echo done\n",
    "prints no UTF-8": "#!/bin/sh\nprintf 'a\\377\\0b'\n",
    "says where it is": '#!/bin/sh\nprintf \'%s|\' "$0" "$@" "$PWD" "$SHLVL" "$LLXPRT_PROJECT_DIR"; pwd -P\n',
    "runs out of time": "#!/bin/sh\nsleep 1000\n",
    "leaves a child behind": "#!/bin/sh\n(sleep 10; echo late) &\necho text\n",
}


@pytest.mark.requirement("HOOK-155")
@pytest.mark.parametrize("kind", HOOKS)
async def test_both_ways_give_the_same_result(
    kind: str, project: Path, without_direct_execution: Callable[[], None]
) -> None:
    write(project / "hook", HOOKS[kind])
    command = "./hook \"$LLXPRT_PROJECT_DIR\" 'a b' c"
    assert SpawnContext(os.environ, str(project)).direct_command(command) is not None

    direct = await run(command, project, timeout=200.0 if kind == "runs out of time" else 60_000.0)

    without_direct_execution()
    assert same(direct, await run(command, project, timeout=direct.hook_config.timeout))


@pytest.mark.requirement("HOOK-155")
@pytest.mark.parametrize("command", ["missing-program a", "./missing", "./folder", "./plain-file", "'unclosed", "-x"])
async def test_a_program_that_cannot_be_run_is_reported_like_the_shell_does(
    command: str, project: Path, without_direct_execution: Callable[[], None]
) -> None:
    (project / "folder").mkdir()
    write(project / "plain-file", mode=0o644)

    result = await run(command, project)

    without_direct_execution()
    assert result.exit_code in (126, 127, 2)
    assert "bash" in result.stderr
    assert same(result, await run(command, project))


def same(one: HookExecutionResult, other: HookExecutionResult) -> bool:
    """Errors are equal when they say the same, outputs when their fields are."""

    def told(result: HookExecutionResult) -> HookExecutionResult:
        return replace(
            result,
            error=None if result.error is None else str(result.error),  # type: ignore[arg-type]
            output=None if result.output is None else result.output.to_dict(),  # type: ignore[arg-type]
            execution_id="",
        )

    return told(one) == told(other)
