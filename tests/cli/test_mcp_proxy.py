"""``llxprt-hooks mcp-proxy`` between a client and a server that speak bare JSON-RPC."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import Config, Hooks
from llxprt_hooks.integrations.proxy.mcp.guard import GuardedConnection
from llxprt_hooks.integrations.proxy.mcp.server import GuardedServer
from tests.support.cli import Run, run
from tests.support.mcp_connection import PROXY, SERVER, Connections, call
from tests.support.processes import DEADLINE, lives, until
from tests.support.replies import DENY

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.project import Project


def guard(project: Project, matcher: str = "^guarded$", **says: Any) -> None:
    """Block a tool, or say something else before it."""
    command = project.hook(says=says or DENY)
    project.configure(BeforeTool={"matcher": matcher, "hooks": [{"type": "command", "command": command}]})


# Decisions.


def test_a_blocked_call_is_answered_with_the_reason(project: Project, connect: Connections) -> None:
    guard(project)
    connection = connect()
    answer = connection.call("guarded", path="a")
    assert answer == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"content": [{"type": "text", "text": "not today"}], "isError": True},
    }
    assert connection.text("free", a=1) == 'ran free {"a": 1}'
    assert connection.end()[0] == 0
    assert [message["params"]["name"] for message in connection.received_calls()] == ["free"]


def test_a_recent_client_gets_the_type_of_the_result(project: Project, connect: Connections) -> None:
    guard(project)
    message = call("guarded")
    message["params"]["_meta"] = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    connection = connect()
    connection.send(message)
    assert connection.receive()["result"]["resultType"] == "complete"


def test_changed_arguments_leave_everything_else_as_it_was(project: Project, connect: Connections) -> None:
    guard(project, hookSpecificOutput={"tool_input": {"path": "b"}})
    connection = connect()
    connection.send(
        b'{"jsonrpc":"2.0", "id":1,"method":"tools/call","params":{"_meta":{"progressToken":1.50},'
        b'"name":"guarded","arguments":{"path":"a","n":1e2,"more":[1.0]},"new":null}}\n'
    )
    assert connection.receive()["result"]["content"][0]["text"].startswith("ran guarded")
    (line,) = connection.received()
    assert json.loads(line)["params"]["arguments"] == {"path": "b", "n": 100.0, "more": [1.0]}
    for kept in (b'{"progressToken":1.50}', b'"n":1e2', b'"more":[1.0]', b'"new":null'):
        assert kept in line


def test_text_of_hooks_is_added_and_hides_no_data(project: Project, connect: Connections) -> None:
    """A client that finds structured content may show its model nothing else."""
    after = project.hook(says={"hookSpecificOutput": {"additionalContext": "run the tests"}, "systemMessage": "mind"})
    project.configure(AfterTool={"matcher": "^data$", "hooks": [{"type": "command", "command": after}]})
    connection = connect()
    result = connection.call("data")["result"]
    assert [block["text"] for block in result["content"]] == ['{"n": 1.50}', "run the tests", "[System] mind"]
    assert "structuredContent" not in result
    assert project.payloads()[0]["tool_response"]["metadata"] == {"structuredContent": {"n": 1.5}}
    connection.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    listed = connection.receive()["result"]
    assert listed["nextCursor"] == "2"
    assert ["outputSchema" in tool for tool in listed["tools"]] == [False, True]


def test_a_tool_that_failed_has_run(project: Project, connect: Connections) -> None:
    project.configure(AfterTool=project.hook())
    assert connect().call("failing")["result"]["isError"] is True
    assert project.payloads()[0]["tool_response"]["error"] == {"message": "it went wrong"}


def test_names_as_hooks_see_them(project: Project, connect: Connections) -> None:
    project.configure(BeforeTool=project.hook())
    connection = connect("--server-name", "shop", "--alias", "shell=run_shell_command")
    connection.text("buy")
    connection.text("shell")
    assert [payload["tool_name"] for payload in project.payloads()] == ["mcp__shop__buy", "run_shell_command"]
    assert [message["params"]["name"] for message in connection.received_calls()] == ["buy", "shell"]


@pytest.mark.parametrize("allowed", ["free", "mcp__shop__free"])
def test_hooks_choose_the_tools_that_a_client_can_see_and_call(
    project: Project, connect: Connections, allowed: str
) -> None:
    restricting = project.hook(says={"hookSpecificOutput": {"toolConfig": {"allowedFunctionNames": [allowed]}}})
    project.configure(BeforeToolSelection=restricting)
    connection = connect("--server-name", "shop")
    connection.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    listed = connection.receive()["result"]
    assert [(tool["name"], "outputSchema" in tool) for tool in listed["tools"]] == [("free", True)]
    assert listed["nextCursor"] == "2"
    assert connection.text("free") == "ran free {}"
    for hidden in ("data", "never_listed"):
        refused = connection.call(hidden)["result"]
        assert refused["isError"] is True
        said = refused["content"][0]["text"]
        assert said == f"mcp__shop__{hidden} may not be called now: hooks do not offer it."
    assert [message["params"]["name"] for message in connection.received_calls()] == ["free"]
    shown = [payload["llm_request"]["toolConfig"]["allowedFunctionNames"] for payload in project.payloads()]
    assert shown == [["mcp__shop__data", "mcp__shop__free"], ["mcp__shop__never_listed"]]


@pytest.mark.parametrize(
    ("output", "names"),
    [
        (None, ["data", "free"]),
        ({"hookSpecificOutput": {"toolConfig": {"mode": "NONE"}}}, []),
        ({"hookSpecificOutput": {"toolConfig": 7}}, ["data", "free"]),
        ({"continue": False, "stopReason": "enough"}, []),
    ],
)
def test_tools_that_are_listed(project: Project, connect: Connections, output: Any, names: list[str]) -> None:
    project.configure(BeforeToolSelection=project.hook(says=output))
    connection = connect()
    connection.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    assert [tool["name"] for tool in connection.receive()["result"]["tools"]] == names
    assert connection.call("free")["result"].get("isError", False) is ("free" not in names)


# On the wire.


SPELLINGS = [
    b'{"jsonrpc":"2.0","id":1,"method":"tools\\/call","params":{"name":"guarded"}}\n',
    b'{"jsonrpc":"2.0","id":1,"m\\u0065thod":"tools/call","params":{"n\\u0061me":"gu\\u0061rded"}}\n',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"guarded","arguments":{"a":"\\ud800"}}}\n',
    b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"guarded"}}\n',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"guarded","arguments":null}}\n',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"guarded","arguments":{"a":'
    + b"[" * 3000
    + b"]" * 3000
    + b"}}}\n",
]


def test_no_spelling_gets_around_hooks(project: Project, connect: Connections) -> None:
    guard(project)
    connection = connect()
    for line in SPELLINGS:
        connection.send(line)
        assert connection.receive()["result"]["isError"] is True, line
    connection.end()
    assert connection.received() == []


def test_what_hooks_cannot_be_shown_is_not_sent(project: Project, connect: Connections) -> None:
    guard(project, "")
    connection = connect()
    for line, code in (
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"guarded","arguments":{"a":NaN}}}\n', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["guarded",{}]}\n', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"guarded","arguments":"a"}}\n', -32602),
    ):
        connection.send(line)
        assert connection.receive()["error"]["code"] == code, line
    connection.end()
    assert connection.received() == []


READ_DIFFERENTLY = [
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping","params":{"name":"guarded"}}',
    b'{"method":"ping","jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"guarded"}}\r',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"guarded"}}',
    b'{"jsonrpc":"2.0","id":1,"METHOD":"tools/call","params":{"name":"guarded"}}',
    b'{"jsonrpc":"2.0","id":1,"method\\u0000x":"tools/call","params":{"name":"guarded"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call\\u0000","params":{"name":"guarded"}}',
    b'{"jsonrpc":"2.0","id":1,"method":["tools/call"],"params":{"name":"guarded"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"Tools/Call ","params":{"name":"guarded"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","param\xc5\xbf":{"name":"guarded"},"params":{"name":"free"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"guarded","name":"free"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"free","Name":"guarded"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"other","arguments":{"a":1,"a":2}}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"other","arguments":{"path":1,"Path":2}}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"other","arguments":{"a":{"b":1,"b":2}}}}',
    b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"guarded","name":"free"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"guarded\\u0000"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"guarded\xff"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["guarded"]}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{}}}',
]


def test_a_message_that_servers_read_differently_is_refused(project: Project, connect: Connections) -> None:
    """Some take the first of two fields, some the last, and some ignore case."""
    guard(project, "^guarded$|^other$", systemMessage="seen")
    connection = connect()
    for line in READ_DIFFERENTLY:
        connection.send(line + b"\n")
        answer = connection.receive()
        assert (answer["id"], answer["error"]["code"]) == (1, -32600), line
    assert connection.text("free") == "ran free {}"
    assert connection.end()[1].count("the message was not sent to the server: ") == len(READ_DIFFERENTLY)
    assert len(connection.received()) == 1


def test_a_batch_with_a_member_that_is_not_a_clear_message_is_refused(project: Project, connect: Connections) -> None:
    guard(project)
    connection = connect()
    for member in ([call("guarded", 5)], 5, {**call("free", 5), "Method": "tools/call"}):
        connection.send([call("free", 1), member])
        answers = connection.receive()
        assert answers[0]["id"] == 1
        assert {answer["error"]["code"] for answer in answers} == {-32600}
    connection.end()
    assert connection.received() == []


def test_without_tool_hooks_everything_passes(project: Project, connect: Connections) -> None:
    line = b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"free","Name":1}}\n'
    connection = connect()
    connection.send(line)
    assert connection.receive()["id"] == 1
    assert connection.received() == [line]


def test_a_batch_is_not_a_way_around(project: Project, connect: Connections) -> None:
    guard(project)
    connection = connect()
    ping = {"jsonrpc": "2.0", "id": 3, "method": "ping"}
    connection.send([call("guarded", 1), call("free", 2), ping])
    answers = [*connection.receive(), *connection.receive()]
    assert {answer["id"]: "isError" in answer["result"] for answer in answers} == {1: True, 2: False, 3: False}
    assert [message["id"] for message in json.loads(connection.received()[0])] == [2, 3]
    connection.send([call("guarded", 4)])
    assert connection.receive()[0]["id"] == 4
    assert len(connection.received()) == 1


def test_results_of_a_batch_reach_hooks(project: Project, connect: Connections) -> None:
    project.configure(AfterTool=project.hook(says={"systemMessage": "mind"}))
    connection = connect()
    connection.send([call("one", 1), {"jsonrpc": "2.0", "id": 2, "method": "ping"}])
    first, second = connection.receive(), connection.receive()
    batch, single = (first, second) if isinstance(first, list) else (second, first)
    assert [message["id"] for message in batch] == [2]
    assert single["result"]["content"][1]["text"] == "[System] mind"


def test_ids_of_two_types_are_two_calls(project: Project, connect: Connections) -> None:
    body = 'said = {"systemMessage": payload["tool_name"]}'
    project.configure(AfterTool=project.python_hook("name", body))
    connection = connect()
    connection.send(call("one", 1), call("two", "1"), call("three", 2))
    answers = [connection.receive() for _ in range(3)]
    said = {repr(answer["id"]): answer["result"]["content"][1]["text"] for answer in answers}
    assert said == {"1": "[System] one", "'1'": "[System] two", "2": "[System] three"}


@pytest.mark.parametrize("ident", ['"2"', '" 2\\n"', '"0x2"', '"2.0"', "2.0"])
def test_a_reply_belongs_to_the_call_that_a_client_takes_it_for(
    ident: str, project: Project, connect: Connections
) -> None:
    """Many clients read every id as a number."""
    project.configure(AfterTool=project.hook(says={"continue": False, "stopReason": "enough"}))
    connection = connect()
    reply = f'{{"jsonrpc":"2.0","id":{ident},"result":{{"content":[]}}}}'
    answer = connection.call("raw", 2, lines=[reply])
    assert "enough" in str(answer)
    assert repr(answer["id"]) == "2", "a client that compares strictly would wait for a later reply"
    assert connection.text("free") == "enough"
    assert [message["params"]["name"] for message in connection.received_calls()] == ["raw"]


@pytest.mark.parametrize("extra", ['"task":{"taskId":"1"}', '"resultType":"partial"', '"resultType":"input_required"'])
@pytest.mark.parametrize("content", ['"content":[{"type":"text","text":"secret"}]', '"structuredContent":{"a":1}'])
def test_a_result_with_content_is_one_whatever_else_it_has(
    content: str, extra: str, project: Project, connect: Connections
) -> None:
    project.configure(AfterTool=project.hook(says={"continue": False, "stopReason": "enough"}))
    connection = connect()
    reply = f'{{"jsonrpc":"2.0","id":1,"result":{{{content},{extra}}}}}'
    assert "enough" in str(connection.call("raw", 1, lines=[reply]))
    assert connection.text("free") == "enough"


def test_a_client_gets_one_result_and_it_is_the_one_that_hooks_saw(project: Project, connect: Connections) -> None:
    gate = project.note("gate")
    project.configure(AfterTool=project.hook(first=f"while [ ! -e '{gate}' ]; do sleep 0.02; done"))
    connection = connect()
    replies = [f'{{"jsonrpc":"2.0","id":{ident},"result":{{"content":[]}}}}' for ident in ("1", "1", '"1"')]
    notice = '{"jsonrpc":"2.0","method":"notifications/progress"}'
    connection.send(call("raw", 1, lines=[*replies, notice]))
    assert connection.receive()["method"] == "notifications/progress"
    gate.touch()
    assert connection.receive()["id"] == 1
    assert connection.end()[0] == 0
    assert connection.receive_bytes() == b""
    assert len(project.payloads()) == 1


def test_a_later_reply_reaches_hooks_too(project: Project, connect: Connections) -> None:
    """A client that takes the first one for invalid waits for the next."""
    project.configure(AfterTool=project.hook(says={"systemMessage": "mind"}))
    connection = connect()
    first, second = (json.dumps({"jsonrpc": "2.0", "id": ident, "result": {"content": []}}) for ident in (1, 2))
    assert "mind" in str(connection.call("raw", 1, lines=[first]))
    connection.send(call("raw", 2, lines=[first, second]))
    answers = [connection.receive(), connection.receive()]
    assert {answer["id"] for answer in answers} == {1, 2}
    assert all("mind" in str(answer) for answer in answers)


class Blocked(list[bytes]):
    """A side that reads nothing, so that no line is ever written."""

    def __init__(self) -> None:
        self.has_more = asyncio.Event()

    def write_later(self, line: bytes, then: Callable[[], None] | None = None) -> None:
        self.append(line)
        self.has_more.set()

    def close_later(self) -> None: ...


async def test_of_replies_to_one_call_hooks_see_one_at_a_time() -> None:
    seen = 0
    config = Config(enable_hooks=True)

    async def after(_: Any) -> None:
        nonlocal seen
        seen += 1
        await asyncio.sleep(0.01)

    Hooks(config).on("AfterTool", after)
    to_server, to_client = Blocked(), Blocked()
    connection = GuardedConnection(GuardedServer(config), to_server, to_client, lambda function, *of: function(*of))
    line = json.dumps(call("free")).encode()
    assert connection.concerns(line)
    connection.from_client(line)
    async with asyncio.timeout(DEADLINE):
        await to_server.has_more.wait()
        for _ in range(2):
            to_client.has_more.clear()
            for _ in range(10):
                connection.from_server(b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}')
            await to_client.has_more.wait()

    assert (seen, len(to_client)) == (2, 2)


def test_a_reply_that_strict_clients_do_not_take_for_one_becomes_an_error(
    project: Project, connect: Connections
) -> None:
    project.configure(AfterTool=project.hook())
    connection = connect()
    said = '"result":null', '"x":1', '"error":null', '"error":"no"', '"error":{"message":"no"}', '"error":{"code":1}'
    for ident, field in enumerate(said):
        answer = connection.call("raw", ident, lines=[f'{{"jsonrpc":"2.0","id":{ident},{field}}}'])
        assert answer["id"] == ident
        assert "a message of the server was not passed on: it" in answer["error"]["message"], field


@pytest.mark.parametrize("ident", ["null", "true", "[1]", '{"a":1}'])
def test_a_reply_with_an_id_that_is_none_is_dropped(ident: str, project: Project, connect: Connections) -> None:
    project.configure(AfterTool=project.hook(says={"systemMessage": "mind"}))
    connection = connect()
    replies = [f'{{"jsonrpc":"2.0","id":{each},"result":{{"content":[]}}}}' for each in (ident, 1)]
    answer = connection.call("raw", 1, lines=replies)
    assert (answer["id"], "mind" in str(answer)) == (1, True)


def test_content_that_is_not_a_list_of_texts_is_shown_to_hooks(project: Project, connect: Connections) -> None:
    project.configure(AfterTool=project.hook())
    connection = connect()
    for content in ("secret", {"type": "text", "text": "secret"}, [{"type": "text", "text": ["secret"]}], ["secret"]):
        reply = {"jsonrpc": "2.0", "id": 1, "result": {"content": content}}
        assert connection.call("raw", 1, lines=[json.dumps(reply)]) == reply
    assert ["secret" in str(each["tool_response"]["llmContent"]) for each in project.payloads()] == [True] * 4


def test_a_server_cannot_answer_a_call_that_it_has_not_got(project: Project, connect: Connections) -> None:
    gate = project.note("gate")
    hook = project.hook(first=f"while [ ! -e '{gate}' ]; do sleep 0.02; done", says=DENY)
    project.configure(BeforeTool={"matcher": "^guarded$", "hooks": [{"type": "command", "command": hook}]})
    connection = connect()
    connection.send(call("guarded", 7))
    notice = '{"jsonrpc":"2.0","method":"notifications/progress"}'
    forged = '{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"forged"}]}}'
    assert connection.call("raw", 8, lines=[forged, notice])["method"] == "notifications/progress"
    gate.touch()
    assert connection.receive()["result"]["content"][0]["text"] == "not today"


@pytest.mark.parametrize(
    "reply",
    [
        '{"jsonrpc":"2.0","id":1,"result":{"content":[],"content":[{"type":"text","text":"hidden"}]}}',
        '{"jsonrpc":"2.0","id":1,"result":{"content":[],"Content":[{"type":"text","text":"hidden"}]}}',
        '{"jsonrpc":"2.0","id":1,"result":{"content":[]},"RESULT":{"content":[]}}',
        '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a","text":"b"}]}}',
        '{"jsonrpc":"2.0","id":1,"result":[{"type":"text","text":"hidden"}]}',
        '{"jsonrpc":"2.0","id":1,"result":"hidden"}',
        '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"\x01"}]}}',
        '{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"n":NaN}}}',
    ],
)
def test_a_result_that_clients_read_differently_is_withheld(reply: str, project: Project, connect: Connections) -> None:
    project.configure(AfterTool=project.hook())
    connection = connect()
    answer = connection.call("raw", 1, lines=[reply])
    assert "a message of the server was not passed on: " in answer["error"]["message"]
    assert project.payloads() == []
    assert connection.text("free") == "ran free {}"


def test_a_line_of_the_server_that_is_not_json_is_withheld_while_calls_wait(
    project: Project, connect: Connections
) -> None:
    project.configure(AfterTool=project.hook())
    connection = connect()
    lines = ["started", '{"id":1,"result":', '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}']
    assert connection.call("raw", 1, lines=lines)["result"] == {"content": []}
    assert len(project.payloads()) == 1


def test_a_result_after_one_that_was_withheld_is_shown_to_hooks(project: Project, connect: Connections) -> None:
    """Some clients read `NaN`; the others take the next reply."""
    project.configure(AfterTool=project.hook())
    connection = connect()
    reply = '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
    connection.send(call("raw", 1, lines=[reply.replace("[]", "NaN"), reply]))
    assert ["error" in connection.receive() for _ in range(2)] == [True, False]
    assert len(project.payloads()) == 1


def test_a_second_call_with_the_same_id_is_refused(project: Project, connect: Connections) -> None:
    project.configure(AfterTool=project.hook())
    connection = connect()
    connection.send(call("silent", 1), call("free", 1))
    assert "the same id has not been answered" in connection.receive()["error"]["message"]
    connection.send([call("free", 1), call("free", 2), call("free", 2)])
    answers = [*connection.receive(), connection.receive()]
    assert sorted((answer["id"], "error" in answer) for answer in answers) == [(1, True), (2, False), (2, True)]


def test_a_call_without_an_id_is_checked(project: Project, connect: Connections) -> None:
    guard(project)
    blocked, allowed = call("guarded"), call("free")
    del blocked["id"], allowed["id"]
    connection = connect()
    connection.send(blocked, allowed)
    assert connection.text("free") == "ran free {}"
    connection.end()
    assert len(connection.received_calls()) == 2
    assert b"guarded" not in b"".join(connection.received())


def test_requests_of_the_server_are_not_answers(project: Project, connect: Connections) -> None:
    project.configure(AfterTool=project.hook(says={"systemMessage": "mind"}))
    connection = connect()
    assert connection.call("sampling")["method"] == "sampling/createMessage"
    assert connection.receive()["result"]["content"][1]["text"] == "[System] mind"


def test_a_protocol_error_is_not_a_result(project: Project, connect: Connections) -> None:
    project.configure(AfterTool=project.hook())
    connection = connect()
    assert connection.call("unknown")["error"]["message"] == "unknown tool"
    assert project.payloads() == []


def test_a_question_back_is_not_a_result(project: Project, connect: Connections) -> None:
    project.configure(BeforeTool=project.hook("before"), AfterTool=project.hook("after"))
    connection = connect()
    assert connection.call("asking")["result"]["resultType"] == "input_required"
    assert project.payloads("after") == []
    connection.call("free")
    assert (len(project.payloads("before")), len(project.payloads("after"))) == (2, 1)


def test_the_result_of_a_task_comes_later(project: Project, connect: Connections) -> None:
    project.configure(AfterTool=project.hook(says={"systemMessage": "mind"}))
    connection = connect()
    assert connection.call("long", 1, n=1)["result"]["task"]["taskId"] == "task-1"
    assert project.payloads() == []
    connection.send({"jsonrpc": "2.0", "id": 2, "method": "tasks/result", "params": {"taskId": "task-1"}})
    blocks = connection.receive()["result"]["content"]
    assert [block["text"] for block in blocks] == ["the task is done", "[System] mind"]
    assert project.payloads()[0]["tool_input"] == {"n": 1}
    connection.send({"jsonrpc": "2.0", "id": 3, "method": "tasks/result", "params": {"taskId": "task-1"}})
    assert connection.receive()["result"]["content"][1]["text"] == "[System] mind"
    assert len(project.payloads()) == 2


def test_other_messages_pass_byte_for_byte(project: Project, connect: Connections) -> None:
    guard(project)
    lines = [
        b'{"jsonrpc" : "2.0", "id":1,"method":"initialize","params":{"x":1.10}}\n',
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}\r\n',
        b'{"jsonrpc":"2.0","id":7,"result":{"roots":[]}}\n',
        b'{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"free","arguments":{"a":1.0}}}\n',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}\n',
    ]
    connection = connect()
    connection.send(*lines)
    assert {json.dumps(connection.receive()["id"]) for _ in range(2)} == {"1", '"a"'}
    assert connection.end()[0] == 0
    assert connection.received() == lines


def test_no_message_hides_behind_a_carriage_return(project: Project, connect: Connections) -> None:
    """Python's text streams end a line there, and JSON allows it between any two tokens."""
    guard(project)
    hidden = json.dumps(call("guarded", 2)).encode()
    connection = connect()
    connection.send(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":\r' + hidden + b"\r}}\r\n")
    connection.receive()
    line = connection.received()[0]
    assert line.endswith(b'"a": ' + hidden + b" }}\r\n")
    connection.send(call("raw", lines=['{"jsonrpc":"2.0","id":1,"result":{"a":\r{}\r}}']))
    assert connection.receive_bytes() == b'{"jsonrpc":"2.0","id":1,"result":{"a": {} }}\n'


