"""One walk over the hooks of a ``hooks`` object: its events, their groups, and the hooks of each.

Whatever does not have the form event → array of groups → object with an array ``hooks`` is reported and passed over.

>>> hooks = {"BeforeTool": [{"hooks": [{"type": "command", "command": "true"}]}]}
>>> [where_words(entry.path) for entry in hook_entries(hooks)]
['hooks.BeforeTool[0].hooks[0]']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from llxprt_hooks.settings.jsonc import Kind, Node, node_of
from llxprt_hooks.settings.shape import found_words

if TYPE_CHECKING:
    from llxprt_hooks.settings.document import Document

SWITCHES: Final = ("enabled", "disabled")
"""Keys beside the events that are not events: other spellings of the keys of ``hooksConfig``."""

DISCARDED: Final = "discarded, so it blocks nothing"
"""What becomes of hooks that cannot be used."""

LEFT_OUT: Final = object()
"""Takes the place of a hook that was reported and must not run, so that the hooks after it keep their position."""

Steps = tuple[str | int, ...]
"""The way to a value of a settings file, as ``Node.at`` takes it."""

Report = Callable[[int, Steps, str], None]
"""Is told what is wrong with a value: its offset, the way to it, and a message."""


def _ignore(offset: int, path: Steps, message: str) -> None: ...


class WrittenHooks(dict[str, Any]):
    """The ``hooks`` object of a file as plain values, with the nodes that they come from."""

    def __init__(self, document: Document, node: Node) -> None:
        super().__init__(node.to_value())
        self.document = document
        self.node = node


class HookGroup(NamedTuple):
    """One group as it is written in settings."""

    event: str
    node: Node
    number: int

    @property
    def path(self) -> Steps:
        return ("hooks", self.event, self.number)

    @property
    def matcher(self) -> str | None:
        """The matcher, if it is a string."""
        node = self.node.at("matcher")
        return node.scalar if node and isinstance(node.scalar, str) else None

    def entries(self, report: Report = _ignore) -> Iterator[HookEntry]:
        """The hooks of the group that are objects."""
        hooks = self.node.at("hooks")
        if hooks is None or hooks.kind is not Kind.ARRAY:
            found = found_words(hooks)
            report(self.node.start, self.path, f"discarded: `hooks` must be an array of hooks, found {found}")
            return
        for number, hook in enumerate(hooks.items):
            if hook.kind is Kind.OBJECT:
                yield HookEntry(self, hook, number)
            elif hook.scalar is not LEFT_OUT:
                found = f"expected an object with `type`, found {found_words(hook)}"
                report(hook.start, (*self.path, "hooks", number), f"{DISCARDED}: {found}")


class HookEntry(NamedTuple):
    """One hook as it is written in settings, and its group."""

    group: HookGroup
    node: Node
    number: int

    @property
    def event(self) -> str:
        return self.group.event

    @property
    def hook(self) -> Mapping[str, Any]:
        """The hook's plain values."""
        fields: Mapping[str, Any] = self.node.to_value()
        return fields

    @property
    def path(self) -> Steps:
        return (*self.group.path, "hooks", self.number)


def event_groups(event: str, groups: Node, report: Report = _ignore) -> Iterator[HookGroup]:
    """The groups of an event that are objects, in order."""
    if groups.kind is not Kind.ARRAY:
        found = f"expected an array of hook groups, found {found_words(groups)}"
        report(groups.start, ("hooks", event), f"{DISCARDED}: {found}")
        return
    for number, group in enumerate(groups.items):
        if group.kind is Kind.OBJECT:
            yield HookGroup(event, group, number)
        elif group.scalar is not LEFT_OUT:
            found = f"expected an object with `hooks`, found {found_words(group)}"
            report(group.start, ("hooks", event, number), f"{DISCARDED}: {found}")


def hook_entries(hooks: object) -> Iterator[HookEntry]:
    """All hooks of a ``hooks`` object that are objects, in order."""
    for event, member in hooks_node(hooks).fields.items():
        for group in event_groups(event, member.value) if event not in SWITCHES else ():
            yield from group.entries()


def hooks_node(hooks: object) -> Node:
    """The node of a ``hooks`` object: of a file with positions, of a program's values without."""
    return hooks.node if isinstance(hooks, WrittenHooks) else node_of(hooks)


def where_words(path: Steps) -> str:
    """A path as messages have it."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
