"""What an agent tells whoever shows it: a screen, a JSON document, a stream of JSON lines."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from llxprt_hooks.agent.scheduler import ToolCall


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that happened. ``type`` names it in streams."""

    type: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        return {"type": self.type, **asdict(self)}


@dataclass(frozen=True, slots=True)
class AnswerText(Note):
    """A piece of the model's answer, to be shown now."""

    type: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True, slots=True)
class AnswerEnd(Note):
    """The answer is complete; ``text`` is all that was shown of it."""

    type: ClassVar[str] = "answer"
    text: str


@dataclass(frozen=True, slots=True)
class ToolState(Note):
    """A tool call has come into another state."""

    type: ClassVar[str] = "tool_call"
    call: ToolCall

    def to_dict(self) -> dict[str, Any]:
        return {"type": self.type, **self.call.to_dict(), "state": self.call.state.value}


@dataclass(frozen=True, slots=True)
class ModelBlocked(Note):
    """A hook kept the model from being called, and gave no answer in its place."""

    type: ClassVar[str] = "blocked"
    reason: str


@dataclass(frozen=True, slots=True)
class Stopped(Note):
    """A hook stopped the agent."""

    type: ClassVar[str] = "stopped"
    reason: str


@dataclass(frozen=True, slots=True)
class Warned(Note):
    """Something the user should know."""

    type: ClassVar[str] = "warning"
    message: str


class Audience(Protocol):
    """Whoever shows what happens."""

    def tell(self, note: Note) -> None:
        """Something happened."""


class Silence:
    """An audience that shows nothing."""

    def tell(self, note: Note) -> None:
        return
