"""``llxprt-hooks log``: which hooks ran, what they decided, how long they took."""

from __future__ import annotations

import json
import os
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from llxprt_hooks.cli.hook_names import recorded_names
from llxprt_hooks.cli.options import EventType, json_option, project_option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from llxprt_hooks.cli.terminal import Part

POLL = 0.2
"""Seconds between two looks at the file while following it."""

NARROW = 80
"""Columns below which an execution takes two lines."""

LONGEST = 1e12
"""Milliseconds, thirty years: no hook runs longer."""

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
    from llxprt_hooks.inspection.log import log_file, read_log

    def wanted(record: Record) -> bool:
        return (
            (event is None or record.get("event_name") == event)
            and (hook is None or record.get("hook") == hook)
            and (not failed or bool(record.get("failed")))
            and (not blocked or bool(record.get("blocked")))
            and (execution is None or str(record.get("id", "")).startswith(execution))
            and (project is None or ran_in(project, record))
        )

    start = _place(log_file())
    recorded = list(read_log())
    records = [record for record in recorded if wanted(record)]
    show = _print_json if as_json else _print_full if execution else _print_line
    _show_all(records[-count:], show)
    if follow:
        _say_that_it_goes_on()
        _show_all(filter(wanted, news(log_file(), start)), show)
    if execution and not records:
        raise click.ClickException(f"no execution with the id {execution} is recorded")
    if not records and not as_json:
        click.echo("no recorded execution matches" if recorded else NOTHING_RECORDED, err=True)
    return 0


NOTHING_RECORDED = "nothing is recorded yet: `llxprt-hooks run` records the hooks that it runs"


def ran_in(project: str, record: Record) -> bool:
    """Whether an execution was in a project, given by its real path."""
    recorded = record.get("project")
    try:
        return isinstance(recorded, str) and os.path.realpath(recorded) == project
    except ValueError:  # a NUL or half a surrogate pair, which no path has
        return False


def recorded_duration(record: Record) -> float | None:
    """How many milliseconds an execution took; None where the record does not say, or tells of what cannot be."""
    duration = record.get("duration")
    return float(duration) if isinstance(duration, int | float) and 0 <= duration <= LONGEST else None


# Following.

Place = tuple[int, int]
"""The inode of a file, and how far it has been read."""


def _place(file: Path) -> Place:
    try:
        status = file.stat()
    except OSError:
        return 0, 0
    return status.st_ino, status.st_size


def news(file: Path, place: Place) -> Iterator[Record]:
    """Records as they are added after a place, for ever; from a file that is set aside it goes on to the new one."""
    from llxprt_hooks.inspection.log import set_aside

    inode, position = place
    while True:
        latest, size = _place(file)
        if latest != inode:
            if _place(set_aside(file))[0] == inode:
                yield from _read_on(set_aside(file), position)[0]
            inode, position = latest, 0
        if size < position:  # somebody has emptied it
            position = 0
        if size > position:
            records, position = _read_on(file, position)
            yield from records
        time.sleep(POLL)


def _read_on(file: Path, position: int) -> tuple[list[Record], int]:
    """The records after a position, and the position up to which there are whole lines."""
    from llxprt_hooks.inspection.log import read_record

    try:
        with file.open("rb") as opened:
            opened.seek(position)
            added = opened.read()
    except OSError:
        return [], position
    whole = added[: added.rfind(b"\n") + 1]
    records = [record for line in whole.splitlines() if (record := read_record(line)) is not None]
    return records, position + len(whole)


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
    start: tuple[Part, ...] = ((str(record.get("id")), "dim"), "  ", (_local_time(record), "dim"))
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
