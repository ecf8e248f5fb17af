"""A home, a project and a system level of their own, and the installed command to be run among them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

import pexpect

from llxprt_hooks.inspection.inventory import take_inventory
from llxprt_hooks.trust.status import TrustState, grant_trust, trust_status

COMMAND = str(Path(sys.executable).with_name("llxprt-hooks"))

DEADLINE = 60.0
"""Seconds after which something counts as hanging."""

ESCAPE = "\x1b"


@dataclass(frozen=True)
class Run:
    """A run of the command that has ended."""

    status: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """What ``--json`` printed: one document, and nothing beside it."""
        return json.loads(self.stdout)

    @property
    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.stdout.splitlines()]


Call: TypeAlias = Callable[..., Run]
"""Runs the command and gives what came of it."""


class World:
    """Writes settings and scripts, and runs the command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.project = folder / "project"
        for each in (self.home, self.project):
            each.mkdir(parents=True)
        self.project_file = self.project / ".llxprt" / "settings.json"
        self.user_file = self.home / ".llxprt" / "settings.json"
        self.system_file = folder / "etc" / "settings.json"
        self.trust_file = self.home / ".llxprt" / "trusted_hooks.json"
        self.log_file = self.home / ".llxprt" / "logs" / "hooks.jsonl"

    # Settings.

    def configure(self, *, level: str = "project", **events: Any) -> Path:
        """Write a level's settings: hooks on, and for each event a command, a hook, or several groups."""
        return self.write(
            level, {"enableHooks": True, "hooks": {event: groups(given) for event, given in events.items()}}
        )

    def write(self, level: str, content: Mapping[str, Any] | str) -> Path:
        file: Path = getattr(self, f"{level}_file")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        file.chmod(0o600)
        return file

    def extension(self, name: str, **events: Any) -> None:
        folder = self.home / ".llxprt" / "extensions" / name
        (folder / "hooks").mkdir(parents=True)
        (folder / "llxprt-extension.json").write_text(json.dumps({"name": name}))
        hooks = {event: groups(given) for event, given in events.items()}
        (folder / "hooks" / "hooks.json").write_text(json.dumps({"hooks": hooks}))

    def script(self, name: str, body: str) -> str:
        """A shell script in the project, and the command that runs it."""
        file = self.project / name
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(0o755)
        return f"./{name}"

    # The command.

    def environment(self, **more: str) -> dict[str, str]:
        return {
            "PATH": f"{Path(COMMAND).parent}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "LLXPRT_SYSTEM_SETTINGS_PATH": str(self.system_file),
            **more,
        }

    def run(self, *arguments: str, stdin: str = "", approved: bool = True, **environment: str) -> Run:
        """Run the command in the project's folder, whose hooks are approved for it unless ``approved`` says no."""
        if approved:
            environment = {"LLXPRT_TRUST_PROJECT_HOOKS": "1", **environment}
        ended = subprocess.run(
            [COMMAND, *arguments],
            cwd=self.project,
            env=self.environment(**environment),
            input=stdin.encode(),
            capture_output=True,
            timeout=DEADLINE,
            check=False,
        )
        return Run(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [COMMAND, *arguments],
            cwd=self.project,
            env=self.environment(LLXPRT_TRUST_PROJECT_HOOKS="1", **environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def terminal(self, command: str, *, columns: int = 100, **environment: str) -> pexpect.spawn[str]:
        """A shell command line in a pseudo-terminal; ``llxprt-hooks`` is on the path."""
        return pexpect.spawn(
            "/bin/sh",
            ["-c", command],
            cwd=str(self.project),
            env=self.environment(**{"TERM": "xterm-256color", **environment}),
            dimensions=(50, columns),
            encoding="utf-8",
            timeout=DEADLINE,
        )

    def screen(self, command: str, *, columns: int = 100, **environment: str) -> tuple[str, int]:
        """All that a command line in a pseudo-terminal prints, and its exit status."""
        child = self.terminal(command, columns=columns, LLXPRT_TRUST_PROJECT_HOOKS="1", **environment)
        return ended(child)

    # How things stand, as the library sees it.

    def trusted(self) -> None:
        """Approve the project's hooks for good."""
        with self._inside():
            assert grant_trust(self.project).state is TrustState.TRUSTED

    def state(self) -> str:
        """How the project stands in the user's eyes."""
        with self._inside():
            return trust_status(self.project).state

    def enabled(self, name: str) -> bool:
        """Whether no list has the hooks of that name, in an approved project."""
        with self._inside(LLXPRT_TRUST_PROJECT_HOOKS="1"):
            items = [item for item in take_inventory(str(self.project)).items if item.name == name]
        assert items
        return all(item.enabled for item in items)

    @contextmanager
    def _inside(self, **environment: str) -> Iterator[None]:
        with patch.dict(os.environ, self.environment(**environment), clear=True):
            yield


def ended(child: pexpect.spawn[str]) -> tuple[str, int]:
    child.expect(pexpect.EOF)
    child.close()
    assert child.before is not None
    assert child.exitstatus is not None
    return child.before, child.exitstatus


def groups(given: Any) -> list[Any]:
    """Hook groups from a command, a hook, or a list of groups, hooks and commands."""
    return [_group(each) for each in (given if isinstance(given, list) else [given])]


def _group(given: str | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(given, str):
        return {"hooks": [{"type": "command", "command": given}]}
    return given if "hooks" in given else {"hooks": [{"type": "command", **given}]}


def files_in(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its content."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that is bound to happen."""
    give_up = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < give_up, "it did not happen"
        time.sleep(0.01)
