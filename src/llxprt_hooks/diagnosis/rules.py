"""Every kind of diagnostic, with its severity and why it matters."""

from __future__ import annotations

from typing import Final

from llxprt_hooks.diagnosis.diagnostic import Rule, Severity

_E, _W, _H = Severity.ERROR, Severity.WARNING, Severity.HINT

# The file.
UNREADABLE_FILE = Rule("unreadable-file", _E, "An unreadable file is ignored.")
SYNTAX = Rule(
    "syntax", _E, "A file that is not valid JSON is ignored as a whole; comments and trailing commas are allowed."
)
REFUSED_SETTINGS = Rule(
    "refused-settings",
    _E,
    "Settings that other users can modify, or that cannot be inspected, are ignored, because hooks run with your "
    "permissions.",
)
UNUSED_USER_SETTINGS = Rule(
    "unused-user-settings", _W, "Of several files with the user's settings only one is read; hooks in others never run."
)
MANAGED_IGNORED = Rule(
    "managed-ignored", _W, "Managed hooks bind every user, so only a system file that root alone can write has them."
)
NOT_TRUSTED = Rule(
    "not-trusted",
    _H,
    "Until you approve these hooks, they are skipped: opening a project must not run its code.",
)
TRUST_STORE = Rule("trust-store", _W, "Without the list of approvals, the hooks of all projects are skipped.")
UNREAD_FILE = Rule("unread-file", _H, "Hooks in this file never run.")
EXTENSION_WITHOUT_MANIFEST = Rule(
    "extension-without-manifest", _E, "A folder without a manifest is not an extension; its hooks never run."
)

# Keys and values.
DUPLICATE_KEY = Rule(
    "duplicate-key", _E, "Of duplicate keys only the last one applies; the hooks under the others are silently ignored."
)
MISSPELT_KEY = Rule("misspelt-key", _E, "An unknown key is ignored, so the setting has no effect.")
MISPLACED_KEY = Rule("misplaced-key", _E, "The key is ignored here.")
UNKNOWN_KEY = Rule("unknown-key", _W, "An unknown key is ignored.")
MISSING_KEY = Rule("missing-key", _E, "Without this key the entry is ignored, and nothing runs.")
WRONG_TYPE = Rule("wrong-type", _E, "A value of the wrong type is ignored, with everything inside it.")
INVALID_VALUE = Rule("invalid-value", _E, "An invalid value is ignored; if it is required, the hook is skipped.")
HOOK_OUTSIDE_GROUP = Rule(
    "hook-outside-group", _E, "An event contains groups, and a group contains hooks; a hook outside a group is skipped."
)
EMPTY_GROUP = Rule("empty-group", _W, "A group without hooks does nothing.")
ENVIRONMENT_MISTAKE = Rule(
    "environment-mistake",
    _E,
    "An invalid rule lets no variable through, because ignoring it could expose what it was meant to hide.",
)

# Events and types.
UNKNOWN_EVENT = Rule("unknown-event", _E, "Hooks under an unknown event never run. Names are case-sensitive.")
UNSUPPORTED_EVENT = Rule("unsupported-event", _W, "These hooks never run there, so they guard nothing.")
UNKNOWN_TYPE = Rule("unknown-type", _E, "A hook of an unknown type is skipped. Types are case-sensitive.")
PLUGIN_TYPE = Rule(
    "plugin-type",
    _E,
    "The type is accepted but cannot be run: the hook fails each time, and calls go ahead.",
)
FAILING_HOOK = Rule(
    "failing-hook",
    _E,
    "With this value the hook fails each time, and calls go ahead; with `failClosed` all are blocked.",
)
DOUBTFUL_VALUE = Rule("doubtful-value", _W, "The hook probably does not do what was meant.")
FAIL_CLOSED_NO_EFFECT = Rule(
    "fail-closed-no-effect",
    _W,
    "`failClosed` turns a failure into a block, and only BeforeTool and BeforeModel can be blocked.",
)

# Time.
TIMEOUT_SECONDS = Rule(
    "timeout-seconds",
    _W,
    "Timeouts are in milliseconds here, in seconds in Claude Code; if a hook times out, the call goes ahead.",
)
TIMEOUT_LONG = Rule("timeout-long", _W, "The agent waits for its hooks; a hook that hangs blocks it for this long.")
TIMEOUT_NOT_POSITIVE = Rule(
    "timeout-not-positive",
    _E,
    "A timeout must be above zero; otherwise the default of 60000 ms applies.",
)

# Matchers.
MATCHER_INVALID = Rule(
    "matcher-invalid",
    _E,
    "A matcher that is not a valid regular expression must equal the whole name, so the hooks never run. If one of "
    "them has `failClosed`, the matcher is ignored, and they run for every tool.",
)
MATCHER_CLAUDE_TOOL = Rule(
    "matcher-claude-tool",
    _W,
    "Matchers are matched against tool names here, which are case-sensitive: the hooks do not run for that tool.",
)
MATCHER_MATCHES_NOTHING = Rule("matcher-matches-nothing", _W, "Hooks whose matcher matches nothing never run.")
MATCHER_GLOB = Rule(
    "matcher-glob", _W, "A matcher is a regular expression, not a file pattern: `*` repeats the character before it."
)
MATCHER_IGNORED = Rule("matcher-ignored", _W, "This event ignores matchers: the hooks run every time.")
MATCHER_UNANCHORED = Rule("matcher-unanchored", _H, "A matcher matches anywhere in a name.")

