"""JSON for payloads and answers: writing never fails, and reading is as lenient as Node's ``JSON.parse``.

A guard must never be skipped because of an encoding error, and an explicit "deny" must never be lost because of an odd
value next to it. So a value without a JSON form is written as text, and one nested too deeply as null. Reading accepts
a byte order mark, invalid UTF-8 inside strings, lone surrogates, ``1e999`` and unlimited nesting.

What hooks get has a lower limit, ``PAYLOAD_DEPTH``, because many JSON readers give up not far beyond it. A value that
was cut at ``MAX_DEPTH``, by this module or on another machine, still exceeds that limit, so it is noticed (D-31).
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import fields, is_dataclass
from json.decoder import JSONDecodeError, JSONDecoder
from typing import Any

import msgspec

NODE_WHITESPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""The characters that JavaScript's ``trim`` removes. Unlike ``str.strip``, it includes the byte order mark."""

MAX_DEPTH = 200
"""Values nested deeper are replaced by null: no field of the protocol is nested that deeply."""

PAYLOAD_DEPTH = 64
"""How many levels of objects and arrays a hook gets, the payload itself included: .NET's reader takes no more."""

TOO_DEEP = f"[nested deeper than {PAYLOAD_DEPTH} levels]"
"""What hooks get in place of a value that is nested deeper."""

HIDDEN_LEVELS = f"nested deeper than {PAYLOAD_DEPTH} levels, too deep to pass to hooks"
_MAX_INTEGER_BITS = 1024
HIDDEN_NUMBER = (
    "it contains a number that hooks cannot be shown: NaN, an infinite number such as 1e999, "
    f"or an integer of more than {_MAX_INTEGER_BITS} bits"
)

_FRAMES_PER_LEVEL = 4
"""How much of the stack it takes, at most, to convert one level of a value."""

_MAX_INTEGER_DIGITS = 400


def decode_text(data: bytes) -> str:
    """Decode a stream; bytes that are not valid UTF-8 become U+FFFD, as in Node."""
    return data.decode("utf-8", "replace")


