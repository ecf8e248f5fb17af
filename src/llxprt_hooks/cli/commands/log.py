"""``llxprt-hooks log``: show which hooks ran, what they decided and how long they took."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click

from llxprt_hooks.cli.hook_names import recorded_names
from llxprt_hooks.cli.options import EventType, json_option, project_option
from llxprt_hooks.cli.terminal import Part, print_line, print_wrapped, stderr_console, stdout_console

SHORT_ID = 8
"""Characters of an id in the list. They are enough to look the execution up."""

NARROW = 80
"""Terminals with fewer columns get several lines per execution."""

Record = dict[str, Any]


@click.command("log")
@click.argument("execution", required=False, metavar="[ID]")
@click.option("--follow", "-f", is_flag=True, help="Keep printing executions as they happen, until Ctrl-C.")
@click.option("--event", type=EventType(), metavar="E", help="Only this event.")
@click.option("--hook", metavar="NAME", shell_complete=recorded_names, help="Only this hook.")
@click.option("--failed", is_flag=True, help="Only failed executions. A block is not a failure.")
@click.option("--blocked", is_flag=True, help="Only executions that blocked.")
@click.option(
    "-n",
    "count",
    type=click.IntRange(min=1),
    metavar="N",
    default=20,
    show_default=True,
    help="The number of latest executions to show.",
)
@json_option
@project_option
def command(
    execution: str | None,
    follow: bool,
    event: str | None,
    hook: str | None,
    failed: bool,
    blocked: bool,
    count: int,
    as_json: bool,
    project: str | None,
) -> int:
    """Show the latest executions of hooks, one per line. With an ID, show all details of that execution.

    `run` records executions in ~/.llxprt/logs, in a file of limited size that only you can read. It records the input
    of hooks only with --log-payloads. You can combine filters.

    \b
    Examples:
      llxprt-hooks log --failed
      llxprt-hooks log --follow --event BeforeTool
      llxprt-hooks log 1f3a9c02
      llxprt-hooks log --json | jq .duration
      llxprt-hooks log 1f3a9c02 --json | jq .payload | llxprt-hooks fire BeforeTool --input -
    """
    from llxprt_hooks.cli.json_output import print_json
    from llxprt_hooks.inspection.log import LogFilter, LogReader, log_file

    reader = LogReader(where=LogFilter(execution, event, hook, project, failed, blocked))
    records = reader.read()
    show = print_json if as_json else _print_full if execution else _print_line
    for record in records[-count:]:
        show(record)
    if follow:
        _announce_following()
        for record in reader.follow():
            show(record)
    if execution and not records:
        raise click.ClickException(f"no recorded execution has the id {execution}")
    if not records and not as_json:
        click.echo("no recorded execution matches" if log_file().exists() else NOTHING_RECORDED, err=True)
    return 0


NOTHING_RECORDED = "no executions are recorded yet: `llxprt-hooks run` records the hooks that it runs"


def _announce_following() -> None:
    console = stderr_console()
    if console.is_terminal:
        print_wrapped(console, ("waiting for executions; press Ctrl-C to stop", "dim"))


def _print_line(record: Record) -> None:
    console = stdout_console()
    hook = " ".join(str(record.get("hook")).split())
    event, duration = str(record.get("event_name")), _duration(record)
    warm: Part = (" (warm)", "dim") if record.get("warm") else ""
    start: tuple[Part, ...] = ((str(record.get("id"))[:SHORT_ID], "dim"), "  ", (_local_time(record), "dim"))
    if console.width < NARROW:
        print_line(console, *start, f"  {duration.strip()}")
        print_line(console, f"  {event}  ", (hook, "bold"), warm)
        print_wrapped(console, "  ", *_outcome(record))
    else:
        print_line(console, *start, f"  {event:<19}  {duration}  ", (hook, "bold"), warm, "  ", *_outcome(record))


def _outcome(record: Record) -> tuple[Part, ...]:
    from llxprt_hooks.inspection.log import observed_decision

    reason = " ".join(str(record.get("reason") or "").split())
    if record.get("blocked"):
        return ("blocked", "red"), _after_colon(reason)
    if would := _would_have(observed_decision(record)):
        return ("observed", "cyan"), f": {would}"
    if record.get("failed"):
        return ("failed", "yellow"), _after_colon(" ".join(str(record.get("error")).split()))
    if record.get("stopped"):
        return ("stopped", "yellow"), _after_colon(reason)
    return ("allowed", "green"), f" with {effects}" if (effects := _effects(record)) else ""


def _would_have(observed: Mapping[str, Any]) -> str:
    for field in ("blocked", "stopped"):
        if observed.get(field):
            return f"would have {field}{_after_colon(' '.join(str(observed.get('reason') or '').split()))}"
    return f"would have allowed with {effects}" if (effects := _effects(observed)) else ""


def _effects(decision: Mapping[str, Any]) -> str:
    changed = decision.get("effects")
    return ", ".join(map(str, changed)) if isinstance(changed, list) else ""


def _after_colon(text: str) -> str:
    return f": {text}" if text else ""


def _duration(record: Record) -> str:
    from llxprt_hooks.inspection.log import recorded_duration

    duration = recorded_duration(record)
    return " " * 11 if duration is None else f"{duration:>8.1f} ms"


def _local_time(record: Record) -> str:
    recorded = str(record.get("timestamp"))
    try:
        return datetime.fromisoformat(recorded).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError):
        return recorded


def _print_full(record: Record) -> None:
    console = stdout_console()
    width = max(map(len, record))
    for name, value in record.items():
        first, *others = _formatted(value).rstrip("\n").split("\n")
        print_line(console, (f"{name:<{width}}  ", "dim"), first)
        for line in others:
            print_line(console, f"{'':<{width}}  {line}")


def _formatted(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, dict):
        return json.dumps(value, indent=2, ensure_ascii=False)
    return (", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)) or "-"
