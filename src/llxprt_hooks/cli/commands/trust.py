"""``llxprt-hooks trust``: approve a project's hooks."""

from __future__ import annotations

from pathlib import Path

import click

from llxprt_hooks._support.terminal import print_line, print_wrapped, stderr_console, stdout_console
from llxprt_hooks.cli.approval import approve, approved, is_interactive, show_approval, show_changes
from llxprt_hooks.cli.mcp_approval import approve_server
from llxprt_hooks.cli.options import dialect_options, directory_option
from llxprt_hooks.cli.started_by_agent import refuse_below_agent
from llxprt_hooks.commands.exit_status import ExitStatus
from llxprt_hooks.commands.list import TRUST_WORDS, take_inventory
from llxprt_hooks.commands.validate import Severity, diagnose, inspect_project
from llxprt_hooks.settings.load import asked_dialects
from llxprt_hooks.settings.trust.notices import why_off
from llxprt_hooks.settings.trust.status import TrustState, TrustStatus, trust_status


@click.command("trust")
@click.option("--dry-run", is_flag=True, help="Show what would be approved; approve nothing.")
@click.option("--show", is_flag=True, help="Show the content of all scripts too.")
@click.option("--mcp", "server", metavar="NAME", help="Approve what this MCP server offers, not the hooks.")
@click.option("-y", "--yes", is_flag=True, help="Approve without asking. Required without a terminal.")
@dialect_options
@directory_option
def command(dry_run: bool, show: bool, server: str | None, yes: bool, directory: str) -> int:
    """Show what the hooks of a project run, and approve them.

    The hooks of a project run only after you approve them. The approval covers exactly what is shown. After any change
    to the project's hooks, to a file below `.llxprt/hooks/`, or to a file that they start, import or name, you have to
    approve them again. The command then shows what has changed. Files outside `.llxprt/hooks/` that a script sources or
    starts are not covered: keep them there. Approvals are stored in your own folder, ~/.llxprt, never in the
    project.

    On a terminal, the command asks you first. Without a terminal, it approves only with --yes.

    With --mcp, shows and approves what an MCP server behind `llxprt-hooks mcp-proxy --pin --server-name NAME` offered
    last: its tools with their descriptions, schemas and annotations, and its instructions. Invisible characters are
    made visible, and texts that give a model orders are pointed out. After a change, shows the difference.

    An agent must not approve its own hooks: the command refuses if LLXPRT_AGENT=1 is set, or if `llxprt-hooks run` is
    among its parent processes. This stops accidents, not attacks: a command that unsets the variable and detaches
    itself can still approve. Any other program that may run commands as you can approve with --yes. If you have an
    agent of your own, set LLXPRT_AGENT=1 for the processes that it starts.

    Exit status: 0 if approved, or if there is nothing to approve; 1 if you answered no, there was no terminal to ask
    on, the project cannot be trusted, or an agent runs the command; 64 for wrong usage.

    \b
    Examples:
      llxprt-hooks trust --dry-run --show
      llxprt-hooks trust -C path/to/project
      llxprt-hooks trust --mcp shop
    """
    refuse_below_agent()
    if server is not None:
        return approve_server(directory, server, dry_run=dry_run, yes=yes)
    statuses = [trust_status(directory), *(trust_status(directory, name) for name in asked_dialects(directory))]
    present = [each for each in statuses if each.state is not TrustState.NOTHING_TO_TRUST] or statuses[:1]
    return max(_approve(directory, each, dry_run=dry_run, show=show, yes=yes) for each in present)


def _approve(directory: str, status: TrustStatus, *, dry_run: bool, show: bool, yes: bool) -> int:
    console = stdout_console()
    if status.state is TrustState.NOTHING_TO_TRUST:
        print_line(console, f"{status.project} has no hooks, so there is nothing to approve")
        for notice in take_inventory(directory).settings.misplaced:
            print_wrapped(stderr_console(), (notice, "yellow"))
        return ExitStatus.OK
    show_approval(console, status, with_scripts=show)
    show_changes(console, status)
    problems = _warn(directory)
    nobody_to_ask = not yes and not is_interactive()
    if dry_run or status.state is TrustState.TRUSTED or (show and nobody_to_ask):
        print_line(console, f"{status.project}: {TRUST_WORDS[status.state]}")
        return ExitStatus.OK
    if nobody_to_ask and status.state is not TrustState.REFUSED:
        raise click.ClickException(
            "nothing was approved, because there is no terminal to prompt on. "
            "Review the output above, then run `llxprt-hooks trust --yes`"
        )
    if not approve(status, ask=not yes and status.state is not TrustState.REFUSED):
        print_line(console, "nothing was approved")
        return ExitStatus.FAILED
    off = why_off(take_inventory(directory).settings) if status.statement else None
    if off:
        print_line(console, f"approved, but {off}")
    elif problems:
        count = "a problem" if problems == 1 else f"{problems} problems"
        print_line(console, f"approved, but `llxprt-hooks validate` finds {count}: not every hook will work as meant")
    else:
        print_line(console, approved(status))
    return ExitStatus.OK


def _warn(directory: str) -> int:
    """Warn about problems that keep approved hooks from working; their number."""
    found = [each for each in diagnose(inspect_project(Path(directory))) if each.severity is not Severity.HINT]
    if found:
        count = "a problem" if len(found) == 1 else f"{len(found)} problems, the first"
        print_wrapped(stderr_console(), (f"`llxprt-hooks validate` finds {count}: {found[0].message}", "yellow"))
    return len(found)
