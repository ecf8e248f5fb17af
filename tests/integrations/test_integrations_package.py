"""What holds for every integration module."""

import importlib.util
import subprocess
import sys

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
