"""The output of ``enable`` and ``disable``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from llxprt_hooks.cli.terminal import print_line, stdout_console
from llxprt_hooks.inspection.switch import SwitchError, UnknownHookError
from llxprt_hooks.text import closest


def switch(change: Callable[[str, str], list[Path]], directory: str, name: str, state: str) -> None:
    """Enable or disable a hook with a function of ``inspection.switch``, and print which files changed."""
    try:
        files = change(directory, name)
    except UnknownHookError as error:
        raise click.ClickException(_unknown(name, error)) from error
    except SwitchError as error:
        raise click.ClickException(str(error)) from error
    changed = f" is now {state}; changed: {', '.join(map(str, files))}"
    print_line(stdout_console(), (name, "bold"), changed if files else f" was already {state}")


def _unknown(name: str, error: UnknownHookError) -> str:
    meant = closest(name, error.known)
    guess = f" Did you mean `{meant}`?" if meant else ""
    hint = "Run `llxprt-hooks list` to see all hooks; use the command of a hook that has no name."
    problem = f" Problem in the settings: {error.problem}" if error.problem else ""
    return f"{error}.{guess} {hint}{problem}"
