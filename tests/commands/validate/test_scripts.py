"""What is found about the scripts that commands name."""

from __future__ import annotations

import json
import os
import stat

import pytest

from tests.commands.validate.marks import DiagnosedProject, command, span, unmarked

SH = "#!/bin/sh\ncat\n"


def codes(place: DiagnosedProject, text: str) -> list[str]:
    return [each.code for each in place.diagnose_text(command(text))]


IN_THE_COMMAND = {
    "missing": ("script-missing", "«./check.sh» -x", {}, "Create it"),
    "missing, by the project folder": ("script-missing", "«$LLXPRT_PROJECT_DIR/check.sh»", {}, "Create it"),
    "missing, misspelled": ("script-missing", "«./chek.sh»", {"check.sh": (SH, 0o755)}, "`check.sh`"),
    "missing, beside the settings": (
        "script-missing",
        "«./hooks/check.sh»",
        {".llxprt/hooks/check.sh": (SH, 0o755)},
        "`$LLXPRT_PROJECT_DIR/.llxprt/hooks/check.sh`",
    ),
    "missing, for an interpreter": ("script-missing", "python3 -u «check.py»", {}, "Create it"),
    "missing, later in the line": ("script-missing", "cat | «./check.sh»", {}, "Create it"),
    "missing, in quotes": ("script-missing", 'exec «"$LLXPRT_PROJECT_DIR"/check.sh»', {}, "Create it"),
    "without its path": ("program-not-found", "«check.sh»", {"check.sh": (SH, 0o755)}, "`./check.sh`"),
    "a folder": ("script-directory", "«./hooks»", {"hooks/x": ("", 0o644)}, "the path of a script"),
    "not executable": ("script-not-executable", "«./check.sh»", {"check.sh": (SH, 0o644)}, "chmod +x"),
    "no shebang": ("script-without-shebang", "«./check.sh»", {"check.sh": ("cat\n", 0o755)}, "#!/bin/sh"),
    "no shebang, Python": (
        "script-without-shebang",
        "«./check.py»",
        {"check.py": ("import sys\n", 0o755)},
        "#!/usr/bin/env python3",
    ),
    "a byte order mark": ("script-without-shebang", "«./x.sh»", {"x.sh": (f"\ufeff{SH}", 0o755)}, "byte order mark"),
    "no such interpreter": ("shebang-not-found", "«./x.sh»", {"x.sh": ("#!/opt/no/bash -e\n", 0o755)}, "env bash"),
    "no such program for env": ("shebang-not-found", "«./x»", {"x": ("#!/usr/bin/env -S no -x\n", 0o755)}, "Install"),
    "Windows line ends": ("script-crlf", "«./x.sh»", {"x.sh": ("#!/bin/sh\r\ncat\r\n", 0o755)}, "perl -pi -e"),
    "Windows line ends for a shell": ("script-crlf", "sh «x.sh»", {"x.sh": ("cat\r\n", 0o644)}, "perl -pi -e"),
    "a log as an argument": (
        "writes-covered",
        "cat | ./x.sh «logs/audit.log»",
        {"x.sh": (SH, 0o755), "logs/audit.log": ("", 0o644)},
        ".llxprt/state/",
    ),
    "open to everybody": ("script-writable", "«./x.sh»", {"x.sh": (SH, 0o757)}, "chmod o-w"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "marked", "files", "fix"), IN_THE_COMMAND.values(), ids=IN_THE_COMMAND)
def test_it_is_found_at_its_word_in_the_command(
    place: DiagnosedProject, code: str, marked: str, files: dict[str, tuple[str, int]], fix: str
) -> None:
    for path, (content, mode) in files.items():
        place.write(path, content, mode)
    expected = unmarked(command(marked))

    (found,) = place.diagnose_text(expected.text)

    assert (found.code, span(found)) == (code, expected.spans[0])
    assert fix in found.fix


