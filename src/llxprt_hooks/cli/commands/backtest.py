"""``llxprt-hooks backtest``: fire recorded events at hooks again, and show which decisions would change."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from llxprt_hooks._support.terminal import (
    SHORT_ID,
    Part,
    aligned,
    fits,
    print_json,
    print_line,
    print_wrapped,
    stderr_console,
    stdout_console,
)
from llxprt_hooks._support.text import one_line, plural
from llxprt_hooks.cli.audit_stream import audit_stream
from llxprt_hooks.cli.options import (
    EventType,
    SinceType,
    audit_options,
    dialect_options,
    directory_option,
    json_option,
)
from llxprt_hooks.cli.started_by_agent import refuse_below_agent
from llxprt_hooks.commands.backtest import (
    HOW_TO_RECORD,
    BacktestReport,
    DecisionChange,
    RecordedEvent,
    Replay,
    recorded_events,
    replay,
)
from llxprt_hooks.commands.exit_status import ExitStatus
from llxprt_hooks.commands.fire import LoadedHooks
from llxprt_hooks.commands.list import loaded_settings
from llxprt_hooks.commands.log import LogFilter, LogReader
from llxprt_hooks.settings import Document, read_document
from llxprt_hooks.settings.ownership import other_writers
from llxprt_hooks.settings.trust.notices import why_off
from llxprt_hooks.settings.trust.status import TrustState

if TYPE_CHECKING:
    from rich.console import Console

    from llxprt_hooks.fleet.audit.record import Record


@click.command("backtest")
@click.option(
    "--settings",
    "named_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Settings to use instead of the project's own.",
)
@click.option("--since", type=SinceType(), metavar="7d", help="Only events after this: 30m, 12h, 7d, 2w, or a date.")
@click.option("--only", metavar="NAME", help="Run only the hook with this name.")
@click.option("--event", type=EventType(), metavar="E", help="Only this event.")
@click.option("--fail-on-change", is_flag=True, help="Exit with 1 if a decision changes or a hook fails.")
@audit_options
@json_option
@dialect_options
@directory_option
def command(
    named_file: Path | None,
    since: datetime | None,
    only: str | None,
    event: str | None,
    fail_on_change: bool,
    nats: tuple[str, ...] | None,
    stream: str,
    credentials: str | None,
    as_json: bool,
    directory: str,
) -> int:
    """Fire recorded events again, and show which decisions would change.

    Use it before you change a policy, to see what the new policy would have decided last week. The events come from the
    log that `llxprt-hooks log` shows, for this project, or with --nats from the audit trail of all agents. An event is
    replayed only if its payload was recorded, see `llxprt-hooks log --help`.

    Hooks run for real: what they write, send or count happens again. --only runs only one hook, and compares with what
    that hook decided. The hooks of the project must be approved. A file that you pass with --settings counts as
    approved for this run, so review it first.

    Exit status: 0 on success; 1 if there is nothing to replay, or, with --fail-on-change, if a decision changes or a
    hook fails; 64 for wrong usage.

    \b
    Examples:
      llxprt-hooks backtest --settings stricter.json --since 7d
      llxprt-hooks backtest --only no-force-push --event BeforeTool
      llxprt-hooks backtest --nats nats://127.0.0.1:4222 --since 1d -C policy
      llxprt-hooks backtest --fail-on-change --json | jq .changes
      llxprt-hooks fire BeforeTool --from-log 1f3a9c02      one of the examples in detail
    """
    if named_file is not None:
        refuse_below_agent()
        _check_settings(named_file)
    hooks = LoadedHooks.load_unrecorded(directory, named_file)
    _check_hooks(hooks, only)
    where = LogFilter(event=event)
    if nats is None:
        records = LogReader(where=replace(where, project=os.path.realpath(directory)), events=True).read()
    else:
        records = audit_stream(nats, stream, credentials).read(where)
    events, without_payload = _recorded(records, since, only)
    print_wrapped(stderr_console(), ("Hooks run for real: what they write, send or count happens again.", "yellow"))
    report = BacktestReport(_replay(hooks.only(only) if only else hooks, events), without_payload)
    if as_json:
        print_json(report.to_dict())
    else:
        _print_report(report)
    failed = fail_on_change and (report.changed or report.failed)
    return ExitStatus.FAILED if failed else ExitStatus.OK


def _check_settings(file: Path) -> None:
    """Refuse settings that cannot be read, or that others could have written."""
    document = read_document(file)
    if not isinstance(document, Document):
        raise click.ClickException(str(document))
    if objection := other_writers(document):
        raise click.ClickException(f"{file} is not used: {objection}")


def _check_hooks(hooks: LoadedHooks, only: str | None) -> None:
    """Refuse to compare with hooks that do not run: every block would look like one that is gone."""
    settings = loaded_settings(hooks.config)
    trust = settings.trust
    if not trust.counts and trust.state is not TrustState.NOTHING_TO_TRUST:
        raise click.ClickException(settings.not_approved or str(trust.problems[0]))
    if not hooks.config.enable_hooks:
        raise click.ClickException(why_off(settings) or "hooks are off")
    names = list(dict.fromkeys(entry.name for entry in hooks.registry.get_all_hooks()))
    if only is not None and only not in names:
        raise click.ClickException(f"no hook is called {only}; hooks: {', '.join(names)}")
    for problem in hooks.registry.problems:
        print_wrapped(stderr_console(), (str(problem), "yellow"))


def _recorded(records: Iterable[Record], since: datetime | None, only: str | None) -> tuple[list[RecordedEvent], int]:
    events, count = recorded_events(records, since=since, only=only)
    if not events:
        which = "event without its input" if count == 1 else "events without their input"
        found = f"{count} recorded {which}" if count else "no recorded event"
        raise click.ClickException(f"there is nothing to replay: {found}. {HOW_TO_RECORD}")
    return events, count


def _replay(hooks: LoadedHooks, events: list[RecordedEvent]) -> list[Replay]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = stderr_console()
    columns = (TextColumn("replaying"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    is_quiet = not console.is_terminal or console.is_dumb_terminal
    with Progress(*columns, console=console, transient=True, disable=is_quiet) as progress:
        task = progress.add_task("", total=len(events))
        return asyncio.run(replay(hooks, events, lambda: progress.advance(task)))


def _print_report(report: BacktestReport) -> None:
    console = stdout_console()
    changes = report.changes()
    if changes:
        _print_changes(console, changes)
        print_line(console)
    total, changed = len(report.replays), report.changed
    rate = f" ({changed / total:.1%})" if changed else ""
    events = f"{total} recorded {plural(total, 'event')}"
    style = "yellow bold" if changed else "green"
    print_wrapped(console, (f"{changed or 'none'} of {events} would be decided differently{rate}", style))
    if report.unmatched:
        print_wrapped(console, f"no hook ran for {report.unmatched} of them")
    if report.without_payload:
        print_wrapped(console, f"{report.without_payload} more could not be replayed: their input was not recorded")
    for error, ids in report.failures().items():
        print_wrapped(
            console, ("failed", "red bold"), f" {len(ids)} {plural(len(ids), 'time')}: {error} ({ids[0][:SHORT_ID]})"
        )


_HEADINGS = ("event", "subject", "decision", "count", "of", "rate", "examples")


def _print_changes(console: Console, changes: list[DecisionChange]) -> None:
    arrow = "->" if console.options.ascii_only else "→"
    rows: list[tuple[Part, ...]] = [
        (
            change.event,
            (one_line(change.subject) or "-", "bold"),
            f"{change.before} {arrow} {change.after}",
            str(len(change.replays)),
            str(change.total),
            f"{change.rate:.1%}",
            (" ".join(example["id"][:SHORT_ID] for example in change.to_dict()["examples"]), "dim"),
        )
        for change in changes
    ]
    headings: tuple[Part, ...] = tuple((heading, "dim") for heading in _HEADINGS)
    table = aligned([headings, *rows], right=range(3, 6))
    has_room = fits(console, table)
    if has_room:
        console.print(table[0], soft_wrap=True)
    for line, row, change in zip(table[1:], rows, changes, strict=True):
        if has_room:
            console.print(line, soft_wrap=True)
        else:
            event, subject, decision, count, total, rate, examples = row
            print_line(console, event, " ", subject)
            print_wrapped(console, "  ", decision, ": ", count, " of ", total, ", ", rate)
            print_wrapped(console, "  ", examples)
        first = change.replays[0]
        for word, reason in (("was", first.recorded.reason), ("now", first.reason)):
            if reason:
                print_wrapped(console, (f"  {word}: {one_line(reason)}", "dim"))
