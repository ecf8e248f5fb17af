"""``llxprt-hooks trust``: approve a project's hooks."""

from __future__ import annotations

import select
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from llxprt_hooks.cli.exit_status import ExitStatus
from llxprt_hooks.cli.options import directory_option
from llxprt_hooks.cli.terminal import print_line, print_wrapped, stderr_console, stdout_console
from llxprt_hooks.text import escape_for_terminal

if TYPE_CHECKING:
    from rich.console import Console

    from llxprt_hooks.trust.status import TrustStatus


@click.command("trust")
@click.option("--dry-run", is_flag=True, help="Show what would be approved; approve nothing.")
@click.option("-y", "--yes", is_flag=True, help="Approve without asking.")
@directory_option
def command(dry_run: bool, yes: bool, directory: str) -> int:
    """Approve the hooks of a project, after showing what they run.

    Hooks of a project run only after you approve them. The approval covers exactly what is shown: after any change to
    the project's hooks, or to a script they name, you have to approve them again. Approvals are stored in your own
    folder, ~/.llxprt, never in the project. On a terminal the command asks you first. Without a terminal it approves
    without asking, unless its standard input contains "n" or "no".

    \b
    Examples:
      llxprt-hooks trust --dry-run
      llxprt-hooks trust -C path/to/project
    """
    from llxprt_hooks.inspection.inventory import TRUST_WORDS
    from llxprt_hooks.trust.status import TrustError, TrustState, grant_trust, trust_status

    console = stdout_console()
    status = trust_status(directory)
    if status.state is TrustState.NOTHING_TO_TRUST:
        print_line(console, f"{status.project} has no hooks of its own; there is nothing to approve")
        return ExitStatus.OK
    _show(console, status)
    if status.changed:
        print_line(console, f"changed since the last approval: {', '.join(status.changed)}")
    if dry_run or status.state is TrustState.TRUSTED:
        print_line(console, f"{status.project}: {TRUST_WORDS[status.state]}")
        return ExitStatus.OK
    question = f"Approve the hooks of {escape_for_terminal(str(status.project))}?"
    if not yes and (not click.confirm(question) if _is_interactive() else _stdin_is_no()):
        print_line(console, "nothing was approved")
        return ExitStatus.FAILED
    try:
        grant_trust(directory, expected_fingerprint=status.fingerprint)
    except TrustError as error:
        raise click.ClickException(str(error)) from error
    print_line(console, f"approved: the hooks of {status.project} will run until they change")
    _warn(directory)
    return ExitStatus.OK


def _warn(directory: str) -> None:
    """Warn about problems that keep approved hooks from working."""
    from llxprt_hooks.diagnosis import Severity, diagnose, inspect_project

    found = [each for each in diagnose(inspect_project(Path(directory))) if each.severity is not Severity.HINT]
    if found:
        count = "a problem" if len(found) == 1 else f"{len(found)} problems"
        print_wrapped(stderr_console(), (f"`llxprt-hooks validate` finds {count}: {found[0].message}", "yellow"))


def _show(console: Console, status: TrustStatus) -> None:
    """Print everything that the approval covers."""
    from llxprt_hooks.events import HookEventName
    from llxprt_hooks.protocol.json_codec import decode_text, write_json
    from llxprt_hooks.settings.hook_groups import SWITCHES

    for hook in status.commands:
        matcher = f" {hook.matcher}" if hook.matcher else ""
        print_line(console, "  ", (hook.event, "bold"), f"{matcher}  {escape_for_terminal(hook.command)}")
        if hook.event not in tuple(HookEventName):
            never = "    unknown event, so this hook never runs; run `llxprt-hooks validate` for details"
            print_line(console, (never, "yellow"))
        if hook.details:
            details = ", ".join(f"{key}: {value}" for key, value in hook.details.items())
            print_line(console, (f"    {escape_for_terminal(details)}", "dim"))
    for script in status.scripts:
        print_line(console, (f"  script {script}", "dim"), ("  (changed)" * (script in status.changed), "yellow"))
    for key, value in status.statement.items():
        if key != "hooks":
            print_line(console, (f"  {key}: {decode_text(write_json(value))}", "dim"))
        elif isinstance(value, dict):
            for switch in (key for key in SWITCHES if key in value):
                print_line(console, (f"  hooks.{switch}: {decode_text(write_json(value[switch]))}", "dim"))


def _is_interactive() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def _stdin_is_no() -> bool:
    """Whether a line is available on piped stdin, without waiting, and means no."""
    if sys.stdin is None or not select.select([sys.stdin], [], [], 0)[0]:
        return False
    return sys.stdin.readline().strip().casefold() in ("n", "no")
