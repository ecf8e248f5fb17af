"""The scenes of ``llxprt-hooks demo``: prompts, and the recorded answers of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """One answer of the model, with the tool call that it requests, if any."""

    text: str
    tool: str = ""
    args: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """One effect of a hook, in a conversation of its own."""

    effect: str
    caption: str
    hook: str
    prompt: str
    answers: tuple[RecordedAnswer, ...] = ()
    shows_source: bool = False
    """Whether the hook's source is printed after the scene."""


SCENES = (
    Scene(
        "block",
        "a hook refuses a tool call and says why",
        "no-secrets",
        "Write the deploy script.",
        (
            RecordedAnswer(
                "I will write it.",
                "write_file",
                {"file_path": "deploy.py", "content": "KEY = 'AKIAIOSFODNN7EXAMPLE'\n"},
            ),
            RecordedAnswer("I will read the key from the environment instead."),
        ),
        shows_source=True,
    ),
    Scene(
        "rewrite",
        "a hook changes the arguments of a tool call",
        "dry-run",
        "Remove the old build.",
        (
            RecordedAnswer("The old build has to go.", "run_shell_command", {"command": "rm -rf build"}),
            RecordedAnswer("That was only a dry run."),
        ),
    ),
    Scene(
        "inject",
        "a hook adds to what the model reads",
        "house-rules",
        "Who approves a release?",
        (
            RecordedAnswer("The notes will say.", "read_file", {"file_path": "notes.txt"}),
            RecordedAnswer("Ada does."),
        ),
    ),
    Scene(
        "redact",
        "a hook changes an answer before anybody sees it",
        "redact",
        "How do I reach Ada?",
        (RecordedAnswer("Write to ada@example.com before the release."),),
    ),
    Scene(
        "restrict",
        "a hook limits the tools that the model may use",
        "look-only",
        "Look at the notes, but change nothing.",
        (
            RecordedAnswer("I will tidy them up.", "write_file", {"file_path": "notes.txt", "content": "tidy\n"}),
            RecordedAnswer("I may only look, so I left them alone."),
        ),
    ),
    Scene(
        "answer",
        "a hook answers, and the model is not called",
        "answer-book",
        "What is the capital of France?",
    ),
    Scene(
        "stop",
        "a hook ends the agent's work",
        "budget",
        "Now look at everything.",
        (RecordedAnswer("I will list the files.", "glob", {"pattern": "*.txt"}),),
    ),
)
