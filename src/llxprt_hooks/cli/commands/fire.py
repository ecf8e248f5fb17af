"""``llxprt-hooks fire``: run the configured hooks for one event, without an agent."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from llxprt_hooks._support.fields import found
from llxprt_hooks._support.json_codec import decode_text
from llxprt_hooks._support.terminal import line, print_json, print_line, print_wrapped, stderr_console, stdout_console
from llxprt_hooks._support.text import indented_json, one_line, plural, shorten
from llxprt_hooks.cli.options import (
    EventType,
    RequiredHookType,
    dialect_options,
    directory_option,
    json_option,
    tool_names,
)
from llxprt_hooks.commands.exit_status import ExitStatus
from llxprt_hooks.commands.fire import (
    AHEAD_PATIENCE,
    ZYGOTE_PATIENCE,
    InvalidInputError,
    Trial,
    attempt,
    complete_input,
    effects,
    foreign_call,
    meaning,
    sent_to,
)
from llxprt_hooks.commands.log import LogFilter, read_log
from llxprt_hooks.core.engine.guards import GuardMissingError
from llxprt_hooks.core.engine.observer import HookObserver, HookStarted
from llxprt_hooks.events import HookEventName
from llxprt_hooks.process.ahead import ahead
from llxprt_hooks.process.warm import zygotes

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from llxprt_hooks.core.engine.results import HookExecutionResult
    from llxprt_hooks.settings.definitions import HookConfig

SPINNER_DELAY = 0.3
"""Seconds before the spinner appears."""

MAX_LINES = 100
"""Lines printed of one stream or payload. ``--json`` prints all."""

MAX_LINE_LENGTH = 2000
MAX_NAME_LENGTH = 80

FIRED = "(the event that is fired)"
"""The value of ``--require-hook`` without a value."""


class FiredOrRequiredHookType(RequiredHookType):
    """What ``--require-hook`` takes here: the event that is fired needs no name."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return FIRED if value == FIRED else super().convert(value, param, ctx)


