"""``llxprt-hooks mcp-proxy``: hooks for the tools of any MCP server."""

from __future__ import annotations

import asyncio
import difflib
import errno
import itertools
import logging
import os
import re
import shlex
import shutil
import signal
import sys
from pathlib import Path
from urllib.parse import urlsplit

import click

from llxprt_hooks._support.terminal import stdout_console
from llxprt_hooks._support.text import escape_for_terminal, missing_extra, plural
from llxprt_hooks.cli.approval import print_diff
from llxprt_hooks.cli.options import (
    ask_option,
    client_metadata_option,
    dialect_options,
    directory_option,
    require_option,
    unguarded_option,
)
from llxprt_hooks.cli.proxy_hooks import load_hooks, warn
from llxprt_hooks.cli.started_by_agent import refuse_below_agent
from llxprt_hooks.commands.exit_status import ExitStatus, ended_like, status_of_failed_start
from llxprt_hooks.commands.list import take_inventory
from llxprt_hooks.core.executors.http import expanded_headers, header_problems, is_loopback, variables_in
from llxprt_hooks.events import TOOL_EVENTS, HookEventName
from llxprt_hooks.integrations.approvers import ask_in_inspector as in_inspector
from llxprt_hooks.integrations.proxy.mcp.install import CLIENTS, Proxied, installed, this_program, uninstalled
from llxprt_hooks.integrations.proxy.mcp.server import GuardedServer
from llxprt_hooks.integrations.proxy.mcp.stdio import run_proxy
from llxprt_hooks.settings.document import ChangedMeanwhileError, rewrite
from llxprt_hooks.settings.jsonc import JsoncError
from llxprt_hooks.settings.matcher import is_for_all, trimmed
from llxprt_hooks.settings.trust.mcp_pins import McpPins

_CLIENTS = ("claude", "cursor", "vscode")


