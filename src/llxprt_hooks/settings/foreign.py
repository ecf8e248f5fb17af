"""What the engine asks of a hook that speaks another agent's language (D-144).

A dialect, one module in ``dialects``, gives each of its hooks such an object. The engine sends what it returns, gets
native answers from it, and knows no dialect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from llxprt_hooks.events import HookEventName
    from llxprt_hooks.process import Completed
    from llxprt_hooks.settings.definitions import HookConfig, HookDefinition, HookSet
    from llxprt_hooks.settings.document import Document
    from llxprt_hooks.settings.levels import Level
    from llxprt_hooks.settings.problem import Problem

NATIVE: Final = "llxprt"
"""The name of our own dialect."""

DIALECTS: Final[dict[str, str]] = {
    "claude": "llxprt_hooks.dialects.claude",
    "gemini": "llxprt_hooks.dialects.gemini",
    "codex": "llxprt_hooks.dialects.codex",
    "cursor": "llxprt_hooks.dialects.cursor",
    "copilot": "llxprt_hooks.dialects.copilot",
}
"""The languages of other agents: for each a module with a ``DIALECT``, imported when a hook speaks it."""

ENV_FILES: Final[dict[str, str]] = {"claude": "CLAUDE_ENV_FILE"}
"""The variable in which SessionStart hooks of a dialect find a file. The agent's shell reads what they write to it."""

TRANSCRIPTS: Final[dict[str, str]] = {"claude": "llxprt_hooks.dialects.claude.transcript"}
"""The dialects whose hooks read the conversation from a file: for each a module with a ``Transcript``."""


class UnknownDialectError(ValueError):
    """There is no dialect with this name."""

    def __init__(self, name: object) -> None:
        known = ", ".join(map(repr, (NATIVE, *DIALECTS)))
        super().__init__(f"unknown dialect {name!r:.80}: expected one of {known}")


class Situation(NamedTuple):
    """What a dialect may tell its hooks besides the event."""

    directory: str
    """The project folder, in which hooks run."""
    approval_mode: str = "default"
    """``default``, ``auto_edit`` or ``yolo``: which calls the program runs without asking."""
    transcript: str = ""
    """The file with the conversation in the dialect's form; empty if the program has its own, or none."""
    prompt_id: str = ""
    """The id of the prompt that the agent works on; empty if nobody knows it."""


class Answer(NamedTuple):
    """What a hook of another dialect answered, in native terms."""

    fields: Mapping[str, Any] | None = None
    """The fields of a native output; None if it said nothing."""
    error: str | None = None
    """Why it failed, as the end of a sentence that starts with the hook."""
    whole_input: bool = False
    """Whether the arguments in ``fields`` are all that there are, instead of changes to some."""
    beside_result: str = ""
    """Text for the model, after the tool's result."""
    to_user: str = ""
    """Text for the user, which the model does not get."""


class ForeignHook(Protocol):
    """The language of one hook."""

    @property
    def dialect(self) -> str:
        """The name of the dialect."""

    @property
    def key(self) -> str:
        """What makes it another hook than one with the same command: those with equal keys run once per event."""

    @property
    def view(self) -> str:
        """Hooks with the same one get the same payload for an event."""

    @property
    def background(self) -> bool:
        """Whether nobody waits for it."""

    @property
    def folder(self) -> str:
        """Where it runs, if that is not the project: a path, which may be relative to the project."""

    def runs_for(self, event_name: HookEventName, hook_input: Mapping[str, Any]) -> Sequence[ForeignHook]:
        """The runs of the hook for this event, usually itself once; none if it is not for it, as far as its matcher
        cannot tell. Where its product has several calls for one of ours, one for each.
        """

    def payload(
        self, event_name: HookEventName, hook_input: Mapping[str, Any], situation: Situation
    ) -> Mapping[str, Any]:
        """What the hook receives for a native event."""

    def environment(self, payload: Mapping[str, Any]) -> Mapping[str, str]:
        """The variables that only hooks of the dialect get."""

    def read(
        self, event_name: HookEventName, hook_input: Mapping[str, Any], situation: Situation, ended: Completed
    ) -> Answer:
        """What the end of its process means."""


class DialectFile(NamedTuple):
    """A settings file of another agent."""

    file: Path
    level: Level
    variables: Mapping[str, str] = {}
    """What its hooks get in their environment."""
    is_plugin: bool = False
    """Whether the user named it, as a plugin's: it needs no approval, and its switches do not count."""
    is_policy: bool = False
    """Whether it is the administrator's, so that no other file switches its hooks off."""


class ReadFile(NamedTuple):
    """What a dialect finds in one of its files."""

    hooks: Mapping[str, Any]
    variables: Mapping[str, str] = {}
    """Variables that the file sets for hooks."""
    off: bool | None = None
    """Whether it switches hooks off; None if it does not say."""
    gaps: Sequence[tuple[int, str]] = ()
    """What cannot be honored here: where in the text, and a message."""
    disabled: Sequence[str] = ()
    """Names, or commands of hooks without a name, that it switches off in all files of the dialect."""


class NativeCall(NamedTuple):
    """An event in native names."""

    event_name: HookEventName
    tool_name: str | None
    tool_input: Mapping[str, Any] | None
    fields: Mapping[str, Any] = {}
    """What else makes it this event."""
    is_question: bool = False
    """Whether it is the question whether the call may run, which a person would be asked."""


class Dialect(Protocol):
    """The language of another agent: its settings files, and what its hooks get and say."""

    @property
    def title(self) -> str:
        """The agent, for people, with the version that the dialect is taken from."""

    @property
    def folders(self) -> Sequence[str]:
        """Folders of a project in which every file may have settings."""

    def files(self, project: Path) -> Sequence[DialectFile]:
        """The settings files of a project and of the user, in the order in which their hooks run."""

    def plugin(self, folder: Path) -> DialectFile:
        """The file with the hooks of a plugin."""

    def read_file(self, document: Document) -> ReadFile:
        """The hooks of a settings file, and what else it says about them."""

    def read_definitions(self, hook_set: HookSet) -> tuple[list[HookDefinition], list[Problem]]:
        """All usable hooks of a ``hooks`` object in the dialect, and what is wrong with the others."""

    def speaking(self, config: HookConfig) -> HookConfig:
        """A native hook whose script speaks the dialect."""

    def native_call(self, event: str, tool: str | None, arguments: Mapping[str, Any] | None) -> NativeCall | None:
        """An event in the dialect's names; None if there is no such event."""
