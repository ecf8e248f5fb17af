"""Every command shows hooks of type ``http``, and none shows the values of their headers (D-44)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from llxprt_hooks import Config, HookLog, fire_before_tool_hook
from llxprt_hooks.settings.trust.status import grant_trust
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


ADDRESSES: dict[str, dict[str, object]] = {
    "a password": {"type": "http", "url": "https://me:s3cret@example.com/"},
    "with a slash": {"type": "http", "url": "https://me:s3c/s3cret@example.com"},
    "one slash": {"type": "http", "url": "https:/me:s3cret@example.com"},
    "no slash": {"type": "http", "url": "me:s3cret@example.com"},
    "spaces": {"type": "http", "url": " https://me:s3cret s3cret@example.com"},
    "several": {"type": "http", "url": ["https://me:s3cret@example.com"]},
    "an unknown type": {"type": "htpp", "url": "https://me:s3cret@example.com"},
    "no type": {"url": "https://me:s3cret@example.com"},
    "a server": {"type": "nats", "servers": ["nats://me:s3cret@example.com"]},
    "a token": {"type": "nats", "servers": ["nats://example.org", "s3cret@example.com"]},
    "not an array": {"type": "nats", "servers": "nats://me:s3cret@example.com"},
    "nested": {"type": "nats", "servers": [["nats://me:s3cret@example.com"], {"a": "me:s3cret@example.com"}, 7]},
}
SHOWING = [
    ("fire", "BeforeTool", "--tool", "write_file"),
    ("fire", "BeforeTool", "--tool", "write_file", "--json"),
    ("list",),
    ("list", "--json"),
    ("trust", "--dry-run"),
    ("doctor",),
    ("test",),
    ("validate",),
    ("validate", "--json"),
]


@pytest.mark.parametrize("hook", ADDRESSES.values(), ids=ADDRESSES)
def test_no_command_shows_the_password_in_an_address(call: Call, world: CliProject, hook: dict[str, object]) -> None:
    world.configure(BeforeTool=[{"hooks": [hook]}])
    world.write(".llxprt/hooks/a.hooktest.json", {"tests": [{"event": "BeforeTool", "input": {"tool_name": "a"}}]})

    shown = [call(*arguments) for arguments in SHOWING]
    debugged = world.run("fire", "BeforeTool", "--tool", "write_file", DEBUG="*")

    for each in (*shown, debugged):
        assert "s3cret" not in each.stdout + each.stderr
    assert "example.com" in "".join(each.stdout for each in shown)


@pytest.mark.parametrize("servers", [["nats://me:s3cret@example.com"], "nats://me:s3cret@example.com"])
def test_no_command_shows_the_password_of_an_audit_server(call: Call, world: CliProject, servers: object) -> None:
    audit = {"nats": {"servers": servers, "streem": "x"}}
    hooks = {"BeforeTool": [{"hooks": [{"type": "command", "command": "true"}]}]}
    world.put("project", {"enableHooks": True, "hooksConfig": {"audit": audit}, "hooks": hooks})

    for arguments in SHOWING[2:]:
        shown = call(*arguments)
        assert "s3cret" not in shown.stdout + shown.stderr


@pytest.mark.parametrize("end", ["", ' "x"', "\\q"])
def test_a_file_with_a_syntax_error_is_quoted_without_passwords(call: Call, world: CliProject, end: str) -> None:
    hook = '{ "type": "http", "url" "https://me:s3cret@example.com" ' if not end else ""
    hook = hook or f'{{ "url": "https://me:s3cret@example.com{end}'
    world.write(".llxprt/settings.json", f'{{ "hooks": {{ "BeforeTool": [{{ "hooks": [{hook}')

    for arguments in SHOWING:
        shown = call(*arguments)
        assert "s3cret" not in shown.stdout + shown.stderr


def test_a_change_of_an_address_is_shown_without_passwords(
    call: Call, world: CliProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LLXPRT_TRUST_PROJECT_HOOKS")
    audit = {"nats": {"servers": ["nats://me:s3cret@example.com"]}}
    hooks = {"BeforeTool": [{"hooks": [{"type": "nats", "servers": ["nats://me:s3cret@example.com"]}]}]}
    world.put("project", {"enableHooks": True, "hooksConfig": {"audit": audit}, "hooks": hooks})
    grant_trust(world.root)
    world.put("project", {"enableHooks": True, "hooksConfig": {"audit": {}}, "hooks": {}})

    shown = call("trust", "--dry-run")

    assert "example.com" in shown.stdout
    assert "s3cret" not in shown.stdout + shown.stderr


def test_approval_shows_the_url_and_the_names_of_headers(call: Call, project: CliProject, server: HookServer) -> None:
    shown = call("trust", "--dry-run").stdout

    assert server.url in shown
    assert '"Authorization", "X-Team"' in shown
    assert 'allowedEnvVars: ["HTTP_TEAM"]' in shown


def test_an_unapproved_project_sends_nothing(
    call: Call, project: CliProject, server: HookServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LLXPRT_TRUST_PROJECT_HOOKS")

    call("fire", "BeforeTool", "--tool", "write_file")

    assert server.received == []
