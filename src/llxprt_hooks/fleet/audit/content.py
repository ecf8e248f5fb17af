"""A hash of what a hook runs: its definition, and the files that its command names.

It tells two versions of a hook apart in a record. Unlike the files that an approval covers, it does not include what a
script imports or starts in turn.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from llxprt_hooks._support.json_codec import write_json
from llxprt_hooks.process.shell.command_line import hook_environment
from llxprt_hooks.process.shell.environment import process_environment
from llxprt_hooks.process.shell.words import words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from llxprt_hooks.settings.definitions import HookConfig

MAX_BYTES: Final = 16 * 1024 * 1024
"""Larger files are programs; their size and time of change stand for them."""

_Signature = tuple[int, int, int]


class ContentHashes:
    """Hashes of what hooks run. A file is read again only when its size, time or inode has changed."""

    def __init__(self, project: str) -> None:
        self._project = project
        self._files: dict[str, tuple[_Signature, str]] = {}
        self._commands: dict[str, tuple[str, ...]] = {}

    def of(self, config: HookConfig) -> str:
        """Return the hash, as 64 hexadecimal digits."""
        command = config.command
        paths = self._commands.get(command)
        if paths is None:
            paths = self._commands[command] = tuple(_paths(command, self._project))
        files = {path: digest for path in paths if (digest := self._digest(path))}
        definition = [config.type, config.deduplication_key, config.name, config.timeout, config.fail_closed, files]
        return hashlib.sha256(write_json(definition)).hexdigest()

    def _digest(self, path: str) -> str | None:
        try:
            found = Path(path).stat()
            if not stat.S_ISREG(found.st_mode):
                return None
            signature = found.st_ino, found.st_size, found.st_mtime_ns
            known = self._files.get(path)
            if known is None or known[0] != signature:
                known = self._files[path] = signature, _file_hash(path, found)
        except (OSError, ValueError):
            return None
        return known[1]


def _paths(command: str, project: str) -> Iterator[str]:
    variables = hook_environment(process_environment(), project)
    for word in words(command):
        text = word.value(variables)
        if text and ("/" in text or "." in text):
            yield str(Path(project, os.path.expanduser(text)))  # noqa: PTH111  # pathlib raises without a home


def _file_hash(path: str, found: os.stat_result) -> str:
    if found.st_size > MAX_BYTES:
        return f"{found.st_size} bytes, changed at {found.st_mtime_ns}"
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
