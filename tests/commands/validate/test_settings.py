"""What is found in the text of one settings file, each with its exact place."""

from __future__ import annotations

import pytest

from llxprt_hooks.commands.validate.excerpt import excerpt
from tests.commands.validate.marks import (
    DiagnosedProject,
    command,
    field,
    group,
    hook,
    hooks,
    run,
    settings,
    span,
    unmarked,
)

TRUE = '{ "type": "command", "command": "true" }'
GROUP = f'{{ "hooks": [{TRUE}] }}'


def variables(text: str) -> str:
    return f'{{ "hooksConfig": {{ "environment": {{ {text} }} }} }}'


CASES = {
    # Syntax.
    "a missing comma": ("syntax", '{\n  "enableHooks": true\n  «"»hooks": {}\n}', "comma"),
    "a missing comma before text of the parser": ("syntax", '{ "a": "x" «"»not valid UTF-8": 1 }', "comma"),
    "a single-quoted string": ("syntax", "{ \"enableHooks\": «'»yes' }", "double quotes"),
    "typographic quotes": ("syntax", "{ «“»enableHooks”: true }", "plain double quotes"),
    "a typographic quote for a value": ("syntax", '{ "a": «“»yes” }', "plain double quotes"),
    "a capital letter": ("syntax", '{ "enableHooks": «True» }', "lower case"),
    "a string that is not closed": ("syntax", '{\n  «"»hooks: {}\n}', "Close the string"),
    "a bracket that is not closed": ("syntax", '{ "hooks": {«»', "double quotes"),
    "a comment that is not closed": ("syntax", "{ «/»* }", "Close the comment"),
    "an unknown escape": ("syntax", '{ "matcher": "a«\\»d" }', "\\\\"),
    "no object": ("syntax", "«[»]", "as an object"),
    "an empty file": ("syntax", "«»", "`{}`"),
    # Keys.
    "a duplicate event": ("duplicate-key", settings(f'"BeforeTool": [{GROUP}],\n«"BeforeTool"»: []'), "Merge"),
    "a misspelled key of a hook": ("misspelt-key", field('«"timout"»: 5'), "timeout"),
    "a key in capitals": ("misspelt-key", group('«"Matcher"»: "glob"'), "`matcher`"),
    "another word for a key": ("misspelt-key", group('«"tools"»: "glob"'), "`matcher`"),
    "a misspelled required key": ("misspelt-key", hook('"type": "command", «"cmd"»: "true"'), "`command`"),
    "a misspelled switch": ("misspelt-key", '{ «"enable_hooks"»: true }', "`enableHooks`"),
    "a misspelled top-level key": ("misspelt-key", '{ "enableHooks": true, «"hook"»: {} }', "`hooks`"),
    "a misspelled key beside the right one": ("unknown-key", '{ "hooks": {}, «"hook"»: {} }', "`hooks`, which is"),
    "an unknown key of a group": ("unknown-key", group('«"priority"»: 1'), "`sequential`"),
    "an unknown key of a hook": ("unknown-key", field('«"retry"»: 1'), "`timeout`"),
    "a key of Gemini CLI": ("unknown-key", field('«"env"»: {}'), "NAME=value"),
    "a key of Claude Code": ("unknown-key", field('«"async"»: true'), "&)"),
    "a switch in a hook": ("unknown-key", field('«"enabled"»: false'), "disabled"),
    "Claude's switch": ("unknown-key", '{ «"disableAllHooks"»: true }', "enableHooks"),
    "an unknown key of hooksConfig": ("unknown-key", '{ "hooksConfig": { «"colour"»: 1 } }', "`disabled`"),
    "a matcher in a hook": ("misplaced-key", field('«"matcher"»: "x"'), "group"),
    "a timeout in a group": ("misplaced-key", group('«"timeout"»: 5000'), "Move it to a hook"),
    "a notification switch": ("misplaced-key", settings('«"notifications"»: true'), "`hooksConfig`"),
    "notifications with groups": ("misplaced-key", settings('«"notifications"»: [{ "hooks": [] }]'), "to `hooks"),
    "an event at the top": ("misplaced-key", f'{{ «"BeforeTool"»: [{GROUP}] }}', "into `hooks`"),
    "Claude's event at the top": ("misplaced-key", f'{{ «"PreToolUse"»: [{GROUP}] }}', "into `hooks`"),
    "a hook without a type": ("missing-key", hooks('«{ "command": "true" }»'), '"type": "command"'),
    "an address without a type": ("missing-key", hooks('«{ "url": "https://a.b" }»'), '"type": "http"'),
    "an address beside a command": (
        "unknown-key",
        hook('"type": "command", «"url"»: "https://a.b", "command": "true"'),
        '"type": "http"',
    ),
    "a hook without a command": ("missing-key", hooks('«{ "type": "command" }»'), "command"),
    "an empty command": ("missing-key", run('«"  "»'), "what to run"),
    "a group without hooks": ("missing-key", settings('"BeforeTool": [«{ "matcher": "glob" }»]'), "List its hooks"),
    "a hook outside a group": ("hook-outside-group", settings(f'"BeforeTool": [\n  «{TRUE}»\n]'), "in a group"),
    "a group of no hooks": ("empty-group", settings('"BeforeTool": [{ "hooks": «[]» }]'), "Add a hook"),
    # Types.
    "a switch in quotes": ("wrong-type", '{ "enableHooks": «"true"» }', "without quotes"),
    "an event that is an object": ("wrong-type", settings(f'"BeforeTool": «{GROUP}»'), "brackets"),
    "hooks that are an array": ("wrong-type", '{ "hooks": «[]» }', "object"),
    "a group that is a string": ("wrong-type", settings('"BeforeTool": [«"check.sh"»]'), "Write a group"),
    "a hook that is a string": ("wrong-type", hooks('«"check.sh"»'), "Write a hook"),
    "a matcher that is an array": ("wrong-type", group('"matcher": «["a", "b"]»'), "regular expression"),
    "a command that is an array": ("wrong-type", run('«["true"]»'), "one command line"),
    "a timeout in quotes": ("wrong-type", field('"timeout": «"5s"»'), "5000"),
    "a list that is a string": ("wrong-type", '{ "hooksConfig": { "disabled": «"lint"» } }', "brackets"),
    "an element that is a number": ("wrong-type", '{ "hooksConfig": { "disabled": [«7»] } }', "double quotes"),
    "a command that is null": ("wrong-type", run('«null»'), "double quotes"),
    "an unknown list of variables": ("environment-mistake", variables('"only": «[]»'), "allow"),
    "a pattern for variables": ("environment-mistake", variables('"deny": [«"A*B"»]'), "allow"),
    # Events and types.
    "Claude's event": ("unknown-event", settings(f'«"PreToolUse"»: [{GROUP}]'), "`BeforeTool`"),
    "Claude's prompt event": ("unknown-event", settings(f'«"UserPromptSubmit"»: [{GROUP}]'), "`BeforeAgent`"),
    "Claude's stop event": ("unknown-event", settings(f'«"Stop"»: [{GROUP}]'), "`AfterAgent`"),
    "Claude's compact event": ("unknown-event", settings(f'«"PreCompact"»: [{GROUP}]'), "`PreCompress`"),
    "an event without counterpart": ("unknown-event", settings(f'«"SubagentStop"»: [{GROUP}]'), "no counterpart"),
    "an event in another case": ("unknown-event", settings(f'«"beforeTool"»: [{GROUP}]'), "`BeforeTool`"),
    "an event with underscores": ("unknown-event", settings(f'«"after_tool"»: [{GROUP}]'), "`AfterTool`"),
    "a misspelled event": ("unknown-event", settings(f'«"BeforeTol"»: [{GROUP}]'), "`BeforeTool`"),
    "an unknown event": ("unknown-event", settings(f'«"Whenever"»: [{GROUP}]'), "The events are `BeforeTool`"),
    "a type in another case": ("unknown-type", hook('"type": «"Command"», "command": "true"'), "`command`"),
    "another word for the type": ("unknown-type", hook('"type": «"shell"», "command": "true"'), "`command`"),
    "Claude's type": ("unknown-type", hook('"type": «"prompt"», "name": "x"'), "from a script"),
    "a plugin": ("plugin-type", hook('"type": «"plugin"», "name": "x"'), "command"),
    "a url without a scheme": ("failing-hook", hook('"type": "http", "url": «"policy"»'), "fails each time"),
    "a url that others can read": ("failing-hook", hook('"type": "http", "url": «"http://example.com"»'), "fails"),
    "a variable that is not listed": (
        "doubtful-value",
        hook('"type": "http", "url": "https://a.b", "headers": «{\n "A": "$NOT_LISTED" }»'),
        "Check",
    ),
    "a variable that is not set": (
        "doubtful-value",
        hook('"type": "http", "url": "https://a.b", "headers": «{\n "A": "$NOT_SET" }», "allowedEnvVars": ["NOT_SET"]'),
        "Check",
    ),
    "a header that cannot be sent": (
        "invalid-value",
        hook('"type": "http", "url": "https://a.b", "headers": «{\n "A": 7 }»'),
        "skipped",
    ),
    "a server without a scheme": ("failing-hook", hook('"type": "nats", "servers": «["a.b"]»'), "fails"),
    "a wildcard as a subject": (
        "failing-hook",
        hook('"type": "nats", "servers": ["nats://a.b"], "subject": «"a.>"»'),
        "fails",
    ),
    "failClosed that is idle": ("fail-closed-no-effect", field('"failClosed": «true»', "AfterTool"), "BeforeTool"),
    "sentences of a request": ("stream-no-effect", field('"stream": «"sentences"»', "BeforeModel"), "Remove"),
    "an unknown stream": ("invalid-value", field('"stream": «"words"»', "AfterModel"), "allowed value"),
    # Timeouts.
    "seconds": ("timeout-seconds", field('"timeout": «600»'), "600000"),
    "half a second": ("timeout-seconds", field('"timeout": «0.5»'), "500"),
    "a day": ("timeout-long", field('"timeout": «86400000»'), "60000 is one minute"),
    "no time": ("timeout-not-positive", field('"timeout": «0»'), "60000"),
    "for ever": ("timeout-not-positive", field('"timeout": «1e999»'), "60000"),
    # Matchers.
    "Claude's tool": ("matcher-claude-tool", group('"matcher": "«Bash»"'), "`run_shell_command`"),
    "Claude's tools": ("matcher-claude-tool", group('"matcher": "«Write»|Edit|MultiEdit"'), "`write_file|replace`"),
    "Claude's tool and boundaries": ("matcher-claude-tool", group(r'"matcher": "\\b«Read»\\b"'), r"`\bread_file\b`"),
    "Claude's tool after ours": ("matcher-claude-tool", group('"matcher": "write_file|«Grep»"'), "search_file_content"),
    "Claude's tool and spaces": ("matcher-claude-tool", group('"matcher": " \\t«Bash» "'), "`run_shell_command`"),
    "Claude's own tool": ("matcher-claude-tool", group('"matcher": "«NotebookEdit»"'), "Remove it"),
    "no regular expression": ("matcher-invalid", group('"matcher": «"write_(file"»'), "backslash"),
    "an invalid pattern": ("matcher-invalid", group('"matcher": «"*_file"»'), "`_file$`"),
    "an inline flag": ("matcher-invalid", group('"matcher": «"(?i)write"»'), "lower case"),
    "a repeated back-reference": ("matcher-too-complex", group(r'"matcher": «"^(\\w+)+_\\1$"»'), "back-reference"),
    "a file pattern": ("matcher-glob", group('"matcher": «"write_*"»'), "`^write_`"),
    "a tool in another case": ("matcher-matches-nothing", group('"matcher": «"Write_File"»'), "`write_file`"),
    "a misspelled tool": ("matcher-matches-nothing", group('"matcher": «"wirte_file"»'), "`write_file`"),
    "an unknown tool": ("matcher-of-own-tool", group('"matcher": «"launch_rocket"»'), "`hooksConfig.tools`"),
    "an unknown source": ("matcher-matches-nothing", group('"matcher": «"start"»', "SessionStart"), "`startup`"),
    "two sources": ("matcher-matches-nothing", group('"matcher": «"startup|resume"»', "SessionStart"), "for each"),
    "any source": ("matcher-matches-nothing", group('"matcher": «".*"»', "SessionStart"), "`*`"),
    "Claude's source": ("matcher-matches-nothing", group('"matcher": «"compact"»', "SessionStart"), "`compress`"),
    "an unknown reason": ("matcher-matches-nothing", group('"matcher": «"bored"»', "SessionEnd"), "`logout`"),
    "a matcher for a model": ("matcher-ignored", group('"matcher": «"gemini-.*"»', "BeforeModel"), "Remove it"),
    "a matcher for a prompt": ("matcher-ignored", group('"matcher": «"x"»', "BeforeAgent"), "Remove it"),
    "a part of a name": ("matcher-unanchored", group('"matcher": «"write"»'), "^(…)$"),
    # Switches.
    "hooks that nobody turns on": ("hooks-off-here", f'{{ «"hooks"»: {{ "BeforeTool": [{GROUP}] }} }}', "enableHooks"),
    "hooks turned off": ("hooks-off", settings(f'"BeforeTool": [{GROUP}]').replace("true,", "«false»,"), "true"),
    "an alias against the switch": (
        "conflicting-switches",
        '{ "enableHooks": true, "tools": { "enableHooks": «false» } }',
        "Remove it",
    ),
    "two aliases": (
        "conflicting-switches",
        '{ "tools": { "enableHooks": «true» }, "hooksConfig": { "enabled": false } }',
        "instead",
    ),
    "LLxprt's old switch against the switch": (
        "conflicting-switches",
        '{ "enableHooks": true, "hooks": { "enabled": «false» } }',
        "Remove it",
    ),
    "a hook on LLxprt's old list": (
        "disabled-hook",
        settings('"BeforeTool": [{ "hooks": [{ "type": "command", "name": «"x"», "command": "true" }] }], '
                 '"disabled": ["x"]'),
        "`hooks.disabled`",
    ),
    # Commands.
    "a command nobody can read": ("shell-syntax", run('«"if true; then echo"»'), "script"),
    "a quote that is not closed": ("shell-syntax", run('«"echo \'x"»'), "script"),
    "a NUL": ("unrunnable-command", run(r'«"echo \u0000"»'), "u0000"),
    "half a surrogate pair": ("unrunnable-command", run(r'«"echo \ud800"»'), "u0000"),
    "the folder in single quotes": ("quoted-variable", command("cat «'$LLXPRT_PROJECT_DIR/x'»"), "_DIR/x`"),
    "an alias in single quotes": ("quoted-variable", command("cat --root=«'${CLAUDE_PROJECT_DIR}'»"), "_DIR}`"),
    "Claude's variable": ("foreign-variable", command("cat «${CLAUDE_PLUGIN_ROOT}»/x"), "${extensionPath}"),
    "Claude's input": ("foreign-variable", command("echo «$CLAUDE_TOOL_INPUT»"), "jq .tool_input"),
    "an extension's folder": ("foreign-variable", command("cat «${extensionPath}»/x"), "LLXPRT_PROJECT_DIR"),
    "a letter too few": ("misspelt-variable", command('"«$LLXPRT_PROJCT_DIR»/ok.sh"'), "`$LLXPRT_PROJECT_DIR`"),
    "half of the name": ("misspelt-variable", command("«$LLXPRT_PROJECT»/ok.sh"), "`$LLXPRT_PROJECT_DIR`"),
    "half of an alias": ("misspelt-variable", command("cat «${CLAUDE_PROJECT}»/x"), "`$LLXPRT_PROJECT_DIR`"),
    "another last word": ("misspelt-variable", command("cat «$GEMINI_PROJECT_ROOT»/x"), "`$LLXPRT_PROJECT_DIR`"),
    "the name in lower case": ("misspelt-variable", command("cat «$llxprt_project_dir»/x"), "`$LLXPRT_PROJECT_DIR`"),
    "Gemini's separator": ("foreign-variable", command("cat a«${/}»b"), "`/`"),
    "a program that is not there": ("program-not-found", command("cat | «no-such-program» --x"), "Install"),
    "exit 2 after a tool": ("exit-two-no-effect", command("echo no >&2; «exit 2»", "AfterTool"), "BeforeTool"),
    "exit 1": ("exit-one", command("grep -q x && «exit 1»"), "exit 2"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "marked", "fix"), CASES.values(), ids=CASES)
