"""The entry point of ``llxprt-hooks``."""

from __future__ import annotations

import gc
import io
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING

import click

from llxprt_hooks._support.logger import is_printed
from llxprt_hooks._support.text import PROSE, closest, escape_for_terminal
from llxprt_hooks.commands.exit_status import ExitStatus

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

GROUPS: Mapping[str, Mapping[str, str]] = {
    "Start": {
        "demo": "Show what hooks can do, in a few seconds.",
        "init": "Add ready-made hooks to a project.",
        "migrate": "Migrate hooks from Claude Code or Gemini CLI.",
        "trust": "Approve the hooks of a project.",
        "untrust": "Withdraw the approval of a project's hooks.",
    },
    "Run": {
        "run": "Run the agent with your hooks.",
        "fire": "Run the hooks of one event, without an agent.",
        "enable": "Enable a hook.",
        "disable": "Disable a hook.",
    },
    "Check": {
        "list": "List hooks, where they come from, and whether they may run.",
        "dialects": "List the hooks of other agents, and which would run.",
        "validate": "Find mistakes in settings files, and how to fix them.",
        "doctor": "Check that hooks work on this machine.",
        "test": "Run the tests for hooks.",
        "backtest": "Replay recorded events against changed hooks.",
        "prove": "Show which tool calls of an agent hooks guard.",
    },
    "Observe": {
        "log": "Show which hooks ran and what they decided.",
        "stats": "Show how often hooks ran and how long they took.",
        "inspect": "Show events live in the browser.",
    },
    "Connect": {
        "mcp-proxy": "Run an MCP server with hooks around its tools.",
        "model-proxy": "Run hooks around the model calls of any agent.",
        "serve": "Run hooks for agents in other processes and on other machines.",
    },
    "Set up": {
        "schema": "Print a JSON Schema of the settings, for editors.",
        "completion": "Print a completion script for your shell.",
    },
}
"""Commands by what they are for, in the order of the help text. Each is a module of the same name."""

COMMANDS: Mapping[str, str] = {name: does for commands in GROUPS.values() for name, does in commands.items()}


class CommandModules(click.Group):
    """Loads a command's module when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"llxprt_hooks.cli.commands.{cmd_name.replace('-', '_')}").command
        if not any("-C" in parameter.opts for parameter in command.params):
            command.params.append(_ignored_directory())
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
        width = max(map(len, COMMANDS))  # the same in all sections
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{width}}", does) for name, does in commands.items()])
        with formatter.section("Exit status"):
            formatter.write_dl([(f"{status:<{width}}", status.meaning) for status in ExitStatus])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        commands = [CompletionItem(name, help=does) for name, does in COMMANDS.items() if name.startswith(incomplete)]
        return commands + click.Command.shell_complete(self, ctx, incomplete)


def _reject_leading_directory(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise click.UsageError(f"-C goes after the command, as in: llxprt-hooks list -C {value}", ctx)


def _ignored_directory() -> click.Option:
    """Return a -C option without effect, so that scripts can pass -C to every command."""
    folder = click.Path(exists=True, file_okay=False)
    return click.Option(["-C"], type=folder, metavar="DIR", expose_value=False, hidden=True)


@click.group(
    cls=CommandModules,
    name="llxprt-hooks",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="llxprt-hooks")
@click.option("-C", metavar="DIR", hidden=True, expose_value=False, callback=_reject_leading_directory)
def cli() -> None:
    """Guardrails for AI agents, written as plain scripts: they run before and after tool calls and model calls.

    \b
    Start here:
      llxprt-hooks demo                  see what hooks can do
      llxprt-hooks init                  create a first hook in this folder
      llxprt-hooks trust                 review it and approve it
      llxprt-hooks fire BeforeTool       try it
      llxprt-hooks fire --help           help for a command, with examples

    Results go to standard output, everything else to standard error.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    sys.excepthook = _print_traceback
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # warnings of libraries are for developers, not users
    # What a command imports stays until the end. Searching it for garbage would take up to half of a command's time.
    gc.set_threshold(200_000)  # more objects than the agent has when it starts
    status = run_command_line(arguments)
    gc.freeze()
    sys.exit(status)


def run_command_line(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status. Errors are printed as sentences, without tracebacks."""
    _log_to_stderr()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # do not fail on characters the terminal lacks
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
        return _report_os_error(error)
    except SystemExit as ended:
        if ended.code != 1:  # shell completion
            raise
        return _report_os_error(BrokenPipeError())  # click catches it, and exits with 1
    return int(status or ExitStatus.OK)


def _print_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an uncaught exception, whose message can contain untrusted text."""
    text = "".join(traceback.format_exception(kind, error, trace))
    click.echo(escape_for_terminal(text, keep=PROSE), err=True, nl=False)


class _EscapingFormatter(logging.Formatter):
    """Escapes log messages, which can contain untrusted text from hooks and files."""

    def format(self, record: logging.LogRecord) -> str:
        # Further lines are indented, so that they do not look like other messages.
        return escape_for_terminal(super().format(record), keep=PROSE).replace("\n", "\n    ")


def _log_to_stderr() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_EscapingFormatter("llxprt-hooks: %(message)s"))
    handler.addFilter(lambda record: not is_printed(record))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)


def _show(error: click.ClickException) -> None:
    """Print an error as click does, but escape untrusted text."""
    shown = io.StringIO()
    error.show(file=shown)
    click.echo(escape_for_terminal(shown.getvalue(), keep=PROSE), err=True, nl=False)


def _report_os_error(error: Exception) -> ExitStatus:
    """Print an operating system error, usually about writing output. After ``| head`` there is nothing to report."""
    while isinstance(error, ExceptionGroup):  # raised in one of several tasks
        error = error.exceptions[0]
    if not isinstance(error, OSError):
        raise error
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # otherwise Python tries to flush stdout again at exit
    if isinstance(error, BrokenPipeError):
        return ExitStatus.READER_LEFT
    where = error.filename or "standard output"
    click.echo(escape_for_terminal(f"Error: {where}: {error.strerror or error}", keep=PROSE), err=True)
    return ExitStatus.FAILED
