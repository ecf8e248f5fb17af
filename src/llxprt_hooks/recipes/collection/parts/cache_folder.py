from __future__ import annotations

import os


def cache_folder(recipe: str) -> str:
    """Where a recipe keeps its state. Only the user can read it."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(cache, "llxprt-hooks", recipe)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return folder
