"""A small, complete agent on google-genai. Every tool call and model call passes through hooks.

Use it as a reference for adding hooks to your own agent: ``scheduler`` runs tool calls, ``chat`` makes model calls,
``session`` is the loop around both.
"""