@click.command("mcp-proxy", context_settings={"allow_interspersed_args": False})
@click.option("--server-name", metavar="NAME", help="Hooks see the tools as mcp__NAME__TOOL. Default: as TOOL.")
@click.option("--alias", "aliases", multiple=True, metavar="TOOL=NAME", help="Hooks see this tool as NAME.")
@click.option(
    "--pin/--no-pin",
    default=None,
    help="Withhold tools whose definition you have not approved. Needs --server-name. Default: only with --install.",
)
@click.option("--no-check", is_flag=True, help="Do not check arguments and results against the server's schemas.")
@click.option("--http", "address", metavar="HOST:PORT", help="Listen here for clients, instead of standard input.")
@click.option("--upstream", metavar="URL", help="The server's URL, instead of a command.")
@click.option(
    "--header", "headers", multiple=True, metavar="'NAME: $VAR'", help="Sent to --upstream. VAR is not shown."
)
@click.option("--keep-resource", is_flag=True, help="With --upstream: tokens are for the server's URL, not this one.")
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME", help="Another name of this machine, for --http.")
@click.option("--allow-insecure", is_flag=True, help="Allow an --upstream without encryption on another machine.")
@click.option("--install", "client", type=click.Choice(_CLIENTS), help="Add the proxy to a client's configuration.")
@click.option(
    "--uninstall", "former", type=click.Choice(_CLIENTS), help="Remove the proxy from a client's configuration."
)
@click.option("--yes", is_flag=True, help="With --install and --uninstall: do not ask.")
@ask_option
@client_metadata_option
@require_option
@unguarded_option
@dialect_options
@directory_option
@click.argument("server", nargs=-1, type=click.UNPROCESSED, metavar="[SERVER]...")
def command(
    server_name: str | None,
    aliases: tuple[str, ...],
    pin: bool | None,
    no_check: bool,
    address: str | None,
    upstream: str | None,
    headers: tuple[str, ...],
    keep_resource: bool,
    hosts: tuple[str, ...],
    allow_insecure: bool,
    client: str | None,
    former: str | None,
    yes: bool,
    ask_in_inspector: bool,
    client_metadata: bool,
    required: tuple[str, ...],
    allow_unguarded: bool,
    directory: str,
    server: tuple[str, ...],
) -> int:
    """Run an MCP server with the project's hooks around its tools.

    SERVER is the command of the server with its arguments, after `--`. Your client starts the proxy instead of the
    server. BeforeTool and AfterTool hooks run for each tool call. Everything else passes unchanged. A blocked call is
    answered with the reason. After a hook stops the agent, all further calls of this connection are refused. The proxy
    warns on standard error about hooks that have no effect here. Clients write standard error to a log.

    The server runs in the current folder. -C is the folder whose hooks apply. Approve the hooks with
    `llxprt-hooks trust`, not with LLXPRT_TRUST_PROJECT_HOOKS, because clients often do not pass environment variables
    to the proxy.

    With --pin, only tools that you approved with `llxprt-hooks trust --mcp NAME` are listed and can be called. A tool
    that is new, or whose description, schema or annotations have changed since, waits for your approval.

    Before hooks run, the arguments of a guarded call are checked against the schema that the server declares for the
    tool, and a result against its output schema. This needs the package jsonschema, which the extra `mcp` has.

    With --http, clients reach the proxy over HTTP: it prints its URL, and runs until it is interrupted. Each client
    gets a server of its own, started by SERVER, or all of them use the one at --upstream. Headers pass to that one,
    tokens among them. Requests for another host name than those of this machine or --allow-host, and of web pages of
    other sites, are refused.

    With --upstream alone, your client starts the proxy as a command, and the server is reached at its URL. --header
    sends it a header whose value is read from a variable of the environment, such as a token.

    --install shows the change to the client's configuration as a diff, asks, and keeps a backup. It changes the file
    in the project (.mcp.json, .cursor/mcp.json, .vscode/mcp.json), or the user's if the project has none.

    If hooks are configured that may not run, because they are not approved, have changed or cannot be read, the proxy
    does not start the server, unless you pass --allow-unguarded.

    Exit status: that of the server; if a signal ended the server, the same signal ends the proxy. 126 or 127 if it
    cannot be started, 64 for wrong usage, 1 if the proxy cannot listen, configured hooks may not run, or a required
    hook is missing. With --http, 0 after a signal; with --upstream alone, 0 after a signal or when the client is gone.

    \b
    Examples:
      llxprt-hooks mcp-proxy -- npx shop-server                     the server, with the hooks of this folder
      llxprt-hooks mcp-proxy -C ~/shop --server-name shop -- npx shop-server
      llxprt-hooks mcp-proxy --server-name shop --pin -- npx shop-server
      llxprt-hooks mcp-proxy --http 127.0.0.1:8080 -- npx shop-server
      llxprt-hooks mcp-proxy --http 127.0.0.1:8080 --upstream https://shop.example/mcp
      llxprt-hooks mcp-proxy --upstream https://shop.example/mcp --header 'Authorization: Bearer $SHOP_TOKEN'
      llxprt-hooks mcp-proxy --install claude                       every server that the client starts
      llxprt-hooks mcp-proxy --uninstall claude                     remove it again
    """
    if client is not None or former is not None:
        if server or (client is not None and former is not None):
            raise click.UsageError("use --install or --uninstall alone, without a server")
        pinned = pin is not False
        return _edit_client(client or former or "", directory, remove=former is not None, ask=not yes, pin=pinned)
    if upstream is not None and server:
        raise click.UsageError("use --upstream URL without a command")
    if headers and (upstream is None or address is not None):
        raise click.UsageError("use --header only with --upstream URL: with --http, clients send their own headers")
    sent = _expanded(headers)
    if upstream is not None:
        _check_upstream(upstream, allow_insecure=allow_insecure)
    if not server and upstream is None:
        raise click.UsageError("the command of the server is missing, as in: llxprt-hooks mcp-proxy -- npx shop-server")
    if pin and server_name is None:
        raise click.UsageError("--pin needs --server-name NAME, the name that `llxprt-hooks trust --mcp NAME` takes")
    checked = "only pinned definitions are checked" if pin else "nothing is checked"
    hooks = load_hooks(directory, "mcp-proxy", required, allow_unguarded=allow_unguarded, without_hooks=checked)
    hooks.config.approver = in_inspector if ask_in_inspector else None
    pins = McpPins(directory, server_name, upstream) if pin and server_name is not None else None
    guarded = GuardedServer(
        hooks.config,
        server_name=server_name,
        aliases=dict(map(_alias, aliases)),
        pins=pins,
        checks_schemas=not no_check,
        client_metadata=client_metadata,
    )
    if address is not None:
        return _serve(guarded, server, upstream, address, hosts, keep_resource=keep_resource)
    if upstream is not None:
        return _reach(guarded, upstream, sent)
    try:
        status = run_proxy(guarded, server)
    except OSError as error:
        warn(f"cannot start the MCP server: {server[0]}: {error.strerror}")
        return status_of_failed_start(error)
    return ended_like(status)


def _alias(text: str) -> tuple[str, str]:
    tool, equals, name = text.partition("=")
    if not (tool and equals and name):
        raise click.UsageError(f"--alias must be TOOL=NAME, found {text!r}")
    return tool, name


