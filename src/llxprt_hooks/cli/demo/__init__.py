"""The content of ``llxprt-hooks demo``: a project with hooks, scenes with recorded answers, and what plays them."""
