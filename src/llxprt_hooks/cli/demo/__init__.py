"""The content of ``llxprt-hooks demo``: a project with hooks, and recorded model answers."""
