"""``llxprt-hooks demo``: every effect of a hook, in a recorded conversation."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

import click

PROMPTS = (
    "Prepare the release.",
    "Have a look at the notes, but change nothing.",
    "What is the capital of France?",
    "Now look at everything.",
)


@click.command("demo")
def command() -> int:
    """Show what hooks can do: block, rewrite, inject, restrict, redact, answer and stop.

    A real session of the agent with recorded answers, in a temporary project with seven small hooks. No key is needed,
    it takes a few seconds, and nothing of yours is read or changed.

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
        settings.chmod(0o600)  # settings that others may write are refused, and an installation may be laxer
        asyncio.run(_show(project, source / "answers.jsonl"))
    return 0


async def _show(project: Path, answers: Path) -> None:
    try:
        from llxprt_hooks.agent.approval import ApprovalMode
        from llxprt_hooks.agent.assembly import AgentOptions, assemble
    except ImportError as error:
        raise click.ClickException(
            f"the agent needs more than the base package ({error}): pip install 'llxprt-hooks[agent]'"
        ) from error
    from llxprt_hooks.cli.demo.narrator import Narrator
    from llxprt_hooks.cli.terminal import print_line, stdout_console

    # The hooks are ours and the home is the demo's own: nothing of the user's has a part in it.
    os.environ |= {
        "LLXPRT_TRUST_PROJECT_HOOKS": "1",
        "HOME": str(project.parent),
        "LLXPRT_SYSTEM_SETTINGS_PATH": str(project.parent / "no-settings.json"),
    }
    console = stdout_console()
    narrator = Narrator(console)
    options = AgentOptions(str(project), replay=str(answers), approval_mode=ApprovalMode.YOLO)
    session = assemble(options, narrator, observer=narrator)
    for prompt in PROMPTS:
        narrator.prompt(prompt)
        await session.respond(prompt)
        session.clear()
    print_line(console)
    print_line(console, ("Next:", "bold"), " llxprt-hooks init makes a first hook, llxprt-hooks --help shows the rest")
