"""``llxprt-hooks untrust``: withdraw the approval of a project's hooks."""

from __future__ import annotations

import click

from llxprt_hooks._support.terminal import print_line, stdout_console
from llxprt_hooks.cli.options import directory_option
from llxprt_hooks.cli.started_by_agent import refuse_below_agent
from llxprt_hooks.settings.trust.status import TrustError, revoke_trust, trust_status


@click.command("untrust")
@directory_option
def command(directory: str) -> int:
    """Withdraw the approval of a project's hooks: they no longer run.

    \b
    Example:
      llxprt-hooks untrust -C path/to/project
    """
    refuse_below_agent()
    try:
        withdrawn = revoke_trust(directory)
    except TrustError as error:
        raise click.ClickException(str(error)) from error
    project = trust_status(directory).project
    print_line(
        stdout_console(), f"the hooks of {project} no longer run" if withdrawn else f"{project} was not approved"
    )
    return 0