def test_it_is_found_at_its_position(place: DiagnosedProject, code: str, marked: str, fix: str) -> None:
    text, spans = unmarked(marked).text, unmarked(marked).spans

    found = place.diagnose_text(text)

    assert [(each.code, span(each)) for each in found] == [(code, spans[0])]
    assert fix in found[0].fix
    lines = text.splitlines()
    line, column, end_line, end_column = spans[0]
    if line == end_line:
        assert found[0].text == ("" if not lines else lines[line - 1][column - 1 : end_column - 1])


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{ "theme": "dark", "tools": { "core": ["glob"] }, "$schema": "x" }',
        settings(""),
        settings(f'"BeforeTool": [{GROUP}], // a comment\n'),
        group('"matcher": null, "sequential": false'),
        group('"matcher": ""'),
        group('"matcher": "*"'),
        group('"matcher": " \\t"'),
        group('"matcher": " write_file "'),
        group('"matcher": "\\u00a0startup\\ufeff"', "SessionStart"),
        group('"matcher": ".*"', "BeforeModel"),
        group('"matcher": "*"', "SessionStart"),
        group('"matcher": "startup"', "SessionStart"),
        group('"matcher": "ToolPermission"', "Notification"),
        group('"matcher": "^(write_file|replace)$"'),
        group('"matcher": "^write_"'),
        group('"matcher": "write_.*|replace"'),
        group('"matcher": "read_file"'),
        group('"matcher": "^(?!read_|glob)"'),
        group('"matcher": "Write|write_file"'),
        group('"matcher": "mcp__github__.*"'),
        group('"//": "why this group is here", "matcher": "glob"'),
        field('"timeout": 1000, "failClosed": true'),
        field('"timeout": null, "name": null, "description": "x"'),
        field('"failClosed": false', "AfterTool"),
        command("cat $LLXPRT_PROJECT_DIR/x"),
        command('cat "${GEMINI_PROJECT_DIR}/x"'),
        command("bash -c 'cat $LLXPRT_PROJECT_DIR/x'"),
        command("echo '${not a variable}'"),
        command("echo ${CLAUDE_PLUGIN_ROOT:-none}"),
        command("LLXPRT_PROJECT=/tmp; cat $LLXPRT_PROJECT/x"),
        command("for LLXPRT_PROJECT in a b; do cat $LLXPRT_PROJECT; done"),
        command("cat ${LLXPRT_PROJECT:-.}/x"),
        command("cat $LLXPRT_PROFILE_DIR/x $PROJECT_DIR/x $GEMINI_API_KEY $CLAUDE_CONFIG_DIR/x"),
        command("cd sub && no-such-program"),
        command("command -v no-such-program && no-such-program"),
        command("if [ -x ./x.sh ]; then ./x.sh; fi"),
        command("test -x ./x.sh && ./x.sh"),
        command("$(which no-such-program) x"),
        command("NAME=value cat"),
        command("set -e; cat > out.txt; exit 2"),
        command("exit 1", "AfterTool"),
        '{ "enableHooks": false }',
        '{ "hooksConfig": { "enabled": true, "disabled": ["of-another-project"], "notifications": true } }',
        '{ "hooksConfig": { "environment": { "allow": ["PATH", "LC_*"], "deny": [] } } }',
        '{ "tools": { "enableHooks": true }, "hooksConfig": { "enabled": true } }',
    ],
)
def test_valid_settings_have_no_findings(place: DiagnosedProject, text: str) -> None:
    assert place.diagnose_text(text) == []


