"""Reading settings again while a program runs: all or nothing, and running events finish with the old settings."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import (
    Config,
    HookEventName,
    HookExecutionRequest,
    Hooks,
    InProcessMessageBus,
    MessageBusType,
    SettingsError,
    deny,
    grant_trust,
    load_settings,
    revoke_trust,
    trust_status,
)
from llxprt_hooks.core.engine.registry import HookRegistry
from llxprt_hooks.settings.trust import watch
from llxprt_hooks.settings.trust.status import TrustState
from llxprt_hooks.settings.trust.store import TrustStore
from tests.support.processes import at_most_until_the_deadline, handled, until
from tests.support.replies import done

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from tests.support.project import Project


def saying(reason: str) -> str:
    return f"echo {reason} >&2; exit 2"


def content(hooks: Hooks) -> Any:
    return hooks.sync.run_tool("any", {}, done).llm_content


@pytest.fixture
def project(sandbox: Project) -> Project:
    return sandbox


def test_new_settings_apply_after_a_reload(project: Project) -> None:
    project.configure(level="user", BeforeTool=saying("old"))
    hooks = Hooks.load(project.root)
    system = hooks.config.get_hook_system()
    assert content(hooks) == "old"
    project.configure(level="user", BeforeTool=saying("new"))
    assert content(hooks) == "old"
    hooks.reload()
    assert content(hooks) == "new"
    assert hooks.config.get_hook_system() is system
    project.put("user", {"enableHooks": False, "hooks": {}})
    hooks.reload()
    assert (content(hooks), hooks.config.enable_hooks) == ("done", False)
    project.configure(level="user", BeforeTool=saying("again"))
    hooks.reload()
    assert content(hooks) == "again"


def test_settings_are_read_again_before_the_first_event(project: Project) -> None:
    hooks = Hooks.load(project.root)
    project.configure(level="user", BeforeTool=saying("new"))
    hooks.reload()
    hooks.config.get_hook_system()
    project.configure(level="user", BeforeTool=saying("newer"))
    hooks.reload()
    assert content(hooks) == "newer"


def test_extensions_disabled_hooks_and_environment_are_read_again(project: Project) -> None:
    hooks = Hooks.load(project.root)
    project.extension("x", {"hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": saying("x")}]}]}})
    project.put("user", {"enableHooks": True, "hooksConfig": {"environment": {"deny": ["SECRET*"]}}})
    hooks.reload()
    assert content(hooks) == "x"
    project.put("user", {"enableHooks": True, "hooksConfig": {"disabled": [saying("x")]}})
    hooks.reload()
    assert content(hooks) == "done"


def test_a_signal_handler_may_reload_during_a_reload(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two signals, one right after the other."""
    project.configure(BeforeTool="echo no >&2; exit 2")
    project.approve()
    hooks = Hooks.load(project.root)
    assert hooks.sync.run_tool("any", {}, done).llm_content == "no"
    initialize = HookRegistry.initialize

    def interrupted(registry: HookRegistry) -> None:
        monkeypatch.setattr(HookRegistry, "initialize", initialize)
        signal.raise_signal(signal.SIGUSR1)
        initialize(registry)

    monkeypatch.setattr(HookRegistry, "initialize", interrupted)
    with handled(signal.SIGUSR1, hooks.reload), at_most_until_the_deadline():
        hooks.reload()

    assert hooks.sync.run_tool("any", {}, done).llm_content == "no"


def test_functions_stay_registered(project: Project) -> None:
    project.configure(level="user", AfterTool="true")
    hooks = Hooks.load(project.root)
    hooks.on("BeforeTool", lambda payload: deny("function"))
    assert content(hooks) == "function"
    project.put("user", {"enableHooks": False})
    hooks.reload()
    assert content(hooks) == "function"


async def test_a_running_event_finishes_with_the_old_hooks(project: Project) -> None:
    project.configure(
        level="user", BeforeTool=f"touch started; while [ ! -e go ]; do sleep 0.01; done; {saying('old')}"
    )
    hooks = Hooks.load(project.root)
    running = asyncio.ensure_future(hooks.run_tool("any", {}, done))
    await asyncio.to_thread(until, (project.root / "started").exists)
    project.configure(level="user", BeforeTool=saying("new"))
    hooks.reload()
    assert (await hooks.run_tool("any", {}, done)).llm_content == "new"
    project.write("go")
    assert (await running).llm_content == "old"


