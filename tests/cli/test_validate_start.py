"""`validate --start`: what a command does before it has its input, and what starting it ahead saves."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.cli import CliProject


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no command is started ahead")

READS_FIRST = "read -r _; echo run >> runs; echo '{}'"


def started(world: CliProject, *hooks: dict[str, Any] | str, **settings: Any) -> dict[str, Any]:
    """The result of ``validate --start --json`` for hooks of one event."""
    entries = [{"type": "command", "command": each} if isinstance(each, str) else each for each in hooks]
    world.put("project", {"enableHooks": True, "hooks": {"BeforeTool": [{"hooks": entries}]}, **settings})
    result: dict[str, Any] = world.run("validate", "--start", "--json").json
    return result


def found(result: dict[str, Any]) -> list[tuple[str, str]]:
    """The codes and messages of what ``--start`` has found."""
    return [
        (each["code"], each["message"])
        for each in result["diagnostics"]
        if each["code"] in ("ahead-times", "acts-before-input")
    ]


def test_a_command_that_reads_first_is_started_once_and_measured(world: CliProject) -> None:
    result = started(world, READS_FIRST)

    [hook], [diagnostic] = result["started"], result["diagnostics"]
    assert (hook["event"], hook["hook"], hook["warm"], hook["before_input"]) == ("BeforeTool", READS_FIRST, False, [])
    assert hook["cold_ms"] >= hook["ahead_ms"] > 0
    assert (diagnostic["code"], diagnostic["severity"]) == ("ahead-times", "hint")
    assert diagnostic["text"] == json.dumps(READS_FIRST)
    assert (world.root / "runs").read_text() == "run\n"
    assert "starting read -r _;" in world.run("validate", "--start").stderr


ACTS = {
    "prints": ("echo early; cat > /dev/null", "had its input, so it would not be used", ["wrote to stdout"]),
    "complains": ("echo early >&2; cat", "had its input, so it would not be used", ["wrote to stderr"]),
    "ends": ("exit 3", "had its input, so it would not be used", ["ended with exit code 3"]),
    "is killed": ("kill -9 $$", "had its input, so it would not be used", ["was ended by SIGKILL"]),
    "writes a file": (
        "echo a > new; cat",
        "; started ahead, it changed `new` before it had its input",
        ["changed `new`"],
    ),
    "removes and writes": (
        "rm old; for i in 1 2 3; do echo a > file-$i; done; cat",
        "changed `file-1`, `file-2`, `file-3` and 1 other file before it had its input",
        ["changed `file-1`, `file-2`, `file-3` and 1 other file"],
    ),
}


@pytest.mark.parametrize(("command", "message", "early"), ACTS.values(), ids=ACTS)
@pytest.mark.parametrize("warm", [True, False])
def test_what_it_does_before_it_has_its_input(
    world: CliProject, command: str, message: str, early: list[str], warm: bool
) -> None:
    world.write("old", "old")

    result = started(world, {"type": "command", "command": command, **({"warm": True} if warm else {})})

    [(code, shown)] = found(result)
    [hook] = result["started"]
    assert code == ("acts-before-input" if warm else "ahead-times")
    assert shown.endswith(message)
    assert hook["before_input"] == early
    assert (hook["ahead_ms"] is None) == ("not be used" in message)


def test_a_hook_that_does_not_end_has_no_times(world: CliProject) -> None:
    result = started(world, {"type": "command", "command": "cat > /dev/null; sleep 1000", "timeout": 100})

    [(_, message)], [hook] = found(result), result["started"]
    assert message == "did not end within its timeout of 100 ms"
    assert (hook["cold_ms"], hook["ahead_ms"]) == (None, None)


def test_settings_can_make_it_warm(world: CliProject) -> None:
    result = started(world, "echo early; cat", hooksConfig={"warm": True})

    assert [code for code, _ in found(result)] == ["acts-before-input"]


def test_python_scripts_other_types_and_hooks_that_must_stay_cold_are_not_started(world: CliProject) -> None:
    cold = {"type": "command", "command": "echo run >> runs", "warm": False}
    world.write("hook.py", "open('runs', 'a')")

    result = started(world, cold, f"{sys.executable} hook.py", {"type": "http", "url": "http://localhost:1"})

    assert result["started"] == []
    assert not (world.root / "runs").exists()


def test_the_same_command_is_started_once(world: CliProject) -> None:
    hooks = {event: [{"hooks": [{"type": "command", "command": READS_FIRST}]}] for event in ("BeforeTool", "AfterTool")}
    world.put("project", {"enableHooks": True, "hooks": hooks})

    assert len(world.run("validate", "--start", "--json").json["started"]) == 1
    assert (world.root / "runs").read_text() == "run\n"


def test_the_event_is_one_that_the_hook_is_for(world: CliProject) -> None:
    hooks = [{"matcher": "^read_file$", "hooks": [{"type": "command", "command": "cat > event"}]}]
    world.put("project", {"enableHooks": True, "hooks": {"AfterTool": hooks}})

    world.run("validate", "--start")

    event = json.loads((world.root / "event").read_text())
    assert (event["hook_event_name"], event["tool_name"], event["cwd"]) == ("AfterTool", "read_file", str(world.root))


def test_hooks_of_another_agent_get_its_own_event(world: CliProject) -> None:
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "cat > event"}]}]}
    world.write(".claude/settings.json", {"hooks": hooks})

    result = world.run("validate", "--start", "--json", "--dialect", "claude").json

    [diagnostic] = [each for each in result["diagnostics"] if each["code"] == "ahead-times"]
    assert diagnostic["file"].endswith(".claude/settings.json")
    assert diagnostic["text"] == '"cat > event"'
    assert json.loads((world.root / "event").read_text())["tool_name"] == "Bash"


def test_only_the_hooks_of_a_file_are_started(world: CliProject) -> None:
    world.put(
        "user", {"enableHooks": True, "hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": "cat"}]}]}}
    )
    world.put("project", {"hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": "cat; :"}]}]}})

    both = world.run("validate", "--start", "--json").json["started"]
    one = world.run("validate", "--start", "--json", ".llxprt/settings.json").json["started"]

    assert ([each["hook"] for each in both], [each["hook"] for each in one]) == (["cat; :", "cat"], ["cat; :"])


def test_nothing_is_started_of_a_file_that_no_agent_reads(world: CliProject) -> None:
    world.configure(BeforeTool={"command": READS_FIRST})
    other = world.write("other.json", (world.root / ".llxprt/settings.json").read_text())

    run = world.run("validate", "--start", "--json", "other.json")

    assert run.json["notices"] == [f"Nothing was started: an agent would run no hooks of {other} here."]
    assert not (world.root / "runs").exists()


def test_without_the_option_nothing_is_started(world: CliProject) -> None:
    world.configure(BeforeTool={"command": READS_FIRST, "warm": True})

    result = world.run("validate", "--json").json

    assert result["started"] == []
    assert not (world.root / "runs").exists()


def test_hooks_that_nobody_has_approved_are_not_started(world: CliProject) -> None:
    world.configure(BeforeTool={"command": READS_FIRST})

    run = world.run("validate", "--start", approved=False)

    assert "settings.json were not started: they are not approved." in " ".join(run.stdout.split())
    assert not (world.root / "runs").exists()


def test_hooks_that_have_changed_since_are_not_started(world: CliProject) -> None:
    world.write("hook.sh", READS_FIRST)
    world.configure(BeforeTool={"name": "guard", "command": "bash hook.sh; :"})
    world.approve()
    world.write("hook.sh", f"{READS_FIRST} ")

    run = world.run("validate", "--start", "--json", approved=False)

    assert run.json["started"] == []
    [notice] = run.json["notices"]
    assert notice.startswith("`guard` was not started: hook.sh has changed since the project was approved.")
    assert not (world.root / "runs").exists()


def test_hooks_that_are_off_are_not_started(world: CliProject) -> None:
    result = started(world, READS_FIRST, enableHooks=False)

    [notice] = result["notices"]
    assert notice.endswith("settings.json were not started: hooks are off.")
    assert not (world.root / "runs").exists()


def test_below_an_agent_nothing_is_started(world: CliProject) -> None:
    world.configure(BeforeTool={"command": READS_FIRST})

    run = world.run("validate", "--start", LLXPRT_AGENT="1")

    assert run.status == 1
    assert "nothing was started, because `validate` refuses to run for an agent" in run.sentence()
    assert not (world.root / "runs").exists()


def test_a_file_name_cannot_write_to_the_terminal(world: CliProject) -> None:
    world.configure(BeforeTool={"command": "echo a > $(printf 'x\\033[2Jy'); cat", "warm": True})

    run = world.run("validate", "--start")

    assert "changed `x" in run.stdout
    assert "\x1b" not in run.stdout + run.stderr
