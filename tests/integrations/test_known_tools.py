"""An alias for a tool that does not exist is reported, in every framework that knows the agent's tools."""

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


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [text for text in caplog.messages if "alias" in text]


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
