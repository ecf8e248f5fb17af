"""What holds for every integration module."""

import importlib
import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from llxprt_hooks.integrations.unsupported import UNSUPPORTED

CLASSES = {
    "adk": "HooksPlugin",
    "anthropic": "AnthropicHooks",
    "claude-agent-sdk": "ClaudeHooks",
    "fastmcp": "HooksMiddleware",
    "langchain": "HooksMiddleware",
    "mcp": "HooksMiddleware",
    "openai": "OpenAIHooks",
    "openai-agents": "OpenAIAgentsHooks",
    "pydantic-ai": "HooksCapability",
}
"""The integration of each framework."""

MODULES = {"adk": "google_adk"}
"""Modules that are not called as their framework's extra."""

FRAMEWORKS = (
    "agents",
    "anthropic",
    "claude_agent_sdk",
    "fastmcp",
    "google.adk",
    "langchain",
    "mcp",
    "openai",
    "pydantic_ai",
)


def test_the_package_imports_no_framework() -> None:
    """A program pays only for the framework that it uses."""
    code = "import sys, llxprt_hooks.integrations; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert all(importlib.util.find_spec(name) for name in FRAMEWORKS)
    assert not set(FRAMEWORKS) & set(loaded)


@pytest.mark.parametrize("name", CLASSES)
def test_what_an_integration_cannot_honor_is_declared_once(name: str) -> None:
    """`validate --for` reads the declaration without importing the framework."""
    module = f"llxprt_hooks.integrations.{MODULES.get(name, name.replace('-', '_'))}"
    if importlib.util.find_spec(module) is None:
        pytest.skip("there is no such integration yet")
    integration = getattr(importlib.import_module(module), CLASSES[name])
    assert integration.unsupported == UNSUPPORTED[name]


def test_every_declaration_belongs_to_an_integration() -> None:
    assert {*CLASSES, "mcp-proxy", "model-proxy"} == UNSUPPORTED.keys()


def test_the_newest_release_of_every_framework_is_tested() -> None:
    """A framework with an extra is in the list of `make test-integrations NEWEST=1`, unless it is an SDK of others."""
    root = Path(__file__).parents[2]
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    listed = [line for line in (root / "tests/integrations/newest.txt").read_text().splitlines() if line[:1] != "#"]
    newest = {re.split(r"[\[<>=]", line)[0] for line in listed}
    wanted = {re.split(r"[\[<>=]", extras[name][0])[0] for name in CLASSES}
    assert wanted - {"anthropic", "mcp", "openai"} <= newest
