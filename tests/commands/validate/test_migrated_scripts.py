"""What is found in hooks that were migrated from Claude Code: matchers, and scripts that wait for its tools."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from llxprt_hooks.commands.validate.claude_names import claude_names, compared_tools
from llxprt_hooks.events import HookEventName
from llxprt_hooks.settings.matcher import compile_matcher
from tests.commands.validate.marks import command, group, settings, span, unmarked

if TYPE_CHECKING:
    from tests.commands.validate.marks import DiagnosedProject

PYTHON = "#!/usr/bin/env python3\nimport json, sys\ncall = json.load(sys.stdin)\n"

MATCHERS = {
    # As they are written, and tools that they must select after the fix.
    "Bash": {"run_shell_command"},
    "^Bash$": {"run_shell_command"},
    "Bash.*": {"run_shell_command"},
    "Edit|Write": {"replace", "write_file"},
    "Write|Edit|MultiEdit": {"replace", "write_file"},
    "(Edit|Write)": {"replace", "write_file"},
    "Write, Edit": {"replace", "write_file"},
    "Edit | Write": {"replace", "write_file"},
    "Task": {"task"},
    "Glob*": {"glob"},
    "Bash|NotebookEdit": {"run_shell_command"},
    "NotebookEdit|Bash": {"run_shell_command"},
    "Bash|mcp__github__.*": {"run_shell_command", "mcp__github__push"},
    "Bash(rm:*)": {"run_shell_command"},
    "Bash(git *)": {"run_shell_command"},
    "Bash(*)": {"run_shell_command"},
    "Bash(r*)": {"run_shell_command"},
    "Bash(git push:*)|Write": {"run_shell_command", "write_file"},
    "Bash(rm:*)|mcp__github__.*": {"run_shell_command", "mcp__github__push"},
    "Read(./.env)": {"read_file"},
    "Write(src/**)": {"write_file"},
    "Edit(*.ts)|Bash": {"replace", "run_shell_command"},
    "WebFetch(domain:example.com)": {"web_fetch"},
    "Bash(": {"run_shell_command"},
    # Of no agent.
    "Write_File": {"write_file"},
    "wirte_file": {"write_file"},
    "write_*": {"write_file"},
    "*_file": {"read_file", "write_file"},
    "*web*": {"web_fetch", "google_web_search"},
}


@pytest.mark.parametrize("matcher", MATCHERS)
def test_a_matcher_that_is_proposed_works_and_is_clean(place: DiagnosedProject, matcher: str) -> None:
    (found,) = place.diagnose_text(group(f'"matcher": "{matcher}"'))

    proposed = re.findall(r"(?:[Ww]rite|Did you mean) `([^`]+)`", found.fix)[0]

    selects = compile_matcher(HookEventName.BEFORE_TOOL, proposed)
    assert {tool for tool in MATCHERS[matcher] if not selects(tool)} == set()
    assert place.diagnose_text(group(f'"matcher": "{proposed}"')) == []


@pytest.mark.parametrize(
    ("matcher", "proposed", "looked_at"),
    [
        ("Bash(rm:*)", "^run_shell_command$", "tool_input.command"),
        ("Read(./.env)", "^read_file$", "tool_input.file_path"),
        ("WebFetch(domain:x.org)", "^web_fetch$", "tool_input"),
    ],
)
def test_what_was_a_permission_is_left_to_the_script(
    place: DiagnosedProject, matcher: str, proposed: str, looked_at: str
) -> None:
    (found,) = place.diagnose_text(group(f'"matcher": "{matcher}"'))

    assert f"`{proposed}`" in found.fix
    assert f"`{looked_at}`" in found.fix


@pytest.mark.parametrize("matcher", ["*", "mcp__.*", "mcp__github__create_issue"])
def test_matchers_that_mean_the_same_here_are_left_alone(place: DiagnosedProject, matcher: str) -> None:
    assert place.diagnose_text(group(f'"matcher": "{matcher}"')) == []


@pytest.mark.parametrize("matcher", ["Agent", "BashOutput", "Notebook.*"])
def test_for_a_tool_without_counterpart_nothing_is_proposed(place: DiagnosedProject, matcher: str) -> None:
    (found,) = place.diagnose_text(group(f'"matcher": "{matcher}"'))

    assert found.code == "matcher-of-own-tool"
    assert found.fix.startswith("Known tools: ")


def test_a_word_of_claude_is_proposed_only_where_it_is_one(place: DiagnosedProject) -> None:
    (found,) = place.diagnose_text(group('"matcher": "compact"', "PreCompress"))

    assert "`manual`" in found.fix
    assert "compress" not in found.fix


COMPARING = {
    "Python, unequal": ('if call["tool_name"] != "Bash":\n    sys.exit(0)\n', {("Bash", 1)}),
    "Python, get": ("if call.get('tool_name', '') == 'Write':\n", {("Write", 1)}),
    "Python, a tuple": (
        'if call["tool_name"] in ("Write", "Edit", "Bash"):\n',
        {("Write", 1), ("Edit", 1), ("Bash", 1)},
    ),
    "Python, a variable": ('name = call["tool_name"]\n\nif name == "Edit":\n', {("Edit", 3)}),
    "Python, two variables": ('name, args = call["tool_name"], call["x"]\nif name == "Edit":\n', {("Edit", 2)}),
    "Python, a constant": ('WATCHED = {"Edit"}\nif call["tool_name"] in WATCHED:\n', {("Edit", 1)}),
    "Python, a long constant": (
        'WATCHED = (\n    "Write",\n    "Edit",\n)\nif call["tool_name"] in WATCHED:\n',
        {("Write", 2), ("Edit", 3)},
    ),
    "Python, a method of a tool's name": ('if call["tool_name"] == "Edit":\n    x.replace(1, 2)\n', {("Edit", 1)}),
    "Python, a module of a tool's name": ('import glob\nif call["tool_name"] == "Glob":\n', {("Glob", 2)}),
    "Python, match": ('match call["tool_name"]:\n    case "Read":\n        pass\n', {("Read", 2)}),
    "Python, a pattern": ('re.match("Write|Edit", call["tool_name"])\n', {("Write", 1), ("Edit", 1)}),
    "shell, quotes": ('tool=$(jq -r .tool_name)\n[ "$tool" != "Bash" ] && exit 0\n', {("Bash", 2)}),
    "shell, none": ("tool=$(jq -r .tool_name)\n[[ $tool == Bash ]] || exit 0\n", {("Bash", 2)}),
    "shell, a pattern": ("tool=$(jq -r .tool_name)\n[[ $tool =~ ^(Write|Edit)$ ]]\n", {("Write", 2), ("Edit", 2)}),
    "shell, case": (
        'TOOL=$(jq -r .tool_name)\ncase "$TOOL" in\n  Write|Edit) exit 2 ;;\n  "Read")\n  ;;\nesac\n',
        {("Write", 3), ("Edit", 3), ("Read", 4)},
    ),
    "shell, case in a line": ('case "$(jq -r .tool_name)" in Bash) exit 2 ;; esac\n', {("Bash", 1)}),
    "shell, grep": ("jq -r .tool_name | grep -q Bash && exit 2\n", {("Bash", 1)}),
    "shell, grep with anchors": ("jq -r .tool_name | grep -qE '^Bash$' && exit 2\n", {("Bash", 1)}),
    "jq": ("jq -e 'select(.tool_name == \"Bash\")' && exit 2\n", {("Bash", 1)}),
    "JavaScript": ("if (input.tool_name !== 'Bash') process.exit(0);\n", {("Bash", 1)}),
    "JavaScript, a list": (
        'if (!["Write", "Edit"].includes(input.tool_name)) process.exit(0);\n',
        {("Write", 1), ("Edit", 1)},
    ),
    "JavaScript, switch": ('switch (input.tool_name) {\n  case "Grep":\n    break;\n}\n', {("Grep", 2)}),
    "JavaScript, renamed": (
        "const { tool_name: what, tool_input } = input;\nif (what === `Bash`) deny();\n",
        {("Bash", 2)},
    ),
    "JavaScript, a pattern": ("if (/Write|Edit/.test(input.tool_name)) deny();\n", {("Write", 1)}),
}


@pytest.mark.parametrize(("text", "expected"), COMPARING.values(), ids=COMPARING)
def test_a_comparison_with_a_tool_of_claude_is_seen(text: str, expected: set[tuple[str, int]]) -> None:
    assert {(name, text.count("\n", 0, start) + 1) for start, name in compared_tools(text)} == expected


@pytest.mark.parametrize(
    "text",
    [
        'if call["tool_name"] in ("Bash", "run_shell_command"):\n',
        'if call["tool_name"] == "run_shell_command":\n',
        'if call["tool_name"] in ("Edit", "replace"):\n',
        "tool=$(jq -r .tool_name)\ncase $tool in\n  Edit | replace) exit 2 ;;\nesac\n",
        'NAMES = {"Bash": "run_shell_command"}\nname = NAMES.get(call["tool_name"])\n',
        '# Claude Code says "Bash" in tool_name\nif call["tool_name"] == "glob":\n',
        '// tool_name was "Bash"\nif (input.tool_name === "glob") deny();\n',
        "print(f\"Write {call['tool_name']}\")\n",
        "print(f\"Read/Write by {call['tool_name']}\")\n",
        'echo "Bash is slow: $(jq -r .tool_name)"\n',
        'if language == "Bash":\n    pass\n',
        'if call["tool_name"] == "BashOutput":\n',
        'if call["tool_name"] == "bash":\n',
        '["Write", "Edit"]\n',
    ],
)
def test_other_words_are_not_taken_for_tools_of_claude(text: str) -> None:
    assert list(compared_tools(text)) == []


@pytest.mark.parametrize("text", ["./guard.py", '"$CLAUDE_PROJECT_DIR"/guard.py', "python3 guard.py"])
def test_a_script_that_waits_for_a_tool_of_claude_is_reported_where_it_compares(
    place: DiagnosedProject, text: str
) -> None:
    script = place.write("guard.py", f'{PYTHON}if call["tool_name"] != "Bash":\n    sys.exit(0)\n', 0o755)

    found = [each for each in place.diagnose_text(command(text)) if each.code == "script-claude-tool"]

    assert [(each.file, each.line, each.column, each.text) for each in found] == [(script, 4, 26, "Bash")]
    assert "`run_shell_command`" in found[0].fix


def test_a_command_that_waits_for_a_tool_of_claude_is_reported(place: DiagnosedProject) -> None:
    expected = unmarked(command("""[ "$(jq -r .tool_name)" = "«Bash»" ] || exit 0; echo no >&2; exit 2"""))

    (found,) = place.diagnose_text(expected.text)

    assert (found.code, span(found)) == ("script-claude-tool", expected.spans[0])


def test_each_name_in_a_script_of_several_commands_is_reported_once(place: DiagnosedProject) -> None:
    place.write("guard.py", f'{PYTHON}print(call["tool_name"] in ("Write", "Bash"))\nprint("Bash")\n', 0o755)
    hook = '{ "hooks": [{ "type": "command", "command": "./guard.py" }] }'

    found = place.diagnose_text(settings(f'"BeforeTool": [\n{hook}],\n"AfterTool": [\n{hook}]'))

    assert [(each.text, each.line) for each in found] == [("Write", 4), ("Bash", 4)]


def test_a_hook_of_an_event_without_tools_may_mention_tools(place: DiagnosedProject) -> None:
    place.write("guard.py", f'{PYTHON}print(call.get("tool_name") == "Bash")\n', 0o755)

    assert place.diagnose_text(command("./guard.py", "BeforeAgent")) == []


def test_a_script_of_the_user_is_looked_at_too(place: DiagnosedProject) -> None:
    script = place.write(place.home / "guard.py", f'{PYTHON}print(call["tool_name"] == "Bash")\n', 0o755)
    place.write(place.user_file, command("~/guard.py"))

    (found,) = place.diagnose()

    assert (found.code, found.file) == ("script-claude-tool", script)


def test_a_projects_settings_reveal_nothing_about_files_outside(place: DiagnosedProject) -> None:
    outside = place.write(place.folder / "guard.py", f'{PYTHON}print(call["tool_name"] == "Bash")\n', 0o755)

    assert place.diagnose_text(command(str(outside))) == []


def test_a_binary_file_is_not_searched(place: DiagnosedProject) -> None:
    place.write("guard", b'#!/usr/bin/env python3\n"tool_name" == "Bash"\n\0', 0o755)

    assert place.diagnose_text(command("./guard")) == []


def test_no_script_keeps_its_reader_waiting() -> None:
    text = "tool_name\n" + '"Bash"\n' * 300_000 + '"Bash"' * 300_000

    assert sum(1 for _ in compared_tools(text)) == 300_000
    assert sum(1 for _ in claude_names(text)) == 300_001