def _expanded(headers: tuple[str, ...]) -> dict[str, str]:
    """Return the headers for the server. Values are variables only: arguments are visible in the list of processes."""
    given = [(name.strip(), value.strip()) for name, _, value in (each.partition(":") for each in headers)]
    for name, value in given:
        if not list(variables_in(value)):
            raise click.UsageError(
                f"--header {name!r} must contain a variable of the environment, as in "
                "--header 'Authorization: $TOKEN'. Use single quotes, so that the shell does not replace it: "
                "arguments are visible to other users"
            )
    if problem := next(header_problems(dict(given)), None):
        raise click.UsageError(f"--header: {problem}")
    allowed = frozenset(variable for _, value in given for variable in variables_in(value))
    expanded = expanded_headers(given, allowed, os.environ)
    if isinstance(expanded, str):
        raise click.UsageError(f"--header: {expanded}")
    return expanded


def _check_upstream(url: str, *, allow_insecure: bool) -> None:
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        is_insecure = parts.scheme == "http" and not is_loopback(parts.hostname or "")
    except ValueError:
        is_valid = is_insecure = False
    if not is_valid or not url.isprintable() or " " in url:
        raise click.UsageError(f"--upstream must be an http or https URL, found {url!r}")
    if is_insecure and not allow_insecure:
        raise click.UsageError(
            f"{url} is not encrypted, so others can read and change what the server and its clients send. "
            "Use https, or pass --allow-insecure"
        )


def _reach(guarded: GuardedServer, upstream: str, headers: dict[str, str]) -> int:
    """Connect the client on standard input and output with a server that has a URL."""
    try:
        from llxprt_hooks.integrations.proxy.mcp.reached import run_reached
    except ModuleNotFoundError as error:
        raise click.ClickException(missing_extra("the MCP proxy over HTTP", "model-proxy", error)) from error
    run_reached(guarded, upstream, headers)
    return ExitStatus.OK


def _serve(
    guarded: GuardedServer,
    server: tuple[str, ...],
    upstream: str | None,
    address: str,
    hosts: tuple[str, ...],
    *,
    keep_resource: bool,
) -> int:
    """Serve clients over HTTP, until a signal ends the proxy."""
    try:
        from llxprt_hooks.integrations.proxy.mcp.http import McpHttpProxy
        from llxprt_hooks.integrations.proxy.mcp.served import ServedCommand
        from llxprt_hooks.integrations.proxy.mcp.web import serving
    except ModuleNotFoundError as error:
        raise click.ClickException(missing_extra("the MCP proxy over HTTP", "model-proxy", error)) from error
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdecimal() or int(port) >= _PORTS:
        raise click.UsageError(f"--http must be HOST:PORT, found {address!r}")
    if not is_loopback(host) and not hosts:
        raise click.UsageError(
            f"--http {address} lets other machines use the proxy; to allow that, pass --allow-host NAME"
        )
    if upstream is None and shutil.which(server[0]) is None:
        warn(f"cannot start the MCP server: {server[0]}: {os.strerror(errno.ENOENT)}")
        return status_of_failed_start(FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)

    async def run() -> None:
        ended = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        front = (
            ServedCommand(guarded, server, host=host, allowed_hosts=hosts)
            if upstream is None
            else McpHttpProxy(guarded, upstream, host=host, allowed_hosts=hosts, keep_resource=keep_resource)
        )
        async with serving(front, host=host, port=int(port)) as url:
            click.echo(url)
            sys.stdout.flush()
            await ended.wait()

    try:
        asyncio.run(run())
    except OSError as error:
        raise click.ClickException(f"cannot listen at {address}: {error.strerror or error}") from error
    return ExitStatus.OK


_PORTS = 1 << 16


