"""One walk over the hooks of a ``hooks`` object: its events, their groups, and the hooks of each.

Whatever does not have the form event → array of groups → object with an array ``hooks`` is reported and passed over.

>>> hooks = {"BeforeTool": [{"hooks": [{"type": "command", "command": "true"}]}]}
>>> [where_words(entry.path) for entry in hook_entries(hooks)]
['hooks.BeforeTool[0].hooks[0]']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from llxprt_hooks.settings.shape import found_words

SWITCHES: Final = ("enabled", "disabled")
"""Keys beside the events that are not events: other spellings of the keys of ``hooksConfig``."""

DISCARDED: Final = "discarded, and nothing is blocked in its place"
"""What becomes of hooks that cannot be used."""

LEFT_OUT: Final = object()
"""Takes the place of a hook that was reported and must not run, so that the hooks after it keep their position."""

Steps = tuple[str | int, ...]
"""The way to a value of a settings file, as ``Node.at`` takes it."""

Report = Callable[[Steps, str], None]


class HookEntry(msgspec.Struct, frozen=True):
    """One hook as it is written in settings, and its group."""

    event: str
    group: Mapping[str, Any]
    hook: Mapping[str, Any]
    group_number: int
    number: int

    @property
    def path(self) -> Steps:
        return ("hooks", self.event, self.group_number, "hooks", self.number)


class HookGroup(msgspec.Struct, frozen=True):
    event: str
    fields: Mapping[str, Any]
    number: int

    @property
    def path(self) -> Steps:
        return ("hooks", self.event, self.number)

    def entries(self, report: Report = lambda path, message: None) -> Iterator[HookEntry]:
        """The hooks of the group that are objects."""
        hooks = self.fields.get("hooks")
        if not isinstance(hooks, list | tuple):
            report(self.path, f"discarded: `hooks` must be an array of hooks, found {found_words(hooks)}")
            return
        for index, hook in enumerate(hooks):
            if isinstance(hook, (dict, Mapping)):  # a dict is recognized faster
                yield HookEntry(self.event, self.fields, hook, self.number, index)
            elif hook is not LEFT_OUT:
                path = (*self.path, "hooks", index)
                report(path, f"{DISCARDED}: expected an object with `type`, found {found_words(hook)}")


def hook_groups(hooks: object, report: Report = lambda path, message: None) -> Iterator[HookGroup]:
    """The groups of a ``hooks`` object that are objects, in order."""
    for event, groups in hooks.items() if isinstance(hooks, Mapping) else ():
        if event in SWITCHES:
            continue
        if not isinstance(groups, list | tuple):
            report(("hooks", event), f"{DISCARDED}: expected an array of hook groups, found {found_words(groups)}")
            continue
        for index, group in enumerate(groups):
            if isinstance(group, (dict, Mapping)):
                yield HookGroup(event, group, index)
            elif group is not LEFT_OUT:
                found = found_words(group)
                report(("hooks", event, index), f"{DISCARDED}: expected an object with `hooks`, found {found}")


def hook_entries(hooks: object) -> Iterator[HookEntry]:
    """All hooks of a ``hooks`` object that are objects, in order."""
    for group in hook_groups(hooks):
        yield from group.entries()


def where_words(path: Steps) -> str:
    """A path as messages have it."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
