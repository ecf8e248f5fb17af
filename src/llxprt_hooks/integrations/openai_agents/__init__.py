"""Hooks in the OpenAI Agents SDK: call ``install()`` once, and every run of an agent has them."""

from llxprt_hooks._support.text import from_extra

with from_extra("openai-agents"):
    from llxprt_hooks.integrations.openai_agents.model import HookStopped
    from llxprt_hooks.integrations.openai_agents.patches import OpenAIAgentsHooks, install, uninstall

__all__ = ["HookStopped", "OpenAIAgentsHooks", "install", "uninstall"]
