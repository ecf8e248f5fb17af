"""Three tools run with the hooks of the project beside this file: one is blocked, one rewritten, one gets context."""

import asyncio
import os
import subprocess
import tempfile
from pathlib import Path

from llxprt_hooks import Config, ToolResult, execute_tool_with_hooks

PROJECT = Path(__file__).parent / "project"


def write_file(arguments: dict[str, str]) -> ToolResult:
    return ToolResult(llm_content=f"wrote {arguments['file_path']}")


def run_shell_command(arguments: dict[str, str]) -> ToolResult:
    with tempfile.TemporaryDirectory() as folder:  # whatever the hooks say, nothing of yours is touched
        done = subprocess.run(
            ["sh", "-c", arguments["command"]], cwd=folder, capture_output=True, text=True, check=False
        )
    return ToolResult(llm_content=done.stdout.strip())


def read_file(arguments: dict[str, str]) -> ToolResult:
    return ToolResult(llm_content=f"(the text of {arguments['file_path']})")


CALLS = [
    ("blocked by no-secrets", write_file, {"file_path": "deploy.py", "content": "KEY = 'AKIAIOSFODNN7EXAMPLE'"}),
    ("let through by no-secrets", write_file, {"file_path": "deploy.py", "content": "KEY = os.environ['KEY']"}),
    ("rewritten by dry-run", run_shell_command, {"command": "rm -rf build"}),
    ("extended by house-rules", read_file, {"file_path": "README.md"}),
]


async def main() -> None:
    # The hooks are ours, so this one process approves them; a user runs `llxprt-hooks trust` once.
    os.environ["LLXPRT_TRUST_PROJECT_HOOKS"] = "1"
    config = Config.load(PROJECT)
    for effect, tool, arguments in CALLS:
        result = await execute_tool_with_hooks(config, tool.__name__, arguments, tool)
        print(f"{effect}\n  the model asked for  {tool.__name__}({arguments})")
        print("  and was answered    ", result.llm_content.replace("\n\n", "\n" + " " * 23), "\n")


if __name__ == "__main__":
    asyncio.run(main())
