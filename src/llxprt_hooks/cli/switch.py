"""The output of ``enable`` and ``disable``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from llxprt_hooks.cli.approval import approve, is_interactive, show_changes
from llxprt_hooks.cli.terminal import print_line, stdout_console
from llxprt_hooks.inspection.switch import SwitchError, UnknownHookError
from llxprt_hooks.text import closest

if TYPE_CHECKING:
    from llxprt_hooks.trust.status import TrustStatus


def switch(change: Callable[[str, str], list[Path]], directory: str, name: str, state: str) -> None:
    """Enable or disable a hook with a function of ``inspection.switch``, and print which files changed.

    A change of an approved project has to be approved, too.
    """
    from llxprt_hooks.trust.status import TrustState, trust_status

    was_approved = trust_status(directory).state is TrustState.TRUSTED
    try:
        files = change(directory, name)
    except UnknownHookError as error:
        raise click.ClickException(_unknown(name, error)) from error
    except SwitchError as error:
        raise click.ClickException(str(error)) from error
    changed = f" is now {state}; changed: {', '.join(map(str, files))}"
    print_line(stdout_console(), (name, "bold"), changed if files else f" was already {state}")
    status = trust_status(directory)
    if was_approved and status.state is TrustState.CHANGED:
        _renew(status)


def _renew(status: TrustStatus) -> None:
    """Show what has changed, and approve it if the user says so."""
    console = stdout_console()
    if is_interactive():
        show_changes(console, status)
        if approve(status, ask=True):
            print_line(console, f"approved: the hooks of {status.project} will run until they change")
            return
    click.echo(
        "This changed the project's settings, so its approval has ended and none of its hooks run. "
        "To approve the change, run `llxprt-hooks trust`.",
        err=True,
    )


def _unknown(name: str, error: UnknownHookError) -> str:
    meant = closest(name, error.known)
    guess = f" Did you mean `{meant}`?" if meant else ""
    hint = "Run `llxprt-hooks list` to see all hooks. If a hook has no name, use its command."
    if error.problem:  # more likely than a wrong name, and to be fixed in any case
        return f"{error.problem}. Hooks of this file may be missing: {error}.{guess}"
    return f"{error}.{guess} {hint}"
