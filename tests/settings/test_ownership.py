"""D-34: files that another user owns or can write are refused, with the reason."""

from __future__ import annotations

import errno
import grp
import os
import pwd
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from llxprt_hooks.commands.enable import SwitchError, disable_hook
from llxprt_hooks.settings import Document, Level, Problem, ownership, read_document
from llxprt_hooks.settings.load import load_settings
from llxprt_hooks.settings.ownership import other_writers, read_own_document, root_ids
from llxprt_hooks.settings.problem import SettingsError
from llxprt_hooks.settings.trust.status import TrustError, TrustState, grant_trust, trust_status

if TYPE_CHECKING:
    from tests.settings.conftest import Write

STRANGER = 54321
"""The id of a user and a group that no machine has."""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
HOOKS = {"enableHooks": True, "hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": "true"}]}]}}


def objection(file: Path) -> str:
    document = read_document(file)
    assert isinstance(document, Document)
    return other_writers(document) or ""


@pytest.fixture
def file(tmp_path: Path, write: Write) -> Path:
    return write(tmp_path / "a" / "b" / "settings.json", {})


def test_the_users_own_file_is_fine(file: Path) -> None:
    assert objection(file) == ""


@needs_root
def test_a_file_of_another_user_is_refused(file: Path) -> None:
    os.chown(file, STRANGER, -1)

    assert objection(file) == f"this file belongs to the user with the id {STRANGER}"
    assert isinstance(read_own_document(file), Problem)


def test_the_other_user_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
    monkeypatch.setattr(ownership, "root_ids", lambda: {STRANGER})
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: user("bob", 1))

    assert objection(file) == "this file belongs to the user bob"


@needs_root
@pytest.mark.parametrize("level", ["a", "a/b"])
def test_a_folder_of_another_user_is_refused(file: Path, tmp_path: Path, level: str) -> None:
    os.chown(tmp_path / level, STRANGER, -1)

    assert objection(file) == f"the folder {tmp_path / level} belongs to the user with the id {STRANGER}"


@pytest.mark.parametrize("mode", [0o777, 0o757, 0o775])
@pytest.mark.parametrize("level", ["a", "a/b"])
def test_a_folder_that_others_can_write_is_refused(
    file: Path, tmp_path: Path, shared_group: None, mode: int, level: str
) -> None:
    (tmp_path / level).chmod(mode)

    assert objection(file) == (
        f"group or others may write to the folder {tmp_path / level} (mode {mode:04o}; fix it with `chmod go-w`)"
    )


def test_a_sticky_folder_is_fine(file: Path, tmp_path: Path, shared_group: None) -> None:
    (tmp_path / "a").chmod(0o1777)

    assert objection(file) == ""


def test_the_owners_private_group_counts_as_the_owner(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The group of the test's user may have members on this machine.
    me = user("me", file.stat().st_gid)
    monkeypatch.setattr(grp, "getgrgid", lambda group: grp.struct_group(("me", "x", group, ["me"])))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: me)
    monkeypatch.setattr(pwd, "getpwall", lambda: [me])
    file.chmod(0o664)
    file.parent.chmod(0o775)

    assert objection(file) == ""

    monkeypatch.setattr(pwd, "getpwall", lambda: [me, user("somebody", file.stat().st_gid)])
    assert "group or others may write to this file (mode 0664" in objection(file)


def test_a_shared_group_is_not_private_because_its_users_are_not_listed(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = user("me", file.stat().st_gid)
    monkeypatch.setattr(grp, "getgrgid", lambda group: grp.struct_group(("team", "x", group, [])))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: me)
    monkeypatch.setattr(pwd, "getpwall", lambda: [me])
    file.chmod(0o664)

    assert "group or others may write to this file (mode 0664" in objection(file)


@needs_root
def test_a_group_of_others_does_not(file: Path) -> None:
    os.chown(file, -1, STRANGER)
    file.chmod(0o664)

    assert "group or others may write to this file (mode 0664" in objection(file)


def test_links_on_the_way_are_followed(file: Path, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "open" / "relative").symlink_to("../a")
    (tmp_path / "absolute").symlink_to(tmp_path / "open" / "relative")
    (tmp_path / "fine").symlink_to("a/../a/b")

    assert objection(tmp_path / "fine" / "settings.json") == ""
    through = objection(tmp_path / "absolute" / "b" / "settings.json")
    assert through.startswith(f"group or others may write to the folder {tmp_path / 'open'} ")


