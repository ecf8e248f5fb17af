"""The command line, ``llxprt-hooks``: one module per command under ``commands``."""
