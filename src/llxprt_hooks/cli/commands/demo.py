"""``llxprt-hooks demo``: show every effect of a hook in a recorded conversation."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from llxprt_hooks._support.terminal import print_line, stdout_console
from llxprt_hooks.agent.environment import marked_as_agent
from llxprt_hooks.cli.demo.player import Player
from llxprt_hooks.cli.demo.scenes import SCENES

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH = 80


@click.command("demo")
@click.option("--step", is_flag=True, help="Wait for Enter after each scene.")
def command(step: bool) -> int:
    """Show what hooks can do: block, rewrite, inject, redact, restrict, answer and stop.

    Each effect has a scene in a temporary project, with a recorded model, real tools and a real hook, and a table at
    the end shows what the model got. The demo needs no API key and no SDK, takes a few seconds, and does not read or
    change your files.

    \b
    Examples:
      llxprt-hooks demo
      llxprt-hooks demo --step
    """
    console = stdout_console()
    console.width = min(console.width, _WIDTH)
    with tempfile.TemporaryDirectory(prefix="llxprt-hooks-demo-") as folder:
        project = Path(folder) / "project"
        shutil.copytree(Path(__file__).parent.parent / "demo" / "project", project)
        _play(console, project, step=step)
    return 0


def _play(console: Console, project: Path, *, step: bool) -> None:
    opening = f"An agent replays recorded answers, and {len(SCENES)} hooks step in. Lines with "
    print_line(console, opening, ("⚓", "magenta"), " are hooks.")
    settings = json.loads((project / "settings.json").read_text(encoding="utf-8"))
    player = Player(console, project, settings["hooks"])
    with marked_as_agent(), asyncio.Runner() as runner:
        for number, scene in enumerate(SCENES, start=1):
            runner.run(player.play(scene, f"{number}/{len(SCENES)}"))
            if step:
                _wait_for_enter()
    player.summarize()
    print_line(console)
    command = _as_typed()
    print_line(console, ("Next:", "bold"), f" {command} init     create a first hook in this folder")
    print_line(console, f"      {command} --help   list all commands")


def _as_typed() -> str:
    """What starts this command in the user's shell: ``make demo`` runs it where no PATH leads."""
    name = "llxprt-hooks"
    program = Path(sys.argv[0])
    return str(program) if shutil.which(name) is None and program.name == name else name


def _wait_for_enter() -> None:
    """Wait for a line on standard input; not at all once it is closed."""
    click.echo("Press Enter to continue", err=True, nl=False)
    if not (sys.stdin and sys.stdin.readline()):
        click.echo(err=True)