@pytest.mark.parametrize("level", ["project", "user", "system"])
def test_a_broken_file_keeps_the_old_hooks(project: Project, level: str) -> None:
    project.configure(level=level, BeforeTool=saying("old"))
    grant_trust(project.root)
    hooks = Hooks.load(project.root)
    assert content(hooks) == "old"
    project.put(level, "{ broken")
    with pytest.raises(SettingsError, match=r"settings\.json:1:3"):
        hooks.reload()
    assert content(hooks) == "old"


def test_strict_loading_raises_for_a_broken_file(project: Project) -> None:
    project.put("user", "[]")
    with pytest.raises(SettingsError, match="expected an object") as raised:
        Config.load(project.root, strict=True)
    assert len(raised.value.problems) == 1
    assert len(load_settings(project.root).problems) == 1


@pytest.mark.parametrize("change", ["changed", "refused"])
def test_a_project_that_lost_its_approval_keeps_the_hooks_that_were_approved(project: Project, change: str) -> None:
    """Otherwise a program that can edit the file could switch off a guard of a running agent."""
    project.configure(BeforeTool=saying("approved"))
    grant_trust(project.root)
    hooks = Hooks.load(project.root)
    assert content(hooks) == "approved"
    if change == "changed":
        project.configure(AfterTool="true")
    else:
        project.project_file.chmod(0o666)
    with pytest.raises(SettingsError, match=r"approved|others"):
        hooks.reload()
    assert content(hooks) == "approved"
    project.project_file.chmod(0o600)
    grant_trust(project.root)
    hooks.reload()
    assert content(hooks) == ("done" if change == "changed" else "approved")


@pytest.mark.parametrize("by", ["user", "environment"])
@pytest.mark.parametrize("change", ["emptied", "deleted"])
def test_hooks_that_are_gone_from_an_approved_project_stay_in_use(
    project: Project, monkeypatch: pytest.MonkeyPatch, by: str, change: str
) -> None:
    project.configure(BeforeTool=saying("approved"))
    if by == "environment":
        monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", "1")
    else:
        grant_trust(project.root)
    hooks = Hooks.load(project.root)
    if change == "emptied":
        project.put("project", {})
    else:
        project.project_file.unlink()
    with pytest.raises(SettingsError, match="`llxprt-hooks untrust`, then reload"):
        hooks.reload()
    assert content(hooks) == "approved"
    monkeypatch.delenv("LLXPRT_TRUST_PROJECT_HOOKS", raising=False)
    revoke_trust(project.root)
    hooks.reload()
    assert content(hooks) == "done"


def test_approvals_that_cannot_be_read_are_not_withdrawn(project: Project) -> None:
    project.configure(BeforeTool=saying("approved"))
    grant_trust(project.root)
    hooks = Hooks.load(project.root)
    TrustStore().file.write_text("{ broken")
    with pytest.raises(SettingsError, match=r"trusted_hooks\.json"):
        hooks.reload()
    assert content(hooks) == "approved"


@pytest.mark.parametrize("at_start", ["other hooks", "no hooks", "no settings", "broken"])
def test_the_variable_approves_only_what_was_there_when_the_process_started(
    project: Project, monkeypatch: pytest.MonkeyPatch, at_start: str
) -> None:
    """Else an agent in CI could approve its own hooks: it writes them, and they run after a reload."""
    monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", "1")
    if at_start == "other hooks":
        project.configure(BeforeTool=saying("first"))
    elif at_start != "no settings":
        project.put("project", {"ui": {}} if at_start == "no hooks" else "{ broken")
    hooks = Hooks.load(project.root)
    project.configure(BeforeTool=saying("written by the agent"))
    first = "first" if at_start == "other hooks" else "done"

    if at_start == "other hooks":
        with pytest.raises(SettingsError, match=r"has changed since .*settings\.json.* or start the program again"):
            hooks.reload()
    else:
        hooks.reload()
        assert hooks.config.inherited_environment()["LLXPRT_PROJECT_TRUSTED"] == "0"
    assert content(hooks) == first
    loaded_later = content(Hooks.load(project.root))
    assert "has changed since" in loaded_later if at_start == "other hooks" else loaded_later == "done"
    assert trust_status(project.root).state is TrustState.CHANGED

    grant_trust(project.root)
    hooks.reload()
    assert content(hooks) == "written by the agent"


