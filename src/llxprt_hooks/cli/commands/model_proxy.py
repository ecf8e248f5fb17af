"""``llxprt-hooks model-proxy``: hooks for the model calls of any agent that takes a base URL."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Any

import click

from llxprt_hooks._support.text import missing_extra
from llxprt_hooks.cli.options import (
    client_metadata_option,
    dialect_options,
    directory_option,
    require_option,
    unguarded_option,
)
from llxprt_hooks.cli.proxy_hooks import load_hooks, warn
from llxprt_hooks.commands.exit_status import ExitStatus, ended_like, status_of_failed_start
from llxprt_hooks.core.executors.http import is_loopback
from llxprt_hooks.settings.environment import AGENT_VARIABLE

if TYPE_CHECKING:
    from llxprt_hooks.integrations.proxy.model_http.server import RunningProxy

_PORT = 8790


class PathType(click.ParamType[str]):
    """The path of a URL, without a query."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value.startswith("/") or set("?#") & set(value) or not value.isprintable():
            self.fail(f"expected a path such as /v1/embeddings, found {value!r}", param, ctx)
        return str(value)


@click.command("model-proxy", context_settings={"allow_interspersed_args": False})
@click.option(
    "--upstream",
    "given",
    multiple=True,
    metavar="URL",
    help="Where requests go; anthropic=URL or openai=URL for one of them. Default: their own APIs.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help=f"Port to listen on. Default: {_PORT}, or a free port if AGENT is given.",
)
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Address to listen on. Default: 127.0.0.1.")
@click.option("--allow-remote", is_flag=True, help="Required if --host is not a loopback address.")
@click.option("--allow-host", "names", multiple=True, metavar="NAME", help="Accept this host name in requests too.")
@click.option(
    "--allow-path",
    "paths",
    type=PathType(),
    multiple=True,
    metavar="PATH",
    help="Pass requests to this path, such as /v1/embeddings, although BeforeModel hooks do not see them.",
)
@client_metadata_option
@require_option
@unguarded_option
@dialect_options
@directory_option
@click.argument("agent", nargs=-1, type=click.UNPROCESSED, metavar="[AGENT]...")
def command(
    given: tuple[str, ...],
    port: int | None,
    host: str,
    allow_remote: bool,
    names: tuple[str, ...],
    paths: tuple[str, ...],
    client_metadata: bool,
    required: tuple[str, ...],
    allow_unguarded: bool,
    directory: str,
    agent: tuple[str, ...],
) -> int:
    """Run the project's hooks around the model calls of any agent.

    This is an HTTP proxy on this machine, for agents in any language that have a setting for a base URL. BeforeModel,
    BeforeToolSelection and AfterModel hooks run around calls of Anthropic's Messages API, and OpenAI's Chat Completions
    and Responses, streamed or not. A blocked call is answered with the reason. With a BeforeModel hook that can block,
    other requests with a body are refused, because they may contain a prompt, unless you pass --allow-path. Everything
    else passes unchanged.

    AGENT is a command with its arguments, after `--`. It runs with ANTHROPIC_BASE_URL and OPENAI_BASE_URL set, and the
    proxy ends when it ends. Without AGENT, the proxy prints the base URLs, and runs until it is interrupted.

    --upstream URL is for both APIs, --upstream openai=URL for one. The default is the value of ANTHROPIC_BASE_URL and
    OPENAI_BASE_URL, or else the API itself. API keys stay in the requests. The proxy does not log keys or bodies.

    If hooks are configured that may not run, because they are not approved, have changed or cannot be read, the proxy
    does not start, unless you pass --allow-unguarded.

    Exit status: that of the agent; if a signal ended the agent, the same signal ends the proxy. 126 or 127 if it cannot
    be started, 64 for wrong usage, 1 if the proxy cannot listen, configured hooks may not run, or a required hook is
    missing.

    \b
    Examples:
      llxprt-hooks model-proxy -- claude                            an agent, with the hooks of this folder
      llxprt-hooks model-proxy -C ~/shop -- node agent.js
      llxprt-hooks model-proxy                                      for agents that you start yourself
      llxprt-hooks model-proxy --upstream openai=http://localhost:11434/v1
      llxprt-hooks model-proxy --allow-path /v1/embeddings -- node agent.js
    """
    try:
        from llxprt_hooks.integrations.proxy.model_http.app import ModelProxy
        from llxprt_hooks.integrations.proxy.model_http.server import serving
        from llxprt_hooks.integrations.proxy.model_http.upstreams import UpstreamError, upstreams
    except ModuleNotFoundError as error:
        raise click.ClickException(missing_extra("the model proxy", "model-proxy", error)) from error
    if not is_loopback(host) and not allow_remote:
        raise click.UsageError(f"--host {host} lets other machines use the proxy; to allow that, pass --allow-remote")
    try:
        chosen = upstreams(given, os.environ)
    except UpstreamError as error:
        raise click.UsageError(f"--upstream: {error}") from error
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    hooks = load_hooks(directory, "model-proxy", required, allow_unguarded=allow_unguarded)
    number = port if port is not None else 0 if agent else _PORT
    proxy = ModelProxy(
        hooks, chosen, host=host, allowed_hosts=names, allowed_paths=paths, client_metadata=client_metadata
    )
    try:
        status = asyncio.run(_serve(serving(proxy, port=number), agent, f"{host}:{number}"))
    except UpstreamError as error:
        raise click.UsageError(str(error)) from error
    return ended_like(status)


async def _serve(proxy: AbstractAsyncContextManager[RunningProxy], agent: tuple[str, ...], address: str) -> int:
    ended = asyncio.Event()
    for number in () if agent else (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with AsyncExitStack() as stack:
        try:
            running = await stack.enter_async_context(proxy)
        except OSError as error:
            why = error.strerror or str(error)
            raise click.ClickException(
                f"cannot listen at {address}: {why}. To use another port, pass --port"
            ) from error
        return await (_run_agent(running, agent) if agent else _run_alone(running, ended))


async def _run_alone(running: RunningProxy, ended: asyncio.Event) -> int:
    for variable, url in running.base_urls.items():
        click.echo(f"export {variable}={url}")
    sys.stdout.flush()
    warn("the model proxy is running; Ctrl-C ends it")
    await ended.wait()
    _warn_if_bypassed(running)
    return ExitStatus.OK


def _warn_if_bypassed(running: RunningProxy) -> None:
    if running.is_bypassed():
        variables = " or ".join(running.base_urls)
        warn(f"no request came to the model proxy, so no model hook ran. Does the agent use {variables}?")


async def _run_agent(running: RunningProxy, agent: tuple[str, ...]) -> int:
    environment = {**os.environ, **running.environment(os.environ), AGENT_VARIABLE: "1"}
    process: asyncio.subprocess.Process | None = None
    early: list[int] = []

    def deliver(number: int) -> None:
        if process is None:
            early.append(number)
        elif process.returncode is None and not _has_it(number):
            process.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        asyncio.get_running_loop().add_signal_handler(number, deliver, number)
    try:
        process = await asyncio.create_subprocess_exec(*agent, env=environment)
    except OSError as error:
        warn(f"cannot start {agent[0]}: {error.strerror}")
        return status_of_failed_start(error)
    for missed in early:
        deliver(missed)
    status = await process.wait()
    _warn_if_bypassed(running)
    return status


def _has_it(number: int) -> bool:
    """Whether the agent gets a signal without us: a terminal sends those of its keys to both."""
    if number not in (signal.SIGINT, signal.SIGQUIT):
        return False
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False