def test_a_variable_that_is_set_is_not_a_mistake(place: DiagnosedProject, monkeypatch: pytest.MonkeyPatch) -> None:
    text = command("cat $LLXPRT_PROJECT/x")
    assert [each.code for each in place.diagnose_text(text)] == ["misspelt-variable"]

    monkeypatch.setenv("LLXPRT_PROJECT", "/srv")

    assert place.diagnose_text(text) == []


@pytest.mark.parametrize(
    ("timeout", "told"),
    [
        ("3600001", "3600001 is more than an hour"),
        ("90000000", "90000000 is 25 hours"),
        ("864000000", "864000000 is 10 days"),
        ("1e11", "1e11 is 3 years"),
        ("1e12", "1e12 is more than 30 years"),
        ("1e308", "1e308 is more than 30 years"),
        ("1" + "0" * 400, "is more than 30 years"),
    ],
)
def test_a_long_timeout_is_reported_in_words(place: DiagnosedProject, timeout: str, told: str) -> None:
    (found,) = place.diagnose_text(field(f'"timeout": {timeout}'))

    assert found.code == "timeout-long"
    assert told in found.message


def test_columns_count_characters_after_escapes_and_wide_letters(place: DiagnosedProject) -> None:
    marked = group(r'"matcher": "\u0041|\ud83d\ude00|漢|«Bash»"')

    (found,) = place.diagnose_text(unmarked(marked).text)

    assert span(found) == unmarked(marked).spans[0]


