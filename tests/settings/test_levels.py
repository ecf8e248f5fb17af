"""Three levels, merged; a mistake is reported with its position, and affects nothing else."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llxprt_hooks import Config, Hooks, SettingsError
from llxprt_hooks.settings import Level, Problem, levels, settings_file
from llxprt_hooks.settings.load import load_settings, merge_hooks
from llxprt_hooks.settings.trust.status import TrustState, grant_trust, revoke_trust, trust_status

if TYPE_CHECKING:
    from tests.settings.conftest import Write

pytestmark = pytest.mark.usefixtures("trusting")


def group(command: str, **fields: Any) -> dict[str, Any]:
    return {**fields, "hooks": [{"type": "command", "command": command}]}


def hooks(command: str) -> dict[str, Any]:
    return {"hooks": {"BeforeTool": [group(command)]}}


def only_problem(project: Path) -> str:
    [problem] = load_settings(project).problems
    return str(problem)


@pytest.mark.requirement("HOOK-080", "HOOK-084")
def test_hooks_of_all_levels_are_concatenated(
    project: Path, project_file: Path, user_file: Path, system_file: Path, write: Write
) -> None:
    write(project_file, {"hooks": {"BeforeTool": [group("p1"), group("p2")], "AfterTool": [group("pa")]}})
    write(user_file, {"hooks": {"BeforeTool": [group("u")], "SessionStart": [group("us")]}})
    write(system_file, hooks("s"))

    loaded = load_settings(project)

    assert [(source.level, source.file) for source in loaded.sources] == [
        (Level.PROJECT, project_file),
        (Level.USER, user_file),
        (Level.SYSTEM, system_file),
    ]
    assert merge_hooks(source.hooks for source in loaded.sources) == {
        "BeforeTool": [group("p1"), group("p2"), group("u"), group("s")],
        "AfterTool": [group("pa")],
        "SessionStart": [group("us")],
    }
    assert loaded.problems == ()


def test_a_group_reaches_the_engine_as_it_was_written(project: Path, user_file: Path, write: Write) -> None:
    hook = {"type": "command", "command": "a", "timeout": 5, "name": "n", "description": "d", "new": [None]}
    written = {"matcher": "write_.*", "sequential": True, "hooks": [hook]}
    write(user_file, {"hooks": {"BeforeTool": [written], "NoSuchEvent": ["odd", 1]}})

    [source] = load_settings(project).sources

    assert source.hooks == {"BeforeTool": [written], "NoSuchEvent": ["odd", 1]}


def test_without_any_file_nothing_is_configured(project: Path) -> None:
    loaded = load_settings(project)

    assert (loaded.enabled, loaded.sources, loaded.disabled) == (False, (), ())
    assert (loaded.extensions, loaded.problems, loaded.notices) == ((), (), ())
    assert loaded.trust.state is TrustState.NOTHING_TO_TRUST


def test_a_project_that_does_not_exist_has_no_settings(tmp_path: Path, user_file: Path, write: Write) -> None:
    write(user_file, {"enableHooks": True})

    for missing in (tmp_path / "nowhere", str(tmp_path / "nowhere"), user_file):
        loaded = load_settings(missing)
        assert loaded.enabled
        assert loaded.problems == ()
        assert loaded.trust.state is TrustState.NOTHING_TO_TRUST


def test_a_home_directory_that_is_the_project_is_not_the_users(
    home: Path, tmp_path: Path, user_file: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LLXPRT_TRUST_PROJECT_HOOKS")
    write(user_file, {"enableHooks": True, **hooks("u")})
    write(user_file.parent / "extensions" / "e" / "llxprt-extension.json", {"name": "e"})
    write(user_file.parent / "extensions" / "e" / "hooks" / "hooks.json", hooks("e"))
    link = tmp_path / "link"
    link.symlink_to(home)

    for directory in (home, link, home / "sub" / ".."):
        (home / "sub").mkdir(exist_ok=True)
        loaded = load_settings(directory)
        assert (loaded.enabled, loaded.sources, loaded.extensions) == (False, (), ())
        assert loaded.trust.state is TrustState.UNTRUSTED
        assert "blocks nothing, because this project is not approved" in loaded.notices[0]


def test_a_home_directory_inside_the_project_is_not_the_users(
    project: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project / "home" / ".llxprt" / "settings.json", {"enableHooks": True, **hooks("u")})
    monkeypatch.setenv("HOME", str(project / "home"))

    loaded = load_settings(project)

    assert (loaded.enabled, loaded.sources) == (False, ())


def test_a_project_in_the_home_directory_cannot_bring_its_approval(
    home: Path, user_file: Path, tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LLXPRT_TRUST_PROJECT_HOOKS")
    monkeypatch.setattr(levels, "SHARED_FOLDER", tmp_path / "shared")
    write(user_file, {"enableHooks": True, **hooks("u")})
    forged = {str(home): {"hash": trust_status(home).fingerprint}}
    write(user_file.with_name("trusted_hooks.json"), forged).chmod(0o600)

    assert trust_status(home).state is TrustState.UNTRUSTED

    assert grant_trust(home).state is TrustState.TRUSTED
    [source] = load_settings(home).sources
    assert source.level is Level.PROJECT
    assert [file.name for file in (tmp_path / "shared").iterdir()] == [f"llxprt-hooks-{os.geteuid()}"]
    assert revoke_trust(home)


def test_an_approval_is_never_kept_inside_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/var/lib/agent")

    assert levels.approvals_folder(Path("/var")) == levels.NO_HOME


def test_the_root_folder_is_not_a_repository(user_file: Path, write: Write) -> None:
    write(user_file, {"enableHooks": True})

    assert load_settings("/").enabled


CURRENT = Path(".config", "llxprt-code", "settings.json")


def test_the_user_level_is_where_current_versions_keep_it(
    home: Path, project: Path, user_file: Path, tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert settings_file(Level.USER, project) == user_file

    write(user_file, hooks("old"))
    assert levels.unused_user_files() == []
    current = write(home / CURRENT, hooks("current"))
    assert settings_file(Level.USER, project) == current
    assert levels.unused_user_files() == [user_file]

    monkeypatch.setenv("LLXPRT_CONFIG_HOME", str(tmp_path / "config"))
    assert settings_file(Level.USER, project) == tmp_path / "config" / "settings.json"
    assert levels.unused_user_files() == [current, user_file]
    assert load_settings(project).sources == ()


@pytest.mark.parametrize("value", ["", "config", "."])
def test_a_relative_config_home_is_ignored(
    project: Path, user_file: Path, write: Write, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("LLXPRT_CONFIG_HOME", value)
    write(project / value / "settings.json", {"enableHooks": True})
    monkeypatch.chdir(project)

    assert settings_file(Level.USER, project) == user_file


def test_a_config_home_inside_the_project_is_not_the_users(
    project: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project / "config" / "settings.json", {"enableHooks": True})
    monkeypatch.setenv("LLXPRT_CONFIG_HOME", str(project / "config"))

    assert settings_file(Level.USER, project) is None
    assert not load_settings(project).enabled


def test_the_places_on_macos() -> None:
    # Without the package, whose other modules ask for the platform too.
    source = Path(levels.__file__).read_text()
    program = f"import sys; sys.platform = 'darwin'\n{source.replace('from __future__ import annotations', '')}"
    printed = subprocess.run(
        [sys.executable, "-c", f"{program}\nprint(SYSTEM_SETTINGS, CONFIG_FOLDER, sep=chr(10))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout

    assert printed.splitlines() == [
        "/Library/Application Support/LlxprtCode/settings.json",
        "Library/Preferences/llxprt-code",
    ]


def test_a_folder_inside_a_project_is_told_where_the_hooks_are(project: Path, project_file: Path, write: Write) -> None:
    write(project_file, {"enableHooks": True, **hooks("p")})
    inner = project / "a" / "b"
    inner.mkdir(parents=True)

    [notice] = load_settings(inner).notices

    assert notice == (
        f"Hooks in {project} don't apply to its subfolders: they won't run here, so they block nothing. "
        f"Load that folder, or pass `-C {project}` on the command line."
    )


@pytest.mark.parametrize("place", ["settings.json", ".llxprt/setting.json", ".llxprt/hooks.json"])
def test_hooks_in_a_file_that_is_not_read_are_warned_of(
    project: Path, project_file: Path, write: Write, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    file = write(project / place, {"enableHooks": True, **hooks("p")})

    [notice] = load_settings(project).notices

    assert notice == (
        f"Hooks in {file} are not running and so block nothing, because this file isn't read. "
        "Move them to `.llxprt/settings.json`."
    )
    assert caplog.messages == [notice]
    write(project_file, {})
    assert load_settings(project).notices == ()


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("Hooks", "did you mean `hooks`?"),
        ("hook", "did you mean `hooks`?"),
        ("BeforeTool", "events belong in `hooks`."),
    ],
)
def test_hooks_under_another_key_are_warned_of(
    project: Path, user_file: Path, write: Write, key: str, meant: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(user_file, {"enableHooks": True, "theme": "dark", key: hooks("u")["hooks"]})

    Config.load(project)

    assert caplog.messages == [
        f"{user_file}: `{key}` is not read, so the hooks in it are not running and so block nothing: {meant}"
    ]


@pytest.mark.parametrize("event", ["BeforeTool", "PreToolUse", "Setup"])
def test_hooks_of_another_program_are_not_warned_of(project: Path, write: Write, event: str) -> None:
    foreign = {"onSave": [{"run": "x"}], "BeforeTool": "x"}
    write(project / "settings.json", {"hooks": foreign})
    assert load_settings(project).notices == ()

    write(project / "settings.json", {"hooks": {**foreign, event: [group("p")]}})
    assert len(load_settings(project).notices) == 1


@pytest.mark.parametrize("kind", ["does not exist", "is not a directory"])
def test_a_missing_project_is_a_warning_and_with_strict_an_error(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    missing = tmp_path / "misspelled"
    if kind == "is not a directory":
        missing.write_text("")

    Hooks.load(missing)

    [warning] = caplog.messages
    assert warning == f"{missing} {kind}: no project hooks were loaded, so they block nothing."
    with pytest.raises(SettingsError, match=kind):
        Hooks.load(missing, strict=True)


def test_an_unknown_event_is_said_to_run_nothing(
    project: Path, user_file: Path, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    events = ("BeforTool", "PreToolUse", "Setup", "Wherever")
    write(user_file, {"enableHooks": True, "hooks": {event: [group("u")] for event in events}})

    system = Config.load(project).get_hook_system()
    assert system is not None
    system.ready_event_handler()

    fixes = [message.partition(": discarded, so it blocks nothing: unknown event. ")[2] for message in caplog.messages]
    assert fixes[:3] == [
        "Did you mean `BeforeTool`?",
        "Did you mean `BeforeTool`? It is the counterpart of Claude Code's `PreToolUse`.",
        "Claude Code's `Setup` has no counterpart here; remove it.",
    ]
    assert fixes[3].startswith("The events are `BeforeTool`, ")


NEVER = 'because no settings file has `"enableHooks": true`.'


@pytest.mark.parametrize("approved", [True, False])
def test_hooks_that_no_file_turns_on_are_warned_of_at_load(
    project: Path,
    user_file: Path,
    project_file: Path,
    write: Write,
    approved: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if not approved:
        monkeypatch.delenv("LLXPRT_TRUST_PROJECT_HOOKS")
    write(project_file, hooks("p") if approved else {"enableHooks": True, **hooks("p")})
    write(user_file, hooks("u"))

    Config.load(project)

    last = caplog.messages[0]
    if approved:
        places = f"2 hooks in {project_file}, {user_file} are not running and so block nothing, "
        assert last == places + NEVER
    else:
        assert last.startswith(f"1 hook in {user_file} is not running and so blocks nothing, because ")
        assert last.endswith('because no settings file that applies has `"enableHooks": true`.')


@pytest.mark.parametrize("key", ["enabledHooks", "enable_hooks", "hooksEnabled"])
def test_a_misspelled_switch_is_named(
    project: Path, user_file: Path, write: Write, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(user_file, {"theme": "dark", key: True, **hooks("u")})

    Config.load(project)

    assert caplog.messages[-1].endswith(f"{NEVER} `{key}` is not read: did you mean `enableHooks`?")


@pytest.mark.parametrize("other", [{"theme": "dark"}, {"enableHooks": "yes"}])
def test_only_a_misspelled_switch_is_named(
    project: Path, user_file: Path, write: Write, other: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    write(user_file, {**other, **hooks("u")})

    Config.load(project)

    assert caplog.messages[-1].endswith(NEVER)


SILENT: dict[str, dict[str, Any]] = {
    "turned off": {"enableHooks": False, **hooks("u")},
    "turned off by an alias": {"hooksConfig": {"enabled": False}, **hooks("u")},
    "turned on": {"enableHooks": True, **hooks("u")},
    "no usable hook": {"hooks": {"BeforeTool": []}},
    "disabled": {"hooksConfig": {"disabled": ["u"]}, **hooks("u")},
}


@pytest.mark.parametrize("content", SILENT.values(), ids=SILENT)
def test_what_the_user_decided_is_not_warned_of(
    project: Path, user_file: Path, write: Write, content: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    write(user_file, content)

    assert Config.load(project).settings is not None
    assert caplog.messages == []


def test_a_folder_in_the_users_home_is_in_no_project(home: Path, user_file: Path, write: Write) -> None:
    write(user_file, {"enableHooks": True, **hooks("u")})
    inner = home / "a" / "b"
    inner.mkdir(parents=True)

    assert load_settings(inner).notices == ()


def test_the_system_level_has_its_usual_place(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("", None):
        if value is None:
            monkeypatch.delenv("LLXPRT_SYSTEM_SETTINGS_PATH")
        else:
            monkeypatch.setenv("LLXPRT_SYSTEM_SETTINGS_PATH", value)
        assert settings_file(Level.SYSTEM, project) == Path("/etc/llxprt-code/settings.json")


def test_a_user_without_a_home_has_no_files(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)

    assert load_settings(project).problems == ()


ENABLEMENT = [
    ({}, None),
    ({"enableHooks": True}, True),
    ({"enableHooks": False, "tools": {"enableHooks": True}, "hooksConfig": {"enabled": True}}, False),
    ({"enableHooks": True, "tools": {"enableHooks": False}}, True),
    ({"tools": {"enableHooks": True}}, True),
    ({"hooksConfig": {"enabled": True}}, True),
    ({"tools": {"enableHooks": True}, "hooksConfig": {"enabled": True}}, True),
    ({"tools": {"enableHooks": True}, "hooksConfig": {"enabled": False}}, False),
    ({"tools": {"enableHooks": False}}, False),
    ({"tools": {}, "hooksConfig": {"disabled": []}}, None),
    ({"enableHooks": "yes", "tools": {"enableHooks": True}}, True),
    ({"enableHooks": 1, "tools": {"enableHooks": None}}, None),
]


@pytest.mark.parametrize(("content", "says"), ENABLEMENT)
def test_the_switch_and_its_aliases(
    project: Path, user_file: Path, system_file: Path, write: Write, content: dict[str, Any], says: bool | None
) -> None:
    write(user_file, content)
    for below in (True, False):
        write(system_file, {"enableHooks": below})
        assert load_settings(project).enabled is (below if says is None else says)
    system_file.unlink()
    assert load_settings(project).enabled is bool(says)


@pytest.mark.parametrize("project_says", [True, False, None])
@pytest.mark.parametrize("user_says", [True, False, None])
@pytest.mark.parametrize("system_says", [True, False, None])
def test_the_highest_level_that_says_anything_wins(
    project: Path,
    project_file: Path,
    user_file: Path,
    system_file: Path,
    write: Write,
    project_says: bool | None,
    user_says: bool | None,
    system_says: bool | None,
) -> None:
    # Each level in another spelling: an alias at a higher level beats the canonical name at a lower one.
    write(project_file, {} if project_says is None else {"tools": {"enableHooks": project_says}})
    write(user_file, {} if user_says is None else {"hooksConfig": {"enabled": user_says}})
    write(system_file, {} if system_says is None else {"enableHooks": system_says})

    expected = next((says for says in (project_says, user_says, system_says) if says is not None), False)

    assert load_settings(project).enabled is expected


def test_disabled_lists_are_joined_and_other_keys_overridden(
    project: Path, project_file: Path, user_file: Path, system_file: Path, write: Write
) -> None:
    write(project_file, {"hooksConfig": {"disabled": ["a", "b"], "x": "project"}})
    write(user_file, {"hooksConfig": {"disabled": ["b", "c"], "x": "user", "y": "user", "enabled": True}})
    write(system_file, {"hooksConfig": {"disabled": ["d"], "x": "system", "y": "system", "z": [1]}})

    loaded = load_settings(project)

    assert loaded.disabled == ("a", "b", "c", "d")


BROKEN: list[tuple[bytes, int, int, str]] = [
    (b'{"hooks": {},\n  "a" 1}', 2, 7, "expected ':' after the key, found 1"),
    (b"", 1, 1, "expected a value, found the end of the file"),
    (b" [1]", 1, 2, "expected an object in braces, found an array"),
    (b"7", 1, 1, "expected an object in braces, found 7"),
    (b'{\n "\xc3\xa9\xff": 1}', 2, 4, "the byte 0xff is not valid UTF-8; save the file as UTF-8"),
    ("{}".encode("utf-16"), 1, 1, "the byte 0xff is not valid UTF-8; save the file as UTF-8"),
    (b"[" * 100_000, 1, 101, "objects and arrays are nested more than 100 levels deep here"),
]


@pytest.mark.requirement("HOOK-084")
@pytest.mark.parametrize(("content", "line", "column", "message"), BROKEN)
@pytest.mark.parametrize("broken", list(Level))
def test_a_broken_file_does_not_take_the_other_levels_down(
    project: Path,
    project_file: Path,
    user_file: Path,
    system_file: Path,
    write: Write,
    broken: Level,
    content: bytes,
    line: int,
    column: int,
    message: str,
) -> None:
    files = {Level.PROJECT: project_file, Level.USER: user_file, Level.SYSTEM: system_file}
    for level, file in files.items():
        write(file, content if level is broken else {"enableHooks": True, **hooks(level)})

    loaded = load_settings(project)

    assert loaded.problems == (Problem(files[broken], line, column, message),)
    assert str(loaded.problems[0]) == f"{files[broken]}:{line}:{column}: {message}"
    assert [source.level for source in loaded.sources] == [level for level in Level if level is not broken]
    assert loaded.enabled


def test_paths_that_are_not_files_are_reported_and_never_waited_for(
    project: Path, user_file: Path, write: Write
) -> None:
    user_file.parent.mkdir()
    os.mkfifo(user_file)
    assert only_problem(project) == f"{user_file}:1:1: the file cannot be read: it is not a regular file"

    user_file.unlink()
    user_file.mkdir()
    assert only_problem(project) == f"{user_file}:1:1: the file cannot be read: it is not a regular file"

    user_file.rmdir()
    user_file.symlink_to(user_file)
    assert "the file cannot be read: Too many levels of symbolic links" in only_problem(project)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_reported(project: Path, user_file: Path, write: Write) -> None:
    write(user_file, {}).chmod(0)

    assert only_problem(project) == f"{user_file}:1:1: the file cannot be read: Permission denied"


def test_a_file_that_is_too_large_is_not_read(project: Path, user_file: Path, write: Write) -> None:
    write(user_file, "{}")
    os.truncate(user_file, 5 * 1024 * 1024)

    assert only_problem(project) == f"{user_file}:1:1: the file cannot be read: it is larger than 4 MiB"


def test_a_settings_file_may_be_the_users_own_link(
    project: Path, user_file: Path, tmp_path: Path, write: Write
) -> None:
    user_file.parent.mkdir()
    user_file.symlink_to(write(tmp_path / "dotfiles" / "settings.json", {"enableHooks": True}))

    assert load_settings(project).enabled


WRONG_FIELDS = [
    (
        '{"hooks": []}',
        11,
        "`hooks` must be an object, found an array, which is discarded, so it blocks nothing",
    ),
    (
        '{"hooks": null}',
        11,
        "`hooks` must be an object, found null, which is discarded, so it blocks nothing",
    ),
    ('{"enableHooks": "yes"}', 17, '`enableHooks` must be true or false, found "yes", which is ignored'),
    ('{"tools": 1}', 11, "`tools` must be an object, found 1, which is ignored"),
    ('{"tools": {"enableHooks": 0}}', 27, "`enableHooks` must be true or false, found 0, which is ignored"),
    ('{"hooksConfig": true}', 17, "`hooksConfig` must be an object, found true, which is ignored"),
    ('{"hooksConfig": {"enabled": {}}}', 29, "`enabled` must be true or false, found an object, which is ignored"),
    ('{"hooksConfig": {"disabled": "a"}}', 30, '`disabled` must be an array, found "a", which is ignored'),
    ('{"hooksConfig": {"disabled": [7]}}', 31, "expected a string here, found 7, which is ignored"),
    ('{"hooks": {"enabled": "yes"}}', 23, '`enabled` must be true or false, found "yes", which is ignored'),
    ('{"hooks": {"disabled": "a"}}', 24, '`disabled` must be an array, found "a", which is ignored'),
    (
        '{"hooks": {"BeforeTool": 7}}',
        26,
        ("`BeforeTool` must be an array of hook groups, found 7, which is discarded, so it blocks nothing"),
    ),
]


@pytest.mark.parametrize(("content", "column", "message"), WRONG_FIELDS)
def test_a_field_of_the_wrong_type_is_ignored_alone(
    project: Path, user_file: Path, write: Write, content: str, column: int, message: str
) -> None:
    write(user_file, content)

    assert only_problem(project) == f"{user_file}:1:{column}: {message}"


def test_wrong_fields_leave_their_siblings_alone(project: Path, user_file: Path, write: Write) -> None:
    write(
        user_file,
        {
            "enableHooks": True,
            "tools": "odd",
            "hooks": {"AfterTool": "odd", "BeforeTool": [group("a")]},
            "hooksConfig": {"disabled": ["x", 1, "y"], "enabled": 3, "other": 4},
        },
    )

    loaded = load_settings(project)

    assert loaded.enabled
    assert merge_hooks(source.hooks for source in loaded.sources) == {"BeforeTool": [group("a")]}
    assert loaded.disabled == ("x", "y")
    assert len(loaded.problems) == 4


def test_a_duplicate_key_is_reported_and_the_last_one_counts(project: Path, user_file: Path, write: Write) -> None:
    write(user_file, '{\n "enableHooks": false,\n "enableHooks": true }')

    loaded = load_settings(project)

    assert loaded.enabled
    assert [str(problem) for problem in loaded.problems] == [
        f"{user_file}:3:2: duplicate key `enableHooks` in this object; the last one wins"
    ]


def test_a_million_mistakes_are_not_all_listed(project: Path, user_file: Path, write: Write) -> None:
    write(user_file, '{"hooksConfig": {"disabled": [' + "1," * 1000 + "]}" + ', "a": 1' * 1000 + "}")

    problems = [str(problem) for problem in load_settings(project).problems]

    assert len(problems) == 202
    assert [problem for problem in problems if "more problems" in problem] == [
        f"{user_file}:1:1: and 899 more problems",
        f"{user_file}:1:1: and 900 more problems",
    ]


@pytest.mark.slow
def test_a_million_values_are_not_read(project: Path, user_file: Path, write: Write) -> None:
    write(user_file, '{"a": [' + "1," * 1_000_000 + "]}")

    assert only_problem(project) == f"{user_file}:1:200004: there are more than 100,000 values in this file"


def test_a_level_without_a_single_group_is_not_a_source(project: Path, user_file: Path, write: Write) -> None:
    write(user_file, {"hooks": {"BeforeTool": []}})

    assert load_settings(project).sources == ()


def test_problems_are_logged_as_warnings(
    project: Path, user_file: Path, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    write(user_file, {"hooksConfig": {"warm": "no"}})

    [problem] = load_settings(project).problems

    assert [(record.name, record.levelno, record.getMessage()) for record in caplog.records] == [
        ("llxprt:core:hooks:settings", logging.WARNING, str(problem))
    ]


@pytest.mark.parametrize("level", ["user", "project", "refused"])
def test_the_warning_explains_a_file_that_does_not_apply(
    project: Path, user_file: Path, project_file: Path, write: Write, caplog: pytest.LogCaptureFixture, level: str
) -> None:
    if level == "refused":
        write(project_file, hooks("a"))
        project_file.chmod(0o666)
    else:
        write(user_file if level == "user" else project_file, "{")

    [problem] = load_settings(project).problems

    [warning] = [record.getMessage() for record in caplog.records]
    assert warning == (
        f"{problem}. None of the hooks in this file run, so they block nothing. "
        "For details, run `llxprt-hooks validate`."
    )


def test_settings_are_read_again_and_never_shared(project: Path, user_file: Path, write: Write) -> None:
    write(user_file, hooks("a"))
    first = load_settings(project)
    merge_hooks(source.hooks for source in first.sources)["BeforeTool"].append("mine")
    write(user_file, hooks("b"))

    assert first.sources[0].hooks == hooks("a")["hooks"]
    assert load_settings(project).sources[0].hooks == hooks("b")["hooks"]


field_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["hooks", "enableHooks", "enabled", "disabled", "BeforeTool", "command", "matcher", "type"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    content=st.dictionaries(
        st.sampled_from(["hooks", "enableHooks", "tools", "hooksConfig", "other"]), field_values
    ).map(lambda value: json.dumps(value).encode())
    | st.binary(max_size=30),
    level=st.sampled_from(list(Level)),
)
def test_no_content_makes_loading_raise(
    project: Path,
    project_file: Path,
    user_file: Path,
    system_file: Path,
    write: Write,
    content: bytes,
    level: Level,
) -> None:
    file = {Level.PROJECT: project_file, Level.USER: user_file, Level.SYSTEM: system_file}[level]
    write(file, content)
    try:
        loaded = load_settings(project)
    finally:
        file.unlink()

    assert all(problem.file == file for problem in loaded.problems)
