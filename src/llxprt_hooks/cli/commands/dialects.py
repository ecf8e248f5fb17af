"""``llxprt-hooks dialects``: the hooks of other agents that are here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from llxprt_hooks._support.terminal import print_json, print_line, print_wrapped, stdout_console
from llxprt_hooks._support.text import one_line, plural
from llxprt_hooks.cli.options import dialect_options, directory_option, json_option
from llxprt_hooks.commands.dialects import FoundDialect, find_dialects

if TYPE_CHECKING:
    from rich.console import Console


@click.command("dialects")
@json_option
@dialect_options
@directory_option
def command(as_json: bool, directory: str) -> int:
    """List the hooks of other agents that this machine and project have, and which of them would run here.

    Hooks of another agent run unchanged once you ask for its dialect: with `--dialect NAME`, with
    `"hooksConfig": {"dialects": ["NAME"]}` in settings, or with `dialects=("NAME",)` in Python. The hooks of a project
    also need your approval.

    The command runs nothing. Exit status: 0 even if there are problems in the files, 64 for wrong usage.

    \b
    Examples:
      llxprt-hooks dialects
      llxprt-hooks dialects --json | jq '.dialects[] | select(.files != []) | .name'
    """
    found = find_dialects(directory)
    if as_json:
        print_json({"dialects": [each.to_dict() for each in found]})
        return 0
    console = stdout_console()
    for each in found:
        _print_dialect(console, each)
    return 0


def _print_dialect(console: Console, found: FoundDialect) -> None:
    title: tuple[str, str] = (found.title, "bold")
    if not found.files:
        print_line(console, title, f" ({found.name}): no settings here")
        return
    print_line(console, title, f" ({found.name}): {'used' if found.is_used else 'not used'}")
    for file in found.files:
        count = len(file.hooks)
        print_line(console, f"  {file.file}  {count or 'no'} {plural(count, 'hook')}")
        for hook in file.hooks:
            state = ("runs   ", "green") if hook.obstacle is None else ("skips  ", "yellow")
            matcher = f" {one_line(hook.matcher)}" if hook.matcher else ""
            print_line(console, "    ", state, hook.event, matcher, f"  {one_line(hook.command)}")
            if hook.obstacle is not None:
                print_wrapped(console, (f"           because {hook.obstacle}", "dim"))
        for problem in file.problems:
            print_wrapped(console, (f"    {problem}", "yellow"))
    if not found.is_used and found.runnable:
        print_wrapped(console, f"  To run these hooks, add `--dialect {found.name}` to a command.")
    if any(hook.obstacle for file in found.files for hook in file.hooks):
        print_wrapped(console, f"  To approve a project's hooks, run `llxprt-hooks trust --dialect {found.name}`.")
