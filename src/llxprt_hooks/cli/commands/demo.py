"""``llxprt-hooks demo``: show every effect of a hook in a recorded conversation."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

import click

from llxprt_hooks.cli.commands.run import agent_options
from llxprt_hooks.cli.terminal import print_line, stdout_console

PROMPTS = (
    "Prepare the release.",
    "Have a look at the notes, but change nothing.",
    "What is the capital of France?",
    "Now look at everything.",
)


@click.command("demo")
def command() -> int:
    """Show what hooks can do: block, rewrite, inject, restrict, redact, answer and stop.

    Runs a real session of the agent with recorded answers, in a temporary project with seven small hooks. It needs no
    API key, takes a few seconds, and does not read or change your files.

    \b
    Example:
      llxprt-hooks demo
    """
    with tempfile.TemporaryDirectory(prefix="llxprt-hooks-demo-") as folder:
        project = Path(folder) / "project"
        source = Path(__file__).parent.parent / "demo"
        shutil.copytree(source / "project", project)
        (project / ".llxprt").mkdir()
        settings = (project / "settings.json").rename(project / ".llxprt" / "settings.json")
        settings.chmod(0o600)  # settings that others can write are refused
        asyncio.run(_show(project, source / "answers.jsonl"))
    return 0


async def _show(project: Path, answers: Path) -> None:
    options = agent_options(str(project), None, str(answers), "yolo")
    from llxprt_hooks.agent.assembly import assemble
    from llxprt_hooks.agent.environment import marked_as_agent
    from llxprt_hooks.cli.demo.narrator import Narrator

    # Trust the demo's own hooks, and hide the user's and the system's settings.
    os.environ |= {
        "LLXPRT_TRUST_PROJECT_HOOKS": "1",
        "HOME": str(project.parent),
        "LLXPRT_SYSTEM_SETTINGS_PATH": str(project.parent / "no-settings.json"),
    }
    console = stdout_console()
    narrator = Narrator(console)
    with marked_as_agent():
        session = assemble(options, narrator, observer=narrator)
        for prompt in PROMPTS:
            narrator.prompt(prompt)
            await session.respond(prompt)
            session.clear()
    print_line(console)
    print_line(
        console, ("Next:", "bold"), " llxprt-hooks init creates a first hook, llxprt-hooks --help lists all commands"
    )
