"""The contract of all integrations, through the model proxy: the clients know nothing of hooks, only a base URL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from llxprt_hooks import Hooks
from llxprt_hooks.events import HookEventName
from llxprt_hooks.integrations.anthropic import AnthropicHooks
from llxprt_hooks.integrations.openai import OpenAIHooks
from llxprt_hooks.integrations.proxy.model_http.app import ModelProxy
from llxprt_hooks.integrations.proxy.model_http.server import serving
from llxprt_hooks.integrations.proxy.model_http.upstreams import upstreams
from llxprt_hooks.integrations.unsupported import reports
from tests.clients import test_contract as clients
from tests.integrations.contract import (
    EFFECTS,
    SHELL,
    Check,
    Effect,
    Outcome,
    Scenario,
    ToolRun,
    check,
    check_declarations,
    check_refusal,
)

if TYPE_CHECKING:
    from tests.support.api_server import APIServer
    from tests.support.project import Project

PREFIXES = {
    "before_tool_": HookEventName.BEFORE_TOOL,
    "tool_payloads": HookEventName.BEFORE_TOOL,
    "tool_aliases": HookEventName.BEFORE_TOOL,
    "parallel_calls": HookEventName.BEFORE_TOOL,
    "deep_arguments": HookEventName.BEFORE_TOOL,
    "after_tool_": HookEventName.AFTER_TOOL,
    "before_agent": HookEventName.BEFORE_AGENT,
    "after_agent": HookEventName.AFTER_AGENT,
    "pre_compress": HookEventName.PRE_COMPRESS,
    "notification": HookEventName.NOTIFICATION,
    "acting_prompt_": HookEventName.BEFORE_AGENT,
    "acting_session_context": HookEventName.SESSION_START,
    "acting_continuation": HookEventName.AFTER_AGENT,
    "acting_answer_stops": HookEventName.AFTER_AGENT,
    "acting_context_cleared": HookEventName.AFTER_AGENT,
    "acting_compression_": HookEventName.PRE_COMPRESS,
    "acting_question_": HookEventName.BEFORE_TOOL,
    "acting_permission": HookEventName.BEFORE_TOOL,
    "acting_tool_payloads": HookEventName.BEFORE_TOOL,
    "acting_result_": HookEventName.AFTER_TOOL,
}
IMPOSSIBLE = {
    effect.name: event for effect in EFFECTS for prefix, event in PREFIXES.items() if effect.name.startswith(prefix)
}


def _ends_with_the_reason(scenario: Scenario, outcome: Outcome) -> None:
    """The proxy answers with the reason, which ends the agent's turn. The calls of an answer are not in it any more."""
    assert (outcome.runs, outcome.error) == ([], None)
    assert outcome.text in ("budget used up", "no tools left", "enough")
    assert len(outcome.requests) == (1 if outcome.text == "enough" else 0)


def _call_is_text(scenario: Scenario, outcome: Outcome) -> None:
    """A call that is not allowed is text in the answer, and the other one runs."""
    assert outcome.runs == [ToolRun(*SHELL)]
    assert outcome.results == ["ran ls"]
    assert "write_file may not be called now" in outcome.requests[1].text


def _answer_is_text(scenario: Scenario, outcome: Outcome) -> None:
    assert (outcome.runs, len(outcome.requests)) == ([], 1)
    assert outcome.text == "write_file may not be called now. No tool is allowed."


def _raises_as_without_hooks(scenario: Scenario, outcome: Outcome) -> None:
    """The tool is the agent's own. The hooks that would have seen its failure are reported."""
    assert isinstance(outcome.error, LookupError)
    check_refusal(HookEventName.AFTER_TOOL, replace(outcome, error=None))


PARTIAL: dict[str, Check] = {
    "acting_failure_replaced": _raises_as_without_hooks,
    "before_model_stops": _ends_with_the_reason,
    "selection_stops": _ends_with_the_reason,
    "after_model_stops": _ends_with_the_reason,
    "selection_holds_for_names": _call_is_text,
    "selection_holds_for_none": _answer_is_text,
    "after_model_suppresses": clients.PARTIAL["after_model_suppresses"],
    "who_asks": clients.PARTIAL["who_asks"],
    "who_asks_is_unknown": clients.PARTIAL["who_asks_is_unknown"],
}


class _Proxied(clients.ClientDriver):
    impossible: ClassVar[Mapping[str, HookEventName]] = IMPOSSIBLE
    partial: ClassVar[Mapping[str, Check]] = PARTIAL
    VARIABLE = "OPENAI_BASE_URL"

    async def _run(self, scenario: Scenario, server: APIServer) -> Outcome:
        hooks = Hooks.load(scenario.project.root)
        client_metadata = scenario.metadata is True
        async with serving(ModelProxy(hooks, upstreams([server.url], {}), client_metadata=client_metadata)) as running:
            base: Any = SimpleNamespace(url=running.base_urls[self.VARIABLE].removesuffix("/v1"))
            headers = {"x-llxprt-session-id": scenario.session_id}
            client = self.client(base).with_options(default_headers=headers)
            try:
                outcome = await self._converse(scenario, self._without_hooks(), client)
            finally:
                await client.close()
        outcome.said = "\n".join(reports("model-proxy", hooks))
        return outcome

    def _without_hooks(self) -> Any:
        return OpenAIHooks()


class ChatDriver(_Proxied, clients.ChatDriver):
    pass


class ResponsesDriver(_Proxied, clients.ResponsesDriver):
    pass


class MessagesDriver(_Proxied, clients.MessagesDriver):
    partial: ClassVar[Mapping[str, Check]] = {
        **PARTIAL,
        "before_model_changes_settings": clients.MessagesDriver.partial["before_model_changes_settings"],
    }
    VARIABLE = "ANTHROPIC_BASE_URL"

    def _without_hooks(self) -> Any:
        return AnthropicHooks()


DRIVERS = {
    "chat": ChatDriver(is_async=True),
    "responses": ResponsesDriver(is_async=True),
    "messages": MessagesDriver(is_async=True),
}


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("effect", EFFECTS, ids=str)
def test_contract(effect: Effect, driver: str, sandbox: Project, caplog: pytest.LogCaptureFixture) -> None:
    check(effect, DRIVERS[driver], sandbox, caplog)


@pytest.mark.parametrize("driver", DRIVERS)
def test_declared_gaps(driver: str) -> None:
    check_declarations(DRIVERS[driver])
