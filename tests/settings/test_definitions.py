"""Hook definitions: what is valid in a settings file, and how invalid parts are reported."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llxprt_hooks import HookEventName
from llxprt_hooks.core.executors import EXECUTORS, Executor, HookRun
from llxprt_hooks.core.executors.command import CommandSpec
from llxprt_hooks.settings.definitions import (
    HookConfig,
    HookDefinition,
    HookSet,
    HookType,
    read_definitions,
)
from llxprt_hooks.settings.document import Document
from llxprt_hooks.settings.hook_entries import WrittenHooks
from llxprt_hooks.settings.jsonc import Kind, LineIndex, parse
from llxprt_hooks.settings.shape import ArrayOf, Field, FieldProblem, Scalar, Shape
from tests.support.hooks import EVENT_FIELDS
from tests.support.replies import group

if TYPE_CHECKING:
    from llxprt_hooks.core.engine.results import HookExecutionResult


def definitions(hooks: dict[str, Any]) -> list[HookDefinition]:
    found, problems = read_definitions(HookSet(hooks))
    assert problems == []
    return found


def one_hook(**fields: Any) -> dict[str, Any]:
    return {"BeforeTool": [{"hooks": [{"type": "command", "command": "check", **fields}]}]}


@pytest.mark.requirement("HOOK-081")
@pytest.mark.parametrize("event_name", HookEventName)
def test_each_of_the_eleven_events_is_accepted_by_its_name(event_name: HookEventName) -> None:
    [definition] = definitions({event_name.value: [group("check")]})

    assert definition.event_name is event_name


@pytest.mark.requirement("HOOK-081")
def test_the_events_are_the_five_of_the_scope_and_six_more() -> None:
    scope = {"BeforeTool", "AfterTool", "BeforeModel", "AfterModel", "BeforeToolSelection"}
    others = {"BeforeAgent", "AfterAgent", "SessionStart", "SessionEnd", "PreCompress", "Notification"}

    assert {event_name.value for event_name in HookEventName} == scope | others
    assert set(EVENT_FIELDS) == set(HookEventName)  # the payloads of these tests cover them all


@pytest.mark.requirement("HOOK-082")
def test_a_group_has_a_matcher_a_mode_and_hooks_in_order() -> None:
    found = definitions({"AfterTool": [group("first", "second", matcher="write_.*", sequential=True)]})

    assert [(each.config.command, each.matcher, each.sequential) for each in found] == [
        ("first", "write_.*", True),
        ("second", "write_.*", True),
    ]


@pytest.mark.requirement("HOOK-082")
@pytest.mark.parametrize("hooks", [None, "check", {"type": "command", "command": "check"}, 3])
def test_a_group_without_an_array_of_hooks_is_discarded(hooks: Any) -> None:
    found, problems = read_definitions(HookSet({"BeforeTool": [{"hooks": hooks}, group("other")]}))

    assert [each.config.command for each in found] == ["other"]
    assert [problem.where for problem in problems] == ["hooks.BeforeTool[0]"]


def test_switches_among_the_events_are_skipped() -> None:
    found, problems = read_definitions(
        HookSet({"disabled": ["check"], "BeforeTool": [group("other")], "enabled": True})
    )

    assert [each.config.command for each in found] == ["other"]
    assert problems == []


@pytest.mark.requirement("HOOK-083", "HOOK-120")
def test_a_hook_needs_type_and_command_and_has_sixty_seconds_by_default() -> None:
    [definition] = definitions(one_hook())

    assert definition.config == HookConfig("command", CommandSpec("check"), timeout=60_000)


@pytest.mark.requirement("HOOK-083")
@pytest.mark.parametrize("timeout", [1, 30_000, 0.5, 3_600_000])
def test_a_hook_may_set_its_time_in_milliseconds(timeout: float) -> None:
    [definition] = definitions(one_hook(timeout=timeout))

    assert definition.config.timeout == timeout


@pytest.mark.requirement("HOOK-083", "HOOK-120")
@pytest.mark.parametrize(
    "timeout", ["5000", True, 0, -1, -(10**5000), math.nan, math.inf, [], {}], ids=lambda value: type(value).__name__
)
def test_an_invalid_timeout_leaves_the_hook_its_sixty_seconds_and_is_reported(timeout: Any) -> None:
    found, problems = read_definitions(HookSet(one_hook(timeout=timeout)))

    assert [each.config.timeout for each in found] == [60_000]
    assert "timeout" in str(problems[0])


@pytest.mark.requirement("HOOK-083")
def test_a_plugin_is_accepted() -> None:
    [definition] = definitions({"BeforeTool": [{"hooks": [{"type": "plugin", "name": "@acme/guard"}]}]})

    assert definition.config.type == "plugin"


@pytest.mark.requirement("HOOK-083")
def test_a_hook_may_have_a_name_and_a_description() -> None:
    [definition] = definitions(one_hook(name="guard", description="no secrets"))

    assert definition.config.name == "guard"
    assert definition.config.description == "no secrets"


UNUSABLE_HOOKS: dict[str, Any] = {
    "no type": {"command": "check"},
    "unknown type": {"type": "http", "command": "check"},
    "type in capitals": {"type": "Command", "command": "check"},
    "type of another kind": {"type": ["command"], "command": "check"},
    "no command": {"type": "command"},
    "empty command": {"type": "command", "command": ""},
    "blank command": {"type": "command", "command": " \n"},
    "command of another kind": {"type": "command", "command": ["check"]},
    "null": None,
    "a string": "check",
    "an array": ["check"],
}


@pytest.mark.requirement("HOOK-083", "HOOK-191")
@pytest.mark.parametrize("entry", UNUSABLE_HOOKS.values(), ids=UNUSABLE_HOOKS)
def test_a_hook_without_type_or_command_is_discarded_and_its_neighbours_stay(entry: Any) -> None:
    before, after = {"type": "command", "command": "before"}, {"type": "command", "command": "after"}

    found, problems = read_definitions(HookSet({"BeforeTool": [{"hooks": [before, entry, after]}]}))

    assert [each.config.command for each in found] == ["before", "after"]
    assert [problem.where for problem in problems] == ["hooks.BeforeTool[0].hooks[1]"]


@pytest.mark.parametrize(
    ("hooks", "where"),
    [
        ({"BeforeTools": [group("x")]}, "hooks.BeforeTools"),
        ({"beforeTool": [group("x")]}, "hooks.beforeTool"),
        ({"BeforeTool": group("x")}, "hooks.BeforeTool"),
        ({"BeforeTool": None}, "hooks.BeforeTool"),
        ({"BeforeTool": ["x"]}, "hooks.BeforeTool[0]"),
        ({7: [group("x")]}, "hooks.int"),
    ],
)
def test_invalid_events_and_groups_are_reported_and_the_rest_stays(hooks: dict[str, Any], where: str) -> None:
    found, problems = read_definitions(HookSet({**hooks, "AfterTool": [group("other")]}, origin="settings.json"))

    assert [each.config.command for each in found] == ["other"]
    assert [(problem.origin, problem.where) for problem in problems] == [("settings.json", where)]


def test_an_extension_whose_hooks_are_not_an_object_is_reported() -> None:
    hooks: Any = [group("x")]

    found, [problem] = read_definitions(HookSet(hooks, origin="extension x"))

    assert found == []
    assert str(problem).endswith("expected an object with event names, found an array")


@pytest.mark.parametrize("fields", [{"matcher": 7}, {"matcher": ["write_file"]}, {"sequential": "yes"}])
def test_a_field_of_the_wrong_kind_is_ignored_alone_and_reported(fields: dict[str, Any]) -> None:
    found, problems = read_definitions(HookSet({"BeforeTool": [group("check", **fields)]}))

    assert [(each.config.command, each.matcher, each.sequential) for each in found] == [("check", None, False)]
    assert next(iter(fields)) in str(problems[0])


def test_details_are_limited_to_the_first_wrong_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("llxprt_hooks.settings.did_you_mean.event_fix", asked.append)

    _, problems = read_definitions(HookSet({f"BeforeTol{number}": [] for number in range(1000)}, origin="x.json"))

    assert len(asked) == 100
    assert [str(problem) for problem in problems[100:]] == ["x.json: and 900 more problems"]


class EveryField(Executor[str]):
    """A hook type with a field of each kind."""

    fields: ClassVar[Mapping[str, Field]] = {
        "mode": Field(Scalar(Kind.STRING, choices=("on", "off")), "", required=True),
        "level": Field(Scalar(Kind.NUMBER, above=1.5), "", default=2, nullable=True),
        "ratio": Field(Scalar(Kind.NUMBER), ""),
        "note": Field(Scalar(Kind.STRING, not_blank=True), ""),
        "labels": Field(ArrayOf(Scalar(Kind.STRING)), "", default=["a"]),
        "extra": Field(Shape("extra", "", {"flag": Field(Scalar(Kind.BOOLEAN), "")}), "", default={"flag": True}),
        "flag": Field(Scalar(Kind.BOOLEAN), "", default=True),
    }

    def read(self, fields: Mapping[str, Any]) -> str | list[FieldProblem]:
        if fields["level"] == 7:
            return [FieldProblem("level", "`level` must not be 7", discards=True)]
        return json.dumps({key: fields[key] for key in self.fields})

    def describe(self, spec: str) -> str:
        return spec

    async def run(self, spec: str, run: HookRun) -> HookExecutionResult:
        raise NotImplementedError


SOME_VALUES: list[Any] = [
    *[None, True, False, -1, 0, 1, 2, 7, 5000, 2**70, 1.0, 1.5, 2.5, math.nan, math.inf],
    *["", " ", "\u3000\x1c", "check", "on", "\ud800", b"check", HookType.COMMAND],
    *[[], ["a"], ("a",), [1], {}, {"flag": False}, {"flag": 1}, {"other": 1}],
]
HOOK_KEYS = ["type", "command", "timeout", "name", "description", "failClosed", *EveryField.fields, "unknown", "\ud800"]
GROUP_KEYS = ["hooks", "matcher", "sequential", "unknown", "\ud800"]
USUAL_HOOKS: list[dict[str, Any]] = [
    {"type": "command", "command": "check"},
    {"type": "every", "mode": "on"},
    {"type": "plugin"},
]


def assert_read_alike(groups: Any) -> None:
    """Hooks that a program passes mean the same as in a file; where JSON has no such value, they raise nothing."""
    with patch.dict(EXECUTORS, {"every": EveryField()}):
        found, problems = read_definitions(HookSet({"BeforeTool": groups}))
        try:
            text = json.dumps({"BeforeTool": groups}, allow_nan=False)
        except (TypeError, ValueError):
            return
        node = parse(text)
        document = Document(Path("x.json"), Path("x.json"), os.stat("/"), text, node, LineIndex(text))
        in_file, in_file_problems = read_definitions(HookSet(WrittenHooks(document, node)))
    assert in_file == found
    assert [(each.where, each.message) for each in in_file_problems] == [
        (each.where, each.message) for each in problems
    ]
    assert all(each.line == 1 and each.column > 1 for each in in_file_problems)


@pytest.mark.parametrize("key", HOOK_KEYS)
@pytest.mark.parametrize("usual", USUAL_HOOKS, ids=lambda usual: usual["type"])
def test_any_value_of_a_hook_is_read_as_in_a_file(usual: dict[str, Any], key: str) -> None:
    for value in SOME_VALUES:
        assert_read_alike([{"hooks": [{**usual, key: value}]}])


@pytest.mark.parametrize("key", GROUP_KEYS)
def test_any_value_of_a_group_is_read_as_in_a_file(key: str) -> None:
    for value in SOME_VALUES:
        assert_read_alike([{"hooks": USUAL_HOOKS, key: value}])


def with_others(usual: dict[str, Any], keys: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    others = st.dictionaries(st.sampled_from(keys), st.sampled_from(SOME_VALUES), max_size=3)
    return others.map(lambda other: {**usual, **other})


SOME_HOOKS = st.sampled_from(USUAL_HOOKS).flatmap(lambda usual: with_others(usual, HOOK_KEYS))
SOME_GROUPS = (
    st.lists(SOME_HOOKS, max_size=2).flatmap(lambda hooks: with_others({"hooks": hooks}, GROUP_KEYS))
    | st.tuples(SOME_HOOKS).map(lambda hooks: MappingProxyType({"hooks": hooks}))
    | st.sampled_from(SOME_VALUES)
)


@given(st.lists(SOME_GROUPS, max_size=2) | st.tuples(SOME_GROUPS))
def test_any_groups_are_read_as_in_a_file(groups: list[Any] | tuple[Any]) -> None:
    assert_read_alike(groups)


def test_a_value_that_contains_itself_is_not_followed() -> None:
    cyclic: list[Any] = []
    cyclic += [cyclic, cyclic]
    hooks = {"BeforeTool": [{"hooks": [{"type": "command", "command": "a", "timeout": cyclic, "x": cyclic}, cyclic]}]}

    found, problems = read_definitions(HookSet(hooks))

    assert [each.config.command for each in found] == ["a"]
    assert [problem.where for problem in problems] == ["hooks.BeforeTool[0].hooks[0]", "hooks.BeforeTool[0].hooks[1]"]
