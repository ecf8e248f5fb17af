"""``llxprt-hooks watch``: show events as they happen, in the terminal."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from llxprt_hooks.cli.hook_names import recorded_names
from llxprt_hooks.cli.options import EventType, audit_options
from llxprt_hooks.cli.terminal import stdout_console

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from llxprt_hooks.inspection.timeline import TimelineEvent, View


@click.command("watch")
@click.option("--event", type=EventType(), metavar="E", help="Only this event.")
@click.option("--hook", metavar="NAME", shell_complete=recorded_names, help="Only events that this hook ran for.")
@click.option("--failed", is_flag=True, help="Only events at which a hook failed. A block is not a failure.")
@click.option("--blocked", is_flag=True, help="Only events that were blocked.")
@audit_options
@click.option(
    "-C",
    "project",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    metavar="DIR",
    help="Only events in this project folder.",
)
def command(
    event: str | None,
    hook: str | None,
    failed: bool,
    blocked: bool,
    nats: tuple[str, ...] | None,
    stream: str,
    credentials: str | None,
    project: str | None,
) -> int:
    """Show events as they happen, one per line, for all your agents on this machine that write the log.

    In a terminal, j and k select an event, Enter shows its hooks with their output and the decision, and q quits. If
    the output is not a terminal, the command prints events that end from now on, until Ctrl-C. The events come from the
    log that `llxprt-hooks log` shows. `run`, `serve` and the proxies write the log. Your own program writes it with
    `Hooks(Config.load(project, observer=HookLog(project)))`. `llxprt-hooks inspect` shows the events in the browser.

    With --nats, it shows the audit trail of all agents instead of the local log. The audit trail does not record the
    ends of events, so a line is printed whenever a hook has ended.

    \b
    Examples:
      llxprt-hooks watch
      llxprt-hooks watch --event BeforeTool --blocked
      llxprt-hooks watch -C . | tee events.txt
      llxprt-hooks watch --nats nats://127.0.0.1:4222
    """
    from llxprt_hooks.cli.audit_stream import audit_stream
    from llxprt_hooks.inspection.log import LogFilter, LogReader
    from llxprt_hooks.inspection.timeline import Timeline, Where

    timeline, in_project = Timeline(), LogFilter(project=project)
    where = Where(event=event or "", hook=hook or "", failed=failed, decision="blocked" if blocked else "")
    if nats is None:
        records = LogReader(where=in_project, events=True).read
    else:
        records = audit_stream(nats, stream, credentials).followed(in_project)

    def read() -> list[TimelineEvent]:
        return timeline.add(records())

    console = stdout_console()
    if console.is_terminal and sys.stdin is not None and sys.stdin.isatty():
        _show(console, lambda: timeline.view(where), read)
    else:
        read()
        _print(console, read, where.matches, has_ends=nats is None)
    return 0


def _show(console: Console, view: Callable[[], View], read: Callable[[], object]) -> None:
    from llxprt_hooks.cli.tui.watch import WatchScreen

    WatchScreen(console, view).run(read)


def _print(
    console: Console,
    read: Callable[[], list[TimelineEvent]],
    matches: Callable[[TimelineEvent], bool],
    *,
    has_ends: bool,
) -> None:
    """Print events when they have ended. A program that records single executions only has no end of an event."""
    from llxprt_hooks.cli.tui.watch import event_line
    from llxprt_hooks.inspection.log import POLL

    while True:
        for event in read():
            is_ended = event.ended is not None or not has_ends or not event.record.get("event_id")
            if is_ended and matches(event):
                console.print(event_line(event), soft_wrap=True)
        time.sleep(POLL)
