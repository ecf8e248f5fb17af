"""Hooks in pydantic-ai: ``Agent(…, capabilities=[HooksCapability.load(".")])``.

Tools are hooked by a wrapper of the agent's toolset, the model by a wrapper of the model that sends a request, so both
see what other capabilities have left. A run belongs to a session with the id of its conversation.
"""

from llxprt_hooks._support.text import from_extra

with from_extra("pydantic-ai"):
    from llxprt_hooks.integrations.pydantic_ai.capability import HookedToolset, HooksCapability, HookStopped
    from llxprt_hooks.integrations.pydantic_ai.translator import PydanticAIRequest, PydanticAITranslator

__all__ = ["HookStopped", "HookedToolset", "HooksCapability", "PydanticAIRequest", "PydanticAITranslator"]
