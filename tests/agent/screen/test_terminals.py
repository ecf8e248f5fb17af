"""Terminals of all kinds, and all that can be typed into them or written to them."""

from __future__ import annotations

import re
import stat
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.support.gemini import answer, call
from tests.support.processes import until
from tests.support.terminal import ALT_ENTER, ENTER, UP

if TYPE_CHECKING:
    from tests.agent.screen.project import InteractiveProject

TITLE = "\x1b]0;title\x07"


def test_a_narrow_terminal_without_colour(project: InteractiveProject) -> None:
    project.add_hook("BeforeTool", "guard", "echo 'files that are this important are not for you' >&2; exit 2")
    asked = answer(call("read_file", file_path="a/rather/long/path/to/some/file.txt"))
    code = "```python\nvalue = function_of(one, two, three)\n```\n"
    with project.session(asked, answer("Words " * 20, "\n\n", code), size=(12, 40), NO_COLOR="1") as terminal:
        terminal.see_prompt()
        shown = terminal.ask("read it")
        assert "  blocked by guard: files that are this\n  important are not for you\n" in shown
        assert "Words Words Words Words Words Words\n" in shown
        assert " value = function_of(one, two, three)\n" in shown
        assert "/hooks enable NAME   enable it again\n" in terminal.ask("/help")
        assert all(len(line) <= 40 for line in terminal.display.text.split("\n"))
        assert not re.search(r"\x1b\[[0-9;]*\b(?:3[0-9]|4[0-9]|9[0-7])m", terminal.raw)


def test_a_dumb_terminal(project: InteractiveProject) -> None:
    project.add_hook("BeforeTool", "slow", "until [ -e ../go ]; do sleep 0.05; done", matcher="write_file")
    asked = answer("I *write*.", call("write_file", file_path="a.txt", content="x"))
    with project.session(asked, answer("- one\n- two\n"), TERM="dumb") as terminal:
        terminal.see(">")
        terminal.enter("go")
        terminal.see("I write.", "waiting for hook slow (BeforeTool)")
        (project.folder / "go").touch()
        terminal.see("file_path  a.txt", "Allow write_file? [y/N]")
        terminal.enter("y")
        terminal.see("✓ write_file", " • one\n • two\n", ">")
        terminal.enter("/quit")
        assert terminal.status() == 0
        assert "\x1b" not in terminal.raw


def test_no_text_commands_the_terminal(project: InteractiveProject) -> None:
    evil = f"{TITLE}\x1b[2J\x9b31m\u202egnirts\r"
    command = "until [ -e ../go ]; do sleep 0.05; done; printf '\\033]0;reason\\007' >&2; exit 2"
    project.add_hook("BeforeTool", evil, command, matcher="glob")
    (project.root / "a\x1b[2Jb").write_text("")
    asked = answer(
        f"Says {evil}",
        f"<http://x.y/%1b]0;link%07> and `{evil}` and &#x1b;]0;entity&#7;\n\n```\n{evil}\n```\n",
        call("glob", pattern=evil),
        call("read_file", file_path=evil),
        call(evil, **{evil: evil}),
        call("run_shell_command", command=f"printf '{TITLE}'", description=evil),
    )
    with project.session(asked, answer("Done \ud800.")) as terminal:
        terminal.see_prompt()
        terminal.enter("go")
        assert "\\x1b]0;title\\x07" in terminal.see("Allow run_shell_command? [y/N]")
        terminal.enter("y")
        terminal.see_flash("waiting for hook \\x1b]0;title\\x07\\x1b[2J\\x9b31m\\u202egnirts (BeforeTool)")
        (project.folder / "go").touch()
        shown = terminal.see_prompt()
        assert ": \\x1b]0;reason\\x07" in shown
        assert "Done \\ud800." in shown
        terminal.ask("/hooks")
        terminal.enter(f"/hooks disable \x1b[200~{TITLE}\x1b[201~")
        terminal.see("! no hook is called \\x1b]0;title\\x07")
        assert "\x1b]" not in terminal.raw
        assert "\x1b[2J" not in terminal.raw
        assert not {"\x07", "\x9b", "\u202e"} & set(terminal.raw)


INVISIBLE = {"\u200b", "\u200f", "\u061c", "\u2028", "\u00ad", "\U000e0041", "\u202e", "\u200d", "\u3164", "\xa0"}


