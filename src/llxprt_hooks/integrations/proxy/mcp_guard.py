"""What hooks and approvals do to the messages between an MCP client and a server, whatever carries the messages.

A message is a line of JSON-RPC. The carrier of messages asks first whether hooks are concerned with one; if they are
not, it passes byte for byte. All others are handled on an event loop, and what is to be sent goes to two sinks.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import uuid4

from llxprt_hooks._support.json_codec import read_json, write_json
from llxprt_hooks._support.text import escape_for_terminal
from llxprt_hooks.core.engine.plan import name_text
from llxprt_hooks.core.engine.session import Session
from llxprt_hooks.events import TOOL_EVENTS, HookEventName
from llxprt_hooks.integrations.base import ToolCallHalves
from llxprt_hooks.integrations.mcp_calls import McpIntegration, claimed
from llxprt_hooks.integrations.mcp_questions import (
    CAPABILITIES,
    RESPONSES,
    STATE,
    AskClient,
    Caller,
    ask_message,
    has_forms,
)
from llxprt_hooks.integrations.mcp_requests import REQUESTS, HookedRequest, hooked_request
from llxprt_hooks.integrations.mcp_results import (
    OUTPUT_SCHEMA,
    STRUCTURED,
    effects,
    error_result,
    is_final,
    refusal,
    removed_by,
    tool_result,
)
from llxprt_hooks.integrations.mcp_schemas import DeclaredSchemas
from llxprt_hooks.integrations.proxy.json_rpc import (
    CALL,
    NO_ID,
    Key,
    Message,
    as_number,
    edited,
    head_of,
    key_of,
    params_of,
    read,
)
from llxprt_hooks.integrations.proxy.mcp_pinned import PinnedServer

if TYPE_CHECKING:
    from llxprt_hooks.config import Config
    from llxprt_hooks.settings.trust.mcp_pins import McpPins

_MAX_SHOWN: Final = 12

_LIST, _TASK_RESULT, _CANCELLED = "tools/list", "tasks/result", "notifications/cancelled"
_PATIENCE: Final = 5.0
"""Seconds that a server has to answer our own requests once its client has gone."""
_INITIALIZE, _LIST_CHANGED = "initialize", b"notifications/tools/list_changed"
_NAMED_LISTS: Final = {
    "prompts/list": ("prompts", "name", "prompt/"),
    "resources/list": ("resources", "uri", "resource/"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate", "resource/"),
}
"""What else a server lists: the field with the list, the field with a name in it, and how the name begins for hooks."""
_NAMED_USES: Final = {
    "prompts/get": ("name", "prompt/"),
    "resources/read": ("uri", "resource/"),
    "resources/subscribe": ("uri", "resource/"),
}
_INTRODUCTIONS: Final = (_INITIALIZE, "server/discover")
"""What a server answers with its name and its instructions."""
_PARSE_ERROR, _INVALID_REQUEST, _INVALID_PARAMS, _INTERNAL_ERROR = -32700, -32600, -32602, -32603
_TAKEN: Final = "another call with the same id has not been answered yet"
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
"""In ``_meta`` of a request since revision 2026-07-28, in which every result has a ``resultType``."""


class GuardedServer:
    """A server whose messages are guarded: what all its connections share."""

    def __init__(
        self,
        config: Config,
        *,
        server_name: str | None = None,
        aliases: Mapping[str, str] | None = None,
        pins: McpPins | None = None,
        checks_schemas: bool = True,
        client_metadata: bool = False,
    ) -> None:
        """With ``pins``, clients get only definitions that the user approved.

        With ``client_metadata``, hooks get to know what a client says about itself.
        """
        self.config = config
        metadata = (lambda said: claimed(*said)) if client_metadata else None
        self.integration = McpIntegration(config, server_name=server_name, aliases=aliases or {}, metadata=metadata)
        self.pinned = None if pins is None else PinnedServer(pins)
        self.schemas = DeclaredSchemas()
        self.checks_schemas = checks_schemas
        self.guards_requests = self.integration.has_hooks(HookEventName.BEFORE_MODEL)
        """Whether hooks see what the server asks the client's model and user."""
        has_tool_hooks = self.integration.has_hooks(*TOOL_EVENTS, HookEventName.BEFORE_TOOL_SELECTION)
        self.selects = self.integration.has_hooks(HookEventName.BEFORE_TOOL_SELECTION)
        """Whether hooks decide what a client gets to see."""
        self.is_guarded = has_tool_hooks or pins is not None or self.guards_requests


