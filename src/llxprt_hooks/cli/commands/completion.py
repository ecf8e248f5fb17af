"""``llxprt-hooks completion``: print a shell completion script."""

from __future__ import annotations

import os

import click

from llxprt_hooks.process.shell.command_line import absolute_search_path

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_LLXPRT_HOOKS_COMPLETE"
"""The environment variable with which the shell's script requests completions."""


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS), metavar="SHELL")
@click.pass_context
def command(ctx: click.Context, shell: str) -> int:
    """Print a script that completes commands, options, events and hook names in your shell.

    SHELL is bash (4.4 or newer), zsh or fish. To load the script whenever a shell starts:

    \b
      bash  echo 'eval "$(llxprt-hooks completion bash)"' >> ~/.bashrc
      zsh   echo 'eval "$(llxprt-hooks completion zsh)"' >> ~/.zshrc     (after compinit)
      fish  llxprt-hooks completion fish > ~/.config/fish/completions/llxprt-hooks.fish

    \b
    Example:
      eval "$(llxprt-hooks completion bash)"                             (for this shell only)
    """
    from click.shell_completion import get_completion_class

    completion = get_completion_class(shell)
    if completion is None:
        raise click.ClickException(f"there is no completion for {shell}")
    os.environ["PATH"] = absolute_search_path()  # click starts bash to find out its version, here as in a clone
    click.echo(completion(ctx.find_root().command, {}, "llxprt-hooks", VARIABLE).source(), nl=False)
    return 0
