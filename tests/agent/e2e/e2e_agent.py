"""A project with hooks, a home of its own, and the installed command to be run in it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.agent.e2e.e2e_gemini import Chunks, Gemini, Received, Reply

COMMAND = str(Path(sysconfig.get_path("scripts")) / "llxprt-hooks")

DEADLINE = 60.0
"""Seconds after which something counts as hanging."""

REPLAY, HTTP = "replay", "http"

Says = Mapping[str, Any] | str | None


@dataclass(frozen=True)
class Run:
    """A run of the command that has ended."""

    project: Project = field(repr=False)
    status: int
    stdout: str
    stderr: str
    requests: list[Received] = field(default_factory=list, repr=False)
    """What the Gemini API was sent."""
    unused: int = 0
    """Replies of the Gemini API that were not asked for."""

    @property
    def json(self) -> dict[str, Any]:
        """What ``-o json`` printed: one object, and nothing beside it."""
        document: dict[str, Any] = json.loads(self.stdout)
        return document

    @property
    def lines(self) -> list[dict[str, Any]]:
        """What ``-o stream-json`` printed."""
        return [json.loads(line) for line in self.stdout.splitlines()]

    @property
    def calls(self) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = self.json["tool_calls"]
        return calls

    @property
    def statuses(self) -> list[str]:
        return [call["status"] for call in self.calls]

    def payloads(self, hook: str = "hook") -> list[dict[str, Any]]:
        return self.project.payloads(hook)


class Project:
    """Writes hook scripts that note what they were given, and runs the command."""

    def __init__(self, folder: Path, over: str = REPLAY) -> None:
        self.folder = folder
        self.over = over
        self.root = folder / "project"
        self.home = folder / "home"
        self._notes = folder / "notes"
        for each in (self.root, self.home, self._notes):
            each.mkdir(parents=True)

    # Hooks.

    def hook(
        self,
        name: str,
        says: Says | Sequence[Says] = None,
        *,
        first: str = "",
        stderr: str = "",
        exit_code: int = 0,
    ) -> str:
        """The command of a hook that keeps its input, runs ``first``, prints what it ``says``, and ends.

        A list says one thing a run, and nothing once it is exhausted.
        """
        notes = shlex.quote(str(self._notes))
        return self._script(
            name,
            "#!/bin/sh\n"
            f'payload=$(cat)\nprintf "%s\\n" "$payload" >> {notes}/{name}.payloads\necho {name} >> {notes}/order\n'
            f"{first}\n"
            f"{_saying(says, f'{notes}/{name}.payloads')}\n"
            f"printf %s {shlex.quote(stderr)} >&2\nexit {exit_code}\n",
        )

    def python_hook(self, name: str, body: str) -> str:
        """The command of a hook in Python that has its input as ``payload`` and prints ``said``, if it sets that."""
        return self._script(
            name,
            f"#!{sys.executable} -IS\nimport json, sys\npayload = json.load(sys.stdin)\nsaid = None\n"
            f"with open({str(self._notes / name)!r} + '.payloads', 'a') as notes:\n"
            "    notes.write(json.dumps(payload) + '\\n')\n"
            f"{body}\nif said is not None:\n    print(json.dumps(said))\n",
        )

    def endless_hook(self, name: str) -> str:
        """The command of a hook that starts a child, notes both process ids, and does not end by itself."""
        return self._script(
            name, f"#!/bin/sh\nsleep 600 & echo $$ $! > {shlex.quote(str(self._notes / name))}.pids\nwait\n"
        )

    def configure(self, **events: str | Sequence[str] | Sequence[Mapping[str, Any]]) -> None:
        """Write the project's settings: for each event a command, several of them, or groups."""
        self.settings({"enableHooks": True, "hooks": {event: _groups(given) for event, given in events.items()}})

    def settings(self, content: Mapping[str, Any] | str) -> Path:
        file = self.root / ".llxprt" / "settings.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        file.chmod(0o600)
        return file

    def payloads(self, name: str = "hook") -> list[dict[str, Any]]:
        """What a hook read from its stdin, run by run."""
        return [json.loads(line) for line in self.notes(f"{name}.payloads")]

    def order(self) -> list[str]:
        """The names of the hooks, in the order in which they ran."""
        return self.notes("order")

    def notes(self, name: str) -> list[str]:
        file = self._notes / name
        return file.read_text().splitlines() if file.exists() else []

    def note(self, name: str) -> Path:
        """A file for scripts to write to."""
        return self._notes / name

    def pids(self, name: str) -> list[int]:
        """The process ids that a script has noted; waits for them."""
        until(lambda: self._noted(f"{name}.pids").endswith("\n"))
        return [int(pid) for pid in self._noted(f"{name}.pids").split()]

    # The command.

    def environment(self, **more: str) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "LLXPRT_SYSTEM_SETTINGS_PATH": str(self.folder / "no-such-file"),
            "LLXPRT_TRUST_PROJECT_HOOKS": "1",
            **more,
        }

    def run(
        self,
        *arguments: str,
        prompt: str | None = "Do it.",
        answers: Sequence[Chunks | Reply] = (),
        stdin: str | bytes = "",
        **environment: str,
    ) -> Run:
        """Run the agent on a prompt; the model's answers come from a recording or over HTTP."""
        with self.running(*arguments, prompt=prompt, answers=answers, **environment) as running:
            return running.ended(stdin)

    def running(
        self,
        *arguments: str,
        prompt: str | None = "Do it.",
        answers: Sequence[Chunks | Reply] = (),
        **environment: str,
    ) -> Running:
        """The agent at work on a prompt."""
        stack = ExitStack()
        gemini = None
        given = ["-p", prompt, *arguments] if prompt is not None else list(arguments)
        if self.over == HTTP:
            replies = [each if isinstance(each, Reply) else Reply(each) for each in answers]
            gemini = stack.enter_context(Gemini(replies).running())
            environment = {"GEMINI_API_KEY": "test", "GOOGLE_GEMINI_BASE_URL": gemini.url, **environment}
        else:
            given += ["--replay", str(self.recording(*answers))]
        process = self.start("run", *given, **environment)
        return Running(self, process, gemini, stack)

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start the command in the project's folder."""
        return subprocess.Popen(
            [COMMAND, *arguments],
            cwd=self.root,
            env=self.environment(**environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def recording(self, *answers: Any) -> Path:
        lines = [json.dumps({"method": "generateContentStream", "response": chunks}) + "\n" for chunks in answers]
        return self.file("answers.jsonl", "".join(lines))

    def file(self, name: str, content: str | bytes) -> Path:
        """A file beside the project."""
        file = self.folder / name
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def _noted(self, name: str) -> str:
        file = self._notes / name
        return file.read_text() if file.exists() else ""

    def _script(self, name: str, text: str) -> str:
        script = self.folder / f"{name}.hook"
        script.write_text(text)
        script.chmod(0o755)
        return shlex.quote(str(script))


class Running:
    """A run of the command that goes on. Leaving the block ends what is left of it."""

    def __init__(
        self, project: Project, process: subprocess.Popen[bytes], gemini: Gemini | None, stack: ExitStack
    ) -> None:
        self.project = project
        self.process = process
        self.gemini = gemini
        self._stack = stack

    def ended(self, stdin: str | bytes = "") -> Run:
        """Wait for the end."""
        given = stdin.encode() if isinstance(stdin, str) else stdin
        stdout, stderr = self.process.communicate(given, timeout=DEADLINE)
        return Run(
            self.project,
            self.process.returncode,
            stdout.decode(),
            stderr.decode(),
            list(self.gemini.requests) if self.gemini else [],
            self.gemini.unused if self.gemini else 0,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        self._stack.close()


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that is bound to happen."""
    give_up = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < give_up, "it did not happen"
        time.sleep(0.01)


def lives(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be collected does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.startswith("Z")


def end(*pids: int) -> None:
    """End processes that a test let live."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _saying(says: Says | Sequence[Says], counted: str) -> str:
    if not isinstance(says, list):
        return f"printf %s {shlex.quote(_text(says))}"
    cases = "".join(f"{run}) printf %s {shlex.quote(_text(said))};;\n" for run, said in enumerate(says, start=1))
    return f"case $(($(wc -l < {counted}))) in\n{cases}esac"


def _text(says: Any) -> str:
    return says if isinstance(says, str) else "" if says is None else json.dumps(says)


def _groups(given: Any) -> list[Any]:
    listed = [given] if isinstance(given, str) else given
    return [{"hooks": [{"type": "command", "command": item}]} if isinstance(item, str) else item for item in listed]