def read_json(data: bytes) -> object:
    """Decode one JSON document; raises ``ValueError`` if the data is not valid JSON."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return read_json_text(decode_text(data))


def read_json_object(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a line; None if it is something else."""
    try:
        value = read_json(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def read_json_text(text: str, make_object: Callable[[list[tuple[str, Any]]], object] | None = None) -> object:
    """Decode one JSON document from text, ignoring surrounding white space and a byte order mark.

    ``make_object`` gets the fields of each object in order, repeated ones too; without it, the last one counts.
    """
    decoder = _decoder if make_object is None else _new_decoder(make_object)
    text = text.strip(NODE_WHITESPACE)
    try:
        return decoder.decode(text)
    except RecursionError:
        return _read_deep(text, decoder)


def read_arguments(text: str) -> object:
    """Decode the arguments of a tool call: all that Python's ``json`` accepts, and any depth.

    Tools read their arguments with ``json``, which accepts ``NaN``. If this did not, a model could hide arguments from
    hooks. Values deeper than ``MAX_DEPTH`` may be null: such arguments are not for a tool.
    """
    try:
        return json.loads(text)
    except RecursionError:
        return read_json_text(text)


def repeated_key(text: str) -> str | None:
    """Return a key that one object of a JSON document has twice; readers disagree about which of them counts.

    >>> repeated_key('{"decision": "deny", "decision": "allow"}'), repeated_key('{"a": {"b": 1}, "b": 2}')
    ('decision', None)
    """
    repeated: list[str] = []

    def read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            repeated.append(Counter(name for name, _ in pairs).most_common(1)[0][0])
        return fields

    try:
        value = JSONDecoder(object_pairs_hook=read_object).decode(text.strip(NODE_WHITESPACE))
    except (ValueError, RecursionError):
        return None
    if isinstance(value, str):
        return repeated_key(value)
    return repeated[0] if repeated else None


def write_json(value: object) -> bytes:
    """Encode a value as JSON; never fails."""
    try:
        return _encoder.encode(value)
    except Exception:  # a value that the fast encoder refuses, or whose own conversion raised
        return json.dumps(_plain(value), separators=(",", ":")).encode("ascii")


def write_payload(value: object) -> bytes:
    """Encode what a hook gets; values beyond ``PAYLOAD_DEPTH`` are replaced by ``TOO_DEEP``.

    Raises ``RecursionError`` near the end of the stack, because a guard must not see less than what it guards.
    """
    try:
        encoded = _encoder.encode(value)
        if encoded.count(b"{") + encoded.count(b"[") <= PAYLOAD_DEPTH or not is_too_deep(value):
            return encoded
    except Exception:  # as in write_json
        require_stack()
    return write_json(_cut(_plain(value), PAYLOAD_DEPTH) if is_too_deep(value) else value)


def require_stack(frames: int = _FRAMES_PER_LEVEL * PAYLOAD_DEPTH) -> None:
    """Raise ``RecursionError`` if less of the stack is left than it takes to convert a payload."""
    if frames:
        require_stack(frames - 1)


def is_too_deep(value: object, levels: int = PAYLOAD_DEPTH) -> bool:
    """Whether the JSON form of a value has more than this many levels of objects and arrays.

    >>> is_too_deep({"a": [1]}, 2), is_too_deep({"a": [[1]]}, 2)
    (False, True)
    """
    return _why_hidden(value, levels, _SCALARS) is not None


def why_hidden(value: object, levels: int = PAYLOAD_DEPTH) -> str | None:
    """Return why hooks cannot be shown all of a value: its depth, or a number for which they would get null.

    >>> why_hidden({"a": [1.5]}), why_hidden({"amount": float("inf")}) == HIDDEN_NUMBER
    (None, True)
    """
    return _why_hidden(value, levels, _TEXTS)


def _why_hidden(value: object, levels: int, skipped: Container[type]) -> str | None:
    try:
        if (why := _find_hidden(value, levels, skipped)) != HIDDEN_LEVELS:
            return why
    except KeyError:  # an object whose JSON form has to be made first
        pass
    return _find_hidden(_plain(value, hidden=math.nan), levels, skipped)  # a cycle is cut there


def _find_hidden(value: object, levels: int, skipped: Container[type]) -> str | None:
    """Look at a value of JSON's own types, level by level; raises ``KeyError`` for a value of another type."""
    level = [value]
    for _ in range(levels):
        level = [
            item
            for each in level
            for item in (each.values() if type(each) is dict else _ITEMS[type(each)](each))
            if type(item) not in skipped
        ]
        if not level:
            return None
        if numbers := [item for item in level if type(item) in _NUMBERS]:
            if not all(map(_is_shown, numbers)):
                return HIDDEN_NUMBER
            level = [item for item in level if type(item) not in _NUMBERS]
        if len(level) > _SHARED:
            level = list({id(item): item for item in level}.values())
    return HIDDEN_LEVELS if level else None


def _is_shown(number: Any) -> bool:
    return number.bit_length() <= _MAX_INTEGER_BITS if isinstance(number, int) else math.isfinite(number)


_TEXTS: frozenset[type] = frozenset({str, bool, type(None), bytes})
_NUMBERS: frozenset[type] = frozenset({int, float})
_SCALARS = _TEXTS | _NUMBERS
_ITEMS: Mapping[type, Callable[[Any], Iterable[Any]]] = {
    list: iter,
    tuple: iter,
    **dict.fromkeys(_SCALARS, lambda _: ()),
}
_SHARED = 10_000
"""Beyond this, each value of a level is visited once: one that holds itself twice would double the level each time."""


def _cut(value: Any, levels: int) -> object:
    """Return a plain value with ``TOO_DEEP`` in place of what is nested deeper."""
    if not isinstance(value, (dict, list)):
        return value
    if not levels:
        return TOO_DEEP
    if isinstance(value, list):
        return [_cut(item, levels - 1) for item in value]
    return {key: _cut(item, levels - 1) for key, item in value.items()}


def _reject_constant(name: str) -> object:
    raise ValueError(f"{name} is not valid JSON")


def _integer(digits: str) -> int | float:
    # Python refuses to convert very long digit strings; Node reads them as a float.
    return int(digits) if len(digits) < _MAX_INTEGER_DIGITS else float(digits)


def _new_decoder(make_object: Callable[[list[tuple[str, Any]]], object] | None = None) -> JSONDecoder:
    return JSONDecoder(object_pairs_hook=make_object, parse_constant=_reject_constant, parse_int=_integer)


_decoder = _new_decoder()


def _describe(value: object) -> object:
    """Convert an object that the encoder does not know: SDK models to their API's JSON, others to text."""
    for kind, convert in _BASES:
        if isinstance(value, kind):
            return convert(value)
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)


