"""Every kind of diagnostic, with its severity and the reason why it is one."""

from __future__ import annotations

from typing import Final

from llxprt_hooks.diagnosis.diagnostic import Rule, Severity

_E, _W, _H = Severity.ERROR, Severity.WARNING, Severity.HINT

# The file.
UNREADABLE_FILE = Rule("unreadable-file", _E, "An unreadable file is ignored.")
SYNTAX = Rule(
    "syntax", _E, "Nothing in this file counts until it can be read as JSON; comments and trailing commas are fine."
)
REFUSED_SETTINGS = Rule(
    "refused-settings",
    _E,
    "Settings that other users can modify, or that cannot be inspected, are ignored, because hooks run with your "
    "permissions.",
)
SETTINGS_WRITABLE = Rule("settings-writable", _W, "Whoever can write to these settings can run commands as you.")
NOT_TRUSTED = Rule(
    "not-trusted",
    _H,
    "Until you approve them as they are now, these hooks are skipped: no code runs by a project's being opened.",
)
TRUST_STORE = Rule("trust-store", _W, "Without the list of approvals no project is trusted, and its hooks are skipped.")
UNREAD_FILE = Rule("unread-file", _H, "No hook runs from a file that is not read.")
EXTENSION_WITHOUT_MANIFEST = Rule(
    "extension-without-manifest", _E, "A folder without a manifest is no extension; its hooks never run."
)

# Keys and values.
DUPLICATE_KEY = Rule(
    "duplicate-key", _E, "Of two equal keys only the last one counts; the other's hooks are gone without a word."
)
MISSPELT_KEY = Rule(
    "misspelt-key", _E, "A key that is not known is ignored, and the hook behaves as if it were not there."
)
MISPLACED_KEY = Rule("misplaced-key", _E, "A key has an effect only where it belongs; here it is ignored.")
UNKNOWN_KEY = Rule("unknown-key", _W, "A key that is not known is ignored.")
MISSING_KEY = Rule("missing-key", _E, "Without it the entry is left out, and nothing runs.")
WRONG_TYPE = Rule("wrong-type", _E, "A value of another type is ignored, together with all that is in it.")
INVALID_VALUE = Rule(
    "invalid-value", _E, "A value that is not allowed is ignored; if the hook needs it, the hook is left out."
)
HOOK_OUTSIDE_GROUP = Rule(
    "hook-outside-group", _E, "An event has groups, and groups have hooks; a hook without a group is left out."
)
EMPTY_GROUP = Rule("empty-group", _W, "A group without hooks does nothing.")
ENVIRONMENT_MISTAKE = Rule(
    "environment-mistake",
    _E,
    "Such a rule was meant to keep something from hooks, and nobody knows what: it lets no variable through.",
)

# Events and types.
UNKNOWN_EVENT = Rule("unknown-event", _E, "Hooks under a name that is no event never run. Names are case-sensitive.")
UNKNOWN_TYPE = Rule("unknown-type", _E, "A hook of an unknown type is left out. Types are case-sensitive.")
PLUGIN_TYPE = Rule(
    "plugin-type",
    _E,
    "The type is accepted, but nothing can run it: the hook fails each time, and a failed hook allows.",
)
FAIL_CLOSED_NO_EFFECT = Rule(
    "fail-closed-no-effect",
    _W,
    "`failClosed` turns a failure into a block, and only BeforeTool and BeforeModel can be blocked.",
)

# Time.
TIMEOUT_SECONDS = Rule(
    "timeout-seconds",
    _W,
    "Time-outs are milliseconds here, seconds in Claude Code; a hook that is cut off has failed, which allows.",
)
TIMEOUT_LONG = Rule("timeout-long", _W, "The agent waits for its hooks; one that hangs holds it for that long.")
TIMEOUT_NOT_POSITIVE = Rule(
    "timeout-not-positive", _E, "A time-out must be above zero; this one is ignored, and the default of 60000 ms holds."
)

# Matchers.
MATCHER_INVALID = Rule(
    "matcher-invalid",
    _E,
    "A matcher that is no regular expression is compared as it stands with the whole name, so the hooks never run.",
)
MATCHER_CLAUDE_TOOL = Rule(
    "matcher-claude-tool",
    _W,
    "Matchers are held against the names that tools have here, and case counts: the hooks do not run for that tool.",
)
MATCHER_MATCHES_NOTHING = Rule("matcher-matches-nothing", _W, "Hooks whose matcher matches nothing never run.")
MATCHER_GLOB = Rule(
    "matcher-glob", _W, "A matcher is a regular expression, not a file pattern: `*` repeats the character before it."
)
MATCHER_IGNORED = Rule(
    "matcher-ignored", _W, "This event has nothing to match: the hooks run every time, whatever the matcher says."
)
MATCHER_UNANCHORED = Rule("matcher-unanchored", _H, "A matcher is found anywhere in a name.")

