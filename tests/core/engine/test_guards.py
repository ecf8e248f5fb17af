"""Required hooks: a program that needs a guard does not start, and does not go on, without it (D-116)."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from llxprt_hooks import Config, GuardMissingError, HookEventName, Hooks, SettingsError, UnknownEventError
from llxprt_hooks.config import LoadOptions
from llxprt_hooks.integrations.base import Integration
from llxprt_hooks.settings.trust import watch
from tests.support.processes import until
from tests.support.replies import done

if TYPE_CHECKING:
    from tests.support.project import Project

GUARD = {"matcher": "^write_file$", "hooks": [{"type": "command", "name": "guard", "command": "exit 2"}]}
Load = Callable[..., Any]


class Server(Integration):
    unsupported: ClassVar[Mapping[HookEventName, str]] = {HookEventName.BEFORE_MODEL: "a server sees no model"}


@pytest.fixture(params=[Config.load, Hooks.load, Integration.load], ids=["Config", "Hooks", "an integration"])
def load(request: pytest.FixtureRequest) -> Load:
    given: Load = request.param
    return given


def reason(project: Project, *require: str) -> str:
    """Why the project's hooks cannot be loaded."""
    with pytest.raises(GuardMissingError) as raised:
        Config.load(project.root, require=require)
    [problem] = raised.value.problems
    assert str(raised.value) == problem
    assert raised.value.refusal == f"Required hooks are missing:\n{problem}"
    return str(problem)


@pytest.mark.parametrize("require", [["BeforeTool:write_file"], ("BeforeTool", "BeforeModel"), {"BeforeModel"}, ()])
def test_a_program_with_its_guards_is_loaded(sandbox: Project, load: Load, require: Any) -> None:
    sandbox.configure(BeforeTool=GUARD, BeforeModel="true")
    sandbox.approve()
    load(sandbox.root, require=require)


def test_a_program_without_its_guard_is_not_loaded(sandbox: Project, load: Load) -> None:
    with pytest.raises(GuardMissingError) as raised:
        load(sandbox.root, require=["BeforeTool:write_file", "BeforeModel"])
    assert isinstance(raised.value, SettingsError)
    assert raised.value.problems == (
        "BeforeTool:write_file: no hook would run. None is configured for BeforeTool.",
        "BeforeModel: no hook would run. None is configured for BeforeModel.",
    )


def test_a_guard_for_another_tool_does_not_count(sandbox: Project) -> None:
    sandbox.configure(level="user", BeforeTool=[GUARD, {**GUARD, "matcher": "(write"}])
    why = reason(sandbox, "BeforeTool:replace")
    assert "`guard`: its matcher '^write_file$' does not match 'replace'." in why
    assert "`guard`: its matcher '(write' is not a valid regular expression" in why
    sandbox.configure(level="user", BeforeTool={**GUARD, "matcher": "(write"})
    assert "'(write' is not a valid regular expression" in reason(sandbox, "BeforeTool")


@pytest.mark.parametrize("switch", [{}, {"enableHooks": False}], ids=["forgotten", "off"])
def test_hooks_that_are_off_do_not_count(sandbox: Project, switch: dict[str, bool]) -> None:
    sandbox.put("user", {**switch, "hooks": {"BeforeTool": [GUARD]}})
    assert "`guard`: hooks are off: " in reason(sandbox, "BeforeTool:write_file")


def test_hooks_that_are_not_approved_do_not_count(sandbox: Project) -> None:
    sandbox.configure(BeforeTool=GUARD)
    why = reason(sandbox, "BeforeTool:write_file")
    assert "`guard`: this project is not approved. To see what would run" in why
    assert "`llxprt-hooks trust`" in why


def test_hooks_that_have_changed_since_they_were_approved_do_not_count(sandbox: Project) -> None:
    sandbox.configure(BeforeTool={"command": sandbox.script("check.sh", "exit 2"), "name": "guard"})
    sandbox.approve()
    Config.load(sandbox.root, require=["BeforeTool"])
    sandbox.script("check.sh", "exit 0")
    why = reason(sandbox, "BeforeTool")
    assert "`guard`: the project has changed since it was approved (check.sh). To see what has changed" in why


def test_hooks_that_are_disabled_do_not_count(sandbox: Project) -> None:
    settings = {"enableHooks": True, "hooks": {"BeforeTool": [GUARD]}, "hooksConfig": {"disabled": ["guard"]}}
    sandbox.put("user", settings)
    assert "`guard`: it is disabled." in reason(sandbox, "BeforeTool:write_file")


def test_hooks_that_only_observe_do_not_count(sandbox: Project) -> None:
    sandbox.configure(level="user", BeforeTool={"command": "exit 2", "name": "guard", "mode": "observe"})
    assert "`guard`: it only observes" in reason(sandbox, "BeforeTool:write_file")


