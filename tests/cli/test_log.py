"""``llxprt-hooks log`` and ``stats``: what ran, what it decided, how long it took."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks import HookEventName, HookLog
from llxprt_hooks.commands.stats import percentile, summarize
from llxprt_hooks.core.engine.results import HookExecutionError, HookExecutionResult
from llxprt_hooks.core.executors.command import CommandSpec
from llxprt_hooks.core.protocol.outputs import DefaultHookOutput
from llxprt_hooks.fleet.audit import log as hook_log
from llxprt_hooks.settings.definitions import HookConfig
from tests.support.cli import ESCAPE, Call, CliProject
from tests.support.processes import until

E = HookEventName


def execution(
    name: str = "guard",
    event: HookEventName = E.BEFORE_TOOL,
    output: dict[str, Any] | None = None,
    error: str | None = None,
    duration: float = 1.5,
    **fields: Any,
) -> HookExecutionResult:
    """What a hook left behind."""
    return HookExecutionResult(
        HookConfig("command", CommandSpec(f"./{name}"), name=name),
        event,
        success=error is None,
        output=None if output is None else DefaultHookOutput(output),
        error=None if error is None else HookExecutionError(error),
        duration=duration,
        **{"exit_code": 0, "hook_input": {"tool_name": "write_file"} if event.spec.is_about_tool else {}, **fields},
    )


RAN = (
    execution(),
    execution("secrets", output={"decision": "deny", "reason": "holds\na key"}, stdout="{}", duration=20.0),
    execution("broken", error="hook `broken` exited with code 3", exit_code=3, stderr="line one\nline two\n"),
    execution("budget", E.AFTER_TOOL, {"continue": False, "stopReason": "enough"}),
    execution("redact", E.AFTER_MODEL, {"hookSpecificOutput": {"llm_response": {"text": "x"}}}),
    execution("closed", error="hook `closed` timed out", output={"decision": "deny", "reason": "it must not fail"}),
)


def record(world: CliProject, *results: HookExecutionResult, project: Path | None = None) -> None:
    log = HookLog(project or world.root, session_id="s-1", file=world.log_file)
    for result in results:
        log.hook_ended(result)


@pytest.fixture
def recorded(world: CliProject) -> CliProject:
    record(world, *RAN)
    return world


def hooks(lines: list[Any]) -> list[str]:
    return [line["hook"] for line in lines]


def test_executions_are_a_line_each_oldest_first_with_what_they_decided(recorded: CliProject) -> None:
    run = recorded.run("log")

    lines = [" ".join(line.split()[2:]) for line in run.stdout.splitlines()]
    assert lines == [
        "allowed 1.5 ms BeforeTool write_file guard",
        "blocked 20.0 ms BeforeTool write_file secrets: holds a key",
        "failed 1.5 ms BeforeTool write_file broken: hook `broken` exited with code 3",
        "stopped 1.5 ms AfterTool write_file budget: enough",
        "allowed 1.5 ms AfterModel redact: changes llm_response",
        "blocked 1.5 ms BeforeTool write_file closed: it must not fail",
    ]
    assert run.stderr == ""


def test_a_line_shows_who_asked(world: CliProject) -> None:
    said: list[dict[str, Any]] = [{"team": "web", "level": 3, "more": {}}, {"team": "\x1b[31m" + "x" * 50}, {}]
    record(world, *(execution(hook_input={"tool_name": "glob", "metadata": each}) for each in said))

    lines = world.run("log").stdout.splitlines()

    assert [line.split("ms")[1].partition("BeforeTool")[0].strip() for line in lines] == [
        "web, 3",
        "\\x1b[31mxxxxxx…",
        "",
    ]


def test_what_hooks_that_act_did_has_a_word_of_its_own(world: CliProject) -> None:
    acts = HookConfig("command", CommandSpec("./h"), name="h", acts=True)
    events = (E.BEFORE_TOOL, E.AFTER_TOOL, E.AFTER_MODEL, E.BEFORE_AGENT, E.AFTER_AGENT, E.PRE_COMPRESS)
    ran = [
        replace(execution(event=event, output={"decision": "deny", "reason": "no"}), hook_config=acts)
        for event in events
    ]
    asked = replace(execution(output={"decision": "ask", "reason": "sure?"}), hook_config=acts, execution_id="abc")
    record(world, *ran, asked)
    words = [line.split()[2] for line in world.run("log").stdout.splitlines()]
    assert words == ["blocked", "replaced", "replaced", "refused", "continued", "blocked", "asked"]
    assert "asked: sure?" in world.run("log", "abc").stdout


FILTERS: dict[str, tuple[list[str], list[str]]] = {
    "the latest": (["-n", "2"], ["redact", "closed"]),
    "event": (["--event", "AfterTool"], ["budget"]),
    "hook": (["--hook", "secrets"], ["secrets"]),
    "failed": (["--failed"], ["broken", "closed"]),
    "blocked": (["--blocked"], ["secrets", "closed"]),
    "several": (["--failed", "--blocked", "--event", "BeforeTool"], ["closed"]),
    "folder": (["-C", "."], ["guard", "secrets", "broken", "budget", "redact", "closed"]),
    "another folder": (["-C", ".."], ["foreign"]),
    "all folders": (["--all", "-n", "2"], ["closed", "foreign"]),
}


@pytest.mark.parametrize(("arguments", "expected"), FILTERS.values(), ids=FILTERS)
@pytest.mark.usefixtures("recorded")
def test_filters(world: CliProject, call: Call, arguments: list[str], expected: list[str]) -> None:
    record(world, execution("foreign"), project=world.folder)

    run = call("log", *arguments, "--json")

    assert hooks(run.json_lines) == expected
    assert (run.status, run.stderr) == (0, "")


def test_json_is_one_object_per_line_without_the_input_of_hooks(recorded: CliProject) -> None:
    lines = recorded.run("log", "--json").json_lines

    blocked = lines[1]
    assert len(blocked.pop("id")) == 16
    assert blocked.pop("timestamp").endswith("Z")
    assert blocked == {
        "event_id": "",
        "session_id": "s-1",
        "project": str(recorded.root),
        "tool_name": "write_file",
        "command": "./secrets",
        "failed": False,
        "blocked": True,
        "stopped": False,
        "reason": "holds\na key",
        "effects": [],
        "observed": None,
        "event_name": "BeforeTool",
        "hook": "secrets",
        "type": "command",
        "dialect": "llxprt",
        "duration_ms": 20.0,
        "success": True,
        "exit_code": 0,
        "signal": None,
        "warm": False,
        "ahead": False,
        "stdout": "{}",
        "stderr": "",
        "error": None,
    }


def test_one_execution_in_full(recorded: CliProject) -> None:
    broken = recorded.run("log", "--hook", "broken", "--json").json_lines[0]

    shown = recorded.run("log", broken["id"][:6]).stdout

    assert shown.splitlines()[2:] == [
        "decision    failed: hook `broken` exited with code 3",
        "event       BeforeTool, tool write_file",
        "hook        broken",
        "command     ./broken",
        "duration    1.5 ms",
        "ended with  exit code 3",
        f"project     {recorded.root}",
        "session     s-1",
        "stderr",
        "  line one",
        "  line two",
    ]


def test_who_asked_is_recorded_and_shown(world: CliProject) -> None:
    caller = {"metadata": {"team": "web"}, "agent": {"host": "far"}}
    record(world, execution(hook_input={"tool_name": "glob", **caller}))
    [line] = world.run("log", "--json").json_lines

    assert {name: line[name] for name in caller} == caller
    shown = world.run("log", line["id"]).stdout.splitlines()
    assert shown[-2:] == ['metadata    {"team":"web"}', 'agent       {"host":"far"}']


CONDITIONS: dict[tuple[str, ...], list[str]] = {
    ("--where", "team=web"): ["glob", "mcp__shop__refund"],
    ("--where", "team=web", "--where", "level=3"): ["mcp__shop__refund"],
    ("--where", "agent.host=far"): ["glob"],
    ("--where", "team=we"): [],
    ("--where", "agent=far"): [],
    ("--tool", "refund"): ["mcp__shop__refund"],
    ("--tool", "mcp__shop__refund"): ["mcp__shop__refund"],
    ("--session", "s-"): ["glob", "mcp__shop__refund", "read_file"],
    ("--session", "s-2"): ["read_file"],
    ("--since", "1h", "--session", "s-1"): ["mcp__shop__refund"],
    ("--since", "2026-01-01", "--tool", "glob"): ["glob"],
}


@pytest.mark.parametrize(("options", "expected"), CONDITIONS.items(), ids=lambda each: " ".join(each))
def test_who_when_and_what(world: CliProject, options: tuple[str, ...], expected: list[str]) -> None:
    """The same for ``log`` and ``stats``; those of before 0.4 call the duration differently."""
    base = {"hook": "h", "event_name": "BeforeTool", "project": str(world.root), "session_id": "s-1"}
    now = datetime.now(UTC)
    records = [
        {"id": "1", "tool_name": "glob", "metadata": {"team": "web"}, "agent": {"host": "far"}, "duration": 5.0},
        {"id": "2", "tool_name": "mcp__shop__refund", "metadata": {"team": "web", "level": 3}, "duration_ms": 5.0},
        {"id": "3", "tool_name": "read_file", "session_id": "s-2", "metadata": "web", "duration_ms": 5.0},
    ]
    times = [now - timedelta(hours=2), now, now]
    lines = [{**base, "timestamp": time.isoformat(), **each} for time, each in zip(times, records, strict=True)]
    world.log_file.parent.mkdir(parents=True, exist_ok=True)
    world.log_file.write_text("".join(json.dumps(line) + "\n" for line in lines))

    assert [line["tool_name"] for line in world.run("log", *options, "--json").json_lines] == expected
    figures = json.loads(world.run("stats", *options, "--json").stdout)
    assert [(each["count"], each["p50"]) for each in figures] == ([(len(expected), 5.0)] if expected else [])


def test_figures_of_each_caller_have_the_one_with_most_blocks_first(world: CliProject) -> None:
    callers: list[Any] = [{"metadata": {"team": "web"}}] * 2 + [{"metadata": {"team": "release\n"}}, {}]
    base = {"hook": "h", "event_name": "BeforeTool", "project": str(world.root), "duration_ms": 5.0}
    lines = [{**base, "id": str(at), "blocked": at == 2, **each} for at, each in enumerate(callers)]
    world.write(world.log_file, "".join(json.dumps(line) + "\n" for line in lines))

    figures = world.run("stats", "--by", "team", "--json").json
    assert [(each["caller"], each["count"], each["blocked"]) for each in figures] == [
        ("release\n", 1, 1), ("web", 2, 0), ("", 1, 0),
    ]  # fmt: skip
    assert world.run("stats", "--json").json[0]["caller"] is None
    headings, *rows = [
        line.split()[:5] for line in world.run("stats", "--by", "team", COLUMNS="200").stdout.splitlines()
    ]
    assert headings == ["hook", "event", "team", "count", "failed"]
    assert [row[2:4] for row in rows] == [["release", "1"], ["web", "2"], ["-", "1"]]
    assert "BeforeTool, web" in world.run("stats", "--by", "team", COLUMNS="40").stdout


@pytest.mark.parametrize("wrong", [("--where", "team"), ("--where", "=web"), ("--since", "soon")], ids=" ".join)
def test_a_filter_that_cannot_be_read_is_wrong_usage(world: CliProject, wrong: tuple[str, str]) -> None:
    run = world.run("stats", *wrong)
    assert (run.status, wrong[0] in run.stderr) == (64, True)


def test_of_an_endless_caller_only_the_size_is_recorded(world: CliProject) -> None:
    record(world, execution(hook_input={"tool_name": "glob", "metadata": {"team": "x" * 10_000}}))
    [line] = world.run("log", "--json").json_lines

    assert "metadata" not in line
    assert line["metadata_bytes"] > 10_000


def test_an_execution_is_found_by_its_id_in_any_project(recorded: CliProject) -> None:
    record(recorded, execution("foreign"), project=recorded.folder)
    identity = recorded.run("log", "--all", "--hook", "foreign", "--json").json_lines[0]["id"]

    assert "hook        foreign\n" in recorded.run("log", identity).stdout


def test_all_projects_have_a_column(recorded: CliProject) -> None:
    record(recorded, execution("foreign"), project=recorded.folder / "a-long-name-of-a-folder")

    lines = recorded.run("log", "--all").stdout.splitlines()

    assert "ms  project       BeforeTool write_file  guard" in lines[0]
    assert "ms  a-long-name…  BeforeTool write_file  foreign" in lines[-1]


def test_the_date_is_shown_of_other_days_only(recorded: CliProject) -> None:
    year = datetime.now().astimezone().year
    first, second, *others = recorded.log_file.read_text().splitlines(keepends=True)
    day = r'"timestamp":"\d+-\d+-\d+'
    last_year = re.sub(day, f'"timestamp":"{year - 1}-06-15', first)
    recorded.log_file.write_text("".join([last_year, second, *others]))

    lines = recorded.run("log").stdout.splitlines()

    assert re.match(rf"[0-9a-f]{{8}}  {year - 1}-06-15  allowed ", lines[0])
    assert re.match(r"[0-9a-f]{8}  \d\d:\d\d:\d\d    blocked ", lines[1])


def test_an_unknown_id_is_an_error(recorded: CliProject) -> None:
    run = recorded.run("log", "zzzz")

    assert run.status == 1
    assert "no recorded execution has the id zzzz" in run.stderr


@pytest.mark.parametrize("command", ["log", "stats"])
def test_without_a_record_the_output_says_how_to_get_one(world: CliProject, command: str) -> None:
    run = world.run(command)

    assert run.status == 0
    assert run.stdout == ""
    assert "`Hooks.load(project, log=True)`" in run.stderr


@pytest.mark.parametrize("command", ["log", "stats"])
def test_filters_that_leave_nothing_say_so(recorded: CliProject, command: str) -> None:
    missed = "none of the 6 executions recorded in this project matches"
    assert recorded.run(command, "--hook", "nobody").stderr == f"{missed}\n"
    assert recorded.run(command, "--session", "s-2", "--tool", "write_flie").stderr == (
        f"{missed}. Did you mean `write_file`?\n"
    )
    everywhere = "none of the 6 executions recorded matches. Did you mean `guard`?\n"
    assert recorded.run(command, "--all", "--hook", "gard").stderr == everywhere


@pytest.mark.parametrize("command", ["log", "stats"])
def test_a_project_without_executions_is_told_how_to_get_some(recorded: CliProject, command: str) -> None:
    (recorded.root / "other").mkdir()

    assert recorded.run(command, "-C", "other").stderr == (
        "no recorded execution matches in this project; --all looks in all projects. "
        "Your own program records with `Hooks.load(project, log=True)`, or if LLXPRT_HOOKS_LOG=1 is set\n"
    )


def test_a_line_has_the_session_if_there_are_several(world: CliProject) -> None:
    for session_id in ("2b0e9b4c-7f0e-4c1a-9d3e-000000000001", "conversation-17", "s-1"):
        log = HookLog(world.root, session_id=session_id, file=world.log_file)
        log.hook_ended(execution(hook_input={"tool_name": "write_file", "session_id": session_id}))

    lines = world.run("log").stdout.splitlines()
    assert [line.split()[5] for line in lines] == ["2b0e9b4c", "…ersation-17", "s-1"]
    assert len({line.index("BeforeTool") for line in lines}) == 1

    (alone,) = world.run("log", "--session", "conversation-17").stdout.splitlines()
    assert "ersation-17" not in alone


def test_what_cannot_be_read_is_passed_over(recorded: CliProject) -> None:
    with recorded.log_file.open("ab") as file:
        file.write(b'{"id": "cut off\n\xff\xfe\n[]\n{}\n7\n{"hook": 7, "timestamp": [], "duration": "x", "id": null}\n')
    record(recorded, execution("last"))

    run = recorded.run("log", "--all")

    assert run.status == 0
    assert "last" in run.stdout.splitlines()[-1]
    assert len(run.stdout.splitlines()) == len(RAN) + 2


def test_a_record_that_cannot_be_opened_is_one_sentence(world: CliProject) -> None:
    world.log_file.mkdir(parents=True)

    run = world.run("log")

    assert run.status == 1
    assert "Is a directory" in run.stderr
    assert len(run.stderr.splitlines()) == 1


def test_what_hooks_printed_cannot_command_the_terminal(world: CliProject, call: Call) -> None:
    rude = "\x1b[2J\x07\r"
    record(world, execution(f"a{rude}", output={"decision": "deny", "reason": rude}, stderr=rude, error=rude))
    identity = call("log", "--json").json_lines[0]["id"]

    for run in (call("log"), call("log", identity), world.run("log", COLUMNS="40"), call("stats")):
        assert not {ESCAPE, "\x07", "\r"} & set(run.stdout)
        assert r"\x1b[2J\x07" in run.stdout


def test_a_narrow_terminal_shows_executions_on_several_lines(recorded: CliProject) -> None:
    lines = recorded.run("log", COLUMNS="40").stdout.splitlines()

    assert max(map(len, lines)) <= 40
    assert "  secrets: holds a key" in lines
    assert any(re.fullmatch(r"[0-9a-f]{8}  [0-9:]{8}  blocked", line) for line in lines)


@pytest.mark.parametrize("arguments", [[], ["--all"]])
def test_a_terminal_of_80_columns_breaks_no_line(recorded: CliProject, arguments: list[str]) -> None:
    record(recorded, execution("python3 -c '" + "import this; " * 20, E.BEFORE_TOOL_SELECTION))

    lines = recorded.run("log", *arguments, COLUMNS="80").stdout.splitlines()

    assert max(map(len, lines)) <= 80
    assert any(re.fullmatch(r"[0-9a-f]{8}  \S+  failed +1.5 ms .* BeforeTool write_file", line) for line in lines)
    assert "          broken: hook `broken` exited with code 3" in lines


# Following.


@pytest.fixture
def following(recorded: CliProject) -> Iterator[tuple[CliProject, subprocess.Popen[bytes], list[str]]]:
    """A world whose record is being followed, and the names of hooks that have been printed so far."""
    process = recorded.start("log", "--follow", "--json", "-n", "1")
    names: list[str] = []

    def read() -> None:
        assert process.stdout
        for line in process.stdout:
            names.append(json.loads(line)["hook"])

    reader = threading.Thread(target=read)
    reader.start()
    until(lambda: names == ["closed"])
    yield recorded, process, names
    process.kill()
    process.wait()
    reader.join()
    for stream in (process.stdout, process.stderr):
        assert stream
        stream.close()


def test_follow_prints_executions_as_they_happen(
    following: tuple[CliProject, subprocess.Popen[bytes], list[str]],
) -> None:
    world, process, names = following

    for name in ("one", "two"):
        record(world, execution(name))
        until(lambda name=name: names[-1] == name)  # type: ignore[misc]

    assert names == ["closed", "one", "two"]
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert process.stderr
    assert process.stderr.read().strip() == b""


def test_follow_continues_when_the_file_is_set_aside_and_misses_nothing(
    following: tuple[CliProject, subprocess.Popen[bytes], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, _, names = following
    size = world.log_file.stat().st_size
    record(world, execution("before"))  # not yet seen, perhaps, when the file goes
    monkeypatch.setattr(hook_log, "MAX_BYTES", size)

    record(world, execution("after"))
    monkeypatch.undo()
    record(world, execution("later"))

    assert world.log_file.with_suffix(".1.jsonl").exists()
    until(lambda: names[-1] == "later")
    assert names == ["closed", "before", "after", "later"]


def test_follow_waits_for_a_record_that_is_not_there_yet(world: CliProject) -> None:
    process = world.start("log", "--follow", "--json")
    assert process.stdout
    try:
        record(world, execution("first"))
        assert json.loads(process.stdout.readline())["hook"] == "first"
    finally:
        process.kill()
        process.communicate()


def test_follow_keeps_its_columns_aligned(world: CliProject) -> None:
    process = world.start("log", "--follow")
    assert process.stdout
    try:
        record(world, execution("first", E.BEFORE_TOOL))
        first = process.stdout.readline()
        record(world, execution("second", E.AFTER_TOOL))
        second = process.stdout.readline()
        assert first.index(b"first") == second.index(b"second")
        assert first.index(b"  s-1  ") == second.index(b"  s-1  ")  # other sessions may follow
    finally:
        process.kill()
        process.communicate()


def test_follow_keeps_to_the_filters(following: tuple[CliProject, subprocess.Popen[bytes], list[str]]) -> None:
    world, _, _ = following
    process = world.start("log", "--follow", "--json", "--failed", "-n", "1")
    assert process.stdout
    try:
        assert json.loads(process.stdout.readline())["hook"] == "closed"
        record(world, execution("fine"), execution("worse", error="hook `worse` failed"))
        assert json.loads(process.stdout.readline())["hook"] == "worse"
    finally:
        process.kill()
        process.communicate()


# Figures.


def test_stats_count_and_time_each_hook_slowest_first(world: CliProject) -> None:
    record(world, *(execution("guard", duration=float(number)) for number in range(1, 101)))
    record(world, *RAN[1:3])

    figures = world.run("stats", "--json").json

    assert figures[0] == {
        "event": "BeforeTool",
        "hook": "guard",
        "count": 100,
        "failed": 0,
        "blocked": 0,
        "asked": 0,
        "would_block": 0,
        "p50": 50.0,
        "p95": 95.0,
        "max": 100.0,
        "caller": None,
    }
    assert [(each["hook"], each["count"], each["failed"], each["blocked"]) for each in figures[1:]] == [
        ("secrets", 1, 0, 1),
        ("broken", 1, 1, 0),
    ]


def test_stats_have_a_column_for_questions_if_a_hook_asked(world: CliProject) -> None:
    record(world, execution("guard"))
    assert "asked" not in world.run("stats").stdout

    acting = HookConfig("command", CommandSpec("./deploys"), name="deploys", acts=True)
    record(world, replace(execution("deploys", output={"decision": "ask", "reason": "sure?"}), hook_config=acting))

    assert {each["hook"]: each["asked"] for each in world.run("stats", "--json").json} == {"guard": 0, "deploys": 1}
    assert "asked" in world.run("stats").stdout


def test_stats_draw_a_bar_for_each_hook(recorded: CliProject) -> None:
    lines = recorded.run("stats", COLUMNS="100").stdout.splitlines()

    assert lines[0].split() == ["hook", "event", "count", "failed", "blocked", "p50", "ms", "p95", "ms", "max", "ms"]
    bars = {line.split()[0]: line.count("█") for line in lines[1:]}
    assert bars["secrets"] > bars["guard"] >= 1
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("columns", [80, 100, 10000])
def test_stats_of_a_long_command_stay_a_table(recorded: CliProject, columns: int) -> None:
    record(recorded, execution("python3 -c '" + "import this; " * 20, E.BEFORE_TOOL_SELECTION))

    lines = recorded.run("stats", COLUMNS=str(columns)).stdout.splitlines()

    assert len(lines) == 1 + len(RAN) + 1
    assert max(map(len, lines)) <= min(columns, 140)
    assert any(re.match(r"python3 -c.*…  BeforeToolSelection ", line) for line in lines)


@pytest.mark.parametrize("columns", [40, 80])
def test_stats_fit_a_narrow_terminal(recorded: CliProject, columns: int) -> None:
    screen = recorded.run("stats", COLUMNS=str(columns)).stdout

    assert max(map(len, screen.splitlines())) <= columns
    for name in ("guard", "secrets", "broken", "budget", "redact", "closed"):
        assert name in screen
    assert "█" in screen


def test_stats_of_one_project(recorded: CliProject) -> None:
    elsewhere = recorded.folder / "elsewhere"
    elsewhere.mkdir()
    record(recorded, execution("foreign"), project=elsewhere)

    assert hooks(recorded.run("stats", "--json", "-C", str(elsewhere)).json) == ["foreign"]
    assert "foreign" not in hooks(recorded.run("stats", "--json").json)
    assert {"foreign", "guard"} < set(hooks(recorded.run("stats", "--json", "--all").json))


@pytest.mark.parametrize(
    ("times", "percent", "expected"),
    [
        ([], 50, 0.0),
        ([3.0], 50, 3.0),
        ([3.0], 95, 3.0),
        ([1.0, 2.0], 50, 1.0),
        ([1.0, 2.0, 3.0], 50, 2.0),
        ([float(number) for number in range(1, 21)], 95, 19.0),
        ([float(number) for number in range(1, 22)], 95, 20.0),
    ],
)
def test_a_percentile_is_the_least_time_that_so_many_percent_do_not_exceed(
    times: list[float], percent: int, expected: float
) -> None:
    assert percentile(times, percent) == expected


def test_figures_survive_unusual_records() -> None:
    [figures] = summarize([{"hook": "x", "event_name": "BeforeTool", "duration": "soon"}])

    assert (figures.count, figures.max) == (1, 0.0)


# Where the record comes from.


def test_run_records_executions_without_payloads(world: CliProject) -> None:
    world.configure(BeforeTool={"name": "guard", "command": "cat > /dev/null; echo nothing to say >&2"})
    call = {"functionCall": {"name": "read_file", "args": {"file_path": "the-secret-payload.txt"}}}
    answers = [
        [{"candidates": [{"content": {"role": "model", "parts": [part]}}]}] for part in (call, {"text": "Done."})
    ]
    recording = world.folder / "answers.jsonl"
    recording.write_text(
        "".join(json.dumps({"method": "generateContentStream", "response": answer}) + "\n" for answer in answers)
    )

    assert world.run("run", "-p", "Read it.", "--replay", str(recording)).status == 0

    [line] = world.run("log", "--json", "-C", ".").json_lines
    assert (line["hook"], line["stderr"], line["project"]) == ("guard", "nothing to say\n", str(world.root))
    assert "the-secret-payload" not in world.log_file.read_text()
