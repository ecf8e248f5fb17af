"""``llxprt-hooks mcp-proxy --install``: the proxy in a client's configuration, and out of it again."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks.integrations.proxy.mcp.install import CLIENTS
from tests.support.cli import Run
from tests.support.cli import run as run_command
from tests.support.project import SCRIPTS, Project

PROGRAM = str(SCRIPTS / "llxprt-hooks")

CONFIGURATION = """{
  // the team's servers
  "KEY": {
    "shop": { "command": "npx", "args": ["-y", "shop-server"], "env": {"A": "1"} },
    "bare": { "command": "./server" },
    "remote": { "url": "https://example.com/mcp" },
  },
  "other": [1.50]
}
"""


def run(project: Project, *arguments: str, **environment: str) -> Run:
    env = project.environment(**environment)
    return run_command("mcp-proxy", "-C", str(project.root), *arguments, cwd=project.root, env=env)


def backups(file: Path) -> list[str]:
    return [each.read_text() for each in sorted(file.parent.glob(f"{file.name}.before-llxprt-hooks*"))]


def servers(file: Path, key: str) -> Any:
    lines = [line for line in file.read_text().splitlines() if "//" not in line or "https" in line]
    return json.loads("\n".join(lines).replace("},\n  },", "}\n  },"))[key]


@pytest.mark.parametrize("entry", ['"npx server"', "null", '["npx", "server"]', '{"command": ["npx"]}'])
def test_an_entry_without_a_command_is_named(entry: str, sandbox: Project) -> None:
    sandbox.write(".mcp.json", '{"mcpServers": {"odd": ENTRY, "shop": {"command": "shop"}}}'.replace("ENTRY", entry))
    done = run(sandbox, "--install", "claude", "--yes")
    assert "skipped odd, which is NOT covered" in done.stderr


@pytest.mark.parametrize("client", CLIENTS)
def test_install_and_uninstall(client: str, sandbox: Project) -> None:
    key = CLIENTS[client].key
    before = CONFIGURATION.replace("KEY", key)
    file = sandbox.write(CLIENTS[client].project_file, before)
    done = run(sandbox, "--install", client, "--yes")
    assert done.status == 0
    assert '-    "bare": { "command": "./server" },' in done.stdout
    assert "skipped remote, which is NOT covered" in done.stderr
    assert "No BeforeTool or AfterTool hook is configured" in done.stdout
    approve = "approve its tools with `llxprt-hooks trust --mcp bare` when a client has connected"
    assert f"bare: NOT guarded; every tool is listed; pinned: {approve}\n" in done.stdout
    assert str(sandbox.root) not in file.read_text()
    options = ["mcp-proxy", "-C", ".", "--server-name"]
    assert servers(file, key) == {
        "shop": {
            "command": "llxprt-hooks",
            "args": [*options, "shop", "--pin", "--", "npx", "-y", "shop-server"],
            "env": {"A": "1"},
        },
        "bare": {"command": "llxprt-hooks", "args": [*options, "bare", "--pin", "--", "./server"]},
        "remote": {"url": "https://example.com/mcp"},
    }
    assert "// the team's servers" in file.read_text()
    assert '"other": [1.50]' in file.read_text()
    assert backups(file) == [before]

    again = run(sandbox, "--install", client, "--yes")
    assert "Nothing to do" in again.stderr
    assert "shop is behind the proxy already: llxprt-hooks mcp-proxy -C . --server-name shop --pin\n" in again.stderr
    assert f"bare: NOT guarded; every tool is listed; pinned: {approve}\n" in again.stdout
    assert backups(file) == [before]

    assert run(sandbox, "--uninstall", client, "--yes").status == 0
    assert file.read_text() == before.replace('"./server"', '"./server", "args": []')
    assert len(backups(file)) == 2


def test_a_server_behind_the_proxy_is_left_alone_and_described(sandbox: Project) -> None:
    shop = sandbox.root / "shop"
    sandbox.configure(BeforeTool=sandbox.hook())
    sandbox.approve()
    sandbox.write("shop/.llxprt/settings.json", '{"hooksConfig": {"enabled": true}}')
    proxy = ["mcp-proxy", "--upstream", "https://shop.example/mcp"]
    entries = {
        "web": {"command": "llxprt-hooks", "args": proxy},
        "named": {"command": "llxprt-hooks", "args": [*proxy, "--server-name=shop", "--pin"]},
        "other": {"command": "llxprt-hooks", "args": ["mcp-proxy", "-C", str(shop), "--", "./server"]},
    }
    file = sandbox.write(".mcp.json", before := json.dumps({"mcpServers": entries}))
    done = run(sandbox, "--install", "claude", "--yes")
    assert file.read_text() == before
    assert "web: guarded by 1 hook; every tool is listed; NOT pinned\n" in done.stdout
    assert "named: guarded by 1 hook; every tool is listed; pinned: approve its tools with `llxprt" in done.stdout
    assert "other: NOT guarded; every tool is listed; NOT pinned\n" in done.stdout
    run(sandbox, "--uninstall", "claude", "--yes")
    assert servers(file, "mcpServers") == {**entries, "other": {"command": "./server", "args": []}}


def test_a_hook_of_a_server_with_a_hyphen_is_counted_for_it_alone(sandbox: Project) -> None:
    sandbox.write(
        ".mcp.json", json.dumps({"mcpServers": {name: {"command": "./server"} for name in ("my-shop", "web")}})
    )
    hook = {"type": "command", "command": "true"}
    sandbox.configure(BeforeTool={"matcher": "^mcp__my-shop__", "hooks": [hook]})
    sandbox.approve()
    done = run(sandbox, "--install", "claude", "--yes")
    assert "my-shop: guarded by 1 hook;" in done.stdout
    assert "web: NOT guarded;" in done.stdout


def test_nothing_is_changed_without_a_yes(sandbox: Project) -> None:
    file = sandbox.write(".mcp.json", CONFIGURATION.replace("KEY", "mcpServers"))
    done = run(sandbox, "--install", "claude")
    assert done.status == 1
    assert "+++" in done.stdout
    assert "pass --yes" in done.stderr
    assert file.read_text() == CONFIGURATION.replace("KEY", "mcpServers")
    assert backups(file) == []


def test_an_agent_cannot_remove_its_guard(sandbox: Project) -> None:
    file = sandbox.write(".mcp.json", CONFIGURATION.replace("KEY", "mcpServers"))
    run(sandbox, "--install", "claude", "--yes")
    installed = file.read_text()
    assert run(sandbox, "--uninstall", "claude", "--yes", LLXPRT_AGENT="1").status == 1
    assert file.read_text() == installed


def test_the_users_file_is_used_where_the_project_has_none(sandbox: Project) -> None:
    file = sandbox.write(sandbox.home / ".claude.json", CONFIGURATION.replace("KEY", "mcpServers"))
    assert run(sandbox, "--install", "claude", "--yes").status == 0
    assert PROGRAM in file.read_text()


def test_install_shows_which_hook_guards_what(sandbox: Project) -> None:
    hook = {"type": "command", "command": "true"}
    matchers = {"all": "*", "own": "^refund$", "named": "^mcp__shop__", "other": "mcp__shp__refund"}
    groups = [{"matcher": text, "hooks": [{**hook, "name": name}]} for name, text in matchers.items()]
    sandbox.configure(BeforeTool=groups)
    sandbox.approve()
    sandbox.write(".mcp.json", CONFIGURATION.replace("KEY", "mcpServers"))
    printed = run(sandbox, "--install", "claude", "--yes").stdout
    for line in (
        "BeforeTool all: every tool of each server",
        "BeforeTool own: tools that match `^refund$`, of each server",
        "BeforeTool named: tools that match `^mcp__shop__`, of shop",
        "BeforeTool other: NOTHING: `mcp__shp__refund` names another server",
    ):
        assert line in printed


@pytest.mark.parametrize(("content", "said"), [(None, "does not exist"), ("{", "expected"), ("[]", "Nothing to do")])
def test_files_that_cannot_be_changed(content: str | None, said: str, sandbox: Project) -> None:
    if content is not None:
        sandbox.write(".mcp.json", content)
    done = run(sandbox, "--install", "claude", "--yes")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_the_installed_command_works(sandbox: Project) -> None:
    """Claude Code starts what the file says, in its own folder."""
    deny = {"decision": "deny", "reason": "not here"}
    sandbox.configure(
        BeforeTool={"matcher": "^mcp__echo__buy$", "hooks": [{"command": sandbox.hook(says=deny), "type": "command"}]}
    )
    sandbox.approve()
    file = sandbox.write(".mcp.json", {"mcpServers": {"echo": {"command": "cat"}}})
    run(sandbox, "--install", "claude", "--yes", "--no-pin")
    server = servers(file, "mcpServers")["echo"]
    line = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"buy"}}\n'
    done = subprocess.run(
        [PROGRAM, *server["args"]],
        input=line,
        capture_output=True,
        text=True,
        env=sandbox.environment(),
        cwd=sandbox.root,
    )
    assert json.loads(done.stdout)["result"]["content"][0]["text"] == "not here"


def test_a_pinned_server_that_never_answers_ends_with_its_client(sandbox: Project) -> None:
    sandbox.configure(BeforeTool={"command": "true", "type": "command"})
    sandbox.approve()
    line = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"buy"}}\n'
    command = ["mcp-proxy", "--server-name", "echo", "--pin", "--", "cat"]
    done = run_command(*command, cwd=sandbox.root, env=sandbox.environment(), stdin=line)
    assert "is not offered by the server" in json.loads(done.stdout.splitlines()[-1])["result"]["content"][0]["text"]
