"""A worker from start to end: load settings, answer until SIGTERM, read settings again on SIGHUP."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llxprt_hooks.config import Config
from llxprt_hooks.core.engine.observer import Observers
from llxprt_hooks.core.executors.nats import NatsSpec
from llxprt_hooks.fleet.audit.log import HookLog
from llxprt_hooks.fleet.canary import canary_problem
from llxprt_hooks.fleet.nats_connection import DEFAULT_SUBJECT, NatsAddress, NatsUnavailableError
from llxprt_hooks.fleet.serve.metrics import Metrics
from llxprt_hooks.fleet.serve.nats_front import NatsFront
from llxprt_hooks.fleet.serve.worker import PolicyWorker
from llxprt_hooks.settings.problem import SettingsError

if TYPE_CHECKING:
    from llxprt_hooks.fleet.serve.http_front import HttpFront

Say = Callable[[str], None]

CANARY_SECONDS = 30.0
"""Between two tries whether hooks can block."""


class ServeError(Exception):
    """A worker cannot start."""


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Where and how HTTP is served."""

    host: str
    port: int
    token: str | None = None
    certificate: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class ServeOptions:
    directory: str = "."
    nats: NatsAddress | None = None
    subject: str = DEFAULT_SUBJECT
    http: HttpOptions | None = None
    required: tuple[str, ...] = ()
    """What must have a hook, as ``Config.load`` takes it."""


def run_worker(options: ServeOptions, say: Say) -> None:
    """Serve until SIGTERM or Ctrl-C. Raises ``ServeError`` if that cannot even begin."""
    metrics = Metrics()
    config = _load(options, metrics)
    for problem in config.settings.problems if config.settings else ():
        say(f"warning: {problem}")
    asyncio.run(_serve(PolicyWorker(config, metrics), options, say))


def _load(options: ServeOptions, metrics: Metrics) -> Config:
    """Load the settings of the folder. A worker without all of its hooks would let pass what they guard."""
    try:
        observer = Observers(HookLog(options.directory), metrics)
        config = Config.load(options.directory, strict=True, observer=observer, require=options.required)
    except SettingsError as error:
        raise ServeError(error.refusal) from error
    if config.settings is not None and config.settings.notices:
        project = config.working_dir
        raise ServeError(
            f"some hooks in {project} aren't approved, so the worker won't start; "
            f"to review and approve them, run `llxprt-hooks trust -C {project}`"
        )
    if not any(True for _ in _enabled_hooks(config)):
        raise ServeError(f"there are no hooks to run in {config.working_dir}, or they are disabled")
    _refuse_loop(config, options)
    if config.audit is not None:
        try:
            config.audit.start()
        except OSError as error:
            raise ServeError(f"the audit trail cannot be written: {error}") from error
    return config


def _enabled_hooks(config: Config) -> Iterator[object]:
    if (system := config.get_hook_system()) is not None:
        system.ready_event_handler()
        yield from (hook.config.spec for hook in system.get_all_hooks() if hook.enabled)


def _refuse_loop(config: Config, options: ServeOptions) -> None:
    """Refuse hooks that would send each event back to this worker."""
    if options.nats is None:
        return
    for spec in _enabled_hooks(config):
        if isinstance(spec, NatsSpec) and spec.subject == options.subject and {*spec.servers} & {*options.nats.servers}:
            raise ServeError(
                f"this worker would call itself: a hook in {config.working_dir} sends requests to `{spec.subject}` at "
                f"{options.nats}, the subject that it serves; choose another --subject, or remove that hook"
            )


async def _serve(worker: PolicyWorker, options: ServeOptions, say: Say) -> None:
    await _try_canary(worker)
    if worker.metrics.canary:
        raise ServeError(f"hooks do not work here: {worker.metrics.canary}")
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    reloading: set[asyncio.Task[None]] = set()

    def reload_soon() -> None:
        task = asyncio.create_task(_reload(worker, options, say))
        reloading.add(task)
        task.add_done_callback(reloading.discard)

    def stop() -> None:
        if stopped.is_set():  # the second time, do not wait for hooks
            raise KeyboardInterrupt
        stopped.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    loop.add_signal_handler(signal.SIGHUP, reload_soon)

    nats = NatsFront(worker, options.nats, options.subject) if options.nats else None
    http, serving = await _start_http(worker, options.http, nats, say)
    await _start_nats(nats, say)
    say("ready")
    canary = asyncio.create_task(_watch_canary(worker, say))
    ended = [asyncio.ensure_future(stopped.wait()), *([serving] if serving else [])]
    await asyncio.wait(ended, return_when=asyncio.FIRST_COMPLETED)
    canary.cancel()
    say("draining: finishing accepted events, refusing new ones")
    if http is not None:
        http.drain()
    if nats is not None:
        await nats.drain()
    if http is not None and serving is not None:
        await http.drained(serving)


async def _try_canary(worker: PolicyWorker) -> None:
    worker.metrics.canary = await canary_problem()


async def _watch_canary(worker: PolicyWorker, say: Say) -> None:
    """Try again and again whether hooks can block; report when that changes."""
    while True:
        await asyncio.sleep(CANARY_SECONDS)
        before = worker.metrics.canary
        await _try_canary(worker)
        if (problem := worker.metrics.canary) != before:
            say(f"warning: {problem}" if problem else "hooks can block again")


async def _start_nats(front: NatsFront | None, say: Say) -> None:
    if front is None:
        return
    try:
        await front.start()
    except NatsUnavailableError as error:
        raise ServeError(str(error)) from error
    say(f"answering `{front.subject}` at {front.address}")


async def _start_http(
    worker: PolicyWorker, options: HttpOptions | None, nats: NatsFront | None, say: Say
) -> tuple[HttpFront | None, asyncio.Task[None] | None]:
    if options is None:
        return None, None
    from llxprt_hooks._support.http_server import listen
    from llxprt_hooks.fleet.serve.http_front import HttpFront

    try:
        listener = listen(options.host, options.port)
    except OSError as error:
        raise ServeError(f"cannot listen on {options.host}:{options.port}: {error.strerror or error}") from error
    front = HttpFront(
        worker, listener, nats=nats, token=options.token, certificate=options.certificate, key=options.key
    )
    host, port = listener.getsockname()[:2]
    scheme = "https" if options.certificate else "http"
    say(f"listening on {scheme}://{f'[{host}]' if ':' in host else host}:{port}")
    return front, asyncio.create_task(front.serve())


async def _reload(worker: PolicyWorker, options: ServeOptions, say: Say) -> None:
    """Read the settings again; keep the old hooks if that fails."""
    try:
        await asyncio.to_thread(_load, options, Metrics())
        await asyncio.to_thread(worker.config.reload)
    except (SettingsError, ServeError) as error:
        worker.metrics.reloads["failure"] += 1
        say(f"the settings were not reloaded, the old hooks stay in use:\n{error}")
        return
    worker.metrics.reloads["success"] += 1
    say("reloaded the settings")