def test_a_question_shows_every_character_of_what_is_allowed(project: InteractiveProject) -> None:
    hidden = "".join(sorted(INVISIBLE))
    asked = answer(
        call("run_shell_command", command=f"true a{hidden}b\r", description=f"c{hidden}d"),
        call("write_file", file_path=f"e{hidden}f", content=f"g{hidden}h\r\n"),
    )
    with project.session(asked, answer("Done.")) as terminal:
        terminal.see_prompt()
        terminal.enter("go")
        first = terminal.see("Allow run_shell_command? [y/N]")
        terminal.enter("n")
        second = terminal.see("Allow write_file? [y/N]")
        terminal.enter("n")
        terminal.see("Done.")

        shown = r"\xa0\xad\u061c\u200b\u200d\u200f\u2028\u202e\u3164\U000e0041"
        assert f"true a{shown}b\\r" in first
        assert f"c{shown}d" in first
        assert f"e{shown}f" in second
        assert f"g{shown}h\\r" in second
        assert not INVISIBLE & set(terminal.raw)


@pytest.mark.parametrize("rows", [24, 6])
def test_an_answer_taller_than_the_window_is_all_there(project: InteractiveProject, rows: int) -> None:
    code = "".join(f"line_{number} = {number}\n" for number in range(60))
    items = "".join(f"{number}. item {number}\n" for number in range(1, 40))
    pieces = ["Code:\n\n```python\n", *code.splitlines(keepends=True), "```\n\n", items, "\nThe end."]
    with project.session(answer(*pieces), size=(rows, 60)) as terminal:
        terminal.see_prompt()
        shown = terminal.ask("long")
        assert [line for line in shown.splitlines() if "line_" in line] == [f" {line}" for line in code.splitlines()]
        assert [int(line.split()[-1]) for line in shown.splitlines() if "item" in line] == list(range(1, 40))
        assert shown.count("The end.") == 1


def test_keys_that_were_typed_before_a_question_do_not_answer_it(project: InteractiveProject) -> None:
    project.add_hook("BeforeModel", "slow", "until [ -e ../go ]; do sleep 0.05; done")
    project.noting_hook("BeforeAgent")
    asked = answer(call("write_file", file_path="a.txt", content="x"))
    with project.session(asked, answer("Well."), answer("Next.")) as terminal:
        terminal.see_prompt()
        terminal.type("go\ry\ry\r")
        terminal.see_flash("waiting for hook slow (BeforeModel)")
        terminal.type("y\ry\r")
        (project.folder / "go").touch()
        terminal.see("Allow write_file? [y/N]")
        terminal.enter("")
        terminal.see("Well.")
        terminal.see_prompt()
        assert not (project.root / "a.txt").exists()
        assert "Next." in terminal.ask("next")


def test_keys_typed_during_work_are_kept_for_the_prompt(project: InteractiveProject) -> None:
    project.add_hook("BeforeModel", "slow", "until [ -e ../go ]; do sleep 0.05; done")
    with project.session(answer("One."), answer("Two.")) as terminal:
        terminal.see_prompt()
        terminal.enter("first")
        terminal.see_flash("waiting for hook slow (BeforeModel)")
        terminal.type("second\r")
        (project.folder / "go").touch()
        terminal.see("One.", "> second", "Two.")
        assert terminal.display.text.count("second") == 1


def test_lines_are_edited_pasted_and_remembered(project: InteractiveProject) -> None:
    project.noting_hook("BeforeAgent")

    def prompts() -> list[str]:
        return project.noted("BeforeAgent", "prompt")

    def has_seen(count: int) -> bool:
        return len(prompts()) == count

    with project.session(*[answer("Ok.")] * 5) as terminal:
        terminal.see_prompt()
        terminal.type("\x1b[200~/pasted\r\nsecond line\n\x1b[201~")
        terminal.see("second line")
        lines: list[str | bytes] = [ENTER, f"one{ALT_ENTER}two{ENTER}", b"wor\xe9ld\x1b[D\x1b[D\x1b[Dx\r"]
        for number, keys in enumerate(lines, start=1):
            terminal.type(keys)
            terminal.see("Ok.")
            terminal.see_prompt()
            until(partial(has_seen, number))  # nobody waits for this hook: the next run may be faster
        terminal.type("/he\t")
        terminal.see("/help")
        terminal.enter("")
        terminal.see("list the hooks")
        terminal.see_prompt()
        terminal.enter("/quit")
        assert terminal.status() == 0
    history = project.home / ".llxprt" / "prompt_history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    history.chmod(0o644)
    with project.session(answer("Ok.")) as terminal:
        terminal.see_prompt()
        terminal.type(UP * 4)
        terminal.see("one\n  two")
        terminal.type(ENTER)
        terminal.see("Ok.")
        until(partial(has_seen, 4))
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert prompts() == ["/pasted\nsecond line", "one\ntwo", "worx?ld", "one\ntwo"]
