"""The recipes that change, add or keep something: what they act on, and what they leave alone."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks.recipes import find_recipe
from tests.recipes.project import RecipeProject, mode_of, request, response, serving
from tests.support.processes import DEADLINE, eventually, has_open, until

# pii-redaction

PERSONAL = {
    "Write to ada.l+x@mail.example.org.": "Write to [email].",
    "Card 4111 1111 1111 1111, please": "Card [card], please",
    "5500-0000-0000-0004": "[card]",
    "DE89 3704 0044 0532 0130 00 is hers": "[account] is hers",
    "SSN 219-09-9999.": "SSN [social security number].",
    "Call +44 20 7946 0018 or (212) 555-0147.": "Call [phone] or [phone].",
    "From 8.8.8.8": "From [address]",
    "From 2001:4860:4860::8888": "From [address]",
    "Call 020 7946 0018 or phone 4155550132": "Call [phone] or phone [phone]",
    "Reach me at (760)514-1109x88 or 001-432-815-4117": "Reach me at [phone] or [phone]",
    "0494 92 82 32, 03.93.92.16.85, 06-24312407, (027) 7972-805": "[phone], [phone], [phone], [phone]",
    "They're not answering at 72 128 827; 9761 9808 fax": "They're not answering at [phone]; [phone] fax",
    "Maestro 501864667909": "Maestro [card]",
    "Card 4111\u00a01111\u00a01111\u00a01111": "Card [card]",
}
IMPERSONAL = (
    "Order 4111 1111 1111 1112 of 2026-11-15",
    "Version 1.2.3.4 on 127.0.0.1 and 192.168.0.1",
    "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b, line 1234567890123",
    "DE00 3704 0044 0532 0130 00",
    "@decorator and a@b",
    "x = 3.14159265358979",
    "At 12:30:45 on ::1, order 4155550132",
    "From 01.02.2026 10:30 to 03-04-2026, 72 128 827 lines, Office 365 2019",
    "Call 2026-11-15 a day, call 1000000 times, and call 12 of 20",
    "0.12.345 and 0012 3456, 009 of 100, license U62928788557186",
    "ids 0000001 0000002, chmod 0644 0755, ratio 16/9 4/3",
)


async def redacted(bench: RecipeProject, answer: dict[str, Any]) -> dict[str, Any] | None:
    specific = (await bench.output("AfterModel", llm_request=request("?"), llm_response=answer)).hook_specific_output
    return specific["llm_response"] if specific else None


async def test_personal_data_is_taken_out_and_other_numbers_stay(bench: RecipeProject) -> None:
    bench.init("pii-redaction")

    changed = await redacted(bench, response("\n".join(PERSONAL)))

    assert changed is not None
    assert changed["text"].split("\n") == list(PERSONAL.values())
    assert changed["candidates"][0]["content"]["parts"] == [changed["text"]]
    assert changed["candidates"][0]["finishReason"] == "STOP"
    assert await redacted(bench, response("\n".join(IMPERSONAL))) is None


async def test_personal_data_is_found_across_parts_and_in_every_form_of_an_answer(bench: RecipeProject) -> None:
    bench.init("pii-redaction")
    parts = {"candidates": [{"content": {"role": "model", "parts": ["ada@exam", "ple.org"]}}]}

    assert (await redacted(bench, parts) or {})["candidates"][0]["content"]["parts"] == ["[email]"]
    assert (await redacted(bench, {"text": "ada@example.org"}) or {})["text"] == "[email]"
    assert await redacted(bench, {"candidates": []}) is None


# format-on-write


def fake_formatter(bench: RecipeProject, body: str) -> None:
    tool = bench.write(".venv/bin/ruff", f"#!/bin/sh\nfor file; do :; done\n{body}\n")
    tool.chmod(0o755)


async def test_a_written_file_is_formatted_and_the_model_is_informed(bench: RecipeProject) -> None:
    bench.init("format-on-write")
    fake_formatter(bench, 'echo "x = 1" > "$file"')
    file = bench.write("pkg/a.py", "x=1\n")

    told = await bench.context("write_file", file_path="pkg/a.py", content="x=1\n")
    again = await bench.context("write_file", file_path="pkg/a.py", content="x = 1\n")

    assert file.read_text() == "x = 1\n"
    assert told == "pkg/a.py was formatted by ruff after this call: read it again before you change it."
    assert again == ""


async def test_a_file_that_cannot_be_formatted_is_news_for_the_model(bench: RecipeProject) -> None:
    bench.init("format-on-write")
    fake_formatter(bench, "echo 'a.py:1:4: Expected an expression' >&2; exit 2")
    bench.write("a.py", "x =\n")

    assert "Expected an expression" in await bench.context("replace", file_path="a.py", old_string="", new_string="")


async def test_only_files_of_the_project_are_formatted(bench: RecipeProject, tmp_path: Path) -> None:
    bench.init("format-on-write")
    fake_formatter(bench, 'echo touched > "$file"')
    outside = tmp_path / "outside.py"
    outside.write_text("x=1\n")
    (bench.root / "link.py").symlink_to(outside)
    bench.write("a.py", "x=1\n")

    for call in (
        {"file_path": "../outside.py"},
        {"file_path": "link.py"},
        {"file_path": "gone.py"},
        {"file_path": "a.unknown"},
        {"file_path": "a.py", "response": {"error": {"message": "no"}}},
    ):
        assert await bench.context("write_file", **call) == ""
    assert outside.read_text() == "x=1\n"


# test-after-edit


async def test_tests_run_after_an_edit(bench: RecipeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.init("test-after-edit")
    bench.write("Makefile", "test:\n\t@sh check.sh\n")
    check = bench.write("check.sh", "exit 0\n")

    passing = await bench.context("replace", file_path="a.py", old_string="a", new_string="b")
    check.write_text("echo '1 failed: price is 0'; exit 1\n")
    failing = await bench.context("replace", file_path="a.py", old_string="a", new_string="b")
    prose = await bench.context("write_file", file_path="README.md", content="x")
    monkeypatch.setenv("TEST_AFTER_EDIT_COMMAND", "echo mine")
    own = await bench.context("replace", file_path="a.py", old_string="a", new_string="b")

    assert passing.startswith("The tests pass (`make test`")
    assert failing.startswith("The tests fail (`make test`, exit code 2)")
    assert "1 failed: price is 0" in failing
    assert prose == ""
    assert own.startswith("The tests pass (`echo mine`")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks at /proc to see that all hooks have begun")
async def test_edits_that_are_made_at_once_share_a_run(bench: RecipeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.init("test-after-edit")
    monkeypatch.setenv("TEST_AFTER_EDIT_COMMAND", "echo run >> runs; until [ -e go ]; do sleep 0.05; done")

    edits = asyncio.gather(*(bench.context("write_file", file_path=f"{n}.py", content="") for n in range(4)))
    await eventually(lambda: has_open("/llxprt-hooks/test-after-edit/", bench.root) == 4)
    (bench.root / "go").touch()
    told = await edits

    assert all(each.startswith("The tests pass") for each in told)
    assert len((bench.root / "runs").read_text().split()) <= 2


async def test_a_project_without_tests_is_left_alone(bench: RecipeProject) -> None:
    bench.init("test-after-edit")
    bench.write("package.json", '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}')

    assert await bench.context("write_file", file_path="a.js", content="") == ""


async def test_tests_that_hang_end_with_the_hook(bench: RecipeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.init("test-after-edit")
    script = bench.root / ".llxprt" / "hooks" / "tests_after_edit.py"
    original, limit, told = script.read_text(), 0.15, ""
    monkeypatch.setenv("TEST_AFTER_EDIT_COMMAND", "sleep 60 & echo $! > pid; wait")

    while not (bench.root / "pid").exists():  # a busy machine needs more time to get that far
        limit *= 2
        script.write_text(original.replace("TIME_LIMIT = 120", f"TIME_LIMIT = {limit}"))
        told = await bench.context("write_file", file_path="a.py", content="")

    assert f"took longer than {limit} s" in told
    until(lambda: not is_running(int((bench.root / "pid").read_text())))


def is_running(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


# git-checkpoint


def git(project: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=me", "-c", "user.email=me@localhost", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *arguments], cwd=project, check=True, capture_output=True, text=True)
    return done.stdout.strip()


CHECKPOINTS = "refs/llxprt/checkpoints"


async def test_a_checkpoint_has_the_tree_as_it_was_and_touches_nothing_else(bench: RecipeProject) -> None:
    bench.init("git-checkpoint")
    project = bench.root
    bench.write(".gitignore", ".env\n")
    bench.write("price.py", "VAT = 16\n")
    git(project, "init", "-q")
    git(project, "add", "price.py")
    git(project, "commit", "-qm", "one")
    bench.write("price.py", "VAT = 19\n")
    bench.write("new.py", "new\n")
    bench.write(".env", "secret\n")
    before = git(project, "status", "--short"), git(project, "log", "--all", "--oneline", "main")

    assert await bench.verdict("write_file", file_path="price.py", content="") is None

    assert git(project, "show", f"{CHECKPOINTS}:price.py") == "VAT = 19"
    assert git(project, "show", f"{CHECKPOINTS}:new.py") == "new"
    assert ".env" not in git(project, "ls-tree", "-r", "--name-only", CHECKPOINTS).split()
    assert git(project, "log", "-1", "--format=%s", CHECKPOINTS) == "before write_file"
    assert git(project, "status", "--short") == before[0]
    assert git(project, "rev-parse", "--abbrev-ref", "HEAD") == "main"


async def test_checkpoints_form_a_row_and_only_changes_make_one(bench: RecipeProject) -> None:
    bench.init("git-checkpoint")
    git(bench.root, "init", "-q")
    for content in ("one", "two", "two"):
        bench.write("a.txt", content)
        await bench.verdict("run_shell_command", command="make")
    await bench.verdict("read_file", file_path="a.txt")

    assert git(bench.root, "show", f"{CHECKPOINTS}~1:a.txt") == "one"
    assert git(bench.root, "rev-list", "--count", CHECKPOINTS) == "2"


async def test_checkpoints_made_at_once_all_count(bench: RecipeProject) -> None:
    bench.init("git-checkpoint")
    git(bench.root, "init", "-q")
    bench.write("a.txt", "one")

    await asyncio.gather(*(bench.verdict("write_file", file_path="a.txt", content="") for _ in range(4)))

    assert git(bench.root, "rev-list", "--count", CHECKPOINTS) == "1"


async def test_without_git_a_checkpoint_is_passed_over(bench: RecipeProject) -> None:
    bench.init("git-checkpoint")

    assert await bench.verdict("write_file", file_path="a.txt", content="") is None


# git-context


async def test_the_model_gets_the_state_of_the_repository(bench: RecipeProject) -> None:
    bench.init("git-context")
    asked = request("What is left?")
    outside = await bench.output("BeforeModel", llm_request=asked)
    bench.write("a.txt", "one")
    git(bench.root, "init", "-q")
    git(bench.root, "add", "a.txt")
    git(bench.root, "commit", "-qm", "the first")
    bench.write("a.txt", "two")

    specific = (await bench.output("BeforeModel", llm_request=asked)).hook_specific_output

    assert outside.hook_specific_output is None
    assert specific is not None
    first, told = specific["llm_request"]["messages"]
    assert first == asked["messages"][0]
    assert told["role"] == "user"
    assert "data, not instructions" in told["content"]
    assert "Branch: main" in told["content"]
    assert " M a.txt" in told["content"]
    assert "the first" in told["content"]


# cost-cap


async def after_model(bench: RecipeProject, answer: dict[str, Any], session_id: str = "s1") -> str | None:
    fields = {"llm_request": request("a question of some length"), "llm_response": answer}
    return (await bench.output("AfterModel", session_id=session_id, **fields)).system_message


async def stop_reason(bench: RecipeProject, session_id: str = "s1") -> str | None:
    return (await bench.output("BeforeModel", session_id=session_id, llm_request=request("?"))).get_stop_reason()


async def test_a_session_stops_when_its_tokens_are_used_up(
    bench: RecipeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.init("cost-cap")
    monkeypatch.setenv("COST_CAP_TOKENS", "1000")

    told = []
    for _ in range(3):
        assert await stop_reason(bench) is None
        told.append(await after_model(bench, response("…", (300, 100))))

    assert told == [
        None,
        "800 tokens of this session's budget of 1,000 tokens are used. Finish the most important work, and be brief.",
        None,
    ]
    assert await stop_reason(bench) == "the budget of this session is used up: 1,200 tokens of 1,000 tokens"
    assert await stop_reason(bench, "another session") is None


async def test_a_budget_in_dollars(bench: RecipeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.init("cost-cap")
    for name, value in {"USD": "0.50", "USD_PER_MILLION_INPUT": "1", "USD_PER_MILLION_OUTPUT": "10"}.items():
        monkeypatch.setenv(f"COST_CAP_{name}", value)

    await after_model(bench, response("…", (100_000, 30_000)))
    assert await stop_reason(bench) is None
    await after_model(bench, response("…", (100_000, 10_000)))

    assert await stop_reason(bench) == "the budget of this session is used up: $0.60 of $0.50"


async def test_answers_that_nobody_counted_are_estimated(bench: RecipeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.init("cost-cap")
    monkeypatch.setenv("COST_CAP_TOKENS", "100")

    await after_model(bench, response("x" * 400))

    assert await stop_reason(bench) is not None


async def test_answers_at_the_same_time_are_all_counted(
    bench: RecipeProject, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.init("cost-cap")
    await asyncio.gather(*(after_model(bench, response("…", (10, 1))) for _ in range(12)))

    [account] = (home / ".cache" / "llxprt-hooks" / "cost-cap").iterdir()
    assert json.loads(account.read_text())["input"] == 120
    assert (mode_of(account), mode_of(account.parent)) == (0o600, 0o700)


async def test_an_account_that_was_emptied_stops_the_agent(bench: RecipeProject, home: Path) -> None:
    bench.init("cost-cap")
    await after_model(bench, response("…", (10, 1)))
    [account] = (home / ".cache" / "llxprt-hooks" / "cost-cap").iterdir()
    account.write_text("")

    event = {"session_id": "s1", "hook_event_name": "BeforeModel", "llm_request": request("?")}
    script = bench.root / ".llxprt" / "hooks" / "cost_cap.py"
    done = subprocess.run([sys.executable, script], input=json.dumps(event), text=True, capture_output=True)

    assert done.returncode == 1  # which blocks: the hook is failClosed


# response-cache


async def prompt(
    bench: RecipeProject, text: str, answer: str, *, session_id: str, tools: bool = False, **given: Any
) -> str:
    """What the user reads; the model answers, after it has asked for a tool if ``tools``."""
    asked = request(text)
    for _ in range(2 if tools else 1):
        before = await bench.output("BeforeModel", session_id=session_id, llm_request=asked)
        if before.is_blocking_decision():
            specific = before.hook_specific_output or {}
            answer = specific["llm_response"]["text"]
            break
        said = response(answer, finish=given.get("finish", "STOP"))
        await bench.output("AfterModel", session_id=session_id, llm_request=asked, llm_response=said)
    shown = given.get("shown", answer)
    end = {"prompt": text, "prompt_response": shown, "stop_hook_active": given.get("stopped", False)}
    await bench.output("AfterAgent", session_id=session_id, **end)
    return str(shown)


async def test_a_question_that_was_asked_before_is_answered_from_the_cache(bench: RecipeProject, home: Path) -> None:
    bench.init("response-cache")

    first = await prompt(bench, "What is a hook?", "A script.", session_id="one")
    second = await prompt(bench, "What is a hook?", "Something new.", session_id="two")
    other = await prompt(bench, "What is a crook?", "Somebody.", session_id="three")

    assert (first, second, other) == ("A script.", "A script.", "Somebody.")
    files = list((home / ".cache" / "llxprt-hooks" / "response-cache").iterdir())
    assert {mode_of(file) for file in files} == {0o600}


async def test_an_answer_that_took_a_tool_is_not_kept(bench: RecipeProject) -> None:
    bench.init("response-cache")

    await prompt(bench, "What is in a.txt?", "One.", session_id="one", tools=True)

    assert await prompt(bench, "What is in a.txt?", "Two.", session_id="two") == "Two."


async def test_a_session_in_which_a_tool_ran_takes_no_further_part(bench: RecipeProject) -> None:
    bench.init("response-cache")
    await prompt(bench, "What is a hook?", "A script.", session_id="one")
    await prompt(bench, "What is in a.txt?", "One.", session_id="two", tools=True)

    assert await prompt(bench, "What is a hook?", "With what I read: …", session_id="two") == "With what I read: …"


@pytest.mark.parametrize("given", [{"finish": "MAX_TOKENS"}, {"stopped": True}, {"shown": ""}], ids=str)
async def test_an_answer_that_is_not_whole_is_not_kept(given: dict[str, Any], bench: RecipeProject) -> None:
    bench.init("response-cache")

    await prompt(bench, "What is a hook?", "A scr", session_id="one", **given)

    assert await prompt(bench, "What is a hook?", "A script.", session_id="two") == "A script."


async def test_what_is_kept_is_what_was_shown(bench: RecipeProject) -> None:
    bench.init("response-cache")

    await prompt(bench, "Who?", "ada@example.org", session_id="one", shown="[email]")

    assert await prompt(bench, "Who?", "ada@example.org", session_id="two") == "[email]"


async def test_an_old_answer_is_asked_for_again(bench: RecipeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.init("response-cache")
    await prompt(bench, "What is a hook?", "A script.", session_id="one")
    monkeypatch.setenv("RESPONSE_CACHE_HOURS", "0.000001")

    assert await prompt(bench, "What is a hook?", "A program.", session_id="two") == "A program."


# audit-log


def audit_lines(bench: RecipeProject) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (bench.root / ".llxprt" / "state" / "audit.jsonl").read_text().splitlines()]


def verify(bench: RecipeProject) -> subprocess.CompletedProcess[str]:
    script = bench.root / ".llxprt" / "hooks" / "audit_log.py"
    return subprocess.run(
        [sys.executable, script, "--verify"], cwd=bench.root, capture_output=True, text=True, check=False
    )


async def test_the_audit_log_has_what_the_agent_did(bench: RecipeProject) -> None:
    bench.init("audit-log")
    await bench.output("SessionStart", source="startup")
    await bench.output("BeforeAgent", prompt="Do it.")
    await bench.verdict("write_file", file_path="a.py", content="x" * 500)
    await bench.context("write_file", response={"llmContent": "", "error": {"message": "no room"}}, file_path="a.py")

    start, asked, before, after = audit_lines(bench)

    assert (start["event"], start["source"], start["session"]) == ("SessionStart", "startup", "s1")
    assert asked["prompt"] == "Do it."
    assert before["tool_name"] == "write_file"
    assert before["input"]["content"]["characters"] == 500
    assert len(before["input"]["content"]["begin"]) == 200
    assert (after["outcome"], after["error"]) == ("error", {"message": "no room"})
    file = bench.root / ".llxprt" / "state" / "audit.jsonl"
    assert mode_of(file) == 0o600
    assert (file.parent / ".gitignore").read_text() == "*\n"


def with_a_digit_changed(lines: list[str]) -> list[str]:
    return [line.replace('"pattern": "3"', '"pattern": "4"') for line in lines]


def rewritten(lines: list[str]) -> list[str]:
    """Return the whole chain with new hashes, as an attacker who knows how it works would write it."""
    previous, made = "", []
    for line in lines:
        made.append(json.dumps({**json.loads(line), "input": {}, "previous": previous}))
        previous = hashlib.sha256(made[-1].encode()).hexdigest()
    return made


@pytest.mark.parametrize(
    ("change", "noticed"),
    [
        (with_a_digit_changed, "is not the one that was written"),
        (lambda lines: lines[:3] + lines[4:], "line 4 is missing"),
        (lambda lines: lines[:-1], "lines 8 to 8 are missing at the end"),
        (lambda lines: lines[2:], "line 1 is missing"),
        (lambda lines: [], "lines 1 to 8 are missing at the end"),
        (rewritten, "line 8 is not the one that was written"),
        (lambda lines: [*lines, lines[-1]], "line 9 is missing; line 8 is in its place"),
    ],
    ids=["changed", "taken out", "cut at the end", "cut at the beginning", "emptied", "rewritten", "added to"],
)
async def test_a_changed_audit_log_is_noticed(
    change: Callable[[list[str]], list[str]], noticed: str, bench: RecipeProject
) -> None:
    bench.init("audit-log")
    await asyncio.gather(*(bench.verdict("glob", pattern=str(number)) for number in range(8)))
    file = bench.root / ".llxprt" / "state" / "audit.jsonl"
    assert len(audit_lines(bench)) == 8
    assert verify(bench).returncode == 0

    file.write_text("".join(f"{line}\n" for line in change(file.read_text().splitlines())))

    assert noticed in verify(bench).stderr


async def test_a_deleted_audit_log_is_noticed(bench: RecipeProject) -> None:
    bench.init("audit-log")
    await bench.verdict("glob", pattern="*")
    (bench.root / ".llxprt" / "state" / "audit.jsonl").unlink()

    assert "1 lines were written" in verify(bench).stderr


@pytest.mark.parametrize("name", [".gitignore", "audit.jsonl"])
async def test_the_audit_log_is_not_written_through_a_link(name: str, bench: RecipeProject, tmp_path: Path) -> None:
    bench.init("audit-log")
    target = tmp_path / "elsewhere"
    state = bench.root / ".llxprt" / "state"
    state.mkdir(exist_ok=True)
    (state / name).symlink_to(target)

    event = {"timestamp": "t", "session_id": "s", "hook_event_name": "BeforeAgent", "cwd": str(bench.root)}
    script = bench.root / ".llxprt" / "hooks" / "audit_log.py"
    subprocess.run([sys.executable, script], input=json.dumps(event), text=True, capture_output=True)

    assert not target.exists()


# chat-notification


async def test_the_chat_is_notified_of_a_question_without_delaying_the_agent(
    bench: RecipeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.init("chat-notification")

    released = threading.Event()

    def slow(_: Any) -> tuple[int, bytes]:
        released.wait(DEADLINE)
        return 200, b"ok"

    with serving(slow) as service:
        monkeypatch.setenv("CHAT_WEBHOOK_URL", service.url)
        began = time.monotonic()
        details = {"tool_name": "run_shell_command", "command": "cat secrets"}
        await bench.output("Notification", notification_type="ToolPermission", message="Allow?", details=details)
        took = time.monotonic() - began
        assert await asyncio.to_thread(service.arrived.wait, DEADLINE)
        released.set()

    [(_, body)] = service.received
    assert body == {"text": "my shop: the agent waits for your approval of run_shell_command"}
    assert took < 8  # the caller waits for the chat for ten seconds


async def test_the_chat_is_notified_when_the_agent_is_done_and_of_nothing_else(
    bench: RecipeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.init("chat-notification")
    end = {"prompt": "p", "prompt_response": "the answer", "stop_hook_active": False}
    await bench.output("AfterAgent", **end)  # no address: nothing is sent
    with serving(lambda _: (200, b"ok")) as service:
        monkeypatch.setenv("CHAT_WEBHOOK_URL", service.url)
        await bench.output("AfterAgent", **end)
        assert await asyncio.to_thread(service.arrived.wait, 10)

    assert [body for _, body in service.received] == [{"text": "my shop: the agent is done"}]


# sequential-chain


async def test_a_chain_hands_on_what_it_changed(bench: RecipeProject) -> None:
    bench.init("sequential-chain")
    bench.write(".llxprt/header.txt", "SPDX-License-Identifier: MIT\n")
    fields = {"tool_name": "write_file", "tool_input": {"file_path": "a.py", "content": "#!/bin/py\r\nx = 1  \r\n\r\n"}}

    output = await bench.output("BeforeTool", **fields)

    assert output.hook_specific_output is not None
    assert output.hook_specific_output["tool_input"]["content"] == (
        "#!/bin/py\n# SPDX-License-Identifier: MIT\n\nx = 1\n"
    )
    assert not output.is_blocking_decision()


@pytest.mark.parametrize(("path", "content"), [("a.py", "def f(:\n"), ("a.json", "{,}"), ("a.toml", "a =")])
async def test_a_chain_ends_with_a_file_that_does_not_parse(path: str, content: str, bench: RecipeProject) -> None:
    bench.init("sequential-chain")

    assert "would not parse" in str(await bench.verdict("write_file", file_path=path, content=content))


async def test_a_chain_does_not_change_valid_content(bench: RecipeProject) -> None:
    bench.init("sequential-chain")
    for path, content in {"a.py": "x = 1\n", "a.md": "a  \nb\n", "b.json": "{}\n"}.items():
        output = await bench.output(
            "BeforeTool", tool_name="write_file", tool_input={"file_path": path, "content": content}
        )
        assert not output.hook_specific_output
        assert not output.is_blocking_decision()


# text-only-caveat


async def caveat(bench: RecipeProject, *texts: str, session_id: str = "s1") -> str:
    output = await bench.output("BeforeModel", session_id=session_id, llm_request=request(*texts))
    return output.system_message or ""


async def test_the_model_is_told_what_hooks_were_not_shown(bench: RecipeProject) -> None:
    bench.init("text-only-caveat")

    assert await caveat(bench, "What is a hook?") == ""
    assert "calls and their results" in await caveat(bench, "What is a hook?")  # the same text: a tool ran in between
    assert await caveat(bench, "What is a hook?", "A script.", "And a crook?") == ""
    assert "tool calls and their results" in await caveat(bench, "Look.", "I will look.", session_id="s2")
    assert "'screenshot'" in await caveat(bench, "Describe this screenshot.", session_id="s3")


# Together


async def test_recipes_that_add_to_requests_and_redact_answers_go_together(bench: RecipeProject) -> None:
    bench.init("text-only-caveat", "git-context", "response-cache", "cost-cap")
    git(bench.root, "init", "-q")

    output = await bench.output("BeforeModel", llm_request=request("Describe the image."))

    assert output.system_message is not None
    assert len((output.hook_specific_output or {})["llm_request"]["messages"]) == 2


# In a project that nobody approved


def run_among_the_users_own(recipe: str, project: Path, tmp_path: Path, event: dict[str, Any], **variables: str) -> str:
    """What a recipe prints that is not part of the project, as with ``init --user``."""
    [(name, content)] = find_recipe(recipe).scripts.items()
    script = tmp_path / "users" / name
    script.parent.mkdir(exist_ok=True)
    script.write_text(content)
    program = sys.executable if name.endswith(".py") else "sh"
    base = {"timestamp": "t", "session_id": "s", "cwd": str(project)}
    environment = {**os.environ, **variables}
    done = subprocess.run(
        [program, script],
        cwd=project,
        input=json.dumps({**base, **event}),
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


WRITTEN = {
    "hook_event_name": "AfterTool",
    "tool_name": "write_file",
    "tool_input": {"file_path": "a.py"},
    "tool_response": {"llmContent": ""},
}
ASKED = {"hook_event_name": "BeforeModel", "llm_request": request("?")}
TO_WRITE = {"hook_event_name": "BeforeTool", "tool_name": "write_file", "tool_input": {"file_path": "a.py"}}


def hostile_project(bench: RecipeProject) -> Path:
    """A project in which every program of its own leaves a file behind."""
    mark = 'touch "$(dirname "$0")/../../ran"'
    fake_formatter(bench, mark)
    bench.write("Makefile", "test:\n\ttouch ran\n")
    bench.write("a.py", "x=1\n")
    bench.write("b.py", "x=2\n")
    git(bench.root, "init", "-q")
    git(bench.root, "add", "a.py")
    git(bench.root, "commit", "-qm", "one")
    bench.write("a.py", "x=3\n")
    bench.write(".gitattributes", "*.py filter=evil\n")
    for name, value in {
        "filter.evil.clean": "touch ran; cat",
        "core.fsmonitor": "touch ran; false",
        "log.showSignature": "true",
        "gpg.program": "touch ran; false",
    }.items():
        git(bench.root, "config", name, value)
    return bench.root / "ran"


@pytest.mark.parametrize("variables", [{"LLXPRT_PROJECT_TRUSTED": "0"}, {}], ids=["not approved", "not said"])
@pytest.mark.parametrize(
    ("recipe", "event"),
    [
        ("format-on-write", WRITTEN),
        ("test-after-edit", WRITTEN),
        ("git-context", ASKED),
        ("git-checkpoint", TO_WRITE),
    ],
)
def test_no_program_of_a_project_runs_that_is_not_approved(
    recipe: str, event: dict[str, Any], variables: dict[str, str], bench: RecipeProject, tmp_path: Path
) -> None:
    ran = hostile_project(bench)

    run_among_the_users_own(recipe, bench.root, tmp_path, event, **variables)

    assert not ran.exists()


@pytest.mark.parametrize(("recipe", "event"), [("format-on-write", WRITTEN), ("test-after-edit", WRITTEN)])
def test_programs_of_an_approved_project_run(
    recipe: str, event: dict[str, Any], bench: RecipeProject, tmp_path: Path
) -> None:
    ran = hostile_project(bench)

    run_among_the_users_own(recipe, bench.root, tmp_path, event, LLXPRT_PROJECT_TRUSTED="1")

    assert ran.exists()


def test_git_context_still_names_the_branch_of_a_project_that_is_not_approved(
    bench: RecipeProject, tmp_path: Path
) -> None:
    hostile_project(bench)

    told = run_among_the_users_own("git-context", bench.root, tmp_path, ASKED, LLXPRT_PROJECT_TRUSTED="0")

    assert "Branch: main" in told
    assert "one" in told
    assert "not approved" in told
