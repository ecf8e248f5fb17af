"""Extensions: found by name, their folder put into their commands so that no shell reads it as code."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import Config
from llxprt_hooks.core.engine.registry import HookRegistry
from llxprt_hooks.settings import Extension
from llxprt_hooks.settings.extensions import place_path
from llxprt_hooks.settings.load import load_settings

if TYPE_CHECKING:
    from tests.settings.conftest import Write


@pytest.fixture
def extensions(home: Path) -> Path:
    return home / ".llxprt" / "extensions"


def hooks(command: str) -> dict[str, Any]:
    return {"BeforeTool": [{"hooks": [{"type": "command", "command": command}]}]}


def install(write: Write, path: Path, manifest: object, hooks_file: object) -> None:
    write(path / "llxprt-extension.json", manifest)
    write(path / "hooks" / "hooks.json", hooks_file)


def test_extensions_are_found_in_order_of_their_names(project: Path, extensions: Path, write: Write) -> None:
    install(write, extensions / "1", {"name": "zeta"}, {"hooks": hooks("z")})
    install(write, extensions / "2", {"name": "alpha"}, {"hooks": hooks("a")})
    write(extensions / "mid" / "gemini-extension.json", {"version": "1"})
    write(extensions / "mid" / "hooks" / "hooks.json", '{"hooks": {"AfterTool": [],}} // fine')

    loaded = load_settings(project)

    assert loaded.extensions == (
        Extension("alpha", hooks("a"), True, extensions / "2"),
        Extension("mid", {"AfterTool": []}, True, extensions / "mid"),
        Extension("zeta", hooks("z"), True, extensions / "1"),
    )
    assert loaded.problems == ()


def test_an_extension_needs_only_a_name_and_hooks() -> None:
    extension = Extension(name="x", hooks={})

    assert (extension.is_active, extension.path) == (True, None)


def test_folders_that_are_not_extensions_are_skipped(project: Path, extensions: Path, write: Write) -> None:
    write(extensions / "extension-enablement.json", {})
    write(extensions / ".git" / "hooks" / "hooks.json", {})
    (extensions / "empty").mkdir()
    write(extensions / "plain" / "llxprt-extension.json", {"name": "plain"})

    loaded = load_settings(project)

    assert loaded.extensions == (Extension("plain", {}, path=extensions / "plain"),)
    assert loaded.problems == ()


def test_broken_pieces_are_reported_and_leave_the_rest(project: Path, extensions: Path, write: Write) -> None:
    install(write, extensions / "a", '{"name"', {"hooks": hooks("a")})
    install(write, extensions / "b", {"name": 7}, {"hooks": hooks("b")})
    install(write, extensions / "c", {"name": "c"}, "[")
    install(write, extensions / "d", {"name": "d"}, {"BeforeTool": []})
    install(write, extensions / "e", {"name": "e"}, {"hooks": {"BeforeTool": 1, "AfterTool": []}})
    write(extensions / "f" / "hooks" / "hooks.json", {"hooks": hooks("f")})
    install(write, extensions / "g", {"name": ""}, {"hooks": hooks("g")})

    loaded = load_settings(project)

    assert {extension.name: extension.hooks for extension in loaded.extensions} == {
        "a": hooks("a"),
        "b": hooks("b"),
        "c": {},
        "d": {},
        "e": {"AfterTool": []},
        "g": hooks("g"),
    }
    assert sorted(str(problem).removeprefix(str(extensions)) for problem in loaded.problems) == [
        "/a/llxprt-extension.json:1:8: expected ':' after the key, found the end of the file",
        "/b/llxprt-extension.json:1:10: `name` must be a string, found 7, which is ignored",
        "/c/hooks/hooks.json:1:2: expected a value, found the end of the file",
        "/d/hooks/hooks.json:1:1: this extension has no `hooks`",
        (
            "/e/hooks/hooks.json:1:26: `BeforeTool` must be an array of hook groups, found 1, "
            "which is discarded, so it blocks nothing"
        ),
        "/f/hooks/hooks.json:1:1: ignored, because the extension has no llxprt-extension.json",
    ]


def test_extensions_may_be_links(project: Path, extensions: Path, tmp_path: Path, write: Write) -> None:
    install(write, tmp_path / "work", {"name": "linked"}, {"hooks": hooks("${extensionPath}/x")})
    extensions.mkdir(parents=True)
    (extensions / "linked").symlink_to(tmp_path / "work")

    [extension] = load_settings(project).extensions

    assert extension.hooks == hooks(f"{extensions}/linked/x")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_cannot_be_listed_is_reported(project: Path, extensions: Path) -> None:
    extensions.mkdir(parents=True, mode=0)

    [problem] = load_settings(project).problems

    assert str(problem) == f"{extensions}:1:1: the extensions cannot be listed: Permission denied"


def test_the_folder_is_put_into_every_string(project: Path, extensions: Path, write: Write) -> None:
    path = extensions / "my ext"
    group = {
        "matcher": "${extensionPath}",
        "hooks": [{"type": "command", "command": "${extensionPath}/x", "name": "in ${extensionPath}", "timeout": 1}],
    }
    install(write, path, {"name": "e"}, {"hooks": {"BeforeTool": [group]}})

    [extension] = load_settings(project).extensions

    assert extension.hooks["BeforeTool"] == [
        {
            "matcher": str(path),
            "hooks": [{"type": "command", "command": f"'{path}'/x", "name": f"in {path}", "timeout": 1}],
        }
    ]


def test_a_plain_path_is_put_in_as_it_is() -> None:
    command = """${extensionPath}/a "$(cat '${extensionPath}/b')" `${extensionPath}/c`"""

    assert place_path(command, "/home/josé/x-1.0") == command.replace("${extensionPath}", "/home/josé/x-1.0")


HOSTILE_NAMES = [
    "with space",
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned;",
    "a'b",
    "a'; touch pwned; '",
    'a"b',
    '"; touch pwned; "',
    "$(touch pwned)\"'$(touch pwned)",
    "back\\slash",
    "trailing\\",
    "&& touch pwned #",
    "* ? [a] {b,c} ~",
    "new\nline\ntouch pwned\n",
    "$HOME !! $LLXPRT_PROJECT_DIR",
    "| touch pwned",
    "> pwned",
    "${extensionPath}",
]
TEMPLATES = [
    "${extensionPath}/show",
    '"${extensionPath}/show"',
    "'${extensionPath}/show'",
    '"${extensionPath}"/show',
    "${extensionPath}/'sh'\"ow\"",
    "cat /dev/null && '${extensionPath}'/show",
    'A=1 "${extensionPath}/show" ; B="it\'s" true',
    "echo \"don't\" 'say \"x\"' it\\'s >/dev/null; ${extensionPath}/show",
    '[ -x "${extensionPath}/show" ] && "${extensionPath}/show" "$A" ${B}',
]


@pytest.mark.parametrize("shell", [shell for shell in ("bash", "sh") if shutil.which(shell)])
@pytest.mark.parametrize("template", TEMPLATES)
def test_no_folder_name_is_read_as_shell_code(tmp_path: Path, template: str, shell: str) -> None:
    for number, name in enumerate(HOSTILE_NAMES):
        folder = tmp_path / f"{number}" / name.replace("/", "_")
        folder.mkdir(parents=True)
        script = folder / "show"
        script.write_text("#!/bin/sh\necho shown\n")
        script.chmod(0o755)
        working_dir = tmp_path / f"{number}"

        command = place_path(template, str(folder))
        assert command is not None
        done = subprocess.run([shell, "-c", command], cwd=working_dir, capture_output=True, text=True, check=False)

        assert (name, done.stdout, done.stderr) == (name, "shown\n", "")
        assert [file.name for file in working_dir.iterdir()] == [folder.name]


UNSAFE = [
    "$(${extensionPath}/x)",
    '"$(${extensionPath}/x)"',
    "`${extensionPath}/x`",
    "sh -c '${extensionPath}/x'",
    'bash -lc "${extensionPath}/x"',
    "eval ${extensionPath}/x",
    "cat <<E\n${extensionPath}\nE",
    "$'${extensionPath}'",
    "${X:-${extensionPath}}",
    "\\${extensionPath}",
    "$${extensionPath}",
    "# it's\n${extensionPath}/x",
    "((${extensionPath}))",
    "trap ${extensionPath}/x EXIT",
]


@pytest.mark.parametrize("command", UNSAFE)
def test_where_quotes_do_not_protect_an_odd_path_is_refused(command: str) -> None:
    assert place_path(command, "/a b") is None
    assert place_path(command, "/ab") == command.replace("${extensionPath}", "/ab")


def test_a_hook_that_cannot_be_made_safe_is_left_out_by_itself(project: Path, extensions: Path, write: Write) -> None:
    path = extensions / "my ext"
    commands = ["sh -c ${extensionPath}/x", "${extensionPath}/y", "sh -c z"]
    group = {"hooks": [{"type": "command", "command": command} for command in commands]}
    install(write, path, {"name": "e"}, json.dumps({"hooks": {"BeforeTool": [group]}}, indent=1))

    loaded = load_settings(project)

    registry = HookRegistry(Config.load(project))
    registry.initialize()
    assert [(hook.config.command, hook.definition.where) for hook in registry.get_all_hooks()] == [
        (f"'{path}'/y", "hooks.BeforeTool[0].hooks[1]"),
        ("sh -c z", "hooks.BeforeTool[0].hooks[2]"),
    ]
    assert registry.problems == []
    [problem] = loaded.problems
    assert (problem.line, problem.column) == (8, 18)
    assert "this hook is skipped" in problem.message


def test_the_problems_of_other_hooks_keep_their_place_next_to_one_that_is_left_out(
    project: Path, extensions: Path, write: Write
) -> None:
    unsafe = {"type": "command", "command": "sh -c ${extensionPath}/x"}
    groups = [unsafe, {"hooks": [unsafe, {"type": "command", "command": "check", "timeout": -1}]}]
    install(write, extensions / "my ext", {"name": "e"}, json.dumps({"hooks": {"BeforeTool": groups}}, indent=1))

    registry = HookRegistry(Config.load(project))
    registry.initialize()

    [problem] = registry.problems
    assert problem.where == "hooks.BeforeTool[1].hooks[1]"
    assert (problem.line, problem.column) == (17, 18)