def test_lines_in_pieces_and_huge_lines(project: Project, connect: Connections) -> None:
    project.configure(BeforeTool=project.hook(), AfterTool=project.hook())
    connection = connect()
    line = json.dumps(call("free", text="y" * 3_000_000)).encode() + b"\n"
    for start in range(0, 300, 100):
        connection.send(line[start : start + 100])
    connection.send(line[300:])
    assert connection.receive()["id"] == 1
    assert connection.received() == [line]
    assert len(connection.text("big")) == 10_000_000


def test_a_message_that_is_too_large_to_be_checked_is_dropped(project: Project, connect: Connections) -> None:
    guard(project)
    connection = connect()
    connection.send(call("guarded", padding="x" * (1 << 26)))
    assert "it is larger than 64 MiB" in connection.receive()["error"]["message"]
    assert connection.text("free") == "ran free {}"
    assert [message["params"]["name"] for message in connection.received_calls()] == ["free"]
    connection.send(call("huge"))
    assert connection.receive_bytes() == b"", "hooks might have been concerned with it"
    assert "the server sent a message of more than 64 MiB" in connection.end()[1]


def test_without_hooks_no_message_is_too_large(project: Project, connect: Connections) -> None:
    assert len(connect().text("huge")) == 1 << 26


def test_a_last_line_without_an_end_is_sent(project: Project, connect: Connections) -> None:
    guard(project)
    connection = connect()
    connection.send(json.dumps(call("free")).encode())
    assert connection.end()[0] == 0
    assert connection.receive()["id"] == 1