class Sink(Protocol):
    """Where messages to one side go."""

    def write_later(self, line: bytes, then: Callable[[], None] | None = None) -> None:
        """Send a message, without waiting; ``then`` is called when it is sent."""

    def close_later(self) -> None:
        """Send nothing more."""


@dataclass(eq=False, slots=True)
class _Call:
    """A tool call that has hooks."""

    halves: ToolCallHalves
    tool: Any
    task: asyncio.Task[None] | None = None
    """What hooks are doing at the moment."""
    is_sent: bool = False
    is_answered: bool = False
    caller: Caller = field(default_factory=Caller)

    @property
    def completion(self) -> Message:
        """The field that a result has since revision 2026-07-28."""
        return {"resultType": "complete"} if self.caller.elicit is None else {}

    @property
    def is_with_server(self) -> bool:
        return self.is_sent and self.task is None and not self.is_answered


class GuardedConnection:
    """A connection of one client to a guarded server."""

    def __init__(self, server: GuardedServer, to_server: Sink, to_client: Sink, call_soon: Callable[..., None]) -> None:
        """``call_soon`` calls a function on the event loop, from any thread."""
        self._integration = server.integration
        # A connection is not a session: no session event fires. It keeps a stop for the calls that follow.
        self._session = Session(server.config, server.config.session_id, "")
        self._pinned, self._schemas, self._checks_schemas = server.pinned, server.schemas, server.checks_schemas
        self._guards_requests, self._is_guarded = server.guards_requests, server.is_guarded
        self._selects = server.selects
        self._client: Any = None
        """What the client said about itself when it connected."""
        self._to_server, self._to_client, self._call_soon = to_server, to_client, call_soon
        self._on_start: Callable[[asyncio.Task[None]], None] = lambda _: None
        self.has_state = False
        """Whether the event loop has seen any message; set before it gets one."""
        # Of the event loop; the thread of the server only looks whether something waits for a reply.
        self._calls: dict[Key, _Call] = {}
        self._waiting: dict[Key, Callable[[Message, bytes], bytes | None]] = {}
        self._task_calls: dict[str, _Call] = {}
        self._id_types: set[type] = set()
        """Of the ids of the client's requests that are numbers, or could be read as one."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._tools: dict[str, None] = {}
        """Those of the server that the client has listed."""
        self._is_reported = False
        self._can_elicit = False
        """Whether the client said in its handshake that it can ask its user."""
        self._questions: dict[str, asyncio.Future[Any]] = {}
        """What the client was asked, by the id of the request. The server does not know of it."""
        self._requests: set[asyncio.Future[Message]] = set()
        """What the server was asked. The client does not know of it."""
        self._prefix = f"llxprt-hooks-{uuid4().hex}-"

    async def finish(self, *, is_over: bool) -> None:
        """The server is gone: end the hooks of calls that it cannot get, let hooks see the results that it gave.

        With ``is_over``, end those too.
        """
        for call in self._calls.values():
            if call.task is not None and (is_over or not call.is_sent):
                call.task.cancel()
        for request in self._requests:
            request.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    # From the client.

    def concerns(self, line: bytes) -> bool:
        """Whether hooks are concerned with a message of the client. Call it for each one."""
        if not self._is_guarded:
            return False
        head = head_of(line)
        if head is None:
            return bool(line.strip())
        self._note_id(head.id, is_request=not head.is_reply)
        if head.method is None:
            return self._is_ours(head.id)
        if head.method == _INITIALIZE:
            handshake = params_of(read(line)[0])
            self._can_elicit = has_forms(handshake.get("capabilities"))
            self._client = handshake.get("clientInfo")
        if head.method in _INTRODUCTIONS:
            return self._pinned is not None
        if head.method == CALL:
            return self._is_hooked(head.tool) and self._await(key_of(head.id))
        if self._selects and (head.method in _NAMED_LISTS or head.method in _NAMED_USES):
            return True
        return head.method == _LIST or (self.has_state and head.method in (_CANCELLED, _TASK_RESULT))

    def _await(self, key: Key) -> bool:
        """Expect no reply yet: what a server says about a call that it has not got is not its result."""
        if key != NO_ID:
            self._waiting.setdefault(key, _ignored)
        return True

    def _await_no_more(self, message: Any) -> None:
        """The message is not a call that has hooks, after all."""
        key = key_of(message.get("id")) if isinstance(message, dict) else NO_ID
        if self._waiting.get(key) is _ignored and key not in self._calls:
            del self._waiting[key]

    def _note_id(self, ident: Any, *, is_request: bool) -> None:
        """Take note of the id of a client's message, before the server can answer it."""
        key = key_of(ident)
        if not is_request or key == NO_ID:
            return
        if not isinstance(as_number(key), str):
            self._id_types.add(str if isinstance(ident, str) else float)
        if (call := self._calls.get(key)) is not None and call.is_answered:  # the client uses the id again
            self._forget(call, key)

    def _is_hooked(self, tool_name: Any) -> bool:
        is_guarded = self._pinned is not None or self._guards_requests
        return is_guarded or self._integration.has_tool_hooks(tool_name, self._session)

    # From the server.

    def is_awaited(self, line: bytes) -> bool:
        """Whether hooks are concerned with a message of the server."""
        if self._pinned is not None and _LIST_CHANGED in line:
            self._call_soon(self._pinned.forget_tools)
        if not self._waiting and not self._guards_requests:
            return False
        head = head_of(line)
        if head is None:
            return bool(line.strip())
        if self._guards_requests and head.method in REQUESTS:
            return True
        return head.is_reply and self._request_of(head.id) is not None

    def _request_of(self, ident: Any) -> Key | None:
        """Return which of the requests that wait a reply is for.

        Clients may compare ids as numbers, so that `"2"` answers `2`: only one that uses both for requests surely
        does not (D-114).
        """
        key = key_of(ident)
        if key == NO_ID or key in self._waiting:
            return None if key == NO_ID else key
        if len(self._id_types) > 1:
            return None
        number = as_number(key)
        return next((each for each in list(self._waiting) if as_number(each) == number), None)

    # On the event loop.

    def from_client(self, line: bytes | None) -> None:
        if line is None:
            for answer in self._questions.values():
                answer.set_exception(ConnectionError("it has closed the connection"))
            self._start(self._close_when_sent())
            asyncio.get_running_loop().call_later(_PATIENCE, self._give_up_asking)
            return
        try:
            message, problem = read(line)
        except ValueError:
            self._refuse(None, _PARSE_ERROR, "it is not valid JSON")
            return
        if problem is not None:
            self._refuse(message, _INVALID_REQUEST, problem)
            return
        for each in message if isinstance(message, list) else [message]:
            self._note_id(each.get("id"), is_request="method" in each)
        if isinstance(message, list):
            self._start(self._send_batch(message))
        else:
            self._handle(message, line)

    async def _elicit(self, question: dict[str, Any]) -> Any:
        """Ask the client's user; return what they did."""
        ident = f"{self._prefix}{uuid4().hex}"
        self._questions[ident] = answer = asyncio.get_running_loop().create_future()
        try:
            self._to_client.write_later(write_json(ask_message(ident, question)) + b"\n")
            result = (await answer).get("result")
        finally:
            del self._questions[ident]
        return result.get("action") if isinstance(result, dict) else None

    def _is_ours(self, ident: Any) -> bool:
        """Whether a reply of the client is to a question of hooks."""
        return isinstance(ident, str) and ident.startswith(self._prefix)

    def _answered(self, message: Message) -> None:
        answer = self._questions.get(message["id"])
        if answer is not None and not answer.done():
            answer.set_result(message)

    def _refuse(self, message: Any, code: int, problem: str) -> None:
        """Answer a message that hooks cannot check: the server may read it, and run a tool that they have not seen."""
        error = {"code": code, "message": f"llxprt-hooks: the message was not sent to the server: {problem}"}
        print(error["message"], file=sys.stderr)
        self._await_no_more(message)
        requests = [each for each in (message if isinstance(message, list) else [message]) if isinstance(each, dict)]
        ids = [each["id"] for each in requests if key_of(each.get("id")) != NO_ID] or [None]
        answers = [{"jsonrpc": "2.0", "id": ident, "error": error} for ident in ids]
        self._to_client.write_later(write_json(answers if isinstance(message, list) else answers[0]) + b"\n")

    def _handle(self, message: Message, line: bytes) -> None:
        if message.get("method") == CALL and self._is_hooked_call(message):
            key = key_of(message.get("id"))
            if self._is_taken(key):
                self._refuse(message, _INVALID_REQUEST, _TAKEN)
                return
            self._await(key)
            call = self._calls[key] = self._call_of(message)
            call.task = self._start(self._send_call(call, message, line))
        elif self._selects and message.get("method") in _NAMED_USES:
            self._start(self._send_use(message, line))
        elif self._passes(message):
            self._await_no_more(message)
            self._to_server.write_later(line)

    def _is_hooked_call(self, message: Message) -> bool:
        """Whether a call has hooks. A call whose tool has no name is not sent."""
        params = message.get("params")
        return not isinstance(params, dict) or self._is_hooked(params.get("name"))

    def _is_taken(self, key: Key) -> bool:
        """Whether another call has an id, so that nobody could tell whose answer is whose."""
        return key != NO_ID and (call := self._calls.get(key)) is not None and not call.is_answered

    def _passes(self, message: Message) -> bool:
        """Take note of a message that is not a call; return whether the server gets it."""
        method, key, params = message.get("method"), key_of(message.get("id")), params_of(message)
        if method is None and self._is_ours(message.get("id")):
            self._answered(message)
            return False
        if method == _CANCELLED:
            return self._cancel(key_of(params.get("requestId")))
        if method == _LIST and key != NO_ID:
            self._waiting[key] = partial(self._listed, key, params.get("cursor") is None)
        elif self._selects and method in _NAMED_LISTS and key != NO_ID:
            self._waiting[key] = partial(self._listed_by_name, key, method)
        elif method in _INTRODUCTIONS and key != NO_ID and self._pinned is not None:
            self._waiting[key] = partial(self._introduced, self._pinned, key)
        elif method == _TASK_RESULT and (call := self._task_calls.get(name_text(params.get("taskId")))):
            self._expect(_Call(call.halves, call.tool, caller=call.caller), key)  # as often as the client asks for it
        return True

    async def _send_use(self, message: Message, line: bytes) -> None:
        """Send a request for a prompt or a resource, if hooks offer it."""
        if (refused := await self._unselected(message)) is None:
            self._to_server.write_later(line)
        elif refused["id"] is not None:
            self._to_client.write_later(write_json(refused) + b"\n")

    async def _unselected(self, message: Message) -> Message | None:
        """Return the answer to a request for a prompt or a resource that hooks leave out; None if they offer it."""
        field, prefix = _NAMED_USES[message["method"]]
        name = f"{prefix}{name_text(params_of(message).get(field))}"
        await self._integration.select_for_call(name, self._session)
        if self._integration.is_offered(name, self._session):
            return None
        error = {"code": _INVALID_PARAMS, "message": f"llxprt-hooks: `{name}` is not available: hooks leave it out"}
        return {"jsonrpc": "2.0", "id": message.get("id"), "error": error}

    def _listed_by_name(self, key: Key, method: str, message: Message, line: bytes) -> bytes | None:
        """A list of prompts or resources, of which hooks choose."""
        del self._waiting[key]
        field, named, prefix = _NAMED_LISTS[method]
        result = message.get("result")
        if not isinstance(result, dict) or not isinstance(listed := result.get(field), list):
            return line
        names = [f"{prefix}{name_text(each.get(named) if isinstance(each, dict) else None)}" for each in listed]
        self._start(self._send_selected(field, names, listed, message, line))
        return None

    async def _send_selected(
        self, field: str, names: list[str], listed: list[Any], message: Message, line: bytes
    ) -> None:
        await self._integration.select(names, self._session)
        named = zip(names, listed, strict=True)
        offered = [each for name, each in named if self._integration.is_offered(name, self._session)]
        changed = line if len(offered) == len(listed) else edited(line, message, ("result",), {field: offered})
        self._to_client.write_later(changed)

    def _call_of(self, message: Message) -> _Call:
        params = params_of(message)
        name: Any = params.get("name")
        arguments = params.get("arguments")
        given = arguments if isinstance(arguments, dict) else {}
        caller = self._caller(params)
        approver = self._integration.questions.approver(caller)
        with self._integration.asked_by((params.get("_meta"), self._client)):
            halves = ToolCallHalves(self._integration, name, given, self._session, approver=approver)
        return _Call(halves, name, caller=caller)

    def _caller(self, params: Message) -> Caller:
        """Return how the client's user can be asked. Since revision 2026-07-28, each request has its capabilities."""
        questions, meta = self._integration.questions, params.get("_meta")
        if isinstance(meta, dict) and _VERSION_KEY in meta:
            return questions.caller(params, can_answer=has_forms(meta.get(CAPABILITIES)), elicit=None)
        return questions.caller(params, can_answer=self._can_elicit, elicit=self._elicit)

    async def _send_call(self, call: _Call, message: Message, line: bytes) -> None:
        key = key_of(message.get("id"))
        if (answer := await self._before(call, message)) is not None:
            self._answer(call, key, write_json(answer) + b"\n" if _is_wanted(answer) else b"")
            return
        self._expect(call, key)
        self._to_server.write_later(_rewritten(call, message, line))

    async def _before(self, call: _Call, message: Message) -> Message | None:
        """Run the hooks before a call; return the answer in the server's place, if there is one."""
        params, arguments = message.get("params"), params_of(message).get("arguments")
        if not isinstance(params, dict) or not isinstance(arguments, (dict, NoneType)):
            found = "arguments" if isinstance(params, dict) else "params"
            error = {"code": _INVALID_PARAMS, "message": f"`{found}` of tools/call must be an object"}
            return {"jsonrpc": "2.0", "id": message.get("id"), "error": error}
        if (refused := await self._refused(params)) is not None:
            return {"jsonrpc": "2.0", "id": message.get("id"), "result": {**error_result(refused), **call.completion}}
        await self._integration.select_for_call(params.get("name"), self._session)
        try:
            result = await call.halves.before()
        except AskClient as asked:
            return {"jsonrpc": "2.0", "id": message.get("id"), "result": asked.result}
        if result is None:
            return None
        return {"jsonrpc": "2.0", "id": message.get("id"), "result": {**refusal(result), **call.completion}}

    async def _refused(self, params: Message) -> str | None:
        """Return why a tool may not be called, given what the server offers; None if hooks decide."""
        name = params.get("name")
        if self._pinned is not None:
            if not self._pinned.is_known(name):
                await self._list_tools(self._pinned, params)
            if (refused := self._pinned.refusal(name)) is not None:
                return refused
        arguments = params.get("arguments") or {}
        objection = self._schemas.objection(name, "inputSchema", arguments) if self._checks_schemas else None
        return objection and f"the arguments do not fit the input schema of `{name}`: {objection}"

    async def _list_tools(self, pinned: PinnedServer, params: Message) -> None:
        """Ask the server for its tools, on behalf of a client that calls one without having listed it."""
        meta = params.get("_meta")
        kept = (
            {name: value for name, value in meta.items() if name != "progressToken"} if isinstance(meta, dict) else {}
        )
        asked: Message = {"_meta": kept} if kept else {}
        is_first, more_follow = True, True
        while more_follow:
            result = (await self._ask_server(_LIST, asked)).get("result")
            if not isinstance(result, dict) or not isinstance(tools := result.get("tools"), list):
                return
            self._schemas.declare(tools)
            more_follow = result.get("nextCursor") not in (None, asked.get("cursor"))
            pinned.listed(tools, is_first=is_first, is_last=not more_follow)
            asked, is_first = {**asked, "cursor": result.get("nextCursor")}, False

    async def _ask_server(self, method: str, params: Message) -> Message:
        """Send a request of our own to the server; return its reply."""
        ident = f"{self._prefix}{uuid4().hex}"
        reply: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

        def replied(message: Message, _: bytes) -> None:
            if not reply.done():
                reply.set_result(message)

        self._requests.add(reply)
        self._waiting[key_of(ident)] = replied
        try:
            request = {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}
            self._to_server.write_later(write_json(request) + b"\n")
            return await reply
        finally:
            self._requests.discard(reply)
            self._waiting.pop(key_of(ident), None)

    def _give_up_asking(self) -> None:
        """Wait no longer for replies of the server: nobody is there any more whom they are for."""
        for reply in self._requests:
            if not reply.done():
                reply.set_result({})

    async def _send_batch(self, batch: list[Message]) -> None:
        """Send a batch once the hooks of all its calls are done. Refused calls are answered in a batch of their own."""
        answers: list[Message] = []

        async def checked(message: Message) -> object:
            if self._selects and message.get("method") in _NAMED_USES:
                if (refused := await self._unselected(message)) is not None:
                    answers.append(refused)
                    return None
                return message
            if message.get("method") != CALL:
                return message if self._passes(message) else None
            if not self._is_hooked_call(message):
                return message
            key = key_of(message.get("id"))
            if self._is_taken(key):
                error = {"code": _INVALID_REQUEST, "message": f"llxprt-hooks: {_TAKEN}"}
                answers.append({"jsonrpc": "2.0", "id": message["id"], "error": error})
                return None
            self._await(key)
            call = self._calls[key] = self._call_of(message)
            if (answer := await self._before(call, message)) is not None:
                self._forget(call, key)
                answers.append(answer)
                return None
            if key != NO_ID and self._calls.get(key) is not call:  # the client has cancelled it
                return None
            self._expect(call, key)
            return read_json(_rewritten(call, message, write_json(message)))

        remaining = [each for each in await asyncio.gather(*map(checked, batch)) if each is not None]
        if any("id" in answer and answer["id"] is not None for answer in answers):
            self._to_client.write_later(write_json(answers) + b"\n")
        if remaining or not batch:
            self._to_server.write_later(write_json(remaining) + b"\n")

    def _expect(self, call: _Call, key: Key) -> None:
        call.is_sent = True
        call.task = None
        if key == NO_ID:
            self._calls.pop(key, None)
            return
        self._calls[key] = call
        self._waiting[key] = partial(self._returned, call, key)

    def _cancel(self, key: Key) -> bool:
        """Cancel a call, and end its hooks; return whether the server has to know: not if it never got the call."""
        call = self._calls.pop(key, None)
        self._waiting.pop(key, None)
        if call is not None and call.task is not None:
            call.task.cancel()
        return call is None or call.is_sent

    async def _close_when_sent(self) -> None:
        """The client sends nothing more: close the server's input when the calls that wait for hooks are sent."""
        while sending := {task for task in self._tasks if task is not asyncio.current_task()}:
            await asyncio.wait(sending)
        self._to_server.close_later()

    def from_server(self, line: bytes) -> None:
        try:
            message, problem = read(line)
        except ValueError:
            message, problem = None, "it is not valid JSON"
        if problem is not None:
            self._withhold(message, problem)
        elif isinstance(message, list):
            replies = [self._replied(each, write_json(each) + b"\n") for each in message]
            kept = [read_json(reply) for reply in replies if reply is not None]
            if kept or not message:
                self._to_client.write_later(line if kept == message else write_json(kept) + b"\n")
        elif (reply := self._replied(message, line)) is not None:
            self._to_client.write_later(reply)

    def _withhold(self, message: Any, problem: str) -> None:
        """Keep back what hooks cannot check while calls wait for their results: a lenient client may find one in it."""
        reason = f"llxprt-hooks: a message of the server was not passed on: {problem}"
        print(reason, file=sys.stderr)
        key = self._request_of(message.get("id")) if isinstance(message, dict) else None
        call = None if key is None else self._calls.get(key)
        if key is not None and call is not None and call.is_with_server:
            self._answer(call, key, _internal_error(key, reason))
        elif key is not None and call is None and self._waiting.pop(key) is not _ignored:
            self._to_client.write_later(_internal_error(key, reason))

    def _replied(self, message: Message, line: bytes) -> bytes | None:
        """Return the line for the client now; None if it is sent later, or not at all."""
        if self._guards_requests and message.get("method") in REQUESTS:
            self._start(self._send_request(message, line))
            return None
        is_reply = message.get("method") is None or "result" in message
        key = self._request_of(message.get("id")) if is_reply else None
        if key is None:
            return line
        if (call := self._calls.get(key)) is not None and not call.is_with_server:
            return None  # the client would take it for the result, which hooks are to see
        return self._waiting[key](message, line)

    async def _send_request(self, message: Message, line: bytes) -> None:
        """Send what the server asks the client's model or user, unless hooks refuse it."""
        hooked = await self._hooked(message)
        if hooked.answer is not None:
            answer = {"jsonrpc": "2.0", "id": message.get("id"), **hooked.answer}
            self._to_server.write_later(write_json(answer) + b"\n")
            return
        changes = {name: value for name, value in hooked.params.items() if value is not params_of(message).get(name)}
        self._to_client.write_later(edited(line, message, ("params",), changes) if changes else line)

    async def _hooked(self, request: Message) -> HookedRequest:
        config, method = self._integration.hooks.config, request["method"]
        hooked = await hooked_request(config, self._session, method, params_of(request))
        if hooked.reason:
            reason = f"llxprt-hooks: {method} of the server was refused: {hooked.reason}"
            print(escape_for_terminal(reason), file=sys.stderr)
        return hooked

    async def _send_questions(self, call: _Call, key: Key, message: Message, line: bytes) -> None:
        """Send a result in which the server asks the client, unless hooks refuse or answer one of its questions."""
        asked: Message = message["result"]["inputRequests"]
        known = {
            name: each for name, each in asked.items() if isinstance(each, dict) and each.get("method") in REQUESTS
        }
        hooked = {name: await self._hooked(each) for name, each in known.items()}
        if any(each.answer is not None for each in hooked.values()):
            reason = next(
                (each.reason for each in hooked.values() if each.reason), "hooks answer in the client's place"
            )
            result = {**error_result(f"what the server asks was refused: {reason}"), **call.completion}
            self._answer(call, key, write_json({"jsonrpc": "2.0", "id": key[1], "result": result}) + b"\n")
            return
        passed = {**asked, **{name: {**known[name], "params": each.params} for name, each in hooked.items()}}
        line = line if passed == asked else edited(line, message, ("result",), {"inputRequests": passed})
        self._answer(call, key, line)

    def _introduced(self, pinned: PinnedServer, key: Key, message: Message, line: bytes) -> bytes:
        """The server's name and instructions; only approved instructions reach the client."""
        del self._waiting[key]
        result = message.get("result")
        removed = pinned.introduced(result) if isinstance(result, dict) else ()
        return edited(line, message, ("result",), {}, *removed) if removed else line

    def _listed(self, key: Key, is_first: bool, message: Message, line: bytes) -> bytes | None:
        """A list of tools; None if hooks first decide which of them the client gets."""
        del self._waiting[key]
        result = message.get("result")
        if not isinstance(result, dict) or not isinstance(tools := result.get("tools"), list):
            return line
        self._schemas.declare(tools)
        more_follow = result.get("nextCursor") is not None
        if self._pinned is not None:
            approved = self._pinned.listed(tools, is_first=is_first, is_last=not more_follow)
            if len(approved) < len(tools):
                tools = approved
                line = edited(line, message, ("result",), {"tools": tools})
        names = [name_text(tool.get("name")) for tool in tools if isinstance(tool, dict)]
        self._integration.check_tools(names, more_follow=more_follow)
        self._warn_if_unguarded(names, more_follow=more_follow)
        if self._integration.has_hooks(HookEventName.BEFORE_TOOL_SELECTION):
            with self._integration.asked_by((None, self._client)):
                self._start(self._send_list(names, tools, message, line))
            return None
        return self._described(tools, message, line)

    async def _send_list(self, names: list[str], tools: list[Any], message: Message, line: bytes) -> None:
        await self._integration.select(names, self._session)
        self._to_client.write_later(self._described(tools, message, line))

    def _described(self, tools: list[Any], message: Message, line: bytes) -> bytes:
        """Return the list with the tools that hooks offer, without the output schemas of those that have hooks."""
        listed = [self._without_schema(tool) for tool in tools if self._is_offered(tool)]
        return line if listed == tools else edited(line, message, ("result",), {"tools": listed})

    def _is_offered(self, tool: Any) -> bool:
        name = tool.get("name") if isinstance(tool, dict) else None
        return self._integration.is_offered(name, self._session)

    def _warn_if_unguarded(self, names: list[str], *, more_follow: bool) -> None:
        """Say once that hooks for tools are configured, but none for a tool of this server."""
        self._tools |= dict.fromkeys(names)
        if more_follow or self._is_reported or not self._tools or any(map(self._is_hooked, self._tools)):
            return
        self._is_reported = True
        shown = ", ".join(map(self._integration.hook_name, list(self._tools)[:_MAX_SHOWN]))
        more = f" and {len(self._tools) - _MAX_SHOWN} more" if len(self._tools) > _MAX_SHOWN else ""
        message = f"llxprt-hooks: no hook matches a tool of this server, so nothing is checked: {shown}{more}"
        print(escape_for_terminal(message), file=sys.stderr)

    def _without_schema(self, tool: Any) -> Any:
        if not isinstance(tool, dict) or OUTPUT_SCHEMA not in tool:
            return tool
        if not self._integration.changes_results(tool.get("name")):
            return tool
        return {name: value for name, value in tool.items() if name != OUTPUT_SCHEMA}

    def _returned(self, call: _Call, key: Key, message: Message, line: bytes) -> None:
        result = message.get("result")
        if not isinstance(result, dict | None):
            self._withhold(message, "its result is not an object")
            return
        given, asked = message["id"], key[1]
        if type(given) is not type(asked) or given != asked:  # a strict client would wait for one that no hook sees
            line = edited(line, message, (), {"id": asked})
        if isinstance(result, dict) and is_final(result):
            call.task = self._start(self._return(call, key, message, line))
            return
        if "error" in message:
            call.task = self._start(self._failed(call, key, message, line))
            return
        if self._guards_requests and isinstance(result, dict) and isinstance(result.get("inputRequests"), dict):
            call.task = self._start(self._send_questions(call, key, message, line))
            return
        task = result.get("task") if isinstance(result, dict) else None
        task_id = task.get("taskId") if isinstance(task, dict) else None
        if isinstance(task_id, str):
            self._task_calls[task_id] = call
        self._answer(call, key, line)

    async def _return(self, call: _Call, key: Key, message: Message, line: bytes) -> None:
        result: Message = message["result"]
        if (objection := self._misfit(call, result)) is not None:
            replaced = error_result(f"the server's result does not fit the tool's output schema: {objection}")
            line = edited(line, message, ("result",), replaced, STRUCTURED)
            message = {**message, "result": replaced}
            result = replaced
        outcome = await call.halves.after(tool_result(result))
        if (changed := effects(result, outcome)) is not None:
            line = edited(line, message, ("result",), changed, *removed_by(changed))
        self._answer(call, key, line)

    def _misfit(self, call: _Call, result: Message) -> str | None:
        """Return how structured content does not fit the tool's output schema, which the client may not have."""
        if not self._checks_schemas or STRUCTURED not in result or result.get("isError") is True:
            return None
        return self._schemas.objection(call.tool, OUTPUT_SCHEMA, result[STRUCTURED])

    async def _failed(self, call: _Call, key: Key, message: Message, line: bytes) -> None:
        """The server answered with an error: what hooks that act put in its place is a result."""
        error = message["error"]
        text = error.get("message") if isinstance(error, dict) else error
        outcome = await call.halves.raised(McpError(str(text)))
        if outcome is not None:
            result = {**(effects({}, outcome) or {}), **call.completion}
            line = write_json({"jsonrpc": "2.0", "id": message.get("id"), "result": result}) + b"\n"
        self._answer(call, key, line)

    def _answer(self, call: _Call, key: Key, line: bytes) -> None:
        """Send the answer of a call; until it is written, the client must not get another."""
        call.is_answered = True
        self._to_client.write_later(line, then=lambda: self._call_soon(self._forget, call, key))

    def _forget(self, call: _Call, key: Key) -> None:
        if self._calls.get(key) is call:
            self._calls.pop(key, None)
            self._waiting.pop(key, None)

    def _start(self, coroutine: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._on_start(task)
        return task

    @contextmanager
    def watching(self, on_start: Callable[[asyncio.Task[None]], None]) -> Iterator[None]:
        """Report each task that starts in this block."""
        before, self._on_start = self._on_start, on_start
        try:
            yield
        finally:
            self._on_start = before


def _rewritten(call: _Call, message: Message, line: bytes) -> bytes:
    """Return a call with the arguments that hooks changed; without changes, the same bytes."""
    given = params_of(message).get("arguments") or {}
    changes = {
        name: value for name, value in call.halves.hooked.input.items() if value is not given.get(name, _MISSING)
    }
    line = edited(line, message, ("params", "arguments"), changes) if changes else line
    if not call.caller.is_answer:
        return line
    passed_on = call.caller.passed_on
    return edited(line, message, ("params",), passed_on, *({RESPONSES, STATE} - passed_on.keys()))


def _internal_error(key: Key, reason: str) -> bytes:
    error = {"code": _INTERNAL_ERROR, "message": reason}
    return write_json({"jsonrpc": "2.0", "id": key[1], "error": error}) + b"\n"


class McpError(Exception):
    """An error that a server answered with."""


def _is_wanted(answer: Message) -> bool:
    """Whether somebody waits for an answer: a call without an id only gets to know about errors."""
    return answer["id"] is not None or "error" in answer


def _ignored(_: Message, __: bytes) -> None:
    """Handles a reply that no client should get."""


_MISSING: Final = object()