IN_THE_SCRIPT = {
    "a syntax error": ("script-syntax", "#!/bin/bash\necho a\n«fi»\n", ""),
    "a syntax error of sh": ("script-syntax", "#!/bin/sh\ncat\n«)»\n", ""),
    "exit 1": ("exit-one", "#!/bin/sh\n# exit 1\ngrep -q x && «exit 1»\n", "exit with 2"),
    "exit 1 in Python": (
        "exit-one",
        "#!/usr/bin/env python3\nimport sys\nprint('denied')\n«sys.exit(1)»\n",
        "exit with 2",
    ),
    "exit with a text in Python": (
        "exit-one",
        "#!/usr/bin/env python3\nimport sys\n«sys.exit('not allowed')»\n",
        "exit with 2",
    ),
    "exit 1 after a message": (
        "exit-one",
        "#!/bin/sh\nif grep -q 'PRIVATE KEY-----'; then\n    echo 'keys stay here' >&2\n\n    «exit 1»\nfi\n",
        "exit with 2",
    ),
    "exit 1 in the line of a message": (
        "exit-one",
        "#!/bin/sh\n[ -t 0 ] || exit 2\ngrep -q x && { echo 'x is bad' >&2; «exit 1»; }\n",
        "exit with 2",
    ),
    "exit 1 after another line looked for a program": (
        "exit-one",
        "#!/bin/sh\ncommand -v jq >/dev/null || exit 2\ngrep -q x && { echo 'x is bad' >&2; «exit 1»; }\n",
        "exit with 2",
    ),
    "exit 2 without a reason": ("exit-two-silent", "#!/bin/sh\necho 'no'\n«exit 2»\n", 'echo "…" >&2'),
    "exit 2 without a reason in Python": (
        "exit-two-silent",
        "#!/usr/bin/env python3\nimport sys\nprint('no')\n«sys.exit(2)»\n",
        'print("…", file=sys.stderr)',
    ),
    "JSON among text": (
        "stdout-noise",
        '#!/bin/sh\n  «echo "checking the file"»\necho \'{"decision": "deny"}\'\n',
        ">&2",
    ),
    "a dict in Python": (
        "printed-dict",
        "#!/usr/bin/env python3\n«print({'decision':» 'deny'})\n",
        "json.dumps",
    ),
    "JSON among text in Node.js": (
        "stdout-noise",
        "#!/usr/bin/env -S cat\n«console.log('checking');»\nconsole.log(JSON.stringify({decision: 'deny'}));\n",
        ">&2",
    ),
    "JSON among text in Python": (
        "stdout-noise",
        '#!/usr/bin/env python3\n«print(f"checking")»\nprint(\'{"decision": "deny"}\')\n',
        'print("…", file=sys.stderr)',
    ),
}


@pytest.mark.parametrize(("code", "marked", "fix"), IN_THE_SCRIPT.values(), ids=IN_THE_SCRIPT)
def test_it_is_found_in_the_script(place: DiagnosedProject, code: str, marked: str, fix: str) -> None:
    expected = unmarked(marked)
    script = place.write("check", expected.text, 0o755)

    (found,) = place.diagnose_text(command("./check"))

    assert (found.code, found.file, span(found)) == (code, script, expected.spans[0])
    assert fix in found.fix


@pytest.mark.parametrize(
    "script",
    [
        SH,
        "#!/usr/bin/env bash\ncat\n",
        "#!/usr/bin/env -S bash -e\ncat\n",
        "#!/bin/sh\necho 'no secrets' >&2\nexit 2\n",
        '#!/bin/sh\necho checking >&2\necho \'{"decision": "deny"}\'\n',
        '#!/bin/sh\n[ -f x ] || exit 1\necho \'{"decision": "deny"}\'\n',
        "#!/bin/sh\necho 'just text for the model'\n",
        "#!/bin/sh\n# deny\ncommand -v jq >/dev/null || { echo 'jq is missing' >&2; exit 1; }\n",
        "#!/bin/sh\nif ! which jq >/dev/null 2>&1; then\n    echo 'jq is missing' >&2\n    exit 1\nfi\n",
        "#!/usr/bin/env python3\nimport json\nprint(json.dumps({'decision': 'deny'}))\n",
        '#!/bin/sh\necho "I found 3 files: {a, b, c}. The decision was to allow."\n',
        "#!/bin/sh\n# 'decision': none\necho 'text'\necho 'decision: none' >&2\n",
        "#!/bin/sh\ntrap 'exit 1' INT\ncd / || exit 1\ncat\n",
        "#!/usr/bin/env python3\nimport sys\nprint('no', file=sys.stderr)\nsys.exit(2)\n",
    ],
)
def test_a_valid_script_has_no_findings(place: DiagnosedProject, script: str) -> None:
    place.write("check", script, 0o755)

    assert codes(place, "./check") == []