# Hooks among others.
DUPLICATE_COMMAND = Rule(
    "duplicate-command",
    _W,
    "The same command runs once for an event: the first one, with its timeout and name. If any has "
    "`failClosed`, it has it too, with the longest timeout.",
)
UNREACHABLE_GROUP = Rule("unreachable-group", _W, "None of the hooks in this group runs.")
DISABLED_HOOK = Rule("disabled-hook", _H, "A disabled hook does not run.")
UNKNOWN_DISABLED_HOOK = Rule("unknown-disabled-hook", _H, "Disabling a hook that does not exist has no effect.")
DUPLICATE_NAME = Rule(
    "duplicate-name", _H, "Enabling or disabling this name affects all of them, and the log does not distinguish them."
)
SEQUENTIAL_ESCALATION = Rule(
    "sequential-escalation",
    _H,
    "One sequential group makes all matching hooks run sequentially; the first block ends the chain.",
)

# The switch.
HOOKS_OFF = Rule("hooks-off", _W, "Hooks are off until a settings file turns them on; no hook runs.")
HOOKS_OFF_HERE = Rule("hooks-off-here", _H, "Hooks are off until a settings file turns them on.")
CONFLICTING_SWITCHES = Rule(
    "conflicting-switches",
    _W,
    "If `enableHooks` is set, its other spellings are ignored; otherwise a single `false` turns hooks off.",
)

# Commands.
SHELL_SYNTAX = Rule(
    "shell-syntax",
    _E,
    "If the shell cannot parse a command, it exits with 2, which means block: every call is blocked.",
)
UNRUNNABLE_COMMAND = Rule(
    "unrunnable-command",
    _E,
    "A command with this character cannot be started: the hook fails each time, and calls go ahead.",
)
QUOTED_VARIABLE = Rule(
    "quoted-variable", _W, "The shell expands nothing in single quotes: the program gets the literal text."
)
FOREIGN_VARIABLE = Rule(
    "foreign-variable", _W, "An unset variable expands to nothing, so the command does something else."
)
MISSPELT_VARIABLE = Rule(
    "misspelt-variable",
    _W,
    "An unset variable expands to nothing, so the path is wrong, the hook fails, and calls go ahead.",
)
PROGRAM_NOT_FOUND = Rule(
    "program-not-found", _W, "A command that cannot be started fails each time, and calls go ahead."
)
UNSAFE_EXTENSION_PATH = Rule(
    "unsafe-extension-path", _E, "The shell could read the folder's name as code here, so the hook is skipped."
)

# Scripts.
SCRIPT_MISSING = Rule(
    "script-missing",
    _E,
    "Without its script the hook fails, and calls go ahead; some interpreters exit with 2, which blocks them.",
)
SCRIPT_DIRECTORY = Rule("script-directory", _E, "A folder cannot be run: the hook fails each time, and calls go ahead.")
SCRIPT_UNREADABLE = Rule(
    "script-unreadable",
    _E,
    "An unreadable script cannot be run. In a project it cannot be approved either, so all its hooks are skipped.",
)
SCRIPT_NOT_EXECUTABLE = Rule(
    "script-not-executable",
    _E,
    "A file without execute permission cannot be run: the hook fails each time, and calls go ahead.",
)
SCRIPT_WITHOUT_SHEBANG = Rule(
    "script-without-shebang",
    _W,
    "The shell runs the file as a shell script, whatever its language; a syntax error then blocks.",
)
SHEBANG_NOT_FOUND = Rule(
    "shebang-not-found",
    _E,
    "A script whose interpreter is missing cannot be started: the hook fails each time, and calls go ahead.",
)
SCRIPT_CRLF = Rule(
    "script-crlf",
    _E,
    "The carriage return becomes part of the interpreter's name or of each command, which then does not exist.",
)
SCRIPT_SYNTAX = Rule(
    "script-syntax",
    _E,
    "If the shell cannot parse a script, it exits with 2, which means block: every call is blocked.",
)
SCRIPT_WRITABLE = Rule("script-writable", _W, "Every user on this machine can change what runs with your permissions.")
SCRIPT_CLAUDE_TOOL = Rule(
    "script-claude-tool",
    _W,
    "Scripts get the tool names used here: a guard that checks for another name lets every call through.",
)
IMPORTS_FROM_PROJECT = Rule(
    "imports-from-project",
    _W,
    "This hook runs in every project. A project that nobody approved can bring a module that it imports.",
)
NOT_WARM = Rule(
    "not-warm", _H, "Python starts for every event. With `warm`, an interpreter that waits runs the same script."
)
EXIT_ONE = Rule("exit-one", _H, "Only exit code 2 blocks; 1 is a failed hook, and the call goes ahead.")
EXIT_TWO_SILENT = Rule(
    "exit-two-silent",
    _H,
    "With exit code 2 the reason is read from stderr, and stdout is ignored: the model gets only `Blocked by hook`.",
)
STDOUT_NOISE = Rule(
    "stdout-noise",
    _H,
    "JSON on stdout is read only without other text; otherwise all of it is treated as a message.",
)

RULES: Final = tuple(rule for rule in list(globals().values()) if isinstance(rule, Rule))
"""In the order of this module."""
