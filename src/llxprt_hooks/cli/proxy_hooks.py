"""Shared start of the two proxies: load the hooks of a folder, and warn about what will not work."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from llxprt_hooks._support.logger import without_warnings
from llxprt_hooks._support.text import PROSE, escape_for_terminal
from llxprt_hooks.commands.list import loaded_settings, take_inventory
from llxprt_hooks.config import Config
from llxprt_hooks.events import HookEventName
from llxprt_hooks.fleet.audit.log import HookLog
from llxprt_hooks.hooks import Hooks
from llxprt_hooks.integrations.unsupported import UNSUPPORTED, reports, require_supported
from llxprt_hooks.settings.problem import SettingsError


def load_hooks(
    directory: str,
    proxy: str,
    required: tuple[str, ...],
    *,
    allow_unguarded: bool,
    without_hooks: str = "nothing is checked",
) -> Hooks:
    """Load the hooks of a folder, and print what will not work in this proxy, each line once.

    ``without_hooks`` is what happens if none of them runs.

    Fails if a hook is configured that may not run, unless that is allowed, or if a required hook is missing: the proxy
    must not start without its guards (D-27, D-115, D-116).
    """
    try:
        with without_warnings():
            config = Config.load(directory, observer=HookLog(directory), require=required)
        settings = loaded_settings(config)
        if not allow_unguarded:
            settings.require_guards()
        require_supported(config.required, UNSUPPORTED[proxy])
    except SettingsError as error:
        raise click.ClickException(error.refusal) from error
    hooks, inventory = Hooks(config), take_inventory(directory)
    missing = [*settings.unguarded, *map(str, inventory.discarded)]
    if missing and not allow_unguarded:
        raise click.ClickException(
            "\n".join([_UNGUARDED, *(escape_for_terminal(line, keep=PROSE) for line in missing)])
        )
    for line in (*settings.warnings, *reports(proxy, hooks)):
        warn(line)
    supported = set(HookEventName) - UNSUPPORTED[proxy].keys()
    if not any(inventory.runs(item) for event in supported for item in inventory.for_event(event)):
        warn(_nothing_runs(directory, without_hooks, configured=bool(inventory.items or inventory.problems)))
    return hooks


_UNGUARDED = (
    "Not all configured hooks may run, so the proxy does not start. To start without them, pass --allow-unguarded."
)


def _nothing_runs(directory: str, checked: str, *, configured: bool) -> str:
    folder = Path(directory).absolute()
    if configured:
        list_them = f"llxprt-hooks list -C {shlex.quote(str(folder))}"
        return f"no hook of {folder} runs in this proxy: {checked}. To see its hooks, run `{list_them}`"
    return f"no hooks are configured in {folder}: {checked}. To use those of another project, pass -C"


def warn(message: str) -> None:
    """Print a line beside the proxy's own output."""
    click.echo(escape_for_terminal(f"llxprt-hooks: {message}", keep=PROSE), err=True)
