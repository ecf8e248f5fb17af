"""A recorded event, used again: as a command, as a test for its hooks, or fired once more and compared."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from llxprt_hooks._support.text import indented_json
from llxprt_hooks.commands.fire import Trial, sample_input
from llxprt_hooks.commands.inspect.timeline import RecordedDecision, TimelineEvent, decision_of
from llxprt_hooks.core.engine.reporting import LOGGED_TEXT
from llxprt_hooks.events import HookEventName

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.results import HookExecutionResult
    from llxprt_hooks.fleet.audit.record import Record

_CONTEXT = 4
"""Unchanged lines shown around a difference."""

_MAX_LINES = 2000
"""Lines of each text that are compared; comparing is quadratic."""

DiffLine = tuple[str, str]
"""``+``, ``-``, a space, or ``…`` where unchanged lines are left out; and the line."""

_EXPECTED = {RecordedDecision.BLOCKED: "deny", RecordedDecision.STOPPED: "stop", RecordedDecision.ASKED: "ask"}


def input_of(event: TimelineEvent) -> tuple[dict[str, Any], bool]:
    """Return the event's own fields as they were recorded, or an example; and whether they were recorded."""
    name = HookEventName(event.event_name)
    payload = event.payload
    if payload is None:
        fields = sample_input(name, event.subject)
        matched = name.spec.matched_field
        return ({**fields, matched: event.subject} if matched and event.subject else fields), False
    return {field: payload[field] for field in name.spec.fields if field in payload}, True


def fire_command(event_name: str, hook_input: Mapping[str, Any], project: str) -> str:
    """Return the command line that fires an event.

    >>> fire_command("SessionStart", {"source": "startup"}, "/home/me/my project")
    'llxprt-hooks fire SessionStart --input \\'{"source": "startup"}\\' -C \\'/home/me/my project\\''
    """
    words = ["llxprt-hooks", "fire", event_name, "--input", json.dumps(hook_input, ensure_ascii=False)]
    return shlex.join([*words, *(["-C", project] if project else [])])


def hook_test(
    event_name: str, hook_input: Mapping[str, Any], decision: str, reason: str, output: Mapping[str, Any] | None
) -> str:
    """Return a test that expects what was decided, as the content of a ``*.hooktest.json`` file."""
    asks = (output or {}).get("decision") == "ask"
    expected = {"decision": _EXPECTED.get(RecordedDecision(decision), "ask" if asks else "allow")}
    if decision in _EXPECTED and reason:
        expected["reason"] = reason
    case = {"event": event_name, "input": dict(hook_input), "expect": expected}
    return indented_json([case]) + "\n"


def outcome_of(trial: Trial) -> dict[str, Any]:
    """Convert a trial's result to the names of the timeline."""
    errors = [*trial.failures, *(str(result.error) for result in trial.results if result.error is not None)]
    output = trial.output.to_dict() if trial.output else {}
    facts = {
        "blocked": trial.blocked,
        "stopped": trial.should_stop,
        "asked": trial.asked,
        "effects": sorted(output.get("hookSpecificOutput") or {}),
    }
    decision = decision_of(facts, failed=bool(errors))
    return {"decision": decision, "reason": trial.reason or (errors[0] if errors else ""), "effects": facts["effects"]}


def compare(event: TimelineEvent, hook_input: Mapping[str, Any], trial: Trial) -> dict[str, Any]:
    """Return what is different from the recorded event when it is fired again."""
    before, recorded = input_of(event)
    effects = event.record.get("effects")
    outcome = outcome_of(trial)
    was = {"decision": event.decision, "reason": event.reason, "effects": effects if isinstance(effects, list) else []}
    merged = event.output
    now = trial.output.to_dict() if trial.output else None
    return {
        "input": diff(indented_json(before), indented_json(hook_input)) if recorded else None,
        "before": was,
        "after": outcome,
        "changed": [name for name in outcome if outcome[name] != was[name]],
        "merged": None if merged is None else diff(indented_json(merged), indented_json(now) if now else ""),
        "hooks": _hooks(event, trial),
    }


def diff(before: str, after: str) -> list[DiffLine]:
    """Return the differences between two texts, with a few lines around them; empty if there is none."""
    if before == after:
        return []
    one, two = before.splitlines()[:_MAX_LINES], after.splitlines()[:_MAX_LINES]
    lines: list[DiffLine] = []
    for group in SequenceMatcher(None, one, two, autojunk=False).get_grouped_opcodes(_CONTEXT):
        if lines or group[0][1] > 0:
            lines.append(("…", ""))
        for kind, one_start, one_end, two_start, two_end in group:
            if kind == "equal":
                lines += [(" ", line) for line in one[one_start:one_end]]
                continue
            lines += [("-", line) for line in one[one_start:one_end]]
            lines += [("+", line) for line in two[two_start:two_end]]
    return lines


def _hooks(event: TimelineEvent, trial: Trial) -> list[dict[str, Any]]:
    recorded: dict[str, list[Record]] = {}
    for execution in event.executions:
        recorded.setdefault(str(execution.get("hook")), []).append(execution)
    found = []
    for result in trial.results:
        same = recorded.get(result.hook_config.identity)
        before = same.pop(0) if same else None
        found.append({"hook": result.hook_config.identity, **_hook(before, result)})
    missing = [name for name, left in recorded.items() for _ in left]
    return [*found, *({"hook": name, "status": "did not run again", "changes": []} for name in missing)]


def _hook(before: Record | None, result: HookExecutionResult) -> dict[str, Any]:
    if before is None:
        return {"status": "did not run before", "changes": []}
    withheld = "payload" not in before and "hookSpecificOutput" in result.stdout
    pairs = {
        "exit code": (str(before.get("exit_code")), str(result.exit_code)),
        "signal": (str(before.get("signal") or ""), result.signal or ""),
        "error": (str(before.get("error") or ""), str(result.error or "")),
        "stdout": ("", "") if withheld else (str(before.get("stdout") or ""), result.stdout[:LOGGED_TEXT]),
        "stderr": (str(before.get("stderr") or ""), result.stderr[:LOGGED_TEXT]),
    }
    changes = [{"what": what, "lines": diff(was, now)} for what, (was, now) in pairs.items() if was != now]
    return {"status": "changed" if changes else "same", "changes": changes}