class FiredEventType(EventType):
    """The name of an event, also in the dialects that are asked for."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        directory = ctx.params.get("directory", ".") if ctx else "."
        return str(value) if foreign_call(directory, str(value)) else super().convert(value, param, ctx)


@click.command("fire")
@click.argument("event", type=FiredEventType(), metavar="EVENT", required=False)
@click.option(
    "--tool",
    "tool_name",
    metavar="NAME",
    shell_complete=tool_names,
    help="The tool's name. Default: write_file.",
)
@click.option(
    "--args",
    "tool_input",
    metavar="JSON|@FILE|-",
    help="The tool's arguments as a JSON object, from a file, or from standard input.",
)
@click.option(
    "--input",
    "given",
    metavar="JSON|@FILE|-",
    help="The event's own fields as a JSON object, from a file, or from standard input; a recorded payload also works. "
    "Missing fields get example values.",
)
@click.option(
    "--from-log",
    "recorded",
    metavar="ID",
    help="Send the payload of a recorded execution again, see `llxprt-hooks log --help`. EVENT may be omitted.",
)
@click.option(
    "--require-hook",
    "required",
    type=FiredOrRequiredHookType(),
    is_flag=False,
    flag_value=FIRED,
    multiple=True,
    metavar="[EVENT[:TOOL]]",
    help="Run nothing and exit with 1 if no hook would run for this event, or this tool. Repeatable. Without a value: "
    "exit with 1 if no hook of the event that is fired runs; a failed hook counts as not run.",
)
@click.option(
    "--dry-run", is_flag=True, help="Show which hooks would run, and why others would not, without running any."
)
@json_option
@dialect_options
@directory_option
def command(
    event: str | None,
    tool_name: str | None,
    tool_input: str | None,
    given: str | None,
    recorded: str | None,
    required: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
    directory: str,
) -> int:
    """Run the configured hooks for one event, and show what they did and what it means.

    EVENT is one of BeforeTool, AfterTool, BeforeModel, AfterModel, BeforeToolSelection, BeforeAgent, AfterAgent,
    SessionStart, SessionEnd, PreCompress and Notification. Without input, an example is sent.

    The report shows which hooks were chosen and why, their input and output, exit code and duration, what the output
    means, the merged result, and hints about common mistakes.

    \b
    Exit status:
      0   allowed, even if a hook failed, hooks are off, or none is configured or matches
      2   blocked
      3   a hook stopped the agent
      1   hooks could not run: settings are unreadable, or the hooks are not approved
      64  wrong usage

    With --require-hook, it is 1 if no hook ran, where a hook that failed, timed out or only observes counts as not run.
    With --require-hook EVENT[:TOOL], it is 1 if a required hook is missing, and nothing is fired.

    \b
    Examples:
      llxprt-hooks fire BeforeTool --tool write_file --args '{"file_path": "a.py", "content": "x"}'
      llxprt-hooks fire AfterModel --dry-run
      llxprt-hooks fire BeforeTool --input @recorded.json --json
      llxprt-hooks fire PreToolUse --tool Bash --args '{"command": "ls"}' --dialect claude
      llxprt-hooks fire --from-log 1f3a9c02
      llxprt-hooks fire BeforeTool --require-hook
      llxprt-hooks fire BeforeTool --require-hook BeforeTool:write_file --require-hook BeforeModel
    """
    fields: dict[str, Any] = {}
    if recorded is not None:
        if given is not None:
            raise click.UsageError("--from-log and --input contradict each other: use one of them")
        fields = _recorded_payload(recorded)
        event = event or EventType().convert(fields.get("hook_event_name"), None, None)
    elif given is not None:
        fields = _json_object(_text(given), "--input")
    if event is None:
        raise click.UsageError("Missing argument 'EVENT'.")
    arguments: Mapping[str, Any] | None = None if tool_input is None else _json_object(_text(tool_input), "--args")
    call = foreign_call(directory, event, tool_name, arguments)
    if call is not None:
        event, tool_name, arguments = call.event_name.value, call.tool_name, call.tool_input
        fields = {**call.fields, **fields}
    hook_input = _hook_input(HookEventName(event), tool_name, arguments, fields)
    zygotes.patience, ahead.patience = ZYGOTE_PATIENCE, AHEAD_PATIENCE
    try:
        with HookSpinner() as spinner:
            fired = attempt(
                directory,
                HookEventName(event),
                hook_input,
                run=not dry_run,
                observer=spinner,
                require=tuple(each for each in required if each != FIRED),
                is_question=call is not None and call.is_question,
            )
            trial = asyncio.run(fired)
    except GuardMissingError as error:
        raise click.ClickException(error.refusal) from error
    if as_json:
        print_json(trial.to_dict())
    else:
        print_trial(trial, fired=not dry_run)
    return _status(trial, require_hook=FIRED in required)


def _status(trial: Trial, *, require_hook: bool) -> ExitStatus:
    if trial.blocked:
        return ExitStatus.BLOCKED
    if trial.should_stop:
        return ExitStatus.STOPPED
    if trial.not_run is not None:
        raise click.ClickException(f"hooks could not be run: {trial.not_run}")
    if require_hook and not trial.running:
        raise click.ClickException("--require-hook was given, but no hook runs for this event")
    if require_hook and all(hook.definition.config.observe for hook in trial.running):
        raise click.ClickException("--require-hook was given, but every hook of this event only observes")
    enforced = [result for result in trial.results if not result.hook_config.observe]
    if require_hook and enforced and all(result.error for result in enforced):
        raise click.ClickException("--require-hook was given, but every hook that ran has failed")
    return ExitStatus.FAILED if trial.failures else ExitStatus.OK


def _recorded_payload(identity: str) -> dict[str, Any]:
    records = read_log(LogFilter(identity))
    if len(records) != 1:
        found = "no recorded execution has" if not records else f"{len(records)} recorded executions have"
        raise click.ClickException(f"{found} the id {identity}")
    payload = records[0].get("payload")
    if not isinstance(payload, dict):
        too_large = "payload_bytes" in records[0]
        how = "record payloads with `llxprt-hooks run --log-payloads` or `llxprt-hooks inspect --record`"
        why = "it was too large" if too_large else how
        raise click.ClickException(f"the payload of execution {identity} is not recorded: {why}")
    return payload


def _hook_input(
    event_name: HookEventName, tool_name: str | None, tool_input: Mapping[str, Any] | None, fields: dict[str, Any]
) -> dict[str, Any]:
    if not event_name.spec.is_about_tool and (tool_name is not None or tool_input is not None):
        raise click.UsageError(f"--tool and --args are for tool events, but {event_name} has no tool")
    if tool_name is not None:
        fields["tool_name"] = tool_name
    if tool_input is not None:
        fields["tool_input"] = tool_input
    try:
        return complete_input(event_name, fields)
    except InvalidInputError as error:
        raise click.UsageError(str(error)) from error


def _text(given: str) -> str:
    if given == "-":
        return "" if sys.stdin is None else decode_text(sys.stdin.buffer.read())
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        why = (error.strerror or str(error)) if isinstance(error, OSError) else "it is not UTF-8"
        raise click.UsageError(f"the input file {given[1:]} cannot be read: {why}") from error


def _json_object(text: str, option: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply"
        if isinstance(error, json.JSONDecodeError):
            why = f"{error.msg[0].lower()}{error.msg[1:]}, line {error.lineno} column {error.colno}"
        raise click.UsageError(
            f"{option} is not valid JSON: {why}, in {shorten(text, 40)!r}. Pass a JSON object, or @FILE to read a file."
        ) from error
    if not isinstance(value, dict):
        raise click.UsageError(f"{option} must be a JSON object, found {found(value)}")
    return value


class HookSpinner(HookObserver):
    """An observer that shows the names of running hooks on stderr, if it is a terminal."""

    def __init__(self) -> None:
        self._console = stderr_console() if sys.stderr is not None and sys.stderr.isatty() else None
        self._running: dict[str, HookConfig] = {}
        self._status: Status | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._running.clear()
        self._show()

    def hook_started(self, hook: HookStarted) -> None:
        self._running[hook.execution_id] = hook.hook_config
        if self._console is not None and self._console.is_terminal:
            asyncio.get_running_loop().call_later(SPINNER_DELAY, self._show)

    def hook_ended(self, result: HookExecutionResult) -> None:
        del self._running[result.execution_id]
        if self._status is not None:
            self._show()

    def _show(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None
        if self._running and self._console is not None:
            self._status = self._console.status(line(self._text()))
            self._status.start()

    def _text(self) -> str:
        longest = max(self._running.values(), key=lambda config: config.timeout)
        names = one_line(", ".join(config.identity for config in self._running.values()))
        return f"waiting for {names} (at most {longest.timeout / 1000:g} s)"


def print_trial(trial: Trial, *, fired: bool) -> None:
    """Print the plan, the payload, each hook's result, the outcome and hints; ``fired``, also why no hook ran."""
    console = stdout_console()
    _print_plan(console, trial)
    shown: tuple[int, str] | None = None
    for result in trial.results:
        foreign = result.hook_config.foreign
        view = id(result.hook_input), "" if foreign is None else foreign.view
        if view != shown:
            shown = view
            print_line(console)
            _print_block(console, "sent on stdin", indented_json(sent_to(result)))
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
    how = "started ahead" if result.ahead else "warm" if result.warm else "cold" if result.hook_config.warm else ""
    warm = f", {how}" if how else ""
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
        _print_block(console, "merged", indented_json(trial.output.to_dict()))
    found = effects(trial.event_name, trial.output, acts=trial.acts) if trial.output else []
    if trial.blocked:
        # The reason of a hook with `failClosed` begins with the same word.
        reason = f": {trial.reason}".removeprefix(": blocked") if trial.reason else ""
        print_wrapped(console, ("blocked", "red bold"), reason)
    elif trial.should_stop:
        print_wrapped(console, ("stopped", "yellow bold"), f": {trial.reason}" if trial.reason else "")
    elif trial.asked:
        print_wrapped(console, ("asks a person", "cyan bold"), f": {trial.reason}" if trial.reason else "")
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


def _print_block(console: Console, title: str, text: str) -> None:
    print_line(console, (f"  {title}", "dim"))
    lines = text.rstrip("\n").split("\n")
    for each in lines[:MAX_LINES]:
        cut = len(each) - MAX_LINE_LENGTH
        more = (f"… and {cut} more characters; --json prints all", "dim") if cut > 0 else ""
        print_line(console, f"    {each[:MAX_LINE_LENGTH].removesuffix(chr(13))}", more)
    if len(lines) > MAX_LINES:
        print_line(console, (f"    … and {len(lines) - MAX_LINES} more lines; --json prints all", "dim"))
