"""The agent: one run of it, whose model answers from a recording or over HTTP."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack, chdir
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.support import preloaded
from tests.support.cli import COMMAND, Run, call
from tests.support.gemini import Chunks, Gemini, Received, Reply
from tests.support.processes import DEADLINE
from tests.support.project import Project

REPLAY, HTTP = "replay", "http"


@dataclass(frozen=True)
class AgentRun(Run):
    """A run of the agent that has ended."""

    project: Project = field(repr=False)
    requests: list[Received] = field(default_factory=list, repr=False)
    """What the Gemini API was sent."""
    unused: int = 0
    """Replies of the Gemini API that were not asked for."""

    @property
    def calls(self) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = self.json["tool_calls"]
        return calls

    @property
    def statuses(self) -> list[str]:
        return [call["status"] for call in self.calls]

    def payloads(self, hook: str = "hook") -> list[dict[str, Any]]:
        return self.project.payloads(hook)


class AgentProject(Project):
    """A project in which the agent runs, with the hooks approved."""

    def __init__(self, folder: Path, over: str = REPLAY) -> None:
        super().__init__(folder, approved=True)
        self.over = over
        self.starts_as_users_do = False

    def run(
        self,
        *arguments: str,
        prompt: str | None = "Do it.",
        answers: Sequence[Chunks | Reply] = (),
        stdin: str | bytes = "",
        **environment: str,
    ) -> AgentRun:
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
        given, more, gemini = self._model(stack, answers)
        if prompt is not None:
            given = ["-p", prompt, *given]
        process = self.start("run", *arguments, *given, **{**more, **environment})
        return Running(self, process, gemini, stack)

    def play(self, *arguments: str, answers: Sequence[Chunks | Reply] = (), **environment: str) -> AgentRun:
        """Run the agent on a prompt in this process, which is quicker."""
        with ExitStack() as stack:
            given, more, gemini = self._model(stack, answers)
            run = self.call("run", "-p", "Do it.", *arguments, *given, **{**more, **environment})
        return AgentRun(run.status, run.stdout, run.stderr, self, *(gemini.used() if gemini else ()))

    def _model(
        self, stack: ExitStack, answers: Sequence[Chunks | Reply]
    ) -> tuple[list[str], dict[str, str], Gemini | None]:
        """The model with these answers: the arguments and the environment to find it, and the API if there is one."""
        if self.over == REPLAY:
            return ["--replay", str(self.recording(*answers))], {}, None
        replies = [each if isinstance(each, Reply) else Reply(each) for each in answers]
        gemini = stack.enter_context(Gemini(replies).running())
        return [], {"GEMINI_API_KEY": "test", "GOOGLE_GEMINI_BASE_URL": gemini.url}, gemini

    def call(self, *arguments: str, **environment: str) -> AgentRun:
        """Run the command in this process."""
        with self.inside(**environment), chdir(self.root):
            run = call(*arguments)
        return AgentRun(run.status, run.stdout, run.stderr, self)

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start the command in the project, to be written to and read from."""
        env = self.environment(**environment)
        return preloaded.start([COMMAND, *arguments], cwd=self.root, env=env, as_users_do=self.starts_as_users_do)

    def recording(self, *answers: Any) -> Path:
        """A file of recorded answers."""
        lines = [json.dumps({"method": "generateContentStream", "response": chunks}) + "\n" for chunks in answers]
        return self.file("answers.jsonl", "".join(lines))

    def file(self, name: str, content: str | bytes) -> Path:
        """A file beside the project."""
        return self.write(self.folder / name, content)


class Running:
    """A run of the command that goes on. Leaving the block ends what is left of it."""

    def __init__(
        self, project: AgentProject, process: subprocess.Popen[bytes], gemini: Gemini | None, stack: ExitStack
    ) -> None:
        self.project = project
        self.process = process
        self.gemini = gemini
        self._stack = stack

    def ended(self, stdin: str | bytes = "") -> AgentRun:
        """Wait for the end."""
        given = stdin.encode() if isinstance(stdin, str) else stdin
        stdout, stderr = self.process.communicate(given, timeout=DEADLINE)
        return AgentRun(
            self.process.returncode,
            stdout.decode(),
            stderr.decode(),
            self.project,
            *(self.gemini.used() if self.gemini else ()),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        self._stack.close()
