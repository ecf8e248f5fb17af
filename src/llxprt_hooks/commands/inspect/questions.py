"""The questions of agents on this machine that wait for an answer, while a person has the inspector open.

An answer is for one question, with the arguments that the page showed: their digest comes back with it. The agent gets
it once. A question is gone if its agent has not repeated it for a moment, or if it was not answered in time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from llxprt_hooks._support.json_codec import write_json
from llxprt_hooks._support.text import PROSE, escape_for_terminal
from llxprt_hooks.integrations.inspector_questions import EXPIRES, REPEATED, WORDS

GONE_AFTER: Final = 10 * REPEATED
"""Seconds after which a question that its agent has not repeated is gone."""

MAX_QUESTIONS: Final = 100
MAX_ARGUMENTS: Final = 256 * 1024
"""Characters of arguments that a page can show; nobody should approve what they cannot see."""

_TEXTS: Final = ("id", "digest", "tool_name", "reason", "hook", "session_id", "project")


class UnknownQuestionError(LookupError):
    """An answer is not for a question that waits."""


@dataclass(slots=True)
class _Question:
    digest: str
    shown: dict[str, Any]
    """What the page gets."""
    told: float
    ends: float
    answer: str | None = None


class Questions:
    """The questions that wait, by their id."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._questions: dict[str, _Question] = {}

    def told(self, said: Mapping[str, Any]) -> str | None:
        """Take a question, which its agent repeats; return the answer if there is one. Raises ``ValueError``."""
        self._forget()
        now = self._clock()
        question = self._questions.get(str(said.get("id")))
        if question is None:
            question = _question(said, now)
            if len(self._questions) >= MAX_QUESTIONS:
                raise ValueError("Too many questions wait already.")
            self._questions[said["id"]] = question
        elif question.digest != said.get("digest"):
            raise ValueError("This question is about another call.")
        question.told = now
        return question.answer

    def answer(self, identity: object, digest: object, word: object) -> None:
        """Answer a question. Raises ``UnknownQuestionError`` if it does not wait, or was about other arguments."""
        self._forget()
        question = self._questions.get(identity) if isinstance(identity, str) else None
        if question is None or question.answer is not None or question.digest != digest:
            raise UnknownQuestionError("This question does not wait for an answer any more.")
        if not isinstance(word, str) or word not in WORDS:
            raise ValueError(f"The answer must be one of {', '.join(WORDS)}.")
        question.answer = word

    def waiting(self) -> list[dict[str, Any]]:
        """Return the questions without an answer, oldest first."""
        self._forget()
        return [question.shown for question in self._questions.values() if question.answer is None]

    def _forget(self) -> None:
        now = self._clock()
        gone = [
            identity
            for identity, question in self._questions.items()
            if now - question.told > GONE_AFTER or (question.answer is None and now >= question.ends)
        ]
        for identity in gone:
            del self._questions[identity]


def _question(said: Mapping[str, Any], now: float) -> _Question:
    texts = {name: said.get(name) for name in _TEXTS}
    arguments, left = said.get("tool_input"), said.get("seconds_left")
    if not all(isinstance(text, str) for text in texts.values()) or not isinstance(arguments, dict):
        raise ValueError("This is not a question.")
    if not isinstance(left, (int, float)) or not 0 < left <= EXPIRES:
        raise ValueError("The question has no time left.")
    shown = {name: _shown(value) for name, value in arguments.items()}
    if sum(map(len, shown.values())) > MAX_ARGUMENTS:
        raise ValueError("The arguments are too large to be shown.")
    return _Question(
        digest=str(texts["digest"]),
        shown={
            **{name: escape_for_terminal(str(text), keep=PROSE) for name, text in texts.items()},
            "arguments": [[escape_for_terminal(name), value] for name, value in shown.items()],
            "pid": said.get("pid") if isinstance(said.get("pid"), int) else None,
            "ends": round((time.time() + left) * 1000),
        },
        told=now,
        ends=now + left,
    )


def _shown(value: Any) -> str:
    """Return a value in which no character is invisible: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return escape_for_terminal(value, keep=PROSE)
    return json.dumps(json.loads(write_json(value)), indent=2, ensure_ascii=True)
