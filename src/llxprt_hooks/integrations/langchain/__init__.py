"""Hooks for LangChain agents and LangGraph's ``ToolNode``.

>>> from langchain.agents import create_agent                                       # doctest: +SKIP
>>> agent = create_agent(model, tools, middleware=[HooksMiddleware.load(".")])      # doctest: +SKIP

List it last: middleware that follows it could change what hooks have seen. The ``thread_id`` of a run is the session id
of its hooks. A stop and messages for the next model call are part of the agent's state, so a checkpointer keeps them.
"""

from llxprt_hooks._support.text import from_extra

with from_extra("langchain"):
    from llxprt_hooks.integrations.langchain.middleware import HooksMiddleware, HooksState
    from llxprt_hooks.integrations.langchain.translator import LangChainTranslator

__all__ = ["HooksMiddleware", "HooksState", "LangChainTranslator"]
