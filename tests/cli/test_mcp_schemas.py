"""``mcp-proxy`` checks guarded calls against the schemas that the server declares, before any hook runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks.integrations.mcp_schemas import DeclaredSchemas

if TYPE_CHECKING:
    from tests.support.mcp_connection import Connections
    from tests.support.project import Project

AMOUNT = {
    "type": "object",
    "properties": {"amount": {"type": "integer", "maximum": 10}, "to": {"enum": ["ada"]}},
    "required": ["amount"],
    "additionalProperties": False,
}
NUMBER = {"type": "object", "properties": {"n": {"type": "string"}}}
MISFITS: list[dict[str, Any]] = [{}, {"amount": "5"}, {"amount": 11}, {"amount": 5, "to": "eve"}, {"amount": 5, "x": 1}]


def offer(project: Project, *tools: Any) -> None:
    project.note("tools-list.json").write_text(json.dumps({"tools": tools}))
    project.configure(BeforeTool=project.hook("before"), AfterTool=project.hook("after"))


def test_arguments_that_do_not_fit_reach_neither_hooks_nor_the_server(project: Project, connect: Connections) -> None:
    offer(project, {"name": "pay", "inputSchema": AMOUNT})
    connection = connect()
    connection.send({"jsonrpc": "2.0", "id": 9, "method": "tools/list"})
    connection.receive()
    refused = [connection.call("pay", **arguments)["result"] for arguments in MISFITS]
    assert [result["isError"] for result in refused] == [True] * len(MISFITS)
    assert (
        "the arguments do not fit the input schema of `pay`: 'amount' is a required" in refused[0]["content"][0]["text"]
    )
    assert "(at `amount`)" in refused[1]["content"][0]["text"]
    assert project.payloads("before") == []
    assert connection.text("pay", amount=5, to="ada").startswith("ran pay")
    assert len(connection.received_calls()) == 1
    assert len(project.payloads("before")) == 1


def test_a_result_that_does_not_fit_is_an_error_for_hooks_and_the_client(
    project: Project, connect: Connections
) -> None:
    offer(project, {"name": "data", "inputSchema": {}, "outputSchema": NUMBER})
    for options in ((), ("--no-check",)):
        connection = connect(*options)
        connection.send({"jsonrpc": "2.0", "id": 9, "method": "tools/list"})
        connection.receive()
        result = connection.call("data")["result"]
        assert ("structuredContent" in result) == bool(options)
        assert "1.5 is not of type 'string' (at `n`)" in json.dumps(result) or options
    assert ["error" in each["tool_response"] for each in project.payloads("after")] == [True, False]


@pytest.mark.parametrize(
    "schema",
    [{"type": "nonsense"}, {"$ref": "http://127.0.0.1:9/secret"}, {"pattern": "("}, {"$ref": "#"}, 7],
    ids=str,
)
def test_a_schema_that_cannot_be_used_refuses_nothing(schema: Any) -> None:
    schemas = DeclaredSchemas()
    schemas.declare([{"name": "a", "inputSchema": schema}, "no tool", {"name": 7}])
    assert schemas.objection("a", "inputSchema", {"b": 1}) is None
    assert schemas.objection("unknown", "inputSchema", {}) is None


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        (19.99, True),
        (20, True),
        (1e300, True),
        (10**400, True),
        (19.995, False),
        (float("inf"), False),
        (float("nan"), False),
        ("x", True),
    ],
)
def test_numbers_are_divided_as_they_are_written(value: Any, fits: bool) -> None:
    schemas = DeclaredSchemas()
    schemas.declare([{"name": "a", "inputSchema": {"properties": {"price": {"multipleOf": 0.01}}}}])
    assert (schemas.objection("a", "inputSchema", {"price": value}) is None) is fits


def test_no_number_keeps_the_other_arguments_from_being_checked() -> None:
    schemas = DeclaredSchemas()
    schemas.declare([{"name": "a", "inputSchema": {"properties": {"n": {"multipleOf": 5}, "path": {"maxLength": 1}}}}])
    assert "'/etc' is too long" in str(schemas.objection("a", "inputSchema", {"n": 10**400, "path": "/etc"}))


def test_no_depth_keeps_the_other_arguments_from_being_checked() -> None:
    tree = {"properties": {"child": {"$ref": "#"}, "path": {"maxLength": 1}}}
    schemas = DeclaredSchemas()
    schemas.declare([{"name": "a", "inputSchema": tree}])
    arguments: dict[str, Any] = {"child": {}, "path": "/etc"}
    for _ in range(900):
        arguments["child"] = {"child": arguments["child"]}
    assert schemas.objection("a", "inputSchema", arguments) == "it is nested too deeply to be checked"
    assert schemas.objection("a", "inputSchema", {"child": {"child": {}}}) is None


@pytest.mark.parametrize(
    ("schema", "objection"),
    [
        ({"properties": {"a": {}}}, None),
        ({"properties": {"a": {}}, "additionalProperties": True}, None),
        ({"properties": {"a": {}}, "additionalProperties": False}, "('b' was unexpected)"),
        ({"properties": {"a": {}}, "unevaluatedProperties": False}, "('b' was unexpected)"),
    ],
    ids=str,
)
def test_only_a_schema_that_says_so_refuses_arguments_that_it_does_not_declare(
    schema: Any, objection: str | None
) -> None:
    schemas = DeclaredSchemas()
    schemas.declare([{"name": "a", "inputSchema": schema}])
    found = schemas.objection("a", "inputSchema", {"a": 1, "b": 2})
    assert found is None if objection is None else objection in str(found)
