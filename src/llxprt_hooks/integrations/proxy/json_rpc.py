"""JSON-RPC messages as bytes: what a message is about, and changes that leave all other bytes alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from llxprt_hooks._support.json_codec import write_json

Message = dict[str, Any]
Key = tuple[str, Any]

_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeError, RecursionError)


class Head(msgspec.Struct):
    """What has to be known of every message. The decoder resolves escapes, so no spelling of a method is missed."""

    method: Any = None
    id: Any = msgspec.UNSET
    params: msgspec.Raw = msgspec.Raw(b"{}")


class _CallParams(msgspec.Struct):
    name: Any = None


_head = msgspec.json.Decoder(Head)
_call_params = msgspec.json.Decoder(_CallParams)
_raw_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


def head_of(line: bytes) -> Head | None:
    """Return the head of a message; None for a batch, and for something that only a lenient reader reads."""
    try:
        return _head.decode(line)
    except _UNREADABLE:
        return None


def called_tool(head: Head) -> Any:
    """Return the name of the tool that a message calls, whatever its type; None if it has none that can be read."""
    try:
        return _call_params.decode(head.params).name
    except _UNREADABLE:
        return None


NO_ID: Final[Key] = ("none", None)


def key_of(ident: Any) -> Key:
    """Return an id as a key: ``1`` and ``"1"`` are two ids, ``1`` and ``true`` as well."""
    if isinstance(ident, str):
        return "text", ident
    if isinstance(ident, (int, float)) and not isinstance(ident, bool):
        return "number", ident
    return NO_ID


def params_of(message: Message) -> Message:
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def edited(line: bytes, message: Message, path: Sequence[str], changes: Message, *removed: str) -> bytes:
    """Return a message with other fields at a path. All else keeps its bytes, also what this program cannot express.

    >>> edited(b'{"id": 1.50, "params": {"a": 1, "b": 2}}', {}, ("params",), {"a": 3})
    b'{"id":1.50,"params":{"a":3,"b":2}}\\n'
    """
    try:
        return _edit_raw(line, path, changes, removed) + b"\n"
    except _UNREADABLE:
        return write_json(_edit(message, path, changes, removed)) + b"\n"


def _edit_raw(text: bytes, path: Sequence[str], changes: Message, removed: Sequence[str]) -> bytes:
    fields = _raw_fields.decode(text)
    if path:
        inner = bytes(fields.get(path[0], b"{}"))
        fields[path[0]] = msgspec.Raw(_edit_raw(inner, path[1:], changes, removed))
    else:
        fields |= {name: msgspec.Raw(write_json(value)) for name, value in changes.items()}
        fields = {name: value for name, value in fields.items() if name not in removed}
    return msgspec.json.encode(fields)


def _edit(message: Message, path: Sequence[str], changes: Message, removed: Sequence[str]) -> Message:
    if path:
        return {**message, path[0]: _edit(message.get(path[0]) or {}, path[1:], changes, removed)}
    return {name: value for name, value in {**message, **changes}.items() if name not in removed}
