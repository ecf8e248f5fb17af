"""An agent of the OpenAI Agents SDK with a hook that blocks writing a private key. It needs no key and no network."""

import json
import tempfile
from pathlib import Path

from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from llxprt_hooks import Config
from llxprt_hooks.integrations.openai_agents import install

GUARD = r"""
if grep -q "PRIVATE KEY"; then
  echo "this looks like a private key" >&2
  exit 2
fi
"""


@function_tool
def write_file(file_path: str, content: str) -> str:
    """Write a file."""
    print(f"tool:  {file_path} was written")
    return "written"


def call(file_path: str, content: str) -> ResponseFunctionToolCall:
    arguments = json.dumps({"file_path": file_path, "content": content})
    return ResponseFunctionToolCall(type="function_call", name="write_file", arguments=arguments, call_id=file_path)


# A model that answers as a real one would: it writes two files, then says that it is done.
answer = ResponseOutputMessage(
    id="message",
    type="message",
    role="assistant",
    status="completed",
    content=[ResponseOutputText(type="output_text", text="I did what I was allowed to.", annotations=[])],
)
model = ScriptedModel([[call("id_rsa", "-----BEGIN PRIVATE KEY-----"), call("notes.txt", "hello")], [answer]])

with tempfile.TemporaryDirectory() as folder:
    guard = Path(folder, "guard.sh")
    guard.write_text(GUARD)
    hook = {"type": "command", "command": f"sh {guard}"}
    hooks = {"BeforeTool": [{"matcher": "write", "hooks": [hook]}]}
    set_tracing_disabled(True)

    # In a project with a settings file: install()
    install(Config(working_dir=folder, enable_hooks=True, hooks=hooks))
    result = Runner.run_sync(Agent("writer", tools=[write_file], model=model), "Write my files.")

for item in result.new_items:
    if item.type == "tool_call_output_item":
        print(f"model: was told: {item.output}")
print(f"agent: {result.final_output}")
