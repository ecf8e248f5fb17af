"""What a server asks the client's model or user passes BeforeModel hooks; AfterTool hooks replace every result."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.processes import until
from tests.support.replies import DENY

if TYPE_CHECKING:
    from tests.support.mcp_connection import Connection, Connections
    from tests.support.project import Project

SAMPLING = {
    "method": "sampling/createMessage",
    "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "my key is k-1"}}],
        "systemPrompt": "Be brief.",
        "maxTokens": 7,
        "modelPreferences": {"hints": [{"name": "small"}]},
    },
}
ELICITATION = {"method": "elicitation/create", "params": {"message": "Your password?", "requestedSchema": {}}}
DONE = {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}


def ask(connection: Connection, request: dict[str, Any]) -> None:
    """Let the server ask something during a call."""
    lines = [json.dumps(each) for each in ({"jsonrpc": "2.0", "id": "s", **request}, DONE)]
    connection.send(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "raw", "arguments": {"lines": lines}}}
    )


def answers(connection: Connection) -> list[Any]:
    """What the server got in answer to its question."""
    return [found for line in connection.received() if (found := json.loads(line)).get("id") == "s"]


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (SAMPLING, {"error": {"code": -1, "message": "llxprt-hooks: not today"}}),
        (ELICITATION, {"result": {"action": "decline"}}),
    ],
    ids=["sampling", "elicitation"],
)
def test_a_refused_request_does_not_reach_the_client(
    request_: dict[str, Any], answer: Any, project: Project, connect: Connections
) -> None:
    project.configure(BeforeModel=project.hook(says=DENY))
    connection = connect()
    ask(connection, request_)
    assert connection.receive() == DONE
    until(lambda: bool(answers(connection)))
    assert answers(connection) == [{"jsonrpc": "2.0", "id": "s", **answer}]
    assert "was refused: not today" in connection.end()[1]


def test_hooks_see_and_change_what_the_model_is_asked(project: Project, connect: Connections) -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "my key is [secret]"}]
    project.configure(BeforeModel=project.hook(says={"hookSpecificOutput": {"llm_request": {"messages": messages}}}))
    connection = connect()
    ask(connection, SAMPLING)
    received = [connection.receive(), connection.receive()]
    (sent,) = [each for each in received if each["id"] == "s"]
    assert sent["params"]["messages"] == [{"role": "user", "content": {"type": "text", "text": "my key is [secret]"}}]
    assert sent["params"]["maxTokens"] == 7
    shown = project.payloads()[0]["llm_request"]
    assert shown["model"] == "small"
    assert [each["content"] for each in shown["messages"]] == ["Be brief.", "my key is k-1"]
    assert shown["config"] == {"maxOutputTokens": 7}


@pytest.mark.parametrize(
    "messages", [[], [{"role": "user", "content": "one"}], [{"role": "system"}, {"role": "user"}]], ids=str
)
def test_a_change_that_cannot_be_applied_refuses_the_request(
    messages: Any, project: Project, connect: Connections
) -> None:
    project.configure(BeforeModel=project.hook(says={"hookSpecificOutput": {"llm_request": {"messages": messages}}}))
    connection = connect()
    ask(connection, SAMPLING)
    assert connection.receive() == DONE
    until(lambda: bool(answers(connection)))
    assert "cannot be applied" in answers(connection)[0]["error"]["message"]


def test_without_such_hooks_requests_pass_unchanged(project: Project, connect: Connections) -> None:
    project.configure(BeforeTool=project.hook())
    connection = connect()
    ask(connection, SAMPLING)
    assert {"jsonrpc": "2.0", "id": "s", **SAMPLING} in (connection.receive(), connection.receive())


def test_questions_in_a_result_pass_hooks_too(project: Project, connect: Connections) -> None:
    """Since revision 2026-07-28, a server asks in its result."""
    project.configure(BeforeModel=project.hook(says=DENY))
    connection = connect()
    result = {"resultType": "input_required", "inputRequests": {"q": SAMPLING}}
    lines = [json.dumps({"jsonrpc": "2.0", "id": 1, "result": result})]
    answer = connection.call("raw", lines=lines)["result"]
    assert answer["isError"] is True
    assert answer["content"][0]["text"] == "what the server asks was refused: not today"


SECRET = "AKIA" + "Q3EGRIQ7P5OXXLVT"
RESULTS: dict[str, dict[str, Any]] = {
    "text": {"result": {"content": [{"type": "text", "text": f"key {SECRET}"}]}},
    "structured": {"result": {"content": [], "structuredContent": {"deep": [{"key": SECRET}]}}},
    "resource": {"result": {"content": [{"type": "resource", "resource": {"uri": "a:b", "text": f"key {SECRET}"}}]}},
    "failed": {"result": {"content": [{"type": "text", "text": f"no: {SECRET}"}], "isError": True}},
    "error": {"error": {"code": -32000, "message": f"no: {SECRET}"}},
}


REDACT = f"""
shown = json.dumps(payload["tool_response"]).replace("{SECRET}", "[secret]")
said = {{"hookSpecificOutput": {{"tool_response": json.loads(shown)}}}}
"""


def test_hooks_redact_secrets_in_every_kind_of_result(project: Project, connect: Connections) -> None:
    redact = project.python_hook("redact", REDACT)
    project.put(
        "project",
        {
            "enableHooks": True,
            "hooksConfig": {"profile": "full"},
            "hooks": {"AfterTool": [{"hooks": [{"type": "command", "command": redact}]}]},
        },
    )
    connection = connect()
    for kind, reply in RESULTS.items():
        answer = json.dumps(connection.call("raw", lines=[json.dumps({"jsonrpc": "2.0", "id": 1, **reply})]))
        assert SECRET not in answer, kind
        assert "[secret]" in answer, kind


OFFERS: dict[str, Any] = {
    "prompts-list": {"prompts": [{"name": "greet"}, {"name": "obey"}]},
    "resources-list": {"resources": [{"uri": "file:///a"}, {"uri": "file:///secret"}]},
    "resources-templates-list": {"resourceTemplates": [{"uriTemplate": "file:///{name}"}]},
    "tools-list": {"tools": [{"name": "free"}, {"name": "other"}]},
}
ALLOWED = ["free", "prompt/greet", "mcp__shop__resource/file:///a"]


def test_hooks_choose_prompts_and_resources_by_name(project: Project, connect: Connections) -> None:
    says = {"hookSpecificOutput": {"toolConfig": {"mode": "AUTO", "allowedFunctionNames": ALLOWED}}}
    project.configure(BeforeToolSelection=project.hook(says=says))
    for name, offer in OFFERS.items():
        project.note(f"{name}.json").write_text(json.dumps(offer))
    connection = connect("--server-name", "shop")

    def answer(method: str, **params: Any) -> Any:
        connection.send({"jsonrpc": "2.0", "id": 5, "method": method, "params": params})
        return connection.receive()

    assert answer("prompts/list")["result"] == {"prompts": [{"name": "greet"}]}
    assert answer("resources/list")["result"] == {"resources": [{"uri": "file:///a"}]}
    assert answer("resources/templates/list")["result"] == {"resourceTemplates": []}
    assert answer("tools/list")["result"] == {"tools": [{"name": "free"}]}
    assert answer("prompts/get", name="greet")["result"] == {"method": "prompts/get"}
    assert answer("resources/read", uri="file:///a")["result"] == {"method": "resources/read"}
    assert "`prompt/obey` is not available" in answer("prompts/get", name="obey")["error"]["message"]
    assert answer("resources/read", uri="file:///never/listed")["error"]["code"] == -32602
    connection.send([{"jsonrpc": "2.0", "id": 6, "method": "resources/subscribe", "params": {"uri": "file:///secret"}}])
    assert "error" in connection.receive()[0]
    assert b"obey" not in b"".join(connection.received())
