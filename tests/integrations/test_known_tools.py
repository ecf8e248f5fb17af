"""Aliases and matchers without a tool are reported, in every framework that knows the agent's tools."""

import asyncio
import logging
from typing import Any

import fastmcp
import mcp
import pytest

import llxprt_hooks.integrations.fastmcp
import llxprt_hooks.integrations.mcp
from tests.clients import test_contract as clients
from tests.integrations import test_fastmcp, test_mcp
from tests.integrations.contract import NOTE, WROTE_NOTE, Driver, Scenario, Tools
from tests.integrations.test_google_adk_contract import GoogleADKDriver
from tests.integrations.test_langchain_contract import AsyncLangChainDriver, LangChainDriver
from tests.integrations.test_openai_agents_contract import OpenAIAgentsDriver
from tests.integrations.test_pydantic_ai_contract import PydanticAIDriver
from tests.support.project import Project

ALIASES = {"write_fil": "Write", "run_shell_command": "Bash"}
SAID = ["the alias `write_fil` has no effect: no tool has this name. Did you mean `write_file`?"]
DRIVERS = (
    LangChainDriver(),
    AsyncLangChainDriver(),
    PydanticAIDriver(),
    OpenAIAgentsDriver(),
    GoogleADKDriver(),
    clients.ChatDriver(is_async=True),
    clients.MessagesDriver(is_async=False),
)


def said(caplog: pytest.LogCaptureFixture, about: str = "alias") -> list[str]:
    return [text for text in caplog.messages if about in text]


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: type(driver).__name__)
def test_an_alias_for_no_tool_is_reported_once(
    driver: Driver, sandbox: Project, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    sandbox.configure(BeforeTool=sandbox.hook())
    sandbox.approve()
    outcome = driver.run(Scenario(project=sandbox, turns=[NOTE, NOTE], aliases=ALIASES))
    assert outcome.runs == WROTE_NOTE * 2
    assert said(caplog) == SAID


def group(project: Project, matcher: str) -> dict[str, Any]:
    return {"matcher": matcher, "hooks": [{"type": "command", "command": project.hook()}]}


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: type(driver).__name__)
def test_a_matcher_for_no_tool_is_reported_once(
    driver: Driver, sandbox: Project, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    before = [group(sandbox, matcher) for matcher in ("^write_fle$", "^(write_file|glob)$", "^lookup$", "*")]
    sandbox.configure(BeforeTool=before, AfterTool=[group(sandbox, "^refund$")])
    sandbox.approve()
    outcome = driver.run(Scenario(project=sandbox, turns=[NOTE, NOTE]))
    assert outcome.runs == WROTE_NOTE * 2
    typo, other = said(caplog, "matches none")
    assert typo.endswith(
        "hooks.BeforeTool[0].hooks[0]: the matcher `^write_fle$` matches none of the tools here, "
        "so this hook does not run. Did you mean `write_file`?"
    )
    assert "the matcher `^refund$` matches none" in other
    assert "`lookup`" in other


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: type(driver).__name__)
def test_a_matcher_is_compared_with_the_names_that_hooks_see(
    driver: Driver, sandbox: Project, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    sandbox.configure(BeforeTool=[group(sandbox, "^Write$")])
    sandbox.approve()
    driver.run(Scenario(project=sandbox, turns=[NOTE], aliases={"write_file": "Write"}))
    assert said(caplog, "matches none") == []


@pytest.mark.parametrize("kind", ["mcp", "fastmcp"])
@pytest.mark.parametrize(
    ("matcher", "server_name", "meant"),
    [
        ("^lookup$", "shop", None),
        ("^mcp__shop__lookup$", "shop", None),
        ("^mcp__other__refund$", "shop", None),
        ("^lokup$", "shop", "lookup"),
        ("^mcp__shp__lookup$", "shop", "mcp__shop__lookup"),
        ("^mcp__shop__lookup$", None, "lookup"),
    ],
)
def test_an_mcp_server_compares_matchers_with_its_tools(
    kind: str,
    matcher: str,
    server_name: str | None,
    meant: str | None,
    sandbox: Project,
    caplog: pytest.LogCaptureFixture,
) -> None:
    sandbox.configure(BeforeTool=[group(sandbox, matcher)])
    sandbox.approve()

    async def listed() -> None:
        client: Any
        if kind == "mcp":
            middleware = llxprt_hooks.integrations.mcp.HooksMiddleware.load(sandbox.root, server_name=server_name)
            client = mcp.Client(test_mcp.server_of(Tools(), middleware))
        else:
            other = llxprt_hooks.integrations.fastmcp.HooksMiddleware.load(sandbox.root, server_name=server_name)
            client = fastmcp.Client(test_fastmcp.server_of(Tools(), other))
        async with client:
            await client.list_tools()
            await client.list_tools()

    caplog.set_level(logging.WARNING)
    asyncio.run(listed())
    reports = said(caplog, "matches none")
    assert [text.rpartition(". ")[2] for text in reports] == ([] if meant is None else [f"Did you mean `{meant}`?"])


@pytest.mark.parametrize("kind", ["mcp", "fastmcp"])
def test_an_mcp_server_reports_it_with_its_list_of_tools(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    async def listed() -> None:
        client: Any
        if kind == "mcp":
            middleware = llxprt_hooks.integrations.mcp.HooksMiddleware(aliases=ALIASES)
            client = mcp.Client(test_mcp.server_of(Tools(), middleware))
        else:
            other = llxprt_hooks.integrations.fastmcp.HooksMiddleware(aliases=ALIASES)
            client = fastmcp.Client(test_fastmcp.server_of(Tools(), other))
        async with client:
            await client.list_tools()
            await client.list_tools()

    caplog.set_level(logging.WARNING)
    asyncio.run(listed())
    assert said(caplog) == SAID