def test_hooks_that_cannot_be_used_are_named(sandbox: Project) -> None:
    file = sandbox.configure(level="user", BeforeTool={"type": "command", "name": "guard"})
    assert f"{file}:1:" in reason(sandbox, "BeforeTool")
    sandbox.configure(level="user", BeforeTool={"type": "plugin", "name": "guard", "command": "x"})
    assert "`guard`: hooks of type `plugin` are not supported." in reason(sandbox, "BeforeTool")
    sandbox.put("user", '{"hooks": {')
    assert f"{file}:1:12: expected a key" in reason(sandbox, "BeforeTool")


def test_a_folder_below_that_of_the_guards_is_named(sandbox: Project) -> None:
    """The most likely mistake is the wrong folder."""
    sandbox.configure(BeforeTool=GUARD)
    sandbox.approve()
    below = sandbox.root / "src"
    below.mkdir()
    with pytest.raises(GuardMissingError, match=f"Hooks in {sandbox.root} don't apply to its subfolders"):
        Config.load(below, require=["BeforeTool"])


def test_a_thousand_other_hooks_make_one_short_line(sandbox: Project) -> None:
    others = [{"matcher": f"^tool_{number}$", "hooks": [{"type": "command", "command": "true"}]} for number in range(9)]
    sandbox.configure(level="user", BeforeTool=others)
    why = reason(sandbox, "BeforeTool:write_file")
    assert "'^tool_4$' does not match" in why
    assert why.endswith("4 more do not run either: see `llxprt-hooks list`.")


@pytest.mark.parametrize(
    ("require", "error", "words"),
    [
        ("BeforeTool", TypeError, '`require` must be a list of "EVENT" or "EVENT:TOOL"'),
        ({"BeforeTool": ["write_file"]}, TypeError, "found dict"),
        (None, TypeError, "found NoneType"),
        ([7], TypeError, "found 7"),
        (["PreToolUse"], UnknownEventError, "unknown hook event 'PreToolUse'. Did you mean `BeforeTool`?"),
        (["beforetool:glob"], UnknownEventError, "Did you mean `BeforeTool`?"),
        ([""], UnknownEventError, "The events are `BeforeTool`"),
        (["BeforeTool:"], ValueError, "found 'BeforeTool:'"),
        (["BeforeModel:write_file"], ValueError, "BeforeModel is not about a tool: write `BeforeModel`"),
    ],
)
def test_a_requirement_that_cannot_be_understood_is_an_error(
    sandbox: Project, load: Load, require: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as raised:
        load(sandbox.root, require=require)
    assert words in str(raised.value)


def test_a_reload_that_would_lose_a_required_guard_keeps_it(sandbox: Project) -> None:
    sandbox.configure(level="user", BeforeTool=GUARD)
    hooks = Hooks.load(sandbox.root, require=["BeforeTool:write_file"])
    sandbox.configure(level="user", BeforeTool={**GUARD, "matcher": "^glob$"})
    with pytest.raises(GuardMissingError, match="does not match 'write_file'"):
        hooks.reload()
    assert hooks.sync.run_tool("write_file", {}, done).error is not None
    assert hooks.sync.run_tool("glob", {}, done).error is None
    sandbox.configure(level="user", BeforeTool={**GUARD, "matcher": "write|glob"})
    hooks.reload()
    assert hooks.sync.run_tool("glob", {}, done).error is not None
    sandbox.put("user", {"enableHooks": False})
    with pytest.raises(GuardMissingError):
        hooks.reload()
    assert hooks.sync.run_tool("write_file", {}, done).error is not None


def test_watched_settings_that_lose_a_required_guard_are_not_used(
    sandbox: Project, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watch, "INTERVAL", 0.01)
    sandbox.configure(level="user", BeforeTool=GUARD)
    hooks = Hooks.load(sandbox.root, watch=True, require=["BeforeTool:write_file"])
    with caplog.at_level(logging.WARNING):
        sandbox.put("user", {"enableHooks": True, "hooks": {"BeforeModel": []}})
        until(lambda: "the old ones stay in use: BeforeTool:write_file: no hook would run" in caplog.text)
    assert hooks.sync.run_tool("write_file", {}, done).error is not None


def test_an_event_that_a_framework_does_not_have_guards_nothing(sandbox: Project) -> None:
    sandbox.configure(level="user", BeforeModel="true", BeforeTool="true")
    Server.load(sandbox.root, require=["BeforeTool"])
    with pytest.raises(GuardMissingError, match="BeforeModel: no hook would run, because a server sees no model"):
        Server.load(sandbox.root, require=["BeforeModel"])
    with pytest.raises(GuardMissingError):
        Server(Config.load(sandbox.root, require=["BeforeModel"]))


def test_every_load_takes_the_options_of_a_configuration(sandbox: Project) -> None:
    options = inspect.signature(Config.load).parameters
    assert LoadOptions.__annotations__.keys() == {*options} - {"project_dir"}
    assert Hooks.load(sandbox.root, session_id="s1").config.session_id == "s1"
    loaded = Integration.load(sandbox.root, session_id="s1", aliases={"shell": "run_shell_command"})
    assert (loaded.hooks.config.session_id, loaded.hook_name("shell")) == ("s1", "run_shell_command")
