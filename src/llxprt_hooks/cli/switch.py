"""The output of ``enable`` and ``disable``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from llxprt_hooks.cli.approval import approve, approved, is_interactive, show_changes
from llxprt_hooks.cli.terminal import print_line, print_wrapped, stderr_console, stdout_console
from llxprt_hooks.inspection.switch import SwitchError, UnknownHookError
from llxprt_hooks.text import closest


def switch(change: Callable[[str, str], list[Path]], directory: str, name: str, state: str) -> None:
    """Enable or disable a hook with a function of ``inspection.switch``, and print which files changed.

    A change of an approved project has to be approved, too.
    """
    from llxprt_hooks.trust.notices import NOT_TRUSTED_REASONS
    from llxprt_hooks.trust.status import TrustState, approved_by_environment, trust_status

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
    if status.state not in NOT_TRUSTED_REASONS or approved_by_environment():
        return
    if was_approved and is_interactive():
        show_changes(stdout_console(), status)
        if approve(status, ask=True):
            print_line(stdout_console(), approved(status))
            return
    reason = "this change has ended the project's approval" if was_approved else NOT_TRUSTED_REASONS[status.state]
    warning = f"None of the project's hooks run, because {reason}. Run `llxprt-hooks trust` to approve them."
    print_wrapped(stderr_console(), (warning, "yellow"))


def _unknown(name: str, error: UnknownHookError) -> str:
    meant = closest(name, error.known)
    guess = f" Did you mean `{meant}`?" if meant else ""
    hint = "Run `llxprt-hooks list` to see all hooks. If a hook has no name, use its command."
    if error.problem:  # more likely than a wrong name, and to be fixed in any case
        return f"{error.problem}. Hooks of this file may be missing: {error}.{guess}"
    return f"{error}.{guess} {hint}"
