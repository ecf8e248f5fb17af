"""``python -m llxprt_hooks`` is ``llxprt-hooks``."""

from llxprt_hooks.cli.main import main

if __name__ == "__main__":
    main()