def test_exit_codes_matter_only_where_something_can_be_blocked(place: DiagnosedProject) -> None:
    place.write("check", "#!/bin/sh\nexit 1\n", 0o755)

    assert place.diagnose_text(command("./check", "AfterTool")) == []


@pytest.mark.parametrize(
    ("event", "advice"), [("AfterTool", "exit with 0 and print it"), ("AfterModel", "BeforeModel")]
)
def test_exit_2_where_nothing_can_be_blocked(place: DiagnosedProject, event: str, advice: str) -> None:
    expected = unmarked("#!/bin/sh\necho no >&2\n«exit 2»\n")
    script = place.write("check", expected.text, 0o755)

    (found,) = place.diagnose_text(command("./check", event))

    assert (found.code, found.file, span(found)) == ("exit-two-no-effect", script, expected.spans[0])
    assert found.message == f"`exit 2` has no effect for {event}, which cannot be blocked"
    assert advice in found.fix


def full(settings: str) -> str:
    """The settings, with the profile in which hooks act."""
    return settings.replace("{", '{"hooksConfig": {"profile": "full"}, ', 1)


@pytest.mark.parametrize("event", ["AfterTool", "AfterModel", "BeforeAgent", "AfterAgent", "PreCompress"])
def test_exit_2_has_an_effect_where_hooks_act(place: DiagnosedProject, event: str) -> None:
    place.write("check", "#!/bin/sh\necho no >&2\nexit 2\n", 0o755)

    (found,) = place.diagnose_text(command("./check", event))

    assert "set `hooksConfig.profile` to `full`" in found.fix
    assert place.diagnose_text(full(command("./check", event))) == []


NEED_PROFILE = {
    "BeforeTool": """#!/bin/sh\necho '{"decision": «"ask"»}'\n""",
    "AfterTool": """#!/bin/sh\necho '{"hookSpecificOutput": {"«tool_response»": "x"}}'\n""",
    "AfterAgent": """#!/bin/sh\necho '{"hookSpecificOutput": {"«clearContext»": true}}'\n""",
}


@pytest.mark.parametrize(("event", "script"), NEED_PROFILE.items(), ids=NEED_PROFILE)
def test_answers_of_hooks_that_act_need_the_profile(place: DiagnosedProject, event: str, script: str) -> None:
    expected = unmarked(script)
    place.write("check", expected.text, 0o755)

    (found,) = place.diagnose_text(command("./check", event))

    assert (found.code, span(found)) == ("needs-profile", expected.spans[0])
    assert place.diagnose_text(full(command("./check", event))) == []


def test_a_guard_for_secrets_before_the_model_needs_the_full_view(place: DiagnosedProject) -> None:
    place.write("check", "#!/bin/sh\n# no secrets\ngrep -q 'sk-live' && echo no >&2 && exit 2\n", 0o755)

    (found,) = place.diagnose_text(command("./check", "BeforeModel"))

    assert (found.code, found.severity, found.line) == ("needs-full-view", "warning", 3)
    assert place.diagnose_text(full(command("./check", "BeforeModel"))) == []
    assert place.diagnose_text(command("./check", "BeforeTool")) == []
    (inline,) = place.diagnose_text(command("grep -q sk-live && echo no >&2 && exit 2", "BeforeModel"))
    assert inline.code == "needs-full-view"
    named = """{"type": "http", "url": "https://policy.example/v1", "name": "secret-guard"}"""
    text = f"""{{"enableHooks": true, "hooks": {{"BeforeModel": [{{"hooks": [{named}]}}]}}}}"""
    assert [each.code for each in place.diagnose_text(text)] == ["needs-full-view"]
    assert place.diagnose_text(full(text)) == []
    assert place.diagnose_text(text.replace("secret-guard", "policy")) == []


def test_a_script_for_several_events_may_exit_with_2(place: DiagnosedProject) -> None:
    place.write("check", "#!/bin/sh\ngrep -q 'hook_event_name.*BeforeTool' && echo no >&2 && exit 2\n", 0o755)

    assert place.diagnose_text(command("./check", "AfterTool")) == []


