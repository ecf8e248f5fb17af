"""A throwaway project: a home, settings of each level, scripts, hooks that record their input, and trust."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from llxprt_hooks.settings.trust.status import TrustState, grant_trust, trust_status
from tests.support.processes import until

if TYPE_CHECKING:
    import pytest

SCRIPTS = Path(sys.executable).parent
"""Where ``llxprt-hooks`` is installed."""

APPROVED = {"LLXPRT_TRUST_PROJECT_HOOKS": "1"}
"""Approves a project's hooks for one process."""

Content = Mapping[str, Any] | str | bytes
Says = Mapping[str, Any] | str | None


class Project:
    """The folders of a project and its user, below a folder of the test's own."""

    def __init__(self, folder: Path, name: str = "project", *, approved: bool = False) -> None:
        """``approved``: the project's hooks are approved for whatever runs in its ``environment``."""
        self.folder = folder
        self.root = folder / name
        self.home = folder / "home"
        self.approved = approved
        self._notes = folder / "notes"
        for each in (self.root, self.home):
            each.mkdir(parents=True, exist_ok=True)
        user = self.home / ".llxprt"
        self.files = {
            "project": self.root / ".llxprt" / "settings.json",
            "user": user / "settings.json",
            "system": folder / "etc" / "settings.json",
            "trust": user / "trusted_hooks.json",
            "log": user / "logs" / "hooks.jsonl",
        }

    @property
    def project_file(self) -> Path:
        return self.files["project"]

    @property
    def user_file(self) -> Path:
        return self.files["user"]

    @property
    def system_file(self) -> Path:
        return self.files["system"]

    @property
    def log_file(self) -> Path:
        return self.files["log"]

    # Files.

    def write(self, path: str | Path, content: Content = "", mode: int = 0o644) -> Path:
        """Write a file, by its path in the project or a whole one, making folders as needed."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_bytes(content))
        file.chmod(mode)
        return file

    def put(self, which: str, content: Content) -> Path:
        """Write one of ``files``: the settings of a level, the approvals, the log."""
        return self.write(self.files[which], content, 0o600)

    def configure(self, *, level: str = "project", **events: Any) -> Path:
        """Write a level's settings: hooks on, and for each event a command, a hook, a group, or several of them."""
        return self.put(level, {"enableHooks": True, "hooks": hooks_of(events)})

    def extension(self, name: str, hooks: Content, *, manifest: bool = True) -> Path:
        """Write an extension of the user's; its hooks file."""
        folder = self.home / ".llxprt" / "extensions" / name
        if manifest:
            self.write(folder / "llxprt-extension.json", {"name": name})
        return self.write(folder / "hooks" / "hooks.json", hooks)

    # Hooks.

    def script(self, name: str, body: str) -> str:
        """A shell script in the project, and the command that runs it there."""
        self.write(name, f"#!/bin/sh\n{body}\n", 0o755)
        return f"./{name}"

    def hook(
        self,
        name: str = "hook",
        says: Says | Sequence[Says] = None,
        *,
        first: str = "",
        stderr: str = "",
        exit_code: int = 0,
    ) -> str:
        """The command of a hook that records its input, runs ``first``, prints what it ``says``, and exits.

        A list says one thing a run, and nothing once it is exhausted.
        """
        notes = shlex.quote(str(self.note("")))
        return self._hook_script(
            name,
            "#!/bin/sh\n"
            f'payload=$(cat)\nprintf "%s\\n" "$payload" >> {notes}/{name}.payloads\necho {name} >> {notes}/order\n'
            f"{first}\n"
            f"{_saying(says, f'{notes}/{name}.payloads')}\n"
            f"printf %s {shlex.quote(stderr)} >&2\nexit {exit_code}\n",
        )

    def python_hook(self, name: str, body: str) -> str:
        """The command of a hook in Python that has its input as ``payload`` and prints ``said``, if it sets that."""
        return self._hook_script(
            name,
            f"#!{sys.executable} -IS\nimport json, sys\npayload = json.load(sys.stdin)\nsaid = None\n"
            f"with open({str(self.note(name))!r} + '.payloads', 'a') as notes:\n"
            "    notes.write(json.dumps(payload) + '\\n')\n"
            f"{body}\nif said is not None:\n    print(json.dumps(said))\n",
        )

    def endless_hook(self, name: str) -> str:
        """The command of a hook that starts a child, records both process ids, and does not end by itself."""
        return self._hook_script(
            name, f"#!/bin/sh\nsleep 600 & echo $$ $! > {shlex.quote(str(self.note(name)))}.pids\nwait\n"
        )

    def payloads(self, name: str = "hook") -> list[dict[str, Any]]:
        """What a hook read from its stdin, in the order of the events.

        Nobody awaits the hooks of most events, so that of a later event may have written its note first.
        """
        read = [json.loads(line) for line in self.notes(f"{name}.payloads")]
        return sorted(read, key=lambda payload: str(payload.get("timestamp", "")))

    def order(self) -> list[str]:
        """The names of the hooks, in the order in which they ran."""
        return self.notes("order")

    def notes(self, name: str) -> list[str]:
        """The lines that scripts have written to a note."""
        return self._noted(name).splitlines()

    def note(self, name: str) -> Path:
        """A file for scripts to write to."""
        self._notes.mkdir(exist_ok=True)
        return self._notes / name

    def pids(self, name: str) -> list[int]:
        """The process ids that a script has recorded; waits for them."""
        until(lambda: self._noted(f"{name}.pids").endswith("\n"))
        return [int(pid) for pid in self._noted(f"{name}.pids").split()]

    # Processes in the project.

    def environment(self, **more: str) -> dict[str, str]:
        """Of a process that knows only this home and these settings."""
        return {
            "PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "LLXPRT_SYSTEM_SETTINGS_PATH": str(self.system_file),
            **(APPROVED if self.approved else {}),
            **more,
        }

    def enter(self, monkeypatch: pytest.MonkeyPatch, **more: str) -> None:
        """Let this process know only this home and these settings."""
        for name in ("COLUMNS", "DEBUG", *APPROVED):
            monkeypatch.delenv(name, raising=False)
        for name, value in self.environment(**more).items():
            monkeypatch.setenv(name, value)

    @contextmanager
    def inside(self, **environment: str) -> Iterator[None]:
        """This process in the project's environment, for a moment."""
        with patch.dict(os.environ, self.environment(**environment), clear=True):
            yield

    # Trust, as the library sees it.

    def approve(self) -> None:
        """Approve the project's hooks for good."""
        with self.inside():
            assert grant_trust(self.root).state is TrustState.TRUSTED

    def trust_state(self) -> str:
        with self.inside():
            return trust_status(self.root).state

    def _noted(self, name: str) -> str:
        file = self._notes / name
        return file.read_text() if file.exists() else ""

    def _hook_script(self, name: str, text: str) -> str:
        return shlex.quote(str(self.write(self.folder / f"{name}.hook", text, 0o755)))


