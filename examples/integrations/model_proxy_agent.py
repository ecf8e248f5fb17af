"""An agent behind the model proxy: a hook removes phone numbers from what is sent. It needs no key and no network."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

# The agent knows nothing of hooks. It could be written in any language.
AGENT = """
from anthropic import Anthropic

client = Anthropic(api_key="unused")
question = {"role": "user", "content": "Call me at 555-1234."}
message = client.messages.create(model="claude", max_tokens=100, messages=[question])
print("agent: was told:", message.content[0].text)
"""
REDACT = """
import json, sys

request = json.load(sys.stdin)["llm_request"]
for message in request["messages"]:
    message["content"] = message["content"].replace("555-1234", "[number]")
print(json.dumps({"hookSpecificOutput": {"llm_request": {"messages": request["messages"]}}}))
"""


class Api(BaseHTTPRequestHandler):
    """The Messages API of a model that repeats what it reads."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = request["messages"][-1]["content"]
        print(f"api:   was sent: {text}", flush=True)
        answer = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "usage": {}}
        content = json.dumps({**answer, "content": [{"type": "text", "text": f"I read: {text}"}]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


with tempfile.TemporaryDirectory() as folder, HTTPServer(("127.0.0.1", 0), Api) as api:
    threading.Thread(target=api.serve_forever, daemon=True).start()
    Path(folder, "redact.py").write_text(REDACT)
    hook = {"type": "command", "command": f"{sys.executable} redact.py"}
    settings = {"enableHooks": True, "hooks": {"BeforeModel": [{"hooks": [hook]}]}}
    Path(folder, ".llxprt").mkdir()
    Path(folder, ".llxprt", "settings.json").write_text(json.dumps(settings))

    upstream = f"http://127.0.0.1:{api.server_port}"
    proxy = [sys.executable, "-m", "llxprt_hooks", "model-proxy", "-C", folder, "--upstream", upstream]
    # In a project of your own, approve the hooks once: llxprt-hooks trust
    environment = {**os.environ, "LLXPRT_TRUST_PROJECT_HOOKS": "1"}
    subprocess.run([*proxy, "--", sys.executable, "-c", AGENT], env=environment, check=True)
    api.shutdown()