@pytest.mark.parametrize(
    ("fields", "event", "consequence"),
    [
        ({"failClosed": True}, "BeforeTool", "`failClosed` blocks every call."),
        ({}, "BeforeTool", "calls go ahead."),
        ({"failClosed": True, "mode": "observe"}, "BeforeTool", "calls go ahead."),
    ],
)
def test_the_reason_says_what_happens_to_calls(
    place: DiagnosedProject, fields: dict[str, object], event: str, consequence: str
) -> None:
    place.write("check", SH, 0o644)
    hook = {"type": "command", "command": "./check", **fields}

    (found,) = place.diagnose_text(json.dumps({"enableHooks": True, "hooks": {event: [{"hooks": [hook]}]}}))

    assert found.code == "script-not-executable"
    assert found.why.endswith(f"the hook fails each time, and {consequence}")


@pytest.mark.parametrize(
    "script",
    [
        '«echo "Decision log: deny rate 0"»\n',
        'grep -q x && {\n  echo "no x" >&2\n  exit 2\n}\n«echo allowed»\n',
        '«echo "checking"»\necho \'{"decision": "allow"}\'\n',
    ],
)
def test_text_of_a_hook_that_fails_closed_blocks(place: DiagnosedProject, script: str) -> None:
    expected = unmarked(f"#!/bin/sh\n{script}")
    file = place.write("check", expected.text, 0o755)
    text = command("./check").replace('"type"', '"failClosed": true, "type"')

    (found,) = place.diagnose_text(text)

    assert (found.code, found.file, span(found)) == ("fail-closed-text", file, expected.spans[0])
    assert 'echo "…" >&2' in found.fix


def test_text_before_exit_2_is_not_read(place: DiagnosedProject) -> None:
    place.write("check", "#!/bin/sh\necho 'no x' >&2\necho no\nexit 2\n", 0o755)

    assert place.diagnose_text(command("./check").replace('"type"', '"failClosed": true, "type"')) == []


@pytest.mark.parametrize("text", ['"no \\"x\\"\n  and no y"', '"no x" \\\n  "and no y"', "'no x\nand no y'"])
def test_a_message_in_two_lines_may_go_to_stderr(place: DiagnosedProject, text: str) -> None:
    place.write("check", f"#!/bin/sh\necho {text} >&2\nexit 2\n", 0o755)

    assert place.diagnose_text(command("./check").replace('"type"', '"failClosed": true, "type"')) == []


def test_exit_1_of_a_hook_that_fails_closed_does_block(place: DiagnosedProject) -> None:
    text = command("exit 1").replace('"type"', '"failClosed": true, "type"')

    assert place.diagnose_text(text) == []


def test_an_interpreter_needs_neither_permission_nor_shebang(place: DiagnosedProject) -> None:
    place.write("check.sh", "cat\n", 0o644)

    assert codes(place, "sh check.sh") == []
    assert codes(place, "bash -eu ./check.sh --option") == []


def test_a_missing_script_that_blocks_every_call_is_reported_as_such(place: DiagnosedProject) -> None:
    (found,) = place.diagnose_text(command("python3 check.py"))

    assert "then exits with 2, which blocks" in found.message


def test_a_command_that_is_offered_can_be_pasted(place: DiagnosedProject) -> None:
    place.write("a; touch ran", SH, 0o644)

    (found,) = place.diagnose_text(command("'./a; touch ran'"))

    assert found.code == "script-not-executable"
    assert f"chmod +x '{place.root}/a; touch ran'" in found.fix


def test_a_binary_program_needs_no_shebang(place: DiagnosedProject) -> None:
    assert codes(place, "/bin/cat") == []


@pytest.mark.parametrize(
    "text",
    [
        "$SOMEWHERE/check.sh",
        "./check-*.sh",
        "sh -c './check.sh'",
        "python3 -m check",
        "python3 -c 'print(1)'",
        "bash -euo pipefail x.sh",
        "cd hooks; ./check.sh",
        "[ -f check.sh ] && ./check.sh",
        "echo ./check.sh",
        "cat < ./check.sh > ./log",
        "cat <<EOF\n./check.sh\nEOF",
        "(./check.sh)",
        "~nobody/check.sh",
        "# ./check.sh",
    ],
)
def test_words_that_only_a_shell_understands_are_left_alone(place: DiagnosedProject, text: str) -> None:
    assert codes(place, text) == []


def test_the_home_directory_is_known(place: DiagnosedProject) -> None:
    place.write(place.home / "check.sh", SH, 0o755)

    assert codes(place, "~/check.sh; $HOME/check.sh; ~/other.sh") == ["script-missing"]