def test_a_byte_order_mark_and_windows_line_ends_do_not_move_places(place: DiagnosedProject) -> None:
    marked = '{ «"disableAllHooks"»: true,\n  "enableHooks": true }'
    text = "\ufeff" + unmarked(marked).text.replace("\n", "\r\n")

    (found,) = place.diagnose_text(text)

    assert span(found) == unmarked(marked).spans[0]


def test_bytes_that_are_not_text_are_a_syntax_error(place: DiagnosedProject) -> None:
    (found,) = place.diagnose_text(b'{\n  "a": "\xff" }')

    assert (found.code, found.line, found.column) == ("syntax", 2, 9)


def test_what_is_under_a_wrong_event_is_checked_too(place: DiagnosedProject) -> None:
    text = settings('"PreToolUse": [{ "matcher": "Bash", "hooks": [{ "type": "Command", "command": "true" }] }]')

    assert [each.code for each in place.diagnose_text(text)] == ["unknown-event", "matcher-claude-tool", "unknown-type"]


@pytest.mark.parametrize("headers", ['{ "A": "s3cret", "B": 7 }', '"s3cret"', '["s3cret"]'])
def test_secret_values_are_not_quoted(place: DiagnosedProject, headers: str) -> None:
    text = hook(f'"type": "http", "url": "https://a.b", "headers": {headers}, "timeout": 5')

    found = place.diagnose_text(text)

    assert len(found) == 2
    for each in found:
        assert "s3cret" not in str((each.to_dict(), excerpt(each, 200)))
        assert '"timeout": 5' in "".join(excerpt(each, 200))


