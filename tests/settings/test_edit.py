"""Edits of a settings file's text: the effect that was meant, and every comment where it was."""

from __future__ import annotations

import copy
import json
import re
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llxprt_hooks.settings.edit import EditError, add_hook_group, set_disabled, set_matcher, set_top_level
from llxprt_hooks.settings.jsonc import JsoncError, parse

GROUP = {"matcher": "^write_file$", "hooks": [{"type": "command", "command": "./check.sh"}]}
LONG_GROUP = {
    "matcher": "^(write_file|replace)$",
    "hooks": [
        {
            "type": "command",
            "name": "no-secrets",
            "command": "python3 -I $LLXPRT_PROJECT_DIR/.llxprt/hooks/no-secrets.py",
            "timeout": 10000,
        }
    ],
}

scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=6)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)
names = st.sampled_from(["lint", "audit", "a // b", "/* c */", 'quo"te', "é", "\ud800", ""])
groups = st.sampled_from([GROUP, LONG_GROUP, {}]) | st.dictionaries(st.text(max_size=4), values, max_size=3)
events = st.sampled_from(["BeforeTool", "AfterTool", "SessionStart"])
said = st.fixed_dictionaries(
    {},
    optional={
        "enableHooks": st.booleans(),
        "other": values,
        "hooks": st.dictionaries(events, st.lists(groups, max_size=3), max_size=2),
        "hooksConfig": st.fixed_dictionaries({}, optional={"disabled": st.lists(names | scalars, max_size=4)}),
    },
)
COMMENT = re.compile(r"// c\d+|/\* c\d+ \*/|/\* c\d+\r?\n \*/")


@st.composite
def written(draw: st.DrawFn, value: Any, line_end: str) -> str:
    """A value with numbered comments, white space and trailing commas wherever they are allowed."""
    numbers = count(1)
    kinds = st.sampled_from(
        ["", "", "", " ", "\n", "\n  ", "\t", "// c{}\n", "/* c{} */", "  // c{}\n    ", "/* c{}\n */"]
    )

    def space() -> str:
        return draw(kinds).replace("\n", line_end).format(next(numbers))

    def text_of(value: Any) -> str:
        if isinstance(value, dict):
            items = [f"{space()}{json.dumps(key)}{space()}:{text_of(item)}" for key, item in value.items()]
            return f"{space()}{{{joined(items)}}}{space()}"
        if isinstance(value, list):
            return f"{space()}[{joined([text_of(item) for item in value])}]{space()}"
        return f"{space()}{json.dumps(value)}{space()}"

    def joined(items: list[str]) -> str:
        return ",".join(items) + (f",{space()}" if bool(items) and draw(st.booleans()) else space())

    return text_of(value)


line_ends = st.sampled_from(["\n", "\r\n"])


