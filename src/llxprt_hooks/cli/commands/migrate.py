"""``llxprt-hooks migrate``: migrate hooks from another agent's settings."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from llxprt_hooks._support.terminal import print_line, print_wrapped, stderr_console, stdout_console
from llxprt_hooks.cli.approval import print_diff
from llxprt_hooks.cli.options import directory_option
from llxprt_hooks.cli.started_by_agent import refuse_below_agent
from llxprt_hooks.commands.exit_status import ExitStatus
from llxprt_hooks.commands.migrate import DIALECTS, MigrationError, NoSourceError, plan_migration, write_migration
from llxprt_hooks.settings.levels import user_settings_file

if TYPE_CHECKING:
    from rich.console import Console

    from llxprt_hooks.commands.migrate import Migration


class _AgentType(click.Choice[str]):
    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        return f"Pass {' or '.join(f'--from {name}' for name in self.choices)}"


@click.command("migrate")
@click.option("--from", "agent", type=_AgentType(list(DIALECTS)), required=True, help="The agent to migrate from.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False)
@click.option("--yes", is_flag=True, help="Write the changes. Without it, they are only shown.")
@directory_option
def command(agent: str, file: Path | None, yes: bool, directory: str) -> int:
    """Migrate hooks from Claude Code or Gemini CLI to this project's settings.

    FILE defaults to .claude/settings.json or .gemini/settings.json in the project. It is read and never changed. Names
    and units of events, tools, matchers, timeouts and variables are converted. Comments and formatting of
    .llxprt/settings.json are kept. In the home folder, the command migrates the user's own settings.

    The changes are printed as a diff. Settings without an equivalent, differences in behavior, and scripts that still
    use the other agent's names are listed on standard error. Nothing is written without --yes.

    Exit status: 0 on success, even if there was nothing to do, 1 if a file could not be read or written, 64 for wrong
    usage.

    \b
    Examples:
      llxprt-hooks migrate --from claude                   show what would change
      llxprt-hooks migrate --from claude --yes             and write it
      llxprt-hooks migrate --from gemini ~/.gemini/settings.json -C ../shop
    """
    refuse_below_agent()
    dialect, project = DIALECTS[agent], Path(directory)
    source = file or project / dialect.file
    try:
        migration = plan_migration(dialect, source, project)
        if yes and migration.after != migration.before:
            write_migration(migration)
    except MigrationError as error:
        wanted = isinstance(error, NoSourceError) and file is None
        hint = f". Pass the path of the {dialect.title} settings file" if wanted else ""
        raise click.ClickException(f"{error}{hint}") from error
    _print_diff(migration, project)
    _print_notes(migration, project, yes=yes)
    local = dialect.local_file
    if file is None and local and (project / local).is_file():
        click.echo(f"{local} exists too; run: llxprt-hooks migrate --from {agent} {local}", err=True)
    return ExitStatus.OK


def _print_diff(migration: Migration, project: Path) -> None:
    console = stdout_console()
    for line in _diff(migration, project):
        if console.is_terminal:
            print_diff(console, [line.rstrip("\r\n")])
        else:  # unchanged, for patch
            click.echo(line, nl=False)


def _diff(migration: Migration, project: Path) -> Iterable[str]:
    name = migration.target.relative_to(project.absolute())
    lines = difflib.unified_diff(
        migration.before.splitlines(keepends=True),
        migration.after.splitlines(keepends=True),
        f"a/{name}" if migration.before else "/dev/null",
        f"b/{name}",
    )
    return (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _print_notes(migration: Migration, project: Path, *, yes: bool) -> None:
    console = stderr_console()
    if migration.translation.groups and migration.after == migration.before:
        print_wrapped(
            console,
            f"Nothing to do: {migration.target} already has everything that can be migrated from {migration.source}.",
        )
        return
    _section(console, "Not migrated, because there is no equivalent:", map(str, migration.translation.left_out))
    _section(console, "Migrated, but needs review:", map(str, migration.translation.remarks))
    _section(console, "Works differently here:", migration.translation.differences)
    _section(console, "Names in your scripts that have to change:", map(str, migration.in_scripts))
    if not migration.translation.groups:
        print_wrapped(console, f"Nothing to do: {migration.source} has no hooks that can be migrated.")
    elif yes:
        is_users = migration.target == user_settings_file()
        approve = "" if is_users else "Approve the hooks with `llxprt-hooks trust`. "
        print_wrapped(console, f"Written: {migration.target}. {approve}Try them with `llxprt-hooks fire`.")
    else:
        print_wrapped(console, "Nothing was written. To write the changes, pass --yes.")


def _section(console: Console, title: str, lines: Iterable[str]) -> None:
    lines = list(lines)
    if lines:
        print_line(console, (title, "bold"))
        for line in lines:
            print_wrapped(console, ("  - ", "dim"), line)
        print_line(console, "")
