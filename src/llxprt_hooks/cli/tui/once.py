"""Run the agent on one prompt, non-interactively: ``-p``, piped input and ``--headless``."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import click

from llxprt_hooks.agent.assembly import assemble
from llxprt_hooks.agent.audience import WarningEvent
from llxprt_hooks.agent.environment import marked_as_agent
from llxprt_hooks.agent.errors import AgentError
from llxprt_hooks.agent.session import Outcome
from llxprt_hooks.agent.tally import HookTally
from llxprt_hooks.cli.exit_status import ExitStatus
from llxprt_hooks.cli.tui.printing import OUTPUTS, run_summary
from llxprt_hooks.cli.tui.shutdown import leave
from llxprt_hooks.events import SessionEndReason

if TYPE_CHECKING:
    from llxprt_hooks.agent.assembly import AgentOptions


async def run_once(options: AgentOptions, prompt: str, output_format: str) -> ExitStatus:
    """Work on one prompt and print the outcome."""
    with marked_as_agent():
        return await _run(options, prompt, output_format)


async def _run(options: AgentOptions, prompt: str, output_format: str) -> ExitStatus:
    output = OUTPUTS[output_format]()
    tally = HookTally()
    try:
        session = assemble(options, output, observer=tally)
    except AgentError as error:
        raise click.ClickException(str(error)) from error
    if (task := asyncio.current_task()) is not None:  # SIGTERM cancels running hooks and tools, like Ctrl-C
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    session.start()
    outcome = Outcome()
    try:
        outcome = await session.respond(prompt)
        status = _status(outcome)
    except AgentError as error:
        output.handle(WarningEvent(str(error)))
        status = ExitStatus.FAILED
    except asyncio.CancelledError:
        status = ExitStatus.INTERRUPTED
    session.end(SessionEndReason.EXIT)
    await leave(session, status, lambda: output.finish(run_summary(session, outcome, tally)))
    return status


def _status(outcome: Outcome) -> ExitStatus:
    if outcome.stop_reason is not None:
        return ExitStatus.STOPPED
    return ExitStatus.OK if outcome.blocked is None else ExitStatus.BLOCKED
