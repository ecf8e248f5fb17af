"""``llxprt-hooks fire``: hooks tried without an agent, everything shown, and an exit status to build on."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import Any

import pytest

from llxprt_hooks import HookEventName, HookLog
from llxprt_hooks.core.engine.results import HookExecutionResult
from llxprt_hooks.core.executors.command import CommandSpec
from llxprt_hooks.core.protocol.inputs import BASE_FIELDS
from llxprt_hooks.settings.definitions import HookConfig
from tests.support.cli import ESCAPE, Call, CliProject, ended
from tests.support.processes import DEADLINE, until
from tests.support.project import APPROVED
from tests.support.replies import DENY, STOP, printing

DENY_AND_STOP = """echo '{"decision": "block", "reason": "not today", "continue": false}'"""
PERMISSION = (
    """echo '{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "not today"}}'"""
)


def blocks(report: str, title: str) -> list[str]:
    """What a report shows under each of its titles of that name, without indentation."""
    found, lines = [], report.splitlines()
    for number, line in enumerate(lines):
        if line == f"  {title}":
            block = []
            for each in lines[number + 1 :]:
                if not each.startswith("    "):
                    break
                block.append(each[4:])
            found.append("\n".join(block))
    return found


# The plan.


def test_plan_says_why_each_hook_was_or_was_not_chosen(world: CliProject) -> None:
    world.configure(
        BeforeTool=[
            {"matcher": "write_.*", "hooks": [{"type": "command", "name": "writes", "command": "true"}]},
            {"matcher": "read_.*", "hooks": [{"type": "command", "name": "reads", "command": "echo r"}]},
            {"name": "everything", "command": "echo e"},
            {"name": "again", "command": "true"},
            {"name": "switched-off", "command": "echo o"},
        ]
    )
    world.put("user", {"hooksConfig": {"disabled": ["switched-off"]}})

    report = world.run("fire", "BeforeTool", "--dry-run").stdout

    plan = [" ".join(line.split()) for line in report.splitlines()]
    assert plan[0] == "BeforeTool plan: 2 hooks, in parallel"
    because = {plan[number - 1]: line for number, line in enumerate(plan) if line.startswith("because")}
    assert because == {
        "runs writes": "because its matcher 'write_.*' matches 'write_file'",
        "skips reads": "because its matcher 'read_.*' does not match 'write_file'",
        "runs everything": "because it has no matcher that narrows it",
        "skips again": "because the same command is at hooks.BeforeTool[0].hooks[0] already, and runs once",
        "skips switched-off": "because it is disabled",
    }
    assert f"{world.project_file} hooks.BeforeTool[1].hooks[0]" in plan


def test_plan_shows_hooks_of_a_project_that_is_not_approved_and_how_to_approve_them(world: CliProject) -> None:
    world.configure(BeforeTool="touch ran")

    run = world.run("fire", "BeforeTool", approved=False)

    assert "because this project is not approved" in run.stdout
    assert "hint" not in run.stdout
    assert run.status == 1
    assert run.sentence() == (
        "Error: hooks could not be run: 1 hook is not approved; `llxprt-hooks trust` approves hooks"
    )
    assert not (world.root / "ran").exists()


@pytest.mark.parametrize("level", ["project", "user", "system"])
def test_settings_that_cannot_be_parsed_are_not_an_allow(world: CliProject, level: str) -> None:
    world.put(level, '{"enableHooks": true, "hooks": {"BeforeTool": [')

    run = world.run("fire", "BeforeTool", "--json")

    assert run.status == 1
    assert "hooks could not be run: these settings cannot be read: " in run.sentence()
    assert any("settings.json:1:" in hint for hint in run.json["hints"])


def test_a_block_wins_over_settings_that_cannot_be_parsed(world: CliProject) -> None:
    world.configure(level="user", BeforeTool="exit 2")
    world.put("project", "{")

    assert world.run("fire", "BeforeTool").status == 2


@pytest.mark.parametrize("event", ["BeforTool", "BeforeTool"])
def test_json_of_a_project_that_is_not_approved_is_not_a_success(world: CliProject, event: str) -> None:
    world.configure(**{event: "true"})

    run = world.run("fire", "BeforeTool", "--json", approved=False)

    what = "1 hook is" if event == "BeforeTool" else "the hook settings of this project are"
    assert f"hooks could not be run: {what} not approved" in run.sentence()
    assert (run.status, run.json["success"], run.json["blocked"]) == (1, False, False)


def test_hooks_of_other_events_need_no_approval(world: CliProject) -> None:
    world.configure(AfterTool="true")

    assert world.run("fire", "BeforeTool", approved=False).status == 0


@pytest.mark.parametrize(("tool", "status"), [("write_file", 0), ("read_file", 1)])
@pytest.mark.parametrize("more", [[], ["--dry-run"], ["--json"]])
def test_require_hook_fails_where_no_hook_runs(world: CliProject, tool: str, status: int, more: list[str]) -> None:
    world.configure(BeforeTool={"matcher": "write_file", "hooks": [{"type": "command", "command": "true"}]})

    run = world.run("fire", "BeforeTool", "--tool", tool, "--require-hook", *more)

    assert run.status == status
    assert ("--require-hook" in run.stderr) == bool(status)
    assert world.run("fire", "BeforeTool", "--tool", tool).status == 0


def test_names_that_no_tool_of_the_program_has_are_pointed_out(world: CliProject) -> None:
    """Tool and matcher are compared with the tools that the settings name."""
    groups = [{"matcher": matcher, "hooks": [{"type": "command", "name": matcher, "command": "true"}]}
              for matcher in ("^write_note$", "^serch$")]  # fmt: skip
    tools = ["write_note", "search"]
    world.put("project", {"enableHooks": True, "hooksConfig": {"tools": tools}, "hooks": {"BeforeTool": groups}})

    fired = world.run("fire", "BeforeTool", "--tool", "write_notes", "--json").json

    assert fired["hints"][-2:] == [
        "no tool in `hooksConfig.tools` is called `write_notes`; did you mean `write_note`?",
        "the matcher `^serch$` of hook `^serch$` matches no tool in `hooksConfig.tools`; did you mean `search`?",
    ]
    assert world.run("fire", "BeforeTool", "--tool", "mcp__notes__write_note", "--json").json["hints"][-1:] == [
        fired["hints"][-1]
    ]


def test_other_hooks_can_be_required_too(world: CliProject) -> None:
    """What a hook of another event, or of another tool, must be there for; without it nothing is fired."""
    world.configure(BeforeTool={"matcher": "write", "hooks": [{"type": "command", "command": world.hook()}]})
    fire = ("fire", "BeforeTool", "--require-hook", "BeforeTool:write_file", "--require-hook")

    missing = world.run(*fire, "BeforeTool:glob", "--require-hook", "BeforeModel")

    assert (missing.status, missing.stdout, world.payloads()) == (1, "", [])
    assert "Required hooks are missing:\nBeforeTool:glob: no hook would run" in missing.stderr
    assert "\nBeforeModel: no hook would run. None is configured for BeforeModel." in missing.stderr
    assert world.run(*fire).status == 0
    assert len(world.payloads()) == 1


@pytest.mark.parametrize("failing", [{"command": "exit 1"}, {"command": "sleep 60", "timeout": 50}])
def test_require_hook_counts_a_failed_hook_as_not_run(world: CliProject, failing: dict[str, Any]) -> None:
    world.configure(BeforeTool=failing)
    alone = world.run("fire", "BeforeTool", "--require-hook")
    world.configure(BeforeTool=[failing, "true"])

    assert alone.status == 1
    assert alone.sentence() == "Error: --require-hook was given, but every hook that ran has failed"
    assert world.run("fire", "BeforeTool", "--require-hook").status == 0


def test_require_hook_counts_a_hook_that_only_observes_as_not_run(world: CliProject) -> None:
    observing = {"command": "true", "mode": "observe"}
    world.configure(BeforeTool=observing)
    alone = world.run("fire", "BeforeTool", "--require-hook")
    world.configure(BeforeTool=[observing, "exit 1"])
    beside_a_failed_one = world.run("fire", "BeforeTool", "--require-hook")
    world.configure(BeforeTool=[observing, "true"])

    assert (alone.status, beside_a_failed_one.status) == (1, 1)
    assert alone.sentence() == "Error: --require-hook was given, but every hook of this event only observes"
    assert world.run("fire", "BeforeTool", "--require-hook").status == 0


def test_without_hooks_an_event_that_cannot_be_blocked_is_not_called_allowed(world: CliProject) -> None:
    assert world.run("fire", "SessionStart").stdout.splitlines()[-1] == "no hook ran"


@pytest.mark.parametrize(
    ("hooks", "line"),
    [
        ({"name": "a", "command": "exit 1"}, "allowed, because hook a failed"),
        ({"name": "a", "command": "sleep 60", "timeout": 50}, "allowed, because hook a failed"),
        (
            [{"name": name, "command": f"exit {code}"} for code, name in enumerate("abc", 3)],
            "allowed, because hooks a, b and c failed",
        ),
        ([{"name": "a", "command": "exit 1"}, "true"], "allowed: nothing changed, but hook a failed"),
        ("true", "allowed: nothing changed"),
        ({"matcher": "^other$", "hooks": [{"type": "command", "command": "true"}]}, "allowed, because no hook ran"),
        (
            {"name": "a", "command": "exit 1", "failClosed": True},
            "blocked because failClosed is set: hook `a` exited with code 1",
        ),
        ("echo 'Policy 7: blocked by an administrator' >&2; exit 2", "blocked: Policy 7: blocked by an administrator"),
    ],
)
def test_the_last_words_say_why_the_call_is_allowed(world: CliProject, hooks: Any, line: str) -> None:
    world.configure(BeforeTool=hooks)

    run = world.run("fire", "BeforeTool", "--tool", "write_file")

    assert line in run.stdout.splitlines()
    assert "allowed, because" not in world.run("fire", "BeforeTool", "--dry-run").stdout


def test_plan_shows_hooks_that_do_not_run_because_hooks_are_off(world: CliProject) -> None:
    world.put("user", {"hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": "touch ran"}]}]}})

    run = world.run("fire", "BeforeTool")

    assert "because hooks are off" in run.stdout
    assert '`"enableHooks": true`' in run.stdout
    assert not (world.root / "ran").exists()


def test_an_event_without_hooks_is_said_to_have_none(world: CliProject) -> None:
    assert "no hook is configured for PreCompress" in world.run("fire", "PreCompress").stdout


def test_a_definition_that_was_discarded_is_reported(world: CliProject) -> None:
    world.put("user", {"enableHooks": True, "hooks": {"BeforeTools": [{"hooks": []}]}})

    hints = world.run("fire", "BeforeTool", "--json").json["hints"]

    assert any("hooks.BeforeTools" in hint and "Did you mean `BeforeTool`?" in hint for hint in hints)


def test_dry_run_stops_at_the_plan(world: CliProject) -> None:
    world.configure(BeforeTool="touch ran; exit 2")

    run = world.run("fire", "BeforeTool", "--dry-run")

    assert "1 hook" in run.stdout
    assert run.status == 0
    assert not (world.root / "ran").exists()


# The report.


def test_report_shows_the_whole_input_of_a_hook_and_the_result(world: CliProject) -> None:
    world.configure(
        BeforeTool={
            "name": "guard",
            "command": world.script("guard", "cat > sent; echo said; echo 'in vain' >&2; exit 7"),
        }
    )

    run = world.run("fire", "BeforeTool", "--args", '{"file_path": "ä.txt"}')

    [sent] = blocks(run.stdout, "sent on stdin")
    assert json.loads(sent) == json.loads((world.root / "sent").read_text())
    assert blocks(run.stdout, "stdout") == ["said"]
    assert blocks(run.stdout, "stderr") == ["in vain"]
    assert "guard  exit code 7, " in run.stdout
    assert " ms" in run.stdout
    assert "failed: hook `guard` exited with code 7" in run.stdout
    assert "means: the hook failed, so the call goes ahead" in run.stdout


def test_report_of_a_chain_shows_what_each_hook_was_sent(world: CliProject) -> None:
    rewrite = """cat > first; echo '{"hookSpecificOutput": {"tool_input": {"content": "rewritten"}}}'"""
    world.configure(
        BeforeTool={
            "sequential": True,
            "hooks": [
                {"type": "command", "command": world.script("one", rewrite)},
                {"type": "command", "command": world.script("two", "cat > second")},
            ],
        }
    )

    report = world.run("fire", "BeforeTool").stdout

    assert "2 hooks, sequentially" in report
    shown = [json.loads(block) for block in blocks(report, "sent on stdin")]
    assert shown == [json.loads((world.root / name).read_text()) for name in ("first", "second")]
    assert [each["tool_input"]["content"] for each in shown] == ["Hello.\n", "rewritten"]
    [merged] = blocks(report, "merged")
    assert json.loads(merged) == {
        "decision": "allow",
        "hookSpecificOutput": {"tool_input": {"content": "rewritten"}},
    }
    assert 'allowed: rewrites the arguments: {"content":"rewritten"}' in report


def test_report_makes_control_characters_visible(world: CliProject) -> None:
    command = world.script("rude", r"printf '\033[2Jgone\007'; printf '\033]0;title\007' >&2; exit 2")
    world.configure(BeforeTool={"name": "ru\x1b[1mde\n  runs   another", "command": command})

    run = world.run("fire", "BeforeTool")

    assert ESCAPE not in run.stdout + run.stderr
    assert "\x07" not in run.stdout
    assert r"\x1b[2Jgone\x07" in run.stdout
    assert r"blocked: \x1b]0;title\x07" in run.stdout
    assert "\n  runs   another" not in run.stdout


def test_report_shortens_long_output_and_json_has_all_of_it(world: CliProject) -> None:
    world.configure(BeforeTool=world.script("flood", "seq 1 5000"))

    shown = world.run("fire", "BeforeTool").stdout
    whole = world.run("fire", "BeforeTool", "--json").json["results"][0]["stdout"]

    assert len(shown.splitlines()) < 200
    assert "… and 4900 more lines; --json prints all" in shown
    assert whole.splitlines() == [str(number) for number in range(1, 5001)]


@pytest.mark.parametrize("event", list(HookEventName))
def test_every_event_has_a_sample_that_makes_a_complete_payload(
    world: CliProject, call: Call, event: HookEventName
) -> None:
    world.configure(**{event.value: "cat"})

    [result] = call("fire", event, "--json").json["results"]

    payload = json.loads(result["stdout"])
    assert list(payload) == [*BASE_FIELDS, *event.spec.fields]
    assert payload["hook_event_name"] == event
    assert payload["cwd"] == str(world.root)


# What programs get.


def test_json_has_the_names_that_others_rely_on(world: CliProject) -> None:
    world.configure(BeforeTool={"name": "guard", "command": printing(DENY)})

    run = world.run("fire", "BeforeTool", "--json")

    document = run.json
    assert list(document) == [
        "event",
        "plan",
        "results",
        "final_output",
        "blocked",
        "should_stop",
        "reason",
        "success",
        "hints",
    ]
    assert document["event"] == "BeforeTool"
    assert document["plan"]["sequential"] is False
    assert [hook["name"] for hook in document["plan"]["hooks"]] == ["guard"]
    [result] = document["results"]
    duration = result.pop("duration_ms")
    assert isinstance(duration, float)
    assert result == {
        "name": "guard",
        "command": printing(DENY),
        "success": True,
        "exit_code": 0,
        "signal": None,
        "dialect": "llxprt",
        "warm": False,
        "ahead": False,
        "stdout": '{"decision": "deny", "reason": "not today"}',
        "stderr": "",
        "error": None,
        "output": {"decision": "deny", "reason": "not today"},
        "observed": None,
    }
    assert document["final_output"] == {"decision": "deny", "reason": "not today"}
    assert (document["blocked"], document["should_stop"], document["reason"]) == (True, False, "not today")
    assert document["success"] is True
    assert document["hints"] == []


STATUSES = {
    "silence": ("BeforeTool", "true", 0),
    "exit 2": ("BeforeTool", "exit 2", 2),
    "deny": ("BeforeTool", printing(DENY), 2),
    "deny by the compatibility field": ("BeforeTool", PERMISSION, 2),
    "deny a model call": ("BeforeModel", printing(DENY), 2),
    "stop": ("BeforeTool", printing(STOP), 3),
    "stop after a tool": ("AfterTool", printing(STOP), 3),
    **{f"stop where nobody waits, {event}": (event, printing(STOP), 0) for event in ("SessionStart", "BeforeAgent")},
    "block wins over stop": ("BeforeTool", DENY_AND_STOP, 2),
    "failure": ("BeforeTool", "exit 1", 0),
    "missing program": ("BeforeTool", "no-such-program-anywhere", 0),
    "an event that cannot be blocked": ("AfterTool", printing(DENY), 0),
    "exit 2 where nothing can be blocked": ("SessionStart", "exit 2", 0),
}


@pytest.mark.parametrize(("event", "command", "status"), STATUSES.values(), ids=STATUSES)
def test_exit_status_says_what_hooks_decided(
    world: CliProject, call: Call, event: str, command: str, status: int
) -> None:
    world.configure(**{event: command})

    run = call("fire", event, "--json")

    assert run.status == status
    assert run.json["blocked"] is (status == 2)
    assert run.stderr == ""


@pytest.mark.parametrize("command", ["echo no >&2; exit 2", printing(DENY)])
@pytest.mark.parametrize("event", ["BeforeAgent", "AfterTool"])
def test_a_block_where_nothing_can_be_blocked_is_said_to_have_no_effect(
    world: CliProject, event: str, command: str
) -> None:
    world.configure(**{event: command})

    run = world.run("fire", event)

    assert run.status == 0
    assert f"  means: would block, but {event} cannot be blocked\n" in run.stdout


@pytest.mark.requirement("HOOK-182")
def test_ask_allows_and_the_author_is_told_so(world: CliProject) -> None:
    world.configure(BeforeTool="""echo '{"decision": "ask"}'""")

    run = world.run("fire", "BeforeTool")

    assert run.status == 0
    assert "hint" in run.stdout
    assert "`ask` doesn't prompt anyone here, and the call goes ahead" in run.stdout


def test_a_failure_of_the_engine_itself_is_status_1_with_its_reason(world: CliProject) -> None:
    world.configure(BeforeModel="true")

    run = world.run("fire", "BeforeModel", "--input", '{"llm_request": {"messages": 7}}')

    assert run.status == 1
    assert "failed: hook translation failed: llm_request is an object with the fields messages" in run.stdout


# Input.

RECORDED = {
    "session_id": "s-1",
    "cwd": "/",
    "timestamp": "2025-01-01T00:00:00.000Z",
    "hook_event_name": "BeforeTool",
    "transcript_path": "/t.jsonl",
    "tool_name": "read_file",
    "tool_input": {"file_path": "a.py"},
}


@pytest.mark.parametrize("way", ["argument", "file", "stdin"])
def test_a_recorded_payload_can_be_fired_again(world: CliProject, way: str) -> None:
    world.configure(BeforeTool="cat")
    (world.root / "recorded.json").write_text(json.dumps(RECORDED))
    given = {"argument": json.dumps(RECORDED), "file": "@recorded.json", "stdin": "-"}[way]

    [result] = world.run("fire", "BeforeTool", "--input", given, "--json", stdin=json.dumps(RECORDED)).json["results"]

    assert json.loads(result["stdout"]) == RECORDED


def recorded_execution(world: CliProject, *, payloads: bool = True, payload: dict[str, Any] = RECORDED) -> str:
    """Record one execution of a hook; its id."""
    hook = HookConfig("command", CommandSpec("true"), name="guard")
    log = HookLog(world.folder, file=world.log_file, payloads=payloads)
    log.hook_ended(HookExecutionResult(hook, HookEventName.BEFORE_TOOL, success=True, hook_input=payload))
    identity: str = json.loads(world.log_file.read_text().splitlines()[-1])["id"]
    return identity


@pytest.mark.parametrize("event", [[], ["BeforeTool"]])
def test_a_recorded_execution_can_be_fired_again_by_its_id(world: CliProject, event: list[str]) -> None:
    world.configure(BeforeTool="cat")
    identity = recorded_execution(world)

    [result] = world.run("fire", *event, "--from-log", identity[:8], "--json").json["results"]

    assert json.loads(result["stdout"]) == RECORDED
    assert f"llxprt-hooks fire --from-log {identity[:8]}" in world.run("log", identity).stdout


@pytest.mark.parametrize("way", ["input", "log"])
def test_a_recorded_folder_is_shown_to_hooks_and_chooses_no_program(world: CliProject, way: str) -> None:
    program = "echo {}; pwd; echo $LLXPRT_PROJECT_DIR"
    for folder, name in ((world.root, "approved"), (world.root / "vendor", "other")):
        script = folder / ".llxprt/hooks/guard.sh"
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(f"#!/bin/sh\ncat\n{program.format(name)}\n")
        script.chmod(0o755)
    world.configure(BeforeTool="$LLXPRT_PROJECT_DIR/.llxprt/hooks/guard.sh")
    payload = {**RECORDED, "cwd": str(world.root / "vendor")}
    given = (
        ["--input", json.dumps(payload)]
        if way == "input"
        else ["--from-log", recorded_execution(world, payload=payload)]
    )

    [result] = world.run("fire", "BeforeTool", *given, "--json").json["results"]

    seen, ran, started_in, project = result["stdout"].replace("}approved", "}\napproved").splitlines()
    assert json.loads(seen)["cwd"] == payload["cwd"]
    assert (ran, started_in, project) == ("approved", str(world.root), str(world.root))


def test_an_execution_that_cannot_be_fired_again_is_one_sentence(world: CliProject) -> None:
    assert "no recorded execution has the id 12ab" in world.run("fire", "--from-log", "12ab").sentence()
    large = recorded_execution(world, payload={**RECORDED, "tool_input": {"content": "x" * 300_000}})
    bare = recorded_execution(world, payloads=False)

    runs = [world.run("fire", "--from-log", identity) for identity in (large, bare, "")]

    assert [run.status for run in runs] == [1, 1, 1]
    assert "is not recorded: it was too large" in runs[0].sentence()
    assert (
        "record payloads with `llxprt-hooks run --log-payloads` or `llxprt-hooks inspect --record`"
        in runs[1].sentence()
    )
    assert "2 recorded executions have the id" in runs[2].sentence()


def test_an_execution_is_fired_for_its_own_event_only(world: CliProject) -> None:
    strange = recorded_execution(world, payload={**RECORDED, "hook_event_name": "Strange"})
    usual = recorded_execution(world)

    assert "Unknown event 'Strange'" in world.run("fire", "--from-log", strange).stderr
    assert "recorded for BeforeTool, not for AfterTool" in world.run("fire", "AfterTool", "--from-log", usual).stderr
    assert world.run("fire", "--from-log", usual, "--input", "{}").status == 64


def test_short_form_for_tools_fills_in_what_is_not_given(world: CliProject) -> None:
    world.configure(AfterTool="cat")

    [result] = world.run("fire", "AfterTool", "--tool", "read_file", "--json").json["results"]

    payload = json.loads(result["stdout"])
    assert (payload["tool_name"], payload["tool_input"]) == ("read_file", {"file_path": "README.md"})
    assert payload["tool_response"]["llmContent"]


def test_arguments_can_be_in_a_file(world: CliProject) -> None:
    world.configure(BeforeTool="cat")
    world.write("arguments.json", '{"file_path": "a.py"}')

    [result] = world.run("fire", "BeforeTool", "--args", "@arguments.json", "--json").json["results"]

    assert json.loads(result["stdout"])["tool_input"] == {"file_path": "a.py"}


WRONG_USAGE: dict[str, tuple[list[str], str]] = {
    "no event": ([], "EVENT"),
    "unknown event": (["NoSuchThing"], "Unknown event 'NoSuchThing'."),
    "event in another case": (["beforetool"], "Did you mean BeforeTool?"),
    "Claude Code's name": (["PostToolUse"], "Did you mean AfterTool?"),
    "tool for another event": (["BeforeModel", "--tool", "x"], "--tool and --args are for tool events"),
    "arguments in a missing file": (["BeforeTool", "--args", "@gone.json"], "gone.json cannot be read"),
    "arguments that are not JSON": (["BeforeTool", "--args", "{"], "--args is not valid JSON: expecting property name"),
    "arguments that are not an object": (["BeforeTool", "--args", "[]"], "--args must be a JSON object"),
    "input that is not JSON": (["BeforeTool", "--input", "nonsense"], "--input is not valid JSON"),
    "input that is nested too deeply": (["BeforeTool", "--input", "[" * 100_000], "--input is not valid JSON"),
    "missing file": (["BeforeTool", "--input", "@nowhere.json"], "nowhere.json cannot be read"),
    "recorded for another event": (
        ["BeforeTool", "--input", '{"hook_event_name": "AfterTool"}'],
        "recorded for AfterTool, not for BeforeTool",
    ),
    "field of the wrong type": (["SessionStart", "--input", '{"source": "moon"}'], 'must be one of "startup"'),
    "unknown option": (["BeforeTool", "--tols", "x"], "--tols"),
    "unknown folder": (["BeforeTool", "-C", "nowhere"], "nowhere"),
}


@pytest.mark.parametrize(("arguments", "words"), WRONG_USAGE.values(), ids=WRONG_USAGE)
def test_wrong_usage_is_status_64_and_a_sentence(call: Call, arguments: list[str], words: str) -> None:
    run = call("fire", *arguments)

    assert run.status == 64
    assert words in run.stderr
    assert "Traceback" not in run.stderr
    assert run.stdout == ""


# Waiting.


def test_a_slow_hook_is_named_on_a_terminal_while_it_is_waited_for(world: CliProject) -> None:
    command = "until [ -e go ]; do sleep 0.05; done"
    world.configure(BeforeTool={"name": "slow-guard", "command": command, "timeout": 59_000})

    terminal = world.terminal("llxprt-hooks fire BeforeTool --json > report", columns=100, **APPROVED)
    terminal.expect_exact("waiting for slow-guard (at most 59 s)")
    (world.root / "go").touch()

    assert ended(terminal)[1] == 0
    assert json.loads((world.root / "report").read_text())["success"] is True


def test_ctrl_c_ends_the_hook_too(world: CliProject) -> None:
    world.configure(BeforeTool=world.script("endless", "echo $$ > pid; exec sleep 600"))
    process = world.start("fire", "BeforeTool")
    until(lambda: (world.root / "pid").exists() and (world.root / "pid").read_text().endswith("\n"))
    pid = int((world.root / "pid").read_text())

    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=DEADLINE)

    assert process.returncode == 130
    assert b"Traceback" not in stderr
    assert stdout == b""
    until(lambda: not _runs(pid))


def _runs(pid: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.startswith("Z")


def test_fire_leaves_no_record_of_executions(world: CliProject) -> None:
    world.configure(BeforeTool="true")

    world.run("fire", "BeforeTool")

    assert not world.log_file.exists()


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ('{"tool": "x"}', "hint: unknown fields of BeforeTool, not sent: `tool`; known fields: tool_name, tool_input"),
        ('{"a": 1, "b": 2, "cwd": "/"}', "hint: unknown fields of BeforeTool, not sent: `a`, `b`;"),
    ],
)
def test_fields_that_the_event_does_not_have_are_reported(world: CliProject, given: str, hint: str) -> None:
    world.configure(BeforeTool="true")

    assert hint in world.run("fire", "BeforeTool", "--input", given).stdout


def test_a_missing_input_file_is_named_once(world: CliProject) -> None:
    run = world.run("fire", "BeforeTool", "--input", "@nowhere.json")

    assert "the input file nowhere.json cannot be read: No such file or directory\n" in run.stderr
    assert run.status == 64


# Hooks that act.


@pytest.mark.parametrize("event", ["BeforeAgent", "AfterAgent", "PreCompress", "AfterTool", "AfterModel"])
def test_a_block_counts_at_more_events_where_hooks_act(world: CliProject, event: str) -> None:
    for profile, status in (("standard", 0), ("full", 2)):
        hooks = {event: [{"hooks": [{"type": "command", "command": printing(DENY)}]}]}
        world.put("user", {"enableHooks": True, "hooksConfig": {"profile": profile}, "hooks": hooks})
        fired = world.run("fire", event, "--json")
        assert (fired.status, fired.json["blocked"]) == (status, status == 2)


def test_fire_says_what_hooks_that_act_would_do(world: CliProject) -> None:
    said = {
        "AfterTool": '{"hookSpecificOutput": {"tool_response": "x"}}',
        "AfterAgent": '{"hookSpecificOutput": {"clearContext": true}}',
        "BeforeTool": '{"decision": "ask", "reason": "sure?"}',
    }
    hooks = {event: [{"hooks": [{"type": "command", "command": f"echo '{text}'"}]}] for event, text in said.items()}
    world.put("user", {"enableHooks": True, "hooksConfig": {"profile": "full"}, "hooks": hooks})
    shown = {event: world.run("fire", event).stdout for event in said}
    assert "allowed: replaces the result" in shown["AfterTool"]
    assert "allowed: clears the conversation" in shown["AfterAgent"]
    assert "asks a person: sure?" in shown["BeforeTool"]
