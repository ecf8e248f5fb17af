"""``llxprt-hooks doctor``: check that hooks work on this machine."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import click

from llxprt_hooks._support.terminal import print_json, print_line, print_wrapped, stdout_console
from llxprt_hooks.cli.options import dialect_options, directory_option, json_option
from llxprt_hooks.commands.doctor import CheckedHook, Finding, Report, examine
from llxprt_hooks.commands.exit_status import ExitStatus

if TYPE_CHECKING:
    from rich.console import Console


_MARKS: Final = {"ok": ("ok      ", "green"), "notice": ("notice  ", "yellow"), "broken": ("BROKEN  ", "bold red")}


@click.command("doctor")
@json_option
@dialect_options
@directory_option
def command(as_json: bool, directory: str) -> int:
    """Check that hooks work: which files are read, what state each hook is in, and whether a hook can block.

    Shows which settings files are read and why one is refused; which hooks are managed, approved, changed since their
    approval, disabled or broken, such as one whose script or interpreter does not exist; all other errors that
    `llxprt-hooks validate` finds; whether the log and the trust store are private and writable; whether the server or
    worker of an http or nats hook that runs can be reached, without an event. Then it runs a test hook of its own, the
    canary, which must block. It runs nothing of the project.

    The last line says how many hooks run. Exit status: 0 if nothing is broken and every hook runs, 1 otherwise. A
    hook does not count if it is disabled by name, if settings turn all hooks off ("enableHooks": false), or if only
    managed hooks may run. A folder without hooks is not an error.

    \b
    Examples:
      llxprt-hooks doctor
      llxprt-hooks doctor --json | jq -r '.hooks[] | select(.health == "broken") | .name'
    """
    report = asyncio.run(examine(directory))
    if as_json:
        print_json(report.to_dict())
    else:
        _print(report)
    return ExitStatus.OK if report.ok else ExitStatus.FAILED


def _print(report: Report) -> None:
    console = stdout_console()
    print_line(console, ("Settings", "bold"))
    for level in report.levels:
        _print_finding(console, level)
    print_line(console, ("Hooks", "bold"))
    for hook in report.hooks:
        _print_hook(console, hook)
    if not report.hooks:
        print_line(console, "  none are configured")
    print_line(console, ("Files", "bold"))
    for file in report.files:
        _print_finding(console, file)
    print_line(console, ("Engine", "bold"))
    _print_finding(console, report.canary)
    if report.problems or report.notices:
        print_line(console, ("Problems", "bold"))
    for problem in report.problems:
        print_wrapped(console, "  ", _MARKS["broken"], problem)
    for notice in report.notices:
        print_wrapped(console, "  ", _MARKS["notice"], notice)
    print_line(console, (report.summary, "bold green" if report.ok else "bold red"))


def _print_finding(console: Console, finding: Finding) -> None:
    print_line(console, "  ", _MARKS[finding.health], f"{finding.what}  {finding.path}".rstrip())
    print_wrapped(console, " " * 10, (finding.state, "dim"))


def _print_hook(console: Console, hook: CheckedHook) -> None:
    item = hook.item
    print_line(console, "  ", _MARKS[hook.health], f"{item.definition.event_name}  {item.name}")
    print_wrapped(console, " " * 10, (f"{item.source}, {hook.state}", "dim"))
    if hook.reached:
        print_wrapped(console, " " * 10, (hook.reached, "dim"))
    for problem in hook.problems:
        print_wrapped(console, " " * 10, (problem, "red"))
    for warning in hook.warnings:
        print_wrapped(console, " " * 10, (warning, "yellow"))
