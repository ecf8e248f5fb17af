"""Print the result of ``fire`` for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from llxprt_hooks.cli.terminal import print_line, print_wrapped, stdout_console
from llxprt_hooks.inspection.effects import effects
from llxprt_hooks.inspection.trial import meaning
from llxprt_hooks.protocol.json_codec import decode_text, write_json
from llxprt_hooks.text import one_line, plural, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from llxprt_hooks.engine.results import HookExecutionResult
    from llxprt_hooks.inspection.trial import Trial

MAX_LINES = 100
"""Lines printed of one stream or payload. ``--json`` prints all."""

MAX_LINE_LENGTH = 2000
MAX_NAME_LENGTH = 80


def print_trial(trial: Trial, *, fired: bool) -> None:
    """Print the plan, the payload, each hook's result, the outcome and hints; ``fired``, also why no hook ran."""
    console = stdout_console()
    _print_plan(console, trial)
    shown: Mapping[str, Any] | None = None
    for result in trial.results:
        if result.hook_input is not shown:
            shown = result.hook_input
            print_line(console)
            _print_block(console, "sent on stdin", _indented(shown))
        print_line(console)
        _print_result(console, result)
    if trial.results:
        print_line(console)
        _print_outcome(console, trial)
    for failure in trial.failures:
        print_wrapped(console, ("failed", "red bold"), f": {failure}")
    for hint in trial.hints:
        print_wrapped(console, ("hint", "yellow"), f": {hint}")
    if fired and not trial.results and not trial.failures and trial.not_run is None:
        if trial.event_name.spec.can_block:
            print_wrapped(console, ("allowed", "yellow bold"), ", because no hook ran")
        else:
            print_wrapped(console, ("no hook ran", "yellow bold"))


def _print_plan(console: Console, trial: Trial) -> None:
    running = len(trial.running)
    order = "sequentially" if trial.sequential else "in parallel"
    count = f"{running or 'no'} {plural(running, 'hook')}" + (f", {order}" if running > 1 else "")
    print_line(console, (trial.event_name, "bold"), f"  plan: {count}")
    for hook in trial.plan:
        where = f"{hook.definition.origin} {hook.definition.where}".strip()
        mark = ("  runs   ", "green") if hook.runs else ("  skips  ", "yellow")
        print_line(console, mark, (one_line(hook.definition.config.identity), "bold" if hook.runs else ""))
        print_wrapped(console, f"         because {hook.why}")
        print_line(console, (f"         {where}", "dim"))


def _print_result(console: Console, result: HookExecutionResult) -> None:
    warm = ", warm" if result.warm else ", cold" if result.hook_config.warm else ""
    ending = result.signal or ("no exit code" if result.exit_code is None else f"exit code {result.exit_code}")
    print_line(console, (one_line(result.hook_config.identity), "bold"), f"  {ending}, {result.duration:.1f} ms{warm}")
    for title, text in (("stdout", result.stdout), ("stderr", result.stderr)):
        if text.strip():
            _print_block(console, title, text)
    if result.error is not None:
        print_wrapped(console, "  ", ("failed", "red"), f": {result.error}")
    print_wrapped(console, f"  means: {meaning(result)}")


def _print_outcome(console: Console, trial: Trial) -> None:
    if trial.output is not None:
        _print_block(console, "merged", _indented(trial.output.to_dict()))
    found = effects(trial.event_name, trial.output) if trial.output else []
    if trial.blocked:
        # The reason of a hook with `failClosed` begins with the same word.
        reason = f": {trial.reason}".removeprefix(": blocked") if trial.reason else ""
        print_wrapped(console, ("blocked", "red bold"), reason)
    elif trial.should_stop:
        print_wrapped(console, ("stopped", "yellow bold"), f": {trial.reason}" if trial.reason else "")
    else:
        _print_allowed(console, trial, "; ".join(found) or "nothing changed")
        return
    for effect in found[1:]:
        print_wrapped(console, f"  and {effect}")


def _print_allowed(console: Console, trial: Trial, effect: str) -> None:
    failed = [one_line(result.hook_config.identity) for result in trial.results if result.error is not None]
    if not failed:
        print_wrapped(console, ("allowed", "green bold"), f": {effect}")
        return
    *first, last = (shorten(name, MAX_NAME_LENGTH) for name in failed)
    names = f"{', '.join(first)} and {last}" if first else last
    subject = f"{plural(len(failed), 'hook')} {names}"
    words = f", because {subject} failed" if len(failed) == len(trial.results) else f": {effect}, but {subject} failed"
    print_wrapped(console, ("allowed", "yellow bold"), words)


def _indented(value: Mapping[str, Any]) -> str:
    return decode_text(msgspec.json.format(write_json(value), indent=2))


def _print_block(console: Console, title: str, text: str) -> None:
    print_line(console, (f"  {title}", "dim"))
    lines = text.rstrip("\n").split("\n")
    for each in lines[:MAX_LINES]:
        cut = len(each) - MAX_LINE_LENGTH
        more = (f"… and {cut} more characters; --json prints all", "dim") if cut > 0 else ""
        print_line(console, f"    {each[:MAX_LINE_LENGTH].removesuffix(chr(13))}", more)
    if len(lines) > MAX_LINES:
        print_line(console, (f"    … and {len(lines) - MAX_LINES} more lines; --json prints all", "dim"))
