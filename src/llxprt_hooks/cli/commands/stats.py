"""``llxprt-hooks stats``: show statistics about the executions of each hook."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from llxprt_hooks.cli.commands.log import NOTHING_RECORDED
from llxprt_hooks.cli.options import json_option, project_option
from llxprt_hooks.cli.terminal import Part, aligned, print_line, print_wrapped, stdout_console

if TYPE_CHECKING:
    from rich.console import Console

    from llxprt_hooks.inspection.stats import Figures

BAR = 24
"""Maximum width of a bar, in characters."""

SHORTEST_BAR = 4
"""Minimum room for bars. With less, hooks are printed one below the other instead of as a table."""


@click.command("stats")
@json_option
@project_option
def command(as_json: bool, project: str | None) -> int:
    """Show for each hook how often it ran, failed and blocked, and how long it took, slowest first.

    The data comes from the log that `llxprt-hooks log` shows. 50 % of the executions took at most p50, 95 % at most
    p95. The bars show p95. Hooks in observe mode block nothing; "would block" counts what they would have blocked.

    \b
    Examples:
      llxprt-hooks stats
      llxprt-hooks stats -C . --json
    """
    from llxprt_hooks.inspection.log import LogFilter, read_log
    from llxprt_hooks.inspection.stats import summarize

    figures = summarize(read_log(where=LogFilter(project=project)))
    if as_json:
        from llxprt_hooks.cli.json_output import print_json

        print_json([asdict(each) for each in figures])
    elif figures:
        _print_figures(figures)
    else:
        click.echo(NOTHING_RECORDED, err=True)
    return 0


_COUNTS = {"count": "count", "failed": "failed", "blocked": "blocked", "would block": "would_block"}
_TIMES = {"p50 ms": "p50", "p95 ms": "p95", "max ms": "max"}


def _print_figures(figures: list[Figures]) -> None:
    console = stdout_console()
    observed = any(each.would_block for each in figures)
    counts = {heading: field for heading, field in _COUNTS.items() if observed or field != "would_block"}
    headings: tuple[Part, ...] = tuple((heading, "dim") for heading in ("hook", "event", *counts, *_TIMES))
    rows = [_row(each, counts.values()) for each in figures]
    table = aligned([headings, *rows], right=range(2, len(headings)))
    room = console.width - max(row.cell_len for row in table) - 2
    if room < SHORTEST_BAR:
        _print_cards(console, figures)
        return
    table[0].append("  p95", "dim")
    for row, bar in zip(table[1:], _bars(console, figures, min(BAR, room)), strict=True):
        row.append(f"  {bar}", "cyan")
    for row in table:
        console.print(row, soft_wrap=True)


def _row(each: Figures, counts: Iterable[str]) -> tuple[Part, ...]:
    counted = (str(getattr(each, field)) for field in counts)
    times = (f"{getattr(each, field):.1f}" for field in _TIMES.values())
    return (" ".join(each.hook.split()), "bold"), each.event, *counted, *times


def _print_cards(console: Console, figures: list[Figures]) -> None:
    """Print hooks one below the other, for a terminal too narrow for a table."""
    for each, bar in zip(figures, _bars(console, figures, min(BAR, console.width - 2)), strict=True):
        print_line(console, (" ".join(each.hook.split()), "bold"))
        print_line(console, f"  {each.event}")
        print_wrapped(
            console,
            f"  {each.count} time{'s' * (each.count != 1)}, {each.failed} failed, {each.blocked} blocked",
            f", {each.would_block} would have blocked" if each.would_block else "",
        )
        print_wrapped(console, f"  p50 {each.p50:.1f}, p95 {each.p95:.1f}, max {each.max:.1f} ms")
        print_line(console, (f"  {bar}", "cyan"))


def _bars(console: Console, figures: list[Figures], length: int) -> list[str]:
    longest = max(each.p95 for each in figures) or 1.0
    block = "#" if console.options.ascii_only else "█"
    return [block * max(1, round(length * each.p95 / longest)) for each in figures]
