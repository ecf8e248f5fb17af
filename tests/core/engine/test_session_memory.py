"""The private folder that hooks of a session share."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks import (
    Config,
    HookEventName,
    Hooks,
    current_session,
    deny,
    fire_session_end_hook,
    fire_session_start_hook,
    settle,
)
from llxprt_hooks.core.calls.sessions import Sessions
from llxprt_hooks.core.engine import session_memory
from tests.support.replies import command_hook

COUNT = 'echo x >> "$LLXPRT_SESSION_DIR/calls"; [ $(wc -l < "$LLXPRT_SESSION_DIR/calls") -le 2 ] || exit 2'


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def config_with(**hooks: str) -> Config:
    given = {event: [{"hooks": [command_hook(command)]}] for event, command in hooks.items()}
    return Config(enable_hooks=True, hooks=given)


def folders(home: Path) -> list[Path]:
    return sorted((home / ".llxprt" / "sessions").iterdir())


async def called(hooks: Hooks) -> bool:
    return (await hooks.run_tool("glob", {}, lambda args: "found")).error is None


async def test_a_script_keeps_a_budget_per_session(home: Path) -> None:
    hooks = Hooks(config_with(BeforeTool=COUNT))
    with hooks.session("s1"):
        assert [await called(hooks) for _ in range(3)] == [True, True, False]
    with hooks.session("s2"):
        assert await called(hooks)


async def test_the_folder_is_private_and_its_name_is_not_the_session_s(home: Path) -> None:
    hooks = Hooks(config_with(BeforeTool='echo x > "$LLXPRT_SESSION_DIR/note"'))
    with hooks.session("../../escape"):
        await called(hooks)
        [folder] = folders(home)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert (folder / "note").read_text() == "x\n"
        assert "escape" not in folder.name


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("place", ["link", "session", "sessions", "writable"])
async def test_no_other_user_can_prepare_the_folder(
    home: Path, tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture, place: str
) -> None:
    folder = Path(session_memory.folder_of("known"))
    folder.parent.mkdir(parents=True, mode=0o700)
    if place == "link":
        folder.symlink_to(tmp_path_factory.mktemp("elsewhere"))
    else:
        folder.mkdir()
    stranger = {"link": folder, "session": folder, "sessions": folder.parent}.get(place)
    if stranger is not None:
        os.chown(stranger, 4711, 4711, follow_symlinks=False)
    else:
        folder.parent.chmod(0o777)
    hooks = Hooks(config_with(BeforeTool='[ -z "$LLXPRT_SESSION_DIR" ] || exit 2'))

    with hooks.session("known"):
        assert [await called(hooks) for _ in range(2)] == [True, True]

    assert caplog.text.count("hooks have no folder for their session") == 1


async def test_another_process_finds_the_same_folder(home: Path) -> None:
    program = "from llxprt_hooks.core.engine.session_memory import open_folder; print(open_folder('s1'))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    assert found == session_memory.open_folder("s1")


@pytest.mark.parametrize("event", ["Notification", "SessionEnd"])
async def test_it_is_gone_after_the_end_of_the_session(home: Path, event: str) -> None:
    config = config_with(BeforeTool="true", **{event: 'ls "$LLXPRT_SESSION_DIR"'})
    with Hooks(config).session("s1"):
        await called(Hooks(config))
        assert len(folders(home)) == 1
    await settle(config)
    assert folders(home) == []


async def test_it_is_empty_at_a_new_start_and_kept_by_a_resumed_session(home: Path) -> None:
    config = config_with(BeforeTool='touch "$LLXPRT_SESSION_DIR/$(date +%N)"', SessionStart="true")
    for source, kept in (("resume", 1), ("compress", 1), ("clear", 0), ("startup", 0)):
        await called(Hooks(config))
        [folder] = folders(home)
        before = len(list(folder.iterdir()))
        fire_session_start_hook(config, source)  # type: ignore[arg-type]
        await settle(config)
        after = len(list(folder.iterdir())) if folder.exists() else 0
        assert after == (before if kept else 0), source


@pytest.mark.parametrize("event", ["BeforeTool", "SessionStart"])
async def test_what_a_process_that_was_killed_left_is_gone_at_the_next_start(home: Path, event: str) -> None:
    config = config_with(**{event: 'ls "$LLXPRT_SESSION_DIR" >> "$HOME/seen"'})
    left = Path(session_memory.folder_of("s1"))
    left.mkdir(parents=True, mode=0o700)
    (left / "note").touch()
    os.utime(left, (time.time() - 60,) * 2)
    with Hooks(config).session("s1"):
        await called(Hooks(config))
        await settle(config)
    assert (home / "seen").read_text() == ""


async def test_what_another_process_of_a_started_session_wrote_is_kept(home: Path) -> None:
    hooks = Hooks(config_with(BeforeTool='[ ! -e "$LLXPRT_SESSION_DIR/denied" ]  || exit 2'))
    with hooks.session("s1"):
        program = (
            "from llxprt_hooks.core.engine.session_memory import open_folder; open(open_folder('s1') + '/denied', 'w')"
        )
        subprocess.run([sys.executable, "-c", program], check=True)
        assert not await called(hooks)


async def test_a_conversation_of_a_framework_may_have_begun_in_another_process(home: Path) -> None:
    config = config_with(BeforeTool=COUNT)
    counted = []
    for _ in range(3):  # each as if it were another process
        with Sessions(config).begin("thread-1").active():
            counted.append(await called(Hooks(config)))
        await settle(config)
    assert counted == [True, True, False]


async def test_a_session_without_events_for_a_week_loses_its_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, young = (Path(session_memory.open_folder(name) or "") for name in ("old", "young"))
    week = time.time() - 8 * 24 * 3600
    os.utime(old, (week, week))
    monkeypatch.setattr(session_memory, "_cleaned", time.monotonic() - 25 * 3600)  # this process has run for a day
    session_memory.open_folder("new")
    assert not old.exists()
    assert young.exists()


def test_a_process_remembers_only_so_many_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_memory, "_used", {})
    monkeypatch.setattr(session_memory, "_MAX_USED", 3)
    first, *_ = [session_memory.open_folder(f"s{number}") for number in range(5)]
    assert len(session_memory._used) == 3
    assert session_memory.open_folder("s0") == first


def test_threads_that_need_it_at_the_same_time_all_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SessionStart's hooks and the first line of the transcript do."""
    together = threading.Barrier(8)

    def open_it(_: int) -> str | None:
        together.wait()
        return session_memory.open_folder("s1")

    with ThreadPoolExecutor(8) as threads:
        for attempt in range(50):
            monkeypatch.setenv("HOME", str(tmp_path / str(attempt)))
            assert set(threads.map(open_it, range(8))) == {session_memory.folder_of("s1")}


