"""``llxprt-hooks test``: hooks run for real, and their decisions are compared with what test files expect (D-50)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as Xml

import jsonschema
import pytest

from tests.support.project import hooks_of

if TYPE_CHECKING:
    from tests.support.cli import Call, CliProject

FILE = ".llxprt/hooks/guard.hooktest.json"
GUARD = """read -r payload; case $payload in *secret*) echo 'no secrets, please' >&2; exit 2;; esac"""
WRITE = {"tool_name": "write_file", "tool_input": {"file_path": "a", "content": "x"}}
SECRET = {"tool_name": "write_file", "tool_input": {"file_path": "a", "content": "secret"}}


def a_test(**fields: Any) -> dict[str, Any]:
    return {"event": "BeforeTool", "input": WRITE, "expect": {"decision": "allow"}, **fields}


@pytest.fixture
def guarded(world: CliProject) -> CliProject:
    world.configure(BeforeTool={"name": "guard", "command": GUARD})
    return world


def results(call: Call, *arguments: str) -> dict[str, Any]:
    document: dict[str, Any] = call("test", "--json", *arguments).json
    return document


def test_a_test_passes_if_hooks_decide_what_it_expects(guarded: CliProject, call: Call) -> None:
    reason = {"contains": "secrets"}
    tests = [a_test(name="lets pass"), a_test(input=SECRET, expect={"decision": "block", "reason": reason})]
    guarded.write(FILE, json.dumps(tests))

    run = call("test")

    assert run.status == 0
    lines = [line.split("  ") for line in run.stdout.splitlines()]
    assert lines[0] == [FILE]
    assert [line[1:3] for line in lines[1:3]] == [["passed", ""], ["passed", ""]]
    assert lines[-1] == ["2 passed"]
    assert run.stderr == ""


def test_the_folder_in_a_test_is_only_shown_to_hooks(world: CliProject, call: Call) -> None:
    world.configure(BeforeTool={"name": "guard", "command": "cat >/dev/null; ./guard.sh"})
    for folder, decision in (("", "block"), ("vendor/", "allow")):
        script = world.write(f"{folder}guard.sh", f"""#!/bin/sh\necho '{{"decision": "{decision}"}}'\n""")
        script.chmod(0o755)
    given = {**WRITE, "cwd": str(world.root / "vendor")}
    world.write("vendor/x.hooktest.json", json.dumps([a_test(input=given, expect={"decision": "block"})]))

    assert call("test", "vendor").status == 0


def test_a_failed_test_shows_the_difference_and_the_status_is_1(guarded: CliProject, call: Call) -> None:
    expect = {"decision": "allow", "reason": "no keys", "output": {"systemMessage": "hello"}}
    guarded.write(FILE, a_test(name="a secret", input=SECRET, expect=expect))

    run = call("test")

    assert run.status == 1
    shown = run.stdout.splitlines()
    assert shown[2:-1] == [
        "            line 1, BeforeTool, hooks: guard",
        "            decision differs",
        "            reason differs",
        "            output differs",
        '            -   "decision": "allow",',
        '            -   "reason": "no keys",',
        '            +   "decision": "block",',
        '            +   "reason": "no secrets, please",',
        '                "output": {',
        '            -     "systemMessage": "hello"',
        '            +     "decision": "deny",',
        '            +     "reason": "no secrets, please"',
        "                }",
        "            - expected, + decided by the hooks",
    ]
    assert shown[-1] == "1 failed"


ANSWERS: dict[str, tuple[str, str, str | None]] = {
    "deny": ("""echo '{"decision": "deny", "reason": "r"}'""", "block", "r"),
    "exit code 2": ("echo r >&2; exit 2", "block", "r"),
    "stop": ("""echo '{"continue": false, "stopReason": "r"}'""", "stop", "r"),
    "block and stop": ("""echo '{"continue": false, "decision": "block", "reason": "r"}'""", "block", "r"),
    "ask": ("""echo '{"decision": "ask", "reason": "r"}'""", "ask", "r"),
    "permission": (
        """echo '{"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "r"}}'""",
        "ask",
        "r",
    ),
    "allow": ("""echo '{"decision": "allow", "reason": "r"}'""", "allow", "r"),
    "message": ("echo hello", "allow", None),
    "nothing": ("true", "none", None),
}


