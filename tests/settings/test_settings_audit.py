"""``hooksConfig.audit``: where records are sent, and whose word counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from llxprt_hooks.settings.audit import AuditRule
from llxprt_hooks.trust.load import Settings, load_settings

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


def test_a_project_that_is_not_approved_has_no_say(sandbox: Project) -> None:
    assert _load(sandbox, project={"nats": {"servers": [MINE]}}).audit is None


@pytest.mark.parametrize(
    ("audit", "problem"),
    [
        ({}, 'must name "servers" under "nats"'),
        ({"nats": {}}, 'must name "servers" under "nats"'),
        ({"nats": {"servers": []}}, 'must name "servers" under "nats"'),
        ({"nats": {"servers": [1]}}, 'must name "servers" under "nats"'),
        ({"nats": {"servers": ["nats://bob:secret@host:4222"]}}, "must not contain a password"),
        ({"nats": {"servers": ["http://host"]}}, "expected an address such as"),
        ({"nats": {"servers": ["ws://host:4222"]}}, "expected an address such as"),
        ({"nats": {"servers": ["tls://host other"]}}, "expected an address such as"),
        ({"nats": {"servers": [MINE], "stream": "a.b"}}, '"stream" must consist of letters'),
        ([], '"audit" must be an object'),
    ],
)
def test_a_mistake_is_reported_and_nothing_is_sent(sandbox: Project, audit: Any, problem: str) -> None:
    settings = _load(sandbox, user=audit)
    assert settings.audit is None
    assert any(problem in str(each) for each in settings.problems)
    assert "secret" not in "".join(map(str, settings.problems))
