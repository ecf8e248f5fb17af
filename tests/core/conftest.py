"""A project of its own for every test, and real hooks, run by the real runner or through the whole engine."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import Config, HookConfig, HookEventName, HookExecutionResult
from llxprt_hooks.core.engine.runner import HookRunner
from llxprt_hooks.core.executors.command import CommandSpec

if TYPE_CHECKING:
    from tests.support.engine_project import EngineProject

RunHooks = Callable[..., Awaitable[list[HookExecutionResult]]]
MakeConfig = Callable[..., Config]


@pytest.fixture(autouse=True)
def _own_environment(own_environment: None) -> None: ...


@pytest.fixture
def folder(project: EngineProject) -> Path:
    """The directory in which the hooks run, empty at first."""
    return project.root


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str, str], str]:
    """Writes an executable script, outside the project, and returns its path."""

    def write(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    return write


@pytest.fixture
def shell_script(tmp_path: Path) -> Callable[[str], str]:
    """Write a shell script; its command line."""
    count = 0

    def write(text: str) -> str:
        nonlocal count
        count += 1
        path = tmp_path / f"hook{count}.sh"
        path.write_text(text)
        return f"sh {shlex.quote(str(path))}"

    return write


@pytest.fixture
def printing(tmp_path: Path, shell_script: Callable[[str], str]) -> Callable[..., str]:
    """A script that leaves these very bytes on its streams and ends in this way; its command line."""
    count = 0

    def write(stdout: bytes | str = b"", stderr: bytes | str = b"", then: str = "exit 0") -> str:
        nonlocal count
        count += 1
        out, err = tmp_path / f"stdout{count}", tmp_path / f"stderr{count}"
        out.write_bytes(stdout.encode() if isinstance(stdout, str) else stdout)
        err.write_bytes(stderr.encode() if isinstance(stderr, str) else stderr)
        return shell_script(f"cat {shlex.quote(str(out))}\ncat {shlex.quote(str(err))} >&2\n{then}\n")

    return write


@pytest.fixture
def run_hooks(tmp_path: Path) -> RunHooks:
    """Run command lines in parallel with the real runner; return their results in plan order."""

    async def run(
        *commands: str,
        event: HookEventName = HookEventName.BEFORE_TOOL,
        milliseconds: float = 30_000.0,
        output_limit: int = 10 * 1024 * 1024,
        cwd: Path = tmp_path,
    ) -> list[HookExecutionResult]:
        configs = [HookConfig("command", CommandSpec(command), milliseconds) for command in commands]
        runner = HookRunner(working_dir=lambda: str(cwd), output_limit=output_limit)
        return await runner.execute_hooks_parallel(configs, event, {"cwd": str(cwd), "hook_event_name": event.value})

    return run


@pytest.fixture
def run_hook(run_hooks: RunHooks) -> Callable[..., Awaitable[HookExecutionResult]]:
    """Run one command line with the real runner."""

    async def run(command: str, **options: Any) -> HookExecutionResult:
        (result,) = await run_hooks(command, **options)
        return result

    return run


@pytest.fixture
def config_with(tmp_path: Path) -> MakeConfig:
    """A configuration whose one event has these command lines as its hooks."""

    def make(event: HookEventName, *commands: str, **options: Any) -> Config:
        hooks = [{"type": "command", "command": command} for command in commands]
        return Config(enable_hooks=True, working_dir=tmp_path, hooks={event.value: [{"hooks": hooks}]}, **options)

    return make
