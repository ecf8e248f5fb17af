"""An agent of pydantic-ai with a hook that blocks writing a private key. It needs no key and no network."""

import tempfile
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from llxprt_hooks import Config
from llxprt_hooks.integrations.pydantic_ai import HooksCapability

GUARD = r"""
if grep -q "PRIVATE KEY"; then
  echo "this looks like a private key" >&2
  exit 2
fi
"""


def write_file(file_path: str, content: str) -> str:
    """Write a file."""
    print(f"tool:  {file_path} was written")
    return "written"


def scripted_model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Answer as a model would: write two files, then report the results."""
    results = [p.content for message in messages for p in message.parts if isinstance(p, ToolReturnPart)]
    if results:
        return ModelResponse(parts=[TextPart(f"The results were: {'; '.join(map(str, results))}.")])
    files = {"id_rsa": "-----BEGIN PRIVATE KEY-----", "notes.txt": "hello"}
    return ModelResponse(
        parts=[ToolCallPart("write_file", {"file_path": path, "content": text}) for path, text in files.items()]
    )


with tempfile.TemporaryDirectory() as folder:
    guard = Path(folder, "guard.sh")
    guard.write_text(GUARD)
    hook = {"type": "command", "command": f"sh {guard}"}
    config = Config(
        working_dir=folder, enable_hooks=True, hooks={"BeforeTool": [{"matcher": "write", "hooks": [hook]}]}
    )

    # In a project with a settings file: HooksCapability.load(".")
    agent = Agent(FunctionModel(scripted_model), tools=[write_file], capabilities=[HooksCapability(config)])
    print(f"agent: {agent.run_sync('Write my files.').output}")
