"""``llxprt-hooks enable``: enable a hook."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from llxprt_hooks._support.terminal import print_line, print_wrapped, stderr_console, stdout_console
from llxprt_hooks._support.text import closest
from llxprt_hooks.cli.approval import approve, approved, is_interactive, show_changes
from llxprt_hooks.cli.options import directory_option, hook_names
from llxprt_hooks.cli.started_by_agent import refuse_below_agent
from llxprt_hooks.commands.enable import SwitchError, UnknownHookError, enable_hook
from llxprt_hooks.settings.trust.notices import NOT_TRUSTED_REASONS
from llxprt_hooks.settings.trust.status import TrustState, approved_by_environment, trust_status


@click.command("enable")
@click.argument("name", metavar="NAME", shell_complete=hook_names(enabled=False))
@directory_option
def command(name: str, directory: str) -> int:
    """Enable a hook that `llxprt-hooks disable` disabled.

    NAME is the hook's name or, if it has none, its command. It is removed from the lists `hooksConfig.disabled` and
    `hooks.disabled` in every settings file. Comments and formatting are kept. If you have approved the project, none of
    its hooks run until you approve this change too: on a terminal you are asked, otherwise run `llxprt-hooks trust`.
    Agents can't run this command (see `trust --help`).

    Exit status: 0 even if the hook was already enabled; 1 if no hook has this name, a file cannot be changed, or an
    agent runs the command; 64 for wrong usage.

    \b
    Examples:
      llxprt-hooks enable no-secrets
      llxprt-hooks enable './hooks/check.sh --strict' -C path/to/project
    """
    refuse_below_agent()
    switch(enable_hook, directory, name, "enabled")
    return 0


def switch(change: Callable[[str, str], list[Path]], directory: str, name: str, state: str) -> None:
    """Enable or disable a hook with a function of ``commands.enable``, and print which files changed.

    A change of an approved project has to be approved, too.
    """
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
