"""What the tests of hooks reach: which hooks they run, and which decisions of theirs they see."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from llxprt_hooks.commands.fire import LoadedHooks
    from llxprt_hooks.commands.test.run import TestResult
    from llxprt_hooks.events import HookEventName

_REFUSALS: Final = {"blocked", "asked", "stopped"}


@dataclass(frozen=True, slots=True)
class HookCoverage:
    """A hook, and what it decided in the tests that ran it."""

    event: HookEventName
    hook: str
    decisions: set[str]
    """Its outcomes, one word each."""
    can_block: bool

    @property
    def untested(self) -> list[str]:
        """What no test has seen, one phrase each; empty if tests reach all that the hook is for."""
        if not self.decisions:
            return ["no test runs it"]
        missing = []
        if self.can_block and not _REFUSALS & self.decisions:
            missing.append("no test in which it refuses anything")
        if "allowed" not in self.decisions:
            missing.append("no test in which it lets anything pass")
        return missing

    def to_dict(self) -> dict[str, Any]:
        return {
            "event": self.event.value,
            "hook": self.hook,
            "decisions": sorted(self.decisions),
            "untested": self.untested,
        }


def coverage(hooks: LoadedHooks, results: Iterable[TestResult]) -> list[HookCoverage]:
    """Return what the given results say about each hook that may run, in the order of the settings.

    A test that failed counts for nothing: what it saw is not what its author expects.
    """
    seen: dict[tuple[HookEventName, str], set[str]] = {}
    able: dict[tuple[HookEventName, str], bool] = {}
    for entry in hooks.registry.get_all_hooks():
        if entry.enabled:
            key = entry.definition.event_name, entry.config.identity
            seen[key] = set()
            able[key] = able.get(key, False) or key[0].spec_if(entry.config.acts).can_block
    for result in results:
        for name, outcome in result.run.decisions if result.passed else ():
            seen.get((result.test.event, name), set()).add(outcome)
    return [HookCoverage(*key, decisions, able[key]) for key, decisions in seen.items()]
