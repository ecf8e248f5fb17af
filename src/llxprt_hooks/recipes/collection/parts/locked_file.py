from __future__ import annotations

import collections.abc
import contextlib
import fcntl
import hashlib
import io
import os

from llxprt_hooks.recipes.collection.parts.cache_folder import cache_folder


@contextlib.contextmanager
def locked_file(recipe: str, key: str) -> collections.abc.Iterator[io.TextIOWrapper]:
    """The file with the state of a session or project. One hook at a time has it."""
    name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    path = os.path.join(cache_folder(recipe), name)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+", encoding="utf-8", errors="replace") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield opened
