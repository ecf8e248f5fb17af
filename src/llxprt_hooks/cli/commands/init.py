"""``llxprt-hooks init``: copy ready-made hooks into a project, or to the user's own settings."""

from __future__ import annotations

import difflib
import shlex
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from llxprt_hooks._support.terminal import Part, aligned, print_line, stdout_console
from llxprt_hooks._support.text import PROSE, escape_for_terminal, plural
from llxprt_hooks.cli.options import directory_option
from llxprt_hooks.cli.started_by_agent import refuse_below_agent
from llxprt_hooks.commands.exit_status import ExitStatus
from llxprt_hooks.recipes.catalogue import FIRST_HOOK, NAMES, Recipe, UnknownRecipeError, find_recipe
from llxprt_hooks.recipes.install import (
    FileState,
    Installation,
    InstallError,
    PlannedFile,
    install,
    plan_installation,
    plan_user_installation,
)
from llxprt_hooks.recipes.tools import ROLES, Tools, not_added, roles_listed, tool_words

if TYPE_CHECKING:
    from rich.console import Console

_MIN_WIDTH = 80
"""Minimum columns for showing events in the list."""

_MAX_WIDTH = 120
"""Maximum columns of a description, also where it is not printed to a terminal."""


_MAX_NAMES = 3
"""Maximum number of recipes in the example for ``--tools``, so that it stays one line."""


def _complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name, help=find_recipe(name).summary) for name in NAMES if name.startswith(incomplete)]


@click.command("init")
@click.argument("recipes", nargs=-1, metavar="[RECIPE]...", shell_complete=_complete)
@click.option("--list", "listing", is_flag=True, help="List all recipes, or describe the named ones.")
@click.option("--force", is_flag=True, help="Overwrite scripts that differ from the recipe, without asking.")
@click.option("--user", "for_user", is_flag=True, help="Copy to ~/.llxprt instead, for all your projects.")
@click.option(
    "--tools",
    "tool_names",
    metavar="ROLE=NAME",
    help="Names of your agent's tools that write files, run commands or read: write=edit,shell=bash,read=view.",
)
@directory_option
@click.pass_context
def command(
    context: click.Context,
    recipes: tuple[str, ...],
    listing: bool,
    force: bool,
    for_user: bool,
    tool_names: str | None,
    directory: str,
) -> int:
    """Copy ready-made hooks into a project. Without a name, copy a first hook to start with.

    Scripts go to .llxprt/hooks/, and the hooks are added to .llxprt/settings.json. Existing settings and comments are
    kept, and nothing is overwritten without asking. Running the command again adds only what is missing.

    A project's hooks do nothing until you approve them with `llxprt-hooks trust`. With --user, hooks go to ~/.llxprt,
    run in every project, and need no approval.

    Recipes match the tools of LLxprt Code and Gemini CLI: write_file, replace, run_shell_command and so on. If your
    agent's tools have other names, --tools adds them to the matchers. Separate several with commas.

    The command prints which tools the hooks run for, what to try next, and with which result. A hook that settings
    disable stays disabled, with a notice that explains how to enable it. --user and -C exclude each other.

    Exit status: 1 if a file exists and there is no terminal to ask on, or if a file cannot be written; 64 for a recipe
    that does not exist, and for wrong usage.

    \b
    Examples:
      llxprt-hooks init                                    a first hook, and what to try next
      llxprt-hooks init --list                             all recipes, one per line
      llxprt-hooks init --list cost-cap                    one of them in full
      llxprt-hooks init secret-scanning protected-files    two recipes
      llxprt-hooks init -C ../shop git-checkpoint          into another project
      llxprt-hooks init --user secret-scanning             for all your projects
      llxprt-hooks init git-checkpoint --tools write=edit,shell=bash
    """
    refuse_below_agent()
    if for_user and context.get_parameter_source("directory") is not ParameterSource.DEFAULT:
        raise click.UsageError("--user is for all projects, but -C names one: use only one of them")
    chosen = _chosen(recipes)
    if listing:
        _list(chosen)
        return ExitStatus.OK
    tools = _tools(tool_names or "")
    chosen = chosen or [find_recipe(FIRST_HOOK)]
    try:
        if for_user:
            installation = plan_user_installation(chosen, tools)
        else:
            installation = plan_installation(Path(directory), chosen, tools)
    except InstallError as error:
        raise click.ClickException(str(error)) from error
    different = [file for file in installation.files if file.state is FileState.DIFFERENT]
    kept = [] if force else _files_to_keep(different, installation)
    try:
        install(installation, keep=kept)
    except InstallError as error:
        raise click.ClickException(str(error)) from error
    _report(installation, kept, chosen, tools, directory)
    return ExitStatus.OK


