"""``llxprt-hooks untrust``: withdraw the approval of a project's hooks."""

from __future__ import annotations

import click

from llxprt_hooks._support.terminal import print_line, stdout_console
from llxprt_hooks._support.text import escape_for_terminal
from llxprt_hooks.cli.options import directory_option
from llxprt_hooks.cli.started_by_agent import refuse_below_agent
from llxprt_hooks.settings.trust.mcp_pins import McpPins
from llxprt_hooks.settings.trust.status import TrustError, revoke_trust, trust_status


@click.command("untrust")
@click.option("--mcp", "server", metavar="NAME", help="Withdraw the approval of this MCP server instead.")
@directory_option
def command(server: str | None, directory: str) -> int:
    """Withdraw the approval of a project's hooks: they no longer run.

    With --mcp, withdraws the approval of what an MCP server offers, which is then withheld from clients.

    Exit status: 0 even if nothing was approved; 1 if the approvals cannot be written, or an agent runs the command; 64
    for wrong usage.

    \b
    Examples:
      llxprt-hooks untrust -C path/to/project
      llxprt-hooks untrust --mcp shop
    """
    refuse_below_agent()
    try:
        if server is not None:
            return _forget_server(directory, server)
        withdrawn = revoke_trust(directory)
    except (TrustError, OSError) as error:
        raise click.ClickException(str(error)) from error
    project = trust_status(directory).project
    print_line(
        stdout_console(), f"the hooks of {project} no longer run" if withdrawn else f"{project} was not approved"
    )
    return 0


def _forget_server(directory: str, server: str) -> int:
    withdrawn = McpPins(directory, server).forget()
    said = "are withheld until you approve them again" if withdrawn else "were not approved"
    print_line(stdout_console(), f"the tools of {escape_for_terminal(server)} {said}")
    return 0