# Time.


def test_a_slow_hook_delays_nothing_else(project: Project, connect: Connections) -> None:
    """The hook waits for a file that appears only after the other answers have come."""
    gate = project.note("gate")
    hook = project.hook(first=f"while [ ! -e '{gate}' ]; do sleep 0.02; done")
    project.configure(BeforeTool={"matcher": "^slow$", "hooks": [{"type": "command", "command": hook}]})
    connection = connect()
    connection.send(call("slow", 1), call("free", 2), {"jsonrpc": "2.0", "id": 3, "method": "ping"})
    assert [connection.receive()["id"], connection.receive()["id"]] == [2, 3]
    gate.touch()
    assert connection.receive()["id"] == 1


def test_the_hooks_of_calls_run_in_parallel(project: Project, connect: Connections) -> None:
    meet = (
        f"echo >> '{project.note('count')}'; while [ $(wc -l < '{project.note('count')}') -lt 4 ]; do sleep 0.02; done"
    )
    project.configure(BeforeTool=project.hook(first=meet))
    connection = connect()
    connection.send(*(call("free", ident) for ident in range(4)))
    assert {connection.receive()["id"] for _ in range(4)} == {0, 1, 2, 3}


def test_a_cancelled_call_ends_its_hook_and_is_not_sent(project: Project, connect: Connections) -> None:
    command = project.endless_hook("endless")
    project.configure(BeforeTool={"matcher": "^slow$", "hooks": [{"type": "command", "command": command}]})
    connection = connect()
    connection.send(call("slow", 5))
    pids = project.pids("endless")
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
    connection.send(cancelled)
    until(lambda: not any(map(lives, pids)))
    assert connection.text("free") == "ran free {}"
    connection.end()
    assert [json.loads(line)["params"]["name"] for line in connection.received()] == ["free"]


