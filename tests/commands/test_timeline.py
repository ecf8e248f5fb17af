"""The log as a person sees it: grouped by event, filtered, in figures, and what it says about silent hooks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks.commands.inspect import timeline as timeline_module
from llxprt_hooks.commands.inspect.replay import diff, fire_command, hook_test, input_of
from llxprt_hooks.commands.inspect.suspicious_hooks import find_failing_hooks, find_silent_hooks
from llxprt_hooks.commands.inspect.timeline import Timeline, Where, would_decide
from llxprt_hooks.commands.list import take_inventory
from llxprt_hooks.commands.log import LogReader
from tests.support.inspector import GUARD, fire

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.cli import Call, CliProject

MINUTE = 60


def execution(event_id: str = "e1", hook: str = "guard", **fields: Any) -> dict[str, Any]:
    given = {
        "event_id": event_id,
        "id": f"{event_id}-{hook}",
        "hook": hook,
        "event_name": "BeforeTool",
        "duration_ms": 5.0,
    }
    return {"timestamp": "2026-11-16T10:00:00.000Z", **given, **fields}


def ended(event_id: str = "e1", **fields: Any) -> dict[str, Any]:
    given = {"event_id": event_id, "event_name": "BeforeTool", "hooks": ["guard"], "subject": "glob", "wall_time": 7.0}
    return {"timestamp": "2026-11-16T10:00:00.100Z", **given, **fields}


def timeline_of(*records: dict[str, Any]) -> Timeline:
    timeline = Timeline()
    timeline.add(records)
    return timeline


def test_what_hooks_that_act_did_has_its_word() -> None:
    asked, refused = ended(asked=True, reason="sure?"), ended("e2", event_name="BeforeAgent", blocked=True)
    shown = [event.summary() for event in timeline_of(asked, refused).events.values()]
    assert [(each["decision"], each["word"]) for each in shown] == [("asked", "asked"), ("blocked", "refused")]


def started(event_id: str = "e1", **fields: Any) -> dict[str, Any]:
    return {**ended(event_id), "started": True, "metadata": {"team": "web"}, **fields}


def test_an_event_is_there_when_it_starts_and_decided_when_it_ends() -> None:
    timeline = timeline_of(started())
    [event] = timeline.events.values()
    assert event.summary() | {"decision": "running", "complete": False, "names": ["guard"], "subject": "glob"} == (
        event.summary()
    )
    assert event.callers == ["team=web"]
    assert timeline.view(Where()).figures.to_dict()["decisions"] == {"running": 1}

    timeline.add([execution(blocked=True), ended(blocked=True)])
    assert (event.decision, event.summary()["complete"]) == ("blocked", True)
    assert timeline.view(Where()).figures.to_dict()["decisions"] == {"blocked": 1}


def ids(timeline: Timeline, **where: str) -> list[str]:
    view = timeline.view(Where.of(where))
    return [event.id for event in view.page(before=None, limit=1000)]


def test_records_of_one_event_are_one_entry_with_the_merged_decision() -> None:
    timeline = timeline_of(
        execution(hook="a"), execution("e2"), execution(hook="b", failed=True, error="it broke"), ended(blocked=True)
    )

    first, second = timeline.events.values()
    assert ([each["hook"] for each in first.executions], first.decision, first.failed) == (["a", "b"], "blocked", True)
    assert (first.duration, first.subject) == (7.0, "glob")
    assert (second.decision, second.duration, second.ended) == ("allowed", 5.0, None)


@pytest.mark.parametrize(
    ("fields", "decision"),
    [
        ({"blocked": True, "stopped": True}, "blocked"),
        ({"stopped": True}, "stopped"),
        ({"errors": ["the engine failed"]}, "failed"),
        ({"effects": ["tool_input"]}, "changed"),
        ({}, "allowed"),
    ],
)
def test_decisions(fields: dict[str, Any], decision: str) -> None:
    [event] = timeline_of(execution(), ended(**fields)).events.values()
    assert event.decision == decision
    [only_hook] = timeline_of(execution(**fields)).events.values()
    assert only_hook.decision == decision


def test_executions_of_older_versions_without_an_event_are_entries_of_their_own() -> None:
    timeline = timeline_of({**execution(), "event_id": "", "id": "x1"}, {**execution(), "event_id": "", "id": "x2"})

    assert ids(timeline) == ["x2", "x1"]


def test_records_that_make_no_sense_are_entries_without_facts() -> None:
    strange: list[dict[str, Any]] = [
        {"hook": 7},
        {"hook": "x", "id": [], "timestamp": {}, "duration": "long", "payload": [], "effects": 3, "project": 7},
        {"hooks": "none", "event_id": "e", "wall_time": float("nan"), "subject": 3, "errors": "many"},
    ]
    timeline = timeline_of(*strange)

    for event in timeline.events.values():
        json.dumps(event.summary())
        assert event.text is not None
    json.dumps(timeline.view(Where()).figures.to_dict())
    assert find_failing_hooks(timeline.events.values()) == []


def test_a_view_follows_events_that_begin_or_cease_to_match() -> None:
    timeline = timeline_of(execution())
    allowed, blocked = Where(decision="allowed"), Where(decision="blocked")
    assert (len(timeline.view(allowed)), len(timeline.view(blocked))) == (1, 0)

    timeline.add([ended(blocked=True)])

    assert (len(timeline.view(allowed)), len(timeline.view(blocked))) == (0, 1)
    assert timeline.view(allowed).figures.to_dict()["hooks"] == []
    assert timeline.view(blocked).figures.to_dict()["decisions"] == {"blocked": 1}


def test_figures_that_are_kept_up_to_date_are_those_of_all_events() -> None:
    step_by_step = Timeline()
    view = step_by_step.view(Where())
    records = [
        record
        for at in range(50)
        for record in (
            execution(f"e{at}", duration_ms=float(at), timestamp=f"2026-11-16T{at % 24:02}:{at:02}:00.000Z"),
            ended(f"e{at}", blocked=at % 3 == 0, timestamp=f"2026-11-16T{at % 24:02}:{at:02}:00.000Z"),
        )
    ]
    for record in records:
        step_by_step.add([record])

    at_once = timeline_of(*records)
    assert view.figures.to_dict() == at_once.view(Where()).figures.to_dict()
    assert step_by_step.facets() == at_once.facets()


def test_events_are_found_by_who_asked() -> None:
    web: dict[str, Any] = {"metadata": {"team": "web", "roles": ["a"]}, "agent": {"host": "far", "pid": 7}}
    timeline = timeline_of(execution("e1", **web), execution("e2", metadata={"team": "shop"}), execution("e3"))

    assert dict(timeline.facets()["caller"]) == {"team=web": 1, "host=far": 1, "team=shop": 1}
    assert [event.id for event in timeline.view(Where(caller="team=web")).page(before=None, limit=9)] == ["e1"]


def test_figures() -> None:
    hours = [("e1", "10:00", 1.0), ("e2", "10:30", 3.0), ("e3", "11:10", 900.0)]
    timeline = timeline_of(
        *(execution(name, duration_ms=taken, timestamp=f"2026-11-16T{at}:00.000Z") for name, at, taken in hours)
    )

    figures = timeline.view(Where()).figures.to_dict()

    assert figures["width"] == 5 * MINUTE
    assert [at for at, each in enumerate(figures["bins"]) if each] == [0, 6, 14]
    [hook] = figures["hooks"]
    assert (hook["count"], hook["p50"], hook["p95"], hook["max"]) == (3, 3.0, 900.0, 900.0)
    assert [(figures["latencies"][at], each) for at, each in enumerate(hook["histogram"]) if each] == [
        (1, 1),
        (5, 1),
        (1000, 1),
    ]
    assert [each for each in hook["trend"] if each] == [(1.0, 1.0), (3.0, 3.0), (900.0, 900.0)]


@pytest.mark.parametrize(
    "last", ["2026-11-16T10:00", "2026-11-16T10:40", "2026-11-17T09:00", "2027-03-01T00:00", "2080-01-01T00:00"]
)
def test_there_are_never_too_many_bins(last: str) -> None:
    figures = timeline_of(execution(), execution("e2", timestamp=f"{last}:00.000Z")).view(Where()).figures.to_dict()

    assert 1 <= len(figures["bins"]) <= 60
    assert sum(sum(each.values()) for each in figures["bins"]) == 2


def test_the_oldest_events_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline_module, "MAX_EVENTS", 100)
    timeline = Timeline()
    for at in range(250):
        timeline.add([execution(f"e{at}", hook=f"hook-{at}")])
        timeline.view(Where())

    assert ids(timeline) == [f"e{at}" for at in range(249, 249 - len(timeline.events), -1)]
    assert 90 <= len(timeline.events) <= 100
    assert len(timeline.facets()["hook"]) == len(timeline.events)


def test_events_with_large_payloads_are_forgotten_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline_module, "MAX_TEXT", 100_000)
    timeline = Timeline()
    for at in range(50):
        payload = {"tool_input": {"content": "x" * 9_000}}
        timeline.add([execution(f"e{at}", payload=payload), execution(f"e{at}", hook="second")])

    assert ids(timeline) == [f"e{at}" for at in range(49, 49 - len(timeline.events), -1)]
    assert 8 <= len(timeline.events) <= 11
    timeline.add([execution("huge", payload={"content": "x" * 200_000})])
    assert ids(timeline) == ["huge"]


def test_pages() -> None:
    view = timeline_of(*(execution(f"e{at}") for at in range(10))).view(Where())

    first = view.page(before=None, limit=4)
    rest = view.page(before=first[-1].number, limit=100)

    assert [event.id for event in [*first, *rest]] == [f"e{at}" for at in range(9, -1, -1)]


@pytest.mark.parametrize(
    ("observed", "words"),
    [
        (None, ""),
        ({"blocked": True}, "would block"),
        ({"stopped": True}, "would stop"),
        ({"effects": ["tool_input"]}, "would change"),
        ({"blocked": False}, "would allow"),
    ],
)
def test_what_a_hook_that_only_observes_would_have_done(observed: object, words: str) -> None:
    assert would_decide(execution(observed=observed)) == words


# Silent hooks.


def findings(world: CliProject) -> dict[str, tuple[str, str]]:
    with world.inside(LLXPRT_TRUST_PROJECT_HOOKS="1"):
        timeline = Timeline()
        timeline.add(LogReader(events=True).read())
        found = find_silent_hooks(str(world.root), take_inventory(str(world.root)), timeline.events.values())
    return {each.hook: (each.kind, each.text) for each in found}


def test_hooks_that_never_fired_are_named_with_what_was_seen(world: CliProject) -> None:
    hooks = {
        **GUARD,
        "SessionStart": [{"matcher": "clear", "hooks": [{"type": "command", "name": "s", "command": "s"}]}],
    }
    hooks["BeforeModel"] = [{"hooks": [{"type": "command", "name": "m", "command": "m"}]}]
    hooks["BeforeTool"] = [*hooks["BeforeTool"], {"hooks": [{"type": "command", "name": "off", "command": "off"}]}]
    hooks["BeforeTool"] += [{"matcher": "WriteFile", "hooks": [{"type": "command", "name": "near", "command": "near"}]}]
    world.write(world.project_file, {"enableHooks": True, "hooks": hooks, "hooksConfig": {"disabled": ["off"]}})
    fire(world, "write_file", {})

    assert findings(world) == {
        "typo": ("never fired", "Its matcher 'Write' matched no recorded tool. Tools seen: write_file."),
        "near": (
            "never fired",
            "Its matcher 'WriteFile' matched no recorded tool. Did you mean 'write_file'? Tools seen: write_file.",
        ),
        "off": ("does not run", "It is configured, but disabled."),
        "s": ("never fired", "Its matcher is 'clear', and no recorded event reached it."),
        "m": ("never fired", "No recorded event reached it."),
    }


def test_events_of_another_project_do_not_count(world: CliProject, tmp_path: Path) -> None:
    world.write(world.project_file, {"enableHooks": True, "hooks": {"BeforeTool": GUARD["BeforeTool"][:1]}})
    fire(world, "write_file", {})
    assert findings(world) == {}

    text = world.log_file.read_text().replace(str(world.root), str(tmp_path / "elsewhere"))
    world.log_file.write_text(text)
    assert list(findings(world)) == ["no-secrets"]


def test_one_failure_is_not_always() -> None:
    failed = execution(failed=True, error="no")
    assert find_failing_hooks(timeline_of(failed).events.values()) == []
    mixed = timeline_of(failed, execution("e2", failed=True), execution("e3"))
    assert find_failing_hooks(mixed.events.values()) == []
    [found] = find_failing_hooks(timeline_of(failed, execution("e2", failed=True, error="no")).events.values())
    assert (found.kind, found.hook) == ("always fails", "guard")


# Using an event again.


def test_without_a_payload_the_input_is_an_example_for_the_same_tool() -> None:
    [event] = timeline_of(execution(), ended()).events.values()

    assert input_of(event) == ({"tool_name": "glob", "tool_input": {"pattern": "**/*.py"}}, False)


def test_the_command_is_quoted_for_a_shell(call: Call, world: CliProject) -> None:
    world.write(
        world.project_file,
        {"enableHooks": True, "hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": "cat"}]}]}},
    )
    text = "it's $(touch owned) `touch owned` \\ \"; touch owned\n"

    shown, _ = world.screen(
        fire_command("BeforeTool", {"tool_name": "t", "tool_input": {"a": text}}, str(world.root)) + " --json"
    )

    assert json.loads(json.loads(shown)["results"][0]["stdout"])["tool_input"] == {"a": text}
    assert not (world.root / "owned").exists()


@pytest.mark.parametrize("decision", ["blocked", "allowed"])
def test_a_copied_test_passes(world: CliProject, decision: str) -> None:
    world.write(world.project_file, {"enableHooks": True, "hooks": GUARD})
    content = "AKIA1234" if decision == "blocked" else "plain"
    test = hook_test(
        "BeforeTool", {"tool_name": "write_file", "tool_input": {"content": content}}, decision, "it has a key", None
    )
    world.write("guard.hooktest.json", test)

    run = world.run("test", "guard.hooktest.json")

    assert (run.status, "1 passed" in run.stdout) == (0, True), run.stdout + run.stderr


def test_a_copied_test_of_an_event_that_was_asked_about_expects_that() -> None:
    [case] = json.loads(hook_test("BeforeTool", {}, "allowed", "", {"decision": "ask"}))
    assert case["expect"] == {"decision": "ask"}


def test_differences_have_a_few_lines_around_them() -> None:
    before = "\n".join(map(str, range(40)))
    assert diff(before, before) == []

    lines = diff(before, before.replace("20", "twenty"))

    assert lines[0] == ("…", "")
    assert [text for kind, text in lines if kind == " "] == ["16", "17", "18", "19", "21", "22", "23", "24"]
    assert [each for each in lines if each[0] in "+-"] == [("-", "20"), ("+", "twenty")]
