"""The sessions of a framework's conversations; the model proxy has the same."""

from llxprt_hooks.proxy.sessions import Sessions

__all__ = ["Sessions"]