@pytest.mark.parametrize(("command", "decision", "reason"), ANSWERS.values(), ids=ANSWERS)
def test_what_a_decision_is(world: CliProject, call: Call, command: str, decision: str, reason: str | None) -> None:
    world.configure(BeforeTool={"command": command})
    world.write(FILE, a_test(expect={"decision": decision, **({"reason": reason} if reason else {})}))

    [test] = results(call)["tests"]

    assert test["passed"], test
    assert (test["actual"]["decision"], test["actual"]["reason"]) == (decision, reason)


def test_text_without_a_decision_is_allow_but_not_none(guarded: CliProject, call: Call) -> None:
    guarded.configure(BeforeTool={"command": "echo hello"})
    guarded.write(FILE, json.dumps([a_test(expect={"decision": word}) for word in ("allow", "none", "deny")]))

    assert [test["passed"] for test in results(call)["tests"]] == [True, False, False]


def test_a_block_of_an_event_that_cannot_be_blocked_is_not_a_block(world: CliProject, call: Call) -> None:
    world.configure(AfterTool={"command": """echo '{"decision": "block", "reason": "late"}'"""})
    world.write(FILE, a_test(event="AfterTool", input={}, expect={"decision": "allow"}))

    assert results(call)["passed"] == 1


@pytest.mark.parametrize("event", ["BeforeAgent", "AfterAgent", "PreCompress", "AfterTool", "AfterModel"])
def test_a_block_counts_at_more_events_where_hooks_act(world: CliProject, call: Call, event: str) -> None:
    hooks = hooks_of({event: {"command": """echo '{"decision": "block", "reason": "no"}'"""}})
    world.put("project", {"enableHooks": True, "hooksConfig": {"profile": "full"}, "hooks": hooks})
    world.write(FILE, a_test(event=event, input={}, expect={"decision": "deny", "reason": "no"}))

    assert results(call)["passed"] == 1


REASONS: dict[str, tuple[Any, bool]] = {
    "exact": ("no secrets, please", True),
    "part": ("no secrets", False),
    "contains": ({"contains": "secrets"}, True),
    "contains something else": ({"contains": "keys"}, False),
    "matches": ({"matches": "^no \\w+"}, True),
    "matches something else": ({"matches": "^secrets"}, False),
    "cannot be compared by trying": ({"matches": "^((\\w|\\W)+)+x$"}, False),
    "cannot be compared at all": ({"matches": "^(no)\\1*(.*)*"}, False),
}


@pytest.mark.parametrize(("reason", "passes"), REASONS.values(), ids=REASONS)
def test_a_reason_is_exact_or_described(guarded: CliProject, call: Call, reason: Any, passes: bool) -> None:
    guarded.write(FILE, a_test(input=SECRET, expect={"decision": "block", "reason": reason}))

    assert results(call)["passed"] == int(passes)


OUTPUTS: dict[str, tuple[Any, bool]] = {
    "part of it": ({"hookSpecificOutput": {"tool_input": {"n": 1}}}, True),
    "a described text": ({"hookSpecificOutput": {"additionalContext": {"contains": "lin"}}}, True),
    "a described text that differs": ({"hookSpecificOutput": {"additionalContext": {"matches": "^in"}}}, False),
    "another value": ({"hookSpecificOutput": {"tool_input": {"n": True}}}, False),
    "a field that is not there": ({"systemMessage": "x"}, False),
}


@pytest.mark.parametrize(("output", "passes"), OUTPUTS.values(), ids=OUTPUTS)
def test_an_output_must_have_the_expected_fields(world: CliProject, call: Call, output: Any, passes: bool) -> None:
    answer = {"hookSpecificOutput": {"tool_input": {"n": 1, "m": 2}, "additionalContext": "a line"}}
    world.configure(BeforeTool={"command": f"echo '{json.dumps(answer)}'"})
    world.write(FILE, a_test(expect={"decision": "allow", "output": output}))

    assert results(call)["passed"] == int(passes)


@pytest.mark.parametrize("closed", [False, True], ids=["fails open", "failClosed"])
def test_a_hook_that_fails_fails_the_test_even_if_it_blocks(world: CliProject, call: Call, closed: bool) -> None:
    world.configure(BeforeTool={"name": "guard", "command": "echo oops >&2; exit 1", "failClosed": closed})
    world.write(FILE, a_test(expect={"decision": "block" if closed else "allow"}))

    run = call("test")

    assert run.status == 1
    assert "hook `guard` exited with code 1; stderr: oops" in run.stdout


