"""Claude Code's settings files: which are read, when they apply, and what an approval of them covers."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks import Config, Hooks
from llxprt_hooks.agent.tools.protection import ProtectedFiles
from llxprt_hooks.settings.definitions import HookSet
from llxprt_hooks.settings.load import load_settings, unapproved_hooks
from llxprt_hooks.settings.trust.fingerprint import commands_of
from llxprt_hooks.settings.trust.status import TrustState, grant_trust, revoke_trust, trust_status

GUARD = "python3 .claude/hooks/guard.py"
SCRIPT = """import json, sys
call = json.load(sys.stdin)
if call["tool_name"] == "Bash" and "rm" in call["tool_input"]["command"]:
    print("no rm", file=sys.stderr)
    sys.exit(2)
"""


def _group(command: str, matcher: str = "Bash", **fields: Any) -> list[dict[str, Any]]:
    return [{"matcher": matcher, "hooks": [{"type": "command", "command": command, **fields}]}]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".claude" / "hooks").mkdir(parents=True)
    (root / ".claude" / "hooks" / "guard.py").write_text(SCRIPT)
    return root


@pytest.fixture
def home() -> Path:
    return Path(os.environ["HOME"])


@pytest.fixture
def write() -> Callable[..., Path]:
    def write(folder: Path, name: str = ".claude/settings.json", **settings: Any) -> Path:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(settings))
        return file

    return write


async def _is_blocked(root: Path, command: str = "rm -rf x", **options: Any) -> bool:
    hooks = Hooks.load(root, dialects=("claude",), **options)
    return (await hooks.run_tool("run_shell_command", {"command": command}, lambda _: "done")).error is not None


async def test_hooks_of_the_project_run_once_they_are_approved(root: Path, write: Callable[..., Path]) -> None:
    write(root, hooks={"PreToolUse": _group(GUARD)})

    assert not await _is_blocked(root)
    config = Config.load(root, dialects=("claude",))
    assert config.settings is not None
    assert "llxprt-hooks trust --dialect claude" in config.settings.notices[0]
    grant_trust(root, dialect="claude")

    assert await _is_blocked(root)
    assert not await _is_blocked(root, "ls")


async def test_nothing_foreign_is_read_unless_it_is_asked_for(root: Path, write: Callable[..., Path]) -> None:
    write(root, hooks={"PreToolUse": _group("exit 2")})
    grant_trust(root, dialect="claude")

    result = await Hooks.load(root).run_tool("run_shell_command", {"command": "ls"}, lambda _: "done")

    assert result.error is None
    assert trust_status(root).state is TrustState.NOTHING_TO_TRUST


async def test_hooks_of_all_levels_add_up(root: Path, home: Path, write: Callable[..., Path], tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    write(home, hooks={"PreToolUse": _group("echo user >> $CLAUDE_PROJECT_DIR/runs.txt")})
    write(root, hooks={"PreToolUse": _group("echo project >> runs.txt")})
    write(root, ".claude/settings.local.json", hooks={"PreToolUse": _group("echo local >> runs.txt")})
    write(plugin, "hooks/hooks.json", hooks={"PreToolUse": _group("echo ${CLAUDE_PLUGIN_ROOT} >> runs.txt")})
    grant_trust(root, dialect="claude")

    await _is_blocked(root, plugins=[plugin])

    assert sorted((root / "runs.txt").read_text().splitlines()) == sorted(["local", "project", "user", str(plugin)])


async def test_a_plugin_needs_no_approval(root: Path, write: Callable[..., Path], tmp_path: Path) -> None:
    write(tmp_path / "plugin", "hooks/hooks.json", hooks={"PreToolUse": _group("exit 2")})

    assert await _is_blocked(root, plugins=[tmp_path / "plugin"])


async def test_the_same_hook_in_two_files_runs_once(root: Path, write: Callable[..., Path]) -> None:
    for name in (".claude/settings.json", ".claude/settings.local.json"):
        write(root, name, hooks={"PreToolUse": _group("echo x >> runs.txt")})
    grant_trust(root, dialect="claude")

    await _is_blocked(root)

    assert (root / "runs.txt").read_text() == "x\n"


async def test_native_settings_can_ask_for_the_dialect(root: Path, home: Path, write: Callable[..., Path]) -> None:
    write(home, ".llxprt/settings.json", hooksConfig={"dialects": ["claude"]})
    write(home, hooks={"PreToolUse": _group("exit 2")})

    result = await Hooks.load(root).run_tool("run_shell_command", {"command": "ls"}, lambda _: "done")

    assert result.error is not None


async def test_a_project_that_is_not_approved_cannot_ask_for_it(
    root: Path, home: Path, write: Callable[..., Path]
) -> None:
    write(root, ".llxprt/settings.json", enableHooks=True, hooksConfig={"dialects": ["claude"]})
    write(home, hooks={"PreToolUse": _group("exit 2")})

    result = await Hooks.load(root).run_tool("run_shell_command", {"command": "ls"}, lambda _: "done")

    assert result.error is None


async def test_native_hooks_stay_off_if_only_the_dialect_is_asked_for(
    root: Path, home: Path, write: Callable[..., Path]
) -> None:
    native = {"BeforeTool": [{"hooks": [{"type": "command", "command": "exit 2"}]}]}
    write(home, ".llxprt/settings.json", enableHooks=False, hooks=native)
    write(home, hooks={"PreToolUse": _group("true")})

    assert not await _is_blocked(root)


@pytest.mark.parametrize(
    ("user", "project_level", "runs"), [(True, None, False), (True, False, True), (None, True, False)]
)
async def test_the_highest_level_that_has_the_switch_decides(
    root: Path, home: Path, write: Callable[..., Path], user: bool | None, project_level: bool | None, runs: bool
) -> None:
    guard = {"hooks": {"PreToolUse": _group("exit 2")}}
    write(home, **guard, **({} if user is None else {"disableAllHooks": user}))
    write(root, **({} if project_level is None else {"disableAllHooks": project_level}))
    grant_trust(root, dialect="claude")

    assert await _is_blocked(root) is runs


async def test_the_switch_of_a_project_that_is_not_approved_counts_for_nothing(
    root: Path, home: Path, write: Callable[..., Path]
) -> None:
    write(home, hooks={"PreToolUse": _group("exit 2")})
    write(root, disableAllHooks=True)

    assert await _is_blocked(root)


async def test_a_changed_script_ends_the_approval_and_blocks(root: Path, write: Callable[..., Path]) -> None:
    write(root, hooks={"PreToolUse": _group(GUARD)})
    grant_trust(root, dialect="claude")
    (root / ".claude" / "hooks" / "guard.py").write_text("")

    assert trust_status(root, "claude").state is TrustState.CHANGED
    assert await _is_blocked(root, "ls")


async def test_a_changed_settings_file_ends_the_approval_and_blocks(root: Path, write: Callable[..., Path]) -> None:
    write(root, hooks={"PreToolUse": _group(GUARD)})
    grant_trust(root, dialect="claude")
    write(root, hooks={"PreToolUse": _group(f"{GUARD}; true")})

    assert trust_status(root, "claude").changed == (".claude/settings.json",)
    assert await _is_blocked(root, "ls")


async def test_guards_that_were_removed_after_the_approval_still_block(root: Path, write: Callable[..., Path]) -> None:
    write(root, hooks={"PreToolUse": _group(GUARD)})
    grant_trust(root, dialect="claude")
    write(root, model="other")

    assert await _is_blocked(root, "ls")


def test_state_that_hooks_write_does_not_end_an_approval(root: Path, write: Callable[..., Path]) -> None:
    write(root, hooks={"PreToolUse": _group(GUARD)})
    grant_trust(root, dialect="claude")

    (root / ".claude" / "logs").mkdir()
    (root / ".claude" / "logs" / "calls.json").write_text("[]")
    (root / ".claude" / "state.db").write_text("x")

    assert trust_status(root, "claude").state is TrustState.TRUSTED


def test_the_approvals_of_the_two_dialects_are_separate(root: Path, write: Callable[..., Path]) -> None:
    write(root, ".llxprt/settings.json", enableHooks=True)
    write(root, hooks={"PreToolUse": _group(GUARD)})
    grant_trust(root)

    assert trust_status(root).state is TrustState.TRUSTED
    assert trust_status(root, "claude").state is TrustState.UNTRUSTED
    grant_trust(root, dialect="claude")
    write(root, hooks={"PreToolUse": _group("true")})
    assert trust_status(root).state is TrustState.TRUSTED
    assert revoke_trust(root)
    assert trust_status(root, "claude").state is TrustState.UNTRUSTED


async def test_variables_of_the_settings_reach_hooks(root: Path, home: Path, write: Callable[..., Path]) -> None:
    write(home, env={"GUARD_LEVEL": "high"}, hooks={"PreToolUse": _group('[ "$GUARD_LEVEL" != high ] || exit 2')})

    assert await _is_blocked(root)


def test_the_agent_cannot_write_what_decides_about_hooks(root: Path, write: Callable[..., Path]) -> None:
    write(root, hooks={"PreToolUse": _group(GUARD)})
    grant_trust(root, dialect="claude")
    protected = ProtectedFiles(root, Config.load(root, dialects=("claude",)))

    for name in (".claude/settings.json", ".claude/settings.local.json", ".claude/hooks/guard.py"):
        assert protected.reason(Path(name), frozenset()) is not None
    assert protected.reason(Path(".claude/notes.md"), frozenset()) is None


def test_what_cannot_be_honored_is_said(root: Path, home: Path, write: Callable[..., Path]) -> None:
    hooks = {"PreToolUse": [{"hooks": [{"type": "prompt", "prompt": "ok?"}]}], "WorktreeCreate": _group("true")}
    write(home, hooks=hooks, permissions={"deny": ["Read(.env)"]})
    config = Config.load(root, dialects=("claude",))

    system = config.get_hook_system()
    assert system is not None
    system.ready_event_handler()
    assert config.settings is not None
    said = "\n".join(map(str, (*config.settings.problems, *system.get_registry().problems)))
    assert "permissions.deny" in said
    assert "type prompt" in said
    assert "hooks.WorktreeCreate" in said


def test_an_unknown_dialect_is_named(root: Path) -> None:
    with pytest.raises(ValueError, match="unknown dialect 'klingon'"):
        Config.load(root, dialects=("klingon",))


def test_times_are_in_seconds(root: Path, home: Path, write: Callable[..., Path]) -> None:
    groups = [*_group("a", timeout=5), *_group("b")]
    write(home, hooks={"PreToolUse": groups, "UserPromptSubmit": _group("c")})
    system = Config.load(root, dialects=("claude",)).get_hook_system()

    assert system is not None
    system.ready_event_handler()
    assert {each.name: each.config.timeout for each in system.get_all_hooks()} == {"a": 5e3, "b": 6e5, "c": 3e4}


def test_hooks_that_are_not_approved_are_listed_with_what_is_wrong(root: Path, write: Callable[..., Path]) -> None:
    write(root, hooks={"PreToolUse": _group(GUARD)})
    found, problems = unapproved_hooks(load_settings(root, dialects=("claude",)))
    assert [hook.config.command for hook in found] == [GUARD]
    assert problems == []


def test_a_file_that_cannot_be_read_is_refused(root: Path) -> None:
    (root / ".claude" / "settings.json").write_text("{")
    [foreign] = load_settings(root, dialects=("claude",)).foreign
    assert foreign.trust.state is TrustState.REFUSED


def test_dialects_are_a_list_of_names(root: Path) -> None:
    with pytest.raises(TypeError, match="`dialects` must be a list of names, found 'claude'"):
        Config.load(root, dialects="claude")


async def test_a_group_in_an_unknown_dialect_is_discarded() -> None:
    group = {"dialect": "klingon", "hooks": [{"type": "command", "command": "exit 2"}]}
    hooks = Hooks(Config(enable_hooks=True, hooks={"BeforeTool": [group]}))
    assert (await hooks.run_tool("glob", {}, lambda _: "found")).llm_content == "found"


async def test_a_whole_replacement_reaches_the_next_hook_of_a_chain(tmp_path: Path) -> None:
    said = json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow",
                                              "updatedInput": {"command": "ls"}}})  # fmt: skip
    hooks = [{"type": "command", "command": f"echo '{said}'"}, {"type": "command", "command": "cat > seen.json"}]
    group = {"dialect": "claude", "sequential": True, "hooks": hooks}
    made = Hooks(Config(enable_hooks=True, working_dir=tmp_path, hooks={"BeforeTool": [group]}))
    result = await made.run_tool("run_shell_command", {"command": "rm x", "dir_path": "y"}, lambda given: str(given))
    assert "rm x" not in str(result.llm_content)
    assert json.loads((tmp_path / "seen.json").read_text())["tool_input"]["command"] == "ls"


def test_native_hooks_of_a_set_are_listed_as_they_are() -> None:
    [only] = commands_of(HookSet({"BeforeTool": _group("true")}))
    assert only.script_texts == ("true",)


ASKING = {"enableHooks": True, "hooksConfig": {"dialects": ["claude"]}}


@pytest.mark.parametrize(
    ("native", "claude"),
    [
        ({"enableHooks": True}, True),
        ({}, True),
        (None, True),
        (None, False),
        (ASKING, False),
        ({**ASKING, "hooksConfig": {"dialects": ["claude"], "disabled": ["other"]}}, True),
    ],
    ids=["line dropped", "nothing left", "file deleted", "both deleted", "theirs deleted", "something else changed"],
)
async def test_a_project_that_asked_for_the_dialect_does_not_lose_its_guards(
    root: Path, write: Callable[..., Path], native: dict[str, Any] | None, claude: bool
) -> None:
    ours = write(root, ".llxprt/settings.json", **ASKING)
    theirs = write(root, hooks={"PreToolUse": _group(GUARD), "UserPromptSubmit": _group("true")})
    grant_trust(root)
    grant_trust(root, dialect="claude")
    assert (await Hooks.load(root).run_tool("run_shell_command", {"command": "ls"}, lambda _: "done")).error is None

    if native is None:
        ours.unlink()
    else:
        write(root, ".llxprt/settings.json", **native)
    if not claude:
        theirs.unlink()
    hooks = Hooks.load(root)
    result = await hooks.run_tool("run_shell_command", {"command": "ls"}, lambda _: "done")

    assert result.error is not None
    assert "changed since the project was approved" in str(result.llm_content)
    assert (await hooks.before_turn("hello")).blocked
    assert (await hooks.run_tool("read_file", {"file_path": "a"}, lambda _: "done")).error is None
    assert hooks.config.settings is not None
    assert "is blocked" in "\n".join(hooks.config.settings.notices)


async def test_approving_that_the_line_is_gone_ends_it(root: Path, write: Callable[..., Path]) -> None:
    write(root, ".llxprt/settings.json", **ASKING)
    write(root, hooks={"PreToolUse": _group(GUARD)})
    grant_trust(root)
    grant_trust(root, dialect="claude")
    write(root, ".llxprt/settings.json", enableHooks=True)
    grant_trust(root)

    result = await Hooks.load(root).run_tool("run_shell_command", {"command": "rm x"}, lambda _: "done")

    assert result.error is None


async def test_the_users_hooks_still_run_if_the_project_no_longer_asks_for_them(
    root: Path, home: Path, write: Callable[..., Path]
) -> None:
    write(root, ".llxprt/settings.json", **ASKING)
    write(home, hooks={"PreToolUse": _group("jq -e '.tool_input.command == \"ls\"' || exit 2")})
    grant_trust(root)
    write(root, ".llxprt/settings.json")
    hooks = Hooks.load(root)

    assert (await hooks.run_tool("run_shell_command", {"command": "ls"}, lambda _: "done")).error is None
    assert (await hooks.run_tool("run_shell_command", {"command": "rm"}, lambda _: "done")).error is not None


async def test_a_native_group_that_spoke_claude_still_guards_prompts(root: Path, write: Callable[..., Path]) -> None:
    group = {"dialect": "claude", "hooks": [{"type": "command", "command": "exit 2"}]}
    write(root, ".llxprt/settings.json", enableHooks=True, hooks={"BeforeAgent": [group]})
    grant_trust(root)
    write(root, ".llxprt/settings.json", enableHooks=True)

    assert (await Hooks.load(root).before_turn("hello")).blocked
