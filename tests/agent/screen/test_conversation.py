"""A conversation in a terminal: answers, calls, approval, hooks, commands."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

import pytest

from tests.support.gemini import answer, call
from tests.support.processes import until
from tests.support.terminal import ENTER

if TYPE_CHECKING:
    from tests.agent.screen.project import InteractiveProject


@pytest.mark.requirement("HOOK-125")
def test_answers_are_markdown_and_each_call_is_shown_with_its_outcome(project: InteractiveProject) -> None:
    (project.root / "a.txt").write_text("alpha\n")
    (project.root / "b.txt").write_text("beta\n")
    rewritten = {"hookSpecificOutput": {"tool_input": {"file_path": "b.txt"}}}
    project.saying_hook("BeforeTool", "redirect", rewritten, matcher="read_file")
    project.add_hook("BeforeTool", "no-globs", "echo 'no globs, please' >&2; exit 2", matcher="glob")
    told = {"systemMessage": "only for the model", "hookSpecificOutput": {"additionalContext": "nor is this"}}
    project.saying_hook("AfterTool", "tell", told, matcher="read_file")
    project.saying_hook("AfterTool", "hush", {"suppressOutput": True}, matcher="list_directory")
    asked = answer(
        "I *look*.",
        call("read_file", file_path="a.txt"),
        call("glob", pattern="*"),
        call("list_directory", dir_path="."),
    )
    with project.session(asked, answer("# Found\n\n- one `x`", "\n- two\n"), answer("Bye.")) as terminal:
        assert "4 hooks are enabled" in terminal.see_prompt()
        shown = terminal.ask("look around")
        assert "I look." in shown
        assert '✓ read_file file_path="b.txt"\n  read 1 line' in shown
        assert '⊘ glob pattern="*"\n  blocked by no-globs: no globs, please' in shown
        assert '✓ list_directory dir_path="."\n  the outcome was hidden by a hook' in shown
        assert " • one x\n • two\n" in shown
        assert "for the model" not in shown
        assert "nor is this" not in shown
        assert "Bye." in terminal.ask("bye")


def test_calls_that_write_or_run_are_asked_about_one_at_a_time(project: InteractiveProject) -> None:
    project.noting_hook("Notification")
    (project.root / "b.txt").write_text("beta\n")
    command = "echo ran > ran.txt\n" + "\n".join(f": step {number}" for number in range(25))
    asked = answer(
        call("write_file", file_path="a.txt", content="\n".join(map(str, range(30)))),
        call("run_shell_command", command=command),
        call("replace", file_path="b.txt", old_string="beta", new_string="gamma"),
        call("list_directory", dir_path="."),
    )
    with project.session(asked, answer("So be it."), size=(60, 100)) as terminal:
        terminal.see_prompt()
        terminal.enter("go")
        assert "\ncontent    0\n           1\n" in terminal.see("29\nAllow write_file? [y/N]")
        terminal.enter("y")
        assert "command  echo ran > ran.txt\n" in terminal.see("step 24\nAllow run_shell_command? [y/N]")
        terminal.enter("n")
        terminal.see("old_string  beta\nnew_string  gamma\nAllow replace? [y/N]")
        terminal.enter("")
        shown = terminal.see_prompt()
        assert "So be it." in shown
        assert "The user did not allow this replace call." in shown
    assert (project.root / "a.txt").read_text().endswith("29")
    assert (project.root / "b.txt").read_text() == "beta\n"
    assert not (project.root / "ran.txt").exists()
    tools = ["write_file", "run_shell_command", "replace"]
    until(lambda: len(project.noted("Notification", "details")) == len(tools))
    assert {details["tool_name"] for details in project.noted("Notification", "details")} == set(tools)


def test_with_auto_edit_only_commands_are_asked_about(project: InteractiveProject) -> None:
    asked = answer(call("write_file", file_path="a.txt", content="x"), call("run_shell_command", command="true"))
    with project.session(asked, answer("Done."), arguments=["--approval-mode", "auto_edit"]) as terminal:
        terminal.see_prompt()
        terminal.enter("go")
        assert "Allow write_file" not in terminal.see("Allow run_shell_command? [y/N]")
        terminal.enter("yes")
        assert "exit code 0" in terminal.see_prompt()
    assert (project.root / "a.txt").read_text() == "x"


@pytest.mark.requirement("HOOK-020")
def test_a_turn_that_is_blocked_stopped_or_fails_leaves_the_session_usable(project: InteractiveProject) -> None:
    once = "cat > /dev/null; [ -e ../once ] && exit 0; touch ../once; echo 'not this one' >&2; exit 2"
    project.add_hook("BeforeModel", "once", once)
    project.saying_hook("BeforeTool", "halt", {"continue": False, "stopReason": "enough"}, matcher="glob")
    asked = answer("Let me see.", call("glob", pattern="*"), call("list_directory", dir_path="."))
    with project.session(asked, answer("I am back."), answer("Again.")) as terminal:
        terminal.see_prompt()
        assert terminal.ask("first").strip() == "⊘ the model call was blocked by once: not this one\n\n>"
        stopped = terminal.ask("second")
        assert "Let me see." in stopped
        assert '⊘ glob pattern="*"\n  blocked by halt: enough\n' in stopped
        assert "\n■ stopped by halt: enough\n" in stopped
        assert "I am back." not in stopped
        assert "I am back." in terminal.ask("third")
        assert "Again." in terminal.ask("fourth")
        failed = " ".join(terminal.ask("fifth").split())
        assert re.fullmatch(r"! \S+ has no more recorded answers: 3 were used, .* >", failed)
        assert "/quit" in terminal.ask("/help")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can write managed settings")
def test_managed_hooks_are_marked_and_cannot_be_disabled(project: InteractiveProject) -> None:
    hook = {"type": "command", "name": "guard", "command": "exit 2"}
    project.put("system", {"hooksConfig": {"managed": True}, "hooks": {"BeforeTool": [{"hooks": [hook]}]}})
    with project.session() as terminal:
        terminal.see_prompt()
        assert re.search(r"on, managed +BeforeTool +\* +guard\n", terminal.ask("/hooks"))
        assert "! guard is managed: only the administrator can disable it" in terminal.ask("/hooks disable guard")
        assert re.search(r"on, managed +BeforeTool +\* +guard\n", terminal.ask("/hooks"))


def test_settings_are_read_again_on_request(project: InteractiveProject) -> None:
    project.add_hook("BeforeTool", "guard", "exit 2", matcher="glob")
    glob = answer(call("glob", pattern="*"))
    with project.session(glob, answer("Blocked."), glob, answer("Blocked still.")) as terminal:
        terminal.see_prompt()
        assert "blocked by guard" in terminal.ask("one")
        project.add_hook("BeforeTool", "late", "true", matcher="read_file")
        assert "! the hooks stay as they were:" in terminal.ask("/hooks reload")  # the agent could have written it
        project.approve()
        assert "the settings were read again; 2 hooks are enabled" in terminal.ask("/hooks reload")
        assert re.search(r"on +BeforeTool +read_file +late\n", terminal.ask("/hooks"))
        project.put("project", "{ broken")
        assert "! the hooks stay as they were:" in terminal.ask("/hooks reload")
        assert "blocked by guard" in terminal.ask("two")


@pytest.mark.requirement("HOOK-203")
def test_commands_and_the_events_that_nobody_awaits(project: InteractiveProject) -> None:
    for event in ("SessionStart", "SessionEnd", "BeforeAgent", "AfterAgent", "PreCompress"):
        project.noting_hook(event)
        project.saying_hook(event, f"stop-{event}", {"continue": False, "decision": "deny", "reason": "has no effect"})
    project.add_hook("SessionStart", "slow", "sleep 600", matcher="startup")
    project.add_hook("BeforeTool", "[/guard] x", "exit 2", matcher="glob")
    glob = answer(call("glob", pattern="*"))
    answers = [glob, answer("Blocked."), glob, answer("Not blocked."), answer("Summary."), answer("Fresh.")]
    with project.session(*answers) as terminal:
        terminal.see_prompt()
        listed = terminal.ask("/hooks")
        assert re.search(r"on +BeforeTool +glob +\[/guard\] x\n", listed)
        assert re.search(r"on +SessionStart +startup +slow\n", listed)
        assert "blocked by [/guard] x" in terminal.ask("one")
        assert "[/guard] x is disabled" in terminal.ask("/hooks disable [/guard] x")
        assert re.search(r"off +BeforeTool +glob +\[/guard\] x\n", terminal.ask("/hooks list"))
        assert "blocked by" not in terminal.ask("two")
        assert "[/guard] x is enabled" in terminal.ask("/hooks enable [/guard] x")
        assert "! no hook is called nobody" in terminal.ask("/hooks enable nobody")
        assert "! usage: /hooks" in terminal.ask("/hooks switch")
        assert "! unknown command" in terminal.ask("/nothing")
        assert "/compress" in terminal.ask("/help")
        assert "the conversation was replaced with a summary" in terminal.ask("/compress")
        assert "the conversation was cleared" in terminal.ask("/clear")
        assert "nothing to compress yet" in terminal.ask("/compress")
        assert "Fresh." in terminal.ask("three")
        until(lambda: len(project.noted("AfterAgent", "prompt")) == 3)
        assert "has no effect" not in terminal.display.text
    assert project.noted("SessionStart", "source") == ["startup", "compress", "clear"]
    assert project.noted("PreCompress", "trigger") == ["manual"]
    assert project.noted("BeforeAgent", "prompt") == ["one", "two", "three"]
    assert project.noted("AfterAgent", "prompt_response") == ["Blocked.", "Not blocked.", "Fresh."]
    assert project.noted("SessionEnd", "reason")[0] == "clear"


@pytest.mark.requirement("HOOK-125")
def test_answers_are_held_back_for_a_hook_that_may_change_them(project: InteractiveProject) -> None:
    redacted = {"hookSpecificOutput": {"llm_response": {"text": "The key is [redacted]."}}}
    said = json.dumps(redacted)
    project.add_hook("AfterModel", "redact", f"cat > /dev/null; until [ -e ../go ]; do sleep 0.05; done; echo '{said}'")
    with project.session(answer("The key ", "is sesame.")) as terminal:
        terminal.see_prompt()
        terminal.enter("key?")
        terminal.see_flash("waiting for hook redact (AfterModel)")
        (project.folder / "go").touch()
        assert "The key is [redacted]." in terminal.see_prompt()
        assert "waiting" not in terminal.display.text
        assert "sesame" not in terminal.raw


def test_a_hook_that_fails_is_reported_above_the_prompt(project: InteractiveProject) -> None:
    project.add_hook(
        "SessionStart", "broken", "until [ -e ../go ]; do sleep 0.05; done; printf 'a\\033[2Jb' >&2; exit 1"
    )
    with project.session(answer("Fine.")) as terminal:
        terminal.see_prompt()
        terminal.type("half a line")
        terminal.see("half a line")
        (project.folder / "go").touch()
        terminal.see_flash("! SessionStart: hook `broken`")
        terminal.see_flash("a\\x1b[2Jb")
        terminal.type(ENTER)
        terminal.see("> half a line", "Fine.")


def test_a_hook_can_ask_the_user_and_keep_the_conversation(project: InteractiveProject) -> None:
    project.profile = "full"
    project.saying_hook("BeforeTool", "deploys", {"decision": "ask", "reason": "does it look right?"}, matcher="glob")
    project.saying_hook("PreCompress", "keep", {"decision": "deny", "reason": "too early"})
    project.add_hook("BeforeAgent", "no-secrets", "grep -q sesame && { echo 'say no secrets' >&2; exit 2; }; exit 0")
    globbing = answer(call("glob", pattern="*"))
    with project.session(globbing, answer("Allowed."), globbing, answer("Denied.")) as terminal:
        terminal.see_prompt()
        assert "the prompt was refused by no-secrets: say no secrets" in terminal.ask("open sesame")
        terminal.enter("one")
        assert "! deploys asks: does it look right?" in terminal.see("Allow glob? [y/N]")
        terminal.enter("y")
        assert "Allowed." in terminal.see_prompt()
        terminal.enter("two")
        terminal.see("Allow glob? [y/N]")
        terminal.enter("n")
        refused = terminal.see_prompt()
        assert "blocked by deploys: does it look right? (the answer was no)" in refused
        assert "the conversation was not compressed: too early" in terminal.ask("/compress")
