"""The inspector's server: the page, what it shows as JSON, and changes as server-sent events."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route

from llxprt_hooks._support.http_server import Server
from llxprt_hooks._support.json_codec import write_json
from llxprt_hooks.cli.web.access import Access
from llxprt_hooks.cli.web.feed import LogFeed
from llxprt_hooks.commands.fire import ZYGOTE_PATIENCE, InvalidInputError, attempt, effects, meaning
from llxprt_hooks.commands.inspect.questions import Questions, UnknownQuestionError
from llxprt_hooks.commands.inspect.replay import compare, fire_command, hook_test, input_of, outcome_of
from llxprt_hooks.commands.inspect.timeline import TimelineEvent, Where
from llxprt_hooks.events import HookEventName
from llxprt_hooks.fleet.audit.log import log_file
from llxprt_hooks.fleet.audit.recording import is_recording
from llxprt_hooks.integrations.inspector_questions import PATH as ASKED_AT
from llxprt_hooks.integrations.inspector_questions import announced
from llxprt_hooks.process.warm import zygotes

if TYPE_CHECKING:
    from starlette.requests import Request

    from llxprt_hooks.core.engine.planner import PlannedHook
    from llxprt_hooks.fleet.audit.record import Record

MAX_REQUEST = 2 * 1024 * 1024
"""Bytes; a payload is recorded up to 256 KiB."""

MAX_EVENTS = 500
"""Events on one page of the list."""

_LOOK = 0.2
"""Seconds after which a page is notified of a new question."""

_PING = 15.0
"""Seconds of silence after which a page is sent something, so that a broken connection is noticed."""

_STATIC = Path(__file__).parent / "static"


class Inspector:
    """What the page asks for."""

    def __init__(self, feed: LogFeed) -> None:
        self._feed = feed
        self._questions = Questions()

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                *(Route(path, _file(name)) for path, name in _FILES.items()),
                Route("/api/events", self.events),
                Route("/api/event/{id}", self.event),
                Route("/api/overview", self.overview),
                Route("/api/stream", self.stream),
                Route("/api/fire", self.fire, methods=["POST"]),
                Route(ASKED_AT, self.ask, methods=["POST"]),
                Route("/api/answer", self.answer, methods=["POST"]),
            ],
            exception_handlers={HTTPException: _explain},
        )

    async def events(self, request: Request) -> Response:
        """A page of the list, the newest first."""
        view = self._feed.timeline.view(_where(request))
        before, limit = _number(request, "before"), _number(request, "limit")
        found = view.page(before=before, limit=min(limit or MAX_EVENTS, MAX_EVENTS))
        return _json({"events": [event.summary() for event in found], "total": len(view)})

    async def overview(self, request: Request) -> Response:
        """Figures of the events that match, what to filter by, and hooks to look at."""
        where, timeline = _where(request), self._feed.timeline
        findings = await asyncio.to_thread(self._feed.findings, where.project)
        return _json(
            {
                **timeline.view(where).figures.to_dict(),
                "matching": len(timeline.view(where)),
                "total": len(timeline.events),
                "since": next((event.timestamp for event in timeline.events.values()), None),
                "facets": timeline.facets(),
                "findings": [asdict(finding) for finding in findings],
                "recording": is_recording(log_file().parent),
                "project": self._feed.project,
                "configured": self._feed.hook_count(),
            }
        )

    async def event(self, request: Request) -> Response:
        """Everything about one event, and which hooks would run for it now."""
        event = self._found(request.path_params["id"])
        name = _event_name(event)
        hook_input, recorded = input_of(event)
        trial, problem = None, ""
        if not _is_folder(event.project):
            problem = "The project folder is unknown or gone, so its settings cannot be read."
        else:
            try:
                trial = await attempt(event.project, name, hook_input, run=False, recorded=False)
            except InvalidInputError as error:
                problem = str(error)
        return _json(
            {
                **event.summary(),
                "reason": event.reason,
                "ended": event.ended,
                "executions": event.executions,
                "answers": event.answers,
                "payload": event.payload,
                "payload_bytes": next((each.get("payload_bytes") for each in event.executions), None),
                "input": hook_input,
                "input_recorded": recorded,
                "plan": None if trial is None else [_planned(hook) for hook in trial.plan],
                "plan_hints": [] if trial is None else trial.hints,
                "plan_problem": problem,
                "fire_command": fire_command(name, hook_input, event.project),
                "hook_test": hook_test(name, hook_input, event.decision, event.reason, event.output),
            }
        )

    async def stream(self, request: Request) -> Response:
        """Events that match, whenever they are new or have changed, until the page is closed."""
        where = _where(request)
        return StreamingResponse(self._changes(where), media_type="text/event-stream")

    async def _changes(self, where: Where) -> AsyncIterator[bytes]:
        shown, sent = None, time.monotonic()
        with self._feed.page() as queue:
            yield b": connected\n\n"
            while True:
                if shown != (shown := self._questions.waiting()):
                    yield b"event: questions\ndata: " + write_json(shown) + b"\n\n"
                try:
                    changed = await asyncio.wait_for(queue.get(), _LOOK)
                except TimeoutError:
                    if time.monotonic() - sent > _PING:
                        sent = time.monotonic()
                        yield b": ping\n\n"
                    continue
                if changed is None:
                    return
                updates = [each.summary() if where.matches(each) else {"id": each.id, "gone": True} for each in changed]
                yield b"data: " + write_json(updates) + b"\n\n"

    async def ask(self, request: Request) -> Response:
        """Take the question of an agent, which repeats it; the answer, if there is one."""
        said = await _body(request)
        try:
            answer = self._questions.told(said)
        except ValueError as error:
            raise HTTPException(400, str(error)) from error
        return _json({"id": said["id"], "digest": said["digest"], "answer": answer})

    async def answer(self, request: Request) -> Response:
        """Answer the question of an agent."""
        given = await _body(request)
        try:
            self._questions.answer(given.get("id"), given.get("digest"), given.get("answer"))
        except UnknownQuestionError as error:
            raise HTTPException(409, str(error)) from error
        except ValueError as error:
            raise HTTPException(400, str(error)) from error
        return _json({"answered": True})

    async def fire(self, request: Request) -> Response:
        """Fire a recorded event again, with the given input, and compare."""
        given = await _body(request)
        event = self._found(str(given.get("id")))
        hook_input = given.get("input")
        if not isinstance(hook_input, dict):
            raise HTTPException(400, "The input must be a JSON object.")
        if not _is_folder(event.project):
            raise HTTPException(409, "The project folder is unknown or gone, so its hooks cannot be run.")
        name = _event_name(event)
        base = {key: value for key, value in (event.payload or {}).items() if key not in name.spec.fields}
        try:
            trial = await attempt(event.project, name, {**base, **hook_input}, run=True, recorded=False)
        except InvalidInputError as error:
            raise HTTPException(400, str(error)) from error
        outcome, output = outcome_of(trial), trial.output.to_dict() if trial.output else None
        return _json(
            {
                **trial.to_dict(),
                "outcome": outcome,
                "effects": effects(name, trial.output, acts=trial.acts) if trial.output else [],
                "planned": [_planned(hook) for hook in trial.plan],
                "meanings": [meaning(result) for result in trial.results],
                "comparison": compare(event, hook_input, trial),
                "fire_command": fire_command(name, hook_input, event.project),
                "hook_test": hook_test(name, hook_input, outcome["decision"], outcome["reason"], output),
            }
        )

    def _found(self, identity: str) -> TimelineEvent:
        try:
            return self._feed.timeline.events[identity]
        except KeyError:
            raise HTTPException(404, "This event is not in the log any more.") from None


async def serve(
    project: str,
    listening: socket.socket,
    ready: Callable[[Access], None],
    read: Callable[[], list[Record]] | None = None,
    *,
    answers: bool = True,
) -> None:
    """Serve the inspector until the process is interrupted. ``read`` returns new records; by default, of the log.

    Agents can ask here, if ``answers``.
    """
    zygotes.patience = ZYGOTE_PATIENCE
    feed = LogFeed(project, read)
    feed.read()
    port = listening.getsockname()[1]
    access = Access(Inspector(feed).app(), port)
    server = Server(access, handles_signals=True, log_level="error", timeout_graceful_shutdown=2)
    ready(access)
    following = asyncio.create_task(feed.follow(lambda: server.should_exit))
    try:
        with announced(port, access.agent_key) if answers else nullcontext():
            await server.serve(sockets=[listening])
    finally:
        following.cancel()


_FILES = {"/": "page.html", "/page.css": "page.css", "/page.js": "page.js"}


def _file(name: str) -> Callable[[Request], Awaitable[Response]]:
    async def respond(request: Request) -> Response:
        return FileResponse(_STATIC / name)

    return respond


def _is_folder(project: str) -> bool:
    return project != "" and Path(project).is_dir()


async def _explain(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    return _json({"error": error.detail}, error.status_code)


def _json(value: object, status: int = 200) -> Response:
    return Response(write_json(value), status, media_type="application/json")


def _where(request: Request) -> Where:
    try:
        return Where.of(request.query_params)
    except ValueError as error:
        raise HTTPException(400, str(error)) from error


def _number(request: Request, name: str) -> int | None:
    given = request.query_params.get(name)
    if given is None:
        return None
    if not given.isdecimal():
        raise HTTPException(400, f"{name} must be a number.")
    return int(given)


async def _body(request: Request) -> Mapping[str, Any]:
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise HTTPException(415, "Send JSON.")
    received = b""
    async for chunk in request.stream():
        received += chunk
        if len(received) > MAX_REQUEST:
            raise HTTPException(413, "The input is too large.")
    try:
        value = json.loads(received)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"This is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise HTTPException(400, "Send a JSON object.")
    return value


def _event_name(event: TimelineEvent) -> HookEventName:
    try:
        return HookEventName(event.event_name)
    except ValueError:
        raise HTTPException(409, f"{event.event_name} is not an event of this version.") from None


def _planned(hook: PlannedHook) -> dict[str, Any]:
    definition = hook.definition
    return {
        "hook": definition.config.identity,
        "command": definition.config.command,
        "runs": hook.runs,
        "why": hook.why,
        "matcher": definition.matcher,
        "where": f"{definition.origin} {definition.where}".strip(),
    }
