"""The agent's events, and the interface of a user interface that shows them: a screen, JSON or JSON lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from llxprt_hooks._support.text import one_line, shorten

if TYPE_CHECKING:
    from llxprt_hooks.agent.scheduler import RequestedCall

_MAX_NAME = 60


def hook_names(names: Iterable[str]) -> str | None:
    """Return the hooks that decided something, for one line on a screen; None if there are none."""
    return ", ".join(shorten(one_line(name), _MAX_NAME) for name in names) or None


@dataclass(frozen=True, slots=True)
class AgentEvent:
    """Base class of events. ``type`` is the event's name in JSON output."""

    type: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        return {"type": self.type, **asdict(self)}


@dataclass(frozen=True, slots=True)
class AnswerText(AgentEvent):
    """A piece of the model's response, to show immediately."""

    type: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True, slots=True)
class AnswerEnd(AgentEvent):
    """The answer is complete. ``text`` is the whole text that was shown."""

    type: ClassVar[str] = "answer"
    text: str


@dataclass(frozen=True, slots=True)
class ToolState(AgentEvent):
    type: ClassVar[str] = "tool_call"
    call: RequestedCall

    def to_dict(self) -> dict[str, Any]:
        return {
            "type": self.type,
            **self.call.to_dict(),
            "state": self.call.state.value,
            "blocked_by": self.call.blocked_by,
        }


@dataclass(frozen=True, slots=True)
class HookDecision(AgentEvent):
    """A hook decided something, for a reason."""

    words: ClassVar[str]
    reason: str
    hook: str | None = None

    @property
    def sentence(self) -> str:
        return self.words.format(self.hook or "a hook") + (f": {self.reason}" if self.reason else "")


class ModelBlocked(HookDecision):
    """A hook blocked the model call and supplied no answer instead."""

    type: ClassVar[str] = "blocked"
    words: ClassVar[str] = "the model call was blocked by {}"


class PromptRefused(HookDecision):
    """A hook refused the prompt, so that the model did not get it."""

    type: ClassVar[str] = "refused"
    words: ClassVar[str] = "the prompt was refused by {}"


class Continued(HookDecision):
    """A hook lets the agent continue, with the reason as its prompt."""

    type: ClassVar[str] = "continued"
    words: ClassVar[str] = "{} lets the agent continue"


class Stopped(HookDecision):
    """A hook stopped the agent."""

    type: ClassVar[str] = "stopped"
    words: ClassVar[str] = "stopped by {}"


@dataclass(frozen=True, slots=True)
class WarningEvent(AgentEvent):
    type: ClassVar[str] = "warning"
    message: str


class UserInterface(Protocol):
    def handle(self, event: AgentEvent) -> None:
        """Show an event."""


class NoInterface:
    def handle(self, event: AgentEvent) -> None:
        return
