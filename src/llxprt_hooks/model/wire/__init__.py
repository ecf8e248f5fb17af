"""Model APIs over HTTP: their paths, and their streams of server-sent events, read and written.

``translator.wire`` is the ``Wire`` of an API. Nothing here does any I/O.
"""

from llxprt_hooks.model.wire.base import Assembler, Wire
from llxprt_hooks.model.wire.sse import ServerSentEvent, SSEParser

__all__ = ["Assembler", "SSEParser", "ServerSentEvent", "Wire"]
