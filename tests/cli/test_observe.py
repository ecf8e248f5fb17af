"""Hooks in observe mode on the command line: each command says what they would have done (D-80)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from llxprt_hooks import Config, HookLog
from tests.support.replies import DENY, printing

if TYPE_CHECKING:
    from tests.support.cli import Call, CliProject

REWRITE = """echo '{"hookSpecificOutput": {"tool_input": {"path": "b"}}}'"""


@pytest.fixture
def observing(world: CliProject) -> CliProject:
    world.configure(
        BeforeTool={
            "hooks": [
                {"type": "command", "name": "guard", "command": printing(DENY), "mode": "observe", "failClosed": True},
                {"type": "command", "name": "rewriter", "command": REWRITE, "mode": "observe"},
                {"type": "command", "name": "broken", "command": "exit 1", "mode": "observe"},
                {"type": "command", "name": "closed", "command": "exit 1;", "mode": "observe", "failClosed": True},
                {"type": "command", "name": "quiet", "command": "true", "mode": "observe"},
            ]
        }
    )
    return world


def test_fire_shows_what_it_would_have_decided_and_allows(observing: CliProject) -> None:
    run = observing.run("fire", "BeforeTool")

    assert run.status == 0
    meanings = [line.strip() for line in run.stdout.splitlines() if line.startswith("  means: ")]
    only = "means: nothing, because it only observes: "
    assert meanings == [
        f"{only}would have blocked: not today",
        f'{only}would have had an effect: rewrites the arguments: {{"path":"b"}}',
        f"{only}would have changed nothing, too",
        f"{only}would have blocked, because failClosed is set: hook `closed` exited with code 1",
        f"{only}would have changed nothing, too",
    ]
    assert "allowed: nothing changed" in run.stdout


def test_fire_gives_programs_the_observed_output(observing: CliProject) -> None:
    trial = observing.run("fire", "BeforeTool", "--json").json

    assert (trial["blocked"], trial["final_output"], trial["success"]) == (False, None, True)
    assert trial["results"][0]["output"] is None
    assert trial["results"][0]["observed"] == {"decision": "deny", "reason": "not today"}
    assert [hook["mode"] for hook in trial["plan"]["hooks"]] == ["observe"] * 5


def test_list_marks_it(observing: CliProject) -> None:
    lines = observing.run("list").stdout.splitlines()

    [guard] = [line for line in lines if line.split()[0] == "guard"]
    assert guard.endswith("enabled, only observes")
    assert lines.count("      observes: it is logged, and changes nothing") == 5
    assert "      blocks when it fails" not in lines
    assert {hook["mode"] for hook in observing.run("list", "--json").json["hooks"]} == {"observe"}


async def recorded(world: CliProject) -> None:
    with world.inside(LLXPRT_TRUST_PROJECT_HOOKS="1"):
        config = Config.load(world.root, observer=HookLog(world.root, file=world.log_file))
        system = config.get_hook_system()
        assert system is not None
        await system.initialize()
        for _ in range(2):
            await system.get_event_handler().fire_before_tool_event("write_file", {})


async def test_the_log_has_the_observed_decision_in_a_field_of_its_own(observing: CliProject, call: Call) -> None:
    await recorded(observing)

    records = {record["hook"]: record for record in observing.run("log", "--json").json_lines}
    assert (records["guard"]["blocked"], records["guard"]["reason"]) == (False, None)
    assert records["guard"]["observed"] == {"blocked": True, "stopped": False, "reason": "not today", "effects": []}
    assert records["rewriter"]["observed"]["effects"] == ["tool_input"]
    decided = [(line.split()[2], " ".join(line.split()[7:])) for line in observing.run("log").stdout.splitlines()]
    assert set(decided) == {
        ("observed", "guard: would have blocked: not today"),
        ("observed", "rewriter: would have changed tool_input"),
        ("failed", "broken: hook `broken` exited with code 1"),
        (
            "observed",
            "closed: would have blocked, because failClosed is set: hook `closed` exited with code 1",
        ),
        ("allowed", "quiet"),
    }
    assert call("log", "--blocked", "--json").stdout == ""


async def test_stats_count_would_be_blocks_apart(observing: CliProject) -> None:
    await recorded(observing)

    figures = {each["hook"]: each for each in observing.run("stats", "--json").json}
    assert (figures["guard"]["blocked"], figures["guard"]["would_block"]) == (0, 2)
    headings, *rows = observing.run("stats", COLUMNS="200").stdout.splitlines()
    assert headings.split()[:6] == ["hook", "event", "count", "failed", "blocked", "would"]
    [guard] = [row.split() for row in rows if row.startswith("guard")]
    assert guard[2:6] == ["2", "0", "0", "2"]
    assert "0 blocked, 2 would have blocked" in " ".join(observing.run("stats", COLUMNS="40").stdout.split())