def test_one_script_of_several_hooks_is_reported_once(place: DiagnosedProject) -> None:
    place.write("check", "#!/bin/bash\nfi\n", 0o755)
    hooks = '{ "type": "command", "command": "./check a" }, { "type": "command", "command": "./check b" }'
    text = f'{{ "enableHooks": true, "hooks": {{ "BeforeTool": [{{ "hooks": [{hooks}] }}] }} }}'

    assert [each.code for each in place.diagnose_text(text)] == ["script-syntax"]


def test_files_outside_the_project_are_not_shown(place: DiagnosedProject) -> None:
    secret = place.write(place.folder / "secret", "token=hunter2 (\nexit 2\n", 0o755)

    found = place.diagnose_text(command(f"bash {secret}; {secret}"))

    assert "hunter2" not in str([each.to_dict() for each in found])
    assert all(each.file == place.project_file for each in found)


def test_nothing_is_run(place: DiagnosedProject) -> None:
    place.write("check", "#!/bin/sh\ntouch ran\n: $(touch ran)\n", 0o755)

    found = place.diagnose_text(command("./check; touch ran; echo $(touch ran) `touch ran`"))

    assert found == []
    assert not (place.root / "ran").exists()


def test_a_named_pipe_in_place_of_a_script_does_not_block(place: DiagnosedProject) -> None:
    os.mkfifo(place.root / "pipe", 0o755)
    os.chmod(place.root / "pipe", 0o755)

    assert codes(place, "./pipe") == []
    assert codes(place, "sh pipe") == []


needs_permissions = pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")


@needs_permissions
@pytest.mark.parametrize("marked", ["«./check»", "sh «check»", "cd . && ./«check»"])
@pytest.mark.parametrize("mode", [0, stat.S_IXUSR])
def test_a_script_that_cannot_be_read_is_reported_at_its_command(
    place: DiagnosedProject, marked: str, mode: int
) -> None:
    script = place.write("check", SH, mode)
    expected = unmarked(command(marked))

    (found, *others) = place.diagnose_text(expected.text)

    assert (found.code, found.file, span(found)) == ("script-unreadable", place.project_file, expected.spans[0])
    assert "Permission denied" in found.message
    assert found.fix == f"Run `chmod u+r {script}`."
    assert [each.code for each in others] == (["script-not-executable"] if marked == "«./check»" and not mode else [])


@needs_permissions
def test_a_folder_that_cannot_be_listed_is_reported_at_its_command(place: DiagnosedProject) -> None:
    folder = place.write("hooks/check", SH, 0o755).parent
    expected = unmarked(command("cd «hooks» && ./check"))
    folder.chmod(0)

    (found,) = place.diagnose_text(expected.text)
    folder.chmod(0o755)

    assert (found.code, span(found)) == ("script-unreadable", expected.spans[0])
    assert found.fix == f"Run `chmod u+rx {folder}`."


@needs_permissions
def test_a_users_script_that_its_interpreter_cannot_read(place: DiagnosedProject) -> None:
    script = place.write(place.home / "check", SH, stat.S_IXUSR)
    place.write(place.user_file, command("sh ~/check"))

    (found,) = place.diagnose()

    assert (found.code, found.file) == ("script-unreadable", place.user_file)
    assert found.fix == f"Run `chmod u+r {script}`."


@pytest.mark.parametrize(
    ("line", "reported"),
    [
        ("cat >> .llxprt/hooks/audit.log", True),
        ('cat | tee -a "$LLXPRT_PROJECT_DIR/.llxprt/hooks/audit.log" > /dev/null', True),
        ("python3 -c \"open('.llxprt/hooks/count', 'a')\"", True),
        ("cat >> .llxprt/state/audit.log", False),
        ("cat >> .llxprt/audit.log", False),
        ("grep -q x .llxprt/hooks/words.txt", False),
        ("# cat >> .llxprt/hooks/audit.log", False),
    ],
)
def test_a_script_that_ends_its_own_approval_is_reported(place: DiagnosedProject, line: str, reported: bool) -> None:
    place.write(".llxprt/hooks/x.sh", f"#!/bin/sh\n{line}\n", 0o755)

    found = place.diagnose_text(command(".llxprt/hooks/x.sh"))

    assert ("writes-covered" in [each.code for each in found]) is reported
