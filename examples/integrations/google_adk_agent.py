"""An agent of Google's Agent Development Kit with a hook that blocks writing a private key. It needs no network."""

import asyncio
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path

from google.adk.agents import LlmAgent
from google.adk.apps.app import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

from llxprt_hooks import Config
from llxprt_hooks.integrations.google_adk import HooksPlugin

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


class ScriptedModel(BaseLlm):
    """Answers as a model would: it writes two files, then reports the results."""

    model: str = "scripted"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = [part for content in llm_request.contents for part in content.parts or []]
        results = [str(part.function_response.response) for part in parts if part.function_response]
        if results:
            answer = [types.Part(text=f"The results were: {'; '.join(results)}.")]
        else:
            files = {"id_rsa": "-----BEGIN PRIVATE KEY-----", "notes.txt": "hello"}
            answer = [
                types.Part.from_function_call(name="write_file", args={"file_path": path, "content": text})
                for path, text in files.items()
            ]
        yield LlmResponse(content=types.Content(role="model", parts=answer))


async def run(config: Config) -> None:
    agent = LlmAgent(name="writer", model=ScriptedModel(), tools=[write_file])
    # In a project with a settings file: HooksPlugin.load(".")
    runner = InMemoryRunner(app=App(name="example", root_agent=agent, plugins=[HooksPlugin(config)]))
    session = await runner.session_service.create_session(app_name="example", user_id="me")
    message = types.Content(role="user", parts=[types.Part(text="Write my files.")])
    async for event in runner.run_async(user_id="me", session_id=session.id, new_message=message):
        if event.is_final_response() and event.content and event.content.parts:
            print(f"agent: {event.content.parts[0].text}")
    await runner.close()


with tempfile.TemporaryDirectory() as folder:
    guard = Path(folder, "guard.sh")
    guard.write_text(GUARD)
    hook = {"type": "command", "command": f"sh {guard}"}
    hooks = {"BeforeTool": [{"matcher": "write", "hooks": [hook]}]}
    asyncio.run(run(Config(working_dir=folder, enable_hooks=True, hooks=hooks)))