def test_a_tool_of_ones_own_can_be_made_known(place: DiagnosedProject) -> None:
    text = group('"matcher": "^launch_rocket$"')

    assert [each.code for each in place.diagnose_text(text)] == ["matcher-of-own-tool"]
    assert place.diagnose_text(text, "launch_rocket") == []


OWN = '"hooksConfig": { "tools": ["write_note", "search", "Write"] }, '


@pytest.mark.parametrize("matcher", ["^write_note$", "search|write", "^Write$", "mcp__shop__refund"])
def test_matchers_are_compared_with_the_tools_that_the_settings_name(place: DiagnosedProject, matcher: str) -> None:
    text = group(f'"matcher": "{matcher}"')
    assert [each.code for each in place.diagnose_text(text.replace("{", "{ " + OWN, 1))] in ([], ["matcher-unanchored"])


@pytest.mark.parametrize(
    ("matcher", "fix"),
    [
        ("^write_nte$", "Did you mean `write_note`?"),
        ("^write_file$", "The tools are `write_note`, `search` and `Write`."),
        ("^launch_rocket$", "The tools are `write_note`, `search` and `Write`."),
    ],
)
def test_a_matcher_for_none_of_the_tools_that_the_settings_name_is_a_mistake(
    place: DiagnosedProject, matcher: str, fix: str
) -> None:
    """Also one for a tool of LLxprt Code, which this program does not have."""
    [found] = place.diagnose_text(group(f'"matcher": "{matcher}"').replace("{", "{ " + OWN, 1))
    assert (found.code, found.severity, found.fix) == ("matcher-matches-nothing", "warning", fix)


