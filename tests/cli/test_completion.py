"""Shell completion: a script for each shell, and what it offers."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.cli import CliProject


def offered_by_bash(world: CliProject, *words: str) -> list[str]:
    """What bash offers for the last word, by the script that we print."""
    quoted = " ".join(f"'{word}'" for word in words)
    script = f"""
        eval "$(llxprt-hooks completion bash)"
        complete -p llxprt-hooks >&2
        COMP_WORDS=({quoted}) COMP_CWORD={len(words) - 1}
        _llxprt_hooks_completion llxprt-hooks
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    ended = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=world.root,
        env=world.environment(LLXPRT_TRUST_PROJECT_HOOKS="1"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "_llxprt_hooks_completion" in ended.stderr
    return [word for word in ended.stdout.splitlines() if word]


def asked_by(shell: str, world: CliProject, words: str, place: str) -> str:
    """What the command answers to a shell's script."""
    return world.run(_LLXPRT_HOOKS_COMPLETE=f"{shell}_complete", COMP_WORDS=words, COMP_CWORD=place).stdout


@pytest.fixture
def hooked(world: CliProject) -> CliProject:
    world.configure(
        BeforeTool=[{"name": "lint", "command": "a"}, {"name": "logs", "command": "b"}],
        AfterTool={"name": "lint", "command": "c"},
    )
    world.put("user", {"hooksConfig": {"disabled": ["logs"]}})
    return world


def test_bash_completes_commands(world: CliProject) -> None:
    assert offered_by_bash(world, "llxprt-hooks", "tr") == ["trust"]
    assert "disable" in offered_by_bash(world, "llxprt-hooks", "d")


@pytest.mark.parametrize("typed", ["AfterA", "aftera"])
def test_bash_completes_events(world: CliProject, typed: str) -> None:
    assert offered_by_bash(world, "llxprt-hooks", "fire", typed) == ["AfterAgent"]
    assert offered_by_bash(world, "llxprt-hooks", "log", "--event", typed) == ["AfterAgent"]


def test_bash_completes_options(world: CliProject) -> None:
    assert "--dry-run" in offered_by_bash(world, "llxprt-hooks", "fire", "--d")


def test_bash_completes_the_hooks_that_can_be_switched(hooked: CliProject) -> None:
    assert offered_by_bash(hooked, "llxprt-hooks", "disable", "l") == ["lint"]
    assert offered_by_bash(hooked, "llxprt-hooks", "enable", "") == ["logs"]


def test_bash_completes_tools_and_hooks_that_have_run(world: CliProject) -> None:
    assert offered_by_bash(world, "llxprt-hooks", "fire", "--tool", "write_f") == ["write_file"]
    world.log_file.parent.mkdir(parents=True, exist_ok=True)
    world.log_file.write_text('{"hook": "guard"}\n{"hook": "$(touch x)"}\n')
    assert offered_by_bash(world, "llxprt-hooks", "log", "--hook", "") == ["guard"]


def test_hooks_of_another_folder_are_completed_where_one_is_given(hooked: CliProject) -> None:
    elsewhere = hooked.folder / "elsewhere"
    elsewhere.mkdir()
    assert offered_by_bash(hooked, "llxprt-hooks", "disable", "-C", str(elsewhere), "l") == []


def test_zsh_and_fish_are_answered_with_descriptions(hooked: CliProject) -> None:
    assert asked_by("zsh", hooked, "llxprt-hooks disable l", "2") == "plain\nlint\nBeforeTool, AfterTool\n"
    assert asked_by("fish", hooked, "llxprt-hooks disable l", "l") == "plain,lint\tBeforeTool, AfterTool\n"


def test_names_that_a_shell_would_act_on_are_not_offered(world: CliProject) -> None:
    names = ["$(touch ran)", "a;b", "a b", "*", "-rf", "`x`", "a\nplain,b", "~", "fine.name-1"]
    world.configure(BeforeTool=[{"name": name, "command": f"true {number}"} for number, name in enumerate(names)])

    assert offered_by_bash(world, "llxprt-hooks", "disable", "") == ["fine.name-1"]


def test_broken_settings_do_not_spoil_the_line_that_is_being_typed(world: CliProject) -> None:
    world.put("project", "{ nonsense")

    run = world.run(_LLXPRT_HOOKS_COMPLETE="bash_complete", COMP_WORDS="llxprt-hooks disable ", COMP_CWORD="2")

    assert (run.stdout.strip(), run.stderr) == ("", "")


@pytest.mark.parametrize(("shell", "words"), [("bash", "complete -o"), ("zsh", "#compdef"), ("fish", "complete --no")])
def test_completion_supports_each_shell(world: CliProject, shell: str, words: str) -> None:
    run = world.run("completion", shell)

    assert (run.status, run.stderr) == (0, "")
    assert words in run.stdout
    assert run.stdout == world.run(_LLXPRT_HOOKS_COMPLETE=f"{shell}_source").stdout
