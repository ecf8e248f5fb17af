"""``hooksConfig.audit``: where records are sent, and whose word counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks.commands.validate import Severity, diagnose, inspect_project
from llxprt_hooks.settings.audit import AUDIT_NATS, AuditRule
from llxprt_hooks.settings.load import Settings, load_settings

if TYPE_CHECKING:
    from tests.support.project import Project

MINE = "nats://127.0.0.1:4222"


def _load(sandbox: Project, **levels: Any) -> Settings:
    for level, audit in levels.items():
        sandbox.put(level, {"hooksConfig": {"audit": audit}})
    return load_settings(sandbox.root)


def test_servers_are_enough(sandbox: Project) -> None:
    assert _load(sandbox, user={"nats": {"servers": [MINE]}}).audit == AuditRule((MINE,), "LLXPRT_HOOKS", None)


def test_everything_can_be_chosen(sandbox: Project) -> None:
    nats = {"servers": [MINE, "tls://b:4222"], "stream": "AUDIT-1", "credentials": "/etc/nats.creds"}
    rule = _load(sandbox, user={"nats": nats, "payloads": True}).audit
    assert rule == AuditRule((MINE, "tls://b:4222"), "AUDIT-1", "/etc/nats.creds", payloads=True)


def test_without_it_nothing_is_sent(sandbox: Project) -> None:
    assert _load(sandbox).audit is None


def test_the_word_of_the_system_counts_over_that_of_the_user(sandbox: Project) -> None:
    ours, theirs = ({"nats": {"servers": [f"nats://{name}:4222"]}} for name in ("system", "user"))
    assert _load(sandbox, system=ours, user=theirs).audit == AuditRule(("nats://system:4222",))


@pytest.mark.parametrize(
    "mistaken", [7, None, {}, {"nats": {"servers": []}}, {"nats": {"servers": [MINE], "stream": "a.b"}}]
)
def test_a_mistake_of_the_system_does_not_let_the_user_decide(sandbox: Project, mistaken: Any) -> None:
    assert _load(sandbox, system=mistaken, user={"nats": {"servers": [MINE]}}).audit is None


def test_a_project_that_is_not_approved_is_ignored(sandbox: Project) -> None:
    assert _load(sandbox, project={"nats": {"servers": [MINE]}}).audit is None


MISTAKES: list[tuple[Any, str]] = [
    ({}, "this audit has no `nats`"),
    ({"nats": {}}, "this audit.nats has no `servers`"),
    ({"nats": {"servers": []}}, "the `servers` of this audit.nats is empty"),
    ({"nats": {"servers": [1]}}, "expected a string here, found 1"),
    ({"nats": {"servers": [MINE, 1]}}, "expected a string here, found 1"),
    ({"nats": {"servers": ["nats://bob:secret@host:4222"]}}, "`servers`: it must not contain a password"),
    ({"nats": {"servers": ["http://host"]}}, "`servers`: expected an address such as"),
    ({"nats": {"servers": ["ws://host:4222"]}}, "`servers`: expected an address such as"),
    ({"nats": {"servers": ["tls://host other"]}}, "`servers`: expected an address such as"),
    ({"nats": {"servers": [MINE], "stream": "a.b"}}, "`stream`: expected up to 200 letters"),
    ({"nats": {"servers": [MINE], "stream": 7}}, "`stream` must be a string, found 7"),
    ({"nats": {"servers": [MINE], "credentials": 7}}, "`credentials` must be a string, found 7"),
    ({"nats": {"servers": [MINE]}, "payloads": "yes"}, '`payloads` must be true or false, found "yes"'),
    ([], "`audit` must be an object, found an array"),
    (None, "`audit` must be an object, found null"),
]


@pytest.mark.parametrize(("audit", "problem"), MISTAKES)
def test_a_mistake_is_reported_and_nothing_is_sent(sandbox: Project, audit: Any, problem: str) -> None:
    settings = _load(sandbox, user=audit)

    assert settings.audit is None
    [reported] = settings.problems
    assert problem in reported.message
    assert reported.message.endswith("; until this is fixed, no records are sent")
    assert "secret" not in str(reported)


@pytest.mark.parametrize(("audit", "problem"), MISTAKES)
def test_validate_reports_the_same_mistake(sandbox: Project, audit: Any, problem: str) -> None:
    settings = _load(sandbox, user=audit)

    [found] = diagnose(inspect_project(sandbox.root))

    [reported] = settings.problems
    assert (found.file, found.line, found.column) == (reported.file, reported.line, reported.column)
    assert f"{found.message}; {AUDIT_NATS.if_unfit}" == reported.message
    assert (found.severity, found.why) == (Severity.ERROR, "Until this is fixed, no records are sent.")
    assert "secret" not in str(found.to_dict())


def test_an_unknown_key_changes_nothing(sandbox: Project) -> None:
    settings = _load(sandbox, user={"nats": {"servers": [MINE]}, "payload": True})

    assert settings.audit == AuditRule((MINE,))
    assert [found.code for found in diagnose(inspect_project(sandbox.root))] == ["misspelt-key"]
