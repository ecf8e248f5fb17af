"""Tool calls that have hooks: from the client's request to the answer that it gets."""

from __future__ import annotations

import sys
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks._support.json_codec import write_json
from llxprt_hooks.core.engine.plan import name_text
from llxprt_hooks.integrations.base import ToolCallHalves
from llxprt_hooks.integrations.mcp_questions import CAPABILITIES, RESPONSES, STATE, AskClient, Caller, has_forms
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
from llxprt_hooks.integrations.proxy.mcp.asked import hooked_questions
from llxprt_hooks.integrations.proxy.mcp.json_rpc import (
    CALL,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    NO_ID,
    Key,
    Message,
    as_number,
    edited,
    key_of,
    params_of,
)
from llxprt_hooks.integrations.proxy.mcp.server import ignored

if TYPE_CHECKING:
    import asyncio

    from llxprt_hooks.integrations.proxy.mcp.offers import Offers
    from llxprt_hooks.integrations.proxy.mcp.server import Link

TAKEN: Final = "another call with the same id has not been answered yet"
_MAX_ANSWERED: Final = 100
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
"""In ``_meta`` of a request since revision 2026-07-28, in which every result has a ``resultType``."""


class McpError(Exception):
    """An error that a server answered with."""


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


class GuardedCalls:
    """The calls of one connection that have not been answered yet."""

    def __init__(self, link: Link, offers: Offers) -> None:
        self._link, self._offers = link, offers
        self._server, self._integration = link.server, link.server.integration
        self._calls: dict[Key, _Call] = {}
        self._answered: OrderedDict[Any, _Call] = OrderedDict()
        """The latest calls that have been answered, by their ids as numbers."""
        self._task_calls: dict[str, _Call] = {}

    def is_hooked(self, message: Message) -> bool:
        """Whether a message is a call that has hooks. One whose tool has no name is not sent."""
        params = message.get("params")
        is_call = message.get("method") == CALL
        return is_call and (
            not isinstance(params, dict) or self._server.is_hooked(params.get("name"), self._link.session)
        )

    def is_taken(self, key: Key) -> bool:
        """Whether another call has an id, so that nobody could tell whose answer is whose."""
        return key != NO_ID and (call := self._calls.get(key)) is not None and not call.is_answered

    def reuse(self, key: Key) -> None:
        """The client uses an id again: what was answered under it is done."""
        if (call := self._calls.get(key)) is not None and call.is_answered:
            self._forget(call, key)
        self._answered.pop(as_number(key), None)

    def await_no_more(self, message: Any) -> None:
        """The message is not a call that has hooks, after all."""
        key = key_of(message.get("id")) if isinstance(message, dict) else NO_ID
        if self._link.waiting.get(key) is ignored and key not in self._calls:
            del self._link.waiting[key]

    # To the server.

    def begin(self, message: Message, line: bytes) -> None:
        """Run the hooks before a call, then send it."""
        key = key_of(message.get("id"))
        call = self._add(message, key)
        call.task = self._link.start(self._send(call, key, message, line))

    async def checked(self, message: Message) -> tuple[Message | None, bytes]:
        """Run the hooks before a call in a batch; return the answer in the server's place, or what to send."""
        key = key_of(message.get("id"))
        call = self._add(message, key)
        if (answer := await self._before(call, message)) is not None:
            self._forget(call, key)
            return answer, b""
        if key != NO_ID and self._calls.get(key) is not call:  # the client has cancelled it
            return None, b""
        self._expect(call, key)
        return None, _rewritten(call, message, write_json(message))

    def _add(self, message: Message, key: Key) -> _Call:
        self._link.await_later(key)
        params = params_of(message)
        arguments = params.get("arguments")
        given = arguments if isinstance(arguments, dict) else {}
        name: Any = params.get("name")
        caller = self._caller(params)
        approver = self._integration.questions.approver(caller)
        with self._integration.asked_by((params.get("_meta"), self._link.client)):
            halves = ToolCallHalves(self._integration, name, given, self._link.session, approver=approver)
        call = self._calls[key] = _Call(halves, name, caller=caller)
        return call

    def _caller(self, params: Message) -> Caller:
        """Return how the client's user can be asked. Since revision 2026-07-28, each request has its capabilities."""
        questions, meta = self._integration.questions, params.get("_meta")
        if isinstance(meta, dict) and _VERSION_KEY in meta:
            return questions.caller(params, can_answer=has_forms(meta.get(CAPABILITIES)), elicit=None)
        return questions.caller(params, can_answer=self._link.can_elicit, elicit=self._link.elicit)

    async def _send(self, call: _Call, key: Key, message: Message, line: bytes) -> None:
        if (answer := await self._before(call, message)) is not None:
            self._answer(call, key, write_json(answer) + b"\n" if _is_wanted(answer) else b"")
            return
        self._expect(call, key)
        self._link.to_server.write_later(_rewritten(call, message, line))

    async def _before(self, call: _Call, message: Message) -> Message | None:
        """Run the hooks before a call; return the answer in the server's place, if there is one."""
        reply: Message = {"jsonrpc": "2.0", "id": message.get("id")}
        params, arguments = message.get("params"), params_of(message).get("arguments")
        if not isinstance(params, dict) or not isinstance(arguments, (dict, NoneType)):
            found = "arguments" if isinstance(params, dict) else "params"
            error = {"code": INVALID_PARAMS, "message": f"`{found}` of tools/call must be an object"}
            return {**reply, "error": error}
        refused = await self._offers.refused(params) or self._objection(params)
        if refused is not None:
            return {**reply, "result": {**error_result(refused), **call.completion}}
        await self._integration.select_for_call(params.get("name"), self._link.session)
        try:
            result = await call.halves.before()
        except AskClient as asked:
            return {**reply, "result": asked.result}
        return None if result is None else {**reply, "result": {**refusal(result), **call.completion}}

    def _objection(self, params: Message) -> str | None:
        """Return how arguments do not fit the tool's input schema."""
        if not self._server.checks_schemas:
            return None
        name = params.get("name")
        objection = self._server.schemas.objection(name, "inputSchema", params.get("arguments") or {})
        return objection and f"the arguments do not fit the input schema of `{name}`: {objection}"

    def _expect(self, call: _Call, key: Key) -> None:
        call.is_sent = True
        call.task = None
        if key == NO_ID:
            self._calls.pop(key, None)
            return
        self._calls[key] = call
        self._link.waiting[key] = partial(self._returned, call, key)

    def follow_task(self, params: Message, key: Key) -> None:
        """The client asks for the result of a task: it is that of the call that began the task."""
        if (call := self._task_calls.get(name_text(params.get("taskId")))) is not None:  # as often as it asks for it
            self._expect(_Call(call.halves, call.tool, caller=call.caller), key)

    def cancel(self, key: Key) -> bool:
        """Cancel a call, and end its hooks; return whether the server has to know: not if it never got the call."""
        call = self._calls.pop(key, None)
        self._link.waiting.pop(key, None)
        if call is not None and call.task is not None:
            call.task.cancel()
        return call is None or call.is_sent

    def server_has_gone(self, *, is_over: bool) -> None:
        """End the hooks of calls that the server cannot get; with ``is_over``, of those that it has answered too."""
        for call in self._calls.values():
            if call.task is not None and (is_over or not call.is_sent):
                call.task.cancel()

    # From the server.

    def is_early(self, key: Key) -> bool:
        """Whether a reply is for a call that the server cannot answer now: hooks are still to see its result."""
        call = self._calls.get(key)
        return call is not None and (not call.is_sent or (call.task is not None and not call.task.done()))

    @property
    def can_be_answered_again(self) -> bool:
        """Whether any call has been answered to which the server may still send a reply."""
        return bool(self._answered)

    def was_answered(self, ident: Any) -> bool:
        return as_number(key_of(ident)) in self._answered

    def expect_again(self, ident: Any) -> Key:
        """Let hooks see another reply to a call: the client may have taken the first one for invalid, or missed it."""
        key = key_of(ident)
        call = self._answered[as_number(key)]
        self._expect(_Call(call.halves, call.tool, caller=call.caller), key)
        return key

    def withhold(self, key: Key | None, problem: str) -> None:
        """Keep back what hooks cannot check while calls wait for their results: a lenient client may find one in it."""
        reason = f"llxprt-hooks: a message of the server was not passed on: {problem}"
        print(reason, file=sys.stderr)
        if key is None:
            return
        call = self._calls.get(key)
        error = {"code": INTERNAL_ERROR, "message": reason}
        line = write_json({"jsonrpc": "2.0", "id": key[1], "error": error}) + b"\n"
        if call is None:
            if self._link.waiting.pop(key) is not ignored:
                self._link.to_client.write_later(line)
        elif call.is_with_server:
            self._answer(call, key, line)

    def _returned(self, call: _Call, key: Key, message: Message, line: bytes) -> None:
        result = message.get("result")
        if (problem := _invalid(message)) is not None:
            self.withhold(key, problem)
            return
        given, asked = message["id"], key[1]
        if type(given) is not type(asked) or given != asked:  # a strict client would wait for one that no hook sees
            line = edited(line, message, (), {"id": asked})
        if isinstance(result, dict) and is_final(result):
            call.task = self._link.start(self._return(call, key, message, line))
        elif "error" in message:
            call.task = self._link.start(self._failed(call, key, message, line))
        elif self._server.guards_requests and isinstance((result or {}).get("inputRequests"), dict):
            call.task = self._link.start(self._ask(call, key, message, line))
        else:
            task = (result or {}).get("task")
            if isinstance(task, dict) and isinstance(task.get("taskId"), str):
                self._task_calls[task["taskId"]] = call
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
        if not self._server.checks_schemas or STRUCTURED not in result or result.get("isError") is True:
            return None
        return self._server.schemas.objection(call.tool, OUTPUT_SCHEMA, result[STRUCTURED])

    async def _failed(self, call: _Call, key: Key, message: Message, line: bytes) -> None:
        """The server answered with an error: what hooks that act put in its place is a result."""
        error = message["error"]
        text = error.get("message") if isinstance(error, dict) else error
        outcome = await call.halves.raised(McpError(str(text)))
        if outcome is not None:
            result = {**(effects({}, outcome) or {}), **call.completion}
            line = write_json({"jsonrpc": "2.0", "id": message.get("id"), "result": result}) + b"\n"
        self._answer(call, key, line)

    async def _ask(self, call: _Call, key: Key, message: Message, line: bytes) -> None:
        """Send a result in which the server asks the client, unless hooks refuse or answer one of its questions."""
        asked: Message = message["result"]["inputRequests"]
        passed, refused = await hooked_questions(self._link, asked)
        if refused is not None:
            result = {**error_result(f"what the server asks was refused: {refused}"), **call.completion}
            line = write_json({"jsonrpc": "2.0", "id": key[1], "result": result}) + b"\n"
        elif passed != asked:
            line = edited(line, message, ("result",), {"inputRequests": passed})
        self._answer(call, key, line)

    def _answer(self, call: _Call, key: Key, line: bytes) -> None:
        """Send the answer of a call; until it is written, the client must not get another."""
        call.is_answered = True
        self._link.to_client.write_later(line, then=lambda: self._link.call_soon(self._forget, call, key))

    def _forget(self, call: _Call, key: Key) -> None:
        if self._calls.get(key) is call:
            self._calls.pop(key, None)
            self._link.waiting.pop(key, None)
            if call.is_sent:
                self._answered[as_number(key)] = call
                if len(self._answered) > _MAX_ANSWERED:
                    self._answered.popitem(last=False)


def _invalid(reply: Message) -> str | None:
    """Return why a reply is none: a strict client would go on waiting, and take the next one."""
    if "result" in reply:
        return None if isinstance(reply["result"], dict) else "its result is not an object"
    error = reply.get("error")
    if isinstance(error, dict) and isinstance(error.get("message"), str) and key_of(error.get("code"))[0] == "number":
        return None
    return "it has neither a result nor an error with a code and a message"


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


def _is_wanted(answer: Message) -> bool:
    """Whether somebody waits for an answer: a call without an id only gets to know about errors."""
    return answer["id"] is not None or "error" in answer


_MISSING: Final = object()
