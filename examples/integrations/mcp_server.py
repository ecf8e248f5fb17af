"""An MCP server with a hook that blocks writing a private key, and a client of it. It needs no network."""

import asyncio
import tempfile
from pathlib import Path

from mcp import Client
from mcp.server import MCPServer

from llxprt_hooks import Config
from llxprt_hooks.integrations.mcp import HooksMiddleware

GUARD = r"""
if grep -q "PRIVATE KEY"; then
  echo "this looks like a private key" >&2
  exit 2
fi
"""


def write_file(file_path: str, content: str) -> str:
    """Write a file."""
    print(f"tool:   {file_path} was written")
    return "written"


async def main(config: Config) -> None:
    # In a project with a settings file: HooksMiddleware.load(".")
    server = MCPServer("files", middleware=[HooksMiddleware(config)])
    server.add_tool(write_file)
    async with Client(server) as client:
        for path, text in {"id_rsa": "-----BEGIN PRIVATE KEY-----", "notes.txt": "hello"}.items():
            result = await client.call_tool("write_file", {"file_path": path, "content": text})
            print(f"client: {result.content[0].text}")


with tempfile.TemporaryDirectory() as folder:
    guard = Path(folder, "guard.sh")
    guard.write_text(GUARD)
    hook = {"type": "command", "command": f"sh {guard}"}
    hooks = {"BeforeTool": [{"matcher": "write", "hooks": [hook]}]}
    asyncio.run(main(Config(working_dir=folder, enable_hooks=True, hooks=hooks)))
