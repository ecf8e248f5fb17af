"""``llxprt-hooks disable``: disable a hook."""

from __future__ import annotations

from pathlib import Path

import click

from llxprt_hooks._support.text import PROSE, escape_for_terminal
from llxprt_hooks.cli.approval import is_interactive
from llxprt_hooks.cli.commands.enable import switch
from llxprt_hooks.cli.options import directory_option, hook_names
from llxprt_hooks.cli.started_by_agent import refuse_below_agent
from llxprt_hooks.commands.enable import AmbiguousHookError, disable_hook
from llxprt_hooks.settings import Level


@click.command("disable")
@click.argument("name", metavar="NAME", shell_complete=hook_names(enabled=True))
@click.option(
    "--level",
    type=click.Choice([Level.PROJECT.value, Level.USER.value]),
    help="Where to disable it: in the project's settings, or in yours, for all projects. Needed if both have the hook.",
)
@directory_option
def command(name: str, level: str | None, directory: str) -> int:
    """Disable a hook until `llxprt-hooks enable` enables it again.

    NAME is the hook's name or, if it has none, its command. It is added to the list `hooksConfig.disabled`: in the
    project's settings for a hook of the project, in your own settings for any other hook. If both have a hook of this
    name, you are asked which file to change; without a terminal, pass --level. Comments and formatting are kept. If you
    have approved the project, none of its hooks run until you approve this change too: on a terminal you are asked,
    otherwise run `llxprt-hooks trust`. Agents can't run this command (see `trust --help`).

    Exit status: 0 even if the hook was already disabled; 1 if no hook has this name, a file cannot be changed, or an
    agent runs the command; 64 for wrong usage.

    \b
    Examples:
      llxprt-hooks disable no-secrets
      llxprt-hooks disable no-secrets --level project
      llxprt-hooks disable './hooks/check.sh --strict' -C path/to/project
    """
    refuse_below_agent()

    def disable(directory: str, name: str) -> list[Path]:
        try:
            return disable_hook(directory, name, Level(level) if level else None)
        except AmbiguousHookError as error:
            return disable_hook(directory, name, _chosen_level(error))

    switch(disable, directory, name, "disabled")
    return 0


def _chosen_level(error: AmbiguousHookError) -> Level:
    """Ask which file to change; without a terminal, fail and say how to choose."""
    if not is_interactive():
        raise click.ClickException(f"{error}. Choose one with --level {' or --level '.join(error.files)}")
    click.echo(escape_for_terminal(f"{error}.", keep=PROSE))
    chosen = click.prompt("Disable it in which settings?", type=click.Choice([level.value for level in error.files]))
    return Level(chosen)
