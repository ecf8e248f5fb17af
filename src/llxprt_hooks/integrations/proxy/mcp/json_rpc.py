"""JSON-RPC messages as bytes: what a message is about, and changes that leave all other bytes alone.

Programs differ in how they read an object in which a key is repeated, or spelled with other capitals: some take the
first field, some the last, some ignore case. Hooks must see the call that the server runs, so such a message is found
here and refused (D-113).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import msgspec

from llxprt_hooks._support.json_codec import NODE_WHITESPACE, decode_text, read_json, read_json_text, write_json
from llxprt_hooks._support.text import escape_for_terminal

Message = dict[str, Any]
Key = tuple[str, Any]

CALL: Final = "tools/call"
MAX_MESSAGE: Final = 64 * 1024**2
"""Bytes of a message that hooks can be asked about: more is refused, so that nobody fills the memory."""
PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32602, -32603

_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeError, RecursionError)


class Head(msgspec.Struct):
    """What has to be known of every message. The decoder resolves escapes, so no spelling of a method is missed."""

    method: Any
    id: Any
    tool: str
    """The tool that it calls; empty if it is not a call."""
    is_reply: bool


class UnclearError(ValueError):
    """Two programs may read a message differently."""


class _Key:
    """A key that differs from every other one, so that a dictionary keeps repeated fields."""

    __slots__ = ("text",)

    def __init__(self, _: type, text: str) -> None:
        self.text = text


_all_fields = msgspec.json.Decoder(dict[_Key, msgspec.Raw], dec_hook=_Key)
_raw_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])

_MAX_SHOWN: Final = 60
_NO_NAMES: Final[Mapping[str, str]] = {}


def _spellings(*names: str) -> dict[str, str]:
    return {name.casefold(): name for name in names}


_ENVELOPE: Final = _spellings("jsonrpc", "id", "method", "params", "result", "error")
_PARAMS: Final = _spellings("name", "arguments", "_meta", "task", "taskId", "requestId", "cursor")
_RESULT: Final = _spellings("content", "structuredContent", "isError", "task", "resultType", "tools", "_meta")


def head_of(line: bytes) -> Head | None:
    """Return the head of a message; None for a batch, and for a message that needs a closer look: see ``read``."""
    try:
        fields = _clear_fields(line, "the message", _ENVELOPE)
        method, ident = _plain_method(_decoded(fields, "method")), _decoded(fields, "id")
        params = _clear_object(fields.get("params"), "`params`", _PARAMS)
        tool = ""
        if method == CALL:
            tool = _plain_name(_decoded(params, "name"))
            _clear_object(params.get("arguments"), "`arguments`", _NO_NAMES)
        _clear_object(fields.get("result"), "`result`", _RESULT)
    except (*_UNREADABLE, UnclearError):
        return None
    return Head(method, ident, tool, method is None or "result" in fields)


def read(line: bytes) -> tuple[Any, str | None]:
    """Return a message or a batch, and what programs may read differently in it; None if there is nothing.

    It is as lenient as Node. Raises ``ValueError`` if the line is not valid JSON.
    """
    repeated: list[str] = []

    def make_object(pairs: list[tuple[str, Any]]) -> Message:
        made = dict(pairs)
        if len(made) < len(pairs):
            names = [name for name, _ in pairs]
            repeated.extend(name for name in made if names.count(name) > 1)
        return made

    message = _unrepeated(line)
    if message is None:
        message = read_json_text(decode_text(line), make_object)
    try:
        for each in message if isinstance(message, list) else [message]:
            _check(each)
    except UnclearError as error:
        return message, str(error)
    return message, f"it has the same key twice: {_listed(repeated[:1])}" if repeated else None


def read_leniently(line: bytes) -> Any:
    """Return what some programs may read in a line that is not valid JSON: with control characters, say, or `NaN`."""
    try:
        return json.loads(decode_text(line), strict=False)
    except (ValueError, RecursionError):
        return None


def _unrepeated(line: bytes) -> Any:
    """Return a message in which no key is repeated, at any depth; None if that is not certain.

    Of a repeated key, the decoder keeps one. So if encoding gives the same bytes again, there was none.
    """
    try:
        message = msgspec.json.decode(line)
        return message if msgspec.json.encode(message) == line.strip() else None
    except _UNREADABLE:
        return None


def _check(message: Any) -> None:
    if not isinstance(message, dict):
        raise UnclearError("a message must be an object")
    method, params, result = _plain_method(message.get("method")), message.get("params"), message.get("result")
    _check_names(message, "the message", _ENVELOPE)
    if isinstance(params, dict):
        _check_names(params, "`params`", _PARAMS)
        if method == CALL:
            _plain_name(params.get("name"))
            if isinstance(arguments := params.get("arguments"), dict):
                _check_names(arguments, "`arguments`", _NO_NAMES)
    if isinstance(result, dict):
        _check_names(result, "`result`", _RESULT)


def _clear_object(raw: msgspec.Raw | None, where: str, known: Mapping[str, str]) -> dict[str, msgspec.Raw]:
    """Return the fields of an object; none for another value, which no program reads as one."""
    is_object = raw is not None and bytes(memoryview(raw)[:1]) == b"{"
    return _clear_fields(raw, where, known) if is_object else {}


def _clear_fields(text: Any, where: str, known: Mapping[str, str]) -> dict[str, msgspec.Raw]:
    fields = _all_fields.decode(text)
    names = [key.text for key in fields]
    _check_names(names, where, known)
    return dict(zip(names, fields.values(), strict=True))


def _decoded(fields: Mapping[str, msgspec.Raw], name: str) -> Any:
    return msgspec.json.decode(raw) if (raw := fields.get(name)) is not None else None


def _check_names(names: Collection[str], where: str, known: Mapping[str, str]) -> None:
    """Raise ``UnclearError`` for keys that programs read differently. ``known``: how those are spelled that matter."""
    spelled = {name.casefold(): name for name in names}
    if len(spelled) < len(names):
        first = next(name for name in names if spelled[name.casefold()] is not name)
        again = spelled[first.casefold()]
        raise UnclearError(f"{where} has the same key twice, or in two spellings: {_listed([first, again])}")
    for folded, name in spelled.items():
        if known.get(folded, name) != name or (known and not name.isprintable()):
            raise UnclearError(f"{where} has a key that some programs read as another one: {_listed([name])}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{escape_for_terminal(name)[:_MAX_SHOWN]}`" for name in names)


def _plain_method(method: Any) -> Any:
    if method is None or method == CALL:
        return method
    if not isinstance(method, str):
        raise UnclearError("`method` is not a string")
    if not method.isprintable():
        raise UnclearError("`method` contains characters that cannot be printed")
    if method.strip().casefold() == CALL:
        raise UnclearError(f"`method` is another spelling of `{CALL}`")
    return method


def _plain_name(name: Any) -> str:
    """Return the name of a tool. What was not valid UTF-8 has become U+FFFD."""
    if not isinstance(name, str) or not name.isprintable() or "\ufffd" in name:
        raise UnclearError("`name` of tools/call must be a string of printable characters")
    return name


NO_ID: Final[Key] = ("none", None)


def key_of(ident: Any) -> Key:
    """Return an id as a key: ``1`` and ``"1"`` are two ids, ``1`` and ``true`` as well."""
    if isinstance(ident, str):
        return "text", ident
    if isinstance(ident, (int, float)) and not isinstance(ident, bool):
        return "number", ident
    return NO_ID


def as_number(key: Key) -> Any:
    """Return an id as a client compares it that reads every id as a number; other text stays text.

    >>> as_number(("text", " 0x2")), as_number(("number", 2.0)), as_number(("text", "a-2"))
    (2, 2.0, 'a-2')
    """
    kind, ident = key
    if kind != "text":
        return ident
    text = ident.strip(NODE_WHITESPACE)
    for read in (int, float, partial(int, base=0)):
        with suppress(ValueError):
            return read(text)
    return ident if text else 0


def replies_in(line: bytes) -> set[Key]:
    """Return the ids of the replies in a message or a batch; none if it is not valid JSON."""
    try:
        return replies_of(read_json(line))
    except ValueError:
        return set()


def replies_of(found: Any) -> set[Key]:
    """Return the ids of the replies in a message or a batch that has been read."""
    batch = [each for each in (found if isinstance(found, list) else [found]) if isinstance(each, dict)]
    return {key_of(each.get("id")) for each in batch if each.get("method") is None or "result" in each} - {NO_ID}


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
