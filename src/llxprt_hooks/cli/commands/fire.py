"""``llxprt-hooks fire``: run the configured hooks for one event, without an agent."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llxprt_hooks.cli.exit_status import ExitStatus
from llxprt_hooks.cli.hook_names import tool_names
from llxprt_hooks.cli.options import EventType, directory_option, json_option
from llxprt_hooks.events import HookEventName
from llxprt_hooks.inspection.samples import sample_input
from llxprt_hooks.protocol.json_codec import decode_text
from llxprt_hooks.text import escape_for_terminal, shorten

if TYPE_CHECKING:
    from llxprt_hooks.inspection.trial import Trial

JSON_KINDS = {list: "an array", str: "a string", int: "a number", float: "a number", bool: "true or false"}


@click.command("fire")
@click.argument("event", type=EventType(), metavar="EVENT")
@click.option(
    "--tool",
    "tool_name",
    metavar="NAME",
    shell_complete=tool_names,
    help="The tool's name. Default: write_file.",
)
@click.option("--args", "tool_input", metavar="JSON", help="The tool's arguments as a JSON object.")
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
    help="Use the input of a recorded execution, by its id in `llxprt-hooks log`. It must have been recorded.",
)
@click.option(
    "--dry-run", is_flag=True, help="Show which hooks would run, and why others would not, without running any."
)
@json_option
@directory_option
def command(
    event: str,
    tool_name: str | None,
    tool_input: str | None,
    given: str | None,
    recorded: str | None,
    dry_run: bool,
    as_json: bool,
    directory: str,
) -> int:
    """Run the configured hooks for one event, and show what they did and what it means.

    EVENT is one of BeforeTool, AfterTool, BeforeModel, AfterModel, BeforeToolSelection, BeforeAgent, AfterAgent,
    SessionStart, SessionEnd, PreCompress and Notification. Without input, an example is sent.

    The report shows which hooks were chosen and why, their input and output, exit code and duration, what the output
    means, the merged result, and hints about common mistakes.

    Exit status: 2 if the event was blocked, 3 if a hook stopped the agent, 0 otherwise (a hook that only failed
    allows), 1 if the hooks could not be run at all, 64 for wrong usage.

    \b
    Examples:
      llxprt-hooks fire BeforeTool --tool write_file --args '{"file_path": "a.py", "content": "x"}'
      llxprt-hooks fire AfterModel --dry-run
      llxprt-hooks fire BeforeTool --input @recorded.json --json
      llxprt-hooks fire BeforeTool --from-log 1f3a9c02
    """
    event_name = HookEventName(event)
    if given is not None and recorded is not None:
        raise click.UsageError("--input and --from-log both give the input. Use only one of them.")
    fields: Mapping[str, Any] = {}
    if given is not None:
        fields = _json_object(_text(given), "--input")
    elif recorded is not None:
        fields = _recorded_payload(recorded)
    hook_input = _hook_input(event_name, tool_name, tool_input, fields)
    return asyncio.run(_fire(directory, event_name, hook_input, dry_run=dry_run, as_json=as_json))


_ZYGOTE_PATIENCE = 10.0
"""Seconds to wait for the interpreter of a warm hook, so that the hook runs as it does in an agent from then on."""


async def _fire(
    directory: str, event_name: HookEventName, hook_input: dict[str, Any], *, dry_run: bool, as_json: bool
) -> int:
    from llxprt_hooks.cli.json_output import print_json
    from llxprt_hooks.cli.spinner import HookSpinner
    from llxprt_hooks.cli.trial_report import print_trial
    from llxprt_hooks.inspection.trial import InvalidInputError, attempt
    from llxprt_hooks.process.warm import zygotes

    zygotes.patience = _ZYGOTE_PATIENCE
    try:
        with HookSpinner() as spinner:
            trial = await attempt(directory, event_name, hook_input, run=not dry_run, observer=spinner)
    except InvalidInputError as error:
        raise click.UsageError(f"{error}.") from error
    if as_json:
        print_json(trial.to_dict())
    else:
        print_trial(trial)
    return _status(trial)


def _status(trial: Trial) -> ExitStatus:
    if trial.blocked:
        return ExitStatus.BLOCKED
    if trial.should_stop:
        return ExitStatus.STOPPED
    return ExitStatus.FAILED if trial.failures else ExitStatus.OK


def _hook_input(
    event_name: HookEventName, tool_name: str | None, tool_input: str | None, given: Mapping[str, Any]
) -> dict[str, Any]:
    if not event_name.spec.is_about_tool and (tool_name is not None or tool_input is not None):
        raise click.UsageError(f"--tool and --args are for tool events, but {event_name} has no tool.")
    fields = dict(given)
    if fields.get("hook_event_name", event_name) != event_name:
        recorded = shorten(escape_for_terminal(str(fields["hook_event_name"])), 80)
        raise click.UsageError(f"the input was recorded for {recorded}, not for {event_name}.")
    if tool_name is not None:
        fields["tool_name"] = tool_name
    if tool_input is not None:
        fields["tool_input"] = _json_object(tool_input, "--args")
    named = fields.get("tool_name")
    return {**sample_input(event_name, named if isinstance(named, str) else "write_file"), **fields}


def _recorded_payload(execution: str) -> dict[str, Any]:
    """Return what a recorded hook was sent, by the id of its execution or the beginning of that."""
    from llxprt_hooks.inspection.backtest import HOW_TO_RECORD
    from llxprt_hooks.inspection.log import LogFilter, read_log

    found = read_log(where=LogFilter(execution=execution))
    if not found:
        raise click.ClickException(f"no recorded execution has the id {execution}")
    payload = found[-1].get("payload")
    if not isinstance(payload, dict):
        raise click.ClickException(f"the input of {execution} was not recorded. {HOW_TO_RECORD}")
    return payload


def _text(given: str) -> str:
    if given == "-":
        return "" if sys.stdin is None else decode_text(sys.stdin.buffer.read())
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise click.UsageError(f"the input file {given[1:]} cannot be read: {_reason(error)}") from error


def _reason(error: OSError | UnicodeError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else "it is not UTF-8"


def _json_object(text: str, option: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{option} is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise click.UsageError(f"{option} must be a JSON object, found {JSON_KINDS.get(type(value), 'null')}.")
    return value
