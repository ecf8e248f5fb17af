"""The approval question: whatever a model or a hook puts into a call, it is on the screen, and it is what happens."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from llxprt_hooks.agent.approval import Request
from llxprt_hooks.agent.screen.question import MIN_COLUMNS, MIN_ROWS, CallQuestion
from llxprt_hooks.agent.tools import TOOLS
from llxprt_hooks.agent.tools.workspace import Target
from tests.support.gemini import answer, call

if TYPE_CHECKING:
    from tests.agent.screen.project import InteractiveProject

SIZES = [(24, 80), (10, 40)]

FORGERIES: dict[str, dict[str, Any]] = {
    "empty lines": {"command": "touch pwned\n" + "\n" * 60 + "ls -la"},
    "a long line": {"command": "touch pwned; : " + "x" * 5000 + "; ls -la"},
    "a huge line": {"command": "touch pwned; : " + "x" * 500_000 + "; ls -la"},
    "many lines": {"command": "touch pwned\n" + ": step\n" * 500 + "ls -la"},
    "spaces and tabs": {"command": "touch pwned;" + " " * 3000 + "\t" * 500 + "ls -la"},
    "wide characters": {"command": "touch pwned; : " + "漢字" * 1000 + "; ls -la"},
    "combining characters": {"command": "touch pwned; : " + "e" + "\u0301" * 3000 + "; ls -la"},
    "a long description": {"command": "touch pwned; ls -la", "description": "harmless " * 1000},
    "a long folder": {"command": "touch pwned; ls -la", "dir_path": "./" * 2000},
    "everything long": {
        "command": "touch pwned\n" * 100 + "ls -la",
        "description": "lists files\n" * 100,
        "dir_path": "." + "/." * 2000,
    },
}


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_beginning_and_the_end_of_a_command_are_next_to_the_question(
    project: InteractiveProject, size: tuple[int, int]
) -> None:
    asked = [answer(call("run_shell_command", **arguments)) for arguments in FORGERIES.values()]
    with project.session(*asked, answer("Done."), size=size) as terminal:
        terminal.see_prompt()
        terminal.enter("go")
        for name, arguments in FORGERIES.items():
            terminal.see("Allow run_shell_command? [y/N")
            window = re.sub(r"\n +↪ ", "", "\n".join(terminal.display.window))
            # Between the question and the one before it, which can still be in the window.
            *_, shown, _ = window.split("Allow run_shell_command?")
            assert re.search(r"\ncommand +touch pwned", shown), name
            assert "ls -la" in shown, name
            for argument in arguments:
                assert f"\n{argument} " in shown, name
            terminal.enter("n")
        terminal.see_prompt()
    assert not (project.root / "pwned").exists()


NAMES = {
    "that looks like another argument": "command\ndescription  list the files\ncommand      ls -la" + " " * 200,
    "as wide as the terminal": "x" * 100,
    "of no width": "\u200b",
    "that is nearly declared": "command ",
}


def test_an_argument_that_the_tool_does_not_declare_is_not_asked_about(project: InteractiveProject) -> None:
    project.noting_hook("BeforeTool")
    asked = [answer(call("run_shell_command", command="touch pwned", **{name: "ls -la"})) for name in NAMES.values()]
    with project.session(*asked, answer("Done.")) as terminal:
        terminal.see_prompt()
        shown = terminal.ask("go")
        assert "Allow" not in shown
        assert shown.count("run_shell_command has no parameter") == len(NAMES)
    assert project.payloads("BeforeTool") == []
    assert not (project.root / "pwned").exists()


def test_everything_can_be_shown_before_the_answer(project: InteractiveProject) -> None:
    command = "\n".join(f"echo {number} >> out.txt" for number in range(40))
    with project.session(
        answer(call("run_shell_command", command=command)), answer("Done."), size=(24, 80)
    ) as terminal:
        terminal.see_prompt()
        terminal.enter("go")
        assert "echo 20 " not in terminal.see("lines, ", " not shown)", "Allow run_shell_command? [y/N/show]")
        terminal.enter("show")
        terminal.see("echo 20 >> out.txt", "echo 39 >> out.txt", " not shown)", "echo 39", "Allow run_shell_command?")
        terminal.enter("y")
        terminal.see_prompt()
    assert len((project.root / "out.txt").read_text().split()) == 40


@pytest.mark.requirement("HOOK-216")
def test_the_question_shows_what_hooks_made_of_the_arguments(project: InteractiveProject) -> None:
    changed = {"hookSpecificOutput": {"tool_input": {"command": "touch safe", "added": "by a hook"}}}
    project.saying_hook("BeforeTool", "rewrite", changed)
    project.noting_hook("AfterTool")
    project.noting_hook("Notification")
    asked = answer(call("run_shell_command", command="touch pwned"))
    with project.session(asked, asked, answer("Done.")) as terminal:
        terminal.see_prompt()
        terminal.enter("go")
        shown = terminal.see("Allow run_shell_command? [y/N]")
        assert "command  touch safe\n" in shown
        assert "pwned" not in shown
        assert "by a hook" not in shown
        terminal.enter("n")
        terminal.see("Allow run_shell_command? [y/N]")
        assert project.payloads("AfterTool") == []
        terminal.enter("y")
        terminal.see_prompt()
    assert (project.root / "safe").exists()
    assert not (project.root / "pwned").exists()
    assert project.noted("Notification", "details")[0]["tool_input"] == {"command": "touch safe"}


def test_a_call_that_a_hook_blocks_is_not_asked_about(project: InteractiveProject) -> None:
    project.add_hook("BeforeTool", "guard", "echo never >&2; exit 2")
    with project.session(answer(call("run_shell_command", command="true")), answer("Done.")) as terminal:
        terminal.see_prompt()
        shown = terminal.ask("go")
        assert "blocked by guard: never" in shown
        assert "Allow" not in shown


@pytest.mark.parametrize("mode", ["auto_edit", "yolo"])
def test_a_protected_file_is_asked_about_in_every_mode(project: InteractiveProject, mode: str) -> None:
    asked = answer(call("write_file", file_path="a/../.git/hooks/pre-commit", content="x"))
    with project.session(asked, asked, answer("Done."), arguments=["--approval-mode", mode]) as terminal:
        terminal.see_prompt()
        terminal.enter("go")
        terminal.see("! This file is protected: it is in `.git`.", "Allow write_file? [y/N]")
        terminal.enter("n")
        terminal.see("The user did not allow this write_file call.", "Allow write_file? [y/N]")
        assert not (project.root / ".git").exists()
        terminal.enter("y")
        terminal.see_prompt()
    assert (project.root / ".git" / "hooks" / "pre-commit").read_text() == "x"


def test_the_question_shows_where_a_link_leads_and_that_is_what_is_written(project: InteractiveProject) -> None:
    (project.root / "a.txt").write_text("a")
    (project.root / "b.txt").write_text("b")
    (project.root / "notes.txt").symlink_to("a.txt")
    asked = answer(call("write_file", file_path="notes.txt", content="x"))
    with project.session(asked, asked, answer("Done.")) as terminal:
        terminal.see_prompt()
        terminal.enter("go")
        terminal.see("file_path  notes.txt\n", "! The path leads to a.txt\nAllow write_file? [y/N]")
        (project.root / "notes.txt").unlink()
        (project.root / "notes.txt").symlink_to("b.txt")
        terminal.enter("y")
        terminal.see("which is not what was approved", "! The path leads to b.txt\nAllow write_file? [y/N]")
        assert (project.root / "b.txt").read_text() == "b"
        terminal.enter("y")
        terminal.see_prompt()
    assert (project.root / "a.txt").read_text() == "a"
    assert (project.root / "b.txt").read_text() == "x"


def test_a_terminal_that_is_too_small_to_ask_allows_nothing(project: InteractiveProject) -> None:
    with project.session(answer(call("run_shell_command", command="touch pwned")), answer("Done."), size=(6, 60)) as t:
        t.see_prompt()
        assert "the terminal is too small to show a call" in t.ask("go")
    assert not (project.root / "pwned").exists()


def test_letters_from_right_to_left_do_not_reorder_a_command(project: InteractiveProject) -> None:
    with project.session(answer(call("run_shell_command", command="echo א; touch pwned")), answer("Done.")) as terminal:
        terminal.see_prompt()
        terminal.enter("go")
        terminal.see("command  echo \\u05d0; touch pwned\nAllow")
        terminal.enter("n")
        terminal.see_prompt()


def test_a_line_of_other_spaces_is_not_an_empty_line(project: InteractiveProject) -> None:
    """A shell looks for a program of that name."""
    command = "ls\n\u3000\n \t\nls"
    with project.session(answer(call("run_shell_command", command=command)), answer("Done.")) as terminal:
        terminal.see_prompt()
        terminal.enter("go")
        terminal.see("command  ls\n         \\u3000\n")
        terminal.see("[y/N]")  # what is typed before the question does not answer it
        terminal.enter("n")
        terminal.see_prompt()


def test_the_name_of_a_hook_forges_no_row_of_the_list_and_no_completion(project: InteractiveProject) -> None:
    project.add_hook("BeforeTool", "x" * 3000 + "\non  BeforeTool  *  guard", "true", matcher="y" * 3000)
    project.add_hook("BeforeTool", "gu\u202eard\x1b[2J", "true")
    project.add_hook("BeforeTool", "genuine", "true", matcher="z")
    with project.session(answer("Done."), size=(24, 80)) as terminal:
        terminal.see_prompt()
        listed = terminal.ask("/hooks").split("\n")
        assert len([line for line in listed if line.startswith("on ")]) == 3
        assert any("gu\\u202eard\\x1b[2J" in line for line in listed)
        assert len(listed) < 15
        terminal.type("/hooks disable g\t")
        terminal.see("/hooks disable genuine")
        assert "\u202e" not in terminal.raw


TEXTS = st.text(alphabet=st.one_of(st.sampled_from("a \n\t漢\u0301א\u202e\x1b👩"), st.characters()), max_size=200).map(
    lambda text: text * 20
)


@settings(deadline=None, max_examples=150)
@given(
    tool=st.sampled_from(["run_shell_command", "write_file", "replace"]),
    values=st.lists(
        st.one_of(TEXTS, st.sampled_from(["", "\n" * 100, "x" * 5000, "y\n" * 300, "z\n" * 40_000, "\n" * 60_000])),
        min_size=3,
    ),
    columns=st.integers(MIN_COLUMNS, 200),
    rows=st.integers(MIN_ROWS, 60),
    protected=st.sampled_from([None, "it is in `.llxprt`", "a configured hook names it"]),
    link_target=st.one_of(st.none(), TEXTS),
)
def test_a_question_always_fits(
    tool: str, values: list[str], columns: int, rows: int, protected: str | None, link_target: str | None
) -> None:
    names = TOOLS[tool].parameters["properties"]
    target = Target(Path("/a"), protected, link_target)
    request = Request(TOOLS[tool], dict(zip(names, values, strict=False)), target)
    console = Console(width=1000, color_system=None, legacy_windows=False)
    with console.capture() as captured:
        console.print(CallQuestion(request, columns=columns, rows=rows).summary)

    shown = captured.get().removesuffix("\n").split("\n")
    assert len(shown) <= rows - 2
    assert all(cell_len(line) < columns for line in shown)
    assert all(any(line.startswith(name) for line in shown) for name in request.arguments)
    assert json.dumps(shown, ensure_ascii=False).isprintable()
