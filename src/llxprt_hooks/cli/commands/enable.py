"""``llxprt-hooks enable``: switch a hook on."""

from __future__ import annotations

import click

from llxprt_hooks.cli.hook_names import hook_names
from llxprt_hooks.cli.options import directory_option


@click.command("enable")
@click.argument("name", metavar="NAME", shell_complete=hook_names(enabled=False))
@directory_option
def command(name: str, directory: str) -> int:
    """Switch a hook on that `llxprt-hooks disable` has switched off.

    NAME is the hook's name or, if it has none, its command. It is taken off the list `hooksConfig.disabled` of every
    settings file that has it there; comments and formatting stay as they are. If you have approved the project, the
    approval goes on to hold.

    \b
    Examples:
      llxprt-hooks enable no-secrets
      llxprt-hooks enable './hooks/check.sh --strict' -C path/to/project
    """
    from llxprt_hooks.cli.switch import switch
    from llxprt_hooks.inspection.switch import enable_hook

    switch(enable_hook, directory, name, "enabled")
    return 0