def test_no_hook_matches_is_a_failure_with_the_reasons_of_the_plan(guarded: CliProject, call: Call) -> None:
    guarded.put(
        "project",
        {
            "enableHooks": True,
            "hooks": {"BeforeTool": [{"matcher": "^shell$", "hooks": [{"type": "command", "command": "true"}]}]},
        },
    )
    guarded.write(FILE, json.dumps([a_test(), a_test(hook="gurd"), a_test(event="AfterTool", input={})]))

    assert [test["problems"] for test in results(call)["tests"]] == [
        ["true did not run: its matcher '^shell$' does not match 'write_file'"],
        ["no hook is called gurd (hooks of BeforeTool: true)"],
        ["no hook is configured for AfterTool"],
    ]


def test_hooks_that_are_not_approved_do_not_run_and_their_tests_fail(guarded: CliProject) -> None:
    guarded.configure(BeforeTool={"name": "guard", "command": "touch ran"})
    guarded.write(FILE, a_test())

    run = guarded.run("test", approved=False)

    assert run.status == 1
    assert "guard did not run: this project is not approved" in run.stdout
    assert "run `llxprt-hooks trust`" in run.stderr
    assert not (guarded.root / "ran").exists()


def test_only_the_named_hook_runs(world: CliProject, call: Call) -> None:
    world.configure(BeforeTool=[{"name": "one", "command": "exit 2"}, {"name": "two", "command": "true"}])
    world.write(
        FILE, json.dumps([a_test(hook="two", expect={"decision": "none"}), a_test(expect={"decision": "block"})])
    )

    tests = results(call)["tests"]

    assert [(test["hooks"], test["passed"]) for test in tests] == [(["two"], True), (["one", "two"], True)]


def test_a_hook_that_only_observes_is_tested_as_if_it_counted(world: CliProject, call: Call) -> None:
    world.configure(BeforeTool={"name": "guard", "command": "exit 2", "mode": "observe"})
    world.write(FILE, a_test(expect={"decision": "block"}))

    assert results(call)["passed"] == 1


