"""Every kind of diagnostic, with its severity and why it matters."""

from __future__ import annotations

from enum import Enum, StrEnum


class Severity(StrEnum):
    """The severity of a diagnostic, worst first."""

    ERROR = "error"
    """The setting does not work."""
    WARNING = "warning"
    """The setting works, but probably not as intended."""
    HINT = "hint"
    """Worth knowing."""


def _error(why: str) -> tuple[Severity, str]:
    return Severity.ERROR, why


def _warning(why: str) -> tuple[Severity, str]:
    return Severity.WARNING, why


def _hint(why: str) -> tuple[Severity, str]:
    return Severity.HINT, why


class Rule(Enum):
    """A kind of diagnostic. The name in lower case, with hyphens, is the code that users see."""

    def __init__(self, severity: Severity, why: str) -> None:
        self.severity = severity
        self.why = why

    @property
    def code(self) -> str:
        return self.name.lower().replace("_", "-")

    # The file.
    UNREADABLE_FILE = _error("An unreadable file is ignored.")
    SYNTAX = _error("A file that is not valid JSON is ignored as a whole; comments and trailing commas are allowed.")
    REFUSED_SETTINGS = _error(
        "Settings that other users can modify, or that cannot be inspected, are ignored, because hooks run with your "
        "permissions."
    )
    UNUSED_USER_SETTINGS = _warning(
        "Of several files with the user's settings only one is read; hooks in others never run."
    )
    MANAGED_IGNORED = _warning(
        "Managed hooks bind every user, so only a system file that root alone can write has them."
    )
    NOT_TRUSTED = _hint("Until you approve these hooks, they don't run: opening a project must not run its code.")
    TRUST_STORE = _warning("Without the list of approvals, the hooks of all projects are skipped.")
    DIALECT_MISTAKE = _error("The other agent cannot use this either: it is ignored, and blocks nothing.")
    DIALECT_GAP = _warning("The other agent honors this, and its hooks run here without it.")
    UNREAD_FILE = _hint("Hooks in this file never run.")
    EXTENSION_WITHOUT_MANIFEST = _error("A folder without a manifest is not an extension; its hooks never run.")

    # MCP servers.
    MCP_TEXT = _warning("A model reads what a server says about its tools, and tends to obey it.")
    MCP_SAME_NAME = _warning("A model that means one of them may call the other.")

    # Keys and values.
    DUPLICATE_KEY = _error(
        "Of duplicate keys only the last one applies; the hooks under the others are silently ignored."
    )
    MISSPELT_KEY = _error("An unknown key is ignored, so the setting has no effect.")
    MISPLACED_KEY = _error("The key is ignored here.")
    UNKNOWN_KEY = _warning("An unknown key is ignored.")
    MISSING_KEY = _error("Without this key the entry is ignored, and nothing runs.")
    WRONG_TYPE = _error("A value of the wrong type is ignored, with everything inside it.")
    INVALID_VALUE = _error("An invalid value is ignored; if it is required, the hook is skipped.")
    HOOK_OUTSIDE_GROUP = _error(
        "An event contains groups, and a group contains hooks; a hook outside a group is skipped."
    )
    EMPTY_GROUP = _warning("A group without hooks does nothing.")
    ENVIRONMENT_MISTAKE = _error(
        "An invalid rule lets no variable through, because ignoring it could expose what it was meant to hide."
    )

    # Events and types.
    UNKNOWN_EVENT = _error("Hooks under an unknown event never run. Names are case-sensitive.")
    UNSUPPORTED_EVENT = _warning("These hooks never run there, so they guard nothing.")
    LOST_EFFECT = _warning("The profile `full` lets these hooks act, but not all that they answer has an effect there.")
    UNKNOWN_TYPE = _error("A hook of an unknown type is skipped. Types are case-sensitive.")
    PLUGIN_TYPE = _error("The type is accepted but cannot be run: the hook fails each time, and calls go ahead.")
    FAILING_HOOK = _error("The hook fails each time, and calls go ahead.")
    DOUBTFUL_VALUE = _warning("The hook probably does not do what was meant.")
    FAIL_CLOSED_NO_EFFECT = _warning("`failClosed` turns a failure into a block, and this event cannot be blocked.")
    STREAM_NO_EFFECT = _warning("The answer is held back until it is complete, as without `stream`.")

    # Time.
    TIMEOUT_SECONDS = _warning(
        "Timeouts are in milliseconds here, in seconds in Claude Code; if a hook times out, the call goes ahead."
    )
    TIMEOUT_LONG = _warning("The agent waits for its hooks; a hook that hangs blocks it for this long.")
    TIMEOUT_NOT_POSITIVE = _error("A timeout must be above zero; otherwise the default of 60000 ms applies.")

    # Matchers.
    MATCHER_INVALID = _error(
        "A matcher that is not a valid regular expression must equal the whole name, so the hooks never run. If one "
        "of them has `failClosed`, the matcher is ignored, and they run for every tool."
    )
    MATCHER_CLAUDE_TOOL = _warning(
        "Matchers are matched against tool names here, which are case-sensitive: the hooks do not run for that tool."
    )
    MATCHER_MATCHES_NOTHING = _warning("Hooks whose matcher matches nothing never run.")
    MATCHER_OF_OWN_TOOL = _hint("If no tool of your agent has a name that it matches, the hooks never run.")
    MATCHER_GLOB = _warning(
        "A matcher is a regular expression, not a file pattern: `*` repeats the character before it."
    )
    MATCHER_TOO_COMPLEX = _warning(
        "What would take too long to compare counts as a match, so that no name can hang an agent: the hooks run."
    )
    MATCHER_IGNORED = _warning("This event ignores matchers: the hooks run every time.")
    MATCHER_UNANCHORED = _hint("A matcher matches anywhere in a name.")

    # Several hooks.
    DUPLICATE_COMMAND = _warning(
        "The same command runs once for an event: the first one, with its timeout and name. If any has `failClosed`, "
        "it has it too, with the longest timeout."
    )
    UNREACHABLE_GROUP = _warning("None of the hooks in this group runs.")
    DISABLED_HOOK = _hint("A disabled hook does not run.")
    UNKNOWN_DISABLED_HOOK = _hint("Disabling a hook that does not exist has no effect.")
    DUPLICATE_NAME = _hint(
        "Enabling or disabling this name affects all of them, and the log does not distinguish them."
    )
    SEQUENTIAL_ESCALATION = _hint(
        "One sequential group makes all matching hooks run sequentially; the first block ends the chain."
    )

    # The switch.
    HOOKS_OFF = _warning("Hooks are off until a settings file turns them on; no hook runs.")
    HOOKS_OFF_HERE = _hint("Hooks are off until a settings file turns them on.")
    CONFLICTING_SWITCHES = _warning(
        "If `enableHooks` is set, its other spellings are ignored; otherwise a single `false` turns hooks off."
    )

    # Commands.
    SHELL_SYNTAX = _error(
        "If the shell cannot parse a command, it exits with 2, which means block: every call is blocked."
    )
    UNRUNNABLE_COMMAND = _error(
        "A command with this character cannot be started: the hook fails each time, and calls go ahead."
    )
    QUOTED_VARIABLE = _warning("The shell expands nothing in single quotes: the program gets the literal text.")
    FOREIGN_VARIABLE = _warning("An unset variable expands to nothing, so the command does something else.")
    MISSPELT_VARIABLE = _warning(
        "An unset variable expands to nothing, so the path is wrong, the hook fails, and calls go ahead."
    )
    PROGRAM_NOT_FOUND = _warning("A command that cannot be started fails each time, and calls go ahead.")
    UNSAFE_EXTENSION_PATH = _error("The shell could read the folder's name as code here, so the hook is skipped.")

    # Scripts.
    SCRIPT_MISSING = _error(
        "Without its script the hook fails, and calls go ahead; some interpreters exit with 2, which blocks them."
    )
    SCRIPT_DIRECTORY = _error("A folder cannot be run: the hook fails each time, and calls go ahead.")
    SCRIPT_UNREADABLE = _error(
        "An unreadable script cannot be run. In a project it cannot be approved either, so all its hooks are skipped."
    )
    SCRIPT_NOT_EXECUTABLE = _error(
        "A file without execute permission cannot be run: the hook fails each time, and calls go ahead."
    )
    SCRIPT_WITHOUT_SHEBANG = _warning(
        "The shell runs the file as a shell script, whatever its language; a syntax error then blocks."
    )
    SHEBANG_NOT_FOUND = _error(
        "A script whose interpreter is missing cannot be started: the hook fails each time, and calls go ahead."
    )
    SCRIPT_CRLF = _error(
        "The carriage return becomes part of the interpreter's name or of each command, which then does not exist."
    )
    SCRIPT_SYNTAX = _error(
        "If the shell cannot parse a script, it exits with 2, which means block: every call is blocked."
    )
    SCRIPT_WRITABLE = _warning("Every user on this machine can change what runs with your permissions.")
    SCRIPT_CLAUDE_TOOL = _warning(
        "Scripts get the tool names used here: a guard that checks for another name lets every call through."
    )
    WRITES_COVERED = _warning(
        "The approval covers this file. If the hook writes it, the approval ends, and the calls it checks are blocked."
    )
    NEEDS_FULL_VIEW = _warning(
        "Without the profile `full`, model hooks see only the text of users and models: a secret in a tool's result, "
        "a call or the system prompt is sent."
    )
    IMPORTS_FROM_PROJECT = _warning(
        "This hook runs in every project. A project that nobody approved can bring a module that it imports."
    )
    NOT_WARM = _hint("With `warm`, an interpreter that waits runs the unchanged script, in a fraction of the time.")
    EXIT_ONE = _hint("Only exit code 2 blocks; 1 is a failed hook, and the call goes ahead.")
    EXIT_TWO_NO_EFFECT = _hint("This event cannot be blocked, so exit code 2 changes nothing.")
    NEEDS_PROFILE = _hint("Without the profile `full`, the answer has no effect, and nobody is asked.")
    EXIT_TWO_SILENT = _hint(
        "With exit code 2 the reason is read from stderr, and stdout is ignored: the model gets only `Blocked by hook`."
    )
    STDOUT_NOISE = _hint("JSON on stdout is read only without other text; otherwise all of it is treated as a message.")
    FAIL_CLOSED_TEXT = _hint("With `failClosed`, a hook must print one JSON object or nothing; text blocks every call.")
    PRINTED_DICT = _hint("Python prints a dict with single quotes: the decision in it is not read.")
