"""``llxprt-hooks serve``: run hooks for agents in other processes and on other machines."""

from __future__ import annotations

import os
import ssl

import click

from llxprt_hooks._support.text import missing_extra
from llxprt_hooks.cli.options import NatsType, dialect_options, directory_option, require_option
from llxprt_hooks.cli.proxy_hooks import warn
from llxprt_hooks.commands.exit_status import ExitStatus
from llxprt_hooks.core.executors.http import is_loopback
from llxprt_hooks.fleet.nats_connection import DEFAULT_SUBJECT, NatsAddress, subject_problem
from llxprt_hooks.fleet.serve.service import HttpOptions, ServeError, ServeOptions, run_worker


@click.command("serve")
@click.option(
    "--nats",
    "servers",
    type=NatsType(),
    metavar="URL",
    help="Answer requests over NATS, at nats://HOST:4222. Separate multiple URLs with commas.",
)
@click.option("--subject", metavar="SUBJECT", help="The subject of the requests. Default: llxprt.hooks.")
@click.option(
    "--credentials",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True),
    metavar="FILE",
    help="A .creds file or the seed of an NKey, for NATS.",
)
@click.option("--http", "address", metavar="HOST:PORT", help="Answer requests over HTTP.")
@click.option("--token-env", metavar="NAME", help="The variable with the token that HTTP requests must have.")
@click.option("--tls-cert", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="Certificate for HTTPS.")
@click.option(
    "--tls-key", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="Private key for --tls-cert."
)
@require_option
@dialect_options
@directory_option
def command(
    servers: tuple[str, ...] | None,
    subject: str | None,
    credentials: str | None,
    address: str | None,
    token_env: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    required: tuple[str, ...],
    directory: str,
) -> int:
    """Run the hooks of a folder for agents in other processes and on other machines.

    An agent sends its events to this worker through a hook of type `nats` or `http`. The worker's hooks run in this
    folder, with the session id of the agent. They must be approved. The worker writes the log, as `run` does. Several
    workers on one subject share the requests.

    HTTP: POST /v1/events takes the payload of an event and answers with the output of its hooks. GET /healthz returns
    whether the worker takes requests. GET /metrics is for Prometheus. If other machines can reach the address, a token
    is required: pass the name of its variable with --token-env.

    After SIGTERM or Ctrl-C, the worker finishes the requests it has received, and then exits. A second signal makes it
    exit immediately. After SIGHUP, it reads the settings again. If they are broken, it keeps the old hooks.

    Exit status: 0 after SIGTERM or Ctrl-C; 130 after a second signal; 1 if the worker cannot start; 64 for wrong usage.

    \b
    Examples:
      llxprt-hooks serve --http 127.0.0.1:8787                       for agents on this machine
      llxprt-hooks serve --nats nats://127.0.0.1:4222 -C ~/policy    for all agents that reach this server
      llxprt-hooks serve --http 0.0.0.0:8787 --token-env POLICY_TOKEN --tls-cert cert.pem --tls-key key.pem
    """
    if servers is None and address is None:
        raise click.UsageError("pass --nats, --http or both")
    if servers is None and (subject or credentials):
        raise click.UsageError("--subject and --credentials belong to --nats")
    if address is None and (token_env or tls_cert or tls_key):
        raise click.UsageError("--token-env, --tls-cert and --tls-key belong to --http")
    nats = None if servers is None else NatsAddress(servers, credentials)
    http = None if address is None else _http(address, token_env, tls_cert, tls_key)
    if subject is not None and (problem := subject_problem(subject)):
        raise click.UsageError(f"--subject: {problem}")
    try:
        run_worker(ServeOptions(directory, nats, subject or DEFAULT_SUBJECT, http, required), warn)
    except ServeError as error:
        raise click.ClickException(str(error)) from error
    except ModuleNotFoundError as error:
        raise click.ClickException(missing_extra("`serve`", "serve", error)) from error
    return ExitStatus.OK


def _http(address: str, token_env: str | None, certificate: str | None, key: str | None) -> HttpOptions:
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise click.UsageError(f"--http must be HOST:PORT, found {address!r}")
    if (certificate is None) != (key is None):
        raise click.UsageError("--tls-cert and --tls-key go together")
    token = None if token_env is None else os.environ.get(token_env)
    if token_env is not None and not token:
        raise click.UsageError(f"the variable {token_env} of --token-env is not set")
    if token is None and not is_loopback(host):
        raise click.UsageError(f"other machines can reach {host}: protect it with --token-env")
    if certificate is not None and key is not None:
        _check_certificate(certificate, key)
    return HttpOptions(host, int(port), token, certificate, key)


def _check_certificate(certificate: str, key: str) -> None:
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise click.UsageError(f"--tls-cert and --tls-key cannot be used: {error}") from error
