"""Settings files of any content: no level or extension ever makes loading raise or silences the others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st

from llxprt_hooks import Config, HookEventName
from llxprt_hooks.core.engine.registry import HookRegistry
from llxprt_hooks.settings.load import Settings, load_settings
from llxprt_hooks.settings.trust import status
from llxprt_hooks.settings.trust.status import trust_status
from tests.fuzz.documents import documents
from tests.fuzz.guard import corpus, fuzz, unhanged
from tests.fuzz.project import FuzzedProject, quiet

if TYPE_CHECKING:
    from tests.support.cli import Run

SETTINGS = {
    "enableHooks": True,
    "tools": {"enableHooks": True},
    "theme": "dark",
    "hooksConfig": {
        "enabled": True,
        "disabled": ["second", "./third.sh"],
        "environment": {"allow": ["PATH", "LC_*"], "deny": ["LC_SECRET"]},
        "else": [1],
    },
    "hooks": {
        "BeforeTool": [
            {
                "matcher": "write_.*|^edit$",
                "sequential": True,
                "hooks": [
                    {"type": "command", "command": "$LLXPRT_PROJECT_DIR/first.sh", "timeout": 5000, "name": "first"},
                    {"type": "command", "command": "./second.sh 'a b' | cat", "name": "second", "description": "d"},
                ],
            },
            {"hooks": [{"type": "plugin", "name": "p"}, {"type": "command", "command": "true", "failClosed": True}]},
        ],
        "SessionStart": [{"matcher": "startup", "hooks": [{"type": "command", "command": "./third.sh"}]}],
        "BeforeModel": [{"hooks": [{"type": "command", "command": "python3 -c 'print(1)'", "timeout": 0.5}]}],
    },
}
CLAUDE = {
    "hooks": {
        "PreToolUse": [{"matcher": "Write|Edit", "hooks": [{"type": "command", "command": "./c.sh", "timeout": 5}]}],
        "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo $CLAUDE_PROJECT_DIR"}]}],
    },
}
EXTENSION = {"name": "fuzzed", "version": "1.0.0", "hooks": {"AfterTool": SETTINGS["hooks"]["BeforeTool"]}}  # type: ignore[index]

PLACES = ("project", "user", "system", "manifest", "extension")
OTHER = {"enableHooks": True, "hooks": {"AfterTool": [{"hooks": [{"type": "command", "command": "other"}]}]}}

contents = documents([SETTINGS, CLAUDE, EXTENSION, OTHER])


def loaded(world: FuzzedProject) -> Settings:
    """Return the settings, and read them in all other ways too."""
    with quiet():
        settings = load_settings(world.root)
        config = Config.load(world.root)
        registry = HookRegistry(config)
        registry.initialize()
        trust_status(world.root)
        for event in HookEventName:
            registry.get_hooks_for_event(event)
    for problem in (*settings.problems, *registry.problems, *settings.notices):
        assert str(problem).isprintable()
    return settings


def commands(settings: Settings) -> str:
    return json.dumps([source.hooks for source in settings.sources], sort_keys=True)


def hold(world: FuzzedProject, monkeypatch: pytest.MonkeyPatch, place: str, data: bytes) -> None:
    """Write the data in one place, and a settings file in another, which must count as if it were alone."""
    world.clear()
    other = "user" if place in {"project", "system"} else "project"
    world.put(other, OTHER)
    if place == "extension":
        world.put("manifest", {"name": "fuzzed", "version": "1"})
    monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", "1")
    monkeypatch.setattr(status, "_approved_for_process", {})  # as in a new process
    alone = loaded(world)
    assert "other" in commands(alone)

    file = world.put(place, data)
    settings = loaded(world)

    assert "other" in commands(settings)
    assert {problem.file for problem in settings.problems} <= {file}
    for problem in settings.problems:
        assert problem.line >= 1
        assert problem.column >= 1
    if place == "project":
        monkeypatch.delenv("LLXPRT_TRUST_PROJECT_HOOKS")
        unapproved = loaded(world)
        assert (unapproved.enabled, unapproved.sources, unapproved.disabled) == (
            alone.enabled,
            alone.sources,
            alone.disabled,
        )


@fuzz(120, place=st.sampled_from(PLACES), data=contents)
def test_a_file_of_any_content_is_read_or_reported_and_silences_no_other(
    world: FuzzedProject, monkeypatch: pytest.MonkeyPatch, place: str, data: bytes
) -> None:
    hold(world, monkeypatch, place, data)


@pytest.mark.parametrize("place", PLACES)
@corpus("settings_bytes")
@unhanged
def test_what_was_found_is_read_or_reported_and_silences_no_other(
    world: FuzzedProject, monkeypatch: pytest.MonkeyPatch, case: str, data: bytes, place: str
) -> None:
    hold(world, monkeypatch, place, data)


# The commands that read and edit settings.

FILE = "FILE"
READING = (
    ("validate",),
    ("validate", "--json"),
    ("list",),
    ("list", "--json"),
    ("fire", "BeforeTool", "--dry-run"),
    ("fire", "BeforeTool", "--dry-run", "--json"),
    ("trust", "--dry-run"),
    ("migrate", "--from", "claude", FILE),
    ("migrate", "--from", "gemini", FILE),
)
EDITING = (
    ("disable", "first"),
    ("enable", "second"),
    ("init", "first-hook"),
    ("migrate", "--from", "claude", FILE, "--yes"),
)
STATUSES = {0, 1, 64}


def hold_command(
    world: FuzzedProject, place: str, arguments: tuple[str, ...], data: bytes, *, installed: bool = False
) -> None:
    world.clear()
    if place == "extension":
        world.put("manifest", {"name": "fuzzed", "version": "1"})
    file = world.put(place, data)
    given = [str(file) if each == FILE else each for each in arguments]

    ended = world.command(*given, installed=installed)

    check(ended, arguments)
    if ended.status != 0:
        assert file.read_bytes() == data


def check(ended: Run, arguments: tuple[str, ...]) -> None:
    assert ended.status in STATUSES
    assert "Traceback" not in ended.stderr
    assert ended.stderr.replace("\n", "").replace("\t", "").isprintable()
    if "--json" in arguments:
        assert ended.json is not None
    elif ended.status != 0:
        assert ended.stdout + ended.stderr


@fuzz(200, place=st.sampled_from(PLACES), arguments=st.sampled_from(READING + EDITING), data=contents)
def test_a_command_ends_with_a_documented_status_whatever_is_in_the_file(
    world: FuzzedProject, place: str, arguments: tuple[str, ...], data: bytes
) -> None:
    hold_command(world, place, arguments, data)


@pytest.mark.parametrize("arguments", READING + EDITING, ids=" ".join)
@corpus("settings_bytes")
@unhanged
def test_a_command_ends_with_a_documented_status_on_what_was_found(
    world: FuzzedProject, case: str, data: bytes, arguments: tuple[str, ...]
) -> None:
    hold_command(world, "project", arguments, data)


@fuzz(100, data=contents)
def test_bytes_that_the_standard_library_reads_are_read_alike(world: FuzzedProject, data: bytes) -> None:
    try:
        value: Any = json.loads(data.decode("utf-8-sig"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return
    if not isinstance(value, dict) or _depth(value) > 90:
        return
    world.clear()
    world.put("user", data)
    with quiet():
        settings = load_settings(world.root)
    if isinstance(value.get("enableHooks"), bool):
        assert settings.enabled is value["enableHooks"]
    hooks = value.get("hooks")
    expected = (
        {event: groups for event, groups in hooks.items() if isinstance(groups, list)}
        if isinstance(hooks, dict)
        else {}
    )
    read = {event: groups for source in settings.sources for event, groups in source.hooks.items()}
    assert json.dumps(read) == json.dumps(expected if any(expected.values()) else {})


def _refuse(name: str) -> object:
    raise ValueError(name)


def _depth(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inner), default=0)
