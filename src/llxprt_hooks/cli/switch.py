"""What ``enable`` and ``disable`` print."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from llxprt_hooks.cli.terminal import print_line, stdout_console
from llxprt_hooks.inspection.switch import SwitchError, UnknownHookError
from llxprt_hooks.text import closest


def switch(change: Callable[[str, str], list[Path]], directory: str, name: str, state: str) -> None:
    """Switch a hook with a function of ``inspection.switch``, and print which files that changed."""
    try:
        files = change(directory, name)
    except UnknownHookError as error:
        raise click.ClickException(_unknown(name, error)) from error
    except SwitchError as error:
        raise click.ClickException(str(error)) from error
    changed = f" is {state} now; changed: {', '.join(map(str, files))}"
    print_line(stdout_console(), (name, "bold"), changed if files else f" was {state} already")


def _unknown(name: str, error: UnknownHookError) -> str:
    meant = closest(name, error.known)
    guess = f" Did you mean `{meant}`?" if meant else ""
    where = "`llxprt-hooks list` shows all; one without a name goes by its command."
    problem = f" What is wrong with the settings: {error.problem}" if error.problem else ""
    return f"{error}.{guess} {where}{problem}"
