"""A project with real hook scripts, and what model events are about."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

import pytest

from llxprt_hooks import Config, GenerateContentParameters, HookEventHandler
from llxprt_hooks._support.logger import apply_debug_variable
from tests.support.engine_project import EngineProject, Ready, Texts, system_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

    from google.genai.types import GenerateContentResponse


@pytest.fixture
def project(tmp_path: Path) -> EngineProject:
    return EngineProject(tmp_path)


@pytest.fixture
def own_environment(project: EngineProject, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No settings, trust or DEBUG variable of the user who runs the tests; loggers are restored afterwards."""
    project.enter(monkeypatch)
    apply_debug_variable()
    yield
    os.environ.pop("DEBUG", None)
    apply_debug_variable()


@pytest.fixture
def ready() -> Ready:
    """The event handler of a configuration, initialized the way an embedding program does it."""

    async def ready(config: Config) -> HookEventHandler:
        system = system_of(config)
        await system.initialize()
        return system.get_event_handler()

    return ready


@pytest.fixture
def warnings_of_engine(caplog: pytest.LogCaptureFixture) -> Texts:
    """The texts of what the engine has logged so far at warn level, under its own namespaces."""

    def texts() -> list[str]:
        return [
            record.getMessage()
            for record in caplog.records
            if record.levelno == logging.WARNING and record.name.startswith("llxprt:core:hooks:")
        ]

    return texts


@pytest.fixture
def genai() -> ModuleType:
    """google-genai's own types."""
    from google.genai import types

    return types


@pytest.fixture
def llm_request(genai: ModuleType) -> GenerateContentParameters:
    """A request with text, an image, settings, a system instruction, tools and a tool configuration."""
    declarations = [genai.FunctionDeclaration(name=name) for name in ("read_file", "write_file", "glob")]
    return GenerateContentParameters(
        "gemini-3-flash",
        [
            genai.Content(role="user", parts=[genai.Part(text="What is in the picture?")]),
            genai.Content(role="user", parts=[genai.Part.from_bytes(data=b"\x89PNG", mime_type="image/png")]),
            genai.Content(role="model", parts=[genai.Part(text="A cat.")]),
            genai.Content(role="user", parts=[genai.Part(text="And now?")]),
        ],
        genai.GenerateContentConfig(
            temperature=0.5,
            max_output_tokens=100,
            system_instruction="Be brief.",
            tools=[genai.Tool(function_declarations=declarations)],
            tool_config=genai.ToolConfig(
                function_calling_config=genai.FunctionCallingConfig(mode=genai.FunctionCallingConfigMode.AUTO)
            ),
        ),
    )


@pytest.fixture
def llm_response(genai: ModuleType) -> GenerateContentResponse:
    """A complete response: two text parts, a finish reason and token counts."""
    response: GenerateContentResponse = genai.GenerateContentResponse(
        candidates=[
            genai.Candidate(
                content=genai.Content(role="model", parts=[genai.Part(text="A dog, "), genai.Part(text="asleep.")]),
                finish_reason=genai.FinishReason.STOP,
                index=0,
            )
        ],
        usage_metadata=genai.GenerateContentResponseUsageMetadata(
            prompt_token_count=11, candidates_token_count=4, total_token_count=15
        ),
    )
    return response
