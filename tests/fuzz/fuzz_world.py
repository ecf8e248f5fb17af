"""A home, a project and a system level, and the command, run in this process or as it is installed."""

from __future__ import annotations

import io
import json
import logging
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from llxprt_hooks.cli.main import run_command_line

COMMAND = str(Path(sys.executable).with_name("llxprt-hooks"))


@dataclass(frozen=True)
class Ended:
    """A run of the command."""

    status: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)

    @property
    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.stdout.split("\n")[:-1]]

    def sentence(self) -> str:
        """The one line on stderr of a run that failed."""
        [line] = self.stderr.splitlines()
        assert line.startswith(("llxprt-hooks: ", "Error: ")), line
        assert line.isprintable(), line
        assert len(line) < 1000, line
        return line


class World:
    """Writes files, and runs the command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.project = folder / "project"
        user = self.home / ".llxprt"
        self.files = {
            "project": self.project / ".llxprt" / "settings.json",
            "user": user / "settings.json",
            "system": folder / "etc" / "settings.json",
            "manifest": user / "extensions" / "fuzzed" / "llxprt-extension.json",
            "extension": user / "extensions" / "fuzzed" / "hooks" / "hooks.json",
            "trust": user / "trusted_hooks.json",
            "log": user / "logs" / "hooks.jsonl",
            "older log": user / "logs" / "hooks.1.jsonl",
            "recording": folder / "recorded.jsonl",
            "payload": folder / "payload.json",
        }
        self.clear()

    def clear(self) -> None:
        """As it was in the beginning: two empty folders."""
        for each in (self.home, self.project):
            for inner in each.iterdir() if each.exists() else ():
                shutil.rmtree(inner) if inner.is_dir() else inner.unlink()
            each.mkdir(exist_ok=True)
        shutil.rmtree(self.files["system"].parent, ignore_errors=True)

    def write(self, which: str, content: bytes | dict[str, Any]) -> Path:
        file = self.files[which]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        file.chmod(0o600)
        return file

    def environment(self) -> dict[str, str]:
        return {
            "PATH": f"{Path(COMMAND).parent}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "LLXPRT_SYSTEM_SETTINGS_PATH": str(self.files["system"]),
        }

    def call(self, *arguments: str, stdin: bytes = b"") -> Ended:
        """Run the command in this process, which is quick enough for thousands; what it raises fails the test."""
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True)
        given = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
        with _as_alone(), redirect_stdout(out), redirect_stderr(err), patch.object(sys, "stdin", given):
            status = run_command_line(arguments)
        return Ended(status, _written(out), _written(err))

    def run(self, *arguments: str, **environment: str) -> Ended:
        """Run the installed command."""
        ended = subprocess.run(
            [COMMAND, *arguments],
            cwd=self.project,
            env={**self.environment(), **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
        return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())


def _written(stream: io.TextIOWrapper) -> str:
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


@contextmanager
def _as_alone() -> Iterator[None]:
    """Logging, warnings and stdout as in a process of the command's own, and afterwards as they were."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    root.handlers[:] = []
    stdout = os.dup(1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
        root.handlers[:] = handlers
        root.setLevel(level)


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
    with _as_alone():
        logging.getLogger().addHandler(handler)
        yield
    assert handler.failures == []