_BASES: tuple[tuple[type, Callable[[Any], object]], ...] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
)
"""How to convert an instance of a subclass to the base class, whatever the subclass has overridden."""

_encoder = msgspec.json.Encoder(enc_hook=_describe)


def _plain(value: object, inside: tuple[int, ...] = (), hidden: float | None = None) -> object:
    """Return the value in JSON's own types, with ``hidden`` for each number that hooks cannot be shown.

    ``inside`` holds the ids of the enclosing values, to detect cycles.
    """
    if value is None or value is True or value is False or type(value) is str:
        return value
    if id(value) in inside or len(inside) > MAX_DEPTH:
        return None
    try:
        convert = next((convert for kind, convert in _PLAIN_FORMS if isinstance(value, kind)), _plain_object)
        return convert(value, (*inside, id(value)), hidden)
    except Exception:  # the object's own conversion failed, or the stack is exhausted
        return f"<{type(value).__name__}>"


def _plain_number(value: Any, _: tuple[int, ...], hidden: float | None) -> float | None:
    number = int.__int__(value) if isinstance(value, int) else float.__float__(value)
    return number if _is_shown(number) else hidden


def _plain_mapping(value: Mapping[object, object], inside: tuple[int, ...], hidden: float | None) -> dict[str, object]:
    return {_plain_key(key): _plain(item, inside, hidden) for key, item in value.items()}


def _plain_key(key: object) -> str:
    plain = _plain(key)
    if isinstance(plain, str):
        return plain
    try:
        return str(key)
    except Exception:  # an integer with too many digits
        return f"<{type(key).__name__}>"


def _plain_items(value: Any, inside: tuple[int, ...], hidden: float | None) -> list[object]:
    return [_plain(item, inside, hidden) for item in value]


def _plain_object(value: Any, inside: tuple[int, ...], hidden: float | None) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return _plain({field.name: getattr(value, field.name) for field in fields(value)}, inside, hidden)
    try:
        form = msgspec.to_builtins(value)  # enumerations, dates and the like, as the fast encoder writes them
    except Exception:
        form = _describe(value)
    return _plain(form, inside, hidden)


_PLAIN_FORMS: tuple[tuple[type | tuple[type, ...], Callable[[Any, tuple[int, ...], float | None], object]], ...] = (
    (str, lambda value, *_: str.__str__(value)),
    ((int, float), _plain_number),
    ((bytes, bytearray), lambda value, *_: base64.b64encode(value).decode("ascii")),
    (Mapping, _plain_mapping),
    ((list, tuple, set, frozenset), _plain_items),
)


def _read_deep(text: str, decoder: JSONDecoder) -> object:
    """Read JSON of any depth, ``MAX_DEPTH`` levels at a time; values nested deeper become null, but must be valid."""
    pieces: list[list[str]] = [[]]  # of the text, and of each open container at a multiple of MAX_DEPTH
    depth = start = 0
    for token in _STRING_OR_BRACKET.finditer(text):
        if token[0] in ("[", "{"):
            if depth > 0 and depth % MAX_DEPTH == 0:
                pieces[-1] += [text[start : token.start()], "null"]
                pieces.append([])
                start = token.start()
            depth += 1
        elif token[0] in ("]", "}"):
            depth -= 1
            if depth > 0 and depth % MAX_DEPTH == 0:
                decoder.decode("".join([*pieces.pop(), text[start : token.end()]]))
                start = token.end()
    if len(pieces) > 1:
        raise JSONDecodeError("Expecting ',' delimiter", text, len(text))
    return decoder.decode("".join([*pieces.pop(), text[start:]]))


_STRING_OR_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\Z)|[\[\]{}]', re.DOTALL)
"""The text of an unfinished string reaches to the end, so that it is not searched again from each quote inside."""
