"""How a server of tools asks its client's user about a call: by elicitation.

Up to revision 2025-11-25 of MCP, the server sends the client a request. Since 2026-07-28 each request stands alone: the
server answers the call with the question, and the client repeats the call with its user's answer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from llxprt_hooks._support.json_codec import write_json
from llxprt_hooks.core.calls.approval import ApprovalRequest, Approver, NobodyToAsk

JSON = dict[str, Any]

RESPONSES: Final = "inputResponses"
STATE: Final = "requestState"
CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
"""In ``_meta`` of a request since revision 2026-07-28."""

_KEY: Final = "llxprt-hooks"
_METHOD: Final = "elicitation/create"
_MAX_QUESTIONS: Final = 1000
_NO_ELICITATION: Final = "the MCP client cannot ask its user, because it does not support elicitation"


class AskClient(Exception):  # a statement, not an error
    """The call has to be answered with a question: ``result`` is that answer."""

    def __init__(self, result: JSON) -> None:
        super().__init__("the client's user has to answer first")
        self.result = result


@dataclass(frozen=True, slots=True)
class _Question:
    digest: str
    given: JSON
    """What the tool itself had asked the client for, and which the call brought."""


@dataclass(slots=True)
class Caller:
    """Who calls a tool, and what came with the call."""

    can_answer: bool = False
    elicit: Callable[[JSON], Awaitable[Any]] | None = None
    """Sends a question, and returns the action of the user; None if the answer comes with a repeated call."""
    given: JSON = field(default_factory=dict)
    """The user's answers and the server's state, of a call that the client repeats."""
    question: _Question | None = None

    @property
    def is_answer(self) -> bool:
        """Whether the call brings an answer to a question of hooks, which is not for the tool."""
        return self.question is not None

    @property
    def passed_on(self) -> JSON:
        """What the tool gets of what came with the call."""
        return self.given if self.question is None else self.question.given


class Questions:
    """The questions that have been asked. An answer counts once, for the same tool with the same arguments."""

    def __init__(self) -> None:
        self._asked: OrderedDict[str, _Question] = OrderedDict()

    def caller(
        self, params: Mapping[str, Any], *, can_answer: bool, elicit: Callable[[JSON], Awaitable[Any]] | None
    ) -> Caller:
        given = {name: params[name] for name in (RESPONSES, STATE) if params.get(name) is not None}
        state = given.get(STATE)
        question = self._asked.pop(state, None) if isinstance(state, str) else None
        return Caller(can_answer, elicit, given, question)

    def approver(self, caller: Caller) -> Approver:
        """Return the approver of one call."""

        async def ask(request: ApprovalRequest) -> bool:
            if not caller.can_answer:
                raise NobodyToAsk(_NO_ELICITATION)
            if caller.elicit is not None:
                return await _elicited(caller.elicit, request)
            if caller.question is None or caller.question.digest != request.digest:
                raise AskClient(self._result(request, caller))
            responses = caller.given.get(RESPONSES)
            answer = responses.get(_KEY) if isinstance(responses, Mapping) else None
            return isinstance(answer, Mapping) and answer.get("action") == "accept"

        return ask

    def _result(self, request: ApprovalRequest, caller: Caller) -> JSON:
        state = f"{_KEY}-{uuid4().hex}"
        self._asked[state] = _Question(request.digest, caller.passed_on)
        if len(self._asked) > _MAX_QUESTIONS:
            self._asked.popitem(last=False)
        asked = {_KEY: {"method": _METHOD, "params": question(request)}}
        return {"resultType": "input_required", "inputRequests": asked, STATE: state}


async def _elicited(elicit: Callable[[JSON], Awaitable[Any]], request: ApprovalRequest) -> bool:
    try:
        return bool(await elicit(question(request)) == "accept")
    except Exception as error:
        raise NobodyToAsk(f"the MCP client did not ask its user: {error}") from error


def question(request: ApprovalRequest) -> JSON:
    """Return what the client is to ask. To accept is to approve, so the form has no fields."""
    arguments = write_json(request.tool_input).decode()
    message = f"{request.reason}\n\nAllow {request.tool_name} with these arguments? {arguments}"
    return {"mode": "form", "message": message, "requestedSchema": {"type": "object", "properties": {}}}


def has_forms(capabilities: Any) -> bool:
    """Whether a client's capabilities, as JSON, include that it shows its user a form; an empty object means forms."""
    found = capabilities.get("elicitation") if isinstance(capabilities, Mapping) else None
    return isinstance(found, Mapping) and ("form" in found or "url" not in found)


def ask_message(ident: str, asked: JSON) -> JSON:
    """Return the request that asks the client's user."""
    return {"jsonrpc": "2.0", "id": ident, "method": _METHOD, "params": asked}
