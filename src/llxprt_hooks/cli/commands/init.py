"""``llxprt-hooks init``: hooks to begin with, copied into a project."""

from __future__ import annotations

import difflib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from llxprt_hooks.cli.exit_status import ExitStatus
from llxprt_hooks.cli.options import directory_option
from llxprt_hooks.cli.terminal import visible
from llxprt_hooks.recipes import (
    FIRST_HOOK,
    NAMES,
    FileState,
    InstallError,
    UnknownRecipeError,
    find_recipe,
    install,
    plan_installation,
)

if TYPE_CHECKING:
    from rich.console import Console

    from llxprt_hooks.cli.terminal import Part
    from llxprt_hooks.recipes import Installation, PlannedFile, Recipe

_WIDE = 80
"""Columns from which on there is room for events in the list."""


def _complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name, help=find_recipe(name).summary) for name in NAMES if name.startswith(incomplete)]


@click.command("init")
@click.argument("recipes", nargs=-1, metavar="[RECIPE]...", shell_complete=_complete)
@click.option("--list", "listing", is_flag=True, help="List the recipes; with names, describe those.")
@click.option("--force", is_flag=True, help="Overwrite scripts that differ from the recipe's, without asking.")
@directory_option
def command(recipes: tuple[str, ...], listing: bool, force: bool, directory: str) -> int:
    """Copy ready-made hooks into a project; without a name, a first hook to begin with.

    Scripts go to .llxprt/hooks/, and .llxprt/settings.json gets what runs them. What is in that file stays, comments
    too, and nothing is overwritten without asking. Running it again adds only what is missing.

    The hooks of a project do nothing until you approve them with `llxprt-hooks trust`.

    \b
    Examples:
      llxprt-hooks init                                    a first hook, and what to try next
      llxprt-hooks init --list                             all recipes, a line each
      llxprt-hooks init --list cost-cap                    one of them in full
      llxprt-hooks init secret-scanning protected-files    two recipes
      llxprt-hooks init -C ../shop git-checkpoint          into another project
    """
    chosen = _chosen(recipes)
    if listing:
        _list(chosen)
        return ExitStatus.OK
    chosen = chosen or [find_recipe(FIRST_HOOK)]
    try:
        installation = plan_installation(Path(directory), chosen)
    except InstallError as error:
        raise click.ClickException(str(error)) from error
    different = [file for file in installation.files if file.state is FileState.DIFFERENT]
    kept = [] if force else _to_be_kept(different, installation.project)
    try:
        install(installation, keep=kept)
    except InstallError as error:
        raise click.ClickException(str(error)) from error
    _tell(installation, kept, chosen, directory)
    return ExitStatus.OK


def _chosen(names: Sequence[str]) -> list[Recipe]:
    """The recipes of those names, in the order in which their hooks should run."""
    try:
        recipes = [find_recipe(name) for name in dict.fromkeys(names)]
    except UnknownRecipeError as error:
        raise click.UsageError(f"{str(error)[0].upper()}{str(error)[1:]}") from error
    order = (FIRST_HOOK, *NAMES)
    return sorted(recipes, key=lambda recipe: order.index(recipe.name))


def _to_be_kept(different: Sequence[PlannedFile], project: Path) -> list[PlannedFile]:
    """Ask about each file that would be overwritten; where nobody can be asked, refuse."""
    if not different:
        return []
    if not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()):
        names = ", ".join(_shown(file.path, project) for file in different)
        raise click.ClickException(
            f"{names}: there already, and not what the recipe has. Nothing was written. Overwrite with --force, or "
            "move yours out of the way."
        )
    return [file for file in different if not _may_overwrite(file, project)]


def _may_overwrite(file: PlannedFile, project: Path) -> bool:
    name = _shown(file.path, project)
    click.echo(f"{name} is there already, and not what the recipe has.", err=True)
    while True:
        answer = click.prompt(
            "Overwrite it? (y = yes, n = keep mine, d = show the difference)",
            type=click.Choice(["y", "n", "d"], case_sensitive=False),
            default="n",
            show_choices=False,
            err=True,
        )
        if answer != "d":
            return bool(answer == "y")
        there = file.path.read_text("utf-8", errors="replace").splitlines(keepends=True)
        lines = difflib.unified_diff(there, file.content.splitlines(keepends=True), f"{name} (yours)", f"{name} (new)")
        click.echo(visible("".join(lines)), err=True)  # the file may be a stranger's