# Hooks among others.
DUPLICATE_COMMAND = Rule(
    "duplicate-command", _W, "The same command runs once for an event: the first counts, with its time-out and name."
)
UNREACHABLE_GROUP = Rule("unreachable-group", _W, "A group of which no hook runs does nothing.")
DISABLED_HOOK = Rule("disabled-hook", _H, "A hook that is switched off does not run.")
UNKNOWN_DISABLED_HOOK = Rule("unknown-disabled-hook", _H, "Switching off a hook that is not there has no effect.")
DUPLICATE_NAME = Rule(
    "duplicate-name", _H, "Enabling or disabling that name switches all of them, and the log cannot tell them apart."
)
SEQUENTIAL_ESCALATION = Rule(
    "sequential-escalation",
    _H,
    "One sequential group makes a chain of all hooks that match: they wait for each other, and a block ends the chain.",
)

# The switch.
HOOKS_OFF = Rule("hooks-off", _W, "Hooks are off until a settings file turns them on: none of them runs.")
HOOKS_OFF_HERE = Rule("hooks-off-here", _H, "Hooks are off until a settings file turns them on.")
CONFLICTING_SWITCHES = Rule(
    "conflicting-switches",
    _W,
    "`enableHooks` alone counts where it is set; of its other spellings a single `false` turns hooks off.",
)

# Commands.
SHELL_SYNTAX = Rule(
    "shell-syntax",
    _E,
    "A shell that cannot read a command ends with exit code 2, and 2 means block: every call is refused.",
)
UNRUNNABLE_COMMAND = Rule(
    "unrunnable-command",
    _E,
    "A command with such a character cannot be started: the hook fails each time, and a failed hook allows.",
)
QUOTED_VARIABLE = Rule(
    "quoted-variable", _W, "The shell expands nothing in single quotes: the program gets the text itself."
)
FOREIGN_VARIABLE = Rule(
    "foreign-variable", _W, "A variable that is not set expands to nothing, and the command does something else."
)
MISSPELT_VARIABLE = Rule(
    "misspelt-variable",
    _W,
    "A variable that is not set expands to nothing: the command looks elsewhere, the hook fails, and that allows.",
)
PROGRAM_NOT_FOUND = Rule(
    "program-not-found", _W, "A command that cannot be started fails each time, and a failed hook allows."
)
UNSAFE_EXTENSION_PATH = Rule(
    "unsafe-extension-path", _E, "The folder's name could be read as shell code there, so the hook is left out."
)

# Scripts.
SCRIPT_MISSING = Rule(
    "script-missing",
    _E,
    "What is not there checks nothing: mostly the hook fails, which allows; some interpreters end with 2, a block.",
)
SCRIPT_DIRECTORY = Rule(
    "script-directory", _E, "A folder cannot be run: the hook fails each time, and a failed hook allows."
)
SCRIPT_UNREADABLE = Rule(
    "script-unreadable",
    _E,
    "No interpreter can run it, and in a project nobody can tell what was approved, so all its hooks are skipped.",
)
SCRIPT_NOT_EXECUTABLE = Rule(
    "script-not-executable",
    _E,
    "A file without that permission cannot be run: the hook fails each time, and a failed hook allows.",
)
SCRIPT_WITHOUT_SHEBANG = Rule(
    "script-without-shebang",
    _W,
    "The shell takes the file for a shell script then, whatever language it is in; what it cannot read blocks.",
)
SHEBANG_NOT_FOUND = Rule(
    "shebang-not-found",
    _E,
    "A script whose interpreter is missing cannot be started: the hook fails each time, and a failed hook allows.",
)
SCRIPT_CRLF = Rule(
    "script-crlf",
    _E,
    "The carriage return becomes part of the interpreter's name or of each command, neither of which then exists.",
)
SCRIPT_SYNTAX = Rule(
    "script-syntax",
    _E,
    "A shell that cannot read a script ends with exit code 2, and 2 means block: every call is refused.",
)
SCRIPT_WRITABLE = Rule("script-writable", _W, "Everybody on this machine can change what runs as you.")
SCRIPT_CLAUDE_TOOL = Rule(
    "script-claude-tool",
    _W,
    "Scripts are told the names that tools have here: a guard that waits for another name lets every call through.",
)
EXIT_ONE = Rule("exit-one", _H, "Only exit code 2 blocks; 1 is a failed hook, and a failed hook allows.")
EXIT_TWO_SILENT = Rule(
    "exit-two-silent",
    _H,
    "With exit code 2 the reason is read from stderr, and stdout is ignored: the model is told only `Blocked by hook`.",
)
STDOUT_NOISE = Rule(
    "stdout-noise",
    _H,
    "JSON is read only when it is all that stdout has; with other text around it nothing of it counts.",
)

RULES: Final = tuple(rule for rule in list(globals().values()) if isinstance(rule, Rule))
"""In the order of this page."""
