"""No tool reaches anything outside the working directory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import Config
from llxprt_hooks.agent.tools import Workspace, protection, search
from llxprt_hooks.agent.tools.messages import ToolFailure
from llxprt_hooks.agent.tools.search import walk
from llxprt_hooks.agent.tools.workspace import Target
from tests.agent.tools.calls import SECRET, call, fail, succeed

if TYPE_CHECKING:
    from tests.support.project import Project

Escape = Callable[[Path, Path], str]


def _link(link: Path, target: Path | str) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)


def _by_dots(root: Path, outside: Path) -> str:
    return "../outside/secret.txt"


def _by_dots_through_a_folder(root: Path, outside: Path) -> str:
    (root / "sub").mkdir()
    return "sub/../../outside/secret.txt"


def _by_dots_through_nothing(root: Path, outside: Path) -> str:
    return "not/there/../../../outside/secret.txt"


def _by_absolute_path(root: Path, outside: Path) -> str:
    return str(outside / "secret.txt")


def _by_absolute_path_with_dots(root: Path, outside: Path) -> str:
    return f"{root}/../outside/secret.txt"


def _by_sibling_with_the_same_beginning(root: Path, outside: Path) -> str:
    sibling = root.with_name(root.name + "-other")
    sibling.mkdir()
    (sibling / "secret.txt").write_text(SECRET)
    return f"{sibling}/secret.txt"


def _by_link(root: Path, outside: Path) -> str:
    _link(root / "link", outside / "secret.txt")
    return "link"


def _by_relative_link(root: Path, outside: Path) -> str:
    _link(root / "sub" / "link", "../../outside/secret.txt")
    return "sub/link"


def _by_link_to_a_link(root: Path, outside: Path) -> str:
    _link(root / "second", outside / "secret.txt")
    _link(root / "first", "second")
    return "first"


def _by_link_to_a_folder(root: Path, outside: Path) -> str:
    _link(root / "sub" / "link", outside)
    return "sub/link/secret.txt"


def _by_link_and_dots(root: Path, outside: Path) -> str:
    (outside / "deep").mkdir()
    _link(root / "link", outside / "deep")
    return "link/../secret.txt"


def _by_dangling_link(root: Path, outside: Path) -> str:
    _link(root / "link", outside / "new.txt")
    return "link"


def _by_dangling_link_to_a_folder(root: Path, outside: Path) -> str:
    _link(root / "link", outside / "new")
    return "link/new.txt"


def _by_the_file_system_root(root: Path, outside: Path) -> str:
    return "/"


def _by_the_parent(root: Path, outside: Path) -> str:
    return ".."


ESCAPES: list[Escape] = [
    _by_dots,
    _by_dots_through_a_folder,
    _by_dots_through_nothing,
    _by_absolute_path,
    _by_absolute_path_with_dots,
    _by_sibling_with_the_same_beginning,
    _by_link,
    _by_relative_link,
    _by_link_to_a_link,
    _by_link_to_a_folder,
    _by_link_and_dots,
    _by_dangling_link,
    _by_dangling_link_to_a_folder,
    _by_the_file_system_root,
    _by_the_parent,
]

CALLS: dict[str, dict[str, Any]] = {
    "read_file": {"file_path": "{}"},
    "write_file": {"file_path": "{}", "content": "overwritten"},
    "replace": {"file_path": "{}", "old_string": SECRET, "new_string": "overwritten"},
    "replace (new)": {"file_path": "{}", "old_string": "", "new_string": "overwritten"},
    "list_directory": {"dir_path": "{}"},
    "glob": {"pattern": "{}/*"},
    "search_file_content": {"pattern": "secret", "dir_path": "{}"},
    "run_shell_command": {"command": "ls; cat secret.txt", "dir_path": "{}"},
}


def _tree(folder: Path) -> dict[str, str]:
    return {str(path): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("tool", CALLS)
@pytest.mark.parametrize("escape", ESCAPES, ids=lambda escape: escape.__name__.strip("_"))
async def test_no_way_out(workspace: Workspace, root: Path, outside: Path, escape: Escape, tool: str) -> None:
    path = escape(root, outside)
    before = _tree(outside)
    arguments = {name: value.replace("{}", path) for name, value in CALLS[tool].items()}

    message = await fail(workspace, tool.split()[0], **arguments)

    assert "outside the working directory" in message
    assert f"`{workspace.root}`" in message
    assert SECRET not in message
    assert _tree(outside) == before


@pytest.mark.parametrize("tool", CALLS)
async def test_a_nul_character_is_reported(workspace: Workspace, tool: str) -> None:
    arguments = {name: value.replace("{}", "a\0b") for name, value in CALLS[tool].items()}

    assert "contains a NUL character" in await fail(workspace, tool.split()[0], **arguments)


@pytest.mark.parametrize("tool", CALLS)
async def test_an_impossible_path_is_reported(workspace: Workspace, tool: str) -> None:
    arguments = {name: value.replace("{}", "a\ud800b") for name, value in CALLS[tool].items()}

    assert "is not valid Unicode" in await fail(workspace, tool.split()[0], **arguments)


@pytest.mark.parametrize(
    "path",
    ["sub/a.txt", "./sub//a.txt", "{}/sub/a.txt", "sub/../sub/a.txt", "not/../sub/a.txt", "{}/../work/sub/a.txt"],
)
async def test_every_path_to_the_inside_is_fine(workspace: Workspace, root: Path, path: str) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "a.txt").write_text("inside")

    assert await succeed(workspace, "read_file", file_path=path.format(root)) == "inside"


async def test_a_root_that_is_a_link_is_fine_under_both_names(tmp_path: Path, root: Path) -> None:
    (root / "a.txt").write_text("inside")
    _link(tmp_path / "alias", root)
    workspace = Workspace(tmp_path / "alias")

    for path in ("a.txt", str(tmp_path / "alias" / "a.txt"), str(root / "a.txt")):
        assert await succeed(workspace, "read_file", file_path=path) == "inside"
    assert await succeed(workspace, "glob", pattern=f"{tmp_path}/alias/*.txt") == "a.txt"


async def test_links_that_stay_inside_are_followed(workspace: Workspace, root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "a.txt").write_text("old")
    _link(root / "file", "sub/a.txt")
    _link(root / "folder", "sub")

    assert await succeed(workspace, "read_file", file_path="file") == "old"
    await succeed(workspace, "write_file", file_path="folder/a.txt", content="new")
    assert (root / "file").is_symlink()
    assert (root / "sub" / "a.txt").read_text() == "new"


async def test_writing_through_a_dangling_link_inside_creates_its_target(workspace: Workspace, root: Path) -> None:
    _link(root / "link", "sub/new.txt")

    assert "`sub/new.txt`" in await succeed(workspace, "write_file", file_path="link", content="x")
    assert (root / "link").is_symlink()
    assert (root / "sub" / "new.txt").read_text() == "x"


async def test_links_in_a_circle_are_reported(workspace: Workspace, root: Path) -> None:
    _link(root / "a", "b")
    _link(root / "b", "a")

    for path in ("a", "a/../../outside/secret.txt", "a/x"):
        message = await fail(workspace, "read_file", file_path=path)
        assert SECRET not in message


def test_a_link_slipped_in_after_the_check_is_not_followed(workspace: Workspace, root: Path, outside: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "secret.txt").write_text("inside")
    file, folder = workspace.locate("sub/secret.txt"), workspace.locate("sub")

    (root / "sub" / "secret.txt").unlink()
    _link(root / "sub" / "secret.txt", outside / "secret.txt")
    _cannot_be_used(workspace, file)

    (root / "sub" / "secret.txt").unlink()
    (root / "sub").rmdir()
    _link(root / "sub", outside)
    _cannot_be_used(workspace, file)
    with pytest.raises(ToolFailure):
        workspace.entries(folder)
    assert (outside / "secret.txt").read_text() == SECRET
    assert os.listdir(outside) == ["secret.txt"]


def _cannot_be_used(workspace: Workspace, file: Path) -> None:
    with pytest.raises(ToolFailure):
        workspace.read(file, 100)
    with pytest.raises(ToolFailure):
        workspace.write(file, b"overwritten")


def test_no_descriptor_is_left_open(workspace: Workspace, root: Path) -> None:
    (root / "deep" / "er").mkdir(parents=True)
    before = sorted(os.listdir("/dev/fd"))

    workspace.write(workspace.locate("deep/er/a.txt"), b"x")
    workspace.read(workspace.locate("deep/er/a.txt"), 1)
    workspace.entries(workspace.locate("deep"))
    for path in ("deep/not/a.txt", "deep/er", ".", "deep/er/a.txt/b"):
        with pytest.raises(ToolFailure):
            workspace.read(workspace.locate(path), 1)
    for path in ("deep", "deep/er/a.txt/b"):
        with pytest.raises(ToolFailure):
            workspace.write(workspace.locate(path), b"x")

    assert sorted(os.listdir("/dev/fd")) == before


async def test_listing_and_finding_show_no_more_of_links_than_their_names(
    workspace: Workspace, root: Path, outside: Path
) -> None:
    _link(root / "out", outside)
    _link(root / "secret.txt", outside / "secret.txt")
    (root / "a.txt").write_text("no s-e-c-r-e-t")

    assert await succeed(workspace, "list_directory", dir_path=".") == "a.txt\nout\nsecret.txt"
    assert await succeed(workspace, "glob", pattern="**/*") == "a.txt"
    assert (await succeed(workspace, "search_file_content", pattern="secret")).startswith("No line matches")


async def test_a_named_pipe_does_not_block(workspace: Workspace, root: Path) -> None:
    os.mkfifo(root / "pipe")

    assert "not a regular file" in await fail(workspace, "read_file", file_path="pipe")
    assert "not a regular file" in await fail(workspace, "write_file", file_path="pipe", content="x")
    assert (await succeed(workspace, "search_file_content", pattern="x")).startswith("No line matches")
    assert (await succeed(workspace, "glob", pattern="*")).startswith("No file matches")


async def test_names_cannot_forge_lines(workspace: Workspace, root: Path) -> None:
    (root / "a\nb\x1b[31m").write_text("x")

    assert await succeed(workspace, "list_directory", dir_path=".") == "a\\nb\\x1b[31m"
    assert "\n" not in await fail(workspace, "read_file", file_path="no\nsuch")
    result = await call(workspace, "read_file", file_path="a\nb\x1b[31m")
    assert result.return_display == "read 1 line of a\\nb\\x1b[31m"


async def test_names_cannot_hide_or_reorder_text(workspace: Workspace, root: Path) -> None:
    (root / "a\u202etxt.sh\u200b\u2028\U000e0041").write_text("x")
    shown = "a\\u202etxt.sh\\u200b\\u2028\\U000e0041"

    assert await succeed(workspace, "list_directory", dir_path=".") == shown
    assert await succeed(workspace, "glob", pattern="*") == shown
    assert "\\u202e" in await fail(workspace, "read_file", file_path="no\u202esuch")


async def test_a_name_with_an_unusual_space_can_be_repeated(workspace: Workspace, root: Path) -> None:
    (root / "Screenshot at 1.00\u202fPM.txt").write_text("x")

    listed = await succeed(workspace, "list_directory", dir_path=".")
    assert await succeed(workspace, "read_file", file_path=listed) == "x"


async def test_search_does_not_follow_a_folder_that_becomes_a_link(
    workspace: Workspace, root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("sub", "other", "other/inner"):
        (root / folder).mkdir()
        (root / folder / "secret.txt").write_text("inside")

    def walk_and_swap(*arguments: Any) -> list[Path]:
        found = list(walk(*arguments))
        for folder in ("sub", "other"):
            (root / folder).rename(outside.parent / folder)
            _link(root / folder, outside)
        return found

    monkeypatch.setattr(search, "walk", walk_and_swap)

    assert (await succeed(workspace, "search_file_content", pattern=".")).startswith("No line matches")


def test_a_protected_file_is_recognized_when_it_is_written(workspace: Workspace, root: Path) -> None:
    """Between the check of a call and its write, a link or a folder can be replaced."""
    (root / ".git").mkdir()
    (root / "sub").mkdir()
    place = workspace.locate("sub/config")
    assert workspace.target("sub/config") == Target(place, None, None)

    (root / "sub").rmdir()
    (root / ".git").rename(root / "sub")
    (root / ".git").symlink_to("sub")
    with pytest.raises(ToolFailure, match="is protected"):
        workspace.write(place, b"x")
    with pytest.raises(ToolFailure, match="not what was approved"):
        workspace.approving(root / "other").write(place, b"x")
    assert os.listdir(root / "sub") == []

    workspace.approving(place).write(place, b"x")
    assert os.listdir(root / "sub") == ["config"]


NAMED = {
    ("make test",): [],
    ("git diff --stat", "npm run build", "pytest tests -q"): [],
    ("make test", "python3 hooks/x.py"): ["hooks/x.py", "hooks/json.py"],
    ("cd hooks && ./new",): ["hooks/new", "new"],
    ("node lint",): ["lint", "lint.js", "lint/index.js"],
    ("python3 -m lint",): ["lint.py", "lint/__init__.py", "lint/__main__.py", "json.py"],
    ("python3 -m hooks.lint",): ["hooks/lint.py", "hooks/__init__.py", "hooks/lint/__main__.py", "json.py"],
    ("n=test; sh $n.sh",): ["test", "test.sh"],
    ("curl https://example.com/test && npm run 'test'",): [],
    ("make lint > lint.py",): [],
    ("sh test",): ["test"],
    ("hooks/x.py --rules rules.json counter.txt",): ["hooks/x.py", "rules.json", "hooks/json.py"],
}


@pytest.mark.parametrize(("commands", "paths"), NAMED.items())
def test_what_an_approval_covers_is_protected_and_nothing_else(
    root: Path, commands: tuple[str, ...], paths: list[str]
) -> None:
    """Else a hook that runs ``make test`` would protect a ``test.py`` that has nothing to do with it."""
    (root / "hooks").mkdir()
    for name in ("test", "test.py", "test.sh", "hooks/x.py", "rules.json"):
        (root / name).write_text("")

    candidates = {
        *("test", "test.py", "test.js", "test.sh", "lint", "lint.sh", "make", "npm", "git", "diff", "build/index.js"),
        *("new.py", "json.py", "hooks/json.py", "tests/__init__.py", "counter.txt", "rules.json", *paths),
    }

    assert {path for path in candidates if _protection(_guarded(root, *commands), path)} == set(paths)


INSTALLED = [
    (".venv/lib/python3.11/site-packages/a.pth", True),
    (".venv/bin/ruff", True),
    ("env/deep/x.py", True),
    ("elsewhere/pyvenv.cfg", True),
    ("web/node_modules/.bin/eslint", True),
    ("WEB/Node_Modules/.BIN/new", True),
    ("bin/tool", True),
    ("bin/data/x.txt", False),
    ("web/node_modules/left-pad/index.js", False),
    ("src/main.py", False),
]


@pytest.mark.parametrize(("path", "protected"), INSTALLED)
def test_what_decides_which_program_a_hook_starts_is_protected(
    root: Path, monkeypatch: pytest.MonkeyPatch, path: str, protected: bool
) -> None:
    for folder in (".venv", "env"):
        (root / folder).mkdir()
        (root / folder / "pyvenv.cfg").write_text("")
    (root / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{root / 'bin'}:{os.environ['PATH']}")

    assert bool(_protection(_guarded(root, "ruff check"), path)) is protected


def test_this_python_and_this_package_are_protected(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protection, "_OWN_FOLDERS", [root / "own", root])

    assert _protection(_guarded(root), "own/lib/x.py")
    assert not _protection(_guarded(root), "x.py")


def test_a_command_that_could_mean_any_name_protects_all_files(root: Path) -> None:
    assert _protection(_guarded(root, "{a,b}" * 12), "anything")


def _guarded(root: Path, *commands: str) -> Workspace:
    hooks = {"BeforeTool": [{"hooks": [{"type": "command", "command": command} for command in commands]}]}
    return Workspace(root, Config(working_dir=root, hooks=hooks, enable_hooks=True))


def _protection(workspace: Workspace, path: str) -> str | None:
    target = workspace.target(path)
    return target.protected if target else None


def test_after_a_reload_the_files_of_the_new_hooks_are_protected(sandbox: Project) -> None:
    sandbox.configure(level="user", BeforeTool="./old.sh")
    config = Config.load(sandbox.root)
    workspace = Workspace(sandbox.root, config)
    assert [_protection(workspace, name) for name in ("old.sh", "new.sh")] == [
        "a configured hook runs or reads it",
        None,
    ]

    sandbox.configure(level="user", BeforeTool="./new.sh")
    config.reload()

    assert [_protection(workspace, name) for name in ("old.sh", "new.sh")] == [
        None,
        "a configured hook runs or reads it",
    ]
