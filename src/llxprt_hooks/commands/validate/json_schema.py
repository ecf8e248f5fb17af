"""JSON Schema (draft 2020-12) of hook settings, for completion and validation in editors."""

from __future__ import annotations

from typing import Any, Final

from llxprt_hooks.settings import Kind
from llxprt_hooks.settings.schema import GROUPS, HOOK, HOOKS, SETTINGS, hook_shape, own_fields, supported_types
from llxprt_hooks.settings.shape import ArrayOf, Field, Scalar, Shape, Value

_TYPES: Final = {
    Kind.STRING: "string",
    Kind.NUMBER: "number",
    Kind.BOOLEAN: "boolean",
    Kind.ARRAY: "array",
    Kind.OBJECT: "object",
}


def settings_schema() -> dict[str, Any]:
    """Return the schema of a settings file. It allows any other settings, and also fits an extension's file.

    >>> settings_schema()["properties"]["enableHooks"]["default"]
    False
    """
    return {
        **schema_header("Hooks of LLxprt Code, in settings.json"),
        **object_schema(SETTINGS),
        "$defs": {
            "hook": _hook(),
            **{f"{name}Hook": _hook_of_type(name) for name in supported_types()},
            "hooks": object_schema(HOOKS),
            **{f"{event}Group": object_schema(group) for event, group in GROUPS.items()},
        },
    }


def schema_header(title: str) -> dict[str, Any]:
    """Return the start of the schema of a file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        # Some editors need these to allow comments and trailing commas, as the parser does.
        "allowComments": True,
        "allowTrailingCommas": True,
    }


def _hook() -> dict[str, Any]:
    """Return the schema of a hook: the common fields, and a reference to the fields of its type."""
    common = {key: field for key, field in hook_shape(None).fields.items() if key not in own_fields()}
    return {
        **object_schema(Shape(HOOK.name, HOOK.description, common, open=True)),
        "allOf": [
            {
                "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
                "then": {"$ref": f"#/$defs/{name}Hook"},
            }
            for name in supported_types()
        ],
    }


def _hook_of_type(name: str) -> dict[str, Any]:
    """Return the schema of the fields of one hook type; no other fields are allowed."""
    shape = hook_shape(name)
    own = {key: field for key, field in shape.fields.items() if key in own_fields()}
    return {
        **object_schema(Shape(shape.name, f"A hook of type `{name}`.", own, open=True, example=shape.example)),
        "propertyNames": {"enum": list(shape.fields)},
    }


def object_schema(shape: Shape) -> dict[str, Any]:
    required = [key for key, field in shape.fields.items() if field.required]
    return {
        "type": "object",
        "description": shape.description,
        "properties": {key: _field(key, field) for key, field in shape.fields.items()},
        **({"required": required} if required else {}),
        # An open object may be described further by another schema.
        **({} if shape.open else {"additionalProperties": False}),
        **({"examples": [shape.example]} if shape.example else {}),
    }


def _field(key: str, field: Field) -> dict[str, Any]:
    schema = _value(field.value, key)
    if field.nullable:
        schema["type"] = [schema["type"], "null"]
    schema["description"] = field.description
    if field.default is not None:
        schema["default"] = field.default
    if field.deprecated:
        schema["deprecated"] = True
    return schema


def _value(value: Value, key: str) -> dict[str, Any]:
    if isinstance(value, Shape):
        return {"$ref": f"#/$defs/{value.name}"} if value.name in ("hook", "hooks") else object_schema(value)
    if isinstance(value, ArrayOf):
        element = value.element
        is_group = isinstance(element, Shape) and element.name == "group"
        items = {"$ref": f"#/$defs/{key}Group"} if is_group else _value(element, key)
        kind = ["boolean", "array"] if value.or_boolean else "array"
        return {"type": kind, "items": items, **({"minItems": 1} if value.not_blank else {})}
    return _scalar(value)


def _scalar(value: Scalar) -> dict[str, Any]:
    return {
        "type": _TYPES[value.kind],
        **({"enum": list(value.choices)} if value.choices else {}),
        **({"examples": list(value.suggestions)} if value.suggestions else {}),
        **({"exclusiveMinimum": value.above} if value.above is not None else {}),
        **({"pattern": r"\S"} if value.not_blank else {}),
    }
