"""Arguments and results of MCP tools against the schemas that the server declares for them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from llxprt_hooks._support.logger import debug_logger
from llxprt_hooks._support.text import missing_extra, shorten

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

log = debug_logger("integrations:mcp")

_MAX_SHOWN: Final = 300
_DEEP: Final = 64
"""Levels of a value from which it is the value, not the schema, that cannot be checked."""


class DeclaredSchemas:
    """The schemas of a server's tools. Whatever cannot be checked passes, with one warning."""

    def __init__(self) -> None:
        self._tools: dict[str, Mapping[str, Any]] = {}
        self._validators: dict[tuple[str, str], Validator | None] = {}
        self._warned: set[str] = set()

    def declare(self, tools: list[Any]) -> None:
        """Take note of tools as the server lists them."""
        for tool in tools:
            if isinstance(tool, Mapping) and isinstance(name := tool.get("name"), str):
                self._tools[name] = tool
                for field in ("inputSchema", "outputSchema"):
                    self._validators.pop((name, field), None)

    def objection(self, tool_name: Any, field: str, value: Any) -> str | None:
        """Return how a value does not fit a tool's schema; None if it does, or if there is no usable schema."""
        if not isinstance(tool_name, str) or tool_name not in self._tools:
            return None
        key = (tool_name, field)
        try:
            if key not in self._validators:
                self._validators[key] = _validator(self._tools[tool_name].get(field))
            validator = self._validators[key]
            error = None if validator is None else next(validator.iter_errors(value), None)
        except ImportError as missing:
            self._warn(missing_extra("checking arguments against a server's schemas", "mcp", missing))
            return None
        except Exception as unusable:  # an invalid schema fails in any way: it is the server's
            if isinstance(unusable, RecursionError) and _has_level(value, _DEEP):
                return "it is nested too deeply to be checked"
            self._warn(f"the {field} of `{tool_name}` cannot be used, so nothing is checked against it: {unusable}")
            return None
        if error is None:
            return None
        place = f" (at `{error.json_path.removeprefix('$.')}`)" if error.path else ""
        return f"{shorten(error.message, _MAX_SHOWN)}{place}"

    def _warn(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            log.warning("%s", shorten(message, _MAX_SHOWN))


def _validator(schema: Any) -> Validator | None:
    if not isinstance(schema, dict):
        return None
    from jsonschema.validators import Draft202012Validator, extend, validator_for
    from referencing import Registry

    kind = validator_for(schema, default=Draft202012Validator)
    kind.check_schema(schema)
    # With an empty registry, a reference to another address is not fetched.
    exact: Any = extend  # which has types only where stubs are installed
    checked: Validator = exact(kind, {"multipleOf": _multiple_of})(schema, registry=Registry())
    return checked


def _has_level(value: Any, number: int) -> bool:
    """Whether there are values within values, so many levels down."""
    level = [value]
    for _ in range(number):
        level = [each for outer in level for each in _contents(outer)]
    return bool(level)


def _contents(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _multiple_of(validator: Validator, divisor: Any, value: Any, _: Any) -> Iterator[ValidationError]:
    """Compare the numbers as they are written: 19.99 is a multiple of 0.01, and divided as floats it is not."""
    from jsonschema import ValidationError

    if not validator.is_type(value, "number"):
        return
    is_finite = isinstance(value, int) or math.isfinite(value)  # which an integer of any length is
    if not is_finite or _as_written(value) % _as_written(divisor):
        yield ValidationError(f"{value!r} is not a multiple of {divisor!r}")


def _as_written(number: float) -> Fraction:
    return Fraction(number if isinstance(number, int) else repr(number))