def test_the_server_hears_that_its_call_is_cancelled(project: Project, connect: Connections) -> None:
    project.configure(BeforeTool=project.hook(), AfterTool=project.hook("after"))
    connection = connect()
    connection.send(call("silent", 5))
    until(lambda: len(connection.received()) == 1)
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
    connection.send(cancelled)
    until(lambda: len(connection.received()) == 2)
    assert json.loads(connection.received()[1]) == cancelled


def test_the_end_of_input_waits_for_calls(project: Project, connect: Connections) -> None:
    hook = project.hook(first="sleep 0.3")
    project.configure(BeforeTool=hook, AfterTool=hook)
    connection = connect()
    connection.send(call("free", 1), call("other", 2))
    assert connection.end()[0] == 0
    assert {connection.receive()["id"], connection.receive()["id"]} == {1, 2}
    assert connection.receive_bytes() == b""


# The two processes.


def test_the_exit_status_is_that_of_the_server(project: Project, connect: Connections) -> None:
    guard(project)
    connection = connect()
    connection.send(call("exit"))
    assert connection.receive_bytes() == b""
    assert connection.process.wait(DEADLINE) == 7


def test_a_signal_that_ended_the_server_ends_the_proxy(project: Project, connect: Connections) -> None:
    connection = connect()
    connection.send(call("killed"))
    assert connection.process.wait(DEADLINE) == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_are_for_the_server(number: signal.Signals, project: Project, connect: Connections) -> None:
    pids = project.note("pids")
    command = project.endless_hook("endless")
    project.configure(BeforeTool={"matcher": "^slow$", "hooks": [{"type": "command", "command": command}]})
    script = (
        "import os, signal; signal.signal(signal.SIGINT, signal.SIG_DFL); "
        f"open({str(pids)!r}, 'w').write(str(os.getpid()) + '\\n'); signal.pause()"
    )
    connection = connect(server=[sys.executable, "-c", script])
    until(lambda: pids.exists() and pids.read_text().endswith("\n"))
    connection.send(call("slow"))
    hooks = project.pids("endless")
    connection.process.send_signal(number)
    assert connection.process.wait(DEADLINE) == -number
    assert not any(map(lives, [int(pids.read_text()), *hooks]))


