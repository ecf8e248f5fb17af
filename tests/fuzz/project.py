"""A project whose files are fuzzed, and the command, run in this process or as it is installed."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.cli import CliProject, Run, as_alone, call


class FuzzedProject(CliProject):
    """Knows every file that is fuzzed by a name."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        extension = self.home / ".llxprt" / "extensions" / "fuzzed"
        self.files |= {
            "manifest": extension / "llxprt-extension.json",
            "extension": extension / "hooks" / "hooks.json",
            "older log": self.log_file.with_name("hooks.1.jsonl"),
            "recording": folder / "recorded.jsonl",
            "payload": folder / "payload.json",
        }

    def command(self, *arguments: str, installed: bool) -> Run:
        """Run the command as it is installed, or in this process."""
        return self.run(*arguments, approved=False) if installed else call(*arguments)

    def clear(self) -> None:
        """As it was in the beginning: two empty folders."""
        for each in (self.home, self.root):
            for inner in each.iterdir():
                shutil.rmtree(inner) if inner.is_dir() else inner.unlink()
        shutil.rmtree(self.system_file.parent, ignore_errors=True)


class _Formatted(logging.Handler):
    """Formats what is logged, as any handler does, and keeps only what went wrong with that."""

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[Exception] = []

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.format(record)
        except Exception as error:
            self.failures.append(error)


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings of the engine and of the SDK, of which there are thousands; each must have a text."""
    handler = _Formatted()
    with as_alone():
        logging.getLogger().addHandler(handler)
        yield
    assert handler.failures == []
