"""The entry point of ``llxprt-hooks``."""

from __future__ import annotations

import io
import logging
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

import click

from llxprt_hooks.cli.exit_status import ExitStatus

COMMANDS = ("run", "fire", "list", "trust", "untrust", "log", "stats", "demo")
"""In the order in which help lists them; each is the module of that name."""


class CommandModules(click.Group):
    """Loads a command's module when the command is used or listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"llxprt_hooks.cli.commands.{cmd_name}").command
        return command


@click.group(
    cls=CommandModules,
    name="llxprt-hooks",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="llxprt-hooks")
def cli() -> None:
    """Hooks for Python agents: scripts of your own that see, check, change, restrict and stop what an agent does."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # what libraries have to say to developers is not for users
    sys.exit(run_command_line(arguments))


def run_command_line(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; its exit status. Errors are sentences on stderr, never tracebacks."""
    logging.basicConfig(format="llxprt-hooks: %(message)s", level=logging.WARNING)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a character that the terminal lacks is no reason to die
    try:
        status = cli.main(arguments, prog_name="llxprt-hooks", standalone_mode=False)
    except click.UsageError as error:
        error.show()
        return ExitStatus.USAGE
    except click.ClickException as error:
        error.show()
        return ExitStatus.FAILED
    except (click.Abort, KeyboardInterrupt):
        return ExitStatus.INTERRUPTED
    except (OSError, ExceptionGroup) as error:
        return _ended_by_system(error)
    return int(status or ExitStatus.OK)


def _ended_by_system(error: Exception) -> ExitStatus:
    """The system refused something, most likely to take our output; a reader who has gone needs no explanation."""
    while isinstance(error, ExceptionGroup):  # it happened in one of several tasks
        error = error.exceptions[0]
    if not isinstance(error, OSError):
        raise error
    if not isinstance(error, BrokenPipeError):
        click.echo(f"llxprt-hooks: {error}", err=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what was not written is tried again at exit otherwise
    return ExitStatus.FAILED
