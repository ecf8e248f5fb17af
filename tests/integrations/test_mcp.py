"""The ``mcp`` package: its middleware, and its client with the proxy between it and a server."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import anyio
import pytest
import trio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.server import MCPServer
from mcp.server.stdio import stdio_server
from mcp_types import ElicitResult, InputRequiredResult

from llxprt_hooks import Config, ask, deny, replace_result, restrict
from llxprt_hooks._support.http_server import Server, listen
from llxprt_hooks.integrations.mcp import HooksMiddleware
from llxprt_hooks.integrations.unsupported import UNSUPPORTED
from tests.integrations.contract import (
    EFFECTS,
    NOTE,
    Check,
    Effect,
    Outcome,
    Scenario,
    ToolRun,
    Tools,
    check,
    check_declarations,
    nobody_is_asked,
    ran_normally,
    was_blocked,
)
from tests.integrations.mcp_driver import IMPOSSIBLE, POSSIBLE, CallTool, McpDriver, is_full, text_of
from tests.support import preloaded
from tests.support.mcp_connection import PROXY
from tests.support.replies import DENY

if TYPE_CHECKING:
    from mcp_types import ContentBlock

    from tests.support.project import Project

Mode = Literal["legacy", "auto"]


class MiddlewareDriver(McpDriver):
    """A server with the middleware, in the same process."""

    def __init__(self, mode: Mode) -> None:
        self.mode: Mode = mode

    def run(self, scenario: Scenario) -> Outcome:
        return asyncio.run(self._run(scenario))

    async def _run(self, scenario: Scenario) -> Outcome:
        middleware = HooksMiddleware.load(
            scenario.project.root, aliases=scenario.aliases, approver=scenario.approver, metadata=scenario.metadata
        )
        async with Client(server_of(scenario.tools, middleware), mode=self.mode) as client:
            return await self.run_calls(scenario, calling(client, scenario.asked_by))


SERVER = Path(__file__).parent / "mcp_tools_server.py"
RELAY = SERVER.with_name("mcp_relay.py")


def does_not_start(scenario: Scenario, outcome: Outcome) -> None:
    """Without the guards that its settings define, the proxy does not start the server."""
    assert (outcome.runs, outcome.results, scenario.project.payloads()) == ([], [], [])
    assert outcome.error is not None
    assert "not approved" in outcome.said


def nobody_answers(scenario: Scenario, outcome: Outcome) -> None:
    """The proxy is a program without an approver; it asks its client, which cannot ask anybody here."""
    if is_full(scenario):
        was_blocked(outcome, "nobody could be asked")
    else:
        ran_normally(outcome)


class ProxyDriver(McpDriver):
    """A server with the proxy before it. The proxy and what it starts are processes; the server is in this one."""

    partial: ClassVar[dict[str, Check]] = {
        **McpDriver.partial,
        "hooks_not_approved": does_not_start,
        "acting_question_yes": nobody_answers,
        "acting_question_no": nobody_answers,
        "who_asks_is_unknown": nobody_is_asked,
    }

    def __init__(self, mode: Mode, user: User | None = None) -> None:
        self.mode: Mode = mode
        self.user = user

    def run(self, scenario: Scenario) -> Outcome:
        return asyncio.run(self.run_in_proxy(scenario))

    async def run_in_proxy(self, scenario: Scenario) -> Outcome:
        options = [f"--alias={tool}={name}" for tool, name in scenario.aliases.items()]
        options += ["--client-metadata"] if scenario.metadata is True else []
        printed = scenario.project.note("stderr")
        with listen("127.0.0.1", 0) as front, listen("127.0.0.1", 0) as back:
            running = [
                asyncio.create_task(run_proxy(scenario.project, front, printed, *options, "--", *relay(back))),
                asyncio.create_task(serve(server_of(scenario.tools), back)),
            ]
            command, *arguments = relay(front)
            transport = stdio_client(StdioServerParameters(command=command, args=arguments))
            try:
                async with Client(transport, mode=self.mode, elicitation_callback=self.user) as client:
                    outcome = await self.run_calls(scenario, calling(client, scenario.asked_by))
            except ExceptionGroup as error:  # the proxy has ended
                outcome = Outcome(error=error)
                running[1].cancel()
            await asyncio.wait(running)
        outcome.said = printed.read_text()
        return outcome


def relay(port: socket.socket) -> list[str]:
    """The command of a program that a client or a proxy starts, to be connected with a port."""
    return [sys.executable, "-IS", str(RELAY), str(port.getsockname()[1])]


async def run_proxy(project: Project, port: socket.socket, printed: Path, *arguments: str) -> None:
    """Run the proxy for the first connection to a port."""
    with await accepted(port) as client, printed.open("w") as errors:
        command, stream = [*PROXY, "-C", str(project.root), *arguments], client.fileno()
        process = preloaded.start(
            command, cwd=project.root, env=project.environment(), stdin=stream, stdout=stream, stderr=errors.fileno()
        )
    await asyncio.to_thread(process.wait)


async def serve(server: MCPServer, port: socket.socket) -> None:
    """Run a server for the first connection to a port."""
    with await accepted(port) as client, client.makefile("r") as source, client.makefile("w") as sink:
        async with stdio_server(anyio.wrap_file(source), anyio.wrap_file(sink)) as (read, write):
            protocol = server._lowlevel_server
            await protocol.run(read, write, protocol.create_initialization_options())


async def accepted(port: socket.socket) -> socket.socket:
    port.setblocking(False)
    connection, _ = await asyncio.get_running_loop().sock_accept(port)
    connection.setblocking(True)
    return connection


def calling(client: Client, user: str | None = None) -> CallTool:
    meta: Any = {"user": user} if user else None

    async def call(name: str, arguments: dict[str, Any]) -> list[ContentBlock]:
        return (await client.call_tool(name, arguments, meta=meta)).content

    return call


def server_of(tools: Tools, *middleware: HooksMiddleware) -> MCPServer:
    server = MCPServer("tools", middleware=middleware)
    for function in tools.functions:
        server.add_tool(function)
    return server


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("effect", EFFECTS, ids=str)
def test_contract(effect: Effect, mode: Mode, sandbox: Project, caplog: pytest.LogCaptureFixture) -> None:
    check(effect, MiddlewareDriver(mode), sandbox, caplog)


@pytest.mark.parametrize("effect", POSSIBLE, ids=str)
def test_contract_of_the_proxy(effect: Effect, sandbox: Project, caplog: pytest.LogCaptureFixture) -> None:
    check(effect, ProxyDriver("auto"), sandbox, caplog)


SOME = ("who_asks", "before_tool_blocks", "before_tool_rewrites", "after_tool_context", "session_start")


@pytest.mark.parametrize("effect", [effect for effect in EFFECTS if effect.name in SOME], ids=str)
def test_the_proxy_with_a_handshake(effect: Effect, sandbox: Project, caplog: pytest.LogCaptureFixture) -> None:
    """The proxy does not depend on the revision of MCP, so a few effects are enough."""
    check(effect, ProxyDriver("legacy"), sandbox, caplog)


def test_declarations() -> None:
    check_declarations(ProxyDriver("auto"))
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
    assert text_of(result.content).endswith("[System] m")
    schemas = {tool.name: tool.output_schema for tool in listed.tools}
    assert schemas["lookup"] is None
    assert schemas["write_file"] is not None


@pytest.mark.parametrize("matcher", ["^write_file$", "^mcp__shop__write_file$"])
async def test_a_guard_for_a_tool_holds_whatever_the_server_is_called(matcher: str, sandbox: Project) -> None:
    command = sandbox.hook(says={"decision": "deny", "reason": "not here"})
    sandbox.configure(BeforeTool={"matcher": matcher, "hooks": [{"type": "command", "command": command}]})
    sandbox.approve()
    tools = Tools()
    async with Client(server_of(tools, HooksMiddleware.load(sandbox.root, server_name="shop"))) as client:
        assert text_of((await client.call_tool(*NOTE)).content) == "not here"
    assert tools.runs == []
    assert sandbox.payloads()[0]["tool_name"] == "mcp__shop__write_file"


@pytest.mark.requirement("HOOK-159")
async def test_what_hooks_say_to_the_model_is_marked_as_not_for_the_user(sandbox: Project) -> None:
    says = {"systemMessage": "careful", "hookSpecificOutput": {"additionalContext": "run the tests"}}
    sandbox.configure(AfterTool=sandbox.hook(says=says))
    sandbox.approve()
    async with Client(server_of(Tools(), HooksMiddleware.load(sandbox.root))) as client:
        content = (await client.call_tool(*NOTE)).content
    audiences = {text_of([block]): block.annotations and block.annotations.audience for block in content}
    assert audiences == {"wrote a.txt": None, "run the tests": ["assistant"], "[System] careful": ["assistant"]}


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
        assert text_of((await first.call_tool(*NOTE)).content) == "enough"
        assert text_of((await second.call_tool(*NOTE)).content) == "wrote a.txt"


# Hooks that act.


def acting(approver: Any = None, **answers: Any) -> HooksMiddleware:
    """The middleware with functions for hooks, called like their events."""
    middleware = HooksMiddleware(Config(profile="full", approver=approver))
    for event, answer in answers.items():
        middleware.hooks.on(event, lambda payload, answer=answer: answer, name=f"hook-{event}")
    return middleware


class User:
    """Somebody whom the client asks."""

    def __init__(self, action: Literal["accept", "decline", "cancel"]) -> None:
        self.action = action
        self.questions: list[str] = []

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        self.questions.append(params.message)
        return ElicitResult(action=self.action, content={} if self.action == "accept" else None)


ASKED = 'sure?\n\nAllow write_file with these arguments? {"file_path":"a.txt","content":"hello"}'


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(("action", "result"), [("accept", "wrote a.txt"), ("decline", "sure? (the answer was no)")])
async def test_the_clients_user_is_asked_about_a_call(mode: Mode, action: Any, result: str) -> None:
    user, tools = User(action), Tools()
    server = server_of(tools, acting(BeforeTool=ask("sure?")))
    async with Client(server, mode=mode, elicitation_callback=user) as client:
        for _ in range(2):  # an answer counts once
            assert text_of((await client.call_tool(*NOTE)).content) == result
    assert user.questions == [ASKED, ASKED]
    assert len(tools.runs) == (2 if action == "accept" else 0)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_call_is_denied_if_the_client_cannot_ask_its_user(mode: Mode) -> None:
    tools = Tools()
    async with Client(server_of(tools, acting(BeforeTool=ask("sure?"))), mode=mode) as client:
        text = text_of((await client.call_tool(*NOTE)).content)
    assert text.startswith("sure? (nobody could be asked: the MCP client cannot ask its user")
    assert tools.runs == []


async def test_an_approver_of_the_program_is_asked_instead_of_the_client() -> None:
    user, tools = User("accept"), Tools()
    server = server_of(tools, acting(lambda request: False, BeforeTool=ask("sure?")))
    async with Client(server, elicitation_callback=user) as client:
        assert text_of((await client.call_tool(*NOTE)).content) == "sure? (the answer was no)"
    assert (user.questions, tools.runs) == ([], [])


REPLACEMENTS = [
    (deny("not for you"), "not for you", None, True),
    (replace_result("[hidden]"), "[hidden]", None, False),
    (replace_result({"llmContent": [{"type": "text", "text": "[hidden]"}]}), "[hidden]", None, False),
    (replace_result({"llmContent": "x", "metadata": {"structuredContent": {"found": 0}}}), "x", {"found": 0}, False),
    (replace_result({"llmContent": "x", "error": {"message": "x"}}), "x", None, True),
]


@pytest.mark.parametrize(("answer", "text", "structured", "is_error"), REPLACEMENTS)
async def test_a_hook_that_acts_replaces_a_result_and_its_structured_content(
    answer: Any, text: str, structured: Any, is_error: bool
) -> None:
    async with Client(server_of(Tools(), acting(AfterTool=answer))) as client:
        await client.list_tools()
        result = await client.call_tool("lookup", {"key": "secret"})
    assert (text_of(result.content), result.structured_content, result.is_error) == (text, structured, is_error)
    assert "secret" not in result.model_dump_json()


async def test_context_follows_a_replaced_result() -> None:
    answer = {"hookSpecificOutput": {"tool_response": "[hidden]", "additionalContext": "ask the owner"}}
    async with Client(server_of(Tools(), acting(AfterTool=answer))) as client:
        content = (await client.call_tool("lookup", {"key": "secret"})).content
    assert [text_of([block]) for block in content] == ["[hidden]", "ask the owner"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("action", ["accept", "decline", None])
async def test_the_proxy_asks_the_clients_user(mode: Mode, action: Any, sandbox: Project) -> None:
    configure_asking(sandbox)
    user = User(action)
    outcome = await ProxyDriver(mode, user if action else None).run_in_proxy(Scenario(project=sandbox, turns=[NOTE]))
    assert outcome.runs == ([ToolRun(*NOTE)] if action == "accept" else [])
    assert user.questions == ([ASKED] if action else [])
    assert outcome.results[0].startswith("wrote" if action == "accept" else "sure?")


async def test_an_answer_counts_once_and_for_the_arguments_that_the_user_saw(sandbox: Project) -> None:
    configure_asking(sandbox)
    runs = sandbox.note("runs")
    started = StdioServerParameters(
        command=PROXY[0],
        args=["mcp-proxy", "-C", str(sandbox.root), "--", sys.executable, str(SERVER), str(runs)],
        env=sandbox.environment(),
    )
    async with Client(stdio_client(started), elicitation_callback=User("accept")) as client:

        async def call(file_path: str, question: Any = None) -> Any:
            asked = question and {name: ElicitResult(action="accept", content={}) for name in question.input_requests}
            return await client.session.call_tool(
                NOTE.name,
                {**NOTE.args, "file_path": file_path},
                input_responses=asked,
                request_state=question and question.request_state,
                allow_input_required=True,
            )

        first, second = await call("a.txt"), await call("a.txt")
        answers = [await call("b.txt", first), await call("a.txt", first), await call("a.txt", second)]
        assert [isinstance(answer, InputRequiredResult) for answer in answers] == [True, True, False]
        assert isinstance(await call("a.txt", second), InputRequiredResult)
    assert len(runs.read_text().splitlines()) == 1


def configure_asking(sandbox: Project) -> None:
    hooks = {"BeforeTool": [{"hooks": [{"type": "command", "command": sandbox.hook(says=ask("sure?"))}]}]}
    sandbox.put("project", {"enableHooks": True, "hooksConfig": {"profile": "full"}, "hooks": hooks})
    sandbox.approve()


# Other event loops.


def test_a_guard_holds_under_trio(sandbox: Project) -> None:
    sandbox.configure(BeforeTool=sandbox.hook(says={"decision": "deny", "reason": "not here"}))
    sandbox.approve()
    tools = Tools()

    async def main() -> str:
        async with Client(server_of(tools, HooksMiddleware.load(sandbox.root))) as client:
            return text_of((await client.call_tool(*NOTE)).content)

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


async def test_hooks_choose_the_tools_that_a_client_can_see_and_call() -> None:
    middleware = HooksMiddleware(hooks={}, server_name="shop")
    middleware.hooks.on("BeforeToolSelection", lambda _: restrict("read"))
    server = MCPServer("shop", middleware=[middleware])

    @server.tool()
    def read() -> str:
        return "read"

    @server.tool()
    def write() -> str:
        raise AssertionError("a hook hides this tool")

    async with Client(server) as client:
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == ["read"]
        call = calling(client)
        assert text_of(await call("read", {})) == "read"
        assert "mcp__shop__write may not be called now" in text_of(await call("write", {}))


@pytest.mark.parametrize("form", ["json", "events"])
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_server_with_a_url_is_reached_by_a_client_of_commands(sandbox: Project, mode: Mode, form: str) -> None:
    sandbox.configure(
        BeforeTool={"matcher": "^write_file$", "hooks": [{"type": "command", "command": sandbox.hook(says=DENY)}]}
    )
    sandbox.approve()
    tools = Tools()

    async def use(url: str) -> None:
        started = StdioServerParameters(
            command=PROXY[0],
            args=["mcp-proxy", "-C", str(sandbox.root), "--upstream", url],
            env=sandbox.environment(),
        )
        async with Client(stdio_client(started), mode=mode) as client:
            assert NOTE.name in [tool.name for tool in (await client.list_tools()).tools]
            refused = await client.call_tool(NOTE.name, NOTE.args)
            assert refused.is_error
            assert text_of(refused.content) == "not today"

    async def run() -> None:
        server = server_of(tools)
        application = server.streamable_http_app(json_response=form == "json")
        with listen("127.0.0.1", 0) as port:
            running = Server(application, timeout_graceful_shutdown=1)
            async with server.session_manager.run():
                serving = asyncio.create_task(running.serve(sockets=[port]))
                try:
                    await use(f"http://127.0.0.1:{port.getsockname()[1]}/mcp")
                finally:
                    running.should_exit = True
                    await serving

    asyncio.run(run())
    assert tools.runs == []
