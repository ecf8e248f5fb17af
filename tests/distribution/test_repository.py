"""The files around the code: pinned versions, CI, and hooks for pre-commit."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from llxprt_hooks import __version__
from tests.docs.pages import ROOT, sections
from tests.python_matrix import VERSIONS

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, GROUPS = SETTINGS["project"], SETTINGS["dependency-groups"]
LOCKS = ["dev", "integrations"]
"""A file of versions for the group of the same name."""

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PRE_COMMIT = [sys.executable, "-m", "pre_commit"]


def requirements(group: str) -> list[Requirement]:
    """What the package and a group require, with the groups and extras that they include."""
    waiting = [*PROJECT["dependencies"], *GROUPS[group]]
    found = []
    while waiting:
        line = waiting.pop()
        if isinstance(line, dict):
            waiting += GROUPS[line["include-group"]]
        elif (requirement := Requirement(line)).name == PROJECT["name"]:
            waiting += [line for extra in requirement.extras for line in PROJECT["optional-dependencies"][extra]]
        else:
            found.append(requirement)
    return found


def pinned(lock: str) -> dict[str, set[str]]:
    """The versions of each package; several where they depend on the Python version."""
    versions: dict[str, set[str]] = {}
    for line in (ROOT / "constraints" / f"{lock}.txt").read_text(encoding="utf-8").splitlines():
        requirement = Requirement(line)
        [version] = requirement.specifier
        assert version.operator == "=="
        versions.setdefault(canonicalize_name(requirement.name), set()).add(version.version)
    return versions


@pytest.mark.parametrize("lock", LOCKS)
def test_every_dependency_has_a_pinned_version_that_it_allows(lock: str) -> None:
    pins = pinned(lock)
    outdated = [
        str(requirement)
        for requirement in requirements(lock)
        if not any(map(requirement.specifier.contains, pins.get(canonicalize_name(requirement.name), ())))
    ]
    assert outdated == [], "run `make lock`"


@pytest.mark.parametrize("lock", LOCKS)
def test_pinned_versions_name_no_package_index(lock: str) -> None:
    text = (ROOT / "constraints" / f"{lock}.txt").read_text(encoding="utf-8")
    assert re.findall(r".*(?:://|--|file:| @ ).*", text) == []


def test_one_function_says_how_to_install_an_extra() -> None:
    source = ROOT / "src" / "llxprt_hooks"
    advice = {file.name for file in source.rglob("*.py") if "pip install 'llxprt-hooks" in file.read_text("utf-8")}
    assert advice == {"text.py"}


def test_ci_runs_on_every_supported_python() -> None:
    matrix = workflow("ci")["jobs"]["test"]["strategy"]["matrix"]
    prefix = "Programming Language :: Python :: "
    supported = [line.removeprefix(prefix) for line in PROJECT["classifiers"] if line.startswith(prefix)]
    assert matrix["python"] == supported == list(VERSIONS)
    assert matrix["os"] == ["ubuntu-latest", "macos-latest"]


def test_ci_runs_all_that_make_test_runs() -> None:
    """In several jobs: `test-fast` on every system and Python, the rest once."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    everything, fast = (
        set(re.search(rf"(?m)^{name}: .*\n\t@\$\(RUN_PARALLEL\) (.+)", makefile)[1].replace("'", " ").split())  # type: ignore[index]
        for name in ("test", "test-fast")
    )
    once = workflow("ci")["jobs"]["once"]["strategy"]["matrix"]["target"]
    assert fast | set(once) == everything


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_actions_are_pinned_by_commit_with_their_version(file: Path) -> None:
    used = re.findall(r"uses: (.+)", file.read_text(encoding="utf-8"))
    assert [action for action in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)] == []


def test_only_the_job_that_publishes_gets_an_identity() -> None:
    release = workflow("release")
    assert release["permissions"] == {"contents": "read"}
    assert {name: job.get("permissions") for name, job in release["jobs"].items()} == {
        "build": None,
        "publish": {"id-token": "write"},
    }


def workflow(name: str) -> Any:
    return yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8"))


def test_pre_commit_accepts_both_of_our_files() -> None:
    for command, file in (
        ("validate-config", ".pre-commit-config.yaml"),
        ("validate-manifest", ".pre-commit-hooks.yaml"),
    ):
        done = subprocess.run([*PRE_COMMIT, command, ROOT / file], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def test_pre_commit_runs_the_ruff_of_make_lint() -> None:
    used = re.findall(r"ruff==([\d.]+)", (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert set(used) == pinned("dev")["ruff"]


@pytest.mark.slow
def test_validate_as_a_pre_commit_hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit with a misspelled event is refused, and accepted when it is corrected."""
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "pre-commit"))
    ours = tmp_path / "llxprt-hooks"
    shutil.copytree(ROOT / "src", ours / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml"):
        shutil.copy(ROOT / name, ours)
    commit(ours, f"v{__version__}")
    project = tmp_path / "project"
    [section] = [each for each in sections(ROOT / "docs" / "validate.md") if each.title == "As a pre-commit hook"]
    [block] = section.blocks
    settings = project / ".llxprt" / "settings.json"
    settings.parent.mkdir(parents=True)
    (project / ".pre-commit-config.yaml").write_text(
        block.text.replace("https://github.com/vybestack/llxprt-hooks", ours.as_uri()), encoding="utf-8"
    )
    hook = '[{"hooks": [{"type": "command", "command": "cat"}]}]'

    settings.write_text(f'{{"enableHooks": true, "hooks": {{"BeforeTol": {hook}}}}}')
    commit(project)
    refused = subprocess.run([*PRE_COMMIT, "run", "--all-files"], cwd=project, capture_output=True, text=True)
    assert refused.returncode == 1, refused.stdout + refused.stderr
    assert ".llxprt/settings.json:1:" in refused.stdout
    assert "BeforeTool" in refused.stdout

    settings.write_text(f'{{"enableHooks": true, "hooks": {{"BeforeTool": {hook}}}}}')
    commit(project)
    accepted = subprocess.run([*PRE_COMMIT, "run", "--all-files"], cwd=project, capture_output=True, text=True)
    assert accepted.returncode == 0, accepted.stdout + accepted.stderr
    assert "Passed" in accepted.stdout


def commit(folder: Path, tag: str | None = None) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "a"], *([["tag", tag]] if tag else [])):
        subprocess.run(["git", *command], cwd=folder, check=True, capture_output=True)
