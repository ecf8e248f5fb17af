"""``llxprt-hooks backtest``: recorded events, fired again, and which decisions would change (D-86)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import Config, HookLog
from llxprt_hooks.commands.backtest import HOW_TO_RECORD
from llxprt_hooks.commands.fire import LoadedHooks
from llxprt_hooks.commands.log import LogReader
from tests.support.project import APPROVED, hooks_of

if TYPE_CHECKING:
    from tests.support.cli import CliProject

GUARD = "grep -q 'rm x' && { echo 'no deleting' >&2; exit 2; }; true"
STRICTER = "grep -Eq 'rm x|git push' && { echo 'not allowed' >&2; exit 2; }; true"
COMMANDS = ("ls", "rm x", "git push", "ls -l")


def shell(command: str) -> dict[str, Any]:
    return {"tool_name": "run_shell_command", "tool_input": {"command": command}}


async def record(world: CliProject, *inputs: dict[str, Any], event: str = "BeforeTool", payloads: bool = True) -> None:
    """Fire events at the hooks of the project, as a program does that records them."""
    with world.inside(**APPROVED):
        log = HookLog(world.root, file=world.log_file, payloads=payloads)
        system = Config.load(world.root, observer=log).get_hook_system()
        assert system is not None
        for fields in inputs:
            await system.ready_event_handler().fire_event(event, fields)


@pytest.fixture
async def recorded(world: CliProject) -> CliProject:
    world.configure(BeforeTool=[{"name": "guard", "command": GUARD}, {"name": "other", "command": "cat > /dev/null"}])
    await record(world, *map(shell, COMMANDS), {"tool_name": "write_file", "tool_input": {"file_path": "a"}})
    return world


def settings(world: CliProject, name: str = "new.json", **events: Any) -> str:
    return str(world.write(name, {"enableHooks": True, "hooks": hooks_of(events)}))


def changes(document: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (each["event"], each["subject"], each["from"], each["to"], each["count"], each["of"])
        for each in document["changes"]
    ]


def test_the_same_settings_change_nothing(recorded: CliProject) -> None:
    run = recorded.run("backtest")

    assert run.status == 0
    assert run.stdout == "none of 5 recorded events would be decided differently\n"
    assert run.stderr == "Hooks run for real: what they write, send or count happens again.\n"
    assert recorded.run("backtest", "--fail-on-change").status == 0


def test_changed_settings_show_which_decisions_change_with_examples(recorded: CliProject) -> None:
    file = settings(recorded, BeforeTool={"name": "guard", "command": STRICTER})

    run = recorded.run("backtest", "--settings", file)

    assert run.status == 0
    heading, row, reason, _, summary = run.stdout.splitlines()
    assert heading.split() == ["event", "subject", "decision", "count", "of", "rate", "examples"]
    assert row.split()[:8] == ["BeforeTool", "run_shell_command", "allow", "→", "block", "1", "4", "25.0%"]
    assert reason == "  now: not allowed"
    assert summary == "1 of 5 recorded events would be decided differently (20.0%)"
    fired = recorded.run("fire", "BeforeTool", "--from-log", row.split()[-1])
    assert '"command": "git push"' in fired.stdout


async def test_a_question_is_a_decision_where_hooks_act(world: CliProject) -> None:
    hooks: dict[str, Any] = {"BeforeTool": {"name": "guard", "command": 'echo \'{"decision": "ask"}\''}}
    world.put("project", {"enableHooks": True, "hooksConfig": {"profile": "full"}, "hooks": hooks_of(hooks)})
    await record(world, shell("ls"))
    assert changes(world.run("backtest", "--json").json) == []
    found = world.run("backtest", "--json", "--settings", settings(world, **hooks)).json
    assert changes(found) == [("BeforeTool", "run_shell_command", "ask", "allow", 1, 1)]


def test_fail_on_change_sets_the_exit_status(recorded: CliProject) -> None:
    file = settings(recorded, BeforeTool={"name": "guard", "command": "true"})

    run = recorded.run("backtest", "--settings", file, "--fail-on-change", "--json")

    assert run.status == 1
    assert changes(run.json) == [("BeforeTool", "run_shell_command", "block", "allow", 1, 4)]
    [example] = run.json["changes"][0]["examples"]
    assert (example["recorded_reason"], example["reason"]) == ("no deleting", None)


def test_a_hook_that_fails_is_counted_and_fails_for_ci(recorded: CliProject) -> None:
    file = settings(recorded, BeforeTool={"name": "guard", "command": f"{GUARD}; exit 3"})

    run = recorded.run("backtest", "--settings", file, "--fail-on-change", "--json")

    assert run.status == 1
    assert (run.json["changed"], run.json["failed"]) == (0, 4)
    [failure] = run.json["failures"]
    assert (failure["error"], failure["count"]) == ("hook `guard` exited with code 3", 4)
    text = recorded.run("backtest", "--settings", file)
    assert text.status == 0
    assert "failed 4 times: hook `guard` exited with code 3" in text.stdout


def test_only_one_hook_runs_and_is_compared_with_what_it_decided(recorded: CliProject) -> None:
    file = settings(
        recorded, BeforeTool=[{"name": "guard", "command": "touch ran"}, {"name": "new", "command": STRICTER}]
    )

    run = recorded.run("backtest", "--settings", file, "--only", "new", "--json")

    assert changes(run.json) == [("BeforeTool", "run_shell_command", "allow", "block", 2, 4)]
    assert not (recorded.root / "ran").exists()
    unknown = recorded.run("backtest", "--settings", file, "--only", "gurd")
    assert unknown.status == 1
    assert unknown.sentence() == "Error: no hook is called gurd; hooks: guard, new"


async def test_one_event_and_a_time_can_be_chosen(world: CliProject) -> None:
    world.configure(BeforeTool={"name": "guard", "command": GUARD}, SessionStart="true")
    await record(world, *map(shell, COMMANDS))
    await record(world, {"source": "startup"}, event="SessionStart")

    def replayed(*options: str) -> int:
        run = world.run("backtest", "--json", *options)
        return int(run.json["replayed"]) if run.status == 0 else 0

    assert replayed() == 5
    assert replayed("--event", "SessionStart") == 1
    assert replayed("--since", "1h") == replayed("--since", "2026-01-01") == 5
    assert replayed("--since", "2999-01-01") == replayed("--since", "0s") == 0
    for wrong in ("7x", "soon", "999999w"):
        assert world.run("backtest", "--since", wrong).status == 64


async def test_a_stop_and_a_block_of_several_hooks_are_one_decision(world: CliProject) -> None:
    stop = """echo '{"continue": false, "stopReason": "enough"}'"""
    world.configure(BeforeTool=[stop, "true"])
    await record(world, shell("ls"))

    assert world.run("backtest", "--json").json["changed"] == 0
    file = settings(world, BeforeTool=[stop, "echo no >&2; exit 2"])
    run = world.run("backtest", "--settings", file, "--json")
    assert changes(run.json) == [("BeforeTool", "run_shell_command", "stop", "block", 1, 1)]


async def test_model_events_are_replayed_from_hook_format(world: CliProject) -> None:
    world.configure(BeforeModel="true")
    request = {"model": "m", "messages": [{"role": "user", "content": "hello there"}]}
    await record(world, {"llm_request": request}, event="BeforeModel")

    file = settings(world, BeforeModel="grep -q 'hello there' && exit 2")
    run = world.run("backtest", "--settings", file, "--json")

    assert changes(run.json) == [("BeforeModel", "", "allow", "block", 1, 1)]


async def test_the_result_of_several_hooks_is_the_recorded_one(world: CliProject) -> None:
    """In model events a later decision lifts an earlier block, so a hook may block and its event is not blocked."""
    deny, allow = (f"""echo '{{"decision": "{word}", "reason": "r"}}'""" for word in ("deny", "allow"))
    world.configure(BeforeModel=[deny, allow])
    request = {"model": "m", "messages": [{"role": "user", "content": "hello there"}]}
    await record(world, {"llm_request": request}, event="BeforeModel")

    assert world.run("backtest", "--json").json["changed"] == 0
    stricter = world.run("backtest", "--json", "--settings", settings(world, BeforeModel=deny)).json
    assert changes(stricter) == [("BeforeModel", "", "allow", "block", 1, 1)]


def test_no_audit_trail_gets_what_is_replayed(world: CliProject) -> None:
    audit = {"nats": {"servers": ["nats://127.0.0.1:1"]}}
    hooks = {"enableHooks": True, "hooks": hooks_of({"BeforeTool": "true"}), "hooksConfig": {"audit": audit}}
    world.put("user", hooks)

    with world.inside():
        replayed = LoadedHooks.load_unrecorded(world.root)

    assert replayed.config.settings is not None
    assert replayed.config.settings.audit is not None
    assert replayed.config.observer is None


async def test_events_without_payload_are_counted_and_advice_says_how_to_record(world: CliProject) -> None:
    world.configure(BeforeTool="true")
    nothing = world.run("backtest")
    assert nothing.status == 1
    assert nothing.sentence().endswith(f"no recorded event. {HOW_TO_RECORD}")

    await record(world, shell("ls"), payloads=False)
    without = world.run("backtest")
    assert without.status == 1
    assert "nothing to replay: 1 recorded event without its input" in without.sentence()
    [line] = world.run("log", "--json").json_lines
    await record(world, shell("ls"), payloads=False)
    assert "2 recorded events without their input" in world.run("backtest").sentence()
    assert "is not recorded" in world.run("fire", "--from-log", line["id"]).sentence()

    await record(world, shell("ls"))
    run = world.run("backtest")
    assert run.status == 0
    assert "2 more could not be replayed: their input was not recorded" in run.stdout


async def test_records_of_other_projects_and_broken_records_are_left_out(recorded: CliProject) -> None:
    lines = recorded.log_file.read_text().splitlines()
    first = json.loads(lines[0])
    broken = [
        {**first, "event_id": "1", "event_name": "Unknown"},
        {**first, "event_id": "2", "payload": {"tool_name": 7}},
        {**first, "event_id": "3", "project": "/elsewhere"},
        {**first, "event_id": "4", "timestamp": "yesterday"},
    ]
    recorded.put("log", "".join(f"{json.dumps(each)}\n" for each in [*map(json.loads, lines), *broken]))

    run = recorded.run("backtest", "--since", "1h", "--json")

    assert (run.json["replayed"], run.json["without_payload"]) == (5, 2)


async def test_without_approval_nothing_is_replayed(recorded: CliProject) -> None:
    recorded.configure(BeforeTool="touch ran")

    run = recorded.run("backtest", approved=False)

    assert run.status == 1
    assert "this project is not approved" in run.sentence()
    assert not (recorded.root / "ran").exists()


async def test_with_hooks_off_nothing_is_replayed(recorded: CliProject) -> None:
    recorded.put("project", {"enableHooks": False, "hooks": {}})

    assert "hooks are off" in recorded.run("backtest").sentence()


def test_a_file_that_the_user_names_needs_no_approval_and_does_not_approve_the_project(recorded: CliProject) -> None:
    note = recorded.note("trusted")
    file = settings(recorded, BeforeTool=f"printenv LLXPRT_PROJECT_TRUSTED > {note}")

    assert recorded.run("backtest", "--settings", file, approved=False).status == 0

    assert note.read_text() == "0\n"
    assert recorded.trust_state() == "untrusted"


def test_the_users_own_hooks_run_together_with_the_named_file(recorded: CliProject) -> None:
    recorded.configure(level="user", BeforeTool={"name": "mine", "command": "grep -q 'git push' && exit 2; true"})
    file = settings(recorded, BeforeTool={"name": "guard", "command": GUARD})

    run = recorded.run("backtest", "--settings", file, "--json")

    assert changes(run.json) == [("BeforeTool", "run_shell_command", "allow", "block", 1, 4)]


@pytest.mark.parametrize(
    ("content", "mode", "error"),
    [("{", 0o644, "new.json:1:2"), ('{"enableHooks": true}', 0o666, "others may write")],
    ids=["broken", "writable by others"],
)
def test_a_named_file_that_cannot_be_used_is_refused(recorded: CliProject, content: str, mode: int, error: str) -> None:
    file = recorded.write("new.json", content, mode)

    run = recorded.run("backtest", "--settings", str(file))

    assert run.status == 1
    assert error in run.sentence(), run.stderr


def test_an_agent_cannot_name_a_file(recorded: CliProject) -> None:
    file = settings(recorded, BeforeTool="touch ran")

    run = recorded.run("backtest", "--settings", file, LLXPRT_AGENT="1")

    assert run.status == 1
    assert not (recorded.root / "ran").exists()


def test_what_is_replayed_is_not_recorded_again(recorded: CliProject) -> None:
    before = recorded.log_file.read_bytes()

    recorded.run("backtest")

    assert recorded.log_file.read_bytes() == before


async def test_hundreds_of_events_run_at_once_but_not_all(world: CliProject, tmp_path: Path) -> None:
    running = tmp_path / "running"
    running.mkdir()
    world.configure(BeforeTool="true")
    await record(world, *(shell(f"echo {number}") for number in range(200)))
    file = settings(world, BeforeTool=f"touch {running}/$$; ls {running} | wc -l >> {tmp_path}/counts; rm {running}/$$")

    run = world.run("backtest", "--settings", file, "--json")

    assert run.json["replayed"] == 200
    counts = [int(line) for line in (tmp_path / "counts").read_text().split()]
    assert len(counts) == 200
    assert max(counts) <= 2 * (os.cpu_count() or 1)


def test_on_a_terminal_there_is_a_progress_bar_and_narrow_ones_get_cards(recorded: CliProject) -> None:
    file = settings(recorded, BeforeTool={"name": "guard", "command": f"sleep 0.3; {STRICTER}"})

    screen, status = recorded.screen(f"llxprt-hooks backtest --settings {file}", columns=50)

    assert status == 0
    assert "replaying" in screen
    assert "allow → block: 1 of 4, 25.0%" in screen


def test_from_log_is_the_input_of_a_recorded_execution(recorded: CliProject) -> None:
    [first, *_] = LogReader(recorded.log_file).read()

    run = recorded.run("fire", "BeforeTool", "--from-log", first["id"][:8], "--json")

    assert run.status == 0
    shown = recorded.run("fire", "BeforeTool", "--from-log", first["id"]).stdout
    assert f'"timestamp": "{first["payload"]["timestamp"]}"' in shown
    assert recorded.run("fire", "BeforeTool", "--from-log", "ffff").status == 1
    assert recorded.run("fire", "AfterTool", "--from-log", first["id"]).status == 64
    assert recorded.run("fire", "BeforeTool", "--from-log", first["id"], "--input", "{}").status == 64


def test_nothing_raw_reaches_the_terminal(recorded: CliProject) -> None:
    file = settings(recorded, BeforeTool={"command": "printf '\\033[31mred' >&2; exit 2"})

    run = recorded.run("backtest", "--settings", file)

    assert "\x1b" not in run.stdout + run.stderr
    assert "red" in run.stdout
