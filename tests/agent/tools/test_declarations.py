"""What the model is told about the tools, and what happens when it does not keep to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.genai import types

from llxprt_hooks.agent.tools import TOOLS, ToolKind
from tests.agent.tools.calls import call, fail, message_of

if TYPE_CHECKING:
    from llxprt_hooks.agent.tools import Workspace

PARAMETERS = {
    "read_file": ["file_path"],
    "write_file": ["file_path", "content"],
    "replace": ["file_path", "old_string", "new_string"],
    "list_directory": ["dir_path"],
    "glob": ["pattern"],
    "search_file_content": ["pattern", "dir_path"],
    "run_shell_command": ["command", "description", "dir_path"],
}
OPTIONAL = {"search_file_content": {"dir_path"}, "run_shell_command": {"description", "dir_path"}}
REQUIRED = [
    (tool, name) for tool, names in PARAMETERS.items() for name in names if name not in OPTIONAL.get(tool, set())
]


def test_there_are_seven_in_a_fixed_order() -> None:
    assert {name: list(tool.parameters["properties"]) for name, tool in TOOLS.items()} == PARAMETERS
    assert list(TOOLS) == list(PARAMETERS)
    assert all(name == tool.name for name, tool in TOOLS.items())


def test_only_what_is_needed_is_required() -> None:
    required = [(name, parameter) for name, tool in TOOLS.items() for parameter in tool.parameters["required"]]

    assert required == REQUIRED


def test_kinds_settle_what_needs_approval() -> None:
    kinds = {name: tool.kind for name, tool in TOOLS.items() if tool.kind is not ToolKind.READ}

    assert kinds == {"write_file": ToolKind.EDIT, "replace": ToolKind.EDIT, "run_shell_command": ToolKind.EXECUTE}


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_sdk_takes_each_declaration_and_everything_is_described(name: str) -> None:
    declaration = TOOLS[name].declaration()

    types.FunctionDeclaration(**declaration)
    schema = declaration["parameters_json_schema"]
    assert schema["type"] == "object"
    assert "additionalProperties" not in schema
    assert declaration["description"].endswith(".")
    assert all(p["type"] == "string" and p["description"].endswith(".") for p in schema["properties"].values())


@pytest.mark.parametrize(("tool", "missing"), REQUIRED)
async def test_a_missing_argument_is_named(workspace: Workspace, tool: str, missing: str) -> None:
    given = {name: "x" for name in TOOLS[tool].parameters["required"] if name != missing}

    message = await fail(workspace, tool, **given)

    assert f"{tool} needs the string `{missing}`" in message
    assert all(f"`{name}`" in message for name in given)


async def test_an_argument_under_another_name_is_reported(workspace: Workspace) -> None:
    message = await fail(workspace, "read_file", path="a.txt")

    assert message == "read_file needs the string `file_path`, but got only `path`."


@pytest.mark.parametrize(
    ("value", "told"),
    [(7, "a number"), (7.5, "a number"), (True, "a boolean"), ([], "an array"), ({}, "an object"), (b"", "bytes")],
)
async def test_an_argument_of_the_wrong_type_is_reported(workspace: Workspace, value: Any, told: str) -> None:
    message = await fail(workspace, "write_file", file_path="a.txt", content=value)

    assert "write_file expects a string as `content`" in message
    assert told in message


async def test_a_wrong_optional_argument_is_an_error_too(workspace: Workspace) -> None:
    assert "`dir_path`" in await fail(workspace, "run_shell_command", command="true", dir_path=3)


async def test_null_is_as_good_as_absent(workspace: Workspace) -> None:
    result = await call(workspace, "run_shell_command", command="true", description=None, dir_path=None)
    assert result.error is None

    message = message_of(await call(workspace, "read_file", file_path=None))
    assert "`file_path`" in message


async def test_unknown_arguments_are_ignored(workspace: Workspace) -> None:
    result = await call(workspace, "write_file", file_path="a.txt", content="x", modified_by_user=True)

    assert result.error is None