def _chosen(names: Sequence[str]) -> list[Recipe]:
    """Find recipes by name, in the order in which their hooks should run."""
    try:
        recipes = [find_recipe(name) for name in dict.fromkeys(names)]
    except UnknownRecipeError as error:
        raise click.UsageError(f"{str(error)[0].upper()}{str(error)[1:]}") from error
    order = (FIRST_HOOK, *NAMES)
    return sorted(recipes, key=lambda recipe: order.index(recipe.name))


def _tools(text: str) -> dict[str, list[str]]:
    """Read ``write=edit,shell=bash``."""
    tools: dict[str, list[str]] = {}
    for pair in filter(None, (each.strip() for each in text.split(","))):
        role, _, name = (part.strip() for part in pair.partition("="))
        if role not in ROLES or not name:
            raise click.UsageError(f"--tools needs ROLE=NAME with a role of {', '.join(ROLES)}, found {pair!r}")
        tools.setdefault(role, []).append(name)
    return tools


def _files_to_keep(different: Sequence[PlannedFile], installation: Installation) -> list[PlannedFile]:
    """Ask about each file that would be overwritten. Without a terminal, fail."""
    if not different:
        return []
    if not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()):
        names = ", ".join(_shown(file.path, installation) for file in different)
        raise click.ClickException(
            f"{names}: already exists and differs from the recipe. Nothing was written. Overwrite with --force, or "
            "move your version first."
        )
    return [file for file in different if not _may_overwrite(file, _shown(file.path, installation))]


def _may_overwrite(file: PlannedFile, name: str) -> bool:
    click.echo(f"{name} already exists and differs from the recipe.", err=True)
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
        click.echo(escape_for_terminal("".join(lines), keep=PROSE), err=True)  # the file is untrusted


def _report(
    installation: Installation, kept: Sequence[PlannedFile], recipes: Sequence[Recipe], tools: Tools, directory: str
) -> None:
    console = stdout_console()
    labels = {FileState.NEW: "created", FileState.DIFFERENT: "overwritten", FileState.SAME: "unchanged"}
    rows: list[tuple[Part, ...]] = [
        (("kept" if file in kept else labels[file.state], "dim"), _shown(file.path, installation), "")
        for file in installation.files
    ]
    changed = installation.settings_after != installation.settings_before
    label = ("changed" if installation.settings_before else "created") if changed else "unchanged"
    count = installation.added_hooks
    added = f"{count} {plural(count, 'hook')} added" if count else ""
    added += f"{', ' if added else ''}profile set to full" if installation.is_full else ""
    rows.append(((label, "dim"), _shown(installation.settings, installation), (added, "dim")))
    for row in aligned(rows):
        console.print(row, soft_wrap=True)
    print_line(console)
    if installation.matchers:
        _print_tools(console, installation, recipes, tools)
    print_line(console, "Next:")
    for step in _next_steps(installation, recipes, directory):
        _print_step(console, step)
    _warn(installation)
    for role, name in not_added(list(chain(*installation.matchers.values())), tools):
        which = f"{recipes[0].name} has" if len(recipes) == 1 else "these recipes have"
        click.echo(f"{which} no matcher for `{role}`: `{name}` is not added", err=True)


def _print_tools(console: Console, installation: Installation, recipes: Sequence[Recipe], tools: Tools) -> None:
    """Print the tools that the hooks are for: a guard does nothing for a tool whose name its matcher does not have."""
    print_line(console, "Tools that the hooks run for:")
    rows: list[tuple[Part, ...]] = [
        (f"  {name}", tool_words(matchers, tools)) for name, matchers in installation.matchers.items()
    ]
    for row in aligned(rows):
        console.print(row, soft_wrap=True)
    roles = [role for role in ROLES if any(role in roles_listed(each) for each in installation.matchers.values())]
    if roles:
        names = [recipe.name for recipe in recipes if recipe.name != FIRST_HOOK]
        names = names if len(names) <= _MAX_NAMES else ["RECIPE"]
        user = ["--user"] if installation.is_users else []
        named = ",".join(f"{role}=NAME" for role in roles)
        command = " ".join(["llxprt-hooks init", *user, *names, f"--tools {named}"])
        which = "tools that only read, with other names" if roles == ["read"] else "tools with other names"
        _print_step(console, f"{command}   # for {which}")
    print_line(console)