def test_a_new_start_keeps_the_folder_where_a_transcript_may_be_begun(home: Path) -> None:
    folder = session_memory.open_folder("s1")
    assert folder is not None

    session_memory.at_event(HookEventName.SESSION_START, {"source": "startup"}, "s1")

    assert Path(folder).is_dir()


async def test_functions_have_the_folder_of_the_event_s_session(home: Path) -> None:
    hooks = Hooks()

    @hooks.on("BeforeTool")
    def once(payload: dict[str, Any]) -> Any:
        session = current_session()
        assert session is not None
        assert session.directory is not None
        note = Path(session.directory) / "seen"
        if note.exists():
            return deny(f"only once in {session.session_id}")
        note.touch()
        return None

    with hooks.session("s1"):
        assert await called(hooks)
        assert (await hooks.run_tool("glob", {}, lambda args: "found")).llm_content == "only once in s1"
    assert current_session() is None
    assert await called(hooks)  # outside of a session: that of the configuration


async def test_hooks_run_where_no_folder_can_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/dev/null")
    assert not await called(Hooks(config_with(BeforeTool='[ -z "$LLXPRT_SESSION_DIR" ] && exit 2')))


def test_the_end_of_a_session_whose_hooks_never_ran_touches_no_file(home: Path) -> None:
    fire_session_end_hook(Config(enable_hooks=True, hooks={}))
    assert not (home / ".llxprt").exists()


async def test_the_folders_can_be_kept_somewhere_else(home: Path, tmp_path: Path) -> None:
    with session_memory.kept_below(tmp_path / "elsewhere"):
        session = Hooks().session("s1")
        assert Path(session.directory or "").parent == tmp_path / "elsewhere"
    assert Path(session.directory or "").is_relative_to(home / ".llxprt")


def test_other_events_leave_the_folder_alone() -> None:
    folder = Path(session_memory.open_folder("s1") or "")
    session_memory.at_event(HookEventName.NOTIFICATION, {}, "s1")
    assert folder.exists()