def test_a_process_that_the_server_leaves_behind_is_not_waited_for(project: Project, connect: Connections) -> None:
    connection = connect(server=["sh", "-c", "sleep 100 & exit 3"])
    assert connection.process.wait(DEADLINE) == 3


def test_a_client_that_goes_away_ends_the_server(project: Project) -> None:
    """Its next write fails, as if the client had been connected to it directly."""
    reading, writing = os.pipe()
    server = ["sh", "-c", "trap 'exit 9' PIPE; while echo hello; do sleep 0.05; done; exit 9"]
    process = subprocess.Popen(
        [*PROXY, "--", *server], stdin=subprocess.PIPE, stdout=writing, env=project.environment()
    )
    os.close(writing)
    assert os.read(reading, 6) == b"hello\n"
    os.close(reading)
    assert process.wait(DEADLINE) in (9, -signal.SIGPIPE)
    assert process.stdin is not None
    process.stdin.close()


def test_a_server_that_closes_its_input_is_noticed_by_the_client(project: Project, connect: Connections) -> None:
    connection = connect(server=["sh", "-c", "exec 0<&-; echo closed; sleep 30"])
    assert connection.receive_bytes() == b"closed\n"

    def is_noticed() -> bool:
        try:
            connection.send({"jsonrpc": "2.0", "method": "ping"})
        except BrokenPipeError:
            return True
        return False

    until(is_noticed)
    connection.process.send_signal(signal.SIGTERM)
    assert connection.process.wait(DEADLINE) == -signal.SIGTERM