def _print_step(console: Console, step: str) -> None:
    command, mark, comment = step.partition("# ")
    print_line(console, "  ", (command, "cyan"), (mark + comment, "dim"))


def _next_steps(installation: Installation, recipes: Sequence[Recipe], directory: str) -> Iterator[str]:
    """Yield shell commands to run next, with comments."""
    if directory != ".":
        yield f"cd {shlex.quote(directory)}"
    if installation.is_users:
        yield "# no approval needed: these are your own hooks, and they run in every project"
    else:
        yield "llxprt-hooks trust   # review and approve the hooks; until then they don't run"
    for recipe in recipes:
        yield from _trial(recipe, installation.is_users)
    if [recipe.name for recipe in recipes] == [FIRST_HOOK]:
        yield "llxprt-hooks init --list   # more ready-made hooks"


def _trial(recipe: Recipe, is_users: bool) -> Iterator[str]:
    """Yield shell commands that try a recipe."""
    trial = recipe.trial
    if trial is None:
        yield f"""llxprt-hooks fire {recipe.event} --tool write_file --args '{{"file_path": ".env", "content": "x"}}'"""
        return
    sample = f".llxprt/hooks/samples/{recipe.name}.json"
    source = f'"@$HOME/{sample}"' if is_users else f"@{sample}"
    fire = f"{trial.variables} llxprt-hooks fire {recipe.event} --input {source}".lstrip()
    yield from filter(None, (trial.before, fire, f"  # {trial.expect}", trial.after))


def _warn(installation: Installation) -> None:
    name = _shown(installation.settings, installation)
    if installation.is_off:
        click.echo(
            f'Hooks are disabled in {name}; this was not changed. To run them, set "enableHooks": true.', err=True
        )
    for hook in installation.disabled:
        click.echo(
            f"{hook} is disabled in hooksConfig.disabled; this was not changed. Run: llxprt-hooks enable {hook}",
            err=True,
        )
    if installation.standard:
        click.echo(
            f"{', '.join(installation.standard)}: has no effect, because hooksConfig.profile in {name} is not `full`; "
            'this was not changed. To let hooks act, set "profile": "full".',
            err=True,
        )
    if installation.refused:
        click.echo(f"{name} is ignored until this is fixed: {installation.refused}", err=True)


def _list(recipes: Sequence[Recipe]) -> None:
    console = stdout_console()
    if recipes:
        for recipe in recipes:
            _describe(console, recipe)
        return
    every = [find_recipe(name) for name in NAMES]
    if not console.is_terminal:  # one line per recipe, for grep
        for recipe in every:
            click.echo(f"{recipe.name:20} {recipe.summary}")
        return
    from rich.table import Table
    from rich.text import Text

    table = Table("Recipe", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.columns[0].no_wrap = True
    has_room = console.width >= _MIN_WIDTH
    for title in ("Runs at", "What it does") if has_room else ("What it does",):
        table.add_column(title)
    for recipe in every:
        when = [Text("\n".join(recipe.events), "dim")] if has_room else []
        table.add_row(Text(recipe.name, "cyan"), *when, recipe.summary)
    console.print(table)
    print_line(console, "Describe one: ", ("llxprt-hooks init --list NAME", "cyan"))
    print_line(console, "Copy one: ", ("llxprt-hooks init NAME", "cyan"))


def _describe(console: Console, recipe: Recipe) -> None:
    facts = f"**Runs at:** {', '.join(recipe.events)}. **Use it** {recipe.when}. **Needs:** {', '.join(recipe.needs)}."
    from rich.markdown import Markdown
    from rich.text import Text

    options = console.options.update(width=min(console.width, _MAX_WIDTH))
    for segments in console.render_lines(Markdown(f"{recipe.description}\n{facts}\n"), options, pad=False):
        text = Text.assemble(*((segment.text, segment.style or "") for segment in segments))
        text.rstrip()
        console.print(text, soft_wrap=True)
    print_line(console)
    print_line(console, ("To try it", "bold"), ", after you added it to a project and approved it:")
    for step in _trial(recipe, is_users=False):  # not Markdown, which would wrap lines that you copy
        _print_step(console, step)
    print_line(console)


def _shown(path: Path, installation: Installation) -> str:
    root = installation.root.absolute()
    if not path.is_relative_to(root):  # LLXPRT_CONFIG_HOME may be anywhere
        return str(path)
    return f"~/{path.relative_to(root)}" if installation.is_users else str(path.relative_to(root))
