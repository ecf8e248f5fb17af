"""``llxprt-hooks log``: which hooks ran, what they decided, how long they took."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from llxprt_hooks.cli.hook_names import recorded_names
from llxprt_hooks.cli.options import EventType, json_option, project_option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from llxprt_hooks.cli.terminal import Part

SHORT_ID = 8
"""Characters of an id that a line shows; they are enough to ask for it."""

NARROW = 80
"""Columns below which an execution takes two lines."""

Record = dict[str, Any]


@click.command("log")
@click.argument("execution", required=False, metavar="[ID]")
@click.option("--follow", "-f", is_flag=True, help="Go on and print executions as they happen; Ctrl-C ends it.")
@click.option("--event", type=EventType(), metavar="E", help="This event only.")
@click.option("--hook", metavar="NAME", shell_complete=recorded_names, help="This hook only.")
@click.option("--failed", is_flag=True, help="Failed executions only; a block is no failure.")
@click.option("--blocked", is_flag=True, help="Executions that blocked only.")
@click.option(
    "-n",
    "count",
    type=click.IntRange(min=1),
    metavar="N",
    default=20,
    show_default=True,
    help="How many of the latest.",
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
    """Show the latest executions of hooks, one a line; with the ID of one, all that is known of it.

    `run` records executions in ~/.llxprt/logs, in a file of bounded size that only you can read; what hooks were sent
    only with --log-payloads. Filters may be combined.

    \b
    Examples:
      llxprt-hooks log --failed
      llxprt-hooks log --follow --event BeforeTool
      llxprt-hooks log 1f3a9c02
      llxprt-hooks log --json | jq .duration
      llxprt-hooks log 1f3a9c02 --json | jq .payload | llxprt-hooks fire BeforeTool --input -
    """
    from llxprt_hooks.inspection.log import LogFilter, LogReader, log_file

    reader = LogReader(where=LogFilter(execution, event, hook, project, failed, blocked))
    records = reader.read()
    show = _print_json if as_json else _print_full if execution else _print_line
    _show_all(records[-count:], show)
    if follow:
        _say_that_it_goes_on()
        _show_all(reader.follow(), show)
    if execution and not records:
        raise click.ClickException(f"no execution with the id {execution} is recorded")
    if not records and not as_json:
        click.echo("no recorded execution matches" if log_file().exists() else NOTHING_RECORDED, err=True)
    return 0


NOTHING_RECORDED = "nothing is recorded yet: `llxprt-hooks run` records the hooks that it runs"


def _say_that_it_goes_on() -> None:
    from llxprt_hooks.cli.terminal import print_wrapped, stderr_console

    console = stderr_console()
    if console.is_terminal:
        print_wrapped(console, ("waiting for executions; Ctrl-C ends it", "dim"))


# Printing.


def _show_all(records: Iterable[Record], show: Callable[[Record], None]) -> None:
    for record in records:
        show(record)


def _print_json(record: Record) -> None:
    from llxprt_hooks.cli.json_output import print_json

    print_json(record)


def _print_line(record: Record) -> None:
    from llxprt_hooks.cli.terminal import print_line, print_wrapped, stdout_console

    console = stdout_console()
    hook = " ".join(str(record.get("hook")).split())
    event, duration = str(record.get("event_name")), _duration(record)
    start: tuple[Part, ...] = ((str(record.get("id"))[:SHORT_ID], "dim"), "  ", (_local_time(record), "dim"))
    if console.width < NARROW:
        print_line(console, *start, f"  {duration.strip()}")
        print_line(console, f"  {event}  ", (hook, "bold"))
        print_wrapped(console, "  ", *_outcome(record))
    else:
        print_line(console, *start, f"  {event:<19}  {duration}  ", (hook, "bold"), "  ", *_outcome(record))


def _outcome(record: Record) -> tuple[Part, ...]:
    reason = " ".join(str(record.get("reason") or "").split())
    if record.get("blocked"):
        return ("blocked", "red"), _after_colon(reason)
    if record.get("failed"):
        return ("failed", "yellow"), _after_colon(" ".join(str(record.get("error")).split()))
    if record.get("stopped"):
        return ("stopped", "yellow"), _after_colon(reason)
    changed = record.get("effects")
    return ("allowed", "green"), f" with {', '.join(map(str, changed))}" if isinstance(
        changed, list
    ) and changed else ""


def _after_colon(words: str) -> str:
    return f": {words}" if words else ""


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
    from llxprt_hooks.cli.terminal import print_line, stdout_console

    console = stdout_console()
    width = max(map(len, record))
    for name, value in record.items():
        first, *others = _words(value).rstrip("\n").split("\n")
        print_line(console, (f"{name:<{width}}  ", "dim"), first)
        for line in others:
            print_line(console, f"{'':<{width}}  {line}")


def _words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, dict):
        return json.dumps(value, indent=2, ensure_ascii=False)
    return (", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)) or "-"
