"""``llxprt-hooks stats``: show statistics about the executions of each hook."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from llxprt_hooks._support.terminal import Part, aligned, print_json, print_line, print_wrapped, stdout_console
from llxprt_hooks._support.text import one_line, plural, shorten
from llxprt_hooks.cli.audit_stream import audit_stream
from llxprt_hooks.cli.commands.log import NOT_IN_STREAM, nothing_found
from llxprt_hooks.cli.options import (
    all_projects_option,
    audit_options,
    filter_options,
    json_option,
    project_option,
)
from llxprt_hooks.commands.log import LogFilter, read_log
from llxprt_hooks.commands.stats import HookFigures, summarize

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


MAX_HOOK = 40
MIN_HOOK = 10
"""Characters of a hook's name, which may be a long command. With less room, hooks are printed one below the other."""

BAR = 24
"""Maximum width of a bar, in characters."""

MIN_BAR = 4
"""Minimum room for bars. With less, there are none."""


@click.command("stats")
@filter_options
@click.option("--by", metavar="FIELD", help="Separate figures for each value of a field of --where.")
@all_projects_option
@audit_options
@json_option
@project_option
def command(
    where: LogFilter,
    by: str | None,
    all_projects: bool,
    nats: tuple[str, ...] | None,
    stream: str,
    credentials: str | None,
    as_json: bool,
    project: str,
) -> int:
    """Show for each hook of this project how often it ran, failed and blocked, and how long it took, slowest first.

    It reads the same log as `llxprt-hooks log`. `run`, `serve` and the proxies write the log. Your own program writes
    it with `Hooks.load(project, log=True)`. p50 and p95 are the median and the 95th-percentile duration; the bars show
    p95. Hooks in observe mode block nothing; "would block" counts the calls that they would have blocked, and "asked"
    the calls that hooks left to a person.

    \b
    Examples:
      llxprt-hooks stats
      llxprt-hooks stats --since 7d --where tenant=shop
      llxprt-hooks stats --hook no-force-push --by team
      llxprt-hooks stats --all --json
      llxprt-hooks stats --nats nats://127.0.0.1:4222
    """
    within = None if all_projects or nats is not None else project
    where = replace(where, project=within)
    records = read_log(where) if nats is None else audit_stream(nats, stream, credentials).read(where)
    figures = summarize(records, by)
    if as_json:
        print_json([each.to_dict() for each in figures])
    elif figures:
        _print_figures(figures, by)
    else:
        click.echo(nothing_found(where) if nats is None else NOT_IN_STREAM, err=True)
    return 0


_COUNTS = {
    "count": "count", "failed": "failed", "blocked": "blocked", "asked": "asked", "would block": "would_block",
}  # fmt: skip
_ONLY_IF_ANY = ("asked", "would_block")
_TIMES = {"p50 ms": "p50", "p95 ms": "p95", "max ms": "max"}


def _print_figures(figures: list[HookFigures], by: str | None) -> None:
    console = stdout_console()
    longest = max(len(one_line(each.hook)) for each in figures)
    room = console.width - _table(figures, by, longest=1)[0].cell_len + len("hook")
    cut_to = min(longest, MAX_HOOK, room)
    if cut_to < min(longest, MIN_HOOK):
        _print_cards(console, figures)
        return
    table = _table(figures, by, longest=cut_to)
    bar = min(BAR, console.width - table[0].cell_len - 2)
    if bar >= MIN_BAR:
        for row, blocks in zip(table[1:], _bars(console, figures, bar), strict=True):
            row.append(f"  {blocks}", "cyan")
    for row in table:
        console.print(row, soft_wrap=True)


def _table(figures: list[HookFigures], by: str | None, *, longest: int) -> list[Text]:
    unused = [field for field in _ONLY_IF_ANY if not any(getattr(each, field) for each in figures)]
    counts = {heading: field for heading, field in _COUNTS.items() if field not in unused}
    first = ("hook", "event", *([one_line(by)] if by else ()))
    headings: tuple[Part, ...] = tuple((heading, "dim") for heading in (*first, *counts, *_TIMES))
    rows = [_row(each, counts.values(), longest) for each in figures]
    return aligned([headings, *rows], right=range(len(first), len(headings)))


def _row(each: HookFigures, counts: Iterable[str], longest: int) -> tuple[Part, ...]:
    counted = (str(getattr(each, field)) for field in counts)
    times = (f"{getattr(each, field):.1f}" for field in _TIMES.values())
    caller = () if each.caller is None else (one_line(each.caller) or "-",)
    return (shorten(one_line(each.hook), longest), "bold"), each.event, *caller, *counted, *times


def _print_cards(console: Console, figures: list[HookFigures]) -> None:
    """Print hooks one below the other, for a terminal too narrow for a table."""
    for each, bar in zip(figures, _bars(console, figures, min(BAR, console.width - 2)), strict=True):
        print_line(console, (shorten(one_line(each.hook), console.width), "bold"))
        print_line(console, f"  {each.event}" + (f", {one_line(each.caller)}" if each.caller else ""))
        print_wrapped(
            console,
            f"  {each.count} {plural(each.count, 'time')}, {each.failed} failed, {each.blocked} blocked",
            f", {each.asked} asked" if each.asked else "",
            f", {each.would_block} would have blocked" if each.would_block else "",
        )
        print_wrapped(console, f"  p50 {each.p50:.1f}, p95 {each.p95:.1f}, max {each.max:.1f} ms")
        print_line(console, (f"  {bar}", "cyan"))


def _bars(console: Console, figures: list[HookFigures], length: int) -> list[str]:
    longest = max(each.p95 for each in figures) or 1.0
    block = "#" if console.options.ascii_only else "█"
    return [block * max(1, round(length * each.p95 / longest)) for each in figures]
