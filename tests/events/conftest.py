"""A folder of real hook scripts, and configurations that run them."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks import Config, GenerateContentParameters, HookEventHandler, MessageBus
from llxprt_hooks.engine.aggregator import HookAggregator
from llxprt_hooks.engine.planner import HookPlanner
from llxprt_hooks.engine.registry import HookRegistry
from llxprt_hooks.engine.runner import HookRunner
from llxprt_hooks.logger import apply_debug_variable


class Lab:
    """Writes hook scripts that note what they were given, and reads those notes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def hook(
        self, name: str = "hook", says: object = None, *, stderr: str = "", exit_code: int = 0, then: str = ""
    ) -> str:
        """The command of a hook that keeps its stdin, prints ``says`` (JSON, or a text as it is), and ends."""
        printed = says if isinstance(says, str) else "" if says is None else json.dumps(says)
        script = self.folder / f"{name}.sh"
        script.write_text(
            "#!/bin/sh\n"
            f"cat > {shlex.quote(str(self.folder / name))}.stdin\n"
            f"echo run >> {shlex.quote(str(self.folder / name))}.runs\n"
            f"printf %s {shlex.quote(printed)}\n"
            f"printf %s {shlex.quote(stderr)} >&2\n"
            f"{then}\n"
            f"exit {exit_code}\n"
        )
        script.chmod(0o755)
        return shlex.quote(str(script))

    def endless(self, name: str = "endless") -> str:
        """The command of a hook that notes its process id and then does not end by itself."""
        script = self.folder / f"{name}.sh"
        script.write_text(f"#!/bin/sh\necho $$ > {shlex.quote(str(self.folder / name))}.pid\nexec sleep 600\n")
        script.chmod(0o755)
        return shlex.quote(str(script))

    def process_id(self, name: str = "endless") -> int | None:
        """Of an endless hook that has been started."""
        noted = self.folder / f"{name}.pid"
        text = noted.read_text() if noted.exists() else ""
        return int(text) if text.endswith("\n") else None

    async def started(self, name: str = "endless") -> int:
        """Wait until an endless hook runs; its process id."""
        async with asyncio.timeout(20):
            while (pid := self.process_id(name)) is None:  # noqa: ASYNC110 - it is another process that tells
                await asyncio.sleep(0.005)
        return pid

    def runs(self, name: str = "hook") -> int:
        """How often a hook was run."""
        noted = self.folder / f"{name}.runs"
        return len(noted.read_text().splitlines()) if noted.exists() else 0

    def payload(self, name: str = "hook") -> dict[str, Any]:
        """What a hook read from its stdin when it was last run."""
        payload: dict[str, Any] = json.loads((self.folder / f"{name}.stdin").read_text())
        return payload

    def hooks(self, events: dict[str, Any]) -> dict[str, Any]:
        """The ``hooks`` object of a settings file, from a command, several of them, or groups, for each event."""
        return {event: self._groups(given) for event, given in events.items()}

    def config(self, events: dict[str, Any], kind: type[Config] = Config, **options: Any) -> Config:
        """An enabled configuration."""
        given = {"session_id": "s1", "working_dir": self.folder, "enable_hooks": True, **options}
        return kind(hooks=self.hooks(events), **given)

    def handler(
        self,
        config: Config,
        *,
        planner: type[HookPlanner] = HookPlanner,
        runner: type[HookRunner] = HookRunner,
        aggregator: type[HookAggregator] = HookAggregator,
        message_bus: MessageBus | None = None,
        **options: Any,
    ) -> HookEventHandler:
        """An event handler from real parts, or from subclasses of them."""
        registry = HookRegistry(config)
        registry.initialize()
        handler = HookEventHandler(config, planner(registry), runner(), aggregator(), **options)
        if message_bus is not None:
            handler.attach(message_bus)
        return handler

    @staticmethod
    def _groups(given: Any) -> list[Any]:
        listed = given if isinstance(given, list) else [given]
        return [{"hooks": [{"type": "command", "command": item}]} if isinstance(item, str) else item for item in listed]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


@pytest.fixture(autouse=True)
def _own_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No settings, trust or DEBUG variable of whoever runs the tests; loggers as they were, afterwards."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LLXPRT_SYSTEM_SETTINGS_PATH", str(tmp_path / "etc" / "settings.json"))
    monkeypatch.delenv("LLXPRT_TRUST_PROJECT_HOOKS", raising=False)
    monkeypatch.delenv("DEBUG", raising=False)
    apply_debug_variable()
    yield
    os.environ.pop("DEBUG", None)
    apply_debug_variable()


@pytest.fixture
def ready():
    """The event handler of a configuration, initialized the way an embedding program does it."""

    async def ready(config: Config) -> HookEventHandler:
        system = config.get_hook_system()
        assert system is not None
        await system.initialize()
        return system.get_event_handler()

    return ready


@pytest.fixture
def warnings_of_engine(caplog: pytest.LogCaptureFixture):
    """The texts of what the engine has logged so far at warn level, under its own namespaces."""

    def texts() -> list[str]:
        return [
            record.getMessage()
            for record in caplog.records
            if record.levelno == logging.WARNING and record.name.startswith("llxprt:core:hooks:")
        ]

    return texts


@pytest.fixture
def genai():
    """google-genai's own types."""
    from google.genai import types

    return types


@pytest.fixture
def llm_request(genai) -> GenerateContentParameters:
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
def llm_response(genai):
    """A complete response: two text parts, a finish reason and token counts."""
    return genai.GenerateContentResponse(
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
