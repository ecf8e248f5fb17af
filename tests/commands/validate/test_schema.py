"""The JSON Schema: valid itself, accepting what is right and rejecting what is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from llxprt_hooks.commands.validate import settings_schema
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings import parse
from tests.commands.validate.marks import command, field, group, hook, settings

jsonschema = pytest.importorskip("jsonschema", reason="a development dependency")


@pytest.fixture(scope="module")
def validator() -> Any:
    return jsonschema.Draft202012Validator(settings_schema())


def test_it_is_a_schema() -> None:
    schema = settings_schema()

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema)
    json.dumps(schema)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{ "theme": "dark", "tools": { "core": [], "enableHooks": true }, "$schema": "x" }',
        settings('"BeforeTool": []'),
        settings('"enabled": true, "disabled": ["x"]'),
        command("true"),
        command("true", "SessionEnd"),
        group('"matcher": "glob", "sequential": true'),
        group('"matcher": null'),
        field('"timeout": 0.5, "name": "x", "description": "y", "failClosed": true'),
        '{ "hooksConfig": { "enabled": true, "disabled": ["x"], "notifications": false } }',
        '{ "hooksConfig": { "environment": { "deny": ["A*"] } } }',
    ],
)
def test_valid_settings_are_accepted(validator: Any, text: str) -> None:
    assert [error.message for error in validator.iter_errors(parse(text).to_value())] == []


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("[]", ""),
        ('{ "enableHooks": "true" }', "enableHooks"),
        (settings('"PreToolUse": []'), "hooks"),
        (settings('"BeforeTool": {}'), "hooks/BeforeTool"),
        (group('"Matcher": "glob"'), "hooks/BeforeTool/0"),
        (group('"matcher": ["glob"]'), "hooks/BeforeTool/0/matcher"),
        (settings('"BeforeTool": [{ "matcher": "glob" }]'), "hooks/BeforeTool/0"),
        (hook('"type": "Command", "command": "true"'), "hooks/BeforeTool/0/hooks/0/type"),
        (hook('"type": "command"'), "hooks/BeforeTool/0/hooks/0"),
        (hook('"command": "true"'), "hooks/BeforeTool/0/hooks/0"),
        (command(" "), "hooks/BeforeTool/0/hooks/0/command"),
        (field('"timeout": 0'), "hooks/BeforeTool/0/hooks/0/timeout"),
        (field('"timeout": "5s"'), "hooks/BeforeTool/0/hooks/0/timeout"),
        (field('"url": "x"'), "hooks/BeforeTool/0/hooks/0"),
        (settings('"disabled": "x"'), "hooks/disabled"),
        ('{ "hooksConfig": { "disabled": "x" } }', "hooksConfig/disabled"),
        ('{ "hooksConfig": { "environment": { "only": [] } } }', "hooksConfig/environment"),
        ('{ "hooksConfig": { "audit": { "nats": { "servers": [] } } } }', "hooksConfig/audit/nats/servers"),
    ],
)
def test_invalid_values_are_rejected_at_their_position(validator: Any, text: str, path: str) -> None:
    errors = list(validator.iter_errors(parse(text).to_value()))

    assert ["/".join(map(str, error.absolute_path)) for error in errors] == [path]


def test_everything_is_described(validator: Any) -> None:
    undescribed: list[str] = []

    def walk(schema: dict[str, Any], path: str) -> None:
        for key, value in schema.get("properties", {}).items():
            if not value.get("description"):
                undescribed.append(f"{path}/{key}")
            walk(value, f"{path}/{key}")

    schema = settings_schema()
    walk(schema, "")
    for name, definition in schema["$defs"].items():
        walk(definition, name)
    assert undescribed == []


def test_defaults_are_there() -> None:
    schema = settings_schema()
    hook_schema = schema["$defs"]["hook"]["properties"]

    assert schema["properties"]["enableHooks"]["default"] is False
    assert hook_schema["timeout"]["default"] == 60000
    assert hook_schema["failClosed"]["default"] is False
    assert hook_schema["type"]["enum"] == ["command", "http", "nats"]


def test_every_event_can_be_completed_with_what_it_matches() -> None:
    definitions = settings_schema()["$defs"]

    assert set(definitions["hooks"]["properties"]) == {*HookEventName, "enabled", "disabled"}
    assert "startup" in definitions["SessionStartGroup"]["properties"]["matcher"]["examples"]
    assert definitions["BeforeModelGroup"]["properties"]["matcher"]["deprecated"] is True


def test_examples_are_valid(validator: Any) -> None:
    schema = settings_schema()
    for name, definition in schema["$defs"].items():
        for example in definition.get("examples", ()):
            part = {"$ref": f"#/$defs/{name}", "$defs": schema["$defs"]}
            assert list(jsonschema.Draft202012Validator(part).iter_errors(example)) == [], name