def _edit_client(name: str, directory: str, *, remove: bool, ask: bool, pin: bool) -> int:
    refuse_below_agent()
    client, project = CLIENTS[name], Path(directory).absolute()
    file = client.file(project)
    try:
        before = file.read_text("utf-8")
        is_shared = file == project / client.project_file and project != Path.home()
        folder, program = (".", ["llxprt-hooks"]) if is_shared else (str(project), this_program())
        options = ["--pin"] if pin else []
        change = uninstalled(before, client.key) if remove else installed(before, client.key, folder, program, options)
    except FileNotFoundError:
        raise click.ClickException(f"{file} does not exist: add an MCP server to {name} first") from None
    except (OSError, UnicodeError, JsoncError) as error:
        raise click.ClickException(f"{file}: {error}") from error
    for skipped in change.skipped:
        warn(
            f"skipped {skipped}, which is NOT covered: {name} starts no command for it, so no hook sees its tools. "
            "For a server with a URL, enter the command `llxprt-hooks mcp-proxy --upstream URL` in its place"
        )
    for kept in change.kept:
        click.echo(escape_for_terminal(f"{kept.name} is behind the proxy already: {' '.join(kept.words)}"), err=True)
        _show_kept(kept, project)
    if not change.changed:
        click.echo(f"Nothing to do in {file}.", err=True)
        return ExitStatus.OK
    lines = difflib.unified_diff(before.splitlines(), change.text.splitlines(), str(file), str(file), lineterm="")
    print_diff(stdout_console(), lines)
    if not remove:
        _show_guards(directory, change.changed, pin=pin)
        for server in change.changed:
            _show_server(directory, server, server, pin=pin)
        if is_shared and shutil.which("llxprt-hooks") is None:
            warn("llxprt-hooks is not on your PATH, so the client would not find it")
    _confirm(file, ask=ask)
    backup = _write(file, before, change.text)
    click.echo(f"Changed {file}; the former version is {backup}. Restart {name}.", err=True)
    return ExitStatus.OK


def _show_guards(directory: str, servers: tuple[str, ...], *, pin: bool) -> None:
    """Print which hooks guard the tools of servers, by the names that the tools will have."""
    inventory = take_inventory(directory)
    tool_hooks = [item for event in TOOL_EVENTS for item in inventory.for_event(event)]
    checked = "only pinned definitions" if pin else "nothing"
    nothing = f"No BeforeTool or AfterTool hook is configured, so {checked} will be checked."
    click.echo(f"Hooks for the tools of {escape_for_terminal(', '.join(servers))}:" if tool_hooks else nothing)
    for item in tool_hooks:
        matcher = trimmed(item.definition.matcher)
        named = set(_SERVER.findall(matcher))
        if is_for_all(matcher):
            guards = "every tool of each server"
        elif named and named.isdisjoint(servers):
            guards = f"NOTHING: `{matcher}` names another server"
        else:
            guards = f"tools that match `{matcher}`, of {', '.join(sorted(named & {*servers})) or 'each server'}"
        state = "" if inventory.runs(item) else f" ({inventory.state(item)}: the proxy will not start)"
        click.echo(escape_for_terminal(f"  {item.definition.event_name} {item.name}: {guards}{state}"))


def _show_kept(kept: Proxied, project: Path) -> None:
    """Print the line of a server that is behind the proxy already; its hooks may be those of another folder."""
    name = kept.option("--server-name")
    _show_server(str(project / (kept.option("-C") or "")), kept.name, name, pin="--pin" in kept.words)


def _show_server(directory: str, server: str, name: str | None, *, pin: bool) -> None:
    """Print a line for a server: whether its tools are guarded, pinned and selected. ``name``: as hooks see it."""
    inventory = take_inventory(directory)
    hooks = [item for event in TOOL_EVENTS for item in inventory.for_event(event) if inventory.runs(item)]
    selects = any(map(inventory.runs, inventory.for_event(HookEventName.BEFORE_TOOL_SELECTION)))
    listed = "hooks select the tools that are listed" if selects else "every tool is listed"
    named = [set(_SERVER.findall(trimmed(item.definition.matcher))) for item in hooks]
    count = sum(not names or name in names for names in named)
    guarded = f"guarded by {count} {plural(count, 'hook')}" if count else "NOT guarded"
    pinned = "NOT pinned"
    if pin and name is not None:
        advice = f"approve its tools with `llxprt-hooks trust --mcp {shlex.quote(name)}` when a client has connected"
        pinned = "pinned and approved" if McpPins(directory, name).approved else f"pinned: {advice}"
    click.echo(escape_for_terminal(f"{server}: {guarded}; {listed}; {pinned}"))


_SERVER = re.compile(r"mcp__([\w-]+?)__")


def _confirm(file: Path, *, ask: bool) -> None:
    if not ask:
        return
    if not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.ClickException(f"nothing was changed; to change {file} without being asked, pass --yes")
    if not click.confirm(f"Change {escape_for_terminal(str(file))}?", err=True):
        raise click.ClickException("nothing was changed")


def _write(file: Path, before: str, after: str) -> Path:
    names = (file.with_name(f"{file.name}.before-llxprt-hooks{number or ''}") for number in itertools.count())
    backup = next(name for name in names if not name.exists())
    shutil.copy2(file, backup)
    try:
        rewrite(file, before, after)
    except ChangedMeanwhileError as error:
        backup.unlink()
        raise click.ClickException(str(error)) from error
    return backup
