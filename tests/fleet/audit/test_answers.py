"""A hook's question in the log, and in the audit trail: who asked about what, the answer, and how long it took."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks import Answered, Approval, ApprovalRequest, Config, HookLog, Hooks, NobodyToAsk, ask
from llxprt_hooks.commands.inspect.timeline import Timeline
from llxprt_hooks.commands.log import LogFilter, LogReader, read_log
from llxprt_hooks.core.calls.approval import LEFT_TO_PROGRAM
from llxprt_hooks.fleet.audit.spool import spool_files
from llxprt_hooks.fleet.audit.trail import AuditTrail
from llxprt_hooks.settings.audit import AuditRule

if TYPE_CHECKING:
    from tests.support.cli import Call, CliProject


@pytest.fixture(autouse=True)
def project(world: CliProject, monkeypatch: pytest.MonkeyPatch) -> Path:
    world.enter(monkeypatch)
    return world.root


def answered() -> list[dict[str, Any]]:
    return [each for each in LogReader(where=LogFilter(answers=True)).read() if "answer" in each]


def asking(observer: Any, approver: Any = None) -> Hooks:
    hooks = Hooks(Config(profile="full", observer=observer, approver=approver, metadata={"team": "web"}))
    hooks.on("BeforeTool", lambda payload: ask("is it tested?"), name="deploys")
    return hooks


async def run(hooks: Hooks) -> Any:
    return (await hooks.run_tool("deploy", {"to": "staging"}, lambda arguments: "deployed")).llm_content


def raises(error: Exception) -> Callable[[ApprovalRequest], bool]:
    def approver(request: ApprovalRequest) -> bool:
        raise error

    return approver


@pytest.mark.parametrize(
    ("approver", "answers", "refusal"),
    [
        (lambda request: True, [Answered.APPROVED] * 2, None),
        (lambda request: Approval.FOR_SESSION, [Answered.FOR_SESSION, Answered.EARLIER], None),
        (lambda request: "yes", [Answered.DENIED] * 2, "the answer was no"),
        (None, [Answered.NOBODY] * 2, "nobody could be asked: the program has no approver"),
        (raises(NobodyToAsk("lunch")), [Answered.NOBODY] * 2, "nobody could be asked: lunch"),
        (raises(OSError("gone")), [Answered.FAILED] * 2, "nobody could be asked: the approver failed: gone"),
    ],
    ids=["yes", "for the session", "no", "no approver", "nobody", "failed"],
)
async def test_the_log_has_the_answer_to_each_question(
    approver: Any, answers: list[Answered], refusal: str | None
) -> None:
    hooks = asking(HookLog("/a/project"), approver)
    with hooks.session("s1"):
        results = [await run(hooks) for _ in answers]

    assert results == [f"is it tested? ({refusal})" if refusal else "deployed"] * 2
    found = answered()
    assert [each["answer"] for each in found] == answers
    assert [each["id"] for each in read_log()] == [each["execution_id"] for each in found]
    for each in found:
        assert (each["hook"], each["tool_name"], each["reason"]) == ("deploys", "deploy", "is it tested?")
        assert (each["session_id"], each["project"], each["metadata"]) == ("s1", "/a/project", {"team": "web"})
        assert (each["blocked"], each["refusal"]) == (refusal is not None, refusal)
        assert each["failed"] == (each["answer"] == Answered.FAILED)
        assert each["duration_ms"] >= 0
    assert len({each["digest"] for each in found}) == 1


class Suspended(Exception):
    pass


@pytest.mark.parametrize("own", [raises(Suspended()), lambda request: LEFT_TO_PROGRAM])
async def test_a_framework_that_asks_by_itself_is_waited_for(own: Any) -> None:
    call = asking(HookLog()).tool_call("deploy", {})
    call.approver = own
    with suppress(Suspended):
        assert await call.before() is None
    assert [each["answer"] for each in answered()] == [Answered.WAITING]


@pytest.mark.parametrize("payloads", [False, True])
async def test_arguments_are_recorded_only_with_payloads(payloads: bool) -> None:
    await run(asking(HookLog(payloads=payloads), lambda request: True))
    [found] = answered()
    assert found.get("tool_input") == ({"to": "staging"} if payloads else None)


async def test_people_and_programs_read_it(call: Call, project: Path) -> None:
    await run(asking(HookLog(project), lambda request: False))
    await run(asking(HookLog(project), lambda request: Approval.FOR_SESSION))

    lines = call("log").stdout.splitlines()
    assert [line.split()[2] for line in lines] == ["asked", "denied", "asked", "approved"]
    assert lines[1].endswith("BeforeTool deploy  deploys: is it tested? (the answer was no)")
    assert lines[3].endswith("deploys: is it tested? (for this session)")
    assert [json.loads(line).get("answer") for line in call("log", "--json", "--blocked").stdout.splitlines()] == [
        "denied"
    ]

    asked = read_log()[0]["id"]
    full = call("log", asked[:8]).stdout
    assert "decision   denied: is it tested? (the answer was no)" in full
    assert "asked for" in full
    [figures] = json.loads(call("stats", "--json").stdout)
    assert figures["count"] == 2

    timeline = Timeline()
    timeline.add(LogReader(where=LogFilter(answers=True), events=True).read())
    events = list(timeline.events.values())
    assert [(each.summary()["decision"], each.summary()["answer"]) for each in events] == [
        ("asked", "denied"),
        ("asked", "approved"),
    ]


def test_an_answer_whose_event_was_rotated_away_is_shown() -> None:
    timeline = Timeline()
    timeline.add([{"event_id": "e1", "id": "a1", "hook": "deploys", "event_name": "BeforeTool", "answer": "approved"}])
    [event] = timeline.events.values()
    assert (event.summary()["decision"], event.summary()["answer"], event.hooks) == ("asked", "approved", [])


async def test_the_audit_trail_has_it_too(project: Path) -> None:
    trail = AuditTrail(AuditRule(servers=("nats://127.0.0.1:9",)), str(project))
    await run(asking(trail, lambda request: False))
    [file] = spool_files()
    records = [json.loads(line) for line in file.read_bytes().splitlines()]
    trail.drop()
    assert [(each["hook"], each.get("answer")) for each in records] == [("deploys", None), ("deploys", "denied")]
    assert [each["agent"]["project"] for each in records] == [str(project)] * 2