def test_variables_are_set_for_one_test_only(world: CliProject, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTSIDE", "1")
    world.configure(BeforeTool={"command": "echo $INSIDE$OUTSIDE"})
    tests = [
        a_test(env={"INSIDE": "2", "OUTSIDE": None}, expect={"decision": "allow", "output": {"systemMessage": "2"}}),
        a_test(expect={"decision": "allow", "output": {"systemMessage": "1"}}),
    ]
    world.write(FILE, json.dumps(tests))

    assert results(call)["passed"] == 2


def test_tests_are_not_in_the_audit_trail(guarded: CliProject) -> None:
    settings = json.loads(guarded.project_file.read_text())
    audit = {"nats": {"servers": ["nats://127.0.0.1:9"]}}
    guarded.write(guarded.project_file, {**settings, "hooksConfig": {"audit": audit}})
    guarded.write(FILE, a_test())

    assert guarded.run("test").status == 0
    assert [*(guarded.home / ".llxprt").rglob("audit/*/*")] == []


STARTED = {"BeforeTool": {"name": "mine", "command": "guard"}}
"""A hook whose program is found by the path."""


@pytest.fixture
def searched(world: CliProject) -> CliProject:
    """A project that brings a program with the name of the user's own guard."""
    world.configure(level="user", **STARTED)
    world.script("tools/guard", "touch ran")
    return world


@pytest.mark.parametrize("file", [".llxprt/x.hooktest.json", "tests/x.hooktest.json"])
def test_variables_of_a_file_that_nobody_approved_start_nothing(searched: CliProject, file: str) -> None:
    searched.write(file, a_test(env={"PATH": f"{searched.root}/tools:/usr/bin:/bin"}))

    run = searched.run("test", file, approved=False)

    assert run.status == 1
    assert "its hooks were not run: it sets variables" in " ".join(run.stdout.split())
    assert not (searched.root / "ran").exists()


def test_variables_of_a_file_next_to_approved_ones_start_nothing(searched: CliProject) -> None:
    searched.configure(BeforeTool={"name": "theirs", "command": "true"})
    path = {"PATH": f"{searched.root}/tools:/usr/bin:/bin"}
    searched.write(FILE, a_test(hook="theirs", env={"WORD": "1"}))
    searched.write("tests/x.hooktest.json", a_test(hook="mine", env=path))
    assert searched.run("trust", "--yes", approved=False).status == 0

    approved = searched.run("test", approved=False)
    other = searched.run("test", "tests", approved=False)
    searched.write(FILE, a_test(hook="mine", env=path))
    changed = searched.run("test", approved=False)

    assert (approved.status, other.status, changed.status) == (0, 1, 1)
    assert not (searched.root / "ran").exists()


def test_variables_of_the_users_own_tests_are_set(world: CliProject) -> None:
    world.configure(level="user", BeforeTool={"command": "echo $WORD"})
    file = world.user_file.parent / "hooks" / "mine.hooktest.json"
    world.write(file, a_test(env={"WORD": "hi"}, expect={"decision": "allow", "output": {"systemMessage": "hi"}}))

    assert world.run("test", str(file), approved=False).status == 0


def test_files_next_to_scripts_are_found_and_those_below_given_paths(world: CliProject, call: Call) -> None:
    world.configure(BeforeTool={"command": world.script("tools/guard.sh", "exit 2")})
    for file in ("tools/one.hooktest.json", ".llxprt/two.hooktest.json", "more/deep/three.hooktest.json"):
        world.write(file, a_test(expect={"decision": "block"}))

    def files(*paths: str) -> list[str]:
        return [test["file"].rpartition("/")[2] for test in results(call, *paths)["tests"]]

    assert files() == ["two.hooktest.json", "one.hooktest.json"]
    assert files("more") == ["three.hooktest.json"]
    assert files("more", "more/deep/three.hooktest.json", "tools/one.hooktest.json") == [
        "three.hooktest.json",
        "one.hooktest.json",
    ]


def test_without_tests_the_status_is_1_and_for_a_missing_path_64(guarded: CliProject, call: Call) -> None:
    none = call("test")
    assert none.status == 1
    assert "there are no tests: no file ends in .hooktest.json" in none.sentence()
    assert call("test", "nowhere").status == 64


BROKEN = {
    '{"event": "BeforeTool", "inpt": {}}': "1:25: unknown key `inpt`, did you mean `input`?",
    '{"event": "BeforeTol",\n "input": {}}': "1:11: unknown event `BeforeTol`, did you mean `BeforeTool`?",
    '{"event": "X", "input": {}}': "1:11: unknown event `X`; events: BeforeTool,",
    '{"event": "BeforeTool"}': "1:1: this test has no `input`",
    '{"input": {}}': "1:1: this test has no `event`",
    '{"event": 7, "input": {}}': "1:11: `event` must be a string, found 7",
    '[{"event": "BeforeTool", "input": []}]': "1:35: `input` must be an object, found an array",
    '{"event": "BeforeTool", "input": {"tool": 1}}': "1:35: unknown key `tool` in the input of BeforeTool",
    '{"event": "BeforeTool", "input": {"tool_name": "x", "tool_input": 7}}': "1:34: `tool_input` in the input",
    '{"event": "BeforeTool", "input": {"hook_event_name": "AfterTool"}}': "1:34: the input was recorded for AfterTool",
    '{"event": "BeforeTool", "input": {}, "expect": {}}': "1:48: this expectation has no `decision`",
    '{"event": "BeforeTool", "input": {}, "expect": 1}': "1:48: `expect` must be an object, found 1",
    '{"event": "BeforeTool", "input": {}, "expect": {"decision": "blok"}}': "1:61: unknown decision `blok`, did",
    '{"event": "BeforeTool", "input": {}, "expect": {"decision": "no"}}': "1:61: unknown decision `no`; decisions: ",
    '{"event": "BeforeTool", "input": {}, "expect": {"decision": "deny", "reason": 1}}': "be a string or an object",
    '{"event": "BeforeTool", "input": {}, "expect": {"decision": "deny", "reason": {}}}': "needs either `contains` or",
    '{"event": "BeforeTool", "input": {}, "expect": {"decision": "deny", "reason": {"contains": 1}}}': "be a string",
    '{"event": "BeforeTool", "input": {}, "expect": {"decision": "deny", "reason": {"matches": "("}}}': "a valid reg",
    '{"event": "BeforeTool", "input": {}, "expect": {"decision": "deny", "output": 1}}': "`output` must be an object",
    '{"event": "BeforeTool", "input": {}, "env": []}': "`env` must be an object, found an array",
    '{"event": "BeforeTool", "input": {}, "env": {"A": 1}}': "`A` must be a string, or null for a variable that is not",
    '{"event": "BeforeTool", "input": {}, "name": " "}': "1:46: the `name` of this test is empty",
    "7": "1:1: a test must be an object, found 7",
    '{"event": }': "1:11: expected a value, found '}'",
}


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_file_is_reported_with_its_place_and_the_others_run(
    guarded: CliProject, call: Call, text: str
) -> None:
    guarded.write(FILE, text)
    guarded.write(".llxprt/other.hooktest.json", a_test())

    run = call("test")

    assert run.status == 1
    assert BROKEN[text] in run.stderr
    assert f"{FILE}:1:" in run.stderr
    count = run.stderr.count("error: ")
    assert run.stdout.splitlines()[-1] == f"{count} error{'s' * (count > 1)}, 1 passed"


def test_comments_and_trailing_commas_are_allowed(guarded: CliProject, call: Call) -> None:
    text = '// why\n[\n  { "event": "BeforeTool", "input": {}, "expect": { "decision": "none" }, }, /* last */\n]\n'
    guarded.write(FILE, f"\ufeff{text}")

    assert results(call)["passed"] == 1


def test_update_records_what_hooks_decide_and_leaves_the_rest_alone(guarded: CliProject, call: Call) -> None:
    guarded.write(
        FILE,
        """\ufeff[
  { // a comment
    "event": "BeforeTool",
    "input": { "tool_name": "write_file", "tool_input": { "content": "secret" } }, // another
    "expect": { "decision": "allow" },
  },
  { "event": "BeforeTool", "input": {} },
  {
    "event": "BeforeTool",
    "input": { "tool_name": "write_file", "tool_input": { "content": "secret" } }
  },
  { "event": "BeforeTool", "input": {}, "expect": { "decision": "allow" } },
  { "event": "AfterTool", "input": {}, "expect": { "decision": "allow" } },
]
""",
    )

    run = call("test", "--update")

    assert run.status == 1  # no hook is there for AfterTool: nothing can be recorded
    assert run.stdout.splitlines()[-1] == "1 failed, 3 recorded, 1 passed"
    assert f"{FILE}: recorded 3 tests" in run.stderr
    assert (guarded.root / FILE).read_text(encoding="utf-8") == (
        """\ufeff[
  { // a comment
    "event": "BeforeTool",
    "input": { "tool_name": "write_file", "tool_input": { "content": "secret" } }, // another
    "expect": {"decision": "block"},
  },
  { "event": "BeforeTool", "input": {}, "expect": {"decision": "none"} },
  {
    "event": "BeforeTool",
    "input": { "tool_name": "write_file", "tool_input": { "content": "secret" } },
    "expect": {"decision": "block", "reason": "no secrets, please"}
  },
  { "event": "BeforeTool", "input": {}, "expect": { "decision": "allow" } },
  { "event": "AfterTool", "input": {}, "expect": { "decision": "allow" } },
]
"""
    )


def test_update_keeps_descriptions_that_fit_and_replaces_those_that_do_not(guarded: CliProject, call: Call) -> None:
    fits, not_ = {"contains": "secrets"}, {"contains": "keys"}
    tests = [a_test(input=SECRET, expect={"decision": "allow", "reason": each}) for each in (fits, not_)]
    tests.append(a_test(input=SECRET, expect={"decision": "deny", "output": {"reason": "x"}}))
    guarded.write(FILE, json.dumps(tests))

    assert call("test", "--update").status == 0

    recorded = [test["expect"] for test in json.loads((guarded.root / FILE).read_text())]
    assert recorded == [
        {"decision": "block", "reason": fits},
        {"decision": "block", "reason": "no secrets, please"},
        {"decision": "deny", "output": {"decision": "deny", "reason": "no secrets, please"}},
    ]


def test_update_says_that_the_approval_has_ended(guarded: CliProject) -> None:
    guarded.write(FILE, {"event": "BeforeTool", "input": {}})
    guarded.approve()

    run = guarded.run("test", "--update", approved=False)

    assert run.status == 0
    assert "Approve the recorded tests: llxprt-hooks trust" in run.stderr
    assert guarded.trust_state() == "changed"


def test_an_agent_cannot_record_tests(guarded: CliProject) -> None:
    guarded.write(FILE, {"event": "BeforeTool", "input": {}})

    run = guarded.run("test", "--update", LLXPRT_AGENT="1")

    assert run.status == 1
    assert "expect" not in (guarded.root / FILE).read_text()


def test_a_test_without_expectation_fails_with_advice(guarded: CliProject, call: Call) -> None:
    guarded.write(FILE, {"event": "BeforeTool", "input": {}})

    [test] = results(call)["tests"]

    assert test["problems"] == [
        "it expects nothing yet; record what hooks decide now with `llxprt-hooks test --update`"
    ]


def test_junit_has_a_case_for_each_test_and_each_broken_file(guarded: CliProject, call: Call) -> None:
    tests = [a_test(name="good"), a_test(name="bad\u0007", input=SECRET)]
    guarded.write(FILE, json.dumps(tests))
    guarded.write(".llxprt/broken.hooktest.json", "{")

    assert call("test", "--junit", "out.xml").status == 1

    suite = Xml.parse(guarded.root / "out.xml").getroot()
    assert {name: suite.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "3",
        "failures": "1",
        "errors": "1",
    }
    good, bad, broken = suite
    assert (good.get("name"), good.get("classname"), len(good)) == ("good", FILE, 0)
    assert bad.get("name") == "bad\\u0007" or bad.get("name") == "bad\\x07"
    assert bad[0].get("message") == "decision differs"
    assert '+   "decision": "block"' in (bad[0].text or "")
    assert "broken.hooktest.json:1:2" in (broken[0].get("message") or "")


def test_nothing_raw_reaches_the_terminal(world: CliProject, call: Call) -> None:
    world.configure(BeforeTool={"name": "n\x1b[31m", "command": "printf '\\033[31mred' >&2; exit 2"})
    world.write(FILE, a_test(name="x\x1b[2J"))

    run = call("test")

    assert "\x1b" not in run.stdout + run.stderr


def test_the_schema_accepts_what_the_command_accepts_and_nothing_else(guarded: CliProject, call: Call) -> None:
    schema = call("schema", "--for", "hooktest").json
    validator = jsonschema.Draft202012Validator(schema)

    good = [a_test(), [a_test(name="x", hook="y", env={"A": None})], {"event": "AfterTool", "input": {}}]
    assert [validator.is_valid(each) for each in good] == [True] * len(good)
    bad = [
        text
        for text in BROKEN
        if text != '{"event": }' and not any(word in text for word in ('"tool"', "tool_input", "hook_event", '"("'))
    ]
    assert [text for text in bad if validator.is_valid(json.loads(text))] == []


@pytest.mark.parametrize(
    ("tests", "untested"),
    [
        ([a_test(event="AfterTool", hook="note")], ["no test runs it"]),
        ([a_test()], ["no test in which it refuses anything"]),
        ([a_test(input=SECRET, expect={"decision": "block"})], ["no test in which it lets anything pass"]),
        ([a_test(), a_test(input=SECRET, expect={"decision": "block"})], []),
        ([a_test(), a_test(input=SECRET, expect={"decision": "allow"})], ["no test in which it refuses anything"]),
    ],
)
def test_coverage_lists_what_no_passing_test_has_seen(
    world: CliProject, call: Call, tests: list[dict[str, Any]], untested: list[str]
) -> None:
    world.configure(
        BeforeTool={"name": "guard", "command": GUARD}, AfterTool={"name": "note", "command": "cat > /dev/null"}
    )
    world.write(FILE, json.dumps(tests))

    guard, note = results(call)["coverage"]

    assert (guard["hook"], guard["event"], guard["untested"]) == ("guard", "BeforeTool", untested)
    assert note["untested"] == ([] if tests[0]["event"] == "AfterTool" else ["no test runs it"])
    shown = call("test", "--coverage").stdout
    assert f"{2 - bool(untested) - bool(note['untested'])} of 2 hooks tested both ways" in shown
    assert all(phrase in shown for phrase in untested)


def test_coverage_lists_the_programs_tools_that_a_matcher_selects_and_no_test_calls(
    world: CliProject, call: Call
) -> None:
    guard = {"matcher": "^(write_note|replace_note)$", "hooks": [{"type": "command", "name": "g", "command": GUARD}]}
    note = {"hooks": [{"type": "command", "name": "note", "command": "cat > /dev/null"}]}
    own = {"tools": ["read_note", "write_note", "replace_note"]}
    settings = {"enableHooks": True, "hooksConfig": own, "hooks": {"BeforeTool": [guard], "AfterTool": [note]}}
    world.write(".llxprt/settings.json", json.dumps(settings))
    both = [{"tool_name": "write_note"}, {**SECRET, "tool_name": "write_note"}]
    expected = ["allow", "block"]
    tests = [a_test(input=each, expect={"decision": word}) for each, word in zip(both, expected, strict=True)]
    world.write(FILE, json.dumps([*tests, a_test(event="AfterTool", hook="note", input=both[0])]))
    call("trust", "--yes")

    reached = results(call)["coverage"]

    assert {each["hook"]: each["untested"] for each in reached} == {"g": ["no test of `replace_note`"], "note": []}
