"""The ``mcp`` package: its middleware, and its client with the proxy between it and a server."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import anyio
import pytest
import trio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.server import MCPServer
from mcp_types import CallToolResult, TextContent

from llxprt_hooks.events import HookEventName
from llxprt_hooks.integrations.mcp import HooksMiddleware
from llxprt_hooks.integrations.unsupported import UNSUPPORTED
from tests.integrations.contract import (
    EFFECTS,
    NOTE,
    WROTE_NOTE,
    Call,
    Check,
    Driver,
    Effect,
    Outcome,
    Scenario,
    ToolRun,
    Tools,
    check,
    check_declarations,
)
from tests.support.project import SCRIPTS, Project

Mode = Literal["legacy", "auto"]
CallTool = Callable[[str, dict[str, Any]], Awaitable[CallToolResult]]


# What no server of tools can do, and what it does instead.


def later_calls_are_refused(scenario: Scenario, outcome: Outcome) -> None:
    """A server cannot stop its client; it refuses the client's later calls."""
    reason = "budget used up" if not outcome.runs else "enough"
    assert outcome.runs in ([], WROTE_NOTE)
    assert all(reason in result for result in outcome.results)
    assert len(outcome.results) == 2


def result_is_for_the_model(scenario: Scenario, outcome: Outcome) -> None:
    assert outcome.results == ["wrote a.txt"]
    assert outcome.suppressed


def id_of_the_server(scenario: Scenario, outcome: Outcome) -> None:
    """Payloads have the id of the configuration: a connection is not a session."""
    ids = {payload["session_id"] for payload in scenario.project.payloads()}
    assert len(ids) == 1


def context_follows_text(scenario: Scenario, outcome: Outcome) -> None:
    """The data is sent as text, without structured content, which would hide the context."""
    assert '"found"' in outcome.results[0]
    assert outcome.results[0].endswith("run the tests")


PARTIAL: dict[str, Check] = {
    "before_tool_stops": later_calls_are_refused,
    "after_tool_stops": later_calls_are_refused,
    "after_tool_suppresses": result_is_for_the_model,
    "after_tool_context_beside_data": context_follows_text,
    "session_ids": id_of_the_server,
}

PREFIXES = {
    "before_model_": HookEventName.BEFORE_MODEL,
    "model_payloads": HookEventName.BEFORE_MODEL,
    "stream_flows": HookEventName.BEFORE_MODEL,
    "after_model_": HookEventName.AFTER_MODEL,
    "selection_": HookEventName.BEFORE_TOOL_SELECTION,
    "before_agent": HookEventName.BEFORE_AGENT,
    "after_agent": HookEventName.AFTER_AGENT,
    "session_start": HookEventName.SESSION_START,
    "session_end": HookEventName.SESSION_END,
    "pre_compress": HookEventName.PRE_COMPRESS,
    "notification": HookEventName.NOTIFICATION,
}
IMPOSSIBLE = {
    effect.name: event for effect in EFFECTS for prefix, event in PREFIXES.items() if effect.name.startswith(prefix)
}


class McpDriver(Driver):
    """Runs the calls of a scenario through a server of tools."""

    partial: ClassVar[dict[str, Check]] = PARTIAL
    impossible: ClassVar[dict[str, HookEventName]] = IMPOSSIBLE

    async def run_calls(self, scenario: Scenario, call: CallTool) -> Outcome:
        outcome = Outcome(runs=scenario.tools.runs)
        for turn in scenario.turns:
            calls: Sequence[Call] = [] if isinstance(turn, str) else [turn] if isinstance(turn, Call) else turn
            results = await asyncio.gather(*(call(each.name, each.args) for each in calls))
            outcome.results += map(text_of, results)
            blocks = [block for result in results for block in result.content]
            outcome.suppressed |= bool(blocks) and all(_is_for_model(block) for block in blocks)
        return outcome


class MiddlewareDriver(McpDriver):
    """A server with the middleware, in the same process."""

    def __init__(self, mode: Mode) -> None:
        self.mode: Mode = mode

    def run(self, scenario: Scenario) -> Outcome:
        return asyncio.run(self._run(scenario))

    async def _run(self, scenario: Scenario) -> Outcome:
        middleware = HooksMiddleware.load(scenario.project.root, aliases=scenario.aliases)
        async with Client(server_of(scenario.tools, middleware), mode=self.mode) as client:
            return await self.run_calls(scenario, client.call_tool)


SERVER = Path(__file__).parent / "mcp_tools_server.py"


class ProxyDriver(McpDriver):
    """A server in another process, with the proxy before it."""

    def __init__(self, mode: Mode) -> None:
        self.mode: Mode = mode

    def run(self, scenario: Scenario) -> Outcome:
        return asyncio.run(self._run(scenario))

    async def _run(self, scenario: Scenario) -> Outcome:
        project = scenario.project
        options = [f"--alias={tool}={name}" for tool, name in scenario.aliases.items()]
        runs = project.note("runs")
        runs.touch()
        printed = project.note("stderr")
        server = StdioServerParameters(
            command=str(SCRIPTS / "llxprt-hooks"),
            args=["mcp-proxy", "-C", str(project.root), *options, "--", sys.executable, str(SERVER), str(runs)],
            env=project.environment(),
        )
        with printed.open("w") as errors:
            async with Client(stdio_client(server, errlog=errors), mode=self.mode) as client:
                outcome = await self.run_calls(scenario, client.call_tool)
        outcome.said = printed.read_text()
        outcome.runs = [ToolRun(name, args) for name, args in map(_run_of, runs.read_text().splitlines())]
        return outcome