def test_the_lists_of_tools_of_all_levels_are_joined(place: DiagnosedProject) -> None:
    place.write(place.user_file, '{ "hooksConfig": { "tools": ["launch_rocket"] } }')
    text = group('"matcher": "^(launch_rocket|write_note)$"')
    assert place.diagnose_text(text.replace("{", "{ " + OWN, 1)) == []


@pytest.mark.parametrize("tools", ['"write_note"', "[7]"])
def test_a_list_of_tools_with_a_mistake_is_reported(place: DiagnosedProject, tools: str) -> None:
    found = place.diagnose_text(f'{{ "hooksConfig": {{ "tools": {tools} }} }}')
    assert [each.code for each in found] == ["wrong-type"]


def test_a_message_does_not_grow_with_a_hostile_name(place: DiagnosedProject) -> None:
    (found,) = place.diagnose_text(settings(f'"{"x" * 100_000}": []'))

    assert len(found.message) < 500
    assert len(found.text) == 200


@pytest.mark.parametrize(
    ("matcher", "codes"),
    [("*a" * 50_000 + "!", []), ("a|" * 50_000, ["matcher-too-complex"]), ("Bash(" * 50_000, [])],
    ids=["file pattern", "alternatives", "rules"],
)
def test_a_long_matcher_keeps_nobody_waiting(place: DiagnosedProject, matcher: str, codes: list[str]) -> None:
    hooks = [{"matcher": matcher, "hooks": [{"type": "command", "command": "cat"}]}]
    place.write(place.project_file, {"enableHooks": True, "hooks": {"BeforeTool": hooks}})

    assert [each.code for each in place.diagnose()] == codes
