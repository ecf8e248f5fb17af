"""FastMCP: its middleware, in a server and before a server that is reached over HTTP."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from fastmcp import Client, FastMCP
from fastmcp.client.elicitation import ElicitResult
from fastmcp.exceptions import ToolError
from fastmcp.server import create_proxy

from llxprt_hooks import Config, ask, deny, replace_result, restrict
from llxprt_hooks.integrations.fastmcp import HooksMiddleware
from tests.integrations.contract import EFFECTS, NOTE, Effect, Outcome, Scenario, Tools, check, check_declarations
from tests.integrations.mcp_driver import CallTool, McpDriver, text_of

if TYPE_CHECKING:
    from mcp_types import ContentBlock

    from tests.support.project import Project


class FastMcpDriver(McpDriver):
    """A server with the middleware, in the same process."""

    def run(self, scenario: Scenario) -> Outcome:
        return asyncio.run(self._run(scenario))

    async def _run(self, scenario: Scenario) -> Outcome:
        middleware = HooksMiddleware.load(
            scenario.project.root, aliases=scenario.aliases, approver=scenario.approver, metadata=scenario.metadata
        )
        async with Client(server_of(scenario.tools, middleware)) as client:
            return await self.run_calls(scenario, calling(client, scenario.asked_by))


def calling(client: Client[Any], user: str | None = None) -> CallTool:
    meta = {"user": user} if user else None

    async def call(name: str, arguments: dict[str, Any]) -> Sequence[ContentBlock]:
        return (await client.call_tool(name, arguments, meta=meta, raise_on_error=False)).content

    return call


def server_of(tools: Tools, *middleware: HooksMiddleware) -> FastMCP[Any]:
    return FastMCP("tools", middleware=middleware, tools=tools.functions)


@pytest.mark.parametrize("effect", EFFECTS, ids=str)
def test_contract(effect: Effect, sandbox: Project, caplog: pytest.LogCaptureFixture) -> None:
    check(effect, FastMcpDriver(), sandbox, caplog)


def test_declarations() -> None:
    check_declarations(FastMcpDriver())


async def test_structured_content_stays_where_hooks_say_nothing(sandbox: Project) -> None:
    sandbox.configure(BeforeTool=sandbox.hook("before"), AfterTool=sandbox.hook("after"))
    sandbox.approve()
    async with Client(server_of(Tools(), HooksMiddleware.load(sandbox.root))) as client:
        await client.list_tools()
        result = await client.call_tool("lookup", {"key": "x"})
    assert result.structured_content == {"found": "x", "count": 3}


async def test_a_client_that_validates_accepts_what_hooks_said(sandbox: Project) -> None:
    group = {"matcher": "lookup", "hooks": [{"type": "command", "command": sandbox.hook(says={"systemMessage": "m"})}]}
    sandbox.configure(AfterTool=group)
    sandbox.approve()
    async with Client(server_of(Tools(), HooksMiddleware.load(sandbox.root))) as client:
        schemas = {tool.name: tool.output_schema for tool in await client.list_tools()}
        result = await client.call_tool("lookup", {"key": "x"})
    assert text_of(result.content).endswith("[System] m")
    assert schemas["lookup"] is None
    assert schemas["write_file"] is not None


@pytest.mark.parametrize("matcher", ["^write_file$", "^mcp__shop__write_file$"])
async def test_a_guard_for_a_tool_holds_whatever_the_server_is_called(matcher: str, sandbox: Project) -> None:
    command = sandbox.hook(says={"decision": "deny", "reason": "not here"})
    sandbox.configure(BeforeTool={"matcher": matcher, "hooks": [{"type": "command", "command": command}]})
    sandbox.approve()
    tools = Tools()
    async with Client(server_of(tools, HooksMiddleware.load(sandbox.root, server_name="shop"))) as client:
        assert text_of((await client.call_tool(*NOTE, raise_on_error=False)).content) == "not here"
    assert tools.runs == []
    assert sandbox.payloads()[0]["tool_name"] == "mcp__shop__write_file"


@pytest.mark.requirement("HOOK-159")
async def test_what_hooks_say_to_the_model_is_marked_as_not_for_the_user(sandbox: Project) -> None:
    says = {"systemMessage": "careful", "hookSpecificOutput": {"additionalContext": "run the tests"}}
    sandbox.configure(AfterTool=sandbox.hook(says=says))
    sandbox.approve()
    async with Client(server_of(Tools(), HooksMiddleware.load(sandbox.root))) as client:
        content = (await client.call_tool(*NOTE, raise_on_error=False)).content
    audiences = {text_of([block]): block.annotations and block.annotations.audience for block in content}
    assert audiences == {"wrote a.txt": None, "run the tests": ["assistant"], "[System] careful": ["assistant"]}


async def test_what_a_tool_raises_passes_through(sandbox: Project) -> None:
    sandbox.configure(AfterTool=sandbox.hook())
    sandbox.approve()
    server = server_of(Tools(), HooksMiddleware.load(sandbox.root))

    @server.tool
    def broken() -> str:
        raise ToolError("it went wrong")

    async with Client(server) as client:
        with pytest.raises(ToolError, match="it went wrong"):
            await client.call_tool("broken")
    assert sandbox.payloads() == []


# Hooks that act.


def acting(**answers: Any) -> HooksMiddleware:
    """The middleware with functions for hooks, called like their events."""
    middleware = HooksMiddleware(Config(profile="full"))
    for event, answer in answers.items():
        middleware.hooks.on(event, lambda payload, answer=answer: answer, name=f"hook-{event}")
    return middleware


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(
    ("action", "result"), [("accept", "wrote a.txt"), ("decline", "sure? (the answer was no)"), (None, "sure? (nobody")]
)
async def test_the_clients_user_is_asked_about_a_call(mode: Any, action: Any, result: str) -> None:
    tools, questions = Tools(), list[str]()

    async def handle(message: str, *rest: Any) -> ElicitResult[Any]:
        questions.append(message)
        return ElicitResult(action=action, content={} if action == "accept" else None)

    handler = {"elicitation_handler": handle} if action else {}
    server = server_of(tools, acting(BeforeTool=ask("sure?")))
    async with Client(server, mode=mode, **handler) as client:
        assert text_of(await calling(client)(*NOTE)).startswith(result)
    assert len(questions) == (1 if action else 0)
    assert len(tools.runs) == (1 if action == "accept" else 0)


async def test_hooks_that_act_replace_results_and_failures() -> None:
    answer = replace_result({"llmContent": "x", "metadata": {"structuredContent": {"found": 0}}})
    server = server_of(Tools(), acting(AfterTool=answer))

    @server.tool
    def broken() -> str:
        raise ToolError("it went wrong")

    async with Client(server) as client:
        for name, arguments in (("lookup", {"key": "secret"}), ("broken", {})):
            result = await client.call_tool(name, arguments, raise_on_error=False)
            assert (text_of(result.content), result.structured_content, result.is_error) == ("x", {"found": 0}, False)
    async with Client(server_of(Tools(), acting(AfterTool=deny("not for you")))) as client:
        result = await client.call_tool("lookup", {"key": "secret"}, raise_on_error=False)
    assert (text_of(result.content), result.structured_content, result.is_error) == ("not for you", None, True)


async def test_hooks_before_a_server_on_the_network(sandbox: Project) -> None:
    sandbox.configure(BeforeTool=sandbox.hook(says={"decision": "deny", "reason": "not here"}))
    sandbox.approve()
    tools = Tools()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    remote = server_of(tools)
    serving = asyncio.create_task(remote.run_http_async(port=port, show_banner=False, log_level="error"))
    proxy = create_proxy(f"http://127.0.0.1:{port}/mcp")
    proxy.add_middleware(HooksMiddleware.load(sandbox.root, server_name="shop"))
    try:
        await until_listening(port)
        async with Client(proxy) as client:
            assert "write_file" in {tool.name for tool in await client.list_tools()}
            assert text_of(await calling(client)(*NOTE)) == "not here"
    finally:
        serving.cancel()
        await asyncio.wait([serving])
    assert tools.runs == []
    assert sandbox.payloads()[0]["tool_name"] == "mcp__shop__write_file"


async def until_listening(port: int) -> None:
    for _ in range(600):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            await writer.wait_closed()
            return
    raise TimeoutError("the server does not listen")


def test_a_guard_holds_under_trio(sandbox: Project) -> None:
    sandbox.configure(BeforeTool=sandbox.hook(says={"decision": "deny", "reason": "not here"}))
    sandbox.approve()
    tools = Tools()

    async def main() -> str:  # the client of FastMCP needs asyncio, the server does not
        result = await server_of(tools, HooksMiddleware.load(sandbox.root)).call_tool(*NOTE)
        return text_of(result.content)

    assert anyio.run(main, backend="trio") == "not here"
    assert tools.runs == []


async def test_hooks_choose_the_tools_that_a_client_can_see_and_call() -> None:
    middleware = HooksMiddleware(hooks={}, server_name="shop")
    middleware.hooks.on("BeforeToolSelection", lambda _: restrict("read"))
    server = FastMCP[Any]("shop", middleware=[middleware])

    @server.tool()
    def read() -> str:
        return "read"

    @server.tool()
    def write() -> str:
        raise AssertionError("a hook hides this tool")

    async with Client(server) as client:
        listed = await client.list_tools()
        assert [tool.name for tool in listed] == ["read"]
        call = calling(client)
        assert text_of(await call("read", {})) == "read"
        assert "mcp__shop__write may not be called now" in text_of(await call("write", {}))
