"""A project with an interactive session in it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.agent import AgentProject
from tests.support.cli import COMMAND
from tests.support.terminal import Terminal


class InteractiveProject(AgentProject):
    """Adds hooks one by one, and starts sessions."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._hooks: dict[str, list[dict[str, Any]]] = {}
        self.profile = "standard"

    def add_hook(self, event: str, name: str, script: str, *, matcher: str = "") -> None:
        """Add a hook: a shell script that has its input on stdin."""
        hook = {"type": "command", "name": name, "command": script}
        self._hooks.setdefault(event, []).append({"matcher": matcher, "hooks": [hook]})
        hooks_config = {"profile": self.profile}
        self.put("project", {"enableHooks": True, "hooksConfig": hooks_config, "hooks": self._hooks})

    def saying_hook(self, event: str, name: str, said: Mapping[str, Any], *, matcher: str = "") -> None:
        """Add a hook that says the same whatever it is given."""
        self.add_hook(event, name, f"cat > /dev/null; printf %s {shlex.quote(json.dumps(said))}", matcher=matcher)

    def noting_hook(self, event: str) -> None:
        """Add a hook that records its input."""
        self.add_hook(event, f"note-{event}", self.hook(event))

    def noted(self, event: str, field: str) -> list[Any]:
        """One field of what the noting hook of an event was given, run by run."""
        return [payload[field] for payload in self.payloads(event)]

    def session(
        self, *answers: Any, arguments: Sequence[str] = (), size: tuple[int, int] = (30, 100), **environment: str
    ) -> Terminal:
        """An interactive session whose model gives these answers."""
        return self.terminal("run", "--replay", str(self.recording(*answers)), *arguments, size=size, **environment)

    def terminal(self, *arguments: str, size: tuple[int, int] = (30, 100), **environment: str) -> Terminal:
        """The command in a terminal."""
        return Terminal(
            COMMAND,
            arguments,
            cwd=self.root,
            env=self.environment(**{"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", **environment}),
            size=size,
        )