def test_an_approval_that_is_withdrawn_takes_the_hooks_away(project: Project) -> None:
    project.configure(BeforeTool=saying("approved"))
    grant_trust(project.root)
    hooks = Hooks.load(project.root)
    revoke_trust(project.root)
    hooks.reload()
    assert content(hooks) == "done"


def test_reload_keeps_hooks_that_a_program_has_passed(project: Project) -> None:
    hooks = Hooks(
        Config(enable_hooks=True, hooks={"BeforeTool": [{"hooks": [{"type": "command", "command": saying("x")}]}]})
    )
    hooks.reload()
    assert content(hooks) == "x"


async def test_a_message_bus_stays_connected(project: Project) -> None:
    project.configure(level="user", BeforeTool=saying("old"))
    bus = InProcessMessageBus()
    config = Config.load(project.root, message_bus=bus)
    system = config.get_hook_system()
    assert system is not None
    await system.initialize()
    project.configure(level="user", BeforeTool=saying("new"))
    config.reload()
    answers: list[Any] = []
    bus.subscribe(MessageBusType.HOOK_EXECUTION_RESPONSE, answers.append)
    await bus.publish(HookExecutionRequest(HookEventName.BEFORE_TOOL, {"tool_name": "t", "tool_input": {}}, "1"))
    [answer] = answers
    assert "new" in str(answer)


def test_events_of_many_threads_see_either_the_old_hooks_or_the_new(project: Project) -> None:
    """Both versions have two hooks that agree with each other."""
    hooks = Hooks.load(project.root)
    seen: set[Any] = set()

    def look() -> None:
        for _ in range(200):
            system = hooks.config.get_hook_system()
            if system is not None:
                system.ready_event_handler()
                seen.add(tuple(sorted(entry.name for entry in system.get_all_hooks())))

    versions = [("a1", "a2"), ("b1", "b2")]
    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(20):
        first, second = versions[number % 2]
        project.put(
            "user", {"enableHooks": True, "hooks": {"BeforeTool": [_named(first)], "AfterTool": [_named(second)]}}
        )
        hooks.reload()
    for thread in threads:
        thread.join()
    assert seen <= {(), *versions}


def _named(name: str) -> dict[str, Any]:
    return {"hooks": [{"type": "command", "name": name, "command": "true"}]}


# Watching files.


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Waits for a warning with a text."""
    monkeypatch.setattr(watch, "INTERVAL", 0.02)
    return lambda text: until(lambda: any(text in record.getMessage() for record in caplog.records))


def test_a_changed_file_is_read_again_by_itself(project: Project, warned: Callable[[str], None]) -> None:
    project.configure(level="user", BeforeTool=saying("old"))
    hooks = Hooks.load(project.root, watch=True)
    assert content(hooks) == "old"
    project.configure(level="user", BeforeTool=saying("newer"))
    until(lambda: content(hooks) == "newer")

    project.put("user", "{ broken")
    warned("the old ones stay in use")
    assert content(hooks) == "newer"
    project.configure(level="user", BeforeTool=saying("fixed"))
    until(lambda: content(hooks) == "fixed")

    project.user_file.unlink()
    warned("was deleted")
    assert content(hooks) == "fixed"
    project.configure(level="user", BeforeTool=saying("back"))
    until(lambda: content(hooks) == "back")


def test_an_approval_takes_effect_by_itself(project: Project, warned: Callable[[str], None]) -> None:
    project.configure(BeforeTool=saying("approved"))
    hooks = Hooks.load(project.root, watch=True)
    assert content(hooks) == "done"
    grant_trust(project.root)
    until(lambda: content(hooks) == "approved")
    project.configure(AfterTool="true")
    warned("the old ones stay in use")
    assert content(hooks) == "approved"


def test_a_changed_script_is_not_approved_by_itself(
    project: Project, warned: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable is for what was there at the start, also for files that are read again without anybody's doing."""
    monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", "1")
    script = project.write(".llxprt/hooks/guard.sh", f"#!/bin/sh\n{saying('guarded')}\n", 0o755)
    project.configure(BeforeTool=f"./{script.relative_to(project.root)}")
    hooks = Hooks.load(project.root, watch=True)
    assert content(hooks) == "guarded"

    script.write_text("#!/bin/sh\n")
    project.configure(level="user", AfterTool="true")
    warned("guard.sh). To see what has changed")

    assert "guard.sh has changed" in content(hooks)


