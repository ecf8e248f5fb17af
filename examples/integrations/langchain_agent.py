"""An agent of LangChain with a hook that blocks writing a private key. It needs no key and no network."""

import tempfile
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from llxprt_hooks.integrations.langchain import HooksMiddleware

GUARD = r"""
if grep -q "PRIVATE KEY"; then
  echo "this looks like a private key" >&2
  exit 2
fi
"""
FILES = {"id_rsa": "-----BEGIN PRIVATE KEY-----", "notes.txt": "hello"}


def write_file(file_path: str, content: str) -> str:
    """Write a file."""
    print(f"tool:  {file_path} was written")
    return "written"


class ScriptedModel(BaseChatModel):
    """Answers as a model would: write two files, then report the results."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        results = [str(message.text) for message in messages if isinstance(message, ToolMessage)]
        calls = [
            ToolCall(name="write_file", args={"file_path": path, "content": text}, id=path)
            for path, text in FILES.items()
        ]
        report = AIMessage(f"The results were: {'; '.join(results)}.")
        return ChatResult(generations=[ChatGeneration(message=report if results else AIMessage("", tool_calls=calls))])


with tempfile.TemporaryDirectory() as folder:
    guard = Path(folder, "guard.sh")
    guard.write_text(GUARD)
    hook = {"type": "command", "command": f"sh {guard}"}

    # In a project with a settings file: HooksMiddleware.load(".")
    hooks = HooksMiddleware(working_dir=folder, hooks={"BeforeTool": [{"matcher": "write", "hooks": [hook]}]})
    agent = create_agent(ScriptedModel(), [write_file], middleware=[hooks])
    answer = agent.invoke({"messages": [{"role": "user", "content": "Write my files."}]})
    print(f"agent: {answer['messages'][-1].text}")
