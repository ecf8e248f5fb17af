"""An agent of the Claude Agent SDK with two hooks. It needs no key and no network.

One hook blocks writing a private key, the other removes phone numbers from what the model is sent. The SDK's own
program runs, with a scripted API on this machine.
"""

import asyncio
import json
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

from llxprt_hooks import Config
from llxprt_hooks.integrations.claude_agent_sdk import hooked
from llxprt_hooks.model import resolve_translator

GUARD = r"""
if grep -q "PRIVATE KEY"; then
  echo "this looks like a private key" >&2
  exit 2
fi
"""
REDACT = """
import json, sys

request = json.load(sys.stdin)["llm_request"]
for message in request["messages"]:
    message["content"] = message["content"].replace("555-1234", "[number]")
print(json.dumps({"hookSpecificOutput": {"llm_request": {"messages": request["messages"]}}}))
"""


def call(number: int, file: Path, content: str) -> dict[str, object]:
    arguments = {"file_path": str(file), "content": content}
    return {"type": "tool_use", "id": f"call_{number}", "name": "Write", "input": arguments}


class Api(BaseHTTPRequestHandler):
    """The Messages API of a model that writes two files, then says that it is done."""

    answers: ClassVar[list[list[dict[str, object]]]] = []
    requests: ClassVar[list[dict[str, object]]] = []

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.requests.append(request)
        content = self.answers.pop(0) if self.answers else [{"type": "text", "text": "I did what I was allowed to."}]
        answer = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": content}
        reason = "tool_use" if self.answers else "end_turn"
        wire = resolve_translator("anthropic-messages").wire
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.writelines(wire.write({**answer, "stop_reason": reason, "usage": {"input_tokens": 1}}))

    def log_message(self, *_: object) -> None:
        pass


async def main(folder: Path, url: str) -> None:
    guard, redact = folder / "guard.sh", folder / "redact.py"
    guard.write_text(GUARD)
    redact.write_text(REDACT)
    write = {"matcher": "^Write$", "hooks": [{"type": "command", "command": f"sh {guard}"}]}
    request = {"hooks": [{"type": "command", "command": f"{sys.executable} {redact}"}]}
    config = Config(working_dir=folder, enable_hooks=True, hooks={"BeforeTool": [write], "BeforeModel": [request]})

    # Only for the scripted API: a program of yours has its key, and passes cwd.
    env = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "unused", "HOME": str(folder)}
    env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] = "1"
    options = ClaudeAgentOptions(cwd=folder, env=env, allowed_tools=["Write"], setting_sources=[])

    # In a project with a settings file: hooked(options)
    async with hooked(options, config) as options:
        async for message in query(prompt="Write my files. My number is 555-1234.", options=options):
            if isinstance(message, ResultMessage):
                print(f"agent: {message.result}")


with tempfile.TemporaryDirectory() as name, HTTPServer(("127.0.0.1", 0), Api) as api:
    folder = Path(name).resolve()
    key, notes = call(1, folder / "id_rsa", "-----BEGIN PRIVATE KEY-----"), call(2, folder / "notes.txt", "hello")
    Api.answers = [[key, notes], [{"type": "text", "text": "I did what I was allowed to."}]]
    threading.Thread(target=api.serve_forever, daemon=True).start()
    asyncio.run(main(folder, f"http://127.0.0.1:{api.server_port}"))
    api.shutdown()
    print("files:", *sorted(path.name for path in folder.iterdir() if path.name in ("id_rsa", "notes.txt")))
    sent = json.dumps(Api.requests)
    print("model: was told:", "this looks like a private key" if "this looks like a private key" in sent else "nothing")
    print("model: was sent:", "My number is [number]." if "555-1234" not in sent else "the number")
