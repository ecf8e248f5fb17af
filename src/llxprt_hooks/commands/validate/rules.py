"""Every kind of diagnostic, with its severity and why it matters."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum


class Severity(StrEnum):
    """The severity of a diagnostic, worst first."""

    ERROR = "error"
    """The setting does not work."""
    WARNING = "warning"
    """The setting works, but probably not as intended."""
    HINT = "hint"
    """Worth knowing."""


def _error(why: str, example: str) -> tuple[Severity, str, str]:
    return Severity.ERROR, why, example


def _warning(why: str, example: str) -> tuple[Severity, str, str]:
    return Severity.WARNING, why, example


def _hint(why: str, example: str) -> tuple[Severity, str, str]:
    return Severity.HINT, why, example


class Rule(Enum):
    """A kind of diagnostic. The name in lower case, with hyphens, is the code that users see."""

    def __init__(self, severity: Severity, why: str, example: str) -> None:
        self.severity = severity
        self.why = why
        self.example = example
        """What is found, for the list of all rules; a diagnostic has its own message."""

    @property
    def code(self) -> str:
        return self.name.lower().replace("_", "-")

    UNREADABLE_FILE = _error("An unreadable file is ignored.", "no permission, or a folder instead of a file")
    SYNTAX = _error(
        "A file that is not valid JSON is ignored as a whole; comments and trailing commas are allowed.",
        '`{ "enableHooks": True }`',
    )
    REFUSED_SETTINGS = _error(
        "Settings that other users can modify, or that cannot be inspected, are ignored, because hooks run with your "
        "permissions.",
        "settings that another user owns, or with mode 0666; project settings that are a link",
    )
    UNUSED_USER_SETTINGS = _warning(
        "Of several files with the user's settings only one is read; hooks in others never run.",
        "both `~/.config/llxprt-code/settings.json` and `~/.llxprt/settings.json`",
    )
    MANAGED_IGNORED = _warning(
        "Managed hooks bind every user, so only a system file that root alone can write has them.",
        '`"managed": true` in the user\'s settings',
    )
    NOT_TRUSTED = _hint(
        "Until you approve these hooks, they don't run: opening a project must not run its code.",
        "a project that was just cloned",
    )
    TRUST_STORE = _warning(
        "Without the list of approvals, the hooks of all projects are skipped.",
        "a broken `~/.llxprt/trusted_hooks.json`",
    )
    DIALECT_MISTAKE = _error(
        "The other agent cannot use this either: it is ignored, and blocks nothing.",
        'in `.claude/settings.json`, `"PreToolUsee"`, or a hook without `command`',
    )
    DIALECT_GAP = _warning(
        "The other agent honors this, and its hooks run here without it.",
        "in `.claude/settings.json`, `permissions.deny`, a hook of type `prompt`, or an event that doesn't happen here",
    )
    UNREAD_FILE = _hint(
        "Hooks in this file never run.",
        "hooks in `settings.json`, in another `.json` file in `.llxprt`, or in `.claude/settings.json`",
    )
    EXTENSION_WITHOUT_MANIFEST = _error(
        "A folder without a manifest is not an extension; its hooks never run.",
        "`hooks/hooks.json` without `llxprt-extension.json`",
    )

    MCP_TEXT = _warning(
        "Models read the texts that a server sends about its tools, and tend to obey them.",
        "a description with `Do not tell the user`, a zero-width character or an encoded order",
    )
    MCP_SAME_NAME = _warning(
        "A model that means one of them may call the other.", "two servers with a tool `read_file`"
    )

    DUPLICATE_KEY = _error(
        "Of duplicate keys only the last one applies; the hooks under the others are silently ignored.",
        'two `"BeforeTool"` in `hooks`',
    )
    MISSPELT_KEY = _error(
        "An unknown key is ignored, so the setting has no effect.", '`"Matcher"`, `"timout"`, `"cmd"`'
    )
    MISPLACED_KEY = _error("The key is ignored here.", '`"matcher"` in a hook, `"timeout"` in a group')
    UNKNOWN_KEY = _warning("An unknown key is ignored.", '`"env"` or `"async"` in a hook')
    MISSING_KEY = _error(
        "Without this key the entry is ignored, and nothing runs.", "a hook without `type` or `command`"
    )
    WRONG_TYPE = _error(
        "A value of the wrong type is ignored, with everything inside it.", '`"timeout": "5s"`, `"BeforeTool": {}`'
    )
    INVALID_VALUE = _error(
        "An invalid value is ignored; if it is required, the hook is skipped.",
        "a value that the hook's type does not allow; an address in `hooksConfig.audit` that cannot be used",
    )
    HOOK_OUTSIDE_GROUP = _error(
        "An event contains groups, and a group contains hooks; a hook outside a group is skipped.",
        '`"BeforeTool": [{ "type": "command" }]`',
    )
    EMPTY_GROUP = _warning("A group without hooks does nothing.", '`"hooks": []` in a group')
    ENVIRONMENT_MISTAKE = _error(
        "An invalid rule lets no variable through, because ignoring it could expose what it was meant to hide.",
        '`"environment": { "only": [] }`',
    )

    UNKNOWN_EVENT = _error(
        "Hooks under an unknown event never run. Names are case-sensitive.", "`PreToolUse`, `beforeTool`, `BeforeTol`"
    )
    UNSUPPORTED_EVENT = _warning(
        "These hooks never run there, or not always, so they guard nothing, or less.",
        "`AfterModel`, with `--for mcp-proxy`",
    )
    LOST_EFFECT = _warning(
        "The profile `full` lets these hooks act, but not all of their outputs have an effect there.",
        '`AfterAgent` with `--for adk`; a script with `permissionDecision: "allow"`, with `--for langchain`',
    )
    UNKNOWN_TYPE = _error(
        "A hook of an unknown type is skipped. Types are case-sensitive.", '`"type": "Command"`, `"type": "prompt"`'
    )
    PLUGIN_TYPE = _error(
        "The type is accepted but cannot be run: the hook fails each time, and calls go ahead.", '`"type": "plugin"`'
    )
    FAILING_HOOK = _error(
        "The hook fails each time, and calls go ahead.",
        '`"url": "http://policy.example.com"` of an HTTP hook; a type whose packages are not installed',
    )
    DOUBTFUL_VALUE = _warning(
        "The hook probably does not do what was meant.", "`$TOKEN` in a header, but not in `allowedEnvVars`"
    )
    FAIL_CLOSED_NO_EFFECT = _warning(
        "`failClosed` turns a failure into a block, and this event cannot be blocked.", "`failClosed` under `AfterTool`"
    )
    STREAM_NO_EFFECT = _warning(
        "The response is held back until it is complete, as without `stream`.",
        '`"stream": "sentences"` under `BeforeModel`, next to an AfterModel hook without it, with `--for pydantic-ai`',
    )

    TIMEOUT_SECONDS = _warning(
        "Timeouts are in milliseconds here, in seconds in Claude Code; if a hook times out, the call goes ahead.",
        '`"timeout": 600`',
    )
    TIMEOUT_LONG = _warning(
        "The agent waits for its hooks; a hook that hangs blocks it for this long.", '`"timeout": 86400000`'
    )
    TIMEOUT_NOT_POSITIVE = _error(
        "A timeout must be above zero; otherwise the default of 60000 ms applies.", '`"timeout": 0`'
    )

    MATCHER_INVALID = _error(
        "A matcher that is not a valid regular expression must equal the whole name, so the hooks never run. If one "
        "of them has `failClosed`, the matcher is ignored, and they run for every tool.",
        "`write_(file`, `*_file`",
    )
    MATCHER_CLAUDE_TOOL = _warning(
        "Matchers are matched against tool names here, which are case-sensitive: the hooks do not run for that tool.",
        "`Write`, `Edit`, `Bash(rm:*)`",
    )
    MATCHER_MATCHES_NOTHING = _warning(
        "Hooks whose matcher matches nothing never run.", "`wirte_file`; `startup|resume` for `SessionStart`"
    )
    MATCHER_OF_OWN_TOOL = _hint(
        "If no tool of your agent has a name that it matches, the hooks never run.",
        "`launch_rocket`, which no known tool resembles",
    )
    MATCHER_GLOB = _warning(
        "A matcher is a regular expression, not a file pattern: `*` repeats the character before it.", "`write_*`"
    )
    MATCHER_TOO_COMPLEX = _warning(
        "What would take too long to compare counts as a match, so that no name can hang an agent: the hooks run.",
        r"`^(\w+)+_\1$`",
    )
    MATCHER_IGNORED = _warning(
        "This event ignores matchers: the hooks run every time.", "a matcher under `BeforeModel`"
    )
    MATCHER_UNANCHORED = _hint("A matcher matches anywhere in a name.", "`write`, which also matches `todo_write`")

    DUPLICATE_COMMAND = _warning(
        "The same command runs once for an event: the first one, with its timeout and name. If any has `failClosed`, "
        "it has it too, with the longest timeout.",
        "the same command twice for one event",
    )
    UNREACHABLE_GROUP = _warning("None of the hooks in this group runs.", "a group whose commands all run already")
    DISABLED_HOOK = _hint(
        "A disabled hook does not run.", "a hook that `hooksConfig.disabled` or `hooks.disabled` lists"
    )
    UNKNOWN_DISABLED_HOOK = _hint(
        "Disabling a hook that does not exist has no effect.", "a command on the list whose hook has a name"
    )
    DUPLICATE_NAME = _hint(
        "Enabling or disabling this name affects all of them, and the log does not distinguish them.",
        "two hooks of an event called `check`",
    )
    SEQUENTIAL_ESCALATION = _hint(
        "One sequential group makes all matching hooks run sequentially; the first block ends the chain.",
        'one `"sequential": true` among other groups',
    )

    HOOKS_OFF = _warning(
        "Hooks are off until a settings file turns them on; no hook runs.",
        'hooks, but no `"enableHooks": true` in any file',
    )
    HOOKS_OFF_HERE = _hint(
        "Hooks are off until a settings file turns them on.", "the same, if only one file is checked"
    )
    CONFLICTING_SWITCHES = _warning(
        "If `enableHooks` is set, its other spellings are ignored; otherwise a single `false` turns hooks off.",
        "`enableHooks` true, `tools.enableHooks` false",
    )

    SHELL_SYNTAX = _error(
        "If the shell cannot parse a command, it exits with 2, which means block: every call is blocked.",
        "`if true; then echo`",
    )
    UNRUNNABLE_COMMAND = _error(
        "A command with this character cannot be started: the hook fails each time, and calls go ahead.",
        r"`\u0000` in a command",
    )
    QUOTED_VARIABLE = _warning(
        "The shell expands nothing in single quotes: the program gets the literal text.", "`'$LLXPRT_PROJECT_DIR/x.sh'`"
    )
    FOREIGN_VARIABLE = _warning(
        "An unset variable expands to nothing, so the command does something else.",
        "`$CLAUDE_TOOL_INPUT`, `${CLAUDE_PLUGIN_ROOT}`",
    )
    MISSPELT_VARIABLE = _warning(
        "An unset variable expands to nothing, so the path is wrong, the hook fails, and calls go ahead.",
        "`$LLXPRT_PROJCT_DIR`, `${CLAUDE_PROJECT}`",
    )
    PROGRAM_NOT_FOUND = _warning(
        "A command that cannot be started fails each time, and calls go ahead.", "`check.sh` without its path"
    )
    UNSAFE_EXTENSION_PATH = _error(
        "The shell could read the folder's name as code here, so the hook is skipped.",
        "`$(cat ${extensionPath}/x)` in a folder `my ext`",
    )

    SCRIPT_MISSING = _error(
        "Without its script the hook fails, and calls go ahead; some interpreters exit with 2, which blocks them.",
        "a path that does not exist; with `sh`, `python3` and `perl`, this blocks every call",
    )
    SCRIPT_DIRECTORY = _error(
        "A folder cannot be run: the hook fails each time, and calls go ahead.", "the path of a folder"
    )
    SCRIPT_UNREADABLE = _error(
        "An unreadable script cannot be run. In a project it cannot be approved either, so all its hooks are skipped.",
        "mode 0000, 0111",
    )
    SCRIPT_NOT_EXECUTABLE = _error(
        "A file without execute permission cannot be run: the hook fails each time, and calls go ahead.", "mode 0644"
    )
    SCRIPT_WITHOUT_SHEBANG = _warning(
        "The shell runs the file as a shell script, whatever its language; a syntax error then blocks.",
        "a Python script that begins with `import`",
    )
    SHEBANG_NOT_FOUND = _error(
        "A script whose interpreter is missing cannot be started: the hook fails each time, and calls go ahead.",
        "`#!/usr/local/bin/bash`, which does not exist",
    )
    SCRIPT_CRLF = _error(
        "The carriage return becomes part of the interpreter's name or of each command, which then does not exist.",
        "lines that end as on Windows",
    )
    SCRIPT_SYNTAX = _error(
        "If the shell cannot parse a script, it exits with 2, which means block: every call is blocked.",
        "a shell script that its shell cannot parse",
    )
    SCRIPT_WRITABLE = _warning("Every user on this machine can change what runs with your permissions.", "mode 0777")
    SCRIPT_CLAUDE_TOOL = _warning(
        "Scripts get the tool names used here: a guard that checks for another name lets every call through.",
        '`if tool_name != "Bash": exit`',
    )
    WRITES_COVERED = _warning(
        "The approval covers this file. If the hook writes it, the approval ends, and the calls it checks are blocked.",
        "`cat >> .llxprt/hooks/audit.log`; an existing `audit.log` as an argument",
    )
    NEEDS_FULL_VIEW = _warning(
        "Without the profile `full`, model hooks see only the text of users and models: a secret in a tool's result, "
        "a call or the system prompt is sent.",
        "a `BeforeModel` hook that looks for `sk-live`, or is called `secret-guard`",
    )
    IMPORTS_FROM_PROJECT = _warning(
        "This hook runs in every project, so a project that no one approved can bring a module that it imports.",
        "`python3 -c 'import json; …'` in the user's settings",
    )
    NOT_WARM = _hint(
        "With `warm`, an interpreter that is already running runs the unchanged script, in a fraction of the time.",
        "a hook that starts Python for every event",
    )
    AHEAD_TIMES = _hint(
        "With `warm`, the command is started before its event, which waits only for what follows its input.",
        "with `--start`, a command that takes 60 ms cold, and 8 ms if it is started ahead",
    )
    ACTS_BEFORE_INPUT = _warning(
        "A command that is started ahead does this before its event, and without one. If it has written something or "
        "ended, it is not used, and the event starts a fresh process.",
        "with `--start`, a warm command that writes a file and then reads its input",
    )
    EXIT_ONE = _hint(
        "Only exit code 2 blocks; 1 is a failed hook, and the call goes ahead.",
        '`echo "no" >&2; exit 1` or `sys.exit("no")` in a guard',
    )
    EXIT_TWO_NO_EFFECT = _hint(
        "This event cannot be blocked, so exit code 2 changes nothing.", "`exit 2` under `AfterTool`"
    )
    NEEDS_PROFILE = _hint(
        "Without the profile `full`, this output has no effect, and no one is asked.", 'a script that answers `"ask"`'
    )
    EXIT_TWO_SILENT = _hint(
        "With exit code 2, the reason is read from stderr and stdout is ignored: the model gets `Blocked by hook`.",
        "`exit 2` in a script that never writes to stderr",
    )
    STDOUT_NOISE = _hint(
        "JSON on stdout is read only without other text; otherwise all of it is treated as a message.",
        "`echo checking` in a script that prints JSON",
    )
    FAIL_CLOSED_TEXT = _hint(
        "With `failClosed`, a hook must print one JSON object or nothing; text blocks every call.",
        "`echo checking` in a hook with `failClosed`",
    )
    PRINTED_DICT = _hint(
        "Python prints a dict with single quotes: the decision in it is not read.",
        '`print({"decision": "deny"})` in Python',
    )


GROUPS: Mapping[str, Rule] = {
    "The file": Rule.UNREADABLE_FILE,
    "MCP servers": Rule.MCP_TEXT,
    "Keys and values": Rule.DUPLICATE_KEY,
    "Events, types and timeouts": Rule.UNKNOWN_EVENT,
    "Matchers": Rule.MATCHER_INVALID,
    "Several hooks": Rule.DUPLICATE_COMMAND,
    "Whether hooks are on": Rule.HOOKS_OFF,
    "Commands": Rule.SHELL_SYNTAX,
    "Scripts": Rule.SCRIPT_MISSING,
}
"""The first rule of each group, in the order of the rules."""


def grouped_rules() -> dict[str, list[Rule]]:
    """Return all rules, by group."""
    groups: dict[str, list[Rule]] = {}
    titles = {first: title for title, first in GROUPS.items()}
    title = ""
    for rule in Rule:
        title = titles.get(rule, title)
        groups.setdefault(title, []).append(rule)
    return groups
