"""Shows what an MCP server offers, and approves it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from llxprt_hooks._support.terminal import print_line, print_wrapped, stderr_console, stdout_console
from llxprt_hooks._support.text import escape_for_terminal, plural
from llxprt_hooks.cli.approval import is_interactive, print_diff
from llxprt_hooks.commands.exit_status import ExitStatus
from llxprt_hooks.commands.validate.mcp_texts import suspicions
from llxprt_hooks.settings.problem import Problem
from llxprt_hooks.settings.trust.mcp_pins import McpPins, definition_lines, offers_of

if TYPE_CHECKING:
    from typing import Any

    from rich.console import Console


def approve_server(directory: str, server: str, *, dry_run: bool, yes: bool) -> int:
    """Show what a server offered last and how it differs from what was approved, and approve it."""
    pins, console = McpPins(directory, server), stdout_console()
    offered = _offered(directory, pins)
    changes = pins.changes(offered)
    if not changes:
        print_line(console, f"everything that {escape_for_terminal(server)} offers is approved")
        return ExitStatus.OK
    _show(console, pins, offered, changes)
    for part in offered:
        for finding in suspicions(offered[part]) if part in changes else ():
            print_wrapped(stderr_console(), (escape_for_terminal(f"{part}: {finding}"), "yellow"))
    if dry_run:
        return ExitStatus.OK
    if not yes and not is_interactive():
        raise click.ClickException(
            "nothing was approved, because there is no terminal to prompt on. "
            "Review the output above, then run the command with --yes"
        )
    if not yes and not click.confirm(f"Approve what {escape_for_terminal(server)} offers?"):
        print_line(console, "nothing was approved")
        return ExitStatus.FAILED
    try:
        pins.approve(offered)
    except OSError as error:
        raise click.ClickException(f"the approval could not be recorded: {error}") from error
    count = f"{len(offered)} {plural(len(offered), 'definition')}"
    print_line(console, f"approved: {count} of {escape_for_terminal(server)}. After any change, approve again")
    return ExitStatus.OK


def _offered(directory: str, pins: McpPins) -> dict[str, Any]:
    offered = pins.offered()
    if isinstance(offered, Problem):
        raise click.ClickException(str(offered))
    if offered is None:
        names = sorted(escape_for_terminal(each.server) for each in offers_of(directory))
        known = f"Known here: {', '.join(names)}." if names else "No server of this project has been seen yet."
        raise click.ClickException(
            f"the proxy has not seen what {escape_for_terminal(pins.server)} offers. Connect a client once through "
            f"`llxprt-hooks mcp-proxy --pin --server-name NAME`, with the same -C. {known}"
        )
    return offered


def _show(console: Console, pins: McpPins, offered: dict[str, Any], changes: dict[str, list[str]]) -> None:
    if pins.approved:
        print_line(console, f"changed since the last approval: {escape_for_terminal(', '.join(changes))}")
        for lines in changes.values():
            print_diff(console, lines)
        return
    for part, definition in offered.items():
        print_line(console, "  ", (escape_for_terminal(part), "bold"))
        for line in definition_lines(definition):
            print_line(console, f"    | {escape_for_terminal(line, keep=chr(9))}")
