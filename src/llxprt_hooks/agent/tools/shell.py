"""A tool that runs shell commands."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from llxprt_hooks._support.text import escape_for_terminal, shorten
from llxprt_hooks.agent.tools.messages import ToolFailure, size
from llxprt_hooks.agent.tools.tool import ToolKind, declare
from llxprt_hooks.core.protocol.tool_result import ToolResult
from llxprt_hooks.process import Completed, SpawnError, run_process

if TYPE_CHECKING:
    from llxprt_hooks.agent.tools.workspace import Workspace

TIME_LIMIT = 120.0
"""Seconds."""

OUTPUT_LIMIT = 64 * 1024
"""Maximum bytes of each stream that are shown to the model."""

_CAPTURE_LIMIT = 10 * 1024 * 1024
"""Maximum bytes of each stream that are captured."""

_TITLE_WIDTH = 80


@declare(
    ToolKind.EXECUTE,
    "Runs a command line with `bash -c` (`sh -c` without bash) and returns its output and exit code. "
    f"Its stdin is empty. It is killed with all its children after {TIME_LIMIT:g} s.",
    command="The command line.",
    description="What the command does, in a few words for the user.",
    dir_path="The folder to run it in. Default: the working directory.",
)
async def run_shell_command(
    workspace: Workspace, command: str, description: str = "", dir_path: str = "."
) -> ToolResult:
    folder = workspace.folder(dir_path)
    try:
        completed = await run_process(
            [shutil.which("bash") or "sh", "-c", f"{workspace.shell_start()}{command}"],
            stdin=b"",
            env=workspace.environment(),
            cwd=str(folder),
            timeout=TIME_LIMIT,
            output_limit=_CAPTURE_LIMIT,
        )
    except SpawnError as error:
        raise ToolFailure(str(error)) from error
    end = _end(completed)
    title = shorten(escape_for_terminal(command.strip().partition("\n")[0]), _TITLE_WIDTH)
    return ToolResult(
        llm_content=_report(completed, end),
        return_display=f"{title}: {end}",
        metadata={"exit_code": completed.exit_code, "signal": completed.signal, "timed_out": completed.timed_out},
        error={"message": f"The command {end}."} if completed.timed_out else None,
    )


def _end(completed: Completed) -> str:
    if completed.timed_out:
        return f"took longer than {TIME_LIMIT:g} s and was killed"
    if completed.signal is not None:
        return f"ended by signal {completed.signal}"
    return "ended with unknown status" if completed.exit_code is None else f"exit code {completed.exit_code}"


def _report(completed: Completed, end: str) -> str:
    streams = {
        "stdout": _excerpt(completed.stdout, cut=completed.stdout_cut),
        "stderr": _excerpt(completed.stderr, cut=completed.stderr_cut),
    }
    sections = [f"{name}:\n{text}" for name, text in streams.items() if text]
    return "\n".join([*sections, f"[{end}]" if sections else f"[no output, {end}]"])


def _excerpt(data: bytes, *, cut: bool) -> str:
    """Decode the output. Of long output, keep the beginning and the end, where errors usually are."""
    if len(data) <= OUTPUT_LIMIT:
        return _text(data)
    if cut:
        return f"{_text(data[:OUTPUT_LIMIT])}\n[Truncated: there was more than {size(len(data))} of output.]"
    half = OUTPUT_LIMIT // 2
    omitted = len(data) - 2 * half
    return f"{_text(data[:half])}\n[{size(omitted)} of output omitted.]\n{_text(data[-half:])}"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").removesuffix("\n")
