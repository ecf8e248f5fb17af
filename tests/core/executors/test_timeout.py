"""A hook has its time; when that is over its whole process group is ended (HOOK-117 to 120, D-18)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import HookEventName
from llxprt_hooks.core.engine.runner import HookRunner
from llxprt_hooks.core.executors import command as command_module
from llxprt_hooks.process import Completed, run_child
from tests.support.hooks import handler_of, hook, payload, run

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.results import HookExecutionResult

BEFORE_TOOL = HookEventName.BEFORE_TOOL


async def run_until(begun: list[str], command: str, project: Path) -> tuple[HookExecutionResult, float]:
    """Run a hook that writes files when it has begun, and then outlasts its timeout, which is returned too."""
    timeout = 500.0
    while True:
        result = await run(command, project, timeout=timeout)
        if all((project / name).exists() for name in begun):
            return result, timeout
        for name in [*begun, "asked"]:
            (project / name).unlink(missing_ok=True)
        timeout *= 2  # the machine was too busy


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# Notes that it was asked to end, and ends; so does its child.
ASKED_TO_END = """
sh -c 'trap "echo child >> asked; exit" TERM; echo $$ > child-pid; while :; do sleep 0.02; done' &
trap 'wait; echo parent >> asked; exit {code}' TERM
echo $$ > pid
{before}
while :; do sleep 0.02; done
"""


class TestTimeIsOver:
    @pytest.mark.requirement("HOOK-117", "HOOK-119", "HOOK-155")
    async def test_the_hook_and_its_children_get_sigterm_and_the_hook_has_failed(self, folder: Path) -> None:
        command = ASKED_TO_END.format(before="", code=0)

        result, timeout = await run_until(["pid", "child-pid"], command, folder)

        assert sorted((folder / "asked").read_text().split()) == ["child", "parent"]
        assert not is_alive(int((folder / "pid").read_text()))
        assert not is_alive(int((folder / "child-pid").read_text()))
        assert not result.success
        assert result.output is None
        assert f"after {timeout:g} ms" in str(result.error)

    @pytest.mark.requirement("HOOK-119")
    async def test_a_chain_continues_after_a_hook_out_of_time(self, folder: Path) -> None:
        hooks = [hook("sleep 30", timeout=100), hook("touch after")]

        results = await HookRunner(working_dir=lambda: str(folder)).execute_hooks_sequential(
            hooks, BEFORE_TOOL, payload(BEFORE_TOOL, folder)
        )

        assert [result.success for result in results] == [False, True]
        assert (folder / "after").exists()


@pytest.mark.requirement("HOOK-120")
@pytest.mark.parametrize(("fields", "seconds"), [({}, 60.0), ({"timeout": 1_500}, 1.5)])
async def test_a_hook_has_sixty_seconds_unless_its_settings_say_otherwise(
    fields: dict[str, Any], seconds: float, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []

    async def noted(*arguments: Any, **options: Any) -> Completed:
        given.append(options["timeout"])
        return await run_child(*arguments, **options)

    monkeypatch.setattr(command_module, "run_child", noted)
    entry = {"type": "command", "command": "true", **fields}
    handler = await handler_of({"BeforeTool": [{"hooks": [entry]}]}, folder)

    result = await handler.fire_before_tool_event("write_file", {})

    assert result.success
    assert given == [seconds]


class TestTheEndOfAHook:
    """D-18."""
