"""D-28: what runs is what was approved, compared before every start."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import re
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import (
    Config,
    GenerateContentParameters,
    HookEventName,
    Hooks,
    ToolResult,
    execute_tool_with_hooks,
    fire_before_model_hook,
    fire_before_tool_hook,
)
from llxprt_hooks.process import ahead
from llxprt_hooks.settings.trust import covered_files
from llxprt_hooks.settings.trust.covered_files import CoveredFiles
from llxprt_hooks.settings.trust.status import grant_trust, revoke_trust, trust_status
from tests.support.engine_project import EngineProject
from tests.support.project import hooks_of

if TYPE_CHECKING:
    from tests.support.engine_project import Ready, Texts

SCRIPT = ".llxprt/hooks/guard.sh"


@pytest.fixture
def project(tmp_path: Path) -> EngineProject:
    return EngineProject(tmp_path)


def guarded(project: EngineProject, event: str = "BeforeTool", *, approved: bool = True, **fields: Any) -> Config:
    """An approved project whose hook records that it ran, and allows."""
    project.write(SCRIPT, f"#!/bin/sh\necho ran >> {project.note('guard')}\n", 0o755)
    hook: Any = {"name": "guard", "command": f"$LLXPRT_PROJECT_DIR/{SCRIPT}", **fields}
    project.put("project", {"enableHooks": True, "hooks": hooks_of({event: hook})})
    if approved:
        project.approve()
    return Config.load(project.root)


async def tool(config: Config) -> ToolResult:
    return await execute_tool_with_hooks(config, "write_file", {}, lambda _: "RAN")


def overwrite(project: EngineProject) -> None:
    """Without another size: only the times differ."""
    file = project.root / SCRIPT
    file.write_text(file.read_text().replace("ran", "RUN"))


def replace(project: EngineProject) -> None:
    new = project.write(".llxprt/hooks/new", "#!/bin/sh\nexit 0\n", 0o755)
    new.rename(project.root / SCRIPT)


def keep_times(project: EngineProject) -> None:
    file = project.root / SCRIPT
    before = file.stat()
    overwrite(project)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES: dict[str, tuple[Callable[[EngineProject], object], str]] = {
    "overwritten": (overwrite, SCRIPT),
    "times set back": (keep_times, SCRIPT),
    "replaced": (replace, SCRIPT),
    "deleted": (lambda project: (project.root / SCRIPT).unlink(), SCRIPT),
    "module beside it": (lambda project: project.write(".llxprt/hooks/json.py"), ".llxprt/hooks/json.py"),
    "new folder": (lambda project: project.write(".llxprt/lib/x.py"), ".llxprt/lib/x.py"),
}


@pytest.mark.parametrize(("change", "name"), CHANGES.values(), ids=CHANGES)
async def test_a_script_that_changed_in_the_session_does_not_run_and_blocks(
    project: EngineProject, change: Callable[[EngineProject], object], name: str
) -> None:
    config = guarded(project)
    assert (await tool(config)).llm_content == "RAN"

    change(project)
    result = await tool(config)

    assert project.notes("guard") == ["ran"]
    assert "RAN" not in result.llm_content
    assert f"{name} has changed since the project was approved" in result.llm_content
    assert "`llxprt-hooks trust`" in result.llm_content


async def test_the_warning_says_why_a_changed_script_blocks(project: EngineProject, warnings_of_engine: Texts) -> None:
    config = guarded(project)
    overwrite(project)

    await tool(config)

    [warning] = warnings_of_engine()
    assert "The call is blocked, because the agent itself may have changed the script" in warning
    assert "failClosed" not in warning


async def test_a_script_that_changes_while_its_hook_waits_for_another_does_not_run(project: EngineProject) -> None:
    project.write(SCRIPT, f"#!/bin/sh\necho ran >> {project.note('guard')}\n", 0o755)
    changes_it = f"sleep 0.3; echo '# changed' >> $LLXPRT_PROJECT_DIR/{SCRIPT}"
    hooks = hooks_of({"BeforeTool": [changes_it, f"$LLXPRT_PROJECT_DIR/{SCRIPT}"]})
    project.put("project", {"enableHooks": True, "hooks": hooks})
    project.approve()

    result = await tool(Config.load(project.root, max_processes=1))

    assert f"{SCRIPT} has changed since the project was approved" in str(result.llm_content)
    assert not project.note("guard").exists()


async def test_it_runs_again_once_it_is_as_it_was(project: EngineProject) -> None:
    config = guarded(project)
    script = (project.root / SCRIPT).read_text()
    overwrite(project)
    assert (await tool(config)).llm_content != "RAN"

    project.write(SCRIPT, script, 0o755)

    assert (await tool(config)).llm_content == "RAN"


async def test_files_that_the_approval_does_not_cover_may_change(project: EngineProject) -> None:
    config = guarded(project)

    for name in ("main.py", ".llxprt/state/log", ".llxprt/hooks/__pycache__/x.cpython-311.pyc"):
        project.write(name, bytes(16))
        assert (await tool(config)).llm_content == "RAN"


async def test_an_edit_counts_after_another_approval_and_a_reload(project: EngineProject) -> None:
    config = guarded(project)
    overwrite(project)
    project.approve()

    assert (await tool(config)).llm_content != "RAN"
    config.reload()
    assert (await tool(config)).llm_content == "RAN"


async def test_an_approval_for_one_process_covers_only_loaded_hooks(
    project: EngineProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", "1")
    config = guarded(project, approved=False)
    assert (await tool(config)).llm_content == "RAN"

    overwrite(project)

    assert (await tool(config)).llm_content != "RAN"


async def test_hooks_of_a_program_and_of_the_user_are_not_compared(project: EngineProject) -> None:
    command = {"type": "command", "command": f"$LLXPRT_PROJECT_DIR/{SCRIPT}"}
    program = Config(enable_hooks=True, working_dir=project.root, hooks={"BeforeTool": [{"hooks": [command]}]})
    guarded(project)
    project.configure(level="user", BeforeTool=command)
    project.files["project"].unlink()
    revoke_trust(project.root)
    user = Config.load(project.root)
    overwrite(project)

    for config in (program, user):
        assert (await tool(config)).llm_content == "RAN"
    assert project.notes("guard") == ["RUN", "RUN"]


@pytest.mark.parametrize("first", [True, False])
async def test_no_other_hook_undoes_the_block_of_a_model_call(
    project: EngineProject, llm_request: GenerateContentParameters, first: bool
) -> None:
    project.write(SCRIPT, "#!/bin/sh\n", 0o755)
    hooks = [f"./{SCRIPT}", """echo '{"decision": "allow"}'"""]
    project.configure(BeforeModel=hooks if first else hooks[::-1])
    project.approve()
    config = Config.load(project.root)
    project.write(SCRIPT, "#!/bin/sh\nexit 0\n", 0o755)

    result = await fire_before_model_hook(config, llm_request)

    assert result.blocked
    assert "has changed since" in (result.reason or "")


async def test_where_the_event_cannot_block_it_is_a_failed_hook(project: EngineProject, ready: Ready) -> None:
    handler = await ready(guarded(project, "SessionStart"))
    overwrite(project)

    result = await handler.fire_session_start_event()

    assert not result.success
    assert result.final_output is None
    assert "was not started" in str(result.errors[0])
    assert project.notes("guard") == []


async def test_a_failed_hook_with_fail_closed_still_ends_a_chain(project: EngineProject, ready: Ready) -> None:
    handler = await ready(guarded(project, "AfterTool", failClosed=True))
    overwrite(project)

    result = await handler.fire_after_tool_event("write_file", {}, ToolResult(llm_content="x"))

    assert result.results[0].output is not None
    assert result.results[0].output.is_blocking_decision()
    assert result.results[0].event_name is HookEventName.AFTER_TOOL


async def test_what_cannot_be_read_any_more_blocks(project: EngineProject, monkeypatch: pytest.MonkeyPatch) -> None:
    config = guarded(project)
    overwrite(project)
    monkeypatch.setattr(covered_files, "MAX_TREE_FILES", 0)

    output = await fire_before_tool_hook(config, "write_file", {})

    assert output is not None
    assert "cannot be compared with what was approved" in output.get_effective_reason()


async def test_many_changes_are_counted(project: EngineProject) -> None:
    config = guarded(project)
    for number in range(5):
        project.write(f".llxprt/hooks/{number}")

    output = await fire_before_tool_hook(config, "write_file", {})

    assert output is not None
    assert ".llxprt/hooks/0, .llxprt/hooks/1, .llxprt/hooks/2 and 2 more have changed" in output.get_effective_reason()


class TestCost:
    def test_nothing_is_read_while_nothing_has_changed(
        self, project: EngineProject, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        covered = covering(project, age=60)
        monkeypatch.setattr(os, "open", forbidden)
        monkeypatch.setattr(os, "scandir", forbidden)

        assert [covered.changes() for _ in range(3)] == [(), (), ()]

    def test_after_a_change_elsewhere_only_names_are_read(
        self, project: EngineProject, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        covered = covering(project, age=60)
        project.write("main.py")
        later = time.time_ns() + 60 * 10**9
        monkeypatch.setattr(time, "time_ns", lambda: later)
        monkeypatch.setattr(os, "open", forbidden)

        assert covered.changes() == ()

    def test_a_file_that_changed_a_moment_ago_is_read_again(
        self, project: EngineProject, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Else a second change, within the same tick of the file system's clock, would go unseen."""
        covered = covering(project, age=0)
        read: list[str] = []
        opened = os.open

        def recording(path: Any, *arguments: Any) -> int:
            read.append(str(path))
            return opened(path, *arguments)

        monkeypatch.setattr(os, "open", recording)

        assert covered.changes() == ()
        assert str(project.root / SCRIPT) in read

    def test_the_target_of_a_broken_link_is_noticed_later(
        self, project: EngineProject, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        project.write(SCRIPT)
        (project.root / SCRIPT).with_name("later.py").symlink_to(project.folder / "later.py")
        covered = covering(project, age=60)
        with monkeypatch.context() as patch:
            patch.setattr(os, "scandir", forbidden)
            assert covered.changes() == ()

        project.write(project.folder / "later.py")
        assert covered.changes() == (".llxprt/hooks/later.py",)

    def test_a_link_that_breaks_is_noticed(self, project: EngineProject) -> None:
        project.write(SCRIPT)
        target = project.write(project.folder / "target.py")
        (project.root / SCRIPT).with_name("link.py").symlink_to(target)
        covered = covering(project, age=60)
        target.unlink()

        assert covered.changes() == (".llxprt/hooks/link.py",)

    def test_it_may_be_called_in_any_thread(self, project: EngineProject) -> None:
        covered = covering(project, age=60)
        found: list[tuple[str, ...]] = []
        threads = [threading.Thread(target=lambda: found.append(covered.changes())) for _ in range(8)]
        overwrite(project)

        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert found == [(SCRIPT,)] * 8


def covering(project: EngineProject, *, age: int) -> CoveredFiles:
    """The files of a project, as they look ``age`` seconds after the last change."""
    project.write(SCRIPT, "ran\n", 0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: (project.root / SCRIPT).stat().st_ctime_ns + age * 10**9)
        return CoveredFiles([f"sh {SCRIPT}"], project.root)


def forbidden(*arguments: object) -> Any:
    raise AssertionError(f"read {arguments}")


async def test_a_comparison_that_breaks_blocks(project: EngineProject, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: CoveredFiles) -> list[str]:
        raise RuntimeError("out of order")

    config = guarded(project)
    monkeypatch.setattr(CoveredFiles, "changes", broken)

    result = await tool(config)

    assert "could not be compared with what was approved: out of order" in str(result.llm_content)
    assert not project.note("guard").exists()


PYTHON = sys.executable
GUARD = """import os, sys
sys.path.append(os.path.dirname(os.path.realpath(__file__)))
import helper
try:
    import extra
except ImportError:
    pass
sys.exit(helper.check())
"""
OWN, OTHER = ".llxprt/hooks", "tools"

# The folder of the guard, and the command that starts it.
PYTHON_STARTS = {
    "a script": (OTHER, f"{PYTHON} tools/guard.py"),
    "without variables": (OTHER, f"{PYTHON} -E tools/guard.py"),
    "isolated": (OTHER, f"{PYTHON} -I tools/guard.py"),
    "a module": (OTHER, f"{PYTHON} -m tools.guard"),
    "a shell": (OTHER, f"cd tools && {PYTHON} -E guard.py"),
    "a script of the hooks": (OWN, f"{PYTHON} {OWN}/guard.py"),
    "isolated, a script of the hooks": (OWN, f"{PYTHON} -I {OWN}/guard.py"),
    "a shebang": (OWN, f"$LLXPRT_PROJECT_DIR/{OWN}/guard"),
    "a shebang without variables": (OWN, f"$LLXPRT_PROJECT_DIR/{OWN}/guard-E"),
    "a script that clears the environment": (OWN, f"$LLXPRT_PROJECT_DIR/{OWN}/guard.sh"),
}


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize("start", PYTHON_STARTS)
@pytest.mark.parametrize("forgery", ["cached", "beside it"])
async def test_byte_code_does_not_run_in_place_of_an_approved_module(
    project: EngineProject, forgery: str, start: str, warm: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python compares byte code with its source by time and size, or by a hash, which an attacker knows."""
    monkeypatch.setattr(ahead, "_PAUSE", 60)  # a process that starts while the forgery is written may still import it
    folder, command = PYTHON_STARTS[start]
    helper = project.write(f"{folder}/helper.py", "def check():\n    return 2\n")
    project.write(f"{folder}/guard.py", GUARD)
    for name, opening in {"guard": f"#!{PYTHON}\n", "guard-E": f"#!{PYTHON} -E\n"}.items():
        project.write(f"{folder}/{name}", opening + GUARD, 0o755)
    project.write(f"{folder}/guard.sh", f"#!/bin/sh\nexec env -i {PYTHON} {folder}/guard.py\n", 0o755)
    hook: Any = {"name": "guard", "command": command, "warm": warm}
    project.put("project", {"enableHooks": True, "hooks": hooks_of({"BeforeTool": hook})})
    project.approve()
    config = Config.load(project.root)
    assert (await tool(config)).llm_content == "Blocked by hook"

    forged = project.write("forged.py", "def check():\n    return 0\nopen('ran', 'w')\n")
    cached = Path(importlib.util.cache_from_source(str(helper)))
    if forgery == "beside it":  # without a source
        cached = helper.parent / "extra.pyc"
    py_compile.compile(str(forged), str(cached), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    result = await tool(config)

    assert not (project.root / "ran").exists()
    assert f"{cached.relative_to(project.root)} has changed" in result.llm_content


GUARDS = {
    "BeforeTool": {"matcher": "write_.*", "hooks": [{"type": "command", "name": "guard", "command": f"./{SCRIPT}"}]}
}


def settings_of(project: EngineProject) -> dict[str, Any]:
    return {"enableHooks": True, "hooks": hooks_of(GUARDS)}


AT_LOAD: dict[str, tuple[Callable[[EngineProject], object], str]] = {
    "the script": (overwrite, SCRIPT),
    "a new file of the hooks": (lambda project: project.write(".llxprt/hooks/new.sh"), ".llxprt/hooks/new.sh"),
    "the matcher": (
        lambda project: project.put(
            "project",
            {"enableHooks": True, "hooks": hooks_of({"BeforeTool": {**GUARDS["BeforeTool"], "matcher": "no"}})},
        ),
        ".llxprt/settings.json",
    ),
    "the switch": (
        lambda project: project.put("project", {**settings_of(project), "enableHooks": False}),
        ".llxprt/settings.json",
    ),
    "the list of disabled hooks": (
        lambda project: project.put("project", {**settings_of(project), "hooksConfig": {"disabled": ["guard"]}}),
        ".llxprt/settings.json",
    ),
    "no hooks any more": (lambda project: project.put("project", {}), ".llxprt/settings.json"),
    "no file any more": (lambda project: project.files["project"].unlink(), ".llxprt/settings.json"),
    "broken settings": (lambda project: project.put("project", "{ broken"), "expected"),
}


@pytest.mark.parametrize("who", ["the project", "the user", "the program", "nobody"])
async def test_a_changed_project_blocks_prompts_where_its_hooks_would_act(project: EngineProject, who: str) -> None:
    project.write(SCRIPT, "#!/bin/sh\n", 0o755)
    full = {"hooksConfig": {"profile": "full"}}
    hooks = {"BeforeAgent": [{"hooks": [{"type": "command", "command": f"./{SCRIPT}"}]}]}
    project.put("project", {"enableHooks": True, "hooks": hooks, **(full if who == "the project" else {})})
    project.put("user", full if who == "the user" else {})
    project.approve()
    project.write(SCRIPT, "#!/bin/sh\ntrue\n", 0o755)

    loaded = Hooks.load(project.root, profile="full" if who == "the program" else None)
    start = await loaded.before_turn("hello")
    assert start.blocked is (who != "nobody")
    assert (SCRIPT in str(start.reason)) is start.blocked


@pytest.mark.parametrize(("change", "name"), AT_LOAD.values(), ids=AT_LOAD)
async def test_an_approved_project_that_changed_before_it_was_loaded_blocks(
    project: EngineProject, change: Callable[[EngineProject], object], name: str
) -> None:
    project.write(SCRIPT, f"#!/bin/sh\necho ran >> {project.note('guard')}\n", 0o755)
    project.put("project", settings_of(project))
    project.approve()
    change(project)

    config = Config.load(project.root)
    result = await tool(config)

    assert result.llm_content != "RAN"
    assert name in str(result.llm_content)
    assert project.notes("guard") == []
    assert (await execute_tool_with_hooks(config, "read_file", {}, lambda _: "RAN")).llm_content == "RAN"

    if name != "expected":
        grant_trust(project.root)
        assert not trust_status(project.root).held_back
        assert "`llxprt-hooks trust`" in str(result.llm_content)
    revoke_trust(project.root)
    assert (await tool(Config.load(project.root))).llm_content == "RAN"


async def test_a_guard_that_was_added_to_an_approved_project_blocks_until_it_is_approved(
    project: EngineProject, llm_request: GenerateContentParameters
) -> None:
    project.configure(AfterTool="true")
    project.approve()
    project.configure(BeforeModel="true", AfterTool=f"echo ran > {project.note('guard')}")

    config = Config.load(project.root)

    assert (await fire_before_model_hook(config, llm_request)).blocked
    assert (await tool(config)).llm_content == "RAN"
    assert project.notes("guard") == []


async def test_an_approval_whose_text_is_gone_blocks_every_call(project: EngineProject, home: Path) -> None:
    guarded(project)
    for text in (home / ".llxprt" / "trusted_texts").iterdir():
        text.unlink()
    project.put("project", {})

    assert "has changed since" in str((await tool(Config.load(project.root))).llm_content)


async def test_the_users_hooks_stay_off_if_only_the_changed_project_turned_them_on(project: EngineProject) -> None:
    project.put("user", {"hooks": hooks_of({"AfterTool": f"echo ran > {project.note('user')}"})})
    config = guarded(project)
    overwrite(project)

    assert (await tool(Config.load(project.root))).llm_content != "RAN"
    assert config.enable_hooks
    assert project.notes("user") == []


async def test_the_user_can_disable_a_guard_of_a_changed_project(project: EngineProject) -> None:
    guarded(project)
    project.put("user", {"enableHooks": True, "hooksConfig": {"disabled": ["guard"]}})
    overwrite(project)

    assert (await tool(Config.load(project.root))).llm_content == "RAN"


async def test_a_project_opened_through_a_link_that_leads_elsewhere_now_does_not_run(
    project: EngineProject, tmp_path: Path
) -> None:
    guarded(project)
    link, other = tmp_path / "current", tmp_path / "other"
    link.symlink_to(project.root)
    config = Config.load(link)
    assert (await tool(config)).llm_content == "RAN"

    other.mkdir()
    link.unlink()
    link.symlink_to(other)

    assert f"{link} leads to another folder" in str((await tool(config)).llm_content)


@pytest.mark.parametrize("name", ["guard", 7])
async def test_a_hook_that_cannot_be_used_blocks_after_a_change_too(project: EngineProject, name: object) -> None:
    project.write(SCRIPT, "exit 0\n", 0o755)
    project.put("project", {"enableHooks": True, "hooks": hooks_of({"BeforeTool": {"type": "http", "name": name}})})
    project.approve()
    replace(project)

    assert f"{SCRIPT} has changed since" in str((await tool(Config.load(project.root))).llm_content)


async def test_an_approval_by_an_earlier_version_blocks_until_it_is_renewed(project: EngineProject, home: Path) -> None:
    guarded(project)
    store = home / ".llxprt" / "trusted_hooks.json"
    store.write_text(re.sub(r'"version": \d+', '"version": 1', re.sub(r'"hash": ".', '"hash": "-', store.read_text())))

    assert "given to an earlier version" in str((await tool(Config.load(project.root))).llm_content)

    grant_trust(project.root)
    assert (await tool(Config.load(project.root))).llm_content == "RAN"


async def test_hooks_of_every_type_are_held_back(project: EngineProject) -> None:
    hook: Any = {"type": "http", "name": "guard", "url": "http://127.0.0.1:9/", "headers": {"Authorization": "x"}}
    project.write(SCRIPT, "exit 0\n", 0o755)
    project.put("project", {"enableHooks": True, "hooks": hooks_of({"BeforeTool": hook})})
    project.approve()
    config = Config.load(project.root)
    assert (await tool(config)).llm_content == "RAN"
    overwrite(project)

    for loaded in (config, Config.load(project.root)):
        project.write(SCRIPT, "exit 1\n", 0o755)
        assert f"{SCRIPT} has changed since" in str((await tool(loaded)).llm_content)
