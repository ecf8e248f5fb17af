"""The hash of what a hook runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks.fleet.audit import content
from llxprt_hooks.fleet.audit.content import ContentHashes
from llxprt_hooks.settings.definitions import HookConfig, read_hook

if TYPE_CHECKING:
    from tests.support.project import Project


def _hook(command: str, **more: Any) -> HookConfig:
    config, _ = read_hook({"type": "command", "command": command, **more})
    assert config is not None
    return config


@pytest.mark.parametrize(
    "command",
    [
        "./guard.sh",
        "guard.sh",
        "sh guard.sh -x",
        '"$LLXPRT_PROJECT_DIR/guard.sh"',
        "true; $LLXPRT_PROJECT_DIR/guard.sh",
    ],
)
def test_it_changes_with_the_script(sandbox: Project, command: str) -> None:
    sandbox.write("guard.sh", "one")
    hashes = ContentHashes(str(sandbox.root))
    first = hashes.of(_hook(command))
    assert hashes.of(_hook(command)) == first
    sandbox.write("guard.sh", "three")
    assert hashes.of(_hook(command)) != first
    sandbox.write("guard.sh", "one")
    assert ContentHashes(str(sandbox.root)).of(_hook(command)) == first


def test_a_script_in_the_home_counts(sandbox: Project) -> None:
    sandbox.write(sandbox.home / "guard.sh", "one")
    hashes = ContentHashes(str(sandbox.root))
    first = hashes.of(_hook("~/guard.sh"))
    sandbox.write(sandbox.home / "guard.sh", "three")
    assert hashes.of(_hook("~/guard.sh")) != first


@pytest.mark.parametrize("other", [{"name": "x"}, {"timeout": 5}, {"failClosed": True}])
def test_it_changes_with_the_definition(sandbox: Project, other: dict[str, Any]) -> None:
    hashes = ContentHashes(str(sandbox.root))
    assert hashes.of(_hook("true", **other)) != hashes.of(_hook("true"))


def test_unreadable_programs_are_not_hashed(sandbox: Project) -> None:
    hashes = ContentHashes(str(sandbox.root))
    os.mkfifo(sandbox.root / "pipe.sh")
    for command in ("./missing.sh", "./pipe.sh", "./\0.sh", "cat <<X\n$(./x.sh)"):
        assert len(hashes.of(_hook(command))) == 64


def test_a_large_program_is_known_by_its_size_and_time(sandbox: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "MAX_BYTES", 10)
    program = sandbox.write("program.bin", "x" * 11)
    os.utime(program, (1, 1))
    first = ContentHashes(str(sandbox.root)).of(_hook("./program.bin"))
    os.utime(program, (2, 2))
    assert ContentHashes(str(sandbox.root)).of(_hook("./program.bin")) != first
