"""Shows everything that an approval covers, and asks for it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from llxprt_hooks._support.json_codec import decode_text, write_json
from llxprt_hooks._support.terminal import print_line
from llxprt_hooks._support.text import escape_for_terminal
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.foreign import NATIVE
from llxprt_hooks.settings.hook_entries import SWITCHES
from llxprt_hooks.settings.trust.fingerprint import FOREIGN, without_secrets
from llxprt_hooks.settings.trust.review import (
    NOT_TEXT,
    assembled_commands,
    commands_without_file,
    covered_text,
    difference,
    missing_file,
)
from llxprt_hooks.settings.trust.status import TrustError, TrustStatus, grant_trust

if TYPE_CHECKING:
    from rich.console import Console


_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def show_approval(console: Console, status: TrustStatus, *, with_scripts: bool = False) -> None:
    """Print everything that the approval covers; ``with_scripts``, the content of all files too."""
    for hook in status.commands:
        matcher = f" {hook.matcher}" if hook.matcher else ""
        print_line(console, "  ", (hook.event, "bold"), f"{matcher}  {escape_for_terminal(hook.command)}")
        if hook.event not in tuple(HookEventName) and status.dialect == NATIVE:
            never = "    unknown event, so this hook never runs; run `llxprt-hooks validate` for details"
            print_line(console, (never, "yellow"))
        if hook.details:
            details = ", ".join(f"{key}: {value}" for key, value in hook.details.items())
            print_line(console, (f"    {escape_for_terminal(details)}", "dim"))
    for name, file in (status.files.files if status.files else {}).items():
        size = escape_for_terminal(file.digest) if file.is_link else f"({file.size} bytes)"
        script = (f"  file {escape_for_terminal(name)}  {size}", "dim")
        print_line(console, script, ("  (changed)" * (name in status.changed), "yellow"))
        text = covered_text(status, name) if with_scripts else ""
        for line in [NOT_TEXT] if text is None else text.splitlines():
            print_line(console, f"    | {escape_for_terminal(line, keep=chr(9))}")
    for key, value in status.statement.items():
        if key == FOREIGN:
            print_line(console, (f"  files: {', '.join(name for files in value.values() for name in files)}", "dim"))
        elif key != "hooks":
            print_line(console, (f"  {key}: {decode_text(write_json(without_secrets(value)))}", "dim"))
        elif isinstance(value, dict):
            for switch in (key for key in SWITCHES if key in value):
                print_line(console, (f"  hooks.{switch}: {decode_text(write_json(value[switch]))}", "dim"))
    for command in commands_without_file(status):
        missing = missing_file(status, command)
        uncovered = "no project file to pin for this command (the command line itself is approved)"
        if missing:
            uncovered = f"{escape_for_terminal(missing)} does not exist; once it does, approve again"
        print_line(console, (f"  {uncovered}: ", "yellow"), escape_for_terminal(command))
    for command in assembled_commands(status):
        unclear = "its text does not show every file that it runs, so check which ones are covered"
        print_line(console, (f"  {unclear}: ", "yellow"), escape_for_terminal(command))


def show_changes(console: Console, status: TrustStatus) -> None:
    """Print what has changed since the last approval, as a diff."""
    if status.is_outdated:
        print_line(console, "approved before by an earlier version, whose approvals covered less")
    if not status.changed:
        return
    print_line(console, f"changed since the last approval: {', '.join(map(escape_for_terminal, status.changed))}")
    for name in status.changed:
        print_diff(console, difference(status, name))


def print_diff(console: Console, lines: Iterable[str]) -> None:
    for line in lines:
        style = "bold" if line.startswith(("---", "+++")) else _DIFF_STYLES.get(line[:1], "")
        print_line(console, (escape_for_terminal(line, keep="\t"), style))


def approve(status: TrustStatus, *, ask: bool) -> bool:
    """Record the approval of what was shown; with ``ask``, only if the user says yes."""
    if ask and not click.confirm(f"Approve the hooks of {escape_for_terminal(str(status.project))}?"):
        return False
    try:
        grant_trust(status.project, expected_fingerprint=status.fingerprint, dialect=status.dialect)
    except TrustError as error:
        raise click.ClickException(str(error)) from error
    return True


def approved(status: TrustStatus) -> str:
    if not status.statement:
        return f"approved: {status.project} has no hooks any more, so nothing is checked"
    return f"approved: the hooks of {status.project} will run. After any change, approve again"


def is_interactive() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