@st.composite
def files(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Settings as people and programs write them, and their value."""
    value: dict[str, Any] = draw(said)
    plain = st.sampled_from([None, 2, 4, "\t"]).map(lambda indent: json.dumps(value, indent=indent))
    text = draw(st.one_of(plain, line_ends.flatmap(lambda end: written(value, end))))
    return draw(st.sampled_from(["", "\ufeff"])) + text, value


def check(before: str, after: str, expected: object) -> None:
    assert json.dumps(parse(after).to_value()) == json.dumps(expected)
    assert COMMENT.findall(after) == COMMENT.findall(before)
    assert not re.search(r"(?<!\r)\n" if "\r\n" in before else r"\r", after)


fewer = settings(max_examples=60, deadline=None)


@pytest.mark.slow
@fewer
@given(files(), events, groups)
def test_a_group_is_added_and_nothing_else_changes(
    file: tuple[str, dict[str, Any]], event: str, group: dict[str, Any]
) -> None:
    text, value = file
    expected = copy.deepcopy(value)
    expected.setdefault("hooks", {}).setdefault(event, []).append(group)

    check(text, add_hook_group(text, event, group), expected)


@fewer
@given(files(), st.sampled_from(["enableHooks", "other", "new"]), st.booleans() | st.text(max_size=5) | st.integers())
def test_a_top_level_value_is_set_and_nothing_else_changes(
    file: tuple[str, dict[str, Any]], key: str, new: bool | str | int
) -> None:
    text, value = file
    before = COMMENT.findall(text)

    after = set_top_level(text, key, new)

    assert json.dumps(parse(after).to_value()) == json.dumps({**value, key: new})
    replaced = parse(text).at(key)
    inside = COMMENT.findall(text[replaced.start : replaced.end]) if replaced else []
    assert COMMENT.findall(after) == [comment for comment in before if comment not in inside]


@pytest.mark.slow
@fewer
@given(files(), names, st.booleans())
def test_a_name_is_listed_or_not_and_nothing_else_changes(
    file: tuple[str, dict[str, Any]], name: str, disabled: bool
) -> None:
    text, value = file
    expected = copy.deepcopy(value)
    listed = expected.get("hooksConfig", {}).get("disabled", [])
    if disabled and name not in listed:
        expected.setdefault("hooksConfig", {}).setdefault("disabled", []).append(name)
    elif not disabled and name in listed:
        expected["hooksConfig"]["disabled"] = [item for item in listed if item != name]
    after = set_disabled(text, name, disabled)
    if not disabled and name in listed and not expected["hooksConfig"]["disabled"]:
        left = parse(after).to_value()
        assert "hooksConfig" not in left or COMMENT.search(text)
        if "disabled" not in left.get("hooksConfig", {}):
            expected["hooksConfig"] = {}
        if "hooksConfig" not in left:
            del expected["hooksConfig"]

    check(text, after, expected)


@fewer
@given(files(), names)
def test_saying_it_again_changes_nothing(file: tuple[str, dict[str, Any]], name: str) -> None:
    once = set_disabled(file[0], name, True)

    assert set_disabled(once, name, True) == once
    assert set_disabled(set_disabled(once, name, False), name, False) == set_disabled(once, name, False)


def test_a_file_that_is_not_there_yet() -> None:
    assert set_top_level("", "enableHooks", True) == '{\n  "enableHooks": true\n}\n'
    assert set_disabled(" \n", "lint", True) == '{\n  "hooksConfig": { "disabled": ["lint"] }\n}\n'
    assert set_disabled("", "lint", False) == ""


STYLES = {
    "four spaces, no trailing comma": (
        '{\n    // mine\n    "a": 1 // one\n}\n',
        '{\n    // mine\n    "a": 1, // one\n    "enableHooks": true\n}\n',
    ),
    "tabs and trailing commas": ('{\n\t"a": 1,\n}\n', '{\n\t"a": 1,\n\t"enableHooks": true,\n}\n'),
    "carriage returns": ('{\r\n  "a": 1\r\n}\r\n', '{\r\n  "a": 1,\r\n  "enableHooks": true\r\n}\r\n'),
    "one line": ('{"a": 1}', '{"a": 1, "enableHooks": true}'),
    "one line with padding": ('{ "a": 1 }', '{ "a": 1, "enableHooks": true }'),
    "empty": ("{}", '{\n  "enableHooks": true\n}'),
    "a comment only": ("{ // nothing yet\n}", '{ // nothing yet\n  "enableHooks": true\n}'),
    "there already": ('{\n  "enableHooks": false, // off\n}', '{\n  "enableHooks": true, // off\n}'),
    "comments before the end": (
        '{\n  "a": 1\n  // "b": 2\n}\n',
        '{\n  "a": 1,\n  // "b": 2\n  "enableHooks": true\n}\n',
    ),
}


@pytest.mark.parametrize(("before", "after"), STYLES.values(), ids=STYLES)
def test_a_file_keeps_its_style(before: str, after: str) -> None:
    assert set_top_level(before, "enableHooks", True) == after


GROUPS = {
    "an array on several lines": (
        """{
          "hooks": {
            "BeforeTool": [
              {}, // first
            ]
          }
        }""",
        GROUP,
        """{
          "hooks": {
            "BeforeTool": [
              {}, // first
              { "matcher": "^write_file$", "hooks": [{ "type": "command", "command": "./check.sh" }] },
            ]
          }
        }""",
    ),
    "brackets next to each other": (
        """{
          "hooks": {
            "BeforeTool": [{
              "hooks": []
            }]
          }
        }""",
        LONG_GROUP,
        """{
          "hooks": {
            "BeforeTool": [{
              "hooks": []
            }, {
              "matcher": "^(write_file|replace)$",
              "hooks": [
                {
                  "type": "command",
                  "name": "no-secrets",
                  "command": "python3 -I $LLXPRT_PROJECT_DIR/.llxprt/hooks/no-secrets.py",
                  "timeout": 10000
                }
              ]
            }]
          }
        }""",
    ),
    "one line is opened up": (
        """{
          "hooks": { "BeforeTool": [{ "hooks": [] }] } // old
        }""",
        LONG_GROUP,
        """{
          "hooks": { "BeforeTool": [
            { "hooks": [] },
            {
              "matcher": "^(write_file|replace)$",
              "hooks": [
                {
                  "type": "command",
                  "name": "no-secrets",
                  "command": "python3 -I $LLXPRT_PROJECT_DIR/.llxprt/hooks/no-secrets.py",
                  "timeout": 10000
                }
              ]
            }
          ] } // old
        }""",
    ),
    "an empty object is filled": (
        """{
          "hooks": {}
        }""",
        {"hooks": []},
        """{
          "hooks": { "BeforeTool": [{ "hooks": [] }] }
        }""",
    ),
}


@pytest.mark.parametrize(("before", "group", "after"), GROUPS.values(), ids=GROUPS)
def test_a_group_is_written_in_the_style_around_it(before: str, group: dict[str, Any], after: str) -> None:
    assert add_hook_group(dedented(before), "BeforeTool", group) == dedented(after)


def dedented(text: str) -> str:
    return text.replace("\n        ", "\n")


NAMES = {
    "of several": ('["a", "x", "b"]', '["a", "b"]'),
    "the first": ('["x", "b"]', '["b"]'),
    "the last": ('["a", "x"]', '["a"]'),
    "the last before a comma": ('["a", "x",]', '["a",]'),
    "every time": ('["x", "a", "x"]', '["a"]'),
    "on a line of its own": ('[\n  "a",\n  "x",\n  "b"\n]', '[\n  "a",\n  "b"\n]'),
    "on the last line": ('[\n  "a",\n  "x"\n]', '[\n  "a"\n]'),
    "with a comment after it": ('[\n  "x", // slow\n  "b"\n]', '[\n  // slow\n  "b"\n]'),
    "with a comment between": ('["a", /* slow */ "x"]', '["a" /* slow */]'),
}


@pytest.mark.parametrize(("before", "after"), NAMES.values(), ids=NAMES)
def test_a_name_is_taken_out(before: str, after: str) -> None:
    text = '{"hooksConfig": {"disabled": %s}}'

    assert set_disabled(text % before, "x", False) == text % after


EMPTIED = {
    "on one line": ('{"a": 1, "hooksConfig": {"disabled": ["x"]}}', '{"a": 1}'),
    "with spaces": ('{ "a": 1, "hooksConfig": { "disabled": [ "x" ] } }', '{ "a": 1 }'),
    "alone": ('{\n  "hooksConfig": { "disabled": ["x", "x"] }\n}\n', "{\n}\n"),
    "the first": ('{"hooksConfig": {"disabled": ["x"]}, "a": 1}', '{"a": 1}'),
    "beside other keys": ('{"hooksConfig": {"warm": true, "disabled": ["x"]}}', '{"hooksConfig": {"warm": true}}'),
    "on lines": ('{\n  "a": 1,\n  "hooksConfig": {\n    "disabled": [\n      "x"\n    ]\n  }\n}', '{\n  "a": 1\n}'),
    "in both places": ('{"hooks": {"disabled": ["x"]}, "hooksConfig": {"disabled": ["x"]}}', "{}"),
    "not with a comment inside": (
        '{"hooksConfig": {"disabled": [/* none */ "x"]}}',
        '{"hooksConfig": {"disabled": [/* none */]}}',
    ),
    "not with a comment beside it": (
        '{"hooksConfig": {"disabled": ["x"] /* mine */}}',
        '{"hooksConfig": {/* mine */}}',
    ),
    "not if the key is there twice, because the other one would apply": (
        '{"hooksConfig": {"disabled": ["a"], "disabled": ["x"]}}',
        '{"hooksConfig": {"disabled": ["a"], "disabled": []}}',
    ),
}


@pytest.mark.parametrize(("before", "after"), EMPTIED.values(), ids=EMPTIED)
def test_a_list_that_becomes_empty_is_removed(before: str, after: str) -> None:
    assert set_disabled(before, "x", False) == after


LAYOUTS = ['{"a": 1}', '{ "a": 1 }', '{\n  "a": 1\n}\n', '{\n\t"a": 1, // one\n}\n', "{\n}\n"]


@pytest.mark.parametrize("text", [*LAYOUTS, *(text.replace("\n", "\r\n") for text in LAYOUTS if "\n" in text)])
def test_a_name_that_is_added_and_removed_leaves_no_trace(text: str) -> None:
    assert set_disabled(set_disabled(text, "x", True), "x", False) == text


def test_editing_a_duplicate_key_changes_the_last_one() -> None:
    text = '{"enableHooks": false, "enableHooks": false}'

    assert set_top_level(text, "enableHooks", True) == '{"enableHooks": false, "enableHooks": true}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "the settings file must be an object, found an array: fix that first"),
        ('{"hooks": []}', "`hooks` must be an object, found an array: fix that first"),
        ('{"hooks": {"BeforeTool": {}}}', "`hooks.BeforeTool` must be an array, found an object: fix that first"),
    ],
)
def test_a_file_without_a_place_for_it_is_refused(text: str, message: str) -> None:
    with pytest.raises(EditError, match=re.escape(message)):
        add_hook_group(text, "BeforeTool", GROUP)


@pytest.mark.parametrize("disabled", [True, False])
@pytest.mark.parametrize("text", ['{"hooksConfig": 1}', '{"hooksConfig": {"disabled": "lint"}}'])
def test_a_list_of_another_kind_is_refused(text: str, disabled: bool) -> None:
    with pytest.raises(EditError):
        set_disabled(text, "lint", disabled)


def test_a_text_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(JsoncError):
        set_disabled('{"a": 1', "lint", True)


def test_a_matcher_is_replaced_and_all_else_stays() -> None:
    text = '{"hooks": {"BeforeTool": [{}, {"matcher": "a" /* mine */, "hooks": []}]}}'

    assert set_matcher(text, "BeforeTool", 1, "a|\u00e4") == text.replace('"a"', '"a|\u00e4"')
    assert set_matcher(text, "BeforeTool", 0, "a|b") == text
