"""The entry point of ``llxprt-hooks``."""

from __future__ import annotations

import io
import logging
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import click

from llxprt_hooks.cli.exit_status import ExitStatus
from llxprt_hooks.text import PROSE, closest, escape_for_terminal

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS: Mapping[str, str] = {
    "run": "Run the agent, with your hooks.",
    "fire": "Try the hooks of one event, without an agent.",
    "list": "List the hooks, where they come from, and whether they may run.",
    "enable": "Switch a hook on.",
    "disable": "Switch a hook off.",
    "trust": "Approve the hooks of a project.",
    "untrust": "Withdraw that approval.",
    "validate": "Say what is wrong with settings, where, and how to put it right.",
    "schema": "Print the JSON Schema of the settings, for editors.",
    "log": "Show which hooks ran and what they decided.",
    "stats": "Show how often hooks ran and how long they took.",
    "init": "Begin with a hook that is ready to use.",
    "migrate": "Take over the hooks of Claude Code or Gemini CLI.",
    "demo": "See in seconds what hooks can do.",
    "completion": "Have your shell complete commands.",
}
"""In the order in which help lists them; each is the module of that name, loaded when it is used."""


class CommandModules(click.Group):
    """Loads a command's module when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"llxprt_hooks.cli.commands.{cmd_name}").command
        if not any("-C" in parameter.opts for parameter in command.params):
            command.params.append(_no_directory())
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            meant = closest(args[0], COMMANDS)
            guess = f" Did you mean `{meant}`?" if meant else ""
            raise click.UsageError(f"No such command {args[0]!r}.{guess}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        commands = [CompletionItem(name, help=does) for name, does in COMMANDS.items() if name.startswith(incomplete)]
        return commands + click.Command.shell_complete(self, ctx, incomplete)


def _belongs_after_the_command(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise click.UsageError(f"-C stands after the command, as in: llxprt-hooks list -C {value}", ctx)


def _no_directory() -> click.Option:
    """All commands take -C, so that a script may give it to all, also those to which it means nothing."""
    folder = click.Path(exists=True, file_okay=False)
    return click.Option(["-C"], type=folder, metavar="DIR", expose_value=False, hidden=True)


@click.group(
    cls=CommandModules,
    name="llxprt-hooks",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="llxprt-hooks")
@click.option("-C", metavar="DIR", hidden=True, expose_value=False, callback=_belongs_after_the_command)
def cli() -> None:
    """Hooks for Python agents: scripts of your own that see, check, change, restrict and stop what an agent does.

    \b
    Begin here:
      llxprt-hooks demo                  see what hooks can do
      llxprt-hooks init                  make a first hook in this folder
      llxprt-hooks trust                 look at it and approve it
      llxprt-hooks fire BeforeTool       try it
      llxprt-hooks fire --help           more about a command, with examples

    Exit status: 0 allowed or finished, 2 blocked by a hook, 3 stopped by a hook, 64 wrong usage, 1 anything else that
    failed. Results are on standard output, all else on standard error.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # what libraries have to say to developers is not for users
    sys.exit(run_command_line(arguments))


def run_command_line(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; its exit status. Errors are sentences on stderr, never tracebacks."""
    _log_to_stderr()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a character that the terminal lacks is no reason to die
    try:
        status = cli.main(arguments, prog_name="llxprt-hooks", standalone_mode=False)
    except click.UsageError as error:
        _show(error)
        return ExitStatus.USAGE
    except click.ClickException as error:
        _show(error)
        return ExitStatus.FAILED
    except (click.Abort, KeyboardInterrupt):
        return ExitStatus.INTERRUPTED
    except (OSError, ExceptionGroup) as error:
        return _ended_by_system(error)
    return int(status or ExitStatus.OK)


class _VisibleFormatter(logging.Formatter):
    """Log messages tell what hooks and files said; a terminal must not act on it."""

    def format(self, record: logging.LogRecord) -> str:
        return escape_for_terminal(super().format(record), keep=PROSE)


def _log_to_stderr() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_VisibleFormatter("llxprt-hooks: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)


def _show(error: click.ClickException) -> None:
    """As click would, but with what came from files made visible."""
    shown = io.StringIO()
    error.show(file=shown)
    click.echo(escape_for_terminal(shown.getvalue(), keep=PROSE), err=True, nl=False)


def _ended_by_system(error: Exception) -> ExitStatus:
    """The system refused something, most likely to take our output; a reader who has gone needs no explanation."""
    while isinstance(error, ExceptionGroup):  # it happened in one of several tasks
        error = error.exceptions[0]
    if not isinstance(error, OSError):
        raise error
    if not isinstance(error, BrokenPipeError):
        where = error.filename or "standard output"
        click.echo(escape_for_terminal(f"llxprt-hooks: {where}: {error.strerror or error}", keep=PROSE), err=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what was not written is tried again at exit otherwise
    return ExitStatus.FAILED
