"""``llxprt-hooks init --user``: recipes among the user's own hooks, for every project."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from llxprt_hooks.cli.main import run_command_line
from llxprt_hooks.recipes import FIRST_HOOK, NAMES
from tests.recipes.project import RecipeProject, mode_of

ODD_NAMES = ("ada", "ada lovelace", 'o\'neill $(touch here) `x` "q" *', "ünïcode")


@pytest.fixture(params=ODD_NAMES)
def odd_home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder: Path = tmp_path / request.param
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture(autouse=True)
def nothing_is_approved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLXPRT_TRUST_PROJECT_HOOKS")


def init(*arguments: str) -> int:
    return run_command_line(["init", "--user", *arguments])


def settings_of(home: Path) -> Path:
    return home / ".llxprt" / "settings.json"


async def test_the_hook_runs_in_a_project_without_settings(odd_home: Path, bench: RecipeProject) -> None:
    assert init("protected-files") == 0

    assert await bench.verdict("read_file", file_path=".env") is not None
    assert await bench.verdict("read_file", file_path="README.md") is None
    assert list(bench.root.iterdir()) == []


def test_nothing_is_wrong_with_the_settings_that_recipes_make(
    odd_home: Path, bench: RecipeProject, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    init(FIRST_HOOK, *NAMES)
    capfdbinary.readouterr()

    run_command_line(["validate", "--json", "-C", str(bench.root)])

    found = json.loads(capfdbinary.readouterr().out)
    assert str(settings_of(odd_home)) in found["files"]
    assert [each for each in found["diagnostics"] if each["severity"] != "hint"] == []


def test_what_it_says_to_try_next_can_be_tried(
    odd_home: Path, bench: RecipeProject, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init("secret-scanning") == 0

    printed = capsys.readouterr()
    steps = printed.out.partition("Next:\n")[2].splitlines()
    assert steps[0] == "  # no approval needed: these are your own hooks, and they run in every project"
    assert "llxprt-hooks trust" not in printed.out
    tried = subprocess.run(["bash", "-c", steps[1]], cwd=bench.root, capture_output=True, text=True)
    assert tried.returncode == 2
    assert "blocked: Line 3" in tried.stdout


def test_created_files_are_private(home: Path) -> None:
    old = os.umask(0o022)
    try:
        init("secret-scanning")
    finally:
        os.umask(old)

    created = [home / ".llxprt", *(home / ".llxprt").rglob("*")]
    assert settings_of(home) in created
    assert {path.name: mode_of(path) for path in created if mode_of(path) & 0o077} == {}
    assert mode_of(home / ".llxprt" / "hooks" / "secret_scanning.py") == 0o700


def test_settings_that_are_there_keep_their_comments_and_their_mode(home: Path) -> None:
    settings_of(home).parent.mkdir()
    settings_of(home).write_text('{\n  // mine\n  "theme": "dark",\n}\n')
    settings_of(home).chmod(0o644)

    assert init("cost-cap") == 0

    after = settings_of(home).read_text()
    assert after.startswith('{\n  // mine\n  "theme": "dark",\n')
    assert "cost_cap.py" in after
    assert mode_of(settings_of(home)) == 0o644


def test_links_of_the_user_are_followed_and_stay(home: Path, tmp_path: Path) -> None:
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "settings.json").write_text("{}")
    (home / ".llxprt").mkdir()
    settings_of(home).symlink_to(dotfiles / "settings.json")

    assert init() == 0

    assert settings_of(home).is_symlink()
    assert "first_hook.py" in (dotfiles / "settings.json").read_text()


NOTICES = {
    "hooks are off": (
        '{"enableHooks": false}',
        0o600,
        "Hooks are disabled in ~/.llxprt/settings.json; this",
    ),
    "switched off": ('{"hooksConfig": {"disabled": ["cost-cap"]}}', 0o600, "Run: llxprt-hooks enable cost-cap"),
    "writable": ("{}", 0o666, "~/.llxprt/settings.json is ignored until this is fixed"),
}


@pytest.mark.parametrize(("text", "mode", "notice"), NOTICES.values(), ids=NOTICES)
def test_the_reason_why_hooks_do_not_run_is_reported(
    text: str, mode: int, notice: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings_of(home).parent.mkdir()
    settings_of(home).write_text(text)
    settings_of(home).chmod(mode)

    assert init("cost-cap") == 0

    assert notice in capsys.readouterr().err


def test_in_the_home_folder_it_works_too(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)

    assert init("cost-cap") == 0

    assert "cost_cap.py" in settings_of(home).read_text()


def test_a_project_cannot_be_named_with_it(
    bench: RecipeProject, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init("cost-cap", "-C", str(bench.root)) == 64
    assert "use only one of them" in capsys.readouterr().err
    assert list(home.iterdir()) == list(bench.root.iterdir()) == []


def test_without_a_home_folder_nothing_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "none"))

    assert init("cost-cap") == 1

    assert "there is no home folder" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