@pytest.mark.parametrize("has_hooks", [False, True], ids=["unguarded", "guarded"])
def test_a_server_that_closes_its_output_is_noticed_by_the_client(
    has_hooks: bool, project: Project, connect: Connections
) -> None:
    if has_hooks:
        project.configure(BeforeTool=project.hook())
    connection = connect(server=["sh", "-c", "read line; exec 1>&-; sleep 30"])
    connection.send(call("free"))
    assert connection.receive_bytes() == b""
    connection.process.send_signal(signal.SIGTERM)
    assert connection.process.wait(DEADLINE) == -signal.SIGTERM


@pytest.mark.parametrize(("server", "status"), [("/no/such/server", 127), ("/etc/passwd", 126)])
def test_a_server_that_cannot_be_started(server: str, status: int, project: Project) -> None:
    ended = run("mcp-proxy", "--", server, cwd=project.root, env=project.environment())
    assert ended.status == status
    assert f"cannot start the MCP server: {server}" in ended.stderr
    assert ended.stdout == ""


# What is said.


def test_a_server_runs_without_hooks_that_are_not_approved_only_if_that_is_allowed(project: Project) -> None:
    guard(project)
    server = ["--", sys.executable, str(SERVER), str(project.note("received"))]

    def run_proxy(*options: str) -> Run:
        line = json.dumps(call("guarded")) + "\n"
        return run("mcp-proxy", *options, *server, cwd=project.root, env=project.environment(), stdin=line)

    refused = run_proxy()
    assert (refused.status, refused.stdout, project.note("received").exists()) == (1, "", False)
    ended = run_proxy("--allow-unguarded")
    for stderr in (refused.stderr, ended.stderr):
        assert stderr.count("not approved. ") == 1
        assert "llxprt-hooks trust" in stderr
    assert json.loads(ended.stdout)["result"]["content"][0]["text"] == "ran guarded {}"


