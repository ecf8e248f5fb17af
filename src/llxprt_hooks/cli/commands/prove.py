"""``llxprt-hooks prove``: show which tool calls of an agent hooks guard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from llxprt_hooks._support.terminal import print_json, print_line, print_wrapped, stderr_console, stdout_console
from llxprt_hooks._support.text import one_line, plural
from llxprt_hooks.cli.options import directory_option, json_option
from llxprt_hooks.commands.exit_status import ExitStatus
from llxprt_hooks.commands.prove import prove_program
from llxprt_hooks.testing.proof import Outcome, Tools

if TYPE_CHECKING:
    from llxprt_hooks.testing.proof import Verdict

_STYLES = {Outcome.GUARDED: "green", Outcome.LEAK: "red bold", Outcome.UNKNOWN: "yellow bold", Outcome.NOT_TRIED: "dim"}

_NOTHING_GUARDED = (
    "No call is guarded. Does the program read settings, with `Hooks.load` or an integration's `load`, and are hooks "
    "enabled for this folder? Run `llxprt-hooks doctor`."
)


@click.command("prove", context_settings={"allow_interspersed_args": False})
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED, metavar="PROGRAM...")
@click.option("--tool", metavar="NAME", help="The tool that the model calls.")
@click.option("--through", multiple=True, metavar="TOOL", help="A tool that starts another agent.")
@click.option("--mcp", metavar="TOOL", help="A tool of an MCP server, if none is named mcp__….")
@click.option("--background", metavar="TOOL", help="A tool that returns before its work is done.")
@click.option("--failing", metavar="TOOL", help="A tool that fails. The guard lets its first call pass.")
@click.option(
    "--timeout", default=60.0, show_default=True, type=click.FloatRange(min=1), metavar="SECONDS", help="For each run."
)
@json_option
@directory_option
def command(
    program: tuple[str, ...],
    tool: str | None,
    through: tuple[str, ...],
    mcp: str | None,
    background: str | None,
    failing: str | None,
    timeout: float,
    as_json: bool,
    directory: str,
) -> int:
    """Show which tool calls of an agent hooks guard, and which ones bypass them.

    PROGRAM is your agent, with arguments that make it work on one prompt and exit. It runs once for each way in which a
    model can call tools, with a scripted model instead of a real one: OPENAI_BASE_URL, ANTHROPIC_BASE_URL and
    GOOGLE_GEMINI_BASE_URL lead to it. A guard in the system's settings refuses every call, with a reason that nobody
    can guess, so a result without that reason comes from a tool that ran unguarded.

    A call that is not guarded really runs. By default the model calls a tool whose name sounds harmless, and then each
    tool once, with arguments such as "canary". Run it where that does no harm.

    The guard lets tools that start another agent pass if you name them with --through. Then the calls inside are tried.
    A way for which your agent has no tool, or for which you have not named it, is reported as not tried.

    Exit status: 0 if every call is guarded; 1 if any is not, or if that could not be found out; 64 for wrong usage.

    \b
    Examples:
      llxprt-hooks prove -- python my_agent.py "What time is it?"
      llxprt-hooks prove --tool read_note --through task -- ./agent --once hello
    """
    verdicts: list[Verdict] = []
    console = stdout_console()
    tools = Tools(tool, through, mcp, background, failing)
    for verdict in prove_program(program, directory, seconds=timeout, tools=tools):
        verdicts.append(verdict)
        if not as_json:
            outcome = verdict.outcome
            word = outcome.value.upper() if outcome is Outcome.LEAK else outcome.value
            said = f"{verdict.way}: {verdict.problem}" if outcome is Outcome.NOT_TRIED else str(verdict)
            print_wrapped(console, (f"{word:<10}", _STYLES[outcome]), one_line(said))
    proven = all(verdict.outcome in (Outcome.GUARDED, Outcome.NOT_TRIED) for verdict in verdicts)
    if as_json:
        print_json({"guarded": proven, "ways": [verdict.to_dict() for verdict in verdicts]})
    else:
        _print_summary(verdicts)
    return ExitStatus.OK if proven else ExitStatus.FAILED


def _print_summary(verdicts: list[Verdict]) -> None:
    console = stdout_console()
    guarded, asked = sum(verdict.is_guarded for verdict in verdicts), sum(verdict.model_calls for verdict in verdicts)
    seen, streamed = (sum(verdict.seen_model_calls for verdict in verdicts), sum(each.streamed for each in verdicts))
    missing = sum(verdict.outcome is Outcome.NOT_TRIED for verdict in verdicts)
    rest = f", {missing} not tried" if missing else ""
    print_line(console)
    print_line(console, (f"{guarded} of {len(verdicts) - missing} ways guarded{rest}", "bold"))
    print_line(console, f"hooks saw {seen} of {asked} {plural(asked, 'model call')}, {streamed} were streamed")
    if any(verdict.leaked for verdict in verdicts) and not any(verdict.guarded for verdict in verdicts):
        print_wrapped(stderr_console(), (_NOTHING_GUARDED, "yellow"))
