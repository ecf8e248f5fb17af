"""``llxprt-hooks run``: run the agent."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import click

from llxprt_hooks._support.json_codec import decode_text
from llxprt_hooks._support.text import missing_extra
from llxprt_hooks.cli.options import ask_option, dialect_options, directory_option, require_option


@click.command("run")
@click.option("-p", "--prompt", help="Work on this prompt and exit.")
@click.option(
    "--headless", is_flag=True, help="Never start an interactive session; the prompt is -p or standard input."
)
@click.option("-m", "--model", help="The model to call. Default: GEMINI_MODEL, else gemini-2.5-flash.")
@click.option(
    "--replay",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Answer model calls from a recording (one JSON object per line) instead of the Gemini API.",
)
@click.option(
    "--record",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Record the model's responses in a new file, for --replay.",
)
@click.option(
    "-o",
    "--output-format",
    type=click.Choice(["text", "json", "stream-json"]),
    default="text",
    show_default=True,
    help="What to print: the answers, one JSON object at the end, or one JSON object per event.",
)
@click.option("-y", "--yolo", is_flag=True, help="Allow every tool call. Short for --approval-mode yolo.")
@click.option(
    "--approval-mode",
    type=click.Choice(["default", "auto_edit", "yolo"]),
    help="Ask before edits and commands (default), allow edits (auto_edit), or allow everything (yolo).",
)
@click.option("--log-payloads", is_flag=True, help="Include the payloads sent to hooks in `llxprt-hooks log`.")
@ask_option
@require_option
@dialect_options
@directory_option
def command(
    prompt: str | None,
    headless: bool,
    model: str | None,
    replay: str | None,
    record: str | None,
    output_format: str,
    yolo: bool,
    approval_mode: str | None,
    log_payloads: bool,
    ask_in_inspector: bool,
    required: tuple[str, ...],
    directory: str,
) -> int:
    """Run the built-in Gemini agent with your hooks: on a prompt, on piped input, or in a session.

    The Gemini API is called with GOOGLE_API_KEY or GEMINI_API_KEY, at GOOGLE_GEMINI_BASE_URL if that is set. The agent
    keeps each conversation, including blocked calls, in ~/.llxprt/transcripts, which only you can read.

    Exit status: 0 if the agent answered, 2 if a hook refused the prompt or blocked a model call, 3 if a hook stopped
    the agent, 1 if the model could not be called, settings cannot be read or a required hook is missing, 64 for wrong
    usage, 130 after Ctrl-C.

    \b
    Examples:
      llxprt-hooks run                                     an interactive session
      llxprt-hooks run -p "what does this project do?"
      git diff | llxprt-hooks run --headless -o json
      llxprt-hooks run -y -p "fix the tests" --record answers.jsonl
      llxprt-hooks run -y -p "fix the tests" --replay answers.jsonl
    """
    if yolo and approval_mode not in (None, "yolo"):
        raise click.UsageError("-y and --approval-mode contradict each other: use one of them")
    interactive = prompt is None and not headless and sys.stdin is not None and sys.stdin.isatty()
    if interactive and output_format != "text":
        raise click.UsageError(
            "an interactive session supports only text output: pass a prompt with -p, or pipe one in"
        )
    if not interactive:
        if prompt is None:  # all of standard input, valid UTF-8 or not; empty if it is closed
            prompt = "" if sys.stdin is None else decode_text(sys.stdin.buffer.read())
        if not prompt.strip():
            raise click.UsageError("the prompt is missing: pass it with -p or on standard input")
    try:
        from llxprt_hooks.agent.approval import ApprovalMode
        from llxprt_hooks.agent.build import AgentOptions
    except ImportError as error:
        raise click.ClickException(missing_extra("the agent", "agent", error)) from error
    mode = ApprovalMode("yolo" if yolo else approval_mode or "default")
    options = AgentOptions(directory, model, replay, record, mode, log_payloads, required, ask_in_inspector)
    with asyncio.Runner() as runner:
        runner.get_loop().set_exception_handler(_report_unless_closing)
        if interactive:
            from llxprt_hooks.agent.screen.interactive import converse

            return runner.run(converse(options))
        from llxprt_hooks.agent.screen.once import run_once

        return runner.run(run_once(options, prompt or "", output_format))


def _report_unless_closing(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report errors on the loop, except those from closing what the SDK left open after a reported error."""
    task = context.get("future")
    closing = isinstance(task, asyncio.Task) and getattr(task.get_coro(), "__name__", "") == "aclose"
    if "asyncgen" not in context and not closing:
        loop.default_exception_handler(context)
