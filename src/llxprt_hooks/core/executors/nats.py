"""Hooks of type ``nats``: a policy worker gets the event as a ``HookExecutionRequest``; its final output is the hook's.

Whichever worker of the queue group is free answers. Connections are shared; see ``fleet.nats_connection``.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks._support.text import without_credentials
from llxprt_hooks.core.engine.messages import decode_message, encode_request, read_response
from llxprt_hooks.core.engine.results import AggregatedHookResult, HookExecutionResult, is_refusal
from llxprt_hooks.core.executors.base import PROBE_SECONDS, Executor, HookRun, Probe
from llxprt_hooks.core.protocol.headers import hop_headers, timeout_headers
from llxprt_hooks.fleet.nats_connection import (
    DEFAULT_SUBJECT,
    NatsAddress,
    NatsUnavailableError,
    nats_client,
    subject_problem,
    workers_may_return,
)
from llxprt_hooks.settings.jsonc import Kind
from llxprt_hooks.settings.nats_address import server_problem
from llxprt_hooks.settings.shape import ArrayOf, Field, FieldProblem, Scalar, shown_addresses

log = debug_logger("runner")


class NatsSpec(msgspec.Struct, frozen=True):
    """Where the event is sent, and how often if no answer comes."""

    servers: tuple[str, ...]
    subject: str = DEFAULT_SUBJECT
    credentials: str | None = None
    retry: int = 0

    def __repr__(self) -> str:
        return f"NatsSpec({self.subject!r}, {shown_addresses(list(self.servers))})"


class NatsExecutor(Executor[NatsSpec]):
    """Sends the event to a subject and waits for the answer of one worker."""

    fields: ClassVar[Mapping[str, Field]] = {
        "servers": Field(
            ArrayOf(Scalar(Kind.STRING)),
            "The servers of one NATS cluster, such as `nats://127.0.0.1:4222`; `tls://` for encryption.",
            required=True,
            address=True,
        ),
        "subject": Field(
            Scalar(Kind.STRING), "The subject that the workers listen on.", default=DEFAULT_SUBJECT, nullable=True
        ),
        "credentials": Field(
            Scalar(Kind.STRING),
            "The path of a `.creds` file or of an NKey seed, relative to the project folder.",
            nullable=True,
        ),
        "retry": Field(
            Scalar(Kind.NUMBER, above=-1),
            "How often the event is sent again if there is no answer. The attempts share the timeout in equal parts.",
            default=0,
            nullable=True,
        ),
    }
    described = ("servers", "subject")
    extra = "nats"
    is_remote = True
    packages = ("nats",)
    example: ClassVar[Mapping[str, object]] = {"servers": ["nats://127.0.0.1:4222"], "subject": DEFAULT_SUBJECT}

    def read(self, fields: Mapping[str, Any]) -> NatsSpec:
        return NatsSpec(
            tuple(fields["servers"]),
            fields["subject"] or DEFAULT_SUBJECT,
            fields["credentials"] or None,
            int(fields["retry"] or 0),
        )

    def describe(self, spec: NatsSpec) -> str:
        return f"{spec.subject} at {', '.join(map(without_credentials, spec.servers))}"

    def key(self, spec: NatsSpec) -> str:
        return repr((spec.servers, spec.subject, spec.credentials))

    def problems(self, spec: NatsSpec, environment: Mapping[str, str]) -> Iterator[FieldProblem]:
        if problem := _servers_problem(spec):
            yield FieldProblem("servers", problem, discards=True)
        if problem := subject_problem(spec.subject):
            yield FieldProblem("subject", problem, discards=True)

    async def run(self, spec: NatsSpec, run: HookRun) -> HookExecutionResult:
        if problem := _problem(spec):
            return run.failed(f"was not sent: {problem}")
        correlation_id = str(uuid.uuid4())
        request = encode_request(run.event.event_name, run.payload(), correlation_id)
        address = NatsAddress(spec.servers, _path(spec.credentials, run.runtime.working_dir()))
        try:
            async with asyncio.timeout(run.timeout_ms / 1000):
                answer = await _ask(address, spec, request, run)
        except TimeoutError:
            return run.timed_out()
        if not isinstance(answer, bytes):
            return answer
        if len(answer) > (limit := run.runtime.output_limit):
            return run.failed(f"got more than the limit of {limit} bytes; none of it was used")
        return _result(run, answer, correlation_id)

    async def probe(self, spec: NatsSpec, working_dir: str) -> Probe | None:
        """Send an empty message: a worker refuses it, and without a worker NATS answers."""
        if _problem(spec):
            return None
        address = NatsAddress(spec.servers, _path(spec.credentials, working_dir))
        tried = f"an empty message to {self.describe(spec)}"
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                client = await nats_client(address)
                from nats import errors

                try:
                    await client.request(spec.subject, b"", timeout=PROBE_SECONDS)
                except errors.NoRespondersError:
                    return Probe(
                        False, f"{tried} was not sent: no worker listens there. Start one, or correct `subject`"
                    )
        except NatsUnavailableError as error:
            return Probe(False, f"{error}. Start the server, or correct `servers` or `credentials`")
        except TimeoutError:  # also that of nats-py
            return Probe(
                False,
                f"{tried} got no answer in {PROBE_SECONDS} s. Check that workers run, and that the credentials "
                "may publish to the subject",
            )
        return Probe(True, f"{tried} was answered")


async def _ask(address: NatsAddress, spec: NatsSpec, request: bytes, run: HookRun) -> bytes | HookExecutionResult:
    """Return the answer of a worker, or the failure to get one."""
    end = asyncio.get_running_loop().time() + run.timeout_ms / 1000
    try:
        client = await nats_client(address)
    except NatsUnavailableError as error:
        return run.failed(f"was not sent: {error}")
    from nats import errors

    seconds = run.timeout_ms / 1000 / (1 + spec.retry)
    try:
        while True:  # until the time of the hook is over, so if no answer comes, at most `retry` times again
            left = min(seconds, end - asyncio.get_running_loop().time())
            headers = hop_headers() | timeout_headers(left)
            try:
                return (await client.request(spec.subject, request, timeout=seconds, headers=headers)).data
            except errors.TimeoutError:
                log.debug("%s: no answer after %g s, sending again", spec.subject, seconds)
            except errors.NoRespondersError:
                if not await workers_may_return(address):
                    return run.failed(f"was not sent: no worker listens on `{spec.subject}` at {address}")
    except errors.MaxPayloadError:
        size, limit = len(request), client.max_payload
        return run.failed(f"was not sent: {size} bytes are more than NATS allows here ({limit})")


def _result(run: HookRun, answer: bytes, correlation_id: str) -> HookExecutionResult:
    try:
        response = read_response(decode_message(answer))
    except ValueError as error:
        return run.failed(f"got an answer that is not a hook execution response: {error}")
    result = response.output or AggregatedHookResult(response.success)
    output, is_mine = result.final_output, response.correlation_id == correlation_id
    answered = run.answered(None if output is None else output.to_dict(), answer)
    if is_mine and is_refusal(answered.output):
        return answered
    if response.error is not None:
        return run.failed(f"was refused by the worker: {response.error.message}")
    if not is_mine:
        return run.failed("got the answer to another request")
    if result.errors:
        return run.failed(f"got no decision: on the worker, {result.errors[0]}")
    if output is None and not (response.success and result.success):
        return run.failed("got no decision: the worker failed, and did not say why")
    return answered


@lru_cache(maxsize=256)
def _problem(spec: NatsSpec) -> str | None:
    return _servers_problem(spec) or subject_problem(spec.subject)


def _servers_problem(spec: NatsSpec) -> str | None:
    if not spec.servers:
        return "`servers` is empty"
    return next((f"`servers`: {problem}" for server in spec.servers if (problem := server_problem(server))), None)


def _path(credentials: str | None, project: str) -> str | None:
    return None if credentials is None else str(Path(project, Path(credentials).expanduser()))
