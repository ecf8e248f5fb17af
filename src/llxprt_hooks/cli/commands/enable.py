"""``llxprt-hooks enable``: enable a hook."""

from __future__ import annotations

import click

from llxprt_hooks.cli.hook_names import hook_names
from llxprt_hooks.cli.options import directory_option
from llxprt_hooks.cli.started_by_agent import refuse_below_agent


@click.command("enable")
@click.argument("name", metavar="NAME", shell_complete=hook_names(enabled=False))
@directory_option
def command(name: str, directory: str) -> int:
    """Enable a hook that `llxprt-hooks disable` disabled.

    NAME is the hook's name or, if it has none, its command. It is removed from the list `hooksConfig.disabled` in every
    settings file. Comments and formatting are kept. If you have approved the project, you have to approve this change
    too: on a terminal you are asked, otherwise run `llxprt-hooks trust`. Refused below an agent, as `trust --help`
    explains.

    \b
    Examples:
      llxprt-hooks enable no-secrets
      llxprt-hooks enable './hooks/check.sh --strict' -C path/to/project
    """
    from llxprt_hooks.cli.switch import switch
    from llxprt_hooks.inspection.switch import enable_hook

    refuse_below_agent()
    switch(enable_hook, directory, name, "enabled")
    return 0