def test_an_emptied_file_switches_off_nothing_by_itself(project: Project, warned: Callable[[str], None]) -> None:
    project.configure(BeforeTool=saying("approved"))
    grant_trust(project.root)
    hooks = Hooks.load(project.root, watch=True)
    project.put("project", {})
    warned("The approved hooks are gone")
    assert content(hooks) == "approved"


def test_an_extension_that_is_installed_takes_effect_by_itself(project: Project, warned: Callable[[str], None]) -> None:
    project.put("user", {"enableHooks": True})
    hooks = Hooks.load(project.root, watch=True)
    project.extension("x", {"hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": saying("x")}]}]}})
    until(lambda: content(hooks) == "x")


@pytest.mark.parametrize("asked", ["by the program", "by settings"])
def test_files_of_other_agents_take_effect_by_themselves(
    project: Project, warned: Callable[[str], None], asked: str
) -> None:
    def guard(text: str) -> Any:
        return {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": f"echo {text} >&2; exit 2"}]}]}}

    file = project.home / ".copilot/hooks/guard.json"
    wanted = {"hooksConfig": {"dialects": ["copilot"]}} if asked == "by settings" else {}
    project.put("user", {"enableHooks": True, **wanted})
    project.write(file, guard("first"))
    hooks = Hooks.load(project.root, watch=True, dialects=() if wanted else ("copilot",))
    assert content(hooks) == "first"

    project.write(file, guard("second"))
    until(lambda: content(hooks) == "second")
    file.unlink()
    warned("guard.json was deleted; its hooks stay in use")
    assert content(hooks) == "second"


def test_the_thread_survives_whatever_a_reload_raises(project: Project, warned: Callable[[str], None]) -> None:
    class Failing:
        def reload(self) -> None:
            raise OSError("no descriptors left")

    config = Failing()
    watch.SettingsWatch(project.root).start(config)
    project.configure(level="user", BeforeTool="true")
    warned("could not be read")
    assert _watching()


@pytest.mark.slow
def test_the_thread_ends_with_the_configuration(project: Project, warned: Callable[[str], None]) -> None:
    config = Config.load(project.root, watch=True)
    assert _watching()
    del config
    until(lambda: gc.collect() >= 0 and not _watching())  # a thread that is reloading holds its configuration


def test_the_thread_ends_with_a_configuration_that_it_collects_itself(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The garbage collector may run in any thread, at any moment: here in this one, while it begins to wait."""
    monkeypatch.setattr(watch, "INTERVAL", 0.02)
    dropped = threading.Event()

    def collect(frame: FrameType, *_: object) -> Any:
        if dropped.is_set() and frame.f_code in (watch.SettingsWatch._watch.__code__, threading.Event.wait.__code__):
            gc.collect()
        return collect

    tracing = threading.gettrace()
    threading.settrace(collect)
    gc.disable()
    try:
        config = Config.load(project.root, watch=True)
        config.observer = config  # type: ignore[assignment]  # only the collector finds out that nobody uses it
        del config
        dropped.set()
        until(lambda: not _watching())
    finally:
        gc.enable()
        threading.settrace(tracing)


def _watching() -> bool:
    return any(thread.name == "llxprt-hooks-watch" for thread in threading.enumerate())


def test_only_files_that_are_read_are_watched(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(project.root))
    project.write(".llxprt/extensions/x/hooks/hooks.json", {})

    watched = {file.name for file in watch.SettingsWatch(project.root)._files()}

    assert "trusted_hooks.json" in watched
    assert "extensions" not in watched
