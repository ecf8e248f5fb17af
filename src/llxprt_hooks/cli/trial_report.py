"""A fired event, told to people and to programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from llxprt_hooks.cli.terminal import print_line, print_wrapped, stdout_console
from llxprt_hooks.inspection.effects import effects
from llxprt_hooks.protocol.json_codec import decode_text, write_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from llxprt_hooks.engine.registry import HookRegistryEntry
    from llxprt_hooks.engine.results import HookExecutionResult
    from llxprt_hooks.inspection.trial import Trial

MOST_LINES = 100
"""Of one stream or payload; ``--json`` has all of them."""

LONGEST_LINE = 2000


def trial_to_dict(trial: Trial) -> dict[str, Any]:
    """What ``fire --json`` prints."""
    result = trial.result
    return {
        "event": trial.event_name.value,
        "plan": {"sequential": trial.sequential, "hooks": [_planned(choice.entry) for choice in trial.chosen]},
        "results": [_result(each) for each in result.results] if result else [],
        "final_output": trial.output.to_dict() if trial.output else None,
        "blocked": trial.blocked,
        "should_stop": trial.should_stop,
        "reason": trial.reason,
        "success": result.success if result else True,
        "hints": [*_failures(trial), *trial.hints],
    }


def _planned(entry: HookRegistryEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "command": entry.config.command,
        "matcher": entry.matcher,
        "source": entry.definition.origin,
        "timeout_ms": entry.config.timeout,
    }


def _result(result: HookExecutionResult) -> dict[str, Any]:
    return {
        "name": result.hook_config.identity,
        "command": result.hook_config.command,
        "success": result.success,
        "exit_code": result.exit_code,
        "signal": result.signal,
        "duration_ms": result.duration,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "error": None if result.error is None else str(result.error),
        "output": None if result.output is None else result.output.to_dict(),
    }


def _failures(trial: Trial) -> list[str]:
    """What the engine itself failed at."""
    return [str(error) for error in trial.result.errors] if trial.result and trial.broken else []


def print_trial(trial: Trial) -> None:
    """Everything there is to see: plan, payload, each hook, the outcome, advice."""
    console = stdout_console()
    _print_plan(console, trial)
    results = trial.result.results if trial.result else []
    shown: Mapping[str, Any] | None = None
    for result, payload in zip(results, trial.payloads(), strict=True):
        if payload is not shown:
            print_line(console)
            _print_block(console, "sent on stdin", _indented(payload))
            shown = payload
        print_line(console)
        _print_result(console, result)
    if results:
        print_line(console)
        _print_outcome(console, trial)
    for failure in _failures(trial):
        print_wrapped(console, ("failed", "red bold"), f": {failure}")
    for hint in trial.hints:
        print_wrapped(console, ("hint", "yellow"), f": {hint}")


def _print_plan(console: Console, trial: Trial) -> None:
    running = len(trial.chosen)
    order = "one after another" if trial.sequential else "side by side"
    count = f"{running or 'no'} hook{'' if running == 1 else 's'}" + (f", {order}" if running > 1 else "")
    print_line(console, (trial.event_name, "bold"), f"  plan: {count}")
    for choice in trial.choices:
        entry = choice.entry
        where = f"{entry.definition.origin} {entry.definition.where}".strip()
        mark = ("  runs   ", "green") if choice.runs else ("  skips  ", "yellow")
        print_line(console, mark, (_one_line(entry.name), "bold" if choice.runs else ""))
        print_wrapped(console, f"         because {choice.why}")
        print_line(console, (f"         {where}", "dim"))


def _print_result(console: Console, result: HookExecutionResult) -> None:
    ending = result.signal or ("no exit code" if result.exit_code is None else f"exit code {result.exit_code}")
    print_line(console, (_one_line(result.hook_config.identity), "bold"), f"  {ending}, {result.duration:.1f} ms")
    for title, text in (("stdout", result.stdout), ("stderr", result.stderr)):
        if text.strip():
            _print_block(console, title, text)
    if result.error is not None:
        print_wrapped(console, "  ", ("failed", "red"), f": {result.error}")
    print_wrapped(console, f"  means: {_meaning(result)}")


def _meaning(result: HookExecutionResult) -> str:
    blocks = result.output is not None and result.output.is_blocking_decision()
    if result.error is not None and not blocks:
        return "nothing: a hook that failed counts as not run"
    said = effects(result.event_name, result.output) if result.output else []
    return "; ".join(said) or "allowed, nothing changed"


def _print_outcome(console: Console, trial: Trial) -> None:
    if trial.output is not None:
        _print_block(console, "merged", _indented(trial.output.to_dict()))
    said = effects(trial.event_name, trial.output) if trial.output else []
    if trial.blocked:
        print_wrapped(console, ("blocked", "red bold"), f": {trial.reason}" if trial.reason else "")
    elif trial.should_stop:
        print_wrapped(console, ("stopped", "yellow bold"), f": {trial.reason}" if trial.reason else "")
    else:
        print_wrapped(console, ("allowed", "green bold"), f": {'; '.join(said) or 'nothing changed'}")
        return
    for effect in said[1:]:
        print_wrapped(console, f"  and {effect}")


def _indented(value: Mapping[str, Any]) -> str:
    return decode_text(msgspec.json.format(write_json(value), indent=2))


def _print_block(console: Console, title: str, text: str) -> None:
    print_line(console, (f"  {title}", "dim"))
    lines = text.rstrip("\n").split("\n")
    for each in lines[:MOST_LINES]:
        cut = len(each) - LONGEST_LINE
        more = (f"… and {cut} characters; --json has all", "dim") if cut > 0 else ""
        print_line(console, f"    {each[:LONGEST_LINE].removesuffix(chr(13))}", more)
    if len(lines) > MOST_LINES:
        print_line(console, (f"    … and {len(lines) - MOST_LINES} lines; --json has all", "dim"))


def _one_line(text: str) -> str:
    return " ".join(text.split())
