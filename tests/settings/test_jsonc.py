"""JSON with comments: values, their positions, and the messages about invalid text."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llxprt_hooks.settings.jsonc import (
    MAX_DEPTH,
    JsoncError,
    Kind,
    LineIndex,
    Node,
    duplicate_members,
    parse,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
spaces = st.sampled_from(["", " ", "\n", "\t", "\r\n", '// it\'s "one"\n', "/* two, */", "/***/", "/* // */ //\n"])


def nodes(root: Node) -> list[Node]:
    return [root, *(node for item in root.items for node in nodes(item))] + [
        node for member in root.members for node in nodes(member.value)
    ]


@st.composite
def decorated(draw: st.DrawFn, value: Any) -> str:
    """A value written with comments, white space and trailing commas wherever they are allowed."""

    def written(value: Any) -> str:
        if isinstance(value, dict):
            items = [f"{space()}{json.dumps(key)}{space()}:{written(item)}" for key, item in value.items()]
            return f"{space()}{{{joined(items)}{space()}}}{space()}"
        if isinstance(value, list):
            return f"{space()}[{joined([written(item) for item in value])}{space()}]{space()}"
        return f"{space()}{json.dumps(value, ensure_ascii=flag())}{space()}"

    def joined(items: list[str]) -> str:
        return ",".join(items) + ("," if items and flag() else "")

    def space() -> str:
        return draw(spaces)

    def flag() -> bool:
        return draw(st.booleans())

    return written(value)


@given(json_values, st.sampled_from([None, 2]))
def test_plain_json_is_read_as_the_standard_library_reads_it(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)

    read = parse(text).to_value()

    assert read == json.loads(text)
    assert json.dumps(read) == json.dumps(value)  # tells 1 from 1.0 and True


@given(st.data(), json_values)
def test_comments_and_trailing_commas_change_nothing(data: st.DataObject, value: Any) -> None:
    text = data.draw(decorated(value))

    assert json.dumps(parse(text).to_value()) == json.dumps(value)


@given(st.data(), json_values)
def test_every_node_is_at_its_position(data: st.DataObject, value: Any) -> None:
    text = data.draw(decorated(value))

    for node in nodes(parse(text)):
        alone = parse(text[node.start : node.end])
        assert (alone.kind, alone.to_value()) == (node.kind, node.to_value())
        for member in node.members:
            assert json.loads(text[member.key_start : member.key_end]) == member.key


json_like = st.text(
    alphabet=st.sampled_from(list("{}[]\":,/*\\\n\r\t u0019eE+-.truefalsn'#\ud800\x00\ufeffé")), max_size=40
)


def refusal(text: str) -> JsoncError | None:
    try:
        parse(text).to_value()
    except JsoncError as error:
        return error
    return None


@given(st.text() | json_like)
def test_any_text_is_read_or_refused_with_a_place_in_it(text: str) -> None:
    error = refusal(text)

    if error is not None:
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1
        assert error.message.isprintable()


@given(json_values, st.data())
def test_a_text_changed_anywhere_is_read_or_refused(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value)
    at = data.draw(st.integers(0, len(text)))

    refusal(text[:at] + data.draw(st.sampled_from(['"', "{", "]", ",", ":", "/*", "\\", ""])) + text[at + 1 :])
    refusal(text[:at])


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ('{"a": 1\n "b": 2}', 2, 2, "expected ',' or '}' after the value, found \"b\""),
        ("[1 2]", 1, 4, "expected ',' or ']' after the value, found 2"),
        ("[1}", 1, 3, "expected ',' or ']' after the value, found '}'"),
        ('{"a" 1}', 1, 6, "expected ':' after the key, found 1"),
        ("{a: 1}", 1, 2, "expected a key in double quotes or '}', found a"),
        ('{"a": }', 1, 7, "expected a value, found '}'"),
        ('{"a": True}', 1, 7, "expected a value, found True, did you mean true?"),
        ("['x']", 1, 2, "expected a value, found ''', strings are written in double quotes"),
        ("[1,,2]", 1, 4, "expected a value, found ','"),
        ("[,]", 1, 2, "expected a value, found ','"),
        ("[01]", 1, 2, "01 is not a valid JSON number"),
        ("[.5]", 1, 2, ".5 is not a valid JSON number"),
        ("{} {}", 1, 4, "expected the end of the file after the value, found '{'"),
        ("", 1, 1, "expected a value, found the end of the file"),
        ('{"a": “b”}', 1, 7, "expected a value, found '“'"),
        ("{“a”: 1}", 1, 2, "expected a key in double quotes or '}', found '“'"),
        ("{\n", 2, 1, "expected a key in double quotes or '}', found the end of the file"),
        ("{} /* no end", 1, 4, "the comment that starts here is not closed, expected '*/'"),
        ('["abc\n"]', 1, 2, "the string that starts here is not closed, expected '\"' on the same line"),
        ('["abc', 1, 2, "the string that starts here is not closed, expected '\"' on the same line"),
        ('["a\tb"]', 1, 4, "a control character inside a string is written as an escape, here \\t"),
        ('["C:\\dir"]', 1, 5, "unknown escape \\d in a string, a backslash is written \\\\"),
        ("\ufeff[x]", 1, 2, "expected a value, found x"),
        ("[\u00a01]", 1, 2, "expected a value, found '\\xa0'"),
        ("[" + "\x1b[31m", 1, 2, "expected a value, found '\\x1b'"),
    ],
)
def test_a_mistake_is_reported_with_its_position(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(JsoncError) as caught:
        parse(text)

    assert (caught.value.line, caught.value.column, caught.value.message) == (line, column, message)
    assert str(caught.value) == f"line {line}, column {column}: {message}"


def test_nesting_is_limited_with_a_clear_error() -> None:
    parse("[" * MAX_DEPTH + "]" * MAX_DEPTH).to_value()

    for opening in ("[", '{"a":'):
        with pytest.raises(JsoncError, match=f"more than {MAX_DEPTH} levels"):
            parse(opening * 100_000)


def test_huge_numbers_are_as_large_as_a_float_gets() -> None:
    assert parse("1e999").to_value() == math.inf
    assert parse("-" + "9" * 100_000).to_value() == -math.inf
    assert parse("9" * 100).to_value() == int("9" * 100)


def test_a_lone_surrogate_is_kept() -> None:
    assert parse('"\\ud800"').to_value() == "\ud800"
    assert parse('"\\ud83d\\ude00"').to_value() == "😀"


def test_the_last_duplicate_key_applies_and_all_are_reported() -> None:
    root = parse('{"a": 1, "b": {"c": 1, "c": 2}, "a": {"x": [3]}, "a": 4}')

    assert root.to_value() == {"a": 4, "b": {"c": 2}}
    assert [(member.key, member.key_start) for member in duplicate_members(root)] == [("c", 23), ("a", 32), ("a", 49)]
    last = root.at("a")
    assert last is not None
    assert last.scalar == 4


def test_a_path_leads_to_a_node() -> None:
    text = '{"hooks": {"BeforeTool": [{"matcher": "x"}]}}'
    root = parse(text)

    matcher = root.at("hooks", "BeforeTool", 0, "matcher")

    assert matcher is not None
    assert matcher.kind is Kind.STRING
    assert text[matcher.start : matcher.end] == '"x"'
    assert root.at() is root
    assert root.at("hooks", "BeforeTool", 1) is None
    assert root.at("hooks", "BeforeTool", -1) is None
    assert root.at("none", "at", "all") is None
    assert root.at("hooks", 0) is None


@pytest.mark.parametrize(
    ("text", "offset", "expected"),
    [
        ("", 0, (1, 1)),
        ("ab", 2, (1, 3)),
        ("a\nb", 2, (2, 1)),
        ("a\r\nb", 3, (2, 1)),
        ("a\rb", 2, (2, 1)),
        ("\ufeffa", 1, (1, 1)),
    ],
)
def test_lines_and_columns_start_at_one(text: str, offset: int, expected: tuple[int, int]) -> None:
    assert LineIndex(text).line_and_column(offset) == expected


@pytest.mark.slow
def test_ten_thousand_hooks_are_read() -> None:
    hook = '{"type": "command", "command": "check.sh", "timeout": 5000}'
    groups = ", ".join(f'{{"matcher": "write_{number}", "hooks": [{hook}]}}' for number in range(10_000))

    value = parse(f'{{"hooks": {{"BeforeTool": [{groups}]}}}}').to_value()

    assert len(value["hooks"]["BeforeTool"]) == 10_000
