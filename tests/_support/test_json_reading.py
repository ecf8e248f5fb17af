"""Reading JSON as leniently as Node's ``JSON.parse``, and no more: an odd but explicit deny still blocks (D-04).

Both tables were checked against ``JSON.parse(stdout.toString("utf8").trim())`` of Node 20.
"""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import example, given

from llxprt_hooks._support.json_codec import read_arguments, read_json, read_json_text, write_json
from llxprt_hooks.core.protocol.exit_codes import read_outcome
from llxprt_hooks.process import Completed
from tests.support.endings import any_json

DEEP = 12_000
"""More than the stack of any Python holds."""
OPEN, CLOSE = b"[" * DEEP, b"]" * DEEP
OPEN_OBJECTS, CLOSE_OBJECTS = b'{"a":' * DEEP, b"}" * DEEP

ACCEPTED = {
    "byte order mark": '\ufeff{"decision":"deny"}'.encode(),
    "no-break and other wide spaces around": '\u00a0\u2003{"decision":"deny"}\u3000\ufeff'.encode(),
    "vertical tab and form feed around": b'\v\f{"decision":"deny"}\n\r\t',
    "invalid UTF-8 in a string": b'{"decision":"deny","reason":"a\xff\xc3b"}',
    "encoded surrogate and cut sequence in a string": b'{"decision":"deny","reason":"\xed\xa0\x80\xf0\x9f"}',
    "lone surrogate": b'{"decision":"deny","reason":"\\ud800"}',
    "surrogates in the wrong order": b'{"decision":"deny","reason":"\\udc00\\ud800"}',
    "number that is too large for a float": b'{"decision":"deny","n":1e999}',
    "negative number that is too large for a float": b'{"decision":"deny","n":-1e999}',
    "integer of 6000 digits": b'{"decision":"deny","n":' + b"9" * 6000 + b"}",
    "negative integer of 6000 digits": b'{"decision":"deny","n":-' + b"9" * 6000 + b"}",
    "fraction of 6000 digits": b'{"decision":"deny","n":0.' + b"1" * 6000 + b"}",
    "exponent of 6000 digits": b'{"decision":"deny","n":1e' + b"9" * 6000 + b"}",
    "minus zero": b'{"decision":"deny","a":-0,"b":-0.0e-0,"c":1E+2}',
    "the last of two equal keys": b'{"decision":"allow","decision":"deny"}',
    "escapes in names and words": b'{"d\\u0065cision":"\\u0064eny"}',
    "every escape there is": b'{"decision":"deny","s":"\\/\\b\\f\\n\\r\\t\\"\\\\\\u0000"}',
    "line separators and DEL in a string": '{"decision":"deny","":"\u2028\u2029\u007f"}'.encode(),
    "a key that is special in JavaScript": b'{"__proto__":1,"decision":"deny"}',
    "deep arrays before the decision": b'{"x":' + OPEN + CLOSE + b',"decision":"deny"}',
    "100,000 arrays deep after the decision": b'{"decision":"deny","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep objects after the decision": b'{"decision":"deny","x":' + OPEN_OBJECTS + b"1" + CLOSE_OBJECTS + b"}",
    "deep nesting, white space and odd scalars": (
        b' {"x" : ' + b"[ 1e999 , " * DEEP + b'"\\ud800\xff"' + b"\n]" * DEEP + b' , "decision" : "deny" }\n'
    ),
}

REFUSED = {
    "NaN": b'{"decision":"deny","n":NaN}',
    "Infinity": b'{"decision":"deny","n":Infinity}',
    "minus Infinity": b'{"decision":"deny","n":-Infinity}',
    "single quotes": b"{'decision':'deny'}",
    "trailing comma in an object": b'{"decision":"deny",}',
    "trailing comma in an array": b'{"decision":"deny","x":[1,]}',
    "line comment": b'{"decision":"deny"} // no',
    "block comment": b'/* no */ {"decision":"deny"}',
    "bare name": b'{decision:"deny"}',
    "Python's True": b'{"decision":"deny","x":True}',
    "undefined": b'{"decision":"deny","x":undefined}',
    "line break in a string": b'{"decision":"deny","reason":"a\nb"}',
    "tab in a string": b'{"decision":"deny","reason":"a\tb"}',
    "unknown escape": b'{"decision":"deny","reason":"\\x41"}',
    "short unicode escape": b'{"decision":"deny","reason":"\\ud8"}',
    "blank in a unicode escape": b'{"decision":"deny","reason":"\\u12 4"}',
    "leading zero": b'{"decision":"deny","n":01}',
    "leading plus": b'{"decision":"deny","n":+1}',
    "leading point": b'{"decision":"deny","n":.5}',
    "trailing point": b'{"decision":"deny","n":1.}',
    "hexadecimal number": b'{"decision":"deny","n":0x10}',
    "underscore in a number": b'{"decision":"deny","n":1_000}',
    "end cut off": b'{"decision":"deny"',
    "one brace too many": b'{"decision":"deny"}}',
    "two documents": b'{"decision":"deny"}{"decision":"deny"}',
    "missing colon": b'{"decision" "deny"}',
    "missing comma": b'{"decision":"deny" "reason":"x"}',
    "no-break space between tokens": '{\u00a0"decision":"deny"}'.encode(),
    "NUL after the document": b'{"decision":"deny"}\0',
    "zero-width space before the document": '\u200b{"decision":"deny"}'.encode(),
    "separator that only Python strips": b'\x1c{"decision":"deny"}',
    "next-line that only Python strips": '\u0085{"decision":"deny"}'.encode(),
    "UTF-16": '{"decision":"deny"}'.encode("utf-16"),
    "deep arrays with one bracket missing": b'{"decision":"deny","x":' + OPEN + CLOSE[1:] + b"}",
    "deep arrays with one bracket too many": b'{"decision":"deny","x":' + OPEN + CLOSE + b"]}",
    "deep arrays with the wrong brackets": b'{"decision":"deny","x":' + OPEN + CLOSE_OBJECTS + b"}",
    "NaN in deep arrays": b'{"decision":"deny","x":' + OPEN + b"NaN" + CLOSE + b"}",
    "trailing comma in deep arrays": b'{"decision":"deny","x":' + OPEN + b"1," + CLOSE + b"}",
    "trailing comma after deep arrays": b'{"decision":"deny","x":' + OPEN + CLOSE + b",}",
    "text after deep arrays": b'{"decision":"deny","x":' + OPEN + CLOSE + b"} no",
    "bare name beside deep objects": b'{"x":' + OPEN_OBJECTS + b"1" + CLOSE_OBJECTS + b',decision:"deny"}',
    "missing colon beside deep arrays": b'{"x":' + OPEN + CLOSE + b',"decision" "deny"}',
    "no-break space beside deep arrays": b'{"x":' + OPEN + CLOSE + b',\xc2\xa0"decision":"deny"}',
}


def table(cases: dict[str, bytes]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("stdout", [pytest.param(data, id=name) for name, data in cases.items()])


@pytest.mark.requirement("HOOK-063", "HOOK-016b", "HOOK-212")
@table(ACCEPTED)
def test_an_explicit_deny_in_whatever_json_node_reads_blocks(stdout: bytes) -> None:
    reading = read_outcome(Completed(exit_code=0, stdout=stdout))

    assert reading.success
    assert reading.output is not None
    assert reading.output.is_blocking_decision()


@pytest.mark.requirement("HOOK-064", "HOOK-114", "HOOK-212")
@table(REFUSED)
def test_what_node_refuses_as_json_is_plain_text_with_an_implied_allow(stdout: bytes) -> None:
    reading = read_outcome(Completed(exit_code=0, stdout=stdout))

    assert reading.success
    assert reading.output is not None
    assert reading.output.decision == "allow"
    assert reading.output.system_message == stdout.decode("utf-8", "replace")


@table(REFUSED)
def test_reading_invalid_json_raises_a_value_error_and_nothing_else(stdout: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_json(stdout)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'"a\xffb"', "a\ufffdb"),
        (b'"\\ud800"', "\ud800"),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b"1e999", math.inf),
        (b"-1e999", -math.inf),
        (b"9" * 6000, math.inf),
        (b"9" * 30, int("9" * 30)),
        (b"[" + b"9" * 30 + b', "\\ud800"]', [int("9" * 30), "\ud800"]),
        (b'{"a":1,"a":2}', {"a": 2}),
        ("\ufeff\u00a0[]\u00a0".encode(), []),
        (b"-0", 0),
        (b"null", None),
    ],
)
def test_odd_json_is_read_for_what_it_says(data: bytes, value: object) -> None:
    assert read_json(data) == value