def test_the_file_itself_may_be_a_link(file: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(file)
    assert objection(tmp_path / "link") == ""

    (tmp_path / "a").chmod(0o777)
    assert f"the folder {tmp_path / 'a'} " in objection(tmp_path / "link")


@needs_root
def test_a_link_of_another_user_is_refused(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(file)
    os.chown(link, STRANGER, -1, follow_symlinks=False)

    assert objection(link) == f"the link {link} belongs to the user with the id {STRANGER}"


def test_what_cannot_be_inspected_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = read_document(file)
    assert isinstance(document, Document)

    def gone(path: Path) -> os.stat_result:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    monkeypatch.setattr(Path, "lstat", gone)

    assert other_writers(document) == "/ cannot be inspected: Input/output error"


@pytest.mark.parametrize(
    ("uid_map", "expected"),
    [
        ("0 0 4294967295\n", {0}),
        ("1000 1000 1\n", {0, 65534}),
        ("0 1000 1\n", {0, 65534}),
        ("0 1000 1\n1 100000 65536\n", {0}),
    ],
    ids=["no namespace", "sandbox", "root of a sandbox", "container with a user of that id"],
)
def test_root_may_be_unknown_in_a_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Write, uid_map: str, expected: set[int]
) -> None:
    monkeypatch.setattr(ownership, "_PROC", tmp_path)
    write(tmp_path / "self" / "uid_map", uid_map)
    write(tmp_path / "sys" / "kernel" / "overflowuid", "65534\n")

    assert root_ids() == expected


def test_where_there_are_no_namespaces_root_is_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "_PROC", tmp_path)

    assert root_ids() == {0}


class TestLevels:
    """What it means for settings, extensions and approvals."""

    @pytest.mark.parametrize("level", [Level.USER, Level.SYSTEM])
    def test_settings_that_others_can_write_are_ignored(
        self, project: Path, user_file: Path, system_file: Path, write: Write, level: Level
    ) -> None:
        file = write(user_file if level is Level.USER else system_file, HOOKS)
        assert load_settings(project).enabled
        file.chmod(0o666)

        loaded = load_settings(project)

        assert (loaded.enabled, loaded.sources) == (False, ())
        with pytest.raises(SettingsError, match="so this file is ignored"):
            loaded.require_readable(level)
        [problem] = loaded.problems
        assert str(problem) == (
            f"{file}:1:1: group or others may write to this file (mode 0666; fix it with `chmod go-w`), "
            "so this file is ignored"
        )

    @needs_root
    @pytest.mark.parametrize("level", list(Level))
    def test_settings_of_another_user_are_ignored(
        self, project: Path, project_file: Path, user_file: Path, system_file: Path, write: Write, level: Level
    ) -> None:
        files = {Level.PROJECT: project_file, Level.USER: user_file, Level.SYSTEM: system_file}
        write(files[level], HOOKS)
        if level is Level.PROJECT:
            grant_trust(project)
        assert load_settings(project).enabled
        os.chown(files[level].parent, STRANGER, -1)

        loaded = load_settings(project)

        assert (loaded.enabled, loaded.sources) == (level is Level.PROJECT, ())
        assert bool(loaded.held_back) is (level is Level.PROJECT)  # it was approved, so its guards block
        assert f"belongs to the user with the id {STRANGER}" in loaded.problems[0].message

    @pytest.mark.parametrize("name", ["llxprt-extension.json", "hooks/hooks.json", "hooks", "."])
    def test_an_extension_that_others_can_write_has_no_hooks(
        self, project: Path, home: Path, write: Write, name: str
    ) -> None:
        folder = home / ".llxprt" / "extensions" / "e"
        write(folder / "llxprt-extension.json", {"name": "e"})
        write(folder / "hooks" / "hooks.json", HOOKS)
        assert load_settings(project).extensions[0].hooks
        (folder / name).chmod(0o777)

        loaded = load_settings(project)

        assert not any(extension.hooks for extension in loaded.extensions)
        assert "group or others may write to" in loaded.problems[0].message

    @needs_root
    @pytest.mark.parametrize("part", [".llxprt", ".llxprt/trusted_hooks.json"])
    def test_approvals_of_another_user_do_not_count(
        self, project: Path, project_file: Path, home: Path, write: Write, part: str
    ) -> None:
        write(project_file, HOOKS)
        grant_trust(project)
        os.chown(home / part, STRANGER, -1)

        status = trust_status(project)

        assert status.state is TrustState.UNTRUSTED
        assert "so its approvals do not count" in status.problems[0].message

    def test_an_approval_that_would_not_count_is_not_given(
        self, project: Path, project_file: Path, home: Path, write: Write
    ) -> None:
        write(project_file, HOOKS)
        (home / ".llxprt").mkdir()
        (home / ".llxprt").chmod(0o777)

        with pytest.raises(TrustError, match="so approvals there do not count"):
            grant_trust(project)

    def test_a_hook_is_not_disabled_in_a_file_that_is_ignored(
        self, project: Path, user_file: Path, system_file: Path, write: Write
    ) -> None:
        write(system_file, HOOKS)
        write(user_file, {}).chmod(0o666)

        with pytest.raises(SwitchError, match="so this file is ignored"):
            disable_hook(str(project), "true")


def user(name: str, group: int) -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", os.getuid(), group, "", "/", "/bin/sh"))
