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

FRAMEWORKS = {
    "adk": "google.adk",
    "anthropic": "anthropic",
    "claude-agent-sdk": "claude_agent_sdk",
    "fastmcp": "fastmcp",
    "langchain": "langchain",
    "mcp": "mcp",
    "openai": "openai",
    "openai-agents": "agents",
    "pydantic-ai": "pydantic_ai",
}
"""What an integration imports."""

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def module_of(name: str) -> str:
    return f"llxprt_hooks.integrations.{MODULES.get(name, name.replace('-', '_'))}"


def test_the_package_imports_no_framework() -> None:
    """A program pays only for the framework that it uses."""
    code = "import sys, llxprt_hooks.integrations; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert all(importlib.util.find_spec(name) for name in FRAMEWORKS.values())
    assert not set(FRAMEWORKS.values()) & set(loaded)


@pytest.mark.parametrize("name", ["langchain", "pydantic-ai"])
def test_an_integration_imports_no_other_framework(name: str) -> None:
    code = f"import sys, {module_of(name)}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    providers = {"google.genai", "langchain_anthropic", "langchain_openai"}
    assert (providers | {*FRAMEWORKS.values()}) & set(loaded) == {FRAMEWORKS[name]}


@pytest.mark.parametrize("name", CLASSES)
def test_without_its_framework_an_integration_says_what_to_install(name: str) -> None:
    hidden = FRAMEWORKS[name]
    code = f"""import sys
class Hidden:
    def find_spec(name, path, target=None):
        if name == {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden)
try:
    import {module_of(name)}
except ModuleNotFoundError as error:
    print(error.name)
    raise
"""
    failed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert failed.stdout == f"{hidden}\n"
    advice = f"(No module named '{hidden}'); run `pip install 'llxprt-hooks[{name}]'`"
    assert failed.stderr.endswith(f"Error: this integration needs packages that are not installed {advice}\n")
    assert name in EXTRAS


@pytest.mark.parametrize("name", CLASSES)
def test_what_an_integration_cannot_honor_is_declared_once(name: str) -> None:
    """`validate --for` reads the declaration without importing the framework."""
    module = module_of(name)
    if importlib.util.find_spec(module) is None:
        pytest.skip("there is no such integration yet")
    integration = getattr(importlib.import_module(module), CLASSES[name])
    assert integration.unsupported == UNSUPPORTED[name]


def test_every_declaration_belongs_to_an_integration() -> None:
    assert {*CLASSES, "mcp-proxy", "model-proxy"} == UNSUPPORTED.keys()


def test_the_newest_release_of_every_framework_is_tested() -> None:
    """A framework with an extra is in the list of `make test-integrations NEWEST=1`, unless it is an SDK of others."""
    listed = [line for line in (ROOT / "tests/integrations/newest.txt").read_text().splitlines() if line[:1] != "#"]
    newest = {re.split(r"[\[<>=]", line)[0] for line in listed}
    wanted = {re.split(r"[\[<>=]", EXTRAS[name][0])[0] for name in CLASSES}
    assert wanted - {"anthropic", "mcp", "openai"} <= newest