def _run_of(line: str) -> tuple[str, dict[str, Any]]:
    import json

    name, args = json.loads(line)
    return name, args


def server_of(tools: Tools, *middleware: HooksMiddleware) -> MCPServer:
    server = MCPServer("tools", middleware=middleware)
    for function in tools.functions:
        server.add_tool(function)
    return server


def text_of(result: CallToolResult) -> str:
    return "\n\n".join(block.text for block in result.content if isinstance(block, TextContent))


def _is_for_model(block: Any) -> bool:
    return block.annotations is not None and block.annotations.audience == ["assistant"]


DRIVERS: dict[str, McpDriver] = {
    "middleware-handshake": MiddlewareDriver("legacy"),
    "middleware-2026": MiddlewareDriver("auto"),
    "proxy-handshake": ProxyDriver("legacy"),
    "proxy-2026": ProxyDriver("auto"),
}


@pytest.mark.parametrize("driver", DRIVERS.values(), ids=DRIVERS)
@pytest.mark.parametrize("effect", EFFECTS, ids=str)
def test_contract(effect: Effect, driver: Driver, sandbox: Project, caplog: pytest.LogCaptureFixture) -> None:
    check(effect, driver, sandbox, caplog)


def test_declarations() -> None:
    check_declarations(DRIVERS["proxy-2026"])
    assert set(IMPOSSIBLE.values()) == UNSUPPORTED["mcp"].keys()


# Structured content.


async def test_structured_content_stays_where_hooks_say_nothing(sandbox: Project) -> None:
    sandbox.configure(BeforeTool=sandbox.hook("before"), AfterTool=sandbox.hook("after"))
    sandbox.approve()
    async with Client(server_of(Tools(), HooksMiddleware.load(sandbox.root))) as client:
        await client.list_tools()
        result = await client.call_tool("lookup", {"key": "x"})
    assert result.structured_content == {"found": "x", "count": 3}
    assert len(sandbox.payloads("after")) == 1


async def test_a_client_that_validates_accepts_what_hooks_said(sandbox: Project) -> None:
    """The client knows the output schema; a result without structured content would break it."""
    group = {"matcher": "lookup", "hooks": [{"type": "command", "command": sandbox.hook(says={"systemMessage": "m"})}]}
    sandbox.configure(AfterTool=group)
    sandbox.approve()
    async with Client(server_of(Tools(), HooksMiddleware.load(sandbox.root))) as client:
        listed = await client.list_tools()
        result = await client.call_tool("lookup", {"key": "x"})
    assert text_of(result).endswith("[System] m")
    schemas = {tool.name: tool.output_schema for tool in listed.tools}
    assert schemas["lookup"] is None
    assert schemas["write_file"] is not None


async def test_arguments_that_are_not_an_object(sandbox: Project) -> None:
    sandbox.configure(BeforeTool=sandbox.hook())
    sandbox.approve()
    async with Client(server_of(Tools(), HooksMiddleware.load(sandbox.root))) as client:
        with pytest.raises(Exception, match="arguments"):
            await client.call_tool("lookup", ["x"])  # type: ignore[arg-type]


async def test_two_clients_are_stopped_separately(sandbox: Project) -> None:
    stop = {"continue": False, "stopReason": "enough"}
    group = {"matcher": "run_shell", "hooks": [{"type": "command", "command": sandbox.hook(says=stop)}]}
    sandbox.configure(BeforeTool=group)
    sandbox.approve()
    server = server_of(Tools(), HooksMiddleware.load(sandbox.root))
    async with Client(server, mode="legacy") as first, Client(server, mode="legacy") as second:
        await first.call_tool("run_shell_command", {"command": "ls"})
        assert text_of(await first.call_tool(*NOTE)) == "enough"
        assert text_of(await second.call_tool(*NOTE)) == "wrote a.txt"


# Other event loops.


def test_a_guard_holds_under_trio(sandbox: Project) -> None:
    sandbox.configure(BeforeTool=sandbox.hook(says={"decision": "deny", "reason": "not here"}))
    sandbox.approve()
    tools = Tools()

    async def main() -> str:
        async with Client(server_of(tools, HooksMiddleware.load(sandbox.root))) as client:
            return text_of(await client.call_tool(*NOTE))

    assert trio.run(main) == "not here"
    assert anyio.run(main, backend="trio") == "not here"
    assert tools.runs == []


def test_a_hook_is_ended_with_a_cancelled_call(sandbox: Project) -> None:
    sandbox.configure(BeforeTool=sandbox.endless_hook("endless"))
    sandbox.approve()
    tools = Tools()

    async def main() -> None:
        async with Client(server_of(tools, HooksMiddleware.load(sandbox.root))) as client:
            with anyio.move_on_after(0.5):
                await client.call_tool(*NOTE)

    for backend in ("asyncio", "trio"):
        anyio.run(main, backend=backend)
    assert tools.runs == []
