"""The tools of the contract as an MCP server on standard input and output, or at a port; records what ran in a file."""

import gc
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.integrations.contract import ToolRun, Tools


class Recorded(list[ToolRun]):
    def append(self, run: ToolRun) -> None:
        with Path(sys.argv[1]).open("a") as runs:
            runs.write(json.dumps(run) + "\n")


if __name__ == "__main__":
    # Searching what the SDK imports for garbage, also at the end, would take almost half of this program's time.
    gc.disable()
    from mcp.server import MCPServer

    tools = Tools()
    tools.runs = Recorded()
    server = MCPServer("tools")
    for function in tools.functions:
        server.add_tool(function)
    if len(sys.argv) > 2:
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        server.run()
    gc.freeze()
