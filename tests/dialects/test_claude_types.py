"""Other types of Claude Code's hooks: http hooks run, and those that need its model or servers count as failed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llxprt_hooks import Config, Hooks
from llxprt_hooks.settings.trust.status import grant_trust, trust_status
from tests.support.http_server import Answer, HookServer, hook_server
from tests.support.project import Project

DENY = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                               "permissionDecisionReason": "no"}}  # fmt: skip


@pytest.fixture
def server() -> Iterator[HookServer]:
    with hook_server() as server:
        yield server


def _hooks(root: Path, *hooks: dict[str, Any]) -> Hooks:
    groups = {"PreToolUse": [{"matcher": "Bash", "hooks": list(hooks)}]}
    return Hooks(Config(enable_hooks=True, working_dir=root, hooks=groups, dialect="claude"))


async def _call(hooks: Hooks) -> Any:
    return await hooks.run_tool("run_shell_command", {"command": "ls"}, lambda _: "done")


@pytest.mark.parametrize(
    ("answer", "on_failure", "blocks"),
    [
        (Answer(DENY), "continue", True),
        (Answer(), "continue", False),
        (Answer({"unknown": 1}), "continue", False),
        (Answer("just text"), "continue", False),
        (Answer("just text"), "block", True),
        (Answer(DENY, status=500), "continue", False),
        (Answer(DENY, status=500), "block", True),
        (Answer({"decision": 42}), "block", True),
    ],
)
async def test_an_http_hook_is_asked_and_read_like_there(
    tmp_path: Path, server: HookServer, answer: Answer, on_failure: str, blocks: bool
) -> None:
    server.answer = answer
    hook = {"type": "http", "url": server.url, "onFailure": on_failure, "timeout": 5}

    result = await _call(_hooks(tmp_path, hook))

    assert (result.error is not None) is blocks
    [request] = server.received
    assert request.payload["tool_name"] == "Bash"
    assert "agent" not in request.payload


@pytest.mark.parametrize("kind", ["prompt", "agent", "mcp_tool"])
async def test_a_type_that_needs_the_product_counts_as_failed(tmp_path: Path, kind: str) -> None:
    hooks = _hooks(tmp_path, {"type": kind, "prompt": "Is this ok?", "tool": "check"})

    result = await _call(hooks)
    system = hooks.config.get_hook_system()

    assert result.error is None
    assert system is not None
    [problem] = system.get_registry().problems
    assert f"type {kind}" in problem.message
    [hook] = system.get_all_hooks()
    assert hook.config.command.startswith(f"{kind}: ")


async def test_a_file_decides_which_urls_its_hooks_may_call(tmp_path: Path, server: HookServer) -> None:
    project = Project(tmp_path)
    secret = {"type": "http", "url": server.url, "headers": {"Authorization": "Bearer s3cret"}}
    hooks = {"PreToolUse": [{"hooks": [secret]}]}
    with project.inside():
        for allowed, calls in ((["https://*"], 0), (["http://127.0.0.1:*"], 1)):
            project.write(".claude/settings.json", json.dumps({"allowedHttpHookUrls": allowed, "hooks": hooks}))
            grant_trust(project.root, dialect="claude")
            await _call(Hooks.load(project.root, dialects=("claude",)))
            assert len(server.received) == calls
        [shown] = trust_status(project.root, "claude").commands
        store = "".join(file.read_text() for file in Path(project.home).rglob("*") if file.is_file())

    assert shown.command == server.url
    assert shown.details["type"] == '"http"'
    assert "s3cret" not in str(shown)
    assert "s3cret" not in store
