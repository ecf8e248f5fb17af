"""``llxprt-hooks prove``: show which tool calls of an agent hooks guard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from llxprt_hooks._support.terminal import print_json, print_line, print_wrapped, stderr_console, stdout_console
from llxprt_hooks._support.text import one_line, plural
from llxprt_hooks.cli.options import directory_option, json_option
from llxprt_hooks.commands.exit_status import ExitStatus
from llxprt_hooks.commands.prove import prove_program

if TYPE_CHECKING:
    from llxprt_hooks.testing.proof import Verdict

_NOTHING_GUARDED = (
    "No call is guarded. Does the program read settings, with `Hooks.load` or an integration's `load`, and are hooks "
    "enabled for this folder? Run `llxprt-hooks doctor`."
)


@click.command("prove", context_settings={"allow_interspersed_args": False})
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED, metavar="PROGRAM...")
@click.option("--tool", metavar="NAME", help="The tool that the model calls.")
@click.option("--through", multiple=True, metavar="TOOL", help="A tool that starts another agent.")
@click.option(
    "--timeout", default=60.0, show_default=True, type=click.FloatRange(min=1), metavar="SECONDS", help="For each run."
)
@json_option
@directory_option
def command(
    program: tuple[str, ...], tool: str | None, through: tuple[str, ...], timeout: float, as_json: bool, directory: str
) -> int:
    """Show which tool calls of an agent hooks guard, and which ones bypass them.

    PROGRAM is your agent, with arguments that make it work on one prompt and exit. It runs once for each way in which a
    model can call tools, with a scripted model instead of a real one: OPENAI_BASE_URL, ANTHROPIC_BASE_URL and
    GOOGLE_GEMINI_BASE_URL lead to it. A guard in the system's settings refuses every call, with a reason that nobody
    can guess, so a result without that reason comes from a tool that ran unguarded.

    A call that is not guarded really runs. By default the model calls a tool whose name sounds harmless, and then each
    tool once, with arguments such as "canary". Run it where that does no harm.

    The guard lets tools that start another agent pass if you name them with --through. Then the calls inside are tried.

    Exit status: 0 if every call is guarded; 1 if any is not, or if that could not be found out; 64 for wrong usage.

    \b
    Examples:
      llxprt-hooks prove -- python my_agent.py "What time is it?"
      llxprt-hooks prove --tool read_note --through task -- ./agent --once hello
    """
    verdicts: list[Verdict] = []
    console = stdout_console()
    for verdict in prove_program(program, directory, seconds=timeout, tool=tool, through=through):
        verdicts.append(verdict)
        if not as_json:
            word, style = ("guarded", "green") if verdict.is_guarded else ("LEAK", "red bold")
            word, style = ("unknown", "yellow bold") if not (verdict.is_guarded or verdict.leaked) else (word, style)
            print_wrapped(console, (f"{word:<8}", style), one_line(str(verdict)))
    proven = all(verdict.is_guarded for verdict in verdicts)
    if as_json:
        print_json({"guarded": proven, "ways": [verdict.to_dict() for verdict in verdicts]})
    else:
        _print_summary(verdicts)
    return ExitStatus.OK if proven else ExitStatus.FAILED


def _print_summary(verdicts: list[Verdict]) -> None:
    console = stdout_console()
    guarded, asked = sum(verdict.is_guarded for verdict in verdicts), sum(verdict.model_calls for verdict in verdicts)
    seen = sum(verdict.seen_model_calls for verdict in verdicts)
    print_line(console)
    print_line(console, (f"{guarded} of {len(verdicts)} ways guarded", "bold"))
    print_line(console, f"hooks saw {seen} of {asked} {plural(asked, 'model call')}")
    if any(verdict.leaked for verdict in verdicts) and not any(verdict.guarded for verdict in verdicts):
        print_wrapped(stderr_console(), (_NOTHING_GUARDED, "yellow"))