@pytest.mark.parametrize("depth", [150, 190])
def test_plausible_nesting_is_read_in_full_next_to_endless_nesting(depth: int) -> None:
    meant = b"[" * depth + b'"here"' + b"]" * depth

    value: Any = read_json(b'{"endless":' + OPEN + CLOSE + b',"meant":' + meant + b"}")

    assert write_json(value["meant"]) == meant


@given(any_json)
@example("\ud83d\ude00")
@example({"a": [-0.0, 1e-320, 2**64, -(2**63) - 1]})
def test_json_that_python_writes_is_read_back_as_it_was(value: object) -> None:
    text = json.dumps(value)

    assert read_json(text.encode()) == json.loads(text)
    assert read_json_text(text) == json.loads(text)


def test_reading_works_near_the_end_of_the_stack() -> None:
    data = b'{"decision":"deny","x":' + b"[" * 300 + b"]" * 300 + b"}"

    def at_depth(frames: int) -> object:
        return at_depth(frames - 1) if frames else read_json(data)

    value: Any = at_depth(700)

    assert value["decision"] == "deny"


def test_arguments_of_a_tool_are_what_python_reads_and_of_any_depth() -> None:
    assert repr(read_arguments('{"a": [NaN, Infinity]}')) == "{'a': [nan, inf]}"
    assert isinstance(read_arguments('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"), dict)
    with pytest.raises(ValueError, match="Expecting"):
        read_arguments("{")
