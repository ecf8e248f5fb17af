"""What the tests of hooks reach: which hooks they run, and which decisions of theirs they see."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks.settings.matcher import own_names

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
    tools: dict[str, bool]
    """The tools in ``hooksConfig.tools`` that its matcher picks out, and whether a test ran it for them."""

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
        if others := [f"`{tool}`" for tool, is_tested in self.tools.items() if not is_tested]:
            missing.append(f"no test of {', '.join(others)}")
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
    own = hooks.config.settings.tools if hooks.config.settings else ()
    reached: dict[tuple[HookEventName, str], HookCoverage] = {}
    for entry in hooks.registry.get_all_hooks():
        if entry.enabled:
            event, name = entry.definition.event_name, entry.config.identity
            hook = reached.setdefault((event, name), HookCoverage(event, name, set(), False, {}))
            can_block = hook.can_block or event.spec_if(entry.config.acts).can_block
            chosen = [tool for tool in own if entry.matches(tool)] if event.spec.is_about_tool else []
            tools = hook.tools | (dict.fromkeys(chosen, False) if len(chosen) < len(own) else {})
            reached[event, name] = replace(hook, can_block=can_block, tools=tools)
    for result in results:
        called = str(result.test.hook_input.get("tool_name"))
        for name, outcome in result.run.decisions if result.passed else ():
            if found := reached.get((result.test.event, name)):
                found.decisions.add(outcome)
                found.tools.update({tool: True for tool in (called, *own_names(called)) if tool in found.tools})
    return list(reached.values())
