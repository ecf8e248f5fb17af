"""A small, complete agent on google-genai whose every tool and model call passes through hooks.

It is the reference for wiring hooks into an agent of one's own: ``scheduler`` is the tool side, ``chat`` the model
side, ``session`` the loop around both.
"""
