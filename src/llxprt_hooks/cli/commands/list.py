"""``llxprt-hooks list``: list hooks, where they come from, and whether they may run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from llxprt_hooks._support.terminal import (
    Part,
    aligned,
    fits,
    print_json,
    print_line,
    print_wrapped,
    stderr_console,
    stdout_console,
)
from llxprt_hooks._support.text import one_line
from llxprt_hooks.cli.options import dialect_options, directory_option, json_option
from llxprt_hooks.commands.list import TRUST_WORDS, Inventory, Item, take_inventory
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.hook_fields import FULL

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


NONE_CONFIGURED = "no hooks are configured; run `llxprt-hooks init` to create one"
NONE_HERE = "no hooks are configured for this folder"
NONE_USABLE = "no usable hooks; run `llxprt-hooks validate` to see why"
COLUMNS = ("hook", "matcher", "source", "mode", "timeout", "state")


@click.command("list")
@json_option
@dialect_options
@directory_option
def command(as_json: bool, directory: str) -> int:
    """List the hooks of a project by event, in the order of their priority.

    For each hook, it shows the name, the matcher of its group, the level that it comes from (project, user, system,
    managed or an extension), whether its group runs in parallel or sequentially, the timeout, and its state, such as
    enabled, disabled or not approved. The lines below it show its command, its description and settings such as
    failClosed. If one of the groups that match is sequential, all hooks of that event run one after another.

    Problems in the settings are on standard error. Exit status: 0 even if there are problems, 64 for wrong usage.

    \b
    Examples:
      llxprt-hooks list
      llxprt-hooks list --json | jq '.hooks[] | select(.runs) | .name'
    """
    inventory = take_inventory(directory)
    if as_json:
        print_json(inventory.to_dict())
        return 0
    _print_hooks(inventory)
    for warning in inventory.warnings:
        print_wrapped(stderr_console(), (warning, "yellow"))
    return 0


def _print_hooks(inventory: Inventory) -> None:
    console = stdout_console()
    if not inventory.items:
        none = NONE_HERE if inventory.settings.misplaced else NONE_CONFIGURED
        print_line(console, NONE_USABLE if inventory.problems else none)
    if (trust := inventory.settings.trust).counts:
        print_line(console, f"{trust.project}: {TRUST_WORDS[trust.state]}")
    if inventory.items and inventory.settings.profile == FULL:
        print_line(console, "profile full: these hooks act on prompts, results and turns")
    tables = {event: _table(inventory, items) for event in HookEventName if (items := inventory.for_event(event))}
    has_room = all(fits(console, table) for table in tables.values())
    for event, table in tables.items():
        print_line(console, (event, "bold"))
        items = inventory.for_event(event)
        if has_room:
            _print_table(console, table, items)
        else:
            _print_cards(console, inventory, items)


def _table(inventory: Inventory, items: list[Item]) -> list[Text]:
    headings: tuple[Part, ...] = tuple((heading, "dim") for heading in COLUMNS)
    return aligned([headings, *(_row(inventory, item) for item in items)], indent="  ")


def _print_table(console: Console, table: list[Text], items: list[Item]) -> None:
    headings, *rows = table
    console.print(headings, soft_wrap=True)
    for row, item in zip(rows, items, strict=True):
        console.print(row, soft_wrap=True)
        _print_below(console, item)


def _print_cards(console: Console, inventory: Inventory, items: list[Item]) -> None:
    """Print hooks one below the other, for a terminal too narrow for a table."""
    for item in items:
        name, matcher, source, mode, timeout, state = _row(inventory, item)
        print_line(console, "  ", name)
        print_line(console, "    matcher ", matcher)
        print_wrapped(console, "    ", source, ", ", mode, ", ", timeout)
        print_wrapped(console, "    ", state)
        _print_below(console, item)


def _print_below(console: Console, item: Item) -> None:
    config = item.definition.config
    print_line(console, (f"      {config.command}", "dim"))
    if config.foreign is not None:
        print_line(console, (f"      dialect {config.dialect}", "dim"))
    if config.blocks_on_failure:
        print_line(console, ("      blocks when it fails", "dim"))
    if config.observe:
        print_line(console, ("      observes: it is logged, and changes nothing", "dim"))
    if config.sentences:
        print_line(console, ("      receives streamed responses sentence by sentence", "dim"))
    if config.warm:
        print_line(
            console, ("      warm: runs in a pre-started process, a Python script in a pre-started interpreter", "dim")
        )
    if config.description:
        print_line(console, (f"      {one_line(config.description)}", "dim italic"))


def _row(inventory: Inventory, item: Item) -> tuple[Part, ...]:
    definition, config = item.definition, item.definition.config
    milliseconds = config.timeout
    return (
        (one_line(config.name) if config.name else "(unnamed)", "bold"),
        definition.matcher or "*",
        item.source,
        "sequential" if definition.sequential else "parallel",
        f"{milliseconds:g} ms" if milliseconds < 1000 else f"{milliseconds / 1000:,.10g} s",
        (inventory.state(item), "green" if inventory.runs(item) else "yellow"),
    )
