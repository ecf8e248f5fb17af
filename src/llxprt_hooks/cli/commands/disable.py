"""``llxprt-hooks disable``: disable a hook."""

from __future__ import annotations

import click

from llxprt_hooks.cli.below_agent import refuse_below_agent
from llxprt_hooks.cli.hook_names import hook_names
from llxprt_hooks.cli.options import directory_option


@click.command("disable")
@click.argument("name", metavar="NAME", shell_complete=hook_names(enabled=True))
@directory_option
def command(name: str, directory: str) -> int:
    """Disable a hook until `llxprt-hooks enable` enables it again.

    NAME is the hook's name or, if it has none, its command. It is added to the list `hooksConfig.disabled`: in the
    project's settings for a hook of the project, in your own settings for any other hook. Comments and formatting are
    kept. If you have approved the project, you have to approve this change too: on a terminal you are asked, otherwise
    run `llxprt-hooks trust`. An agent cannot use this command.

    \b
    Examples:
      llxprt-hooks disable no-secrets
      llxprt-hooks disable './hooks/check.sh --strict' -C path/to/project
    """
    from llxprt_hooks.cli.switch import switch
    from llxprt_hooks.inspection.switch import disable_hook

    refuse_below_agent()
    switch(disable_hook, directory, name, "disabled")
    return 0