def _tell(installation: Installation, kept: Sequence[PlannedFile], recipes: Sequence[Recipe], directory: str) -> None:
    from llxprt_hooks.cli.terminal import aligned, say, stdout_console

    console = stdout_console()
    words = {FileState.NEW: "created", FileState.DIFFERENT: "overwritten", FileState.SAME: "unchanged"}
    rows: list[tuple[Part, ...]] = [
        (("kept" if file in kept else words[file.state], "dim"), _shown(file.path, installation.project), "")
        for file in installation.files
    ]
    changed = installation.settings_after != installation.settings_before
    word = ("changed" if installation.settings_before else "created") if changed else "unchanged"
    count = installation.added_hooks
    added = f"{count} hook{'' if count == 1 else 's'} added" if count else ""
    rows.append(((word, "dim"), _shown(installation.settings, installation.project), (added, "dim")))
    for row in aligned(rows):
        console.print(row, soft_wrap=True)
    say(console)
    say(console, "Next:")
    for step, why in _next_steps(recipes, directory):
        say(console, "  ", (step, "cyan"), (f"   # {why}" if why else "", "dim"))
    _warn(installation)


def _next_steps(recipes: Sequence[Recipe], directory: str) -> list[tuple[str, str]]:
    """Commands, and where they do not speak for themselves, why."""
    steps = [] if directory == "." else [(f"cd {shlex.quote(directory)}", "")]
    steps.append(("llxprt-hooks trust", "look at the hooks and approve them; until then they do nothing"))
    steps += [(f"llxprt-hooks fire {_trial(recipe)}", "") for recipe in recipes]
    if [recipe.name for recipe in recipes] == [FIRST_HOOK]:
        steps.append(("llxprt-hooks init --list", "hooks for more than a first try"))
    return steps


def _trial(recipe: Recipe) -> str:
    if recipe.name == FIRST_HOOK:
        return f"""{recipe.event} --tool write_file --args '{{"file_path": ".env", "content": "x"}}'"""
    return f"{recipe.event} --input @.llxprt/hooks/samples/{recipe.name}.json"


def _warn(installation: Installation) -> None:
    name = _shown(installation.settings, installation.project)
    if installation.is_off:
        click.echo(f'Hooks are off in {name}, and were left so. They run once it says "enableHooks": true.', err=True)
    if installation.writable_by_others:
        click.echo(f"Others may write to {name}, so it cannot be trusted: chmod go-w {name}", err=True)


def _list(recipes: Sequence[Recipe]) -> None:
    from llxprt_hooks.cli.terminal import say, stdout_console

    console = stdout_console()
    if recipes:
        for recipe in recipes:
            _describe(console, recipe)
        return
    every = [find_recipe(name) for name in NAMES]
    if not console.is_terminal:  # a line each, for grep
        for recipe in every:
            click.echo(f"{recipe.name:20} {recipe.summary}")
        return
    from rich.table import Table
    from rich.text import Text

    table = Table("Recipe", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.columns[0].no_wrap = True
    has_room = console.width >= _WIDE
    for title in ("Runs at", "What it does") if has_room else ("What it does",):
        table.add_column(title)
    for recipe in every:
        when = [Text("\n".join(recipe.events), "dim")] if has_room else []
        table.add_row(Text(recipe.name, "cyan"), *when, recipe.summary)
    console.print(table)
    say(console, "One in full: ", ("llxprt-hooks init --list NAME", "cyan"))
    say(console, "Copy it here: ", ("llxprt-hooks init NAME", "cyan"))


def _describe(console: Console, recipe: Recipe) -> None:
    facts = f"**Runs at:** {', '.join(recipe.events)}. **Use it** {recipe.when}. **Needs:** {', '.join(recipe.needs)}."
    text = f"{recipe.description}\n{facts}\n"
    if console.is_terminal:
        from rich.markdown import Markdown

        console.print(Markdown(text))
    else:
        click.echo(text)


def _shown(path: Path, project: Path) -> str:
    return str(path.relative_to(project.absolute()))