def test_events_that_never_fire_are_reported(project: Project, connect: Connections) -> None:
    project.configure(BeforeModel=project.hook(), SessionStart=project.hook(), BeforeTool=project.hook())
    connection = connect()
    connection.text("free")
    printed = connection.end()[1]
    assert "hooks for BeforeModel run only for what the server asks the client's model or user: an MCP" in printed
    assert "hooks for SessionStart are configured but will not run" in printed
    assert "BeforeTool" not in printed


def test_an_alias_for_an_unknown_tool_is_reported_when_all_tools_are_known(
    project: Project, connect: Connections
) -> None:
    project.configure(BeforeTool=project.hook())
    aliases = ("--alias", "dat=read_file", "--alias", "lon=run_shell_command", "--alias", "other=write_file")

    def printed(*cursors: str) -> list[str]:
        connection = connect(*aliases)
        for cursor in cursors:
            connection.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": cursor}})
            connection.receive()
        return connection.end()[1].splitlines()

    assert printed("") == []
    assert printed("", "2", "", "2") == [
        f"llxprt-hooks: the alias `{alias}` has no effect: no tool has this name. Did you mean `{meant}`?"
        for alias, meant in (("dat", "data"), ("lon", "long"))
    ]


def test_matchers_without_a_tool_of_the_server_are_reported_once(project: Project, connect: Connections) -> None:
    guard(project, "^fre$")
    connection = connect("--server-name", "shop")
    for cursor in ("", "2", "", "2"):
        connection.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": cursor}})
        connection.receive()
    printed = connection.end()[1].splitlines()
    assert len(printed) == 2
    assert "the matcher `^fre$` matches none of the tools here" in printed[0]
    assert "Did you mean `free`?" in printed[0]
    names = "mcp__shop__data, mcp__shop__free, mcp__shop__long"
    assert printed[1] == f"llxprt-hooks: no hook matches a tool of this server, so nothing is checked: {names}"


