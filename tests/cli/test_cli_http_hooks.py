"""Every command shows hooks of type ``http``, and none shows the values of their headers (D-44)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from llxprt_hooks import Config, HookLog, fire_before_tool_hook
from llxprt_hooks.trust.status import TrustState, grant_trust, trust_status
from tests.support.http_server import Answer, HookServer, hook_server

if TYPE_CHECKING:
    from tests.support.cli import Call, CliProject

HEADERS = {"Authorization": "Bearer s3cret", "X-Team": "$HTTP_TEAM"}


@pytest.fixture
def server() -> Iterator[HookServer]:
    with hook_server() as server:
        server.answer = Answer({"decision": "deny", "reason": "the policy says no"})
        yield server


@pytest.fixture
def project(world: CliProject, server: HookServer, monkeypatch: pytest.MonkeyPatch) -> CliProject:
    monkeypatch.setenv("HTTP_TEAM", "v4lue")
    hook = {"type": "http", "url": server.url, "headers": HEADERS, "allowedEnvVars": ["HTTP_TEAM"]}
    world.configure(BeforeTool=[{"hooks": [hook]}])
    return world


COMMANDS = {
    "fire": (("fire", "BeforeTool", "--tool", "write_file"), "the policy says no"),
    "fire --json": (("fire", "BeforeTool", "--tool", "write_file", "--json"), "the policy says no"),
    "list": (("list",), "/policy"),
    "list --json": (("list", "--json"), "/policy"),
    "trust": (("trust", "--dry-run"), "/policy"),
    "doctor": (("doctor",), ""),
    "validate": (("validate",), "No problems"),
    "log": (("log",), "/policy"),
    "log --json": (("log", "--json"), "/policy"),
}


@pytest.mark.parametrize(("arguments", "words"), COMMANDS.values(), ids=COMMANDS)
def test_no_command_shows_the_value_of_a_header(
    call: Call, project: CliProject, server: HookServer, arguments: tuple[str, ...], words: str
) -> None:
    done = project.run("fire", "BeforeTool", "--tool", "write_file", DEBUG="*", HTTP_TEAM="v4lue")
    assert server.received[-1].headers["authorization"] == "Bearer s3cret"
    assert server.received[-1].headers["x-team"] == "v4lue"
    assert "the policy says no" in done.stdout

    asyncio.run(fire_before_tool_hook(Config.load(project.root, observer=HookLog(project.root)), "write_file", {}))
    shown = call(*arguments)

    assert words in shown.stdout
    for text in (done.stdout, done.stderr, shown.stdout, shown.stderr):
        assert "s3cret" not in text
        assert "v4lue" not in text


def test_approval_shows_the_url_and_the_names_of_headers(call: Call, project: CliProject, server: HookServer) -> None:
    shown = call("trust", "--dry-run").stdout

    assert server.url in shown
    assert '"Authorization", "X-Team"' in shown
    assert 'allowedEnvVars: ["HTTP_TEAM"]' in shown


@pytest.mark.parametrize("change", [{"url": "https://elsewhere.example.com"}, {"headers": {"A": "b"}}, {"headers": {}}])
def test_any_change_ends_an_approval(
    call: Call, project: CliProject, server: HookServer, monkeypatch: pytest.MonkeyPatch, change: dict[str, object]
) -> None:
    monkeypatch.delenv("LLXPRT_TRUST_PROJECT_HOOKS")
    grant_trust(project.root)

    hook = {"type": "http", "url": server.url, "headers": HEADERS, "allowedEnvVars": ["HTTP_TEAM"]}
    project.configure(BeforeTool=[{"hooks": [{**hook, **change}]}])

    assert trust_status(project.root).state is TrustState.CHANGED


def test_an_unapproved_project_sends_nothing(
    call: Call, project: CliProject, server: HookServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LLXPRT_TRUST_PROJECT_HOOKS")

    call("fire", "BeforeTool", "--tool", "write_file")

    assert server.received == []