def hooks_of(events: Mapping[str, Any]) -> dict[str, Any]:
    """The ``hooks`` of a settings file: for each event a command, a hook, a group, or several of them."""
    return {event: groups(given) for event, given in events.items()}


def groups(given: Any) -> list[Any]:
    """Hook groups from a command, a hook, a group, or a list of them."""
    return [_group(each) for each in (given if isinstance(given, list) else [given])]


def files_in(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its content."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def _group(given: Any) -> Any:
    if isinstance(given, str):
        return {"hooks": [{"type": "command", "command": given}]}
    if not isinstance(given, Mapping) or "hooks" in given:
        return given
    return {"hooks": [{"type": "command", **given}]}


def _bytes(content: Content) -> bytes:
    if isinstance(content, bytes):
        return content
    return (content if isinstance(content, str) else json.dumps(content)).encode()


def _saying(says: Says | Sequence[Says], counted: str) -> str:
    if not isinstance(says, list):
        return f"printf %s {shlex.quote(_text(says))}"
    cases = "".join(f"{run}) printf %s {shlex.quote(_text(said))};;\n" for run, said in enumerate(says, start=1))
    return f"case $(($(wc -l < {counted}))) in\n{cases}esac"


def _text(says: Any) -> str:
    return says if isinstance(says, str) else "" if says is None else json.dumps(says)
