"""``llxprt-hooks inspect``: watch events live in the browser."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import click

from llxprt_hooks._support.terminal import print_line, print_wrapped, stderr_console, stdout_console
from llxprt_hooks._support.text import missing_extra
from llxprt_hooks.cli.audit_stream import audit_stream
from llxprt_hooks.cli.options import audit_options, dialect_options, directory_option
from llxprt_hooks.cli.started_by_agent import sign_of_agent

if TYPE_CHECKING:
    from llxprt_hooks.cli.web.access import Access


@click.command("inspect")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=0,
    help="The port on 127.0.0.1. Default: any free port.",
)
@click.option("--no-open", is_flag=True, help="Print the address only, without opening a browser.")
@click.option("--record", is_flag=True, help="Record the payloads sent to hooks while the inspector runs.")
@audit_options
@dialect_options
@directory_option
def command(
    port: int,
    no_open: bool,
    record: bool,
    nats: tuple[str, ...] | None,
    stream: str,
    credentials: str | None,
    directory: str,
) -> int:
    """Show what hooks do in the browser, live, for all your agents on this machine that write the log.

    The page shows each event with its plan, the hooks that ran, their output and the decision. It has filters and
    latencies, and shows hooks that never fire. It can fire a recorded event again, with changes. It reads the log that
    `llxprt-hooks log` shows. `run`, `serve` and the proxies write the log. Your own program writes it with
    `Hooks.load(project, log=True)`. Only this machine can open the page, and only with the
    token in the address.

    If a hook asks a person about a call, and its agent asks in the inspector (`run --ask-in-inspector`, or
    `ask_in_inspector` in your own program), the question is at the top of the page until you allow or deny the call.

    With --record, agents record payloads while the inspector runs, including agents that are already running.
    Payloads contain the data that an agent works on.

    With --nats, it shows the audit trail of all agents instead of the local log.

    The command prints the address, opens a browser if the machine has a display, and runs until Ctrl-C. Exit status:
    130 after Ctrl-C; 1 if the port is in use, packages are missing, or another inspector already records; 64 for wrong
    usage.

    \b
    Examples:
      llxprt-hooks inspect
      llxprt-hooks inspect --record
      llxprt-hooks inspect --port 8765 --no-open
      llxprt-hooks inspect --nats nats://127.0.0.1:4222
    """
    try:
        from llxprt_hooks._support.http_server import listen
        from llxprt_hooks.cli.web.server import serve
    except ImportError as error:
        raise click.ClickException(missing_extra("the inspector", "inspect", error)) from error
    from llxprt_hooks.commands.log import LogFilter
    from llxprt_hooks.fleet.audit.log import log_file
    from llxprt_hooks.fleet.audit.recording import recording

    read = None if nats is None else audit_stream(nats, stream, credentials).followed(LogFilter(answers=True))
    with ExitStack() as stack:
        if record:
            try:
                stack.enter_context(recording(log_file().parent))
            except TimeoutError:
                raise click.ClickException(
                    "another inspector records payloads already. Start this one without --record."
                ) from None
        try:
            listening = stack.enter_context(listen("127.0.0.1", port))
        except OSError as error:
            raise click.ClickException(f"port {port} cannot be used: {error.strerror}") from error
        project = os.path.abspath(directory)  # noqa: PTH100  # as the user knows it
        agent = sign_of_agent()
        if agent is not None:
            print_wrapped(
                stderr_console(), (f"agents cannot ask here: an agent started the inspector ({agent})", "yellow")
            )
        announce = partial(_announce, no_open=no_open, record=record)
        asyncio.run(serve(project, listening, announce, read, answers=agent is None))
    return 0


def _announce(access: Access, *, no_open: bool, record: bool) -> None:
    print_line(stdout_console(), access.address)
    sys.stdout.flush()
    console = stderr_console()
    if record:
        print_wrapped(console, ("recording", "yellow"), ": payloads are in the log as long as this runs")
    print_wrapped(console, ("press Ctrl-C to stop", "dim"))
    has_screen = sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    if not no_open and has_screen:  # a text browser would occupy the terminal
        import webbrowser

        webbrowser.open(access.address_for_once())