def test_a_tool_is_guarded_under_its_own_name_and_with_that_of_its_server(
    project: Project, connect: Connections
) -> None:
    for matcher in ("^guarded$", "^mcp__shop__guarded$"):
        guard(project, matcher)
        assert connect("--server-name", "shop").text("guarded") == "not today"


def test_a_proxy_without_hooks_says_so(project: Project, connect: Connections) -> None:
    connection = connect()
    connection.text("free")
    nothing = f"no hooks are configured in {project.root}: nothing is checked. To use those of another project, pass -C"
    assert connection.end()[1].splitlines() == [f"llxprt-hooks: {nothing}"]
    pinned = connect("--server-name", "shop", "--pin").end()[1]
    assert pinned.startswith(f"llxprt-hooks: {nothing}".replace("nothing is", "only pinned definitions are"))
    listed = f"To see its hooks, run `llxprt-hooks list -C {project.root}`"
    for events in (
        {"AfterModel": project.hook()},
        {"BeforeTool": {"matcher": "(", "hooks": [{"type": "command", "command": "true"}]}},
    ):
        project.configure(**events)
        assert f"no hook of {project.root} runs in this proxy: nothing is checked. {listed}" in connect().end()[1]
    project.configure(AfterTool=project.hook())
    assert connect().end()[1] == ""
    project.configure(BeforeModel=project.hook())
    printed = connect("--require-hook", "BeforeModel").end()[1]
    assert "nothing is checked" not in printed


def test_hooks_are_logged(project: Project, connect: Connections) -> None:
    guard(project)
    connection = connect()
    connection.call("guarded")
    connection.end()
    assert b"not today" in project.log_file.read_bytes()


def test_wrong_usage(project: Project) -> None:
    for arguments in ([], ["--install", "claude", "--", "x"], ["--alias", "x", "--", "cat"]):
        assert run("mcp-proxy", *arguments, cwd=project.root, env=project.environment()).status == 64
